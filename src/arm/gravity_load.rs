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
        self.on_joints(chain, joints_rad, |axis, lever_m, mass_kg| {
            let weight_n = Vector3::new(0.0, 0.0, -GRAVITY_M_S2 * mass_kg);
            axis.dot(&lever_m.cross(&weight_n))
        })
    }

    /// Returns the inertia of the masses around each joint's axis.
    #[must_use]
    pub fn inertia_kg_m2(&self, chain: &KinematicChain, joints_rad: &JointVector) -> JointVector {
        self.on_joints(chain, joints_rad, |axis, lever_m, mass_kg| {
            mass_kg * axis.cross(lever_m).norm_squared()
        })
    }

    /// Sums what each carried mass does to each joint, from the joint's axis, the lever from there to the mass, and the mass.
    fn on_joints(
        &self,
        chain: &KinematicChain,
        joints_rad: &JointVector,
        effect: impl Fn(&Vector3<f64>, &Vector3<f64>, f64) -> f64,
    ) -> JointVector {
        let frames = chain.frames(joints_rad);
        let masses: Vec<(&CarriedMass, Point3<f64>)> = self
            .0
            .iter()
            .filter_map(|mass| {
                let centre_m = match mass.centre_m {
                    Some(centre_m) => *frames.get(mass.joints_before)? * centre_m,
                    None => frames.tool * Point3::origin(),
                };
                Some((mass, centre_m))
            })
            .collect();
        let joints = chain.joints().iter().zip(frames.iter().skip(1));
        let sums = joints.enumerate().map(|(index, (joint, frame))| {
            let axis = frame.rotation * joint.axis;
            let carried = masses.iter().filter(|(mass, _)| mass.joints_before > index);
            carried
                .map(|(mass, centre_m)| {
                    let lever_m = centre_m - Point3::from(frame.translation.vector);
                    effect(&axis, &lever_m, mass.mass_kg)
                })
                .sum()
        });
        JointVector::from_slice(&sums.collect::<Vec<f64>>())
    }
}
