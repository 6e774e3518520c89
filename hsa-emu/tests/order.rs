//! Orders of waves: any seed gives the same result, and the same seed the same order; many launches
//! leave nothing behind.

#![allow(clippy::pedantic, reason = "tests")]

mod common;

use std::env;
use std::fs;
use std::process::Command;

use common::{End, Session, allocate};

const KERNELS: &[u8] = include_bytes!("fixtures/faults.elf");

/// What a child of this test does, with options in its environment: locks and barriers.
fn child() {
    let session = Session::new(KERNELS);
    let memory = allocate(4096);
    let arguments = [memory.expose_provenance() as u64];
    assert_eq!(session.launch("lock", 6, 100, &arguments, 100), End::Done);
    // SAFETY: two words.
    assert_eq!(unsafe { memory.cast::<[u32; 2]>().read() }, [0, 600]);
    assert_eq!(session.launch("sum", 3, 200, &arguments, 100), End::Done);
    for n in 0..600 {
        // SAFETY: as many words.
        let got = unsafe { memory.cast::<u32>().add(n).read() };
        assert_eq!(got, (0..200).sum::<u32>());
    }
}

fn run(name: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(env::current_exe().expect("this test"));
    command
        .args(["--exact", name])
        .env("HSA_EMU_CHILD", "1")
        .envs(variables.iter().copied());
    let output = command.output().expect("it starts again");
    assert!(output.status.success(), "{variables:?}: {output:?}");
}

#[test]
fn any_seed_gives_the_same_result() {
    if env::var_os("HSA_EMU_CHILD").is_some() {
        return child();
    }
    for seed in 0..20 {
        let seed = seed.to_string();
        run(
            "any_seed_gives_the_same_result",
            &[("GPURPC_EMU_SEED", &seed)],
        );
    }
    for (workers, quantum) in [("1", "1"), ("4", "7"), ("2", "1000000")] {
        let variables = [
            ("GPURPC_EMU_WORKERS", workers),
            ("GPURPC_EMU_QUANTUM", quantum),
        ];
        run("any_seed_gives_the_same_result", &variables);
    }
}

#[test]
fn a_seed_repeats_its_order() {
    if env::var_os("HSA_EMU_CHILD").is_some() {
        let session = Session::new(KERNELS);
        let memory = allocate(4096);
        let arguments = [memory.expose_provenance() as u64];
        assert_eq!(session.launch("sum", 2, 100, &arguments, 100), End::Done);
        return;
    }
    let folder = env::temp_dir().join(format!("hsa-emu-order-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let trace = |seed: &str, name: &str| {
        let path = folder.join(name);
        let path = path.to_str().expect("a path in UTF-8");
        let variables = [("GPURPC_EMU_SEED", seed), ("GPURPC_EMU_TRACE", path)];
        run("a_seed_repeats_its_order", &variables);
        let text = fs::read_to_string(path).expect("a trace");
        // Addresses differ from process to process.
        let line = |line: &str| {
            let mut words: Vec<_> = line.split(' ').collect();
            words.remove(1);
            words.join(" ")
        };
        text.lines().map(line).collect::<Vec<_>>()
    };
    let (first, again, other) = (trace("5", "a"), trace("5", "b"), trace("6", "c"));
    assert!(first.len() > 1000, "{first:?}");
    assert!(
        first.iter().any(|line| line == "1,0,0.3 exec=f s_barrier"),
        "{first:?}"
    );
    assert!(first == again);
    assert!(first != other);
    let _ = fs::remove_dir_all(folder);
}

/// Pages of this process that are in memory.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux");
    text.split(' ')
        .nth(1)
        .expect("a second number")
        .parse()
        .expect("a number")
}

#[test]
fn many_launches_leave_nothing_behind() {
    let session = Session::new(KERNELS);
    let memory = allocate(4096);
    let arguments = [memory.expose_provenance() as u64];
    let launch = |count: u32| {
        for _ in 0..count {
            assert_eq!(session.launch("sum", 2, 100, &arguments, 100), End::Done);
        }
    };
    launch(500);
    let before = resident();
    launch(10_000);
    let after = resident();
    assert!(after < before + 500, "{before} pages, then {after}");
}

#[test]
fn many_faults_leave_nothing_behind() {
    let run = |count: u32| {
        for _ in 0..count {
            let session = Session::new(KERNELS);
            let end = session.launch("local", 3, 200, &[], 100);
            assert!(matches!(end, End::Error(_)));
        }
    };
    run(100);
    let before = resident();
    run(500);
    let after = resident();
    // What a launch allocates for arguments and signals is freed by the tests only if it ends.
    assert!(after < before + 3000, "{before} pages, then {after}");
}
