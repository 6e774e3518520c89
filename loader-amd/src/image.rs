//! Code objects: what their metadata says of the target and of each kernel.
//!
//! The metadata is a MessagePack map in an ELF note (code object version 3 and later). It is read
//! before the runtime sees the image, so that what does not fit is refused in a sentence.

use std::collections::BTreeMap;
use std::ops::Range;

use object::LittleEndian;
use object::elf::{FileHeader64, PF_W, PT_LOAD};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol};
use rmpv::Value;

/// Owner and type of the note.
const OWNER: &[u8] = b"AMDGPU";
const METADATA: u32 = 32;
/// What targets of code objects start with.
const TRIPLE: &str = "amdgcn-amd-amdhsa";
/// Nothing in the metadata lies deeper.
const DEPTH: usize = 16;
/// More than any kernel's arguments take: the runtime's own limit for a segment of arguments.
const MOST_ARGUMENTS: u64 = 64 << 10;
/// More metadata than any code object has: in memory each byte of it may take dozens.
const MOST_METADATA: usize = 64 << 20;
/// More segments that are written to than linkers make: each global is looked for in all.
const MOST_DATA: usize = 64;
/// What is said of bytes that count many times.
const REPEATED: &str =
    "are the same bytes many times over, so it is damaged: copy or build it again";

/// What is known of a code object.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeObject {
    /// What it is built for: `amdgcn-amd-amdhsa--gfx1100`.
    pub(crate) target: String,
    pub(crate) kernels: Vec<KernelInfo>,
    /// Where its writable data will lie, counted from where it is loaded.
    pub(crate) data: Vec<Range<u64>>,
    /// Name and place of each global whose name is its own.
    pub(crate) globals: BTreeMap<String, u64>,
}

/// What is known of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelInfo {
    pub(crate) name: String,
    /// The symbol of its descriptor: `_start.kd`.
    pub(crate) symbol: String,
    pub(crate) arguments: Vec<Argument>,
    /// Bytes of its arguments.
    pub(crate) kernarg: u32,
    /// Bytes of each block.
    pub(crate) group: u32,
    /// Bytes of stack of each thread; the least, if the stack is dynamic.
    pub(crate) private: u32,
    pub(crate) dynamic_stack: bool,
    /// Lanes of a warp.
    pub(crate) lanes: u32,
    /// Most threads of a block.
    pub(crate) threads: u32,
    pub(crate) vector_registers: u32,
    pub(crate) scalar_registers: u32,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) offset: u32,
    pub(crate) size: u32,
    /// `by_value`, `global_buffer`, `hidden_block_count_x`, ...
    pub(crate) kind: String,
}

impl CodeObject {
    /// Reads the metadata of a code object.
    ///
    /// # Errors
    /// What is wrong with it, to be put behind "the image".
    pub(crate) fn parse(image: &[u8]) -> Result<Self, String> {
        let file = ElfFile64::<LittleEndian>::parse(image)
            .map_err(|error| format!("is an ELF file that cannot be read: {error}"))?;
        let metadata = metadata(image)?;
        let target = string(&metadata, "amdhsa.target");
        if target.is_empty() {
            return Err("does not say which AMD GPU it is built for".to_owned());
        }
        let kernels = field(&metadata, "amdhsa.kernels").and_then(Value::as_array);
        let kernels = kernels.map_or(&[][..], Vec::as_slice);
        Ok(Self {
            target,
            kernels: kernels
                .iter()
                .map(KernelInfo::new)
                .collect::<Result<_, _>>()?,
            data: data(image)?,
            globals: unambiguous(&globals(image, &file)?),
        })
    }

    pub(crate) fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

impl KernelInfo {
    fn new(value: &Value) -> Result<Self, String> {
        let name = string(value, ".name");
        let damaged = |what: &str| format!("has metadata that is damaged: {what} of kernel {name}");
        let number = |key: &str| match field(value, key) {
            None => Ok(0),
            Some(found) => found
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
                .ok_or_else(|| damaged(key)),
        };
        let arguments = field(value, ".args").and_then(Value::as_array);
        let arguments = arguments
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .map(|argument| {
                let place = |key| {
                    field(argument, key)?
                        .as_u64()
                        .filter(|&n| n < MOST_ARGUMENTS)
                };
                Some(Argument {
                    offset: place(".offset")? as u32,
                    size: place(".size")? as u32,
                    kind: string(argument, ".value_kind"),
                })
            });
        let kernarg = number(".kernarg_segment_size")?;
        if u64::from(kernarg) > MOST_ARGUMENTS {
            return Err(damaged(".kernarg_segment_size"));
        }
        Ok(Self {
            symbol: string(value, ".symbol"),
            arguments: arguments
                .collect::<Option<_>>()
                .ok_or_else(|| damaged(".args"))?,
            kernarg,
            group: number(".group_segment_fixed_size")?,
            private: number(".private_segment_fixed_size")?,
            dynamic_stack: field(value, ".uses_dynamic_stack").and_then(Value::as_bool)
                == Some(true),
            lanes: number(".wavefront_size")?,
            threads: number(".max_flat_workgroup_size")?,
            vector_registers: number(".vgpr_count")?,
            scalar_registers: number(".sgpr_count")?,
            name,
        })
    }
}

/// Whether code for `image` runs where code for `agent` does: the same processor, and each feature
/// that the image wants on or off is so there.
pub(crate) fn fits(image: &str, agent: &str) -> bool {
    let mut wanted = image.split(':');
    let mut given = agent.split(':');
    wanted.next() == given.next() && {
        let given: Vec<_> = given.collect();
        wanted.all(|feature| given.contains(&feature))
    }
}

/// How well code for `architecture`, a processor with its features as containers have it, runs on an
/// agent of these instruction sets: code for more features before code for fewer, and for one
/// processor before code for all of a kind; last, what does not say which.
pub(crate) fn rank(architecture: &str, isas: &[String]) -> Option<u32> {
    if architecture.is_empty() {
        return Some(0);
    }
    let image = format!("{TRIPLE}--{architecture}");
    let features = architecture.matches(':').count() as u32;
    let generic = architecture
        .split(':')
        .next()
        .is_some_and(|processor| processor.ends_with("-generic"));
    let rank = if generic { 1 } else { 1 << 16 };
    (isas.iter().any(|isa| fits(&image, isa))).then_some(rank + features)
}

/// The processor and its features: what stands behind the triple.
pub(crate) fn processor(target: &str) -> &str {
    target
        .rsplit_once("--")
        .map_or(target, |(_, processor)| processor)
}

fn metadata(image: &[u8]) -> Result<Value, String> {
    let endian = LittleEndian;
    let Ok(header) = FileHeader64::<LittleEndian>::parse(image) else {
        return Err("has no ELF header that can be read".to_owned());
    };
    let mut left = image.len() as u64;
    for segment in header.program_headers(endian, image).unwrap_or_default() {
        let Ok(Some(mut notes)) = segment.notes(endian, image) else {
            continue;
        };
        left = left
            .checked_sub(segment.p_filesz(endian))
            .ok_or_else(|| format!("has notes that {REPEATED}"))?;
        while let Ok(Some(note)) = notes.next() {
            if note.name() == OWNER && note.n_type(endian) == METADATA {
                let size = note.desc().len();
                if size > MOST_METADATA {
                    return Err(format!(
                        "has {size} bytes of metadata, and 64 MiB is the most: split it into several"
                    ));
                }
                return rmpv::decode::read_value_with_max_depth(&mut note.desc(), DEPTH)
                    .map_err(|error| format!("has metadata that cannot be read: {error}"));
            }
        }
    }
    Err(
        "has no metadata of code object version 3 or later: build it with a newer compiler"
            .to_owned(),
    )
}

fn field<'v>(map: &'v Value, key: &str) -> Option<&'v Value> {
    let entries = map.as_map()?;
    entries
        .iter()
        .find(|(name, _)| name.as_str() == Some(key))
        .map(|(_, value)| value)
}

fn string(map: &Value, key: &str) -> String {
    field(map, key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Names that stand for one place each. Which of several the runtime takes is its own affair; and
/// what the host copies for the program follows from where the runtime says that a name lies.
fn unambiguous(symbols: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let mut places: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for &(name, place) in symbols {
        places
            .entry(name)
            .and_modify(|known| *known = known.filter(|&known| known == place))
            .or_insert(Some(place));
    }
    let one = |(name, place): (&str, Option<u64>)| Some((name.to_owned(), place?));
    places.into_iter().filter_map(one).collect()
}

/// Name and place of each symbol that others see. Any number of them may have the same name, or the
/// end of one: what is read of names is not more than the image has bytes.
fn globals<'i>(
    image: &[u8],
    file: &ElfFile64<'i, LittleEndian>,
) -> Result<Vec<(&'i str, u64)>, String> {
    let mut left = image.len();
    let mut found = Vec::new();
    for symbol in file.dynamic_symbols().filter(ObjectSymbol::is_definition) {
        let name = symbol
            .name_bytes()
            .map_err(|error| format!("has a symbol that cannot be read: {error}"))?;
        left = left
            .checked_sub(name.len() + 1)
            .ok_or_else(|| format!("has names that {REPEATED}"))?;
        if let Ok(name) = std::str::from_utf8(name) {
            found.push((name, symbol.address()));
        }
    }
    Ok(found)
}

/// The segments that are written to.
fn data(image: &[u8]) -> Result<Vec<Range<u64>>, String> {
    let endian = LittleEndian;
    let Ok(header) = FileHeader64::<LittleEndian>::parse(image) else {
        return Ok(Vec::new());
    };
    let segments = header.program_headers(endian, image).unwrap_or_default();
    let found: Vec<_> = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_flags(endian) & PF_W != 0)
        .map(|segment| {
            let start = segment.p_vaddr(endian);
            start..start.saturating_add(segment.p_memsz(endian))
        })
        .collect();
    if found.len() > MOST_DATA {
        return Err(format!(
            "has {} segments that are written to, and {MOST_DATA} are the most: link it with ld.lld",
            found.len()
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
