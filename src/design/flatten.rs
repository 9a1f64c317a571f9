//! Flattens curves to polylines that stray from them by at most a stated distance.

use base::plane::Point;

/// Largest distance of a chord from its curve.
pub const CHORD_ERROR_MM: f64 = 0.02;

/// Smaller pages are flattened as if they were drawn this large, because they might be.
const DRAWN_AT_MM: f64 = 200.0;

/// Most segments that one curve is cut into.
pub(crate) const PIECES_MAX: f64 = 4096.0;

/// Returns the chord error for a page of this size: a small drawing may be drawn larger.
pub(crate) fn chord_error_mm(page_mm: [f64; 2]) -> f64 {
    let longer_mm = page_mm[0].max(page_mm[1]);
    CHORD_ERROR_MM * (longer_mm / DRAWN_AT_MM).clamp(1e-4, 1.0)
}

/// Appends a quadratic Bézier curve from the last of `points`, without that point.
pub(crate) fn quadratic(points: &mut Vec<Point>, control: Point, end: Point, error_mm: f64) {
    let Some(&start) = points.last() else { return };
    let bend = second_difference(start, control, end);
    let pieces = pieces(bend * 2.0 / 8.0, error_mm);
    append(points, pieces, end, |t| {
        let s = 1.0 - t;
        blend(&[(s * s, start), (2.0 * s * t, control), (t * t, end)])
    });
}

/// Appends a cubic Bézier curve from the last of `points`, without that point.
pub(crate) fn cubic(points: &mut Vec<Point>, [first, second, end]: [Point; 3], error_mm: f64) {
    let Some(&start) = points.last() else { return };
    let bend = second_difference(start, first, second).max(second_difference(first, second, end));
    let pieces = pieces(bend * 6.0 / 8.0, error_mm);
    append(points, pieces, end, |t| {
        let s = 1.0 - t;
        blend(&[
            (s * s * s, start),
            (3.0 * s * s * t, first),
            (3.0 * s * t * t, second),
            (t * t * t, end),
        ])
    });
}

/// Appends an arc around `centre` from the last of `points`, turning by `sweep_rad` (positive is
/// counter-clockwise) and ending exactly at `end`. The radius may change slightly along it.
pub(crate) fn arc(
    points: &mut Vec<Point>,
    centre: Point,
    sweep_rad: f64,
    end: Point,
    error_mm: f64,
) {
    let Some(&start) = points.last() else { return };
    let (radius, from) = polar(centre, start);
    let (radius_end, _) = polar(centre, end);
    let pieces = arc_pieces(radius.max(radius_end), sweep_rad, error_mm);
    append(points, pieces, end, |t| {
        let at = from + sweep_rad * t;
        let r = radius + (radius_end - radius) * t;
        [centre[0] + r * at.cos(), centre[1] + r * at.sin()]
    });
}

/// Returns the angle of a chord that strays from its arc by the chord error.
pub(crate) fn chord_rad(radius_mm: f64, error_mm: f64) -> f64 {
    2.0 * (1.0 - error_mm / radius_mm.max(error_mm)).acos()
}

/// Returns the number of equal chords that keeps the chord error of an arc.
pub(crate) fn arc_pieces(radius_mm: f64, sweep_rad: f64, error_mm: f64) -> f64 {
    let pieces = sweep_rad.abs() / chord_rad(radius_mm, error_mm);
    pieces.ceil().clamp(1.0, PIECES_MAX)
}

fn polar(centre: Point, point: Point) -> (f64, f64) {
    let [dx, dy] = [point[0] - centre[0], point[1] - centre[1]];
    (dx.hypot(dy), dy.atan2(dx))
}

pub(crate) fn second_difference(a: Point, b: Point, c: Point) -> f64 {
    (a[0] - 2.0 * b[0] + c[0]).hypot(a[1] - 2.0 * b[1] + c[1])
}

/// Returns the number of equal parameter steps that keeps the chord error, by Wang's bound.
fn pieces(bound_mm: f64, error_mm: f64) -> f64 {
    (bound_mm / error_mm).sqrt().ceil().clamp(1.0, PIECES_MAX)
}

/// Appends the points of a curve in equal steps of its parameter, from after 0 up to `end`.
pub(crate) fn append(points: &mut Vec<Point>, pieces: f64, end: Point, at: impl Fn(f64) -> Point) {
    let mut step = 1.0;
    while step < pieces {
        points.push(at(step / pieces));
        step += 1.0;
    }
    points.push(end);
}

fn blend(parts: &[(f64, Point)]) -> Point {
    parts.iter().fold([0.0, 0.0], |[x, y], (weight, point)| {
        [x + weight * point[0], y + weight * point[1]]
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the largest distance of the curve from its polyline, measured at many points.
    fn stray_mm(points: &[Point], curve: impl Fn(f64) -> Point) -> f64 {
        let to_segment = |p: Point, pair: &[Point]| {
            let (a, b) = (pair[0], pair[1]);
            let d = [b[0] - a[0], b[1] - a[1]];
            let len2 = d[0] * d[0] + d[1] * d[1];
            let dot = (p[0] - a[0]) * d[0] + (p[1] - a[1]) * d[1];
            let t = (dot / len2.max(1e-30)).clamp(0.0, 1.0);
            (a[0] + t * d[0] - p[0]).hypot(a[1] + t * d[1] - p[1])
        };
        (0..=400_u32)
            .map(|i| curve(f64::from(i) / 400.0))
            .map(|p| {
                let distances_mm = points.windows(2).map(|pair| to_segment(p, pair));
                distances_mm.fold(f64::INFINITY, f64::min)
            })
            .fold(0.0, f64::max)
    }

    proptest! {
        #[test]
        fn cubics_stay_within_the_chord_error(
            c in prop::array::uniform8(-80.0..80.0_f64),
        ) {
            let (p0, p1, p2, p3) = ([c[0], c[1]], [c[2], c[3]], [c[4], c[5]], [c[6], c[7]]);
            let mut points = vec![p0];
            cubic(&mut points, [p1, p2, p3], CHORD_ERROR_MM);
            let curve = |t: f64| {
                let s = 1.0 - t;
                blend(&[(s*s*s, p0), (3.0*s*s*t, p1), (3.0*s*t*t, p2), (t*t*t, p3)])
            };
            prop_assert!(stray_mm(&points, curve) <= CHORD_ERROR_MM * 1.001);
        }

        #[test]
        fn arcs_stay_within_the_chord_error(radius in 0.01..200.0_f64, sweep in -6.2..6.2_f64) {
            let at = |angle_rad: f64| [radius * angle_rad.cos(), radius * angle_rad.sin()];
            let mut points = vec![at(0.0)];
            arc(&mut points, [0.0, 0.0], sweep, at(sweep), CHORD_ERROR_MM);
            prop_assert!(stray_mm(&points, |t| at(sweep * t)) <= CHORD_ERROR_MM * 1.001);
        }
    }

    #[test]
    fn a_straight_curve_is_one_piece() {
        let mut points = vec![[0.0, 0.0]];
        quadratic(&mut points, [1.0, 0.0], [2.0, 0.0], CHORD_ERROR_MM);
        assert_eq!(points, [[0.0, 0.0], [2.0, 0.0]]);
    }
}
