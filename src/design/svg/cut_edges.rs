//! Finds the edges that clip paths give to an area: where they cut it, its outline is theirs.

use std::iter::once;

use base::plane::{self, Point, along, distance};

use super::super::fill_area::{EDGE_MM, FilledArea, WorkBudget};
use super::super::join_polylines;

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
    let areas: Vec<&FilledArea> = once(area).chain(clips.iter().flatten()).collect();
    let edges: usize = areas.iter().map(|area| area.edges.len()).sum();
    let covers = |areas: &Vec<FilledArea>, at| areas.iter().any(|area| area.contains(at));
    let is_seen = |at| area.contains(at) && clips.iter().all(|areas| covers(areas, at));
    let mut pieces = Vec::new();
    for (place, clip) in areas.iter().enumerate().skip(1) {
        work.spend(clip.edges.len())?;
        // Edges of several clips that lie on each other count once.
        let before = areas.get(..place).unwrap_or_default();
        for [from, to] in clip.edges.iter().filter(|edge| may_meet(edge, low, high)) {
            let mut ends: Vec<f64> = areas.iter().flat_map(|a| a.cuts(*from, *to)).collect();
            ends.push(1.0);
            ends.sort_by(f64::total_cmp);
            work.spend(edges.saturating_mul(ends.len() + 1))?;
            let starts = once(0.0).chain(ends.iter().copied());
            for (start, end) in starts.zip(&ends).filter(|(start, end)| *end > start) {
                let middle = along(*from, *to, f64::midpoint(start, *end));
                let [left, right] = beside([*from, *to], middle);
                let is_outline = is_seen(left) != is_seen(right);
                if is_outline
                    && !before
                        .iter()
                        .any(|area| area.distance_mm(middle) <= EDGE_MM)
                {
                    pieces.push(vec![along(*from, *to, start), along(*from, *to, *end)]);
                }
            }
        }
    }
    let mut lines = join_polylines::join(pieces, EDGE_MM);
    lines.retain(|line| plane::length(line) > 2.0 * EDGE_MM);
    Some(lines)
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
