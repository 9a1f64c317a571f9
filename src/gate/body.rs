//! Arm and pens as capsules: how near they are to each other and to what is around them.

use nalgebra::Point3;

use super::clearance::{PEN_RADIUS_M, point_to_box, segment_over_sheet, segment_to_box};
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

/// The body at one sample.
pub(super) struct Stance {
    frames: Frames,
    placed: Vec<Placed>,
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

    /// Where all of it is.
    pub(super) fn at(&self, q_rad: &Joints) -> Stance {
        let frames = self.scene.arm.chain.frames(q_rad);
        let placed = self.parts.iter().map(|part| {
            let link = frames.get(part.joints_before);
            let frame = link.filter(|_| !part.is_pen).unwrap_or(&frames.tool);
            place(frame, &part.from_m, &part.to_m, part.radius_m)
        });
        Stance {
            placed: placed.collect(),
            frames,
        }
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
        let both = self.parts.iter().zip(&stance.placed).enumerate();
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
        let pens = self.each(stance).filter(|(_, part, _)| part.is_pen);
        let idle = pens.enumerate().filter(|(pen, _)| *pen != drawing);
        nearest(idle.filter_map(|(_, (index, _, placed))| {
            let height_mm = super::clearance::Posture::height_mm(self.scene, &placed.to_m)?;
            Some(Near {
                metres: height_mm / 1e3,
                part: index,
            })
        }))
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
        let (pair, metres) = nearest_pair(&stance.placed, &self.apart)?;
        let (a, b) = self.apart.get(pair)?;
        Some((*a, *b, metres))
    }
}

impl Stance {
    pub(super) fn frames(&self) -> &Frames {
        &self.frames
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
    let rank = |part: &Part<'_>| links.partition_point(|link| *link < part.joints_before);
    let allowed = |a: &Part<'_>, b: &Part<'_>| {
        scene.arm.file.may_touch.iter().any(|[one, other]| {
            (one == a.name && other == b.name) || (one == b.name && other == a.name)
        })
    };
    let mut pairs = Vec::new();
    for (first, a) in parts.iter().enumerate() {
        for (second, b) in parts.iter().enumerate().skip(first + 1) {
            if rank(a).abs_diff(rank(b)) > 1 && !allowed(a, b) {
                pairs.push((first, second));
            }
        }
    }
    pairs
}
