//! Releases a motion as its journal grows: what will be drawn is on the disk before it is drawn.
//!
//! A plain thread of its own, for it waits for the disk. It sees what the arm's thread publishes
//! and never holds it up; where the disk is too slow, it is the arm that waits. If a record cannot
//! be written, the motion is stopped.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use super::ink_table::{InkProgress, InkTable};
use super::job_journal::JobJournal;
use super::journal_file::JournalError;
use motion::{MotionRelease, MotionState, Snapshot};
use plan::Plan;
use scene::Scene;

/// Line that may be drawn beyond what was last recorded as drawn. A crash leaves no more than this
/// in doubt, and a stop's braking is within it.
const AHEAD_MM: f64 = 5.0;

/// Length of line that is recorded at a time: the arm has the rest as its lead over the disk.
const STEP_MM: f64 = 1.0;

/// Number of samples by which fast motions are released before they are wanted: more than the arm
/// sends while the writer looks once.
const SOON_SAMPLES: usize = 2;

const THREAD_FAILED: &str = "the journal's thread failed";

/// A callback for a record that cannot be written: it must stop the motion.
pub type OnFailure = Box<dyn FnOnce(&str) + Send>;

/// The keeper of one motion.
pub struct JournalWriter {
    release: MotionRelease,
    end: oneshot::Sender<()>,
    kept: oneshot::Receiver<JournalOutcome>,
}

/// Progress of a motion at its end, and any failure of its journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JournalOutcome {
    /// Its progress.
    pub drawn: InkProgress,
    /// The reason why its journal could not be written to the end.
    pub failure: Option<String>,
}

impl JournalWriter {
    /// Records a plan and releases its beginning. This waits for the disk.
    ///
    /// # Errors
    /// When it cannot be recorded; then the motion must not begin.
    pub fn start(
        entry: Arc<JobJournal>,
        scene: &Scene,
        plan: &Plan,
        snapshots: watch::Receiver<Snapshot>,
        on_failure: OnFailure,
    ) -> Result<Self, JournalError> {
        let table = InkTable::new(scene, &plan.trajectory, &plan.strokes);
        let start = plan.trajectory.samples.first();
        if let Some(start) = start {
            entry.planned(plan, start)?;
        }
        entry.moving()?;
        let release = MotionRelease::nothing_of(entry.id());
        let mut keeping = JournalTask {
            entry,
            table,
            release: release.clone(),
            upto_mm: 0.0,
            held: false,
        };
        keeping.release_next()?;
        let (end, ended) = oneshot::channel();
        let (tell, kept) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(thread)?;
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let kept = runtime.block_on(keeping.run(snapshots, ended, on_failure));
                // Whoever asked may be gone.
                let _ = tell.send(kept);
            })
            .map_err(thread)?;
        Ok(Self { release, end, kept })
    }

    /// Returns the limit up to which the motion may go.
    #[must_use]
    pub fn release(&self) -> MotionRelease {
        self.release.clone()
    }

    /// The motion has ended: how far it came.
    pub async fn finish(self) -> JournalOutcome {
        // A keeper that failed has gone, and has said what it knows.
        let _ = self.end.send(());
        self.kept.await.unwrap_or_else(|_| JournalOutcome {
            failure: Some(THREAD_FAILED.to_owned()),
            ..JournalOutcome::default()
        })
    }
}

fn thread(error: std::io::Error) -> JournalError {
    JournalError::File {
        path: "the journal's thread".into(),
        error,
    }
}

/// Stops the motion once, also if the journal's thread panics: without releases it would stand with
/// its pen on the paper.
struct FailureAlarm(Option<OnFailure>);

impl FailureAlarm {
    fn raise(&mut self, why: &str) {
        if let Some(on_failure) = self.0.take() {
            on_failure(why);
        }
    }
}

impl Drop for FailureAlarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.raise(THREAD_FAILED);
        }
    }
}

struct JournalTask {
    entry: Arc<JobJournal>,
    table: InkTable,
    release: MotionRelease,
    upto_mm: f64,
    held: bool,
}

impl JournalTask {
    /// Until the motion has ended; then records how far it came.
    async fn run(
        &mut self,
        snapshots: watch::Receiver<Snapshot>,
        mut ended: oneshot::Receiver<()>,
        on_failure: OnFailure,
    ) -> JournalOutcome {
        let mut failure = None;
        let mut alarm = FailureAlarm(Some(on_failure));
        if let Err(error) = self.follow(snapshots, &mut ended).await {
            alarm.raise(&error.to_string());
            failure = Some(error.to_string());
            // The arm brakes and lifts: how far it came is known when it stands.
            let _ = ended.await;
        }
        let drawn = self.drawn();
        if failure.is_none() {
            failure = self.entry.passed(drawn).err().map(|why| why.to_string());
        }
        JournalOutcome { drawn, failure }
    }

    async fn follow(
        &mut self,
        mut snapshots: watch::Receiver<Snapshot>,
        ended: &mut oneshot::Receiver<()>,
    ) -> Result<(), JournalError> {
        loop {
            tokio::select! {
                biased;
                _ = &mut *ended => return Ok(()),
                changed = snapshots.changed() => {
                    if changed.is_err() { return Ok(()); }
                    let state = snapshots.borrow_and_update().state;
                    self.note_hold(state == MotionState::Held)?;
                    self.release_next()?;
                }
            }
        }
    }

    fn note_hold(&mut self, held: bool) -> Result<(), JournalError> {
        if held == self.held {
            return Ok(());
        }
        self.held = held;
        if held {
            self.entry.held("the motion is held with the pen up")
        } else {
            self.entry.moving()
        }
    }

    /// Records what comes next, and then releases it.
    fn release_next(&mut self) -> Result<(), JournalError> {
        if self.table.is_dry() {
            self.release.up_to(usize::MAX);
            return Ok(());
        }
        let drawn = self.drawn();
        let total_mm = self.table.total_mm();
        // A motion so fast that its braking, and what the arm lags, are longer must still be able to
        // go on. What it wants next must be there before it wants it: where it waits, simulated
        // time stands still, and nothing would be heard of it.
        let wanted = self.release.wanted();
        let soon_mm = self.table.at(wanted + SOON_SAMPLES).mm;
        let ahead_mm = drawn.mm + AHEAD_MM;
        let next_mm = if ahead_mm >= soon_mm {
            ahead_mm.min(total_mm)
        } else {
            self.table.at(wanted + 2 * SOON_SAMPLES).mm
        };
        let due = next_mm >= self.upto_mm + STEP_MM
            || (next_mm > self.upto_mm && (next_mm >= total_mm || soon_mm > self.upto_mm));
        if due {
            self.entry.ink(drawn, next_mm)?;
            self.upto_mm = next_mm;
            let end = if next_mm >= total_mm {
                usize::MAX
            } else {
                self.table.end_of(next_mm)
            };
            self.release.up_to(end);
        }
        Ok(())
    }

    fn drawn(&self) -> InkProgress {
        // What the arm was only sent to is not drawn: it may have been held back.
        self.table.at(self.release.reached())
    }
}
