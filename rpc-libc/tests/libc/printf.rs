//! `fprintf` to files, and its failures on the console.

use std::fs;
use std::io;
use std::sync::Arc;

use rpc_server::{Output, Stream};
use rpc_types::Opcode;

use crate::rig::{Calls, Layout, Plan, STDERR, STDOUT, c, on_all_layouts};

on_all_layouts!(
    files_of_lanes,
    streams_that_are_none,
    nothing_to_a_file_that_is_read,
    a_console_that_is_gone,
    texts_without_room,
);

const TEXT: &str = "A simple string\n";

/// `fprintf` of arguments of 8 bytes; a string is at every address but null.
fn fprintf(client: &impl Calls, file: u64, format: &str, arguments: &[u64]) -> i64 {
    client.steps(Opcode::PRINTF_TO_STREAM, |port| {
        port.put([file, 0, 0]);
        rest(port, format, arguments)
    })
}

/// What comes when it is known where to print to. The lanes of a warp have the same number of
/// strings.
fn rest(port: &mut dyn crate::rig::Steps, format: &str, arguments: &[u64]) -> i64 {
    rest_with(port, format, arguments, TEXT)
}

fn rest_with(
    port: &mut dyn crate::rig::Steps,
    format: &str,
    arguments: &[u64],
    string: &str,
) -> i64 {
    port.put_n(&c(format));
    let asked = port.get() as usize;
    let block: Vec<u8> = arguments
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    port.put_n(&block[..asked]);
    loop {
        let [result, address] = port.get_two();
        if address == 0 {
            return result as i64;
        }
        port.put_n(&c(string));
    }
}

/// What LLVM's own test of this service looks at, on all lanes.
fn files_of_lanes<T: Layout>() {
    let rig = Plan::new(8).start::<T>();
    let path = |lane: u32| rig.path(&format!("file {lane}"));
    rig.team(|lane, client| {
        let file = client.fopen(&path(lane), "w");
        assert_ne!(file, 0);
        let id = u64::from(lane);
        for (format, arguments, result) in [
            (TEXT, &[][..], 16),
            ("%s", &[8], 16),
            ("%8ld\n", &[id], 9),
            ("%032b\n", &[id], 33),
            ("%p\n", &[0], 10),
            ("%s\n", &[0], 7),
            ("%.1f", &[1.0_f64.to_bits()], 3),
        ] {
            assert_eq!(fprintf(client, file, format, arguments), result, "{format}");
        }
        assert_eq!(client.fclose(file), 0);
        assert_eq!(fprintf(client, file, "%d", &[1]), -1, "it is closed");
    });
    for lane in 0..4 {
        let expected = format!("{TEXT}{TEXT}{lane:8}\n{lane:032b}\n(nullptr)\n(null)\n1.0");
        assert_eq!(fs::read_to_string(path(lane)).unwrap(), expected);
    }
    rig.is_whole();
}

fn streams_that_are_none<T: Layout>() {
    let rig = Plan::new(8).start::<T>();
    let client = rig.client();
    for handle in [0, 1, 2, 3, 4, 1 << 34, 1 << 63, u64::MAX] {
        for format in ["", "text", "%s"] {
            assert_eq!(fprintf(&client, handle, format, &[8]), -1, "{handle:#x}");
        }
    }
    fs::write(rig.path("old"), "old").unwrap();
    let file = client.fopen(&rig.path("old"), "r");
    assert_eq!(
        fprintf(&client, file, "%ld", &[5]),
        -1,
        "it is open for reading"
    );
    assert_eq!(client.fread(file, 10), b"old");
    assert!(client.flags(file).1);
    // One lane's wrong handle is no other lane's.
    rig.team(|lane, client| {
        let file = client.fopen(&rig.path(&format!("file {lane}")), "w");
        let handle = if lane == 2 { file ^ 1 << 40 } else { file };
        let result = fprintf(client, handle, "%ld\n", &[7]);
        assert_eq!(result, if lane == 2 { -1 } else { 2 });
        assert_eq!(client.fclose(file), 0);
        let length = fs::metadata(rig.path(&format!("file {lane}")))
            .unwrap()
            .len();
        assert_eq!(length, if lane == 2 { 0 } else { 2 });
    });
    rig.is_whole();
}

/// An empty text is an error there as well, as with glibc; an empty `fwrite` is none.
fn nothing_to_a_file_that_is_read<T: Layout>() {
    let rig = Plan::new(8).start::<T>();
    let client = rig.client();
    fs::write(rig.path("old"), "old").unwrap();
    let read = client.fopen(&rig.path("old"), "r");
    let written = client.fopen(&rig.path("old"), "r+");
    assert_eq!(client.fgets(read, 2).unwrap(), b"o");
    assert_eq!(client.fgets(written, 2).unwrap(), b"o");
    assert_eq!(client.fwrite(read, b""), 0);
    assert_eq!(client.flags(read), (false, false));
    for (format, string) in [("", TEXT), ("%.0s", TEXT), ("%s", "")] {
        for (file, result) in [(read, -1), (written, 0)] {
            let printed = client.steps(Opcode::PRINTF_TO_STREAM, |port| {
                port.put([file, 0, 0]);
                rest_with(port, format, &[8], string)
            });
            assert_eq!(printed, result, "{format:?}");
            assert_eq!(client.flags(file), (false, result != 0), "{format:?}");
            client.word(Opcode::CLEARERR, file);
        }
    }
    assert_eq!(client.fread(read, 9), b"ld");
    assert_eq!(client.fread(written, 9), b"ld");
}

struct Gone;

impl Output for Gone {
    fn stdout(&self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        assert_eq!(bytes, b"5");
        Ok(())
    }
}

fn a_console_that_is_gone<T: Layout>() {
    let mut plan = Plan::new(8);
    plan.output = Some(Arc::new(Gone));
    let rig = plan.start::<T>();
    let client = rig.client();
    for (opcode, result) in [
        (Opcode::PRINTF_TO_STDOUT, -1),
        (Opcode::PRINTF_TO_STDERR, 1),
        (Opcode::PRINTF_TO_STDOUT_PACKED, -1),
    ] {
        let printed = client.steps(opcode, |port| rest(port, "%ld", &[5]));
        assert_eq!(printed, result, "{opcode}");
    }
    assert!(client.flags(STDOUT).1 && !client.flags(STDERR).1);
    let reports = rig.reports();
    assert!(
        reports.iter().any(|said| said.contains("printf_to_stdout")),
        "{reports:?}"
    );
    assert_eq!(rig.text(Stream::Stdout), "");
}

/// The texts of lanes come together in memory that is limited, as they do one by one.
fn texts_without_room<T: Layout>() {
    let mut plan = Plan::new(8);
    plan.options.max_in_flight = 6000;
    let rig = plan.start::<T>();
    rig.team(|_, client| {
        let printf =
            |format: &str| client.steps(Opcode::PRINTF_TO_STDOUT, |port| rest(port, format, &[5]));
        assert_eq!(printf("%1000ld"), -1);
        assert_eq!(printf("%500ld"), 500);
    });
    assert_eq!(rig.text(Stream::Stdout).len(), 2000);
    let client = rig.client();
    assert_eq!(client.flags(STDOUT), (false, true));
    let alone = client.steps(Opcode::PRINTF_TO_STDOUT, |port| rest(port, "%4000ld", &[5]));
    assert_eq!(alone, 4000);
    rig.is_whole();
}
