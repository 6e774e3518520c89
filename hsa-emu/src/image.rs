//! Loads a code object: an ELF file for gfx1100.

use std::sync::{Arc, PoisonError};

use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolKind};

use crate::code::{Code, Names};
use crate::machine::Machine;
use crate::memory::{Access, Region, load16, load32, pointer, store32, store64};
use crate::pages::Pages;

/// The processor in an AMD GPU file's flags.
const MACHINE_MASK: u32 = 0xff;
const GFX1100: u32 = 0x41;
/// The OS ABI of HSA.
const HSA: u8 = 64;
/// The most that a code object may take.
const LARGEST: u64 = 1 << 30;

/// Relocations, by the numbers of LLVM's AMDGPU usage guide.
mod reloc {
    pub(super) const NONE: u32 = 0;
    pub(super) const ABS32_LO: u32 = 1;
    pub(super) const ABS32_HI: u32 = 2;
    pub(super) const ABS64: u32 = 3;
    pub(super) const REL32: u32 = 4;
    pub(super) const REL64: u32 = 5;
    pub(super) const ABS32: u32 = 6;
    pub(super) const REL32_LO: u32 = 10;
    pub(super) const REL32_HI: u32 = 11;
    pub(super) const RELATIVE64: u32 = 13;
}

/// Why a code object is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// No code object, or a damaged one.
    Malformed,
    /// For another processor.
    OtherTarget,
    /// A name that it needs is defined nowhere.
    Undefined,
    /// Not enough memory.
    NoMemory,
}

/// What a symbol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolIs {
    /// A variable.
    Variable,
    /// A kernel's descriptor.
    Kernel(KernelInfo),
}

/// What a descriptor says about a kernel's needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelInfo {
    /// Bytes of local memory.
    pub(crate) local: u32,
    /// Bytes of private memory.
    pub(crate) private: u32,
    /// Bytes of arguments.
    pub(crate) arguments: u32,
    /// Calls whose stack is not known.
    pub(crate) dynamic: bool,
}

/// A symbol with its address.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    /// Its name.
    pub(crate) name: String,
    /// Its address.
    pub(crate) address: u64,
    /// Its size.
    pub(crate) size: u64,
    /// What it is.
    pub(crate) is: SymbolIs,
}

/// A loaded code object; dropping it unloads it.
pub(crate) struct Image {
    machine: &'static Machine,
    /// Kept for its memory.
    _pages: Pages,
    regions: Vec<u64>,
    codes: Vec<u64>,
    /// What it defines.
    pub(crate) symbols: Vec<Symbol>,
}

type File<'a> = ElfFile64<'a, Endianness>;
type Header = ProgramHeader64<Endianness>;

fn segments<'a>(file: &File<'a>) -> impl Iterator<Item = &'a Header> {
    let headers = file.elf_program_headers();
    let endian = file.endian();
    headers
        .iter()
        .filter(move |header| header.p_type(endian) == elf::PT_LOAD && header.p_memsz(endian) > 0)
}

/// Checks the header and gives the file.
fn parse(bytes: &[u8]) -> Result<File<'_>, Refused> {
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(|_| Refused::Malformed)?;
    let endian = header.endian().map_err(|_| Refused::Malformed)?;
    let is_elf = header.is_little_endian() && header.e_machine(endian) == elf::EM_AMDGPU;
    if !is_elf || header.e_ident().os_abi != HSA || header.e_type(endian) != elf::ET_DYN {
        return Err(Refused::Malformed);
    }
    if header.e_flags(endian) & MACHINE_MASK != GFX1100 {
        return Err(Refused::OtherTarget);
    }
    File::parse(bytes).map_err(|_| Refused::Malformed)
}

impl Image {
    /// Loads `bytes` into the memory of `machine`.
    pub(crate) fn load(machine: &'static Machine, bytes: &[u8]) -> Result<Self, Refused> {
        let file = parse(bytes)?;
        let endian = file.endian();
        let mut size = 0;
        for header in segments(&file) {
            let start = header.p_vaddr(endian);
            let end = start
                .checked_add(header.p_memsz(endian))
                .ok_or(Refused::Malformed)?;
            size = size.max(end);
        }
        if size == 0 || size > LARGEST {
            return Err(Refused::Malformed);
        }
        let pages = Pages::new(size).ok_or(Refused::NoMemory)?;
        let base = pages.start;
        for header in segments(&file) {
            let data = header
                .data(endian, bytes)
                .map_err(|()| Refused::Malformed)?;
            if data.len() as u64 > header.p_memsz(endian) {
                return Err(Refused::Malformed);
            }
            let at = pointer(base + header.p_vaddr(endian));
            // SAFETY: the pages have room for every segment's memory size, which the data does not
            // exceed, and nobody else knows of them yet.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at, data.len()) };
        }
        relocate(&file, base, size)?;
        let symbols = symbols(&file, base, size)?;
        let mut image = Self {
            machine,
            _pages: pages,
            regions: Vec::new(),
            codes: Vec::new(),
            symbols,
        };
        image.publish(&file, base)?;
        Ok(image)
    }

    /// Makes the segments known to the device.
    fn publish(&mut self, file: &File<'_>, base: u64) -> Result<(), Refused> {
        let endian = file.endian();
        let names: Names = functions(file, base).into();
        for header in segments(file) {
            let start = base + header.p_vaddr(endian);
            let size = header.p_memsz(endian);
            let executable = header.p_flags(endian) & elf::PF_X != 0;
            let access = if header.p_flags(endian) & elf::PF_W != 0 {
                Access::Write
            } else {
                Access::Read
            };
            if executable {
                // What the file has of it: the rest is zeros, which are no instructions, and may be
                // far more than the file.
                let size = header.p_filesz(endian).min(size);
                // SAFETY: a segment within the pages, relocated; no program may write to it yet, as
                // the space does not have it.
                let bytes = unsafe { std::slice::from_raw_parts(pointer(start), size as usize) };
                let code = Code::new(start, bytes, Arc::clone(&names));
                self.machine.codes.insert(code);
                self.codes.push(start);
            }
            let mut space = self
                .machine
                .space
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if !space.insert(Region {
                start,
                size,
                access,
            }) {
                return Err(Refused::Malformed);
            }
            drop(space);
            self.regions.push(start);
        }
        Ok(())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        for &start in &self.codes {
            self.machine.codes.remove(start);
        }
        let mut space = self
            .machine
            .space
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        for &start in &self.regions {
            space.remove(start);
        }
    }
}

/// Applies the dynamic relocations.
fn relocate(file: &File<'_>, base: u64, size: u64) -> Result<(), Refused> {
    let Some(relocations) = file.dynamic_relocations() else {
        return Ok(());
    };
    let table = file.dynamic_symbol_table();
    for (offset, relocation) in relocations {
        let RelocationFlags::Elf { r_type } = relocation.flags() else {
            return Err(Refused::Malformed);
        };
        let symbol = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                use object::ObjectSymbolTable;
                let symbol = table
                    .and_then(|table| table.symbol_by_index(index).ok())
                    .ok_or(Refused::Malformed)?;
                if symbol.is_undefined() {
                    return Err(Refused::Undefined);
                }
                base.wrapping_add(symbol.address())
            }
            _ => base,
        };
        let value = symbol.wrapping_add(relocation.addend() as u64);
        let place = base.wrapping_add(offset);
        let relative = value.wrapping_sub(place);
        let (value, wide) = match r_type {
            reloc::NONE => continue,
            reloc::ABS64 | reloc::RELATIVE64 => (value, true),
            reloc::REL64 => (relative, true),
            reloc::ABS32_LO | reloc::ABS32 => (value, false),
            reloc::ABS32_HI => (value >> 32, false),
            reloc::REL32 | reloc::REL32_LO => (relative, false),
            reloc::REL32_HI => (relative >> 32, false),
            _ => return Err(Refused::Malformed),
        };
        let bytes = if wide { 8 } else { 4 };
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(Refused::Malformed);
        }
        // SAFETY: within the pages, as just checked.
        unsafe {
            if wide {
                store64(pointer(place), value);
            } else {
                store32(pointer(place), value as u32);
            }
        }
    }
    Ok(())
}

/// The kernels and variables that the dynamic symbol table names.
fn symbols(file: &File<'_>, base: u64, size: u64) -> Result<Vec<Symbol>, Refused> {
    let mut found = Vec::new();
    for symbol in file.dynamic_symbols() {
        if symbol.is_undefined() || symbol.kind() != SymbolKind::Data {
            continue;
        }
        let name = symbol.name().map_err(|_| Refused::Malformed)?.to_owned();
        let end = symbol.address().checked_add(symbol.size());
        if end.is_none_or(|end| end > size) {
            return Err(Refused::Malformed);
        }
        let address = base + symbol.address();
        let is = if name.as_bytes().ends_with(b".kd") && symbol.size() == 64 {
            let at = pointer(address);
            // SAFETY: 64 bytes within the pages, as just checked.
            let (local, private, arguments, properties) = unsafe {
                (
                    load32(at),
                    load32(at.add(4)),
                    load32(at.add(8)),
                    load16(at.add(56)),
                )
            };
            SymbolIs::Kernel(KernelInfo {
                local,
                private,
                arguments,
                dynamic: properties & 1 << 11 != 0,
            })
        } else {
            SymbolIs::Variable
        };
        found.push(Symbol {
            name,
            address,
            size: symbol.size(),
            is,
        });
    }
    Ok(found)
}

/// Functions, for messages.
fn functions(file: &File<'_>, base: u64) -> Vec<(u64, u64, String)> {
    let mut names: Vec<_> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text)
        .filter_map(|symbol| {
            let name = symbol.name().ok()?.to_owned();
            Some((base.wrapping_add(symbol.address()), symbol.size(), name))
        })
        .collect();
    names.sort();
    names.dedup();
    names
}
