//! Where the parts of an arm and its pens are.

use nalgebra::Point3;

use super::Scene;
use base::units::JointVector;

/// Both ends of every part of an arm, and the tips of its pens, in its base frame.
#[derive(Clone, Debug)]
pub struct BodyPoints(Vec<Point3<f64>>);

impl BodyPoints {
    /// Returns where they are in a pose.
    #[must_use]
    pub fn new(scene: &Scene, q_rad: &JointVector) -> Self {
        let frames = scene.arm.chain.frames(q_rad);
        let body = scene.arm.capsules.iter().filter_map(|capsule| {
            let frame = frames.get(capsule.joints_before)?;
            Some([frame * capsule.from_m, frame * capsule.to_m])
        });
        let tips = scene.pens.iter().map(|pen| frames.tool * pen.tip_m);
        Self(body.flatten().chain(tips).collect())
    }

    /// Returns how far the point that moved most is from where it is in another pose.
    #[must_use]
    pub fn farthest_m(&self, other: &Self) -> f64 {
        let pairs = self.0.iter().zip(&other.0);
        let distances = pairs.map(|(one, other)| (one - other).norm());
        distances.fold(0.0, f64::max)
    }
}
