//! The program on the command line, where there is no runtime, or not an HSA one.

use std::process::{Command, Output};

/// Standard error of a run that must be refused: one sentence and 125.
fn refused(arguments: &[&str], runtime: Option<&str>) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loader-amd"));
    command.args(arguments).env_remove("GPURPC_HSA_RUNTIME");
    if let Some(runtime) = runtime {
        command.env("GPURPC_HSA_RUNTIME", runtime);
    }
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(125), "{arguments:?}: {said}");
    assert!(stdout.is_empty());
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("loader-amd: "), "{said}");
    said
}

/// A code object's header, and one empty section.
fn image() -> std::path::PathBuf {
    let mut file = vec![0; 128];
    file[..7].copy_from_slice(b"\x7FELF\x02\x01\x01");
    file[16] = 3;
    file[18] = 224;
    for (at, number) in [(20, 1), (40, 64), (52, 64), (58, 64), (60, 1)] {
        file[at] = number;
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.elf");
    std::fs::write(&path, file).unwrap();
    path
}

#[test]
fn a_runtime_that_is_missing_or_another_is_named() {
    let image = image();
    let image = image.to_str().unwrap();
    let said = refused(&["--hsa-runtime", "/no/such/libhsa.so", image], None);
    assert!(
        said.contains("/no/such/libhsa.so: cannot open") && said.contains("--device emu"),
        "{said}"
    );
    // The option comes before the environment.
    let said = refused(&["--hsa-runtime", "/no/such", image], Some("libc.so.6"));
    assert!(said.contains("/no/such: cannot open"), "{said}");
    let said = refused(&[image], Some("libc.so.6"));
    assert!(
        said.contains("libc.so.6 has no function hsa_") && said.contains("--device emu"),
        "{said}"
    );
    let said = refused(&["--diagnose"], Some("/no/such"));
    assert!(said.contains("/no/such: cannot open"), "{said}");
}

#[test]
fn command_lines_that_are_wrong_are_told() {
    for (arguments, words) in [
        (&["--device", "one", "image"][..], "or emu"),
        (&["--device", "-1", "image"], "or emu"),
        (&[], "IMAGE"),
        (&["--diagnose", "image"], "cannot be used with"),
        (&["/no/such/file"], "No such file"),
        (&[env!("CARGO_BIN_EXE_loader-amd")], "host program"),
        (
            &[concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")],
            "is text",
        ),
    ] {
        let said = refused(arguments, None);
        assert!(said.contains(words), "{said} should say {words}");
    }
}
