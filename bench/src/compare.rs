//! This run's ratios beside those of an earlier one.
//!
//! Ratios, since absolute times move with the machine's mood; and still this is for people to look
//! at, not for a test to fail by.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

/// How much worse a ratio may be before it is marked.
const TOLERANCE: f64 = 0.10;

/// What makes two results ones of the same thing.
const KEYS: [&str; 6] = [
    "device_kind",
    "workload",
    "layout",
    "warps",
    "lanes",
    "bytes",
];

/// Why earlier results cannot be compared with.
#[derive(Debug, Error)]
pub(crate) enum CompareError {
    #[error("the earlier results {} cannot be read: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("line {line} of {} is no result of this program: {reason}", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        reason: String,
    },
}

/// Reads results as `--json` writes them.
pub(crate) fn read(path: &Path) -> Result<Vec<Value>, CompareError> {
    let text = fs::read_to_string(path).map_err(|error| CompareError::Read {
        path: path.to_owned(),
        error,
    })?;
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |reason: String| CompareError::Line {
            path: path.to_owned(),
            line: index + 1,
            reason,
        };
        let row: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if row["workload"].as_str().is_none() {
            return Err(wrong("it names no workload".to_owned()));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The lines to print, and how many results are worse than before.
pub(crate) fn compare(old: &[Value], new: &[Value]) -> (Vec<String>, usize) {
    let (mut lines, mut worse) = (Vec::new(), 0);
    for row in new {
        let Some(before) = old
            .iter()
            .find(|old| KEYS.iter().all(|key| old[key] == row[key]))
        else {
            lines.push(format!("{}  new", title(row)));
            continue;
        };
        let (Some(was), Some(is)) = (before["ratio"].as_f64(), row["ratio"].as_f64()) else {
            continue;
        };
        // What is 0 has no change that could be told as a part of it.
        if was <= 0.0 || before["ratio_to"] == row["workload"] {
            continue;
        }
        let change = is / was - 1.0;
        let loss = if row["better"] == "higher" {
            was / is.max(f64::MIN_POSITIVE) - 1.0
        } else {
            change
        };
        let mark = if loss > TOLERANCE {
            worse += 1;
            "  WORSE"
        } else {
            ""
        };
        let percent = change * 100.0;
        lines.push(format!(
            "{}  {was:>9.3} -> {is:>9.3}  {percent:>+7.1} %{mark}",
            title(row)
        ));
    }
    let gone = |old: &&Value| {
        !new.iter()
            .any(|row| KEYS.iter().all(|key| old[key] == row[key]))
    };
    for row in old.iter().filter(gone) {
        lines.push(format!("{}  not measured now", title(row)));
    }
    (lines, worse)
}

/// Which result it is.
fn title(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let number = |key: &str| row[key].as_u64().unwrap_or_default();
    let size = format!("{}x{}", number("warps"), number("lanes"));
    format!(
        "{:<15} {:<8} {size:>8} {:>9}",
        text("workload"),
        text("layout"),
        number("bytes")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(workload: &str, ratio: f64, better: &str) -> Value {
        json!({
            "device_kind": "cpu", "workload": workload, "layout": "line", "warps": 1, "lanes": 1,
            "bytes": 8, "ratio": ratio, "ratio_to": "floor", "better": better,
        })
    }

    #[test]
    fn what_is_worse_by_more_than_a_tenth_is_marked() {
        let old = [
            row("a", 2.0, "lower"),
            row("b", 2.0, "lower"),
            row("c", 2.0, "higher"),
            row("d", 2.0, "higher"),
            row("floor", 1.0, "lower"),
            row("gone", 1.0, "lower"),
        ];
        let new = [
            row("a", 2.19, "lower"),
            row("b", 2.21, "lower"),
            row("c", 1.7, "higher"),
            row("d", 9.0, "higher"),
            row("floor", 1.0, "lower"),
            row("fresh", 1.0, "lower"),
        ];
        let (lines, worse) = compare(&old, &new);
        assert_eq!(worse, 2);
        assert_eq!(lines.len(), 6, "{lines:#?}");
        assert!(lines[0].ends_with("+9.5 %"), "{}", lines[0]);
        assert!(lines[1].ends_with("+10.5 %  WORSE"), "{}", lines[1]);
        assert!(lines[2].ends_with("-15.0 %  WORSE"), "{}", lines[2]);
        assert!(lines[3].ends_with("+350.0 %"), "{}", lines[3]);
        assert!(lines[4].ends_with("new") && lines[5].starts_with("gone"));
        assert_eq!(compare(&new, &new).1, 0);
    }

    #[test]
    fn only_results_are_read() {
        let path = std::env::temp_dir().join(format!("gpurpc-compare-{}", std::process::id()));
        fs::write(&path, format!("{}\n{{\"x\": 1}}\n", row("a", 1.0, "lower"))).unwrap();
        let said = read(&path).unwrap_err().to_string();
        assert!(
            said.starts_with("line 2 of ") && said.ends_with("no workload"),
            "{said}"
        );
        fs::write(&path, format!("{}\n", row("a", 1.0, "lower"))).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);
        fs::remove_file(&path).unwrap();
        let said = read(&path).unwrap_err().to_string();
        assert!(said.contains("cannot be read"), "{said}");
    }
}
