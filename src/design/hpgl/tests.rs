//! Tests of reading HP-GL, and of refusals. Forty plotter units are a millimetre.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "a failing test may panic"
)]

use std::f64::consts::PI;

use proptest::prelude::*;

use super::super::{Design, DesignCaps, DesignError, load};

fn read(text: &str) -> Result<Design, DesignError> {
    load("drawing.plt", text.as_bytes(), &DesignCaps::default())
}

fn lines(text: &str) -> Vec<Vec<[f64; 2]>> {
    let design = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let strokes = design.strokes.into_iter();
    strokes.map(|stroke| stroke.points_mm).collect()
}

fn lengths(text: &str) -> Vec<f64> {
    let design = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    design.strokes.iter().map(|s| s.length_mm()).collect()
}

fn check_lengths(text: &str, expected: &[f64], tolerance_mm: f64) {
    let found = lengths(text);
    assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() < tolerance_mm,
            "{text}: {found} is not {expected}"
        );
    }
}

#[test]
fn every_notation_draws_the_same_strokes() {
    let expected = [
        vec![[0.0, 0.0], [10.0, 0.0], [10.0, 5.0]],
        vec![[0.0, 5.0], [5.0, 5.0]],
    ];
    for text in [
        "IN;SP1;PU40,40;PD440,40;PD440,240;PU40,240;PD240,240;PU;SP0;",
        "IN SP1 PU40 40 PD440 40 440 240 PU40 240 PD240 240 PU SP0",
        "in;sp1;pa40,40;pd;pa440,40,440,240;pu;pa40,240;pd;pa240,240;pu;",
        "IN;SP1;PA;PU40,40;PD;PR400,0,0,200;PU;PR-400,0;PD;PR200,0;PU;",
        "\u{1b}.(;\u{1b}.I81;;17:\u{1b}.N;19:IN;DF;\r\nSP 1;\r\nPU 40,40;\r\nPD 440,40,440,240;PU40,240;PD240,240;\r\n",
        "IN;IP0,0,4000,4000;SC0,100,0,100;SP1;PU1,1;PD11,1,11,6;PU1,6;PD6,6;PU;",
        "IN;IP0,0,4000,4000;SC0,.025,0,.025,2;SP1;PU0,0;SC;PU40,40PD440,40,440,240PU40,240PD240,240PU",
        "IN;PU+40+40PD440+40+440+240PU40,240PD240,240.0;",
    ] {
        assert_eq!(lines(text), expected, "{text}");
    }
}

#[test]
fn arcs_circles_and_wedges_have_their_lengths() {
    for (text, expected) in [
        ("PU0,0;CI400;", &[20.0 * PI][..]),
        ("PU400,0;PD;AA0,0,90;PU;", &[5.0 * PI]),
        ("PU400,0;PD;AR-400,0,-270;PU;", &[15.0 * PI]),
        ("PU400,0;PD;AT0,400,-400,0;PU;", &[10.0 * PI]),
        ("PU400,0;PD;RT-400,400,-800,0;PU;", &[10.0 * PI]),
        ("PU0,0;EA400,200;", &[30.0]),
        ("PU100,100;ER400,200;", &[30.0]),
        ("PU0,0;EW400,0,90;", &[20.0 + 5.0 * PI]),
        ("PU0,0;CI400,90;", &[40.0 * 2.0_f64.sqrt()]),
        ("IP0,0,4000,4000;SC0,10,0,10;PU5,5;CI1;", &[20.0 * PI]),
        ("PU0,0;PD;BZ0,0,400,0,400,0;PU;", &[10.0]),
        (
            "PU0,0;PM0;PD400,0,400,400,0,0;PM2;EP;",
            &[20.0 + 200.0_f64.sqrt()],
        ),
        ("PU0,0;XT;PU400,0;YT;", &[1.8, 2.5]),
    ] {
        check_lengths(text, expected, 0.06);
    }
}

/// Returns the bounds of each stroke, in tenths of a millimetre from the first stroke's lower left
/// corner.
fn boxes(text: &str) -> Vec<[i32; 4]> {
    let round = |mm: f64| (mm * 10.0).round() as i32;
    let bounds_of = |line: &Vec<[f64; 2]>| base::plane::bounds(line.iter()).unwrap();
    let all: Vec<_> = lines(text).iter().map(bounds_of).collect();
    let [x, y] = all[0].0;
    let relative_box = |(low, high): &([f64; 2], [f64; 2])| {
        [low[0] - x, low[1] - y, high[0] - x, high[1] - y].map(round)
    };
    all.iter().map(relative_box).collect()
}

#[test]
fn user_units_follow_scaling_points_that_come_later() {
    // The example of HP's manual: the second circle is half as large, in the middle of its own square.
    assert_eq!(
        boxes("IN;IP0,0,2000,2000;SC0,10,0,10;SP1;PA5,5;CI3;IP2500,500,3500,1500;PA5,5;CI3;"),
        [[0, 0, 300, 300], [575, 75, 725, 225]]
    );
    for (text, corner) in [
        ("SC0,100,0,100;IP0,0,4000,4000;", [500, 1000]),
        ("SC0,100,0,100,1;IP0,0,8000,4000;", [500, 1000]),
        ("IP0,0,4000,4000;SC0,100,0,100;IP;", [1250, 1800]),
        ("IP0,0,4000,4000;SC0,100,0,100;SC;IP0,0,8,8;", [13, 25]),
        ("SC0,2,0,2,2;IP0,0,8,8;", [25, 50]),
        ("SC0,100,0,100;IP7,7,7,7;", [0, 0]),
    ] {
        let text = format!("IN;{text}SP1;PU0,0;PD50,0,50,100;PU;");
        assert_eq!(boxes(&text), [[0, 0, corner[0], corner[1]]], "{text}");
    }
    let dashes = |setup: &str| lines(&format!("IN;{setup}SP1;PU0,0;PD3000,0;PU;")).len();
    assert_eq!(
        dashes("LT2;IP0,0,3000,4000;"),
        dashes("IP0,0,3000,4000;LT2;")
    );
    let label = |setup: &str| lengths(&format!("IN;{setup}SP1;LBHi\u{3}"));
    let setup = "SR2,4;DR1,1;";
    let frame = "IP0,0,3000,4000;";
    assert_eq!(
        label(&format!("{setup}{frame}")),
        label(&format!("{frame}{setup}"))
    );
}

#[test]
fn subpolygons_are_closed_and_the_pen_goes_up_between_them() {
    for (text, expected) in [
        (
            "PA2000,2000;PM0;PD3000,2000,3000,3000;PD2000,3000,2000,2000;PM1;\
             PD2080,2160,2480,2160,2480,2340,2080,2340,2080,2160;PM2;EP;",
            &[100.0, 29.0][..],
        ),
        (
            "PA0,0;PM0;PD1000,0,1000,1000;PM2;EP;",
            &[50.0 + 1250.0_f64.sqrt()],
        ),
        (
            "PU0,0;PD2000,0;PU0,500;PM0;PU1000,500,1000,1500,0,1500,0,500;PM2;FP;",
            &[50.0, 100.0],
        ),
        // EP draws the edges that were made with the pen down, FP outlines all.
        (
            "PA0,0;PM0;PD1000,0;PU1000,1000;PD0,1000;PU;PM2;EP;",
            &[25.0, 50.0],
        ),
        (
            "PA0,0;PM0;PD1000,0;PU1000,1000;PD0,1000;PU;PM2;FP;",
            &[100.0],
        ),
        // Circles and curves are parts of polygons as well.
        (
            "PA500,500;PM0;CI400;PM1;CI200;PM2;FP;",
            &[20.0 * PI, 10.0 * PI],
        ),
        (
            "PU0,0;PM0;PU;BZ0,0,400,0,400,0;PU400,400;PM2;FP;",
            &[20.0 + 200.0_f64.sqrt()],
        ),
    ] {
        check_lengths(&format!("IN;SP1;{text}"), expected, 0.06);
    }
    let empty = read("IN;SP1;PD400,0;PU;PM0;PM2;FP;").unwrap();
    assert!(empty.notes.is_empty(), "{:?}", empty.notes);
}

#[test]
fn pens_count_from_1_and_sp0_puts_the_pen_away() {
    let design = read("SP2;PU0,0PD400,0;SP1;PU0,80PD400,80;SP0;PU0,160PD400,160;PU;").unwrap();
    let pens: Vec<_> = design.strokes.iter().map(|s| s.pen).collect();
    assert_eq!(pens, [Some(2), Some(1)]);
    assert_eq!(
        design.notes,
        ["lines not drawn, because they follow SP0 (no pen): 1"]
    );
    assert_eq!(read("PD400,0;").unwrap().strokes[0].pen, None);
}

#[test]
fn dashes_dots_windows_and_rotation_are_drawn() {
    check_lengths("LT2,10,1;PU0,0PD1600,0;PU;", &[5.0, 5.0, 5.0, 5.0], 1e-6);
    check_lengths("LT2,10,1;LT;PU0,0PD1600,0;PU;", &[40.0], 1e-6);
    // Four hundredths of the diagonal of 250 by 180 mm.
    let pattern_mm = 0.04 * f64::hypot(250.0, 180.0);
    check_lengths(
        "LT2;PU0,0PD600,0;PU;",
        &[pattern_mm / 2.0, 15.0 - pattern_mm],
        1e-6,
    );
    assert_eq!(lines("LT0;PU0,0PD400,0,800,0;PU;").len(), 3);
    check_lengths("IW100,-100,300,100;PU0,0PD400,0;PU;", &[5.0], 1e-6);
    check_lengths("IW100,-100,300,100;IW;PU0,0PD400,0;PU;", &[10.0], 1e-6);
    // On each of the window's edges.
    for frame in [
        "PU0,-100PD400,-100",
        "PU0,100PD400,100",
        "PU100,-200PD100,200",
        "PU300,-200PD300,200",
    ] {
        check_lengths(&format!("IW100,-100,300,100;{frame};PU;"), &[5.0], 1e-6);
    }
    assert_eq!(
        lines("RO90;PU0,0PD400,200;PU;"),
        [vec![[5.0, 0.0], [0.0, 10.0]]]
    );
}

#[test]
fn labels_are_written_in_their_cells() {
    let size = |text: &str| {
        let design = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        design.page_mm
    };
    // Capitals of 10 mm, seven tenths as wide; the second begins a cell of 10.5 mm further on.
    let [one, height] = size("SI0.7,1.0;LBI\u{3}");
    assert!((height - 10.0).abs() < 1e-6, "{height}");
    let [two, _] = size("SI0.7,1.0;LBII\u{3}");
    assert!(
        (two.max(0.1) - one.max(0.1) - 10.5).abs() < 0.11,
        "{one} {two}"
    );
    // Two lines are two heights apart, and a turned label is as wide as it was high.
    let [_, lines] = size("SI0.7,1.0;LBI\r\nI\u{3}");
    assert!((lines - 30.0).abs() < 1e-6, "{lines}");
    let [rotated, _] = size("SI0.7,1.0;DI0,1;LBI\u{3}");
    assert!((rotated - 10.0).abs() < 1e-6, "{rotated}");
    assert_eq!(lengths("DT*,1;LBI*PU0,0PD0,400;").len(), 2);
    // A label ends at its terminator alone: what looks like a command is text.
    assert!(lengths("LBPD;PU\u{3}").len() > 4);
    let centred = read("PU0,0;PD0,4000;PU0,0;LO5;SI0.7,1;LBH\u{3}").unwrap();
    let label_bounds = base::plane::bounds(centred.strokes[1..].iter().flat_map(|s| &s.points_mm));
    let (low, high) = label_bounds.unwrap();
    assert!((f64::midpoint(low[1], high[1]) - 5.0).abs() < 1e-6);
}

#[test]
fn encoded_polylines_are_decoded() {
    use super::encoded_polyline::tests::encode;
    let numbers = |values: &[i32], is_seven: bool| -> Vec<u8> {
        let bytes = values.iter().map(|value| encode(*value, is_seven));
        bytes.collect::<Vec<_>>().concat()
    };
    for is_seven in [false, true] {
        let mut file = b"IN;SP1;PU800,800;PE".to_vec();
        file.extend(if is_seven { &b"7"[..] } else { b"" });
        // To 40, 40 with the pen up; right and up; then from 40, 240 with pen 2, to the right.
        for (flags, values) in [
            (&b"<="[..], &[40, 40][..]),
            (b"", &[400, 0, 0, 200]),
            (b":", &[2]),
            (b"<", &[-400, 0, 200, 0]),
        ] {
            file.extend(flags);
            file.extend(numbers(values, is_seven));
        }
        file.extend(b";PU;SP0;");
        let design = load("a.plt", &file, &DesignCaps::default()).unwrap();
        let found: Vec<_> = design.strokes.iter().map(|s| s.points_mm.clone()).collect();
        assert_eq!(found[0], [[0.0, 0.0], [10.0, 0.0], [10.0, 5.0]]);
        assert_eq!(found[1], [[0.0, 5.0], [5.0, 5.0]]);
        assert_eq!(design.strokes[1].pen, Some(2));
    }
}

#[test]
fn what_draws_nothing_is_counted() {
    let design =
        read("IN;VS10;VS20;FS3;PS4;SP1;PU0,0;RA400,400;PU;SC0,1,0,1;PU0,0;PD1,1;").unwrap();
    assert_eq!(
        design.notes,
        [
            "ignored, because they draw nothing: FS, VS (2 times)",
            "filled areas, drawn as outlines: 1",
        ]
    );
}

#[test]
fn words_of_a_cutter_around_the_drawing_are_counted_and_skipped() {
    let bare = read("IN;PA;SP1;PU400,400;PD1600,400,1600,1200;PU0,0;").unwrap();
    let body = "IN;PA;SP1;PU400,400;PD1600,400,1600,1200;PU0,0;SP0;";
    for (before, after, skipped) in [
        ("MK8,8,0,0;", "!PG;;", "!, MK"),
        ("", "@", "@"),
        ("", "\r\n\u{1a}", ""),
        ("", "\u{1a}\0\0PD9,9", ""),
        ("^", "^^;^", "^ (2 times), ^^"),
        ("!ST1;!PG;ZF20;", "!FS8;", "! (3 times), ZF"),
        ("CB1;", "CB0;FC18;&1;", "&1, CB (2 times), FC"),
    ] {
        let text = format!("{before}{body}{after}");
        let design = read(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let points = |design: &Design| -> Vec<_> {
            let strokes = design.strokes.iter();
            strokes.map(|stroke| stroke.points_mm.clone()).collect()
        };
        assert_eq!(points(&design), points(&bare), "{text}");
        let notes = design.notes.concat();
        assert!(notes.ends_with(skipped), "{text}: {notes}");
        assert!(design.states_lengths);
    }
}

#[test]
fn refuses_by_name_and_byte() {
    for (text, message) in [
        ("IN;PD9,0;XX5;PD9,9;", "byte 9: `XX` cannot be drawn"),
        ("PE<=ab;", "byte 6: found the end of PE inside a number"),
        ("PE!;", "byte 2: found the byte 33 in PE"),
        (
            "PU0,0;PD5;",
            "byte 6: found PD with 1 coordinates; accepted: coordinates in pairs",
        ),
        ("PD1..2,3;", "byte 2: found `1..2,3;`"),
        ("PD9,0;5;PD9,9;", "byte 6: `5` cannot be drawn"),
        (
            "PU0,0;AA5,5;",
            "byte 6: found AA with 2 numbers; accepted: 3 numbers",
        ),
        (
            "\u{1b}*r1AIN;",
            "byte 0: the escape sequence ESC * (PCL, RTL or PJL) cannot be drawn",
        ),
        ("\u{1b}E\u{1b}&l0OIN;", "byte 2: the escape sequence ESC &"),
        (
            "PD40,40;PG;PD80,80;PU;",
            "byte 8: a second page cannot be drawn",
        ),
        ("LB漢\u{3}", "byte 0: `漢` in a label cannot be drawn"),
        ("SM*;PD40,40;", "byte 0: `SM` cannot be drawn"),
        ("LT9;PD40,40;", "byte 0: `LT` cannot be drawn"),
        ("RO45;", "byte 0: found RO45; accepted: 0, 90, 180 or 270"),
        ("SC0,0,0,5;", "byte 0: found SC with two equal coordinates"),
        ("SP-3;", "byte 0: `SP` cannot be drawn"),
        (
            "IN;SP1;PU5,5;",
            "the drawing has no line to draw: PD draws while a pen is selected",
        ),
        ("PD999999999999999,0;PU;", "byte 0: a point is at"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

#[test]
fn bytes_of_old_character_sets_are_characters() {
    let design = load("a.hpgl", b"LBM\xfcller\x03", &DesignCaps::default()).unwrap();
    assert!(design.strokes.len() > 6);
}

#[test]
fn the_caps_hold() {
    let caps = DesignCaps {
        points_max: 50,
        strokes_max: 3,
        ..DesignCaps::default()
    };
    for (text, message) in [
        ("PU0,0;CI4000;", "byte 6: more than 50 points"),
        ("LT1,0.1,1;PD4000,0;PU;", "byte 10: more than 50 points"),
        ("PM0;CI4000;", "byte 4: more than 50 points"),
        ("LBHHH\u{3}", "byte 0: more than 3 strokes"),
    ] {
        let error = load("a.plt", text.as_bytes(), &caps)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}

const SAMPLE: &str = "IN;SP1;IP0,0,4000,4000;SC0,100,0,100;LT3,5;PU10,10;PD50,10,50.5,60;CI5,10;AA20,20,45;EW9,0,90;\
     SI.5,.7;DI1,1;LBHi\u{3}LO5;PM0;PR5,5;PM2;FP;BZ1,2,3,4,5,6;IW0,0,90,90;RO90;RA3,3;XT;CP1,1;SP0;";

proptest! {
    #[test]
    fn any_bytes_are_refused_or_drawn_but_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = load("a.plt", &bytes, &DesignCaps::default());
    }

    #[test]
    fn any_commands_are_refused_or_drawn_but_never_panic(
        commands in prop::collection::vec(
            "(IN|SP|PU|PD|PA|PR|AA|AR|AT|CI|EA|EW|LT|SC|IP|IW|RO|LB|PM|FP|SI|DI|LO|BZ|XT)[-0-9,.]{0,14}[;\u{3}]", 0..20),
    ) {
        if let Ok(design) = read(&commands.concat()) {
            let points = design.strokes.iter().flat_map(|s| &s.points_mm);
            prop_assert!(points.flatten().all(|mm| mm.is_finite()));
        }
    }

    #[test]
    fn corrupt_bytes_never_panic(changes in prop::collection::vec((0..SAMPLE.len(), any::<u8>()), 1..5)) {
        let mut bytes = SAMPLE.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let _ = load("a.plt", &bytes, &DesignCaps::default());
    }

    #[test]
    fn blanks_and_line_ends_change_no_stroke(blank in "[ \t\r\n]{1,3}") {
        let add_blanks = |text: &str| text.replace(';', &format!(";{blank}")).replace(',', &format!(",{blank}"));
        for text in ["IN;SP1;PU40,40;PD440,40,440,240;CI200;PU40,240;PD240,240;", "SP1;PU400,0;PD;AA0,0,90;EA5,5;"] {
            prop_assert_eq!(lines(&add_blanks(text)), lines(text));
        }
    }
}
