//! Draws TEXT and ATTRIB of a DXF in single-line letters: its codes, alignment and slant.

use std::borrow::Cow;

use base::plane::{Point, bounds};

use super::super::DesignError;
use super::super::letters::lay_out_line;
use super::group_codes::DxfEntity;
use super::plot_entities::{BlockPlace, DxfPlotter};

/// Depth of letters such as `g` below the baseline, in heights of a capital.
pub(super) const DESCENT: f64 = 4.5 / 14.0;
/// Largest slant of text; more is drawn with this much.
const OBLIQUE_MAX_DEG: f64 = 85.0;

impl<'t> DxfPlotter<'_, 't> {
    /// Draws one line of single-line letters, aligned by its left end, centre or right end.
    pub(super) fn text(
        &mut self,
        entity: &DxfEntity<'t>,
        place: BlockPlace<'t>,
    ) -> Result<(), DesignError> {
        let decoded = decode(entity.text(1).unwrap_or(""));
        let Ok(line) = lay_out_line(&decoded.chars) else {
            return self.note_loss("TEXT with unknown characters");
        };
        let vertical_code = if entity.kind == "ATTRIB" { 74 } else { 73 };
        let (horizontal, vertical) = (entity.flags(72)?, entity.flags(vertical_code)?);
        let anchor = match horizontal {
            0 => 0.0,
            1 | 4 => 0.5,
            2 => 1.0,
            _ => return self.note_loss("TEXT fitted between two points"),
        };
        let baseline = match (horizontal, vertical) {
            // The centre of this text, which differs from the centre of capitals.
            (4, _) => bounds(line.strokes.iter().flatten())
                .map_or(0.5, |(low, high)| f64::midpoint(low[1], high[1])),
            (_, 1) => -DESCENT,
            (_, 2) => 0.5,
            (_, 3) => 1.0,
            _ => 0.0,
        };
        let uses_second_point = anchor > 0.0 || vertical > 0;
        let from = entity.point(if uses_second_point { 11 } else { 10 })?;
        let start = line.width() * anchor;
        let shape = TextShape::of(entity)?;
        self.note_capital(shape.height * place.scale());
        for stroke in line.strokes {
            let points = stroke.into_iter().map(|[x, y]| {
                let [x, y] = shape.apply([x - start, y - baseline]);
                [from[0] + x, from[1] + y]
            });
            self.stroke(entity, place, &points.collect::<Vec<_>>())?;
        }
        match decoded.has_lines {
            true => self.note_loss("lines under, over or through TEXT"),
            false => Ok(()),
        }
    }
}

/// Stretch, slant, mirroring and rotation of a text's letters about the point that places them.
struct TextShape {
    height: f64,
    width: f64,
    slant: f64,
    /// -1 along an axis that is mirrored.
    sides: Point,
    rotation_rad: f64,
}

impl TextShape {
    fn of(entity: &DxfEntity<'_>) -> Result<Self, DesignError> {
        let generation = entity.flags(71)?;
        let side = |flag: i64| if generation & flag == 0 { 1.0 } else { -1.0 };
        let oblique_deg = entity.number(51, 0.0)?;
        Ok(Self {
            height: entity.required(40)?,
            width: entity.number(41, 1.0)?,
            slant: slant(oblique_deg),
            sides: [side(2), side(4)],
            rotation_rad: entity.number(50, 0.0)?.to_radians(),
        })
    }

    fn apply(&self, [x, y]: Point) -> Point {
        let x = (x * self.width + y * self.slant) * self.height * self.sides[0];
        let y = y * self.height * self.sides[1];
        let (sin, cos) = self.rotation_rad.sin_cos();
        [x * cos - y * sin, x * sin + y * cos]
    }
}

/// Returns how far a letter of height 1 slants; negative angles may be written as 340° and the
/// like.
fn slant(oblique_deg: f64) -> f64 {
    let signed_deg = (oblique_deg + 180.0).rem_euclid(360.0) - 180.0;
    let bounded_deg = signed_deg.clamp(-OBLIQUE_MAX_DEG, OBLIQUE_MAX_DEG);
    bounded_deg.to_radians().tan()
}

/// A text's characters, with its codes decoded.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TextWords {
    pub(super) chars: String,
    /// True if a line under, over or through it is requested.
    pub(super) has_lines: bool,
}

/// Decodes the codes of a text, such as `%%d` for a degree sign.
pub(super) fn decode(text: &str) -> TextWords {
    let mut decoded = TextWords::default();
    let mut rest = text;
    while let Some(first_char) = rest.chars().next() {
        let (decoded_char, length) = match decode_code(rest) {
            Some(code) => code,
            None => (Some(first_char), first_char.len_utf8()),
        };
        decoded.chars.extend(decoded_char);
        decoded.has_lines |= decoded_char.is_none();
        rest = rest.get(length..).unwrap_or_default();
    }
    decoded
}

/// Returns a file's text with the characters that it writes as `\U+00DF`.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    let mut parts = text.split("\\U+");
    let first = parts.next().unwrap_or_default();
    let mut decoded = Cow::Borrowed(first);
    for part in parts {
        let code = part
            .get(..4)
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let character = code.and_then(char::from_u32).filter(|c| !c.is_control());
        let decoded = decoded.to_mut();
        match character {
            Some(character) => {
                decoded.push(character);
                decoded.push_str(part.get(4..).unwrap_or_default());
            }
            None => {
                decoded.push_str("\\U+");
                decoded.push_str(part);
            }
        }
    }
    decoded
}

/// Returns the character of the code at the start of `text`, or `None` for a line's code, and the
/// code's length.
fn decode_code(text: &str) -> Option<(Option<char>, usize)> {
    let rest = text.strip_prefix("%%")?;
    let letter = match rest.chars().next()?.to_ascii_lowercase() {
        'd' => '°',
        'p' => '±',
        'c' => 'Ø',
        '%' => '%',
        'u' | 'o' | 'k' => return Some((None, 3)),
        _ => {
            let number: u8 = rest.get(..3)?.parse().ok()?;
            return Some((Some(char::from(number)), 5));
        }
    };
    Some((Some(letter), 3))
}
