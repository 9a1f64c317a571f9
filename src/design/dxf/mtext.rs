//! Draws MTEXT of a DXF in single-line letters: its paragraphs, the sizes within it, and its wrapping. Its other formatting is
//! dropped and noted.

use base::plane::Point;

use super::super::DesignError;
use super::super::letters::lay_out_line;
use super::group_codes::{DxfEntity, MTEXT_PART};
use super::mtext_codes::{MtextPiece, MtextWords};
use super::plot_entities::{BlockPlace, DxfPlotter};
use super::text::DESCENT;

/// Distance of two baselines, in heights of a capital, where the file's factor is 1.
const LINE_STEP: f64 = 5.0 / 3.0;

impl<'t> DxfPlotter<'_, 't> {
    /// Draws lines of single-line letters, aligned as the attachment point says.
    pub(super) fn mtext(
        &mut self,
        entity: &DxfEntity<'t>,
        place: BlockPlace<'t>,
    ) -> Result<(), DesignError> {
        let text: String = entity.texts(MTEXT_PART).chain(entity.text(1)).collect();
        let words = MtextWords::of(&text, entity.required(40)?);
        let Some(lines) = lay_out(&words, entity.number(41, 0.0)?) else {
            return self.note_loss("MTEXT with unknown characters");
        };
        let block = MtextBlock::of(entity, &lines)?;
        let mut down = 0.0;
        for line in &lines {
            down += line.height();
            for (stroke, height) in line.strokes() {
                self.note_capital(height * place.scale());
                let points = stroke.iter().map(|at| block.apply(line, *at, down));
                self.stroke(entity, place, &points.collect::<Vec<_>>())?;
            }
            down += line.height() * (LINE_STEP * block.spacing - 1.0);
        }
        words.losses().try_for_each(|what| self.note_loss(what))
    }
}

/// Letters of one height at their place in a line.
struct PlacedPiece {
    x: f64,
    height: f64,
    strokes: Vec<Vec<Point>>,
}

/// A line of letters.
#[derive(Default)]
struct MtextLine {
    pieces: Vec<PlacedPiece>,
    width: f64,
    /// Height where the line is empty.
    blank_height: f64,
}

impl MtextLine {
    fn height(&self) -> f64 {
        let heights = self.pieces.iter().map(|piece| piece.height);
        let highest = heights.fold(0.0, f64::max);
        if highest > 0.0 {
            highest
        } else {
            self.blank_height
        }
    }

    /// Returns each stroke on the line, its baseline at y = 0, with the height of its capitals.
    fn strokes(&self) -> impl Iterator<Item = (Vec<Point>, f64)> {
        self.pieces.iter().flat_map(|piece| {
            piece.strokes.iter().map(|stroke| {
                let points = stroke.iter();
                let points = points.map(|[x, y]| [piece.x + x * piece.height, y * piece.height]);
                (points.collect(), piece.height)
            })
        })
    }
}

/// Lays out the paragraphs, broken between words where they are wider than `width`, if that is above 0; `None` for characters
/// that the letters do not have.
fn lay_out(words: &MtextWords, width: f64) -> Option<Vec<MtextLine>> {
    let mut lines = Vec::new();
    for paragraph in &words.paragraphs {
        let mut line = MtextLine {
            blank_height: paragraph.height,
            ..MtextLine::default()
        };
        let (mut x, mut may_break) = (0.0, false);
        for MtextPiece { text, height } in &paragraph.pieces {
            let shown = lay_out_line(text.trim_end_matches(' ')).ok()?;
            let shown_width = shown.width() * height;
            if may_break && width > 0.0 && x + shown_width > width {
                let next = MtextLine {
                    blank_height: paragraph.height,
                    ..MtextLine::default()
                };
                lines.push(std::mem::replace(&mut line, next));
                x = 0.0;
            }
            line.width = line.width.max(x + shown_width);
            let strokes = shown.strokes;
            line.pieces.push(PlacedPiece {
                x,
                height: *height,
                strokes,
            });
            x += lay_out_line(text).ok()?.advance * height;
            may_break = text.ends_with(' ');
        }
        lines.push(line);
    }
    Some(lines)
}

/// Place of all lines: where the insertion point lies among them, and how they are turned.
struct MtextBlock {
    from: Point,
    /// Unit vector along the lines.
    along: Point,
    /// Share of a line's width that lies before the insertion point.
    before: f64,
    /// Distance of the insertion point below the top of the first line.
    above: f64,
    /// Factor of the distance of the lines.
    spacing: f64,
}

impl MtextBlock {
    fn of(entity: &DxfEntity<'_>, lines: &[MtextLine]) -> Result<Self, DesignError> {
        let factor = entity.number(44, 1.0)?;
        let spacing = if factor > 0.0 { factor } else { 1.0 };
        let (last, others) = lines.split_last().map_or((0.0, 0.0), |(last, others)| {
            let steps = others
                .iter()
                .map(|line| line.height() * LINE_STEP * spacing);
            (last.height(), steps.sum())
        });
        let attachment = entity.flags(71)?.clamp(1, 9) - 1;
        let above = match attachment / 3 {
            0 => 0.0,
            1 => (others + last) / 2.0,
            _ => others + last * (1.0 + DESCENT),
        };
        let before = match attachment % 3 {
            0 => 0.0,
            1 => 0.5,
            _ => 1.0,
        };
        let turn_rad = entity.number(50, 0.0)?.to_radians();
        let (sin, cos) = turn_rad.sin_cos();
        let along = entity.direction(11)?.map_or([cos, sin], |[x, y]| {
            let length = x.hypot(y);
            [x / length, y / length]
        });
        Ok(Self {
            from: entity.point(10)?,
            along,
            before,
            above,
            spacing,
        })
    }

    /// Returns the place of a point of a line whose baseline lies so far below the top.
    fn apply(&self, line: &MtextLine, [x, y]: Point, down: f64) -> Point {
        let (x, y) = (x - line.width * self.before, y - down + self.above);
        let ([cos, sin], [from_x, from_y]) = (self.along, self.from);
        [from_x + x * cos - y * sin, from_y + x * sin + y * cos]
    }
}
