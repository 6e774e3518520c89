//! Numbers as people read them.

pub use rpc_stats::printable;

/// A number with a comma after each three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three digits that count and the unit behind them, after a space if `space`.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // What would be shown as the step is shown as one of the next unit.
    while value >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let decimals = match value {
        _ if unit == 0 || value >= 99.95 => 0,
        _ if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}{}", units[unit])
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn float(value: u64) -> f64 {
    value as f64
}

/// A count in at most 6 columns, exact below 100,000: `12345`, `1.20M`.
pub fn count(number: u64) -> String {
    if number < 100_000 {
        number.to_string()
    } else {
        scaled(float(number), 1000.0, &["", "k", "M", "G", "T", "P", "E"])
    }
}

/// A rate in at most 6 columns.
pub fn rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 9.95 {
        format!("{per_second:.1}")
    } else {
        scaled(per_second, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
    }
}

/// Bytes in at most 6 columns, by 1024.
pub fn bytes(number: u64) -> String {
    scaled(
        float(number),
        1024.0,
        &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
    )
}

/// A time in at most 6 columns.
pub fn time(ns: u64) -> String {
    const MINUTE: u64 = 60_000_000_000;
    match ns {
        _ if ns < MINUTE => scaled(float(ns), 1000.0, &["ns", "µs", "ms", "s"]),
        _ if ns < 60 * MINUTE => format!("{}m{:02}s", ns / MINUTE, ns % MINUTE / 1_000_000_000),
        _ if ns < 6000 * MINUTE => format!("{}h{:02}m", ns / (60 * MINUTE), ns / MINUTE % 60),
        _ => format!("{}d", ns / (24 * 60 * MINUTE)),
    }
}

/// A clock: `0:07`, `12:34`, `1:02:03`.
pub fn clock(seconds: u64) -> String {
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes}:{seconds:02}"),
        (hours, minutes) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// `1 port`, `2 ports`.
pub fn plural(number: u64, one: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {one}{s}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn units_fit_their_columns() {
        for exponent in 0..64 {
            for n in [
                1_u64 << exponent,
                (1 << exponent) + ((1_u64 << exponent) - 1),
            ] {
                assert!(count(n).len() <= 6, "{}", count(n));
                assert!(bytes(n).len() <= 7, "{}", bytes(n));
                assert!(time(n).chars().count() <= 7, "{}", time(n));
                assert!(rate(float(n)).len() <= 6, "{}", rate(float(n)));
            }
        }
    }

    #[test]
    fn units() {
        assert_eq!(count(99_999), "99999");
        assert_eq!(count(1_234_567), "1.23M");
        assert_eq!(count(999_999), "1.00M");
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(2.345), "2.3");
        assert_eq!(rate(12_345.0), "12.3k");
        assert_eq!(bytes(1023), "1023B");
        assert_eq!(bytes(1536), "1.50KiB");
        assert_eq!(time(999), "999ns");
        assert_eq!(time(1_500), "1.50µs");
        assert_eq!(time(59_000_000_000), "59.0s");
        assert_eq!(time(61_000_000_000), "1m01s");
        assert_eq!(clock(3723), "1:02:03");
        assert_eq!(plural(1, "port"), "1 port");
        assert_eq!(plural(1024, "port"), "1,024 ports");
    }
}
