//! Gravity on the joints of an arm that carries masses.

use nalgebra::{Point3, Vector3};

use base::units::JointVector;
use kin::KinematicChain;

/// Weight of a kilogram, in newtons.
const GRAVITY_M_S2: f64 = 9.81;

/// A mass that moves with the arm.
#[derive(Clone, Copy, Debug)]
pub struct CarriedMass {
    /// Number of joints that move it.
    pub joints_before: usize,
    /// Centre in the frame of the last of those joints; `None` for the tool mount.
    pub centre_m: Option<Point3<f64>>,
    /// Mass.
    pub mass_kg: f64,
}

/// Masses of an arm.
#[derive(Clone, Debug, Default)]
pub struct GravityLoad(Vec<CarriedMass>);

impl GravityLoad {
    /// Creates the load from its masses.
    #[must_use]
    pub fn new(masses: Vec<CarriedMass>) -> Self {
        Self(masses)
    }

    /// Returns the torque that gravity exerts on each joint of an upright arm, in newton metres.
    #[must_use]
    pub fn torque_n_m(&self, chain: &KinematicChain, joints_rad: &JointVector) -> JointVector {
        let frames = chain.frames(joints_rad);
        let weights: Vec<(usize, Point3<f64>, Vector3<f64>)> = self
            .0
            .iter()
            .filter_map(|mass| {
                let centre_m = match mass.centre_m {
                    Some(centre_m) => *frames.get(mass.joints_before)? * centre_m,
                    None => frames.tool * Point3::origin(),
                };
                let weight_n = Vector3::new(0.0, 0.0, -GRAVITY_M_S2 * mass.mass_kg);
                Some((mass.joints_before, centre_m, weight_n))
            })
            .collect();
        let joints = chain.joints().iter().zip(frames.iter().skip(1));
        let torques = joints.enumerate().map(|(index, (joint, frame))| {
            let axis = frame.rotation * joint.axis;
            let carried = weights.iter().filter(|(before, _, _)| *before > index);
            carried
                .map(|(_, centre_m, weight_n)| {
                    let lever_m = centre_m - Point3::from(frame.translation.vector);
                    axis.dot(&lever_m.cross(weight_n))
                })
                .sum()
        });
        JointVector::from_slice(&torques.collect::<Vec<f64>>())
    }
}
