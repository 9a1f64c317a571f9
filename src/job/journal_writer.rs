//! Releases a motion as its journal grows: the intent to draw a line is on the disk before the line is drawn.
//!
//! It has a thread of its own, for it waits for the disk. It follows what the arm's thread publishes
//! and never blocks it; if the disk is too slow, the arm waits for releases. If a record cannot
//! be written, the motion is stopped.

use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use super::ink_table::{InkProgress, InkTable};
use super::job_journal::JobJournal;
use super::journal_file::JournalError;
use motion::{DepthTrim, MotionRelease, MotionState, Snapshot};
use plan::Plan;
use scene::Scene;

/// Length of line that may be drawn beyond what was last recorded as drawn. A crash leaves no more than this
/// in doubt, and it includes the braking of a stop.
const AHEAD_MM: f64 = 5.0;

/// Length of line that is recorded at a time; the rest of [`AHEAD_MM`] is the arm's lead over the disk.
const STEP_MM: f64 = 1.0;

/// Number of samples by which fast motions are released before they are needed: more than the arm
/// sends during one iteration of the writer.
const SOON_SAMPLES: usize = 2;

const THREAD_FAILED: &str = "the thread that writes the journal failed";

/// A callback for a record that cannot be written: it must stop the motion.
pub type OnFailure = Box<dyn FnOnce(&str) + Send>;

/// Writes the journal of one motion.
pub struct JournalWriter {
    release: MotionRelease,
    end: oneshot::Sender<()>,
    outcome: oneshot::Receiver<JournalOutcome>,
}

/// Progress of a motion at its end, and any failure of its journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JournalOutcome {
    /// Its progress.
    pub drawn: InkProgress,
    /// The reason why its journal could not be written on: the motion was told to stop.
    pub failure: Option<String>,
    /// The reason why only the progress at its end could not be written, after the motion had ended.
    pub end_failure: Option<String>,
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
        let mut task = JournalTask {
            entry,
            table,
            release: release.clone(),
            upto_mm: 0.0,
            is_held: false,
            trimmed_mm: 0.0,
        };
        task.release_next()?;
        let (end, ended) = oneshot::channel();
        let (sender, outcome) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(spawn_error)?;
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                let outcome = runtime.block_on(task.run(snapshots, ended, on_failure));
                // The receiver may be gone.
                let _ = sender.send(outcome);
            })
            .map_err(spawn_error)?;
        Ok(Self {
            release,
            end,
            outcome,
        })
    }

    /// Returns the limit up to which the motion may go.
    #[must_use]
    pub fn release(&self) -> MotionRelease {
        self.release.clone()
    }

    /// Ends the journal of a motion that has ended, and returns its progress.
    pub async fn finish(self) -> JournalOutcome {
        // A task that failed has ended already, and has sent its outcome.
        let _ = self.end.send(());
        self.outcome.await.unwrap_or_else(|_| JournalOutcome {
            failure: Some(THREAD_FAILED.to_owned()),
            ..JournalOutcome::default()
        })
    }
}

fn spawn_error(error: std::io::Error) -> JournalError {
    JournalError::File {
        path: "the journal's thread".into(),
        error,
    }
}

/// Stops the motion once, also if the journal's thread panics: without releases the arm would wait with
/// its pen on the paper.
struct FailureAlarm(Option<OnFailure>);

impl FailureAlarm {
    fn raise(&mut self, reason: &str) {
        if let Some(on_failure) = self.0.take() {
            on_failure(reason);
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
    is_held: bool,
    /// How much deeper than planned a person wants the pen.
    trimmed_mm: f64,
}

impl JournalTask {
    /// Runs until the motion has ended; then records its progress.
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
            // The arm brakes and lifts: its progress is final once it stands still.
            let _ = ended.await;
        }
        let drawn = self.drawn();
        let end_failure = match failure {
            Some(_) => None,
            None => self.entry.passed(drawn).err().map(|e| e.to_string()),
        };
        JournalOutcome {
            drawn,
            failure,
            end_failure,
        }
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
                    let (state, trim) = {
                        let snapshot = snapshots.borrow_and_update();
                        (snapshot.state, snapshot.depth_trim)
                    };
                    self.note_hold(state == MotionState::Held)?;
                    self.note_trim(trim)?;
                    self.release_next()?;
                }
            }
        }
    }

    fn note_hold(&mut self, is_held: bool) -> Result<(), JournalError> {
        if is_held == self.is_held {
            return Ok(());
        }
        self.is_held = is_held;
        if is_held {
            self.entry.held("the motion is held with the pen up")
        } else {
            self.entry.moving()
        }
    }

    /// Records a new trim. The motion's own end of one is not recorded.
    fn note_trim(&mut self, trim: Option<DepthTrim>) -> Result<(), JournalError> {
        let is_at_end = self.drawn().mm >= self.table.total_mm();
        let new = trim.filter(|trim| (trim.target_mm - self.trimmed_mm).abs() > 0.0 && !is_at_end);
        if let Some(trim) = new {
            self.trimmed_mm = trim.target_mm;
            self.entry.depth_trimmed(trim.target_mm, self.drawn())?;
        }
        Ok(())
    }

    /// Records what comes next, and then releases it.
    fn release_next(&mut self) -> Result<(), JournalError> {
        if self.table.is_dry() {
            self.release.up_to(usize::MAX);
            return Ok(());
        }
        let (wanted, reached) = self.release.wanted_and_reached();
        let drawn = self.table.progress_at(reached);
        let total_mm = self.table.total_mm();
        // A motion so fast that its braking distance and the arm's lag are longer than that must still be able to
        // go on. It must find its next samples released: while it waits, simulated
        // time stands still, and it publishes nothing.
        let soon_mm = self.table.progress_at(wanted + SOON_SAMPLES).mm;
        let ahead_mm = drawn.mm + AHEAD_MM;
        let next_mm = if ahead_mm >= soon_mm {
            ahead_mm.min(total_mm)
        } else {
            self.table.progress_at(wanted + 2 * SOON_SAMPLES).mm
        };
        let is_due = next_mm >= self.upto_mm + STEP_MM
            || (next_mm > self.upto_mm && (next_mm >= total_mm || soon_mm > self.upto_mm));
        if is_due {
            self.entry.ink(drawn, next_mm)?;
            self.upto_mm = next_mm;
            let end = if next_mm >= total_mm {
                usize::MAX
            } else {
                self.table.samples_end(next_mm)
            };
            self.release.up_to(end);
        }
        Ok(())
    }

    fn drawn(&self) -> InkProgress {
        // Only samples that the arm has reached count as drawn: it may have been held back from those that were sent.
        self.table.progress_at(self.release.reached())
    }
}
