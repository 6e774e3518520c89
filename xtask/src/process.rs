//! Starting other programs: what is run is shown, a failure names it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Runs `command` with the terminal's output and no input; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("xtask: {shown}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status}); its own message is above");
    }
    Ok(())
}

/// Runs `command` and gives its standard output; `None` if it cannot be started or fails.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = output.status.success().then_some(output.stdout)?;
    String::from_utf8(text).ok()
}

/// The program and its arguments as one line.
fn show(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}

/// The path of `program` in the folders of PATH.
pub(crate) fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Says how long `step` took.
pub(crate) fn timed<T>(step: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = work()?;
    eprintln!("xtask: {step}: {}", seconds(start.elapsed()));
    Ok(result)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Writes `bytes` to `path` unless it holds them already, so that what depends on it is not rebuilt;
/// true if it wrote.
pub(crate) fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_name_the_command() {
        let error = run(Command::new("false").arg("x")).expect_err("false fails");
        assert!(error.to_string().starts_with("`false x` failed"), "{error}");
        let error = run(&mut Command::new("/nonexistent/program")).expect_err("not there");
        assert!(
            error.to_string().contains("/nonexistent/program"),
            "{error}"
        );
    }

    #[test]
    fn unchanged_files_are_left_alone() {
        let folder = std::env::temp_dir().join(format!("xtask-write-{}", std::process::id()));
        let file = folder.join("sub/file");
        assert!(write_if_changed(&file, b"a").expect("written"));
        assert!(!write_if_changed(&file, b"a").expect("compared"));
        assert!(write_if_changed(&file, b"b").expect("written again"));
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
