//! Formatted output, here and by the host's C library.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::slice;
use std::sync::Once;

use rpc_libc::printf::{Error, Form, block_size, format};

use crate::value::{Block, Value};

/// All forms.
pub const FORMS: [Form; 2] = [Form::Natural, Form::Packed];

/// A conversion, its stars' arguments and its own.
#[derive(Clone, Debug)]
pub struct Case {
    pub format: String,
    pub stars: Vec<i32>,
    pub value: Option<Value>,
}

impl Case {
    pub fn new(format: impl Into<String>, value: Value) -> Self {
        Self {
            format: format.into(),
            stars: Vec::new(),
            value: Some(value),
        }
    }

    pub fn values(&self) -> impl Iterator<Item = Value> {
        let stars = self.stars.iter().map(|&star| Value::Int(star));
        stars.chain(self.value)
    }
}

/// What the host's library prints; `None` when it fails.
pub fn host(case: &Case) -> Option<Vec<u8>> {
    static LOCALE: Once = Once::new();
    // SAFETY: the locale is set once, before any call below, and the name is a C string.
    LOCALE.call_once(|| unsafe {
        libc::setlocale(libc::LC_ALL, c"C.UTF-8".as_ptr());
    });
    let format = CString::new(case.format.as_str()).unwrap();
    let mut buffer = [0; 8192];
    let length = call(&mut buffer, &format, &case.stars, case.value);
    let length = usize::try_from(length).ok()?;
    assert!(length < buffer.len(), "{case:?} makes {length} bytes");
    Some(buffer[..length].to_vec())
}

fn call(buffer: &mut [u8], format: &CStr, stars: &[i32], value: Option<Value>) -> c_int {
    let (to, size, format) = (
        buffer.as_mut_ptr().cast::<c_char>(),
        buffer.len(),
        format.as_ptr(),
    );
    let text;
    macro_rules! call {
        ($($argument:expr),*) => {
            // SAFETY: the buffer has `size` bytes and the format is a C string. Its stars are as
            // many as there are, all `int`; its conversion takes what is given: an `int` or what
            // is promoted to it, 8 bytes, a `double` or a C string that lives until the end of
            // this function. Nothing is written through an argument: no format has an `n`.
            unsafe {
                match *stars {
                    [] => libc::snprintf(to, size, format $(, $argument)*),
                    [a] => libc::snprintf(to, size, format, a $(, $argument)*),
                    [a, b] => libc::snprintf(to, size, format, a, b $(, $argument)*),
                    _ => panic!("more than two stars"),
                }
            }
        };
    }
    match value {
        None => call!(),
        Some(Value::Int(value)) => call!(value),
        Some(Value::Word(value)) => call!(value),
        Some(Value::Double(value)) => call!(value),
        Some(Value::Text(value)) => {
            text = CString::new(value).unwrap();
            call!(text.as_ptr())
        }
    }
}

/// What is printed for cases one after the other.
pub fn ours(cases: &[Case], form: Form) -> Result<Vec<u8>, Error> {
    let mut block = Block::new(form);
    for value in cases.iter().flat_map(Case::values) {
        block.push(value);
    }
    let text: String = cases.iter().map(|case| case.format.as_str()).collect();
    assert_eq!(
        block_size(text.as_bytes(), form),
        block.bytes.len(),
        "{text}"
    );
    format(text.as_bytes(), &block.bytes, form, |address| {
        block.string(address)
    })
}

fn show(bytes: Option<&[u8]>) -> String {
    bytes.map_or("an error".into(), |bytes| {
        format!("{:?}", String::from_utf8_lossy(bytes))
    })
}

/// Whether the host's library is new enough: glibc has had `%b` and the locale since 2.35.
fn is_known(case: &Case) -> bool {
    let probe = if case.format.ends_with(['b', 'B']) {
        Case::new("%b", Value::Int(5))
    } else if case.format.ends_with("lc") {
        Case::new("%lc", Value::Int(0xE9))
    } else {
        return true;
    };
    let expected: &[u8] = if probe.format == "%b" {
        b"101"
    } else {
        b"\xC3\xA9"
    };
    host(&probe).as_deref() == Some(expected)
}

/// `%#g` of what is rounded up to a power of ten: glibc prints `1.e+06`, and C wants all digits.
fn is_forgotten(case: &Case, ours: &[u8], host: &[u8]) -> bool {
    let digits = |text: &[u8]| {
        let mut text = text.to_ascii_lowercase();
        text.retain(|byte| !b" 0".contains(byte));
        text
    };
    let form = case.format.to_ascii_lowercase();
    let found = host.to_ascii_lowercase();
    form.contains('#')
        && form.ends_with('g')
        && found.windows(3).any(|part| part == b"1.e")
        && digits(ours) == digits(host)
}

/// Fails with what differs, if something does.
pub fn compare(cases: &[Case]) -> Result<(), String> {
    let mut texts = Vec::new();
    for case in cases {
        let mut text = host(case);
        let own = ours(slice::from_ref(case), Form::Packed).ok();
        match (&own, &text) {
            (Some(ours), Some(host)) if is_forgotten(case, ours, host) => text = own,
            _ if !is_known(case) => text = own,
            _ => (),
        }
        texts.push(text);
    }
    let host = texts.into_iter().collect::<Option<Vec<_>>>();
    let host = host.map(|texts| texts.concat());
    for form in FORMS {
        let ours = ours(cases, form).ok();
        if ours != host {
            let (ours, host) = (show(ours.as_deref()), show(host.as_deref()));
            return Err(format!("{cases:?} {form:?}: {ours}, the host has {host}"));
        }
    }
    Ok(())
}

/// Compares many cases; shows the first few that differ.
pub fn compare_all(cases: impl Iterator<Item = Case>, least: usize) {
    let mut count = 0;
    let mut wrong = Vec::new();
    for case in cases {
        count += 1;
        wrong.extend(compare(&[case]).err());
    }
    assert!(count >= least, "{count} cases");
    assert!(
        wrong.is_empty(),
        "{} of {count} differ: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(20)]
    );
}

/// Numbers of all kinds.
pub const DOUBLES: [f64; 30] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.5,
    2.5,
    0.125,
    9.5,
    99.5,
    999_999.5,
    0.000_099_999_95,
    0.0001,
    123_456.0,
    1_234_567.0,
    1e15,
    1e21,
    1e22,
    1e23,
    0.1,
    0.3,
    1.0 / 3.0,
    std::f64::consts::PI * 1e100,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    2.225_073_858_507_201e-308,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    -f64::NAN,
];
