//! Arm and pens as capsules: how near they are to each other and to what is around them.

use std::cell::OnceCell;

use nalgebra::{IsometryMatrix3, Point3};

use super::check::exceeds;
use super::clearance::{at_least_over_shape_m, height_mm, segment_over_sheet};
use super::escape::PartProximity;
use base::units::JointVector;
use kin::LinkFrames;
use kin::capsule::{PlacedCapsule, nearest_pair, place};
use scene::{AxisAlignedBox, CLEARANCE_M, PEN_RADIUS_M, Scene};

/// Farther than this, nothing is near: no margin is worked out.
pub(super) const FAR_M: f64 = 0.05;

/// The parts of an arm and its pens that can touch something. Built once for a whole trajectory.
pub(super) struct CollisionBody<'a> {
    scene: &'a Scene,
    parts: Vec<BodyPart<'a>>,
    /// Pairs of parts that may not touch.
    apart: Vec<(usize, usize)>,
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

/// The body at one sample: worked out when it is first asked for.
pub(super) struct PosedBody {
    q_rad: JointVector,
    frames: OnceCell<LinkFrames>,
    placed: OnceCell<Vec<PlacedCapsule>>,
}

/// All that is nearer than a limit, and a distance that nothing is nearer than.
pub(super) struct ClearanceScan<K = usize> {
    pub(super) near: Vec<PartProximity<K>>,
    pub(super) at_least_m: f64,
}

impl<'a> CollisionBody<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        let parts: Vec<BodyPart<'a>> = capsules(scene).chain(pens(scene)).collect();
        let apart = apart(scene, &parts);
        Self {
            scene,
            parts,
            apart,
        }
    }

    /// The scene that it is in.
    pub(super) fn scene(&self) -> &'a Scene {
        self.scene
    }

    /// With the joints so.
    pub(super) fn at(&self, q_rad: &JointVector) -> PosedBody {
        PosedBody {
            q_rad: *q_rad,
            frames: OnceCell::new(),
            placed: OnceCell::new(),
        }
    }

    /// Returns the frames of the links.
    pub(super) fn frames<'s>(&self, stance: &'s PosedBody) -> &'s LinkFrames {
        let frames = || self.scene.arm.chain.frames(&stance.q_rad);
        stance.frames.get_or_init(frames)
    }

    /// Returns the placed capsules of all parts.
    fn placed<'s>(&self, stance: &'s PosedBody) -> &'s [PlacedCapsule] {
        stance.placed.get_or_init(|| {
            let frames = self.frames(stance);
            let placed = self.parts.iter().map(|part| {
                let frame = part.frame(frames);
                place(frame, &part.from_m, &part.to_m, part.radius_m)
            });
            placed.collect()
        })
    }

    /// Both ends of every part.
    #[cfg(test)]
    pub(super) fn ends(&self, stance: &PosedBody) -> Vec<Point3<f64>> {
        let placed = self.placed(stance).iter();
        placed.flat_map(|part| [part.from_m, part.to_m]).collect()
    }

    /// Returns the largest distance between a joint and anything that it moves, for any angles of the
    /// other joints: the chain from there, stretched out.
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

    /// Returns the name of a part for messages.
    pub(super) fn part_name(&self, part: usize) -> String {
        let named = self.parts.get(part).map(|part| (part.is_pen, part.name));
        match named {
            Some((true, pen)) => format!("pen `{pen}`"),
            link => link.map_or("the arm", |(_, link)| link).to_owned(),
        }
    }

    fn each<'s>(
        &'s self,
        stance: &'s PosedBody,
    ) -> impl Iterator<Item = (usize, &'s BodyPart<'a>, &'s PlacedCapsule)> {
        let both = self.parts.iter().zip(self.placed(stance)).enumerate();
        both.map(|(index, (part, placed))| (index, part, placed))
    }

    /// Every part of the arm that moves and is outside of the workspace, by side.
    pub(super) fn outside_workspace(&self, stance: &PosedBody) -> ClearanceScan<(usize, usize)> {
        let workspace = &self.scene.limits.workspace;
        let arm = self.moving(stance).filter(|(_, part, _)| !part.is_pen);
        let sides = arm.flat_map(|(index, _, placed)| {
            let ends = [placed.from_m, placed.to_m].map(|end| workspace.inside_m(&end));
            let [from, to] = ends;
            let both = from.into_iter().zip(to).enumerate();
            both.map(move |(side, (from, to))| PartProximity {
                metres: from.min(to) - placed.radius_m,
                of: (index, side),
            })
        });
        nearer_than(0.0, sides)
    }

    /// Every pen whose tip is outside of the workspace, by side.
    pub(super) fn tips_outside_workspace(
        &self,
        stance: &PosedBody,
    ) -> ClearanceScan<(usize, usize)> {
        let (workspace, tool) = (&self.scene.limits.workspace, self.frames(stance).tool);
        let pens = self
            .parts
            .iter()
            .enumerate()
            .filter(|(_, part)| part.is_pen);
        let sides = pens.flat_map(|(index, part)| {
            let inside = workspace.inside_m(&(tool * part.to_m));
            let sides = inside.into_iter().enumerate();
            sides.map(move |(side, metres)| PartProximity {
                metres,
                of: (index, side),
            })
        });
        nearer_than(0.0, sides)
    }

    /// The parts of the arm too near to the sheet.
    pub(super) fn over_sheet(&self, stance: &PosedBody) -> Vec<PartProximity> {
        let arm = self.each(stance).filter(|(_, part, _)| !part.is_pen);
        let near = arm.filter_map(|(of, _, placed)| {
            let ends = (&placed.from_m, &placed.to_m);
            let most_m = CLEARANCE_M + placed.radius_m;
            let metres = segment_over_sheet(self.scene, ends, most_m)? - placed.radius_m;
            Some(PartProximity { metres, of })
        });
        near.collect()
    }

    /// The pens that do not draw and whose tips are below the sheet.
    pub(super) fn idle_pens(&self, stance: &PosedBody, drawing: usize) -> Vec<PartProximity> {
        let idle = self.idle(stance, drawing);
        let tips = idle.filter_map(|(of, _, placed)| {
            let metres = height_mm(self.scene, &placed.to_m)? / 1e3;
            Some(PartProximity { metres, of })
        });
        nearer_than(0.0, tips).near
    }

    fn moving<'s>(
        &'s self,
        stance: &'s PosedBody,
    ) -> impl Iterator<Item = (usize, &'s BodyPart<'a>, &'s PlacedCapsule)> {
        self.each(stance)
            .filter(|(_, part, _)| part.joints_before > 0)
    }

    fn idle<'s>(
        &'s self,
        stance: &'s PosedBody,
        drawing: usize,
    ) -> impl Iterator<Item = (usize, &'s BodyPart<'a>, &'s PlacedCapsule)> {
        let pens = self.each(stance).filter(|(_, part, _)| part.is_pen);
        // One pen at a time is in a holder whose pen a person changes.
        let by_hand = self.scene.holder.is_by_hand();
        let idle = pens
            .enumerate()
            .filter(move |(pen, _)| !by_hand && *pen != drawing);
        idle.map(|(_, part)| part)
    }

    /// No idle tip is lower than this, wherever the sheet ends.
    pub(super) fn idle_at_least_m(&self, stance: &PosedBody, drawing: usize) -> f64 {
        let tips = self.idle(stance, drawing).map(|(_, _, placed)| placed.to_m);
        tips.map(|tip| self.scene.surface.project(&tip).height_mm / 1e3)
            .fold(f64::INFINITY, f64::min)
    }

    /// No part of the arm is nearer to the sheet than this, wherever the sheet ends; what stands
    /// beside it for good is no nearer than [`FAR_M`].
    pub(super) fn over_sheet_at_least_m(&self, stance: &PosedBody) -> f64 {
        let arm = self.each(stance).filter(|(_, part, _)| !part.is_pen);
        arm.map(
            |(
                _,
                part,
                PlacedCapsule {
                    from_m,
                    to_m,
                    radius_m,
                },
            )| {
                let height_m = if part.joints_before > 0 {
                    at_least_over_shape_m(self.scene, from_m, to_m)
                } else {
                    let most_m = FAR_M + radius_m;
                    segment_over_sheet(self.scene, (from_m, to_m), most_m).unwrap_or(most_m)
                };
                height_m - radius_m
            },
        )
        .fold(f64::INFINITY, f64::min)
    }

    /// The parts of arm and pens that move and are too near to a box; none is known to be farther
    /// than [`FAR_M`].
    pub(super) fn near_box(&self, stance: &PosedBody, corners: &AxisAlignedBox) -> ClearanceScan {
        let parts = self.moving(stance).filter_map(|(of, _, placed)| {
            let most_m = FAR_M + placed.radius_m;
            let apart_m = corners.segment_distance_m(&placed.from_m, &placed.to_m, most_m)?;
            Some(PartProximity {
                metres: apart_m - placed.radius_m,
                of,
            })
        });
        let ClearanceScan { near, at_least_m } = nearer_than(CLEARANCE_M, parts);
        ClearanceScan {
            near,
            at_least_m: at_least_m.min(FAR_M),
        }
    }

    /// The parts that are too near to each other, of those that may not touch.
    pub(super) fn near_itself(&self, stance: &PosedBody) -> ClearanceScan<(usize, usize)> {
        let placed = self.placed(stance);
        let nearest = nearest_pair(placed, &self.apart);
        let at_least_m = nearest.map_or(f64::INFINITY, |(_, metres)| metres);
        if !exceeds(CLEARANCE_M, at_least_m) {
            return ClearanceScan {
                near: Vec::new(),
                at_least_m,
            };
        }
        let pairs = self.apart.iter().filter_map(|(one, other)| {
            Some(PartProximity {
                metres: placed.get(*one)?.clearance_m(placed.get(*other)?),
                of: (*one, *other),
            })
        });
        nearer_than(CLEARANCE_M, pairs)
    }
}

impl BodyPart<'_> {
    /// The frame that carries it.
    #[expect(
        clippy::expect_used,
        reason = "a part without its frame must not be judged as if it were elsewhere"
    )]
    fn frame<'f>(&self, frames: &'f LinkFrames) -> &'f IsometryMatrix3<f64> {
        if self.is_pen {
            return &frames.tool;
        }
        let link = frames.get(self.joints_before);
        link.expect("an arm's file names the joint of each capsule")
    }
}

impl PosedBody {
    /// The joints.
    pub(super) fn q_rad(&self) -> &JointVector {
        &self.q_rad
    }
}

/// Those of all that are nearer than `least_m`, and how near the nearest of all is.
fn nearer_than<K>(least_m: f64, all: impl Iterator<Item = PartProximity<K>>) -> ClearanceScan<K> {
    let mut at_least_m = f64::INFINITY;
    let seen = all.inspect(|near| at_least_m = at_least_m.min(near.metres));
    let near = seen.filter(|near| exceeds(least_m, near.metres)).collect();
    ClearanceScan { near, at_least_m }
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
    let pens = scene.pens.iter().enumerate();
    let there = pens.filter(|(pen, _)| scene.holder.may_hold(*pen));
    there.map(|(_, pen)| BodyPart {
        name: &pen.name,
        joints_before: scene.arm.dof(),
        is_pen: true,
        from_m: Point3::origin(),
        to_m: pen.tip_m,
        radius_m: PEN_RADIUS_M,
    })
}

/// All pairs but those of one link, of neighbouring links, and those that the arm's file allows.
fn apart(scene: &Scene, parts: &[BodyPart<'_>]) -> Vec<(usize, usize)> {
    let mut links: Vec<usize> = parts.iter().map(|part| part.joints_before).collect();
    links.sort_unstable();
    links.dedup();
    let rank = |part: &BodyPart<'_>| links.partition_point(|link| part.joints_before.gt(link));
    let allowed = |a: &BodyPart<'_>, b: &BodyPart<'_>| {
        let both = [[a.name, b.name], [b.name, a.name]];
        let mut may = scene.arm.file.may_touch.iter();
        may.any(|[one, other]| both.contains(&[one.as_str(), other.as_str()]))
    };
    let mut pairs = Vec::new();
    let mut rest = parts.iter().enumerate();
    while let Some((first, a)) = rest.next() {
        for (second, b) in rest.clone() {
            if rank(a).abs_diff(rank(b)) > 1 && !allowed(a, b) {
                pairs.push((first, second));
            }
        }
    }
    pairs
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

    /// The two pens where one draws, and where the whole arm is lower.
    #[test]
    fn an_idle_pen_is_as_high_as_its_tip() {
        let scene = scene("two_pens");
        let body = CollisionBody::new(&scene);
        let (mut above, mut below) = (0, 0);
        for (drawing, step) in (0..2).flat_map(|drawing| (0..30).map(move |step| (drawing, step))) {
            let low =
                |joint: usize, q: f64| q + f64::from(step) * if joint == 1 { 0.02 } else { 0.0 };
            let stance = body.at(&scene.ready_rad.map(low));
            let idle = scene.pens.get(1 - drawing).unwrap();
            let tip = body.frames(&stance).tool * idle.tip_m;
            let high_m = scene.surface.project(&tip).height_mm / 1e3;
            assert!((body.idle_at_least_m(&stance, drawing) - high_m).abs() < 1e-12);
            let found = body.idle_pens(&stance, drawing);
            if high_m >= 0.0 || height_mm(&scene, &tip).is_none() {
                assert_eq!(found, []);
                above += 1;
                continue;
            }
            below += 1;
            assert_eq!(found.len(), 1, "{found:?}");
            let found = found.first().unwrap();
            assert!((found.metres - high_m).abs() < 1e-12, "{found:?} {high_m}");
            assert_eq!(body.part_name(found.of), format!("pen `{}`", idle.name));
        }
        assert!(above > 3 && below > 3, "{above} {below}");
    }

    /// Moves a box side by side over the arm and pens and compares each side on its own.
    #[test]
    fn what_moves_is_outside_by_each_side_on_its_own() {
        let mut scene = scene("default");
        let q = scene.ready_rad;
        let placed = {
            let body = CollisionBody::new(&scene);
            let parts: Vec<(bool, usize, PlacedCapsule)> = body
                .each(&body.at(&q))
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
                    let stance = body.at(&q);
                    let ClearanceScan { near, at_least_m } = if *is_pen {
                        body.tips_outside_workspace(&stance)
                    } else {
                        body.outside_workspace(&stance)
                    };
                    let found = near.iter().find(|near| near.of == (part, side));
                    let found_m = found.map(|near| near.metres);
                    let due_m = (out_m > 0.0 && *joints_before > 0).then_some(-1e-3);
                    assert_eq!(found_m.is_some(), due_m.is_some(), "{part} {side} {near:?}");
                    let off_m = found_m.zip(due_m).map_or(0.0, |(found, due)| found - due);
                    assert!(off_m.abs() < 1e-12, "{part} {side}: {off_m}");
                    let least_m = near
                        .iter()
                        .map(|near| near.metres)
                        .fold(f64::INFINITY, f64::min);
                    assert!(
                        near.is_empty() && at_least_m >= 0.0
                            || (at_least_m - least_m).abs() < 1e-12
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
        let stance = body.at(&scene.ready_rad);
        let (mut one, mut more) = (0, 0);
        for step in 0..60_i32 {
            let middle = Point3::new(0.03, -0.005 * f64::from(step), 0.12);
            let half = nalgebra::Vector3::repeat(0.02);
            let corners = AxisAlignedBox {
                min_m: middle - half,
                max_m: middle + half,
            };
            let apart: Vec<(usize, f64)> = body
                .each(&stance)
                .filter(|(_, part, _)| part.joints_before > 0)
                .map(|(of, _, at)| {
                    let ends = (&at.from_m, &at.to_m);
                    let apart = corners.segment_distance_m(ends.0, ends.1, f64::INFINITY);
                    (of, apart.unwrap() - at.radius_m)
                })
                .collect();
            let due: Vec<usize> = apart
                .iter()
                .filter(|(_, apart_m)| *apart_m < CLEARANCE_M)
                .map(|(of, _)| *of)
                .collect();
            let ClearanceScan { near, at_least_m } = body.near_box(&stance, &corners);
            assert_eq!(near.iter().map(|near| near.of).collect::<Vec<_>>(), due);
            let nearest_m = apart
                .iter()
                .map(|(_, apart_m)| *apart_m)
                .fold(FAR_M, f64::min);
            assert!(
                (at_least_m - nearest_m).abs() < 1e-9,
                "{at_least_m} {nearest_m}"
            );
            one += usize::from(due.len() == 1);
            more += usize::from(due.len() > 1);
        }
        assert!(one > 2 && more > 2, "{one} {more}");
    }

    /// All pairs that are near, however near another one is.
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
            let stance = body.at(&scene.rest_rad);
            let placed = body.placed(&stance);
            let apart = body.apart.iter().map(|(one, other)| {
                let clearance = placed
                    .get(*one)
                    .unwrap()
                    .clearance_m(placed.get(*other).unwrap());
                ((*one, *other), clearance)
            });
            let due: Vec<_> = apart.clone().filter(|(_, m)| *m < CLEARANCE_M).collect();
            let ClearanceScan { near, at_least_m } = body.near_itself(&stance);
            let found: Vec<_> = near.iter().map(|near| (near.of, near.metres)).collect();
            assert_eq!(found, due);
            let nearest_m = apart.map(|(_, m)| m).fold(f64::INFINITY, f64::min);
            assert!((at_least_m - nearest_m).abs() < 1e-12);
            none += usize::from(due.is_empty());
            more += usize::from(due.len() > 1);
        }
        assert!(none > 2 && more > 2, "{none} {more}");
    }

    /// Moved parts by their ends over the plane of the sheet; the base stands beside it.
    #[test]
    fn the_arm_is_as_high_over_the_sheet_as_its_lowest_part() {
        let (scene, trajectory) = crate::tests::drawing();
        let body = CollisionBody::new(scene);
        let high_m = |end: &Point3<f64>| scene.surface.project(end).height_mm / 1e3;
        let mut near = 0;
        let turned = |sample: &JointVector, by: f64| {
            let q = sample.map(|joint, q| if joint == 0 { q + by } else { q });
            body.at(&q)
        };
        let samples = trajectory.samples.iter().step_by(97);
        // Over the sheet, and beside it.
        for stance in samples.flat_map(|sample| [0.0, 1.5].map(|by| turned(sample, by))) {
            let moved = body
                .each(&stance)
                .filter(|(_, part, _)| !part.is_pen && part.joints_before > 0);
            let heights = moved.map(|(_, _, placed)| {
                high_m(&placed.from_m).min(high_m(&placed.to_m)) - placed.radius_m
            });
            let lowest_m = heights.fold(FAR_M, f64::min);
            near += usize::from(lowest_m < FAR_M);
            let said_m = body.over_sheet_at_least_m(&stance);
            assert!((said_m - lowest_m).abs() < 1e-12, "{said_m} {lowest_m}");
        }
        assert!(near > 10, "{near}");
        let mut base = Scene::clone(scene);
        let mut arm = arm::ArmModel::clone(&base.arm);
        arm.capsules.retain(|capsule| capsule.joints_before == 0);
        assert!(!arm.capsules.is_empty());
        base.arm = Arc::new(arm);
        let body = CollisionBody::new(&base);
        let said_m = body.over_sheet_at_least_m(&body.at(&base.ready_rad));
        assert!((said_m - FAR_M).abs() < 1e-12, "{said_m}");
    }

    /// From where the links and tips stand, where the body asks how long they are.
    fn levers_m(scene: &Scene) -> Vec<f64> {
        let body = CollisionBody::new(scene);
        let stance = body.at(&scene.ready_rad);
        let frames = body.frames(&stance);
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
                .each(&stance)
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
            let (body, known) = (CollisionBody::new(&scene), levers_m(&scene));
            for (joint, known_m) in known.into_iter().enumerate() {
                let lever_m = body.lever_m(joint);
                assert!(
                    (lever_m - known_m).abs() < 1e-9,
                    "{joint}: {lever_m} {known_m}"
                );
            }
        }
    }

    /// The pairs that may not touch, by name.
    fn pairs(scene: &Scene) -> Vec<[String; 2]> {
        let body = CollisionBody::new(scene);
        let name = |part: usize| body.parts.get(part).unwrap().name.to_owned();
        body.apart
            .iter()
            .map(|(a, b)| [name(*a), name(*b)])
            .collect()
    }

    #[test]
    fn parts_may_touch_where_the_arms_file_says_so_either_way_round() {
        let mut scene = scene("default");
        let may_touch = |scene: &mut Scene, pairs: &[[String; 2]]| {
            let mut arm = arm::ArmModel::clone(&scene.arm);
            arm.file.may_touch = pairs.to_vec();
            scene.arm = Arc::new(arm);
        };
        may_touch(&mut scene, &[]);
        let all = pairs(&scene);
        assert!(all.len() > 3, "{all:?}");
        for pair in &all {
            let [a, b] = pair.clone();
            let without: Vec<[String; 2]> =
                all.iter().filter(|one| *one != pair).cloned().collect();
            for said in [[a.clone(), b.clone()], [b, a]] {
                may_touch(&mut scene, &[said]);
                assert_eq!(pairs(&scene), without);
            }
        }
        // What is said of each of two with a third says nothing of the two.
        let [a, b] = all.first().unwrap().clone();
        let mut names = all.iter().flatten();
        let third = names
            .find(|name| **name != a && **name != b)
            .unwrap()
            .clone();
        may_touch(
            &mut scene,
            &[[a.clone(), third.clone()], [third, b.clone()]],
        );
        assert!(pairs(&scene).contains(&[a, b]));
    }
}
