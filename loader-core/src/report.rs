//! What was called, written for other programs: one JSON object a line.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A line of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line: where the time up to the first launch went.
    Start(Vec<Stage>),
    /// What was counted for one opcode.
    Opcode(Calls),
    /// The last line.
    End(End),
}

/// A part of the start. Parts may overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// What was done.
    pub name: String,
    /// Microseconds that it took.
    pub us: u64,
}

impl Stage {
    /// The stage `name`, which began at `began` and ends now.
    pub fn since(name: &str, began: Instant) -> Self {
        Self {
            name: name.to_owned(),
            us: began.elapsed().as_micros().try_into().unwrap_or(u64::MAX),
        }
    }
}

/// Counters of one opcode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// Its name, or its number where it has none.
    pub name: String,
    /// Port openings.
    pub calls: u64,
    /// Lanes that took part, over all calls.
    pub lanes: u64,
    /// Payload bytes that came from the device.
    pub bytes_in: u64,
    /// Payload bytes that went to it.
    pub bytes_out: u64,
    /// Calls that were answered with an error or broken off.
    pub errors: u64,
}

/// How the run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The exit code.
    pub code: u8,
    /// Exchanges that were unfinished at the end and given up.
    pub cancelled: u64,
}

/// Why there is no report.
#[derive(Debug, Error)]
#[error("the report {} cannot be written: {error}", path.display())]
pub struct ReportError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub error: io::Error,
}

/// The files that the report goes to.
#[derive(Debug, Default)]
pub struct Report {
    files: Vec<(PathBuf, File)>,
}

/// A descriptor that this process was given for its report is none of the programs' that it starts
/// (`system`): who reads the other end waits for the last one to close it.
fn keep_to_this_process(path: &Path) {
    let number = path.strip_prefix("/dev/fd").ok().and_then(Path::to_str);
    if let Some(number) = number
        .and_then(|number| number.parse().ok())
        .filter(|&n: &i32| n > 2)
    {
        // SAFETY: it was open just now, under this number; were it closed since, the call would fail.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        // Where it cannot be, the end is only seen later.
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

impl Report {
    /// Opens the files, so that a wrong path is found before the run.
    ///
    /// # Errors
    /// For the first one that cannot be made.
    pub fn create(paths: &[PathBuf]) -> Result<Self, ReportError> {
        let open = |path: &PathBuf| match File::create(path) {
            Ok(file) => {
                keep_to_this_process(path);
                Ok((path.clone(), file))
            }
            Err(error) => Err(ReportError {
                path: path.clone(),
                error,
            }),
        };
        let files = paths.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { files })
    }

    /// Writes and closes all files.
    ///
    /// # Errors
    /// For the last one that could not be written; the others are.
    pub fn write(self, stages: Vec<Stage>, calls: Vec<Calls>, end: End) -> Result<(), ReportError> {
        let mut text = String::new();
        let calls = calls.into_iter().map(Line::Opcode);
        for line in [Line::Start(stages)]
            .into_iter()
            .chain(calls)
            .chain([Line::End(end)])
        {
            let line = serde_json::to_string(&line).map_err(|error| ReportError {
                path: PathBuf::new(),
                error: error.into(),
            })?;
            text.push_str(&line);
            text.push('\n');
        }
        let mut result = Ok(());
        for (path, mut file) in self.files {
            if let Err(error) = file.write_all(text.as_bytes()) {
                result = Err(ReportError { path, error });
            }
        }
        result
    }
}

/// Reads a line of a report.
///
/// # Errors
/// When it is none.
pub fn parse(line: &str) -> Result<Line, serde_json::Error> {
    serde_json::from_str(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_kept_to_this_process() {
        use std::os::fd::{AsFd, AsRawFd};
        let (_reader, writer) = std::io::pipe().unwrap();
        fcntl_setfd(writer.as_fd(), FdFlags::empty()).unwrap();
        let path = format!("/dev/fd/{}", writer.as_raw_fd());
        let report = Report::create(&[path.into()]).unwrap();
        let flags = rustix::io::fcntl_getfd(&writer).unwrap();
        assert!(flags.contains(FdFlags::CLOEXEC));
        drop(report);
    }

    #[test]
    fn what_is_written_is_read() {
        let path = std::env::temp_dir().join(format!("gpurpc-report-{}", std::process::id()));
        let calls = Calls {
            name: "a \"name\"".to_owned(),
            calls: u64::MAX,
            ..Calls::default()
        };
        let end = End {
            code: 7,
            cancelled: 1,
        };
        let report = Report::create(std::slice::from_ref(&path)).unwrap();
        let stage = Stage::since("a stage", Instant::now());
        report
            .write(vec![stage.clone()], vec![calls.clone()], end.clone())
            .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let lines: Vec<_> = text.lines().map(|line| parse(line).unwrap()).collect();
        assert_eq!(
            lines,
            [
                Line::Start(vec![stage]),
                Line::Opcode(calls),
                Line::End(end)
            ]
        );
        assert!(parse("{}").is_err());
    }

    #[test]
    fn a_wrong_path_is_named() {
        let said = Report::create(&["/no/such/place".into()]).unwrap_err();
        assert!(said.to_string().contains("/no/such/place"), "{said}");
    }
}
