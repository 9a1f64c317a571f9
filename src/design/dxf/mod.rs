//! Reads text DXF as CAD programs write it: lines, arcs, polylines, splines, texts and blocks in
//! its plane become strokes.
//!
//! Layers that are off are not drawn; notes name and count entities of other kinds.

mod curves;
mod group_codes;
mod layers;
mod plot_entities;
mod text;

use super::{Design, DesignCaps, DesignError};
use group_codes::DxfSection;
use plot_entities::DxfPlotter;

const EMPTY: &str = "no line, arc, polyline, spline or text on a layer that is on";

pub(super) fn read(text: &str, caps: &DesignCaps) -> Result<Design, DesignError> {
    if text.starts_with("AutoCAD Binary DXF") {
        return Err(DesignError::unsupported(
            "the file",
            "a binary DXF",
            "save it as DXF in text (ASCII)",
        ));
    }
    let sections = group_codes::sections(text, caps.elements_max)?;
    let (mm_per_unit, unit_note) = read_units(&sections)?;
    let mut plotter = DxfPlotter::new(&sections, mm_per_unit, caps)?;
    for section in sections.iter().filter(|section| section.name == "ENTITIES") {
        plotter.draw(&section.entities)?;
    }
    let (strokes, losses) = plotter.finish();
    let mut design = strokes.on_fitted_page(EMPTY)?;
    design.notes.extend(unit_note);
    if !losses.is_empty() {
        let counted = losses
            .iter()
            .map(|(what, count)| format!("{what} ({count})"))
            .collect::<Vec<_>>()
            .join(", ");
        design.notes.push(format!("not drawn: {counted}"));
    }
    Ok(design)
}

/// Returns the millimetres in the file's unit, by `$INSUNITS`, and a note if it is not stated.
fn read_units(sections: &[DxfSection<'_>]) -> Result<(f64, Option<String>), DesignError> {
    let header = sections.iter().filter(|section| section.name == "HEADER");
    let mut variables = header.flat_map(|section| &section.entities);
    let unit = match variables.find(|variable| variable.kind == "$INSUNITS") {
        Some(variable) => variable.flags(70)?,
        None => 0,
    };
    let mm = match unit {
        0 => {
            let note = "the file states no unit ($INSUNITS): millimetres are assumed";
            return Ok((1.0, Some(note.to_owned())));
        }
        1 => 25.4,
        2 => 304.8,
        4 => 1.0,
        5 => 10.0,
        6 => 1000.0,
        8 => 25.4e-6,
        9 => 0.0254,
        10 => 914.4,
        13 => 1e-3,
        14 => 100.0,
        other => {
            return Err(DesignError::unsupported(
                "$INSUNITS",
                format!("the unit {other}"),
                "save it in millimetres, centimetres, metres, inches or feet",
            ));
        }
    };
    Ok((mm, None))
}

#[cfg(test)]
mod tests;
