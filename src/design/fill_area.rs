//! Areas: clips lines to an area, and fills an area with lines.

use base::plane::{self, Point, along, distance, distance_to_piece};

/// Rule for which points are inside where outlines overlap.
pub(crate) use usvg::FillRule as InsideRule;

use super::join_polylines;

/// Fill of coloured areas.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AreaFill {
    /// Draws only the outline.
    #[default]
    Outline,
    /// Parallel lines, 0° along x, counter-clockwise.
    Parallel {
        /// Distance between two lines; at least 0.05.
        spacing_mm: f64,
        /// Angle of the lines.
        angle_deg: f64,
    },
    /// Parallel lines and others across them.
    Cross {
        /// Distance between two lines; at least 0.05.
        spacing_mm: f64,
        /// Angle of the first lines.
        angle_deg: f64,
    },
    /// Lines that follow the outline inwards.
    Contour {
        /// Distance between two lines; at least 0.05.
        spacing_mm: f64,
    },
}

/// Least spacing: no pen writes finer.
pub(crate) const SPACING_MIN_MM: f64 = 0.05;

/// Most segments examined in total while one drawing is filled and clipped.
const WORK_MAX: usize = 400_000_000;

/// A point this near an edge is on it: usvg's `f32` is no more precise on a page of a metre.
pub(crate) const EDGE_MM: f64 = 1e-3;

/// Work units of one fill line; this bounds the number of lines.
const LINE_WORK: usize = 2_000;

/// Remaining work units.
pub(crate) struct WorkBudget(usize);

impl Default for WorkBudget {
    fn default() -> Self {
        Self(WORK_MAX)
    }
}

impl WorkBudget {
    /// Uses up some work; `None` if more is needed than allowed.
    pub(crate) fn spend(&mut self, steps: usize) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}

/// An area: closed outlines and a rule for what is inside.
pub(crate) struct FilledArea {
    pub(crate) edges: Vec<[Point; 2]>,
    rule: InsideRule,
}

impl FilledArea {
    /// Creates an area from outlines, closing those that are open.
    pub(crate) fn new(outlines: &[Vec<Point>], rule: InsideRule) -> Self {
        let mut edges = Vec::new();
        for outline in outlines {
            let next = outline.iter().cycle().skip(1);
            edges.extend(outline.iter().zip(next).map(|(a, b)| [*a, *b]));
        }
        Self { edges, rule }
    }

    /// Returns an area of some of these edges, with the same rule.
    pub(crate) fn of_edges(&self, edges: Vec<[Point; 2]>) -> Self {
        let rule = self.rule;
        Self { edges, rule }
    }

    fn is_inside(&self, winding: i32) -> bool {
        match self.rule {
            InsideRule::EvenOdd => winding % 2 != 0,
            InsideRule::NonZero => winding != 0,
        }
    }

    /// Returns whether a point is inside.
    pub(crate) fn contains(&self, [x, y]: Point) -> bool {
        let crossings = self.edges.iter().filter_map(|edge| crossing(edge, y));
        let to_the_right = crossings.filter(|(at, _)| *at > x);
        self.is_inside(to_the_right.map(|(_, direction)| direction).sum())
    }

    /// Returns whether a point is inside or on an edge.
    pub(crate) fn covers(&self, point: Point) -> bool {
        let is_on = |edge: &[Point; 2]| distance_to_piece(point, *edge) <= EDGE_MM;
        self.contains(point) || self.edges.iter().any(is_on)
    }

    /// Returns the distance to the nearest edge.
    pub(crate) fn distance_mm(&self, from: Point) -> f64 {
        let distances = self.edges.iter().map(|edge| distance_to_piece(from, *edge));
        distances.fold(f64::INFINITY, f64::min)
    }

    /// Returns the crossings of a segment with edges, as fractions of its length between 0 and 1.
    pub(crate) fn cuts(&self, from: Point, to: Point) -> Vec<f64> {
        let segment = [to[0] - from[0], to[1] - from[1]];
        let crossing = |[a, b]: &[Point; 2]| {
            let edge = [b[0] - a[0], b[1] - a[1]];
            let cross = segment[0] * edge[1] - segment[1] * edge[0];
            let offset = [a[0] - from[0], a[1] - from[1]];
            let on_segment = (offset[0] * edge[1] - offset[1] * edge[0]) / cross;
            let on_edge = (offset[0] * segment[1] - offset[1] * segment[0]) / cross;
            // A line along one edge is cut by the neighbouring edges, whose ends are equally far
            // off.
            let slack = EDGE_MM / edge[0].hypot(edge[1]);
            let is_on_edge = on_edge >= -slack && on_edge <= 1.0 + slack;
            let meets = is_on_edge && on_segment > 0.0 && on_segment < 1.0;
            meets.then_some(on_segment)
        };
        self.edges.iter().filter_map(crossing).collect()
    }

    /// Returns parallel lines inside, in alternating directions so that the pen travels little.
    pub(crate) fn hatch(
        &self,
        spacing_mm: f64,
        angle_deg: f64,
        work: &mut WorkBudget,
    ) -> Option<Vec<Vec<Point>>> {
        let spacing_mm = spacing_mm.max(SPACING_MIN_MM);
        let angle_rad = angle_deg.to_radians();
        let rotated = |[a, b]: &[Point; 2]| [rotate(*a, -angle_rad), rotate(*b, -angle_rad)];
        let edges: Vec<[Point; 2]> = self.edges.iter().map(rotated).collect();
        let Some((low, high)) = plane::bounds(edges.iter().flatten()) else {
            return Some(Vec::new());
        };
        let mut lines = Vec::new();
        // Lines lie on a grid of the page, so that those of neighbouring areas match.
        let mut row = (low[1] / spacing_mm).floor() + 0.5;
        let mut is_reversed = false;
        while row * spacing_mm < high[1] {
            work.spend(edges.len() + LINE_WORK)?;
            let mut spans = self.spans(&edges, row * spacing_mm);
            work.spend(spans.len().saturating_mul(LINE_WORK))?;
            if is_reversed {
                spans.reverse();
                spans.iter_mut().for_each(|ends| ends.reverse());
            }
            let on_page = |x: f64| rotate([x, row * spacing_mm], angle_rad);
            lines.extend(spans.into_iter().map(|ends| ends.map(on_page).to_vec()));
            is_reversed = !is_reversed;
            row += 1.0;
        }
        Some(lines)
    }

    /// Returns the spans of a horizontal line inside, from left to right.
    fn spans(&self, edges: &[[Point; 2]], y: f64) -> Vec<[f64; 2]> {
        let crossings = edges.iter().filter_map(|edge| crossing(edge, y));
        let mut crossings: Vec<(f64, i32)> = crossings.collect();
        crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut spans = Vec::new();
        let mut winding = 0;
        let mut left = None;
        for (x, direction) in crossings {
            let was_inside = self.is_inside(winding);
            winding += direction;
            match (was_inside, self.is_inside(winding)) {
                (false, true) => left = Some(x),
                (true, false) => spans.extend(left.take().map(|left| [left, x])),
                _ => {}
            }
        }
        spans.retain(|[left, right]| right - left > SPACING_MIN_MM);
        spans
    }

    /// Returns the lines of a fill, without the outline.
    pub(crate) fn lines(&self, fill: AreaFill, work: &mut WorkBudget) -> Option<Vec<Vec<Point>>> {
        match fill {
            AreaFill::Outline => Some(Vec::new()),
            AreaFill::Parallel {
                spacing_mm,
                angle_deg,
            } => self.hatch(spacing_mm, angle_deg, work),
            AreaFill::Cross {
                spacing_mm,
                angle_deg,
            } => {
                let mut lines = self.hatch(spacing_mm, angle_deg, work)?;
                lines.extend(self.hatch(spacing_mm, angle_deg + 90.0, work)?);
                Some(lines)
            }
            AreaFill::Contour { spacing_mm } => self.contours(spacing_mm, work),
        }
    }

    /// Returns lines at multiples of a distance from the outline, found on a grid.
    fn contours(&self, spacing_mm: f64, work: &mut WorkBudget) -> Option<Vec<Vec<Point>>> {
        let spacing_mm = spacing_mm.max(SPACING_MIN_MM);
        let Some((low, high)) = plane::bounds(self.edges.iter().flatten()) else {
            return Some(Vec::new());
        };
        let grid = DepthGrid::sample(self, low, high, spacing_mm / 4.0, work)?;
        let mut lines = Vec::new();
        let mut depth_mm = spacing_mm;
        while depth_mm < grid.deepest_mm {
            let pieces = grid.pieces(depth_mm, work)?;
            // Join them end to end, and simplify them to the resolution of the grid.
            let chains = join_polylines::join(pieces, grid.step_mm * 1e-3);
            let simplify =
                |chain: Vec<Point>| join_polylines::simplified(&chain, grid.step_mm * 0.1);
            lines.extend(chains.into_iter().map(simplify));
            depth_mm += spacing_mm;
        }
        Some(lines)
    }
}

/// Returns the x at which an edge crosses a horizontal line, and 1 for upwards or -1 for downwards.
fn crossing([a, b]: &[Point; 2], y: f64) -> Option<(f64, i32)> {
    let is_up = a[1] <= y && b[1] > y;
    let is_down = b[1] <= y && a[1] > y;
    let at = a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
    (is_up || is_down).then_some((at, if is_up { 1 } else { -1 }))
}

/// Returns the parts of a path inside at least one of the areas, edges included; `None` if that
/// takes more work than allowed.
pub(crate) fn clip(
    path: &[Point],
    areas: &[FilledArea],
    work: &mut WorkBudget,
) -> Option<Vec<Vec<Point>>> {
    let covers = |point: Point| areas.iter().any(|area| area.covers(point));
    clip_where(path, areas, &covers, work)
}

/// Returns the parts of a line that are kept, cut where it crosses these areas.
pub(crate) fn clip_where(
    path: &[Point],
    areas: &[FilledArea],
    covers: &dyn Fn(Point) -> bool,
    work: &mut WorkBudget,
) -> Option<Vec<Vec<Point>>> {
    let edges: usize = areas.iter().map(|area| area.edges.len()).sum();
    if let [point] = path {
        work.spend(edges)?;
        return Some(Vec::from_iter(covers(*point).then(|| path.to_vec())));
    }
    let mut parts: Vec<Vec<Point>> = Vec::new();
    let mut part: Vec<Point> = Vec::new();
    for [from, to] in plane::pieces(path) {
        let mut cuts: Vec<f64> = areas.iter().flat_map(|area| area.cuts(from, to)).collect();
        cuts.push(1.0);
        cuts.sort_by(f64::total_cmp);
        work.spend(edges.saturating_mul(cuts.len() + 1))?;
        let mut start = 0.0;
        for end in cuts.into_iter().filter(|end| *end > 0.0) {
            let midpoint = along(from, to, f64::midpoint(start, end));
            if !covers(midpoint) {
                parts.extend((part.len() > 1).then(|| std::mem::take(&mut part)));
                part.clear();
            } else if end > start {
                if part.is_empty() {
                    part.push(along(from, to, start));
                }
                part.push(along(from, to, end));
            }
            start = end;
        }
    }
    parts.extend((part.len() > 1).then_some(part));
    // A line that only touches an edge, as at a corner, leaves no dot.
    let is_touch = |part: &[Point]| plane::length(part) <= 2.0 * EDGE_MM;
    parts.retain(|part| !is_touch(part) || is_touch(path));
    Some(parts)
}

fn rotate([x, y]: Point, angle_rad: f64) -> Point {
    let (sin, cos) = angle_rad.sin_cos();
    [x * cos - y * sin, x * sin + y * cos]
}

/// A grid of nodes over an area, in rows; each has its depth inside the area, negative outside.
struct DepthGrid {
    step_mm: f64,
    rows: Vec<Vec<(Point, f64)>>,
    deepest_mm: f64,
}

/// Most nodes: larger areas get a coarser grid.
const NODES_MAX: f64 = 250_000.0;

impl DepthGrid {
    fn sample(
        area: &FilledArea,
        low: Point,
        high: Point,
        step_mm: f64,
        work: &mut WorkBudget,
    ) -> Option<Self> {
        let size = [high[0] - low[0], high[1] - low[1]];
        let coarse_mm = (size[0] * size[1] / NODES_MAX).sqrt();
        let step_mm = step_mm.max(coarse_mm).max(size[0].max(size[1]) / 20_000.0);
        let low = low.map(|value| value - step_mm);
        let [columns, rows] = size.map(|length| count((length / step_mm).ceil() + 3.0));
        let node = |column: u32, row: u32| {
            let steps = [column, row].map(f64::from);
            let at = [low[0] + steps[0] * step_mm, low[1] + steps[1] * step_mm];
            let sign = if area.contains(at) { 1.0 } else { -1.0 };
            (at, sign * area.distance_mm(at))
        };
        let row_work = (columns as usize).saturating_mul(2 * area.edges.len() + 1);
        let row = |row: u32| {
            work.spend(row_work)?;
            Some((0..columns).map(|column| node(column, row)).collect())
        };
        let rows: Vec<Vec<_>> = (0..rows).map(row).collect::<Option<_>>()?;
        let depths_mm = rows.iter().flatten().map(|(_, mm)| *mm);
        Some(Self {
            deepest_mm: depths_mm.fold(0.0, f64::max),
            step_mm,
            rows,
        })
    }

    /// Returns segments of the line at a depth, by marching squares.
    fn pieces(&self, depth_mm: f64, work: &mut WorkBudget) -> Option<Vec<Vec<Point>>> {
        work.spend(self.rows.iter().map(Vec::len).sum())?;
        let mut pieces = Vec::new();
        for (low, high) in self.rows.iter().zip(self.rows.iter().skip(1)) {
            for square in low.windows(2).zip(high.windows(2)) {
                let ([a, b], [d, c]) = square else { continue };
                let ends = square_crossings([a, b, c, d], depth_mm);
                // A line through a node yields segments without length, which cannot be joined.
                let pairs = ends.as_chunks().0.iter();
                let pairs = pairs.filter(|[a, b]| distance(*a, *b) > 1e-6);
                pieces.extend(pairs.map(|pair| pair.to_vec()));
            }
        }
        Some(pieces)
    }
}

/// Returns the points at which the sides of one square cross the depth, in matching pairs.
fn square_crossings(corners: [&(Point, f64); 4], depth_mm: f64) -> Vec<Point> {
    let sides = corners.iter().zip(corners.iter().cycle().skip(1));
    let crossed_sides = sides.filter(|((_, a), (_, b))| (*a >= depth_mm) != (*b >= depth_mm));
    crossed_sides
        .map(|((a, a_mm), (b, b_mm))| along(*a, *b, (depth_mm - a_mm) / (b_mm - a_mm)))
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the callers keep it between 3 and some 20,000"
)]
fn count(length: f64) -> u32 {
    length.clamp(0.0, 1e6) as u32
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

    fn square(low: f64, high: f64) -> Vec<Point> {
        vec![[low, low], [high, low], [high, high], [low, high]]
    }

    fn length(lines: &[Vec<Point>]) -> f64 {
        let step = |pair: &[Point]| (pair[1][0] - pair[0][0]).hypot(pair[1][1] - pair[0][1]);
        lines
            .iter()
            .flat_map(|line| line.windows(2).map(step))
            .sum()
    }

    #[test]
    fn a_line_is_clipped_to_the_inside() {
        let ring = FilledArea::new(&[square(0.0, 10.0), square(3.0, 7.0)], InsideRule::EvenOdd);
        let line = [[-5.0, 5.0], [15.0, 5.0]];
        let parts = clip(&line, &[ring], &mut WorkBudget::default()).unwrap();
        assert_eq!(parts.len(), 2);
        assert!((length(&parts) - 6.0).abs() < 1e-9);
        let solid = FilledArea::new(&[square(0.0, 10.0), square(3.0, 7.0)], InsideRule::NonZero);
        let parts = clip(&line, &[solid], &mut WorkBudget::default()).unwrap();
        assert!((length(&parts) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_line_on_an_edge_is_inside_and_ends_with_it() {
        let area = FilledArea::new(&[square(0.0, 10.0)], InsideRule::EvenOdd);
        let offset_mm = 1e-5;
        for line in [
            [[-5.0, 0.0], [15.0, 0.0]],
            [[-5.0, 10.0], [15.0, 10.0]],
            [[-5.0, 10.0 + offset_mm], [15.0, 10.0 + offset_mm]],
            [[-5.0, -offset_mm], [15.0, -offset_mm]],
            [[0.0, -5.0], [0.0, 15.0]],
            [[10.0, 15.0], [10.0, -5.0]],
            [[10.0 + offset_mm, 15.0], [10.0 - offset_mm, -5.0]],
        ] {
            let areas = std::slice::from_ref(&area);
            let parts = clip(&line, areas, &mut WorkBudget::default()).unwrap();
            assert!((length(&parts) - 10.0).abs() < 1e-3, "{line:?}: {parts:?}");
        }
    }

    #[test]
    fn a_line_past_a_corner_leaves_no_dot() {
        let area = FilledArea::new(&[square(0.0, 10.0)], InsideRule::EvenOdd);
        let touching = [
            [[-5.0, 5.0], [5.0, -5.0]],
            [[5.0, 15.0], [15.0, 5.0]],
            [[5.0, 15.0], [15.0, 5.000_1]],
            [[-5.0, 10.0], [0.0, 10.0]],
        ];
        for line in touching {
            let areas = std::slice::from_ref(&area);
            let parts = clip(&line, areas, &mut WorkBudget::default()).unwrap();
            assert!(parts.is_empty(), "{line:?}: {parts:?}");
        }
    }

    #[test]
    fn hatching_covers_the_area() {
        let ring = FilledArea::new(&[square(0.0, 10.0), square(3.0, 7.0)], InsideRule::EvenOdd);
        for angle_deg in [0.0, 30.0, 90.0] {
            let lines = ring
                .hatch(0.25, angle_deg, &mut WorkBudget::default())
                .unwrap();
            let area_mm2 = length(&lines) * 0.25;
            assert!((area_mm2 - 84.0).abs() < 3.0, "{angle_deg}: {area_mm2}");
        }
        let cross = AreaFill::Cross {
            spacing_mm: 0.5,
            angle_deg: 45.0,
        };
        let lines = ring.lines(cross, &mut WorkBudget::default()).unwrap();
        assert!((length(&lines) * 0.25 - 84.0).abs() < 4.0);
    }

    #[test]
    fn contours_follow_the_outline_inwards() {
        let area = FilledArea::new(&[square(0.0, 10.0)], InsideRule::NonZero);
        let fill = AreaFill::Contour { spacing_mm: 1.0 };
        let lines = area.lines(fill, &mut WorkBudget::default()).unwrap();
        // Squares of 8, 6, 4 and 2 mm, and perhaps nothing at the middle.
        assert_eq!(lines.len(), 4, "{}", lines.len());
        assert!((length(&lines) - 80.0).abs() < 3.0, "{}", length(&lines));
    }

    #[test]
    fn too_much_work_is_refused() {
        let area = FilledArea::new(&[square(0.0, 1e5)], InsideRule::NonZero);
        assert_eq!(area.hatch(0.05, 0.0, &mut WorkBudget(1000)), None);
    }

    proptest! {
        #[test]
        fn what_is_clipped_lies_inside(
            outline in prop::collection::vec([0.0..9.0_f64, 0.0..9.0_f64], 3..8),
            path in prop::collection::vec([-2.0..11.0_f64, -2.0..11.0_f64], 2..6),
        ) {
            let area = FilledArea::new(&[outline], InsideRule::NonZero);
            let areas = [area];
            let parts = clip(&path, &areas, &mut WorkBudget::default()).unwrap();
            let [area] = areas;
            prop_assert!(length(&parts) <= length(&[path]) + 1e-6);
            for pair in parts.iter().flat_map(|part| part.windows(2)) {
                prop_assert!(area.covers(along(pair[0], pair[1], 0.5)));
            }
        }
    }
}
