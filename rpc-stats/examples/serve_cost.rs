//! What statistics cost a poller, without threads: as `serve_loop` of `rpc-server`, without an
//! observer and with one.
//!
//! `cargo run --release -p rpc-stats --features recorder --example serve_cost -- PORTS BUSY LANES
//! ROUNDS off|on`; under `valgrind --tool=callgrind --toggle-collect=serve_pass` (`observed_pass`)
//! the instructions of the passes alone are counted.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rpc_bitmap::{Heap, System};
use rpc_port::Procedure;
use rpc_port::procedure::Increment;
use rpc_port::transport::{Line, Request, Transport};
use rpc_server::single::Single;
use rpc_server::{Observe, Options, Table};
use rpc_stats::Observer;
use rpc_types::{Geometry, LayoutKind};

type Shared = Line<Heap<System>>;

/// What is measured.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn serve_pass(server: &mut Single<Shared>) -> bool {
    server.pass()
}

/// And with an observer.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn observed_pass(server: &mut Single<Shared, Observer>) -> bool {
    server.pass()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u32> = words.iter().flat_map(|word| word.parse()).collect();
    let [ports, busy, lanes, rounds] = numbers[..] else {
        eprintln!("usage: serve_cost PORTS BUSY LANES ROUNDS off|on");
        std::process::exit(2);
    };
    let plan = Plan {
        busy,
        lanes: lanes.max(1),
        rounds,
    };
    let geometry = Geometry::new(LayoutKind::Line, ports, plan.lanes);
    let geometry = geometry.expect("ports and lanes that a layout has room for");
    let transport = Shared::new(Heap::new(geometry.shared_size()), geometry);
    if words.last().is_some_and(|word| word == "on") {
        let (observer, events) = Observer::new(ports, 1);
        plan.run(&transport, observer, observed_pass);
        black_box(events);
    } else {
        plan.run(&transport, (), serve_pass);
    }
}

struct Plan {
    busy: u32,
    lanes: u32,
    rounds: u32,
}

impl Plan {
    fn run<O: Observe>(
        &self,
        transport: &Shared,
        observe: O,
        pass: extern "C" fn(&mut Single<Shared, O>) -> bool,
    ) {
        let mut table = Table::new();
        table.procedure::<Increment>(|_, n| Ok(n + 1));
        let options = Options::default();
        let mut server = Single::observed(transport.clone(), table, options, observe);
        let mask = u64::MAX >> (64 - self.lanes);
        let mut spent = Duration::ZERO;
        for sequence in 1..=self.rounds {
            for port in 0..self.busy {
                for lane in 0..self.lanes {
                    transport.put_word(port, lane, sequence, u64::from(port + lane + sequence));
                }
                transport.publish_request(
                    port,
                    &Request {
                        sequence,
                        opcode: Increment::OPCODE,
                        mask,
                        opening: true,
                        bytes: 8,
                        in_packets: false,
                        by_lane: true,
                        ordered: false,
                    },
                );
                transport.announce(port, sequence);
            }
            let start = Instant::now();
            pass(&mut server);
            spent += start.elapsed();
            for port in 0..self.busy {
                // In the first rounds the poller finds the ports one by one.
                while transport.poll_reply(port, 0, sequence).is_none() {
                    pass(&mut server);
                }
            }
        }
        let each = spent.as_secs_f64() * 1e9 / f64::from(self.rounds);
        println!(
            "{each:.0} ns a pass, {:.1} ns a call",
            each / f64::from(self.busy.max(1))
        );
    }
}
