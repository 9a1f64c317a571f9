//! Kinematic chains: where the tool is for given joints, and which joints bring it there.
//!
//! Mathematics only: no scenes, no plans, no time.

use nalgebra::{Isometry3, Unit, Vector3};

use crate::units::{JOINTS_MAX, Joints};

/// A revolute joint.
#[derive(Clone, Debug)]
pub struct Joint {
    /// Its frame at angle zero, in the frame of the joint before.
    pub origin: Isometry3<f64>,
    /// The axis it turns about, in its own frame.
    pub axis: Unit<Vector3<f64>>,
    /// Lowest angle that a solution may have.
    pub lower_rad: f64,
    /// Highest angle that a solution may have.
    pub upper_rad: f64,
}

/// A chain of revolute joints that ends in a tool mount.
#[derive(Clone, Debug)]
pub struct Chain {
    joints: Vec<Joint>,
    tool: Isometry3<f64>,
}

/// What can be wrong with a chain or a request to it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KinError {
    /// Too few or too many joints.
    #[error("{0} joints; 1 to {JOINTS_MAX} are possible")]
    JointCount(usize),
    /// An axis without a direction, or a frame with a number that is not finite.
    #[error("joint {0}: its axis or origin is not a finite direction")]
    Joint(usize),
}

impl Chain {
    /// A chain from the base outwards.
    ///
    /// # Errors
    /// When there are no joints, more than [`JOINTS_MAX`], or one without a direction.
    pub fn new(joints: Vec<Joint>, tool: Isometry3<f64>) -> Result<Self, KinError> {
        if joints.is_empty() || joints.len() > JOINTS_MAX {
            return Err(KinError::JointCount(joints.len()));
        }
        for (index, joint) in joints.iter().enumerate() {
            let origin = joint.origin.to_homogeneous();
            if joint
                .axis
                .iter()
                .chain(origin.iter())
                .any(|value| !value.is_finite())
            {
                return Err(KinError::Joint(index));
            }
        }
        Ok(Self { joints, tool })
    }

    /// The tool mount's pose in the base frame.
    #[must_use]
    pub fn forward(&self, q_rad: &Joints) -> Isometry3<f64> {
        let mut pose = Isometry3::identity();
        for (joint, angle) in self.joints.iter().zip(q_rad.iter()) {
            pose = pose
                * joint.origin
                * nalgebra::UnitQuaternion::from_axis_angle(&joint.axis, *angle);
        }
        pose * self.tool
    }
}
