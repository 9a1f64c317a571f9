//! Points and polylines in a plane, in whichever unit their coordinates have.

/// x and y.
pub type Point = [f64; 2];

/// Returns the distance between two points.
#[inline]
#[must_use]
pub fn distance([ax, ay]: Point, [bx, by]: Point) -> f64 {
    (bx - ax).hypot(by - ay)
}

/// Returns the point at a share of the way, 0 at its beginning and 1 at its end.
#[inline]
#[must_use]
pub fn along([ax, ay]: Point, [bx, by]: Point, share: f64) -> Point {
    [ax + (bx - ax) * share, ay + (by - ay) * share]
}

/// Returns the straight pieces of a polyline, each by its ends.
#[inline]
pub fn pieces(line: &[Point]) -> impl Iterator<Item = [Point; 2]> {
    line.iter().zip(line.iter().skip(1)).map(|(a, b)| [*a, *b])
}

/// Returns the length of a polyline.
#[must_use]
pub fn length(line: &[Point]) -> f64 {
    pieces(line).map(|[a, b]| distance(a, b)).sum()
}

/// Returns the distance of a point from a straight piece, or from its only point where it has no length.
#[inline]
#[must_use]
pub fn distance_to_piece([x, y]: Point, [[ax, ay], [bx, by]]: [Point; 2]) -> f64 {
    let [dx, dy] = [bx - ax, by - ay];
    let square = dx * dx + dy * dy;
    let dot = (x - ax) * dx + (y - ay) * dy;
    let share = if square > 0.0 {
        (dot / square).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (ax + share * dx - x).hypot(ay + share * dy - y)
}

/// Returns the smallest and the largest coordinates, none for no points.
pub fn bounds<'p>(points: impl IntoIterator<Item = &'p Point>) -> Option<(Point, Point)> {
    let each = points.into_iter().map(|point| (*point, *point));
    each.reduce(|(low, high), (_, [x, y])| {
        (
            [low[0].min(x), low[1].min(y)],
            [high[0].max(x), high[1].max(y)],
        )
    })
}
