//! A heap over a range of device addresses, kept wholly on the host: giving out and taking back
//! touches no device memory and calls no driver, so it works while a kernel runs.

use std::collections::BTreeMap;

use crate::device::DeviceError;

/// Addresses given out are multiples of this, and sizes are rounded up to it: what `cudaMalloc`
/// promises.
const ALIGNMENT: u64 = 256;
/// Blocks of at least this size start at a multiple of it: a large page of the devices.
const LARGE: u64 = 2 << 20;

/// Bytes of a heap unless something else is asked for.
const USUAL: u64 = 1 << 30;

/// First-fit allocator over one range of addresses.
///
/// ```
/// use loader_core::heap::Heap;
///
/// let mut heap = Heap::new(0x20_0000, 1 << 20);
/// let block = heap.allocate(100).unwrap();
/// assert_eq!(block % 256, 0);
/// assert!(heap.free(block));
/// assert!(!heap.free(block), "it is not ours any more");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Heap {
    /// Start and length of each free range; neighbours are joined.
    free: BTreeMap<u64, u64>,
    /// Start and length of each block that was given out.
    taken: BTreeMap<u64, u64>,
    in_use: u64,
}

impl Heap {
    /// A heap over the `size` bytes at `base`, less what it takes to align both ends. It never
    /// gives out address 0.
    pub fn new(base: u64, size: u64) -> Self {
        let end = base.saturating_add(size) / ALIGNMENT * ALIGNMENT;
        let start = base
            .max(1)
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(end);
        let mut heap = Self::default();
        if start < end {
            heap.free.insert(start, end - start);
        }
        heap
    }

    /// How large a heap is where nobody has said so, of `free` bytes of memory: a quarter, and no more
    /// than 1 GiB.
    pub fn usual_size(free: u64) -> u64 {
        (free / 4).min(USUAL)
    }

    /// What [`Device::reserve_heap`](crate::device::Device::reserve_heap) does on any device: a heap
    /// of `size` bytes that starts at a large page, in memory that `allocate` gets from the device
    /// (bytes in; address and owner out). `None` if `size` is 0.
    ///
    /// # Errors
    /// If there is one `already`; what `allocate` says, with the option that asks for less.
    pub fn reserve<B>(
        already: bool,
        size: u64,
        allocate: impl FnOnce(u64) -> Result<(u64, B), DeviceError>,
    ) -> Result<Option<(Self, B)>, DeviceError> {
        if already {
            return Err(DeviceError::Api {
                call: "reserve_heap",
                reason: "a heap is already reserved".to_owned(),
            });
        }
        if size == 0 {
            return Ok(None);
        }
        // More than there is in the world is asked of the device too, which says so.
        let room = size
            .checked_next_multiple_of(LARGE)
            .and_then(|room| room.checked_add(LARGE))
            .unwrap_or(u64::MAX);
        let (address, owner) = allocate(room).map_err(|failed| match failed {
            DeviceError::Api { call, reason } => DeviceError::Api {
                call,
                reason: format!("{reason}; a heap of {size} bytes was asked for (--heap-size)"),
            },
            other => other,
        })?;
        let heap = Self::new(address.next_multiple_of(LARGE), room - LARGE);
        Ok(Some((heap, owner)))
    }

    /// `size` bytes (0 counts as 1), or `None` when no free range is long enough.
    pub fn allocate(&mut self, size: u64) -> Option<u64> {
        let size = size.max(1).checked_next_multiple_of(ALIGNMENT)?;
        let alignment = if size >= LARGE { LARGE } else { ALIGNMENT };
        let (range, length, start) = self.free.iter().find_map(|(&range, &length)| {
            let start = range.checked_next_multiple_of(alignment)?;
            let room = length.checked_sub(start - range)?;
            (room >= size).then_some((range, length, start))
        })?;
        self.free.remove(&range);
        if start > range {
            self.free.insert(range, start - range);
        }
        let rest = range + length - (start + size);
        if rest > 0 {
            self.free.insert(start + size, rest);
        }
        self.taken.insert(start, size);
        self.in_use += size;
        Some(start)
    }

    /// Takes back what [`allocate`](Self::allocate) gave; `false`, and nothing changes, for any
    /// other address.
    pub fn free(&mut self, address: u64) -> bool {
        let Some(mut length) = self.taken.remove(&address) else {
            return false;
        };
        self.in_use -= length;
        let mut start = address;
        if let Some(after) = self.free.remove(&(start + length)) {
            length += after;
        }
        if let Some((&before, &gap)) = self.free.range(..start).next_back()
            && before + gap == start
        {
            self.free.remove(&before);
            start = before;
            length += gap;
        }
        self.free.insert(start, length);
        true
    }

    /// Bytes given out, rounding included.
    pub fn in_use(&self) -> u64 {
        self.in_use
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: u64 = 6 << 20;

    #[test]
    fn small_blocks_are_aligned_and_apart() {
        let mut heap = Heap::new(BASE, 1024);
        let blocks: Vec<_> = std::iter::from_fn(|| heap.allocate(1)).collect();
        assert_eq!(blocks, [BASE, BASE + 256, BASE + 512, BASE + 768]);
        assert_eq!(heap.in_use(), 1024);
        for block in [blocks[1], blocks[3], blocks[2], blocks[0]] {
            assert!(heap.free(block));
        }
        assert_eq!(heap.in_use(), 0);
        assert_eq!(heap.allocate(1024), Some(BASE), "the pieces were joined");
    }

    #[test]
    fn large_blocks_start_at_a_large_page() {
        let mut heap = Heap::new(BASE, 8 << 20);
        let small = heap.allocate(300).unwrap();
        assert_eq!(heap.allocate(LARGE), Some(BASE + LARGE));
        assert_eq!(
            heap.allocate(300),
            Some(small + 512),
            "the gap before it is still used"
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut heap = Heap::new(BASE, 1000);
        assert_eq!(heap.allocate(769), None, "the end is cut to the alignment");
        assert_eq!(heap.allocate(768), Some(BASE));
        assert_eq!(heap.allocate(0), None);
        for size in [u64::MAX, u64::MAX - 255, 1 << 63] {
            assert_eq!(heap.allocate(size), None);
        }
        assert!(!heap.free(BASE + 256) && !heap.free(0) && !heap.free(u64::MAX));
    }

    #[test]
    fn a_heap_is_reserved_on_a_large_page() {
        let allocate = |room| Ok((LARGE + 5, room));
        let (mut heap, room) = Heap::reserve(false, LARGE + 1, allocate).unwrap().unwrap();
        assert_eq!(room, 3 * LARGE);
        assert_eq!(heap.allocate(2 * LARGE), Some(2 * LARGE));
        assert!(Heap::reserve(false, 0, allocate).unwrap().is_none());
        assert!(Heap::reserve(true, 1, allocate).is_err());
        let full = |_| -> Result<(u64, ()), _> {
            Err(DeviceError::Api {
                call: "allocate",
                reason: "none left".to_owned(),
            })
        };
        let said = Heap::reserve(false, u64::MAX, full)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("none left") && said.contains("--heap-size"),
            "{said}"
        );
    }

    /// The allocator in LLVM's libc asks for slabs of 2 MiB, which have to be aligned to that, among
    /// blocks of other sizes.
    #[test]
    fn slabs_are_aligned_among_other_blocks() {
        let mut heap = Heap::new(BASE + 4096, 64 << 20);
        let mut slabs = Vec::new();
        for small in (1..).map(|n| n * 777) {
            let Some(slab) = heap.allocate(LARGE) else {
                break;
            };
            assert_eq!(slab % LARGE, 0);
            slabs.push(slab);
            heap.allocate(small);
            if slabs.len() % 3 == 0 {
                assert!(heap.free(slabs[slabs.len() / 2]));
                assert_eq!(heap.allocate(LARGE), Some(slabs[slabs.len() / 2]));
            }
        }
        // All that there is room for, less what the small blocks have broken.
        assert!(slabs.len() >= 29, "{}", slabs.len());
        slabs.sort_unstable();
        assert!(slabs.windows(2).all(|pair| pair[0] + LARGE <= pair[1]));
    }

    #[test]
    fn a_heap_leaves_most_of_a_small_device() {
        assert_eq!(Heap::usual_size(u64::MAX), 1 << 30);
        assert_eq!(Heap::usual_size(4 << 30), 1 << 30);
        assert_eq!(Heap::usual_size(1 << 30), 256 << 20);
        assert_eq!(Heap::usual_size(3), 0);
    }

    #[test]
    fn odd_ranges_are_no_trouble() {
        for (base, size) in [
            (0, 0),
            (0, 255),
            (u64::MAX, 9),
            (u64::MAX - 300, 300),
            (5, 100),
        ] {
            assert_eq!(Heap::new(base, size).allocate(1), None, "{base} {size}");
        }
        assert_eq!(
            Heap::new(0, 1024).allocate(1),
            Some(256),
            "never a null pointer"
        );
        assert_eq!(Heap::default().allocate(1), None);
    }

    proptest! {
        #[test]
        fn blocks_never_overlap_and_nothing_is_lost(
            steps in prop::collection::vec((any::<bool>(), 0..5_000_000_u64), 1..200)
        ) {
            let size = 64 << 20;
            let mut heap = Heap::new(BASE, size);
            let mut blocks: Vec<(u64, u64)> = Vec::new();
            for (give, number) in steps {
                if give || blocks.is_empty() {
                    let Some(start) = heap.allocate(number) else { continue };
                    let end = start + number.max(1);
                    prop_assert!(start >= BASE && end <= BASE + size);
                    prop_assert_eq!(start % if number >= LARGE { LARGE } else { ALIGNMENT }, 0);
                    prop_assert!(blocks.iter().all(|&(s, e)| end <= s || e <= start));
                    blocks.push((start, end));
                } else {
                    let (start, _) = blocks.swap_remove(number as usize % blocks.len());
                    prop_assert!(heap.free(start));
                }
            }
            for (start, _) in blocks {
                prop_assert!(heap.free(start));
            }
            prop_assert_eq!(heap.in_use(), 0);
            prop_assert_eq!(heap.allocate(size), Some(BASE));
        }
    }
}
