//! Clearances between the body and its surroundings, measured again only where they may have become
//! too small.
//!
//! A joint that turns by `d` carries every point beyond it along an arc of at most `d · r`, where
//! `r` is the farthest that the point can be from the joint: the chain from there, stretched out.
//! Summed over the joints, this bounds the movement of every point of the body between two sets of
//! angles, however the joints turn in between. A distance to a fixed object, or a height over the sheet,
//! shrinks by no more than this sum. Neither does the distance between two parts: seen from the
//! inner part, only the joints between the two move the outer one. A clearance that exceeded its
//! limit by more than the sum therefore still exceeds its limit. It need not be measured again, and
//! the result is the one that measuring would give. A test compares both.

use super::collision_body::{ClearanceScan, CollisionBody, PosedBody};
use super::escape::PartProximity;
use base::units::{JOINTS_MAX, JointVector};
use scene::{AxisAlignedBox, CLEARANCE_M, Scene};

/// Exceeds the rounding of any distance, and the error of the search for the nearest point of a box.
const ROUNDING_M: f64 = 1e-5;

/// The body, and a cache of each kind of clearance.
pub(super) struct CollisionWorld<'a> {
    body: CollisionBody<'a>,
    levers: JointLevers,
    workspace: CachedClearance,
    tips: CachedClearance,
    sheet: CachedClearance,
    own: CachedClearance,
    idle: CachedClearance,
    /// Index of the pen that was drawing when the idle ones were last measured.
    drawing: usize,
    keep_outs: Vec<CachedClearance>,
}

/// The longest lever of each joint, in metres: the distance that a rotation of one radian can carry
/// any point.
pub(super) struct JointLevers {
    lengths_m: JointVector,
}

/// The joint angles of the last measurement, and how far the body may move from there unmeasured.
struct CachedClearance {
    from_rad: JointVector,
    room_m: f64,
}

impl<'a> CollisionWorld<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        let body = CollisionBody::new(scene);
        Self {
            levers: JointLevers::new(&body),
            workspace: CachedClearance::unknown(),
            tips: CachedClearance::unknown(),
            sheet: CachedClearance::unknown(),
            own: CachedClearance::unknown(),
            idle: CachedClearance::unknown(),
            drawing: 0,
            keep_outs: scene
                .keep_outs
                .iter()
                .map(|_| CachedClearance::unknown())
                .collect(),
            body,
        }
    }

    /// Returns a world that measures everything every time.
    #[cfg(test)]
    pub(super) fn without_cache(scene: &'a Scene) -> Self {
        let all = Self::new(scene);
        let lengths_m = all.levers.lengths_m.map(|_, _| f64::INFINITY);
        Self {
            levers: JointLevers { lengths_m },
            ..all
        }
    }

    pub(super) fn body(&self) -> &CollisionBody<'a> {
        &self.body
    }

    pub(super) fn levers(&self) -> &JointLevers {
        &self.levers
    }

    /// As [`CollisionBody::outside_workspace`] and [`CollisionBody::tips_outside_workspace`]; empty
    /// without measuring where everything is certainly inside.
    pub(super) fn outside_workspace(
        &mut self,
        pose: &PosedBody,
    ) -> Vec<PartProximity<(usize, usize)>> {
        let Self { body, levers, .. } = self;
        let measure = || body.outside_workspace(pose);
        let mut outside = self.workspace.find_near(levers, pose, 0.0, measure);
        // Separate caches: tips are near the table all the time, the arm is not.
        let measure = || body.tips_outside_workspace(pose);
        outside.extend(self.tips.find_near(levers, pose, 0.0, measure));
        outside
    }

    /// As [`CollisionBody::over_sheet`]; empty without measuring where certainly nothing is nearer
    /// than [`CLEARANCE_M`].
    pub(super) fn over_sheet(&mut self, pose: &PosedBody) -> Vec<PartProximity> {
        let Self { body, levers, .. } = self;
        self.sheet
            .find_near(levers, pose, CLEARANCE_M, || ClearanceScan {
                near: body.over_sheet(pose),
                bound_m: body.over_sheet_bound_m(pose),
            })
    }

    /// As [`CollisionBody::idle_pens`]; empty without measuring where certainly none is too near to
    /// the sheet.
    pub(super) fn idle_pens(&mut self, pose: &PosedBody, drawing: usize) -> Vec<PartProximity> {
        let Self { body, levers, .. } = self;
        if self.drawing != drawing {
            (self.drawing, self.idle) = (drawing, CachedClearance::unknown());
        }
        let limit_m = body.scene().idle_clearance_m();
        self.idle
            .find_near(levers, pose, limit_m, || ClearanceScan {
                near: body.idle_pens(pose, drawing),
                bound_m: body.idle_bound_m(pose, drawing),
            })
    }

    /// As [`CollisionBody::near_itself`]; empty without measuring where certainly no two parts are
    /// nearer than [`CLEARANCE_M`].
    pub(super) fn near_itself(&mut self, pose: &PosedBody) -> Vec<PartProximity<(usize, usize)>> {
        let Self { body, levers, .. } = self;
        let measure = || body.near_itself(pose);
        self.own.find_near(levers, pose, CLEARANCE_M, measure)
    }

    /// As [`CollisionBody::near_box`] of one of the scene's keep-outs; empty without measuring where
    /// certainly nothing is nearer than [`CLEARANCE_M`].
    pub(super) fn near_keep_out(
        &mut self,
        pose: &PosedBody,
        keep_out: usize,
        corners: &AxisAlignedBox,
    ) -> Vec<PartProximity> {
        let Self { body, levers, .. } = self;
        let measure = || body.near_box(pose, corners);
        match self.keep_outs.get_mut(keep_out) {
            Some(cache) => cache.find_near(levers, pose, CLEARANCE_M, measure),
            None => measure().near,
        }
    }
}

impl JointLevers {
    pub(super) fn new(body: &CollisionBody<'_>) -> Self {
        let all = JointVector::zeros(body.scene().arm.dof());
        Self {
            lengths_m: all.map(|joint, _| body.lever_m(joint)),
        }
    }

    /// Returns an upper bound of the movement of any point of the body between two sets of angles.
    pub(super) fn moved_m(&self, from_rad: &JointVector, to_rad: &JointVector) -> f64 {
        let angles = from_rad.iter().zip(to_rad.iter());
        let arcs = angles.zip(self.lengths_m.iter());
        arcs.map(|((from, to), lever_m)| (to - from).abs() * lever_m)
            .sum()
    }

    /// Returns the largest distance of any tip from the straight line at the middle of a step, where
    /// joints turn evenly from one sample to the next. A joint's turn bends the arc of each outer
    /// joint, and its own, by at most the outer joint's lever. A curve leaves its chord in the middle
    /// by an eighth of that sum.
    pub(super) fn midpoint_deviation_m(&self, from_rad: &JointVector, to_rad: &JointVector) -> f64 {
        let (mut inner_rad, mut bend_m) = (0.0, 0.0);
        let angles = from_rad.iter().zip(to_rad.iter());
        for ((from, to), lever_m) in angles.zip(self.lengths_m.iter()) {
            let rotation_rad = (to - from).abs();
            bend_m += rotation_rad * (rotation_rad + 2.0 * inner_rad) * lever_m;
            inner_rad += rotation_rad;
        }
        bend_m / 8.0
    }
}

impl CachedClearance {
    /// Returns an empty cache: the next call measures.
    fn unknown() -> Self {
        Self {
            from_rad: JointVector::zeros(JOINTS_MAX),
            room_m: f64::NEG_INFINITY,
        }
    }

    /// Returns the result of `measure`; empty, without calling it, where nothing can be nearer than
    /// `limit_m`.
    fn find_near<K>(
        &mut self,
        levers: &JointLevers,
        pose: &PosedBody,
        limit_m: f64,
        measure: impl FnOnce() -> ClearanceScan<K>,
    ) -> Vec<PartProximity<K>> {
        // A distance that is NaN is not less than the room, so it is measured.
        if levers.moved_m(&self.from_rad, pose.q_rad()) < self.room_m {
            return Vec::new();
        }
        let ClearanceScan { near, bound_m } = measure();
        *self = Self {
            from_rad: *pose.q_rad(),
            room_m: bound_m - limit_m - ROUNDING_M,
        };
        near
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a fraction of a plan's own length"
)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use nalgebra::{Point3, Vector3, center};
    use proptest::prelude::*;

    use super::*;
    use crate::check::{TestVerdict, judge_samples};
    use crate::clearance::tip_m;
    use crate::tests::mapped::BOWL;
    use plan::{self, SilentObserver, SpanKind, Trajectory, TrajectorySpan};
    use scene::{KeepOut, SceneLibrary};

    /// The shipped ones, and one on a sheet with a map of its heights.
    const SCENES: [&str; 9] = [
        "default",
        "mapped",
        "two_pens",
        "bottle",
        "widowx",
        "so100",
        "koch",
        "openmanipulator_x",
        "vx300",
    ];

    /// Number of a plan's samples that are swayed and judged.
    const SAMPLES: usize = 160;

    /// Returns a scene with a keep-out next to its sheet, and its plan.
    fn planned_scene(index: usize) -> &'static (Arc<Scene>, Trajectory) {
        static PLANNED: [OnceLock<(Arc<Scene>, Trajectory)>; SCENES.len()] =
            [const { OnceLock::new() }; SCENES.len()];
        PLANNED[index].get_or_init(|| {
            let (scene, trajectory) = match SCENES[index] {
                "mapped" => BOWL.clone(),
                name => {
                    let scene = SceneLibrary::new(None).scene(name, None).unwrap();
                    let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
                    (scene, plan.trajectory)
                }
            };
            let mut scene = Scene::clone(&scene);
            let [width, height] = scene.surface.size_mm();
            let foot = scene.surface.at([width + 40.0, height / 2.0]).point_m;
            scene.keep_outs.push(KeepOut {
                name: "cup".to_owned(),
                corners: AxisAlignedBox {
                    min_m: foot - Vector3::new(0.02, 0.02, 0.02),
                    max_m: foot + Vector3::new(0.02, 0.02, 0.08),
                },
            });
            (Arc::new(scene), trajectory)
        })
    }

    /// Returns some samples of a plan with all joints swaying about them.
    fn swayed(plan: &Trajectory, from: f64, sway: &[(f64, f64, f64)]) -> Trajectory {
        let last = (plan.samples.len() - SAMPLES) as f64;
        let first = (last * from) as usize;
        let inside = |at: usize| at.clamp(first, first + SAMPLES) - first;
        let spans = plan.spans.iter().map(|span| TrajectorySpan {
            first: inside(span.first),
            end: inside(span.end),
            ..*span
        });
        let samples = plan.samples.iter().enumerate().skip(first).take(SAMPLES);
        let swayed = samples.map(|(at, q)| {
            q.map(|joint, angle| {
                let (amplitude, turns, phase) = sway[joint];
                angle + amplitude * ((at - first) as f64 / SAMPLES as f64 * turns + phase).sin()
            })
        });
        Trajectory {
            reached: Vec::new(),
            samples: swayed.collect(),
            spans: spans.filter(|span| span.end > span.first).collect(),
            ..plan.clone()
        }
    }

    fn sways(most: f64) -> impl Strategy<Value = Vec<(f64, f64, f64)>> {
        prop::collection::vec((-most..most, 0.5..25.0_f64, 0.0..6.3_f64), JOINTS_MAX)
    }

    fn cases() -> ProptestConfig {
        let requested = std::env::var("STEADYHAND_CASES").ok();
        let cases = requested.and_then(|n| n.parse().ok()).unwrap_or(96);
        ProptestConfig::with_cases(cases)
    }

    /// The movement of a point is the arc that each joint's lever makes of its turn.
    #[test]
    fn the_movement_bound_is_the_sum_of_the_arcs() {
        let levers = JointLevers {
            lengths_m: JointVector::from_slice(&[0.5, 0.25]),
        };
        let (from, to) = (&[0.1, -0.2], &[-0.2, 0.3]);
        let (from, to) = (JointVector::from_slice(from), JointVector::from_slice(to));
        for (from, to) in [(&from, &to), (&to, &from)] {
            assert!((levers.moved_m(from, to) - (0.3 * 0.5 + 0.5 * 0.25)).abs() < 1e-12);
            let bend_m = 0.3 * 0.3 * 0.5 + 0.5 * (0.5 + 2.0 * 0.3) * 0.25;
            assert!((levers.midpoint_deviation_m(from, to) - bend_m / 8.0).abs() < 1e-12);
        }
    }

    /// Two links of a metre: where both joints turn, the tip deviates from its straight line by nearly
    /// the bound, and never by more.
    #[test]
    fn a_tip_strays_nearly_as_far_as_the_bound_and_no_farther() {
        let levers = JointLevers {
            lengths_m: JointVector::from_slice(&[2.0, 1.0]),
        };
        let tip = |inner: f64, outer: f64| {
            let elbow = Point3::new(inner.cos(), inner.sin(), 0.0);
            elbow + Vector3::new((inner + outer).cos(), (inner + outer).sin(), 0.0)
        };
        for (inner, outer) in [(0.1, 0.0), (0.0, 0.1), (0.1, 0.2), (-0.1, 0.3)] {
            let chord = center(&tip(0.0, 0.0), &tip(inner, outer));
            let strays_m = (tip(inner / 2.0, outer / 2.0) - chord).norm();
            let bound_m = levers.midpoint_deviation_m(
                &JointVector::zeros(2),
                &JointVector::from_slice(&[inner, outer]),
            );
            assert!(strays_m <= bound_m, "{strays_m} {bound_m}");
            if inner >= 0.0 {
                assert!(strays_m > bound_m * 0.95, "{strays_m} {bound_m}");
            }
        }
    }

    fn scan(bound_m: f64) -> ClearanceScan {
        let near = vec![PartProximity { gap_m: 0.0, key: 0 }];
        ClearanceScan { near, bound_m }
    }

    /// Nothing is measured while there is room; once it is used up, and without any, the clearance is
    /// measured again.
    #[test]
    fn a_clearance_is_measured_again_as_soon_as_its_room_is_used_up() {
        let (scene, _) = planned_scene(0);
        let world = CollisionWorld::new(scene);
        let levers = JointLevers {
            lengths_m: JointVector::from_slice(&[0.5, 0.25]),
        };
        let at = |first: f64| world.body().pose(&JointVector::from_slice(&[first, 0.0]));
        let limit_m = 0.02;
        let mut cache = CachedClearance::unknown();
        let mut measured = |first: f64, scan_m: f64| {
            let measure = || scan(scan_m);
            !cache
                .find_near(&levers, &at(first), limit_m, measure)
                .is_empty()
        };
        // Nothing is known yet; then there are 10 mm of room, which the first joint uses in 0.02.
        assert!(measured(1.0, limit_m + 0.01 + ROUNDING_M));
        assert!(
            !measured(1.0, 0.0) && !measured(1.0 + 0.02 - 1e-9, 0.0) && !measured(1.0 - 0.019, 0.0)
        );
        assert!(measured(1.0 + 0.02 + 1e-9, limit_m + ROUNDING_M));
        // No room is left at all: not even for standing still.
        assert!(measured(1.02 + 1e-9, limit_m + ROUNDING_M));
        assert!(measured(1.02 + 1e-9, 0.0) && measured(1.02 + 1e-9, f64::NAN));
        assert!(measured(1.02 + 1e-9, f64::INFINITY) && !measured(-1.0, 0.0));
        // Room of exactly zero is none.
        let mut cache = CachedClearance::unknown();
        let mut measured = || {
            let measure = || scan(ROUNDING_M);
            !cache.find_near(&levers, &at(1.0), 0.0, measure).is_empty()
        };
        assert!(measured() && measured());
    }

    /// Each pen draws in turn with the body at rest, which changes the set of idle pens.
    #[test]
    fn the_cache_of_idle_pens_is_cleared_when_another_pen_draws() {
        let (scene, plan) = planned_scene(2);
        let mut strokes = plan.spans.iter();
        let stroke = strokes.find(|span| span.kind == SpanKind::Draw && span.pen == 0);
        let at = plan.samples[stroke.unwrap().end - 1];
        let mut world = CollisionWorld::new(scene);
        let pose = world.body().pose(&at);
        let tip_mm = [0, 1].map(|pen| {
            let tip_m = tip_m(scene, pen, pose.q_rad());
            scene.surface.project(&tip_m.unwrap()).height_mm
        });
        assert!(tip_mm[0] < -0.005 && tip_mm[1] > 1.0, "{tip_mm:?}");
        for drawing in [0, 1, 0, 1] {
            let near = world.idle_pens(&pose, drawing);
            if drawing == 0 {
                assert!(near.is_empty(), "{near:?}");
                continue;
            }
            let near_mm = near.first().unwrap().gap_m * 1e3;
            assert!((near_mm - tip_mm[0]).abs() < 1e-6, "{near_mm}");
        }
    }

    /// A keep-out index beyond the scene's own is measured on every call.
    #[test]
    fn a_keep_out_without_a_cache_is_measured_all_the_same() {
        let (scene, plan) = planned_scene(0);
        let mut world = CollisionWorld::new(scene);
        let pose = world.body().pose(&plan.samples[0]);
        let everywhere = AxisAlignedBox {
            min_m: Point3::new(-1.0, -1.0, -1.0),
            max_m: Point3::new(1.0, 1.0, 1.0),
        };
        let [cached, other] = [0, 7].map(|index| world.near_keep_out(&pose, index, &everywhere));
        assert!(cached.len() > 3 && cached == other, "{cached:?} {other:?}");
    }

    proptest! {
        #![proptest_config(cases())]

        /// The gate gives the same verdict when it measures everything at every sample.
        #[test]
        fn the_caches_do_not_change_the_verdict(
            index in 0..SCENES.len(), from in 0.0..1.0_f64, far: bool, small in sways(0.03), large in sways(0.5),
        ) {
            let (scene, plan) = planned_scene(index);
            let swayed = swayed(plan, from, if far { &large } else { &small });
            let TestVerdict { refusals, stops } = judge_samples(scene, &swayed, || CollisionWorld::new(scene));
            let full = judge_samples(scene, &swayed, || CollisionWorld::without_cache(scene));
            prop_assert_eq!(refusals, full.refusals);
            prop_assert_eq!(stops, full.stops);
        }

        #[test]
        fn nothing_moves_farther_than_the_lever_bound(
            index in 0..SCENES.len(), from in 0.0..1.0_f64, a in sways(0.5), b in sways(0.5),
        ) {
            let (scene, plan) = planned_scene(index);
            let at = (from * (plan.samples.len() - 1) as f64) as usize;
            let posed = |amplitude: &[(f64, f64, f64)]| plan.samples[at].map(|joint, q| q + amplitude[joint].0);
            let (a, b) = (posed(&a), posed(&b));
            let world = CollisionWorld::new(scene);
            let (body, levers) = (world.body(), world.levers());
            let (one, other) = (body.pose(&a), body.pose(&b));
            for (one, other) in body.ends(&one).into_iter().zip(body.ends(&other)) {
                prop_assert!((one - other).norm() <= levers.moved_m(&a, &b) + 1e-12);
            }
            let middle = a.zip(&b, f64::midpoint);
            for pen in &scene.pens {
                let tip = |q: &JointVector| -> Point3<f64> { scene.arm.chain.point(q, &pen.tip_m) };
                let strays_m = (tip(&middle) - center(&tip(&a), &tip(&b))).norm();
                prop_assert!(strays_m <= levers.midpoint_deviation_m(&a, &b) + 1e-12);
            }
        }
    }
}
