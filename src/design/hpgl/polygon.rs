//! Collects polygons of HP-GL, from PM, for EP and FP.

use base::plane::Point;

#[derive(Clone, Copy)]
struct PolygonVertex {
    at_mm: Point,
    /// True if the edge that leads to it is drawn with the pen down.
    is_drawn: bool,
}

/// A polygon of one or more subpolygons.
#[derive(Default)]
pub(super) struct PolygonBuffer {
    pub(super) is_open: bool,
    closed: Vec<Vec<PolygonVertex>>,
    current: Vec<PolygonVertex>,
    /// Vertices of all subpolygons.
    pub(super) vertices: usize,
}

impl PolygonBuffer {
    /// PM0: begins a polygon where the pen is.
    pub(super) fn begin(&mut self, from_mm: Point) {
        *self = Self {
            is_open: true,
            ..Self::default()
        };
        self.add(from_mm, false);
    }

    /// Adds the pen's next position. The pen moves to the first vertex of a subpolygon raised,
    /// whatever the file says.
    pub(super) fn add(&mut self, at_mm: Point, is_down: bool) {
        self.vertices += 1;
        self.current.push(PolygonVertex {
            at_mm,
            is_drawn: is_down && !self.current.is_empty(),
        });
    }

    /// Adds a complete subpolygon, such as a circle, and keeps collecting the current one.
    pub(super) fn add_subpolygon(&mut self, path_mm: Vec<Point>) {
        let unfinished = std::mem::take(&mut self.current);
        for at_mm in path_mm {
            self.add(at_mm, true);
        }
        self.close();
        self.current = unfinished;
    }

    /// PM1: closes the subpolygon. The closing edge is drawn like the one before it.
    pub(super) fn close(&mut self) {
        if let [first, .., last] = *self.current.as_slice() {
            self.add(first.at_mm, last.is_drawn);
            self.closed.push(std::mem::take(&mut self.current));
        }
        self.current.clear();
    }

    /// PM2: closes the last subpolygon and completes the polygon.
    pub(super) fn end(&mut self) {
        self.close();
        self.is_open = false;
    }

    /// EP: returns the edges that were drawn with the pen down.
    pub(super) fn edges(&self) -> Vec<Vec<Point>> {
        let mut lines: Vec<Vec<Point>> = Vec::new();
        for pair in self.closed.iter().flat_map(|vertices| vertices.windows(2)) {
            let [from, to] = *pair else { continue };
            match lines.last_mut().filter(|_| from.is_drawn) {
                _ if !to.is_drawn => {}
                Some(line) => line.push(to.at_mm),
                None => lines.push(vec![from.at_mm, to.at_mm]),
            }
        }
        lines
    }

    /// FP: returns the outlines of the area, whether the pen was down or not.
    pub(super) fn outlines(&self) -> Vec<Vec<Point>> {
        let outline = |vertices: &Vec<PolygonVertex>| vertices.iter().map(|v| v.at_mm).collect();
        self.closed.iter().map(outline).collect()
    }
}
