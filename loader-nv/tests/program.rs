//! The program on the command line, without a GPU: over a pretended driver, and without any.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Kernels that the pretended driver has.
const IMAGE: &str = ".version 7.0\n.target sm_70\n.visible .entry _begin()\n.visible .entry _start()\n\
                     .visible .entry _end()\n";

fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("program_{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut driver = std::env::current_exe().unwrap();
    driver.set_file_name("libfake_driver.so");
    symlink(driver, folder.join("libcuda.so.1")).unwrap();
    std::fs::File::create(folder.join("image.ptx"))
        .unwrap()
        .write_all(IMAGE.as_bytes())
        .unwrap();
    folder
}

fn loader(folder: &Path, arguments: &[&str], trouble: &str) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_loader-nv"))
        .current_dir(folder)
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKE_CUDA", trouble)
        .env_remove("CUDA_VISIBLE_DEVICES")
        .output()
        .unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn an_image_runs_and_its_value_is_the_code() {
    let folder = folder("runs");
    // The pretended kernel returns how many arguments it has.
    assert_eq!(
        loader(&folder, &["image.ptx", "1", "2", "3"], ""),
        (Some(4), String::new())
    );
    let grid = ["--blocks", "132", "--threads", "64", "image.ptx"];
    assert_eq!(loader(&folder, &grid, ""), (Some(1), String::new()));
}

#[test]
fn a_link_by_the_name_of_llvms_loader_is_that_loader() {
    let folder = folder("link");
    let link = folder.join("nvptx-loader");
    symlink(env!("CARGO_BIN_EXE_loader-nv"), &link).unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new(&link)
            .current_dir(&folder)
            .args(arguments)
            .env("LD_LIBRARY_PATH", &folder)
            .env_remove("CUDA_VISIBLE_DEVICES")
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let options = [
        ["--threads-x", "2", "--threads-y", "2", "--threads-z=2"],
        ["--blocks", "2", "--blocks-y", "2", "--blocks-z=2"],
    ]
    .concat();
    let (code, out, said) = run(&[
        &options[..],
        &["--print-resource-usage", "image.ptx", "--help"],
    ]
    .concat());
    assert_eq!((code, out.as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("nvptx-loader: _start"), "{said}");
    assert!(
        said.lines().all(|line| line.starts_with("nvptx-loader: ")),
        "{said}"
    );
    let (code, _, said) = run(&["/no/such/image"]);
    assert_eq!(code, Some(125));
    assert!(
        said.starts_with("nvptx-loader: /no/such/image cannot be read"),
        "{said}"
    );
    let (code, out, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    assert!(
        out.contains("nvptx-loader [OPTIONS] IMAGE [ARGUMENTS]..."),
        "{out}"
    );
}

/// A fatbin with entries of these kinds (1 PTX, 2 cubin), architectures and flags.
fn fatbin(entries: &[(u16, u32, u64, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, architecture, flags, data) in entries {
        let mut header = [0; 64];
        let size = data.len().next_multiple_of(8);
        header[..2].copy_from_slice(&kind.to_le_bytes());
        header[4] = 64;
        header[8..16].copy_from_slice(&size.to_le_bytes());
        header[28..32].copy_from_slice(&architecture.to_le_bytes());
        header[40..48].copy_from_slice(&flags.to_le_bytes());
        body.extend(header);
        body.extend(*data);
        body.resize(body.len() + size - data.len(), 0);
    }
    let mut all = b"\x50\xED\x55\xBA\x01\0\x10\0".to_vec();
    all.extend((body.len() as u64).to_le_bytes());
    all.extend(body);
    all
}

#[test]
fn of_a_fatbin_the_best_entry_runs() {
    const SPECIFIC: u64 = 1 << 20;
    let folder = folder("fatbin");
    let mut cubin = [0; 128];
    cubin[..7].copy_from_slice(b"\x7FELF\x02\x01\x01");
    for (at, number) in [
        (16, 2),
        (18, 190),
        (20, 1),
        (40, 64),
        (52, 64),
        (58, 64),
        (60, 1),
    ] {
        cubin[at] = number;
    }
    let older = IMAGE.replace("_start", "_older");
    let all = fatbin(&[
        (2, 80, 0, &cubin),
        (2, 100, 0, &cubin),
        (1, 60, 0, older.as_bytes()),
        (1, 70, 0, IMAGE.as_bytes()),
        (1, 80, SPECIFIC, older.as_bytes()),
        (1, 100, 0, older.as_bytes()),
    ]);
    std::fs::write(folder.join("all.fatbin"), all).unwrap();
    let (code, said) = loader(&folder, &["all.fatbin", "1", "2"], "");
    assert_eq!((code, said.as_str()), (Some(3), ""));

    let none = fatbin(&[
        (2, 80, 0, &cubin),
        (1, 90, SPECIFIC, &[]),
        (1, 100, 0, older.as_bytes()),
    ]);
    std::fs::write(folder.join("none.fatbin"), none).unwrap();
    assert_eq!(
        loader(&folder, &["none.fatbin"], ""),
        (
            Some(125),
            "loader-nv: none.fatbin is a CUDA fatbin that holds a cubin for sm_80 and PTX text for \
             sm_100; NVIDIA H200 (pretended) (sm_90) runs none of that\n"
                .to_owned()
        )
    );
}

#[test]
fn trouble_on_the_device_has_its_code() {
    let folder = folder("trouble");
    let (code, said) = loader(&folder, &["image.ptx"], "trap");
    assert_eq!(code, Some(134), "{said}");
    assert!(
        said.contains("CUDA error 719 (CUDA_ERROR_LAUNCH_FAILED"),
        "{said}"
    );
    let (code, said) = loader(&folder, &["--timeout", "0.2", "image.ptx"], "hang");
    assert_eq!(code, Some(124), "{said}");
}

#[test]
fn what_cannot_run_gets_one_sentence_and_125() {
    let folder = folder("refused");
    std::fs::write(folder.join("broken.ptx"), ".version 7.0\n.entry _start").unwrap();
    std::fs::write(
        folder.join("kernelless.ptx"),
        ".version 7.0\n.target sm_70\n",
    )
    .unwrap();
    for (arguments, trouble, sentence) in [
        (
            &["broken.ptx"][..],
            "",
            "the driver's compiler refused the PTX: ptxas application",
        ),
        (&["kernelless.ptx"], "", "_start"),
        (
            &["--threads", "5000", "image.ptx"],
            "",
            "--threads 5000 is more than the 1024",
        ),
        (
            &["--threads", "1000", "image.ptx"],
            "",
            "--threads 1000 is more than the 768 that _start",
        ),
        (
            &["--blocks", "4294967295", "image.ptx"],
            "",
            "--blocks 4294967295 is more than the 2147",
        ),
        (
            &["--stack-size", "512k", "image.ptx"],
            "",
            "--stack-size 524288 is more than the 261120",
        ),
        (
            &["--device", "2", "image.ptx"],
            "",
            "there is no CUDA device 2: the driver shows 2",
        ),
        (&["image.ptx"], "too-old", "could not start: CUDA error 803"),
    ] {
        let (code, said) = loader(&folder, arguments, trouble);
        assert_eq!(code, Some(125), "{arguments:?}: {said}");
        assert!(
            said.starts_with("loader-nv: ") && said.contains(sentence),
            "{sentence}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn without_a_driver_the_program_starts_and_says_so() {
    if cuda_shim::available().is_ok() {
        left_out("this machine has an NVIDIA driver");
        return;
    }
    let folder = folder("no_driver");
    std::fs::remove_file(folder.join("libcuda.so.1")).unwrap();
    let (code, said) = loader(&folder, &["image.ptx"], "");
    assert_eq!(code, Some(125), "{said}");
    assert!(
        said.starts_with("loader-nv: no NVIDIA driver: libcuda.so.1 could not"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// A program that needs the driver's library to start would not start here at all.
#[test]
fn the_program_does_not_need_the_drivers_library() {
    let bytes = std::fs::read(env!("CARGO_BIN_EXE_loader-nv")).unwrap();
    let ldd = Command::new("ldd")
        .arg(env!("CARGO_BIN_EXE_loader-nv"))
        .output();
    match ldd {
        Ok(out) => assert!(!String::from_utf8_lossy(&out.stdout).contains("libcuda")),
        Err(reason) => left_out(&format!("ldd: {reason}")),
    }
    assert!(
        bytes.windows(12).any(|text| text == b"libcuda.so.1"),
        "it is loaded by name instead"
    );
}

/// Names the test that is left out, and why: past the capture of the output of tests that pass.
fn left_out(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "{test} left out: {reason}");
}

#[test]
fn every_way_not_to_start_has_its_sentence() {
    let folder = folder("no_start");
    for (arguments, trouble, sentence) in [
        (
            &["image.ptx"][..],
            "too-old",
            "could not start: CUDA error 803 (CUDA_ERROR_SYSTEM",
        ),
        (
            &["image.ptx"],
            "newer-code",
            "812 (unrecognized error code: an error of a later",
        ),
        (
            &["--device", "2", "image.ptx"],
            "",
            "there is no CUDA device 2: the driver shows 2, counted",
        ),
    ] {
        let (code, said) = loader(&folder, arguments, trouble);
        assert_eq!(code, Some(125), "{said}");
        assert!(
            said.contains(sentence) && said.lines().count() == 1,
            "{sentence}: {said}"
        );
    }
    let Output { status, stderr, .. } = Command::new(env!("CARGO_BIN_EXE_loader-nv"))
        .current_dir(&folder)
        .arg("image.ptx")
        .env("LD_LIBRARY_PATH", &folder)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(125), "{said}");
    assert!(said.contains("CUDA_VISIBLE_DEVICES is empty"), "{said}");
}
