//! Draws a picture's tones as dots, placed by weighted Voronoi cells (Secord 2002).

use super::darkness::ToneSheet;
use base::plane::Point;

/// Share of the paper that dots cover where the picture is black: beyond it they would overlap.
const BLACK: f64 = 0.5;

/// Most dots: an arm takes about half a second for each.
const DOTS_MAX: f64 = 8_000.0;

/// Number of times that dots move to the middle of what is nearest to them.
const ROUNDS: usize = 20;

/// Returns the dots of a picture, and the share of the paper that is covered where it is black.
pub(crate) fn dots(sheet: &ToneSheet, pen_mm: f64, ink: f64) -> (Vec<Vec<Point>>, Option<f64>) {
    let dot_mm2 = std::f64::consts::PI * pen_mm * pen_mm / 4.0;
    let [cell_x, cell_y] = sheet.cell_mm();
    let dark_mm2: f64 = sheet
        .map()
        .values()
        .iter()
        .map(|&d| f64::from(d))
        .sum::<f64>()
        * cell_x
        * cell_y;
    let black = ink * BLACK.min(DOTS_MAX * dot_mm2 / dark_mm2.max(dot_mm2));
    let mut dots = first_dots(sheet, black / dot_mm2);
    for _ in 0..ROUNDS {
        move_to_middles(sheet, &mut dots);
    }
    (dots.into_iter().map(|dot| vec![dot]).collect(), Some(black))
}

/// Returns cells of the grid as places with their darkness, rows in turn from left to right and from right to left.
fn cells(sheet: &ToneSheet) -> impl Iterator<Item = (Point, f64)> {
    let [cell_x, cell_y] = sheet.cell_mm();
    let [width, _] = sheet.map().size();
    let rows = sheet.map().values().chunks(width).enumerate();
    rows.flat_map(move |(y, row)| {
        (0..width).map(move |step| {
            let x = if y % 2 == 0 { step } else { width - 1 - step };
            let darkness = row.get(x).copied().map_or(0.0, f64::from);
            let place = [(x as f64 + 0.5) * cell_x, (y as f64 + 0.5) * cell_y];
            (place, darkness)
        })
    })
}

/// Puts a dot wherever the tone passed so far makes up one more.
fn first_dots(sheet: &ToneSheet, per_mm2: f64) -> Vec<Point> {
    let [cell_x, cell_y] = sheet.cell_mm();
    let [width, _] = sheet.map().size();
    // What a row leaves over goes on below it: each column owes for itself, and the row passes it on.
    let mut owed = vec![0.0; width];
    let mut dots = Vec::new();
    let mut passed_on = 0.0;
    for (index, (place, darkness)) in cells(sheet).enumerate() {
        let (y, step) = (index / width, index % width);
        let x = if y % 2 == 0 { step } else { width - 1 - step };
        let Some(owed) = owed.get_mut(x) else {
            continue;
        };
        let mut due = *owed + passed_on + darkness * per_mm2 * cell_x * cell_y;
        if due >= 0.5 {
            dots.push(place);
            due -= 1.0;
        }
        *owed = due / 2.0;
        passed_on = due / 2.0;
    }
    dots
}

/// Moves each dot to the middle of the tone that is nearest to it.
fn move_to_middles(sheet: &ToneSheet, dots: &mut [Point]) {
    let near = NearestDot::new(sheet.size_mm(), dots);
    let mut sums = vec![([0.0; 2], 0.0); dots.len()];
    for ([x, y], darkness) in cells(sheet) {
        // The density of such middles goes with the square root of the weight (Gersho 1979).
        let weight = darkness * darkness;
        if let Some(([sum_x, sum_y], sum)) = near.of(dots, [x, y]).and_then(|i| sums.get_mut(i)) {
            *sum_x += weight * x;
            *sum_y += weight * y;
            *sum += weight;
        }
    }
    for (dot, ([x, y], sum)) in dots.iter_mut().zip(sums) {
        if sum > 0.0 {
            *dot = [x / sum, y / sum];
        }
    }
}

/// Finds the nearest dot by squares of the sheet.
struct NearestDot {
    square_mm: f64,
    columns: usize,
    rows: usize,
    squares: Vec<Vec<usize>>,
}

impl NearestDot {
    fn new([width_mm, height_mm]: [f64; 2], dots: &[Point]) -> Self {
        // About two dots a square.
        let square_mm = (2.0 * width_mm * height_mm / dots.len().max(1) as f64).sqrt();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most as many squares as dots"
        )]
        let [columns, rows] =
            [width_mm, height_mm].map(|side_mm| (side_mm / square_mm).ceil().max(1.0) as usize);
        let mut near = Self {
            square_mm,
            columns,
            rows,
            squares: vec![Vec::new(); columns * rows],
        };
        for (index, dot) in dots.iter().enumerate() {
            let [column, row] = near.square_of(*dot);
            if let Some(square) = near.squares.get_mut(row * columns + column) {
                square.push(index);
            }
        }
        near
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "places of the sheet, clamped"
    )]
    fn square_of(&self, [x, y]: Point) -> [usize; 2] {
        let column = ((x / self.square_mm).max(0.0) as usize).min(self.columns - 1);
        let row = ((y / self.square_mm).max(0.0) as usize).min(self.rows - 1);
        [column, row]
    }

    /// Returns the dot that is nearest to a place.
    fn of(&self, dots: &[Point], place: Point) -> Option<usize> {
        let [column, row] = self.square_of(place);
        let mut best: Option<(f64, usize)> = None;
        for ring in 0..self.columns.max(self.rows) {
            // A dot in this ring is at least this far away.
            let least_mm = (ring as f64 - 1.0) * self.square_mm;
            if best.is_some_and(|(found, _)| least_mm > 0.0 && found <= least_mm * least_mm) {
                break;
            }
            for index in self.ring(column, row, ring).flatten() {
                let Some([x, y]) = dots.get(*index) else {
                    continue;
                };
                let [dx, dy] = [x - place[0], y - place[1]];
                let squared = dx * dx + dy * dy;
                if best.is_none_or(|(found, _)| squared < found) {
                    best = Some((squared, *index));
                }
            }
        }
        best.map(|(_, index)| index)
    }

    /// Returns the squares at this distance from one, as a king goes.
    fn ring(&self, column: usize, row: usize, ring: usize) -> impl Iterator<Item = &Vec<usize>> {
        let rows = row.saturating_sub(ring)..(row + ring + 1).min(self.rows);
        rows.flat_map(move |y| {
            let is_whole_row = y.abs_diff(row) == ring;
            let first = column.saturating_sub(ring);
            let columns = first..(column + ring + 1).min(self.columns);
            columns
                .filter(move |x| is_whole_row || x.abs_diff(column) == ring)
                .filter_map(move |x| self.squares.get(y * self.columns + x))
        })
    }
}
