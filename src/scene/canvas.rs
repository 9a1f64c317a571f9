//! Canvases: scenes whose design comes with the call, within bounds that their files state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scene;
use super::file::{DesignFile, SceneFile, ToolKind};
use base::units::{Finite, short};

/// Kind of design that a caller may send to a canvas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerDesignKind {
    /// Words, drawn in single-line letters.
    Text,
    /// The text of an SVG file.
    Svg,
}

impl CallerDesignKind {
    /// Returns its word in scene files, which is also the parameter that carries it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Svg => "svg",
        }
    }
}

/// A canvas, and the design that is on it in a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Canvas {
    /// Kinds of designs that it takes.
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
        "the design has {strokes} strokes, and this canvas takes {strokes_max}: draw less, or in several calls"
    )]
    Strokes {
        /// Its strokes.
        strokes: usize,
        /// The most that are possible.
        strokes_max: usize,
    },
    /// Too much line.
    #[error(
        "the design has {length_mm:.0} mm of line, and this canvas takes {} mm: draw it smaller, or in several calls",
        short(*length_mm_max)
    )]
    Length {
        /// Its line.
        length_mm: f64,
        /// The most that is possible.
        length_mm_max: f64,
    },
    /// Too much time.
    #[error(
        "the plan takes {time_s:.0} s of arm time, and this canvas allows {} s: draw it smaller, or in several calls",
        short(*time_s_max)
    )]
    Time {
        /// Arm time of the plan.
        time_s: f64,
        /// The most that is possible.
        time_s_max: f64,
    },
}

/// Bounds of a canvas whose file states none.
const STROKES_MAX: u32 = 500;
const LENGTH_MM_MAX: f64 = 5_000.0;
const TIME_S_MAX: f64 = 600.0;

impl Canvas {
    /// Reads what a scene's file says of a canvas; `None` for a scene with a design of its own.
    ///
    /// # Errors
    /// Everything that a canvas must not have.
    pub(super) fn of(file: &SceneFile) -> Result<Option<Self>, Vec<String>> {
        let design = &file.design;
        if design.from_caller.is_empty() {
            return no_bounds(design);
        }
        let wrong: Vec<String> = unfit(file)
            .chain(own_design(design))
            .chain(bad_bounds(design))
            .collect();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let number = |said: Option<Finite>, shipped| said.map_or(shipped, Finite::get);
        Ok(Some(Self {
            takes: design.from_caller.clone(),
            strokes_max: design.strokes_max.unwrap_or(STROKES_MAX) as usize,
            length_mm_max: number(design.length_mm_max, LENGTH_MM_MAX),
            time_s_max: number(design.time_s_max, TIME_S_MAX),
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

/// The bounds that a file says, by key.
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

/// Bounds belong to canvases alone.
fn no_bounds(design: &DesignFile) -> Result<Option<Canvas>, Vec<String>> {
    let wrong = bounds(design).map(|(key, _)| {
        format!("design.{key} is a bound of a canvas: write design.from_caller = [\"text\"], or leave it out")
    });
    let wrong: Vec<String> = wrong.collect();
    match wrong.is_empty() {
        true => Ok(None),
        false => Err(wrong),
    }
}

fn bad_bounds(design: &DesignFile) -> impl Iterator<Item = String> {
    let wrong = bounds(design).filter(|(_, bound)| *bound <= 0.0);
    wrong.map(|(key, _)| format!("design.{key} must be above 0"))
}

/// Refuses canvases but for a pen on a flat sheet: callers draw on them without a person beside the arm.
fn unfit(file: &SceneFile) -> impl Iterator<Item = String> {
    let needle = file.pens.iter().find(|pen| pen.kind == ToolKind::Needle);
    let needle = needle.map(|pen| format!("`{}` is a needle", pen.name));
    let rolled = file.sheet.cylinder_radius_mm.is_some();
    let rolled = rolled.then(|| "sheet.cylinder_radius_mm makes it a cylinder".to_owned());
    let attended = file.attended.then(|| "it is `attended`".to_owned());
    let why = [needle, rolled, attended].into_iter().flatten();
    why.map(|why| format!("a canvas is drawn on by pens on a flat sheet that nobody need attend, and {why}: leave design.from_caller out"))
}

/// The design, its place and its size come with the call.
fn own_design(design: &DesignFile) -> impl Iterator<Item = String> + use<> {
    let said = [
        ("file", design.file.is_some()),
        ("text", design.text.is_some()),
        ("polylines", design.polylines.is_some()),
        ("letter_height_mm", design.letter_height_mm.is_some()),
        ("size_mm", design.size_mm.is_some()),
        ("at_mm", design.at_mm.is_some()),
        ("rotate_deg", design.rotate_deg.is_some()),
    ];
    let said = said.into_iter().filter(|(_, is_said)| *is_said);
    said.map(|(key, _)| {
        format!("design.{key} stands beside design.from_caller: the design of a canvas comes with the call, so leave it out")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests;
