//! Sorts an area's edges into rows of the page, so that those near a line are found without a look
//! at all of them.

use base::plane::Point;

use super::super::fill_area::{EDGE_MM, FilledArea};

/// Edges this near to a line may cut it, or bound what lies beside it.
const NEAR_MM: f64 = 3.0 * EDGE_MM;

/// Most rows of an area.
const ROWS_MAX: usize = 1_000;

/// An area's edges by the rows that they touch.
pub(super) struct EdgeRows<'a> {
    area: &'a FilledArea,
    low_mm: f64,
    row_mm: f64,
    /// The edges of each row, each with its lowest row.
    rows: Vec<Vec<(usize, [Point; 2])>>,
}

impl<'a> EdgeRows<'a> {
    /// Sorts the edges between two heights; the others are left out.
    pub(super) fn new(area: &'a FilledArea, low_mm: f64, high_mm: f64) -> Self {
        let rows = area.edges.len().isqrt().clamp(1, ROWS_MAX);
        #[expect(
            clippy::cast_precision_loss,
            reason = "there are at most ROWS_MAX rows"
        )]
        let row_mm = (high_mm - low_mm) / rows as f64;
        let mut sorted = Self {
            area,
            low_mm,
            row_mm,
            rows: vec![Vec::new(); rows],
        };
        for edge in &area.edges {
            let [low, high] = heights(edge);
            if low > high_mm + NEAR_MM || high < low_mm - NEAR_MM {
                continue;
            }
            let (first, last) = (sorted.row_at(low), sorted.row_at(high));
            let rows = sorted.rows.iter_mut().take(last + 1).skip(first);
            rows.for_each(|row| row.push((first, *edge)));
        }
        sorted
    }

    /// Returns the area with no edges but those of the rows of a line: the places of the line and
    /// next to it lie inside it as inside the whole.
    pub(super) fn near(&self, line: &[Point; 2]) -> FilledArea {
        let [low, high] = heights(line);
        let (first, last) = (self.row_at(low - NEAR_MM), self.row_at(high + NEAR_MM));
        let rows = self.rows.iter().enumerate().take(last + 1).skip(first);
        // An edge in several rows counts in the first of them.
        let edges = rows.flat_map(|(place, row)| {
            let is_first = move |lowest: usize| place == first.max(lowest);
            row.iter().filter(move |(lowest, _)| is_first(*lowest))
        });
        self.area.of_edges(edges.map(|(_, edge)| *edge).collect())
    }

    /// Returns the row of a height; what lies beyond the last row counts to it.
    fn row_at(&self, mm: f64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast ends at 0 and at the highest number"
        )]
        let row = ((mm - self.low_mm) / self.row_mm) as usize;
        row.min(self.rows.len() - 1)
    }
}

/// Returns the lower and the higher end of an edge.
fn heights([a, b]: &[Point; 2]) -> [f64; 2] {
    [a[1].min(b[1]), a[1].max(b[1])]
}
