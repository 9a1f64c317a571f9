//! A job as its journal describes it.

use super::ink_table::{InkProgress, inked, remaining_strokes};
use super::job_journal::{AT_PORT, AT_SIMULATOR, DrawingOrigin, TipPlace};
use super::journal_record::{JournalRecord, RecordKind, decode_strokes, with_pauses};
use base::clock::calendar_ms;
use base::wording::{count, millimetres};
use scene::{DrawingPause, SheetStroke};

/// State of a drawing that came to its end and is not on the paper as planned: a joint did not follow while the tip drew, or ink
/// is missing.
pub const DEVIATED: &str = "deviated";

/// Tool of a job by which a node parks an arm that nobody asked to move.
pub const PARK: &str = "park";

/// Returns whether a job in this state has come to the end of its motion.
#[must_use]
pub fn has_come_to_its_end(state: &str) -> bool {
    matches!(state, "reached" | DEVIATED)
}

/// An arm of a node to its jobs: the arm on a port and the one that practice simulates under the same name are two.
#[derive(Clone, Copy, Debug)]
pub struct ArmKey<'a> {
    /// Its name.
    pub name: &'a str,
    /// `true` if it is behind a port, and not simulated in the node.
    pub is_on_port: bool,
}

impl ArmKey<'_> {
    /// Returns the other arm of this name: the simulated one of an arm on a port, and the reverse.
    #[must_use]
    pub const fn namesake(self) -> Self {
        Self {
            is_on_port: !self.is_on_port,
            ..self
        }
    }
}

/// A job, read back from its journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastJob {
    /// Its name, unique on its node.
    pub id: String,
    /// The tool that was called.
    pub tool: String,
    /// The arm of the node.
    pub arm: String,
    /// `true` if the arm is behind a port, `false` if it is simulated in the node; `None` if a journal of an older node does
    /// not say.
    pub is_on_port: Option<bool>,
    /// The scene that it moved in.
    pub scene: String,
    /// The overlay; empty for none.
    pub overlay: String,
    /// The drawing in place of the scene's own design, by name; empty for none.
    pub drawing: String,
    /// `true` if a caller supplied it for a canvas, rather than an operator.
    pub is_drawing_of_caller: bool,
    /// Hash of the design that it kept, in hexadecimal; empty for none.
    pub design_hash: String,
    /// Revision of the scene: the hash of everything that it was made from, in hexadecimal.
    pub revision: String,
    /// The caller.
    pub caller: String,
    /// The arguments as they came.
    pub received: String,
    /// The arguments as they were understood, as JSON.
    pub understood: String,
    /// The repairs that were made to them, as JSON.
    pub repairs: String,
    /// Time of acceptance, in milliseconds since 1970.
    pub accepted_ms: u64,
    /// The job that it continues; empty for none.
    pub resumes: String,
    /// The first job of its drawing, which may be itself: jobs of arms that draw together, and those that resume them, have the same.
    pub first_job: String,
    /// The queue's drawing that it draws, by batch and number; empty for none.
    pub ticket: String,
    /// The present plan's hash; empty before there is one.
    pub plan_hash: String,
    /// Strokes of the present plan, in drawing order.
    pub strokes: Vec<SheetStroke>,
    /// Duration of the present plan.
    pub duration_s: f64,
    /// Joint angles from which it was planned.
    pub start_rad: Vec<f64>,
    /// `true` if the present plan was handed to the arm.
    pub moved: bool,
    /// `true` if it ever waited for a person whose hand may be at the arm.
    pub waited: bool,
    /// Line that is certainly drawn.
    pub drawn: InkProgress,
    /// Length up to which line may be drawn; nothing beyond it is.
    pub released_mm: f64,
    /// `accepted`, `planning`, `moving`, `held`, `waiting_for_pen`, then `reached`, `deviated`, `stopped`, `refused` or `faulted`.
    pub state: String,
    /// Its outcome, in a sentence.
    pub message: String,
    /// Time of its end, in milliseconds since 1970; 0 while it goes on.
    pub ended_ms: u64,
    /// Its figures, as JSON.
    pub figures: String,
    /// Place of the tip at its end; `None` if it did not move, and in a journal of an older node.
    pub tip: Option<TipPlace>,
    /// `true` if the pen was ever about to draw.
    pub was_at_ink: bool,
    /// `true` if the process ended before the job did.
    pub interrupted: bool,
    /// The job that took over what was left; empty for none.
    pub settled: String,
    /// The hashes of the plans that a person allowed, in order.
    pub approved: Vec<String>,
    /// The pens that a person confirmed to be in the holder, in order, as people know them.
    pub pens_confirmed: Vec<String>,
    /// The pens that a touch measured, in order, and by how much each is longer than its scene says.
    pub pens_measured: Vec<String>,
    /// How much deeper than planned a person wanted the pen, in order, and after which length of line.
    pub depth_trims: Vec<String>,
    /// The parts of the author's file whose pauses a person ended, in order.
    pub pauses_ended: Vec<String>,
    /// Joint angles before its first plan.
    pub began_rad: Vec<f64>,
    /// Joint angles at the end of the present plan; empty in a journal of an older node.
    pub end_rad: Vec<f64>,
}

impl PastJob {
    /// Returns the job that a journal's records describe.
    #[must_use]
    pub(super) fn from_records(records: &[JournalRecord]) -> Self {
        let mut past = Self::default();
        for record in records {
            past.apply_record(record);
        }
        past
    }

    pub(super) fn apply_record(&mut self, record: &JournalRecord) {
        match record.kind {
            Some(RecordKind::Accepted) => self.accepted(record),
            Some(RecordKind::Planned) => self.planned(record),
            Some(RecordKind::Moving) => self.set_moving(),
            Some(RecordKind::Ink) => {
                self.set_drawn(record);
                self.was_at_ink = true;
                self.released_mm = record.number("upto_mm").unwrap_or(self.released_mm);
                self.set_moving();
            }
            Some(RecordKind::Held) => {
                self.state = record.text("state");
                // Journals of older nodes have no state: every wait was a hold.
                if self.state.is_empty() {
                    "held".clone_into(&mut self.state);
                }
                self.waited |= self.state == "waiting_for_pen";
                self.message = record.text("why");
            }
            Some(RecordKind::Passed) => self.set_drawn(record),
            Some(RecordKind::PenConfirmed) => self.pens_confirmed.push(format!(
                "pen {} `{}`",
                record.text("pen"),
                record.text("name")
            )),
            Some(RecordKind::PenMeasured) => self.pens_measured.push(measured_pen_text(record)),
            Some(RecordKind::DepthTrimmed) => self.depth_trims.push(format!(
                "{} mm, after the first {:.0} mm of line",
                record.text("deeper_mm"),
                record.number::<f64>("drawn_mm").unwrap_or_default()
            )),
            Some(RecordKind::PauseEnded) => self.pauses_ended.push(record.text("asked_by")),
            Some(RecordKind::Approved) => self.approved.push(record.text("plan")),
            Some(RecordKind::Ended) => {
                self.set_drawn(record);
                self.tip = TipPlace::of_word(&record.text("tip"));
                // An arm whose position could not be read may have drawn further.
                if self.tip != Some(TipPlace::Unread) {
                    self.released_mm = self.drawn.mm;
                }
                self.state = record.text("state");
                self.message = record.text("message");
                self.figures = record.text("figures");
                self.ended_ms = record.number("at_ms").unwrap_or_default();
            }
            Some(RecordKind::Interrupted) => {
                "faulted".clone_into(&mut self.state);
                self.message = record.text("message");
                self.ended_ms = record.number("at_ms").unwrap_or_default();
                self.interrupted = true;
            }
            Some(RecordKind::Settled) => self.settled = record.text("by"),
            // Written by a newer node.
            None => {}
        }
    }

    fn accepted(&mut self, record: &JournalRecord) {
        self.id = record.text("id");
        self.tool = record.text("tool");
        self.arm = record.text("arm");
        self.is_on_port = match record.text("at").as_str() {
            AT_PORT => Some(true),
            AT_SIMULATOR => Some(false),
            _ => None,
        };
        self.scene = record.text("scene");
        self.overlay = record.text("overlay");
        self.drawing = record.text("drawing");
        self.is_drawing_of_caller = record.text("drawing_of") == DrawingOrigin::Caller.word();
        self.design_hash = record.text("design_hash");
        self.revision = record.text("revision");
        self.caller = record.text("caller");
        self.received = record.text("received");
        self.understood = record.text("understood");
        self.repairs = record.text("repairs");
        self.resumes = record.text("resumes");
        self.first_job = record.text("first_job");
        if self.first_job.is_empty() {
            self.first_job.clone_from(&self.id);
        }
        self.ticket = record.text("ticket");
        self.accepted_ms = record.number("at_ms").unwrap_or_default();
        "planning".clone_into(&mut self.state);
    }

    fn planned(&mut self, record: &JournalRecord) {
        self.plan_hash = record.text("plan");
        self.strokes = record
            .raw("strokes")
            .and_then(decode_strokes)
            .and_then(|strokes| with_pauses(strokes, record.raw("pauses").unwrap_or_default()))
            .unwrap_or_default();
        self.duration_s = record.number("duration_s").unwrap_or_default();
        self.start_rad = angles(&record.text("start_rad"));
        self.end_rad = angles(&record.text("end_rad"));
        if self.began_rad.is_empty() {
            self.began_rad.clone_from(&self.start_rad);
        }
        // In a drawing of several parts, the strokes are those of all parts, and this is what the earlier ones have drawn.
        self.drawn = InkProgress {
            mm: record.number("before_mm").unwrap_or_default(),
            strokes: record.number("before").unwrap_or_default(),
        };
        self.released_mm = self.drawn.mm;
        self.moved = false;
    }

    fn set_drawn(&mut self, record: &JournalRecord) {
        self.drawn = InkProgress {
            mm: record.number("drawn_mm").unwrap_or(self.drawn.mm),
            strokes: record.number("done").unwrap_or(self.drawn.strokes),
        };
    }

    fn set_moving(&mut self) {
        "moving".clone_into(&mut self.state);
        // Its wait is over.
        self.message.clear();
        self.moved = true;
    }

    /// Returns the state for people and clients: a job whose end was never written is `interrupted`, and nothing is known of a
    /// fault.
    #[must_use]
    pub fn reported_state(&self) -> &str {
        match self.interrupted {
            true => "interrupted",
            false => &self.state,
        }
    }

    /// Describes its state as the predicate of a sentence about the job.
    #[must_use]
    pub fn state_text(&self) -> String {
        match self.reported_state() {
            "reached" => "reached its end".to_owned(),
            DEVIATED => "reached its end, but the paper is not as planned".to_owned(),
            "faulted" => "ended in a fault".to_owned(),
            ended @ ("stopped" | "refused" | "interrupted") => format!("was {ended}"),
            "waiting_for_pen" => "waits for a pen".to_owned(),
            state => format!("is {}", state.replace('_', " ")),
        }
    }

    /// Returns whether it is a job of this arm.
    #[must_use]
    pub fn is_of(&self, arm: ArmKey<'_>) -> bool {
        self.arm == arm.name && self.is_on_port == Some(arm.is_on_port)
    }

    /// Returns whether it counts as a job of this arm. One whose journal does not say counts as the arm's on the port, which is
    /// the one that can do harm.
    pub(super) fn counts_for(&self, arm: ArmKey<'_>) -> bool {
        self.arm == arm.name && self.is_on_port.unwrap_or(true) == arm.is_on_port
    }

    /// Returns whether a drawing that it left can be resumed: its journal says which arm's paper has the beginning.
    #[must_use]
    pub const fn is_resumable(&self) -> bool {
        self.is_on_port.is_some()
    }

    /// Returns whether it says where this arm's pen is. What may be another arm's job tells of a pen that is down, not of one that
    /// is up.
    pub(super) fn says_where_pen_of(&self, arm: ArmKey<'_>) -> bool {
        match self.is_of(arm) {
            true => self.says_where_pen_is(),
            false => self.counts_for(arm) && self.may_leave_pen_down(),
        }
    }

    /// Returns whether it says where its arm's pen is, until another job moves the arm.
    pub(super) fn says_where_pen_is(&self) -> bool {
        // Older nodes do not record whether a refused job moved.
        self.tip.is_some() || (self.moved && self.state != "refused")
    }

    /// Returns whether it moved its arm at all, as far as its journal says.
    pub(super) fn has_moved(&self) -> bool {
        self.moved || self.tip.is_some() || self.was_at_ink
    }

    /// Returns whether it may have left the pen on the paper: it was interrupted, or its tip was not measured to be off the
    /// sheet at its end. Journals of older nodes do not record the tip: there it may if the job drew and ended in a fault.
    #[must_use]
    pub fn may_leave_pen_down(&self) -> bool {
        self.says_where_pen_is()
            && match self.tip {
                _ if self.interrupted => true,
                Some(place) => place != TipPlace::Off,
                None => self.state == "faulted" && self.was_at_ink,
            }
    }

    /// Returns whether it has ended, with any outcome. Its time of end is not used: the calendar may have been at zero.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let state = self.state.as_str();
        self.interrupted
            || has_come_to_its_end(state)
            || ["stopped", "refused", "faulted"].contains(&state)
    }

    /// Ends a job whose end could not be written, as on a full disk: a later one has used its arm since.
    pub(super) fn mark_overtaken(&mut self) {
        self.interrupted = true;
        "faulted".clone_into(&mut self.state);
        "its end could not be written".clone_into(&mut self.message);
    }

    /// Ends a job whose node no longer runs and has not been started again.
    pub(super) fn mark_abandoned(&mut self) {
        let message = self.interruption("the node ended");
        self.apply_record(&JournalRecord::new(RecordKind::Interrupted).with("message", message));
    }

    /// Returns the time of its last record with a time, in milliseconds since 1970.
    pub(super) fn last_written_ms(&self) -> u64 {
        match self.ended_ms {
            0 => self.accepted_ms,
            ended_ms => ended_ms,
        }
    }

    /// Returns whether this job's end is not in its journal, or it left a drawing half done: it must not be removed.
    #[must_use]
    pub(super) fn is_open(&self) -> bool {
        self.settled.is_empty() && (self.interrupted || self.is_unfinished())
    }

    /// Returns the end record of a job that has none, because the node ended before the job did, or could not write it.
    pub(super) fn interrupted_record(&self, cause: &str) -> JournalRecord {
        JournalRecord::new(RecordKind::Interrupted)
            .with("at_ms", calendar_ms())
            .with("message", self.interruption(cause))
    }

    fn interruption(&self, cause: &str) -> String {
        match self.moved {
            true => format!("{cause} during this job: {}", self.summary()),
            false => format!("{cause} before this job moved anything"),
        }
    }

    /// Returns the overlay, if there is one.
    #[must_use]
    pub fn overlay(&self) -> Option<&str> {
        Some(self.overlay.as_str()).filter(|overlay| !overlay.is_empty())
    }

    /// Returns the scene's name with those of the overlay and of the drawing that replaces its own.
    #[must_use]
    pub fn scene_title(&self) -> String {
        let drawing = Some(self.drawing.as_str()).filter(|drawing| !drawing.is_empty());
        scene::scene_title(&self.scene, self.overlay(), drawing)
    }

    /// Returns the length of all line of its present plan.
    #[must_use]
    pub fn total_mm(&self) -> f64 {
        // An empty sum is -0.
        self.strokes.iter().map(SheetStroke::length_mm).sum::<f64>() + 0.0
    }

    /// Returns whether it left a drawing half done that no other job has continued.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.is_over() && self.state != "reached" && self.settled.is_empty() && self.has_remainder()
    }

    /// Returns whether it draws the same as another job: the same revision of a scene, or the same supplied drawing
    /// in a scene of the same name.
    #[must_use]
    pub fn draws_same(&self, other: &Self) -> bool {
        let drawing = |past: &Self| (past.scene_title(), past.design_hash.clone());
        self.revision == other.revision
            || (!self.design_hash.is_empty() && drawing(self) == drawing(other))
    }

    /// Returns whether it has begun to draw a design, and has not drawn all of it.
    #[must_use]
    pub fn has_remainder(&self) -> bool {
        self.tool == "stroke" && self.has_inked() && self.drawn.strokes < self.strokes.len()
    }

    /// Returns whether its ink is on the sheet, or may be.
    #[must_use]
    pub fn has_inked(&self) -> bool {
        self.drawn.mm > 0.0 || (self.interrupted && self.released_mm > 0.0)
    }

    /// Returns whether its ink may be on the sheet, even if no line is certain: the position of an arm that failed as it set
    /// its pen down was not measured.
    #[must_use]
    pub fn may_have_inked(&self) -> bool {
        self.has_inked() || (self.state == "faulted" && self.was_at_ink)
    }

    /// Returns whether a whole drawing is on its sheet. Needs the strokes of a job that did not reach its end.
    #[must_use]
    pub fn is_on_sheet(&self) -> bool {
        self.state == "reached" || self.is_all_drawn()
    }

    /// Returns whether all of its design is on the sheet, however it ended after that. The ink of a drawing that deviated is not
    /// where the design has it, or not there.
    #[must_use]
    pub fn is_all_drawn(&self) -> bool {
        self.tool == "stroke"
            && self.state != DEVIATED
            && !self.strokes.is_empty()
            && self.drawn.strokes == self.strokes.len()
    }

    /// Returns the index of the pen that draws next, if anything is left.
    #[must_use]
    pub fn next_pen(&self) -> Option<usize> {
        self.next_stroke().map(|stroke| stroke.pen)
    }

    /// Returns the pause that a person must end before anything more is drawn, if the drawing was left at one.
    #[must_use]
    pub fn next_pause(&self) -> Option<&DrawingPause> {
        self.next_stroke()?.pause.as_deref()
    }

    fn next_stroke(&self) -> Option<&SheetStroke> {
        self.strokes.get(self.drawn.strokes)
    }

    /// Returns the strokes left to draw, from `overlap_mm` before the point where it was left.
    #[must_use]
    pub fn remaining_strokes(&self, overlap_mm: f64) -> Vec<SheetStroke> {
        remaining_strokes(&self.strokes, self.drawn, overlap_mm)
    }

    /// Returns the part of its present plan that is certainly on the paper; empty if its strokes are no
    /// longer kept.
    #[must_use]
    pub fn inked(&self) -> Vec<Vec<[f64; 2]>> {
        inked(&self.strokes, self.drawn)
    }

    /// Describes its progress for people: what is drawn, what was in progress, what is left.
    #[must_use]
    pub fn summary(&self) -> String {
        if self.strokes.is_empty() {
            return "it had nothing to draw".to_owned();
        }
        let (total, drawn) = (self.total_mm(), self.drawn);
        let next = self.next_stroke();
        let in_progress = next.map(|stroke| format!("; in progress: {}", stroke.source));
        let in_progress = in_progress.unwrap_or_default();
        let uncertain = match self.released_mm - drawn.mm {
            mm if mm > 0.05 => format!(", perhaps {} more", millimetres(mm, 1)),
            _ => String::new(),
        };
        format!(
            "{} of {}, {} of {} drawn{uncertain}{in_progress}; {} left",
            drawn.strokes,
            count(self.strokes.len(), "stroke"),
            millimetres(drawn.mm, 1).trim_end_matches(" mm"),
            millimetres(total, 1),
            // Rounding must not leave a negative rest.
            millimetres((total - drawn.mm).max(0.0), 1)
        )
    }
}

/// Describes by how much a pen was measured to be longer than in the scene. Earlier journals have no
/// uncertainty.
fn measured_pen_text(record: &JournalRecord) -> String {
    let uncertainty = match record.number::<f64>("uncertainty_mm") {
        Some(uncertainty_mm) => format!(" ± {uncertainty_mm:.1}"),
        None => String::new(),
    };
    format!(
        "pen {} `{}` {}{uncertainty} mm",
        record.text("pen"),
        record.text("name"),
        record.text("longer_mm")
    )
}

fn angles(text: &str) -> Vec<f64> {
    text.split_whitespace()
        .filter_map(|angle| angle.parse().ok())
        .collect()
}
