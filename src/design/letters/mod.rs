//! Text in single-line letters: strokes for a pen, not outlines for a printer.

mod accents;
mod glyphs;

use base::plane::Point;

use super::collect_strokes::StrokeCollector;
use super::design_error::quoted;
use super::{Design, DesignCaps, DesignError, DesignStroke, flatten};
use accents::compose;
use glyphs::{CAPITAL, glyph};

/// Least height of capital letters.
const HEIGHT_MIN_MM: f64 = 0.5;
const HEIGHT_MAX_MM: f64 = 500.0;

/// Distance from one baseline to the next, in heights of a capital letter.
pub const LINE_STEP: f64 = 1.75;

/// Height of a capital letter, as a fraction of the font size.
pub(crate) const CAPITAL_EM: f64 = 0.7;

/// Space between two letters, in grid units.
const SPACE: f64 = 3.6;

/// The same in heights of a capital letter: also the space after a line's last letter.
pub(crate) const SPACE_AFTER: f64 = SPACE / CAPITAL;

/// Chord error in grid units: 0.02 mm for capitals of 70 mm.
const FLAT: f64 = 0.004;

/// A line of text laid out from its left end, the baseline at y = 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextLine {
    /// Strokes in writing order, in heights of a capital letter unless a function says otherwise.
    pub strokes: Vec<Vec<Point>>,
    /// Distance from its left end to where the next letter would begin.
    pub advance: f64,
}

/// Lays out one line of text, with letters 1 unit high; multiply by the height.
///
/// # Errors
/// A character without a letter, by its position counted from 1. Line breaks have no letter.
pub fn lay_out_line(text: &str) -> Result<TextLine, DesignError> {
    lay_out_from(0, text)
}

/// Lays out a line that follows this many characters of a text.
fn lay_out_from(offset: usize, text: &str) -> Result<TextLine, DesignError> {
    let mut line = TextLine::default();
    let mut previous = None;
    for (index, letter) in text.chars().enumerate() {
        let (width, strokes) = letter_strokes(letter).ok_or_else(|| DesignError::Letter {
            position: offset + index + 1,
            found: quoted(letter.encode_utf8(&mut [0; 4])),
        })?;
        let x = line.advance + previous.map_or(0.0, |previous| kern(previous, letter)) / CAPITAL;
        let shift = |[px, py]: Point| [x + px / CAPITAL, py / CAPITAL];
        let shifted = strokes.into_iter().map(|path| path.into_iter().map(shift));
        line.strokes.extend(shifted.map(Iterator::collect));
        line.advance = x + (width + SPACE) / CAPITAL;
        previous = Some(letter);
    }
    Ok(line)
}

/// Draws `text` in single-line letters, line by line, on a page that just fits them. Lines that are
/// longer than `width_mm` are broken between words. `letter_height_mm` is the height of a capital
/// letter, 0.5 to 500.
///
/// # Errors
/// A character that the letters do not have, by its position; an impossible height; no letter.
pub fn design(text: &str, letter_height_mm: f64, width_mm: f64) -> Result<Design, DesignError> {
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
    let mut baseline = 0.0;
    let lines = broken_lines(text, width_mm / letter_height_mm)?;
    for (index, (position, line_text)) in lines.into_iter().enumerate() {
        let line = lay_out_from(position, line_text)?;
        let place = |[x, y]: Point| [x * letter_height_mm, (y - baseline) * letter_height_mm];
        let template = DesignStroke {
            source: format!("line {}", index + 1),
            ..DesignStroke::default()
        };
        for path in line.strokes {
            strokes.push(path.into_iter().map(place).collect(), &template)?;
        }
        baseline += LINE_STEP;
    }
    let design = strokes.on_fitted_page("the text has no letter")?;
    Ok(Design {
        states_lengths: true,
        ..design
    })
}

/// Returns the lines of a text, each with its position in it, broken between words where they are
/// longer than `width`, in heights of a capital letter.
fn broken_lines(text: &str, width: f64) -> Result<Vec<(usize, &str)>, DesignError> {
    let mut lines = Vec::new();
    let mut position = 0;
    for line in text.split('\n') {
        let trimmed = line.strip_suffix('\r').unwrap_or(line);
        break_line(position, trimmed, width, &mut lines)?;
        position += line.chars().count() + 1;
    }
    Ok(lines)
}

fn break_line<'t>(
    position: usize,
    line: &'t str,
    width: f64,
    lines: &mut Vec<(usize, &'t str)>,
) -> Result<(), DesignError> {
    let (mut first, mut advance) = ((position, 0), 0.0);
    let mut next = first;
    for word in line.split_inclusive(' ') {
        let (position, from) = next;
        let shown = lay_out_from(position, word.trim_end_matches(' '))?.advance;
        if from > first.1 && advance + shown - SPACE_AFTER > width {
            let text = line.get(first.1..from).unwrap_or("");
            lines.push((first.0, text.trim_end_matches(' ')));
            (first, advance) = (next, 0.0);
        }
        advance += lay_out_from(position, word)?.advance;
        next = (position + word.chars().count(), from + word.len());
    }
    lines.push((first.0, line.get(first.1..).unwrap_or("")));
    Ok(())
}

/// Returns a letter's width and strokes in grid units.
fn letter_strokes(letter: char) -> Option<(f64, Vec<Vec<Point>>)> {
    if let Some((width, path)) = glyph(letter) {
        return Some((width, trace(path, [0.0, 0.0])));
    }
    let parts = compose(letter)?;
    let mut strokes = trace(parts.base, [0.0, 0.0]);
    strokes.extend(trace(parts.mark, parts.mark_at));
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

/// Converts a glyph's path to polylines.
fn trace(path: &str, at: Point) -> Vec<Vec<Point>> {
    let mut strokes: Vec<Vec<Point>> = Vec::new();
    for (index, _) in path.match_indices(|c: char| c.is_ascii_uppercase()) {
        let (verb, rest) = path.split_at(index).1.split_at(1);
        let end = rest.find(|c: char| c.is_ascii_uppercase());
        let points = parse_points(rest.get(..end.unwrap_or(rest.len())).unwrap_or(""), at);
        append_step(&mut strokes, verb, &points);
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

fn append_step(strokes: &mut Vec<Vec<Point>>, verb: &str, points: &[Point]) {
    if let ("M", Some(first)) = (verb, points.first()) {
        strokes.push(vec![*first]);
        return;
    }
    let Some(stroke) = strokes.last_mut() else {
        return;
    };
    match (verb, points) {
        ("L", [end]) => stroke.push(*end),
        ("C", [first, second, end]) => flatten::cubic(stroke, [*first, *second, *end], FLAT),
        ("E", [end]) => append_quarter(stroke, *end, true),
        ("N", [end]) => append_quarter(stroke, *end, false),
        _ => {}
    }
}

/// Appends a quarter of an ellipse, which leaves its start horizontally or vertically.
fn append_quarter(stroke: &mut Vec<Point>, end: Point, is_horizontal: bool) {
    /// Relative position of a cubic curve's control points for a quarter of a circle.
    const ROUND: f64 = 0.552_284_75;
    let Some(&[x, y]) = stroke.last() else { return };
    let [dx, dy] = [end[0] - x, end[1] - y];
    let (first, second) = if is_horizontal {
        ([x + dx * ROUND, y], [end[0], end[1] - dy * ROUND])
    } else {
        ([x, y + dy * ROUND], [end[0] - dx * ROUND, end[1]])
    };
    flatten::cubic(stroke, [first, second, end], FLAT);
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
        let design = letters("H", 7.0, f64::INFINITY).unwrap();
        assert!((design.page_mm[1] - 7.0).abs() < 1e-9);
        assert_eq!(design.strokes.len(), 3);
    }

    #[test]
    fn lines_stand_one_above_the_other() {
        let design = letters("H\r\nH", 10.0, f64::INFINITY).unwrap();
        assert!((design.page_mm[1] - 27.5).abs() < 1e-9);
        assert_eq!(design.strokes.first().unwrap().source, "line 1");
        assert_eq!(design.strokes.last().unwrap().source, "line 2");
    }

    #[test]
    fn refuses_an_unknown_character_by_its_position() {
        let error = letters("ab\nc漢", 5.0, f64::INFINITY).unwrap_err();
        assert_eq!(
            error.to_string(),
            "character 5 is `漢`, and the single-line letters do not have it: \
             use Latin letters, digits and common signs"
        );
    }

    #[test]
    fn refuses_letters_of_no_height_and_texts_without_letters() {
        for height in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(matches!(
                letters("a", height, f64::INFINITY),
                Err(DesignError::LetterHeight { .. })
            ));
        }
        assert!(matches!(
            letters("  ", 5.0, f64::INFINITY),
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
            let design = letters(text, 10.0, width_mm).unwrap();
            assert!(design.page_mm[0] <= width_mm, "{:?}", design.page_mm);
            design.strokes.last().unwrap().source.clone()
        };
        assert_eq!(lines(f64::INFINITY), "line 1");
        assert_eq!(lines(150.0), "line 2");
        assert_eq!(lines(98.0), "line 3");
        // One word alone is never broken.
        let word = letters("unbreakable", 10.0, 20.0).unwrap();
        assert!(word.page_mm[0] > 20.0);
        let error = letters("one two three 漢", 10.0, 50.0).unwrap_err();
        assert!(error.to_string().starts_with("character 15 "), "{error}");
    }
}
