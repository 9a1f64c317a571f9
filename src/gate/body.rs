//! Arm and pens as capsules: how near they are to each other and to what is around them.

use std::cell::OnceCell;

use nalgebra::Point3;

use super::clearance::{
    PEN_RADIUS_M, at_least_over_shape_m, height_mm, point_to_box, segment_over_sheet,
    segment_to_box,
};
use crate::kin::Frames;
use crate::kin::capsule::{Placed, nearest_pair, place};
use crate::scene::{Corners, Scene};
use crate::units::Joints;

/// Farther than this, nothing is near: no margin is worked out.
pub(super) const FAR_M: f64 = 0.05;

/// What of an arm and its pens can touch something. Worked out once for a whole trajectory.
pub(super) struct Body<'a> {
    scene: &'a Scene,
    parts: Vec<Part<'a>>,
    /// Pairs of parts that may not touch.
    apart: Vec<(usize, usize)>,
}

/// A capsule of the arm, or a pen from its mount to its tip.
struct Part<'a> {
    name: &'a str,
    /// How many joints move it.
    joints_before: usize,
    is_pen: bool,
    from_m: Point3<f64>,
    to_m: Point3<f64>,
    radius_m: f64,
}

/// The body at one sample: worked out when it is first asked for.
pub(super) struct Stance {
    q_rad: Joints,
    frames: OnceCell<Frames>,
    placed: OnceCell<Vec<Placed>>,
}

/// How near something is, and which part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Near {
    pub(super) metres: f64,
    pub(super) part: usize,
}

impl<'a> Body<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        let parts: Vec<Part<'a>> = capsules(scene).chain(pens(scene)).collect();
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
    pub(super) fn at(&self, q_rad: &Joints) -> Stance {
        Stance {
            q_rad: *q_rad,
            frames: OnceCell::new(),
            placed: OnceCell::new(),
        }
    }

    /// Where the links are.
    pub(super) fn frames<'s>(&self, stance: &'s Stance) -> &'s Frames {
        let frames = || self.scene.arm.chain.frames(&stance.q_rad);
        stance.frames.get_or_init(frames)
    }

    /// Where all of it is.
    fn placed<'s>(&self, stance: &'s Stance) -> &'s [Placed] {
        stance.placed.get_or_init(|| {
            let frames = self.frames(stance);
            let placed = self.parts.iter().map(|part| {
                let link = frames.get(part.joints_before);
                let frame = link.filter(|_| !part.is_pen).unwrap_or(&frames.tool);
                place(frame, &part.from_m, &part.to_m, part.radius_m)
            });
            placed.collect()
        })
    }

    /// Both ends of every part.
    #[cfg(test)]
    pub(super) fn ends(&self, stance: &Stance) -> Vec<Point3<f64>> {
        let placed = self.placed(stance).iter();
        placed.flat_map(|part| [part.from_m, part.to_m]).collect()
    }

    /// How far anything that a joint moves can be from that joint, whatever the others do: the
    /// chain from there, stretched out.
    pub(super) fn lever_m(&self, joint: usize) -> f64 {
        let chain = &self.scene.arm.chain;
        let beyond = |part: &&Part<'_>| part.joints_before > joint;
        let lever = |part: &Part<'_>| {
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

    /// What a part is called in a message.
    pub(super) fn what(&self, part: usize) -> String {
        let named = self.parts.get(part).map(|part| (part.is_pen, part.name));
        match named {
            Some((true, pen)) => format!("pen `{pen}`"),
            link => link.map_or("the arm", |(_, link)| link).to_owned(),
        }
    }

    fn each<'s>(
        &'s self,
        stance: &'s Stance,
    ) -> impl Iterator<Item = (usize, &'s Part<'a>, &'s Placed)> {
        let both = self.parts.iter().zip(self.placed(stance)).enumerate();
        both.map(|(index, (part, placed))| (index, part, placed))
    }

    /// How far what moves is inside the workspace; negative outside. Pens count by their tips.
    pub(super) fn in_workspace(&self, stance: &Stance) -> Option<Near> {
        let workspace = &self.scene.limits.workspace;
        let inside = |point: &Point3<f64>| -point_to_box(point, workspace);
        let moving = self
            .each(stance)
            .filter(|(_, part, _)| part.joints_before > 0);
        nearest(moving.map(|(index, part, placed)| Near {
            metres: if part.is_pen {
                inside(&placed.to_m)
            } else {
                inside(&placed.from_m).min(inside(&placed.to_m)) - placed.radius_m
            },
            part: index,
        }))
    }

    /// The part of the arm nearest to the sheet, if any is near.
    pub(super) fn over_sheet(&self, stance: &Stance) -> Option<Near> {
        let arm = self.each(stance).filter(|(_, part, _)| !part.is_pen);
        let mut least = FAR_M;
        let near = arm.filter_map(|(index, _, placed)| {
            let ends = (&placed.from_m, &placed.to_m);
            let most = least + placed.radius_m;
            let height_m = segment_over_sheet(self.scene, ends, most)? - placed.radius_m;
            least = least.min(height_m);
            Some(Near {
                metres: height_m,
                part: index,
            })
        });
        nearest(near)
    }

    /// The lowest tip of the pens that do not draw, over the sheet.
    pub(super) fn idle_pens(&self, stance: &Stance, drawing: usize) -> Option<Near> {
        let idle = self.idle(stance, drawing);
        nearest(idle.filter_map(|(index, _, placed)| {
            Some(Near {
                metres: height_mm(self.scene, &placed.to_m)? / 1e3,
                part: index,
            })
        }))
    }

    fn idle<'s>(
        &'s self,
        stance: &'s Stance,
        drawing: usize,
    ) -> impl Iterator<Item = (usize, &'s Part<'a>, &'s Placed)> {
        let pens = self.each(stance).filter(|(_, part, _)| part.is_pen);
        let idle = pens.enumerate().filter(move |(pen, _)| *pen != drawing);
        idle.map(|(_, part)| part)
    }

    /// No idle tip is lower than this, wherever the sheet ends.
    pub(super) fn idle_at_least_m(&self, stance: &Stance, drawing: usize) -> f64 {
        let tips = self.idle(stance, drawing).map(|(_, _, placed)| placed.to_m);
        tips.map(|tip| self.scene.surface.project(&tip).height_mm / 1e3)
            .fold(f64::INFINITY, f64::min)
    }

    /// No part of the arm is nearer to the sheet than this, wherever the sheet ends; what stands
    /// beside it for good is no nearer than [`FAR_M`].
    pub(super) fn over_sheet_at_least_m(&self, stance: &Stance) -> f64 {
        let arm = self.each(stance).filter(|(_, part, _)| !part.is_pen);
        arm.map(
            |(
                _,
                part,
                Placed {
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

    /// The part of arm or pens nearest to a box, if any is near.
    pub(super) fn near_box(&self, stance: &Stance, corners: &Corners) -> Option<Near> {
        nearest(self.each(stance).filter_map(|(index, _, placed)| {
            let most = FAR_M + placed.radius_m;
            let metres = segment_to_box(placed.from_m, placed.to_m, corners, most)?;
            Some(Near {
                metres: metres - placed.radius_m,
                part: index,
            })
        }))
    }

    /// The two parts that are nearest to each other, of those that may not touch.
    pub(super) fn nearest_two(&self, stance: &Stance) -> Option<(usize, usize, f64)> {
        let (pair, metres) = nearest_pair(self.placed(stance), &self.apart)?;
        let (a, b) = self.apart.get(pair)?;
        Some((*a, *b, metres))
    }
}

impl Stance {
    /// The joints.
    pub(super) fn q_rad(&self) -> &Joints {
        &self.q_rad
    }
}

fn nearest(all: impl Iterator<Item = Near>) -> Option<Near> {
    all.min_by(|a, b| a.metres.total_cmp(&b.metres))
}

fn capsules(scene: &Scene) -> impl Iterator<Item = Part<'_>> {
    scene.arm.capsules.iter().map(|capsule| Part {
        name: &capsule.name,
        joints_before: capsule.joints_before,
        is_pen: false,
        from_m: capsule.from_m,
        to_m: capsule.to_m,
        radius_m: capsule.radius_m,
    })
}

fn pens(scene: &Scene) -> impl Iterator<Item = Part<'_>> {
    scene.pens.iter().map(|pen| Part {
        name: &pen.name,
        joints_before: scene.arm.dof(),
        is_pen: true,
        from_m: Point3::origin(),
        to_m: pen.tip_m,
        radius_m: PEN_RADIUS_M,
    })
}

/// All pairs but those of one link, of neighbouring links, and those that the arm's file allows.
fn apart(scene: &Scene, parts: &[Part<'_>]) -> Vec<(usize, usize)> {
    let mut links: Vec<usize> = parts.iter().map(|part| part.joints_before).collect();
    links.sort_unstable();
    links.dedup();
    let rank = |part: &Part<'_>| links.partition_point(|link| part.joints_before.gt(link));
    let allowed = |a: &Part<'_>, b: &Part<'_>| {
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
    use crate::scene::Library;

    fn scene(name: &str) -> Scene {
        Scene::clone(&Library::new(None).scene(name, None).unwrap())
    }

    #[test]
    fn an_idle_pen_is_as_high_as_its_tip() {
        let scene = scene("two_pens");
        let body = Body::new(&scene);
        let stance = body.at(&scene.ready_rad);
        for drawing in 0..2 {
            let found = body.idle_pens(&stance, drawing).unwrap();
            let idle = scene.pens.get(1 - drawing).unwrap();
            let tip = body.frames(&stance).tool * idle.tip_m;
            let high_m = scene.surface.project(&tip).height_mm / 1e3;
            assert!((found.metres - high_m).abs() < 1e-12, "{found:?} {high_m}");
            assert!((body.idle_at_least_m(&stance, drawing) - high_m).abs() < 1e-12);
            assert_eq!(body.what(found.part), format!("pen `{}`", idle.name));
        }
    }

    /// Moved parts by their ends over the plane of the sheet; the base stands beside it.
    #[test]
    fn the_arm_is_as_high_over_the_sheet_as_its_lowest_part() {
        let (scene, trajectory) = crate::gate::tests::drawing();
        let body = Body::new(scene);
        let high_m = |end: &Point3<f64>| scene.surface.project(end).height_mm / 1e3;
        let mut near = 0;
        let turned = |sample: &Joints, by: f64| {
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
        let mut arm = crate::arm::Arm::clone(&base.arm);
        arm.capsules.retain(|capsule| capsule.joints_before == 0);
        assert!(!arm.capsules.is_empty());
        base.arm = Arc::new(arm);
        let body = Body::new(&base);
        let said_m = body.over_sheet_at_least_m(&body.at(&base.ready_rad));
        assert!((said_m - FAR_M).abs() < 1e-12, "{said_m}");
    }

    /// From where the links and tips stand, where the body asks how long they are.
    fn levers_m(scene: &Scene) -> Vec<f64> {
        let body = Body::new(scene);
        let stance = body.at(&scene.ready_rad);
        let frames = body.frames(&stance);
        let joint_at = |before: usize| frames.get(before).unwrap().translation.vector;
        let lever_m = |joint: usize, part: &Part<'_>, placed: &Placed| {
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
        let mut arm = crate::arm::Arm::clone(&empty_handed.arm);
        let dof = arm.dof();
        arm.capsules.retain(|capsule| capsule.joints_before < dof);
        empty_handed.arm = Arc::new(arm);
        empty_handed.pens.clear();
        for scene in [scene("default"), scene("two_pens"), empty_handed] {
            let (body, known) = (Body::new(&scene), levers_m(&scene));
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
        let body = Body::new(scene);
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
            let mut arm = crate::arm::Arm::clone(&scene.arm);
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
