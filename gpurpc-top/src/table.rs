//! Counters as text.

use rpc_stats::OpcodeStats;

use crate::units::{grouped, printable, time};

const HEADINGS: [&str; 9] = [
    "opcode",
    "calls",
    "lanes",
    "bytes in",
    "bytes out",
    "errors",
    "p50",
    "p99",
    "max",
];
/// The columns that are there whether or not times are known.
const COUNTERS: usize = 6;

/// The counters of what was called as a table, busiest opcode first, with a line of totals if there
/// are several; latencies too, if any is known.
pub fn table(calls: &[OpcodeStats]) -> String {
    let mut sorted: Vec<_> = calls.iter().filter(|opcode| opcode.calls > 0).collect();
    let several = sorted.len() != 1;
    let timed = sorted.iter().any(|opcode| opcode.latency.count() > 0);
    sorted.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(sorted.into_iter().map(row));
    if several {
        rows.push(row(&total(calls)));
    }
    let mut widths = [0; HEADINGS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let columns = if timed { HEADINGS.len() } else { COUNTERS };
    let widths = &widths[..columns];
    rows.iter().map(|row| line(row, widths)).collect()
}

/// The name to the left, the numbers to the right.
fn line(row: &[String], widths: &[usize]) -> String {
    let mut cells = row.iter().zip(widths.iter().copied());
    let name = cells.next().map(|(cell, width)| format!("{cell:<width$}"));
    let numbers = cells.map(|(cell, width)| format!("{cell:>width$}"));
    let cells: Vec<_> = name.into_iter().chain(numbers).collect();
    let line = cells.join("  ");
    line.trim_end().to_owned() + "\n"
}

fn total(calls: &[OpcodeStats]) -> OpcodeStats {
    let sum = |of: fn(&OpcodeStats) -> u64| {
        calls
            .iter()
            .fold(0_u64, |sum, calls| sum.saturating_add(of(calls)))
    };
    OpcodeStats {
        name: "total".to_owned(),
        calls: sum(|c| c.calls),
        lanes: sum(|c| c.lanes),
        bytes_in: sum(|c| c.bytes_in),
        bytes_out: sum(|c| c.bytes_out),
        errors: sum(|c| c.errors),
        ..OpcodeStats::default()
    }
}

fn row(calls: &OpcodeStats) -> [String; HEADINGS.len()] {
    let latency = |share| {
        calls
            .latency
            .percentile_ns(share)
            .map_or_else(String::new, time)
    };
    [
        // Whatever a name holds, it stays in its line.
        printable(&calls.name),
        grouped(calls.calls),
        grouped(calls.lanes),
        grouped(calls.bytes_in),
        grouped(calls.bytes_out),
        grouped(calls.errors),
        latency(0.5),
        latency(0.99),
        latency(1.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_sorted_and_summed() {
        let calls = |name: &str, calls| OpcodeStats {
            name: name.to_owned(),
            calls,
            lanes: calls * 32,
            bytes_in: u64::MAX,
            bytes_out: 0,
            errors: 1,
            ..OpcodeStats::default()
        };
        let text = table(&[calls("few", 2), calls("many\n", 3000), calls("also few", 2)]);
        let lines: Vec<_> = text.lines().collect();
        let starts = ["opcode", "many\\n", "also few", "few", "total"];
        assert_eq!(lines.len(), starts.len());
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{text}");
            assert!(
                line.ends_with("errors") || line.len() == lines[0].len(),
                "{text}"
            );
        }
        assert!(lines[4].contains("3,004"), "{text}");
        assert!(
            lines[4].contains("18,446,744,073,709,551,615"),
            "no overflow"
        );
    }

    #[test]
    fn no_calls_make_a_table_too() {
        let text = table(&[]);
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
