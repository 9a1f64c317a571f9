//! SVG as drawing, plotting and office programs write it (`svg/`). The expected lengths are
//! computed from the shapes' own numbers, not from the reader's output.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::f64::consts::PI;
use std::path::Path;

use steadyhand_design::{Design, DesignCaps, load};

const PX_MM: f64 = 25.4 / 96.0;
const PT_MM: f64 = 25.4 / 72.0;

fn read(name: &str) -> Design {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/svg");
    let bytes = std::fs::read(folder.join(name)).unwrap();
    load(name, &bytes, &DesignCaps::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn svg_of_many_programs_draws_its_shapes() {
    let rows: [(&str, usize, &[f64]); 22] = [
        (
            "affinity.svg",
            3,
            &[(2.0 * f64::hypot(84.0, 132.0) + 168.0) * PX_MM],
        ),
        ("cairo.svg", 3, &[100.0 * PT_MM]),
        ("corel.svg", 2, &[220.0, 30.0 * PI]),
        (
            "d3_observable.svg",
            7,
            &[6.0 * PX_MM, 6.0 * PX_MM, 6.0 * PI * PX_MM],
        ),
        (
            "drawingbot.svg",
            2,
            &[f64::hypot(2.5, 4.0)
                + f64::hypot(4.5, 1.0)
                + f64::hypot(13.0, 42.0)
                + f64::hypot(50.0, 35.0)],
        ),
        ("drawio.svg", 13, &[240.0 * PX_MM, 80.0 * PI * PX_MM]),
        ("excalidraw.svg", 12, &[80.0 * PX_MM, 40.0 * PX_MM]),
        (
            "figma.svg",
            5,
            &[
                (40.0 + 19.0 * PI) * PX_MM,
                24.0 * PI * PX_MM,
                200.0 * PX_MM,
                120.0 * PX_MM,
            ],
        ),
        ("gnuplot.svg", 7, &[9.0 * PX_MM; 4]),
        ("graphviz.svg", 8, &[25.59 * PT_MM]),
        ("illustrator.svg", 4, &[81.0 * PI * PX_MM, 240.0 * PX_MM]),
        ("inkscape.svg", 3, &[168.0 + 8.0 * PI]),
        ("kicad.svg", 4, &[40.0, 30.0, 5.0 * PI, 3.0 * PI]),
        (
            "libreoffice.svg",
            10,
            &[200.0, 200.0, f64::hypot(40.0, 50.0)],
        ),
        ("matplotlib.svg", 4, &[3.5 * PT_MM, 130.0 * PT_MM]),
        ("openscad.svg", 2, &[30.0]),
        (
            "p5js.svg",
            3,
            &[300.0 * PI * PX_MM, f64::hypot(100.0, 30.0) * PX_MM],
        ),
        ("plantuml.svg", 14, &[51.0 * PX_MM, 5.0 * PX_MM]),
        ("potrace.svg", 3, &[240.0 * PT_MM]),
        ("qcad.svg", 6, &[70.0, 6.0, 6.0, 6.0]),
        ("sketch.svg", 2, &[6.0 * PI * PX_MM]),
        ("vpype.svg", 3, &[200.0, 200.0 * PX_MM]),
    ];
    for (name, count, lengths_mm) in rows {
        let design = read(name);
        assert_eq!(design.strokes.len(), count, "{name}");
        let mut found: Vec<f64> = design
            .strokes
            .iter()
            .map(|stroke| stroke.length_mm())
            .collect();
        for mm in lengths_mm {
            let is_near = |length: &f64| (length - mm).abs() < 0.1;
            let at = found.iter().position(is_near);
            found.remove(at.unwrap_or_else(|| panic!("{name}: no {mm} mm in {found:?}")));
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/svg");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), rows.len());
}

#[test]
fn what_a_program_requests_but_does_not_get_is_noted() {
    for (name, notes) in [
        (
            "inkscape.svg",
            &["layer `%guides` is not drawn because its name begins with %: 1 elements"][..],
        ),
        (
            "figma.svg",
            &[
                "g on line 7: its filter is not drawn: a pen draws only lines",
                "1 white area without an outline, left out",
                "2 filled areas drawn as an outline: `--fill hatch` fills",
            ],
        ),
        (
            "plantuml.svg",
            &[
                "text on line 1: its `textLength` is ignored: the letters keep their own widths",
                "2 filled areas drawn as an outline: `--fill hatch` fills",
                "text is drawn in single-line letters, not in its font",
            ],
        ),
        (
            "illustrator.svg",
            &["1 filled area drawn as an outline: `--fill hatch` fills"],
        ),
        (
            "drawio.svg",
            &[
                "1 filled area drawn as an outline: `--fill hatch` fills",
                "text is drawn in single-line letters, not in its font",
            ],
        ),
    ] {
        assert_eq!(read(name).notes, notes, "{name}");
    }
}

#[test]
fn line_ends_and_comments_change_no_stroke() {
    for name in ["inkscape.svg", "matplotlib.svg", "qcad.svg", "drawio.svg"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/svg");
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let points = |text: &str| {
            let design = load(name, text.as_bytes(), &DesignCaps::default()).unwrap();
            design
                .strokes
                .into_iter()
                .map(|s| s.points_mm)
                .collect::<Vec<_>>()
        };
        let before = points(&text);
        let unix = text.replace("\r\n", "\n");
        for variant in [
            unix.replace('\n', "\r\n"),
            unix.replace("</g>", "<!-- <path d='M0 0h9'/> --></g>\n\n"),
        ] {
            assert_eq!(points(&variant), before, "{name}");
        }
    }
}

/// Language models write an element alone, and values without quotes.
#[test]
fn bare_elements_and_unquoted_values_are_drawn_whole_and_noted() {
    let whole = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><circle cx="5" cy="5" r="3" fill="none" stroke="black"/></svg>"#;
    let read = |text: &str| {
        let design = load("a.svg", text.as_bytes(), &DesignCaps::default());
        design.unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    let expected = read(whole);
    for (text, wrapped, quoted) in [
        (
            r#"<circle cx="5" cy="5" r="3" fill="none" stroke="black"/>"#,
            true,
            false,
        ),
        (
            "<circle cx=5 cy=5 r=3 fill=none stroke=black />",
            true,
            true,
        ),
        (
            "<?xml version=\"1.0\"?>\n<g fill='none' stroke='black'><circle cx='5' cy='5' r='3'/></g>",
            true,
            false,
        ),
        (
            "<svg viewBox=\"0 0 20 20\"><circle cx=5 cy=5 r=3 fill=none stroke=black/></svg>",
            false,
            true,
        ),
    ] {
        let design = read(text);
        assert_eq!(design.strokes.len(), expected.strokes.len(), "{text}");
        let [(low, high), (known_low, known_high)] = [&design, &expected].map(|design| {
            let xs = design.strokes.iter().flat_map(|stroke| &stroke.points_mm);
            xs.fold((f64::MAX, f64::MIN), |(low, high), at| {
                (low.min(at[0]), high.max(at[0]))
            })
        });
        assert!(
            ((high - low) - (known_high - known_low)).abs() < 0.05,
            "{text}"
        );
        let has = |word: &str| design.notes.iter().any(|note| note.contains(word));
        assert_eq!(
            (has("had no <svg>"), has("unquoted")),
            (wrapped, quoted),
            "{text}: {:?}",
            design.notes
        );
    }
    assert!(load("a.svg", b"<html><body/></html>", &DesignCaps::default()).is_err());
}
