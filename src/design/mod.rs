//! Reads drawings in common file formats as strokes on a flat page: geometry without time or
//! joints.
#![doc = include_str!("README.md")]

mod choice_words;
mod collect_strokes;
pub mod compare;
mod dash;
mod design_error;
mod dxf;
mod fill_area;
mod flatten;
mod foreign_format;
mod gcode;
mod hpgl;
mod join_polylines;
mod json_design;
pub mod letters;
mod pixel_picture;
mod svg;
mod text_encoding;

pub use choice_words::{ChoiceWords, DesignChoice};
pub use collect_strokes::DOT_MM;
pub use design_error::DesignError;
pub use fill_area::AreaFill;
pub use flatten::CHORD_ERROR_MM;
pub use gcode::set_of;
pub use image::{LineOptions, LineStyle};
pub use join_polylines::simplified;
pub use letters::design as letters;
pub use letters::{StrokeFont, TextAlign, TextLook};
pub use pixel_picture::PixelPicture;

use base::plane;
use collect_strokes::StrokeCollector;

/// A drawing on its page. The page's origin is its lower left corner, x to the right, y up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// The page's width and height, both above 0 unless there are no strokes.
    pub page_mm: [f64; 2],
    /// Strokes in the author's order.
    pub strokes: Vec<DesignStroke>,
    /// True if the file's coordinates have a length on paper. An SVG in pixels, and G-code and DXF
    /// without a unit, have none.
    pub states_lengths: bool,
    /// Height of the smallest capital letters of its texts.
    pub capital_mm: Option<f64>,
    /// Parts of the file that are not drawn but change no line, each with its place.
    pub notes: Vec<String>,
}

/// One path drawn without lifting the pen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesignStroke {
    /// At least two finite points, without repeats. A closed path repeats its first point.
    pub points_mm: Vec<[f64; 2]>,
    /// The colour that the author gave it, as sRGB bytes; says which pen draws it.
    pub colour: Option<[u8; 3]>,
    /// The pen number that the author gave it, counted from 1 (by layer, name or T of a G-code
    /// file, or HP-GL's SP).
    pub pen: Option<u16>,
    /// A line of an SVG in the colour of paper, in no layer of a pen: only a pen of that colour draws it.
    pub is_paper_coloured: bool,
    /// Name of its layer.
    pub layer: Option<String>,
    /// True if the author requests a pause before it: by a layer whose name begins with `!`, or by
    /// M0 or M6 of G-code.
    pub pause_before: bool,
    /// Position in the author's file, for messages: an id, an element, a line.
    pub source: String,
}

impl Design {
    /// Returns the lowest and the highest coordinates of its strokes; `None` without strokes.
    #[must_use]
    pub fn bounds_mm(&self) -> Option<[[f64; 2]; 2]> {
        let points = self.strokes.iter().flat_map(|stroke| &stroke.points_mm);
        plane::bounds(points).map(|(low, high)| [low, high])
    }

    /// Returns the drawing on a page that is this box of its present one, whatever lies outside.
    #[must_use]
    pub fn on_box(mut self, corners_mm: [[f64; 2]; 2]) -> Self {
        let ([low, _], page_mm) = (corners_mm, collect_strokes::page_of(corners_mm));
        for point in self.strokes.iter_mut().flat_map(|s| &mut s.points_mm) {
            *point = [point[0] - low[0], point[1] - low[1]];
        }
        Self { page_mm, ..self }
    }

    /// Returns copies of the drawing in columns and rows, the first one at the upper left. What its author draws before a pause
    /// is drawn in all copies before it.
    #[must_use]
    pub fn repeated(&self, [columns, rows]: [usize; 2], gap_mm: f64) -> Self {
        let [width, height] = self.page_mm;
        let (step_x, step_y) = (width + gap_mm, height + gap_mm);
        let places: Vec<[f64; 2]> = (0..rows * columns)
            .map(|index| {
                let row = rows - 1 - index / columns;
                [(index % columns) as f64 * step_x, row as f64 * step_y]
            })
            .collect();
        let mut strokes = Vec::with_capacity(self.strokes.len() * places.len());
        let is_same_part = |_: &DesignStroke, next: &DesignStroke| !next.pause_before;
        for part in self.strokes.chunk_by(is_same_part) {
            for (index, [x, y]) in places.iter().enumerate() {
                strokes.extend(part.iter().map(|stroke| {
                    DesignStroke {
                        points_mm: stroke
                            .points_mm
                            .iter()
                            .map(|p| [p[0] + x, p[1] + y])
                            .collect(),
                        pause_before: stroke.pause_before && index == 0,
                        ..stroke.clone()
                    }
                }));
            }
        }
        Self {
            page_mm: [
                step_x * columns as f64 - gap_mm,
                step_y * rows as f64 - gap_mm,
            ],
            strokes,
            ..self.clone()
        }
    }

    /// Returns whether it is only a dot, which has no size.
    #[must_use]
    pub fn is_a_dot(&self) -> bool {
        let is_dot = |mm: f64| mm <= DOT_MM * (1.0 + 1e-9);
        let [width_mm, height_mm] = self.page_mm;
        let is_dot_stroke = |stroke: &DesignStroke| stroke.points_mm.len() == 2;
        is_dot(width_mm.max(height_mm)) && self.strokes.iter().all(is_dot_stroke)
    }
}

impl DesignStroke {
    /// Returns its place in the author's file, for people: its layer, or else its source.
    #[must_use]
    pub fn place_text(&self) -> String {
        match &self.layer {
            Some(layer) => format!("layer {}", design_error::quoted(layer)),
            None => self.source.clone(),
        }
    }

    /// Returns its length.
    #[must_use]
    pub fn length_mm(&self) -> f64 {
        plane::length(&self.points_mm)
    }
}

/// Limits of a drawing's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DesignCaps {
    /// Most bytes of the file.
    pub bytes_max: usize,
    /// Most strokes of the drawing.
    pub strokes_max: usize,
    /// Most points of all strokes together.
    pub points_max: usize,
    /// Most elements of an SVG, with every `use` expanded.
    pub elements_max: usize,
}

impl DesignCaps {
    fn refuse_larger(&self, bytes: usize) -> Result<(), DesignError> {
        let bytes_max = self.bytes_max;
        if bytes > bytes_max {
            return Err(DesignError::TooLarge { bytes, bytes_max });
        }
        Ok(())
    }
}

impl Default for DesignCaps {
    fn default() -> Self {
        Self {
            bytes_max: 8 << 20,
            strokes_max: 50_000,
            points_max: 1_000_000,
            elements_max: 100_000,
        }
    }
}

/// Options for reading a drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// Fill of an SVG's coloured areas.
    pub fill: AreaFill,
    /// Leaves pictures made of pixels out of an SVG and notes them; without it they are refused.
    pub skip_images: bool,
    /// Takes away what lies behind filled areas of an SVG.
    pub hide: bool,
    /// Draws an SVG's text in the outlines of the machine's fonts, in place of single-line letters.
    pub outlines_text: bool,
    /// Font of an SVG's text; without it each text has its own, if that is one of [`StrokeFont::all`], or the default.
    pub font: Option<StrokeFont>,
    /// Words of messages that offer a choice.
    pub words: ChoiceWords,
}

/// Reads a drawing. The extension of `name` gives its kind; a G-code file called `*_pen3_red.gcode`
/// is drawn with pen 3.
///
/// A page comes from an SVG's size and view box or from a JSON file's `page_mm`; a drawing without
/// a page gets one that just fits it.
///
/// # Errors
/// Everything that cannot be read or drawn, by its place in the file. Nothing is guessed, and nothing is
/// skipped without a note except invisible parts: hidden elements, and white areas without an
/// outline. White lines are marked, because a pen may be white too.
pub fn load(name: &str, bytes: &[u8], caps: &DesignCaps) -> Result<Design, DesignError> {
    load_with(name, bytes, caps, ReadOptions::default())
}

/// Reads a drawing like [`load`], with options.
///
/// # Errors
/// As [`load`]; and areas that need too many lines.
pub fn load_with(
    name: &str,
    bytes: &[u8],
    caps: &DesignCaps,
    options: ReadOptions,
) -> Result<Design, DesignError> {
    caps.refuse_larger(bytes.len())?;
    foreign_format::refuse(bytes)?;
    let (_, extension) = name.rsplit_once('.').unwrap_or(("", ""));
    match extension.to_ascii_lowercase().as_str() {
        ending if ENDINGS.contains(&ending) && bytes.iter().all(u8::is_ascii_whitespace) => {
            let accepted = "a drawing. Next: save or copy the file again";
            Err(DesignError::syntax("the file", "nothing in it", accepted))
        }
        "svg" => svg::read(bytes, caps, options),
        ending if GCODE_ENDINGS.contains(&ending) => gcode::read(&[(name, bytes)], caps),
        "hpgl" | "hpg" | "plt" => hpgl::read(bytes, caps),
        "dxf" => dxf::read(bytes, caps),
        "json" => json_design::read(bytes, caps),
        // A page, a Markdown file or an answer that holds a drawing.
        _ if bytes
            .windows(4)
            .any(|four| four.eq_ignore_ascii_case(b"<svg")) =>
        {
            svg::read(bytes, caps, options)
        }
        _ => Err(DesignError::Kind {
            name: design_error::quoted(name).trim_matches('`').to_owned(),
        }),
    }
}

/// File extensions that [`load`] reads.
pub const ENDINGS: [&str; 13] = [
    "svg", "gcode", "gco", "gc", "nc", "ngc", "cnc", "tap", "hpgl", "hpg", "plt", "dxf", "json",
];

/// File extensions of G-code.
pub(crate) const GCODE_ENDINGS: [&str; 7] = ["gcode", "gco", "gc", "nc", "ngc", "cnc", "tap"];

/// Reads files that form one drawing, each for its pen, on a page that just fits them: those with
/// the same [`set_of`]. A single file is read as by [`load_with`].
///
/// # Errors
/// As [`load`], with the file's name; files of a set that are not G-code.
pub fn load_set(
    files: &[(&str, &[u8])],
    caps: &DesignCaps,
    options: ReadOptions,
) -> Result<Design, DesignError> {
    if let [(name, bytes)] = files {
        return load_with(name, bytes, caps, options);
    }
    caps.refuse_larger(files.iter().map(|(_, bytes)| bytes.len()).sum())?;
    if let Some((name, _)) = files.iter().find(|(name, _)| set_of(name).is_none()) {
        let name = (*name).to_owned();
        return Err(DesignError::Kind { name });
    }
    gcode::read(files, caps)
}

/// Fix for a pen 0.
const PENS_FROM_1: &str = "1 for the first pen and 2 for the next: pens count from 1";

/// Returns the number with which a layer's name begins, and the rest of its name: 2 and `sky` of `! 2-sky`.
#[must_use]
pub fn layer_number(name: &str) -> (Option<u16>, &str) {
    let name = name.trim().trim_start_matches('!').trim_start();
    let Some(number) = pen_number_in(name) else {
        return (None, name);
    };
    let rest = name.strip_prefix("pen").unwrap_or(name).trim_start();
    let is_between = |c: char| c.is_whitespace() || matches!(c, '-' | '_' | '.' | ':');
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    (Some(number), rest.trim_start_matches(is_between))
}

/// Returns the number at the start of a layer's name, possibly after the word `pen`.
fn pen_number_in(name: &str) -> Option<u16> {
    let number = name.strip_prefix("pen").unwrap_or(name).trim_start();
    let mut digits = number.split(|c: char| !c.is_ascii_digit());
    digits.next()?.parse().ok()
}

/// Reads paths given as points, y up, on a page that just fits them; a path of one point is a dot.
///
/// # Errors
/// Points that are not finite or absurdly far away; more than the default caps; no path.
pub fn polylines(paths: &[Vec<[f64; 2]>]) -> Result<Design, DesignError> {
    let caps = DesignCaps::default();
    let mut strokes = StrokeCollector::new(&caps);
    for (index, path) in paths.iter().enumerate() {
        let source = format!("polyline {}", index + 1);
        let template = DesignStroke {
            source,
            ..DesignStroke::default()
        };
        strokes.push(path.clone(), &template)?;
    }
    let design = strokes.on_fitted_page("give at least one path with a point")?;
    Ok(Design {
        states_lengths: true,
        ..design
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_it_does_not_know_by_name() {
        let error = load("cat.dwg", b"", &DesignCaps::default()).unwrap_err();
        assert!(error.to_string().starts_with("`cat.dwg` has no known"));
    }

    #[test]
    fn refuses_a_large_file_before_reading_it() {
        let caps = DesignCaps {
            bytes_max: 3,
            ..DesignCaps::default()
        };
        let error = load("a.svg", b"<svg/>", &caps).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the file has 6 bytes (at most 3). Next: simplify the drawing"
        );
    }

    #[test]
    fn a_picture_is_refused_by_what_it_is_and_not_by_its_name() {
        for name in ["cat.svg", "cat.png", "cat.plt"] {
            let error = load(name, b"\x89PNG\r\n\x1a\n", &DesignCaps::default()).unwrap_err();
            assert!(
                matches!(error, DesignError::ForeignFormat { .. }),
                "{error}"
            );
        }
    }

    #[test]
    fn polylines_get_the_page_they_cover() {
        let design = polylines(&[vec![[-10.0, 5.0], [10.0, 35.0]]]).unwrap();
        assert_eq!(design.page_mm, [20.0, 30.0]);
        let points = &design.strokes.first().unwrap().points_mm;
        assert_eq!(points, &[[0.0, 0.0], [20.0, 30.0]]);
        assert!(polylines(&[]).is_err());
        assert!(polylines(&[vec![[f64::INFINITY, 0.0]]]).is_err());
    }
}
