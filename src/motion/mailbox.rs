//! A mailbox of commands for the arm's thread, and the signal that wakes it. Senders may wait for
//! each other; the arm's thread never waits.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;

use base::lock::MutexExt;

/// Things to do, in order.
#[derive(Debug)]
pub(super) struct CommandMailbox<T>(Mutex<Option<VecDeque<T>>>);

impl<T> CommandMailbox<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Some(VecDeque::new())))
    }

    /// Adds an entry; returns it if the mailbox is closed. Wake the receiver afterwards.
    pub(super) fn put(&self, one: T) -> Result<(), T> {
        let mut inside = self.0.locked();
        match inside.as_mut() {
            Some(inside) => {
                inside.push_back(one);
                Ok(())
            }
            None => Err(one),
        }
    }

    /// Takes the oldest entry. Returns `None` also while a sender is adding one; that sender wakes the
    /// receiver when it is done.
    pub(super) fn take(&self) -> Option<T> {
        self.0.try_locked()?.as_mut()?.pop_front()
    }

    /// Returns whether [`Mailbox::take`] would return `None` now.
    pub(super) fn is_empty(&self) -> bool {
        let inside = self.0.try_locked();
        let inside = inside.as_ref().and_then(|inside| inside.as_ref());
        inside.is_none_or(VecDeque::is_empty)
    }

    /// Drops what is in it, and takes nothing any more.
    pub(super) fn close(&self) {
        *self.0.locked() = None;
    }
}

/// Wakes one task. Neither ringing nor hearing it takes a lock.
#[derive(Debug, Default)]
pub(super) struct WakeSignal {
    rung: AtomicBool,
    sleeper: AtomicWaker,
}

impl WakeSignal {
    pub(super) fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        self.sleeper.wake();
    }

    /// Returns when it was rung, at once if that was since the last time. For one task alone.
    pub(super) async fn wait(&self) {
        poll_fn(|context| {
            self.sleeper.register(context.waker());
            if self.rung.swap(false, Ordering::SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn the_taker_waits_for_nobody_who_puts() {
        let mailbox = CommandMailbox::new();
        mailbox.put(1).unwrap();
        mailbox.put(2).unwrap();
        let putting = mailbox.0.lock().unwrap();
        assert!(mailbox.is_empty() && mailbox.take().is_none());
        drop(putting);
        assert_eq!((mailbox.take(), mailbox.take()), (Some(1), Some(2)));
        mailbox.close();
        assert_eq!(mailbox.put(3), Err(3));
        assert!(mailbox.is_empty());
    }

    #[tokio::test]
    async fn a_bell_is_heard_whenever_it_was_rung() {
        let bell = std::sync::Arc::new(WakeSignal::default());
        bell.ring();
        bell.ring();
        bell.wait().await;
        let ringer = std::sync::Arc::clone(&bell);
        let rings = base::task::spawn(async move { ringer.ring() });
        bell.wait().await;
        rings.await.unwrap();
    }
}
