//! What a cubin says of its kernels and of the constructors that it lists by their names.
//!
//! A cubin is an ELF file. Each kernel is a function whose symbol has the flag of an entry, and has a
//! section `.nv.info.NAME` of attributes: format and number in a byte each, then a 16-bit value or
//! the size of what follows.

use std::collections::BTreeMap;

use object::LittleEndian;
use object::read::elf::{ElfFile64, FileHeader, Sym};
use object::{Object as _, ObjectSection as _};

/// In a symbol's `st_other`: a kernel, not a function of one.
const ENTRY: u8 = 0x10;
/// The format of an attribute whose value follows it, as many bytes as its size says.
const SIZED: u8 = 4;
/// `EIATTR_CBANK_PARAM_SIZE`: the bytes of all parameters, where there are any.
const PARAMETERS: u8 = 0x19;

/// What is known of a cubin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cubin {
    /// The kernels with the bytes of their parameters; `None` where the cubin does not say.
    pub(crate) kernels: BTreeMap<String, Option<u32>>,
    /// The names of all global symbols of variables, in the file's order.
    pub(crate) variables: Vec<String>,
}

impl Cubin {
    /// Reads a cubin.
    ///
    /// # Errors
    /// What is wrong with it, to be put behind "the image".
    pub(crate) fn parse(image: &[u8]) -> Result<Self, String> {
        let damaged = |error| format!("is a cubin that cannot be read: {error}");
        let file = ElfFile64::<LittleEndian>::parse(image).map_err(damaged)?;
        let endian = LittleEndian;
        let sections = file.elf_header().sections(endian, image).map_err(damaged)?;
        let symbols = sections
            .symbols(endian, image, object::elf::SHT_SYMTAB)
            .map_err(damaged)?;
        let mut cubin = Self::default();
        for symbol in symbols.iter() {
            let name = symbol.name(endian, symbols.strings());
            let Some(name) = name.ok().and_then(|name| std::str::from_utf8(name).ok()) else {
                continue;
            };
            let local = symbol.st_bind() == object::elf::STB_LOCAL;
            if local || symbol.is_undefined(endian) {
                continue;
            }
            match symbol.st_type() {
                object::elf::STT_FUNC if symbol.st_other() & ENTRY != 0 => {
                    let section = file.section_by_name(&format!(".nv.info.{name}"));
                    let size = section
                        .and_then(|section| section.data().ok())
                        .and_then(parameters);
                    cubin.kernels.insert(name.to_owned(), size);
                }
                object::elf::STT_OBJECT => cubin.variables.push(name.to_owned()),
                _ => {}
            }
        }
        Ok(cubin)
    }
}

/// The bytes of a kernel's parameters; `None` if the attributes cannot be read.
fn parameters(mut attributes: &[u8]) -> Option<u32> {
    let mut size = 0;
    while let [format, attribute, low, high, rest @ ..] = attributes {
        let value = u16::from_le_bytes([*low, *high]);
        if *attribute == PARAMETERS {
            size = u32::from(value);
        }
        let behind = if *format == SIZED { value.into() } else { 0 };
        attributes = rest.get(behind..)?;
    }
    attributes.is_empty().then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_tell_the_size_of_parameters() {
        // As ptxas 12.9 writes them for `_start` and `_end`.
        let words = |words: &[u32]| {
            words
                .iter()
                .flat_map(|n| n.to_be_bytes())
                .collect::<Vec<_>>()
        };
        let start = words(&[
            0x0437_0400,
            0x8100_0000,
            0x0417_0c00,
            0x0000_0000,
            0x0300_1800,
            0x00f5_2100,
            0x0417_0c00,
            0x0000_0000,
            0x0200_1000,
            0x00f5_2100,
            0x0417_0c00,
            0x0000_0000,
            0x0100_0800,
            0x00f5_2100,
            0x0417_0c00,
            0x0000_0000,
            0x0000_0000,
            0x00f0_1100,
            0x0350_0000,
            0x031b_ff00,
            0x0431_0800,
            0x3002_0000,
            0x6002_0000,
            0x0319_2000,
            0x040a_0800,
            0x2000_0000,
            0x1002_2000,
            0x0436_0400,
            0x0800_0000,
        ]);
        assert_eq!(parameters(&start), Some(32));
        let end = words(&[
            0x0437_0400,
            0x8100_0000,
            0x0350_0000,
            0x031b_ff00,
            0x0436_0400,
            8,
        ]);
        assert_eq!(parameters(&end), Some(0));
        for cut in 0..start.len() {
            let found = parameters(&start[..cut]);
            assert!(found.is_none_or(|size| size == 0 || size == 32), "{cut}");
        }
    }

    #[test]
    fn what_is_no_cubin_is_told() {
        let said = Cubin::parse(b"\x7fELF\x02\x01").unwrap_err();
        assert!(said.starts_with("is a cubin that cannot be read"), "{said}");
    }
}
