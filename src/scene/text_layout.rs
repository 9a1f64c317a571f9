//! Gives a design of text its look, and breaks it into lines that suit its sheet.

use super::SizeSource;
use super::area_fill::is_svg;
use super::file::{DesignFile, LineAlign};
use super::library::DesignSheet;
use super::placement::fitting_size_mm;
use super::scene_fault::SceneFault;
use base::units::{Finite, OutOfRange};
use design::{self, Design, DesignError, StrokeFont, TextAlign, TextLook};

/// Height of a capital letter unless the design states it.
const LETTER_HEIGHT_MM: f64 = 10.0;

/// Distances of lines, in that of common text.
const LINE_SPACING: std::ops::RangeInclusive<f64> = 0.5..=5.0;

/// Widths at which lines may be broken.
const WRAP_MM: std::ops::RangeInclusive<f64> = 1.0..=2_000.0;

/// Most lines that are tried for letters as large as possible.
const LINES_MAX: u32 = 40;

/// Share by which tried lines are longer than all lines of equal length would be.
const RAGGED: f64 = 1.1;

/// Refuses the look of a text for designs that are none, and values out of range.
///
/// # Errors
/// The key, and what it requires.
pub(super) fn check(file: &DesignFile) -> Result<(), SceneFault> {
    let of_lines = [
        ("align", file.align.is_some()),
        ("line_spacing", file.line_spacing.is_some()),
        ("wrap_mm", file.wrap_mm.is_some()),
    ];
    let mut of_lines = of_lines.into_iter().filter(|(_, is_stated)| *is_stated);
    if let (Some((key, _)), None) = (of_lines.next(), &file.text) {
        return Err(SceneFault::NoLines(key));
    }
    let ranges = [
        ("line_spacing", file.line_spacing, LINE_SPACING),
        ("wrap_mm", file.wrap_mm, WRAP_MM),
    ];
    for (key, value, range) in ranges {
        if let Some(value) = value {
            OutOfRange::check(|| format!("design.{key}"), value, &range)?;
        }
    }
    let may_have_text = |name: &str| {
        let (_, ending) = name.rsplit_once('.').unwrap_or(("", ""));
        is_svg(name) || !design::ENDINGS.contains(&&*ending.to_ascii_lowercase())
    };
    let has_text = file.text.is_some() || file.file.as_deref().is_some_and(may_have_text);
    match file.font.is_some() && !has_text {
        true => Err(SceneFault::NoText),
        false => Ok(()),
    }
}

/// Returns the font that a design names.
///
/// # Errors
/// There is no such font.
pub(super) fn font(file: &DesignFile) -> Result<Option<StrokeFont>, DesignError> {
    file.font.as_deref().map(StrokeFont::named).transpose()
}

/// Returns the look of a text, in lines of any width.
fn look(file: &DesignFile) -> Result<TextLook, DesignError> {
    let height_mm = file.letter_height_mm.map_or(LETTER_HEIGHT_MM, Finite::get);
    let width_mm = file.wrap_mm.map_or(f64::INFINITY, Finite::get);
    Ok(TextLook {
        font: font(file)?.unwrap_or_default(),
        align: match file.align.unwrap_or_default() {
            LineAlign::Left => TextAlign::Left,
            LineAlign::Center => TextAlign::Center,
            LineAlign::Right => TextAlign::Right,
        },
        line_spacing: file.line_spacing.map_or(1.0, Finite::get),
        ..TextLook::plain(height_mm, width_mm)
    })
}

/// Lays out a text. Letters of their own size are broken into lines at the sheet's width; those that fit
/// the sheet are, if one line would make them smaller than that size.
///
/// # Errors
/// As [`design::letters`].
pub(super) fn lay_out(
    text: &str,
    file: &DesignFile,
    sheet: DesignSheet,
    from: SizeSource,
) -> Result<Design, DesignError> {
    let look = look(file)?;
    let lines = |width_mm: f64| {
        let look = TextLook { width_mm, ..look };
        design::letters(text, &look)
    };
    match from {
        _ if look.width_mm.is_finite() => lines(look.width_mm),
        SizeSource::File => lines(width_mm(file, sheet)),
        SizeSource::Asked | SizeSource::Scene => lines(f64::INFINITY),
        SizeSource::Fitted => {
            let scale = |design: &Design| {
                let [width, height] = design.page_mm;
                let size_mm = fitting_size_mm(file, design, sheet, false);
                size_mm.map_or(0.0, |size_mm| size_mm / width.max(height))
            };
            let mut best = lines(f64::INFINITY)?;
            let [long_mm, _] = best.page_mm;
            for count in 2..=LINES_MAX {
                if scale(&best) >= 1.0 {
                    break;
                }
                let broken = lines(long_mm / f64::from(count) * RAGGED)?;
                if scale(&broken) > scale(&best) {
                    best = broken;
                }
            }
            Ok(best)
        }
    }
}

/// Returns the width that lines have on the sheet, at the design's place and rotation.
fn width_mm(file: &DesignFile, sheet: DesignSheet) -> f64 {
    let [width, height] = sheet.size_mm;
    let turn_rad = file.rotate_deg.map_or(0.0, Finite::get).to_radians();
    let is_upright = turn_rad.sin().abs() > turn_rad.cos().abs();
    let (side, axis) = if is_upright { (height, 1) } else { (width, 0) };
    let from = file.at_mm.and_then(|at| at.get(axis).copied());
    side - from.map_or(sheet.margin_mm, Finite::get) - sheet.margin_mm
}
