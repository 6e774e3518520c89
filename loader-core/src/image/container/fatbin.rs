//! Fatbins of CUDA: a header, then entries, each with a header of its own and its data behind that.
//!
//! | offset | header | offset | entry |
//! |---|---|---|---|
//! | 0 | [`MAGIC`] | 0 | u16: 1 PTX, 2 cubin |
//! | 4 | u16: version, 1 | 4 | u32: size of this header, 64 or more |
//! | 6 | u16: size of this header | 8 | u64: size of the data, a multiple of 8 |
//! | 8 | u64: size of all entries | 16 | u32: size of the data if compressed, without padding; else 0 |
//! | | | 28 | u32: architecture, 90 for sm_90 |
//! | | | 40 | u64: flags |
//! | | | 56 | u64: the size that compressed data had; else 0 |
//!
//! There is no document of this: it was read off files that `fatbinary` 13.5 and libnvfatbin 12.9 made,
//! of PTX and cubins of known architecture, with every way to compress.

use super::super::ImageKind;
use super::entry::{Entry, Names};
use super::read::{Budget, slice, u16_at, u32_at, u64_at};
use super::unpack::Packing;
use super::{ContainerError, Sort};

/// The first bytes.
pub(super) const MAGIC: &[u8] = &[0x50, 0xED, 0x55, 0xBA];

/// The least bytes of the two headers.
const HEADER: u64 = 16;
const ENTRY: u64 = 64;

/// Kinds of entries.
const PTX: u16 = 1;
const CUBIN: u16 = 2;
/// Several, compressed as one.
const JOINED: u16 = 256;

/// Flags of entries.
const LZ4: u64 = 1 << 13;
const ZSTD: u64 = 1 << 15;
/// For exactly this architecture: sm_90a.
const SPECIFIC: u64 = 1 << 20;
/// For its family: sm_100f.
const FAMILY: u64 = 1 << 21;

fn damaged(what: &'static str) -> ContainerError {
    ContainerError::Damaged(Sort::Fatbin, what)
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
        let version = u16_at(rest, 4).ok_or(damaged("its header"))?;
        if version != 1 {
            return Err(ContainerError::Version(Sort::Fatbin, version.into()));
        }
        let sizes = || Some((u64::from(u16_at(rest, 6)?), u64_at(rest, 8)?));
        let (header, size) = sizes().ok_or(damaged("its header"))?;
        let body = slice(rest, header, size).filter(|_| header >= HEADER);
        let mut body = body.ok_or(damaged("its size"))?;
        rest = &rest[header as usize + body.len()..];
        while !body.is_empty() {
            budget.entries(Sort::Fatbin, 1)?;
            let (entry, behind) = one(body)?;
            entries.extend(entry);
            body = behind;
        }
    }
    Ok(entries)
}

/// The entry at the start, unless it is empty, and what is behind it.
fn one(bytes: &[u8]) -> Result<(Option<Entry<'_>>, &[u8]), ContainerError> {
    let numbers = || {
        Some((
            u16_at(bytes, 0)?,
            (u64::from(u32_at(bytes, 4)?), u64_at(bytes, 8)?),
            (u64::from(u32_at(bytes, 16)?), u64_at(bytes, 56)?),
            (u32_at(bytes, 28)?, u64_at(bytes, 40)?),
        ))
    };
    let (kind, (header, size), (packed, unpacked), (architecture, flags)) =
        numbers().ok_or(damaged("the header of an entry"))?;
    let data = slice(bytes, header, size).filter(|_| header >= ENTRY);
    let data = data.ok_or(damaged("the size of an entry"))?;
    let behind = &bytes[header as usize + data.len()..];
    let names = Names {
        architecture: match (architecture, flags & SPECIFIC != 0, flags & FAMILY != 0) {
            (0, _, _) => String::new(),
            (number, true, _) => format!("sm_{number}a"),
            (number, false, true) => format!("sm_{number}f"),
            (number, false, false) => format!("sm_{number}"),
        },
        ..Names::default()
    };
    let image = match kind {
        PTX => ImageKind::Ptx,
        CUBIN => ImageKind::Cubin,
        JOINED => {
            let other = Entry::other(names, "entries joined by `fatbinary --concat`");
            return Ok((Some(other), behind));
        }
        _ => {
            let other = Entry::other(names, format!("an entry of kind {kind}"));
            return Ok((Some(other), behind));
        }
    };
    let packing = match (flags & LZ4 != 0, flags & ZSTD != 0) {
        (false, false) => None,
        (true, false) => Some(Packing::Lz4),
        (false, true) => Some(Packing::Zstd),
        (true, true) => return Err(ContainerError::Method(Sort::Fatbin, flags & (LZ4 | ZSTD))),
    };
    let entry = match packing {
        None if data.is_empty() => None,
        None => Some(Entry::plain(names, data)),
        Some(packing) => {
            let data = slice(data, 0, packed).ok_or(damaged("the size of an entry"))?;
            Some(Entry::packed(names, image, data, packing, unpacked))
        }
    };
    Ok((entry, behind))
}
