//! Tests of reading DXF, and of refusals.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use std::f64::consts::PI;

use proptest::prelude::*;

use super::super::{Design, DesignCaps, DesignError, load};

/// Returns a file of groups given as `CODE VALUE`, separated by bars.
fn dxf(groups: &str) -> String {
    let groups = groups
        .split('|')
        .map(str::trim)
        .filter(|group| !group.is_empty());
    let lines = groups.map(|group| match group.split_once(' ') {
        Some((code, value)) => format!("{code:>3}\n{value}\n"),
        None => format!("{group:>3}\n\n"),
    });
    lines.collect()
}

fn draw(entities: &str) -> Result<Design, DesignError> {
    let text = format!(
        "0 SECTION|2 HEADER|9 $INSUNITS|70 4|0 ENDSEC|0 SECTION|2 ENTITIES|{entities}|0 ENDSEC|0 EOF"
    );
    load("a.dxf", dxf(&text).as_bytes(), &DesignCaps::default())
}

fn check(entities: &str, expected: &[f64]) {
    let design = draw(entities).unwrap_or_else(|error| panic!("{entities}: {error}"));
    let found: Vec<f64> = design.strokes.iter().map(|s| s.length_mm()).collect();
    assert_eq!(found.len(), expected.len(), "{entities}: {found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 0.05,
            "{entities}: {found} is not {expected}"
        );
    }
}

#[test]
fn every_entity_has_its_length() {
    for (entities, expected) in [
        ("0 LINE|8 0|10 1|20 1|11 4|21 5", &[5.0][..]),
        ("0 CIRCLE|8 0|10 5|20 5|40 10", &[20.0 * PI]),
        ("0 ARC|8 0|10 0|20 0|40 10|50 270|51 90", &[10.0 * PI]),
        (
            "0 ELLIPSE|8 0|10 0|20 0|11 10|21 0|40 1.0|41 0|42 6.283185307179586",
            &[20.0 * PI],
        ),
        (
            "0 LWPOLYLINE|8 0|90 3|70 1|10 0|20 0|10 3|20 0|10 3|20 4",
            &[12.0],
        ),
        // Bulges of 1 are half circles: from 0 to 10 below, and back above.
        (
            "0 LWPOLYLINE|8 0|90 2|70 1|10 0|20 0|42 1|10 10|20 0|42 1",
            &[10.0 * PI],
        ),
        (
            "0 LWPOLYLINE|8 0|90 2|70 0|10 0|20 0|42 -0.41421356237|10 10|20 10",
            &[5.0 * PI],
        ),
        (
            "0 POLYLINE|8 0|66 1|70 0|0 VERTEX|8 0|10 0|20 0|0 VERTEX|8 0|10 3|20 4|0 SEQEND|0 LINE|8 0|10 0|20 0|11 2|21 0",
            &[5.0, 2.0],
        ),
        // A cubic with its ends clamped: a straight line, and then a quarter of a circle by weights.
        (
            "0 SPLINE|8 0|71 3|40 0|40 0|40 0|40 0|40 1|40 1|40 1|40 1|10 0|20 0|10 1|20 0|10 2|20 0|10 3|20 0",
            &[3.0],
        ),
        (
            "0 SPLINE|8 0|71 2|40 0|40 0|40 0|40 1|40 1|40 1|41 1|41 0.70710678|41 1|10 10|20 0|10 10|20 10|10 0|20 10",
            &[5.0 * PI],
        ),
        (
            "0 POINT|8 0|10 5|20 5|0 LINE|8 0|10 0|20 0|11 9|21 0",
            &[0.1, 9.0],
        ),
        ("0 TEXT|8 0|10 0|20 0|40 10|1 I", &[10.0]),
    ] {
        check(entities, expected);
    }
}

#[test]
fn a_bulge_goes_to_the_right_side() {
    let design = draw("0 LWPOLYLINE|8 0|90 2|10 0|20 0|42 1|10 10|20 0").unwrap();
    let lowest = design.strokes[0]
        .points_mm
        .iter()
        .map(|p| p[1])
        .fold(f64::INFINITY, f64::min);
    // Counter-clockwise from left to right is below: the ends lie at the top of the page.
    assert!(lowest.abs() < 1e-9 && (design.strokes[0].points_mm[0][1] - 5.0).abs() < 0.05);
    let mirrored = draw("0 LWPOLYLINE|8 0|90 2|230 -1|10 0|20 0|42 1|10 -10|20 0").unwrap();
    assert!((mirrored.page_mm[0] - 10.0).abs() < 0.05);
}

#[test]
fn blocks_are_put_where_they_are_inserted() {
    let blocks = "0 SECTION|2 BLOCKS|0 BLOCK|2 B|10 1|20 1|0 LINE|8 0|10 1|20 1|11 2|21 1|0 ENDBLK|0 ENDSEC|\
         0 SECTION|2 ENTITIES|0 INSERT|8 2 red|2 B|10 0|20 0|41 3|42 3|0 INSERT|8 0|2 B|10 0|20 10|50 90|70 2|44 5|\
         0 INSERT|8 0|2 LOST|0 ENDSEC|0 EOF";
    let design = load("a.dxf", dxf(blocks).as_bytes(), &DesignCaps::default()).unwrap();
    let points: Vec<_> = design.strokes.iter().map(|s| s.points_mm.clone()).collect();
    let expected = [
        vec![[0.0, 0.0], [3.0, 0.0]],
        vec![[0.0, 10.0], [0.0, 11.0]],
        vec![[0.0, 15.0], [0.0, 16.0]],
    ];
    for (found, expected) in points.iter().flatten().zip(expected.iter().flatten()) {
        assert!(
            (found[0] - expected[0]).hypot(found[1] - expected[1]) < 1e-9,
            "{points:?}"
        );
    }
    assert_eq!(design.strokes[0].pen, Some(2));
    assert_eq!(
        design.notes,
        ["not drawn: INSERT of a block that is not in the file (1)",]
    );
}

#[test]
fn layers_give_pens_and_colours_and_may_be_off() {
    let text = "0 SECTION|2 TABLES|0 TABLE|2 LAYER|0 LAYER|2 1 outline|62 5|70 0|0 LAYER|2 off|62 -1|70 0|\
         0 LAYER|2 frozen|62 1|70 1|0 ENDTAB|0 ENDSEC|0 SECTION|2 ENTITIES|0 LINE|8 1 outline|10 0|20 0|11 5|21 0|\
         0 LINE|8 1 outline|62 1|10 0|20 0|11 5|21 0|0 LINE|8 1 outline|420 12603691|10 0|20 0|11 5|21 0|\
         0 LINE|8 off|10 0|20 0|11 5|21 0|0 LINE|8 frozen|10 0|20 0|11 5|21 0|\
         0 3DFACE|8 0|0 HATCH|8 0|0 HATCH|8 0|0 ENDSEC|0 EOF";
    let design = load("a.dxf", dxf(text).as_bytes(), &DesignCaps::default()).unwrap();
    let found: Vec<_> = design
        .strokes
        .iter()
        .map(|s| (s.pen, s.colour.unwrap()))
        .collect();
    let pen = Some(1);
    assert_eq!(
        found,
        [
            (pen, [0, 0, 255]),
            (pen, [255, 0, 0]),
            (pen, [0xc0, 0x51, 0x2b])
        ]
    );
    assert_eq!(design.strokes[0].layer.as_deref(), Some("1 outline"));
    assert_eq!(
        design.notes.last().unwrap(),
        "not drawn: 3DFACE (1), HATCH (2), entities that are hidden (2)"
    );
}

#[test]
fn names_are_the_same_in_capitals() {
    let line = |layer: &str| format!("0 LINE|8 {layer}|10 0|20 0|11 5|21 0|");
    let text = format!(
        "0 SECTION|2 TABLES|0 LAYER|2 X|62 -1|70 0|0 LAYER|2 Grün|62 3|70 0|0 ENDSEC|\
         0 SECTION|2 BLOCKS|0 BLOCK|2 Door|{}0 ENDBLK|0 ENDSEC|0 SECTION|2 ENTITIES|\
         {}{}0 INSERT|8 GRÜN|2 DOOR|10 0|20 0|0 ENDSEC|0 EOF",
        line("0"),
        line("x"),
        line("GRÜN"),
    );
    let design = load("a.dxf", dxf(&text).as_bytes(), &DesignCaps::default()).unwrap();
    let found: Vec<_> = design.strokes.iter().map(|s| s.colour).collect();
    assert_eq!(found, [Some([0, 255, 0]); 2]);
    assert_eq!(
        design.notes.last().unwrap(),
        "not drawn: entities that are hidden (1)"
    );
}

#[test]
fn colours_by_block_are_those_of_the_insert() {
    let line = |groups: &str| format!("0 LINE|{groups}|10 0|20 0|11 5|21 0|");
    let (by_block, insert) = (line("8 0|62 0"), "0 INSERT|10 0|20 0|2");
    let text = format!(
        "0 SECTION|2 TABLES|0 LAYER|2 cut|62 5|70 0|0 ENDSEC|0 SECTION|2 BLOCKS|\
         0 BLOCK|2 IN|10 0|20 0|{by_block}{own}{of_layer}0 ENDBLK|\
         0 BLOCK|2 OUT|10 0|20 0|{insert} IN|8 0|62 0|{insert} IN|8 0|62 3|0 ENDBLK|0 ENDSEC|\
         0 SECTION|2 ENTITIES|{insert} IN|8 0|62 1|{insert} IN|8 cut|{insert} IN|8 0|420 12603691|\
         {insert} OUT|8 0|62 1|{by_block}0 ENDSEC|0 EOF",
        own = line("8 0|62 6"),
        of_layer = line("8 cut"),
    );
    let design = load("a.dxf", dxf(&text).as_bytes(), &DesignCaps::default()).unwrap();
    let found: Vec<_> = design.strokes.iter().map(|s| s.colour.unwrap()).collect();
    let (red, green, blue, magenta) = ([255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 0, 255]);
    let expected: Vec<[u8; 3]> = [red, blue, [0xc0, 0x51, 0x2b], red, green]
        .into_iter()
        .flat_map(|of_insert| [of_insert, magenta, blue])
        .chain([[0, 0, 0]])
        .collect();
    assert_eq!(found, expected);
}

/// Returns a text's points relative to 50, 50; a frame of 100 by 100 keeps that point in place.
fn text_points(groups: &str) -> Vec<[f64; 2]> {
    let frame = "0 LWPOLYLINE|8 0|90 4|70 1|10 0|20 0|10 100|20 0|10 100|20 100|10 0|20 100";
    let design = draw(&format!(
        "{frame}|0 TEXT|8 0|10 50|20 50|11 50|21 50|40 10|{groups}"
    ));
    let design = design.unwrap_or_else(|error| panic!("{groups}: {error}"));
    let text = design.strokes[1..].iter().flat_map(|s| &s.points_mm);
    text.map(|[x, y]| [x - 50.0, y - 50.0]).collect()
}

#[test]
fn texts_are_aligned_at_their_points() {
    for (groups, expected) in [
        ("72 4|1 H", [-0.5, -0.5]),
        ("72 4|73 3|1 H", [-0.5, -0.5]),
        ("72 4|1 Hg", [-0.5, -0.5]),
        ("73 1|1 p", [0.0, 0.0]),
        ("72 1|1 H", [-0.5, 0.0]),
        ("72 1|73 2|1 H", [-0.5, -0.5]),
        ("72 2|73 3|1 HH", [-1.0, -1.0]),
        ("1 H", [0.0, 0.0]),
    ] {
        let points = text_points(groups);
        let (low, high) = base::plane::bounds(points.iter()).unwrap();
        for axis in 0..2 {
            let found = low[axis] / (high[axis] - low[axis]);
            assert!(
                (found - expected[axis]).abs() < 1e-6,
                "{groups}: {low:?} {high:?}"
            );
        }
    }
}

#[test]
fn texts_are_mirrored_and_lean_as_the_file_says() {
    let as_written = text_points("1 L7");
    for (groups, [a, b, c, d]) in [
        ("71 2", [-1.0, 0.0, 0.0, 1.0]),
        ("71 4", [1.0, 0.0, 0.0, -1.0]),
        ("71 6", [-1.0, 0.0, 0.0, -1.0]),
        ("51 45", [1.0, 0.0, 1.0, 1.0]),
        ("51 -45", [1.0, 0.0, -1.0, 1.0]),
        ("51 315", [1.0, 0.0, -1.0, 1.0]),
        ("41 2|51 45", [2.0, 0.0, 1.0, 1.0]),
        ("71 2|50 90", [0.0, -1.0, -1.0, 0.0]),
        ("71 2|51 45", [-1.0, 0.0, -1.0, 1.0]),
    ] {
        let found = text_points(&format!("{groups}|1 L7"));
        for ([x, y], found) in as_written.iter().zip(found) {
            let expected = [x * a + y * c, x * b + y * d];
            let error_mm = (found[0] - expected[0]).hypot(found[1] - expected[1]);
            assert!(error_mm < 1e-6, "{groups}: {found:?} is not {expected:?}");
        }
    }
}

#[test]
fn codes_in_texts_are_characters() {
    for (coded, plain) in [
        ("45%%d", "45°"),
        ("%%P0.1", "±0.1"),
        ("%%c8", "Ø8"),
        ("5%%%", "5%"),
        ("%%065%%176", "A°"),
        ("20\\U+00B0C", "20°C"),
        ("%%x5%", "%%x5%"),
        ("\\U+00", "\\U+00"),
        ("%%5é", "%%5é"),
    ] {
        let points = |text: &str| text_points(&format!("1 {text}"));
        assert!(points(coded) == points(plain), "{coded}");
    }
    let design = draw("0 TEXT|8 0|10 0|20 0|40 10|1 %%uHi%%u").unwrap();
    assert_eq!(
        (design.strokes.len(), design.notes.last().unwrap().as_str()),
        (5, "not drawn: lines under, over or through TEXT (1)")
    );
}

#[test]
fn units_are_the_files() {
    for (unit, mm) in [(1, 25.4), (4, 1.0), (5, 10.0), (6, 1000.0)] {
        let text = format!(
            "0 SECTION|2 HEADER|9 $INSUNITS|70 {unit}|0 ENDSEC|0 SECTION|2 ENTITIES|0 LINE|8 0|10 0|20 0|11 2|21 0|0 ENDSEC|0 EOF"
        );
        let design = load("a.dxf", dxf(&text).as_bytes(), &DesignCaps::default()).unwrap();
        assert!((design.page_mm[0] - 2.0 * mm).abs() < 1e-9, "{unit}");
    }
}

#[test]
fn a_file_that_is_cut_off_is_refused_wherever_it_is_cut() {
    let text = dxf(
        "0 SECTION|2 ENTITIES|0 LINE|8 0|10 0|20 0|11 9|21 9|0 LINE|8 0|10 5|20 0|11 5|21 9|0 ENDSEC|0 EOF",
    );
    let read = |text: &str| load("a.dxf", text.as_bytes(), &DesignCaps::default());
    assert_eq!(read(&text).unwrap().strokes.len(), 2);
    assert_eq!(read(text.trim_end()).unwrap().strokes.len(), 2);
    let first = text.find(|c: char| !c.is_whitespace()).unwrap();
    for end in first + 1..text.trim_end().len() {
        let error = read(&text[..end]).unwrap_err().to_string();
        assert!(
            error.starts_with("the file is cut off after line "),
            "{end}: {error}"
        );
    }
    let error = read(&text[..text.find("ENDSEC").unwrap()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file is cut off after line 29: found no EOF; accepted: a complete DXF with its last line. \
         Next: save or copy the file again"
    );
}

#[test]
fn entities_without_what_dxf_has_no_default_for_are_refused() {
    for (entities, found) in [
        (
            "0 LINE|8 0|10 1|20 1|11 5",
            "LINE on line 16: found no group 21",
        ),
        ("0 LINE|8 0|10 1|20 1", "LINE on line 16: found no group 11"),
        ("0 LINE|8 0", "LINE on line 16: found no group 10"),
        ("0 POINT|8 0|10 5", "POINT on line 16: found no group 20"),
        (
            "0 CIRCLE|8 0|10 5|20 5",
            "CIRCLE on line 16: found no group 40",
        ),
        ("0 CIRCLE|8 0|40 5", "CIRCLE on line 16: found no group 10"),
        (
            "0 ARC|8 0|10 5|20 5|40 5|50 0",
            "ARC on line 16: found no group 51",
        ),
        (
            "0 ELLIPSE|8 0|10 0|20 0|40 1",
            "ELLIPSE on line 16: found no group 11",
        ),
        (
            "0 ELLIPSE|8 0|10 0|20 0|11 5|21 0",
            "ELLIPSE on line 16: found no group 40",
        ),
        (
            "0 LWPOLYLINE|8 0|90 2|10 0|20 0|10 3",
            "LWPOLYLINE on line 16: found no group 20",
        ),
        (
            "0 LWPOLYLINE|8 0|90 2",
            "LWPOLYLINE on line 16: found no group 10",
        ),
        (
            "0 SPLINE|8 0|71 1|10 0|20 0|20 5",
            "SPLINE on line 16: found no group 10",
        ),
        (
            "0 POLYLINE|8 0|66 1|0 VERTEX|8 0|10 0|20 0|0 VERTEX|8 0|10 3|0 SEQEND",
            "VERTEX on line 30: found no group 20",
        ),
        (
            "0 TEXT|8 0|10 0|20 0|1 I",
            "TEXT on line 16: found no group 40",
        ),
        (
            "0 TEXT|8 0|10 0|20 0|40 9|72 1|1 I",
            "TEXT on line 16: found no group 11",
        ),
    ] {
        let error = draw(entities).unwrap_err().to_string();
        let message = format!("{found}; accepted: a number; the file is damaged");
        assert!(error.starts_with(&message), "{entities}: {error}");
    }
    // What DXF defines defaults for may be left out.
    check("0 ELLIPSE|8 0|10 0|20 0|11 10|21 0|40 1", &[20.0 * PI]);
}

#[test]
fn refuses_by_place() {
    for (entities, message) in [
        (
            "0 LINE|8 0|10 x|11 5",
            "LINE on line 16: found `x` as its group 10; accepted: a number",
        ),
        (
            "0 LINE|8 0|10 0|20 0|11 5|21 0|zero",
            "line 27: found `zero`; accepted: a group code",
        ),
        ("0 HATCH|8 0", "the file: HATCH (1) cannot be drawn"),
        (
            "0 LINE|8 0|10 0|20 0|11 1e11|21 0",
            "LINE on line 16: a point is at 1e11, 0 mm",
        ),
    ] {
        let error = draw(entities).unwrap_err().to_string();
        assert!(error.starts_with(message), "{entities}: {error}");
    }
    let binary = load(
        "a.dxf",
        b"AutoCAD Binary DXF\r\n\x1a",
        &DesignCaps::default(),
    )
    .unwrap_err();
    assert!(
        binary
            .to_string()
            .starts_with("the file: a binary DXF cannot be drawn. Next: save it as DXF in text")
    );
}

#[test]
fn blocks_that_hold_one_another_end() {
    let mut text = String::from("0 SECTION|2 BLOCKS|");
    for level in 1..=12 {
        let inner = format!("0 INSERT|8 0|2 B{}|10 0|20 0|70 1000|71 1000|", level - 1);
        text += &format!("0 BLOCK|2 B{level}|{inner}0 ENDBLK|");
    }
    text += "0 BLOCK|2 B0|0 ENDBLK|0 BLOCK|2 ME|0 INSERT|8 0|2 ME|10 0|20 0|0 ENDBLK|0 ENDSEC|0 SECTION|2 ENTITIES|";
    for name in ["B12", "ME"] {
        let text = format!("{text}0 INSERT|8 0|2 {name}|10 0|20 0|0 ENDSEC|0 EOF");
        let error = load("a.dxf", dxf(&text).as_bytes(), &DesignCaps::default()).unwrap_err();
        assert!(matches!(error, DesignError::TooMany { .. }), "{error}");
    }
}

proptest! {
    #[test]
    fn any_groups_are_refused_or_drawn_but_never_panic(
        groups in prop::collection::vec(
            "(0 (LINE|ARC|CIRCLE|ELLIPSE|LWPOLYLINE|POLYLINE|VERTEX|SPLINE|TEXT|INSERT|POINT)|(10|11|20|21|40|41|42|50|51|62|70|71|72|210|230|420) -?[0-9]{1,3}|8 [0-9a]|2 [ab])", 0..40),
    ) {
        if let Ok(design) = draw(&groups.join("|")) {
            let points = design.strokes.iter().flat_map(|s| &s.points_mm);
            prop_assert!(points.flatten().all(|mm| mm.is_finite()));
        }
    }

    #[test]
    fn any_text_is_refused_or_drawn_but_never_panics(text in "\\PC{0,200}") {
        let _ = load("a.dxf", text.as_bytes(), &DesignCaps::default());
    }
}

/// The box around an MTEXT with this text and these groups, whose capitals are 10 high.
fn mtext(text: &str, groups: &str) -> ([[f64; 2]; 2], Vec<String>) {
    let design = draw(&format!("0 MTEXT|8 0|10 100|20 50|40 10|{groups}1 {text}")).unwrap();
    let notes = design.notes;
    // On the file's own page, beside a point that keeps its corner at 0.
    let beside = draw(&format!(
        "0 POINT|8 0|10 0|20 0|0 MTEXT|8 0|10 100|20 50|40 10|{groups}1 {text}"
    ))
    .unwrap();
    let points = beside
        .strokes
        .iter()
        .skip(1)
        .flat_map(|stroke| &stroke.points_mm);
    let (low, high) = base::plane::bounds(points).unwrap();
    ([low, high], notes)
}

#[test]
fn mtext_is_drawn_where_and_as_large_as_the_file_says() {
    let check = |text: &str, groups: &str, box_mm: [[f64; 2]; 2]| {
        let (found, notes) = mtext(text, groups);
        for (found, expected) in found.iter().flatten().zip(box_mm.iter().flatten()) {
            assert!(
                (found - expected).abs() < 0.3,
                "{text} {groups}: {found:?} {box_mm:?}"
            );
        }
        assert!(
            !notes.iter().any(|note| note.contains("MTEXT")),
            "{notes:?}"
        );
    };
    let ([_, [right, _]], _) = mtext("H", "71 1|");
    let ([[inset, _], _], _) = mtext("H", "71 1|");
    let (inset, width) = (inset - 100.0, right - 100.0);
    check("H", "71 1|", [[100.0 + inset, 40.0], [100.0 + width, 50.0]]);
    check("H", "71 7|", [[100.0 + inset, 53.2], [100.0 + width, 63.2]]);
    check("H", "71 4|", [[100.0 + inset, 45.0], [100.0 + width, 55.0]]);
    // Two paragraphs, their baselines 5/3 of a capital apart.
    check(
        r"H\PH",
        "71 1|",
        [[100.0 + inset, 23.3], [100.0 + width, 50.0]],
    );
    check(
        "H^JH",
        "71 1|",
        [[100.0 + inset, 23.3], [100.0 + width, 50.0]],
    );
    check(
        r"H\PH",
        "71 1|44 1.5|",
        [[100.0 + inset, 15.0], [100.0 + width, 50.0]],
    );
    // Sizes within it, in units and as a factor, end with their group.
    check(
        r"{\H20;H}",
        "71 1|",
        [[100.0 + 2.0 * inset, 30.0], [100.0 + 2.0 * width, 50.0]],
    );
    check(
        r"{\H2x;H}\PH",
        "71 1|",
        [[100.0 + inset, 6.7], [100.0 + 2.0 * width, 50.0]],
    );
    // Codes of fonts and paragraphs show in no single line.
    check(
        r"\A1;\pxqc;{\fArial;H}",
        "71 1|",
        [[100.0 + inset, 40.0], [100.0 + width, 50.0]],
    );
    // Turned by an angle, or by its direction.
    for turn in ["50 90|", "11 0|21 2|"] {
        check(
            "H",
            &format!("71 1|{turn}"),
            [[100.0, 50.0 + inset], [110.0, 50.0 + width]],
        );
    }
    // Broken between words at the width of its box.
    let narrow = format!("71 1|41 {}|", width * 3.2);
    let ([[_, low], _], _) = mtext("H H H H", &narrow);
    assert!((low - 23.3).abs() < 0.3 || (low - 6.7).abs() < 0.3, "{low}");
}

#[test]
fn what_mtext_loses_is_noted_and_its_codes_are_no_letters() {
    for (text, loss) in [
        (r"\LH\l", "lines under, over or through MTEXT (1)"),
        (r"{\C1;H}", "colours within MTEXT (1)"),
        (r"\W0.8;H", "widths, slants and spacings within MTEXT (1)"),
        (r"\M+1816D漢", "MTEXT with unknown characters (1)"),
    ] {
        let text = format!("0 LINE|8 0|10 0|20 0|11 5|21 0|0 MTEXT|8 0|10 0|20 0|40 10|1 {text}");
        let design = draw(&text).unwrap();
        let noted = format!("not drawn: {loss}");
        assert!(design.notes.contains(&noted), "{text}: {:?}", design.notes);
    }
    let strokes = |text: &str| mtext(text, "71 1|").0;
    assert_eq!(strokes(r"\S1/2;"), strokes("1/2"));
    assert_eq!(strokes(r"\S1^2;"), strokes("1/2"));
    assert_ne!(strokes(r"\{H\}"), strokes("{H}"));
    assert_eq!(strokes(r"H\~%%d"), strokes("H %%d"));
    // A long text comes in parts.
    assert_eq!(mtext("b", r"71 1|3 a\~|").0, strokes("a b"));
}
