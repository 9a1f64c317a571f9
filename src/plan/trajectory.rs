//! A plan made joints over time, not yet judged by anybody.

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
    /// Joints that are expected with those goals; empty where they are the goals.
    pub reached: Vec<JointVector>,
    /// In order, each beginning where the one before ended, together all samples.
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
    /// From wherever the arm was to above the first point. Not part of the plan's hash.
    Approach,
    /// Down along the surface's normal; where it ends a hop, from where the tip is no longer clear.
    Lower,
    /// The tip is on the surface and draws.
    Draw,
    /// Up along the surface's normal; where it begins a hop, until the tip is clear.
    Lift,
    /// Clear of the surface, from one point to the next.
    Travel,
    /// Into an ink cap and out.
    Dip,
    /// Standing still over a visited point, to be measured.
    Dwell,
    /// Slowly down until something is felt, or to the depth at which it is given up. The last
    /// span of its trajectory: the way back is the way that it came.
    Probe,
    /// To a named pose.
    Pose,
    /// A step that a person asked for.
    Jog,
}

impl Trajectory {
    /// From the first sample to the last.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "2^32 samples are 256 GB; the gate takes a million"
    )]
    pub fn duration(&self) -> Duration {
        let steps = self.samples.len().saturating_sub(1);
        self.period * u32::try_from(steps).expect("samples that fit into memory")
    }

    /// Returns where the joints are expected, a place for each sample.
    #[must_use]
    pub fn reached(&self) -> &[JointVector] {
        if self.reached.is_empty() {
            &self.samples
        } else {
            &self.reached
        }
    }

    /// Returns by how much the goal of a sample leads where the arm is expected; `None` where no goal leads.
    #[must_use]
    pub fn lead_rad(&self, sample: usize) -> Option<JointVector> {
        let expected = self.reached.get(sample)?;
        let goal = self.samples.get(sample)?;
        Some(goal.zip(expected, |goal, expected| goal - expected))
    }

    /// Returns the same motion with goals that lead by nothing: what an arm without play, sag and error draws alike.
    #[must_use]
    pub fn without_leads(self) -> Self {
        Self {
            samples: self.reached().to_vec(),
            reached: Vec::new(),
            ..self
        }
    }

    /// The goals of one of its spans.
    ///
    /// # Panics
    /// At a span of another trajectory.
    #[expect(clippy::indexing_slicing, reason = "a span ends within its trajectory")]
    pub(super) fn goals_of(&self, span: &TrajectorySpan) -> &[JointVector] {
        &self.samples[span.first..span.end]
    }

    /// Returns the joints that are expected from one sample on, up to where a span ends.
    ///
    /// # Panics
    /// At the end of a span of another trajectory.
    #[expect(clippy::indexing_slicing, reason = "a span ends within its trajectory")]
    pub(super) fn between(&self, first: usize, end: usize) -> &[JointVector] {
        &self.reached()[first..end]
    }

    /// The span that a sample belongs to.
    #[must_use]
    pub fn span_at(&self, sample: usize) -> Option<&TrajectorySpan> {
        let after = self.spans.partition_point(|span| span.end <= sample);
        self.spans.get(after).filter(|span| span.first <= sample)
    }
}
