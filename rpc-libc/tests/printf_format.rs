//! Formatted output against the host's C library: everything in turn.
#![cfg(target_env = "gnu")]

#[path = "printf/host.rs"]
mod host;
#[path = "printf/value.rs"]
mod value;

use host::{Case, DOUBLES, compare, compare_all};
use rpc_libc::printf::{Form, format};
use value::Value;

/// All sets of the flags.
fn flags() -> impl Iterator<Item = String> + Clone {
    (0..32).map(|set| {
        let flags = "-+ #0".chars().enumerate();
        flags
            .filter(|(place, _)| set >> place & 1 != 0)
            .map(|(_, flag)| flag)
            .collect()
    })
}

/// Everything between the `%` and the letter but the length.
fn decorations(
    widths: &'static [&'static str],
    precisions: &'static [&'static str],
) -> impl Iterator<Item = String> + Clone {
    flags().flat_map(move |flags| {
        widths.iter().flat_map(move |width| {
            let flags = flags.clone();
            precisions
                .iter()
                .map(move |precision| format!("%{flags}{width}{precision}"))
        })
    })
}

#[test]
fn integers() {
    const VALUES: [u64; 9] = [
        0,
        1,
        8,
        0x7F,
        0x80,
        0x8000_0000,
        0x1234_5678_9ABC_DEF0,
        1 << 63,
        u64::MAX,
    ];
    let decorations = decorations(&["", "1", "12"], &["", ".", ".1", ".14"]);
    let cases = decorations.flat_map(|decoration| {
        ["hh", "h", "", "l", "ll"]
            .into_iter()
            .flat_map(move |length| {
                let decoration = decoration.clone();
                "dioxXubB".chars().flat_map(move |letter| {
                    let format = format!("{decoration}{length}{letter}");
                    VALUES.map(|value| {
                        let value = if length.starts_with('l') {
                            Value::Word(value)
                        } else {
                            Value::Int(value as i32)
                        };
                        Case::new(format.clone(), value)
                    })
                })
            })
    });
    compare_all(cases, 100_000);
}

#[test]
fn other_lengths() {
    let cases = ["j", "z", "t", "L"].into_iter().flat_map(|length| {
        "diouxXbB".chars().flat_map(move |letter| {
            [0, 77, u64::MAX]
                .map(|value| Case::new(format!("<%+9{length}{letter}>"), Value::Word(value)))
        })
    });
    compare_all(cases, 90);
}

#[test]
fn doubles() {
    let decorations = decorations(&["", "13"], &["", ".", ".1", ".2", ".7", ".17"]);
    let cases = decorations.flat_map(|decoration| {
        "fFeEgGaA".chars().flat_map(move |letter| {
            let format = format!("{decoration}{letter}");
            DOUBLES.map(|value| Case::new(format.clone(), Value::Double(value)))
        })
    });
    compare_all(cases, 50_000);
}

/// All digits of a `double`, and what would come behind them.
#[test]
fn large_precisions() {
    let decorations = decorations(
        &["1500"],
        &[".52", ".308", ".766", ".767", ".1074", ".1200"],
    );
    let flags = ["%1", "%-1", "%01", "%#1", "%+01"];
    let decorations =
        decorations.filter(move |all| flags.iter().any(|flags| all.starts_with(flags)));
    let cases = decorations.flat_map(|decoration| {
        "fegaEG".chars().flat_map(move |letter| {
            let format = format!("{decoration}{letter}");
            let values = [0.0, 0.1, 1e23, 5e-324, f64::MAX, f64::MIN_POSITIVE, 1.0];
            values.map(|value| Case::new(format.clone(), Value::Double(value)))
        })
    });
    compare_all(cases, 1000);
}

#[test]
fn bytes_characters_strings_and_pointers() {
    let decorations = decorations(&["", "1", "9", "30"], &["", ".", ".2", ".7", ".40"]);
    let cases = decorations.flat_map(|decoration| {
        let of = move |letter: &str| format!("{decoration}{letter}");
        let mut cases = Vec::new();
        for text in [
            "",
            "x",
            "some text, not short",
            "h\u{e9}t\u{e9}rog\u{e8}ne \u{1F600}",
        ] {
            cases.push(Case::new(of("s"), Value::Text(text)));
        }
        cases.push(Case::new(of("s"), Value::Word(0)));
        for byte in ["A", "\0", "\n"].map(|text| i32::from(text.as_bytes()[0])) {
            cases.push(Case::new(of("c"), Value::Int(byte)));
            cases.push(Case::new(of("c"), Value::Int(byte - 256)));
        }
        for code in [0x41, 0xE9, 0x20AC, 0x1F600] {
            cases.push(Case::new(of("lc"), Value::Int(code)));
        }
        for address in [1, 0x7FFF_1234_5678, u64::MAX] {
            cases.push(Case::new(of("p"), Value::Word(address)));
        }
        cases
    });
    compare_all(cases, 5000);
}

#[test]
fn stars() {
    let numbers = [-2000, -12, -1, 0, 1, 12, 2000];
    let mut cases = Vec::new();
    for (letter, value) in [
        ("d", Value::Int(-42)),
        ("#llx", Value::Word(0x00AB_CDEF)),
        ("f", Value::Double(1234.5678)),
        ("s", Value::Text("text")),
        ("c", Value::Int(0x40)),
    ] {
        let (flags, letter) = match letter.strip_prefix('#') {
            Some(letter) => ("#", letter),
            None => ("", letter),
        };
        for zero in ["", "0", "-"] {
            for a in numbers {
                for (stars, formats) in [
                    (vec![a], "*"),
                    (vec![a], ".*"),
                    (vec![a], "5.*"),
                    (vec![a], "*.3"),
                ] {
                    let format = format!("%{flags}{zero}{formats}{letter}");
                    let value = Some(value);
                    cases.push(Case {
                        format,
                        stars,
                        value,
                    });
                }
                cases.extend(numbers.map(|b| Case {
                    format: format!("%{flags}{zero}*.*{letter}"),
                    stars: vec![a, b],
                    value: Some(value),
                }));
            }
        }
    }
    compare_all(cases.into_iter(), 500);
}

/// Text and percent signs.
#[test]
fn text_without_arguments() {
    for format in [
        "",
        "text",
        "%%",
        "100%% of it\n",
        "%%%%d",
        "\u{e9}\u{1F600}\u{7f}",
    ] {
        let (format, stars, value) = (format.to_owned(), Vec::new(), None);
        compare(&[Case {
            format,
            stars,
            value,
        }])
        .unwrap();
    }
    // A format is bytes, which need not be UTF-8.
    let printed = format(b"\xff%%\xfe", &[], Form::Packed, |_| "");
    assert_eq!(printed.unwrap(), b"\xff%\xfe");
}
