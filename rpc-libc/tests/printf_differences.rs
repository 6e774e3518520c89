//! Formatted output where the host's C library has something else, or nothing.
#![cfg(target_env = "gnu")]

#[path = "printf/host.rs"]
mod host;
#[path = "printf/value.rs"]
mod value;

use host::{Case, DOUBLES, FORMS, host, ours};
use rpc_libc::printf::{Error, Form, block_size, format};
use value::{Block, Value};

/// The host's library is asked for something else, or it cannot be asked.
#[test]
fn lengths_that_the_host_does_not_have() {
    for (own, equal) in [
        ("w8", "hh"),
        ("w16", "h"),
        ("w32", ""),
        ("w64", "ll"),
        ("wf8", "hh"),
        ("wf16", "h"),
        ("wf32", ""),
        ("wf64", "ll"),
    ] {
        for letter in "diouxXbB".chars() {
            for value in [0, 1, 0x80, 0x7FFF_FFFF, u64::MAX] {
                let value = if equal == "ll" {
                    Value::Word(value)
                } else {
                    Value::Int(value as i32)
                };
                let own = Case::new(format!("%#7{own}{letter}"), value);
                let equal = Case::new(format!("%#7{equal}{letter}"), value);
                let expected = host(&equal).unwrap();
                assert_eq!(ours(&[own], Form::Natural).unwrap(), expected, "{equal:?}");
            }
        }
    }
    for letter in "fFeEgGaA".chars() {
        for value in DOUBLES {
            let own = Case::new(format!("%.9L{letter}"), Value::Double(value));
            let equal = Case::new(format!("%.9{letter}"), Value::Double(value));
            assert_eq!(ours(&[own], Form::Packed).ok(), host(&equal), "{equal:?}");
        }
    }
}

/// What is printed otherwise than by the host's library, and why.
const DIFFERENCES: &[(&str, &[Value], &str, &str)] = &[
    (
        "%p",
        &[Value::Word(0)],
        "(nullptr)",
        "as LLVM's libc has it",
    ),
    (
        "<%12p>",
        &[Value::Word(0)],
        "<   (nullptr)>",
        "as LLVM's libc has it",
    ),
    (
        "%-12.3p|",
        &[Value::Word(0)],
        "(nullptr)   |",
        "as LLVM's libc has it",
    ),
    ("50%", &[], "50%", "no letter: off, the host fails"),
    ("%-05", &[], "%-05", "no letter: off, the host fails"),
    ("%.3l", &[], "%.3l", "no letter: off, the host fails"),
    ("%1$d", &[], "%1$d", "positions are off"),
    (
        "%m",
        &[],
        "%m",
        "the host's errno means nothing on the device",
    ),
    ("%'d", &[], "%'d", "no flag of C"),
    ("%Id", &[], "%Id", "no flag of C"),
    ("%5%", &[], "%", "no field: C leaves it open"),
    ("%+3y", &[], "%+3y", "as it stands"),
    ("%C%S", &[], "%C%S", "not in C"),
    ("%qd", &[], "%qd", "not in C"),
    ("%w9d", &[], "%w9d", "no integer has 9 bits"),
    (
        "%**d",
        &[Value::Int(1)],
        "%**d",
        "the second star is an unknown conversion",
    ),
    ("%**.**f", &[Value::Int(1)], "%**.**f", "as above"),
    (
        "%ls",
        &[Value::Word(0x1000)],
        "%ls",
        "wide strings do not come over the wire",
    ),
    (
        "%n%d",
        &[Value::Word(0x1000), Value::Int(7)],
        "%n7",
        "off; what follows is right",
    ),
];

#[test]
fn listed_differences() {
    for (own, values, expected, why) in DIFFERENCES {
        for form in FORMS {
            let block = Block::of(form, values).bytes;
            assert_eq!(block_size(own.as_bytes(), form), block.len(), "{own}");
            let printed = format(own.as_bytes(), &block, form, |_| "").unwrap();
            assert_eq!(
                String::from_utf8(printed).unwrap(),
                *expected,
                "{own}: {why}"
            );
        }
    }
}

#[test]
fn errors() {
    let print = |text: &str, values: &[Value]| {
        let block = Block::of(Form::Natural, values).bytes;
        format(text.as_bytes(), &block, Form::Natural, |_| "string")
    };
    for (text, needed, there) in [("%d", 4, 0), ("%s", 8, 0), ("%*d", 4, 0), ("%.*f", 4, 0)] {
        assert_eq!(
            print(text, &[]),
            Err(Error::Short { needed, there }),
            "{text}"
        );
    }
    let short = Error::Short {
        needed: 16,
        there: 4,
    };
    assert_eq!(print("%d%s", &[Value::Int(1)]), Err(short));
    for code in [0xD800_u32, 0x11_0000, u32::MAX] {
        let printed = print("%lc", &[Value::Int(code as i32)]);
        assert_eq!(printed, Err(Error::Character { code }));
    }
    let max = Value::Int(i32::MAX);
    for (text, values) in [
        ("%2147483648d", &[Value::Int(1)][..]),
        ("%.2147483648d", &[Value::Int(1)]),
        ("%.2147483648s", &[Value::Text("")]),
        ("%99999999999999999999d", &[Value::Int(1)]),
        ("x%*d", &[max, Value::Int(1)]),
        ("%.*d", &[max, Value::Int(-1)]),
        ("%.*f", &[max, Value::Double(1.0)]),
        ("%.*e", &[max, Value::Double(1.0)]),
        ("%#.*g", &[max, Value::Double(1.0)]),
        ("%.*a", &[max, Value::Double(1.0)]),
        ("%*d", &[Value::Int(i32::MIN), Value::Int(1)]),
        (
            "%*s%*s",
            &[max, Value::Text(""), Value::Int(1), Value::Text("")],
        ),
    ] {
        assert_eq!(print(text, values), Err(Error::TooLong), "{text}");
    }
    // Numbers of the largest size, which print little.
    for (text, values, expected) in [
        ("%.*g", &[max, Value::Double(0.5)][..], "0.5"),
        ("%.*s", &[max, Value::Text("")], "string"),
        ("%.2147483647s", &[Value::Text("")], "string"),
        ("%.*d", &[Value::Int(i32::MIN), Value::Int(1)], "1"),
    ] {
        assert_eq!(print(text, values).unwrap(), expected.as_bytes(), "{text}");
    }
    assert_eq!(
        short.to_string(),
        "the format asks for 16 bytes of arguments and more, and there are 4"
    );
}

/// The last string is asked for first, and null ones never.
#[test]
fn strings_are_asked_for_from_the_last() {
    let values = [
        Value::Text("one"),
        Value::Word(0),
        Value::Text("three"),
        Value::Text("four"),
    ];
    let block = Block::of(Form::Packed, &values);
    let mut asked = Vec::new();
    let printed = format(
        b"%s, %s, %.2s, %6s.",
        &block.bytes,
        Form::Packed,
        |address| {
            asked.push(block.string(address));
            block.string(address)
        },
    );
    assert_eq!(printed.unwrap(), b"one, (null), th,   four.");
    assert_eq!(asked, ["four", "three", "one"]);
}
