//! A motion under way on the arm's thread.

use tokio::sync::oneshot;

use super::contact_detection::{ContactDetector, ContactVerdict, ProbeReading};
use super::drawing_deviation::DeviationMonitor;
use super::snapshot_publisher::ReplyCallback;
use super::{JointSagging, MotionOutcome, MotionRelease, PathReading, VisitKind, VisitReading};
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use gate::{Execution, HoldAt};
use plan::SpanKind;

/// Fault of a probe that belongs to no point.
const PROBE_WITHOUT_POINT: &str = "the tip touched something in a probe, but the plan names no point for this probe. The plan is wrong, so the touch cannot be used. Next: report this with the job's journal";

pub(super) struct ActiveMotion {
    pub(super) execution: Execution,
    pub(super) release: MotionRelease,
    /// Tracing span that names the job in the log while it moves.
    pub(super) span: tracing::Span,
    done: oneshot::Sender<MotionOutcome>,
    visits: Vec<VisitReading>,
    /// Readings along the path, as many as there was room for from the start.
    readings: Vec<PathReading>,
    dwelling: Option<(usize, [JointVector; 2])>,
    contact: ContactDetector,
    /// The point that is probed, and the joint angles at its last reading.
    probing: Option<(usize, JointVector)>,
    deviation: DeviationMonitor,
    reached: usize,
    /// Time at which all frames had been sent.
    pub(super) sent_all_at: Option<ClockInstant>,
    /// Reason of a failure, if any. It is reported once the motion has come to rest.
    pub(super) failure: Option<String>,
    /// `true` once a servo became too hot for the motion.
    pub(super) is_too_hot: bool,
}

impl ActiveMotion {
    pub(super) fn new(
        execution: Execution,
        release: MotionRelease,
        readings: Vec<PathReading>,
        done: oneshot::Sender<MotionOutcome>,
    ) -> Self {
        Self {
            span: tracing::info_span!("motion", job = release.job()),
            contact: ContactDetector::new(&execution.scene().arm),
            deviation: DeviationMonitor::new(execution.scene().arm.dof()),
            execution,
            release,
            done,
            visits: Vec::new(),
            readings,
            dwelling: None,
            probing: None,
            reached: 0,
            sent_all_at: None,
            failure: None,
            is_too_hot: false,
        }
    }

    /// Returns whether the next frame, and a stop from it, stay within the released samples. A stop
    /// under way needs no release: its path was released before.
    pub(super) fn is_released(&self) -> bool {
        self.execution.was_stopped() || self.release.covers(self.execution.next_reach())
    }

    /// Holds at the end of the stroke, because the permit ended or a servo is too hot.
    pub(super) fn hold_at_stroke_end(&mut self) {
        if self.failure.is_none() {
            self.execution.hold(HoldAt::StrokeEnd);
        }
    }

    /// Notes why the motion fails; the first reason is kept.
    pub(super) fn fail(&mut self, reason: &str) {
        if self.failure.is_none() {
            self.failure = Some(reason.to_owned());
        }
    }

    /// Tracks the arm along its path: a sample that was sent is not drawn yet, and may never be.
    pub(super) fn note_reached(&mut self, measured: &ArmMeasurement) {
        self.reached = self.execution.nearest(self.reached, &measured.position_rad);
        self.deviation.note(&self.execution, measured);
        let sample = self.execution.progress().sample;
        let last = self.readings.last();
        let is_new = last.is_none_or(|last| last.sample < sample);
        if is_new && self.readings.len() < self.readings.capacity() {
            self.readings.push(PathReading {
                sample,
                position_rad: measured.position_rad,
            });
        }
    }

    pub(super) fn furthest(&self) -> usize {
        self.reached
    }

    /// Keeps the last reading over each visited point.
    pub(super) fn note_dwell(&mut self, measured: &ArmMeasurement) {
        let progress = self.execution.progress();
        let current = (progress.doing == SpanKind::Dwell)
            .then_some(progress.item)
            .flatten();
        if self.dwelling.is_some_and(|(item, _)| Some(item) != current) {
            self.end_dwell();
        }
        if let Some(item) = current {
            self.dwelling = Some((item, [measured.position_rad, self.unexplained_goal_rad()]));
        }
    }

    fn unexplained_goal_rad(&self) -> JointVector {
        let arm = &self.execution.scene().arm;
        let sag = self.execution.sag();
        sag.unexplained_goal_rad(arm, self.execution.goal_rad())
    }

    /// Turns a probe back where it touches, and records the position.
    ///
    /// # Errors
    /// When the probe belongs to no point that the touch could be recorded for: the arm stops and lifts.
    pub(super) fn note_touch(&mut self, measured: &ArmMeasurement) -> Result<(), &'static str> {
        let progress = self.execution.progress();
        if progress.doing != SpanKind::Probe || self.failure.is_some() {
            return Ok(());
        }
        self.probing = progress.item.map(|item| (item, measured.position_rad));
        let verdict = self.contact.update(&ProbeReading {
            goal_rad: self.execution.goal_rad(),
            goal_mm: self.execution.tip_height_mm(self.execution.goal_rad()),
            tip_mm: self.execution.tip_height_mm(&measured.position_rad),
            loads: self.execution.normal_loads(measured),
            measured,
        });
        let (kind, position_rad, give_n_per_mm) = match verdict {
            ContactVerdict::Nothing => return Ok(()),
            ContactVerdict::Contact {
                free_rad,
                give_n_per_mm,
            } => (VisitKind::Contact, free_rad, give_n_per_mm),
            ContactVerdict::EarlyContact => (VisitKind::EarlyContact, measured.position_rad, None),
        };
        let Some(item) = progress.item else {
            self.execution.stop();
            return Err(PROBE_WITHOUT_POINT);
        };
        if self.execution.turn_back() {
            self.visits.push(VisitReading {
                item,
                kind,
                position_rad,
                give_n_per_mm,
                goal_rad: self.unexplained_goal_rad(),
            });
        }
        Ok(())
    }

    fn end_dwell(&mut self) {
        if let Some((item, [position_rad, goal_rad])) = self.dwelling.take() {
            self.visits.push(VisitReading {
                item,
                kind: VisitKind::Dwell,
                position_rad,
                give_n_per_mm: None,
                goal_rad,
            });
        }
    }

    /// Notes of a probe that felt nothing what it would have felt.
    fn end_probe(&mut self) {
        let Some(((item, position_rad), least_n)) = self.probing.zip(self.contact.least_n()) else {
            return;
        };
        if self.visits.is_empty() {
            self.visits.push(VisitReading {
                item,
                kind: VisitKind::NoContact { least_n },
                position_rad,
                give_n_per_mm: None,
                goal_rad: self.unexplained_goal_rad(),
            });
        }
    }

    /// Ends a motion at its end. A joint may be `tolerance_rad` from its goal there.
    pub(super) fn reached(
        mut self,
        off_rad: f64,
        sags: Vec<JointSagging>,
        tolerance_rad: f64,
    ) -> ReplyCallback {
        self.execution.arrive();
        self.end_dwell();
        self.end_probe();
        let visits = std::mem::take(&mut self.visits);
        let readings = std::mem::take(&mut self.readings);
        let deviation = self.deviation.greatest(&self.execution, tolerance_rad);
        self.end(MotionOutcome::Reached {
            visits,
            readings,
            off_rad,
            sags,
            deviation,
        })
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
