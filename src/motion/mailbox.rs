//! A mailbox of commands for the arm's thread, and the signal that wakes it. Senders may wait for
//! each other; the arm's thread never waits.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;

use base::lock::MutexExt;

/// A queue of commands.
#[derive(Debug)]
pub(super) struct CommandMailbox<T>(Mutex<Option<VecDeque<T>>>);

impl<T> CommandMailbox<T> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Some(VecDeque::new())))
    }

    /// Adds an entry; returns it if the mailbox is closed. Wake the receiver afterwards.
    pub(super) fn put(&self, entry: T) -> Result<(), T> {
        let mut queue = self.0.locked();
        match queue.as_mut() {
            Some(queue) => {
                queue.push_back(entry);
                Ok(())
            }
            None => Err(entry),
        }
    }

    /// Takes the oldest entry. Returns `None` also while a sender is adding one; that sender wakes the
    /// receiver when it is done.
    pub(super) fn take(&self) -> Option<T> {
        self.0.try_locked()?.as_mut()?.pop_front()
    }

    /// Returns whether [`CommandMailbox::take`] would return `None` now.
    pub(super) fn is_empty(&self) -> bool {
        let queue = self.0.try_locked();
        let queue = queue.as_ref().and_then(|queue| queue.as_ref());
        queue.is_none_or(VecDeque::is_empty)
    }

    /// Drops all entries and accepts no more.
    pub(super) fn close(&self) {
        *self.0.locked() = None;
    }
}

/// Wakes one task. Neither notifying nor waiting takes a lock.
#[derive(Debug, Default)]
pub(super) struct WakeSignal {
    is_set: AtomicBool,
    waker: AtomicWaker,
}

impl WakeSignal {
    pub(super) fn notify(&self) {
        self.is_set.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    /// Returns at the next notification, at once if one came since the last call. For one task only.
    pub(super) async fn wait(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            if self.is_set.swap(false, Ordering::SeqCst) {
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
    fn the_receiver_never_waits_for_a_sender() {
        let mailbox = CommandMailbox::new();
        mailbox.put(1).unwrap();
        mailbox.put(2).unwrap();
        let sender_lock = mailbox.0.lock().unwrap();
        assert!(mailbox.is_empty() && mailbox.take().is_none());
        drop(sender_lock);
        assert_eq!((mailbox.take(), mailbox.take()), (Some(1), Some(2)));
        mailbox.close();
        assert_eq!(mailbox.put(3), Err(3));
        assert!(mailbox.is_empty());
    }

    #[tokio::test]
    async fn a_notification_is_received_whenever_it_came() {
        let signal = std::sync::Arc::new(WakeSignal::default());
        signal.notify();
        signal.notify();
        signal.wait().await;
        let sender = std::sync::Arc::clone(&signal);
        let sending = base::task::spawn(async move { sender.notify() });
        signal.wait().await;
        sending.await.unwrap();
    }
}
