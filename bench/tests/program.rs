//! The program on the command line: what it refuses, and on the CPU device that every workload's
//! results are right and how they are written. No test goes by how long something takes.
//!
//! The images are built by `cargo xtask images`; what is missing is named and left out, or fails
//! with `GPURPC_REQUIRE_IMAGES=1`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn images() -> PathBuf {
    std::env::var_os("GPURPC_IMAGES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/images"),
        PathBuf::from,
    )
}

/// Whether all these images are there.
fn have(names: &[&str]) -> bool {
    let missing = names
        .iter()
        .map(|name| images().join("x86_64").join(name))
        .find(|image| !image.exists());
    let Some(image) = missing else {
        return true;
    };
    let said = format!(
        "there is no {}: `cargo xtask images` builds it",
        image.display()
    );
    assert!(
        std::env::var_os("GPURPC_REQUIRE_IMAGES").is_none_or(|value| value != "1"),
        "{said}"
    );
    left_out(&said);
    false
}

/// Names the test that is left out, and why: past the capture of the output of tests that pass.
fn left_out(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "{test} left out: {reason}");
}

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_gpurpc-bench").into()
}

fn bench(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(program())
        .arg("--images")
        .arg(images())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A file of this test's.
fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn wrong_arguments_get_one_sentence() {
    for (arguments, words) in [
        (&["--frob"][..], "--frob"),
        (&["image.so"], "image.so"),
        (&["--only", "frob"], "frob"),
        (&["--only", ""], "--only"),
        (&["--device-kind", "amd"], "amd"),
        (&["--ports", "0"], "--ports"),
        (&["--server-threads", "65"], "--server-threads"),
        (&["--poll", "often"], "--poll"),
        (&["--timeout", "0"], "--timeout"),
        (&["--repetitions", "0"], "--repetitions"),
        (&["--json", "/no/such/folder/file"], "/no/such/folder/file"),
        (&["--compare", "/no/such/file"], "/no/such/file"),
        (&["--image", "/no/such/image"], "/no/such/image"),
        (&["--device", "3"], "device 3"),
    ] {
        let (code, _, said) = bench(arguments);
        assert_eq!(code, Some(125), "{arguments:?}: {said}");
        assert!(
            said.starts_with("gpurpc-bench: ") && said.lines().count() == 1,
            "{arguments:?}: {said}"
        );
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let (code, said, _) = bench(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(said.contains("gpurpc-bench [OPTIONS]") && said.contains("stream-beside"));
    assert!(!said.contains("empty-context"));
}

#[test]
fn an_image_of_something_else_is_refused() {
    let text = file("text");
    fs::write(&text, "no image").unwrap();
    let (code, _, said) = bench(&["--image", text.to_str().unwrap()]);
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("no shared object"), "{said}");
}

#[test]
fn every_workload_is_right_on_the_cpu_device() {
    let needed = ["bench-device.so", "compact/bench-device.so", "hello.so"];
    if !have(&needed) {
        return;
    }
    let mut workloads = vec![
        "floor",
        "copy",
        "increment",
        "kept",
        "echo64",
        "noop",
        "send1m",
        "send64m",
        "stack8k",
        "echo4k",
        "stream-beside",
        "read-beside",
        "busy",
        "first-call",
        "idle",
        "diverge",
        "counters",
        "statistics",
    ];
    if program().with_file_name("loader-cpu").exists() {
        workloads.push("start");
    } else {
        left_out("the workload start: loader-cpu is not built");
    }
    let path = file("all.jsonl");
    let only = workloads.join(",");
    let (code, table, said) = bench(&[
        "--quick",
        "--timeout",
        "120",
        "--only",
        &only,
        "--json",
        path.to_str().unwrap(),
    ]);
    assert_eq!(code, Some(0), "{table}{said}");
    assert_eq!(said, "");
    let rows = rows(&path);
    for name in workloads.iter().filter(|name| **name != "copy") {
        // A whole block may be left out, which the table then says.
        let written = rows.iter().any(|row| row["workload"] == *name);
        assert!(written || table.contains("left out"), "{name} in {table}");
        assert!(table.contains(name), "{name} in {table}");
    }
    for row in &rows {
        for key in ["ports", "warps", "lanes", "bytes", "calls", "host_cores"] {
            assert!(row[key].is_u64(), "{key} of {row}");
        }
        for key in ["layout", "poll", "host_cpu", "device", "driver", "version"] {
            assert!(row[key].is_string(), "{key} of {row}");
        }
        let ratio = row["ratio"].as_f64().unwrap();
        assert!(ratio.is_finite() && ratio >= 0.0, "{row}");
        let of = |start: &str| {
            let mut values = row.as_object().unwrap().iter();
            values
                .find(|(key, _)| key.starts_with(start))
                .and_then(|(_, value)| value.as_f64())
                .unwrap()
        };
        let (min, median, max) = (of("min_"), of("median_"), of("max_"));
        assert!(min <= median && median <= max, "{row}");
    }
    for layout in ["line", "compact"] {
        assert!(rows.iter().any(|row| row["layout"] == layout), "{table}");
    }
}

/// LLVM's layouts carry no references: a message of any length goes in packets.
#[test]
fn long_messages_go_over_llvm_s_layout() {
    if !have(&["llvm/bench-device.so"]) {
        return;
    }
    let (code, table, said) = bench(&[
        "--quick",
        "--timeout",
        "120",
        "--layout",
        "llvm",
        "--only",
        "stream-beside",
    ]);
    assert_eq!((code, &*said), (Some(0), ""), "{table}");
    assert!(table.contains("65536"), "{table}");
}

#[test]
fn earlier_results_are_compared_with() {
    if !have(&["bench-device.so"]) {
        return;
    }
    let (path, now) = (file("earlier.jsonl"), file("now.jsonl"));
    let only = ["--quick", "--layout", "line", "--only", "noop"];
    let (code, table, said) = bench(&[&only[..], &["--json", path.to_str().unwrap()]].concat());
    assert_eq!(code, Some(0), "{table}{said}");
    // As if it had been so much better, or worse, that no machine's mood makes up for it.
    for (factor, expected) in [(1e6, 1), (1e-6, 0)] {
        let mut earlier = rows(&path);
        for row in &mut earlier {
            if row["workload"] == "noop" {
                row["ratio"] = json!(row["ratio"].as_f64().unwrap() * factor);
            }
        }
        let lines: Vec<_> = earlier.iter().map(Value::to_string).collect();
        fs::write(&now, lines.join("\n")).unwrap();
        let compare = ["--compare", now.to_str().unwrap()];
        let (code, table, said) = bench(&[&only[..], &compare].concat());
        assert_eq!(code, Some(expected), "{table}{said}");
        assert_eq!(table.contains("WORSE"), expected == 1, "{table}");
        assert_eq!(said.contains("1 ratios are worse"), expected == 1, "{said}");
    }
}

#[test]
fn a_kernel_that_takes_too_long_is_named_and_the_next_workload_goes_on() {
    if !have(&["bench-device.so"]) {
        return;
    }
    let (code, table, said) = bench(&[
        "--layout",
        "line",
        "--only",
        "echo64,noop",
        "--timeout",
        "0.000001",
    ]);
    // Each workload, and what its ratio needs, is told by name.
    assert_eq!(code, Some(1), "{table}{said}");
    for name in ["echo64", "noop"] {
        let sentence = format!("gpurpc-bench: {name} (line): the kernel had not ended after");
        assert!(said.contains(&sentence), "{said}");
    }
}
