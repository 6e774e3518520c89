//! Numbers and ranges out of bytes that are not believed.

use super::super::MAX_IMAGE;
use super::{ContainerError, MOST_ENTRIES, Sort};

/// The longest name of a target or of who made an entry.
const LONGEST: usize = 1024;
/// Strings that entries have at most, on average: tools write two.
const STRINGS: u64 = 64;

/// The `size` bytes at `offset`, if there are so many.
pub(super) fn slice(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = usize::try_from(offset.checked_add(size)?).ok()?;
    bytes.get(start..end)
}

pub(super) fn u16_at(bytes: &[u8], offset: u64) -> Option<u16> {
    let found = slice(bytes, offset, 2)?.try_into().ok()?;
    Some(u16::from_le_bytes(found))
}

pub(super) fn u32_at(bytes: &[u8], offset: u64) -> Option<u32> {
    let found = slice(bytes, offset, 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(found))
}

pub(super) fn u64_at(bytes: &[u8], offset: u64) -> Option<u64> {
    let found = slice(bytes, offset, 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(found))
}

/// Text that is not longer than names are.
pub(super) fn name(bytes: &[u8]) -> Option<&str> {
    let short = bytes.len() <= LONGEST;
    std::str::from_utf8(bytes).ok().filter(|_| short)
}

/// The text from `offset` to the first NUL.
pub(super) fn name_at(bytes: &[u8], offset: u64) -> Option<&str> {
    let text = bytes.get(usize::try_from(offset).ok()?..)?;
    let end = text.iter().take(LONGEST + 1).position(|&byte| byte == 0)?;
    name(&text[..end])
}

/// Whether no two of these ranges, which are pairs of start and size, have a byte in common.
pub(super) fn disjoint(mut ranges: Vec<(u64, u64)>) -> bool {
    ranges.retain(|&(_, size)| size > 0);
    ranges.sort_unstable();
    ranges
        .windows(2)
        .all(|pair| pair[0].0.saturating_add(pair[0].1) <= pair[1].0)
}

/// What one file may ask for, with all that is in it.
pub(super) struct Budget {
    bytes: u64,
    entries: u64,
    strings: u64,
}

impl Budget {
    pub(super) const fn new() -> Self {
        Self {
            bytes: MAX_IMAGE,
            entries: MOST_ENTRIES,
            strings: MOST_ENTRIES * STRINGS,
        }
    }

    /// Another `size` bytes are unpacked.
    pub(super) fn unpacked(&mut self, sort: Sort, size: u64) -> Result<(), ContainerError> {
        let left = self.bytes.checked_sub(size);
        self.bytes = left.ok_or(ContainerError::TooLarge(sort, size))?;
        Ok(())
    }

    /// Another `count` entries are read.
    pub(super) fn entries(&mut self, sort: Sort, count: u64) -> Result<(), ContainerError> {
        let left = self.entries.checked_sub(count);
        self.entries = left.ok_or(ContainerError::TooMany(sort))?;
        Ok(())
    }

    /// An entry has another `count` strings.
    pub(super) fn strings(&mut self, sort: Sort, count: u64) -> Result<(), ContainerError> {
        let left = self.strings.checked_sub(count);
        self.strings = left.ok_or(ContainerError::Damaged(sort, "its strings"))?;
        Ok(())
    }
}
