//! The thread that brings an emergency stop to the disk, so that the stop itself never waits.
//!
//! Memory decides, the file follows: a latch wakes the thread, and the thread makes the file match
//! memory. Clearing removes the file first, under the lock that the thread writes under, so that a
//! stop that comes meanwhile is written again. That a reset is owed then is written before, and
//! removed once the arm was reset.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::watch;

use super::estop_file::EstopFile;
use super::{ActorRank, PermitRegistry, StopLatch};
use base::lock::MutexExt;

/// Longest wait of an answer for the disk. The arm stands long before.
const DISK: Duration = Duration::from_secs(2);

/// The thread looks by itself this often whether the node still is.
const LOOK: Duration = Duration::from_millis(500);

/// Reason that an emergency stop is not kept on the disk, or not cleared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EstopKeepingError {
    /// Its file cannot be written or removed.
    #[error("{}: {why}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// Message of the system.
        why: String,
    },
    /// The thread that writes the file could not be started: message of the system.
    #[error("no thread to keep emergency stops: {0}")]
    NoThread(String),
    /// A file was named before.
    #[error("emergency stops are kept already")]
    KeptAlready,
    /// The thread that writes the file has ended.
    #[error("the thread that keeps emergency stops has ended")]
    ThreadEnded,
    /// The file was not written in time.
    #[error("the disk took longer than {} s", DISK.as_secs())]
    SlowDisk,
    /// Another emergency stop was requested while one was cleared.
    #[error("another emergency stop came meanwhile")]
    StoppedMeanwhile,
}

#[derive(Debug)]
pub(super) struct EstopWriter {
    disk: Arc<Mutex<EstopFile>>,
    thread: Thread,
    seen: watch::Receiver<EstopProgress>,
}

/// Progress of the disk: the emergency stops that it has followed, and its last failure.
#[derive(Clone, Debug, Default)]
struct EstopProgress {
    emergencies: u64,
    failed: Option<EstopKeepingError>,
}

impl EstopWriter {
    /// Never waits.
    pub(super) fn wake(&self) {
        self.thread.unpark();
    }
}

impl PermitRegistry {
    /// Keeps emergency stops in a file, and latches at once if there is one: from an earlier
    /// process, or one that cannot be read.
    ///
    /// # Errors
    /// When there is no thread for it, or it was asked for before.
    pub fn keep_emergency_in(self: &Arc<Self>, file: PathBuf) -> Result<(), EstopKeepingError> {
        let kept = EstopFile::at(file);
        if kept.exists() {
            self.latch(StopLatch::Emergency(ActorRank::Operator));
        } else if kept.owed_reset().exists() {
            self.latch(StopLatch::Stopped(ActorRank::Operator));
        }
        let disk = Arc::new(Mutex::new(kept));
        let (tell, seen) = watch::channel(EstopProgress::default());
        let (node, own) = (Arc::downgrade(self), Arc::clone(&disk));
        let thread = std::thread::Builder::new()
            .name("emergency stop".to_owned())
            .spawn(move || follow_latch(&node, &own, &tell))
            .map_err(|error| EstopKeepingError::NoThread(error.to_string()))?;
        let thread = thread.thread().clone();
        let keeper = EstopWriter { disk, thread, seen };
        self.keeper
            .set(keeper)
            .map_err(|_| EstopKeepingError::KeptAlready)
    }

    /// Returns once every emergency stop so far is on the disk; at once where none is kept.
    ///
    /// # Errors
    /// Why it is not: it then lasts as long as this process.
    pub async fn emergency_is_kept(&self) -> Result<(), EstopKeepingError> {
        let Some(keeper) = self.keeper.get() else {
            return Ok(());
        };
        let count = self.state().emergencies;
        let mut seen = keeper.seen.clone();
        let waited = seen.wait_for(|seen| seen.emergencies >= count);
        match tokio::time::timeout(DISK, waited).await {
            Ok(Ok(seen)) => seen.failed.clone().map_or(Ok(()), Err),
            Ok(Err(_)) => Err(EstopKeepingError::ThreadEnded),
            Err(_) => Err(EstopKeepingError::SlowDisk),
        }
    }

    /// Ends an emergency stop: an operator's word. An operator's `reset` comes next.
    ///
    /// # Errors
    /// Why it still stands: its file could not be taken away, or another one came meanwhile.
    pub fn clear_emergency(&self) -> Result<(), EstopKeepingError> {
        let disk = self.keeper.get().map(|keeper| keeper.disk.locked());
        let count = self.state().emergencies;
        if let Some(disk) = &disk {
            let owed = disk.owed_reset();
            owed.write("an emergency stop was cleared; `steadyhand reset` comes next")
                .map_err(|error| owed.failed(&error))?;
            disk.remove().map_err(|error| disk.failed(&error))?;
        }
        let mut state = self.state();
        if state.emergencies != count {
            // The thread waits for the disk, and writes it again.
            return Err(EstopKeepingError::StoppedMeanwhile);
        }
        if matches!(state.latch, Some(StopLatch::Emergency(_))) {
            state.latch = Some(StopLatch::Stopped(ActorRank::Operator));
        }
        Ok(())
    }
}

/// Until the node is gone, and once more after that was seen: a stop may be the last it did.
fn follow_latch(
    node: &Weak<PermitRegistry>,
    disk: &Mutex<EstopFile>,
    tell: &watch::Sender<EstopProgress>,
) {
    let (mut done, mut may_owe) = (0, true);
    while let Some(permits) = node.upgrade() {
        let disk = disk.locked();
        let (latch, emergencies) = {
            let state = permits.state();
            (state.latch.clone(), state.emergencies)
        };
        drop(permits);
        may_owe |= latch.is_some() || emergencies > done;
        if latch.is_none() && may_owe {
            let owed = disk.owed_reset();
            may_owe = owed.exists();
            if may_owe && let Err(error) = owed.remove() {
                // It is asked for once more after the next start.
                tracing::error!("{}", owed.failed(&error));
            }
        }
        if emergencies > done {
            let failed = match latch {
                Some(StopLatch::Emergency(by)) => {
                    let words = format!(
                        "emergency stop by {}; `steadyhand clear` ends it",
                        super::who(by)
                    );
                    disk.write(&words).err().map(|error| disk.failed(&error))
                }
                // It was cleared before it was written.
                _ => None,
            };
            match &failed {
                None => done = emergencies,
                // Tried again and again, but said once.
                Some(_) if tell.borrow().failed == failed => {}
                Some(why) => {
                    tracing::error!("an emergency stop lasts as long as this process: {why}");
                }
            }
            tell.send_replace(EstopProgress {
                emergencies,
                failed,
            });
        }
        drop(disk);
        std::thread::park_timeout(LOOK);
    }
}
