//! Labels of HP-GL in our single-line letters, each in the cell that the plotter would give it.

use base::plane::Point;

use super::super::letters::lay_out_line;
use super::commands::HpglCommand;
use super::coordinates::UNITS_PER_MM;

/// Width and height of a capital letter where SI and SR say none, in mm: those of a plotter for A4.
const SIZE_MM: Point = [1.87, 2.69];
/// Width of a cell, in widths of a letter, and height of a line, in heights of a capital.
const CELL_WIDTHS: f64 = 1.5;
const LINE_HEIGHTS: f64 = 2.0;
/// Width of our letters, as a share of their height: a plotter's letter of this shape is drawn as ours are.
const LETTER_SHARE: f64 = 0.7;

/// Size, direction and place of labels.
#[derive(Clone, Debug)]
pub(super) struct LabelStyle {
    size_mm: Point,
    /// Of length 1.
    direction: Point,
    slant: f64,
    /// LO: 1 to 9, and 11 to 19 half a letter away.
    origin: i32,
    /// ES: added to a cell's width and to a line's height, in cells and lines.
    extra: Point,
}

impl Default for LabelStyle {
    fn default() -> Self {
        Self {
            size_mm: SIZE_MM,
            direction: [1.0, 0.0],
            slant: 0.0,
            origin: 1,
            extra: [0.0, 0.0],
        }
    }
}

impl LabelStyle {
    /// Takes a command that sets the style; false for others.
    pub(super) fn set(&mut self, command: &HpglCommand, frame_mm: Point) -> bool {
        let number = |index: usize, otherwise: f64| command.number(index, otherwise);
        match &command.name {
            b"SI" => {
                let [width_cm, height_cm] = SIZE_MM.map(|mm| mm / 10.0);
                self.size_mm = [number(0, width_cm), number(1, height_cm)].map(|cm| cm * 10.0);
            }
            b"SR" => {
                let [width, height] = [number(0, 0.75) * frame_mm[0], number(1, 1.5) * frame_mm[1]];
                self.size_mm = [width / 100.0, height / 100.0];
            }
            b"DI" => self.turn([number(0, 1.0), number(1, 0.0)]),
            b"DR" => self.turn([number(0, 1.0) * frame_mm[0], number(1, 0.0) * frame_mm[1]]),
            b"SL" => self.slant = number(0, 0.0),
            b"LO" => self.origin = command.choice(0, 1),
            b"ES" => self.extra = [number(0, 0.0), number(1, 0.0)],
            _ => return false,
        }
        true
    }

    fn turn(&mut self, [run, rise]: Point) {
        let length = run.hypot(rise);
        if length > 0.0 {
            self.direction = [run / length, rise / length];
        }
    }

    fn cell_mm(&self) -> Point {
        let [width, height] = self.size_mm;
        let [of_width, of_height] = self.extra;
        [
            width * CELL_WIDTHS * (1.0 + of_width),
            height * LINE_HEIGHTS * (1.0 + of_height),
        ]
    }

    /// Moves a place by cells along a line and by lines upwards: CP.
    pub(super) fn moved(&self, from: Point, [cells, lines]: Point) -> Point {
        let [width_mm, height_mm] = self.cell_mm();
        self.place(from, [cells * width_mm, lines * height_mm])
    }

    /// The place so far along and above the line that begins at `from`, in plotter units.
    fn place(&self, from: Point, [along_mm, above_mm]: Point) -> Point {
        let along = (along_mm + above_mm * self.slant) * UNITS_PER_MM;
        let above = above_mm * UNITS_PER_MM;
        let [run, rise] = self.direction;
        [
            from[0] + along * run - above * rise,
            from[1] + along * rise + above * run,
        ]
    }

    /// LO without its half letter, from 0: columns of three.
    fn origin_index(&self) -> i32 {
        (self.origin.clamp(1, 19) - 1) % 10
    }

    /// Returns the place of the first letter's lower left corner for a text of this length.
    fn start_mm(&self, cells: f64) -> Point {
        let [width, height] = self.size_mm;
        let index = self.origin_index();
        let (column, row) = (f64::from(index / 3), f64::from(index % 3));
        let length_mm = (cells * self.cell_mm()[0] - width * (CELL_WIDTHS - 1.0)).max(0.0);
        let gap = if self.origin > 10 { 0.5 } else { 0.0 };
        [
            -length_mm * column / 2.0 + gap * width * (1.0 - column),
            -height * row / 2.0 + gap * height * (1.0 - row),
        ]
    }

    /// Returns the lines of a label that begins at `from`, and where the next would begin, in plotter units; or names
    /// the letter that there is none for.
    pub(super) fn laid(&self, text: &str, from: Point) -> Result<(Vec<Vec<Point>>, Point), char> {
        let cells = text.chars().filter(|letter| !letter.is_control()).count();
        let start_mm = self.start_mm(cells as f64);
        let mut cursor_mm = start_mm;
        let mut strokes = Vec::new();
        let cell_mm = self.cell_mm();
        for letter in text.chars() {
            match letter {
                '\r' => cursor_mm[0] = start_mm[0],
                '\n' => cursor_mm[1] -= cell_mm[1],
                '\u{8}' => cursor_mm[0] -= cell_mm[0],
                letter if letter.is_control() => {}
                letter => {
                    strokes.extend(self.letter(letter, from, cursor_mm)?);
                    cursor_mm[0] += cell_mm[0];
                }
            }
        }
        let end = if self.origin_index() < 3 {
            self.place(from, cursor_mm)
        } else {
            from
        };
        Ok((strokes, end))
    }

    fn letter(&self, letter: char, from: Point, cursor_mm: Point) -> Result<Vec<Vec<Point>>, char> {
        let line = lay_out_line(letter.encode_utf8(&mut [0; 4])).map_err(|_| letter)?;
        let [width, height] = self.size_mm;
        let to_plotter = |[x, y]: Point| {
            let along_mm = cursor_mm[0] + x * width / LETTER_SHARE;
            self.place(from, [along_mm, cursor_mm[1] + y * height])
        };
        let strokes = line.strokes.into_iter();
        Ok(strokes
            .map(|path| path.into_iter().map(to_plotter).collect())
            .collect())
    }
}
