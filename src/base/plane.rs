//! Points and polylines in a plane, in whichever unit their coordinates have.

/// A point: x and y.
pub type Point = [f64; 2];

/// Returns the distance between two points.
#[inline]
#[must_use]
pub fn distance([ax, ay]: Point, [bx, by]: Point) -> f64 {
    (bx - ax).hypot(by - ay)
}

/// Interpolates between two points: 0 is the first, 1 the second.
#[inline]
#[must_use]
pub fn along([ax, ay]: Point, [bx, by]: Point, fraction: f64) -> Point {
    [ax + (bx - ax) * fraction, ay + (by - ay) * fraction]
}

/// Returns the segments of a polyline, each by its ends.
#[inline]
pub fn pieces(line: &[Point]) -> impl Iterator<Item = [Point; 2]> {
    line.iter().zip(line.iter().skip(1)).map(|(a, b)| [*a, *b])
}

/// Returns the length of a polyline.
#[must_use]
pub fn length(line: &[Point]) -> f64 {
    pieces(line).map(|[a, b]| distance(a, b)).sum()
}

/// Returns the distance of a point from a segment, which may have no length.
#[inline]
#[must_use]
pub fn distance_to_piece([x, y]: Point, [[ax, ay], [bx, by]]: [Point; 2]) -> f64 {
    let [dx, dy] = [bx - ax, by - ay];
    let length_squared = dx * dx + dy * dy;
    let dot = (x - ax) * dx + (y - ay) * dy;
    let fraction = if length_squared > 0.0 {
        (dot / length_squared).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (ax + fraction * dx - x).hypot(ay + fraction * dy - y)
}

/// Returns the corners of the convex hull, counter-clockwise; those that lie on a straight side are left out.
#[must_use]
pub fn convex_hull(points: impl IntoIterator<Item = Point>) -> Vec<Point> {
    let mut sorted: Vec<Point> = points.into_iter().collect();
    sorted.sort_by(|[ax, ay], [bx, by]| ax.total_cmp(bx).then(ay.total_cmp(by)));
    sorted.dedup();
    let mut hull = half_hull(sorted.iter());
    hull.extend(half_hull(sorted.iter().rev()));
    // Both sides of a single point are that point.
    hull.dedup();
    hull
}

/// Returns one side of a hull, without its last corner, which begins the other side.
fn half_hull<'p>(points: impl Iterator<Item = &'p Point>) -> Vec<Point> {
    let mut side: Vec<Point> = Vec::new();
    for point in points {
        while let [.., a, b] = side.as_slice()
            && twice_area(*a, *b, *point) <= 0.0
        {
            side.pop();
        }
        side.push(*point);
    }
    let last = side.pop();
    match side.is_empty() {
        true => last.into_iter().collect(),
        false => side,
    }
}

/// Returns twice the area of a triangle, positive if it turns counter-clockwise.
fn twice_area([ax, ay]: Point, [bx, by]: Point, [cx, cy]: Point) -> f64 {
    (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
}

/// Leaves out the corners of a ring that change its area least, until `max` are left.
#[must_use]
pub fn fewer_corners(mut ring: Vec<Point>, max: usize) -> Vec<Point> {
    while ring.len() > max {
        let corners = ring.iter().enumerate().map(|(at, corner)| {
            let next = (at + 1) % ring.len();
            let before = (at + ring.len() - 1) % ring.len();
            let side = |at: usize| ring.get(at).copied().unwrap_or(*corner);
            (twice_area(side(before), *corner, side(next)).abs(), at)
        });
        let least = corners.min_by(|(one, _), (other, _)| one.total_cmp(other));
        let Some((_, at)) = least else { break };
        ring.remove(at);
    }
    ring
}

/// Returns the smallest and the largest coordinates; `None` without points.
pub fn bounds<'p>(points: impl IntoIterator<Item = &'p Point>) -> Option<(Point, Point)> {
    let corners = points.into_iter().map(|point| (*point, *point));
    corners.reduce(|(low, high), (_, [x, y])| {
        (
            [low[0].min(x), low[1].min(y)],
            [high[0].max(x), high[1].max(y)],
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hull_goes_once_round_and_leaves_out_what_is_inside_or_on_a_side() {
        let square = [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]];
        let others = [[2.0, 0.0], [1.0, 1.0], [4.0, 4.0], [0.0, 3.0]];
        assert_eq!(convex_hull(square.into_iter().chain(others)), square);
        assert_eq!(convex_hull([[1.0, 2.0], [3.0, 2.0], [2.0, 2.0]]).len(), 2);
        assert_eq!(convex_hull([[1.0, 2.0]; 3]), [[1.0, 2.0]]);
        assert_eq!(convex_hull([]), Vec::<Point>::new());
    }

    #[test]
    fn the_corners_that_matter_least_are_left_out() {
        let ring = vec![[0.0, 0.0], [2.0, -0.1], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]];
        let square = fewer_corners(ring, 4);
        assert_eq!(square, [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]]);
    }
}
