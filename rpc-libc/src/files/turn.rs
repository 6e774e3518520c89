//! Whose turn it is: a lock in the order of asking, for which no thread waits.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A lock whose holder panicked still guards good data here: every holder leaves it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns that are given one at a time, first come, first served.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    taken: bool,
    next: u64,
    waiting: VecDeque<(u64, Waker)>,
    /// Whose turn it has become, until it looks.
    granted: Option<u64>,
}

impl Turns {
    /// Waits for a turn, which [`pass`](Self::pass) ends.
    pub(super) fn wait(&self) -> Wait<'_> {
        Wait {
            turns: self,
            ticket: None,
        }
    }

    /// Ends a turn: the next one begins.
    pub(super) fn pass(&self) {
        let mut state = lock(&self.0);
        let next = state.waiting.pop_front();
        state.taken = next.is_some();
        if let Some((ticket, waker)) = next {
            state.granted = Some(ticket);
            drop(state);
            waker.wake();
        }
    }
}

/// A place in the queue; dropping it leaves the queue.
pub(super) struct Wait<'t> {
    turns: &'t Turns,
    ticket: Option<u64>,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let turns = self.turns;
        let mut state = lock(&turns.0);
        if let Some(ticket) = self.ticket {
            if state.granted == Some(ticket) {
                state.granted = None;
                self.ticket = None;
                return Poll::Ready(());
            }
            if let Some((_, waker)) = state.waiting.iter_mut().find(|(own, _)| *own == ticket) {
                waker.clone_from(context.waker());
            }
            return Poll::Pending;
        }
        if !state.taken {
            state.taken = true;
            return Poll::Ready(());
        }
        let ticket = state.next;
        state.next += 1;
        state.waiting.push_back((ticket, context.waker().clone()));
        self.ticket = Some(ticket);
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else {
            return;
        };
        let mut state = lock(&self.turns.0);
        if state.granted == Some(ticket) {
            // It was called up, and has gone away meanwhile.
            state.granted = None;
            drop(state);
            self.turns.pass();
        } else {
            state.waiting.retain(|(own, _)| *own != ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn is_ready(wait: Pin<&mut Wait<'_>>) -> bool {
        wait.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn first_come_first_served() {
        let turns = Turns::default();
        let (mut a, mut b, mut c) = (pin!(turns.wait()), pin!(turns.wait()), pin!(turns.wait()));
        assert!(is_ready(a.as_mut()));
        assert!(!is_ready(c.as_mut()) && !is_ready(b.as_mut()));
        turns.pass();
        assert!(!is_ready(b.as_mut()) && is_ready(c.as_mut()));
        turns.pass();
        assert!(is_ready(b.as_mut()));
        turns.pass();
        assert!(is_ready(pin!(turns.wait())));
    }

    #[test]
    fn who_goes_away_holds_up_nobody() {
        let turns = Turns::default();
        assert!(is_ready(pin!(turns.wait())));
        let (mut a, mut b) = (Box::pin(turns.wait()), Box::pin(turns.wait()));
        let mut c = pin!(turns.wait());
        assert!(!is_ready(a.as_mut()) && !is_ready(b.as_mut()) && !is_ready(c.as_mut()));
        drop(b);
        turns.pass();
        // It is its turn, and it never looks.
        drop(a);
        assert!(is_ready(c.as_mut()));
        turns.pass();
        assert!(is_ready(pin!(turns.wait())));
    }
}
