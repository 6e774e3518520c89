//! A dispatch: the packet, the kernel's descriptor, and the waves that they ask for.

use std::sync::Arc;

use crate::code::CodeMap;
use crate::group::Group;
use crate::isa::operand::{EXEC, V0};
use crate::memory::{Space, load32, load64};
use crate::private::Private;
use crate::wave::Wave;

/// Most bytes of local memory of a workgroup.
pub(crate) const MOST_LOCAL: u32 = 65536;
/// Most work-items of a workgroup.
pub(crate) const MOST_THREADS: u32 = 1024;

/// A kernel dispatch packet, as far as it is of interest.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Where it lies.
    pub(crate) address: u64,
    /// Work-items of a workgroup.
    pub(crate) workgroup: [u32; 3],
    /// Work-items of the grid.
    pub(crate) grid: [u32; 3],
    /// Bytes of private memory of a work-item.
    pub(crate) private: u32,
    /// Bytes of local memory of a workgroup.
    pub(crate) local: u32,
    /// The kernel's descriptor.
    pub(crate) kernel: u64,
    /// Its arguments.
    pub(crate) arguments: u64,
    /// The queue it came through.
    pub(crate) queue: u64,
    /// Its number in that queue.
    pub(crate) id: u64,
}

/// Bits of the descriptor's properties: registers that are filled in, in this order.
mod property {
    pub(super) const PRIVATE_BUFFER: u16 = 1;
    pub(super) const DISPATCH: u16 = 1 << 1;
    pub(super) const QUEUE: u16 = 1 << 2;
    pub(super) const ARGUMENTS: u16 = 1 << 3;
    pub(super) const ID: u16 = 1 << 4;
    pub(super) const FLAT_SCRATCH: u16 = 1 << 5;
    pub(super) const PRIVATE_SIZE: u16 = 1 << 6;
    pub(super) const WAVE32: u16 = 1 << 10;
}

/// What a kernel's descriptor says.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    entry: u64,
    resources1: u32,
    resources2: u32,
    properties: u16,
}

impl Descriptor {
    fn read(space: &Space, address: u64) -> Option<Self> {
        let at = space.check(address, 64, false, &mut [0; 2]).ok()?;
        // SAFETY: the space has 64 bytes there, and they stay while it is held.
        let (offset, resources1, resources2, properties) = unsafe {
            (
                load64(at.add(16)),
                load32(at.add(48)),
                load32(at.add(52)),
                load32(at.add(56)) as u16,
            )
        };
        Some(Self {
            entry: address.wrapping_add(offset),
            resources1,
            resources2,
            properties,
        })
    }
}

/// A kernel with its grid, ready to be cut into waves.
pub(crate) struct Launch {
    packet: Packet,
    descriptor: Descriptor,
    /// Lanes of a wave.
    pub(crate) lanes: u16,
    /// Workgroups in each dimension.
    groups: [u32; 3],
    codes: Arc<CodeMap>,
}

impl Launch {
    /// Checks a packet.
    pub(crate) fn new(
        packet: Packet,
        space: &Space,
        codes: Arc<CodeMap>,
    ) -> Result<Self, &'static str> {
        let threads: u64 = packet.workgroup.iter().map(|&n| u64::from(n)).product();
        if threads == 0 || threads > MOST_THREADS.into() {
            return Err("a workgroup has 1 to 1024 work-items");
        }
        if packet.grid.contains(&0) {
            return Err("a grid dimension is 0");
        }
        // As the agent says; and so the number of workgroups is far from an overflow.
        let threads = packet.grid.map(u128::from).iter().product::<u128>();
        if threads > u32::MAX.into() {
            return Err("a grid has at most 4294967295 work-items");
        }
        if packet.local > MOST_LOCAL {
            return Err("a workgroup has at most 65536 bytes of local memory");
        }
        let descriptor =
            Descriptor::read(space, packet.kernel).ok_or("its kernel object is none")?;
        if codes.find(descriptor.entry).is_none() {
            return Err("its kernel object leads to no code");
        }
        let groups = std::array::from_fn(|n| packet.grid[n].div_ceil(packet.workgroup[n]));
        let lanes = if descriptor.properties & property::WAVE32 != 0 {
            32
        } else {
            64
        };
        Ok(Self {
            packet,
            descriptor,
            lanes,
            groups,
            codes,
        })
    }

    /// Workgroups.
    pub(crate) fn groups(&self) -> u64 {
        self.groups.iter().map(|&n| u64::from(n)).product()
    }

    /// Waves of a full workgroup.
    pub(crate) fn waves(&self) -> u32 {
        let threads: u32 = self.packet.workgroup.iter().product();
        threads.div_ceil(self.lanes.into())
    }

    /// The waves of workgroup `index`; `None` if there is not enough memory.
    pub(crate) fn group(&self, index: u64) -> Option<Vec<Box<Wave>>> {
        let (x, y) = (u64::from(self.groups[0]), u64::from(self.groups[1]));
        let id = [index % x, index / x % y, index / (x * y)].map(|n| n as u32);
        // The last workgroup of a dimension may be smaller.
        let size: [u32; 3] = std::array::from_fn(|n| {
            let left = self.packet.grid[n] - id[n] * self.packet.workgroup[n];
            left.min(self.packet.workgroup[n])
        });
        let threads: u32 = size.iter().product();
        let count = threads.div_ceil(self.lanes.into());
        let codes = Arc::clone(&self.codes);
        let group = Arc::new(Group::new(id, count, self.packet.local, codes));
        (0..count)
            .map(|number| self.wave(&group, number, size, threads))
            .collect()
    }

    fn wave(
        &self,
        group: &Arc<Group>,
        number: u32,
        size: [u32; 3],
        threads: u32,
    ) -> Option<Box<Wave>> {
        let lanes = u32::from(self.lanes);
        let private = Private::new(self.packet.private, self.lanes)?;
        let entry = self.descriptor.entry;
        let mut wave = Wave::new(Arc::clone(group), number, self.lanes, entry, private);
        // Rounding and denormals.
        wave.mode = self.descriptor.resources1 >> 12 & 255;
        let first = number * lanes;
        let present = (threads - first).min(lanes);
        let exec = if present == 64 {
            u64::MAX
        } else {
            (1 << present) - 1
        };
        wave.set_mask(EXEC, exec);
        for lane in 0..present {
            let n = first + lane;
            let (x, y, z) = (n % size[0], n / size[0] % size[1], n / (size[0] * size[1]));
            wave.regs[usize::from(V0) + lane as usize] = x | y << 10 | z << 20;
        }
        self.scalars(&mut wave, group.id);
        Some(Box::new(wave))
    }

    /// The scalar registers that a kernel starts with.
    fn scalars(&self, wave: &mut Wave, id: [u32; 3]) {
        let properties = self.descriptor.properties;
        let packet = &self.packet;
        let user = [
            (property::PRIVATE_BUFFER, 4, 0),
            (property::DISPATCH, 2, packet.address),
            (property::QUEUE, 2, packet.queue),
            (property::ARGUMENTS, 2, packet.arguments),
            (property::ID, 2, packet.id),
            (property::FLAT_SCRATCH, 2, 0),
            (property::PRIVATE_SIZE, 1, packet.private.into()),
        ];
        let mut next = 0;
        for (bit, words, value) in user {
            if properties & bit != 0 {
                wave.regs[next] = value as u32;
                wave.regs[next + 1] = (value >> 32) as u32;
                next += words;
            }
        }
        // Then, behind as many as the descriptor counts, the position of the workgroup.
        let mut next = (self.descriptor.resources2 >> 1 & 31) as usize;
        for (n, id) in id.into_iter().enumerate() {
            if self.descriptor.resources2 >> (7 + n) & 1 == 1 {
                wave.regs[next] = id;
                next += 1;
            }
        }
    }
}
