//! Breaks a design of text into lines that suit its sheet.

use super::SizeSource;
use super::file::DesignFile;
use super::library::DesignSheet;
use super::placement::fitting_size_mm;
use base::units::Finite;
use design::{self, Design, DesignError};

/// Height of a capital letter unless the design states it.
const LETTER_HEIGHT_MM: f64 = 10.0;

/// Most lines that are tried for letters as large as possible.
const LINES_MAX: u32 = 40;

/// Share by which tried lines are longer than all lines of equal length would be.
const RAGGED: f64 = 1.1;

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
    let height_mm = file.letter_height_mm.map_or(LETTER_HEIGHT_MM, Finite::get);
    let lines = |width_mm: f64| design::letters(text, height_mm, width_mm);
    match from {
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
