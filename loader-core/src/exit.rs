//! The exit codes.

/// A panic on the device.
pub const PANIC: u8 = 101;
/// `--timeout` ran out.
pub const TIMEOUT: u8 = 124;
/// The loader itself could not do its work.
pub const LOADER: u8 = 125;
/// The program faulted on the device. Also what a shell makes of one that aborted: SIGABRT.
pub const FAULT: u8 = 134;

/// The code of a process that signal `number` ended.
pub const fn signal(number: i32) -> u8 {
    128_u8.wrapping_add(number as u8)
}

/// The code of a program that ended with `value`: its low 8 bits, as of any process.
pub const fn low_bits(value: i32) -> u8 {
    (value & 0xFF) as u8
}

/// What to warn about when `value` is not zero and its exit code is: a failure would look like
/// success.
pub fn hidden_failure(what: &str, value: i32) -> Option<String> {
    (value != 0 && low_bits(value) == 0).then(|| {
        format!("{what} is {value}, of which an exit code holds the low 8 bits only: it is 0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        assert_eq!(signal(2), 130);
        assert_eq!(signal(9), 137);
        assert_eq!(low_bits(42), 42);
        assert_eq!(low_bits(-1), 255);
        assert_eq!(low_bits(0x1_02A), 0x2A);
        assert_eq!(hidden_failure("it", 0), None);
        assert_eq!(hidden_failure("it", 1), None);
        assert!(hidden_failure("it", 0x100).unwrap().contains("256"));
    }
}
