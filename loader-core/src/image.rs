//! What an image is, by its first look, and why other files are refused.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use thiserror::Error;

pub mod container;
mod segments;

use container::{ContainerError, Sort};

/// The largest image that is read.
pub const MAX_IMAGE: u64 = 1 << 30;

/// ELF machine number of NVIDIA's cubins.
const EM_CUDA: u16 = 190;
/// ELF machine number of AMD's code objects.
const EM_AMDGPU: u16 = 224;

/// The images that loaders take; the kind decides which loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// NVIDIA's assembly, as text.
    Ptx,
    /// NVIDIA's machine code, an ELF file.
    Cubin,
    /// An AMD code object, an ELF file.
    AmdGpu,
    /// A shared object for the CPU device.
    X86_64,
}

impl ImageKind {
    /// The kind with its article, for sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ptx => "PTX text",
            Self::Cubin => "a cubin",
            Self::AmdGpu => "an amdgcn code object",
            Self::X86_64 => "an x86-64 shared object",
        }
    }

    /// The program that runs the kind, besides `gpurpc-top`, which runs any.
    pub const fn loader(self) -> &'static str {
        match self {
            Self::Ptx | Self::Cubin => "loader-nv",
            Self::AmdGpu => "loader-amd",
            Self::X86_64 => "loader-cpu",
        }
    }
}

/// What the refusals end with.
const ACCEPTED: &str = "an image is PTX text, a cubin, an amdgcn code object or an x86-64 shared \
                        object, or an offload bundle, an offload binary or a CUDA fatbin that holds one";

/// Why a file is not an image that can run.
#[derive(Debug, Error)]
pub enum ImageError {
    /// It could not be opened or read.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    /// It is a directory.
    #[error("is a directory; {ACCEPTED}")]
    Directory,
    /// It has no bytes.
    #[error("is empty; {ACCEPTED}")]
    Empty,
    /// It is longer than [`MAX_IMAGE`].
    #[error("is larger than 1 GiB; no image is")]
    TooLarge,
    /// It is an ELF file that ends too early.
    #[error("is an ELF file that is cut short or damaged ({0}); copy or build it again")]
    Damaged(&'static str),
    /// It is an ELF file of some other sort.
    #[error("is {0}; {ACCEPTED}")]
    OtherElf(String),
    /// It holds images but is none.
    #[error("is {0}, which holds images and is none itself")]
    Container(Sort),
    /// It holds images, but none comes from it.
    #[error(transparent)]
    Contents(#[from] ContainerError),
    /// It is text, but not PTX.
    #[error("is text without a `.version` directive at its start, so not PTX; {ACCEPTED}")]
    Text,
    /// It is something else.
    #[error("is not in a format that is known here; {ACCEPTED}")]
    Unknown,
}

/// Reads the image at `path`; `-` is standard input.
///
/// # Errors
/// When it cannot be read whole, is a directory or larger than [`MAX_IMAGE`].
pub fn read(path: &OsStr) -> Result<Vec<u8>, ImageError> {
    if path == "-" {
        return read_all(io::stdin().lock());
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(ImageError::Directory);
    }
    if metadata.len() > MAX_IMAGE {
        return Err(ImageError::TooLarge);
    }
    read_all(file)
}

fn read_all(from: impl Read) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    from.take(MAX_IMAGE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_IMAGE {
        return Err(ImageError::TooLarge);
    }
    Ok(bytes)
}

/// The kind of the image that `bytes` are.
///
/// This is the first look: that an ELF file has all that its tables name, not that its contents
/// make sense, which the device's loader finds out. Files that hold several images are read by
/// [`container`].
///
/// # Errors
/// What the bytes are instead.
pub fn recognise(bytes: &[u8]) -> Result<ImageKind, ImageError> {
    if bytes.is_empty() {
        return Err(ImageError::Empty);
    }
    if let Some(sort) = Sort::of(bytes) {
        return Err(ImageError::Container(sort));
    }
    if bytes.starts_with(&elf::ELFMAG) {
        return recognise_elf(bytes);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(ImageError::Unknown);
    };
    if is_ptx(text) {
        Ok(ImageKind::Ptx)
    } else if text.contains('\0') {
        Err(ImageError::Unknown)
    } else {
        Err(ImageError::Text)
    }
}

/// Whether the first thing after space and comments is the directive that every PTX starts with.
fn is_ptx(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}');
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            return rest
                .strip_prefix(".version")
                .is_some_and(|after| after.starts_with([' ', '\t']));
        }
    }
}

fn recognise_elf(bytes: &[u8]) -> Result<ImageKind, ImageError> {
    let other = |what: &str| Err(ImageError::OtherElf(what.to_owned()));
    match bytes.get(4) {
        Some(&elf::ELFCLASS64) => {}
        Some(&elf::ELFCLASS32) => return other("a 32-bit ELF file"),
        _ => return Err(ImageError::Damaged("its header")),
    }
    if bytes.get(5) == Some(&elf::ELFDATA2MSB) {
        return other("a big-endian ELF file");
    }
    let Ok(header) = FileHeader64::<LittleEndian>::parse(bytes) else {
        return Err(ImageError::Damaged("its header"));
    };
    let endian = LittleEndian;
    let kind = header.e_type(endian);
    match header.e_machine(endian) {
        EM_CUDA => complete(header, bytes).map(|()| ImageKind::Cubin),
        EM_AMDGPU => complete(header, bytes).map(|()| ImageKind::AmdGpu),
        elf::EM_X86_64 => match kind {
            elf::ET_DYN => {
                complete(header, bytes)?;
                segments::in_order(header, bytes)?;
                if is_program(header, bytes) {
                    return other("an x86-64 host program, not a shared object");
                }
                Ok(ImageKind::X86_64)
            }
            elf::ET_EXEC => other("an x86-64 host program, not a shared object"),
            elf::ET_REL => other("an x86-64 object file that is not linked yet"),
            elf::ET_CORE => other("a core dump"),
            _ => other("an x86-64 ELF file of an unknown type"),
        },
        elf::EM_AARCH64 => other("an ELF file for AArch64"),
        machine => Err(ImageError::OtherElf(format!(
            "an ELF file for machine {machine}"
        ))),
    }
}

/// Whether all segments and sections that the header names lie within the file.
fn complete(header: &FileHeader64<LittleEndian>, bytes: &[u8]) -> Result<(), ImageError> {
    let endian = LittleEndian;
    let segments = header
        .program_headers(endian, bytes)
        .map_err(|_| ImageError::Damaged("its program headers"))?;
    if segments.iter().any(|s| s.data(endian, bytes).is_err()) {
        return Err(ImageError::Damaged("a segment"));
    }
    let sections = header
        .section_headers(endian, bytes)
        .map_err(|_| ImageError::Damaged("its section headers"))?;
    if sections.iter().any(|s| s.data(endian, bytes).is_err()) {
        return Err(ImageError::Damaged("a section"));
    }
    if segments.is_empty() && sections.is_empty() {
        return Err(ImageError::Damaged("it has no contents"));
    }
    Ok(())
}

/// Position-independent programs look like shared objects but for their interpreter and a flag.
fn is_program(header: &FileHeader64<LittleEndian>, bytes: &[u8]) -> bool {
    let endian = LittleEndian;
    let Ok(segments) = header.program_headers(endian, bytes) else {
        return false;
    };
    let is = |kind| move |segment: &&ProgramHeader64<_>| segment.p_type(endian) == kind;
    // Of several tables the system's linker takes the last; and each is as long as the file at most.
    let table = segments.iter().rfind(is(elf::PT_DYNAMIC));
    let entries = table.and_then(|segment| segment.dynamic(endian, bytes).ok().flatten());
    segments.iter().any(|segment| is(elf::PT_INTERP)(&segment))
        || entries.unwrap_or_default().iter().any(|entry| {
            entry.d_tag.get(endian) == u64::from(elf::DT_FLAGS_1)
                && entry.d_val.get(endian) & u64::from(elf::DF_1_PIE) != 0
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An ELF header with nothing behind it but one empty section.
    pub(super) fn elf(class: u8, data: u8, machine: u16, kind: u16) -> Vec<u8> {
        let mut file = vec![0; 128];
        file[..7].copy_from_slice(&[0x7F, b'E', b'L', b'F', class, data, 1]);
        file[16..18].copy_from_slice(&kind.to_le_bytes());
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[20] = 1;
        file[40] = 64;
        file[52] = 64;
        file[58] = 64;
        file[60] = 1;
        file
    }

    #[test]
    fn kinds_by_machine() {
        for (machine, kind, expected) in [
            (190, 2, ImageKind::Cubin),
            (224, 3, ImageKind::AmdGpu),
            (62, 3, ImageKind::X86_64),
        ] {
            assert_eq!(recognise(&elf(2, 1, machine, kind)).unwrap(), expected);
        }
    }

    /// CUDA 13's assembler puts the headers wherever the last section ends.
    #[test]
    fn headers_need_no_alignment() {
        let mut file = elf(2, 1, 190, 2);
        file.splice(64..64, [0; 2]);
        file[40] += 2;
        assert_eq!(recognise(&file).unwrap(), ImageKind::Cubin);
    }

    #[test]
    fn ptx_after_comments() {
        for text in [
            ".version 8.0\n.target sm_70",
            "//\n// Generated\n//\n\n\t.version\t7.0\n",
            "/* a\n b */ // c\n.version 8.0",
        ] {
            assert_eq!(recognise(text.as_bytes()).unwrap(), ImageKind::Ptx);
        }
    }

    #[test]
    fn others_are_named() {
        let mut cut = elf(2, 1, 190, 2);
        cut.truncate(90);
        for (bytes, words) in [
            (vec![], "empty"),
            (b"hello\n".to_vec(), "so not PTX"),
            (b"// .version 8.0".to_vec(), "so not PTX"),
            (b".versions".to_vec(), "so not PTX"),
            (b"a\0b".to_vec(), "not in a format"),
            (vec![0xFF; 9], "not in a format"),
            (b"\x7FELF".to_vec(), "cut short"),
            (cut, "cut short"),
            (elf(1, 1, 3, 3), "32-bit"),
            (elf(2, 2, 0, 3), "big-endian"),
            (elf(2, 1, 62, 2), "host program"),
            (elf(2, 1, 62, 1), "object file"),
            (elf(2, 1, 183, 3), "AArch64"),
            (elf(2, 1, 243, 3), "machine 243"),
            (b"\x50\xED\x55\xBA....".to_vec(), "fatbin"),
            (
                b"__CLANG_OFFLOAD_BUNDLE__".to_vec(),
                "an offload bundle, which holds images",
            ),
            (b"\x10\xFF\x10\xAD".to_vec(), "offload binary"),
        ] {
            let said = recognise(&bytes).unwrap_err().to_string();
            assert!(said.contains(words), "{said} should say {words}");
            assert!(!said.contains('\n'));
        }
    }

    #[test]
    fn this_program_is_not_an_image() {
        let path = std::env::current_exe().unwrap();
        let said = recognise(&read(path.as_os_str()).unwrap()).unwrap_err();
        assert!(matches!(said, ImageError::OtherElf(_)), "{said}");
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        assert!(matches!(
            read(OsStr::new("/")).unwrap_err(),
            ImageError::Directory
        ));
        let said = read(OsStr::new("/no/such/file")).unwrap_err().to_string();
        assert!(said.contains("No such file"), "{said}");
    }

    /// Were each table of the many read, this would take minutes.
    #[test]
    fn many_dynamic_tables_take_no_time() {
        let mut file = elf(2, 1, 62, 3);
        let count = 60_000_u16;
        file[32] = 128;
        file[54] = 56;
        file[56..58].copy_from_slice(&count.to_le_bytes());
        let size = 128 + 56 * u64::from(count);
        for i in 0..count {
            let kind = if i == 0 {
                elf::PT_LOAD
            } else {
                elf::PT_DYNAMIC
            };
            file.extend(u64::from(kind).to_le_bytes());
            for number in [0, 0, 0, size, size, 0] {
                file.extend(number.to_le_bytes());
            }
        }
        let begun = std::time::Instant::now();
        assert_eq!(recognise(&file).unwrap(), ImageKind::X86_64);
        let took = begun.elapsed();
        assert!(took < std::time::Duration::from_secs(10), "{took:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_problem(
            mut header in prop::collection::vec(any::<u8>(), 0..200),
            elf in any::<bool>(),
            machine in prop::sample::select(vec![62_u16, 190, 224]),
        ) {
            if elf && header.len() > 20 {
                header[..6].copy_from_slice(b"\x7FELF\x02\x01");
                header[18..20].copy_from_slice(&machine.to_le_bytes());
            }
            let _ = recognise(&header);
        }
    }
}
