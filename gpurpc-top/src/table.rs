//! Counters as text.

use rpc_stats::OpcodeStats;

use crate::units::{grouped, printable};

const HEADINGS: [&str; 6] = [
    "opcode",
    "calls",
    "lanes",
    "bytes in",
    "bytes out",
    "errors",
];

/// The counters as a table, busiest opcode first, with a line of totals if there are several.
pub fn table(calls: &[OpcodeStats]) -> String {
    let mut sorted: Vec<_> = calls.iter().collect();
    sorted.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.name.cmp(&b.name)));
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(sorted.into_iter().map(row));
    if calls.len() != 1 {
        rows.push(row(&total(calls)));
    }
    let mut widths = [0; HEADINGS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    rows.iter().map(|row| line(row, widths)).collect()
}

/// The name to the left, the numbers to the right.
fn line(row: &[String], widths: [usize; HEADINGS.len()]) -> String {
    let mut cells = row.iter().zip(widths);
    let name = cells.next().map(|(cell, width)| format!("{cell:<width$}"));
    let numbers = cells.map(|(cell, width)| format!("{cell:>width$}"));
    let cells: Vec<_> = name.into_iter().chain(numbers).collect();
    cells.join("  ") + "\n"
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
    [
        // Whatever a name holds, it stays in its line.
        printable(&calls.name),
        grouped(calls.calls),
        grouped(calls.lanes),
        grouped(calls.bytes_in),
        grouped(calls.bytes_out),
        grouped(calls.errors),
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
            assert_eq!(line.len(), lines[0].len(), "{text}");
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
