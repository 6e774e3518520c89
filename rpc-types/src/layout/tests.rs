extern crate std;
use super::*;
use std::vec::Vec;

/// Ends where it says, overlaps nothing: every array with its size, in order.
fn arrays(g: &Geometry) -> [Vec<(usize, usize)>; 2] {
    let total = g.total_ports() as usize;
    let bits = total.div_ceil(32) * 4;
    let packets = (g.packets(), total * g.lanes as usize * 64);
    let shared = match g.layout {
        LayoutKind::Line => Vec::from([
            (g.requests(), total * g.request_stride()),
            (g.replies(), total * g.reply_stride()),
            packets,
            (g.request_tails(), total * g.lanes as usize * 80),
            (g.reply_tails(), total * g.lanes as usize * 80),
        ]),
        LayoutKind::Compact => Vec::from([
            (g.requests(), bits),
            (g.masks(), total * 8),
            (g.openings(), total * 4),
            (g.replies(), bits),
            (g.statuses(), total * 4),
            packets,
        ]),
        LayoutKind::Llvm22 | LayoutKind::Llvm => Vec::from([
            (g.replies(), total * 4),
            (g.requests(), total * 4),
            (g.headers(), total * 16),
            packets,
            (g.stop(), 4),
        ]),
        LayoutKind::First => Vec::from([
            (g.replies(), total * 4),
            (g.requests(), total * 4),
            packets,
            (g.stop(), 4),
        ]),
    };
    let mut shared = shared;
    if !g.layout.is_llvm() {
        shared.push((g.summaries(), total.div_ceil(64) * 16));
    }
    let private = Vec::from([
        (0, 64),
        (g.state(0), total * 16),
        (g.busy(), bits),
        (g.in_flight(), bits),
    ]);
    [shared, private]
}

#[test]
fn arrays_lie_in_order_and_do_not_overlap() {
    for number in 1..6 {
        let layout = LayoutKind::from_number(number).unwrap();
        let most = layout.max_ports();
        for ports in [1, 2, 31, 32, 33, 1000, 4095, most].map(|ports| ports.min(most)) {
            for lanes in [1, 32, 64] {
                let g = Geometry::new(layout, ports, lanes).unwrap();
                let [shared, private] = arrays(&g);
                for (list, size) in [(shared, g.shared_size()), (private, g.private_size())] {
                    let mut end = 0;
                    for (start, bytes) in list {
                        assert!(start >= end, "{g:?}");
                        assert_eq!(start % 4, 0);
                        end = start + bytes;
                    }
                    assert!(end <= size, "{g:?}");
                    assert_eq!(size % PAGE, 0);
                }
                if layout.is_llvm() {
                    assert_eq!((g.headers() % 8, g.packets() % 64), (0, 0));
                    continue;
                }
                assert_eq!(g.requests() % PAGE, 0);
                assert_eq!(g.replies() % PAGE, 0, "mailboxes lie in different pages");
                assert_eq!(g.packets() % PAGE, 0);
            }
        }
    }
}

#[test]
fn words_of_a_line_are_aligned_and_their_own() {
    for lanes in [1, 2, 3, 32, 64] {
        let g = Geometry::new(LayoutKind::Line, 3, lanes).unwrap();
        for port in 0..4 {
            assert_eq!(g.request(port) % LINE, 0);
            assert!(g.request_word(port, lanes - 1) + WORD <= g.request(port + 1));
            assert!(g.reply_word(port, lanes - 1) + WORD <= g.reply_word(port + 1, 0));
            assert!(g.reply_word(port + 1, 0) - g.reply_word(port, 0) >= REPLY_STRIDE);
            assert_eq!(g.request_word(port, lanes - 1) % WORD, 0);
            assert_eq!(g.reply_word(port, lanes - 1) % WORD, 0);
            for tail in [Geometry::request_tail, Geometry::reply_tail] {
                assert_eq!(tail(&g, port, lanes - 1) % WORD, 0);
                let end = tail(&g, port, lanes - 1) + 4 * g.tail_row() + WORD;
                assert_eq!(end, tail(&g, port + 1, 0));
            }
        }
    }
    assert_eq!(
        Geometry::new(LayoutKind::Line, 3, 32)
            .unwrap()
            .request_stride(),
        576
    );
}

#[test]
fn meta_words_come_apart() {
    let meta = request::meta(0xFFFF, request::OPENING | request::LONG_OPCODE, 64);
    assert_eq!(request::opcode(meta), 0xFFFF);
    assert_eq!(request::bytes(meta), 64);
    assert_eq!(meta & request::IN_PACKETS, 0);
    let meta = reply::meta(reply::MAX_STATUS, reply::IN_PACKETS, 64);
    assert_eq!(reply::status(meta), reply::MAX_STATUS);
    assert_ne!(meta & reply::IN_PACKETS, 0);
    assert_eq!(reply::bytes(meta), 64);
    assert_eq!(
        tail::unpack(tail::pack(7, [1, 2, u32::MAX])),
        (7, [1, 2, u32::MAX])
    );
}

#[test]
fn sequence_numbers_alternate_and_0_never_comes_again() {
    assert_eq!(next_sequence(0), 1);
    assert_eq!(next_sequence(u32::MAX - 1), u32::MAX);
    assert_eq!(next_sequence(u32::MAX), 2);
}

#[test]
fn impossible_shapes_are_refused() {
    assert_eq!(Geometry::new(LayoutKind::Line, 0, 32), None);
    assert_eq!(Geometry::new(LayoutKind::Line, MAX_PORTS + 1, 32), None);
    assert_eq!(Geometry::new(LayoutKind::Line, 1, 0), None);
    assert_eq!(Geometry::new(LayoutKind::Line, 1, 65), None);
}
