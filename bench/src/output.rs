//! Results as they come: a line of a table, and a line of JSON.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::cli::Kind;
use crate::goals::{Judged, judge};
use crate::row::{Row, Statistics};

/// Results cannot be written.
#[derive(Debug, Error)]
#[error("the results {} cannot be written: {error}", path.display())]
pub(crate) struct OutputError {
    path: PathBuf,
    error: io::Error,
}

/// Where results go.
pub(crate) struct Output {
    json: Option<(PathBuf, File)>,
    /// What all results have in common.
    common: Map<String, Value>,
    rows: Vec<Value>,
    /// Whether these are the machine and the sizes that goals are for.
    has_goals: bool,
}

impl Output {
    /// Opens the file, so that a wrong path is found before anything is measured.
    pub(crate) fn create(json: Option<&Path>) -> Result<Self, OutputError> {
        let open = |path: &Path| match File::create(path) {
            Ok(file) => Ok((path.to_owned(), file)),
            Err(error) => Err(OutputError {
                path: path.to_owned(),
                error,
            }),
        };
        Ok(Self {
            json: json.map(open).transpose()?,
            common: Map::new(),
            rows: Vec::new(),
            has_goals: false,
        })
    }

    /// Prints the head of the table.
    pub(crate) fn begin(&mut self, common: Map<String, Value>) {
        let text = |key: &str| common[key].as_str().unwrap_or("unknown").to_owned();
        print(&format!(
            "{} (driver {}), {} cores of {}, gpurpc {} {}\n",
            text("device"),
            text("driver"),
            common["host_cores"],
            text("host_cpu"),
            text("version"),
            text("commit"),
        ));
        let has_goals = common["device_kind"] == Kind::Nvidia.name() && common["quick"] == false;
        print(&format!(
            "{:<15} {:<8} {:>8} {:>9} {:>6} {:>11} {:>11} {:>11} {:<4} {:>10} {:<8} {:<13}\n",
            "workload",
            "layout",
            "size",
            "bytes",
            "ports",
            "median",
            "min",
            "max",
            "",
            "ratio",
            "to",
            if has_goals { "goal" } else { "" },
        ));
        self.has_goals = has_goals;
        self.common = common;
    }

    /// Prints and writes a result at once: the next one may never come.
    pub(crate) fn row(&mut self, row: &Row) -> Result<(), OutputError> {
        let judged = judge(row).filter(|_| self.has_goals);
        print(&line(row, judged.as_ref()));
        let mut value = row.json(&self.common);
        if let Some(Judged { text, met }) = judged {
            (value["goal"], value["goal_met"]) = (text.into(), met.into());
        }
        if let Some((path, file)) = &mut self.json {
            writeln!(file, "{value}").map_err(|error| OutputError {
                path: path.clone(),
                error,
            })?;
        }
        self.rows.push(value);
        Ok(())
    }

    /// The results so far.
    pub(crate) fn rows(&self) -> &[Value] {
        &self.rows
    }
}

/// A reader of standard output that has gone away wants no more.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A line of the table.
fn line(row: &Row, judged: Option<&Judged>) -> String {
    let Statistics { median, min, max } = Statistics::of(&row.values);
    let (factor, unit) = row.unit.shown();
    let size = format!("{}x{}", row.warps, row.lanes);
    let number = |value: f64| {
        let value = value * factor;
        if value < 10.0 {
            format!("{value:.3}")
        } else {
            format!("{value:.1}")
        }
    };
    let ports = match row.served.ports {
        0 => String::new(),
        ports => ports.to_string(),
    };
    let ratio = row.ratio.map_or_else(String::new, |ratio| {
        let digits = if ratio.value < 0.1 { 6 } else { 3 };
        format!("{:>10.digits$} {:<8}", ratio.value, ratio.to)
    });
    let goal = judged.map_or_else(String::new, |judged| {
        let mark = if judged.met { "" } else { " !" };
        format!("{}{mark}", judged.text)
    });
    let rate = row
        .rate
        .map_or_else(String::new, |rate| format!("  {:.3} M/s", rate * 1e-6));
    let text = format!(
        "{:<15} {:<8} {size:>8} {:>9} {ports:>6} {:>11} {:>11} {:>11} {unit:<4} {ratio:<19} {goal:<13}{rate}",
        row.workload,
        row.served.layout,
        row.bytes,
        number(median),
        number(min),
        number(max),
    );
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Unit;
    use crate::row::tests::row;

    #[test]
    fn lines_are_aligned() {
        let judged = Judged {
            text: "<= 1.4".to_owned(),
            met: false,
        };
        let line = line(&row(&[2.5, 1.0, 44.0], Unit::Microseconds), Some(&judged));
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "increment",
                "line",
                "132x32",
                "8",
                "8",
                "2.500",
                "1.000",
                "44.0",
                "us",
                "1.500",
                "floor",
                "<=",
                "1.4",
                "!",
                "0.000",
                "M/s"
            ]
        );
        let line = super::line(&row(&[2.5e6], Unit::BytesPerSecond), None);
        assert!(line.contains("2.500") && line.contains("MB/s"), "{line}");
    }

    #[test]
    fn a_wrong_path_is_named() {
        let said = Output::create(Some(Path::new("/no/such/folder/file"))).err();
        let said = said.map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("/no/such/folder/file"), "{said}");
    }
}
