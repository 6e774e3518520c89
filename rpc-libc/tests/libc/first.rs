//! LLVM's first patch: its client, by hand, over the words that the kernel is passed.

use std::sync::Mutex;
use std::thread;

use rpc_bitmap::{Heap, Memory as _, System};
use rpc_port::First;
use rpc_server::{Drained, End, ExchangeState, Stream};
use rpc_types::Opcode;

use crate::rig::{LIMIT, Plan, Rig, eventually};

/// Where the loader has put them.
const INBOX: usize = 0;
const OUTBOX: usize = 64;
const BUFFER: usize = 128;

const PRINT: u64 = 1;
const EXIT: u64 = 2;

type Served = Rig<First<Heap<System>>>;

/// The client's side of the mailbox.
struct Mailbox<'r>(&'r Heap<System>);

impl Mailbox<'_> {
    fn fill(&self, words: [u64; 8]) {
        self.0.write(BUFFER, &words);
        self.give(1);
    }

    fn give(&self, outbox: u32) {
        self.0.release_fence();
        self.0.store32(OUTBOX, outbox);
    }

    fn inbox(&self) -> u32 {
        let inbox = self.0.load32(INBOX);
        self.0.acquire_fence();
        inbox
    }

    fn until(&self, inbox: u32) {
        eventually("an answer", || self.inbox() == inbox);
    }

    /// The four phases.
    fn call(&self, words: [u64; 8]) {
        self.fill(words);
        self.until(1);
        let mut same = [0; 8];
        self.0.read(BUFFER, &mut same);
        assert_eq!(same, words, "there is no reply but the mailbox's");
        self.give(0);
        self.until(0);
    }

    /// As the patch's own client cuts it, with `behind` in what is left of the last piece.
    fn print(&self, text: &str, behind: u8) {
        let text = [text.as_bytes(), b"\0"].concat();
        for piece in text.chunks(56) {
            let mut packet = [behind; 64];
            packet[..8].copy_from_slice(&PRINT.to_le_bytes());
            packet[8..8 + piece.len()].copy_from_slice(piece);
            self.call(bytemuck::cast(packet));
        }
    }
}

fn rig() -> Served {
    Plan::new(1).start()
}

fn mailbox(rig: &Served) -> Mailbox<'_> {
    Mailbox(rig.shared())
}

fn calls(rig: &Served) -> Vec<(&'static str, u64)> {
    let opcodes = rig.service.counters().opcodes.into_iter();
    opcodes
        .filter(|counters| counters.calls > 0)
        .map(|counters| (counters.name, counters.calls))
        .collect()
}

#[test]
fn text_of_any_length() {
    let rig = rig();
    let mut all = String::new();
    let lengths = [0, 1, 55, 56, 57, 111, 112, 113, 1000];
    for length in lengths {
        let text: String = ('a'..='z').cycle().take(length).collect();
        for behind in [0, b'#', 0xFF] {
            mailbox(&rig).print(&text, behind);
            all.push_str(&text);
        }
    }
    assert_eq!(rig.text(Stream::Stderr), all);
    assert_eq!(rig.text(Stream::Stdout), "");
    let pieces: usize = lengths.iter().map(|length| length / 56 + 1).sum();
    assert_eq!(calls(&rig), [("first_print", 3 * pieces as u64)]);
    assert_eq!(rig.service.open_exchanges(), []);
    assert_eq!(rig.service.ended(), None);
}

#[test]
fn a_piece_without_an_end_is_56_bytes() {
    let rig = rig();
    let mut packet = [u64::from_le_bytes(*b"ABCDEFGH"); 8];
    packet[0] = PRINT;
    mailbox(&rig).call(packet);
    mailbox(&rig).call([0; 8]);
    assert_eq!(rig.text(Stream::Stderr), "ABCDEFGH".repeat(7));
}

#[test]
fn exit_ends_the_run_and_lets_its_client_go() {
    for (word, code) in [(0, 0), (7, 7), (-1_i64 as u64, -1), (1 << 32 | 3, 3)] {
        let rig = rig();
        mailbox(&rig).print("before", 0);
        mailbox(&rig).call([EXIT, word, 0, 0, 0, 0, 0, 0]);
        assert_eq!(rig.service.ended(), Some(End::exit(code)));
        // Other threads of the grid may still print.
        mailbox(&rig).print(" and after", 0);
        assert_eq!(rig.text(Stream::Stderr), "before and after");
        assert_eq!(rig.reports(), [""; 0]);
    }
}

#[test]
fn threads_take_turns() {
    let rig = rig();
    let lock = Mutex::new(mailbox(&rig));
    thread::scope(|scope| {
        for thread in 0..3 {
            let lock = &lock;
            scope.spawn(move || {
                for n in 0..50 {
                    let text = format!("thread {thread} line {n}\n");
                    lock.lock().unwrap().print(&text, 0);
                }
            });
        }
    });
    let text = rig.text(Stream::Stderr);
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<_> = (0..3)
        .flat_map(|thread| (0..50).map(move |n| format!("thread {thread} line {n}")))
        .collect();
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[test]
fn opcodes_that_it_does_not_have_end_the_run() {
    let own = u64::from(Opcode::WRITE_TO_STDOUT.0);
    for (opcode, name) in [
        (3, "0x63000203"),
        (0xFF, "0x630002ff"),
        (0x100, "0xffffffff"),
        (own, "0xffffffff"),
        (1 << 32 | PRINT, "0xffffffff"),
        (u64::MAX, "0xffffffff"),
    ] {
        let rig = rig();
        mailbox(&rig).print("fine", 0);
        mailbox(&rig).fill([opcode; 8]);
        assert_eq!(rig.service.wait(LIMIT), Some(End::UNTOLD));
        let said = rig.reports().join("\n");
        assert!(
            said.contains(&format!("no handler for opcode {name} (port 0")),
            "{said}"
        );
        let drained = rig.service.drain(LIMIT);
        assert!(!drained.late);
        assert_eq!(mailbox(&rig).inbox(), 0, "it is not told that it is done");
    }
}

#[test]
fn who_stops_halfway_leaves_an_exchange_open() {
    let rig = rig();
    mailbox(&rig).fill([PRINT, u64::from_le_bytes(*b"half\0..."), 0, 0, 0, 0, 0, 0]);
    mailbox(&rig).until(1);
    eventually("the wait", || {
        let open = rig.service.open_exchanges();
        open.len() == 1 && open[0].state == ExchangeState::MidExchange
    });
    let open = rig.service.open_exchanges();
    assert_eq!((open[0].port, open[0].opcode), (0, Opcode::FIRST_PRINT));
    let drained = rig.service.drain(LIMIT);
    let given_up = Drained {
        cancelled: 1,
        late: false,
    };
    assert_eq!(drained, given_up);
    assert_eq!(rig.text(Stream::Stderr), "half");
}

/// Only the lowest bit of a mailbox counts, and it may change at any time.
#[test]
fn words_that_are_neither_0_nor_1() {
    let rig = rig();
    let mailbox = mailbox(&rig);
    mailbox.0.write(BUFFER, &[PRINT, 0x21, 0, 0, 0, 0, 0, 0]);
    for (outbox, inbox) in [
        (0xFFFF_FFFE, 0),
        (3, 1),
        (2, 0),
        (u32::MAX, 1),
        (1 << 31, 0),
    ] {
        mailbox.give(outbox);
        mailbox.until(inbox);
    }
    eventually("the text", || rig.text(Stream::Stderr) == "!!");
    // A request that is taken back is none, or an acknowledgement too early.
    for _ in 0..100 {
        mailbox.give(1);
        mailbox.give(0);
    }
    eventually("the end of all", || {
        mailbox.inbox() == 0 && rig.service.open_exchanges().is_empty()
    });
    mailbox.print("after", 0);
    assert!(rig.text(Stream::Stderr).ends_with("after"));
    assert_eq!(rig.service.ended(), None);
}

/// A client that writes anything anywhere, beside the mailbox too.
#[test]
fn noise() {
    let rig = rig();
    let mailbox = mailbox(&rig);
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (state >> 33) as u32
    };
    for _ in 0..20_000 {
        let offset = random() as usize % 112 * 4;
        let value = random();
        mailbox
            .0
            .store32(offset, if value & 4 == 0 { value & 3 } else { value });
    }
    let drained = rig.service.drain(LIMIT);
    assert!(!drained.late);
    assert!(
        [None, Some(End::UNTOLD)].contains(&rig.service.ended()) || {
            let exit = rig.service.ended().unwrap();
            exit == End::exit(exit.code)
        }
    );
}
