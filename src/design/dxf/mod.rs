//! Reads text DXF as CAD programs write it: lines, arcs, polylines, splines, texts and blocks in
//! its plane become strokes.
//!
//! Layers that are off are not drawn; notes name and count entities of other kinds.

mod curves;
mod fit_spline;
mod group_codes;
mod layers;
mod mtext;
mod mtext_codes;
mod plot_entities;
mod text;

use base::plane::Point;
use base::wording::count;

use super::collect_strokes::StrokeCollector;
use super::text_encoding::{self, DeclaredEncoding};
use super::{Design, DesignCaps, DesignError};
use group_codes::DxfSection;
use plot_entities::DxfPlotter;

const EMPTY: &str = "no line, arc, polyline, spline or text on a visible layer";
const EMPTY_NEEDS: &str = "a line, arc, polyline, spline or text on a visible layer";

/// How a person saves a DXF as UTF-8.
const SETTING: &str = "save it as DXF of AutoCAD 2007 or later, which is UTF-8";

pub(super) fn read(bytes: &[u8], caps: &DesignCaps) -> Result<Design, DesignError> {
    if bytes.starts_with(b"AutoCAD Binary DXF") {
        return Err(DesignError::unsupported(
            "the file",
            "a binary DXF",
            "save it as DXF in text (ASCII)",
        ));
    }
    let head = text_encoding::head(bytes);
    let declared = DeclaredEncoding {
        label: declared_encoding(&head),
        setting: SETTING,
    };
    let decoded = text_encoding::decode(bytes, declared)?;
    let text = text::without_escapes(&decoded.text);
    let sections = group_codes::sections(&text, caps.elements_max)?;
    let unit_mm = unit_mm(&sections)?;
    let (mut design, sides) = draw(&sections, unit_mm, StrokeCollector::new(caps))?;
    if unit_mm.is_none() {
        // Curves and dots are in proportion to the drawing.
        (design, _) = draw(&sections, unit_mm, StrokeCollector::for_sides(caps, sides))?;
    }
    design.notes.extend(
        decoded
            .is_guessed
            .then(|| text_encoding::GUESSED.to_owned()),
    );
    Ok(design)
}

fn draw(
    sections: &[DxfSection<'_>],
    unit_mm: Option<f64>,
    strokes: StrokeCollector<'_>,
) -> Result<(Design, Point), DesignError> {
    let mut plotter = DxfPlotter::new(sections, unit_mm.unwrap_or(1.0), strokes)?;
    for section in sections.iter().filter(|section| section.name == "ENTITIES") {
        plotter.draw(&section.entities)?;
    }
    let (strokes, losses) = plotter.finish();
    let sides = strokes.sides();
    let counted = losses
        .iter()
        .map(|(what, count)| format!("{what} ({count})"))
        .collect::<Vec<_>>()
        .join(", ");
    let mut design = match strokes.on_fitted_page(EMPTY) {
        // What there is instead of lines.
        Err(DesignError::Empty { .. }) if !losses.is_empty() => {
            let fix = format!("a drawing needs {EMPTY_NEEDS}");
            return Err(DesignError::unsupported("the file", counted, fix));
        }
        design => design?,
    };
    design.states_lengths = unit_mm.is_some();
    design
        .notes
        .extend((!losses.is_empty()).then(|| format!("not drawn: {counted}")));
    let clips = sections.iter().filter(|section| section.name == "OBJECTS");
    let clips = clips.flat_map(|section| &section.entities);
    let clips = clips
        .filter(|object| object.kind == "SPATIAL_FILTER")
        .count();
    if clips > 0 {
        let blocks = count(clips, "clipped block");
        design.notes.push(format!("{blocks} drawn in full"));
    }
    Ok((design, sides))
}

/// Returns the label of the encoding that a file's header declares: UTF-8 from AutoCAD 2007 on, and
/// before that its code page.
fn declared_encoding(head: &str) -> Option<&str> {
    let value_of = |name: &str| {
        let (_, after) = head.split_once(name)?;
        after
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .nth(1)
    };
    let version = value_of("$ACADVER").and_then(|version| version.strip_prefix("AC"));
    if version.and_then(|number| number.parse::<u32>().ok()) >= Some(UTF8_SINCE) {
        return Some("utf-8");
    }
    let page = value_of("$DWGCODEPAGE")?;
    let known = CODE_PAGES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(page));
    Some(known.map_or(page, |(_, label)| label))
}

/// The version of the format since which files are UTF-8.
const UTF8_SINCE: u32 = 1021;

/// Code pages of AutoCAD, and their labels.
const CODE_PAGES: [(&str, &str); 19] = [
    ("ANSI_874", "windows-874"),
    ("ANSI_932", "shift_jis"),
    ("ANSI_936", "gbk"),
    ("ANSI_949", "euc-kr"),
    ("ANSI_950", "big5"),
    ("ANSI_1250", "windows-1250"),
    ("ANSI_1251", "windows-1251"),
    ("ANSI_1252", "windows-1252"),
    ("ANSI_1253", "windows-1253"),
    ("ANSI_1254", "windows-1254"),
    ("ANSI_1255", "windows-1255"),
    ("ANSI_1256", "windows-1256"),
    ("ANSI_1257", "windows-1257"),
    ("ANSI_1258", "windows-1258"),
    ("DOS866", "ibm866"),
    ("DOS932", "shift_jis"),
    ("GB2312", "gbk"),
    ("KSC5601", "euc-kr"),
    ("MAC-ROMAN", "macintosh"),
];

/// Millimetres in the units of `$INSUNITS`, by number.
const UNITS_MM: [(i64, f64); 20] = [
    (1, 25.4),
    (2, 304.8),
    (3, 1_609_344.0),
    (4, 1.0),
    (5, 10.0),
    (6, 1e3),
    (7, 1e6),
    (8, 25.4e-6),
    (9, 0.0254),
    (10, 914.4),
    (11, 1e-7),
    (12, 1e-6),
    (13, 1e-3),
    (14, 1e2),
    (15, 1e4),
    (16, 1e5),
    // Those of a survey in the United States.
    (21, 1_200.0e3 / 3_937.0),
    (22, 100.0e3 / 3_937.0),
    (23, 3_600.0e3 / 3_937.0),
    (24, 6_336_000.0e3 / 3_937.0),
];

/// Returns the millimetres in the file's unit, by `$INSUNITS`; `None` if it states none.
fn unit_mm(sections: &[DxfSection<'_>]) -> Result<Option<f64>, DesignError> {
    let header = sections.iter().filter(|section| section.name == "HEADER");
    let mut variables = header.flat_map(|section| &section.entities);
    let unit = match variables.find(|variable| variable.kind == "$INSUNITS") {
        Some(variable) => variable.flags(70)?,
        None => 0,
    };
    let known = UNITS_MM.iter().find(|(number, _)| *number == unit);
    match known {
        Some((_, mm)) => Ok(Some(*mm)),
        None if unit == 0 => Ok(None),
        None => Err(DesignError::unsupported(
            "$INSUNITS",
            format!("the unit {unit}"),
            "save it in millimetres, centimetres, metres, inches or feet",
        )),
    }
}

#[cfg(test)]
mod tests;
