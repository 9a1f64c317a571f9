//! Publishes snapshots from the arm's thread without blocking it: the arm's thread fills a slot, a
//! helper thread (the herald) takes the locks.
//!
//! Readers of a snapshot, and callers that wait for an answer, take locks: of the snapshot and of
//! the runtime that they run on. If the machine suspended such a reader while it holds one, the
//! arm's thread would wait for it, and a stop would too. So the arm's thread takes none of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

use tokio::sync::watch;

use super::{MotionState, Snapshot};
use base::lock::MutexExt;

/// A callback that tells the sender of a command its result.
pub(super) type ReplyCallback = Box<dyn FnOnce() + Send>;

/// The arm's thread's side. Dropping it ends the herald, once all is told.
pub(super) struct SnapshotPublisher {
    desk: Arc<SnapshotSlots>,
    serial: AtomicU64,
    herald: Option<JoinHandle<()>>,
}

struct SnapshotSlots {
    /// Two, for the herald holds one at a time: the other one is free.
    leaves: [Mutex<Option<PendingSnapshot>>; 2],
    failed: OnceLock<String>,
    over: AtomicBool,
}

/// A snapshot with its answers that has not been published yet.
struct PendingSnapshot {
    serial: u64,
    snapshot: Snapshot,
    answers: Vec<ReplyCallback>,
}

impl SnapshotPublisher {
    /// # Errors
    /// When there is no thread for the herald.
    pub(super) fn start(publish: watch::Sender<Snapshot>) -> std::io::Result<Self> {
        let desk = Arc::new(SnapshotSlots {
            leaves: [const { Mutex::new(None) }; 2],
            failed: OnceLock::new(),
            over: AtomicBool::new(false),
        });
        let own = Arc::clone(&desk);
        let herald = std::thread::Builder::new().name("herald".to_owned());
        Ok(Self {
            desk,
            serial: AtomicU64::new(1),
            herald: Some(herald.spawn(move || own.run(&publish))?),
        })
    }

    /// Stores a snapshot, and answers to be given once it is published. Never blocks. Replaces a
    /// snapshot that was not published yet; its answers stay.
    pub(super) fn publish(&self, snapshot: Snapshot, mut answers: Vec<ReplyCallback>) {
        let serial = self.serial.fetch_add(1, Ordering::SeqCst);
        if let Some(mut free) = self.desk.leaves.iter().find_map(MutexExt::try_locked) {
            if let Some(older) = free.take() {
                answers.splice(0..0, older.answers);
            }
            *free = Some(PendingSnapshot {
                serial,
                snapshot,
                answers,
            });
        }
        self.wake();
    }

    /// The arm's thread has failed: the last there is to tell.
    pub(super) fn fail(&self, why: String) {
        // The first one stays.
        let _ = self.desk.failed.set(why);
        self.wake();
    }

    fn wake(&self) {
        if let Some(herald) = &self.herald {
            herald.thread().unpark();
        }
    }
}

impl Drop for SnapshotPublisher {
    fn drop(&mut self) {
        self.desk.over.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(herald) = self.herald.take()
            && herald.join().is_err()
        {
            tracing::error!("the thread that tells what the arm does ended in a panic");
        }
    }
}

impl SnapshotSlots {
    fn run(&self, publish: &watch::Sender<Snapshot>) {
        let (mut told, mut failed) = (0, false);
        loop {
            // Before the look: what was put down last is told all the same.
            let over = self.over.load(Ordering::SeqCst);
            let mut found: Vec<PendingSnapshot> =
                self.leaves.iter().filter_map(take_slot).collect();
            found.sort_by_key(|leaf| leaf.serial);
            for leaf in found {
                if leaf.serial > told {
                    told = leaf.serial;
                    run_callback(|| drop(publish.send_replace(leaf.snapshot)));
                }
                leaf.answers.into_iter().for_each(run_callback);
            }
            if let Some(why) = self.failed.get().filter(|_| !failed) {
                failed = true;
                publish.send_modify(|snapshot| {
                    snapshot.state = MotionState::Faulted;
                    snapshot.fault = Some(why.clone());
                });
            }
            if over {
                return;
            }
            std::thread::park();
        }
    }
}

/// Runs a callback and catches its panic: otherwise the herald would end, and with it all news of
/// the arm.
fn run_callback(tell: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(tell)).is_err() {
        tracing::error!("whoever waited for the arm's answer broke when it came");
    }
}

fn take_slot(leaf: &Mutex<Option<PendingSnapshot>>) -> Option<PendingSnapshot> {
    leaf.locked().take()
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
    async fn the_last_word_is_told_and_every_answer_after_its_snapshot() {
        const WORDS: u64 = 2_000;
        let (publish, mut snapshots) = watch::channel(Snapshot::default());
        let outbox = SnapshotPublisher::start(publish).unwrap();
        let seen = snapshots.clone();
        let (tell, told) = std::sync::mpsc::channel();
        for word in 1..=WORDS {
            let snapshot = Snapshot {
                stops_done: word,
                ..Snapshot::default()
            };
            let (tell, seen) = (tell.clone(), seen.clone());
            let answer = move || tell.send((word, seen.borrow().stops_done)).unwrap();
            outbox.publish(snapshot, vec![Box::new(answer)]);
        }
        snapshots
            .wait_for(|seen| seen.stops_done == WORDS)
            .await
            .unwrap();
        outbox.fail("broke".to_owned());
        drop(outbox);
        assert_eq!(snapshots.borrow().fault.as_deref(), Some("broke"));
        let told: Vec<(u64, u64)> = told.try_iter().collect();
        let words: std::collections::BTreeSet<u64> = told.iter().map(|(word, _)| *word).collect();
        assert_eq!(words.len(), 2_000);
        assert!(told.iter().all(|(word, shown)| shown >= word));
        assert!(snapshots.changed().await.is_ok() || snapshots.has_changed().is_err());
    }

    fn breaks() {
        panic!("a waker that breaks")
    }

    #[tokio::test]
    async fn whoever_breaks_at_an_answer_keeps_it_from_nobody_else() {
        let (publish, mut snapshots) = watch::channel(Snapshot::default());
        let outbox = SnapshotPublisher::start(publish).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let answers: Vec<ReplyCallback> =
            vec![Box::new(breaks), Box::new(move || tell.send(7).unwrap())];
        outbox.publish(Snapshot::default(), answers);
        assert_eq!(told.recv().ok(), Some(7));
        let snapshot = Snapshot {
            stops_done: 1,
            ..Snapshot::default()
        };
        outbox.publish(snapshot, vec![Box::new(breaks)]);
        let later = snapshots.wait_for(|seen| seen.stops_done == 1);
        drop(later.await.unwrap());
    }

    #[test]
    fn a_reader_that_stands_still_holds_up_nobody_who_puts() {
        let (publish, snapshots) = watch::channel(Snapshot::default());
        let outbox = SnapshotPublisher::start(publish).unwrap();
        let look = snapshots.borrow();
        for word in 1..=1_000 {
            let snapshot = Snapshot {
                stops_done: word,
                ..Snapshot::default()
            };
            outbox.publish(snapshot, Vec::new());
        }
        assert_eq!(look.stops_done, 0);
        drop(look);
        drop(outbox);
        assert_eq!(snapshots.borrow().stops_done, 1_000);
    }
}
