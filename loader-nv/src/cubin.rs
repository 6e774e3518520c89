//! What a cubin says of its kernels and of the constructors that it lists by their names.
//!
//! A cubin is an ELF file. Each kernel is a function whose symbol has the flag of an entry, and has a
//! section `.nv.info.NAME` of attributes: format and number in a byte each, then a 16-bit value or
//! the size of what follows.

use std::collections::BTreeMap;

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader, Sym};

use crate::arrays;

/// In a symbol's `st_other`: a kernel, not a function of one.
const ENTRY: u8 = 0x10;
/// The format of an attribute whose value follows it, as many bytes as its size says.
const SIZED: u8 = 4;
/// `EIATTR_CBANK_PARAM_SIZE`: the bytes of all parameters, where there are any.
const PARAMETERS: u8 = 0x19;
/// What the names of the sections of attributes begin with.
const INFO: &str = ".nv.info.";
/// How many times its own size is read of a cubin as names and attributes, which sound ones have
/// once each: of a name in the table of strings, any number of symbols may be the end.
const MOST: usize = 4;

/// What is known of a cubin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cubin {
    /// The kernels with the bytes of their parameters; `None` where the cubin does not say.
    pub(crate) kernels: BTreeMap<String, Option<u32>>,
    /// The names of the global variables that [`arrays`] are made of, in the file's order.
    pub(crate) variables: Vec<String>,
}

impl Cubin {
    /// Reads a cubin.
    ///
    /// # Errors
    /// What is wrong with it, to be put behind "the image".
    pub(crate) fn parse(image: &[u8]) -> Result<Self, String> {
        let damaged = |error| format!("is a cubin that cannot be read: {error}");
        let endian = LittleEndian;
        let header = FileHeader64::<LittleEndian>::parse(image).map_err(damaged)?;
        let sections = header.sections(endian, image).map_err(damaged)?;
        let symbols = sections
            .symbols(endian, image, object::elf::SHT_SYMTAB)
            .map_err(damaged)?;
        let mut left = image.len().saturating_mul(MOST);
        let mut read = |bytes: &[u8]| {
            left = left.checked_sub(bytes.len() + 1).ok_or(
                "is a cubin whose names or attributes are the same bytes many times over, so it is \
                 damaged: build it again",
            )?;
            Ok::<_, String>(())
        };
        let mut infos = BTreeMap::new();
        for section in sections.iter() {
            let name = sections.section_name(endian, section).map_err(damaged)?;
            read(name)?;
            if let Some(kernel) = name.strip_prefix(INFO.as_bytes()) {
                infos.entry(kernel).or_insert(section);
            }
        }
        let mut cubin = Self::default();
        for symbol in symbols.iter() {
            let local = symbol.st_bind() == object::elf::STB_LOCAL;
            let kernel = match symbol.st_type() {
                object::elf::STT_FUNC if symbol.st_other() & ENTRY != 0 => true,
                object::elf::STT_OBJECT => false,
                _ => continue,
            };
            if local || symbol.is_undefined(endian) {
                continue;
            }
            let name = symbol.name(endian, symbols.strings()).map_err(damaged)?;
            read(name)?;
            let Ok(text) = std::str::from_utf8(name) else {
                continue;
            };
            if kernel {
                let attributes = infos
                    .get(name)
                    .and_then(|section| section.data(endian, image).ok());
                read(attributes.unwrap_or_default())?;
                let size = attributes.and_then(parameters);
                cubin.kernels.insert(text.to_owned(), size);
            } else if arrays::is_part(text) {
                cubin.variables.push(text.to_owned());
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

    /// A cubin with so many symbols of these bytes `st_info` and `st_other`, all of `name` less
    /// `cut` bytes in front, and so many sections of attributes for kernels of that name.
    fn same(symbols: usize, sections: usize, name: &str, [info, other, cut]: [u8; 3]) -> Vec<u8> {
        let mut file = vec![0; 64];
        let attributes = [1, 0x36, 0, 0, 3, PARAMETERS, 8, 0];
        file.extend(attributes);
        let strings = file.len();
        file.extend(format!("\0{INFO}{name}\0").into_bytes());
        let strings = [strings, file.len() - strings];
        file.resize(file.len().next_multiple_of(8), 0);
        let table = [file.len(), 24 * (symbols + 1)];
        file.extend([0; 24]);
        for _ in 0..symbols {
            file.extend((1 + INFO.len() as u32 + u32::from(cut)).to_le_bytes());
            file.extend([info, other, 1, 0]);
            file.extend([0; 16]);
        }
        let headers = file.len();
        file.extend([0; 64]);
        let mut section = |name: u32, kind: u32, place: [usize; 2], link: u64, each: u64| {
            file.extend([name, kind].map(u32::to_le_bytes).concat());
            file.extend([0; 16]);
            file.extend(place.map(|n| (n as u64).to_le_bytes()).concat());
            file.extend([link, 8, each].map(u64::to_le_bytes).concat());
        };
        section(0, 3, strings, 0, 0);
        section(0, 2, table, 1, 24);
        for _ in 0..sections {
            section(1, 0x7000_0000, [64, attributes.len()], 0, 0);
        }
        let count = (3 + sections) as u16;
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[40..48].copy_from_slice(&(headers as u64).to_le_bytes());
        for (at, half) in [
            (16, 2),
            (18, 190),
            (20, 1),
            (52, 64),
            (58, 64),
            (60, count),
            (62, 1),
        ] {
            file[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        file
    }

    const VARIABLE: [u8; 3] = [0x11, 0, 0];
    const KERNEL: [u8; 3] = [0x12, ENTRY, 0];
    /// That the sections are not for.
    const OTHER_KERNEL: [u8; 3] = [0x12, ENTRY, 1];

    #[test]
    fn only_the_variables_of_arrays_are_kept() {
        let part = "__init_array_object_a_1f_101";
        let cubin = Cubin::parse(&same(1, 0, part, VARIABLE)).unwrap();
        assert_eq!(cubin.variables, [part]);
        let cubin = Cubin::parse(&same(1, 0, "other", VARIABLE)).unwrap();
        assert_eq!(cubin, Cubin::default());
        // As long as those of C++ templates are.
        let long = "k".repeat(5000);
        let cubin = Cubin::parse(&same(1, 1, &long, KERNEL)).unwrap();
        assert_eq!(cubin.kernels, [(long, Some(8))].into());
    }

    #[test]
    fn a_name_that_many_symbols_share_is_not_kept_many_times() {
        let long = "__init_array_object_".repeat(50_000);
        for kind in [VARIABLE, KERNEL] {
            let said = Cubin::parse(&same(2000, 0, &long, kind)).unwrap_err();
            assert!(said.contains("many times over"), "{said}");
            assert!(said.contains("build it again"), "{said}");
        }
        let said = Cubin::parse(&same(0, 2000, &long, KERNEL)).unwrap_err();
        assert!(said.contains("many times over"), "{said}");
    }

    /// Were each kernel's section looked for among all, this would take minutes.
    #[test]
    fn many_kernels_and_sections_take_no_time() {
        let begun = std::time::Instant::now();
        let cubin = Cubin::parse(&same(60_000, 60_000, "k", KERNEL)).unwrap();
        assert_eq!(cubin.kernels, [("k".to_owned(), Some(8))].into());
        let cubin = Cubin::parse(&same(60_000, 60_000, "xy", OTHER_KERNEL)).unwrap();
        assert_eq!(cubin.kernels, [("y".to_owned(), None)].into());
        let took = begun.elapsed();
        assert!(took < std::time::Duration::from_secs(10), "{took:?}");
    }
}
