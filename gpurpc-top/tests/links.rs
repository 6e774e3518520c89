//! Links by the names of LLVM's loaders are those loaders.

#[path = "common/images.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod images;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A link to the program.
fn link(test: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("links_{test}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let link = folder.join(name);
    symlink(env!("CARGO_BIN_EXE_gpurpc-top"), &link).unwrap();
    link
}

/// Code, standard output and standard error.
fn run(link: &Path, arguments: &[&str], input: Stdio) -> (Option<i32>, String, String) {
    let output = Command::new(link)
        .args(arguments)
        .stdin(input)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn images_run_as_by_the_loader() {
    let Some(image) = images::image("amdgcn-gfx1100/hello.elf") else {
        return;
    };
    let link = link("run", "amdhsa-loader");
    let options = "--device emu --print-resource-usage --blocks 2 --blocks-y 1 --blocks-z 1 \
                   --threads-x 2 --threads-y=2 --threads-z 1 - a --threads";
    let arguments: Vec<_> = options.split(' ').collect();
    let input = File::open(image).unwrap();
    let (code, out, said) = run(&link, &arguments, input.into());
    assert_eq!(code, Some(0), "{said}");
    let greetings = out.lines().filter(|line| line.starts_with("hello from"));
    assert_eq!(greetings.count(), 8, "{out}");
    // Lines of the other block may come between these.
    assert!(
        out.contains("arg 1: a\n") && out.contains("arg 2: --threads\n"),
        "{out}"
    );
    // No table, and the name.
    assert_eq!(out.lines().count(), 10, "{out}");
    assert!(said.contains("amdhsa-loader: _start"), "{said}");
    let own = |line: &str| line.starts_with("amdhsa-loader: ");
    assert!(said.lines().all(own), "{said}");
}

#[test]
fn each_has_its_devices_and_says_its_name() {
    let ptx = Path::new(env!("CARGO_TARGET_TMPDIR")).join("links.ptx");
    fs::write(&ptx, ".version 8.0\n").unwrap();
    let ptx = ptx.to_str().unwrap();
    for (name, arguments, sentence) in [
        (
            "nvptx-loader",
            &["--device", "emu", ptx][..],
            "--device emu is for amdgcn code objects: NVIDIA GPUs are not emulated, give a number",
        ),
        (
            "amdhsa-loader",
            &[ptx],
            "is PTX text, which this program does not run: loader-nv does",
        ),
        (
            "amdhsa-loader",
            &["--once", ptx],
            "unexpected argument '--once'",
        ),
        ("nvptx-loader", &["--demo"], "unexpected argument '--demo'"),
        ("nvptx-loader", &[], "IMAGE"),
        (
            "llvm-gpu-loader",
            &["--device", "emu", ptx],
            "--device emu is for amdgcn code objects: NVIDIA GPUs are not emulated, give a number",
        ),
    ] {
        let link = link("names", name);
        let (code, out, said) = run(&link, arguments, Stdio::null());
        assert_eq!((code, out.as_str()), (Some(125), ""), "{said}");
        let start = format!("{name}: ");
        assert!(
            said.starts_with(&start) && said.contains(sentence),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
        let (code, out, _) = run(&link, &["--help"], Stdio::null());
        assert_eq!(code, Some(0));
        let usage = format!("Usage: {name} [OPTIONS] IMAGE [ARGUMENTS]...");
        assert!(out.contains(&usage), "{out}");
    }
}
