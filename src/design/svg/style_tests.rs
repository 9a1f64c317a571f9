//! Tests of style sheets and `style` attributes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use proptest::prelude::*;

use super::super::{Design, DesignCaps, ReadOptions, StrokeFont, load, load_with};
use super::tests::{near, only, read};

#[test]
fn colours_are_drawn_as_browsers_show_them() {
    let red = Some([255, 0, 0]);
    for body in [
        r#"<path d="M0 0h5" style="stroke: light-dark(rgb(255, 0, 0), rgb(0, 0, 0))"/>"#,
        r##"<path d="M0 0h5" stroke="#00f" style="stroke: light-dark(#ff0000, var(--dark, #121212))"/>"##,
        r#"<path d="M0 0h5" style="stroke:var(--c,red)"/>"#,
        r#"<path d="M0 0h5" stroke="var(--c, red)"/>"#,
        r#"<g style="--c:red"><path d="M0 0h5" style="stroke:var(--c)"/></g>"#,
        r#"<style>:root{--c:var(--d);--d:red}.a{stroke:var(--c, blue)}</style><path class="a" d="M0 0h5"/>"#,
        r#"<g color="red"><path d="M0 0h5" stroke="currentcolor"/></g>"#,
        r#"<style>path{STROKE:Red !important}</style><path d="M0 0h5" style="stroke:blue"/>"#,
        r#"<style>/* a { */ path.a{stroke:red} path{stroke:blue}</style><path class="b a" d="M0 0h5"/>"#,
        r#"<style>g > path + path, #no{stroke:red}</style><g><path/><path d="M0 0h5"/></g>"#,
        r#"<style>@media (prefers-color-scheme: dark) {path{stroke:blue}} path{stroke:red}</style><path d="M0 0h5"/>"#,
        r#"<style>path[d]:first-child{stroke:red} path:hover{stroke:blue} p::after{fill:red}</style><g><path d="M0 0h5"/></g>"#,
        r#"<style>[d^=M][d$=h5][d*="0 0"][class~=b]:not(.c):not([id]){stroke:red}</style><path class="a b" d="M0 0h5"/>"#,
        r##"<path d="M0 0h5" stroke="#ff0000 icc-color(a, 1, 0, 0)"/>"##,
        r#"<g stroke="red"><path d="M0 0h5" stroke="null" fill="" stroke-dasharray="null"/></g>"#,
        r#"<style>path{font:1px 'A "B', c;stroke:red}</style><path d="M0 0h5"/>"#,
        r##"<style type="text/css"><![CDATA[ path { stroke : red } ]]></style><path d='M0 0h5' style='fill:url("#a");'/>"##,
    ] {
        assert_eq!(only(body).colour, red, "{body}");
    }
}

#[test]
fn geometry_and_transforms_of_styles_are_drawn() {
    let line = [[10.0, 40.0], [15.0, 40.0]];
    for body in [
        r#"<style>path{transform:translate(10px,10px) rotate(0deg)}</style><path stroke="red" d="M0 0h5"/>"#,
        r#"<path style="transform:translate(10px,10px);transform-box:view-box" stroke="red" d="M0 0h5"/>"#,
        r#"<style>path{d:path("M10 10h5")}</style><path stroke="red" d="M0 0h9"/>"#,
        r#"<g stroke="red" style="transform:none;rotate:none"><path d="M10 10h5"/></g>"#,
    ] {
        assert!(near(&only(body).points_mm, &line), "{body}");
    }
    for body in [
        "<style>circle{r:10px;cx:20px;cy:20px}</style><circle r='3'/>",
        r#"<circle style="r:10" cx="20" cy="20"/>"#,
        "<style>rect{width:20px;height:11.4159px}</style><rect x='10' y='10'/>",
    ] {
        let length = only(body).length_mm();
        assert!((length - 62.83).abs() < 0.01, "{body}: {length}");
    }
}

fn refused(body: &str, message: &str) {
    let error = read(body).unwrap_err().to_string();
    assert!(error.starts_with(message), "{body}: {error}");
}

#[test]
fn invalid_colours_are_refused_by_name() {
    for (body, message) in [
        (
            r#"<path id="p" style="stroke:oklch(50% .2 30)" d="M0 0h5"/>"#,
            "path `p` on line 3: found stroke = `oklch(50% .2 30)`; accepted: a colour",
        ),
        (
            "<style>\n.a{fill:color-mix(in srgb, red, blue)}</style><rect class='a' width='5' height='5'/>",
            "rect on line 4: found fill = `color-mix",
        ),
        (
            r#"<path stroke="rebecca" d="M0 0h5"/>"#,
            "path on line 3: found stroke = `rebecca`",
        ),
        (
            r#"<path style="stroke:var(--lost)" d="M0 0h5"/>"#,
            "path on line 3: found stroke = `var(--lost)`",
        ),
        (
            r#"<path style="--a:var(--a);stroke:var(--a)" d="M0 0h5"/>"#,
            "path on line 3: found stroke = `var(--a)`",
        ),
        (
            r#"<g color="oklab(1 0 0)"><path stroke="currentColor" d="M0 0h5"/></g>"#,
            "g on line 3: found color = ",
        ),
    ] {
        refused(body, message);
    }
}

#[test]
fn styles_that_move_and_shape_are_refused_by_name() {
    for (body, message) in [
        (
            r#"<style>path{transform:rotate(1turn)}</style><path d="M0 0h5"/>"#,
            "path on line 3: found `turn)` in its transform",
        ),
        (
            r#"<style>path{rotate:30deg}</style><path d="M0 0h5"/>"#,
            "path on line 3: `rotate:30deg` in its style cannot be drawn",
        ),
        (
            r#"<path style="translate: 5px" d="M0 0h5"/>"#,
            "path on line 3: `translate:5px` in its style",
        ),
        (
            r#"<circle style="r:calc(2px + 3px)"/>"#,
            "circle on line 3: `r:calc(2px + 3px)` in its style",
        ),
        (
            r#"<g style="clip-path:circle(5px)"><path d="M0 0h5"/></g>"#,
            "g on line 3: the clip-path `circle(5px)`",
        ),
        (
            r#"<path clip-path="inset(5px)" d="M0 0h5"/>"#,
            "path on line 3: the clip-path `inset(5px)`",
        ),
        (
            r#"<path style="transform:rotate(5deg);transform-box:fill-box" d="M0 0h5"/>"#,
            "path on line 3: a transform with a `transform-box`",
        ),
        (
            "<style>@media print{path{stroke:red}}</style><path d='M0 0h5'/>",
            "`@media print` in a style sheet: a style rule with a condition",
        ),
        (
            "<style media='print'>path{stroke:red}</style><path d='M0 0h5'/>",
            "`media=print` in a style sheet",
        ),
        (
            "<style>path:nth-child(2){stroke:red}</style><path d='M0 0h5'/>",
            "`path:nth-child(2)` in a style sheet: a style rule with an unknown selector",
        ),
        (
            "<style>g{stroke:red; path{fill:none}}</style><path d='M0 0h5'/>",
            "`g` in a style sheet: a style rule with nested rules",
        ),
        (
            "<style>.m{mask:linear-gradient(red,blue)}</style><path class='m' d='M0 0h5'/>",
            "path on line 3: the mask `linear-gradient",
        ),
    ] {
        refused(body, message);
    }
}

#[test]
fn elements_of_entities_have_styles() {
    for quotes in ["\"'", "'\""] {
        let [of_entity, of_path] = [0, 1].map(|at| quotes.get(at..=at).unwrap());
        let text = format!(
            r#"<!DOCTYPE svg [<!ENTITY p {of_entity}<path d={of_path}M0 0h1{of_path}/>{of_entity}>
            <!ENTITY s "stroke:red;fill:none">]>
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><style>path{{stroke:red}}</style>
            &p;&p;<path style="&s;" d="M0 0h1"/><path style="&s;" d="M0 0h1"/></svg>"#
        );
        let design = load("a.svg", text.as_bytes(), &DesignCaps::default()).unwrap();
        let colours = design.strokes.iter().map(|stroke| stroke.colour);
        assert_eq!(colours.collect::<Vec<_>>(), [Some([255, 0, 0]); 4]);
    }
}

#[test]
fn rules_for_other_elements_leave_text_alone() {
    let unstyled = read(r#"<text x="10" y="40" fill="navy">Hi</text>"#).unwrap();
    for style in [
        "path{display:none}",
        "path{stroke:red;stroke-dasharray:1 1}",
        "g,svg svg{display:none}",
        "g g path{transform:translate(9px,0)}",
        "text{fill:navy}",
    ] {
        let styled = format!(r#"<style>{style}</style><text x="10" y="40" fill="navy">Hi</text>"#);
        assert_eq!(read(&styled).unwrap(), unstyled, "{style}");
    }
    let anchored = read("<style>.m{text-anchor:end}</style><text class='m' x='60' y='40'>H</text>");
    let points = anchored
        .unwrap()
        .strokes
        .into_iter()
        .flat_map(|stroke| stroke.points_mm);
    let right = points.map(|[x, _]| x).fold(0.0, f64::max);
    assert!((right - 60.0).abs() < 1e-3, "{right}");
}

#[test]
fn clips_of_text_are_refused() {
    for (clip, element) in [
        (
            r##"<clipPath id="c"><text id="t" y="9">Hi</text></clipPath>"##,
            "text `t`",
        ),
        (
            r##"<text id="t" y="9">Hi</text><clipPath id="c"><use id="u" href="#t"/></clipPath>"##,
            "use `u`",
        ),
    ] {
        let body = format!(r##"{clip}<path clip-path="url(#c)" stroke="red" d="M0 0h5"/>"##);
        let error = read(&body).unwrap_err().to_string();
        let message =
            format!("{element} on line 3: a clip path of text cannot be drawn. Next: turn");
        assert!(error.starts_with(&message), "{error}");
    }
}

#[test]
fn styles_that_change_no_line_are_noted() {
    for (body, note) in [
        (
            r#"<text letter-spacing="3">H</text>"#,
            "text on line 3: its letter-spacing is ignored: the letters are placed without it",
        ),
        (
            r#"<style>.u{text-decoration:underline}</style><text class="u">H</text>"#,
            "text on line 3: its text-decoration is ignored: the letters are placed without it",
        ),
        (
            r#"<text>H<tspan baseline-shift="sub">2</tspan></text>"#,
            "tspan on line 3: its baseline-shift is ignored: the letters are placed without it",
        ),
        (
            r#"<path style="animation:dash 5s" stroke="red" d="M0 0h5"/>"#,
            "path on line 3: its animation is not drawn: the drawing shows the state without animation",
        ),
        (
            r#"<style>.f{filter:blur(2px)}</style><path class="f" stroke="red" d="M0 0h5"/>"#,
            "path on line 3: its filter is not drawn: a pen draws only lines",
        ),
    ] {
        assert_eq!(read(body).unwrap().notes[0], note, "{body}");
    }
}

#[test]
fn a_page_keeps_the_size_of_its_attributes() {
    for (style, note) in [
        ("svg{width:100%;height:auto;max-width:30px}", None),
        (
            "svg{width:30px}",
            Some(
                "svg on line 1: the width `30px` in its style is ignored: only the attributes of the `svg` element set the page's size",
            ),
        ),
    ] {
        let design = read(&format!(
            r#"<style>{style}</style><rect style="rx:auto;stroke:red;fill:none" width="5" height="5"/>"#
        ))
        .unwrap();
        assert!((design.page_mm[0] - 100.0).abs() < 1e-4, "{style}");
        assert_eq!(
            design.notes,
            Vec::from_iter(note.map(str::to_owned)),
            "{style}"
        );
    }
    let text = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 2" style="width:40mm"><path stroke="red" d="M0 0h1"/></svg>"#;
    let design = load("a.svg", text.as_bytes(), &DesignCaps::default()).unwrap();
    assert!((design.page_mm[0] - 40.0).abs() < 1e-4 && design.states_lengths);
}

#[test]
fn a_rule_for_all_lines_applies_to_markers_too() {
    let body = r##"<style>path{stroke:red;marker-end:url(#m)}</style>
        <marker id="m" markerUnits="userSpaceOnUse"><path d="M0 0h1"/></marker><path d="M0 0h5"/>"##;
    assert_eq!(read(body).unwrap().strokes.len(), 2);
}

#[test]
fn styles_are_bounded() {
    let many = format!(
        "<style>*{{{}}}</style>{}",
        "fill:red;".repeat(10_000),
        "<path d='M0 0h5'/>".repeat(3_000)
    );
    let lines = "<path d='M0 0h5'/>".repeat(9_000);
    let deep = format!(
        "<style>{}</style>{}{lines}{}",
        "g .a path{fill:red}".repeat(200),
        "<g>".repeat(80),
        "</g>".repeat(80)
    );
    for body in [many, deep] {
        let error = read(&body).unwrap_err().to_string();
        assert!(error.contains("style rules"), "{error}");
    }
    let slow = format!(
        "<style>{} x{{fill:red}}</style>{}<path d='M0 0h5'/>{}",
        "g ".repeat(40),
        "<g>".repeat(90),
        "</g>".repeat(90)
    );
    assert_eq!(read(&slow).unwrap().strokes.len(), 1);
}

proptest! {
    #[test]
    fn any_sheet_is_read_or_refused_but_never_panics(
        sheet in "([a-z#.:>+*{};@(),'-]|--a|var\\(|/\\*|\\*/|path|stroke:red|fill|[ é!%0-9])*",
    ) {
        let body = format!(
            r#"<style><![CDATA[{sheet}]]></style><path id="a" class="b" style="{}" stroke="red" d="M0 0h5"/>"#,
            sheet.replace('"', "")
        );
        let _ = read(&body);
    }
}

#[test]
fn text_has_the_single_line_font_of_its_file_or_of_the_caller() {
    let svg = |family: &str| {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="40mm" height="20mm" viewBox="0 0 40 20">
            <g style="font-family: {family}"><text x="2" y="15" font-size="10">gЖ</text></g></svg>"#
        )
    };
    let drawn = |family: &str, font: Option<&str>| {
        let options = ReadOptions {
            font: font.map(|name| StrokeFont::named(name).unwrap()),
            ..ReadOptions::default()
        };
        load_with(
            "a.svg",
            svg(family).as_bytes(),
            &DesignCaps::default(),
            options,
        )
        .unwrap()
    };
    let own = drawn("Arial, 'Hershey Gothic', serif", None);
    assert_eq!(
        own.notes,
        ["font gothic lacks Ж; font serif is used for these"]
    );
    // A generic family is no font of ours, whatever ours are called.
    let plain = drawn("serif", None);
    assert!(plain.notes[0].contains("its font"), "{:?}", plain.notes);
    assert_ne!(own.strokes, plain.strokes);
    let asked = drawn("serif", Some("gothic"));
    let points = |design: &Design| -> Vec<_> {
        let strokes = design.strokes.iter().map(|stroke| stroke.points_mm.clone());
        strokes.collect()
    };
    assert_eq!(points(&asked), points(&own));
    assert_eq!(
        points(&drawn("Hershey Gothic", Some("plain"))),
        points(&plain)
    );
}
