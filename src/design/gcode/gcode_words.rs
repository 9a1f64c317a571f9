//! Splits a line of G-code into its words, without comments.

use super::super::DesignError;
use super::super::design_error::quoted;
use super::invalid;

/// Most words that a line may have.
const WORDS_MAX: usize = 64;

/// A letter and its number: `X-3.5`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GcodeWord {
    pub(super) letter: char,
    pub(super) value: f64,
}

impl GcodeWord {
    /// Returns ten times the number of a `G` or `M` word, so that G91.1 is 911; `None` if it is not
    /// a code.
    pub(super) fn code(self) -> Option<u16> {
        let tenths = self.value * 10.0;
        let is_code = (0.0..=9999.0).contains(&tenths) && (tenths - tenths.round()).abs() < 1e-6;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 9999"
        )]
        is_code.then_some(tenths.round() as u16)
    }

    /// Returns whether it is G4.
    pub(super) fn is_dwell(self) -> bool {
        self.letter == 'G' && self.code() == Some(40)
    }
}

/// Returns the lines of `text`, whether they end with line feeds, carriage returns or both.
pub(super) fn text_lines(text: &str) -> impl Iterator<Item = &str> {
    let end = if text.contains('\n') { '\n' } else { '\r' };
    text.split(end)
}

/// Returns the words of `text`, which is line `line`. Blanks have no meaning in G-code.
pub(super) fn split_words(text: &str, line: usize) -> Result<Vec<GcodeWord>, DesignError> {
    let text = without_comments(text, line)?;
    let text = text.as_str();
    let mut words = Vec::new();
    let mut rest = if is_for_the_controller(text) {
        ""
    } else {
        text
    };
    while let Some(first_char) = rest.chars().next() {
        if first_char == '*' {
            // A checksum ends the line.
            break;
        }
        if !first_char.is_ascii_alphabetic() {
            return Err(unexpected(line, rest));
        }
        let after = rest.get(1..).unwrap_or("");
        let end = after.find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-'));
        let (number, next) = after.split_at(end.unwrap_or(after.len()));
        let value = number.parse::<f64>().map_err(|_| unexpected(line, rest))?;
        if words.len() == WORDS_MAX {
            return Err(unexpected(line, rest));
        }
        words.push(GcodeWord {
            letter: first_char.to_ascii_uppercase(),
            value,
        });
        rest = next;
    }
    Ok(words)
}

/// Returns whether a line is no G-code but a mark of a program's ends, or a setting or command of GRBL, such as `$H` to home.
/// A jog moves, and is not read.
fn is_for_the_controller(text: &str) -> bool {
    text.starts_with('%') || (text.starts_with('$') && !text.starts_with("$J"))
}

fn unexpected(line: usize, found: &str) -> DesignError {
    let accepted = "letters with their numbers, such as G1 X10 Y-2.5";
    invalid(line, quoted(found), accepted)
}

/// Returns a line without its comments and its blanks. A comment may hold others, or single parentheses.
fn without_comments(text: &str, line: usize) -> Result<String, DesignError> {
    let nested = kept_words(text, usize::MAX);
    let kept = nested.or_else(|| kept_words(text, 1));
    kept.ok_or_else(|| invalid(line, "a comment that does not end", "( … ) or ; …"))
}

/// Returns what stands outside of comments that nest as deep as `depth_max`; `None` if one of them does not end.
fn kept_words(text: &str, depth_max: usize) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    let mut depth: usize = 0;
    for c in text.chars() {
        match c {
            ';' if depth == 0 => return Some(kept),
            '(' => depth = (depth + 1).min(depth_max),
            ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 || c.is_whitespace() => {}
            _ => kept.push(c),
        }
    }
    (depth == 0).then_some(kept)
}

/// Returns whether a comment of a line says that the pen goes down or up there; `None` if it says neither, or both.
pub(super) fn pen_said(text: &str) -> Option<bool> {
    let (_, comment) = text.split_once(['(', ';'])?;
    let letters = comment.chars().filter(char::is_ascii_alphabetic);
    let letters: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    match (letters.contains("pendown"), letters.contains("penup")) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}
