//! Kernels: the queue, the packet that starts one, seeing it end.

use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use hsa_sys::{
    Api, HSA_AGENT_INFO_QUEUE_MAX_SIZE, HSA_AGENT_INFO_QUEUE_MIN_SIZE, HSA_FENCE_SCOPE_SYSTEM,
    HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS, HSA_PACKET_HEADER_BARRIER,
    HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE, HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
    HSA_PACKET_HEADER_TYPE, HSA_PACKET_TYPE_KERNEL_DISPATCH, HSA_QUEUE_TYPE_MULTI, hsa_agent_t,
    hsa_kernel_dispatch_packet_t, hsa_queue_t, hsa_signal_t,
};
use loader_core::device::{Device as _, DeviceError, Grid, Kernel};
use rpc_types::image::GPU_KERNELS;

use crate::agents::attribute_of;
use crate::device::AmdDevice;
use crate::faults::{QueueErrors, on_queue_error};
use crate::hsa::check;
use crate::image::KernelInfo;
use crate::kernarg::{self, Launch};
use crate::load::LoadedKernel;
use crate::memory::lock;

/// Packets that a queue has room for; one kernel runs at a time.
const PACKETS: u32 = 64;

/// The packet's first two halves: a kernel that starts when all before it has ended, sees what the
/// host wrote and leaves what it wrote to be seen.
const HEADER: u32 = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE
    | 1 << HSA_PACKET_HEADER_BARRIER
    | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE
    | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

/// The kernel's name in an image.
pub(crate) fn name(kernel: &Kernel) -> &'static str {
    match kernel {
        Kernel::Begin { .. } => GPU_KERNELS.begin,
        Kernel::Start { .. } | Kernel::StartOver { .. } => GPU_KERNELS.start,
        Kernel::End => GPU_KERNELS.end,
    }
}

/// Where kernels are put.
pub(crate) struct Queue {
    raw: *mut hsa_queue_t,
    /// What its callback has told.
    pub(crate) errors: &'static QueueErrors,
    /// Held from the look whether a kernel runs until the next one does.
    writer: Mutex<()>,
}

// SAFETY: a queue of the multi-producer kind, which any thread may use.
unsafe impl Send for Queue {}
// SAFETY: as above; `writer` lets one thread at a time write packets.
unsafe impl Sync for Queue {}

impl Queue {
    pub(crate) fn new(api: &Api, agent: hsa_agent_t) -> Result<Self, DeviceError> {
        // SAFETY: both limits are 32-bit numbers.
        let limit = |attribute| unsafe { attribute_of(api, agent, attribute, 0_u32) };
        let least = limit(HSA_AGENT_INFO_QUEUE_MIN_SIZE)?;
        let most = limit(HSA_AGENT_INFO_QUEUE_MAX_SIZE)?;
        // All three are powers of two.
        let size = PACKETS.max(least).min(most.max(1));
        let errors = QueueErrors::new();
        let mut queue = null_mut();
        // SAFETY: the agent runs kernels; the size is a power of two within its limits; callback and
        // data are there as long as the process; the segments' sizes are left to each packet;
        // `queue` is a place for a pointer.
        let status = unsafe {
            (api.hsa_queue_create)(
                agent,
                size,
                HSA_QUEUE_TYPE_MULTI,
                Some(on_queue_error),
                errors.data(),
                u32::MAX,
                u32::MAX,
                &raw mut queue,
            )
        };
        check(api, "hsa_queue_create", status)?;
        Ok(Self {
            raw: queue,
            errors,
            writer: Mutex::new(()),
        })
    }

    pub(crate) fn address(&self) -> u64 {
        self.raw.addr() as u64
    }

    /// Whatever is in the queue ends, too.
    pub(crate) fn destroy(&self, api: &Api) {
        // SAFETY: made by `new`; the device calls this once, when it is dropped.
        unsafe { (api.hsa_queue_destroy)(self.raw) };
    }

    /// Puts a kernel into the queue. `packet` has no header yet. The caller holds `writer`.
    fn submit(
        &self,
        api: &Api,
        packet: &hsa_kernel_dispatch_packet_t,
        dimensions: u16,
    ) -> Result<(), DeviceError> {
        // SAFETY: the queue exists as long as the device. Its fields do not change.
        let (base, size, doorbell) = unsafe {
            let queue = &*self.raw;
            (queue.base_address, queue.size, queue.doorbell_signal)
        };
        // SAFETY: as above.
        let index = unsafe { (api.hsa_queue_add_write_index_relaxed)(self.raw, 1) };
        // SAFETY: as above. Acquire: pairs with the packet processor, which frees a slot first and
        // then counts it as read.
        let read = unsafe { (api.hsa_queue_load_read_index_scacquire)(self.raw) };
        if index.wrapping_sub(read) >= u64::from(size) {
            // One kernel at a time: there is always room, unless the queue is dead.
            return Err(DeviceError::Api {
                call: "starting the kernel",
                reason: "the queue is full: the GPU has stopped taking packets".to_owned(),
            });
        }
        let slot = index & u64::from(size.max(1) - 1);
        let place = base.cast::<hsa_kernel_dispatch_packet_t>();
        // SAFETY: the ring has `size` packets, and the slot is below that. The processor has read
        // what was there, so it is ours until its header says that it is a packet: the first four
        // bytes, which are written last. (They say "invalid" now.)
        unsafe {
            let place = place.add(slot as usize);
            let from = std::ptr::from_ref(packet).cast::<u8>();
            let body = size_of::<hsa_kernel_dispatch_packet_t>() - 4;
            place
                .cast::<u8>()
                .add(4)
                .copy_from_nonoverlapping(from.add(4), body);
            let setup = u32::from(dimensions) << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
            // Release: pairs with the packet processor's acquire of the header. The arguments and
            // all that the kernel will read were written before, too.
            AtomicU32::from_ptr(place.cast()).store(HEADER | setup << 16, Ordering::Release);
        }
        // SAFETY: the doorbell exists as long as the queue. Release: the packet comes first.
        unsafe { (api.hsa_signal_store_screlease)(doorbell, index as i64) };
        Ok(())
    }
}

impl AmdDevice {
    /// Starts a kernel of the image ABI.
    pub(crate) fn start(&self, kernel: &Kernel, grid: Grid) -> Result<(), DeviceError> {
        let name = name(kernel);
        let missing = || DeviceError::Missing(format!("kernel {name}"));
        let found = self.loaded()?.kernel(name).ok_or_else(missing)?;
        self.start_kernel(found, grid, |info, launch| {
            kernarg::fill(info, kernel, launch)
                .map_err(|sentence| DeviceError::Image(format!("the image {sentence}")))
        })
    }

    /// Starts a kernel without arguments of its own.
    pub(crate) fn start_plain(&self, name: &str, grid: Grid) -> Result<(), DeviceError> {
        let found = self.plain(name)?;
        self.start_kernel(found, grid, |info, launch| {
            Ok(kernarg::fill_hidden(info, launch))
        })
    }

    /// The kernel of that name, if it has no arguments of its own.
    pub(crate) fn plain(&self, name: &str) -> Result<&LoadedKernel, DeviceError> {
        let loaded = self.loaded()?;
        let none = || DeviceError::no_kernel(name, loaded.kernels());
        let found = loaded.kernel(name).ok_or_else(none)?;
        match kernarg::own(&found.info).count() {
            0 => Ok(found),
            1 => Err(DeviceError::not_plain(name, "an argument")),
            more => Err(DeviceError::not_plain(name, &format!("{more} arguments"))),
        }
    }

    fn start_kernel(
        &self,
        LoadedKernel { info, object }: &LoadedKernel,
        grid: Grid,
        arguments: impl FnOnce(&KernelInfo, Launch) -> Result<Vec<u8>, DeviceError>,
    ) -> Result<(), DeviceError> {
        let loaded = self.loaded()?;
        self.check_grid(info, grid)?;
        let _writer = lock(&self.queue.writer);
        if !self.query()? {
            return Err(DeviceError::Api {
                call: "starting the kernel",
                reason: "another one runs".to_owned(),
            });
        }
        let launch = Launch {
            grid,
            queue: self.queue.address(),
        };
        let arguments = arguments(info, launch)?;
        let place = &loaded.ready.arguments;
        if arguments.len() > place.size {
            return Err(DeviceError::Image(
                "the image's arguments do not fit".to_owned(),
            ));
        }
        // SAFETY: there is room, and no kernel reads it: the last one has ended.
        unsafe {
            place.start.copy_from_nonoverlapping(
                std::ptr::NonNull::from(&arguments[..]).cast(),
                arguments.len(),
            );
        }
        loaded.ready.done.set(&self.runtime, 1);
        let packet = hsa_kernel_dispatch_packet_t {
            header: 0,
            setup: 0,
            workgroup_size_x: grid.threads[0] as u16,
            workgroup_size_y: grid.threads[1] as u16,
            workgroup_size_z: grid.threads[2] as u16,
            reserved0: 0,
            // In threads; that they fit was checked.
            grid_size_x: grid.blocks[0] * grid.threads[0],
            grid_size_y: grid.blocks[1] * grid.threads[1],
            grid_size_z: grid.blocks[2] * grid.threads[2],
            private_segment_size: stack(info, self.stack),
            group_segment_size: info.group,
            kernel_object: *object,
            kernarg_address: with_exposed_provenance_mut(place.address() as usize),
            reserved2: 0,
            completion_signal: hsa_signal_t {
                handle: loaded.ready.done.0.handle,
            },
        };
        self.queue
            .submit(&self.runtime, &packet, kernarg::dimensions(grid))
    }

    /// Refuses what the device would not take.
    fn check_grid(&self, info: &KernelInfo, grid: Grid) -> Result<(), DeviceError> {
        if grid.threads.contains(&0) || grid.blocks.contains(&0) {
            return Err(DeviceError::Api {
                call: "starting the kernel",
                reason: "a grid has at least one block and a block at least one thread".to_owned(),
            });
        }
        self.info().check(grid)?;
        let limit = |what, asked: u64, most: u32, device: String| {
            if asked <= u64::from(most) {
                return Ok(());
            }
            Err(DeviceError::Limit {
                what,
                asked,
                most: most.into(),
                device,
            })
        };
        let name = &self.info().name;
        let threads: u64 = grid.threads.iter().map(|&n| u64::from(n)).product();
        let all = "--threads times --threads-y times --threads-z";
        if info.threads > 0 {
            limit(
                all,
                threads,
                info.threads,
                format!("{} on {name}", info.name),
            )?;
        }
        let (axes, most) = self.grid_limit;
        let names = [
            "--blocks times --threads",
            "--blocks-y times --threads-y",
            "--blocks-z times --threads-z",
        ];
        let mut total = 1_u64;
        for axis in 0..3 {
            let along = u64::from(grid.blocks[axis]) * u64::from(grid.threads[axis]);
            limit(names[axis], along, axes[axis], name.clone())?;
            total = total.saturating_mul(along);
        }
        limit("the number of all threads", total, most, name.clone())
    }

    pub(crate) fn query(&self) -> Result<bool, DeviceError> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        let Some(loaded) = self.loaded.get() else {
            return Ok(true);
        };
        // 0 as well before the first launch.
        if loaded.ready.done.value(&self.runtime) >= 1 {
            return Ok(false);
        }
        // A fault that ended the kernel is told before its end.
        self.fault().map_or(Ok(true), Err)
    }

    pub(crate) fn usage(&self) -> Result<Vec<String>, DeviceError> {
        let loaded = self.loaded()?;
        let line = |LoadedKernel { info, .. }: &LoadedKernel| {
            format!(
                "{}: {} vector registers, {} scalar registers, {} bytes of stack a thread ({} \
                 given), {} of local memory a block, {} of arguments, {} lanes a wavefront, at most \
                 {} threads a block",
                info.name,
                info.vector_registers,
                info.scalar_registers,
                info.private,
                stack(info, self.stack),
                info.group,
                info.kernarg,
                info.lanes,
                info.threads,
            )
        };
        let kernels = [GPU_KERNELS.begin, GPU_KERNELS.start, GPU_KERNELS.end];
        let others = loaded.kernels().filter(|name| !kernels.contains(name));
        let all = kernels.into_iter().chain(others);
        Ok(all
            .filter_map(|name| loaded.kernel(name).map(line))
            .collect())
    }
}

/// The stack of each thread: what the compiler counted, or what is given where it could not.
fn stack(info: &KernelInfo, given: u32) -> u32 {
    if info.dynamic_stack {
        info.private.max(given)
    } else {
        info.private
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_a_kernel_with_system_fences() {
        assert_eq!(HEADER, 0x1502);
    }

    #[test]
    fn the_stack_is_what_the_compiler_counted_or_more() {
        let info = |private, dynamic_stack| KernelInfo {
            private,
            dynamic_stack,
            ..KernelInfo::default()
        };
        assert_eq!(stack(&info(1104, true), 16 << 10), 16 << 10);
        assert_eq!(stack(&info(40 << 10, true), 16 << 10), 40 << 10);
        assert_eq!(stack(&info(64, false), 16 << 10), 64);
    }
}
