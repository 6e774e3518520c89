//! `printf` over a service: what the device gets, and what is printed.

#[path = "../../rpc-server/tests/common/mod.rs"]
mod common;
#[path = "printf/device.rs"]
mod device;
#[path = "printf/value.rs"]
mod value;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::{io, slice};

use common::{Broken, Layout, eventually, on_both_layouts, on_llvm_layouts};
use device::{Asking, Host, Told};
use rpc_libc::printf::Form;
use rpc_port::procedure::Increment;
use rpc_server::{Output, Stream};
use rpc_types::Opcode;
use value::{STRINGS, Value};

on_both_layouts!(
    one_lane,
    lanes_that_differ,
    many_lanes,
    streams,
    results_that_a_c_library_counts_on,
    long_texts,
    output_that_fails,
    output_that_waits,
);
on_llvm_layouts!(
    one_lane,
    lanes_that_differ,
    many_lanes,
    streams,
    results_that_a_c_library_counts_on,
    long_texts,
    output_that_fails,
    output_that_waits,
);

const fn told(asked: u64, strings: Vec<u64>, result: i64) -> Told {
    Told {
        asked,
        strings,
        result,
    }
}

fn one_lane<T: Layout>() {
    use Form::{Natural, Packed};
    let host = Host::<T>::new();
    let values = [
        Value::Int(-7),
        Value::Double(0.5),
        Value::Text("text"),
        Value::Int(i32::from(b'!')),
    ];
    for (form, opcode, asked) in [
        (Natural, Opcode::PRINTF_TO_STDOUT, 28),
        (Packed, Opcode::PRINTF_TO_STDOUT_PACKED, 24),
        (Natural, Opcode::PRINTF_TO_STDERR, 28),
        (Packed, Opcode::PRINTF_TO_STDERR_PACKED, 24),
    ] {
        let asking = Asking::formed(form, opcode, "%d %.2f %6s%c\n", &values);
        let answer = host.call(&asking);
        assert_eq!(answer, Ok(told(asked, vec![STRINGS], 16)), "{opcode}");
    }
    for stream in [Stream::Stdout, Stream::Stderr] {
        assert_eq!(host.output.text(stream), "-7 0.50   text!\n".repeat(2));
    }
    assert_eq!(host.call(&Asking::new("", &[])), Ok(told(0, vec![], 0)));
}

/// Formats, blocks and numbers of strings of their own.
fn lanes_that_differ<T: Layout>() {
    let host = Host::<T>::new();
    let askings = [
        Asking::new("no argument\n", &[]),
        Asking::new(
            "%s, %s and %s\n",
            &[Value::Text("one"), Value::Text("two"), Value::Text("three")],
        ),
        Asking::new("%d\n", &[Value::Int(1)]),
        Asking::new("%s|%.1s\n", &[Value::Word(0), Value::Text("cut off")]),
    ];
    let answers = host.calls(&askings);
    let [one, two, three] = [STRINGS, 2 * STRINGS, 3 * STRINGS];
    assert_eq!(
        answers,
        [
            told(0, vec![], 12),
            told(24, vec![three, two, one], 19),
            told(4, vec![], 2),
            told(16, vec![one], 9),
        ]
    );
    assert_eq!(
        host.stdout(),
        "no argument\none, two and three\n1\n(null)|c\n"
    );
}

fn many_lanes<T: Layout>() {
    for lanes in [32, 64] {
        as_many_as::<T>(lanes);
    }
}

fn as_many_as<T: Layout>(lanes: u32) {
    let host = Host::<T>::planned(|plan| plan.lanes = lanes);
    let texts = [
        "",
        "a",
        "bc",
        "def",
        "a longer one, of several packets: 0123456789 0123456789",
    ];
    let askings: Vec<_> = (0..lanes as usize)
        .map(|lane| {
            let count = lane % 4;
            let mut values = vec![Value::Int(lane as i32)];
            values.extend((0..count).map(|n| Value::Text(texts[(lane + n) % texts.len()])));
            let format = format!("%02d:{}\n", " %s".repeat(count));
            Asking::formed(
                Form::Packed,
                Opcode::PRINTF_TO_STDOUT_PACKED,
                &format,
                &values,
            )
        })
        .collect();
    let answers = host.calls(&askings);
    let mut all = String::new();
    for (lane, answer) in answers.into_iter().enumerate() {
        let mut line = format!("{lane:02}:");
        for n in 0..lane % 4 {
            line = line + " " + texts[(lane + n) % texts.len()];
        }
        line.push('\n');
        let strings = (1..=lane as u64 % 4).rev().map(|n| n * STRINGS).collect();
        let asked = 4 + 8 * (lane as u64 % 4);
        assert_eq!(answer, told(asked, strings, line.len() as i64));
        all += &line;
    }
    assert_eq!(host.stdout(), all);
}

fn streams<T: Layout>() {
    let host = Host::<T>::new();
    let askings = [
        Asking::to(4, "%s\n", &[Value::Text("first")]),
        Asking::to(99, "%s\n", &[Value::Text("nowhere")]),
        Asking::to(8, "second %s\n", &[Value::Text("fails")]),
        Asking::to(4, "%d\n", &[Value::Int(4)]),
    ];
    for _ in 0..2 {
        let answers = host.calls(&askings);
        let results: Vec<_> = answers.iter().map(|told| told.result).collect();
        assert_eq!(results, [6, -1, -1, 2]);
    }
    assert_eq!(host.file(4), "first\n4\nfirst\n4\n");
    assert_eq!(host.file(8), "secondsecond");
    for handle in [0, 1, 3, u64::MAX, 1 << 63] {
        for format in ["", "text"] {
            let answer = host.call(&Asking::to(handle, format, &[]));
            assert_eq!(answer.unwrap().result, -1, "{handle:#x}");
        }
    }
    let mut packed = Asking::formed(
        Form::Packed,
        Opcode::PRINTF_TO_STREAM_PACKED,
        "%d%s",
        &[Value::Int(1), Value::Text("st")],
    );
    packed.handle = Some(12);
    assert_eq!(host.call(&packed), Ok(told(12, vec![STRINGS], 3)));
    assert_eq!(host.file(12), "1st");
    assert_eq!(host.stdout(), "");
}

/// What LLVM's own test of this service looks at.
fn results_that_a_c_library_counts_on<T: Layout>() {
    let host = Host::<T>::new();
    let (text, one, two) = ("A simple string\n", Value::Int(1), Value::Int(2));
    for (format, values, result) in [
        (text, &[][..], 16),
        ("%s", &[Value::Text(text)], 16),
        ("%8ld\n", &[Value::Word(63)], 9),
        ("%d%c%.1f\n", &[one, Value::Int(99), Value::Double(1.0)], 6),
        ("%032b\n", &[Value::Int(5)], 33),
        ("%20ld\n", &[Value::Word(5)], 21),
        ("%p", &[Value::Word(0)], 9),
        ("%s", &[Value::Word(0)], 6),
        ("%**d", &[one, two], 4),
        ("%**d%6d", &[one, two], 10),
        ("%**.**f", &[one, two], 7),
    ] {
        let answer = host.call(&Asking::to(4, format, values));
        assert_eq!(answer.unwrap().result, result, "{format}");
    }
}

/// More than a poller does at once.
fn long_texts<T: Layout>() {
    let host = Host::<T>::new();
    let long = "0123456789abcdef".repeat(0x900);
    let mut expected = String::new();
    let mut call = |askings: &[Asking], texts: &[String]| {
        let results: Vec<_> = host.calls(askings).iter().map(|told| told.result).collect();
        let lengths: Vec<_> = texts.iter().map(|text| text.len() as i64).collect();
        assert_eq!(results, lengths);
        expected += &texts.concat();
        assert!(host.stdout() == expected, "the texts are not the same");
    };
    // The format, the arguments, a width, a string.
    call(&[Asking::new(&long, &[])], slice::from_ref(&long));
    let many = "%d".repeat(20_000);
    call(
        &[Asking::new(&many, &vec![Value::Int(7); 20_000])],
        &["7".repeat(20_000)],
    );
    call(
        &[
            Asking::new("%*d", &[Value::Int(100_000), Value::Int(1)]),
            Asking::new(
                "%s%*s.",
                &[Value::Text("a"), Value::Int(-50_000), Value::Text("b")],
            ),
        ],
        &[" ".repeat(99_999) + "1", format!("a{:50000}.", "b")],
    );
    let mut asking = Asking::new("<%s,%s>", &[Value::Text("a"), Value::Text("b")]);
    let string = [long.as_bytes(), b"\0"].concat();
    asking.strings.insert(2 * STRINGS, string);
    let short = Asking::new("%s", &[Value::Text("short")]);
    call(&[asking, short], &[format!("<a,{long}>"), "short".into()]);
}

fn output_that_fails<T: Layout>() {
    let host = Host::<T>::planned(|plan| plan.output = Some(Arc::new(Broken)));
    let askings = [
        Asking::new("text", &[]),
        Asking::new("%s", &[Value::Text("")]),
        Asking::new("%s", &[Value::Text("text")]),
    ];
    for _ in 0..2 {
        let results: Vec<_> = host
            .calls(&askings)
            .iter()
            .map(|told| told.result)
            .collect();
        assert_eq!(results, [-1, 0, -1]);
    }
}

/// Whoever reads takes his time.
#[derive(Default)]
struct Slow {
    text: Mutex<Vec<u8>>,
    writing: AtomicBool,
    goes_on: AtomicBool,
}

impl Output for Slow {
    fn stdout(&self, bytes: &[u8]) -> io::Result<()> {
        self.writing.store(true, SeqCst);
        eventually("the rest", || self.goes_on.load(SeqCst));
        self.text.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn stderr(&self, bytes: &[u8]) -> io::Result<()> {
        self.stdout(bytes)
    }

    fn may_wait(&self, _: Stream, _: usize) -> bool {
        true
    }
}

fn output_that_waits<T: Layout>() {
    let slow = Arc::new(Slow::default());
    let host = Host::<T>::planned(|plan| {
        plan.options.pollers = 1;
        plan.output = Some(slow.clone());
    });
    thread::scope(|scope| {
        let call = scope.spawn(|| host.call(&Asking::new("%d", &[Value::Int(5)])));
        eventually("the write", || slow.writing.load(SeqCst));
        for n in 0..10 {
            assert_eq!(host.rig.client(1).call::<Increment>(&n), Ok(n + 1));
        }
        slow.goes_on.store(true, SeqCst);
        assert_eq!(call.join().unwrap(), Ok(told(4, vec![], 1)));
    });
    assert_eq!(*slow.text.lock().unwrap(), b"5");
}
