//! A scene that several arms share: an ordinary scene for each arm, each in that arm's own base frame.

use std::sync::Arc;

use nalgebra::{IsometryMatrix3, Point3};

use super::arm_places::ArmPlace;
use super::{ArmBeside, Scene, ScenePen, SheetStroke};

/// Stands between the name of a shared scene and that of the arm whose part is meant: `two_arms:left`.
pub const PART: char = ':';

/// A scene of one arm or several.
#[derive(Clone, Debug)]
pub struct SharedScene {
    /// Its name.
    pub name: String,
    /// The scene of each arm, at least one, in the order of the file.
    pub parts: Vec<ScenePart>,
    /// Everything that is to be drawn, by one arm or another, in the author's order.
    pub strokes: Vec<SharedStroke>,
}

/// The scene of one arm.
#[derive(Clone, Debug)]
pub struct ScenePart {
    /// Pose of the arm's base frame in the frame that all arms have in common.
    pub base: IsometryMatrix3<f64>,
    /// Largest error of where any point of the arm is in that frame, in metres.
    pub uncertainty_m: f64,
    /// The scene in the arm's base frame. Its strokes are those that a pen of this arm can draw.
    pub scene: Arc<Scene>,
}

/// A stroke that one of several arms draws.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedStroke {
    /// The stroke; its pen is one of the file's.
    pub stroke: SheetStroke,
    /// Index of the pen of each arm that can draw it; `None` for an arm without one.
    pub pens: Vec<Option<usize>>,
}

impl SharedScene {
    /// Returns the names of its arms.
    #[must_use]
    pub fn arm_names(&self) -> Vec<&str> {
        self.parts.iter().map(ScenePart::arm_name).collect()
    }

    /// Wraps the scene of an arm that has it for itself.
    #[must_use]
    pub fn of_one(scene: Scene) -> Self {
        let shared = |stroke: &SheetStroke| SharedStroke {
            pens: vec![Some(stroke.pen)],
            stroke: stroke.clone(),
        };
        Self {
            name: scene.name.clone(),
            strokes: scene.strokes.iter().map(shared).collect(),
            parts: vec![ScenePart {
                base: IsometryMatrix3::identity(),
                uncertainty_m: 0.0,
                scene: Arc::new(scene),
            }],
        }
    }

    /// Joins the scenes of several arms. Each has all pens and all strokes of the file until here; `is_pen_named` says of which
    /// strokes the author named the pen.
    pub(super) fn of_several(
        places: &[ArmPlace],
        scenes: Vec<Scene>,
        is_pen_named: &[bool],
    ) -> Self {
        let first = scenes.first();
        let name = first.map(|scene| scene.name.clone()).unwrap_or_default();
        let all_pens = first.map(|scene| scene.pens.clone()).unwrap_or_default();
        let all = first.map(|scene| scene.strokes.clone()).unwrap_or_default();
        let pen_maps: Vec<PenMap> = places
            .iter()
            .map(|place| PenMap::new(place, &all_pens))
            .collect();
        let strokes = all.into_iter().zip(is_pen_named).map(|(stroke, is_named)| {
            let pens = pen_maps.iter().map(|map| map.pen_for(&stroke, *is_named));
            SharedStroke {
                pens: pens.collect(),
                stroke,
            }
        });
        let strokes: Vec<SharedStroke> = strokes.collect();
        let beside: Vec<Vec<ArmBeside>> = (0..places.len())
            .map(|own| beside(own, places, &scenes, &pen_maps))
            .collect();
        let parts = places.iter().zip(scenes).zip(&pen_maps).zip(beside);
        let parts = parts
            .enumerate()
            .map(|(part, (((place, scene), map), beside))| {
                let own = strokes.iter().filter_map(|shared| {
                    let pen = shared.pens.get(part).copied().flatten()?;
                    let stroke = shared.stroke.clone();
                    Some(SheetStroke { pen, ..stroke })
                });
                let scene = Scene {
                    name: part_name(&scene.name, &place.name),
                    arm_name: Some(place.name.clone()),
                    strokes: own.collect(),
                    pens: map.own.iter().map(|(_, pen)| pen.clone()).collect(),
                    beside,
                    ..scene
                };
                ScenePart {
                    base: place.base,
                    uncertainty_m: place.uncertainty_m,
                    scene: Arc::new(scene),
                }
            });
        Self {
            name,
            parts: parts.collect(),
            strokes,
        }
    }
}

/// Farthest that touches of two arms find one sheet apart although neither base is off.
const TOUCHES_APART_M: f64 = 1e-3;

/// A corner of the sheet that two arms have in different places.
#[derive(Clone, Debug, PartialEq)]
pub struct SheetDispute {
    /// The arms' indices among the scene's parts.
    pub arms: [usize; 2],
    /// The distance between the two places.
    pub apart_m: f64,
    /// How far both may be apart, as the bases' uncertainties say.
    pub most_m: f64,
}

impl SharedScene {
    /// Returns where two arms have the sheet farther apart than their bases may be off: then a base is not where the scene says, or
    /// the sheet has moved since one of them found it.
    #[must_use]
    pub fn sheet_dispute(&self) -> Option<SheetDispute> {
        let pairs =
            (1..self.parts.len()).flat_map(|right| (0..right).map(move |left| [left, right]));
        let mut disputes = pairs.filter_map(|arms| {
            let [left, right] = arms.map(|arm| self.parts.get(arm));
            let (left, right) = (left?, right?);
            let corners = left
                .sheet_corners_m()
                .into_iter()
                .zip(right.sheet_corners_m());
            let apart_m = corners
                .map(|(left, right)| nalgebra::distance(&left, &right))
                .fold(0.0, f64::max);
            let most_m = left.uncertainty_m + right.uncertainty_m + TOUCHES_APART_M;
            (apart_m > most_m).then_some(SheetDispute {
                arms,
                apart_m,
                most_m,
            })
        });
        disputes.next()
    }
}

/// Returns the name of the part of an arm in a shared scene.
#[must_use]
pub fn part_name(scene: &str, arm: &str) -> String {
    format!("{scene}{PART}{arm}")
}

impl Scene {
    /// Returns the name of the part of another arm of the same scene.
    #[must_use]
    pub fn part_name(&self, arm: &str) -> String {
        part_name(self.shared_name(), arm)
    }

    /// Returns the name of the scene that its arm shares with others, or its own.
    #[must_use]
    pub fn shared_name(&self) -> &str {
        shared_name(&self.name)
    }

    /// Returns the title of the scene that it is a part of; its own where one arm draws it.
    #[must_use]
    pub fn shared_title(&self) -> String {
        self.title().replacen(&self.name, self.shared_name(), 1)
    }
}

/// Returns the name of the scene that a part is of, or the name itself.
#[must_use]
pub fn shared_name(name: &str) -> &str {
    name.split_once(PART).map_or(name, |(shared, _)| shared)
}

impl ScenePart {
    /// Returns the name of its arm among those that share the scene; of an arm that has it for itself, the name of its model.
    #[must_use]
    pub fn arm_name(&self) -> &str {
        let model = &self.scene.arm.file.name;
        self.scene.arm_name.as_ref().unwrap_or(model)
    }

    /// Returns the corners of the flat sheet in the frame that all arms have in common.
    fn sheet_corners_m(&self) -> [Point3<f64>; 4] {
        let surface = &self.scene.surface;
        let [width_m, height_m] = surface.size_mm().map(|mm| mm / 1e3);
        let corners = [
            [0.0, 0.0],
            [width_m, 0.0],
            [0.0, height_m],
            [width_m, height_m],
        ];
        corners.map(|[x, y]| self.base * (surface.flat() * Point3::new(x, y, 0.0)))
    }
}

impl ScenePen {
    /// Returns whether nobody can tell its lines from a second pen's.
    fn draws_like(&self, other: &Self) -> bool {
        let differs_mm = (self.width_mm - other.width_mm).abs();
        self.kind == other.kind && self.colour == other.colour && differs_mm < 1e-9
    }
}

/// The pens that an arm holds, each with its index among the file's.
struct PenMap {
    own: Vec<(usize, ScenePen)>,
    /// For each pen of the file, the arm's own pen that draws like it.
    alike: Vec<Option<usize>>,
}

impl PenMap {
    fn new(place: &ArmPlace, all: &[ScenePen]) -> Self {
        let held = all.iter().cloned().enumerate();
        let own: Vec<(usize, ScenePen)> = held
            .filter(|(_, pen)| place.pens.contains(&pen.name))
            .collect();
        let alike = all.iter().map(|pen| {
            let is_same = |(_, other): &(usize, ScenePen)| other.name == pen.name;
            let is_alike = |(_, other): &(usize, ScenePen)| other.draws_like(pen);
            own.iter()
                .position(is_same)
                .or_else(|| own.iter().position(is_alike))
        });
        let alike = alike.collect();
        Self { own, alike }
    }

    /// Returns the arm's pen for a stroke: the very pen that its author named, otherwise one that draws like it.
    fn pen_for(&self, stroke: &SheetStroke, is_named: bool) -> Option<usize> {
        match is_named {
            true => self.own.iter().position(|(pen, _)| *pen == stroke.pen),
            false => self.alike.get(stroke.pen).copied().flatten(),
        }
    }
}

/// Returns the other arms as one of them sees them.
fn beside(own: usize, places: &[ArmPlace], scenes: &[Scene], pens: &[PenMap]) -> Vec<ArmBeside> {
    let Some(us) = places.get(own) else {
        return Vec::new();
    };
    let all = places.iter().zip(scenes).zip(pens).enumerate();
    let others = all.filter(|(index, _)| *index != own);
    others
        .map(|(_, ((place, scene), map))| ArmBeside {
            name: place.name.clone(),
            arm: Arc::clone(&scene.arm),
            base_in_ours: us.base.inverse() * place.base,
            pens: map.own.iter().map(|(_, pen)| pen.clone()).collect(),
            uncertainty_m: us.uncertainty_m + place.uncertainty_m,
        })
        .collect()
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests;
