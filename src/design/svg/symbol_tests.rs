//! A `use` of a `symbol` is drawn where a group of the same lines is.

use proptest::prelude::*;

use super::tests::read;
use base::plane::{Point, distance};

/// A symbol, a `use` of it, and the group that is the same.
#[derive(Clone, Debug)]
struct SymbolUse {
    around: String,
    transform: String,
    at: [f64; 2],
    view_box: bool,
    is_visible: bool,
    is_nested: bool,
}

/// Side of the view box, and of the `use` that refers to it.
const BOX: f64 = 12.0;
const SIDE: f64 = 18.0;

impl SymbolUse {
    /// Lines that reach beyond the symbol's viewport on some sides.
    const LINES: &'static str = r#"<path stroke-dasharray="5 0.5" d="M-3.3 1.7L9.1 2.9L7.7 16.3"/><path d="M2.1 3.3L4.7 5.9"/>"#;

    fn with_symbol(&self) -> String {
        let view_box = match self.view_box {
            true => format!(r#"viewBox="0 0 {BOX} {BOX}""#),
            false => String::new(),
        };
        let overflow = if self.is_visible {
            r#"overflow="visible""#
        } else {
            ""
        };
        let [x, y] = self.at;
        let (around, transform) = (&self.around, &self.transform);
        let lines = Self::LINES;
        let nested = match self.is_nested {
            true => format!(
                r##"<symbol id="inner" overflow="visible">{lines}</symbol><symbol id="s" {view_box} {overflow}><use href="#inner" transform="rotate(11) scale(.8)"/></symbol>"##
            ),
            false => format!(r#"<symbol id="s" {view_box} {overflow}>{lines}</symbol>"#),
        };
        format!(
            r##"{nested}<g {around}><use href="#s" x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" transform="{transform}"/></g>"##
        )
    }

    fn with_group(&self) -> String {
        let [x, y] = self.at;
        let scale = if self.view_box { SIDE / BOX } else { 1.0 };
        let (around, transform) = (&self.around, &self.transform);
        let lines = match self.is_nested {
            true => format!(r#"<g transform="rotate(11) scale(.8)">{}</g>"#, Self::LINES),
            false => Self::LINES.to_owned(),
        };
        let clip = match self.is_visible {
            true => "",
            false => r#"clip-path="url(#viewport)""#,
        };
        format!(
            r#"<clipPath id="viewport"><rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}"/></clipPath>
            <g {around}><g transform="{transform}"><g {clip}><g transform="translate({x} {y}) scale({scale})">{lines}</g></g></g></g>"#
        )
    }
}

fn lines_of(body: &str) -> Vec<Vec<Point>> {
    let always = r#"<path d="M90 1h5"/>"#;
    let body = format!(r#"<g fill="none" stroke="black">{always}{body}</g>"#);
    let design = read(&body).unwrap_or_else(|error| panic!("{body}: {error}"));
    let strokes = design.strokes.into_iter();
    strokes.map(|stroke| stroke.points_mm).collect()
}

fn length(lines: &[Vec<Point>]) -> f64 {
    let steps = lines.iter().flat_map(|line| line.windows(2));
    steps.map(|step| distance(step[0], step[1])).sum()
}

/// Returns whether every point of the one lies near a point of the other.
fn covers(all: &[Vec<Point>], some: &[Vec<Point>]) -> bool {
    let near = |at: &Point| {
        all.iter()
            .flatten()
            .any(|other| distance(*at, *other) < 0.05)
    };
    some.iter().flatten().all(near)
}

fn transform() -> impl Strategy<Value = String> {
    let number = || -20.0..20.0_f64;
    let factor = || prop_oneof![0.4..2.0_f64, -2.0..-0.4_f64];
    prop_oneof![
        (number(), number()).prop_map(|(x, y)| format!("translate({x:.2} {y:.2})")),
        (factor(), factor()).prop_map(|(x, y)| format!("scale({x:.2} {y:.2})")),
        (number(), number()).prop_map(|(deg, x)| format!("rotate({:.1} {x:.1} 7)", deg * 9.0)),
        (factor(), number(), number())
            .prop_map(|(sx, x, y)| format!("matrix({sx:.2} .3 -.2 1.1 {x:.2} {y:.2})")),
        Just(String::new()),
    ]
}

proptest! {
    #[test]
    fn a_use_of_a_symbol_is_the_group_that_it_stands_for(
        around in transform(),
        transform in transform(),
        at in (-9.0..9.0_f64, -9.0..9.0_f64),
        view_box: bool,
        is_visible: bool,
        is_nested: bool,
    ) {
        let around = format!(r#"transform="translate(50 25) {around}""#);
        let at = [at.0, at.1].map(|place| (place * 10.0).round() / 10.0);
        let case = SymbolUse { around, transform, at, view_box, is_visible, is_nested };
        let (symbol, group) = (lines_of(&case.with_symbol()), lines_of(&case.with_group()));
        prop_assert!((length(&symbol) - length(&group)).abs() < 0.1, "{symbol:?}\n{group:?}");
        prop_assert!(covers(&symbol, &group) && covers(&group, &symbol), "{symbol:?}\n{group:?}");
    }
}

#[test]
fn the_clip_of_a_use_turns_with_it_or_is_refused() {
    let clip = r#"<clipPath id="c"><rect x="0" y="0" width="4" height="4"/></clipPath>"#;
    let line = r#"<path d="M-1 2H9"/>"#;
    let moved = r##"transform="translate(20 20) rotate(90)" clip-path="url(#c)""##;
    let same = lines_of(&format!("{clip}<g {moved}>{line}</g>"));
    let with = |overflow: &str| {
        format!(
            r##"{clip}<symbol id="s" overflow="{overflow}">{line}</symbol><use href="#s" {moved}/>"##
        )
    };
    let hidden = lines_of(&with("hidden"));
    assert!(covers(&hidden, &same) && covers(&same, &hidden));
    let refused = read(&with("visible")).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("a group"), "{refused}");
}
