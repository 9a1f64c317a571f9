//! Arm and pens as capsules: how near they are to each other and to what is around them.

use std::cell::OnceCell;

use nalgebra::{IsometryMatrix3, Point3};

use super::check::exceeds;
use super::clearance::{height_mm, lowest_over_sheet_m, way_to_sheet_m};
use super::escape::PartProximity;
use base::units::JointVector;
use kin::LinkFrames;
use kin::capsule::{PlacedCapsule, nearest_pair, place};
use scene::{AxisAlignedBox, CLEARANCE_M, PEN_RADIUS_M, Scene};

/// Beyond this distance nothing counts as near, and no exact distance is computed.
pub(super) const FAR_M: f64 = 0.05;

/// The parts of an arm and its pens that can touch something. Built once for a whole trajectory.
pub(super) struct CollisionBody<'a> {
    scene: &'a Scene,
    parts: Vec<BodyPart<'a>>,
    /// Pairs of parts that may not touch.
    checked_pairs: Vec<(usize, usize)>,
}

/// A capsule of the arm, or a pen from its mount to its tip.
struct BodyPart<'a> {
    name: &'a str,
    /// Number of joints that move it.
    joints_before: usize,
    is_pen: bool,
    from_m: Point3<f64>,
    to_m: Point3<f64>,
    radius_m: f64,
}

/// The body at one sample. Frames and capsules are computed on first use.
pub(super) struct PosedBody {
    q_rad: JointVector,
    frames: OnceCell<LinkFrames>,
    placed: OnceCell<Vec<PlacedCapsule>>,
}

/// All that is nearer than a limit, and a lower bound of every distance.
pub(super) struct ClearanceScan<K = usize> {
    pub(super) near: Vec<PartProximity<K>>,
    pub(super) bound_m: f64,
}

impl<'a> CollisionBody<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        let parts: Vec<BodyPart<'a>> = capsules(scene).chain(pens(scene)).collect();
        let pens = parts.iter().filter(|part| part.is_pen).count();
        let checked_pairs = scene.arm.pairs_kept_apart(pens);
        Self {
            scene,
            parts,
            checked_pairs,
        }
    }

    /// Returns the scene that it is in.
    pub(super) fn scene(&self) -> &'a Scene {
        self.scene
    }

    /// Returns the body at these joint angles.
    pub(super) fn pose(&self, q_rad: &JointVector) -> PosedBody {
        PosedBody {
            q_rad: *q_rad,
            frames: OnceCell::new(),
            placed: OnceCell::new(),
        }
    }

    /// Returns the frames of the links.
    pub(super) fn frames<'s>(&self, pose: &'s PosedBody) -> &'s LinkFrames {
        let frames = || self.scene.arm.chain.frames(&pose.q_rad);
        pose.frames.get_or_init(frames)
    }

    /// Returns the placed capsules of all parts.
    pub(super) fn placed<'s>(&self, pose: &'s PosedBody) -> &'s [PlacedCapsule] {
        pose.placed.get_or_init(|| {
            let frames = self.frames(pose);
            let placed = self.parts.iter().map(|part| {
                let frame = part.frame(frames);
                place(frame, &part.from_m, &part.to_m, part.radius_m)
            });
            placed.collect()
        })
    }

    /// Returns both ends of every part.
    #[cfg(test)]
    pub(super) fn ends(&self, pose: &PosedBody) -> Vec<Point3<f64>> {
        let placed = self.placed(pose).iter();
        placed.flat_map(|part| [part.from_m, part.to_m]).collect()
    }

    /// Returns the largest distance between a joint and anything that it moves, for any angles of the
    /// other joints: the length of the chain from there, stretched out.
    pub(super) fn lever_m(&self, joint: usize) -> f64 {
        let chain = &self.scene.arm.chain;
        let beyond = |part: &&BodyPart<'_>| part.joints_before > joint;
        let lever = |part: &BodyPart<'_>| {
            let steps = chain.joints().iter().take(part.joints_before);
            let steps = steps.skip(joint + 1);
            let chain_m: f64 = steps
                .map(|joint| joint.origin.translation.vector.norm())
                .sum();
            let mount_m = if part.is_pen { chain.mount_m() } else { 0.0 };
            chain_m + mount_m + part.from_m.coords.norm().max(part.to_m.coords.norm())
        };
        self.parts
            .iter()
            .filter(beyond)
            .map(lever)
            .fold(0.0, f64::max)
    }

    /// Returns whether no joint moves a part.
    pub(super) fn is_fixed(&self, part: usize) -> bool {
        let part = self.parts.get(part);
        part.is_some_and(|part| part.joints_before == 0)
    }

    /// Returns the name of a part for messages.
    pub(super) fn part_name(&self, part: usize) -> String {
        let label = self.parts.get(part).map(|part| (part.is_pen, part.name));
        match label {
            Some((true, pen)) => format!("pen `{pen}`"),
            link => link.map_or("the arm", |(_, link)| link).to_owned(),
        }
    }

    fn placed_parts<'s>(
        &'s self,
        pose: &'s PosedBody,
    ) -> impl Iterator<Item = (usize, &'s BodyPart<'a>, &'s PlacedCapsule)> {
        let both = self.parts.iter().zip(self.placed(pose)).enumerate();
        both.map(|(index, (part, placed))| (index, part, placed))
    }

    /// Returns every moving part of the arm that is outside the workspace, by side.
    pub(super) fn outside_workspace(&self, pose: &PosedBody) -> ClearanceScan<(usize, usize)> {
        let workspace = &self.scene.limits.workspace;
        let arm = self.moving_parts(pose).filter(|(_, part, _)| !part.is_pen);
        let sides = arm.flat_map(|(index, _, placed)| {
            let ends = [placed.from_m, placed.to_m].map(|end| workspace.inside_m(&end));
            let [from, to] = ends;
            let both = from.into_iter().zip(to).enumerate();
            both.map(move |(side, (from, to))| PartProximity {
                gap_m: from.min(to) - placed.radius_m,
                key: (index, side),
            })
        });
        nearer_than(0.0, sides)
    }

    /// Returns every pen whose tip is outside the workspace, by side.
    pub(super) fn tips_outside_workspace(&self, pose: &PosedBody) -> ClearanceScan<(usize, usize)> {
        let (workspace, tool) = (&self.scene.limits.workspace, self.frames(pose).tool);
        let parts = self.parts.iter().enumerate();
        let pens = parts.filter(|(_, part)| part.is_pen);
        let sides = pens.flat_map(|(index, part)| {
            let inside = workspace.inside_m(&(tool * part.to_m));
            let sides = inside.into_iter().enumerate();
            sides.map(move |(side, gap_m)| PartProximity {
                gap_m,
                key: (index, side),
            })
        });
        nearer_than(0.0, sides)
    }

    /// Returns the parts of the arm that are too near to the sheet.
    pub(super) fn over_sheet(&self, pose: &PosedBody) -> Vec<PartProximity> {
        let arm = self.placed_parts(pose).filter(|(_, part, _)| !part.is_pen);
        let near = arm.filter_map(|(key, _, placed)| {
            let ends = (&placed.from_m, &placed.to_m);
            // A surface that is not known well may be higher.
            let off_m = placed.radius_m + self.scene.surface.uncertainty_m();
            let gap_m = lowest_over_sheet_m(self.scene, ends, CLEARANCE_M + off_m)? - off_m;
            Some(PartProximity { gap_m, key })
        });
        near.collect()
    }

    /// Returns the pens that do not draw and whose tips are too near to the sheet.
    pub(super) fn idle_pens(&self, pose: &PosedBody, drawing: usize) -> Vec<PartProximity> {
        let idle_parts = self.idle_parts(pose, drawing);
        let tips = idle_parts.filter_map(|(key, _, placed)| {
            let gap_m = height_mm(self.scene, &placed.to_m)? / 1e3;
            Some(PartProximity { gap_m, key })
        });
        nearer_than(self.scene.idle_clearance_m(), tips).near
    }

    fn moving_parts<'s>(
        &'s self,
        pose: &'s PosedBody,
    ) -> impl Iterator<Item = (usize, &'s BodyPart<'a>, &'s PlacedCapsule)> {
        self.placed_parts(pose)
            .filter(|(_, part, _)| part.joints_before > 0)
    }

    fn idle_parts<'s>(
        &'s self,
        pose: &'s PosedBody,
        drawing: usize,
    ) -> impl Iterator<Item = (usize, &'s BodyPart<'a>, &'s PlacedCapsule)> {
        let pens = self.placed_parts(pose).filter(|(_, part, _)| part.is_pen);
        // A holder whose pen a person changes holds one pen at a time.
        let by_hand = self.scene.holder.is_by_hand();
        let idle = pens
            .enumerate()
            .filter(move |(pen, _)| !by_hand && *pen != drawing);
        idle.map(|(_, part)| part)
    }

    /// Returns a height that no idle tip is below, wherever the sheet ends.
    pub(super) fn idle_bound_m(&self, pose: &PosedBody, drawing: usize) -> f64 {
        self.idle_parts(pose, drawing)
            .map(|(_, _, placed)| self.scene.surface.project(&placed.to_m).height_mm / 1e3)
            .fold(f64::INFINITY, f64::min)
    }

    /// Returns a distance that the arm has to move before any part of it touches the sheet or its border. A fixed part that is not
    /// over the sheet counts as [`FAR_M`] away.
    pub(super) fn over_sheet_bound_m(&self, pose: &PosedBody) -> f64 {
        let arm = self.placed_parts(pose).filter(|(_, part, _)| !part.is_pen);
        arm.fold(f64::INFINITY, |bound_m, (_, part, placed)| {
            let ends = (&placed.from_m, &placed.to_m);
            let off_m = placed.radius_m + self.scene.surface.uncertainty_m();
            let way_m = if part.joints_before > 0 {
                way_to_sheet_m(self.scene, ends, off_m, bound_m)
            } else {
                let limit_m = FAR_M + off_m;
                lowest_over_sheet_m(self.scene, ends, limit_m).unwrap_or(limit_m) - off_m
            };
            bound_m.min(way_m)
        })
    }

    /// Returns the moving parts of arm and pens that are too near to a box. The lower bound is at
    /// most [`FAR_M`].
    pub(super) fn near_box(&self, pose: &PosedBody, corners: &AxisAlignedBox) -> ClearanceScan {
        let parts = self.moving_parts(pose).filter_map(|(key, _, placed)| {
            let limit_m = FAR_M + placed.radius_m;
            let gap_m = corners.segment_distance_m(&placed.from_m, &placed.to_m, limit_m)?;
            Some(PartProximity {
                gap_m: gap_m - placed.radius_m,
                key,
            })
        });
        let ClearanceScan { near, bound_m } = nearer_than(CLEARANCE_M, parts);
        ClearanceScan {
            near,
            bound_m: bound_m.min(FAR_M),
        }
    }

    /// Returns the checked pairs of parts that are too near to each other.
    pub(super) fn near_itself(&self, pose: &PosedBody) -> ClearanceScan<(usize, usize)> {
        let placed = self.placed(pose);
        let nearest = nearest_pair(placed, &self.checked_pairs);
        let bound_m = nearest.map_or(f64::INFINITY, |(_, gap_m)| gap_m);
        if !exceeds(CLEARANCE_M, bound_m) {
            return ClearanceScan {
                near: Vec::new(),
                bound_m,
            };
        }
        let pairs = self.checked_pairs.iter().filter_map(|(one, other)| {
            Some(PartProximity {
                gap_m: placed.get(*one)?.clearance_m(placed.get(*other)?),
                key: (*one, *other),
            })
        });
        nearer_than(CLEARANCE_M, pairs)
    }
}

impl BodyPart<'_> {
    /// Returns the frame that carries it.
    #[expect(
        clippy::expect_used,
        reason = "a part without its frame must not be judged as if it were elsewhere"
    )]
    fn frame<'f>(&self, frames: &'f LinkFrames) -> &'f IsometryMatrix3<f64> {
        if self.is_pen {
            return &frames.tool;
        }
        let link = frames.get(self.joints_before);
        link.expect("an arm's file names a joint for each capsule")
    }
}

impl PosedBody {
    /// Returns the joint angles.
    pub(super) fn q_rad(&self) -> &JointVector {
        &self.q_rad
    }
}

/// Those of all that are nearer than `least_m`, and how near the nearest of all is.
fn nearer_than<K>(limit_m: f64, all: impl Iterator<Item = PartProximity<K>>) -> ClearanceScan<K> {
    let mut bound_m = f64::INFINITY;
    let all = all.inspect(|near| bound_m = bound_m.min(near.gap_m));
    let near = all.filter(|near| exceeds(limit_m, near.gap_m)).collect();
    ClearanceScan { near, bound_m }
}

fn capsules(scene: &Scene) -> impl Iterator<Item = BodyPart<'_>> {
    scene.arm.capsules.iter().map(|capsule| BodyPart {
        name: &capsule.name,
        joints_before: capsule.joints_before,
        is_pen: false,
        from_m: capsule.from_m,
        to_m: capsule.to_m,
        radius_m: capsule.radius_m,
    })
}

fn pens(scene: &Scene) -> impl Iterator<Item = BodyPart<'_>> {
    scene.pens_in_holder().map(|pen| BodyPart {
        name: &pen.name,
        joints_before: scene.arm.dof(),
        is_pen: true,
        from_m: Point3::origin(),
        to_m: pen.tip_m,
        radius_m: PEN_RADIUS_M,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use std::sync::Arc;

    use super::*;
    use scene::SceneLibrary;

    fn scene(name: &str) -> Scene {
        Scene::clone(&SceneLibrary::new(None).scene(name, None).unwrap())
    }

    /// The idle one of two pens, with the arm at rest and lowered step by step.
    #[test]
    fn an_idle_pen_is_as_high_as_its_tip() {
        let scene = scene("two_pens");
        let body = CollisionBody::new(&scene);
        let (mut above, mut below) = (0, 0);
        for (drawing, step) in (0..2).flat_map(|drawing| (0..30).map(move |step| (drawing, step))) {
            let low =
                |joint: usize, q: f64| q + f64::from(step) * if joint == 1 { 0.02 } else { 0.0 };
            let pose = body.pose(&scene.ready_rad.map(low));
            let idle = scene.pens.get(1 - drawing).unwrap();
            let tip = body.frames(&pose).tool * idle.tip_m;
            let height_m = scene.surface.project(&tip).height_mm / 1e3;
            assert!((body.idle_bound_m(&pose, drawing) - height_m).abs() < 1e-12);
            let found = body.idle_pens(&pose, drawing);
            if height_m >= CLEARANCE_M || height_mm(&scene, &tip).is_none() {
                assert_eq!(found, []);
                above += 1;
                continue;
            }
            below += 1;
            assert_eq!(found.len(), 1, "{found:?}");
            let found = found.first().unwrap();
            assert!((found.gap_m - height_m).abs() < 1e-12, "{found:?}");
            assert_eq!(body.part_name(found.key), format!("pen `{}`", idle.name));
        }
        assert!(above > 3 && below > 3, "{above} {below}");
    }

    /// Moves a box side by side over the arm and pens and compares each side on its own.
    #[test]
    fn moving_parts_are_outside_by_each_side_on_its_own() {
        let mut scene = scene("default");
        let q = scene.ready_rad;
        let placed = {
            let body = CollisionBody::new(&scene);
            let parts: Vec<(bool, usize, PlacedCapsule)> = body
                .placed_parts(&body.pose(&q))
                .map(|(_, part, placed)| (part.is_pen, part.joints_before, *placed))
                .collect();
            parts
        };
        let everywhere = AxisAlignedBox {
            min_m: Point3::new(-9.0, -9.0, -9.0),
            max_m: Point3::new(9.0, 9.0, 9.0),
        };
        for (part, (is_pen, joints_before, at)) in placed.iter().enumerate() {
            for axis in 0..3 {
                let radius_m = if *is_pen { 0.0 } else { at.radius_m };
                let from = if *is_pen { at.to_m } else { at.from_m };
                let (low, high) = (
                    from[axis].min(at.to_m[axis]) - radius_m,
                    from[axis].max(at.to_m[axis]) + radius_m,
                );
                for (side, out_m) in [
                    (axis, 1e-3),
                    (axis, -1e-3),
                    (axis + 3, 1e-3),
                    (axis + 3, -1e-3),
                ] {
                    scene.limits.workspace = everywhere;
                    if side < 3 {
                        scene.limits.workspace.min_m[axis] = low + out_m;
                    } else {
                        scene.limits.workspace.max_m[axis] = high - out_m;
                    }
                    let body = CollisionBody::new(&scene);
                    let pose = body.pose(&q);
                    let ClearanceScan { near, bound_m } = if *is_pen {
                        body.tips_outside_workspace(&pose)
                    } else {
                        body.outside_workspace(&pose)
                    };
                    let found = near.iter().find(|near| near.key == (part, side));
                    let found_m = found.map(|near| near.gap_m);
                    let expected_m = (out_m > 0.0 && *joints_before > 0).then_some(-1e-3);
                    assert_eq!(
                        found_m.is_some(),
                        expected_m.is_some(),
                        "{part} {side} {near:?}"
                    );
                    let error_m = found_m.zip(expected_m).map_or(0.0, |(a, b)| a - b);
                    assert!(error_m.abs() < 1e-12, "{part} {side}: {error_m}");
                    let nearest_m = near
                        .iter()
                        .map(|near| near.gap_m)
                        .fold(f64::INFINITY, f64::min);
                    assert!(
                        near.is_empty() && bound_m >= 0.0 || (bound_m - nearest_m).abs() < 1e-12
                    );
                }
            }
        }
    }

    /// Checks which parts a box is too near to, and how near the nearest is.
    #[test]
    fn a_box_is_near_to_every_part_that_moves_and_comes_near() {
        let scene = scene("default");
        let body = CollisionBody::new(&scene);
        let pose = body.pose(&scene.ready_rad);
        let (mut one, mut more) = (0, 0);
        for step in 0..60_i32 {
            let middle = Point3::new(0.01, 0.05 - 0.005 * f64::from(step), 0.09);
            let half = nalgebra::Vector3::repeat(0.02);
            let corners = AxisAlignedBox {
                min_m: middle - half,
                max_m: middle + half,
            };
            let distances: Vec<(usize, f64)> = body
                .placed_parts(&pose)
                .filter(|(_, part, _)| part.joints_before > 0)
                .map(|(key, _, at)| {
                    let ends = (&at.from_m, &at.to_m);
                    let distances = corners.segment_distance_m(ends.0, ends.1, f64::INFINITY);
                    (key, distances.unwrap() - at.radius_m)
                })
                .collect();
            let expected: Vec<usize> = distances
                .iter()
                .filter(|(_, gap_m)| *gap_m < CLEARANCE_M)
                .map(|(key, _)| *key)
                .collect();
            let ClearanceScan { near, bound_m } = body.near_box(&pose, &corners);
            let found: Vec<usize> = near.iter().map(|near| near.key).collect();
            assert_eq!(found, expected);
            let nearest_m = distances
                .iter()
                .map(|(_, gap_m)| *gap_m)
                .fold(FAR_M, f64::min);
            assert!((bound_m - nearest_m).abs() < 1e-9, "{bound_m} {nearest_m}");
            one += usize::from(expected.len() == 1);
            more += usize::from(expected.len() > 1);
        }
        assert!(one > 2 && more > 2, "{one} {more}");
    }

    /// Every pair that is near is found, however near another pair is.
    #[test]
    fn two_parts_are_near_each_other_whatever_other_two_are() {
        let mut scene = scene("default");
        let (mut none, mut more) = (0, 0);
        for step in 0..40_i32 {
            let mut arm = arm::ArmModel::clone(&scene.arm);
            for capsule in &mut arm.capsules {
                capsule.radius_m = 0.001 + 0.003 * f64::from(step);
            }
            scene.arm = Arc::new(arm);
            let body = CollisionBody::new(&scene);
            let pose = body.pose(&scene.rest_rad);
            let placed = body.placed(&pose);
            let clearances = body.checked_pairs.iter().map(|(one, other)| {
                let clearance = placed
                    .get(*one)
                    .unwrap()
                    .clearance_m(placed.get(*other).unwrap());
                ((*one, *other), clearance)
            });
            let expected: Vec<_> = clearances
                .clone()
                .filter(|(_, m)| *m < CLEARANCE_M)
                .collect();
            let ClearanceScan { near, bound_m } = body.near_itself(&pose);
            let found: Vec<_> = near.iter().map(|near| (near.key, near.gap_m)).collect();
            assert_eq!(found, expected);
            let nearest_m = clearances.map(|(_, m)| m).fold(f64::INFINITY, f64::min);
            assert!((bound_m - nearest_m).abs() < 1e-12);
            none += usize::from(expected.is_empty());
            more += usize::from(expected.len() > 1);
        }
        assert!(none > 2 && more > 2, "{none} {more}");
    }

    /// Moving parts count by their ends, over the plane of the sheet or beside its border; the base is not over it.
    #[test]
    fn the_arm_is_as_high_over_the_sheet_as_its_lowest_part() {
        let (scene, trajectory) = crate::tests::drawing();
        let body = CollisionBody::new(scene);
        let size_mm = scene.surface.size_mm();
        let way_m = |placed: &PlacedCapsule| {
            let [from, to] = [placed.from_m, placed.to_m].map(|end| scene.surface.project(&end));
            let ends_mm = from.at_mm.into_iter().zip(to.at_mm).zip(size_mm);
            let outside_mm =
                ends_mm.map(|((a, b), side)| (-30.0 - a.max(b)).max(a.min(b) - side - 30.0));
            let over_m = from.height_mm.min(to.height_mm) / 1e3 - placed.radius_m;
            outside_mm.fold(over_m, |way_m, mm| way_m.max(mm / 1e3))
        };
        let mut near = 0;
        let rotated = |sample: &JointVector, by: f64| {
            let q = sample.map(|joint, q| if joint == 0 { q + by } else { q });
            body.pose(&q)
        };
        let samples = trajectory.samples.iter().step_by(97);
        // Over the sheet, and rotated away from it.
        for pose in samples.flat_map(|sample| [0.0, 1.5].map(|by| rotated(sample, by))) {
            let moved = body
                .placed_parts(&pose)
                .filter(|(_, part, _)| !part.is_pen && part.joints_before > 0);
            let lowest_m = moved
                .map(|(_, _, placed)| way_m(placed))
                .fold(FAR_M, f64::min);
            near += usize::from(lowest_m < FAR_M);
            let bound_m = body.over_sheet_bound_m(&pose);
            assert!((bound_m - lowest_m).abs() < 1e-12, "{bound_m} {lowest_m}");
        }
        assert!(near > 10, "{near}");
        let mut base = Scene::clone(scene);
        let mut arm = arm::ArmModel::clone(&base.arm);
        arm.capsules.retain(|capsule| capsule.joints_before == 0);
        assert!(!arm.capsules.is_empty());
        base.arm = Arc::new(arm);
        let body = CollisionBody::new(&base);
        let bound_m = body.over_sheet_bound_m(&body.pose(&base.ready_rad));
        assert!((bound_m - FAR_M).abs() < 1e-12, "{bound_m}");
    }

    /// Computes the levers from link and tip positions, where the body uses their lengths.
    fn levers_m(scene: &Scene) -> Vec<f64> {
        let body = CollisionBody::new(scene);
        let pose = body.pose(&scene.ready_rad);
        let frames = body.frames(&pose);
        let joint_at = |before: usize| frames.get(before).unwrap().translation.vector;
        let lever_m = |joint: usize, part: &BodyPart<'_>, placed: &PlacedCapsule| {
            let last = part.joints_before;
            let chain_m: f64 = (joint + 1..last)
                .map(|link| (joint_at(link + 1) - joint_at(link)).norm())
                .sum();
            let (mount_m, held_at) = if part.is_pen {
                let tool = frames.tool.translation.vector;
                ((tool - joint_at(last)).norm(), tool)
            } else {
                (0.0, joint_at(last))
            };
            let ends = [placed.from_m, placed.to_m].map(|end| (end.coords - held_at).norm());
            chain_m + mount_m + ends.into_iter().fold(0.0, f64::max)
        };
        let levers = (0..scene.arm.dof()).map(|joint| {
            let beyond = body
                .placed_parts(&pose)
                .filter(|(_, part, _)| part.joints_before > joint);
            let levers = beyond.map(|(_, part, placed)| lever_m(joint, part, placed));
            levers.fold(0.0, f64::max)
        });
        levers.collect()
    }

    #[test]
    fn a_lever_is_all_that_a_joint_moves_stretched_out() {
        let mut empty_handed = scene("default");
        let mut arm = arm::ArmModel::clone(&empty_handed.arm);
        let dof = arm.dof();
        arm.capsules.retain(|capsule| capsule.joints_before < dof);
        empty_handed.arm = Arc::new(arm);
        empty_handed.pens.clear();
        for scene in [scene("default"), scene("two_pens"), empty_handed] {
            let (body, expected) = (CollisionBody::new(&scene), levers_m(&scene));
            for (joint, expected_m) in expected.into_iter().enumerate() {
                let lever_m = body.lever_m(joint);
                assert!(
                    (lever_m - expected_m).abs() < 1e-9,
                    "{joint}: {lever_m} {expected_m}"
                );
            }
        }
    }

    /// The pairs that may not touch, by name.
    fn pairs(scene: &Scene) -> Vec<[String; 2]> {
        let body = CollisionBody::new(scene);
        let name = |part: usize| body.parts.get(part).unwrap().name.to_owned();
        body.checked_pairs
            .iter()
            .map(|(a, b)| [name(*a), name(*b)])
            .collect()
    }

    /// The pairs of every shipped arm with a pen, one line a part. A pair that is gone is one that the gate no longer checks.
    #[test]
    fn every_shipped_arm_is_kept_off_itself_as_before() {
        let library = SceneLibrary::new(None);
        let mut lines = String::new();
        for arm in library.arms() {
            let mut scene = scene("default");
            scene.arm = library.arm(&arm).unwrap();
            let pairs = pairs(&scene);
            for of_one in pairs.chunk_by(|[a, _], [b, _]| a == b) {
                let others: Vec<&str> = of_one.iter().map(|[_, other]| other.as_str()).collect();
                let [one, _] = of_one.first().unwrap();
                lines += &format!("{arm}: {one} | {}\n", others.join(" | "));
            }
        }
        assert_eq!(lines, include_str!("tests/checked_pairs.txt"));
    }
    /// `may_touch` is of capsules.
    #[test]
    fn a_pen_with_the_name_of_a_part_is_kept_off_as_any_pen() {
        let mut scene = scene("default");
        let all = pairs(&scene).len();
        let mut arm = arm::ArmModel::clone(&scene.arm);
        arm.file.may_touch = vec![["base".to_owned(), "wrist".to_owned()]];
        scene.arm = Arc::new(arm);
        let pen = scene.pens.first_mut().unwrap();
        "wrist".clone_into(&mut pen.name);
        assert_eq!(pairs(&scene).len(), all - 1);
        assert!(pairs(&scene).contains(&["base", "wrist"].map(str::to_owned)));
    }
}
