//! Bundles of `clang-offload-bundler`: a table of places and names, then what they name.
//!
//! | offset | what |
//! |---|---|
//! | 0 | [`MAGIC`] |
//! | 24 | u64: number of entries |
//! | 32 | for each: u64 offset, u64 size, u64 length of its name, the name |
//!
//! A name is `KIND-TRIPLE-ARCHITECTURE`. Compressed, such a file stands behind a header: [`COMPRESSED`],
//! u16 version, u16 method (0 zlib, 1 zstd), then in version 1 a u32 with the size that it had, in
//! versions 2 and 3 the size of the file and the size that it had, u32 or u64 each; last, 8 bytes of a
//! checksum, which is not looked at.

use super::entry::{Entry, Names};
use super::read::{Budget, disjoint, name, slice, u16_at, u32_at, u64_at};
use super::unpack::{Packing, unpack};
use super::{ContainerError, Sort, owned};

/// The first bytes.
pub(super) const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// The first bytes of a compressed one.
pub(super) const COMPRESSED: &[u8] = b"CCOB";

const TABLE: u64 = 32;

fn damaged(what: &'static str) -> ContainerError {
    ContainerError::Damaged(Sort::Bundle, what)
}

pub(super) fn entries<'a>(
    bytes: &'a [u8],
    budget: &mut Budget,
) -> Result<Vec<Entry<'a>>, ContainerError> {
    if !bytes.starts_with(COMPRESSED) {
        return table(bytes, budget);
    }
    let unpacked = expand(bytes, budget)?;
    if !unpacked.starts_with(MAGIC) {
        return Err(damaged("what comes out of it is no bundle"));
    }
    table(&unpacked, budget).map(owned)
}

/// What a compressed bundle was.
fn expand(bytes: &[u8], budget: &mut Budget) -> Result<Vec<u8>, ContainerError> {
    let header = || {
        let wide = |offset| u32_at(bytes, offset).map(u64::from);
        let all = bytes.len() as u64;
        let version = u16_at(bytes, 4)?;
        // The sizes of the file and of what it was, and where the header ends.
        let sizes = match version {
            1 => Some((all, wide(8)?, 20)),
            2 => Some((wide(8)?, wide(12)?, 24)),
            3 => Some((u64_at(bytes, 8)?, u64_at(bytes, 16)?, 32)),
            _ => None,
        };
        Some((version, u16_at(bytes, 6)?, sizes))
    };
    let (version, method, sizes) = header().ok_or(damaged("its header"))?;
    let Some((file, size, start)) = sizes else {
        return Err(ContainerError::Version(Sort::Bundle, version.into()));
    };
    let packing = match method {
        0 => Packing::Zlib,
        1 => Packing::Zstd,
        method => return Err(ContainerError::Method(Sort::Bundle, method.into())),
    };
    let packed = file
        .checked_sub(start)
        .and_then(|length| slice(bytes, start, length))
        .ok_or(damaged("its size"))?;
    budget.unpacked(Sort::Bundle, size)?;
    unpack(Sort::Bundle, packing, packed, size)
}

fn table<'a>(bytes: &'a [u8], budget: &mut Budget) -> Result<Vec<Entry<'a>>, ContainerError> {
    let count = u64_at(bytes, 24).ok_or(damaged("its header"))?;
    budget.entries(Sort::Bundle, count)?;
    let mut found = Vec::new();
    let mut places = Vec::new();
    let mut at = TABLE;
    for _ in 0..count {
        let numbers = || {
            Some((
                u64_at(bytes, at)?,
                u64_at(bytes, at + 8)?,
                u64_at(bytes, at + 16)?,
            ))
        };
        let (offset, size, length) = numbers().ok_or(damaged("its table"))?;
        let id = slice(bytes, at + 24, length)
            .and_then(name)
            .ok_or(damaged("the name of an entry"))?;
        let data = slice(bytes, offset, size).ok_or(damaged("the place of an entry"))?;
        at += 24 + length;
        places.push((offset, size));
        if !data.is_empty() {
            found.push((id, data));
        }
    }
    places.push((0, at));
    // Each entry is looked at whole: many of the same bytes would take their number times as long.
    if !disjoint(places) {
        return Err(damaged("two entries have bytes in common"));
    }
    let entry = |(id, data)| Entry::plain(names(id), data);
    Ok(found.into_iter().map(entry).collect())
}

/// The parts of an entry's name. Triples have three or four parts; the fourth is empty as a rule, and
/// older tools left it out.
fn names(id: &str) -> Names {
    let (producer, target) = id.split_once('-').unwrap_or(("", id));
    let is_processor = |part: &str| part.starts_with("gfx") || part.starts_with("sm_");
    let mut ends = target.match_indices('-').map(|(at, _)| at).skip(2);
    let third = ends.next();
    let fourth = ends.next();
    let split = |at: usize| (&target[..at], &target[at + 1..]);
    let (triple, architecture) = match (third.map(split), fourth.map(split)) {
        (Some((triple, rest)), _) if is_processor(rest) => (triple, rest),
        (_, Some((triple, rest))) => (triple, rest),
        _ => (target, ""),
    };
    Names {
        producer: producer.to_owned(),
        triple: triple.trim_end_matches('-').to_owned(),
        architecture: architecture.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_three_parts() {
        for (id, producer, triple, architecture) in [
            (
                "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
                "hip",
                "amdgcn-amd-amdhsa",
                "gfx90a:sramecc+:xnack-",
            ),
            (
                "hipv4-amdgcn-amd-amdhsa-gfx1100",
                "hipv4",
                "amdgcn-amd-amdhsa",
                "gfx1100",
            ),
            (
                "hipv4-amdgcn-amd-amdhsa--gfx11-generic",
                "hipv4",
                "amdgcn-amd-amdhsa",
                "gfx11-generic",
            ),
            (
                "host-x86_64-unknown-linux-gnu-",
                "host",
                "x86_64-unknown-linux-gnu",
                "",
            ),
            (
                "host-x86_64-unknown-linux",
                "host",
                "x86_64-unknown-linux",
                "",
            ),
            (
                "openmp-nvptx64-nvidia-cuda--sm_90",
                "openmp",
                "nvptx64-nvidia-cuda",
                "sm_90",
            ),
            ("", "", "", ""),
            ("-", "", "", ""),
            ("----", "", "", ""),
            ("a-b", "a", "b", ""),
        ] {
            let expected = Names {
                producer: producer.to_owned(),
                triple: triple.to_owned(),
                architecture: architecture.to_owned(),
            };
            assert_eq!(names(id), expected, "{id}");
        }
    }
}
