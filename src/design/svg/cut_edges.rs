//! Finds the edges that clip paths give to an area: where they cut it, its outline is theirs.

use std::iter::once;

use base::plane::{self, Point, along, distance};

use super::super::fill_area::{EDGE_MM, FilledArea, WorkBudget};
use super::super::join_polylines;
use super::edge_rows::EdgeRows;

/// Returns the parts of the clips' edges that bound what is seen of an area and are not on its own
/// outline; `None` if that takes more work than allowed.
pub(super) fn find(
    area: &FilledArea,
    clips: &[Vec<FilledArea>],
    work: &mut WorkBudget,
) -> Option<Vec<Vec<Point>>> {
    let Some((low, high)) = plane::bounds(area.edges.iter().flatten()) else {
        return Some(Vec::new());
    };
    let sort = |area| EdgeRows::new(area, low[1], high[1]);
    work.spend(area.edges.len())?;
    let mut rows = vec![vec![sort(area)]];
    rows.extend(clips.iter().map(|areas| areas.iter().map(sort).collect()));
    let mut pieces = Vec::new();
    for (place, clip) in clips.iter().flatten().enumerate() {
        work.spend(clip.edges.len())?;
        for edge in clip.edges.iter().filter(|edge| may_meet(edge, low, high)) {
            let near = |areas: &Vec<EdgeRows>| areas.iter().map(|area| area.near(edge)).collect();
            let near: Vec<Vec<FilledArea>> = rows.iter().map(near).collect();
            // Edges of several clips that lie on each other count once.
            pieces.extend(outline_on(*edge, &near, place + 1, work)?);
        }
    }
    let mut lines = join_polylines::join(pieces, EDGE_MM);
    lines.retain(|line| plane::length(line) > 2.0 * EDGE_MM);
    Some(lines)
}

/// Returns the parts of an edge that bound what all groups of areas cover and that lie on no edge of
/// the areas before its own, which is at `place` among all.
fn outline_on(
    [from, to]: [Point; 2],
    groups: &[Vec<FilledArea>],
    place: usize,
    work: &mut WorkBudget,
) -> Option<Vec<Vec<Point>>> {
    let areas = || groups.iter().flatten();
    let covers = |areas: &Vec<FilledArea>, at| areas.iter().any(|area| area.contains(at));
    let is_seen = |at| groups.iter().all(|areas| covers(areas, at));
    let is_drawn = |at| {
        areas()
            .take(place)
            .any(|area| area.distance_mm(at) <= EDGE_MM)
    };
    let mut ends: Vec<f64> = areas().flat_map(|area| area.cuts(from, to)).collect();
    ends.push(1.0);
    ends.sort_by(f64::total_cmp);
    let edges: usize = areas().map(|area| area.edges.len() + 1).sum();
    work.spend(edges.saturating_mul(ends.len() + 1))?;
    let mut pieces = Vec::new();
    let starts = once(0.0).chain(ends.iter().copied());
    for (start, end) in starts.zip(&ends).filter(|(start, end)| *end > start) {
        let middle = along(from, to, f64::midpoint(start, *end));
        let [left, right] = beside([from, to], middle);
        if is_seen(left) != is_seen(right) && !is_drawn(middle) {
            pieces.push(vec![along(from, to, start), along(from, to, *end)]);
        }
    }
    Some(pieces)
}

/// Returns whether an edge that has a length may meet what lies within bounds.
fn may_meet([a, b]: &[Point; 2], low: Point, high: Point) -> bool {
    let is_within = |axis: fn(&Point) -> f64| {
        axis(a).min(axis(b)) <= axis(&high) && axis(a).max(axis(b)) >= axis(&low)
    };
    distance(*a, *b) > 0.0 && is_within(|[x, _]| *x) && is_within(|[_, y]| *y)
}

/// Returns the places on either side of an edge, next to a point on it.
fn beside([from, to]: [Point; 2], [x, y]: Point) -> [Point; 2] {
    let step = 2.0 * EDGE_MM / distance(from, to);
    let (across_x, across_y) = ((from[1] - to[1]) * step, (to[0] - from[0]) * step);
    [[x + across_x, y + across_y], [x - across_x, y - across_y]]
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::super::fill_area::InsideRule;
    use super::*;

    fn disc(x: f64, corners: u32) -> FilledArea {
        let angle = |n: u32| std::f64::consts::TAU * f64::from(n) / f64::from(corners);
        let corner = |n: u32| [x + 20.0 * angle(n).cos(), 20.0 * angle(n).sin()];
        let outline: Vec<Point> = (0..corners).map(corner).collect();
        FilledArea::new(&[outline], InsideRule::NonZero)
    }

    /// A look at all edges for each edge of the clip would cost one drawing's work in two areas.
    #[test]
    fn large_areas_are_cut_by_large_clips() {
        let clips = [vec![disc(0.0, 8_000)]];
        let mut work = WorkBudget::default();
        for x in [18.0, 19.0, 20.0, 21.0, 22.0] {
            let lines = find(&disc(x, 10_000), &clips, &mut work).unwrap();
            let length: f64 = lines.iter().map(|line| plane::length(line)).sum();
            let arc = 40.0 * (x / 40.0).acos();
            assert!((length - arc).abs() < 0.1, "{length} for {arc}");
        }
    }
}
