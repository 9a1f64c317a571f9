//! Reads JSON as strokes: `{"units": "mm", "strokes": [{"pen": 1, "points": [[x, y], …]}]}`, or a bare
//! list of paths, each a list of points. y points up.

use base::plane::Point;
use serde::Deserialize;

use super::collect_strokes::StrokeCollector;
use super::design_error::{number, quoted};
use super::text_encoding::{self, DeclaredEncoding};
use super::{Design, DesignCaps, DesignError, DesignStroke, PENS_FROM_1};

const EMPTY: &str = "give at least one stroke with a point";
const ACCEPTED: &str =
    "{\"units\": \"mm\", \"strokes\": [{\"pen\": 1, \"points\": [[x, y], …]}]} or [[[x, y], …], …]";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    units: JsonUnits,
    /// In `units`; the origin is its lower left corner.
    page: Option<Point>,
    page_mm: Option<Point>,
    strokes: Vec<StrokeFile>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StrokeFile {
    pen: Option<u16>,
    #[serde(alias = "color")]
    colour: Option<String>,
    points: Vec<Point>,
}

#[derive(Clone, Copy, Default, Deserialize)]
enum JsonUnits {
    #[default]
    #[serde(rename = "mm")]
    Mm,
    #[serde(rename = "cm")]
    Cm,
    #[serde(rename = "m")]
    M,
    #[serde(rename = "in", alias = "inch")]
    In,
    #[serde(rename = "px")]
    Px,
    #[serde(rename = "pt")]
    Pt,
}

impl JsonUnits {
    fn mm(self) -> f64 {
        match self {
            Self::Mm => 1.0,
            Self::Cm => 10.0,
            Self::M => 1000.0,
            Self::In => 25.4,
            Self::Px => 25.4 / 96.0,
            Self::Pt => 25.4 / 72.0,
        }
    }
}

pub(super) fn read(bytes: &[u8], caps: &DesignCaps) -> Result<Design, DesignError> {
    let text = &text_encoding::decode(bytes, DeclaredEncoding::default())?.text;
    let file = if text.trim_start().starts_with('[') {
        let paths: Vec<Vec<Point>> = serde_json::from_str(text).map_err(|e| syntax_error(&e))?;
        file_from_paths(paths)
    } else {
        serde_json::from_str(text).map_err(|e| syntax_error(&e))?
    };
    let page_mm = page_mm(&file)?;
    let (units, mm) = (file.units, file.units.mm());
    let mut strokes = StrokeCollector::new(caps);
    for (index, stroke) in file.strokes.into_iter().enumerate() {
        let template = template(&stroke, index + 1)?;
        let points = stroke.points.into_iter();
        strokes.push(points.map(|[x, y]| [x * mm, y * mm]).collect(), &template)?;
    }
    let design = match page_mm {
        Some(page_mm) => strokes.on_page(page_mm, EMPTY),
        None => strokes.on_fitted_page(EMPTY),
    };
    Ok(Design {
        states_lengths: !matches!(units, JsonUnits::Px),
        ..design?
    })
}

fn file_from_paths(paths: Vec<Vec<Point>>) -> File {
    let stroke = |points| StrokeFile {
        points,
        ..StrokeFile::default()
    };
    File {
        strokes: paths.into_iter().map(stroke).collect(),
        ..File::default()
    }
}

fn syntax_error(error: &serde_json::Error) -> DesignError {
    DesignError::syntax(
        format!("line {} column {}", error.line(), error.column()),
        printable(&reword(&error.to_string())),
        ACCEPTED,
    )
}

/// Rewords a message of the parser in terms of a drawing.
fn reword(message: &str) -> String {
    let message = (message.rsplit_once(" at line ")).map_or(message, |(message, _)| message);
    let message = message.strip_prefix("invalid type: ").unwrap_or(message);
    let message = message.strip_prefix("invalid value: ").unwrap_or(message);
    let message = match (
        message.strip_prefix("expected "),
        message.strip_prefix("EOF while parsing "),
    ) {
        (Some("value" | "ident"), _) => "something other than a value".to_owned(),
        (Some(expected), _) => format!("something other than {expected}"),
        (_, Some(place)) => format!("the end of the file in {place}"),
        (None, None) => message.to_owned(),
    };
    PHRASES
        .iter()
        .fold(message, |text, (old, new)| text.replace(old, new))
}

/// Escapes characters of a file's text that a terminal would interpret.
fn printable(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\'' | '\\' => c.to_string(),
        other => other.escape_debug().to_string(),
    };
    text.chars().map(escape).collect()
}

/// Phrases of the parser and their replacements; longer phrases first.
const PHRASES: [(&str, &str); 14] = [
    ("floating point `", "the number `"),
    ("integer `", "the number `"),
    ("boolean `", "the word `"),
    ("string \"", "the text \""),
    ("unknown field", "the unknown key"),
    (
        "expected f64",
        "expected a number such as 12.5 (in mm, or in `units`)",
    ),
    ("expected u16", "expected a pen's number such as 1"),
    (
        "expected an array of length 2",
        "expected two numbers such as [10.0, 2.5]",
    ),
    (
        "expected struct StrokeFile",
        "expected a stroke such as {\"points\": [[0, 0], [10, 2.5]]}",
    ),
    ("expected struct File", "expected a drawing"),
    ("expected a string", "expected a quoted string"),
    (
        "expected a sequence",
        "expected a list such as [[0, 0], [10, 2.5]]",
    ),
    ("sequence,", "a list,"),
    ("map,", "an object,"),
];

fn page_mm(file: &File) -> Result<Option<Point>, DesignError> {
    let page_mm = match (file.page, file.page_mm) {
        (Some(_), Some(_)) => {
            let at = "`page` and `page_mm`";
            return Err(DesignError::syntax(at, "both of them", "one of them"));
        }
        (Some(page), None) => page.map(|side| side * file.units.mm()),
        (None, Some(page_mm)) => page_mm,
        (None, None) => return Ok(None),
    };
    let is_side = |side: &f64| *side > 0.0 && *side <= 100_000.0;
    if page_mm.iter().all(is_side) {
        return Ok(Some(page_mm));
    }
    let found = format!("{} by {} mm", number(page_mm[0]), number(page_mm[1]));
    let accepted = "two sides above 0 mm, at most 100 m";
    Err(DesignError::syntax("the page", found, accepted))
}

fn template(stroke: &StrokeFile, number: usize) -> Result<DesignStroke, DesignError> {
    let source = format!("stroke {number}");
    let colour = stroke.colour.as_deref().map(|text| {
        parse_colour(text).ok_or_else(|| {
            let found = format!("the colour {}", quoted(text));
            DesignError::syntax(&source, found, "#rrggbb, such as #c0392b")
        })
    });
    let colour = colour.transpose()?;
    if stroke.pen == Some(0) {
        return Err(DesignError::syntax(source, "pen 0", PENS_FROM_1));
    }
    Ok(DesignStroke {
        colour,
        pen: stroke.pen,
        source,
        ..DesignStroke::default()
    })
}

/// Returns the bytes of `#rrggbb`.
fn parse_colour(text: &str) -> Option<[u8; 3]> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
    Some([red, green, blue])
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::float_cmp,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::load;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Design, DesignError> {
        load("a.json", text.as_bytes(), &DesignCaps::default())
    }

    #[test]
    fn reads_strokes_with_units_pens_and_colours() {
        let design = read(
            r##"{"units": "cm", "page_mm": [210, 297], "strokes": [
                {"pen": 2, "colour": "#c0392b", "points": [[1, 2], [3, 2.5]]}]}"##,
        )
        .unwrap();
        assert_eq!(design.page_mm, [210.0, 297.0]);
        let stroke = &design.strokes[0];
        assert_eq!(stroke.points_mm, [[10.0, 20.0], [30.0, 25.0]]);
        assert_eq!(stroke.pen, Some(2));
        assert_eq!(stroke.colour, Some([0xc0, 0x39, 0x2b]));
        assert_eq!(stroke.source, "stroke 1");
    }

    #[test]
    fn reads_bare_polylines() {
        let design = read("[[[0,0],[5,5]],[[5,5],[9,0],[0,0]]]").unwrap();
        assert_eq!(design.strokes.len(), 2);
        assert_eq!(design.page_mm, [9.0, 5.0]);
    }

    #[test]
    fn names_the_place_of_what_it_refuses() {
        for (text, place) in [
            ("[[[0,0],\n[5]]]", "line 2 column 3"),
            (r#"{"strokes": [], "pens": 1}"#, "line 1 column"),
            (
                r##"{"strokes": [{"points": [], "colour": "red"}]}"##,
                "stroke 1: found the colour `red`",
            ),
            (
                r#"{"page": [0, 5], "strokes": []}"#,
                "the page: found 0 by 5 mm",
            ),
            (r#"{"units": "ell", "strokes": []}"#, "line 1 column"),
            (
                r#"{"strokes": [{"pen": 0, "points": [[0, 0]]}]}"#,
                "stroke 1: found pen 0; accepted: 1 for the first pen",
            ),
            ("[]", "the drawing has no line"),
            ("[[[1e999, 0]]]", "line 1 column"),
            ("[[[1e11, 0]]]", "stroke 1: a point is at 1e11, 0 mm"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(place), "{text}: {error}");
        }
    }

    #[test]
    fn errors_use_the_terms_of_a_drawing() {
        for (text, expected) in [
            (
                r#"[[[0,0],[1,"x"]]]"#,
                r#"the text "x", expected a number such as 12.5 (in mm"#,
            ),
            (
                "[[0,0],[1,2]]",
                "the number `0`, expected two numbers such as [10.0, 2.5]",
            ),
            (
                "[[[0,[1]]]]",
                "found a list, expected a number such as 12.5",
            ),
            (
                r#"{"strokes": 5}"#,
                "expected a list such as [[0, 0], [10, 2.5]]",
            ),
            (
                r#"{"strokes": [5]}"#,
                r#"expected a stroke such as {"points": [[0, 0]"#,
            ),
            (
                r#"{"strokes": [{"pen": -1, "points": []}]}"#,
                "a pen's number such as 1",
            ),
            (
                r#"{"strokes":[{"points":[[0,0],[10,NaN]]}]}"#,
                "found something other than a value; accepted",
            ),
            ("[[[0,0] [1,2]]]", "found something other than `,` or `]`"),
            ("[[[0,0],", "found the end of the file in a"),
            (
                r#"{"page_mm": [1e308, 1], "strokes": []}"#,
                "found 1e308 by 1 mm",
            ),
            (
                r#"{"page_mm": [9, 9], "strokes": [{"points": [[-1.5e308, 0]]}]}"#,
                "a point is at -1.5e308, 0 mm",
            ),
            (
                r#"{"lines": []}"#,
                "the unknown key `lines`, expected one of `units`",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            for term in [
                "f64",
                "u16",
                "sequence",
                "struct",
                "invalid type",
                "at line",
                "found expected",
                "EOF",
            ] {
                assert!(!error.contains(term), "{text}: {error}");
            }
        }
    }

    proptest! {
        #[test]
        fn corrupt_bytes_are_refused_or_read_but_never_panic(
            cut in 0..90_usize, at in 0..90_usize, byte in any::<u8>(),
        ) {
            let mut bytes = br#"{"units":"mm","strokes":[{"pen":1,"points":[[0,0],[1e1,-2.5]]},{"points":[[1,1]]}]}"#.to_vec();
            bytes.truncate(cut.max(1));
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = load("a.json", &bytes, &DesignCaps::default());
        }
    }
}
