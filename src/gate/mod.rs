//! The only mint of what hardware accepts. It refuses; it never repairs.
//!
//! [`check`] judges a whole [`Trajectory`](crate::plan::Trajectory) before motion and makes a
//! [`CheckedTrajectory`]; [`CheckedTrajectory::begin`] spends that proof and makes an
//! [`Execution`]; each tick of it judges one frame against what was measured and makes one
//! [`Setpoint`]. A driver's command takes nothing else, so there is no second door.
//!
//! A proof cannot be forged:
//!
//! ```compile_fail,E0451
//! use steadyhand::gate::Setpoint;
//! use steadyhand::units::Joints;
//! let forged = Setpoint { goal_rad: Joints::zeros(5), velocity_cap_rad_s: Joints::zeros(5) };
//! ```
//!
//! It cannot be skipped: only a checked trajectory begins.
//!
//! ```compile_fail,E0599
//! fn skip(unchecked: steadyhand::plan::Trajectory, seen: &steadyhand::units::Measured) {
//!     let _ = unchecked.begin(seen, seen.at);
//! }
//! ```
//!
//! It is spent when it is used:
//!
//! ```compile_fail,E0382
//! fn reuse(checked: steadyhand::gate::CheckedTrajectory, seen: &steadyhand::units::Measured) {
//!     let first = checked.begin(seen, seen.at);
//!     let second = checked.begin(seen, seen.at);
//! }
//! ```
//!
//! And it cannot be copied:
//!
//! ```compile_fail,E0599
//! fn copy(checked: steadyhand::gate::CheckedTrajectory) {
//!     let second = checked.clone();
//! }
//! ```

mod check;
mod clearance;
mod execute;
mod stopping;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt;
use std::sync::Arc;

use crate::permit::Permit;
use crate::plan::{SpanKind, Trajectory};
use crate::scene::{Revision, Scene};
use crate::units::Joints;

pub use check::{check, preview};
pub use execute::{Broken, Execution, HoldAt, Progress, Step};

/// A trajectory that was judged against a scene, a permit and a start, with a proven stop from
/// every sample. Made only by [`check`]; spent by [`CheckedTrajectory::begin`].
#[derive(Debug)]
pub struct CheckedTrajectory {
    scene: Arc<Scene>,
    permit: Permit,
    trajectory: Trajectory,
    stops: stopping::Stops,
}

impl CheckedTrajectory {
    /// The scene's revision that it was judged against.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.scene.revision
    }

    /// The leave that it was judged with.
    #[must_use]
    pub fn permit(&self) -> &Permit {
        &self.permit
    }

    /// The scene that it was judged against.
    #[must_use]
    pub fn scene(&self) -> &Arc<Scene> {
        &self.scene
    }

    /// What it will do.
    #[must_use]
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }
}

/// One frame for the servos. Made only in this room, from a checked trajectory, a tick and a
/// measurement.
#[derive(Debug)]
pub struct Setpoint {
    goal_rad: Joints,
    velocity_cap_rad_s: Joints,
    acceleration_cap_rad_s2: Joints,
}

impl Setpoint {
    /// Where each joint shall be at the next tick.
    #[must_use]
    pub fn goal_rad(&self) -> &Joints {
        &self.goal_rad
    }

    /// How fast each joint may go there, should nothing more be heard.
    #[must_use]
    pub fn velocity_cap_rad_s(&self) -> &Joints {
        &self.velocity_cap_rad_s
    }

    /// How hard each joint may accelerate on its way.
    #[must_use]
    pub fn acceleration_cap_rad_s2(&self) -> &Joints {
        &self.acceleration_cap_rad_s2
    }
}

/// Which rule said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The trajectory is not one: too short, too long, spans that do not fit, a number not finite.
    Form,
    /// The permit does not cover the scene.
    Enabled,
    /// The arm is not where the plan begins, or that is not known.
    Start,
    /// A joint beyond its limits.
    JointLimit,
    /// A joint too fast.
    JointSpeed,
    /// A joint accelerated too hard, or not at rest at an end.
    JointAcceleration,
    /// The tip too fast.
    TipSpeed,
    /// The tip outside the workspace.
    Workspace,
    /// The tip too deep, or below the sheet where it does not draw.
    Sheet,
    /// The pen leans too far.
    Tilt,
    /// Something in a keep-out.
    KeepOut,
    /// A part of the arm too near to the sheet.
    Body,
    /// No stop could be proven.
    Stop,
}

/// A rule that said no, where and why.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Refusal {
    /// Which.
    pub rule: Rule,
    /// Which sample.
    pub sample: usize,
    /// What the arm would have been doing.
    #[serde(skip)]
    pub doing: Option<SpanKind>,
    /// Which stroke or visited point, in drawing order.
    pub item: Option<usize>,
    /// The value, the limit and which joint or point.
    pub why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            Some(item) => write!(f, "stroke {}: {}", item + 1, self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// Every rule that said no, the first place of each.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("refused: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct Refused(pub Vec<Refusal>);
