//! An arm with one of its pens: which joints put the pen's tip somewhere.

use nalgebra::Point3;

use super::cartesian_path::ToolPose;
use super::error::RefusalCause;
use arm::ArmModel;
use base::units::JointVector;
use kin::{IkFailure, IkGoal, IkSolution, ToolTip};
use scene::{Scene, ScenePen};

/// An arm holding a pen.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolIk<'a> {
    pub(super) arm: &'a ArmModel,
    pub(super) pen: &'a ScenePen,
    pub(super) tip: ToolTip,
    pub(super) cone_rad: f64,
}

/// Number of other seeds tried for a pose that no nearby solution leads to.
const RESTARTS: usize = 60;

impl<'a> ToolIk<'a> {
    pub(super) fn new(scene: &'a Scene, pen: &'a ScenePen) -> Self {
        Self {
            arm: &scene.arm,
            pen,
            tip: tip_of(pen),
            cone_rad: pen.cone_rad,
        }
    }

    /// Returns the pose of the tip.
    pub(super) fn tip_pose(&self, q: &JointVector) -> ToolPose {
        let (point_m, axis) = self.arm.chain.tip(q, &self.tip);
        ToolPose { point_m, axis }
    }

    pub(super) fn point(&self, q: &JointVector) -> Point3<f64> {
        self.tip_pose(q).point_m
    }

    /// The tip exactly there and the pen as upright as it can be, near `seed`.
    pub(super) fn solve(
        &self,
        place: &ToolPose,
        seed: &JointVector,
    ) -> Result<IkSolution, IkFailure> {
        self.arm.chain.solve(&self.tip, &then_axis(place), seed)
    }

    /// The way of being there that is the most upright, then the one farthest from its limits.
    #[expect(clippy::expect_used, reason = "`ways` refuses a place without one")]
    pub(super) fn best_solution(
        &self,
        place: &ToolPose,
        seeds: &[JointVector],
    ) -> Result<IkSolution, RefusalCause> {
        let ways = self.solutions(place, seeds)?;
        Ok(ways.into_iter().next().expect("a way"))
    }

    /// All ways of being there that can be told apart, the best first; one at the least.
    pub(super) fn solutions(
        &self,
        place: &ToolPose,
        seeds: &[JointVector],
    ) -> Result<Vec<IkSolution>, RefusalCause> {
        let chain = &self.arm.chain;
        let others = chain.beginnings(RESTARTS);
        let mut found: Vec<IkSolution> = Vec::new();
        let mut missed_m = f64::INFINITY;
        for seed in seeds.iter().chain(&others) {
            match chain.solve(&self.tip, &then_axis(place), seed) {
                Ok(way) => keep(&mut found, way),
                Err(missed) => missed_m = missed_m.min(missed.nearest.off_m),
            }
        }
        if found.is_empty() {
            let by_mm = missed_m * 1e3;
            return Err(RefusalCause::OutOfReach { by_mm });
        }
        found.sort_by(|a, b| self.preference(a).total_cmp(&self.preference(b)));
        Ok(found)
    }

    /// Smaller is better: a degree of lean weighs as much as 0.1 rad of margin.
    fn preference(&self, way: &IkSolution) -> f64 {
        (way.off_rad - UPRIGHT_RAD).max(0.0) * LEAN_WEIGHT
            - self.margin_rad(&way.q_rad).min(MARGIN_ENOUGH_RAD)
    }

    /// Returns the distance to the nearest joint limit.
    pub(super) fn margin_rad(&self, q: &JointVector) -> f64 {
        margin_rad(self.arm, q).0
    }
}

const UPRIGHT_RAD: f64 = 1e-4;
const LEAN_WEIGHT: f64 = 5.7;
const MARGIN_ENOUGH_RAD: f64 = 0.3;
const APART_RAD: f64 = 0.05;

/// A pen's tip in the arm's hand.
pub(super) fn tip_of(pen: &ScenePen) -> ToolTip {
    ToolTip {
        point_m: pen.tip_m,
        axis: pen.axis,
    }
}

fn then_axis(place: &ToolPose) -> IkGoal {
    IkGoal::PointThenAxis {
        point_m: place.point_m,
        axis: place.axis,
    }
}

fn keep(found: &mut Vec<IkSolution>, way: IkSolution) {
    let is_apart = |other: &IkSolution| other.q_rad.distance_max(&way.q_rad) > APART_RAD;
    if found.iter().all(is_apart) {
        found.push(way);
    }
}

/// The distance to the nearest joint limit, negative beyond it, and which joint's it is.
pub(super) fn margin_rad(arm: &ArmModel, q: &JointVector) -> (f64, usize) {
    let mut least = (f64::INFINITY, 0);
    for (index, (angle, joint)) in q.iter().zip(arm.chain.joints()).enumerate() {
        let margin = (angle - joint.lower_rad).min(joint.upper_rad - angle);
        if margin < least.0 {
            least = (margin, index);
        }
    }
    least
}
