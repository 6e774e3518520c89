//! What serving costs a poller, without threads: for counting instructions, and for timing where
//! nothing else is in the way.
//!
//! `cargo run --release -p rpc-server --example serve_loop -- PORTS BUSY LANES ROUNDS [BYTES]` has
//! PORTS ports, of which the first BUSY have a call of LANES lanes, BYTES (8) bytes each way, in each of
//! ROUNDS passes. Under
//! `valgrind --tool=callgrind --toggle-collect=serve_pass` the instructions of the passes alone are
//! counted.

use std::time::{Duration, Instant};

use rpc_bitmap::Heap;
use rpc_port::Procedure;
use rpc_port::procedure::Increment;
use rpc_port::transport::{Line, Request, Transport};
use rpc_server::single::Single;
use rpc_server::{Options, Table};
use rpc_types::packet::PACKET_SIZE;
use rpc_types::{Geometry, LayoutKind, Opcode, Packet};

/// What is measured.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn serve_pass(server: &mut Server) -> bool {
    server.pass()
}

/// What is called for more than 8 bytes.
const PACKETS: Opcode = Opcode::user(0);

type Shared = Line<Heap<rpc_bitmap::System>>;
type Server = Single<Shared>;

fn main() {
    let numbers: Vec<u32> = std::env::args()
        .skip(1)
        .flat_map(|word| word.parse())
        .collect();
    let (&[ports, busy, lanes, rounds], rest) =
        numbers.split_first_chunk().unwrap_or((&[0; 4], &[]));
    let bytes = rest.first().map_or(8, |&bytes| bytes as usize);
    if rounds == 0 || bytes > PACKET_SIZE {
        eprintln!("usage: serve_loop PORTS BUSY LANES ROUNDS [BYTES]");
        std::process::exit(2);
    }
    let geometry = Geometry::new(LayoutKind::Line, ports, lanes.max(1));
    let geometry = geometry.expect("ports and lanes that a layout has room for");
    let transport = Shared::new(Heap::new(geometry.shared_size()), geometry);
    let mut table = Table::new();
    table.procedure::<Increment>(|_, n| Ok(n + 1));
    table.packets(PACKETS, "packets", |_, packet| {
        packet.words[0] += 1;
        Ok(())
    });
    let opcode = if bytes > 8 {
        PACKETS
    } else {
        Increment::OPCODE
    };
    let mut server = Server::new(transport.clone(), table, Options::default());
    let mask = u64::MAX >> (64 - lanes.max(1));
    let mut spent = Duration::ZERO;
    for sequence in 1..=rounds {
        for port in 0..busy {
            for lane in 0..lanes {
                let word = u64::from(port + lane + sequence);
                transport.put_word(port, lane, sequence, word);
                let message = Packet { words: [word; 8] };
                transport.put_tails(port, lane, sequence, &message, bytes);
            }
            transport.publish_request(
                port,
                &Request {
                    sequence,
                    opcode,
                    mask,
                    opening: true,
                    bytes,
                    in_packets: false,
                    by_lane: true,
                    ordered: false,
                },
            );
            transport.announce(port, sequence);
        }
        let start = Instant::now();
        serve_pass(&mut server);
        spent += start.elapsed();
        for port in 0..busy {
            for lane in 0..lanes {
                // In the first rounds the poller finds the ports one by one.
                while transport.poll_reply(port, lane, sequence).is_none() {
                    serve_pass(&mut server);
                }
                let reply = transport
                    .poll_reply(port, lane, sequence)
                    .map(|reply| reply.word);
                assert_eq!(reply, Some(u64::from(port + lane + sequence) + 1));
            }
        }
    }
    let each = spent.as_secs_f64() * 1e9 / f64::from(rounds);
    println!(
        "{each:.0} ns a pass, {:.1} ns a call",
        each / f64::from(busy.max(1))
    );
}
