//! TEXT of a DXF in single-line letters: its codes, its alignment and how it leans.

use base::plane::{Point, bounds};

use super::super::DesignError;
use super::super::letters::{SPACE_AFTER, lay_out_line};
use super::group_codes::DxfEntity;
use super::plot_entities::{BlockPlace, DxfPlotter};

/// Depth of letters such as `g` below the line, in heights of a capital.
const DESCENT: f64 = 4.5 / 14.0;
/// Text that leans more is drawn as if it leaned so.
const OBLIQUE_MAX_DEG: f64 = 85.0;

impl<'t> DxfPlotter<'_, 't> {
    /// One line of single-line letters, set by its left, middle or right end.
    pub(super) fn text(
        &mut self,
        entity: &DxfEntity<'t>,
        place: BlockPlace<'t>,
    ) -> Result<(), DesignError> {
        let words = decoded(entity.text(1).unwrap_or(""));
        let Ok(line) = lay_out_line(&words.letters) else {
            return self.lose("TEXT with letters that are not known");
        };
        let (along, aligned) = (entity.flags(72)?, entity.flags(73)?);
        let share = match along {
            0 => 0.0,
            1 | 4 => 0.5,
            2 => 1.0,
            _ => return self.lose("TEXT fitted between two points"),
        };
        let raised = match (along, aligned) {
            // The middle of these words; the middle of capitals is another.
            (4, _) => bounds(line.strokes.iter().flatten())
                .map_or(0.5, |(low, high)| f64::midpoint(low[1], high[1])),
            (_, 1) => -DESCENT,
            (_, 2) => 0.5,
            (_, 3) => 1.0,
            _ => 0.0,
        };
        let is_placed_by_second = share > 0.0 || aligned > 0;
        let from = entity.point(if is_placed_by_second { 11 } else { 10 })?;
        let start = (line.advance - SPACE_AFTER).max(0.0) * share;
        let shape = TextShape::of(entity)?;
        for stroke in line.strokes {
            let points = stroke.into_iter().map(|[x, y]| {
                let [x, y] = shape.apply([x - start, y - raised]);
                [from[0] + x, from[1] + y]
            });
            self.stroke(entity, place, &points.collect::<Vec<_>>())?;
        }
        match words.has_lines {
            true => self.lose("lines under, over or through TEXT"),
            false => Ok(()),
        }
    }
}

/// Stretch, lean, mirroring and turn of a text's letters about the point that places them.
struct TextShape {
    height: f64,
    width: f64,
    lean: f64,
    /// -1 along an axis that is mirrored.
    sides: Point,
    turn_rad: f64,
}

impl TextShape {
    fn of(entity: &DxfEntity<'_>) -> Result<Self, DesignError> {
        let generation = entity.flags(71)?;
        let side = |flag: i64| if generation & flag == 0 { 1.0 } else { -1.0 };
        let oblique_deg = entity.number(51, 0.0)?;
        Ok(Self {
            height: entity.needed(40)?,
            width: entity.number(41, 1.0)?,
            lean: lean(oblique_deg),
            sides: [side(2), side(4)],
            turn_rad: entity.number(50, 0.0)?.to_radians(),
        })
    }

    fn apply(&self, [x, y]: Point) -> Point {
        let x = (x * self.width + y * self.lean) * self.height * self.sides[0];
        let y = y * self.height * self.sides[1];
        let (sin, cos) = self.turn_rad.sin_cos();
        [x * cos - y * sin, x * sin + y * cos]
    }
}

/// Returns how far a letter as high as 1 leans; angles may be written below zero as 340° or so.
fn lean(oblique_deg: f64) -> f64 {
    let about_zero = (oblique_deg + 180.0).rem_euclid(360.0) - 180.0;
    let bounded = about_zero.clamp(-OBLIQUE_MAX_DEG, OBLIQUE_MAX_DEG);
    bounded.to_radians().tan()
}

/// A text's letters, its codes taken for what they mean.
#[derive(Debug, Default, PartialEq)]
struct TextWords {
    letters: String,
    /// A line under, over or through it was asked for.
    has_lines: bool,
}

fn decoded(text: &str) -> TextWords {
    let mut words = TextWords::default();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let (meant, length) = match code(rest) {
            Some(code) => code,
            None => (Some(letter), letter.len_utf8()),
        };
        words.letters.extend(meant);
        words.has_lines |= meant.is_none();
        rest = rest.get(length..).unwrap_or_default();
    }
    words
}

/// Returns the letter of the code at the start of `text`, or none for a line's, and the code's length.
fn code(text: &str) -> Option<(Option<char>, usize)> {
    if let Some(rest) = text.strip_prefix("\\U+").or(text.strip_prefix("\\u+")) {
        let number = u32::from_str_radix(rest.get(..4)?, 16).ok()?;
        return Some((Some(char::from_u32(number)?), 7));
    }
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
