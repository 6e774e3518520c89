//! Every example on the emulated AMD GPU gives what it gives on the CPU device, over both layouts,
//! through `gpurpc-top`, which has both.
//!
//! They are built by `cargo xtask images`; what is missing is named and left out, or fails with
//! `GPURPC_REQUIRE_IMAGES=1`.

#[path = "common/images.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod images;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs with their arguments.
const PROGRAMS: [&str; 8] = [
    "hello a b",
    "args 1 2",
    "increment 20",
    "stream 200",
    "exit 7",
    "panic",
    "diverge 10",
    "unknown",
];

/// The image's path, if it is there.
fn image(folder: &str, layout: &str, name: &str, extension: &str) -> Option<PathBuf> {
    let path = Path::new(folder).join(layout);
    images::image(&format!("{}/{name}.{extension}", path.display()))
}

/// The code and the lines of standard output, sorted: which thread is first is nobody's promise.
fn run(device: &str, image: &Path, arguments: &[&str]) -> (Option<i32>, Vec<String>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gpurpc-top"))
        .args(["--once", "--timeout", "300", "--device", device])
        .args(["--blocks", "4", "--threads", "64"])
        .arg(image)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let path = image.display().to_string();
    // The path is an argument, and so may be printed.
    let mut lines: Vec<_> = stdout
        .lines()
        .map(|line| line.replace(&path, "IMAGE"))
        .collect();
    lines.sort();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), lines, said)
}

#[test]
fn examples_give_what_they_give_on_the_cpu_device() {
    for line in PROGRAMS {
        let words: Vec<_> = line.split(' ').collect();
        let (name, arguments) = (words[0], &words[1..]);
        for layout in ["", "compact"] {
            let (Some(amd), Some(cpu)) = (
                image("amdgcn-gfx1100", layout, name, "elf"),
                image("x86_64", layout, name, "so"),
            ) else {
                continue;
            };
            let (emulated, lines, said) = run("emu", &amd, arguments);
            let (expected, own, _) = run("0", &cpu, arguments);
            assert_eq!(emulated, expected, "{name} {layout}: {said}");
            // How many threads get to print before the first of them ends the run is open.
            if !matches!(name, "exit" | "panic") {
                assert_eq!(lines, own, "{name} {layout}");
            }
        }
    }
}

#[test]
fn images_for_other_devices_have_no_emulator() {
    if let Some(cpu) = image("x86_64", "", "hello", "so") {
        let (code, _, said) = run("emu", &cpu, &[]);
        assert_eq!(code, Some(125));
        assert!(said.contains("x86-64 images are not emulated"), "{said}");
    }
}
