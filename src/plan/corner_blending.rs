//! Turns a stroke's points into paths: corners become bends that stay near them, or rests.

use super::cartesian_path::{CartesianPath, CartesianSegment, turning};
use base::plane::{Point, along, distance};

/// Largest distance of a bend from its corner.
const CORNER_MM: f64 = 0.015;
/// The tip stops at corners that turn more than this.
const STOP_RAD: f64 = 1.9;
/// Points nearer than this to the one before are the same point.
const SAME_MM: f64 = 1e-6;

/// Converts a polyline to paths at a height over the sheet, each from rest to rest. Every point is
/// passed within [`CORNER_MM`]. Fewer than two distinct points give no path.
pub(super) fn blend_corners(points_mm: &[Point], height_mm: f64) -> Vec<CartesianPath> {
    let mut points = points_mm.to_vec();
    points.dedup_by(|next, kept| distance(*kept, *next) <= SAME_MM);
    let mut paths = Vec::new();
    let mut path = CartesianPath::new();
    let mut from = points.first().copied();
    for corner in points.windows(3) {
        let ([a, b, c], Some(start)) = (corner, from) else {
            continue;
        };
        match bend(*a, *b, *c) {
            Some((entry, exit)) => {
                push_line(&mut path, start, entry, height_mm);
                path.push(CartesianSegment::Bend {
                    from_mm: entry,
                    corner_mm: *b,
                    to_mm: exit,
                    height_mm,
                });
                from = Some(exit);
            }
            None => {
                push_line(&mut path, start, *b, height_mm);
                paths.push(std::mem::take(&mut path));
                from = Some(*b);
            }
        }
    }
    if let (Some(start), Some(last)) = (from, points.last()) {
        push_line(&mut path, start, *last, height_mm);
    }
    paths.push(path);
    paths.retain(|path| !path.is_empty());
    paths
}

/// Returns the start and end of the bend at `b`; `None` if the tip must stop there.
fn bend(a: Point, b: Point, c: Point) -> Option<(Point, Point)> {
    let turn_rad = turning(a, b, c);
    if turn_rad > STOP_RAD {
        return None;
    }
    let (before, after) = (distance(a, b), distance(b, c));
    // A parabola whose ends are `reach` from the corner passes it by reach · sin(turn_rad / 2) / 2.
    let max_reach = 2.0 * CORNER_MM / (turn_rad / 2.0).sin().max(1e-9);
    let reach = max_reach.min(before / 2.0).min(after / 2.0);
    Some((along(b, a, reach / before), along(b, c, reach / after)))
}

fn push_line(path: &mut CartesianPath, from_mm: Point, to_mm: Point, height_mm: f64) {
    if distance(from_mm, to_mm) > SAME_MM {
        path.push(CartesianSegment::Along {
            from_mm,
            to_mm,
            height_mm,
        });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn a_square_is_one_path_and_passes_its_corners_closely() {
        let square = [
            [0.0, 0.0],
            [10.0, 0.0],
            [10.0, 10.0],
            [0.0, 10.0],
            [0.0, 0.0],
        ];
        let paths = blend_corners(&square, 0.0);
        assert_eq!(paths.len(), 1);
        let bends: Vec<_> = paths
            .iter()
            .flatten()
            .filter(|piece| matches!(piece, CartesianSegment::Bend { .. }))
            .collect();
        assert_eq!(bends.len(), 3);
        let midpoint = bends.first().unwrap().on_sheet(0.5);
        assert!(distance(midpoint, [10.0, 0.0]) <= CORNER_MM + 1e-12);
    }

    #[test]
    fn a_turn_back_is_a_rest() {
        let there_and_back = [[0.0, 0.0], [10.0, 0.0], [0.0, 0.1]];
        assert_eq!(blend_corners(&there_and_back, 0.0).len(), 2);
    }

    #[test]
    fn a_straight_line_through_many_points_stays_straight() {
        let points: Vec<Point> = (0..20).map(|i| [f64::from(i) * 0.7, 0.0]).collect();
        let paths = blend_corners(&points, -1.0);
        assert_eq!(paths.len(), 1);
        for piece in paths.iter().flatten() {
            assert!(piece.on_sheet(0.5)[1].abs() < 1e-12);
        }
    }

    #[test]
    fn one_point_is_no_path() {
        assert!(blend_corners(&[[1.0, 1.0], [1.0, 1.0]], 0.0).is_empty());
    }
}
