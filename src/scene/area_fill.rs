//! Computes the area fill of a scene, in the design's own millimetres.

use super::file::{DesignFile, FillKind, PenFile};
use super::scene_fault::SceneFault;
use base::units::{Finite, OutOfRange};
use design::AreaFill;

const SPACING_MM_MIN: f64 = 0.1;
const SPACING_MM_MAX: f64 = 50.0;
/// Default angle of the lines.
const ANGLE_DEG: f64 = 45.0;

/// Returns the fill of a page of this size. On the sheet its lines have the spacing that the scene
/// states, or the width of the finest pen, however much the page is scaled.
///
/// # Errors
/// A value out of range, with its key and the range.
pub(super) fn fill_of(
    file: &DesignFile,
    pens: &[PenFile],
    page_mm: [f64; 2],
) -> Result<AreaFill, OutOfRange> {
    let angle_deg = file.fill_angle_deg.map_or(ANGLE_DEG, Finite::get);
    let on_sheet_mm = match file.fill_spacing_mm {
        Some(stated_mm) => {
            let range = SPACING_MM_MIN..=SPACING_MM_MAX;
            OutOfRange::check(|| "design.fill_spacing_mm".to_owned(), stated_mm, &range)?
        }
        None => finest_mm(pens),
    };
    let long_mm = page_mm.iter().copied().fold(0.0, f64::max);
    let scale = match file.size_mm {
        Some(size) if long_mm > 0.0 && size.get() > 0.0 => size.get() / long_mm,
        _ => 1.0,
    };
    let spacing_mm = on_sheet_mm / scale;
    Ok(match file.fill {
        FillKind::Outline => AreaFill::Outline,
        FillKind::Hatch => AreaFill::Parallel {
            spacing_mm,
            angle_deg,
        },
        FillKind::Cross => AreaFill::Cross {
            spacing_mm,
            angle_deg,
        },
        FillKind::Contour => AreaFill::Contour { spacing_mm },
    })
}

/// Returns the width of the finest pen: lines with this spacing cover an area, whichever pen draws
/// them.
fn finest_mm(pens: &[PenFile]) -> f64 {
    let widths = pens.iter().map(|pen| pen.width_mm.get());
    widths.fold(SPACING_MM_MAX, f64::min).max(SPACING_MM_MIN)
}

/// Returns whether a design's file is an SVG, by its name.
pub(super) fn is_svg(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".svg")
}

/// Refuses a fill for designs without areas, and fill parameters without a fill.
///
/// # Errors
/// The key, and what it requires.
pub(super) fn check(file: &DesignFile) -> Result<(), SceneFault> {
    let is_svg = file.file.as_deref().is_some_and(is_svg);
    if file.fill != FillKind::Outline && !is_svg {
        return Err(SceneFault::NoAreas);
    }
    let has_parameters = file.fill_spacing_mm.is_some() || file.fill_angle_deg.is_some();
    if file.fill == FillKind::Outline && has_parameters {
        return Err(SceneFault::FillOfNothing);
    }
    Ok(())
}
