//! Play and sag of the joints as a calibration measured them, for plans that compensate for them.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArmFault, ArmFile};
use base::units::{Finite, JointVector, OutOfRange};

/// Measured play and sag, an entry for each joint.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompensationFile {
    /// Play that the joint crosses when it reverses, from one side to the other, 0 to 2. 0 where gravity keeps it on one side.
    pub play_deg: Vec<Finite>,
    /// Yielding of the joint for each newton metre that the arm's masses load it with, in addition to its servos' figures,
    /// -5 to 5. In a file without masses the load is that of capsules filled with water.
    pub sag_deg_per_n_m: Vec<Finite>,
}

/// Largest play that a calibration accepts.
const PLAY_DEG: RangeInclusive<f64> = 0.0..=2.0;

const SAG_DEG_PER_N_M: RangeInclusive<f64> = -5.0..=5.0;

/// Play and sag of an arm's joints.
#[derive(Clone, Debug)]
pub struct JointCompensation {
    /// Play of each joint, from one side to the other.
    pub play_rad: JointVector,
    /// Angle by which each joint yields to a newton metre, in addition to its servos' own figures.
    pub yield_rad_per_n_m: JointVector,
}

impl JointCompensation {
    pub(super) fn new(file: &CompensationFile) -> Self {
        Self {
            play_rad: radians(&file.play_deg),
            yield_rad_per_n_m: radians(&file.sag_deg_per_n_m),
        }
    }

    /// Returns a model of the gears before the first goal.
    #[must_use]
    pub fn gears(&self) -> GearModel<'_> {
        GearModel {
            compensation: self,
            settled_rad: None,
        }
    }
}

fn radians(deg: &[Finite]) -> JointVector {
    let rad = deg.iter().map(|angle| angle.get().to_radians());
    JointVector::from_slice(&rad.collect::<Vec<_>>())
}

pub(super) fn check(file: &ArmFile) -> Result<(), ArmFault> {
    let Some(measured) = &file.compensation else {
        return Ok(());
    };
    for (key, deg, range) in [
        ("play_deg", &measured.play_deg, PLAY_DEG),
        (
            "sag_deg_per_n_m",
            &measured.sag_deg_per_n_m,
            SAG_DEG_PER_N_M,
        ),
    ] {
        let (count, joints) = (deg.len(), file.joints.len());
        if count != joints {
            return Err(ArmFault::CompensationJoints { key, count, joints });
        }
        for (deg, joint) in deg.iter().zip(&file.joints) {
            let what = || format!("compensation.{key} of {}", joint.name);
            OutOfRange::check(what, *deg, &range)?;
        }
    }
    Ok(())
}

/// Model of an arm's gears: where joints settle within their play as goals are sent.
#[derive(Clone, Debug)]
pub struct GearModel<'a> {
    compensation: &'a JointCompensation,
    settled_rad: Option<JointVector>,
}

impl GearModel<'_> {
    /// Returns where the joints settle at a goal, after the goals before it: each follows as soon as its play is crossed. At
    /// the first goal they lie in the middle of their play.
    pub fn follow(&mut self, goal_rad: &JointVector) -> JointVector {
        let centre = *goal_rad;
        let half = self.compensation.play_rad.map(|_, play| play / 2.0);
        let lowest = centre.zip(&half, |centre, half| centre - half);
        let highest = centre.zip(&half, |centre, half| centre + half);
        let previous = self.settled_rad.unwrap_or(centre);
        let settled = previous.zip(&lowest, f64::max).zip(&highest, f64::min);
        self.settled_rad = Some(settled);
        settled
    }
}
