//! What lies where in the file; all numbers are little-endian.
//!
//! ```text
//!    0  magic, version: u32, flags: u32, a process: u32, zeros
//!   64  slot 0
//!  128  slot 1
//!  256  what the slots refer to
//! ```

/// The version of all that is in the file.
pub(crate) const VERSION: u32 = 1;
/// What files begin with.
pub(crate) const MAGIC: [u8; 8] = *b"gpurpcst";
/// The file is to outlive its run.
const KEEP: u32 = 1;
/// It is to outlive its run until a process has read it, whose number is in the header.
const KEEP_FOR: u32 = 2;

const LINE: usize = 64;
/// The header and the two slots.
pub(crate) const HEAD: usize = 3 * LINE;
/// Where payloads begin.
pub(crate) const BODY: u64 = 256;
/// No payload is longer.
pub(crate) const MOST: u64 = 64 << 20;

/// What becomes of a file when its run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes.
    Removed,
    /// It stays.
    Kept,
    /// It stays until this process has read and removed it.
    KeptFor(u32),
}

/// Why a file's start is not that of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Magic,
    Version(u32),
}

/// The first line of a file.
pub(crate) fn header(fate: Fate) -> [u8; LINE] {
    let (flags, process) = match fate {
        Fate::Removed => (0, 0),
        Fate::Kept => (KEEP, 0),
        Fate::KeptFor(process) => (KEEP_FOR, process),
    };
    let mut line = [0; LINE];
    line[..8].copy_from_slice(&MAGIC);
    line[8..12].copy_from_slice(&VERSION.to_le_bytes());
    line[12..16].copy_from_slice(&flags.to_le_bytes());
    line[16..20].copy_from_slice(&process.to_le_bytes());
    line
}

/// What the first line of a file says of its fate.
pub(crate) fn check(line: &[u8; LINE]) -> Result<Fate, Wrong> {
    if line[..8] != MAGIC {
        return Err(Wrong::Magic);
    }
    match u32_at(line, 8) {
        VERSION => Ok(match u32_at(line, 12) {
            flags if flags & KEEP != 0 => Fate::Kept,
            flags if flags & KEEP_FOR != 0 => Fate::KeptFor(u32_at(line, 16)),
            _ => Fate::Removed,
        }),
        version => Err(Wrong::Version(version)),
    }
}

/// A snapshot's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// 0: there is none.
    pub(crate) sequence: u64,
    pub(crate) time_ns: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// CRC-32 of the payload.
    pub(crate) check: u32,
}

impl Slot {
    /// Where slot `index` lies.
    pub(crate) const fn offset(index: usize) -> u64 {
        ((1 + index) * LINE) as u64
    }

    pub(crate) fn to_bytes(self) -> [u8; LINE] {
        let mut line = [0; LINE];
        let numbers = [self.sequence, self.time_ns, self.offset, self.length];
        for (place, number) in line.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        line[32..36].copy_from_slice(&self.check.to_le_bytes());
        let own = crc32fast::hash(&line[..LINE - 4]);
        line[LINE - 4..].copy_from_slice(&own.to_le_bytes());
        line
    }

    /// The slot in these bytes, unless they are being written, or destroyed.
    pub(crate) fn from_bytes(line: &[u8; LINE]) -> Option<Self> {
        let slot = Self {
            sequence: u64_at(line, 0),
            time_ns: u64_at(line, 8),
            offset: u64_at(line, 16),
            length: u64_at(line, 24),
            check: u32_at(line, 32),
        };
        let whole = crc32fast::hash(&line[..LINE - 4]) == u32_at(line, LINE - 4);
        let placed = slot.offset >= BODY && slot.length <= MOST;
        (whole && placed && slot.sequence > 0).then_some(slot)
    }
}

/// The three lines of a file's start.
pub(crate) fn lines(head: &[u8; HEAD]) -> [[u8; LINE]; 3] {
    let mut lines = [[0; LINE]; 3];
    for (line, bytes) in lines.iter_mut().zip(head.chunks_exact(LINE)) {
        line.copy_from_slice(bytes);
    }
    lines
}

fn u32_at(line: &[u8; LINE], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&line[at..at + 4]);
    u32::from_le_bytes(bytes)
}

fn u64_at(line: &[u8; LINE], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&line[at..at + 8]);
    u64::from_le_bytes(bytes)
}
