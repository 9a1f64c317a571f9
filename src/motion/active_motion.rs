//! A motion under way on the arm's thread.

use tokio::sync::oneshot;

use super::contact_detection::{ContactDetector, ContactVerdict, ProbeReading};
use super::snapshot_publisher::ReplyCallback;
use super::{MotionOutcome, MotionRelease, VisitKind, VisitReading};
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use gate::{Execution, HoldAt};
use plan::SpanKind;

/// Reason that a touch ends a motion.
const NO_ITEM: &str = "the tip touched in a probe of no point, so that what it felt is of no use: the plan is wrong; report it with the journal of this job";

pub(super) struct ActiveMotion {
    pub(super) execution: Execution,
    pub(super) release: MotionRelease,
    /// Tracing span that names the job in the log while it moves.
    pub(super) span: tracing::Span,
    done: oneshot::Sender<MotionOutcome>,
    visits: Vec<VisitReading>,
    dwelling: Option<(usize, JointVector)>,
    feeler: ContactDetector,
    reached: usize,
    /// Time at which the last frame was sent.
    pub(super) sent_all: Option<ClockInstant>,
    /// The error on the way, if any. It is reported once the motion has come to a stand.
    pub(super) failing: Option<String>,
    /// `true` once a servo became too hot for the motion.
    pub(super) too_hot: bool,
}

impl ActiveMotion {
    pub(super) fn new(
        execution: Execution,
        release: MotionRelease,
        done: oneshot::Sender<MotionOutcome>,
    ) -> Self {
        Self {
            span: tracing::info_span!("motion", job = release.job()),
            feeler: ContactDetector::new(&execution.scene().arm),
            execution,
            release,
            done,
            visits: Vec::new(),
            dwelling: None,
            reached: 0,
            sent_all: None,
            failing: None,
            too_hot: false,
        }
    }

    /// Returns whether the next frame, and a stop from it, stay within the released samples. A stop
    /// under way needs no release: its path was released before.
    pub(super) fn is_released(&self) -> bool {
        self.execution.was_stopped() || self.release.covers(self.execution.next_reach())
    }

    /// Leave that ends, or a servo too hot, holds at the stroke's end.
    pub(super) fn rest_soon(&mut self) {
        if self.failing.is_none() {
            self.execution.hold(HoldAt::StrokeEnd);
        }
    }

    /// Something broke: the goal comes to a stand, once.
    pub(super) fn fail(&mut self, why: &str) {
        if self.failing.is_none() {
            self.failing = Some(why.to_owned());
        }
    }

    /// Follows the arm along its path: what was sent is not drawn yet, and may never be.
    pub(super) fn note_reached(&mut self, measured: &ArmMeasurement) {
        self.reached = self.execution.nearest(self.reached, &measured.position_rad);
    }

    pub(super) fn furthest(&self) -> usize {
        self.reached
    }

    /// Keeps the last reading over each visited point.
    pub(super) fn note_dwell(&mut self, measured: &ArmMeasurement) {
        let progress = self.execution.progress();
        let here = (progress.doing == SpanKind::Dwell)
            .then_some(progress.item)
            .flatten();
        if self.dwelling.is_some_and(|(item, _)| Some(item) != here) {
            self.end_dwell();
        }
        if let Some(item) = here {
            self.dwelling = Some((item, measured.position_rad));
        }
    }

    /// Turns a probe back where it comes to touch, and keeps where that was.
    ///
    /// # Errors
    /// When the probe is of no point that the touch could be kept for: the arm stops and lifts.
    pub(super) fn note_touch(&mut self, measured: &ArmMeasurement) -> Result<(), &'static str> {
        let progress = self.execution.progress();
        if progress.doing != SpanKind::Probe || self.failing.is_some() {
            return Ok(());
        }
        let felt = self.feeler.update(&ProbeReading {
            goal_rad: self.execution.goal_rad(),
            goal_mm: self.execution.tip_height_mm(self.execution.goal_rad()),
            tip_mm: self.execution.tip_height_mm(&measured.position_rad),
            seen: measured,
        });
        let (kind, position_rad) = match felt {
            ContactVerdict::Nothing => return Ok(()),
            ContactVerdict::Contact { free_rad } => (VisitKind::Contact, free_rad),
            ContactVerdict::EarlyContact => (VisitKind::EarlyContact, measured.position_rad),
        };
        let Some(item) = progress.item else {
            self.execution.stop();
            return Err(NO_ITEM);
        };
        if self.execution.turn_back() {
            self.visits.push(VisitReading {
                item,
                kind,
                position_rad,
            });
        }
        Ok(())
    }

    fn end_dwell(&mut self) {
        if let Some((item, position_rad)) = self.dwelling.take() {
            self.visits.push(VisitReading {
                item,
                kind: VisitKind::Dwell,
                position_rad,
            });
        }
    }

    pub(super) fn reached(mut self, off_rad: f64) -> ReplyCallback {
        self.end_dwell();
        let visits = std::mem::take(&mut self.visits);
        self.end(MotionOutcome::Reached { visits, off_rad })
    }

    /// Ends the motion, even if its caller no longer waits. The journal learns first how far the motion
    /// came.
    pub(super) fn end(self, outcome: MotionOutcome) -> ReplyCallback {
        let sent = self.execution.progress().sample;
        let reached = match outcome {
            MotionOutcome::Reached { .. } => sent,
            _ => self.reached,
        };
        self.release.came_to(sent, reached);
        let done = self.done;
        Box::new(move || drop(done.send(outcome)))
    }
}
