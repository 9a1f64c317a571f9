//! A stroke's points made courses: corners become bends that stay near them, or rests.

use super::cartesian_path::{CartesianPath, CartesianSegment, turning};
use base::plane::{Point, along, distance};

/// Largest distance of a bend from its corner.
const CORNER_MM: f64 = 0.015;
/// Corners that turn more than this are stopped at.
const STOP_RAD: f64 = 1.9;
/// Points nearer than this to the one before are the same point.
const SAME_MM: f64 = 1e-6;

/// A polyline as courses at a height over the sheet, each from rest to rest. Passes every point
/// by at most [`CORNER_MM`]; none for fewer than two points that differ.
pub(super) fn courses(points_mm: &[Point], height_mm: f64) -> Vec<CartesianPath> {
    let mut points = points_mm.to_vec();
    points.dedup_by(|next, kept| distance(*kept, *next) <= SAME_MM);
    let mut courses = Vec::new();
    let mut course = CartesianPath::new();
    let mut from = points.first().copied();
    for corner in points.windows(3) {
        let ([a, b, c], Some(begun)) = (corner, from) else {
            continue;
        };
        match bend(*a, *b, *c) {
            Some((entry, exit)) => {
                line(&mut course, begun, entry, height_mm);
                course.push(CartesianSegment::Bend {
                    from_mm: entry,
                    corner_mm: *b,
                    to_mm: exit,
                    height_mm,
                });
                from = Some(exit);
            }
            None => {
                line(&mut course, begun, *b, height_mm);
                courses.push(std::mem::take(&mut course));
                from = Some(*b);
            }
        }
    }
    if let (Some(begun), Some(last)) = (from, points.last()) {
        line(&mut course, begun, *last, height_mm);
    }
    courses.push(course);
    courses.retain(|course| !course.is_empty());
    courses
}

/// Returns the start and end of the bend at `b`; `None` to stop there.
fn bend(a: Point, b: Point, c: Point) -> Option<(Point, Point)> {
    let turn = turning(a, b, c);
    if turn > STOP_RAD {
        return None;
    }
    let (before, after) = (distance(a, b), distance(b, c));
    // A parabola whose ends are `reach` from the corner passes it by reach · sin(turn / 2) / 2.
    let most = 2.0 * CORNER_MM / (turn / 2.0).sin().max(1e-9);
    let reach = most.min(before / 2.0).min(after / 2.0);
    Some((along(b, a, reach / before), along(b, c, reach / after)))
}

fn line(course: &mut CartesianPath, from_mm: Point, to_mm: Point, height_mm: f64) {
    if distance(from_mm, to_mm) > SAME_MM {
        course.push(CartesianSegment::Along {
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
    fn a_square_is_one_course_and_passes_its_corners_closely() {
        let square = [
            [0.0, 0.0],
            [10.0, 0.0],
            [10.0, 10.0],
            [0.0, 10.0],
            [0.0, 0.0],
        ];
        let courses = courses(&square, 0.0);
        assert_eq!(courses.len(), 1);
        let bends: Vec<_> = courses
            .iter()
            .flatten()
            .filter(|piece| matches!(piece, CartesianSegment::Bend { .. }))
            .collect();
        assert_eq!(bends.len(), 3);
        let middle = bends.first().unwrap().on_sheet(0.5);
        assert!(distance(middle, [10.0, 0.0]) <= CORNER_MM + 1e-12);
    }

    #[test]
    fn a_turn_back_is_a_rest() {
        let there_and_back = [[0.0, 0.0], [10.0, 0.0], [0.0, 0.1]];
        assert_eq!(courses(&there_and_back, 0.0).len(), 2);
    }

    #[test]
    fn a_straight_line_through_many_points_stays_straight() {
        let points: Vec<Point> = (0..20).map(|i| [f64::from(i) * 0.7, 0.0]).collect();
        let courses = courses(&points, -1.0);
        assert_eq!(courses.len(), 1);
        for piece in courses.iter().flatten() {
            assert!(piece.on_sheet(0.5)[1].abs() < 1e-12);
        }
    }

    #[test]
    fn one_point_is_no_course() {
        assert!(courses(&[[1.0, 1.0], [1.0, 1.0]], 0.0).is_empty());
    }
}
