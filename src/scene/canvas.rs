//! Canvases: scenes whose design comes with the call, within bounds that their files state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scene;
use super::file::{DesignFile, SceneFile, ToolKind};
use base::units::{Finite, short};
use design::{Design, DesignStroke};

/// Kind of design that a caller may send to a canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerDesignKind {
    /// Text, drawn in single-line letters.
    Text,
    /// The text of an SVG file.
    Svg,
    /// A PNG or JPEG in base64.
    Image,
}

impl CallerDesignKind {
    /// Returns its word in scene files, which is also the name of its parameter.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Svg => "svg",
            Self::Image => "image",
        }
    }
}

/// A canvas, and the design that is on it in a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Canvas {
    /// Kinds of designs that it accepts.
    pub takes: Vec<CallerDesignKind>,
    /// Most strokes of a design.
    pub strokes_max: usize,
    /// Longest line of all strokes together.
    pub length_mm_max: f64,
    /// Longest arm time of a plan.
    pub time_s_max: f64,
    /// Hash of the design and its place; `None` while there is none. The scene's revision does not cover it: the hash of
    /// a plan does.
    pub design_hash: Option<[u8; 32]>,
}

/// A design or plan beyond what its canvas allows.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CanvasBoundError {
    /// Too many strokes.
    #[error(
        "the design has {strokes} strokes (at most {strokes_max} on this canvas). Next: draw less, or split the design into several calls"
    )]
    Strokes {
        /// Number of its strokes.
        strokes: usize,
        /// The largest possible number.
        strokes_max: usize,
    },
    /// Too much line.
    #[error(
        "the design has {length_mm:.0} mm of line (at most {} mm on this canvas). Next: draw it smaller, or split the design into several calls",
        short(*length_mm_max)
    )]
    Length {
        /// Length of its line.
        length_mm: f64,
        /// The largest possible value.
        length_mm_max: f64,
    },
    /// Too much time.
    #[error(
        "the plan takes {time_s:.0} s of arm time (at most {} s on this canvas). Next: draw it smaller, or split the design into several calls",
        short(*time_s_max)
    )]
    Time {
        /// Arm time of the plan.
        time_s: f64,
        /// The largest possible value.
        time_s_max: f64,
    },
}

/// Bounds of a canvas whose file states none.
const STROKES_MAX: u32 = 500;
const LENGTH_MM_MAX: f64 = 5_000.0;
const TIME_S_MAX: f64 = 600.0;

impl Canvas {
    /// Reads the canvas of a scene file; `None` for a scene with its own design.
    ///
    /// # Errors
    /// Everything that a canvas must not have.
    pub(super) fn of(file: &SceneFile) -> Result<Option<Self>, Vec<String>> {
        let design = &file.design;
        if design.from_caller.is_empty() {
            return no_bounds(design);
        }
        let problems: Vec<String> = unfit_problems(file)
            .chain(own_design_problems(design))
            .chain(bound_problems(design))
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        let bounds = PictureBounds::of(design);
        Ok(Some(Self {
            takes: design.from_caller.clone(),
            strokes_max: bounds.strokes_max,
            length_mm_max: bounds.length_mm_max,
            time_s_max: design.time_s_max.map_or(TIME_S_MAX, Finite::get),
            design_hash: None,
        }))
    }

    /// Checks the strokes of a design that is placed on the canvas.
    pub(super) fn check(&self, scene: &Scene) -> Result<(), CanvasBoundError> {
        let (strokes, strokes_max) = (scene.strokes.len(), self.strokes_max);
        if strokes > strokes_max {
            return Err(CanvasBoundError::Strokes {
                strokes,
                strokes_max,
            });
        }
        let lengths = scene.strokes.iter().map(super::SheetStroke::length_mm);
        let (length_mm, length_mm_max) = (lengths.sum::<f64>(), self.length_mm_max);
        if length_mm > length_mm_max {
            return Err(CanvasBoundError::Length {
                length_mm,
                length_mm_max,
            });
        }
        Ok(())
    }

    /// Checks the arm time of a plan for the canvas.
    ///
    /// # Errors
    /// A plan that takes longer than the canvas allows.
    pub fn check_time(&self, time_s: f64) -> Result<(), CanvasBoundError> {
        let time_s_max = self.time_s_max;
        match time_s <= time_s_max {
            true => Ok(()),
            false => Err(CanvasBoundError::Time { time_s, time_s_max }),
        }
    }
}

/// Bounds of a canvas to which a picture is thinned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PictureBounds {
    strokes_max: usize,
    length_mm_max: f64,
}

impl PictureBounds {
    /// Returns those that a file states, or else the defaults.
    pub(super) fn of(design: &DesignFile) -> Self {
        Self {
            strokes_max: design.strokes_max.unwrap_or(STROKES_MAX) as usize,
            length_mm_max: design.length_mm_max.map_or(LENGTH_MM_MAX, Finite::get),
        }
    }

    /// Returns how much of the nearer bound a design takes: above 1, it is refused.
    pub(super) fn share(&self, design: &Design) -> f64 {
        let length_mm: f64 = design.strokes.iter().map(DesignStroke::length_mm).sum();
        let strokes = design.strokes.len() as f64 / self.strokes_max as f64;
        strokes.max(length_mm / self.length_mm_max)
    }
}

/// Returns the bounds that a file states, by key.
fn bounds(design: &DesignFile) -> impl Iterator<Item = (&'static str, f64)> {
    let bounds = [
        ("strokes_max", design.strokes_max.map(f64::from)),
        ("length_mm_max", design.length_mm_max.map(Finite::get)),
        ("time_s_max", design.time_s_max.map(Finite::get)),
    ];
    bounds
        .into_iter()
        .filter_map(|(key, bound)| Some((key, bound?)))
}

/// Refuses bounds of a scene that is not a canvas.
fn no_bounds(design: &DesignFile) -> Result<Option<Canvas>, Vec<String>> {
    let problems = bounds(design).map(|(key, _)| {
        format!("`design.{key}` is a limit for a canvas: also write `design.from_caller = [\"text\"]`, or leave it out")
    });
    let problems: Vec<String> = problems.collect();
    match problems.is_empty() {
        true => Ok(None),
        false => Err(problems),
    }
}

fn bound_problems(design: &DesignFile) -> impl Iterator<Item = String> {
    let problems = bounds(design).filter(|(_, bound)| *bound <= 0.0);
    problems.map(|(key, _)| format!("`design.{key}` must be above 0"))
}

/// Refuses canvases other than for pens on a flat sheet: callers draw on them without a person at
/// the arm.
fn unfit_problems(file: &SceneFile) -> impl Iterator<Item = String> {
    let needle = file.pens.iter().find(|pen| pen.kind == ToolKind::Needle);
    let needle = needle.map(|pen| format!("`{}` is a needle", pen.name));
    let rolled = file.sheet.cylinder_radius_mm.is_some();
    let rolled = rolled.then(|| "`sheet.cylinder_radius_mm` makes it a cylinder".to_owned());
    let mesh = file.surface.is_some();
    let mesh = mesh.then(|| "`[surface]` puts it on a mesh".to_owned());
    let attended = file.attended.then(|| "it is `attended`".to_owned());
    let reasons = [needle, rolled, mesh, attended].into_iter().flatten();
    reasons.map(|reason| format!("a canvas needs pens and a flat sheet and must run unattended, but {reason}: leave `design.from_caller` out"))
}

/// Refuses a design, place or size in the file: they come with the call.
fn own_design_problems(design: &DesignFile) -> impl Iterator<Item = String> + use<> {
    let keys = [
        ("file", design.file.is_some()),
        ("text", design.text.is_some()),
        ("polylines", design.polylines.is_some()),
        ("letter_height_mm", design.letter_height_mm.is_some()),
        ("font", design.font.is_some()),
        ("align", design.align.is_some()),
        ("line_spacing", design.line_spacing.is_some()),
        ("wrap_mm", design.wrap_mm.is_some()),
        ("size_mm", design.size_mm.is_some()),
        ("at_mm", design.at_mm.is_some()),
        ("rotate_deg", design.rotate_deg.is_some()),
    ];
    let stated = keys.into_iter().filter(|(_, is_stated)| *is_stated);
    stated.map(|(key, _)| {
        format!("`design.{key}` cannot be combined with `design.from_caller`, because a canvas gets its design with the call: leave it out")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests;
