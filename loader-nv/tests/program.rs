//! The program on the command line, without a GPU: over a pretended driver, and without any.

use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

#[path = "../../cuda-shim/fake_driver/src/image.rs"]
#[allow(dead_code)]
mod pretended;

/// Kernels as compilers declare them, but for their code.
const IMAGE: &str = "\
.version 7.0
.target sm_70
.visible .entry _begin(.param .u32 a, .param .u64 .ptr .align 1 b, .param .u64 .ptr .align 1 c)
.visible .entry _start(.param .u32 a, .param .u64 b, .param .u64 c, .param .u64 d)
.visible .entry _end()
.visible .entry one()
";

/// What `_start` takes there.
const FOUR: &str = ".param .u32 a, .param .u64 b, .param .u64 c, .param .u64 d";

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

/// Constructors and destructors as LLVM's compiler declares them, out of order.
const ARRAYS: &str = "
.visible .global .align 8 .u64 __init_array_start;
.visible .global .align 8 .u64 __init_array_end;
.visible .global .align 8 .u64 __fini_array_start;
.visible .global .align 8 .u64 __fini_array_end;
.visible .const .align 8 .u64 __init_array_object_late_3f_65535 = late;
.visible .const .align 8 .u64 __init_array_object_early_3f_101 = early;
.visible .const .align 8 .u64 __init_array_object_later_3f_65535 = later;
.visible .const .align 8 .u64 __fini_array_object_last_3f_5 = last;
.visible .const .align 8 .u64 __fini_array_object_first_3f_65535 = first;
";

#[test]
fn constructors_and_destructors_run_in_their_order() {
    let folder = folder("arrays");
    let text = format!("{IMAGE}{ARRAYS}");
    std::fs::write(folder.join("arrays.ptx"), &text).unwrap();
    std::fs::write(folder.join("arrays.cubin"), pretended::cubin(&text)).unwrap();
    let order = "called: early\ncalled: late\ncalled: later\ncalled: first\ncalled: last\n";
    for image in ["arrays.ptx", "arrays.cubin"] {
        let ran = loader(&folder, &[image], "");
        assert_eq!(ran, (Some(1), order.to_owned()), "{image}");
    }
    // An image whose own start-up does without.
    let without = text
        .replace("__init_array_start", "x")
        .replace("__fini_array_end", "y");
    std::fs::write(folder.join("without.ptx"), without).unwrap();
    assert_eq!(
        loader(&folder, &["without.ptx"], ""),
        (Some(1), String::new())
    );
    // Nothing is made of a variable that is named like theirs; the same with an array for it.
    let odd = ".visible .global .align 8 .u64 __init_array_object_x = odd;\n";
    let cubin = pretended::cubin(&format!("{IMAGE}{odd}"));
    std::fs::write(folder.join("odd.cubin"), cubin).unwrap();
    let ran = loader(&folder, &["odd.cubin"], "");
    assert_eq!(ran, (Some(1), String::new()));
    let cubin = pretended::cubin(&format!("{text}{odd}"));
    std::fs::write(folder.join("odd.cubin"), cubin).unwrap();
    let (code, said) = loader(&folder, &["odd.cubin"], "");
    assert_eq!(code, Some(125), "{said}");
    let words = "__init_array_object_x does not end with a priority";
    assert!(said.contains(words), "{said}");
    assert!(said.contains("give it another name"), "{said}");
    let broken = format!(".version 7.0\n{ARRAYS}");
    std::fs::write(folder.join("broken.ptx"), broken).unwrap();
    let (code, said) = loader(&folder, &["broken.ptx"], "");
    assert_eq!(code, Some(125), "{said}");
    assert!(
        said.contains("compiler refused the PTX: ptxas app"),
        "{said}"
    );
}

#[test]
fn what_another_loader_runs_is_sent_there() {
    let folder = folder("other");
    // The header of an x86-64 shared object, with one empty section.
    let mut file = vec![0; 128];
    file[..7].copy_from_slice(b"\x7FELF\x02\x01\x01");
    for (at, byte) in [
        (16, 3),
        (18, 62),
        (20, 1),
        (40, 64),
        (52, 64),
        (58, 64),
        (60, 1),
    ] {
        file[at] = byte;
    }
    std::fs::write(folder.join("hello.so"), file).unwrap();
    let (code, said) = loader(&folder, &["hello.so"], "");
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("does not run: loader-cpu does"), "{said}");
}

/// What clang makes of C is read as what the pretended driver reads.
#[test]
fn ptx_of_clang_is_read() {
    let folder = folder("clang");
    let llvm = std::env::var_os("LLVM_BIN").unwrap_or_else(|| "/usr/lib/llvm-22/bin".into());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/start.c");
    for level in ["-O0", "-O2"] {
        let built = Command::new(Path::new(&llvm).join("clang"))
            .args([
                "--target=nvptx64-nvidia-cuda",
                "-march=sm_70",
                "-Xclang",
                "-target-feature",
            ])
            .args([
                "-Xclang",
                "+ptx80",
                "-ffreestanding",
                "-nostdlib",
                level,
                "-S",
                "-o",
            ])
            .arg(folder.join("start.ptx"))
            .arg(&source)
            .output();
        if !built.is_ok_and(|output| output.status.success()) {
            left_out("there is no clang 22");
            return;
        }
        let called = "called: first\ncalled: second\ncalled: last\n";
        let ran = loader(&folder, &["start.ptx", "1"], "");
        assert_eq!(ran, (Some(2), called.to_owned()), "{level}");
        let (code, said) = loader(&folder, &["--kernel", "plain", "start.ptx"], "");
        assert_eq!((code, &*said), (Some(0), "ran: plain with 1 threads\n"));
        let (code, said) = loader(&folder, &["--kernel", "_end", "start.ptx"], "");
        assert_eq!(code, Some(125), "{said}");
        assert!(said.contains("_end takes 4 bytes"), "{said}");
    }
}

#[test]
fn an_end_takes_a_status_or_nothing() {
    let folder = folder("end");
    let status = IMAGE.replace("_end()", "_end(.param .u32 status)");
    std::fs::write(folder.join("status.ptx"), &status).unwrap();
    std::fs::write(folder.join("status.cubin"), pretended::cubin(&status)).unwrap();
    std::fs::write(folder.join("image.cubin"), pretended::cubin(IMAGE)).unwrap();
    let unsaid = IMAGE.replace("_end()", "_end(.param .texref odd)");
    std::fs::write(folder.join("unsaid.ptx"), unsaid).unwrap();
    for (image, trouble) in [
        ("status.ptx", ""),
        ("status.cubin", ""),
        ("image.cubin", ""),
        ("image.cubin", "status"),
        ("image.ptx", "status"),
        ("unsaid.ptx", ""),
        ("unsaid.ptx", "status"),
    ] {
        let ran = loader(&folder, &[image], trouble);
        assert_eq!(ran, (Some(1), String::new()), "{image} {trouble}");
    }
}

#[test]
fn a_kernel_runs_by_its_name() {
    let folder = folder("plain");
    std::fs::write(folder.join("image.cubin"), pretended::cubin(IMAGE)).unwrap();
    for image in ["image.ptx", "image.cubin"] {
        let run = |kernel| loader(&folder, &["--kernel", kernel, "--threads", "6", image], "");
        assert_eq!(
            run("one"),
            (Some(0), "ran: one with 6 threads\n".to_owned())
        );
        for (kernel, words) in [
            (
                "none",
                "no kernel none: its kernels are _begin, _end, _start, one",
            ),
            ("_start", "kernel _start takes 32 bytes of parameters"),
        ] {
            let (code, said) = run(kernel);
            assert_eq!(code, Some(125), "{said}");
            assert!(said.contains(words), "{said}");
        }
    }
}

#[test]
fn other_kernels_than_the_abi_says_are_refused() {
    let folder = folder("other");
    let two = IMAGE.replace(FOUR, ".param .u32 a, .param .u64 b");
    std::fs::write(folder.join("two.ptx"), two).unwrap();
    let (code, said) = loader(&folder, &["two.ptx"], "");
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("_start with 16 bytes"), "{said}");
}

#[test]
fn a_start_with_a_mailbox_is_served() {
    let folder = folder("mailbox");
    let six = ", .param .u64 e, .param .u64 f";
    for more in [six, &format!("{six}, .param .u64 g")] {
        let text = IMAGE.replace(FOUR, &format!("{FOUR}{more}"));
        std::fs::write(folder.join("image.ptx"), &text).unwrap();
        std::fs::write(folder.join("image.cubin"), pretended::cubin(&text)).unwrap();
        for image in ["image.ptx", "image.cubin"] {
            let ran = loader(&folder, &[image, "1", "2"], "");
            assert_eq!(ran, (Some(3), "word\n".to_owned()), "{image}{more}");
        }
    }
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
