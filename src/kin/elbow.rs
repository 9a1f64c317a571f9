//! Keeps an elbow bent.
//!
//! An arm with fewer than six joints holds its tool as upright as it can. Where it can no longer hold it upright, its elbow is
//! straight, and there it would have to turn infinitely fast: no path crosses that border. An elbow that stays bent a little
//! crosses it, because the tool leans a little sooner.

use nalgebra::Vector3;

use super::KinematicChain;
use base::units::JointVector;

/// Least bend of an elbow. It costs two millimetres of the reach of arms of this size with an upright tool.
const BENT_RAD: f64 = 0.26;

/// Sine of the angle between axes that count as parallel.
const PARALLEL_SIN: f64 = 1e-3;

impl KinematicChain {
    /// Returns the chain with each elbow's range cut where it would be nearly straight, on the side of `pose`. An elbow is a
    /// joint between two that turn about parallel axes.
    #[must_use]
    pub fn with_bent_elbows(&self, pose: &JointVector) -> Self {
        let mut bent = self.clone();
        for (index, (joint, at)) in bent.joints.iter_mut().zip(pose.iter()).enumerate() {
            let Some(straight_rad) = self.straight_rad(index) else {
                continue;
            };
            let (lower, upper) = (joint.lower_rad, joint.upper_rad);
            if *at > straight_rad {
                joint.lower_rad = lower.max(straight_rad + BENT_RAD).min(upper);
            } else {
                joint.upper_rad = upper.min(straight_rad - BENT_RAD).max(lower);
            }
        }
        bent
    }

    /// Returns whether every joint is within its range.
    #[must_use]
    pub fn has_within(&self, pose: &JointVector) -> bool {
        let mut joints = self.joints.iter().zip(pose.iter());
        joints.all(|(joint, at)| (joint.lower_rad..=joint.upper_rad).contains(at))
    }

    /// Returns the angle at which an elbow is straight; `None` for another joint.
    fn straight_rad(&self, index: usize) -> Option<f64> {
        let inner = self.joints.get(index.checked_sub(1)?)?;
        let (joint, outer) = (self.joints.get(index)?, self.joints.get(index + 1)?);
        let axis = joint.axis.into_inner();
        let is_parallel = |other: &Vector3<f64>| axis.cross(other).norm() < PARALLEL_SIN;
        // All in the joint's own frame, at its angle zero.
        let inner_axis = joint.origin.rotation.inverse() * inner.axis.into_inner();
        if !is_parallel(&inner_axis)
            || !is_parallel(&(outer.origin.rotation * outer.axis.into_inner()))
        {
            return None;
        }
        let across = |link: Vector3<f64>| link - axis * axis.dot(&link);
        let to_joint = across(joint.origin.rotation.inverse() * joint.origin.translation.vector);
        let to_outer = across(outer.origin.translation.vector);
        let turned = axis
            .dot(&to_outer.cross(&to_joint))
            .atan2(to_outer.dot(&to_joint));
        // The same angle, as near to the middle of the joint's range as whole turns bring it.
        let middle = f64::midpoint(joint.lower_rad, joint.upper_rad);
        let turns = ((middle - turned) / std::f64::consts::TAU).round();
        Some(turned + turns * std::f64::consts::TAU)
    }
}
