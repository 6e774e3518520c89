//! Offload binaries of LLVM: a header, entries, for each a map of strings, and the images.
//!
//! | offset | header | offset | entry |
//! |---|---|---|---|
//! | 0 | [`MAGIC`] | 0 | u16: what it is |
//! | 4 | u32: version | 2 | u16: who made it |
//! | 8 | u64: size of all | 4 | u32: flags, bit 0: without an image |
//! | 16 | u64: where entries start | 8 | u64, u64: where strings start, how many |
//! | 24 | u64: how many (version 1: the size of the one) | 24 | u64, u64: the image |
//!
//! Strings are pairs of offsets, a key and a value that each end with a NUL; since version 2 the size
//! of the value follows. Version 3 has a u64 more in the header: unless it is 0, what stands behind
//! the header is compressed, and the number is the size that the whole had. The next binary starts at
//! the next multiple of 8.

use super::entry::{Entry, Names};
use super::read::{Budget, disjoint, name, name_at, slice, u16_at, u32_at, u64_at};
use super::unpack::{Packing, ZSTD, unpack};
use super::{ContainerError, Sort, owned};

/// The first bytes.
pub(super) const MAGIC: &[u8] = &[0x10, 0xFF, 0x10, 0xAD];

/// Bytes of the header up to version 2; of an entry.
const HEADER: u64 = 32;
const ENTRY: u64 = 40;
/// The flag of an entry that is only its strings.
const METADATA: u32 = 1;
/// Who made it, by bit.
const PRODUCERS: [&str; 4] = ["openmp", "cuda", "hip", "sycl"];

fn damaged(what: &'static str) -> ContainerError {
    ContainerError::Damaged(Sort::OffloadBinary, what)
}

pub(super) fn entries<'a>(
    bytes: &'a [u8],
    budget: &mut Budget,
) -> Result<Vec<Entry<'a>>, ContainerError> {
    let mut entries = Vec::new();
    let mut rest = bytes;
    while rest.iter().any(|&byte| byte != 0) {
        if !rest.starts_with(MAGIC) {
            return Err(damaged("something else stands behind it"));
        }
        let (binary, behind) = split(rest)?;
        entries.extend(one(binary, budget)?);
        rest = behind;
    }
    Ok(entries)
}

/// The binary at the start, and what is behind it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), ContainerError> {
    let size = u64_at(bytes, 8).filter(|&size| size >= HEADER);
    let binary = size.and_then(|size| slice(bytes, 0, size));
    let binary = binary.ok_or(damaged("its size"))?;
    let next = binary.len().next_multiple_of(8);
    Ok((binary, bytes.get(next..).unwrap_or_default()))
}

fn one<'a>(bytes: &'a [u8], budget: &mut Budget) -> Result<Vec<Entry<'a>>, ContainerError> {
    let version = u32_at(bytes, 4).ok_or(damaged("its header"))?;
    match version {
        1 | 2 => table(version, bytes, budget),
        3 => match u64_at(bytes, HEADER).ok_or(damaged("its header"))? {
            0 => table(version, bytes, budget),
            size => {
                let unpacked = expand(bytes, size, budget)?;
                table(version, &unpacked, budget).map(owned)
            }
        },
        _ => Err(ContainerError::Version(Sort::OffloadBinary, version.into())),
    }
}

/// What a compressed binary was: the header, for which there is no use any more, and what follows.
fn expand(bytes: &[u8], size: u64, budget: &mut Budget) -> Result<Vec<u8>, ContainerError> {
    let start = u64_at(bytes, 16).filter(|start| (HEADER + 8..=size).contains(start));
    let parts = start.and_then(|start| {
        let start = usize::try_from(start).ok()?;
        bytes.split_at_checked(start)
    });
    let (header, packed) = parts.ok_or(damaged("its header"))?;
    let packing = if packed.starts_with(&ZSTD) {
        Packing::Zstd
    } else {
        Packing::Zlib
    };
    budget.unpacked(Sort::OffloadBinary, size)?;
    let body = unpack(
        Sort::OffloadBinary,
        packing,
        packed,
        size - header.len() as u64,
    )?;
    Ok([header, &body].concat())
}

fn table<'a>(
    version: u32,
    bytes: &'a [u8],
    budget: &mut Budget,
) -> Result<Vec<Entry<'a>>, ContainerError> {
    let numbers = || Some((u64_at(bytes, 16)?, u64_at(bytes, 24)?));
    let (start, count) = numbers().ok_or(damaged("its header"))?;
    let count = if version == 1 { 1 } else { count };
    budget.entries(Sort::OffloadBinary, count)?;
    let size = count * ENTRY;
    let table = slice(bytes, start, size).ok_or(damaged("its entries"))?;
    let mut places = vec![(0, HEADER), (start, size)];
    let mut found = Vec::new();
    for entry in table.chunks_exact(ENTRY as usize) {
        let numbers = || {
            Some((
                u32_at(entry, 4)?,
                (u64_at(entry, 8)?, u64_at(entry, 16)?),
                (u64_at(entry, 24)?, u64_at(entry, 32)?),
            ))
        };
        let (flags, strings, image) = numbers().ok_or(damaged("its entries"))?;
        let names = names(version, bytes, strings, u16_at(entry, 2), budget)?;
        let data = slice(bytes, image.0, image.1).ok_or(damaged("the place of an image"))?;
        places.push(image);
        if flags & METADATA == 0 && !data.is_empty() {
            found.push((names, data));
        }
    }
    // Each image is looked at whole: many of the same bytes would take their number times as long.
    if !disjoint(places) {
        return Err(damaged("two parts of it have bytes in common"));
    }
    let entry = |(names, data)| Entry::plain(names, data);
    Ok(found.into_iter().map(entry).collect())
}

fn names(
    version: u32,
    bytes: &[u8],
    (start, count): (u64, u64),
    producer: Option<u16>,
    budget: &mut Budget,
) -> Result<Names, ContainerError> {
    let mut names = Names {
        producer: PRODUCERS
            .iter()
            .enumerate()
            .find(|(bit, _)| producer == Some(1 << bit))
            .map_or_else(String::new, |(_, name)| (*name).to_owned()),
        ..Names::default()
    };
    let size = if version == 1 { 16 } else { 24 };
    let strings = count
        .checked_mul(size)
        .and_then(|all| slice(bytes, start, all))
        .ok_or(damaged("its strings"))?;
    budget.strings(Sort::OffloadBinary, count)?;
    for pair in strings.chunks_exact(size as usize) {
        let text = || {
            let key = name_at(bytes, u64_at(pair, 0)?)?;
            let place = u64_at(pair, 8)?;
            let value = match u64_at(pair, 16) {
                None => name_at(bytes, place)?,
                Some(length) => name(slice(bytes, place, length)?)?,
            };
            Some((key, value))
        };
        match text().ok_or(damaged("a string"))? {
            ("triple", value) => value.trim_end_matches('-').clone_into(&mut names.triple),
            ("arch", value) => value.clone_into(&mut names.architecture),
            _ => {}
        }
    }
    Ok(names)
}
