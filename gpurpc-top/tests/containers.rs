//! Files that hold several images: the one for the device runs, as it does by itself.
//!
//! Images are built by `cargo xtask images`, containers by LLVM's tools from `LLVM_BIN` or Debian's
//! folder; what is missing is named and left out. A missing image fails with
//! `GPURPC_REQUIRE_IMAGES=1`.

#[path = "common/images.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests need the rest")]
mod images;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use images::{image, left_out};

/// What the bundles' entries are called, besides the host's.
const GFX1100: &str = "hip-amdgcn-amd-amdhsa--gfx1100";
const GFX90A: &str = "hip-amdgcn-amd-amdhsa--gfx90a:xnack+";
const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// Code, standard output and standard error of a run where there is no GPU.
fn run(device: &str, file: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gpurpc-top"))
        .args(["--once", "--timeout", "300", "--device", device])
        .args(["--output", "/dev/null"])
        .arg(file)
        .args(["a", "b"])
        .env("GPURPC_HSA_RUNTIME", "/no/such/runtime")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn runs(device: &str, file: &Path) {
    let (code, out, said) = run(device, file);
    let expected = "hello from block 0 thread 0\narg 1: a\narg 2: b\n";
    let name = file.display();
    assert_eq!(
        (code, out.as_str()),
        (Some(0), expected),
        "{name} on {device}: {said}"
    );
}

fn refused(device: &str, file: &Path, words: &[&str]) {
    let (code, out, said) = run(device, file);
    assert_eq!((code, out.as_str()), (Some(125), ""), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in words {
        assert!(said.contains(word), "{said} should say {word}");
    }
}

/// `hello` for the emulated GPU and for the CPU device.
fn hello() -> Option<[PathBuf; 2]> {
    Some([
        image("amdgcn-gfx1100/hello.elf")?,
        image("x86_64/hello.so")?,
    ])
}

/// A place for a file of this test.
fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The path of one of LLVM's tools.
fn llvm(tool: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("LLVM_BIN").unwrap_or_else(|| "/usr/lib/llvm-22/bin".into());
    let path = Path::new(&folder).join(tool);
    if !path.exists() {
        left_out(&format!("there is no {}", path.display()));
        return None;
    }
    Some(path)
}

fn call(tool: &Path, arguments: impl IntoIterator<Item = OsString>) {
    let status = Command::new(tool).args(arguments).status().unwrap();
    assert!(status.success(), "{}", tool.display());
}

/// A bundle of these names and contents, as the tool makes it.
fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut all = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    all.extend((entries.len() as u64).to_le_bytes());
    let table: usize = entries.iter().map(|(name, _)| 24 + name.len()).sum();
    let mut at = all.len() + table;
    for (name, data) in entries {
        for number in [at, data.len(), name.len()] {
            all.extend((number as u64).to_le_bytes());
        }
        all.extend(name.as_bytes());
        at += data.len();
    }
    for (_, data) in entries {
        all.extend(*data);
    }
    all
}

#[test]
fn offload_binaries() {
    let (Some([amd, cpu]), Some(tool)) = (hello(), llvm("llvm-offload-binary")) else {
        return;
    };
    let images = [
        (&amd, "amdgcn-amd-amdhsa", "arch=gfx1100,kind=hip"),
        (&amd, "amdgcn-amd-amdhsa", "arch=gfx90a:xnack+,kind=hip"),
        (&cpu, "x86_64-unknown-linux-gnu", "kind=openmp"),
    ]
    .map(|(file, triple, more)| {
        let mut argument = OsString::from("--image=file=");
        argument.push(file);
        argument.push(format!(",triple={triple},{more}"));
        argument
    });
    let file = place("all.offload");
    let output = [OsString::from("-o"), file.clone().into()];
    call(&tool, output.iter().cloned().chain(images.clone()));
    runs("emu", &file);
    // There is no GPU of AMD's, and code for the CPU device.
    runs("0", &file);

    let file = place("gpu.offload");
    let output = [OsString::from("-o"), file.clone().into()];
    call(&tool, output.iter().cloned().chain([images[1].clone()]));
    let inside = "an amdgcn code object for hip amdgcn-amd-amdhsa gfx90a:xnack+";
    let holds = format!("gpu.offload is an offload binary that holds {inside}; ");
    refused("emu", &file, &[&holds, "gfx1100", "runs none of that"]);
    refused("0", &file, &[&holds, "no device", "/no/such/runtime"]);
}

#[test]
fn bundles() {
    let Some([amd, cpu]) = hello() else {
        return;
    };
    let [amd, cpu] = [amd, cpu].map(|path| fs::read(path).unwrap());
    let file = place("all.bundle");
    // An odd length, so that nothing is aligned.
    let all = bundle(&[(HOST, &cpu), ("x", b""), (GFX90A, &amd), (GFX1100, &amd)]);
    fs::write(&file, &all).unwrap();
    runs("emu", &file);
    runs("0", &file);
    // Compressed, and in another container.
    let mut packed = b"CCOB\x01\0\0\0".to_vec();
    packed.extend((all.len() as u32).to_le_bytes());
    packed.extend([0; 8]);
    packed.extend(miniz_oxide::deflate::compress_to_vec_zlib(&all, 1));
    fs::write(&file, &packed).unwrap();
    runs("emu", &file);
    fs::write(&file, bundle(&[("hip-amdgcn-amd-amdhsa--", &packed)])).unwrap();
    runs("emu", &file);
    // One that is not for it, and one that is not what its name says.
    let file = place("other.bundle");
    fs::write(&file, bundle(&[(HOST, b""), (GFX90A, &amd)])).unwrap();
    refused("emu", &file, &["gfx90a:xnack+; ", "gfx1100", "runs none"]);
    fs::write(&file, bundle(&[(GFX1100, &amd[..amd.len() / 2])])).unwrap();
    refused("emu", &file, &["whose entry an amdgcn code", "cut short"]);
    fs::write(&file, &all[..all.len() - 1]).unwrap();
    refused("emu", &file, &["is an offload bundle that is cut short"]);
}

#[test]
fn bundles_of_the_tool() {
    let (Some([amd, cpu]), Some(tool)) = (hello(), llvm("clang-offload-bundler")) else {
        return;
    };
    for more in [&[][..], &["--compress"], &["--bundle-align=4096"]] {
        let file = place("tool.bundle");
        let argument = |start: &str, path: &Path| {
            let mut argument = OsString::from(start);
            argument.push(path);
            argument
        };
        let arguments = [
            "--type=bc".into(),
            format!("--targets={HOST},{GFX1100}").into(),
            argument("--input=", &cpu),
            argument("--input=", &amd),
            argument("--output=", &file),
        ];
        call(
            &tool,
            arguments.into_iter().chain(more.iter().map(Into::into)),
        );
        runs("emu", &file);
        runs("0", &file);
    }
}
