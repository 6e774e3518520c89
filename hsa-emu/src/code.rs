//! Loaded code, decoded once.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::isa::Inst;
use crate::isa::decode::decode;

/// The longest instruction in words.
const LONGEST: usize = 4;

/// A place for the instruction that starts at each word: none yet, one, or the knowledge that it is none.
type Slots = Box<[OnceLock<Option<Box<Inst>>>]>;

/// A range of code. Decoding happens at an instruction's first execution, for any address it is jumped
/// to; the result is kept.
pub(crate) struct Code {
    /// The address of its first word.
    start: u64,
    words: Box<[u32]>,
    wave32: Slots,
    wave64: OnceLock<Slots>,
    symbols: Names,
}

/// Functions: start, size, name; sorted. An image's segments share them.
pub(crate) type Names = Arc<[(u64, u64, String)]>;

fn slots(count: usize) -> Slots {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl Code {
    /// Code of these bytes at `start`.
    pub(crate) fn new(start: u64, bytes: &[u8], symbols: Names) -> Self {
        let words: Box<[u32]> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        Self {
            start,
            wave32: slots(words.len()),
            wave64: OnceLock::new(),
            words,
            symbols,
        }
    }

    /// The number of the word at `pc`.
    #[inline(always)]
    pub(crate) fn slot(&self, pc: u64) -> Option<usize> {
        let offset = pc.wrapping_sub(self.start);
        let slot = (offset >> 2) as usize;
        (offset.is_multiple_of(4) && slot < self.words.len()).then_some(slot)
    }

    /// The word in a slot.
    pub(crate) fn word(&self, slot: usize) -> u32 {
        self.words[slot]
    }

    /// The instruction that starts in a slot, if it is one.
    #[inline(always)]
    pub(crate) fn instruction(&self, slot: usize, lanes: u16) -> Option<&Inst> {
        let cache = if lanes == 32 {
            &self.wave32
        } else {
            self.wave64.get_or_init(|| slots(self.words.len()))
        };
        let entry = &cache[slot];
        match entry.get() {
            Some(inst) => inst.as_deref(),
            None => entry.get_or_init(|| self.decode(slot, lanes)).as_deref(),
        }
    }

    #[cold]
    fn decode(&self, slot: usize, lanes: u16) -> Option<Box<Inst>> {
        let end = self.words.len().min(slot + LONGEST);
        decode(&self.words[slot..end], lanes).map(Box::new)
    }

    /// An address as a function and an offset in it.
    pub(crate) fn place(&self, pc: u64) -> String {
        let after = self.symbols.partition_point(|(start, ..)| *start <= pc);
        match after.checked_sub(1).map(|i| &self.symbols[i]) {
            Some((start, size, name)) if pc - start < *size => {
                format!("{name}+{:#x}", pc - start)
            }
            _ => String::new(),
        }
    }
}

/// All code, by address.
#[derive(Default)]
pub(crate) struct CodeMap {
    codes: RwLock<BTreeMap<u64, Arc<Code>>>,
}

impl CodeMap {
    /// Adds code.
    pub(crate) fn insert(&self, code: Code) {
        let mut codes = self.codes.write().unwrap_or_else(PoisonError::into_inner);
        codes.insert(code.start, Arc::new(code));
    }

    /// Takes away the code that starts at an address.
    pub(crate) fn remove(&self, start: u64) {
        let mut codes = self.codes.write().unwrap_or_else(PoisonError::into_inner);
        codes.remove(&start);
    }

    /// The code that has an address.
    pub(crate) fn find(&self, pc: u64) -> Option<Arc<Code>> {
        let codes = self.codes.read().unwrap_or_else(PoisonError::into_inner);
        let (_, code) = codes.range(..=pc).next_back()?;
        code.slot(pc).map(|_| Arc::clone(code))
    }
}
