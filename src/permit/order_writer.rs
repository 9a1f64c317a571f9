//! The thread that writes an emergency stop to the disk, so that the stop itself never waits.
//!
//! Memory decides, and the file follows: a latch wakes the thread, and the thread makes the file match
//! memory. Clearing removes the file first, under the lock that the thread writes under, so that a
//! stop that comes meanwhile is written again. Before that it writes another file, which says that a
//! reset is owed and is removed once the arm has been reset.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::watch;

use super::estop_file::{EstopFile, kept_latch};
use super::{ActorRank, PermitRegistry, StopLatch};
use base::lock::MutexExt;

/// Longest time that an answer waits for the disk. The arm stands still long before.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which the thread checks by itself whether the node still exists.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Reason why an emergency stop is not kept on the disk, or not cleared.
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
    /// A file was set before.
    #[error("emergency stops are kept already")]
    KeptAlready,
    /// The thread that writes the file has ended.
    #[error("the thread that keeps emergency stops has ended")]
    ThreadEnded,
    /// The file was not written in time.
    #[error("the disk took longer than {} s", DISK_TIMEOUT.as_secs())]
    SlowDisk,
    /// Another emergency stop was requested while one was cleared.
    #[error("another emergency stop came meanwhile")]
    StoppedMeanwhile,
}

#[derive(Debug)]
pub(super) struct EstopWriter {
    file: Arc<Mutex<EstopFile>>,
    thread: Thread,
    progress: watch::Receiver<EstopProgress>,
}

/// Progress of the disk: the emergency stops that it has followed, and its last failure.
#[derive(Clone, Debug, Default)]
struct EstopProgress {
    emergencies: u64,
    failed: Option<EstopKeepingError>,
}

impl EstopWriter {
    /// Wakes the thread. Never waits.
    pub(super) fn wake(&self) {
        self.thread.unpark();
    }
}

impl PermitRegistry {
    /// Keeps emergency stops in a file, and latches at once if there is one: from an earlier
    /// process, or one that cannot be read.
    ///
    /// # Errors
    /// The thread cannot be started, or a file was set before.
    pub fn keep_emergency_in(self: &Arc<Self>, file: PathBuf) -> Result<(), EstopKeepingError> {
        if let Some(latch) = kept_latch(&file) {
            self.latch(latch);
        }
        let estop_file = EstopFile::at(file);
        let file = Arc::new(Mutex::new(estop_file));
        let (progress_sender, progress) = watch::channel(EstopProgress::default());
        let (registry, own_file) = (Arc::downgrade(self), Arc::clone(&file));
        let thread = std::thread::Builder::new()
            .name("emergency stop".to_owned())
            .spawn(move || follow_latch(&registry, &own_file, &progress_sender))
            .map_err(|error| EstopKeepingError::NoThread(error.to_string()))?;
        let writer = EstopWriter {
            file,
            thread: thread.thread().clone(),
            progress,
        };
        self.estop_writer
            .set(writer)
            .map_err(|_| EstopKeepingError::KeptAlready)
    }

    /// Waits until every emergency stop so far is on the disk; returns at once if none is kept in a file.
    ///
    /// # Errors
    /// The reason why one is not; it then lasts only as long as this process.
    pub async fn emergency_is_kept(&self) -> Result<(), EstopKeepingError> {
        let Some(writer) = self.estop_writer.get() else {
            return Ok(());
        };
        let count = self.state().emergencies;
        let mut progress = writer.progress.clone();
        let written = progress.wait_for(|progress| progress.emergencies >= count);
        match tokio::time::timeout(DISK_TIMEOUT, written).await {
            Ok(Ok(progress)) => progress.failed.clone().map_or(Ok(()), Err),
            Ok(Err(_)) => Err(EstopKeepingError::ThreadEnded),
            Err(_) => Err(EstopKeepingError::SlowDisk),
        }
    }

    /// Ends an emergency stop on an operator's word. An operator's `reset` comes next. `seen` is the number of emergency stops
    /// that had been latched when that word arrived: it ends no later one.
    ///
    /// # Errors
    /// The reason why it still stands: its file could not be removed, or another one came meanwhile.
    pub fn clear_emergency(&self, seen: u64) -> Result<(), EstopKeepingError> {
        let file = self.estop_writer.get().map(|writer| writer.file.locked());
        if self.emergencies() != seen {
            return Err(EstopKeepingError::StoppedMeanwhile);
        }
        let is_latched = matches!(self.state().latch, Some(StopLatch::Emergency(_)));
        if let Some(file) = &file {
            let owed = file.owed_reset();
            if is_latched {
                owed.write("an emergency stop was cleared; `steadyhand reset` comes next")
                    .map_err(|error| owed.failed(&error))?;
            }
            file.remove().map_err(|error| file.failed(&error))?;
        }
        let mut state = self.state();
        if state.emergencies != seen {
            // The thread waits for the file's lock, and writes it again.
            return Err(EstopKeepingError::StoppedMeanwhile);
        }
        if matches!(state.latch, Some(StopLatch::Emergency(_))) {
            state.latch = Some(StopLatch::Stopped(ActorRank::Operator));
        }
        Ok(())
    }
}

/// Makes the file follow the latch, until the registry is gone.
fn follow_latch(
    registry: &Weak<PermitRegistry>,
    file: &Mutex<EstopFile>,
    progress_sender: &watch::Sender<EstopProgress>,
) {
    let (mut written, mut may_owe_reset) = (0, true);
    while let Some(permits) = registry.upgrade() {
        let file = file.locked();
        let (latch, emergencies) = {
            let state = permits.state();
            (state.latch.clone(), state.emergencies)
        };
        drop(permits);
        may_owe_reset |= latch.is_some() || emergencies > written;
        if latch.is_none() && may_owe_reset {
            may_owe_reset = false;
            let owed = file.owed_reset();
            if owed.exists()
                && let Err(error) = owed.remove()
            {
                // The reset is asked for once more after the next start.
                tracing::error!("{}", owed.failed(&error));
            }
        }
        if emergencies > written {
            let failed = match latch {
                Some(StopLatch::Emergency(by)) => {
                    let text = format!(
                        "emergency stop by {}; `steadyhand clear` ends it",
                        super::actor_text(by)
                    );
                    file.write(&text).err().map(|error| file.failed(&error))
                }
                // It was cleared before it was written.
                _ => None,
            };
            match &failed {
                None => written = emergencies,
                // Retried each time, but logged once.
                Some(_) if progress_sender.borrow().failed == failed => {}
                Some(failure) => {
                    tracing::error!("an emergency stop lasts as long as this process: {failure}");
                }
            }
            progress_sender.send_replace(EstopProgress {
                emergencies,
                failed,
            });
        }
        drop(file);
        std::thread::park_timeout(POLL_INTERVAL);
    }
}
