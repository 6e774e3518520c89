//! `printf` over a service, for devices that ask for what is not to be had.

#[path = "../../rpc-server/tests/common/mod.rs"]
mod common;
#[path = "printf/device.rs"]
mod device;
#[path = "printf/value.rs"]
mod value;

use common::{LIMIT, Layout, eventually, on_both_layouts, on_llvm_layouts};
use device::{Asking, Host};
use rpc_port::procedure::Increment;
use rpc_server::ExchangeState;
use value::{STRINGS, Value};

on_both_layouts!(
    messages_that_are_no_strings,
    blocks_of_other_sizes,
    messages_that_are_too_long,
    texts_that_are_too_long,
    many_strings_in_little_room,
    lengths_that_mean_nothing,
    devices_that_stop,
);
on_llvm_layouts!(
    messages_that_are_no_strings,
    blocks_of_other_sizes,
    messages_that_are_too_long,
    texts_that_are_too_long,
    many_strings_in_little_room,
    lengths_that_mean_nothing,
    devices_that_stop,
);

/// Two askings, in one warp with two that are right.
fn between<T: Layout>(host: &Host<T>, wrong: [&Asking; 2]) -> [i64; 2] {
    let before = host.stdout();
    let right = Asking::new("%s %d\n", &[Value::Text("right"), Value::Int(1)]);
    let askings = [wrong[0].clone(), right.clone(), wrong[1].clone(), right];
    let answers = host.calls(&askings);
    assert_eq!((answers[1].result, answers[3].result), (8, 8));
    assert_eq!(answers[1].strings, [STRINGS]);
    let results = [answers[0].result, answers[2].result];
    if results == [-1; 2] {
        assert_eq!(host.stdout(), before + "right 1\nright 1\n");
    }
    results
}

fn messages_that_are_no_strings<T: Layout>() {
    let host = Host::<T>::new();
    for length in [0, 1, 55, 56, 57, 64, 1000] {
        let mut format = Asking::new("", &[]);
        format.format = vec![b'x'; length];
        let mut string = Asking::new("%s%s", &[Value::Text(""), Value::Text("")]);
        string.strings.insert(STRINGS, vec![b'x'; length]);
        assert_eq!(between(&host, [&format, &string]), [-1; 2], "{length}");
        let answer = host.call(&format).unwrap();
        assert_eq!((answer.asked, answer.result), (0, -1));
        // The first one to come is wrong: the other is not asked for.
        string.strings.insert(2 * STRINGS, vec![b'x'; length]);
        assert_eq!(host.call(&string).unwrap().strings, [2 * STRINGS]);
        // What ends early ends early.
        format.format.extend(b"\0%s%d and more");
        let answer = host.call(&format).unwrap();
        assert_eq!((answer.asked, answer.result), (0, length as i64));
    }
}

fn blocks_of_other_sizes<T: Layout>() {
    let host = Host::<T>::new();
    let asking = Asking::new(
        "%d%s%d\n",
        &[Value::Int(1), Value::Text(","), Value::Int(2)],
    );
    for length in 0..20 {
        let mut short = asking.clone();
        short.block.truncate(length);
        assert_eq!(between(&host, [&short, &short]), [-1; 2], "{length}");
    }
    for length in [20, 21, 56, 57, 500] {
        let mut long = asking.clone();
        long.block.resize(length, 0xFF);
        assert_eq!(between(&host, [&long, &asking]), [4; 2], "{length}");
    }
    // Thousands of arguments of which none comes.
    let mut many = Asking::new(&"%*.*f".repeat(10_000), &[]);
    many.block.clear();
    assert_eq!(host.call(&many).unwrap().asked, 160_000);
    assert_eq!(host.call(&many).unwrap().result, -1);
}

/// Each message of the exchange, one at a time; the exchange goes on to its end.
fn messages_that_are_too_long<T: Layout>() {
    let host = Host::<T>::planned(|plan| plan.options.max_message = 1000);
    let asking = Asking::new(
        "%d %s %d\n",
        &[Value::Int(1), Value::Text("t"), Value::Int(2)],
    );
    for (length, results) in [(1000, [6; 2]), (1001, [-1; 2]), (5000, [-1; 2])] {
        let [mut format, mut block] = [asking.clone(), asking.clone()];
        format.format.resize(length, 0);
        block.block.resize(length, 0);
        assert_eq!(between(&host, [&format, &block]), results, "{length}");
        let mut string = asking.clone();
        string.strings.insert(
            STRINGS,
            [b"s\0".repeat(length / 2), vec![0; length % 2]].concat(),
        );
        assert_eq!(between(&host, [&string, &string]), results, "{length}");
        let answer = host.call(&format).unwrap();
        assert_eq!(answer.asked, if length > 1000 { 0 } else { 20 });
    }
}

fn texts_that_are_too_long<T: Layout>() {
    let host = Host::<T>::planned(|plan| plan.options.max_message = 1000);
    let width = |width: u32| {
        let width = Value::Int(width as i32);
        [
            Asking::new("%*d", &[width, Value::Int(1)]),
            Asking::new("%*s", &[width, Value::Text("text")]),
            Asking::new("%.*d", &[width, Value::Int(1)]),
            Asking::new("%.*f", &[width, Value::Double(1.0)]),
        ]
    };
    for number in [1001, 100_000, 0x7FFF_FFFE, 0x7FFF_FFFF, 0x8000_0000] {
        let [digits, string, precision, float] = width(number);
        assert_eq!(between(&host, [&digits, &string]), [-1; 2], "{number}");
        assert_eq!(host.call(&string).unwrap().strings, [], "it cannot fit");
        if number != 0x8000_0000 {
            assert_eq!(between(&host, [&precision, &float]), [-1; 2], "{number}");
        }
    }
    let [digits, string, precision, _] = width(1000);
    assert_eq!(between(&host, [&digits, &string]), [1000; 2]);
    assert_eq!(between(&host, [&precision, &string]), [1000; 2]);
    // Strings that fit each, and not all.
    let mut all = Asking::new("%s%s%s", &[Value::Text(""); 3]);
    for (number, length) in [(1, 400), (2, 400), (3, 201)] {
        let string = [vec![b's'; length], vec![0]].concat();
        all.strings.insert(number * STRINGS, string);
    }
    assert_eq!(between(&host, [&all, &all]), [-1; 2]);
    all.strings
        .insert(3 * STRINGS, [vec![b's'; 200], vec![0]].concat());
    assert_eq!(between(&host, [&all, &all]), [1000; 2]);
}

/// All that is kept is bounded together, and is given back.
fn many_strings_in_little_room<T: Layout>() {
    let host = Host::<T>::planned(|plan| plan.options.max_in_flight = 20_000);
    for _ in 0..5 {
        // Formats and arguments fit; what is to be kept of 1000 missing strings does not.
        let many = Asking::new(&"%s".repeat(1000), &vec![Value::Text("s"); 1000]);
        let answer = host.call(&many).unwrap();
        assert_eq!((answer.result, answer.strings.len()), (-1, 0));
        // Nor does a width.
        let wide = Asking::new("%*d", &[Value::Int(20_000), Value::Int(1)]);
        assert_eq!(host.call(&wide).unwrap().result, -1);
        // One lane has what another one then lacks.
        let wide = Asking::new("%*d", &[Value::Int(11_000), Value::Int(1)]);
        let answers = host.calls(&[wide.clone(), wide]);
        assert_eq!((answers[0].result, answers[1].result), (11_000, -1));
        let few = Asking::new(&"%s".repeat(100), &[Value::Text("s"); 100]);
        let answer = host.call(&few).unwrap();
        assert_eq!((answer.result, answer.strings.len()), (100, 100));
    }
}

/// What a device may announce without sending it.
fn lengths_that_mean_nothing<T: Layout>() {
    for length in [1 << 32, 1 << 40, 1 << 63, u64::MAX - 8, u64::MAX] {
        let host = Host::<T>::new();
        let asking = Asking::new("%s\n", &[Value::Text("text")]);
        let client = host.rig.client(0);
        let mut port = client.open(asking.opcode).unwrap().dynamic();
        for _ in 0..3 {
            port.send(64, |_, packet| packet.set(&length)).unwrap();
            port.recv(0, |_, _| ()).unwrap();
        }
        // It goes on for ever; all others go on besides.
        for n in 0..10 {
            assert_eq!(host.rig.client(1).call::<Increment>(&n), Ok(n + 1));
        }
        drop(port);
        assert!(host.rig.service.drain(LIMIT).cancelled <= 1);
        assert_eq!(host.stdout(), "");
    }
}

fn devices_that_stop<T: Layout>() {
    let asking = Asking::new("%s\n", &[Value::Text("text")]);
    for steps in 1..=5 {
        let host = Host::<T>::new();
        let client = host.rig.client(0);
        let mut port = client.open(asking.opcode).unwrap().dynamic();
        if steps >= 2 {
            port.send_n(|_| &asking.format).unwrap();
            port.recv(8, |_, packet| assert_eq!(packet.get::<u64>(), 8))
                .unwrap();
        } else {
            // The first packets of more.
            port.send(64, |_, packet| packet.set(&1000_u64)).unwrap();
        }
        if steps >= 3 {
            port.send_n(|_| &asking.block).unwrap();
        }
        if steps >= 4 {
            port.recv(16, |_, packet| {
                assert_eq!(packet.get::<[u64; 2]>(), [0, STRINGS]);
            })
            .unwrap();
        }
        if steps >= 5 {
            // The first packets of a string.
            port.send(64, |_, packet| packet.set(&1000_u64)).unwrap();
        }
        eventually("the wait for the rest", || {
            let open = host.rig.service.open_exchanges();
            open.iter().any(|e| e.state == ExchangeState::MidExchange)
        });
        for n in 0..10 {
            assert_eq!(host.rig.client(1).call::<Increment>(&n), Ok(n + 1));
        }
        let drained = host.rig.service.drain(LIMIT);
        assert_eq!((drained.cancelled, drained.late), (1, false), "{steps}");
        assert_eq!(host.stdout(), "");
        drop(port);
    }
}
