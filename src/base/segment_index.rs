//! Finds the nearest of many line segments in a plane.

use rstar::primitives::Line;
use rstar::{PointDistance, RTree};

/// Largest coordinate of an indexed polyline, in mm.
const COORDINATE_MAX_MM: f64 = 1e7;

/// The segments of polylines in one plane; coordinates in mm.
pub struct SegmentIndex {
    segments: RTree<Line<[f64; 2]>>,
    length_mm: f64,
}

impl SegmentIndex {
    /// Indexes the segments of polylines. A polyline with a coordinate that is not finite, or beyond 10 km, is left out.
    #[must_use]
    pub fn new(polylines: &[Vec<[f64; 2]>]) -> Self {
        let is_kept = |line: &&Vec<[f64; 2]>| {
            let mut coordinates = line.iter().flatten();
            coordinates.all(|value| value.abs() < COORDINATE_MAX_MM)
        };
        let mut segments = Vec::new();
        for line in polylines.iter().filter(is_kept) {
            let ends = line.iter().zip(line.iter().skip(1));
            segments.extend(ends.map(|(a, b)| Line::new(*a, *b)));
        }
        Self {
            length_mm: segments.iter().map(|line| line.length_2().sqrt()).sum(),
            segments: RTree::bulk_load(segments),
        }
    }

    /// Returns the length of all segments together, in mm.
    #[must_use]
    pub fn length_mm(&self) -> f64 {
        self.length_mm
    }

    /// Returns the segments, by their ends, in no particular order.
    pub fn segments(&self) -> impl Iterator<Item = [[f64; 2]; 2]> {
        self.segments.iter().map(|line| [line.from, line.to])
    }

    /// Returns the distance of a point from the nearest segment, in mm; infinity without segments.
    #[must_use]
    pub fn distance_mm(&self, point: [f64; 2]) -> f64 {
        let nearest = self.segments.nearest_neighbor(&point);
        nearest.map_or(f64::INFINITY, |line| line.distance_2(&point).sqrt())
    }
}
