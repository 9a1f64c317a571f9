//! Clearances of the body to its surroundings, measured again only where they may have become too
//! small.
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

/// More than the rounding in any distance, and than the search for the nearest point of a box may
/// be off.
const ROUNDING_M: f64 = 1e-5;

/// The body, and since when each distance is known.
pub(super) struct CollisionWorld<'a> {
    body: CollisionBody<'a>,
    levers: JointLevers,
    workspace: CachedClearance,
    tips: CachedClearance,
    sheet: CachedClearance,
    own: CachedClearance,
    idle: CachedClearance,
    /// Index of the pen that was drawing when the others were last looked at.
    drawing: usize,
    keep_outs: Vec<CachedClearance>,
}

/// The longest lever of each joint, in metres: the distance that a turn of one radian can carry any
/// point.
pub(super) struct JointLevers {
    m: JointVector,
}

/// The joint angles of the last measurement, and the distance that the body may move from there.
struct CachedClearance {
    from_rad: JointVector,
    room_m: f64,
}

impl<'a> CollisionWorld<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        let body = CollisionBody::new(scene);
        Self {
            levers: JointLevers::of(&body),
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

    /// The same, looking at everything every time.
    #[cfg(test)]
    pub(super) fn suspicious(scene: &'a Scene) -> Self {
        let all = Self::new(scene);
        let m = all.levers.m.map(|_, _| f64::INFINITY);
        Self {
            levers: JointLevers { m },
            ..all
        }
    }

    pub(super) fn body(&self) -> &CollisionBody<'a> {
        &self.body
    }

    pub(super) fn levers(&self) -> &JointLevers {
        &self.levers
    }

    /// As [`Body::outside_workspace`] and [`Body::tips_outside_workspace`]; empty without looking
    /// where all is inside for sure.
    pub(super) fn outside_workspace(
        &mut self,
        stance: &PosedBody,
    ) -> Vec<PartProximity<(usize, usize)>> {
        let Self { body, levers, .. } = self;
        let look = || body.outside_workspace(stance);
        let mut outside = self.workspace.find_near(levers, stance, 0.0, look);
        // Tips are near the table all the time, where the arm is far from it.
        let look = || body.tips_outside_workspace(stance);
        outside.extend(self.tips.find_near(levers, stance, 0.0, look));
        outside
    }

    /// As [`Body::over_sheet`]; empty without looking where nothing is nearer than
    /// [`CLEARANCE_M`] for sure.
    pub(super) fn over_sheet(&mut self, stance: &PosedBody) -> Vec<PartProximity> {
        let Self { body, levers, .. } = self;
        self.sheet
            .find_near(levers, stance, CLEARANCE_M, || ClearanceScan {
                near: body.over_sheet(stance),
                at_least_m: body.over_sheet_at_least_m(stance),
            })
    }

    /// As [`Body::idle_pens`]; empty without looking where none is below the sheet for sure.
    pub(super) fn idle_pens(&mut self, stance: &PosedBody, drawing: usize) -> Vec<PartProximity> {
        let Self { body, levers, .. } = self;
        if self.drawing != drawing {
            (self.drawing, self.idle) = (drawing, CachedClearance::unknown());
        }
        self.idle.find_near(levers, stance, 0.0, || ClearanceScan {
            near: body.idle_pens(stance, drawing),
            at_least_m: body.idle_at_least_m(stance, drawing),
        })
    }

    /// As [`Body::near_itself`]; empty without looking where no two are nearer than
    /// [`CLEARANCE_M`] for sure.
    pub(super) fn near_itself(&mut self, stance: &PosedBody) -> Vec<PartProximity<(usize, usize)>> {
        let Self { body, levers, .. } = self;
        let look = || body.near_itself(stance);
        self.own.find_near(levers, stance, CLEARANCE_M, look)
    }

    /// As [`Body::near_box`] of one of the scene's keep-outs; empty without looking where nothing
    /// is nearer than [`CLEARANCE_M`] for sure.
    pub(super) fn near_keep_out(
        &mut self,
        stance: &PosedBody,
        keep_out: usize,
        corners: &AxisAlignedBox,
    ) -> Vec<PartProximity> {
        let Self { body, levers, .. } = self;
        let look = || body.near_box(stance, corners);
        match self.keep_outs.get_mut(keep_out) {
            Some(known) => known.find_near(levers, stance, CLEARANCE_M, look),
            None => look().near,
        }
    }
}

impl JointLevers {
    fn of(body: &CollisionBody<'_>) -> Self {
        let all = JointVector::zeros(body.scene().arm.dof());
        Self {
            m: all.map(|joint, _| body.lever_m(joint)),
        }
    }

    /// No point of the body moves farther than this while the joints turn.
    fn moved_m(&self, from_rad: &JointVector, to_rad: &JointVector) -> f64 {
        let turns = from_rad.iter().zip(to_rad.iter());
        let arcs = turns.zip(self.m.iter());
        arcs.map(|((from, to), lever_m)| (to - from).abs() * lever_m)
            .sum()
    }

    /// Returns the largest distance of any tip from the straight line at the middle of a step, where
    /// joints turn evenly from one sample to the next. A joint's turn bends the arc of each outer
    /// joint, and its own, by at most the outer joint's lever. A curve leaves its chord in the middle
    /// by an eighth of that sum.
    pub(super) fn midpoint_deviation_m(&self, from_rad: &JointVector, to_rad: &JointVector) -> f64 {
        let (mut inner_rad, mut bend_m) = (0.0, 0.0);
        let turns = from_rad.iter().zip(to_rad.iter());
        for ((from, to), lever_m) in turns.zip(self.m.iter()) {
            let turn = (to - from).abs();
            bend_m += turn * (turn + 2.0 * inner_rad) * lever_m;
            inner_rad += turn;
        }
        bend_m / 8.0
    }
}

impl CachedClearance {
    /// Nothing: it has to be looked at.
    fn unknown() -> Self {
        Self {
            from_rad: JointVector::zeros(JOINTS_MAX),
            room_m: f64::NEG_INFINITY,
        }
    }

    /// Returns the result of `look`; empty, without calling it, where nothing can be nearer than `least_m`.
    fn find_near<K>(
        &mut self,
        levers: &JointLevers,
        stance: &PosedBody,
        least_m: f64,
        look: impl FnOnce() -> ClearanceScan<K>,
    ) -> Vec<PartProximity<K>> {
        // A distance that is not a number is not less than the room: then it is looked at.
        if levers.moved_m(&self.from_rad, stance.q_rad()) < self.room_m {
            return Vec::new();
        }
        let ClearanceScan { near, at_least_m } = look();
        *self = Self {
            from_rad: *stance.q_rad(),
            room_m: at_least_m - least_m - ROUNDING_M,
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
    reason = "a share of a plan's own length"
)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use nalgebra::{Point3, Vector3, center};
    use proptest::prelude::*;

    use super::*;
    use crate::check::{CheckedBy, judged};
    use crate::clearance::tip_m;
    use plan::{self, SilentObserver, SpanKind, Trajectory, TrajectorySpan};
    use scene::{KeepOut, SceneLibrary};

    const SCENES: [&str; 8] = [
        "default",
        "two_pens",
        "bottle",
        "widowx",
        "so100",
        "koch",
        "openmanipulator_x",
        "vx300",
    ];

    /// Number of a plan's samples that are bent and judged.
    const LENGTH: usize = 160;

    /// Every scene, a keep-out beside its sheet, and its plan.
    fn drawn(which: usize) -> &'static (Arc<Scene>, Trajectory) {
        static DRAWN: [OnceLock<(Arc<Scene>, Trajectory)>; SCENES.len()] =
            [const { OnceLock::new() }; SCENES.len()];
        DRAWN[which].get_or_init(|| {
            let scene = SceneLibrary::new(None).scene(SCENES[which], None).unwrap();
            let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
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
            (Arc::new(scene), plan.trajectory)
        })
    }

    /// Some samples of a plan, all joints swaying about them.
    fn bent(plan: &Trajectory, from: f64, sway: &[(f64, f64, f64)]) -> Trajectory {
        let last = (plan.samples.len() - LENGTH) as f64;
        let first = (last * from) as usize;
        let inside = |at: usize| at.clamp(first, first + LENGTH) - first;
        let spans = plan.spans.iter().map(|span| TrajectorySpan {
            first: inside(span.first),
            end: inside(span.end),
            ..*span
        });
        let samples = plan.samples.iter().enumerate().skip(first).take(LENGTH);
        let bent = samples.map(|(at, q)| {
            q.map(|joint, angle| {
                let (by, turns, phase) = sway[joint];
                angle + by * ((at - first) as f64 / LENGTH as f64 * turns + phase).sin()
            })
        });
        Trajectory {
            reached: Vec::new(),
            samples: bent.collect(),
            spans: spans.filter(|span| span.end > span.first).collect(),
            ..plan.clone()
        }
    }

    fn sways(most: f64) -> impl Strategy<Value = Vec<(f64, f64, f64)>> {
        prop::collection::vec((-most..most, 0.5..25.0_f64, 0.0..6.3_f64), JOINTS_MAX)
    }

    fn cases() -> ProptestConfig {
        let asked = std::env::var("STEADYHAND_CASES").ok();
        let cases = asked.and_then(|n| n.parse().ok()).unwrap_or(96);
        ProptestConfig::with_cases(cases)
    }

    /// The movement of a point is the arc that each joint's lever makes of its turn.
    #[test]
    fn what_joints_carry_is_the_sum_of_their_arcs() {
        let levers = JointLevers {
            m: JointVector::from_slice(&[0.5, 0.25]),
        };
        let (from, to) = (&[0.1, -0.2], &[-0.2, 0.3]);
        let (from, to) = (JointVector::from_slice(from), JointVector::from_slice(to));
        for (from, to) in [(&from, &to), (&to, &from)] {
            assert!((levers.moved_m(from, to) - (0.3 * 0.5 + 0.5 * 0.25)).abs() < 1e-12);
            let bend_m = 0.3 * 0.3 * 0.5 + 0.5 * (0.5 + 2.0 * 0.3) * 0.25;
            assert!((levers.midpoint_deviation_m(from, to) - bend_m / 8.0).abs() < 1e-12);
        }
    }

    /// Two planks of a metre: where both joints turn, the tip leaves its straight way by nearly what
    /// the levers say, and never by more.
    #[test]
    fn the_way_of_a_tip_strays_no_farther_than_said_and_nearly_as_far() {
        let levers = JointLevers {
            m: JointVector::from_slice(&[2.0, 1.0]),
        };
        let tip = |inner: f64, outer: f64| {
            let elbow = Point3::new(inner.cos(), inner.sin(), 0.0);
            elbow + Vector3::new((inner + outer).cos(), (inner + outer).sin(), 0.0)
        };
        for (inner, outer) in [(0.1, 0.0), (0.0, 0.1), (0.1, 0.2), (-0.1, 0.3)] {
            let chord = center(&tip(0.0, 0.0), &tip(inner, outer));
            let strays_m = (tip(inner / 2.0, outer / 2.0) - chord).norm();
            let said_m = levers.midpoint_deviation_m(
                &JointVector::zeros(2),
                &JointVector::from_slice(&[inner, outer]),
            );
            assert!(strays_m <= said_m, "{strays_m} {said_m}");
            if inner >= 0.0 {
                assert!(strays_m > said_m * 0.95, "{strays_m} {said_m}");
            }
        }
    }

    fn seen(at_least_m: f64) -> ClearanceScan {
        let near = vec![PartProximity { metres: 0.0, of: 0 }];
        ClearanceScan { near, at_least_m }
    }

    /// Nothing is measured while there is room; once it is used up, and without any, the clearance is
    /// measured again.
    #[test]
    fn a_place_is_looked_at_again_as_soon_as_its_room_is_used_up() {
        let (scene, _) = drawn(0);
        let around = CollisionWorld::new(scene);
        let levers = JointLevers {
            m: JointVector::from_slice(&[0.5, 0.25]),
        };
        let at = |first: f64| around.body().at(&JointVector::from_slice(&[first, 0.0]));
        let least_m = 0.02;
        let mut known = CachedClearance::unknown();
        let mut looks = |first: f64, seen_m: f64| {
            let look = || seen(seen_m);
            !known
                .find_near(&levers, &at(first), least_m, look)
                .is_empty()
        };
        // Nothing is known yet; then there are 10 mm of room, which the first joint uses in 0.02.
        assert!(looks(1.0, least_m + 0.01 + ROUNDING_M));
        assert!(!looks(1.0, 0.0) && !looks(1.0 + 0.02 - 1e-9, 0.0) && !looks(1.0 - 0.019, 0.0));
        assert!(looks(1.0 + 0.02 + 1e-9, least_m + ROUNDING_M));
        // No room is left at all: not even for standing still.
        assert!(looks(1.02 + 1e-9, least_m + ROUNDING_M));
        assert!(looks(1.02 + 1e-9, 0.0) && looks(1.02 + 1e-9, f64::NAN));
        assert!(looks(1.02 + 1e-9, f64::INFINITY) && !looks(-1.0, 0.0));
        // To the last: exactly none is none.
        let mut known = CachedClearance::unknown();
        let mut looks = || {
            let look = || seen(ROUNDING_M);
            !known.find_near(&levers, &at(1.0), 0.0, look).is_empty()
        };
        assert!(looks() && looks());
    }

    /// Each pen in turn, with the body where it is: the pens that do not draw are others then.
    #[test]
    fn what_is_known_of_idle_pens_is_forgotten_where_another_draws() {
        let (scene, plan) = drawn(1);
        let mut strokes = plan.spans.iter();
        let stroke = strokes.find(|span| span.kind == SpanKind::Draw && span.pen == 0);
        let at = plan.samples[stroke.unwrap().end - 1];
        let mut around = CollisionWorld::new(scene);
        let stance = around.body().at(&at);
        let tip_mm = [0, 1].map(|pen| {
            let tip_m = tip_m(scene, pen, stance.q_rad());
            scene.surface.project(&tip_m.unwrap()).height_mm
        });
        assert!(tip_mm[0] < -0.005 && tip_mm[1] > 1.0, "{tip_mm:?}");
        for draws in [0, 1, 0, 1] {
            let near = around.idle_pens(&stance, draws);
            if draws == 0 {
                assert!(near.is_empty(), "{near:?}");
                continue;
            }
            let near_mm = near.first().unwrap().metres * 1e3;
            assert!((near_mm - tip_mm[0]).abs() < 1e-6, "{near_mm}");
        }
    }

    /// A keep-out index beyond the scene's own is measured on every call.
    #[test]
    fn a_keep_out_that_was_not_counted_is_looked_at_all_the_same() {
        let (scene, plan) = drawn(0);
        let mut around = CollisionWorld::new(scene);
        let stance = around.body().at(&plan.samples[0]);
        let everywhere = AxisAlignedBox {
            min_m: Point3::new(-1.0, -1.0, -1.0),
            max_m: Point3::new(1.0, 1.0, 1.0),
        };
        let [known, other] = [0, 7].map(|index| around.near_keep_out(&stance, index, &everywhere));
        assert!(known.len() > 3 && known == other, "{known:?} {other:?}");
    }

    proptest! {
        #![proptest_config(cases())]

        /// The gate gives the same verdict when it measures everything at every sample.
        #[test]
        fn what_is_not_looked_at_again_would_have_been_said_the_same(
            which in 0..SCENES.len(), from in 0.0..1.0_f64, far: bool, small in sways(0.03), large in sways(0.5),
        ) {
            let (scene, plan) = drawn(which);
            let bent = bent(plan, from, if far { &large } else { &small });
            let CheckedBy { refusals, stops } = judged(scene, &bent, || CollisionWorld::new(scene));
            let full = judged(scene, &bent, || CollisionWorld::suspicious(scene));
            prop_assert_eq!(refusals, full.refusals);
            prop_assert_eq!(stops, full.stops);
        }

        #[test]
        fn nothing_moves_farther_than_its_levers_say(
            which in 0..SCENES.len(), from in 0.0..1.0_f64, a in sways(0.5), b in sways(0.5),
        ) {
            let (scene, plan) = drawn(which);
            let at = (from * (plan.samples.len() - 1) as f64) as usize;
            let posed = |by: &[(f64, f64, f64)]| plan.samples[at].map(|joint, q| q + by[joint].0);
            let (a, b) = (posed(&a), posed(&b));
            let around = CollisionWorld::new(scene);
            let (body, levers) = (around.body(), around.levers());
            let (one, other) = (body.at(&a), body.at(&b));
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
