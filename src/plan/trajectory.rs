//! Joints over time, not yet checked by the gate.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use base::units::JointVector;

/// Joint angles at a fixed rate, and what each stretch of them is for.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Time from one sample to the next.
    pub period: Duration,
    /// Goals of the joints. The first is the start that it was planned from; the last is at rest.
    pub samples: Vec<JointVector>,
    /// Joints that are expected with those goals; empty if they are equal to the goals.
    pub reached: Vec<JointVector>,
    /// Spans in order, each beginning where the previous one ended; together they cover all
    /// samples.
    pub spans: Vec<TrajectorySpan>,
}

/// A stretch of samples with one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrajectorySpan {
    /// The purpose.
    pub kind: SpanKind,
    /// Index among the plan's strokes or visited points, counted in drawing order.
    pub item: Option<usize>,
    /// Index into the scene's pens: whose tip this span is about.
    pub pen: usize,
    /// Index of its first sample.
    pub first: usize,
    /// One past its last sample.
    pub end: usize,
}

/// The purpose of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// From where the arm was to above the first point. Not part of the plan's hash.
    Approach,
    /// Down along the surface's normal; at the end of a hop, from where the tip is no longer clear.
    Lower,
    /// The tip is on the surface and draws.
    Draw,
    /// Up along the surface's normal; at the beginning of a hop, until the tip is clear.
    Lift,
    /// Clear of the surface, from one point to the next.
    Travel,
    /// Into an ink cap and out.
    Dip,
    /// Standing still over a visited point, to be measured.
    Dwell,
    /// Slowly down until contact, or to the depth at which the probe gives up. The last span of its
    /// trajectory: the tip returns the way it came.
    Probe,
    /// To a named pose.
    Pose,
    /// A step that a person requested.
    Jog,
}

impl Trajectory {
    /// Returns the time from the first sample to the last.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "2^32 samples are 256 GB; the gate takes a million"
    )]
    pub fn duration(&self) -> Duration {
        let steps = self.samples.len().saturating_sub(1);
        self.period * u32::try_from(steps).expect("as many samples as fit into memory")
    }

    /// Returns the expected joints of each sample.
    #[must_use]
    pub fn reached(&self) -> &[JointVector] {
        if self.reached.is_empty() {
            &self.samples
        } else {
            &self.reached
        }
    }

    /// Returns by how much the goal of a sample leads the expected joints; `None` if goals do not
    /// lead.
    #[must_use]
    pub fn lead_rad(&self, sample: usize) -> Option<JointVector> {
        let expected = self.reached.get(sample)?;
        let goal = self.samples.get(sample)?;
        Some(goal.zip(expected, |goal, expected| goal - expected))
    }

    /// Returns the same motion without leads: an arm without play, sag and error draws the same.
    #[must_use]
    pub fn without_leads(self) -> Self {
        Self {
            samples: self.reached().to_vec(),
            reached: Vec::new(),
            ..self
        }
    }

    /// Returns the goals of one of its spans.
    ///
    /// # Panics
    /// If the span belongs to another trajectory.
    #[expect(clippy::indexing_slicing, reason = "a span ends within its trajectory")]
    pub(super) fn goals_of(&self, span: &TrajectorySpan) -> &[JointVector] {
        &self.samples[span.first..span.end]
    }

    /// Returns the expected joints from a sample up to the end of a span.
    ///
    /// # Panics
    /// If the end belongs to a span of another trajectory.
    #[expect(clippy::indexing_slicing, reason = "a span ends within its trajectory")]
    pub(super) fn between(&self, first: usize, end: usize) -> &[JointVector] {
        &self.reached()[first..end]
    }

    /// Returns the span that a sample belongs to.
    #[must_use]
    pub fn span_at(&self, sample: usize) -> Option<&TrajectorySpan> {
        let index = self.spans.partition_point(|span| span.end <= sample);
        self.spans.get(index).filter(|span| span.first <= sample)
    }
}
