//! What other programs read: JSON, JSON lines and CSV, from real runs. Images come from
//! `cargo xtask images`; what is missing is named and left out, or fails with
//! `GPURPC_REQUIRE_IMAGES=1`.

#[path = "common/images.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod images;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use images::image;
use serde_json::Value;

fn top() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpurpc-top"));
    command.stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What standard output has, checked against the schema.
fn record(output: &Output) -> Value {
    let value: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stdout)));
    matches_schema(&value);
    value
}

fn matches_schema(value: &Value) {
    let schema: Value = serde_json::from_str(include_str!("../schema/record-v1.json")).unwrap();
    check(&schema, value, "record");
}

/// As much of JSON Schema as ours uses.
fn check(schema: &Value, value: &Value, at: &str) {
    if let Some(constant) = schema.get("const") {
        assert_eq!(constant, value, "{at}");
        return;
    }
    if let Some(values) = schema["enum"].as_array() {
        assert!(values.contains(value), "{at}: {value}");
        return;
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{at}: the schema has the type {other}"),
    };
    assert!(
        types.iter().any(|name| is(name.as_str().unwrap())),
        "{at}: {value}"
    );
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], item, &format!("{at}[{n}]"));
    }
    if let Some(object) = value.as_object() {
        let properties = schema["properties"].as_object().unwrap();
        for (name, value) in object {
            let schema = properties.get(name);
            let schema = schema.unwrap_or_else(|| panic!("{at}.{name} is not in the schema"));
            check(schema, value, &format!("{at}.{name}"));
        }
        for name in schema["required"].as_array().unwrap() {
            assert!(
                object.contains_key(name.as_str().unwrap()),
                "{at} lacks {name}"
            );
        }
    }
}

fn opcode<'r>(record: &'r Value, name: &str) -> &'r Value {
    let opcodes = record["opcodes"].as_array().unwrap();
    let found = opcodes.iter().find(|opcode| opcode["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {record}"))
}

fn increments(grid: &[&str], count: u64) {
    let Some(increment) = image("x86_64/increment.so") else {
        return;
    };
    let output = top()
        .args(["--once", "--format", "json"])
        .args(grid)
        .arg(&increment)
        .arg("50000")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let record = record(&output);
    let increments = opcode(&record, "test_increment");
    assert_eq!(increments["calls"], count);
    assert_eq!(increments["lanes"], count);
    assert_eq!(increments["errors"], 0);
    assert!(increments["p50_ns"].is_u64(), "{record}");
    assert_eq!(record["exit_code"], 0);
}

#[test]
fn counts_are_exact() {
    increments(&[], 50_000);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn counts_are_exact_with_many_threads() {
    increments(&["--blocks", "8", "--threads", "8"], 3_200_000);
}

#[test]
fn what_a_program_prints_goes_out_of_the_way() {
    let Some(hello) = image("x86_64/hello.so") else {
        return;
    };
    let output = top()
        .args(["--format", "json"])
        .arg(&hello)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(opcode(&record(&output), "write_to_stdout")["calls"], 1);
    assert!(
        said(&output).contains("hello from block 0"),
        "{}",
        said(&output)
    );
    // With a file there is no need to.
    let file = std::env::temp_dir().join(format!("gpurpc-records-{}", std::process::id()));
    let output = top()
        .args(["--once", "--format", "json", "--output"])
        .arg(&file)
        .arg(&hello)
        .output()
        .unwrap();
    let written = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    matches_schema(&serde_json::from_slice(&written).unwrap());
    assert!(String::from_utf8_lossy(&output.stdout).contains("hello from block 0"));
}

#[test]
fn a_program_that_ends_badly_has_its_record_too() {
    let Some(exit) = image("x86_64/exit.so") else {
        return;
    };
    let output = top()
        .args(["--format", "json"])
        .arg(&exit)
        .arg("42")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(record(&output)["exit_code"], 42);
    // What never ran has none.
    let output = top()
        .args(["--format", "json", "/no/such/image"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(output.stdout, b"");
}

#[test]
fn records_at_intervals() {
    let run = |format: &str| {
        let arguments = ["--batch", "-d", "0.3", "--format", format, "--demo"];
        let output = top().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let lines = run("jsonl");
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(records.len() >= 3, "{lines}");
    records.iter().for_each(matches_schema);
    // The first may come before the first call.
    let increments = |record: &Value| {
        let opcodes = record["opcodes"].as_array().unwrap();
        let found = opcodes
            .iter()
            .find(|opcode| opcode["name"] == "test_increment");
        found.map_or(0, |opcode| opcode["calls"].as_u64().unwrap())
    };
    assert!(
        records
            .windows(2)
            .all(|pair| increments(&pair[0]) <= increments(&pair[1]))
    );
    assert_eq!(records[0]["exit_code"], Value::Null);
    assert_eq!(records[records.len() - 1]["exit_code"], 0);
    let last = &records[records.len() - 1];
    // None where the machine was so busy that the few events of it were dropped.
    let slow = &opcode(last, "slow_handler")["p99_ns"];
    assert!(slow.as_u64().is_none_or(|slow| slow > 10_000_000), "{slow}");
    assert!(last["warnings"].to_string().contains("unknown_opcode"));

    let all: Value = serde_json::from_str(&run("json")).unwrap();
    all.as_array().unwrap().iter().for_each(matches_schema);

    let csv = run("csv");
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(
        csv.lines().all(|line| line.split(',').count() == columns),
        "{csv}"
    );
    assert!(csv.lines().filter(|line| line.starts_with("v,")).count() == 1);
}

#[test]
fn so_many_and_no_more() {
    let output = top()
        .args([
            "--batch", "-n", "2", "-d", "0.2", "--format", "jsonl", "--demo",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    let lines = said(&output).matches("thread 0 has made").count();
    assert!(lines >= 3, "the program ran to its end: {}", said(&output));
}

#[test]
fn without_statistics_there_are_the_counters() {
    let output = top()
        .args(["--once", "--format", "json", "--stats", "off", "--demo"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let record = record(&output);
    assert!(opcode(&record, "test_increment")["calls"].as_u64().unwrap() > 0);
    assert_eq!(opcode(&record, "test_increment")["p50_ns"], Value::Null);
}

/// Places for the file that cannot be used: the run goes on, with a warning, and has its counters.
#[test]
fn where_no_file_can_be() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let base = std::env::temp_dir().join(format!("gpurpc-places-{}", std::process::id()));
    let place = |name: &str| {
        let path = base.join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    };
    let (elsewhere, linked, occupied) = (place("elsewhere"), place("linked"), place("occupied"));
    symlink(&elsewhere, linked.join("gpurpc")).unwrap();
    std::fs::write(occupied.join("gpurpc"), "not a folder").unwrap();
    let mut cases = vec![
        ("a symbolic link in its place", linked),
        ("a file in its place", occupied),
    ];
    let read_only = place("read-only");
    std::fs::set_permissions(&read_only, std::fs::Permissions::from_mode(0o500)).unwrap();
    if rustix::process::getuid().is_root() {
        // Nothing is read-only for this user, but it can give things away.
        let foreign = place("foreign");
        std::fs::create_dir(foreign.join("gpurpc")).unwrap();
        std::os::unix::fs::chown(foreign.join("gpurpc"), Some(12345), None).unwrap();
        cases.push(("one of somebody else's", foreign));
    } else {
        cases.push(("a read-only one", read_only));
    }
    for (what, runtime) in cases {
        let output = top()
            .args(["--format", "json", "--demo"])
            .env("XDG_RUNTIME_DIR", &runtime)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{what}: {}", said(&output));
        assert!(
            said(&output).contains("no statistics are published"),
            "{what}: {}",
            said(&output)
        );
        assert!(
            opcode(&record(&output), "test_increment")["calls"]
                .as_u64()
                .unwrap()
                > 0,
            "{what}"
        );
    }
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    // Not there, or not this user's: the folder for temporary files is taken.
    let temporary = place("temporary");
    for runtime in ["/no/such/folder", "relative", "/proc/1"] {
        let output = top()
            .args(["--format", "json", "--demo"])
            .env("XDG_RUNTIME_DIR", runtime)
            .env("TMPDIR", &temporary)
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{runtime}: {}",
            said(&output)
        );
        record(&output);
    }
    let left: Vec<_> = walk(&base);
    assert!(
        left.iter()
            .all(|path| !path.to_string_lossy().ends_with(".stats")),
        "{left:?}"
    );
    // Whoever looks for a loader is told, too.
    let output = top()
        .arg("attach")
        .env("TMPDIR", &temporary)
        .env_remove("XDG_RUNTIME_DIR")
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        said(&output).contains("no loader of yours runs"),
        "{}",
        said(&output)
    );
    std::fs::remove_dir_all(&base).unwrap();
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .flat_map(|path| {
            let inside = if path.is_dir() && !path.is_symlink() {
                walk(&path)
            } else {
                Vec::new()
            };
            std::iter::once(path).chain(inside)
        })
        .collect()
}

#[test]
fn a_limit_on_files_ends_the_statistics_not_the_run() {
    // A shell's ulimit counts in blocks of 512 or 1024 bytes.
    let program = env!("CARGO_BIN_EXE_gpurpc-top");
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -f 1; exec '{program}' --demo"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(
        said(&output).contains("no statistics are published"),
        "{}",
        said(&output)
    );
    assert!(said(&output).contains("test_increment"));
}
