//! Files as programs save them: in other encodings, with prefixes and entities that XML does not know,
//! with words of other machines around the drawing, without units. Each draws what the plain file
//! beside it draws.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use encoding_rs::{BIG5, GBK, ISO_8859_15, KOI8_R, SHIFT_JIS, WINDOWS_1250, WINDOWS_1252};
use proptest::prelude::*;
use steadyhand_design::{Design, DesignCaps, DesignError, load};

fn read(name: &str, bytes: &[u8]) -> Design {
    load(name, bytes, &DesignCaps::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Points and layer of each stroke, and whether the file states lengths.
type Drawn = (Vec<(Vec<[f64; 2]>, Option<String>)>, bool);

fn drawn(design: &Design) -> Drawn {
    let strokes = design.strokes.iter();
    let strokes = strokes.map(|stroke| (stroke.points_mm.clone(), stroke.layer.clone()));
    (strokes.collect(), design.states_lengths)
}

fn utf16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let units = text.encode_utf16().flat_map(order);
    order(0xfeff).into_iter().chain(units).collect()
}

const WORDS: &str = "Größe";

fn svg(encoding: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="{encoding}"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:i="http://www.inkscape.org/namespaces/inkscape" width="60mm" height="40mm" viewBox="0 0 60 40">
<g i:groupmode="layer" i:label="2 {WORDS}"><!-- {WORDS} --><path fill="none" stroke="black" d="M5 5l50 30"/>
<text x="5" y="30" font-size="8">{WORDS}</text></g></svg>"#
    )
}

fn dxf(version: &str, page: &str, words: &str) -> String {
    let mut groups = format!(
        "0|SECTION|2|HEADER|9|$ACADVER|1|{version}|9|$DWGCODEPAGE|3|{page}|9|$INSUNITS|70|4|0|ENDSEC|0|SECTION|2|ENTITIES"
    );
    groups += &format!("|0|LINE|8|2 {words}|10|0|20|0|11|40|21|20");
    groups += &format!("|0|TEXT|8|2 {words}|10|2|20|5|40|6|1|{words}|0|ENDSEC|0|EOF|");
    groups.replace('|', "\r\n")
}

fn gcode(words: &str) -> String {
    format!(
        "; {words}\n({words} 40 x 20)\nG21 G90\nG0 Z5\nG0 X0 Y0\nG1 Z0 F300\nG1 X40\nY20\nG0 Z5\n"
    )
}

fn json(words: &str) -> String {
    format!(
        "{{\"strokes\": [{{\"colour\": \"#000000\", \"points\": [[0,0],[9,9]]}}]}}{}",
        words.replace(WORDS, "")
    )
}

#[test]
fn svg_is_read_in_the_encoding_that_it_declares() {
    let plain = drawn(&read("a.svg", svg("UTF-8").as_bytes()));
    assert_eq!(plain.0[0].1.as_deref(), Some("2 Größe"));
    for (encoding, bytes) in [
        (
            "UTF-16, low byte first",
            utf16(&svg("UTF-16"), u16::to_le_bytes),
        ),
        (
            "UTF-16, high byte first",
            utf16(&svg("UTF-16"), u16::to_be_bytes),
        ),
        (
            "ISO-8859-1",
            WINDOWS_1252.encode(&svg("ISO-8859-1")).0.into_owned(),
        ),
        (
            "iso-8859-15",
            ISO_8859_15.encode(&svg("iso-8859-15")).0.into_owned(),
        ),
        (
            "windows-1250",
            WINDOWS_1250.encode(&svg("windows-1250")).0.into_owned(),
        ),
        (
            "a mark and another declaration",
            [b"\xef\xbb\xbf", svg("ISO-8859-1").as_bytes()].concat(),
        ),
        ("UTF-8 that claims to be UTF-16", svg("UTF-16").into_bytes()),
    ] {
        assert_eq!(drawn(&read("a.svg", &bytes)), plain, "{encoding}");
    }
    let guessed = read("a.svg", &WINDOWS_1252.encode(&svg("UTF-8")).0);
    assert_eq!(drawn(&guessed), plain);
    assert!(
        guessed
            .notes
            .iter()
            .any(|note| note.contains("Windows-1252"))
    );
}

#[test]
fn dxf_is_read_in_its_code_page_and_with_its_escapes() {
    let plain = drawn(&read("a.dxf", dxf("AC1021", "ANSI_1252", WORDS).as_bytes()));
    assert_eq!(plain.0[0].1.as_deref(), Some("2 Größe"));
    for (kind, bytes) in [
        (
            "1252",
            WINDOWS_1252
                .encode(&dxf("AC1015", "ANSI_1252", WORDS))
                .0
                .into_owned(),
        ),
        (
            "1250",
            WINDOWS_1250
                .encode(&dxf("AC1015", "ansi_1250", WORDS))
                .0
                .into_owned(),
        ),
        (
            "escapes",
            dxf("AC1015", "ANSI_1252", r"Gr\U+00F6\U+00DFe").into_bytes(),
        ),
        (
            "UTF-8 in spite of its page",
            dxf("AC1015", "ANSI_1252", WORDS).into_bytes(),
        ),
        (
            "UTF-16",
            utf16(&dxf("AC1021", "ANSI_1252", WORDS), u16::to_le_bytes),
        ),
    ] {
        assert_eq!(drawn(&read("a.dxf", &bytes)), plain, "{kind}");
    }
    for (page, encoding, layer) in [
        ("ANSI_936", GBK, "切割"),
        ("ANSI_932", SHIFT_JIS, "外形線"),
        ("ANSI_950", BIG5, "雕刻"),
    ] {
        let text = dxf("AC1015", page, layer);
        let line_alone = text.split("0\r\nTEXT").next().unwrap().to_owned() + "0\r\nEOF\r\n";
        let design = read("a.dxf", &encoding.encode(&line_alone).0);
        assert_eq!(
            design.strokes[0].layer,
            Some(format!("2 {layer}")),
            "{page}"
        );
    }
    let unread = dxf("AC1015", "dos850", "x")
        .replace('x', "\u{1}")
        .into_bytes();
    let unread: Vec<u8> = unread
        .into_iter()
        .map(|b| if b == 1 { 0x94 } else { b })
        .collect();
    let error = load("a.dxf", &unread, &DesignCaps::default()).unwrap_err();
    assert!(matches!(error, DesignError::Encoding { .. }), "{error}");
}

#[test]
fn comments_of_gcode_may_be_in_any_encoding() {
    let plain = drawn(&read("a.nc", gcode("").as_bytes()));
    for bytes in [
        WINDOWS_1252.encode(&gcode("Schaftfräser Ø")).0.into_owned(),
        GBK.encode(&gcode("铣刀直径")).0.into_owned(),
        SHIFT_JIS.encode(&gcode("表示ソ")).0.into_owned(),
        KOI8_R.encode(&gcode("фреза")).0.into_owned(),
        utf16(&gcode("Ø"), u16::to_le_bytes),
        (gcode("") + "\u{1a}").into_bytes(),
        (gcode("") + "\u{1a}\0\0\0G1 X99\n").into_bytes(),
    ] {
        assert_eq!(drawn(&read("a.nc", &bytes)), plain);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_format_reads_every_encoding_of_the_same_text(
        format in 0..4_usize, encoding in 0..4_usize, ends_by_control_z in any::<bool>(),
    ) {
        let (name, text) = match format {
            0 => ("a.svg", svg("windows-1252")),
            1 => ("a.dxf", dxf("AC1015", "ANSI_1252", WORDS)),
            2 => ("a.nc", gcode(WORDS)),
            _ => ("a.json", json(WORDS)),
        };
        let plain = drawn(&read(name, text.as_bytes()));
        let text = if ends_by_control_z { text + "\u{1a}" } else { text };
        let bytes = match encoding {
            0 => WINDOWS_1252.encode(&text).0.into_owned(),
            1 => utf16(&text, u16::to_le_bytes),
            2 => utf16(&text, u16::to_be_bytes),
            _ => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        };
        prop_assert_eq!(drawn(&read(name, &bytes)), plain);
    }
}

#[test]
fn prefixes_and_entities_that_xml_does_not_know_are_form() {
    let plain = r##"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="60mm" height="40mm" viewBox="0 0 60 40">
<defs><path id="leg" d="M0 0 L0 20" stroke="black" fill="none"/></defs>
<use xlink:href="#leg" x="10" y="10"/><text x="5" y="20" font-size="8">A © B &amp; C</text></svg>"##;
    let design = drawn(&read("a.svg", plain.as_bytes()));
    for (from, to) in [
        (r#" xmlns:xlink="http://www.w3.org/1999/xlink""#, ""),
        (r#" xmlns="http://www.w3.org/2000/svg""#, ""),
        (
            "<defs>",
            r#"<sodipodi:namedview inkscape:zoom="1"/><bx:grid/><defs serif:id="x">"#,
        ),
        ("A © B", "A&nbsp;&copy;&#160;B"),
        ("&amp; C", "& C"),
    ] {
        let text = plain.replace(from, to);
        assert_ne!(text, plain);
        assert_eq!(drawn(&read("a.svg", text.as_bytes())), design, "{to}");
    }
}

#[test]
fn circles_without_a_radius_are_dots_and_other_empty_shapes_noted() {
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="60mm" height="40mm" viewBox="0 0 60 40" fill="none" stroke="black">
<circle cx="10" cy="20" r="0"/><circle cx="50" cy="20" r="0"/><circle cx="30" cy="20" r="0" stroke="none" fill="red"/>
<rect x="30" y="5" width="0" height="10"/><ellipse cx="40" cy="10" rx="0" ry="6"/></svg>"#;
    let design = read("a.svg", svg.as_bytes());
    assert_eq!(design.strokes.len(), 3);
    for (stroke, x) in design.strokes.iter().zip([10.0, 50.0, 30.0]) {
        assert!(stroke.length_mm() < 0.2, "{stroke:?}");
        let [first, last] = [0, 1].map(|index| stroke.points_mm[index][0]);
        assert!((f64::midpoint(first, last) - x).abs() < 0.01, "{stroke:?}");
    }
    assert!(
        design.notes.iter().any(|note| note.contains("no size")),
        "{:?}",
        design.notes
    );
}

#[test]
fn what_does_not_look_as_on_the_screen_is_noted_in_one_line_each() {
    let svg = |body: &str| {
        let svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="60mm" height="40mm" viewBox="0 0 60 40">{body}<path fill="none" stroke="black" d="M5 5h9"/></svg>"#
        );
        read("a.svg", svg.as_bytes())
    };
    assert_eq!(svg("").notes, Vec::<String>::new());
    for (body, word) in [
        (
            r#"<rect width="9" height="9" fill="red"/><rect width="8" height="9"/>"#,
            "2 filled areas",
        ),
        (
            r#"<rect width="60" height="40" fill="white"/>"#,
            "1 white area",
        ),
        (
            r#"<text y="9">hello</text><text y="19">you</text>"#,
            "single-line letters",
        ),
        (
            r##"<g display="none"><path d="M0 0 broken"/><use href="#lost"/></g>"##,
            "hidden",
        ),
        (
            r#"<g opacity="0"><path d="M0 0h9" stroke="red"/></g>"#,
            "hidden",
        ),
        (
            r#"<path visibility="hidden" d="M0 0h9" stroke="red"/>"#,
            "hidden",
        ),
    ] {
        let notes = svg(body).notes;
        let count = notes.iter().filter(|note| note.contains(word)).count();
        assert_eq!((notes.len(), count), (1, 1), "{body}: {notes:?}");
    }
    // Letters in an inherited white are lines in white, for a white pen or a note.
    let white = svg(r#"<g fill="white"><text y="9">l</text></g>"#);
    assert!(white.strokes.iter().any(|stroke| stroke.is_paper_coloured));
}

#[test]
fn a_spindle_power_keeps_its_meaning_beside_a_dwell() {
    let plain = "G21\nG90\nM3 S0\nG4 P0.2\nG1 X0 Y0 F3000\nM3 S25\nG4 P0.3\nG1 X40 Y0\nM3 S0\nG4 P0.2\nG1 X0 Y20\nM3 S25\nG4 P0.3\nG1 X40 Y20\nM3 S0\nG4 P0.2\nG1 X0 Y0\n";
    let design = drawn(&read("a.gcode", plain.as_bytes()));
    assert_eq!(design.0.len(), 2);
    for join in [" G4P", "G4P", " g4 p", "G04 P"] {
        let text = plain.replace("\nG4 P", join);
        assert_eq!(drawn(&read("a.gcode", text.as_bytes())), design, "{text}");
    }
    for (dwell, join) in [
        ("G4 P0.2", "G4 S0.2"),
        ("\nG4 P", "G4X"),
        ("\nG4 P", " G4 S"),
    ] {
        let text = plain.replace(dwell, join);
        assert_eq!(drawn(&read("a.gcode", text.as_bytes())), design, "{text}");
    }
    let tight = plain.replace(' ', "");
    assert_eq!(drawn(&read("a.gcode", tight.as_bytes())), design);
    let wide: String = plain.chars().flat_map(|c| [c, ' ']).collect();
    assert_eq!(drawn(&read("a.gcode", wide.as_bytes())), design);
}

#[test]
fn a_file_has_lengths_where_it_names_a_unit() {
    let dxf = |units: &str| {
        format!(
            "0\nSECTION\n2\nHEADER\n9\n$INSUNITS\n70\n{units}\n0\nENDSEC\n0\nSECTION\n2\nENTITIES\n0\nCIRCLE\n10\n1\n20\n1\n40\n0.5\n0\nENDSEC\n0\nEOF\n"
        )
    };
    for (name, text, mm) in [
        ("a.dxf", dxf("4"), Some(1.0)),
        ("a.dxf", dxf("1"), Some(25.4)),
        ("a.dxf", dxf("7"), Some(1e6)),
        ("a.dxf", dxf("0"), None),
        ("a.dxf", dxf("4").replace("$INSUNITS", "$OTHER"), None),
        ("a.nc", "G21\nG0 X0 Y0\nG1 X1\nY1".to_owned(), Some(1.0)),
        ("a.nc", "G20\nG0 X0 Y0\nG1 X1\nY1".to_owned(), Some(25.4)),
        ("a.nc", "G0 X0 Y0\nG1 X1\nY1".to_owned(), None),
        ("a.plt", "IN;SP1;PD40,0,40,40;".to_owned(), Some(1.0)),
        ("a.json", "[[[0,0],[1,0],[1,1]]]".to_owned(), Some(1.0)),
        (
            "a.json",
            r#"{"units":"px","strokes":[{"points":[[0,0],[1,1]]}]}"#.to_owned(),
            None,
        ),
    ] {
        let design = read(name, text.as_bytes());
        assert_eq!(design.states_lengths, mm.is_some(), "{name}: {text}");
        if let Some(mm) = mm {
            assert!(
                (design.page_mm[0] - mm).abs() < 1e-6 * mm,
                "{name}: {:?}",
                design.page_mm
            );
        }
    }
    // A circle of no known size has as many points as one that is drawn as large as the sheet.
    let points = |text: &str| read("a.dxf", text.as_bytes()).strokes[0].points_mm.len();
    assert!(points(&dxf("0")) > 50, "{}", points(&dxf("0")));
}

#[test]
fn a_page_of_a_million_pixels_is_read_and_a_map_far_from_its_origin_too() {
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000000 500000"><path fill="none" stroke="black" d="M100000 100000h800000"/></svg>"#;
    let design = read("a.svg", svg.as_bytes());
    let share = design.strokes[0].length_mm() / design.page_mm[0];
    assert!((share - 0.8).abs() < 1e-4, "{share}");
    let map = "0\nSECTION\n2\nENTITIES\n0\nLINE\n10\n450000000\n20\n5400000000\n11\n450000040\n21\n5400000000\n0\nENDSEC\n0\nEOF\n";
    let design = read("a.dxf", map.as_bytes());
    assert!(
        (design.page_mm[0] - 40.0).abs() < 1e-3,
        "{:?}",
        design.page_mm
    );
}

fn fit_spline(more: &str, points: &[[f64; 2]]) -> String {
    let points: String = points
        .iter()
        .map(|[x, y]| format!("11\n{x}\n21\n{y}\n31\n0\n"))
        .collect();
    format!("0\nSECTION\n2\nENTITIES\n0\nSPLINE\n8\n0\n{more}71\n3\n{points}0\nENDSEC\n0\nEOF\n")
}

#[test]
fn splines_of_fit_points_go_through_them_smoothly() {
    let through = [[0.0, 0.0], [15.0, 12.0], [30.0, 4.0], [45.0, 20.0]];
    let closed = "70\n1\n";
    for (more, is_closed) in [
        ("70\n8\n", false),
        (closed, true),
        ("12\n1\n22\n0\n", false),
    ] {
        let design = read("a.dxf", fit_spline(more, &through).as_bytes());
        let line = &design.strokes[0].points_mm;
        assert!(line.len() > 20, "{}", line.len());
        let low = design.strokes[0].points_mm[0];
        for [x, y] in through {
            let distance = |p: &[f64; 2]| (p[0] - low[0] - x).hypot(p[1] - low[1] - y);
            let nearest = line.iter().map(distance).fold(f64::INFINITY, f64::min);
            assert!(nearest < 1e-6, "({x}, {y}) is missed by {nearest}");
        }
        // No corner: neighbouring chords turn by little.
        for corner in line.windows(3) {
            let turn = |a: [f64; 2], b: [f64; 2]| (b[1] - a[1]).atan2(b[0] - a[0]);
            let turned = turn(corner[1], corner[2]) - turn(corner[0], corner[1]);
            let turned = (turned + std::f64::consts::PI).rem_euclid(std::f64::consts::TAU)
                - std::f64::consts::PI;
            assert!(turned.abs() < 0.5, "{more}: {turned}");
        }
        assert_eq!(line.first() == line.last(), is_closed);
    }
    let straight = read(
        "a.dxf",
        fit_spline("", &[[0.0, 0.0], [10.0, 0.0], [30.0, 0.0]]).as_bytes(),
    );
    assert!((straight.page_mm[0] - 30.0).abs() < 1e-9);
}

#[test]
fn the_extrusion_of_lines_points_and_splines_moves_nothing() {
    let line = |extrusion: &str| {
        format!(
            "0\nSECTION\n2\nENTITIES\n0\nLINE\n8\n0\n39\n5\n10\n0\n20\n0\n11\n40\n21\n0\n{extrusion}0\nPOINT\n8\n0\n10\n5\n20\n15\n{extrusion}0\nENDSEC\n0\nEOF\n"
        )
    };
    let plain = drawn(&read("a.dxf", line("").as_bytes()));
    for extrusion in [
        "210\n1\n220\n0\n230\n0\n",
        "210\n0\n220\n-1\n230\n0\n",
        "230\n-1\n",
        "210\n0.6\n220\n0\n230\n0.8\n",
    ] {
        let design = read("a.dxf", line(extrusion).as_bytes());
        assert_eq!(drawn(&design), plain, "{extrusion}");
        assert!(design.notes.is_empty(), "{:?}", design.notes);
    }
}

/// A drawing within Markdown, a page or a sentence was refused as broken XML.
#[test]
fn the_one_svg_element_of_a_text_is_read_and_that_is_noted() {
    let svg = r#"<svg xmlns="http://www.w3.org/2000/svg" width="20mm" height="20mm" viewBox="0 0 20 20"><path d="M1 1H9" stroke="black"/></svg>"#;
    for around in [
        format!("Here is it, it's width < 100:\n\n```svg\n{svg}\n```\n\nHope that helps & more!"),
        format!("An `<svg>` element:\n```xml\n<?xml version=\"1.0\"?>\n{svg}\n```"),
        format!(
            "<!DOCTYPE html>\n<html><head><title>a <svg> b</title><script>if (a < b) document.write('<svg x=1></svg>');</script></head><body><p>Fish &amp; chips &nbsp; <br>{svg}</body></html>"
        ),
        format!(
            "<div>{}</div>",
            svg.replace(r#" xmlns="http://www.w3.org/2000/svg""#, "")
        ),
        format!("{svg}\n</svg>"),
        format!("Sure!\n{svg}"),
    ] {
        for name in ["a.svg", "a.html", "answer.md"] {
            let design = load(name, around.as_bytes(), &DesignCaps::default());
            let design = design.unwrap_or_else(|error| panic!("{around}: {error}"));
            assert_eq!(design.strokes.len(), 1, "{around}");
            assert!(
                design.notes.iter().any(|note| note.contains("svg element")),
                "{around}"
            );
        }
    }
    let alone = format!(
        "\u{feff}<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n<!-- <svg> it's -->\n{svg}\n<!-- end -->\n"
    );
    let design = load("a.svg", alone.as_bytes(), &DesignCaps::default()).unwrap();
    assert!(design.notes.is_empty(), "{:?}", design.notes);
}

#[test]
fn several_svg_elements_are_listed_and_one_that_is_cut_off_is_refused() {
    let one = |id: &str| {
        format!(r#"<svg id="{id}" viewBox="0 0 9 9"><path d="M0 0h9" stroke="red"/></svg>"#)
    };
    let page = format!(
        "<html>\n{}\n<p>and</p>\n{}</html>",
        one("first"),
        one("second")
    );
    let error = load("a.html", page.as_bytes(), &DesignCaps::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("2 svg elements: line 2 `<svg id=") && error.contains("line 4"),
        "{error}"
    );
    let nested = format!(r#"<svg viewBox="0 0 9 9">{}"#, one("inner"));
    for cut in [
        nested.as_str(),
        "```svg\n<svg viewBox='0 0 9 9'><path d='M0 0h9' stroke='red'/>\n```",
    ] {
        assert!(
            load("a.svg", cut.as_bytes(), &DesignCaps::default()).is_err(),
            "{cut}"
        );
    }
}
