//! Where and from what a result comes.

use std::fs;
use std::thread::available_parallelism;

use serde_json::{Map, Value, json};

use crate::cli::Kind;

/// The commit that this program was built from, if whoever built it has said so.
const COMMIT: Option<&str> = option_env!("GPURPC_COMMIT");

/// The processor's name.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    name.unwrap_or_else(|| "unknown".to_owned())
}

/// The version of NVIDIA's driver.
fn driver() -> String {
    let version = fs::read_to_string("/sys/module/nvidia/version");
    if let Ok(version) = version {
        return version.trim().to_owned();
    }
    let text = fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    // `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ...`
    let is_version = |word: &&str| {
        word.contains('.')
            && word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let version = text.split_whitespace().find(is_version);
    version.unwrap_or("unknown").to_owned()
}

/// What all results of a run have in common.
pub(crate) fn describe(kind: Kind, device: &str, quick: bool) -> Map<String, Value> {
    let driver = match kind {
        Kind::Cpu => "none".to_owned(),
        Kind::Nvidia => driver(),
    };
    let entries = [
        ("version", json!(env!("CARGO_PKG_VERSION"))),
        ("commit", json!(COMMIT)),
        ("host_cpu", json!(processor())),
        (
            "host_cores",
            json!(available_parallelism().map_or(0, usize::from)),
        ),
        ("device_kind", json!(kind.name())),
        ("device", json!(device)),
        ("driver", json!(driver)),
        ("quick", json!(quick)),
    ];
    entries
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_a_name() {
        let machine = describe(Kind::Cpu, "a device", true);
        assert_eq!(machine["device"], "a device");
        assert!(!processor().is_empty() && !driver().is_empty());
    }
}
