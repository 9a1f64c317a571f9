//! A sheet with a sample of every font, as an SVG of lines.

use std::fmt::Write as _;

use super::super::simplified;
use super::{StrokeFont, lay_out_in};

/// Samples, each shown in the fonts that have its last letter.
const SAMPLES: [&str; 3] = [
    "The quick brown fox jumps over 12 lazy dogs",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "Съешь ещё этих мягких французских булок",
];

/// Heights of a capital of the samples and of the names above them.
const SAMPLE_MM: f64 = 5.0;
const NAME_MM: f64 = 2.5;

/// Margins, the distance of two samples, and the page's width.
const MARGIN_MM: f64 = 8.0;
const STEP_MM: f64 = 14.0;
const WIDTH_MM: f64 = 240.0;

/// Largest distance of the sheet's lines from the letters' own.
const TOLERANCE_MM: f64 = 0.02;

/// Returns an SVG with a sample of each font, which can be drawn.
#[must_use]
pub fn specimen() -> String {
    let mut lines = String::new();
    let mut y = MARGIN_MM;
    for font in StrokeFont::all() {
        let name = format!("{}: {}", font.name(), font.about());
        write_line(StrokeFont::default(), &name, NAME_MM, y, &mut lines);
        y += 2.0;
        let has = |sample: &&str| sample.chars().last().is_some_and(|c| font.has(c));
        for sample in SAMPLES.into_iter().filter(has) {
            y += SAMPLE_MM + 3.0;
            write_line(font, sample, SAMPLE_MM, y, &mut lines);
            y += 2.0;
        }
        y += STEP_MM - SAMPLE_MM;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH_MM}mm\" height=\"{y}mm\" \
         viewBox=\"0 0 {WIDTH_MM} {y}\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <g fill=\"none\" stroke=\"black\" stroke-width=\"0.3\" stroke-linecap=\"round\" \
         stroke-linejoin=\"round\">\n{lines}</g>\n</svg>\n"
    )
}

fn write_line(font: StrokeFont, text: &str, height_mm: f64, y: f64, out: &mut String) {
    let line = lay_out_in(font, text).unwrap_or_default();
    out.push_str("<path d=\"");
    let tolerance = TOLERANCE_MM / height_mm;
    for path in line.strokes.iter().map(|path| simplified(path, tolerance)) {
        for (index, [px, py]) in path.iter().enumerate() {
            let verb = if index == 0 { 'M' } else { 'L' };
            let (x, y) = (MARGIN_MM + px * height_mm, y - py * height_mm);
            let _ = write!(out, "{verb}{x:.2} {y:.2}");
        }
    }
    out.push_str("\"/>\n");
}
