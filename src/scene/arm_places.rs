//! Expands a scene file of several arms into one for each arm, with its places in space in that arm's base frame.

use nalgebra::{IsometryMatrix3, Point3, Vector3};

use super::base_place::BasePlace;
use super::build_scene::near_point;
use super::file::{BoxFile, CornersFile, PenChangeKind, SceneArmFile, SceneFile, SheetFile};
use base::units::{Finite, OutOfRange};

/// Largest error of an arm's place.
const UNCERTAINTY_MM_MAX: f64 = 50.0;

/// Largest lean of a base.
const TILT_DEG_MAX: f64 = 10.0;

/// The place of one arm in a scene that it shares, and its pens.
#[derive(Clone, Debug)]
pub(super) struct ArmPlace {
    pub(super) name: String,
    /// Names of the pens that it holds.
    pub(super) pens: Vec<String>,
    /// Pose of its base frame in the common frame.
    pub(super) base: IsometryMatrix3<f64>,
    pub(super) uncertainty_m: f64,
    /// The scene in its base frame; it still has the pens of all arms, by which strokes are assigned.
    pub(super) file: SceneFile,
}

/// Expands a file into one for each of its arms; a file of one arm has none.
///
/// # Errors
/// Everything that is wrong with its arms.
pub(super) fn expand(file: &SceneFile) -> Result<Vec<ArmPlace>, Vec<String>> {
    let mut problems = form_problems(file);
    problems.extend(pen_problems(file));
    let mut places = Vec::with_capacity(file.arms.len());
    for (index, arm) in file.arms.iter().enumerate() {
        let mut others = file.arms.iter().take(index);
        if others.any(|other| other.name == arm.name) {
            let name = &arm.name;
            problems.push(format!(
                "two arms have the name `{name}`; each needs its own"
            ));
        }
        match expand_for(file, arm) {
            Ok(place) => places.push(place),
            Err(problem) => problems.push(format!("arm `{}`: {problem}", arm.name)),
        }
    }
    match problems.is_empty() {
        true => Ok(places),
        false => Err(problems),
    }
}

/// Says what a file of one arm needs and one of several must not have, and the other way round.
fn form_problems(file: &SceneFile) -> Vec<String> {
    let is_shared = !file.arms.is_empty();
    let by_hand = file.pen_change == PenChangeKind::ByHand;
    let problems = [
        (
            !is_shared && file.arm.is_none(),
            "missing field `arm`: name the model of the arm, or list several as `[[arms]]`",
        ),
        (
            !is_shared && file.poses.is_none(),
            "missing field `poses`: give `rest_rad` and `ready_rad`",
        ),
        (
            is_shared && file.arm.is_some(),
            "`arm` is for a scene of one arm; with several, each of `[[arms]]` has its own `model`: remove `arm`",
        ),
        (
            is_shared && file.poses.is_some(),
            "`[poses]` is for a scene of one arm; with several, each of `[[arms]]` has its own `poses`: remove `[poses]`",
        ),
        (
            is_shared && file.frame.is_some(),
            "`frame` is for a scene of one arm; with several, all places are in the frame of their `base_m`: remove `frame`",
        ),
        (
            is_shared && !file.design.from_caller.is_empty(),
            "`from_caller` is for a scene of one arm; several arms draw only an operator's file: remove `from_caller`",
        ),
        (
            is_shared && by_hand,
            "`pen_change = \"by_hand\"` is for a scene of one arm: mount all pens, or draw with one arm",
        ),
    ];
    let wrong = problems.into_iter().filter(|(is_wrong, _)| *is_wrong);
    wrong.map(|(_, problem)| problem.to_owned()).collect()
}

/// Says which pens are of no arm, or unknown to the file.
fn pen_problems(file: &SceneFile) -> Vec<String> {
    if file.arms.is_empty() {
        return Vec::new();
    }
    let known: Vec<&String> = file.pens.iter().map(|pen| &pen.name).collect();
    let mut problems = Vec::new();
    for (index, name) in known.iter().enumerate() {
        if known.iter().take(index).any(|other| other == name) {
            problems.push(format!(
                "two pens have the name `{name}`; the arms find their pens by name, so each needs its own"
            ));
        }
        if !file.arms.iter().any(|arm| arm.pens.contains(name)) {
            problems.push(format!(
                "pen `{name}` belongs to no arm: add it to `pens` of one of `[[arms]]`"
            ));
        }
    }
    for arm in &file.arms {
        let name = &arm.name;
        let unknown = arm.pens.iter().filter(|pen| !known.contains(pen));
        problems.extend(
            unknown.map(|pen| {
                format!("arm `{name}` names pen `{pen}`; the scene's pens are {known:?}")
            }),
        );
        if arm.pens.is_empty() {
            problems.push(format!(
                "arm `{name}` has no pen; each arm needs at least one"
            ));
        }
    }
    problems
}

fn expand_for(file: &SceneFile, arm: &SceneArmFile) -> Result<ArmPlace, String> {
    if arm.name.trim().is_empty() || arm.name.chars().any(char::is_control) {
        return Err("its name is empty or contains a control character".to_owned());
    }
    let base_m = near_point("base_m", arm.base_m).map_err(|fault| fault.to_string())?;
    let within = |key: &str, value: Finite, range: std::ops::RangeInclusive<f64>| {
        let checked = OutOfRange::check(|| key.to_owned(), value, &range);
        checked.map_err(|fault| fault.to_string())
    };
    let yaw_deg = within("base_yaw_deg", arm.base_yaw_deg, -360.0..=360.0)?;
    let tilt = |deg| within("base_tilt_deg", deg, -TILT_DEG_MAX..=TILT_DEG_MAX);
    let [about_x, about_y] = arm.base_tilt_deg;
    let uncertainty_mm = within(
        "uncertainty_mm",
        arm.uncertainty_mm,
        0.0..=UNCERTAINTY_MM_MAX,
    )?;
    let place = BasePlace {
        at_m: base_m.coords.into(),
        yaw_deg,
        tilt_deg: [tilt(about_x)?, tilt(about_y)?],
    };
    let base = place.pose();
    let frame = OwnFrame {
        from_common: base.inverse(),
    };
    Ok(ArmPlace {
        name: arm.name.clone(),
        pens: arm.pens.clone(),
        base,
        uncertainty_m: uncertainty_mm / 1e3,
        file: frame.file(file, arm)?,
    })
}

/// An arm's base frame, seen from the common one.
struct OwnFrame {
    from_common: IsometryMatrix3<f64>,
}

impl OwnFrame {
    fn file(&self, file: &SceneFile, arm: &SceneArmFile) -> Result<SceneFile, String> {
        let mut own = SceneFile {
            arm: Some(arm.model.clone()),
            arms: Vec::new(),
            poses: Some(arm.poses.clone()),
            ..file.clone()
        };
        let stated = SheetFile {
            origin_m: self.place_m(own.sheet.origin_m)?,
            x_axis: self.direction(own.sheet.x_axis)?,
            y_axis: self.direction(own.sheet.y_axis)?,
            ..own.sheet
        };
        own.sheet = arm.sheet.clone().or(stated);
        for ink in &mut own.inks {
            ink.rim_m = self.place_m(ink.rim_m)?;
        }
        if let Some(at_m) = &mut own.calibrator_m {
            *at_m = self.place_m(*at_m)?;
        }
        for BoxFile { min_m, max_m, .. } in &mut own.keep_outs {
            [*min_m, *max_m] = self.around(*min_m, *max_m)?;
        }
        if let Some(CornersFile { min_m, max_m }) = &mut own.limits.workspace {
            [*min_m, *max_m] = self.within(*min_m, *max_m)?;
        }
        Ok(own)
    }

    fn place_m(&self, at_m: [Finite; 3]) -> Result<[Finite; 3], String> {
        let at_m = Point3::from(at_m.map(Finite::get));
        finite((self.from_common * at_m).coords)
    }

    fn direction(&self, along: [Finite; 3]) -> Result<[Finite; 3], String> {
        finite(self.from_common * Vector3::from(along.map(Finite::get)))
    }

    /// Returns the box around a turned box: it holds all of it, and is the same box where the axes are parallel.
    fn around(&self, min_m: [Finite; 3], max_m: [Finite; 3]) -> Result<[[Finite; 3]; 2], String> {
        let [min_m, max_m] = [min_m, max_m].map(|corner| corner.map(Finite::get));
        let is_box = min_m.iter().zip(&max_m).all(|(low, high)| low < high);
        let ends = [min_m, max_m].map(Point3::from);
        if !is_box {
            // Left as it is wrong, so that the message shows it.
            return Ok([finite(ends[0].coords)?, finite(ends[1].coords)?]);
        }
        let corners = (0..8_usize).map(|corner| {
            let at = |axis: usize| {
                if corner >> axis & 1 == 1 {
                    ends[1][axis]
                } else {
                    ends[0][axis]
                }
            };
            self.from_common * Point3::new(at(0), at(1), at(2))
        });
        let corners: Vec<Point3<f64>> = corners.collect();
        let fold = |start: f64, choose: fn(f64, f64) -> f64| {
            let most = |axis: usize| {
                corners
                    .iter()
                    .map(|corner| corner[axis])
                    .fold(start, choose)
            };
            finite(Vector3::new(most(0), most(1), most(2)))
        };
        Ok([
            fold(f64::INFINITY, f64::min)?,
            fold(f64::NEG_INFINITY, f64::max)?,
        ])
    }

    /// Returns a box within a turned box, about its middle: a limit may become narrower and never wider. It is the same box where
    /// the axes are parallel.
    fn within(&self, min_m: [Finite; 3], max_m: [Finite; 3]) -> Result<[[Finite; 3]; 2], String> {
        let around = self.around(min_m, max_m)?;
        let ends = |[low, high]: [[Finite; 3]; 2]| {
            [low, high].map(|corner| Vector3::from(corner.map(Finite::get)))
        };
        let [min_m, max_m] = ends([min_m, max_m]);
        let [low_m, high_m] = ends(around);
        let (allowed_m, mut half_m) = ((max_m - min_m) / 2.0, (high_m - low_m) / 2.0);
        if allowed_m.min() <= 0.0 {
            return Ok(around);
        }
        let spread = self.from_common.rotation.inverse().matrix().abs();
        let excess_m = spread * half_m - allowed_m;
        // Each side's excess is taken off the axis that is most along it; that lessens the others' too.
        for (row, excess_m) in spread.row_iter().zip(excess_m.iter()) {
            let most = row.max();
            let taken_m = excess_m.max(0.0) / most;
            half_m -= row
                .transpose()
                .map(|share| if share < most { 0.0 } else { taken_m });
        }
        let middle_m = (low_m + high_m) / 2.0;
        Ok([finite(middle_m - half_m)?, finite(middle_m + half_m)?])
    }
}

/// Rounds to the nanometre, so that a quarter turn leaves no dust.
fn finite(values: Vector3<f64>) -> Result<[Finite; 3], String> {
    let rounded = |value: f64| {
        let rounded = (value * 1e9).round() / 1e9 + 0.0;
        Finite::new(rounded).map_err(|fault| fault.to_string())
    };
    Ok([rounded(values.x)?, rounded(values.y)?, rounded(values.z)?])
}
