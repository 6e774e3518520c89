//! What no program of C does: each call is answered with its opcode's own failure, and all else
//! goes on.

use std::fs;
use std::time::Duration;

use rpc_server::{Drained, ExchangeState, Stream};
use rpc_types::Opcode;

use crate::rig::{Calls, EOF, Layout, Plan, STDERR, STDOUT, Steps, c, eventually, on_all_layouts};

on_all_layouts!(
    modes_without_an_end,
    paths_without_an_end,
    sizes,
    too_many_files,
    messages_that_are_too_long,
    messages_without_room,
    messages_that_never_end,
    more_than_all_may_take,
);

fn modes_without_an_end<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    for mode in [[b'w'; 64], [b'b'; 64], [0xFF; 64], [0; 64]] {
        assert_eq!(client.open_raw(&c(&path), &mode), 0);
    }
    let mut mode = [b'b'; 64];
    mode[0] = b'w';
    assert_eq!(client.open_raw(&c(&path), &mode), 0);
    mode[63] = 0;
    assert_eq!(client.open_raw(&c(&path), &mode), 0);
    assert!(!fs::exists(&path).unwrap());
    mode[10] = 0;
    assert_ne!(client.open_raw(&c(&path), &mode), 0);
    rig.is_whole();
}

fn paths_without_an_end<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let mut mode = [0; 64];
    mode[0] = b'w';
    let path = rig.path("file");
    assert_eq!(client.open_raw(path.as_bytes(), &mode), 0);
    assert_eq!(client.open_raw(b"", &mode), 0);
    assert_eq!(client.open_raw(&[b'/'; 4096], &mode), 0);
    assert_eq!(client.open_raw(&c([b'/'; 4096]), &mode), 0);
    assert!(!fs::exists(&path).unwrap());
    // It ends with its first NUL.
    let inside = [path.as_bytes(), b"\0/more\0"].concat();
    assert_ne!(client.open_raw(&inside, &mode), 0);
    assert!(fs::exists(&path).unwrap());
    let folders = format!("{}{path}", "/".repeat(4095 - path.len()));
    assert_ne!(client.open_raw(&c(&folders), &mode), 0, "as long as can be");
    rig.is_whole();
}

const SIZES: [u64; 9] = [0, 1, 55, 56, 57, 64, 1 << 32, 1 << 63, u64::MAX];

fn sizes<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    let text = [b'x'; 100];
    fs::write(&path, text).unwrap();
    let file = client.fopen(&path, "r");
    for size in SIZES {
        assert_eq!(client.fseek(file, 0, 0), 0);
        assert_eq!(client.fread(file, size), &text[..size.min(100) as usize]);
        assert_eq!(client.fseek(file, 0, 0), 0);
        let line = client.fgets(file, size);
        let count = if size > i64::MAX as u64 {
            0
        } else {
            size.min(101)
        };
        let expected = count.checked_sub(1).map(|count| &text[..count as usize]);
        assert_eq!(line.as_deref(), expected, "{size}");
        for (stream, whence) in [(file, 0), (file, 1), (file, 2), (STDOUT, 0)] {
            client.fseek(stream, size as i64, whence);
        }
        assert_eq!(client.fseek(file, 0, size), if size > 1 { EOF } else { 0 });
        client.ungetc(size as i32, file);
        client.word(Opcode::FFLUSH, size << 2);
    }
    // A read brings no more than a message may.
    let mut plan = Plan::new(2);
    plan.options.max_message = 64;
    let rig = plan.start::<T>();
    let client = rig.client();
    let path = rig.path("x");
    fs::write(&path, [1; 150]).unwrap();
    let file = client.fopen(&path, "r");
    for count in [64, 64, 22, 0] {
        assert_eq!(client.fread(file, 1000).len(), count);
    }
    assert_eq!(client.fseek(file, 0, 0), 0);
    for count in [63, 63, 24] {
        assert_eq!(client.fgets(file, 1000).unwrap().len(), count);
    }
}

fn too_many_files<T: Layout>() {
    let rig = Plan::new(2).start::<T>();
    let client = rig.client();
    let mut files = Vec::new();
    // The system may have fewer of them.
    loop {
        match client.fopen("/dev/null", "w") {
            0 => break,
            file => files.push(file),
        }
        assert!(files.len() <= 1000);
    }
    assert!(files.len() > 100);
    assert_eq!(client.fopen(&rig.path("none"), "w"), 0);
    assert_eq!(client.fclose(files[50]), 0);
    if files.len() == 1000 {
        // Elsewhere another test may be faster.
        assert!(!fs::exists(rig.path("none")).unwrap());
        assert_ne!(client.fopen("/dev/null", "w"), 0);
    }
    assert_eq!(client.fclose(files[50]), EOF);
    rig.is_whole();
}

/// They are received and dropped, and their lanes told so.
fn messages_that_are_too_long<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.options.max_message = 1000;
    let rig = plan.start::<T>();
    let path = rig.path("file");
    let file = rig.client().fopen(&path, "w");
    rig.team(|lane, client| {
        let long = lane % 2 == 1;
        let text = vec![
            b'a' + lane as u8;
            if long {
                1001 + lane as usize * 999
            } else {
                1000
            }
        ];
        let told = if long { 0 } else { 1000 };
        assert_eq!(client.fwrite(file, &text), told);
        assert_eq!(client.say(Opcode::WRITE_TO_STDERR, &text), told);
        let newline = client.say(Opcode::WRITE_TO_STDOUT_NEWLINE, &text);
        assert_eq!(newline, if long { 0 } else { 1001 });
        assert_eq!(client.say(Opcode::REMOVE, &text), EOF);
        assert_eq!(client.say(Opcode::SYSTEM, &text), EOF);
        assert_eq!(client.open_raw(&text, &[b'r'; 64]), 0);
    });
    let two = "a".repeat(1000) + &"c".repeat(1000);
    assert_eq!(rig.text(Stream::Stderr), two);
    assert_eq!(rig.text(Stream::Stdout).replace('\n', ""), two);
    let client = rig.client();
    for stream in [file, STDOUT, STDERR] {
        assert_eq!(client.flags(stream), (false, true), "{stream:#x}");
        client.word(Opcode::CLEARERR, stream);
    }
    // One lane alone, and one with a stream of its own.
    let other = client.fopen(&rig.path("other"), "w");
    assert_eq!(client.fwrite(file, &[b'x'; 1001]), 0);
    assert_eq!(client.say(Opcode::WRITE_TO_STDERR, &[b'x'; 1001]), 0);
    assert_eq!(client.fwrite(other, b""), 0);
    for (stream, error) in [
        (file, true),
        (other, false),
        (STDOUT, false),
        (STDERR, true),
    ] {
        assert_eq!(client.flags(stream), (false, error), "{stream:#x}");
    }
    assert_eq!(rig.client().fclose(file), 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), two);
    rig.is_whole();
    // Each opcode once.
    eventually("the reports", || rig.reports().len() == 6);
    assert!(rig.reports()[0].contains("too long"));
    let counters = rig.service.counters();
    assert_eq!(counters.of(Opcode::WRITE_TO_STREAM).unwrap().errors, 2);
}

/// They are dropped as well, and the stream is told so.
fn messages_without_room<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.options.max_in_flight = 1000;
    let rig = plan.start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    let file = client.fopen(&path, "w");
    assert_eq!(client.fwrite(file, &[b'x'; 1001]), 0);
    assert_eq!(client.say(Opcode::WRITE_TO_STDOUT, &[b'x'; 1001]), 0);
    for stream in [file, STDOUT] {
        assert_eq!(client.flags(stream), (false, true), "{stream:#x}");
    }
    // The stream goes on.
    assert_eq!(client.fwrite(file, b"text"), 4);
    assert_eq!(client.fclose(file), 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
    rig.is_whole();
}

/// Who announces what it does not send has a port less, and nobody else notices.
fn messages_that_never_end<T: Layout>() {
    let rig = Plan::new(24).start::<T>();
    let opcodes = [
        Opcode::WRITE_TO_STDOUT,
        Opcode::WRITE_TO_STDOUT_NEWLINE,
        Opcode::OPEN_FILE,
        Opcode::REMOVE,
        Opcode::RENAME,
        Opcode::SYSTEM,
        Opcode::HOST_CALL,
    ];
    let mut open = 0;
    for size in [5000, 1 << 32, (1 << 63) - 1] {
        for opcode in opcodes {
            let client = rig.client();
            let mut port = client.0.open(opcode).unwrap().dynamic();
            port.put([size, 0, 0]);
            std::mem::forget(port);
            open += 1;
        }
        rig.is_whole();
    }
    eventually("their wait", || {
        let exchanges = rig.service.open_exchanges();
        let waits = |e: &&_| {
            matches!(
                e,
                rpc_server::OpenExchange {
                    state: ExchangeState::MidExchange,
                    ..
                }
            )
        };
        exchanges.iter().filter(waits).count() == open
    });
    let drained = rig.service.drain(Duration::from_mins(1));
    let expected = Drained {
        cancelled: open as u64,
        late: false,
    };
    assert_eq!(drained, expected);
}

/// What is read takes its share of what may be in flight.
fn more_than_all_may_take<T: Layout>() {
    let mut plan = Plan::new(2);
    plan.options.max_in_flight = 100_000;
    let rig = plan.start::<T>();
    let client = rig.client();
    let path = rig.path("file");
    let file = fs::File::create(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    let file = client.fopen(&path, "r");
    for _ in 0..3 {
        let count = client.fread(file, 1 << 40).len();
        assert!((80_000..=100_000).contains(&count), "{count}");
    }
    assert_eq!(client.flags(file), (false, true), "it is not at its end");
    rig.is_whole();
}
