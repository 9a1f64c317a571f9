//! Inverse kinematics of an arm with one of its pens.

use std::f64::consts::PI;

use nalgebra::{Point3, UnitQuaternion, Vector3};

use super::cartesian_path::ToolPose;
use super::error::RefusalCause;
use super::trajectory_builder::{NEEDLE_M_S, NEEDLE_NEAR_MM};
use arm::ArmModel;
use base::units::JointVector;
use kin::{IkFailure, IkGoal, IkSolution, KinematicChain, ToolTip};
use scene::{Scene, ScenePen, ToolKind};

/// An arm holding a pen.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolIk<'a> {
    pub(super) scene: &'a Scene,
    pub(super) arm: &'a ArmModel,
    pub(super) pen: &'a ScenePen,
    pub(super) tip: ToolTip,
    pub(super) cone_rad: f64,
    /// The chain that is solved: its elbow stays bent.
    pub(super) chain: &'a KinematicChain,
}

/// Number of other seeds tried for a pose that no nearby solution leads to.
const RESTARTS: usize = 60;

impl<'a> ToolIk<'a> {
    pub(super) fn new(scene: &'a Scene, pen: &'a ScenePen) -> Self {
        Self {
            scene,
            arm: &scene.arm,
            pen,
            tip: tip_of(pen),
            cone_rad: pen.cone_rad,
            chain: &scene.bent,
        }
    }

    /// Returns this for a path from a pose. An arm whose elbow is straight there leaves that place as it can.
    pub(super) fn leaving(self, start: &JointVector) -> Self {
        let chain = match self.scene.bent.has_within(start) {
            true => &self.scene.bent,
            false => &self.arm.chain,
        };
        Self { chain, ..self }
    }

    /// Returns the pose of the tip.
    pub(super) fn tip_pose(&self, q: &JointVector) -> ToolPose {
        let (point_m, axis) = self.arm.chain.tip(q, &self.tip);
        ToolPose { point_m, axis }
    }

    pub(super) fn point(&self, q: &JointVector) -> Point3<f64> {
        self.tip_pose(q).point_m
    }

    /// Returns the needles that are or may be in the holder, in use or not.
    fn needles(&self) -> impl Iterator<Item = &'a ScenePen> {
        let (scene, own) = (self.scene, self.pen);
        let may_hold =
            move |index: usize, pen| scene.holder.may_hold(index) || std::ptr::eq(pen, own);
        let needles = scene.pens.iter().enumerate();
        needles
            .filter(move |(index, pen)| pen.kind == ToolKind::Needle && may_hold(*index, *pen))
            .map(|(_, pen)| pen)
    }

    /// Returns whether a needle is near the surface.
    pub(super) fn has_needle_near(&self, q: &JointVector) -> bool {
        self.needles()
            .any(|needle| self.is_near(&self.arm.chain.point(q, &needle.tip_m)))
    }

    /// Returns the ratio of the fastest needle near the surface to its speed limit, from one sample
    /// to the next. A needle that is not in use may be faster than the tip that is.
    pub(super) fn needle_ratio(&self, from: &JointVector, to: &JointVector, seconds: f64) -> f64 {
        let limits = &self.scene.limits;
        let scene_m_s = limits.travel_mm_s.max(limits.draw_mm_s) / 1e3;
        let ratios = self.needles().filter_map(|needle| {
            let [a, b] = [from, to].map(|q| self.arm.chain.point(q, &needle.tip_m));
            let is_near = self.is_near(&a) || self.is_near(&b);
            is_near.then(|| (b - a).norm() / (seconds * NEEDLE_M_S.min(scene_m_s)))
        });
        ratios.fold(0.0, f64::max)
    }

    fn is_near(&self, point_m: &Point3<f64>) -> bool {
        self.scene.surface.project(point_m).height_mm < NEEDLE_NEAR_MM
    }

    /// Solves for joints near `seed` that put the tip exactly at the point, with the pen as close
    /// to the axis as possible.
    pub(super) fn solve(
        &self,
        pose: &ToolPose,
        seed: &JointVector,
    ) -> Result<IkSolution, IkFailure> {
        self.chain.solve(&self.tip, &goal_at(pose), seed)
    }

    /// Returns the most upright solution; of equally upright ones, the farthest from joint limits.
    #[expect(clippy::expect_used, reason = "`solutions` refuses a pose without one")]
    pub(super) fn best_solution(
        &self,
        pose: &ToolPose,
        seeds: &[JointVector],
    ) -> Result<IkSolution, RefusalCause> {
        let solutions = self.solutions(pose, seeds)?;
        Ok(solutions.into_iter().next().expect("a solution"))
    }

    /// Returns all distinct solutions, the best first; at least one.
    pub(super) fn solutions(
        &self,
        pose: &ToolPose,
        seeds: &[JointVector],
    ) -> Result<Vec<IkSolution>, RefusalCause> {
        let restart_seeds = self.arm.chain.restart_seeds(RESTARTS);
        let mut found: Vec<IkSolution> = Vec::new();
        let mut missed_m = f64::INFINITY;
        for seed in seeds.iter().chain(&restart_seeds) {
            match self.chain.solve(&self.tip, &goal_at(pose), seed) {
                Ok(solution) => keep_if_distinct(&mut found, solution),
                Err(failure) => missed_m = missed_m.min(failure.nearest.off_m),
            }
        }
        if found.is_empty() {
            let by_mm = missed_m * 1e3;
            return Err(RefusalCause::OutOfReach { by_mm });
        }
        found.sort_by(|a, b| self.cost(a).total_cmp(&self.cost(b)));
        Ok(found)
    }

    /// Returns the cost of a solution; smaller is better. A degree of lean weighs as much as 0.1
    /// rad of margin.
    fn cost(&self, solution: &IkSolution) -> f64 {
        (solution.off_rad - UPRIGHT_RAD).max(0.0) * LEAN_WEIGHT
            - self.margin_rad(&solution.q_rad).min(MARGIN_ENOUGH_RAD)
    }

    /// Returns the distance to the nearest joint limit.
    pub(super) fn margin_rad(&self, q: &JointVector) -> f64 {
        margin_rad(self.arm, q).0
    }
}

const UPRIGHT_RAD: f64 = 1e-4;
const LEAN_WEIGHT: f64 = 5.7;
const MARGIN_ENOUGH_RAD: f64 = 0.3;
const DISTINCT_RAD: f64 = 0.05;

/// Returns the tip of a pen in the arm's holder.
pub(super) fn tip_of(pen: &ScenePen) -> ToolTip {
    ToolTip {
        point_m: pen.tip_m,
        axis: pen.axis,
    }
}

/// Returns joints near `seed` that put the tip of a scene's first pen at a height over a place of its sheet, with the pen as near
/// as possible to a lean: how far from upright, and where to, turned about the upright pen. Also returns how far the pen's direction
/// is off that lean. `None` if it does not reach that place.
#[must_use]
pub fn joints_over(
    scene: &Scene,
    at_mm: [f64; 2],
    height_mm: f64,
    [lean_rad, turn_rad]: [f64; 2],
    seed: &JointVector,
) -> Option<(JointVector, f64)> {
    let at = scene.surface.at(at_mm);
    let upright = UnitQuaternion::rotation_between_axis(&Vector3::z_axis(), &-at.hold)
        .unwrap_or_else(|| UnitQuaternion::from_axis_angle(&Vector3::x_axis(), PI));
    let goal = IkGoal::PointThenAxis {
        point_m: at.point_m + at.normal.scale(height_mm / 1e3),
        axis: upright
            * UnitQuaternion::from_euler_angles(0.0, lean_rad, turn_rad)
            * Vector3::z_axis(),
    };
    let tip = tip_of(scene.pens.first()?);
    let solved = scene.arm.chain.solve_anywhere(&tip, &goal, seed, RESTARTS);
    solved
        .ok()
        .map(|solution| (solution.q_rad, solution.off_rad))
}

/// Returns whether a scene's first pen reaches a place of its sheet at all of these heights, within its cone.
#[must_use]
pub fn reaches(scene: &Scene, at_mm: [f64; 2], heights_mm: &[f64]) -> bool {
    let Some(pen) = scene.pens.first() else {
        return false;
    };
    let ik = ToolIk::new(scene, pen);
    heights_mm.iter().all(|height_mm| {
        let pose = ToolPose::over(&scene.surface, at_mm, *height_mm);
        let solution = ik.best_solution(&pose, &[scene.ready_rad]);
        solution.is_ok_and(|solution| solution.off_rad <= ik.cone_rad)
    })
}

fn goal_at(pose: &ToolPose) -> IkGoal {
    IkGoal::PointThenAxis {
        point_m: pose.point_m,
        axis: pose.axis,
    }
}

fn keep_if_distinct(found: &mut Vec<IkSolution>, solution: IkSolution) {
    let is_distinct = |other: &IkSolution| other.q_rad.distance_max(&solution.q_rad) > DISTINCT_RAD;
    if found.iter().all(is_distinct) {
        found.push(solution);
    }
}

/// Returns the distance to the nearest joint limit, negative beyond it, and the joint's index.
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
