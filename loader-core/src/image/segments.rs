//! Where the segments of a shared object lie.

use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use super::ImageError;

/// Whether the segments of a shared object lie one after the other and hold all the others: the
/// system's linker believes them, and would map one over whatever else this process has there.
pub(super) fn in_order(
    header: &FileHeader64<LittleEndian>,
    bytes: &[u8],
) -> Result<(), ImageError> {
    let endian = LittleEndian;
    let segments = header.program_headers(endian, bytes).unwrap_or_default();
    let behind = |start: u64, size: u64| start.checked_add(size);
    let mut end = Some(0);
    let is_loaded = |segment: &&ProgramHeader64<_>| segment.p_type(endian) == elf::PT_LOAD;
    for segment in segments.iter().filter(is_loaded) {
        let (start, size) = (segment.p_vaddr(endian), segment.p_memsz(endian));
        let sound = end.is_some_and(|end| start >= end) && segment.p_filesz(endian) <= size;
        end = behind(start, size).filter(|_| sound);
    }
    // What is made read-only reaches to the end of a page.
    let end = end.and_then(|end| end.checked_next_multiple_of(4096));
    let inside = |start, size| behind(start, size).is_some_and(|last| Some(last) <= end);
    let sound = segments.iter().all(|segment| {
        let size = match segment.p_type(endian) {
            elf::PT_GNU_RELRO => segment.p_memsz(endian),
            _ => segment.p_filesz(endian),
        };
        is_loaded(&segment) || size == 0 || inside(segment.p_vaddr(endian), size)
    });
    if end.is_some() && sound {
        Ok(())
    } else {
        Err(ImageError::Damaged("its program headers"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ImageKind, recognise, tests::elf as header};
    use super::*;

    /// A shared object with segments of these types, addresses and sizes in memory.
    fn shared_object(segments: &[(u32, u64, u64)]) -> Vec<u8> {
        let mut file = header(2, 1, 62, 3);
        file[32] = 128;
        file[54] = 56;
        file[56] = segments.len() as u8;
        for (kind, address, size) in segments {
            let mut segment = [0; 56];
            segment[..4].copy_from_slice(&kind.to_le_bytes());
            segment[16..24].copy_from_slice(&address.to_le_bytes());
            segment[40..48].copy_from_slice(&size.to_le_bytes());
            file.extend_from_slice(&segment);
        }
        file
    }

    #[test]
    fn segments_over_one_another_are_damage() {
        let (load, relro) = (elf::PT_LOAD, elf::PT_GNU_RELRO);
        for segments in [
            &[][..],
            &[(load, 0, 0x1800), (load, 0x2800, 0x900)],
            &[(load, 0, 0x1800), (relro, 0x1000, 0x1000)],
        ] {
            let kind = recognise(&shared_object(segments));
            assert_eq!(kind.unwrap(), ImageKind::X86_64, "{segments:x?}");
        }
        for segments in [
            &[(load, 0, 0x2801), (load, 0x2800, 0x900)][..],
            &[(load, 0x2800, 0x900), (load, 0, 0x1800)],
            &[(load, 0x1000, u64::MAX), (load, 0x2800, 0x900)],
            &[(load, u64::MAX, 0)],
            &[(load, 0, 0x1800), (relro, 0x1000, 0x1001)],
            &[(load, 0, 0x1800), (relro, u64::MAX, 2)],
        ] {
            let said = recognise(&shared_object(segments)).unwrap_err().to_string();
            assert!(
                said.contains("its program headers"),
                "{segments:x?}: {said}"
            );
        }
    }
}
