//! The only source of what hardware accepts. It refuses; it never repairs.
//!
//! [`check`] judges a whole [`Trajectory`](plan::Trajectory) before motion and makes a
//! [`CheckedTrajectory`]; [`CheckedTrajectory::begin`] spends that proof and makes an
//! [`Execution`]; each tick of it judges one frame against what was measured and makes one
//! [`Setpoint`]. A driver's command takes nothing else, so there is no second door.
//!
//! ```
//! use base::units::{ArmMeasurement, JointVector};
//! use steadyhand_gate::{CheckedTrajectory, Setpoint};
//! fn spend(checked: CheckedTrajectory, seen: &ArmMeasurement) {
//!     let execution = checked.begin(seen, seen.at);
//! }
//! fn read(setpoint: &Setpoint) -> &JointVector { setpoint.goal_rad() }
//! ```
//!
//! A proof cannot be forged:
//!
//! ```compile_fail,E0451
//! use base::units::JointVector;
//! use steadyhand_gate::Setpoint;
//! let forged = Setpoint {
//!     goal_rad: JointVector::zeros(5),
//!     velocity_cap_rad_s: JointVector::zeros(5),
//!     acceleration_cap_rad_s2: JointVector::zeros(5),
//! };
//! ```
//!
//! It cannot be skipped: only a checked trajectory begins.
//!
//! ```compile_fail,E0599
//! use base::units::ArmMeasurement;
//! fn skip(unchecked: plan::Trajectory, seen: &ArmMeasurement) {
//!     let execution = unchecked.begin(seen, seen.at);
//! }
//! ```
//!
//! It is spent when it is used:
//!
//! ```compile_fail,E0382
//! use base::units::ArmMeasurement;
//! use steadyhand_gate::CheckedTrajectory;
//! fn reuse(checked: CheckedTrajectory, seen: &ArmMeasurement) {
//!     let first = checked.begin(seen, seen.at);
//!     let second = checked.begin(seen, seen.at);
//! }
//! ```
//!
//! It has no default, and it cannot be read from a file:
//!
//! ```compile_fail,E0277
//! fn conjure<T: Default>() -> T { T::default() }
//! let checked: steadyhand_gate::CheckedTrajectory = conjure();
//! ```
//!
//! ```compile_fail,E0277
//! let checked: steadyhand_gate::CheckedTrajectory = serde_json::from_str("{}").unwrap();
//! ```
//!
//! ```compile_fail,E0277
//! let setpoint: steadyhand_gate::Setpoint = serde_json::from_str("{}").unwrap();
//! ```
//!
//! An execution is made by spending a proof, and in no other way:
//!
//! ```compile_fail,E0277
//! fn conjure<T: Default>() -> T { T::default() }
//! let execution: steadyhand_gate::Execution = conjure();
//! ```
//!
//! The motions of arms that share a scene are judged by [`check_together`]. Each proof has its part
//! in what the others do: a part alone stands at its first sample, and stops when another goes away.
//!
//! ```
//! # use std::sync::Arc;
//! # use base::units::{ArmMeasurement, ClockInstant, JointVector};
//! # use nalgebra::{IsometryMatrix3, Translation3};
//! # use scene::{ArmBeside, Scene, SceneLibrary};
//! use steadyhand_gate::{MotionPart, check_together};
//! # let alone = SceneLibrary::new(None).scene("default", None).unwrap();
//! # let side = |ours: &str, theirs: &str, x_m: f64| Arc::new(Scene {
//! #     arm_name: Some(ours.to_owned()),
//! #     beside: vec![ArmBeside {
//! #         name: theirs.to_owned(),
//! #         arm: alone.arm.clone(),
//! #         base_in_ours: IsometryMatrix3::from_parts(Translation3::new(x_m, 0.0, 0.0), Default::default()),
//! #         pens: alone.pens.clone(),
//! #         uncertainty_m: 0.0,
//! #     }],
//! #     ..Scene::clone(&alone)
//! # });
//! # let scenes = [side("left", "right", 1.5), side("right", "left", -1.5)];
//! # let mut now = ClockInstant::ZERO;
//! # let mut seen = ArmMeasurement {
//! #     at: now,
//! #     position_rad: alone.rest_rad,
//! #     velocity_rad_s: JointVector::zeros(5),
//! #     servos: Vec::new(),
//! # };
//! # let plan = plan::go_to(&alone, &alone.rest_rad, &[alone.ready_rad], &plan::SilentObserver).unwrap();
//! # let period = plan.trajectory.period;
//! # let permits = permit::PermitRegistry::everything();
//! # let start = seen.clone();
//! # let moving = scenes.map(|scene| MotionPart {
//! #     permit: permits.ask(&scene, now).unwrap(),
//! #     scene,
//! #     start: &start,
//! #     now,
//! #     trajectory: plan.trajectory.clone(),
//! # }).into();
//! let mut proofs = check_together(moving, &[]).unwrap();
//! let (right, left) = (proofs.pop().unwrap(), proofs.pop().unwrap());
//! let mut alone = left.begin(&seen, now).unwrap();
//! for _ in 0..50 {
//!     now = now.after(period);
//!     seen.at = now;
//!     alone.next(&seen, now).unwrap();
//!     assert_eq!(alone.progress().sample, 0);
//! }
//! drop(right);
//! alone.next(&seen, now).unwrap();
//! assert_eq!(alone.stopped_with(), Some("right"));
//! ```
//!
//! A proof cannot take another's part, and nothing else has one:
//!
//! ```compile_fail,E0616
//! fn take(checked: &mut steadyhand_gate::CheckedTrajectory, other: steadyhand_gate::CheckedTrajectory) {
//!     checked.concert = other.concert;
//! }
//! ```
//!
//! ```compile_fail,E0603
//! use steadyhand_gate::concert::ConcertPart;
//! ```
//!
//! And it cannot be copied:
//!
//! ```compile_fail,E0599
//! fn copy(checked: steadyhand_gate::CheckedTrajectory) {
//!     let second = checked.clone();
//! }
//! ```

mod apart;
mod check;
mod clearance;
mod collision_body;
mod collision_world;
mod concert;
mod depth_trim;
mod disturbance;
mod escape;
mod execute;
mod following_error;
mod joint_rates;
mod joint_torque;
mod joint_yield;
mod lead_room;
mod leading_goals;
mod limp_joint;
mod neighbour_body;
mod sag_lead;
mod stop_proof;
#[cfg(test)]
mod tests;
mod together;
mod unmoved_joint;

use std::fmt;
use std::sync::Arc;

use base::units::JointVector;
use permit::MotionPermit;
use plan::{SpanKind, Trajectory, TrajectorySpan};
use scene::{Revision, Scene};

pub use check::{READING_AGE_MAX, StartMismatch};
pub use depth_trim::{DepthTrim, DepthTrimChange, DepthTrimError};
pub use disturbance::{Disturbance, NormalLoads};
pub use execute::{Execution, ExecutionError, ExecutionProgress, ExecutionStep, HoldAt};
pub use sag_lead::SagLead;
pub use together::{MotionPart, StandingArm, check, check_together, preview, preview_together};

/// A trajectory that was judged against a scene, a permit and a start, with a proven stop from
/// every sample. Made only by [`check`]; spent by [`CheckedTrajectory::begin`].
#[derive(Debug)]
pub struct CheckedTrajectory {
    scene: Arc<Scene>,
    permit: MotionPermit,
    trajectory: Trajectory,
    stops: stop_proof::StopProof,
    trim: Option<depth_trim::TrimProof>,
    /// What it shares with the other motions that it was judged together with.
    concert: concert::ConcertPart,
}

impl CheckedTrajectory {
    /// Returns the revision of the scene that it was judged against.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.scene.revision
    }

    /// Returns the permit that it was judged with.
    #[must_use]
    pub fn permit(&self) -> &MotionPermit {
        &self.permit
    }

    /// Returns the scene that it was judged against.
    #[must_use]
    pub fn scene(&self) -> &Arc<Scene> {
        &self.scene
    }

    /// Returns the judged trajectory.
    #[must_use]
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// Returns how hard the servos may push while it is carried out.
    #[must_use]
    pub fn torque_limit(&self) -> TorqueLimit {
        let is_by_feel =
            |span: &TrajectorySpan| matches!(span.kind, SpanKind::Probe | SpanKind::Jog);
        if self.trajectory.spans.iter().any(is_by_feel) {
            TorqueLimit::Touch
        } else {
            TorqueLimit::Work
        }
    }
}

/// Torque limit of the servos during a motion, set in one of their registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TorqueLimit {
    /// For drawing and for moving among obstacles whose positions are known.
    Work,
    /// For a tip that looks for something at an unknown position: a probe, or a jogged step.
    Touch,
}

/// One frame for the servos. Made only in this room, from a checked trajectory, a tick and a
/// measurement.
#[derive(Debug)]
pub struct Setpoint {
    goal_rad: JointVector,
    velocity_cap_rad_s: JointVector,
    acceleration_cap_rad_s2: JointVector,
}

impl Setpoint {
    /// Returns the goal of each joint for the next tick.
    #[must_use]
    pub fn goal_rad(&self) -> &JointVector {
        &self.goal_rad
    }

    /// Returns the speed limit of each joint on its way, in force even if no further frame arrives.
    #[must_use]
    pub fn velocity_cap_rad_s(&self) -> &JointVector {
        &self.velocity_cap_rad_s
    }

    /// Returns the acceleration limit of each joint on its way.
    #[must_use]
    pub fn acceleration_cap_rad_s2(&self) -> &JointVector {
        &self.acceleration_cap_rad_s2
    }
}

/// A rule that can refuse a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateRule {
    /// The trajectory is malformed: too short, too long, spans that do not fit, a number not finite.
    Form,
    /// The permit does not cover the scene.
    Enabled,
    /// The arm is not where the plan begins, or its position is not known.
    Start,
    /// A joint beyond its limits.
    JointLimit,
    /// A joint too fast.
    JointSpeed,
    /// A joint accelerated too hard, or not at rest at an end.
    JointAcceleration,
    /// A joint's acceleration changed too suddenly.
    JointJerk,
    /// The tip too fast.
    TipSpeed,
    /// The tip strays from the straight line between two samples.
    Midpoint,
    /// Too near to a singular pose for a tip that must follow the surface.
    Condition,
    /// The tip or a moving part outside the workspace.
    Workspace,
    /// The tip too deep, or below the sheet where it does not draw.
    Sheet,
    /// The pen leans too far.
    Tilt,
    /// A moving part in a keep-out, or too near to it.
    KeepOut,
    /// A part of the arm too near to the sheet.
    Body,
    /// Two parts of arm and tools too near to each other.
    SelfCollision,
    /// Goals farther from the expected joints than play, sag and the sheet's correction explain.
    Lead,
    /// No person has confirmed that the pen is in the holder.
    Pen,
    /// No stop could be proven.
    Stop,
    /// Two arms of a scene too near to each other, or one of them not known to be where.
    Apart,
}

/// A rule that refused, where and why.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct GateRefusal {
    /// The arm, by its name in a scene that several share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// The rule that refuses.
    pub rule: GateRule,
    /// The sample.
    pub sample: usize,
    /// The arm's activity at that sample.
    #[serde(skip)]
    pub doing: Option<SpanKind>,
    /// Index of the stroke or visited point, in drawing order.
    pub item: Option<usize>,
    /// Position of the tip in sheet coordinates, even beyond the sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_mm: Option<[f64; 2]>,
    /// The value that broke the rule and its limit, if they are numbers.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub excess: Option<LimitExcess>,
    /// The value, the limit, and the joint or point.
    pub why: String,
}

/// A value and the limit that it passed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct LimitExcess {
    /// The value that the motion would have reached.
    pub value: f64,
    /// The limit.
    pub limit: f64,
    /// The unit of both.
    pub unit: &'static str,
}

impl fmt::Display for GateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(arm) = &self.arm {
            write!(f, "{arm}: ")?;
        }
        match (self.item, self.at_mm) {
            (Some(item), _) if self.doing == Some(SpanKind::Pose) => {
                write!(f, "pose {}: {}", item + 1, self.why)
            }
            (Some(item), Some([x, y])) => {
                write!(
                    f,
                    "stroke {} at ({x:.1}, {y:.1}) mm: {}",
                    item + 1,
                    self.why
                )
            }
            (Some(item), None) => write!(f, "stroke {}: {}", item + 1, self.why),
            (None, _) => f.write_str(&self.why),
        }
    }
}

/// Every rule that refused, with the worst sample of each.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("refused: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RefusedTrajectory(pub Vec<GateRefusal>);
