//! What tests share: LLVM's tools, images, programs made by clang, and waves without a loader.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::Mutex;

use crate::code::{Code, CodeMap};
use crate::group::Group;
use crate::isa::operand::{EXEC, V0};
use crate::memory::Space;
use crate::private::Private;
use crate::wave::{Pause, Wave};

/// Where Debian's packages put the tools.
const LLVM: &str = "/usr/lib/llvm-22/bin";

/// The path of a tool: from `LLVM_BIN`, Debian's folder, or none.
pub(crate) fn llvm(tool: &str) -> Option<PathBuf> {
    let folder = env::var_os("LLVM_BIN").map_or_else(|| PathBuf::from(LLVM), PathBuf::from);
    let path = folder.join(tool);
    path.exists().then_some(path)
}

/// Says that a test was left out.
pub(crate) fn skipped(what: &str) {
    assert!(
        env::var_os("GPURPC_REQUIRE_IMAGES")
            .is_none_or(|_| what.starts_with("llvm") || what == "clang"),
        "there are no {what}: cargo xtask images --target amdgcn"
    );
    println!("left out: there are no {what}");
}

/// The workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All images for the device, of both layouts.
pub(crate) fn images() -> Option<Vec<PathBuf>> {
    let root = env::var_os("GPURPC_IMAGES")
        .map_or_else(|| workspace().join("target/images"), PathBuf::from);
    let folder = root.join("amdgcn-gfx1100");
    let mut images = Vec::new();
    for folder in [folder.clone(), folder.join("compact")] {
        let Ok(entries) = fs::read_dir(folder) else {
            continue;
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        images.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "elf")));
    }
    images.sort();
    (!images.is_empty()).then_some(images)
}

/// One compiler at a time: tests run at once and write to the same folder.
static COMPILER: Mutex<()> = Mutex::new(());

/// Builds every C program under `tests/programs` at an optimisation level.
pub(crate) fn programs(level: &str) -> Option<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut sources: Vec<_> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    sources.sort();
    sources
        .iter()
        .map(|source| program(source, level))
        .collect()
}

/// Builds one C program.
pub(crate) fn program(source: &Path, level: &str) -> Option<PathBuf> {
    let _guard = COMPILER
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let clang = llvm("clang")?;
    let name = source.file_stem()?.to_string_lossy().into_owned();
    let folder = env::temp_dir().join(format!("hsa-emu-{}", std::process::id()));
    fs::create_dir_all(&folder).ok()?;
    let output = folder.join(format!("{name}{level}.elf"));
    let status = Command::new(clang)
        .args([
            "--target=amdgcn-amd-amdhsa",
            "-mcpu=gfx1100",
            "-nogpulib",
            "-ffreestanding",
        ])
        .args([level, "-nostdlib", "-o"])
        .arg(&output)
        .arg(source)
        .status()
        .ok()?;
    assert!(
        status.success(),
        "clang does not compile {}",
        source.display()
    );
    Some(output)
}

/// A wave that runs a few instructions on registers that a test fills in.
pub(crate) struct Bench {
    /// The wave.
    pub(crate) wave: Wave,
    codes: Arc<CodeMap>,
}

/// Where the instructions of a test lie; no memory has this address.
const CODE: u64 = 0x1000;

impl Bench {
    /// A wave of `lanes`, all of them active.
    pub(crate) fn new(lanes: u16) -> Self {
        let codes = Arc::new(CodeMap::default());
        let group = Arc::new(Group::new([0; 3], 1, 1024, Arc::clone(&codes)));
        let private = Private::new(256, lanes).expect("a little memory");
        let mut wave = Wave::new(group, 0, lanes, CODE, private);
        wave.set_mask(EXEC, u64::MAX);
        Self { wave, codes }
    }

    /// Runs `words` and then `s_endpgm`.
    pub(crate) fn run(&mut self, words: &[u32], space: &Space) -> Pause {
        const END: u32 = 0xbfb0_0000;
        let bytes: Vec<u8> = words
            .iter()
            .chain([&END])
            .flat_map(|word| word.to_le_bytes())
            .collect();
        self.codes.insert(Code::new(CODE, &bytes, Arc::default()));
        self.wave.forget_code();
        self.wave.pc = CODE;
        self.wave.run(space, 1_000_000)
    }

    fn place(&self, register: u16, lane: usize) -> usize {
        usize::from(V0) + usize::from(register) * usize::from(self.wave.lanes) + lane
    }

    /// Sets a vector register of a lane.
    pub(crate) fn set(&mut self, register: u16, lane: usize, value: u32) {
        let place = self.place(register, lane);
        self.wave.regs[place] = value;
    }

    /// Sets two vector registers of a lane.
    pub(crate) fn set64(&mut self, register: u16, lane: usize, value: u64) {
        self.set(register, lane, value as u32);
        self.set(register + 1, lane, (value >> 32) as u32);
    }

    /// A vector register of a lane.
    pub(crate) fn get(&self, register: u16, lane: usize) -> u32 {
        self.wave.regs[self.place(register, lane)]
    }

    /// Two vector registers of a lane.
    pub(crate) fn get64(&self, register: u16, lane: usize) -> u64 {
        u64::from(self.get(register, lane)) | u64::from(self.get(register + 1, lane)) << 32
    }
}
