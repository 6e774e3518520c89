//! What a poller that rests looks at.
//!
//! Whoever hands over a port changes the summary word of that port's block: a few words tell a
//! sleeping poller whether any of a thousand ports has news. It is only a hint: the port's own flag
//! may be seen a little later than the word, and a client may fail to set it. So a block with news
//! is looked at several times, and every poller looks at all of its ports now and then.

use std::sync::atomic::Ordering::Relaxed;

use rpc_port::{Server, Transport};
use rpc_types::layout::SUMMARY_PORTS;

use super::{GROUP, Poller};
use crate::observe::Observe;
use crate::shared::PortState;

/// How often a block with news is looked at.
const LOOKS: u8 = 8;
/// Groups of a block.
const BLOCK: u32 = SUMMARY_PORTS / GROUP;
/// In how many passes with a sleep between them a poller looks at all its groups: some 20
/// milliseconds.
const SWEEP_PASSES: u32 = 64;
/// But at most so many groups in one. After a sleep each look at a group is four misses of all caches,
/// and this is only for clients that set no summary word.
const MOST_SWEPT: u32 = 4;
/// In how many of its own wakes a parked poller looks at all its groups: some second.
const SWEEP_WAKES: u32 = 25;
/// And in one at most at so many: some 10 us in 40 ms, of each parked thread.
const MOST_SWEPT_PARKED: u32 = 24;

/// The summary words as a poller last saw them.
pub(super) struct News {
    last: Box<[u64]>,
    /// Blocks with news, and how often each is still to be looked at.
    blocks: Vec<(u32, u8)>,
    sweep: u32,
}

impl News {
    pub(super) fn new(words: u32) -> Self {
        Self {
            last: (0..words).map(|_| 0).collect(),
            blocks: Vec::new(),
            sweep: 0,
        }
    }

    /// Compares the words with what they were: whether there is news.
    fn look<T: Transport, L>(&mut self, server: &Server<T, L>) -> bool
    where
        L: rpc_bitmap::Memory<Scope = rpc_bitmap::Device>,
    {
        let mut any = false;
        for (block, last) in (0..).zip(&mut self.last) {
            let now = server.announced(block);
            let new = now != *last;
            *last = now;
            any |= new;
            // Where it is no word that was left but the mailboxes themselves, a request may look like
            // the one before it, which was answered between two looks.
            if new || !T::ANNOUNCES && now != 0 {
                match self.blocks.iter_mut().find(|(known, _)| *known == block) {
                    Some((_, looks)) => *looks = LOOKS,
                    None => self.blocks.push((block, LOOKS)),
                }
            }
        }
        any
    }
}

impl<T: Transport + Send + Sync + 'static, O: Observe> Poller<T, O> {
    /// Looks for news: serves what is this poller's and, if it `watches`, wakes the parked pollers
    /// that have something. Whether there was news, and whether something was served.
    pub(super) fn watch(&mut self, watches: bool) -> (bool, bool) {
        let news = self.news.look(&self.server);
        let mut busy = false;
        let mut next = 0;
        while let Some((block, looks)) = self.news.blocks.get_mut(next) {
            let block = *block;
            *looks -= 1;
            if *looks == 0 {
                self.news.blocks.swap_remove(next);
            } else {
                next += 1;
            }
            let last = super::groups(self.ports);
            for group in block * BLOCK..((block + 1) * BLOCK).min(last) {
                let owner = group % self.pollers;
                if owner == self.index {
                    busy |= self.visit(group / self.pollers);
                } else if watches {
                    self.wake_owner(owner, group);
                }
            }
        }
        (news, busy)
    }

    /// Wakes the poller of `group` if it is parked and has something to do there.
    fn wake_owner(&self, owner: u32, group: u32) {
        let control = &self.shared.controls[owner as usize];
        if !control.parked.load(Relaxed) {
            return;
        }
        let waiting = self.server.waiting(group);
        // A handler that works on the host owns its packets: no news for its poller.
        let wanted = (0..GROUP).any(|i| {
            waiting & 1 << i != 0 && self.shared.port(group * GROUP + i).0 != PortState::InHandler
        });
        if wanted {
            control.wake();
        }
    }

    /// A pass of a poller that sleeps between passes.
    pub(super) fn slow_pass(&mut self, watches: bool) -> (bool, bool) {
        let (news, mut busy) = self.watch(watches);
        busy |= self.look_around((self.groups / SWEEP_PASSES + 1).min(MOST_SWEPT));
        busy |= self.go_on();
        (news, busy)
    }

    /// What a parked poller does when it wakes by itself: it sees to the clients that set no summary
    /// word, such as those whose clock shows what it showed at the port's last request, some seconds
    /// ago; and to a port whose flag was seen long after the word.
    pub(super) fn look_from_park(&mut self) -> bool {
        self.look_around((self.groups / SWEEP_WAKES + 1).min(MOST_SWEPT_PARKED))
    }

    /// Looks at the next `groups` of this poller's.
    fn look_around(&mut self, groups: u32) -> bool {
        let mut busy = false;
        for _ in 0..groups {
            self.news.sweep = (self.news.sweep + 1) % self.groups;
            busy |= self.visit(self.news.sweep);
        }
        busy
    }
}
