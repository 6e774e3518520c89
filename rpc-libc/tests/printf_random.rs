//! Formatted output against the host's C library: whatever comes.
#![cfg(target_env = "gnu")]

#[path = "printf/host.rs"]
mod host;
#[path = "printf/value.rs"]
mod value;

use host::{Case, DOUBLES, FORMS, compare};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rpc_libc::printf::{Draft, Error, block_size};
use value::Value;

fn any_case() -> impl Strategy<Value = Case> {
    let number = prop_oneof![
        3 => Just(String::new()),
        4 => (0..40_u32).prop_map(|n| n.to_string()),
        1 => (0..1200_u32).prop_map(|n| n.to_string()),
        2 => Just("*".to_owned()),
    ];
    let precision = prop_oneof![
        2 => Just(String::new()),
        3 => number.clone().prop_map(|number| format!(".{number}")),
    ];
    let stars = [(-60..60_i32).boxed(), (-3..60_i32).boxed()];
    let double = prop_oneof![
        2 => any::<u64>().prop_map(f64::from_bits),
        2 => any::<i32>().prop_map(|n| f64::from(n) / 1024.0),
        1 => (any::<i32>(), -30..30_i32).prop_map(|(n, e)| f64::from(n) * 10_f64.powi(e)),
        1 => select(&DOUBLES[..]),
    ];
    let integer = prop_oneof![
        any::<u64>(),
        (0..70_u32).prop_map(|n| 1_u64.wrapping_shl(n))
    ];
    let what = prop_oneof![
        (
            select(&["hh", "h", ""][..]),
            select(&["d", "i", "o", "u", "x", "X", "b", "B"][..]),
            integer.clone()
        )
            .prop_map(|(length, letter, value)| (
                format!("{length}{letter}"),
                Value::Int(value as i32)
            )),
        (
            select(&["l", "ll", "j", "z", "t"][..]),
            select(&["d", "i", "o", "u", "x", "X", "b", "B"][..]),
            integer
        )
            .prop_map(|(length, letter, value)| (format!("{length}{letter}"), Value::Word(value))),
        (
            select(&["", "l"][..]),
            select(&["f", "F", "e", "E", "g", "G", "a", "A"][..]),
            double
        )
            .prop_map(|(length, letter, value)| (
                format!("{length}{letter}"),
                Value::Double(value)
            )),
        select(&["", "a", "a longer string", "\u{20AC}\u{20AC}"][..])
            .prop_map(|text| ("s".to_owned(), Value::Text(text))),
        any::<u8>().prop_map(|byte| ("c".to_owned(), Value::Int(byte.into()))),
        (1..u64::MAX).prop_map(|address| ("p".to_owned(), Value::Word(address))),
    ];
    let text = "[a-z ,]{0,5}";
    (
        text,
        vec(select(&["-", "+", " ", "#", "0"][..]), 0..4),
        number,
        precision,
        stars,
        what,
    )
        .prop_map(|(text, flags, width, precision, [a, b], (what, value))| {
            // Digits that would be flags.
            let width = width.trim_start_matches('0');
            let mut stars = Vec::new();
            stars.extend((width == "*").then_some(a));
            stars.extend((precision == ".*").then_some(b));
            Case {
                format: format!("{text}%{}{width}{precision}{what}", flags.concat()),
                stars,
                value: Some(value),
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_format(cases in vec(any_case(), 1..5)) {
        prop_assert_eq!(compare(&cases), Ok(()));
    }

    /// Whatever it is, it makes no trouble, and asks for no more than it takes.
    #[test]
    fn any_bytes(text in vec(select(&b"%%%%*.0123456789-+ #hljztLwfdiouxXbBcspeEgGaAn$'y\xff"[..]), 0..40)) {
        for form in FORMS {
            let block = vec![1; block_size(&text, form)];
            let draft = |block| Draft::new(&text, block, form, (10_000, ()));
            let short = matches!(draft(&block), Err(Error::Short { .. }));
            prop_assert!(!short);
            if let Some(shorter) = block.len().checked_sub(1) {
                prop_assert!(draft(&block[..shorter]).is_err());
            }
        }
    }
}
