//! A smooth surface near a mesh: a cubic B-spline through places of its patch.
//!
//! A tip that followed the triangles themselves would have to turn at once at each of their edges.

use nalgebra::{Point3, Unit, Vector3};

/// Most samples.
const SAMPLES_MAX: f64 = 250_000.0;

/// Samples of a rectangle of a patch.
#[derive(Clone)]
pub(crate) struct SmoothSheet {
    low_mm: [f64; 2],
    step_mm: f64,
    size: [usize; 2],
    points: Vec<Point3<f64>>,
}

/// A point of a smooth surface with its derivatives, in metres for each millimetre.
pub(crate) struct SmoothPoint {
    pub(crate) point_m: Point3<f64>,
    pub(crate) along: Vector3<f64>,
    pub(crate) across: Vector3<f64>,
}

impl SmoothPoint {
    /// Returns the outward normal; `None` where the surface has none.
    pub(crate) fn normal(&self) -> Option<Unit<Vector3<f64>>> {
        Unit::try_new(self.along.cross(&self.across), 0.0)
    }
}

impl SmoothSheet {
    /// Samples a rectangle every `step_mm`, or less often where it is too large for that.
    pub(crate) fn new(
        [low_mm, high_mm]: [[f64; 2]; 2],
        step_mm: f64,
        sample: impl Fn([f64; 2]) -> Point3<f64>,
    ) -> Self {
        let [width_mm, height_mm] = [0, 1].map(|axis: usize| {
            let side = |corner: [f64; 2]| corner.get(axis).copied().unwrap_or_default();
            side(high_mm) - side(low_mm)
        });
        let step_mm = step_mm.max((width_mm * height_mm / SAMPLES_MAX).sqrt());
        let size = [width_mm, height_mm].map(|side_mm| count(side_mm / step_mm) + 4);
        let [columns, rows] = size;
        let [left, bottom] = low_mm;
        let at = |column: usize, row: usize| {
            let places = [(left, column), (bottom, row)];
            sample(places.map(|(low, n)| low + (n as f64 - 1.0) * step_mm))
        };
        let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
        Self {
            low_mm,
            step_mm,
            size,
            points: all.map(|(column, row)| at(column, row)).collect(),
        }
    }

    pub(crate) const fn step_mm(&self) -> f64 {
        self.step_mm
    }

    /// Returns the point at a place; `None` beyond the rectangle.
    pub(crate) fn at(&self, [x_mm, y_mm]: [f64; 2]) -> Option<SmoothPoint> {
        let ([left, bottom], [columns, rows]) = (self.low_mm, self.size);
        let cell = |at_mm: f64, low_mm: f64, size: usize| {
            let along = (at_mm - low_mm) / self.step_mm;
            let is_inside = along >= 0.0 && along < (size - 3) as f64;
            is_inside.then(|| (count(along), along.fract()))
        };
        let (column, x) = cell(x_mm, left, columns)?;
        let (row, y) = cell(y_mm, bottom, rows)?;
        let (weights_x, slopes_x) = (weights(x), slopes(x));
        let (weights_y, slopes_y) = (weights(y), slopes(y));
        let [mut point, mut along, mut across] = [Vector3::zeros(); 3];
        for (line, (weight_y, slope_y)) in weights_y.into_iter().zip(slopes_y).enumerate() {
            let first = (row + line) * columns + column;
            let points = self.points.get(first..first + 4)?;
            let [mut sum, mut slope] = [Vector3::zeros(); 2];
            for ((at, weight_x), slope_x) in points.iter().zip(weights_x).zip(slopes_x) {
                sum += at.coords * weight_x;
                slope += at.coords * slope_x;
            }
            point += sum * weight_y;
            along += slope * weight_y;
            across += sum * slope_y;
        }
        Some(SmoothPoint {
            point_m: Point3::from(point),
            along: along / self.step_mm,
            across: across / self.step_mm,
        })
    }
}

/// Weights of four neighbours at a share of the way between the middle two.
fn weights(t: f64) -> [f64; 4] {
    let rest = 1.0 - t;
    [
        rest.powi(3) / 6.0,
        (3.0 * t.powi(3) - 6.0 * t * t + 4.0) / 6.0,
        (3.0 * rest.powi(3) - 6.0 * rest * rest + 4.0) / 6.0,
        t.powi(3) / 6.0,
    ]
}

/// Derivatives of the weights.
fn slopes(t: f64) -> [f64; 4] {
    let rest = 1.0 - t;
    [
        -rest * rest / 2.0,
        (3.0 * t * t - 4.0 * t) / 2.0,
        (4.0 * rest - 3.0 * rest * rest) / 2.0,
        t * t / 2.0,
    ]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and the number is not negative"
)]
fn count(number: f64) -> usize {
    number as usize
}
