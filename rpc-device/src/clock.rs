//! Time as the device tells it.

/// Nanoseconds since some moment in the past, the same for all threads of a device: for the
/// difference of two.
///
/// On NVIDIA it is the global timer, which moves in steps of up to a microsecond; on the CPU device
/// the system's monotonic clock. On AMD it is always 0: no clock whose frequency is known can be
/// read there from Rust.
#[inline(always)]
pub fn nanoseconds() -> u64 {
    crate::target::nanoseconds()
}
