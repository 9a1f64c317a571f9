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
