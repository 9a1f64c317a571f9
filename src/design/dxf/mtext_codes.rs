//! Decodes the text of MTEXT: paragraphs, groups, sizes, stacked fractions and the codes that are dropped.

use super::text::decode;

/// Letters of one height, up to the end of a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MtextPiece {
    pub(super) text: String,
    /// Height of a capital.
    pub(super) height: f64,
}

/// A paragraph, and the height that holds at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MtextParagraph {
    pub(super) pieces: Vec<MtextPiece>,
    pub(super) height: f64,
}

/// An MTEXT's paragraphs, and which formatting it loses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MtextWords {
    pub(super) paragraphs: Vec<MtextParagraph>,
    has_lines: bool,
    has_colours: bool,
    has_shapes: bool,
}

/// A code of MTEXT.
enum MtextCode<'t> {
    /// Characters to draw.
    Chars(&'t str),
    /// A new paragraph.
    Paragraph,
    /// A line under, over or through what follows.
    Line,
    /// The height that follows: in units, or with an `x` as a factor.
    Height(&'t str),
    /// The colour that follows.
    Colour,
    /// The width, slant or spacing that follows.
    Shape,
    /// Two texts, one above the other.
    Stack(&'t str),
    /// Nothing that shows in single-line letters.
    Nothing,
}

impl MtextWords {
    /// Reads a text whose capitals are `height` high.
    pub(super) fn of(text: &str, height: f64) -> Self {
        let mut words = Self::default();
        let (mut heights, mut chars) = (vec![height], String::new());
        let mut paragraph = MtextParagraph::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (code, length) = code_of(rest, first);
            rest = rest.get(length..).unwrap_or_default();
            let current = heights.last().copied().unwrap_or(height);
            let changes_height = matches!(first, '{' | '}') || matches!(code, MtextCode::Height(_));
            if changes_height || matches!(code, MtextCode::Paragraph) {
                paragraph.add(&std::mem::take(&mut chars), current);
            }
            match code {
                MtextCode::Chars("{") if length == 1 => heights.push(current),
                MtextCode::Chars("}") if length == 1 => {
                    if heights.len() > 1 {
                        heights.pop();
                    }
                }
                MtextCode::Chars(text) => chars.push_str(text),
                MtextCode::Stack(text) => chars.push_str(&stacked(text)),
                MtextCode::Paragraph => {
                    paragraph.height = current;
                    words.paragraphs.push(std::mem::take(&mut paragraph));
                }
                MtextCode::Height(text) => {
                    if let (Some(last), Some(new)) = (heights.last_mut(), height_of(text, current))
                    {
                        *last = new;
                    }
                }
                MtextCode::Line => words.has_lines = true,
                MtextCode::Colour => words.has_colours = true,
                MtextCode::Shape => words.has_shapes = true,
                MtextCode::Nothing => {}
            }
        }
        paragraph.height = heights.last().copied().unwrap_or(height);
        paragraph.add(&chars, paragraph.height);
        words.paragraphs.push(paragraph);
        words.decode_characters();
        words
    }

    /// Decodes the codes that TEXT has as well.
    fn decode_characters(&mut self) {
        let paragraphs = self.paragraphs.iter_mut();
        for piece in paragraphs.flat_map(|paragraph| &mut paragraph.pieces) {
            let decoded = decode(&piece.text);
            self.has_lines |= decoded.has_lines;
            piece.text = decoded.chars;
        }
    }

    /// Returns what of its formatting is not drawn.
    pub(super) fn losses(&self) -> impl Iterator<Item = &'static str> + use<> {
        let losses = [
            (self.has_lines, "lines under, over or through MTEXT"),
            (self.has_colours, "colours within MTEXT"),
            (self.has_shapes, "widths, slants and spacings within MTEXT"),
        ];
        let lost = losses.into_iter().filter(|(is_lost, _)| *is_lost);
        lost.map(|(_, what)| what)
    }
}

impl MtextParagraph {
    /// Adds letters of one height, a piece for each word.
    fn add(&mut self, text: &str, height: f64) {
        let pieces = text.split_inclusive(' ').map(|text| MtextPiece {
            text: text.to_owned(),
            height,
        });
        self.pieces.extend(pieces);
    }
}

/// Returns the code or the character at the start of `rest`, and its length.
fn code_of(rest: &str, first: char) -> (MtextCode<'_>, usize) {
    match first {
        '\\' => backslash_code(rest),
        '^' => caret_code(rest),
        _ => {
            let length = first.len_utf8();
            (
                MtextCode::Chars(rest.get(..length).unwrap_or_default()),
                length,
            )
        }
    }
}

/// Returns the code behind a backslash.
fn backslash_code(rest: &str) -> (MtextCode<'_>, usize) {
    let after = rest.get(1..).unwrap_or_default();
    let Some(letter) = after.chars().next() else {
        return (MtextCode::Nothing, 1);
    };
    let length = 1 + letter.len_utf8();
    // The value of a code ends with a semicolon.
    let behind = rest.get(length..).unwrap_or_default();
    let value = behind.split(';').next().unwrap_or_default();
    let with_value = length + value.len() + usize::from(value.len() < behind.len());
    match letter {
        'P' | 'X' | 'N' => (MtextCode::Paragraph, length),
        '~' => (MtextCode::Chars(" "), length),
        'L' | 'O' | 'K' => (MtextCode::Line, length),
        'l' | 'o' | 'k' => (MtextCode::Nothing, length),
        'H' => (MtextCode::Height(value), with_value),
        'S' => (MtextCode::Stack(value), with_value),
        'C' | 'c' => (MtextCode::Colour, with_value),
        'W' | 'Q' | 'T' => (MtextCode::Shape, with_value),
        'f' | 'F' | 'A' | 'p' => (MtextCode::Nothing, with_value),
        // An escaped brace or backslash, or no code.
        _ => (
            MtextCode::Chars(rest.get(1..length).unwrap_or_default()),
            length,
        ),
    }
}

/// Returns the control character that a caret stands for.
fn caret_code(rest: &str) -> (MtextCode<'_>, usize) {
    match rest.chars().nth(1) {
        Some('I') => (MtextCode::Chars("    "), 2),
        Some('J') => (MtextCode::Paragraph, 2),
        Some('M') => (MtextCode::Nothing, 2),
        Some(' ') => (MtextCode::Chars("^"), 2),
        _ => (MtextCode::Chars("^"), 1),
    }
}

/// Returns a height: a number of units, or a factor of the present one.
fn height_of(text: &str, current: f64) -> Option<f64> {
    let text = text.trim();
    let height = match text.strip_suffix(['x', 'X']) {
        Some(factor) => factor.parse::<f64>().ok()? * current,
        None => text.parse().ok()?,
    };
    (height.is_finite() && height > 0.0).then_some(height)
}

/// Returns a stacked fraction or tolerance in one line.
fn stacked(text: &str) -> String {
    let parts = text.split(['^', '#', '/']).map(str::trim);
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join("/")
}
