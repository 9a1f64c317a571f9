//! The points of a scan, gathered by the places of a grid over the sheet.

use nalgebra::{Point3, Vector6};

use super::scan_fit::median;

/// A place of the grid: its column and row.
pub(crate) type Cell = [usize; 2];

/// Points farther from the median height around them than this multiple of the median distance belong to something else.
const STRAY: f64 = 6.0;
const STRAY_M_MIN: f64 = 5e-4;

/// Fewest of a place and its eight neighbours that have points where the scan shows something.
const SHOWN_MIN: usize = 5;

/// Means of the points around a place of the grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bin {
    at: Cell,
    /// Number of points.
    pub(crate) count: f64,
    pub(crate) height_m: f64,
    /// Means of x, y, x², xy and y² from the place.
    x_m: f64,
    y_m: f64,
    xx_m2: f64,
    xy_m2: f64,
    yy_m2: f64,
}

impl Bin {
    /// Returns the means of 1, x, y, x², xy and y² from a cell, in steps.
    pub(crate) fn row(&self, cell: Cell, per_m: f64) -> Vector6<f64> {
        let off = |axis: fn(&Cell) -> usize| axis(&self.at) as f64 - axis(&cell) as f64;
        let (x, y) = (off(|[column, _]| *column), off(|[_, row]| *row));
        let (dx, dy) = (self.x_m * per_m, self.y_m * per_m);
        let square = per_m * per_m;
        Vector6::new(
            1.0,
            x + dx,
            y + dy,
            x * x + 2.0 * x * dx + self.xx_m2 * square,
            x * y + x * dy + y * dx + self.xy_m2 * square,
            y * y + 2.0 * y * dy + self.yy_m2 * square,
        )
    }

    fn new(at: Cell, middle_m: [f64; 2], points: &[Point3<f64>]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |value: fn(f64, f64, f64) -> f64| {
            let all = points.iter();
            let all = all.map(|point| value(point.x - middle_m[0], point.y - middle_m[1], point.z));
            all.sum::<f64>() / count
        };
        (!points.is_empty()).then(|| Self {
            at,
            count,
            height_m: mean(|_, _, z| z),
            x_m: mean(|x, _, _| x),
            y_m: mean(|_, y, _| y),
            xx_m2: mean(|x, _, _| x * x),
            xy_m2: mean(|x, y, _| x * y),
            yy_m2: mean(|_, y, _| y * y),
        })
    }
}

/// Values of the cells of a grid.
pub(crate) struct CellGrid<T> {
    size: Cell,
    values: Vec<Option<T>>,
}

impl<T: Copy> CellGrid<T> {
    fn new(size: Cell) -> Self {
        let values = vec![None; size[0] * size[1]];
        Self { size, values }
    }

    fn index(&self, [column, row]: Cell) -> Option<usize> {
        (column < self.size[0] && row < self.size[1]).then(|| row * self.size[0] + column)
    }

    pub(crate) fn get(&self, cell: Cell) -> Option<T> {
        self.values.get(self.index(cell)?).copied().flatten()
    }

    pub(crate) fn set(&mut self, cell: Cell, value: Option<T>) {
        let index = self.index(cell);
        if let Some(kept) = index.and_then(|index| self.values.get_mut(index)) {
            *kept = value;
        }
    }

    /// Returns the values of a cell and of its eight neighbours.
    pub(crate) fn around(&self, cell: Cell) -> impl Iterator<Item = T> + '_ {
        square(cell, 1).filter_map(|cell| self.get(cell))
    }
}

/// Returns the cells at most `by` columns and rows away.
fn square([column, row]: Cell, by: usize) -> impl Iterator<Item = Cell> {
    let range = move |at: usize| at.saturating_sub(by)..=at + by;
    range(row).flat_map(move |row| range(column).map(move |column| [column, row]))
}

/// The points of a scan by the places of a grid.
pub(crate) struct ScanBins {
    low_m: [f64; 2],
    step_m: f64,
    bins: CellGrid<Bin>,
}

impl ScanBins {
    /// Gathers points, and leaves out those of something before or behind the surface.
    pub(crate) fn new(points: &[Point3<f64>], [low_m, high_m]: [[f64; 2]; 2], step_m: f64) -> Self {
        let cell = |at: [f64; 2]| {
            let [x, y] = [at[0] - low_m[0], at[1] - low_m[1]];
            [x, y].map(|along| nearest(along / step_m))
        };
        let size = cell(high_m).map(|last| last + 1);
        let mut starts = vec![0_usize; size[0] * size[1] + 1];
        let index = |point: &Point3<f64>| {
            let [column, row] = cell([point.x, point.y]);
            row.min(size[1] - 1) * size[0] + column.min(size[0] - 1)
        };
        let mut sorted = points.to_vec();
        sorted.sort_by_cached_key(index);
        for point in &sorted {
            if let Some(count) = starts.get_mut(index(point) + 1) {
                *count += 1;
            }
        }
        for at in 1..starts.len() {
            let before = starts.get(at - 1).copied().unwrap_or_default();
            starts
                .get_mut(at)
                .into_iter()
                .for_each(|start| *start += before);
        }
        let in_cell = |[column, row]: Cell| {
            let at = row * size[0] + column;
            let is_inside = column < size[0] && row < size[1];
            let range = (starts.get(at).copied(), starts.get(at + 1).copied());
            let (Some(from), Some(to), true) = (range.0, range.1, is_inside) else {
                return [].as_slice();
            };
            sorted.get(from..to).unwrap_or_default()
        };
        let mut made = Self {
            low_m,
            step_m,
            bins: CellGrid::new(size),
        };
        for cell in made.all() {
            let around = square(cell, 1).flat_map(|cell| in_cell(cell).iter());
            let kept = without_strays(in_cell(cell), around.map(|point| point.z).collect());
            let bin = Bin::new(cell, made.middle_m(cell), &kept);
            made.bins.set(cell, bin);
        }
        made
    }

    fn all(&self) -> impl Iterator<Item = Cell> + use<> {
        let [columns, rows] = self.bins.size;
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [column, row]))
    }

    /// Returns the cells where the scan shows something, and others only as near to points as points are to each other.
    pub(crate) fn shown(&self) -> Vec<Cell> {
        let is_shown = |cell: &Cell| self.bins.around(*cell).count() >= SHOWN_MIN;
        self.all().filter(is_shown).collect()
    }

    pub(crate) const fn step_m(&self) -> f64 {
        self.step_m
    }

    /// Returns the place of a cell.
    pub(crate) fn middle_m(&self, cell: Cell) -> [f64; 2] {
        let at = |low_m: f64, index: usize| low_m + index as f64 * self.step_m;
        [at(self.low_m[0], cell[0]), at(self.low_m[1], cell[1])]
    }

    /// Returns the mean height around a cell.
    pub(crate) fn middle_height_m(&self, cell: Cell) -> Option<f64> {
        let around: Vec<f64> = self.bins.around(cell).map(|bin| bin.height_m).collect();
        (!around.is_empty()).then(|| around.iter().sum::<f64>() / around.len() as f64)
    }

    /// Returns the bins of a square that a circle around a cell lies in.
    pub(crate) fn within(&self, cell: Cell, radius_steps: f64) -> impl Iterator<Item = Bin> + '_ {
        square(cell, nearest(radius_steps.ceil())).filter_map(|cell| self.bins.get(cell))
    }

    /// Returns values of cells by their places.
    pub(crate) fn by_cell<T: Copy>(&self, cells: &[Cell], values: &[Option<T>]) -> CellGrid<T> {
        let mut grid = CellGrid::new(self.bins.size);
        for (cell, value) in cells.iter().zip(values) {
            grid.set(*cell, *value);
        }
        grid
    }
}

/// Returns the points that belong to the surface with these heights around them.
fn without_strays(points: &[Point3<f64>], heights: Vec<f64>) -> Vec<Point3<f64>> {
    if points.is_empty() {
        return Vec::new();
    }
    let middle = median(heights.clone());
    let distances = heights.into_iter().map(|height| (height - middle).abs());
    let most_m = (STRAY * median(distances.collect())).max(STRAY_M_MIN);
    let is_near = |point: &&Point3<f64>| (point.z - middle).abs() <= most_m;
    points.iter().filter(is_near).copied().collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and what is asked lies within the grid"
)]
fn nearest(steps: f64) -> usize {
    steps.round() as usize
}
