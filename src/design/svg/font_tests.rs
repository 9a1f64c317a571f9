//! Text in the outlines of a font: squares of 0.7 em, made for these tests.

use usvg::fontdb::Database;

use super::machine_fonts::MachineFonts;
use super::{DesignCaps, DesignError, ReadOptions, read_text};
use crate::{AreaFill, Design};

fn squares() -> Result<MachineFonts, DesignError> {
    let mut fonts = Database::new();
    fonts.load_font_data(include_bytes!("../tests/fonts/squares.ttf").to_vec());
    MachineFonts::of(fonts)
}

const OUTLINES: ReadOptions = ReadOptions {
    outlines_text: true,
    fill: AreaFill::Outline,
    skip_images: false,
    hide: false,
    font: None,
    words: crate::ChoiceWords::CommandLine,
};

/// Reads what is drawn at a scale of a millimetre, letters 100 mm high.
fn read_with(body: &str, options: ReadOptions) -> Result<Design, DesignError> {
    let text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="400mm" height="200mm" viewBox="0 0 400 200" font-size="100">{body}</svg>"#
    );
    read_text(&text, &DesignCaps::default(), options, squares)
}

fn read(body: &str) -> Design {
    read_with(body, OUTLINES).unwrap_or_else(|error| panic!("{body}: {error}"))
}

/// Returns the drawing's width, to hundredths of a millimetre.
fn width_mm(design: &Design) -> f64 {
    let [low, high] = design.bounds_mm().unwrap();
    ((high[0] - low[0]) * 100.0).round() / 100.0
}

const FAMILY: &str = r#"font-family="Steadyhand Squares""#;

#[test]
fn letters_are_outlines_of_their_font_kerned_and_joined() {
    let design = read(&format!("<text y='100' {FAMILY}>A</text>"));
    assert_eq!(design.strokes.len(), 2, "an A is a square with a hole");
    assert_eq!(width_mm(&design), 60.0);
    assert!((design.capital_mm.unwrap() - 70.0).abs() < 0.01);
    for (letters, width) in [
        ("AV", 120.0),
        ("VA", 130.0),
        ("fi", 55.0),
        ("e\u{301}A", 120.0),
    ] {
        let design = read(&format!("<text y='100' {FAMILY}>{letters}</text>"));
        assert_eq!(width_mm(&design), width, "{letters}");
    }
    let note = |design: &Design| design.notes.concat();
    assert!(!note(&design).contains("single-line"), "{design:?}");
    assert!(note(&design).contains("1 filled area"), "{}", note(&design));
}

#[test]
fn a_family_that_is_not_there_is_named_with_the_one_in_its_place() {
    let body = "<text y='100' font-family='Comic Neue, cursive'>A</text>";
    let notes = read(body).notes;
    let said = notes.iter().find(|note| note.contains("`Comic Neue`"));
    assert!(
        said.is_some_and(|note| note.contains("`Steadyhand Squares`")),
        "{notes:?}"
    );
    for nothing_lost in [
        format!("<text y='100' {FAMILY}>A</text>"),
        "<text y='100'>A</text>".to_owned(),
    ] {
        let notes = read(&nothing_lost).notes;
        assert!(
            !notes.iter().any(|note| note.contains("on this machine")),
            "{notes:?}"
        );
    }
}

#[test]
fn letters_that_no_font_has_are_refused_by_name() {
    let error = read_with(&format!("<text y='100' {FAMILY}>A☃</text>"), OUTLINES).unwrap_err();
    assert!(error.to_string().contains('☃'), "{error}");
    let text = r#"<svg xmlns="http://www.w3.org/2000/svg" width="9mm" height="9mm"><text y="9">A</text></svg>"#;
    let nothing = || MachineFonts::of(Database::new());
    let error = read_text(text, &DesignCaps::default(), OUTLINES, nothing).unwrap_err();
    assert!(matches!(error, DesignError::Unsupported { .. }), "{error}");
    // Without text no font is needed.
    let text = text.replace("<text y=\"9\">A</text>", "<path d='M0 0h9' stroke='red'/>");
    read_text(&text, &DesignCaps::default(), OUTLINES, nothing).unwrap();
}

#[test]
fn letters_are_filled_and_hide_what_lies_behind() {
    let body = format!("<text y='100' {FAMILY}>A</text>");
    let hatch = AreaFill::Parallel {
        spacing_mm: 5.0,
        angle_deg: 0.0,
    };
    let filled = read_with(
        &body,
        ReadOptions {
            fill: hatch,
            ..OUTLINES
        },
    )
    .unwrap();
    let in_hole =
        |point: &&[f64; 2]| (21.0..39.0).contains(&point[0]) && (121.0..139.0).contains(&point[1]);
    assert!(filled.strokes.len() > 10);
    assert_eq!(
        filled
            .strokes
            .iter()
            .flat_map(|s| &s.points_mm)
            .filter(in_hole)
            .count(),
        0
    );
    let behind = format!(
        "<path d='M-10 90H100' stroke='red' fill='none'/>{body}<path d='M0 95H60' stroke='blue' fill='none'/>"
    );
    let hidden = read_with(
        &behind,
        ReadOptions {
            hide: true,
            ..OUTLINES
        },
    )
    .unwrap();
    let length = |colour| -> f64 {
        let of = hidden.strokes.iter().filter(|s| s.colour == Some(colour));
        of.map(crate::DesignStroke::length_mm).sum()
    };
    assert!(
        (length([255, 0, 0]) - 50.0).abs() < 0.5,
        "{}",
        length([255, 0, 0])
    );
    assert!(
        (length([0, 0, 255]) - 60.0).abs() < 0.01,
        "{}",
        length([0, 0, 255])
    );
}

#[test]
fn text_along_a_path_is_drawn_and_what_is_not_followed_is_refused() {
    let along = format!(
        "<defs><path id='p' d='M100 0V200'/></defs><text {FAMILY}><textPath href='#p'>A</textPath></text>"
    );
    assert_eq!(width_mm(&read(&along)), 70.0, "the letter lies on its side");
    assert_eq!(
        width_mm(&read(&format!(
            "<text x='200' y='100' rotate='90' {FAMILY}>A</text>"
        ))),
        70.0
    );
    let cased = format!("<text y='100' style='text-transform:uppercase' {FAMILY}>a</text>");
    let error = read_with(&cased, OUTLINES).unwrap_err();
    assert!(error.to_string().contains("text-transform"), "{error}");
    let clip = format!(
        "<clipPath id='c'><text {FAMILY}>A</text></clipPath><path clip-path='url(#c)' d='M0 0h9' stroke='red'/>"
    );
    assert!(read_with(&clip, OUTLINES).is_err());
    let many = format!("<text y='100' {FAMILY}>{}</text>", "A".repeat(20_001));
    let error = read_with(&many, OUTLINES).unwrap_err();
    assert!(
        matches!(
            error,
            DesignError::TooMany {
                what: "letters",
                ..
            }
        ),
        "{error}"
    );
}
