//! The journal of one job, while it is being written.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::ink_table::InkProgress;
use super::journal_file::{JournalError, JournalFile};
use super::journal_record::{JournalRecord, RecordKind, encode_pauses, encode_strokes};
use super::past_job::PastJob;
use base::clock::calendar_ms;
use base::disk;
use base::file_access::sync_folder;
use base::lock::MutexExt;
use base::units::JointVector;
use plan::Plan;
use scene::{DrawingPause, SheetStroke};

/// Facts of a job at its beginning.
#[derive(Clone, Debug, Default)]
pub struct AcceptedJob {
    /// Its name.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The arm.
    pub arm: String,
    /// `true` if the arm is behind a port, and not simulated in the node.
    pub is_on_port: bool,
    /// The scene.
    pub scene: String,
    /// The overlay; empty for none.
    pub overlay: String,
    /// The scene's revision, in hexadecimal.
    pub revision: String,
    /// The caller.
    pub caller: String,
    /// The arguments as they came.
    pub received: String,
    /// The arguments as they were understood, as JSON.
    pub understood: String,
    /// The repairs, as JSON.
    pub repairs: String,
    /// The job that it continues; empty for none.
    pub resumes: String,
    /// The first job of its drawing, of whichever arm; empty for that job itself.
    pub first_job: String,
    /// The drawing that replaces the scene's own design.
    pub drawing: Option<JournalDrawing>,
    /// The queue's drawing that it draws; empty for none.
    pub ticket: String,
}

/// A drawing that replaces a scene's own design, as a job keeps it.
#[derive(Clone, Debug)]
pub struct JournalDrawing {
    /// Its name for people.
    pub label: String,
    /// The complete design as TOML, from which the scene is built again.
    pub design: String,
    /// The words, if it is a text.
    pub words: Option<String>,
    /// Its supplier.
    pub origin: DrawingOrigin,
}

/// Supplier of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawingOrigin {
    /// An operator at a terminal.
    Operator,
    /// A caller, for a canvas.
    Caller,
}

/// Place of the tip at a job's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TipPlace {
    /// It was measured to be off the sheet.
    Off,
    /// It was measured to be at the sheet.
    AtSheet,
    /// The arm's position could not be read.
    Unread,
}

impl TipPlace {
    const ALL: [Self; 3] = [Self::Off, Self::AtSheet, Self::Unread];

    const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::AtSheet => "at sheet",
            Self::Unread => "unread",
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.word() == word)
    }
}

impl DrawingOrigin {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Caller => "caller",
        }
    }
}

impl JournalDrawing {
    /// Returns the hash of its design, in hexadecimal.
    #[must_use]
    pub fn hash_hex(&self) -> String {
        blake3::hash(self.design.as_bytes()).to_hex().to_string()
    }
}

/// Value of `at` for an arm that is behind a port.
pub(super) const AT_PORT: &str = "port";

/// Value of `at` for an arm that is simulated in the node.
pub(super) const AT_SIMULATOR: &str = "simulator";

/// Longer arguments are cut before they are kept.
const RECEIVED_CHARS_MAX: usize = 16 << 10;

/// A job's journal.
#[derive(Debug)]
pub struct JobJournal {
    id: String,
    folder: PathBuf,
    state: Mutex<JournalState>,
}

#[derive(Debug)]
struct JournalState {
    log: JournalFile,
    past: PastJob,
    /// The place of the present motion in a drawing of several parts.
    part: DrawingPart,
}

/// A motion's place in a drawing that is drawn in parts, one for each pen: the strokes of the other parts, in drawing order.
#[derive(Clone, Debug, Default)]
pub struct DrawingPart {
    /// Drawn before it.
    pub earlier: Vec<SheetStroke>,
    /// To be drawn after it.
    pub later: Vec<SheetStroke>,
}

impl DrawingPart {
    fn drawn_before(&self) -> InkProgress {
        InkProgress {
            mm: self.earlier.iter().map(SheetStroke::length_mm).sum(),
            strokes: self.earlier.len(),
        }
    }

    /// Returns the progress of the whole drawing.
    fn with_earlier(&self, drawn: InkProgress) -> InkProgress {
        let earlier = self.drawn_before();
        InkProgress {
            mm: earlier.mm + drawn.mm,
            strokes: earlier.strokes + drawn.strokes,
        }
    }
}

impl JobJournal {
    /// Creates a job's folder and the beginning of its journal; both are on the disk afterwards.
    pub(super) fn create(jobs: &Path, accepted: &AcceptedJob) -> Result<Self, JournalError> {
        let folder = jobs.join(&accepted.id);
        let failed = |error| JournalError::File {
            path: folder.clone(),
            error,
        };
        std::fs::create_dir(&folder).map_err(failed)?;
        if let Some(drawing) = &accepted.drawing {
            disk::put(&folder.join(super::DESIGN), &drawing.design).map_err(failed)?;
        }
        let mut log = JournalFile::create(&folder.join(super::JOURNAL))?;
        let record = accepted.record();
        log.append(&record)?;
        sync_folder(&folder).map_err(failed)?;
        sync_folder(jobs).map_err(failed)?;
        Ok(Self {
            id: accepted.id.clone(),
            state: Mutex::new(JournalState {
                log,
                past: PastJob::from_records(&[record]),
                part: DrawingPart::default(),
            }),
            folder,
        })
    }

    /// Writes the journal of a job anew that was cut in its first record, although the job had begun: it counts as interrupted while
    /// it moved. Returns the job also where that cannot be written.
    pub(super) fn replace_cut(folder: &Path, accepted: &AcceptedJob) -> PastJob {
        let mut records = vec![
            accepted.record(),
            JournalRecord::new(RecordKind::Moving).with("at_ms", calendar_ms()),
        ];
        let past = PastJob::from_records(&records);
        records.push(past.interrupted_record("its journal is incomplete, and the node ended"));
        let path = folder.join(super::JOURNAL);
        let written = std::fs::remove_file(&path)
            .or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
            .map_err(|error| JournalError::File {
                path: path.clone(),
                error,
            })
            .and_then(|()| JournalFile::create(&path))
            .and_then(|mut log| records.iter().try_for_each(|record| log.append(record)));
        if let Err(error) = written {
            tracing::warn!(
                "cannot record the interruption of {} in its journal: {error}",
                accepted.id
            );
        }
        PastJob::from_records(&records)
    }

    /// The job's name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the folder of its journal and pictures.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the job as its journal describes it so far.
    #[must_use]
    pub fn past(&self) -> PastJob {
        self.state().past.clone()
    }

    /// Sets the part of the drawing to which the next motions belong.
    pub fn begins_part(&self, part: DrawingPart) {
        self.state().part = part;
    }

    /// Records that a motion of it was planned, with the strokes of the whole drawing.
    ///
    /// # Errors
    /// When this is not on the disk.
    pub fn planned(&self, plan: &Plan, start: &JointVector) -> Result<(), JournalError> {
        let angles = |q: &JointVector| {
            let angles: Vec<String> = q.iter().map(ToString::to_string).collect();
            angles.join(" ")
        };
        let end = plan.trajectory.samples.last();
        let part = self.state().part.clone();
        let before = part.drawn_before();
        let strokes = [&part.earlier[..], &plan.strokes, &part.later].concat();
        self.write(
            &JournalRecord::new(RecordKind::Planned)
                .with("plan", &plan.hash)
                .with("duration_s", plan.report.duration_s)
                .with("start_rad", angles(start))
                .with("end_rad", end.map(angles).unwrap_or_default())
                .with("before_mm", before.mm)
                .with("before", before.strokes)
                .bytes("strokes", encode_strokes(&strokes))
                .bytes("pauses", encode_pauses(&strokes)),
        )
    }

    /// Records that the motion is about to be handed to the arm.
    ///
    /// # Errors
    /// When this is not on the disk.
    pub fn moving(&self) -> Result<(), JournalError> {
        self.write(&JournalRecord::new(RecordKind::Moving).with("at_ms", calendar_ms()))
    }

    /// Records that the pen is about to draw on, from `drawn` to at most `upto_mm` of the plan's line.
    ///
    /// # Errors
    /// When this is not on the disk; then the pen must not draw on.
    pub fn ink(&self, drawn: InkProgress, upto_mm: f64) -> Result<(), JournalError> {
        let part = self.state().part.clone();
        let record = drawn_record(RecordKind::Ink, part.with_earlier(drawn));
        self.write(&record.with("upto_mm", part.drawn_before().mm + upto_mm))
    }

    /// Records that it waits.
    ///
    /// # Errors
    /// When this is not on the disk.
    pub fn held(&self, reason: &str) -> Result<(), JournalError> {
        self.write(&JournalRecord::new(RecordKind::Held).with("why", reason))
    }

    /// Records that it waits for a pen, or at a pause; `state` is its state until it goes on.
    ///
    /// # Errors
    /// When this is not on the disk.
    pub fn waits(&self, state: &str, reason: &str) -> Result<(), JournalError> {
        let record = JournalRecord::new(RecordKind::Held).with("why", reason);
        self.write(&record.with("state", state))
    }

    /// Records that a person allowed its plan.
    ///
    /// # Errors
    /// When this is not on the disk.
    pub fn approved(&self, plan_hash: &str) -> Result<(), JournalError> {
        self.write(&JournalRecord::new(RecordKind::Approved).with("plan", plan_hash))
    }

    /// Records that a person confirmed that a pen of this name is in the holder; `number` counts from 1.
    ///
    /// # Errors
    /// When this is not on the disk; then the pen must not draw.
    pub fn pen_confirmed(&self, number: usize, name: &str) -> Result<(), JournalError> {
        let record = JournalRecord::new(RecordKind::PenConfirmed);
        self.write(&record.with("pen", number).with("name", name))
    }

    /// Records by how much a touch found the pen in the holder to be longer than in the scene, and
    /// how uncertain that is.
    ///
    /// # Errors
    /// When this is not on the disk; then the pen must not draw.
    pub fn pen_measured(
        &self,
        number: usize,
        name: &str,
        longer_mm: f64,
        uncertainty_mm: f64,
    ) -> Result<(), JournalError> {
        let record = JournalRecord::new(RecordKind::PenMeasured);
        let record = record.with("pen", number).with("name", name);
        let record = record.with("longer_mm", format!("{longer_mm:+.2}"));
        self.write(&record.with("uncertainty_mm", uncertainty_mm))
    }

    /// Records how much deeper than planned a person wants the pen from here on.
    ///
    /// # Errors
    /// When this is not on the disk.
    pub fn depth_trimmed(&self, deeper_mm: f64, drawn: InkProgress) -> Result<(), JournalError> {
        let part = self.state().part.clone();
        let record = drawn_record(RecordKind::DepthTrimmed, part.with_earlier(drawn));
        self.write(&record.with("deeper_mm", format!("{deeper_mm:+.2}")))
    }

    /// Records that a person let it go on after a pause.
    ///
    /// # Errors
    /// When this is not on the disk; then nothing after the pause must be drawn.
    pub fn pause_ended(&self, pause: &DrawingPause) -> Result<(), JournalError> {
        let record = JournalRecord::new(RecordKind::PauseEnded);
        self.write(&record.with("asked_by", &pause.asked_by))
    }

    /// Records the progress of one of its motions at the motion's end.
    ///
    /// # Errors
    /// When this is not on the disk.
    pub fn passed(&self, drawn: InkProgress) -> Result<(), JournalError> {
        let total = self.state().part.with_earlier(drawn);
        self.write(&drawn_record(RecordKind::Passed, total))
    }

    /// Records its end: `state` is `reached`, `stopped`, `refused` or `faulted`; `figures` are JSON; `tip` is `None` if it did not move.
    ///
    /// # Errors
    /// When this is not on the disk: the next start will call the job interrupted.
    pub fn ended(
        &self,
        state: &str,
        message: &str,
        figures: &str,
        tip: Option<TipPlace>,
    ) -> Result<(), JournalError> {
        let drawn = self.state().past.drawn;
        self.write(
            &drawn_record(RecordKind::Ended, drawn)
                .with("at_ms", calendar_ms())
                .with("state", state)
                .with("message", message)
                .with("figures", figures)
                .with("tip", tip.map_or("", TipPlace::word)),
        )
    }

    #[cfg(test)]
    pub(super) fn disk_fills_at(&self, record: u64) {
        self.state().log.disk_fills_at(record);
    }

    #[cfg(test)]
    pub(super) fn disk_fills_at_kind(&self, kind: RecordKind) {
        self.state().log.disk_fills_at_kind(kind);
    }

    #[cfg(test)]
    pub(super) fn panics_at(&self, record: u64) {
        self.state().log.panics_at(record);
    }

    fn write(&self, record: &JournalRecord) -> Result<(), JournalError> {
        let mut state = self.state();
        state.log.append(record)?;
        state.past.apply_record(record);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, JournalState> {
        self.state.locked()
    }
}

impl AcceptedJob {
    fn record(&self) -> JournalRecord {
        let drawing = |field: fn(&JournalDrawing) -> String| {
            self.drawing.as_ref().map(field).unwrap_or_default()
        };
        let received: String = self.received.chars().take(RECEIVED_CHARS_MAX).collect();
        JournalRecord::new(RecordKind::Accepted)
            .with("at_ms", calendar_ms())
            .with("id", &self.id)
            .with("tool", &self.tool)
            .with("arm", &self.arm)
            .with(
                "at",
                if self.is_on_port {
                    AT_PORT
                } else {
                    AT_SIMULATOR
                },
            )
            .with("scene", &self.scene)
            .with("overlay", &self.overlay)
            .with("revision", &self.revision)
            .with("caller", &self.caller)
            .with("received", received)
            .with("understood", &self.understood)
            .with("repairs", &self.repairs)
            .with("resumes", &self.resumes)
            .with("first_job", &self.first_job)
            .with("ticket", &self.ticket)
            .with("drawing", drawing(|d| d.label.clone()))
            .with("drawing_of", drawing(|d| d.origin.word().to_owned()))
            .with("design_hash", drawing(JournalDrawing::hash_hex))
    }
}

fn drawn_record(kind: RecordKind, drawn: InkProgress) -> JournalRecord {
    JournalRecord::new(kind)
        .with("drawn_mm", drawn.mm)
        .with("done", drawn.strokes)
}
