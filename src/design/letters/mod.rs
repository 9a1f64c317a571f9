//! Text in single-line letters: strokes for a pen, not outlines for a printer.

mod accents;
mod glyphs;
mod specimen;
mod stroke_font;

use base::plane::Point;

use super::collect_strokes::StrokeCollector;
use super::design_error::quoted;
use super::{Design, DesignCaps, DesignError, DesignStroke, flatten};
use accents::compose;
use glyphs::{CAPITAL, glyph};
pub use specimen::specimen;
pub use stroke_font::StrokeFont;

/// Least height of capital letters.
const HEIGHT_MIN_MM: f64 = 0.5;
const HEIGHT_MAX_MM: f64 = 500.0;

/// Distance from one baseline to the next, in heights of a capital letter.
pub const LINE_STEP: f64 = 1.75;

/// Height of a capital letter, as a fraction of the font size.
pub(crate) const CAPITAL_EM: f64 = 0.7;

/// Space between two letters, in grid units.
const SPACE: f64 = 3.6;

/// Most letters from other fonts that a note lists.
const BORROWED_MAX: usize = 8;

/// Chord error in grid units: 0.02 mm for capitals of 70 mm.
const FLAT: f64 = 0.004;

/// A line of text laid out from its left end, the baseline at y = 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextLine {
    /// Strokes in writing order, in heights of a capital letter unless a function says otherwise.
    pub strokes: Vec<Vec<Point>>,
    /// Distance from its left end to where the next letter would begin.
    pub advance: f64,
    /// The part of it that is behind the last letter.
    pub space_after: f64,
    /// Letters that its font lacks, and the fonts that they come from.
    pub borrowed: Vec<(char, StrokeFont)>,
}

impl TextLine {
    /// Returns its width without the space after its last letter.
    #[must_use]
    pub fn width(&self) -> f64 {
        (self.advance - self.space_after).max(0.0)
    }
}

/// Place of the lines of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextAlign {
    /// They begin at one place.
    #[default]
    Left,
    /// Their middles are at one place.
    Center,
    /// They end at one place.
    Right,
}

impl TextAlign {
    /// Returns the share of the free width that is in front of a line.
    const fn share(self) -> f64 {
        match self {
            Self::Left => 0.0,
            Self::Center => 0.5,
            Self::Right => 1.0,
        }
    }
}

/// Look of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextLook {
    /// Height of a capital letter, 0.5 to 500.
    pub letter_height_mm: f64,
    /// Lines that are longer are broken between words.
    pub width_mm: f64,
    /// Its font.
    pub font: StrokeFont,
    /// Place of its lines.
    pub align: TextAlign,
    /// Distance of its baselines in those of common text.
    pub line_spacing: f64,
}

impl TextLook {
    /// Returns the look of plain lines.
    #[must_use]
    pub fn plain(letter_height_mm: f64, width_mm: f64) -> Self {
        Self {
            letter_height_mm,
            width_mm,
            font: StrokeFont::default(),
            align: TextAlign::Left,
            line_spacing: 1.0,
        }
    }
}

/// Lays out one line of plain text, with letters 1 unit high; multiply by the height.
///
/// # Errors
/// A character that no font has, by its position counted from 1. Line breaks have no letter.
pub fn lay_out_line(text: &str) -> Result<TextLine, DesignError> {
    lay_out_in(StrokeFont::default(), text)
}

/// Lays out one line of text in a font.
pub(crate) fn lay_out_in(font: StrokeFont, text: &str) -> Result<TextLine, DesignError> {
    lay_out_from(0, font, text)
}

/// Lays out a line that follows this many characters of a text.
fn lay_out_from(offset: usize, font: StrokeFont, text: &str) -> Result<TextLine, DesignError> {
    let mut line = TextLine::default();
    let mut previous = None;
    for (index, letter) in text.chars().enumerate() {
        let found = font.letter_or_borrowed(letter);
        let (from, drawn) = found.ok_or_else(|| DesignError::Letter {
            position: offset + index + 1,
            found: quoted(letter.encode_utf8(&mut [0; 4])),
        })?;
        let kerned = from.is_plain().then_some(letter);
        let x = line.advance + previous.zip(kerned).map_or(0.0, |(a, b)| kern(a, b)) / CAPITAL;
        let strokes = drawn.strokes.into_iter();
        let shift = |[px, py]: Point| [x + px, py];
        line.strokes
            .extend(strokes.map(|path| path.into_iter().map(shift).collect()));
        line.advance = x + drawn.advance;
        line.space_after = drawn.space_after;
        line.borrowed
            .extend((from != font).then_some((letter, from)));
        previous = kerned;
    }
    Ok(line)
}

/// Draws `text` in single-line letters, line by line, on a page that just fits them.
///
/// # Errors
/// A character that no font has, by its position; an impossible height; no letter.
pub fn design(text: &str, look: &TextLook) -> Result<Design, DesignError> {
    let letter_height_mm = look.letter_height_mm;
    if !(HEIGHT_MIN_MM..=HEIGHT_MAX_MM).contains(&letter_height_mm) {
        return Err(DesignError::LetterHeight {
            height_mm: letter_height_mm,
            min_mm: HEIGHT_MIN_MM,
            max_mm: HEIGHT_MAX_MM,
        });
    }
    let caps = DesignCaps::default();
    let mut strokes = StrokeCollector::new(&caps);
    strokes.note_capital(letter_height_mm);
    let lines = laid_out(text, look)?;
    let widest = lines.iter().map(TextLine::width).fold(0.0, f64::max);
    let mut baseline = 0.0;
    let mut borrowed = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        let left = (widest - line.width()) * look.align.share();
        let place = |[x, y]: Point| {
            [
                (x + left) * letter_height_mm,
                (y - baseline) * letter_height_mm,
            ]
        };
        let template = DesignStroke {
            source: format!("line {}", index + 1),
            ..DesignStroke::default()
        };
        for path in line.strokes {
            strokes.push(path.into_iter().map(place).collect(), &template)?;
        }
        borrowed.extend(line.borrowed);
        baseline += LINE_STEP * look.line_spacing;
    }
    let mut design = strokes.on_fitted_page("the text has no letter")?;
    design.notes.extend(borrowed_notes(look.font, &borrowed));
    Ok(Design {
        states_lengths: true,
        ..design
    })
}

/// Notes the letters that a font lacks, for each font that they come from.
pub(crate) fn borrowed_notes(
    font: StrokeFont,
    borrowed: &[(char, StrokeFont)],
) -> impl Iterator<Item = String> {
    StrokeFont::all().filter_map(move |from| {
        let mut letters: Vec<char> = Vec::new();
        let of_it = borrowed.iter().filter(|(_, other)| *other == from);
        for (letter, _) in of_it {
            if !letters.contains(letter) {
                letters.push(*letter);
            }
        }
        let shown: String = letters.iter().take(BORROWED_MAX).collect();
        let more = if letters.len() > BORROWED_MAX {
            "…"
        } else {
            ""
        };
        let (font, from) = (font.name(), from.name());
        (!letters.is_empty())
            .then(|| format!("font {font} lacks {shown}{more}; font {from} is used for these"))
    })
}

/// Lays out the lines of a text, broken between words where they are longer than its look allows.
fn laid_out(text: &str, look: &TextLook) -> Result<Vec<TextLine>, DesignError> {
    let width = look.width_mm / look.letter_height_mm;
    let mut lines = Vec::new();
    let mut position = 0;
    for line in text.split('\n') {
        let trimmed = line.strip_suffix('\r').unwrap_or(line);
        break_line(position, trimmed, width, look.font, &mut lines)?;
        position += line.chars().count() + 1;
    }
    let laid_out = |(position, line)| lay_out_from(position, look.font, line);
    lines.into_iter().map(laid_out).collect()
}

fn break_line<'t>(
    position: usize,
    line: &'t str,
    width: f64,
    font: StrokeFont,
    lines: &mut Vec<(usize, &'t str)>,
) -> Result<(), DesignError> {
    let (mut first, mut advance) = ((position, 0), 0.0);
    let mut next = first;
    for word in line.split_inclusive(' ') {
        let (position, from) = next;
        let shown = lay_out_from(position, font, word.trim_end_matches(' '))?;
        if from > first.1 && advance + shown.advance - shown.space_after > width {
            let text = line.get(first.1..from).unwrap_or("");
            lines.push((first.0, text.trim_end_matches(' ')));
            (first, advance) = (next, 0.0);
        }
        advance += lay_out_from(position, font, word)?.advance;
        next = (position + word.chars().count(), from + word.len());
    }
    lines.push((first.0, line.get(first.1..).unwrap_or("")));
    Ok(())
}

/// Returns a letter's width and strokes in grid units.
fn letter_strokes(letter: char) -> Option<(f64, Vec<Vec<Point>>)> {
    if let Some((width, path)) = glyph(letter) {
        return Some((width, trace(path, [0.0, 0.0], FLAT)));
    }
    let parts = compose(letter)?;
    let mut strokes = trace(parts.base, [0.0, 0.0], FLAT);
    strokes.extend(trace(parts.mark, parts.mark_at, FLAT));
    Some((parts.width, strokes))
}

/// Shape of a letter's edge, as it affects the neighbour.
#[derive(Clone, Copy, PartialEq)]
enum LetterEdge {
    Straight,
    Round,
    /// Wide at the top and narrow at the foot; the next is the reverse.
    HighArm,
    LowArm,
}

/// Returns the change in distance between two letters relative to two stems, in grid units; negative is nearer.
fn kern(left: char, right: char) -> f64 {
    use LetterEdge::{HighArm, LowArm, Round, Straight};
    match (right_edge(left), left_edge(right)) {
        (HighArm, LowArm) | (LowArm, HighArm) => -3.0,
        (HighArm, Round) | (LowArm, Round) | (Round, HighArm | LowArm) => -1.3,
        (Round, Round) => -0.9,
        (Round, Straight) | (Straight, Round) => -0.4,
        (HighArm | LowArm, Straight) | (Straight, HighArm | LowArm) => -0.4,
        (HighArm, HighArm) | (LowArm, LowArm) | (Straight, Straight) => 0.0,
    }
}

fn right_edge(letter: char) -> LetterEdge {
    match letter {
        'T' | 'V' | 'W' | 'Y' | 'P' | 'F' | 'v' | 'w' | 'y' | 'r' | 'f' | '7' => {
            LetterEdge::HighArm
        }
        'A' | 'L' => LetterEdge::LowArm,
        'b' | 'c' | 'e' | 'o' | 'p' | 'ö' | 'ô' | 'ò' | 'ó' | 'õ' | 'O' | 'D' | 'Q' | 'S' | 's'
        | '0' | '3' | '5' | '6' | '8' | '9' => LetterEdge::Round,
        _ => LetterEdge::Straight,
    }
}

fn left_edge(letter: char) -> LetterEdge {
    match letter {
        'T' | 'V' | 'W' | 'Y' | 'v' | 'w' | 'y' | '7' => LetterEdge::HighArm,
        'A' | 'J' => LetterEdge::LowArm,
        'a' | 'c' | 'd' | 'e' | 'g' | 'o' | 'q' | 's' | 'ö' | 'ä' | 'é' | 'è' | 'ê' | 'ô' | 'ó'
        | 'O' | 'C' | 'G' | 'Q' | 'S' | '0' | '6' | '8' | '9' => LetterEdge::Round,
        _ => LetterEdge::Straight,
    }
}

/// Converts a glyph's path to polylines, whose chords are at most `flat` off.
fn trace(path: &str, at: Point, flat: f64) -> Vec<Vec<Point>> {
    let mut strokes: Vec<Vec<Point>> = Vec::new();
    for (index, _) in path.match_indices(|c: char| c.is_ascii_uppercase()) {
        let (verb, rest) = path.split_at(index).1.split_at(1);
        let end = rest.find(|c: char| c.is_ascii_uppercase());
        let points = parse_points(rest.get(..end.unwrap_or(rest.len())).unwrap_or(""), at);
        append_step(&mut strokes, verb, &points, flat);
    }
    strokes
}

fn parse_points(text: &str, at: Point) -> Vec<Point> {
    let point = |pair: &str| {
        let (x, y) = pair.split_once(',')?;
        let x: f64 = x.parse().ok()?;
        let y: f64 = y.parse().ok()?;
        Some([x + at[0], y + at[1]])
    };
    text.split(' ').filter_map(point).collect()
}

fn append_step(strokes: &mut Vec<Vec<Point>>, verb: &str, points: &[Point], flat: f64) {
    if let ("M", Some(first)) = (verb, points.first()) {
        strokes.push(vec![*first]);
        return;
    }
    let Some(stroke) = strokes.last_mut() else {
        return;
    };
    match (verb, points) {
        ("L", [end]) => stroke.push(*end),
        ("C", [first, second, end]) => flatten::cubic(stroke, [*first, *second, *end], flat),
        ("E", [end]) => append_quarter(stroke, *end, true, flat),
        ("N", [end]) => append_quarter(stroke, *end, false, flat),
        _ => {}
    }
}

/// Appends a quarter of an ellipse, which leaves its start horizontally or vertically.
fn append_quarter(stroke: &mut Vec<Point>, end: Point, is_horizontal: bool, flat: f64) {
    /// Relative position of a cubic curve's control points for a quarter of a circle.
    const ROUND: f64 = 0.552_284_75;
    let Some(&[x, y]) = stroke.last() else { return };
    let [dx, dy] = [end[0] - x, end[1] - y];
    let (first, second) = if is_horizontal {
        ([x + dx * ROUND, y], [end[0], end[1] - dy * ROUND])
    } else {
        ([x, y + dy * ROUND], [end[0] - dx * ROUND, end[1]])
    };
    flatten::cubic(stroke, [first, second, end], flat);
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a failing test may panic"
)]
mod tests {
    use super::super::letters;
    use super::*;

    fn plain(text: &str, height_mm: f64, width_mm: f64) -> Result<Design, DesignError> {
        letters(text, &TextLook::plain(height_mm, width_mm))
    }

    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789\
        .,:;!?'\"-–—_+=/\\|()[]{}<>*#%&@$^~`äöüÄÖÜßéèêëáàâñçåøæœłžšč°·…×÷±²³µ€£§«»¡¿„“”‘’";

    #[test]
    fn every_letter_has_strokes_within_its_line() {
        for letter in ALPHABET.chars() {
            let (width, strokes) = letter_strokes(letter).unwrap_or_else(|| panic!("no {letter}"));
            assert!(!strokes.is_empty(), "{letter}");
            for [x, y] in strokes.iter().flatten() {
                assert!((-2.2..=width + 2.2).contains(x), "{letter} at {x}");
                assert!((-5.0..=19.5).contains(y), "{letter} at {y}");
            }
            assert!(strokes.iter().all(|path| path.len() >= 2), "{letter}");
        }
    }

    #[test]
    fn a_capital_has_the_requested_height() {
        let design = plain("H", 7.0, f64::INFINITY).unwrap();
        assert!((design.page_mm[1] - 7.0).abs() < 1e-9);
        assert_eq!(design.strokes.len(), 3);
    }

    #[test]
    fn lines_stand_one_above_the_other() {
        let design = plain("H\r\nH", 10.0, f64::INFINITY).unwrap();
        assert!((design.page_mm[1] - 27.5).abs() < 1e-9);
        assert_eq!(design.strokes.first().unwrap().source, "line 1");
        assert_eq!(design.strokes.last().unwrap().source, "line 2");
    }

    #[test]
    fn refuses_an_unknown_character_by_its_position() {
        let error = plain("ab\nc漢", 5.0, f64::INFINITY).unwrap_err();
        assert_eq!(
            error.to_string(),
            "character 5 is `漢`, which no single-line font has. \
             Next: use Latin, Greek or Cyrillic letters, digits and common signs"
        );
    }

    #[test]
    fn refuses_letters_of_no_height_and_texts_without_letters() {
        for height in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(matches!(
                plain("a", height, f64::INFINITY),
                Err(DesignError::LetterHeight { .. })
            ));
        }
        assert!(matches!(
            plain("  ", 5.0, f64::INFINITY),
            Err(DesignError::Empty { .. })
        ));
    }

    #[test]
    fn round_pairs_stand_nearer_than_stems() {
        let gap = |text: &str| {
            let both = lay_out_line(text).unwrap().advance;
            let each = text
                .chars()
                .map(|c| lay_out_line(&c.to_string()).unwrap().advance);
            both - each.sum::<f64>()
        };
        assert!(gap("AV") < gap("oo") && gap("oo") < gap("HH"));
        assert_eq!(gap("HH"), 0.0);
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let text = "one two three four five six seven";
        let lines = |width_mm: f64| {
            let design = plain(text, 10.0, width_mm).unwrap();
            assert!(design.page_mm[0] <= width_mm, "{:?}", design.page_mm);
            design.strokes.last().unwrap().source.clone()
        };
        assert_eq!(lines(f64::INFINITY), "line 1");
        assert_eq!(lines(150.0), "line 2");
        assert_eq!(lines(98.0), "line 3");
        // One word alone is never broken.
        let word = plain("unbreakable", 10.0, 20.0).unwrap();
        assert!(word.page_mm[0] > 20.0);
        let error = plain("one two three 漢", 10.0, 50.0).unwrap_err();
        assert!(error.to_string().starts_with("character 15 "), "{error}");
    }

    #[test]
    fn lines_end_or_are_centred_at_one_place() {
        let ends = |align| {
            let look = TextLook {
                align,
                ..TextLook::plain(10.0, f64::INFINITY)
            };
            let design = letters("HHHH\nH", &look).unwrap();
            let xs = design.strokes.iter().filter(|s| s.source == "line 2");
            let xs = xs.flat_map(|s| &s.points_mm).map(|p| p[0]);
            let (low, high) = xs.fold((f64::MAX, 0.0), |(a, b), x| (x.min(a), x.max(b)));
            (low, design.page_mm[0] - high)
        };
        let (left, right) = ends(TextAlign::Center);
        assert!((left - right).abs() < 1e-9 && left > 1.0);
        assert!(ends(TextAlign::Left).0 < 1e-9 && ends(TextAlign::Right).1 < 1e-9);
    }

    #[test]
    fn line_spacing_moves_lines_apart() {
        let look = TextLook {
            line_spacing: 2.0,
            ..TextLook::plain(10.0, f64::INFINITY)
        };
        let design = letters("H\nH", &look).unwrap();
        assert!((design.page_mm[1] - 45.0).abs() < 1e-9);
    }

    #[test]
    fn a_letter_that_a_font_lacks_comes_from_another_and_is_noted() {
        let look = TextLook {
            font: StrokeFont::named("script").unwrap(),
            ..TextLook::plain(10.0, f64::INFINITY)
        };
        let design = letters("Ωmega Жж", &look).unwrap();
        let notes = [
            "font script lacks Ω; font sans is used for these",
            "font script lacks Жж; font serif is used for these",
        ];
        assert_eq!(design.notes, notes);
        assert!(plain("Ωmega", 10.0, f64::INFINITY).unwrap().notes.len() == 1);
        assert!(letters("mega", &look).unwrap().notes.is_empty());
    }
}
