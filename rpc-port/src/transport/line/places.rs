//! Where things are, worked out once.

use rpc_types::Geometry;

/// Where a server finds the blocks of each port.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    requests: usize,
    pub(super) request_stride: usize,
    replies: usize,
    reply_stride: usize,
    request_tails: usize,
    reply_tails: usize,
    tail_stride: usize,
    pub(super) tail_row: usize,
    /// All lanes that there are.
    pub(super) lanes: u64,
}

impl Places {
    pub(super) const fn new(geometry: &Geometry) -> Self {
        Self {
            requests: geometry.request(0),
            request_stride: geometry.request_stride(),
            replies: geometry.reply_word(0, 0),
            reply_stride: geometry.reply_stride(),
            request_tails: geometry.request_tails(),
            reply_tails: geometry.reply_tails(),
            tail_stride: geometry.tail_stride(),
            tail_row: geometry.tail_row(),
            lanes: u64::MAX >> (64 - geometry.lanes),
        }
    }

    #[inline(always)]
    pub(super) const fn request(&self, port: u32) -> usize {
        self.requests + port as usize * self.request_stride
    }

    #[inline(always)]
    pub(super) const fn reply(&self, port: u32) -> usize {
        self.replies + port as usize * self.reply_stride
    }

    #[inline(always)]
    pub(super) const fn request_tail(&self, port: u32) -> usize {
        self.request_tails + port as usize * self.tail_stride
    }

    #[inline(always)]
    pub(super) const fn reply_tail(&self, port: u32) -> usize {
        self.reply_tails + port as usize * self.tail_stride
    }
}
