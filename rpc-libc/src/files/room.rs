//! Memory that a read takes piece by piece from what all messages share.

use rpc_server::Reservation;

/// A reservation that grows, and what of it holds nothing yet: a short read leaves that for the next.
#[derive(Debug)]
pub(super) struct Room<'r> {
    reservation: &'r mut Reservation,
    spare: usize,
}

impl<'r> Room<'r> {
    /// Room that `reservation` counts.
    pub(super) const fn new(reservation: &'r mut Reservation) -> Self {
        Self {
            reservation,
            spare: 0,
        }
    }

    /// Makes room for `bytes`, or as many as there are left: for how many there is room.
    pub(super) fn up_to(&mut self, bytes: usize) -> usize {
        let mut step = bytes;
        while step > 0 && self.spare < bytes {
            step = step.min(bytes - self.spare);
            if self.reservation.grow(step as u64) {
                self.spare += step;
            } else {
                step /= 2;
            }
        }
        self.spare.min(bytes)
    }

    /// `bytes` of the room are used: no more than there are.
    pub(super) const fn fill(&mut self, bytes: usize) {
        self.spare -= bytes;
    }
}
