//! `cargo run -p rpc-stats --example once [FILE]`: the calls of a run so far; without a file, of the
//! latest run.

use rpc_stats::{Reader, runs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = match std::env::args_os().nth(1) {
        Some(path) => path.into(),
        None => runs()?.into_iter().next().ok_or("no run")?.path,
    };
    let snapshot = Reader::open(path)?.read()?.ok_or("no snapshot")?;
    println!("{:?} on {}", snapshot.run.command, snapshot.run.device);
    for opcode in snapshot.opcodes.iter().filter(|opcode| opcode.calls > 0) {
        let p99 = opcode.latency.percentile_ns(0.99);
        println!(
            "{:20} {:>12} calls, p99 {p99:?} ns",
            opcode.name, opcode.calls
        );
    }
    Ok(())
}
