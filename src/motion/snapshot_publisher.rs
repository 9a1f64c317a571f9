//! Publishes snapshots from the arm's thread without blocking it: the arm's thread fills a slot, a
//! publishing thread takes the locks.
//!
//! Readers of a snapshot, and callers that wait for a reply, take locks: of the snapshot and of the
//! runtime that they run on. If the machine suspended such a reader while it holds one, the arm's
//! thread would wait for it, and a stop would too. So the arm's thread takes none of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use tokio::sync::watch;

use super::{MotionState, Snapshot};
use base::lock::MutexExt;

/// A callback that sends the result of a command to its sender.
pub(super) type ReplyCallback = Box<dyn FnOnce() + Send>;

/// The side of the arm's thread. Dropping it ends the publishing thread, once all is published.
pub(super) struct SnapshotPublisher {
    slots: Arc<SnapshotSlots>,
    serial: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

struct SnapshotSlots {
    /// Two slots, because the publishing thread holds one at a time: the other one is free.
    pending: [Mutex<Option<PendingSnapshot>>; 2],
    failure: OnceLock<String>,
    is_closing: AtomicBool,
}

/// A snapshot with its replies that has not been published yet.
struct PendingSnapshot {
    serial: u64,
    snapshot: Snapshot,
    replies: Vec<ReplyCallback>,
}

impl SnapshotPublisher {
    /// Starts the publishing thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(publish: watch::Sender<Snapshot>) -> std::io::Result<Self> {
        let slots = Arc::new(SnapshotSlots {
            pending: [const { Mutex::new(None) }; 2],
            failure: OnceLock::new(),
            is_closing: AtomicBool::new(false),
        });
        let own = Arc::clone(&slots);
        let thread = std::thread::Builder::new().name("snapshots".to_owned());
        Ok(Self {
            slots,
            serial: AtomicU64::new(1),
            thread: Some(thread.spawn(move || own.run(&publish))?),
        })
    }

    /// Stores a snapshot, and replies to be sent once it is published. Never blocks. Replaces a
    /// snapshot that was not published yet; its replies stay.
    pub(super) fn publish(&self, snapshot: Snapshot, mut replies: Vec<ReplyCallback>) {
        let serial = self.serial.fetch_add(1, Ordering::SeqCst);
        if let Some(mut free) = self.slots.pending.iter().find_map(MutexExt::try_locked) {
            if let Some(older) = free.take() {
                replies.splice(0..0, older.replies);
            }
            *free = Some(PendingSnapshot {
                serial,
                snapshot,
                replies,
            });
        }
        self.wake();
    }

    /// Publishes that the arm's thread has failed, after the last snapshot.
    pub(super) fn fail(&self, reason: String) {
        // Only the first reason is kept.
        let _ = self.slots.failure.set(reason);
        self.wake();
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for SnapshotPublisher {
    fn drop(&mut self) {
        self.slots.is_closing.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that publishes the arm's state ended in a panic");
        }
    }
}

impl SnapshotSlots {
    fn run(&self, publish: &watch::Sender<Snapshot>) {
        let (mut published, mut has_failed) = (0, false);
        loop {
            // Read before the slots, so that the last snapshot is still published.
            let is_closing = self.is_closing.load(Ordering::SeqCst);
            let mut found: Vec<PendingSnapshot> =
                self.pending.iter().filter_map(take_slot).collect();
            found.sort_by_key(|entry| entry.serial);
            for entry in found {
                if entry.serial > published {
                    published = entry.serial;
                    run_callback(|| drop(publish.send_replace(entry.snapshot)));
                }
                entry.replies.into_iter().for_each(run_callback);
            }
            if let Some(reason) = self.failure.get().filter(|_| !has_failed) {
                has_failed = true;
                publish.send_modify(|snapshot| {
                    snapshot.state = MotionState::Faulted;
                    snapshot.fault = Some(reason.clone());
                });
            }
            if is_closing {
                return;
            }
            std::thread::park();
        }
    }
}

/// Runs a callback and catches its panic: otherwise the publishing thread would end, and with it all
/// snapshots of the arm.
fn run_callback(callback: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(callback)).is_err() {
        tracing::error!("a callback for the arm's reply panicked");
    }
}

fn take_slot(slot: &Mutex<Option<PendingSnapshot>>) -> Option<PendingSnapshot> {
    slot.locked().take()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_snapshot_is_published_and_every_reply_after_its_own() {
        const UPDATES: u64 = 2_000;
        let (publish, mut snapshots) = watch::channel(Snapshot::default());
        let publisher = SnapshotPublisher::start(publish).unwrap();
        let receiver = snapshots.clone();
        let (sender, received) = std::sync::mpsc::channel();
        for update in 1..=UPDATES {
            let snapshot = Snapshot {
                stops_done: update,
                ..Snapshot::default()
            };
            let (sender, receiver) = (sender.clone(), receiver.clone());
            let reply = move || sender.send((update, receiver.borrow().stops_done)).unwrap();
            publisher.publish(snapshot, vec![Box::new(reply)]);
        }
        snapshots
            .wait_for(|receiver| receiver.stops_done == UPDATES)
            .await
            .unwrap();
        publisher.fail("broke".to_owned());
        drop(publisher);
        assert_eq!(snapshots.borrow().fault.as_deref(), Some("broke"));
        let received: Vec<(u64, u64)> = received.try_iter().collect();
        let updates: std::collections::BTreeSet<_> = received.iter().map(|(it, _)| *it).collect();
        assert_eq!(updates.len(), 2_000);
        assert!(received.iter().all(|(update, shown)| shown >= update));
        assert!(snapshots.changed().await.is_ok() || snapshots.has_changed().is_err());
    }

    fn panics() {
        panic!("a waker that panics")
    }

    #[tokio::test]
    async fn a_reply_that_panics_keeps_no_other_from_its_caller() {
        let (publish, mut snapshots) = watch::channel(Snapshot::default());
        let publisher = SnapshotPublisher::start(publish).unwrap();
        let (sender, received) = std::sync::mpsc::channel();
        let replies: Vec<ReplyCallback> =
            vec![Box::new(panics), Box::new(move || sender.send(7).unwrap())];
        publisher.publish(Snapshot::default(), replies);
        assert_eq!(received.recv().ok(), Some(7));
        let snapshot = Snapshot {
            stops_done: 1,
            ..Snapshot::default()
        };
        publisher.publish(snapshot, vec![Box::new(panics)]);
        let later = snapshots.wait_for(|s| s.stops_done == 1);
        drop(later.await.unwrap());
    }

    #[test]
    fn a_suspended_reader_does_not_block_the_arms_thread() {
        let (publish, snapshots) = watch::channel(Snapshot::default());
        let publisher = SnapshotPublisher::start(publish).unwrap();
        let borrowed = snapshots.borrow();
        for update in 1..=1_000 {
            let snapshot = Snapshot {
                stops_done: update,
                ..Snapshot::default()
            };
            publisher.publish(snapshot, Vec::new());
        }
        assert_eq!(borrowed.stops_done, 0);
        drop(borrowed);
        drop(publisher);
        assert_eq!(snapshots.borrow().stops_done, 1_000);
    }
}
