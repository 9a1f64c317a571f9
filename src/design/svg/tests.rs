//! Tests of reading SVG, and of refusals.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use proptest::prelude::*;

use super::super::{
    AreaFill, Design, DesignCaps, DesignError, DesignStroke, ReadOptions, load, load_with,
};

pub(super) fn read(body: &str) -> Result<Design, DesignError> {
    let text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
        xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape"
        width="100mm" height="50mm" viewBox="0 0 100 50">{body}</svg>"#
    );
    load("a.svg", text.as_bytes(), &DesignCaps::default())
}

pub(super) fn only(body: &str) -> DesignStroke {
    let design = read(body).unwrap_or_else(|error| panic!("{body}: {error}"));
    assert_eq!(design.strokes.len(), 1, "{body}: {:?}", design.strokes);
    design.strokes[0].clone()
}

pub(super) fn near(found: &[[f64; 2]], expected: &[[f64; 2]]) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a[0] - b[0]).hypot(a[1] - b[1]) < 1e-4)
}

#[test]
fn the_page_comes_from_size_and_view_box() {
    for (attributes, page) in [
        (r#"width="100mm" height="50mm""#, [100.0, 50.0]),
        (r#"width="4in" height="2.54cm""#, [101.6, 25.4]),
        (r#"width="96" height="48px""#, [25.4, 12.7]),
        (r#"viewBox="0 0 192 96""#, [50.8, 25.4]),
        (
            r#"width="60mm" height="60mm" viewBox="0 0 24 24""#,
            [60.0, 60.0],
        ),
    ] {
        let text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" {attributes}><path stroke="red" d="M0 0h5"/></svg>"#
        );
        let design = load("a.svg", text.as_bytes(), &DesignCaps::default()).unwrap();
        for (found, expected) in design.page_mm.iter().zip(page) {
            assert!((found - expected).abs() < 1e-4, "{attributes}: {found}");
        }
    }
}

#[test]
fn y_points_up_from_the_lower_left_corner() {
    let stroke = only(r#"<line x1="0" y1="50" x2="10" y2="45" stroke="black"/>"#);
    assert!(near(&stroke.points_mm, &[[0.0, 0.0], [10.0, 5.0]]));
}

#[test]
fn every_shape_has_its_length() {
    let round = std::f64::consts::TAU * 10.0;
    for (body, length) in [
        (r#"<rect x="5" y="5" width="20" height="10"/>"#, 60.0),
        (
            r#"<rect x="5" y="5" width="40" height="30" rx="10"/>"#,
            60.0 + round,
        ),
        (r#"<circle cx="20" cy="20" r="10"/>"#, round),
        (r#"<ellipse cx="20" cy="20" rx="10" ry="10"/>"#, round),
        (r#"<line x1="0" y1="0" x2="3" y2="4"/>"#, 5.0),
        (r#"<polyline points="0,0 3,4 3,10"/>"#, 11.0),
        (r#"<polygon points="0,0 3,0 3,4"/>"#, 12.0),
        (r#"<path d="M10 20a10 10 0 0 1 20 0"/>"#, round / 2.0),
        (r#"<path d="M0 0h10v10h-10z"/>"#, 40.0),
        (r#"<path d="M0 0q0 0 10 0t10 0"/>"#, 20.0),
    ] {
        let stroke = only(&format!(r#"<g fill="none" stroke="black">{body}</g>"#));
        let share = (stroke.length_mm() - length).abs() / length;
        assert!(share < 0.001, "{body}: {} {length}", stroke.length_mm());
    }
}

#[test]
fn transforms_groups_and_uses_are_resolved() {
    let stroke = only(
        r##"<defs><path id="a" d="M0 0h1"/></defs>
        <g transform="translate(10 40) scale(2)" stroke="#c0392b"><use href="#a" x="3" y="-2"/></g>"##,
    );
    assert!(near(&stroke.points_mm, &[[16.0, 14.0], [18.0, 14.0]]));
    assert_eq!(stroke.colour, Some([0xc0, 0x39, 0x2b]));
}

#[test]
fn areas_are_outlined_and_paper_is_not() {
    let stroke = only(r##"<path id="leaf" fill="#00ff00" d="M0 0L3 0L3 4"/>"##);
    assert!((stroke.length_mm() - 12.0).abs() < 1e-4);
    assert_eq!(stroke.colour, Some([0, 255, 0]));
    assert_eq!(stroke.source, "`leaf`");
    let rest = r#"<path d="M0 0h1" stroke="blue"/>"#;
    for unseen in [
        r#"<rect width="9" height="9" fill="white"/>"#,
        r#"<rect width="9" height="9" fill="none"/>"#,
        r#"<g display="none"><rect width="9" height="9"/></g>"#,
        r#"<rect width="9" height="9" visibility="hidden"/>"#,
        r#"<g opacity="0"><rect width="9" height="9"/></g>"#,
        r#"<rect width="9" height="9" fill-opacity="0"/>"#,
        r#"<defs><rect width="9" height="9"/></defs>"#,
    ] {
        let length = only(&format!("{unseen}{rest}")).length_mm();
        assert!((length - 1.0).abs() < 1e-6, "{unseen}: {length}");
        assert!(matches!(read(unseen), Err(DesignError::Empty { .. })));
    }
}

#[test]
fn a_gradient_that_begins_in_white_is_no_paper() {
    let gradient = r##"<defs><linearGradient id="g"><stop stop-color="white"/><stop offset="1"/></linearGradient></defs>"##;
    for body in [
        r#"<path fill="none" stroke="url(#g)" d="M0 0L3 4"/>"#,
        r#"<path fill="url(#g)" d="M0 0L3 0L3 4"/>"#,
    ] {
        let stroke = only(&format!("{gradient}{body}"));
        assert!(!stroke.is_paper_coloured, "{body}");
    }
    let white = only(r#"<path fill="none" stroke="white" d="M0 0L3 4"/>"#);
    assert!(white.is_paper_coloured);
}

#[test]
fn styles_reach_shapes_by_class() {
    let stroke =
        only("<style>.ink { stroke: #1a1a2e; fill: none }</style><path class='ink' d='M0 0h5'/>");
    assert_eq!(stroke.colour, Some([0x1a, 0x1a, 0x2e]));
}

#[test]
fn layers_name_pens() {
    for (label, pen) in [
        ("2", Some(2)),
        ("1-red", Some(1)),
        ("pen 3", Some(3)),
        ("red", None),
    ] {
        let stroke = only(&format!(
            r#"<g id="layer9" inkscape:groupmode="layer" inkscape:label="{label}">
            <path stroke="red" d="M0 0h5"/></g>"#
        ));
        assert_eq!(stroke.pen, pen, "{label}");
        assert_eq!(stroke.layer.as_deref(), Some(label));
        assert_eq!(stroke.source, format!("path 1 in `{label}`"));
        let nameless = only(&format!(
            r#"<g inkscape:groupmode="layer" inkscape:label="{label}"><path stroke="red" d="M0 0h5"/></g>"#
        ));
        assert_eq!(nameless, stroke, "without an id");
        let group = only(&format!(
            r#"<g id="g9" inkscape:label="{label}"><path stroke="red" d="M0 0h5"/></g>"#
        ));
        assert_eq!(
            (group.pen, group.layer),
            (None, None),
            "a group is no layer"
        );
    }
}

/// A layer with one line of this length.
fn layer(label: &str, mm: u8) -> String {
    format!(
        r#"<g inkscape:groupmode="layer" inkscape:label="{label}" style="display:inline">
        <path stroke="red" d="M0 0h{mm}"/></g>"#
    )
}

#[test]
fn layers_are_drawn_by_their_numbers_and_then_as_in_the_file() {
    let body = layer("frame", 1)
        + &layer("10 blue", 2)
        + &layer("2 red", 3)
        + &layer("!2 gold", 4)
        + &layer("text", 5);
    let design = read(&body).unwrap();
    let drawn: Vec<_> = design
        .strokes
        .iter()
        .map(|s| {
            (
                s.layer.as_deref().unwrap(),
                s.length_mm().round(),
                s.pause_before,
            )
        })
        .collect();
    assert_eq!(
        drawn,
        [
            ("2 red", 3.0, false),
            ("!2 gold", 4.0, true),
            ("10 blue", 2.0, false),
            ("frame", 1.0, false),
            ("text", 5.0, false),
        ]
    );
    let pausing = design.strokes.iter().find(|stroke| stroke.pause_before);
    let place = pausing.map(DesignStroke::place_text);
    assert_eq!(place.as_deref(), Some("layer `!2 gold`"));
}

#[test]
fn only_the_first_stroke_of_a_layer_that_pauses_pauses() {
    let empty = r#"<g id="e" inkscape:groupmode="layer" inkscape:label="!empty"/>"#;
    let two = r#"<g id="t" inkscape:groupmode="layer" inkscape:label="!1">
        <path stroke="red" d="M0 0h5M0 9h5"/></g><path stroke="red" d="M0 5h5"/>"#;
    let design = read(&(empty.to_owned() + two)).unwrap();
    let pauses: Vec<_> = design.strokes.iter().map(|s| s.pause_before).collect();
    assert_eq!(pauses, [true, false, false]);
}

#[test]
fn a_layer_with_a_percent_sign_is_omitted_whatever_it_contains() {
    let left_out = r#"<g inkscape:groupmode="layer" inkscape:label="% guides" style="display:inline">
        <path stroke="red" d="M0 0h50"/><image href="a.png" width="9" height="9"/><text>漢</text></g>"#;
    let design = read(&(left_out.to_owned() + &layer("1", 5))).unwrap();
    assert_eq!(design.strokes.len(), 1);
    assert_eq!(
        design.notes,
        ["layer `% guides` is not drawn because its name begins with %: 3 elements"]
    );
    assert!(matches!(read(left_out), Err(DesignError::Empty { .. })));
}

#[test]
fn layers_note_what_they_do_not_get() {
    let error = read(&layer("0 base", 5)).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "found pen 0 in the layer's name `0 base`; accepted: 1 for the first pen and 2 for the next: pens count from 1"
        ),
        "{error}"
    );
    let design = read(&layer("1 +S25", 5)).unwrap();
    assert_eq!(
        design.notes,
        ["layer `1 +S25`: speed, height and delay in a layer's name are ignored"]
    );
}

#[test]
fn pictures_are_left_out_on_request() {
    let body = r#"<image id="photo" href="a.png" width="9" height="9"/><image href="b.png" width="9" height="9"/>
        <image href="c.png" width="9" height="9"/><image href="d.png" width="9" height="9"/><path stroke="red" d="M0 0h5"/>"#;
    let pattern = r##"<pattern id="p" width="1" height="1"><use href="#a"/></pattern><image id="a" href="a.png"
        width="9" height="9"/><rect width="9" height="9" fill="url(#p)"/>"##;
    let error = read(pattern).unwrap_err().to_string();
    assert!(error.contains("of pixels"), "{error}");
    let error = read(body).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "image `photo` on line 3: a picture made of pixels (one of 4) cannot be drawn. Next: "
        ) && error.contains("--skip-images"),
        "{error}"
    );
    let text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="100mm" height="50mm" viewBox="0 0 100 50">{body}</svg>"#
    );
    let options = ReadOptions {
        skip_images: true,
        ..ReadOptions::default()
    };
    let design = load_with("a.svg", text.as_bytes(), &DesignCaps::default(), options).unwrap();
    assert_eq!(design.strokes.len(), 1);
    assert_eq!(
        design.notes,
        [
            "4 pictures made of pixels are left out: image `photo` on line 1, image on line 1, image on line 2 and 1 more"
        ]
    );
}

#[test]
fn dashes_are_cut() {
    let design =
        read(r#"<path stroke="black" stroke-dasharray="3 1" transform="scale(2)" d="M0 0h20"/>"#)
            .unwrap();
    assert_eq!(design.strokes.len(), 5);
    assert!(
        design
            .strokes
            .iter()
            .all(|s| (s.length_mm() - 6.0).abs() < 1e-4)
    );
}

#[test]
fn dashes_are_measured_before_the_transform() {
    for (body, count, mm) in [
        (r#"d="M0 5h20" transform="scale(4 1)""#, 7, 8.0),
        (r#"d="M5 0v20" transform="scale(4 1)""#, 7, 2.0),
        (
            r#"d="M5 0v20" transform="rotate(30) skewX(45)""#,
            7,
            2.0 * f64::sqrt(2.0),
        ),
        (r#"d="M0 5h20" transform="scale(-2 2)""#, 7, 4.0),
    ] {
        let body = format!(r#"<path stroke="red" stroke-dasharray="2 1" {body}/>"#);
        let design = read(&body).unwrap();
        assert_eq!(design.strokes.len(), count, "{body}");
        let first = design.strokes[0].length_mm();
        assert!((first - mm).abs() < 1e-3, "{body}: {first}");
    }
}

#[test]
fn a_path_without_length_is_a_dot() {
    for body in [
        r#"<path stroke="black" stroke-linecap="round" d="M5 5h0"/>"#,
        r#"<path stroke="black" stroke-linecap="round" d="M5 5z"/>"#,
        r#"<path stroke="black" stroke-linecap="round" d="M5 5h.000001"/>"#,
    ] {
        assert!(
            (only(body).length_mm() - super::super::DOT_MM).abs() < 1e-9,
            "{body}"
        );
    }
}

#[test]
fn text_becomes_single_line_letters() {
    let design = read(r#"<text x="10" y="40" font-size="10" fill="navy">H</text>"#).unwrap();
    assert_eq!(design.strokes.len(), 3);
    let stem = &design.strokes[0];
    assert!(
        (stem.length_mm() - 7.0).abs() < 1e-3,
        "{}",
        stem.length_mm()
    );
    assert!(near(&stem.points_mm, &[[10.0, 10.0], [10.0, 17.0]]) || stem.points_mm[0][1] > 16.9);
    assert_eq!(stem.colour, Some([0, 0, 128]));
    assert_eq!(stem.source, "text");
}

#[test]
fn text_follows_its_attributes() {
    let left = |body: &str| {
        let design = read(body).unwrap_or_else(|error| panic!("{body}: {error}"));
        let all = design.strokes.iter().flat_map(|s| &s.points_mm);
        base::plane::bounds(all).unwrap()
    };
    let (start, end) = left(r#"<text x="50" y="25" font-size="8">HIH</text>"#);
    let width = end[0] - start[0];
    assert!((start[0] - 50.0).abs() < 1e-3 && (start[1] - 25.0).abs() < 1e-3);
    let (low, _) = left(r#"<g font-size="8"><text x="50" y="25" text-anchor="end">HIH</text></g>"#);
    assert!((low[0] - (50.0 - width)).abs() < 1e-3, "{low:?}");
    let (low, high) =
        left(r#"<g style="font-size:8px;text-anchor:middle"><text x="50" y="25">HIH</text></g>"#);
    assert!((low[0] + high[0] - 100.0).abs() < 1e-3, "{low:?} {high:?}");
    let (low, _) = left(
        r#"<text font-size="8" xml:space="preserve"><tspan x="20" y="10">H</tspan><tspan x="20" dy="1.5em">H</tspan></text>"#,
    );
    assert!((low[1] - 28.0).abs() < 1e-3, "{low:?}");
    let (low, high) =
        left(r#"<text transform="translate(10 20) rotate(90)" font-size="10">I</text>"#);
    assert!((high[0] - low[0] - 7.0).abs() < 1e-3, "{low:?} {high:?}");
}

#[test]
fn clip_paths_cut() {
    for body in [
        r##"<clipPath id="c"><rect x="10" y="10" width="20" height="20"/></clipPath>
        <g clip-path="url(#c)"><path stroke="red" d="M0 20h100"/></g>"##,
        r##"<clipPath id="c" transform="translate(10 10)"><rect width="15" height="20"/><rect x="10" width="10" height="20"/></clipPath>
        <path clip-path="url(#c)" stroke="red" d="M0 20h100"/>"##,
        r##"<g transform="translate(10 10)"><clipPath id="c"><circle cx="10" cy="10" r="10"/></clipPath>
        <path clip-path="url(#c)" stroke="red" d="M-10 10h100"/></g>"##,
        r##"<svg x="10" y="10" width="20" height="20"><path stroke="red" d="M-10 10h100"/></svg>"##,
    ] {
        let stroke = only(body);
        assert!(
            (stroke.length_mm() - 20.0).abs() < 0.01,
            "{body} {}",
            stroke.length_mm()
        );
        assert!((stroke.points_mm[0][0] - 10.0).abs() < 0.01);
    }
}

#[test]
fn a_frame_on_the_edges_of_a_clip_is_complete() {
    for body in [
        r##"<symbol id="s" viewBox="0 0 10 10"><path d="M0 0H10V10H0Z"/></symbol>
        <use href="#s" x="5" y="5" width="20" height="20"/>"##,
        r#"<svg x="5.3" y="5.7" width="20" height="20"><rect width="20" height="20"/></svg>"#,
        r##"<clipPath id="c"><rect x="5.1" y="5.1" width="20" height="20"/></clipPath>
        <g clip-path="url(#c)"><rect x="5.1" y="5.1" width="20" height="20"/></g>"##,
        r##"<clipPath id="c"><rect x="7" y="7" width="20" height="20" transform="rotate(30 9 9)"/></clipPath>
        <g clip-path="url(#c)"><rect x="7" y="7" width="20" height="20" transform="rotate(30 9 9)"/></g>"##,
    ] {
        let design = read(&format!(r#"<g fill="none" stroke="red">{body}</g>"#)).unwrap();
        let length: f64 = design.strokes.iter().map(DesignStroke::length_mm).sum();
        assert!((length - 80.0).abs() < 0.01, "{body} {:?}", design.strokes);
    }
    let dot = r##"<clipPath id="c"><rect width="20" height="20"/></clipPath>
        <path clip-path="url(#c)" stroke="red" stroke-linecap="round" d="M5 5z"/>"##;
    assert_eq!(read(dot).unwrap().strokes.len(), 1);
}

/// The edge of an area is its clip's where that cuts it: once, without seams, and never along a line
/// that its author drew.
#[test]
fn an_area_ends_where_its_clip_cuts_it() {
    let circle = r##"<clipPath id="c"><circle cx="30" cy="30" r="10"/></clipPath>"##;
    let abutting = r##"<clipPath id="c"><rect x="20" y="20" width="10" height="20"/><rect x="30" y="20" width="10" height="20"/></clipPath>"##;
    let ring = r##"<clipPath id="c"><path clip-rule="evenodd" d="M0 0h90v90h-90zM20 20h10v10h-10z"/></clipPath>"##;
    let large = r##"<rect x="5" y="5" width="50" height="50" clip-path="url(#c)"/>"##;
    let round = std::f64::consts::TAU * 10.0;
    for (clip, body, length_mm) in [
        (circle, large.to_owned(), round),
        (
            circle,
            large.replace("<rect", r#"<rect stroke="red""#),
            round,
        ),
        (
            circle,
            large.replace(r#"width="50""#, r#"width="25""#),
            round / 2.0 + 20.0,
        ),
        (
            circle,
            format!(r##"<g clip-path="url(#c)">{large}</g>"##),
            round,
        ),
        (
            circle,
            r##"<circle cx="30" cy="30" r="10" clip-path="url(#c)"/>"##.to_owned(),
            round,
        ),
        (abutting, large.to_owned(), 80.0),
        (ring, large.to_owned(), 240.0),
        (
            abutting,
            r##"<rect x="5" y="22" width="50" height="5" stroke="red" clip-path="url(#c)"/>"##
                .to_owned(),
            40.0,
        ),
    ] {
        let design = read(&format!("{clip}{body}")).unwrap();
        let length: f64 = design.strokes.iter().map(DesignStroke::length_mm).sum();
        assert!(
            (length - length_mm).abs() < 0.1,
            "{clip}{body}: {length} for {length_mm}"
        );
    }
    let elsewhere = large.replace(r#"x="5""#, r#"x="45""#);
    assert!(read(&format!("{circle}{elsewhere}")).is_err());
}

/// A line behind a white square, which a later line crosses in front; the second layer is drawn first.
#[test]
fn lines_behind_filled_areas_are_taken_away_on_request() {
    let read = |body: &str, hide: bool| {
        let text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" width="40mm" height="40mm" viewBox="0 0 40 40" fill="none" stroke="black">{body}</svg>"#
        );
        let options = ReadOptions {
            hide,
            ..ReadOptions::default()
        };
        let caps = DesignCaps::default();
        let design = load_with("a.svg", text.as_bytes(), &caps, options).unwrap();
        let lengths = design.strokes.iter().map(DesignStroke::length_mm);
        lengths.sum::<f64>()
    };
    let line = r#"<path d="M0 20H40"/>"#;
    let square = |more: &str| format!(r#"<rect x="10" y="10" width="20" height="20" {more}/>"#);
    let layer = |name: &str, body: &str| {
        format!(r#"<g inkscape:groupmode="layer" inkscape:label="{name}">{body}</g>"#)
    };
    for (body, visible_mm) in [
        (format!("{line}{}", square(r#"fill="white""#)), 100.0),
        (
            format!("{line}{}", square(r#"fill="white" stroke="none""#)),
            20.0,
        ),
        (format!("{}{line}", square(r#"fill="white""#)), 120.0),
        (
            format!("{line}{}", square(r#"fill="red" fill-opacity="0.5""#)),
            120.0,
        ),
        (format!("{line}{}", square("")), 120.0),
        // On the edge of an area a line is not behind it.
        (
            format!(
                r#"<path d="M0 10H40"/>{}"#,
                square(r#"fill="white" stroke="none""#)
            ),
            40.0,
        ),
        // Layers are drawn by number, and lie as the file has them.
        (
            layer("2", line) + &layer("1", &square(r#"fill="white""#)),
            100.0,
        ),
    ] {
        let found_mm = read(&body, true);
        assert!((found_mm - visible_mm).abs() < 0.05, "{body}: {found_mm}");
        assert!(read(&body, false) >= found_mm, "{body}");
    }
}

fn filled(fill: AreaFill) -> ReadOptions {
    ReadOptions {
        fill,
        ..ReadOptions::default()
    }
}

#[test]
fn areas_are_filled_on_request() {
    let text = r##"<svg xmlns="http://www.w3.org/2000/svg" width="40mm" height="40mm" viewBox="0 0 40 40">
    <rect x="10" y="10" width="20" height="20" fill="#00ff00" stroke="#ff0000"/></svg>"##;
    let fill = AreaFill::Parallel {
        spacing_mm: 1.0,
        angle_deg: 0.0,
    };
    let design = load_with(
        "a.svg",
        text.as_bytes(),
        &DesignCaps::default(),
        filled(fill),
    )
    .unwrap();
    assert_eq!(design.strokes.len(), 21);
    assert_eq!(design.strokes[0].colour, Some([255, 0, 0]));
    let hatch = &design.strokes[1..];
    assert!(hatch.iter().all(|s| s.colour == Some([0, 255, 0])));
    assert!(hatch.iter().all(|s| (s.length_mm() - 20.0).abs() < 1e-3));
    let fine = AreaFill::Parallel {
        spacing_mm: 0.0,
        angle_deg: 0.0,
    };
    assert!(
        load_with(
            "a.svg",
            text.as_bytes(),
            &DesignCaps::default(),
            filled(fine)
        )
        .is_ok()
    );
}

#[test]
fn refuses_what_cannot_be_drawn_by_name() {
    for (body, message) in [
        (
            r#"<image href="a.png" width="9" height="9"/>"#,
            "image on line 3: a picture made of pixels",
        ),
        (
            r##"<mask id="m"><rect width="5" height="5" fill="#fff"/></mask><g mask="url(#m)"><rect width="9" height="9"/></g>"##,
            "g on line 3: a mask",
        ),
        (
            r##"<mask id="m"><rect width="5" height="5" fill="#fff"/></mask>
            <rect id="r" mask="url(#m)" width="9" height="9"/>"##,
            "rect `r` on line 4: a mask",
        ),
        (
            r##"<use id="u" href="#lost"/><path d="M0 0h9"/>"##,
            "use `u` on line 3: a `use` of `lost` (not in the file) cannot",
        ),
        (
            r##"<use xlink:href="b.svg#a"/>"##,
            "use on line 3: a `use` of another file (`b.svg#a`) cannot be drawn",
        ),
        (
            r#"<path id="p" d="M0 0h9 v"/>"#,
            "path `p` on line 3: found an early end of its path data, after `M0 0h9 v`",
        ),
        (
            "\n<path stroke='red' d='M0 0h9 x5'/>",
            "path on line 4: found `x5` in its path data at character 8",
        ),
        (
            r#"<polygon points="0,0 5,5 9"/>"#,
            "polygon on line 3: found an early end of its points",
        ),
        (
            r#"<g transform="rotate(45"><path d="M0 0h9"/></g>"#,
            "g on line 3: found an early end of its transform, after `rotate(45`",
        ),
        (
            r#"<path style="transform:rotate(1turn)" d="M0 0h9"/>"#,
            "path on line 3: found `turn)` in its transform",
        ),
        (
            r#"<svg viewBox="0 0 40"><path stroke="red" d="M0 0h9"/></svg>"#,
            "svg on line 3: found viewBox = `0 0 40`; accepted: four numbers",
        ),
        (
            r##"<symbol id="s" viewBox="0 0 0 9"><path d="M0 0h9"/></symbol><use href="#s"/>"##,
            "symbol `s` on line 3: found viewBox = `0 0 0 9`",
        ),
        (
            r#"<path stroke="red" stroke-dasharray="2 1 x" d="M0 0h9"/>"#,
            "path on line 3: found stroke-dasharray = `2 1 x`; accepted: lengths",
        ),
        (
            r#"<circle r="NaN"/>"#,
            "circle on line 3: found r = `NaN`; accepted: a number",
        ),
        (
            r##"<path clip-path="url(#lost)" d="M0 0h9"/>"##,
            "path on line 3: a clip-path `lost` (not in the file)",
        ),
        (
            r#"<g stroke-dasharray="1 1"><path pathLength="4" d="M0 0h9"/></g>"#,
            "path on line 3: a dashed line with a `pathLength` cannot be drawn",
        ),
        (
            r#"<text id="t">漢</text>"#,
            "text `t` on line 3: character 1 is `漢`",
        ),
        (
            r##"<path id="p" d="M0 0h9"/><text><textPath href="#p">hi</textPath></text>"##,
            "textPath on line",
        ),
        (
            r#"<text rotate="20">hi</text>"#,
            "text on line 3: text with `rotate`",
        ),
        (
            "<flowRoot id='f'><flowPara>hi</flowPara></flowRoot>",
            "flowRoot `f` on line 3: flowing text",
        ),
        (
            "<foreignObject><p>hi</p></foreignObject>",
            "foreignObject on line 3: flowing text",
        ),
        (
            r##"<pattern id="p" width="2" height="2"><path d="M0 0l2 2" stroke="red"/></pattern>
            <pattern id="q" href="#p"/><g fill="url(#q)"><rect width="9" height="9"/></g>"##,
            "g on line 4: a fill with pattern `q` cannot be drawn",
        ),
        ("", "the drawing has no line to draw"),
    ] {
        let error = read(body).unwrap_err().to_string();
        assert!(error.starts_with(message), "{body}: {error}");
    }
    for (text, message) in [
        ("<svg", "line 1 column"),
        ("<html/>", "the root element: found `html`"),
        (
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="0" height="5"/>"#,
            "the root element: found no usable size",
        ),
    ] {
        let error = load("a.svg", text.as_bytes(), &DesignCaps::default()).unwrap_err();
        assert!(error.to_string().starts_with(message), "{text}: {error}");
    }
}

#[test]
fn what_changes_no_line_is_noted_with_its_place() {
    let line = r#"<path stroke="red" d="M0 0h5"/>"#;
    for (body, note) in [
        (
            r#"<rect id="r" width="-5" height="9"/>"#,
            "rect `r` on line 3 is not drawn as written: its width is `-5` and must not be below 0",
        ),
        (
            r##"<filter id="f"><feGaussianBlur/></filter><g filter="url(#f)"><path d="M0 0h1"/></g>"##,
            "g on line 3: its filter is not drawn: a pen draws only lines",
        ),
        (
            "<crcle r='5'/>",
            "crcle on line 3 is not drawn: the element is unknown",
        ),
        (
            r#"<text textLength="30"/>"#,
            "text on line 3: its `textLength` is ignored: the letters keep their own widths",
        ),
        (
            "<animate attributeName='x'/>",
            "animate on line 3 is not drawn: the drawing shows the state without animation",
        ),
        (
            r##"<path id="p" fill="url(#lost)" stroke="red" d="M0 0h1"/>"##,
            "path `p` on line 3: its fill `lost` is not in the file and is not drawn",
        ),
        (
            "<style>@import 'other.css';</style>",
            "style sheets in other files are not read: put their rules into the drawing",
        ),
    ] {
        let design = read(&format!("{body}{line}")).unwrap_or_else(|e| panic!("{body}: {e}"));
        assert_eq!(design.notes, [note], "{body}");
    }
    let many = "<crcle/>".repeat(50) + line;
    let notes = read(&many).unwrap().notes;
    assert_eq!(notes.last().unwrap(), "and 30 more notes");
}

#[test]
fn what_is_never_drawn_is_not_noted() {
    for harmless in [
        "<title>a</title><desc>b</desc><metadata><x xmlns='http://purl.org/dc'/></metadata>",
        "<sodipodi:namedview xmlns:sodipodi='http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd'/>",
        r##"<filter id="f"><feGaussianBlur/></filter><defs><linearGradient id="l"/></defs>"##,
        r#"<path d=""/><path/><g/><script>1</script>"#,
        "<!-- a comment --><flowRoot/>",
        r#"<switch><foreignObject requiredExtensions="x"><p xmlns="http://www.w3.org/1999/xhtml">hi</p></foreignObject><g/></switch>"#,
        r#"<switch><g requiredFeatures="http://www.w3.org/TR/SVG11/feature#Extensibility"/><text>no</text></switch>"#,
    ] {
        let body = format!(r#"{harmless}<path stroke="red" d="M0 0h5"/>"#);
        let design = read(&body).unwrap_or_else(|error| panic!("{harmless}: {error}"));
        assert_eq!(design.notes, Vec::<String>::new(), "{harmless}");
        assert_eq!(design.strokes.len(), 1);
    }
}

#[test]
fn a_size_on_paper_is_one_in_units_of_paper() {
    let read = |attributes: &str| {
        let text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" {attributes}><path stroke="red" d="M0 0h5"/></svg>"#
        );
        load("a.svg", text.as_bytes(), &DesignCaps::default()).unwrap()
    };
    for (side, states, mm) in [
        ("50mm", true, 50.0),
        ("5cm", true, 50.0),
        ("2in", true, 50.8),
        ("144pt", true, 50.8),
        ("12pc", true, 50.8),
        ("200Q", true, 50.0),
        ("192px", false, 50.8),
        ("192", false, 50.8),
    ] {
        let box_of = r#"viewBox="0 0 20 10""#;
        for attributes in [
            format!(r#"width="{side}" height="{side}""#),
            format!(r#"width="{side}" {box_of}"#),
        ] {
            let design = read(&attributes);
            assert_eq!(design.states_lengths, states, "{attributes}");
            assert!(
                (design.page_mm[0] - mm).abs() < 1e-3,
                "{attributes}: {:?}",
                design.page_mm
            );
        }
    }
    assert!(!read(r#"viewBox="0 0 20 10""#).states_lengths);
    assert!(!read(r#"width="100%" height="50mm" viewBox="0 0 20 10""#).states_lengths);
}

#[test]
fn quarter_millimetres_are_lengths() {
    let stroke = only(r#"<line x1="0Q" y1="0" x2="38.1Q" y2="0" stroke="red"/>"#);
    // 36 user units of a millimetre each.
    assert!(
        (stroke.length_mm() - 36.0).abs() < 1e-3,
        "{}",
        stroke.length_mm()
    );
}

#[test]
fn what_single_precision_would_distort_is_refused() {
    let fix = "move the drawing to the origin";
    for (body, place) in [
        (
            r#"<g transform="translate(-500000 -5400000)"><path id="p" stroke="red" d="M500010.1 5400010.4l5.1 5.2"/></g>"#,
            "`p`",
        ),
        (
            r#"<g transform="translate(5400000)"><g transform="translate(-5399990)"><path stroke="red" d="M0 0h5"/></g></g>"#,
            "path 1",
        ),
        (
            r#"<svg viewBox="5400000 0 40 40" width="40" height="40"><path stroke="red" d="M5400001 5h5"/></svg>"#,
            "path 1",
        ),
        (
            r##"<clipPath id="c"><rect x="5400000" width="9" height="9" transform="translate(-5400000)"/></clipPath>
        <path clip-path="url(#c)" stroke="red" d="M0 0h5"/>"##,
            "clipPath `c`",
        ),
    ] {
        let error = read(body).unwrap_err().to_string();
        assert!(
            error.starts_with(place) && error.contains(fix),
            "{body}: {error}"
        );
    }
    for near in [
        r#"<g transform="translate(-5000)"><path stroke="red" d="M5001 5h5"/></g>"#,
        r#"<g transform="scale(.0001)"><path stroke="red" d="M500000 500000h50000"/></g>"#,
        r#"<path stroke="none" fill="none" d="M5400000 0h5"/><path stroke="red" d="M5 5h5"/>"#,
    ] {
        let length = only(near).length_mm();
        assert!((length - 5.0).abs() < 0.01, "{near}: {length}");
    }
}

#[test]
fn never_opens_a_file() {
    let body = r#"<image href="/etc/passwd" width="9" height="9"/>"#;
    assert!(matches!(read(body), Err(DesignError::Unsupported { .. })));
}

/// "Ten of that, which is ten of that …".
fn nested_uses(levels: usize) -> String {
    let mut body = r#"<defs><path id="l0" d="M0 0h1"/>"#.to_owned();
    for level in 1..=levels {
        let uses = format!(r##"<use href="#l{}"/>"##, level - 1).repeat(10);
        body += &format!(r#"<g id="l{level}">{uses}</g>"#);
    }
    body + &format!(r##"</defs><use href="#l{levels}" stroke="red"/>"##)
}

#[test]
fn counts_references_before_following_them() {
    assert_eq!(read(&nested_uses(2)).unwrap().strokes.len(), 100);
    for levels in [6, 30] {
        let error = read(&nested_uses(levels)).unwrap_err();
        assert!(matches!(error, DesignError::TooMany { .. }), "{error}");
    }
    let markers = format!(
        r##"<marker id="m"><path d="M0 0h1"/></marker><path stroke="red" marker-mid="url(#m)" d="M0 0{}"/>"##,
        "h1".repeat(100_000)
    );
    assert!(matches!(read(&markers), Err(DesignError::TooMany { .. })));
    let itself = r##"<g id="a"><use href="#a"/><path stroke="red" d="M0 0h1"/></g>"##;
    assert!(read(itself).is_err());
}

#[test]
fn refuses_deep_nesting() {
    let deep = "<g>".repeat(20_000) + "<path stroke='red' d='M0 0h1'/>" + &"</g>".repeat(20_000);
    assert!(matches!(read(&deep), Err(DesignError::TooMany { .. })));
    let fine = "<g id='a'>".repeat(90) + "<path stroke='red' d='M0 0h1'/>" + &"</g>".repeat(90);
    assert_eq!(read(&fine).unwrap().strokes.len(), 1);
}

#[test]
fn caps_hold_for_points_and_strokes() {
    let caps = DesignCaps {
        points_max: 10,
        strokes_max: 3,
        ..DesignCaps::default()
    };
    let svg = |d: &str| {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path id="p" stroke="red" d="{d}"/></svg>"#
        )
    };
    let error = load(
        "a.svg",
        svg(&("M0 0".to_owned() + &"h1".repeat(20))).as_bytes(),
        &caps,
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "`p`: more than 10 points. Next: simplify the drawing"
    );
    let error = load("a.svg", svg(&"M0 0h1".repeat(4)).as_bytes(), &caps);
    assert_eq!(
        error.unwrap_err().to_string(),
        "`p`: more than 3 strokes. Next: simplify the drawing"
    );
}

const SAMPLE: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="20mm" height="1e1mm" viewBox="0 0 40 20">
<style>.a{stroke:#c0392b;stroke-dasharray:2 1}</style><defs><g id="g"><circle cx="5" cy="5" r="3"/></g></defs>
<use href="#g" x="3"/><path class="a" d="M1 1C2 9 8 9 9 1s4-4 5 0q2 2 4 0t1 1A3 3 0 1 0 20 9z"/>
<text x="2" y="18" font-size="4">Hé <tspan dy="1">lo</tspan></text><polygon points="1,2 3,4 5,6"/></svg>"##;

#[test]
fn letters_are_as_css_says() {
    let words = |text: &str| {
        let design = read(&format!(r#"<g font-size="5">{text}</g>"#)).unwrap();
        let strokes = design
            .strokes
            .into_iter()
            .flat_map(|stroke| stroke.points_mm);
        strokes.collect::<Vec<_>>()
    };
    let always = r#"<path d="M0 0h1" stroke="red"/>"#;
    for (styled, same) in [
        (
            r#"<text x="5" y="9" style="white-space: pre">a  b</text>"#,
            r#"<text x="5" y="9" xml:space="preserve">a  b</text>"#,
        ),
        (
            r#"<text x="5" y="9" xml:space="preserve" style="white-space: normal">a  b</text>"#,
            r#"<text x="5" y="9">a b</text>"#,
        ),
        (
            r#"<g style="text-transform: uppercase"><text x="5" y="9">hot tea</text></g>"#,
            r#"<text x="5" y="9">HOT TEA</text>"#,
        ),
        (
            r#"<text x="5" y="9" text-transform="capitalize">don't st<tspan>op</tspan> it</text>"#,
            r#"<text x="5" y="9">Don't St<tspan>op</tspan> It</text>"#,
        ),
        (
            r#"<text x="5" y="9" text-transform="lowercase">A<tspan style="text-transform:none">B</tspan></text>"#,
            r#"<text x="5" y="9">aB</text>"#,
        ),
        (
            r#"<text x="5" y="9">a<tspan font-size="0">b</tspan>c</text>"#,
            r#"<text x="5" y="9">a<tspan/>c</text>"#,
        ),
        (r#"<text x="5" y="9" font-size="0">b</text>"#, ""),
        (
            r#"<g font-size="0"><text x="5" y="9" font-size="2em">b</text></g>"#,
            "",
        ),
    ] {
        let case = styled;
        let styled = words(&format!("{always}{styled}"));
        let same = words(&format!("{always}{same}"));
        assert!(near(&styled, &same), "{case}: {styled:?} {same:?}");
    }
    for refused in [
        r#"<g direction="rtl"><text x="5" y="9">a</text></g>"#,
        r#"<style>text { direction: rtl }</style><text x="5" y="9">a</text>"#,
        r#"<text x="5" y="9" style="text-transform: full-width">a</text>"#,
        r#"<g style="writing-mode: vertical-rl"><text x="5" y="9">a</text></g>"#,
    ] {
        let error = read(refused).unwrap_err().to_string();
        assert!(error.contains("text into paths"), "{error}");
    }
}

#[test]
fn white_lines_are_marked_and_white_edges_of_areas_are_the_areas() {
    let white = only(r#"<path d="M0 0h5" stroke="white"/>"#);
    assert!(white.is_paper_coloured && white.points_mm.len() == 2);
    assert!(only(r#"<path d="M0 0L5 5L9 9" stroke="white"/>"#).is_paper_coloured);
    assert!(only(r#"<path d="M0 0L5 5L9 0" fill="none" stroke="white"/>"#).is_paper_coloured);
    let layered = only(
        r#"<g id="layer9" inkscape:groupmode="layer" inkscape:label="2"><path d="M0 0h5" stroke="white"/></g>"#,
    );
    assert!(!layered.is_paper_coloured);
    let slice =
        only(r##"<path fill="#00ff00" stroke="#fff" stroke-dasharray="1" d="M0 0L3 0L3 4"/>"##);
    assert_eq!(slice.colour, Some([0, 255, 0]));
    assert!((slice.length_mm() - 12.0).abs() < 1e-4);
}

proptest! {
    #[test]
    fn corrupt_bytes_are_refused_or_drawn_but_never_panic(
        changes in prop::collection::vec((0..SAMPLE.len(), any::<u8>()), 1..4),
        cut in prop::option::of(0..SAMPLE.len()),
    ) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        bytes.truncate(cut.unwrap_or(bytes.len()));
        if let Ok(design) = load("a.svg", &bytes, &DesignCaps::default()) {
            prop_assert!(design.strokes.iter().all(|s| s.points_mm.len() >= 2));
            prop_assert!(design.page_mm.iter().all(|side| *side > 0.0));
        }
    }

    #[test]
    fn changed_numbers_never_panic(
        at in 0..60_usize, number in "-?[0-9]{1,12}(\\.[0-9]{1,3})?(e-?[0-9]{1,2})?",
    ) {
        let places: Vec<_> = SAMPLE.match_indices(|c: char| c.is_ascii_digit()).collect();
        let (index, _) = places[at % places.len()];
        let text = format!("{}{number}{}", &SAMPLE[..index], &SAMPLE[index + 1..]);
        let _ = load("a.svg", text.as_bytes(), &DesignCaps::default());
    }
}
