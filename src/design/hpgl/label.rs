//! Lays out labels of HP-GL in single-line letters, each in the cell that the plotter would give
//! it.

use base::plane::Point;

use super::super::letters::lay_out_line;
use super::commands::HpglCommand;
use super::coordinates::UNITS_PER_MM;

/// Default width and height of a capital letter, in mm: those of an A4 plotter.
const SIZE_MM: Point = [1.87, 2.69];
/// Width of a cell, in widths of a letter, and height of a line, in heights of a capital.
const CELL_WIDTHS: f64 = 1.5;
const LINE_HEIGHTS: f64 = 2.0;
/// Width of the single-line letters as a fraction of their height: a plotter's letter of this shape
/// is drawn unstretched.
const LETTER_ASPECT: f64 = 0.7;

/// Size, direction and place of labels.
#[derive(Clone, Debug)]
pub(super) struct LabelStyle {
    size_mm: Point,
    /// Unit vector along the line.
    direction: Point,
    slant: f64,
    /// LO: 1 to 9, or 11 to 19 for an offset of half a letter.
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
    /// Applies a command that sets the style; returns false for other commands.
    pub(super) fn apply(&mut self, command: &HpglCommand, frame_mm: Point) -> bool {
        let number = |index: usize, default: f64| command.number(index, default);
        match &command.name {
            b"SI" => {
                let [width_cm, height_cm] = SIZE_MM.map(|mm| mm / 10.0);
                self.size_mm = [number(0, width_cm), number(1, height_cm)].map(|cm| cm * 10.0);
            }
            b"SR" => {
                let [width, height] = [number(0, 0.75) * frame_mm[0], number(1, 1.5) * frame_mm[1]];
                self.size_mm = [width / 100.0, height / 100.0];
            }
            b"DI" => self.orient([number(0, 1.0), number(1, 0.0)]),
            b"DR" => self.orient([number(0, 1.0) * frame_mm[0], number(1, 0.0) * frame_mm[1]]),
            b"SL" => self.slant = number(0, 0.0),
            b"LO" => self.origin = command.choice(0, 1),
            b"ES" => self.extra = [number(0, 0.0), number(1, 0.0)],
            _ => return false,
        }
        true
    }

    fn orient(&mut self, [run, rise]: Point) {
        let length = run.hypot(rise);
        if length > 0.0 {
            self.direction = [run / length, rise / length];
        }
    }

    fn cell_mm(&self) -> Point {
        let [width, height] = self.size_mm;
        let [extra_width, extra_height] = self.extra;
        [
            width * CELL_WIDTHS * (1.0 + extra_width),
            height * LINE_HEIGHTS * (1.0 + extra_height),
        ]
    }

    /// Moves a place by cells along a line and by lines upwards: CP.
    pub(super) fn move_by_cells(&self, from: Point, [cells, lines]: Point) -> Point {
        let [width_mm, height_mm] = self.cell_mm();
        self.offset(from, [cells * width_mm, lines * height_mm])
    }

    /// Returns the point at this distance along and above the line that begins at `from`, in
    /// plotter units.
    fn offset(&self, from: Point, [along_mm, above_mm]: Point) -> Point {
        let along = (along_mm + above_mm * self.slant) * UNITS_PER_MM;
        let above = above_mm * UNITS_PER_MM;
        let [run, rise] = self.direction;
        [
            from[0] + along * run - above * rise,
            from[1] + along * rise + above * run,
        ]
    }

    /// Returns the height of a capital letter.
    pub(super) fn capital_mm(&self) -> f64 {
        self.size_mm[1].abs()
    }

    /// Returns the LO position without its offset, from 0: columns of three.
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

    /// Returns the strokes of a label that begins at `from`, and where the next one would begin, in
    /// plotter units. Fails with the first character that has no letter.
    pub(super) fn draw(&self, text: &str, from: Point) -> Result<(Vec<Vec<Point>>, Point), char> {
        let cells = text.chars().filter(|c| !c.is_control()).count();
        let start_mm = self.start_mm(cells as f64);
        let mut cursor_mm = start_mm;
        let mut strokes = Vec::new();
        let cell_mm = self.cell_mm();
        for c in text.chars() {
            match c {
                '\r' => cursor_mm[0] = start_mm[0],
                '\n' => cursor_mm[1] -= cell_mm[1],
                '\u{8}' => cursor_mm[0] -= cell_mm[0],
                c if c.is_control() => {}
                c => {
                    strokes.extend(self.glyph(c, from, cursor_mm)?);
                    cursor_mm[0] += cell_mm[0];
                }
            }
        }
        let end = if self.origin_index() < 3 {
            self.offset(from, cursor_mm)
        } else {
            from
        };
        Ok((strokes, end))
    }

    fn glyph(&self, c: char, from: Point, cursor_mm: Point) -> Result<Vec<Vec<Point>>, char> {
        let line = lay_out_line(c.encode_utf8(&mut [0; 4])).map_err(|_| c)?;
        let [width, height] = self.size_mm;
        let to_plotter = |[x, y]: Point| {
            let along_mm = cursor_mm[0] + x * width / LETTER_ASPECT;
            self.offset(from, [along_mm, cursor_mm[1] + y * height])
        };
        let strokes = line.strokes.into_iter();
        Ok(strokes
            .map(|path| path.into_iter().map(to_plotter).collect())
            .collect())
    }
}
