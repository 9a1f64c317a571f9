//! (scene, strokes, start) to a [`Trajectory`]: order, lift, map to the surface, solve, time.
//!
//! Pure and seeded: the same scene and start give the same bits. No clock, no gate, no drivers.
#![doc = include_str!("README.md")]

use std::time::Duration;

use scene::SheetStroke;

mod arm_schedule;
mod cartesian_path;
mod compensation;
mod corner_blending;
mod dedup_overlaps;
mod draw;
mod error;
mod first_sheet;
mod follow_path;
mod hand_changed_pens;
mod hop;
mod hop_clearance;
mod ink;
mod jog;
mod joint_move;
mod limit_violations;
pub mod order;
mod pen_up;
mod plan_report;
mod posture;
mod prepare_strokes;
mod probe;
mod reach_map;
mod scalar_profile;
mod self_clearance;
mod stroke_sharing;
mod stroke_turns;
mod suggest_placement;
mod swept_body;
mod swing;
mod time_parameterization;
mod together;
mod tool_ik;
mod trajectory;
mod trajectory_builder;
pub mod velocity_profile;
mod visit;
mod waiting_place;

pub use scene;

pub use draw::{PartialPlan, attempt, draw, draw_strokes};
pub use error::{PlanError, PlanRefusal, RefusalCause};
pub use first_sheet::{FirstSheet, first_sheet};
pub use hand_changed_pens::{AttendedPart, attended_parts, part_trajectories};
pub use jog::{JogIncrement, jog};
pub use plan_report::{PlanReport, SlowestPart, StrokeReport};
pub use probe::{probe, probe_from};
pub use reach_map::{PlacementSuggestion, ReachMap, ReachSpot, reach};
pub use together::{SharedPlan, together};
pub use tool_ik::{joints_over, reaches};
pub use trajectory::{SpanKind, Trajectory, TrajectorySpan};
pub use visit::{VisitPoint, VisitTarget, go_to, visit};

/// Time from one sample of a trajectory to the next.
pub const PERIOD: Duration = Duration::from_millis(10);
const PERIOD_S: f64 = 0.01;

/// Samples by which an arm may be ahead of another with which it shares a scene.
pub const NEIGHBOUR_SKEW: usize = 10;

/// Largest distance of any point of such an arm from where its path had it at one of these samples, in metres:
/// for servos that sag, and for joints that are not late alike.
pub const NEIGHBOUR_FOLLOWING_M: f64 = 0.004;

/// A trajectory, with its strokes, report and hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Joints over time.
    pub trajectory: Trajectory,
    /// The strokes in drawing order and direction, joined and tidied: a span's `item` is an index into
    /// them. Empty for visits and poses.
    pub strokes: Vec<SheetStroke>,
    /// The plan in numbers.
    pub report: PlanReport,
    /// Hash of the scene's revision and of the trajectory from the first hover pose on, in 32
    /// hexadecimal digits. The approach is left out: it depends on where the arm happens to be.
    pub hash: String,
}

/// Most samples of a whole plan, ten thousand seconds: the gate accepts no more.
pub const SAMPLES_MAX: usize = 1_000_000;

/// Most samples of a plan before compensation, which adds samples at rest at either end.
const BUILT_SAMPLES_MAX: usize = SAMPLES_MAX - 2 * compensation::SETTLE_SAMPLES;

/// An observer of planning, which may cancel it.
pub trait PlanObserver {
    /// Reports that `done` of `of` strokes or points are planned.
    fn progress(&self, done: usize, of: usize);
    /// Returns whether the plan is no longer wanted. Called often.
    fn cancelled(&self) -> bool;
}

/// An observer that ignores progress and never cancels.
#[derive(Clone, Copy, Debug, Default)]
pub struct SilentObserver;

impl PlanObserver for SilentObserver {
    fn progress(&self, _done: usize, _of: usize) {}
    fn cancelled(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
