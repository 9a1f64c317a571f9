//! Collects strokes within caps: they are finite, bounded and without repeated points.

use base::plane::{Point, distance};

use super::flatten::{self, CHORD_ERROR_MM};
use super::{Design, DesignCaps, DesignError, DesignStroke};

/// Neighbouring points nearer than this count as one.
const SAME_POINT_MM: f64 = 1e-4;

/// Largest path that is a dot: it is nowhere farther than this from its beginning.
const POINT_SIZE_MM: f64 = 1e-3;

/// Length of the mark for a path without length.
pub const DOT_MM: f64 = 0.1;

/// Largest length of a dot, as a fraction of the page: small pages may be drawn larger.
const DOT_FRACTION: f64 = 1e-3;

/// Largest distance of a drawing from its origin: maps count from the equator.
const REACH_MAX_MM: f64 = 1e10;

/// Shortest longer side of a drawing without lengths: in smaller units all of it would be within [`POINT_SIZE_MM`].
pub(crate) const LONG_SIDE_MIN_MM: f64 = 1.0;

/// Shortest side of a page that is fitted to a drawing.
const PAGE_MIN_MM: f64 = 0.1;

/// Collects the strokes of one drawing.
pub(crate) struct StrokeCollector<'c> {
    caps: &'c DesignCaps,
    /// Length of the drawing's unit.
    unit_mm: f64,
    /// Corners of the box around all points, in the drawing's unit.
    corners: [Point; 2],
    dot_mm: f64,
    /// Largest distance of a chord from its curve.
    pub(crate) chord_error_mm: f64,
    points: usize,
    strokes: Vec<DesignStroke>,
    capital_mm: Option<f64>,
}

impl<'c> StrokeCollector<'c> {
    pub(crate) fn new(caps: &'c DesignCaps) -> Self {
        Self {
            caps,
            unit_mm: 1.0,
            corners: [[f64::INFINITY; 2], [f64::NEG_INFINITY; 2]],
            dot_mm: DOT_MM,
            chord_error_mm: CHORD_ERROR_MM,
            points: 0,
            strokes: Vec::new(),
            capital_mm: None,
        }
    }

    /// Creates a collector whose dots and curves suit a page of this size.
    pub(crate) fn for_page(caps: &'c DesignCaps, page_mm: Point) -> Self {
        let dot_mm = page_mm[0].max(page_mm[1]) * DOT_FRACTION;
        Self {
            dot_mm: dot_mm.clamp(2.0 * SAME_POINT_MM, DOT_MM),
            chord_error_mm: flatten::chord_error_mm(page_mm),
            ..Self::new(caps)
        }
    }

    /// Creates a collector for a drawing without lengths that has these sides, whose unit may be anything.
    pub(crate) fn for_sides(caps: &'c DesignCaps, sides: Point) -> Self {
        let long = sides[0].max(sides[1]);
        let unit_mm = if long > 0.0 {
            (LONG_SIDE_MIN_MM / long).max(1.0)
        } else {
            1.0
        };
        let collector = Self::for_page(caps, sides.map(|side| side * unit_mm));
        Self {
            unit_mm,
            chord_error_mm: collector.chord_error_mm / unit_mm,
            ..collector
        }
    }

    /// Returns the sides of the box around all points so far, in the drawing's unit.
    pub(crate) fn sides(&self) -> Point {
        let [low, high] = self.corners;
        [high[0] - low[0], high[1] - low[1]].map(|side| side.max(0.0))
    }

    /// Returns the most elements of the drawing.
    pub(crate) fn elements_max(&self) -> usize {
        self.caps.elements_max
    }

    /// Returns the number of points that still fit.
    pub(crate) fn points_left(&self) -> usize {
        self.caps.points_max.saturating_sub(self.points)
    }

    /// Returns the error that the cap on points was exceeded at `source`.
    pub(crate) fn too_many_points(&self, source: &str) -> DesignError {
        DesignError::TooMany {
            at: source.to_owned(),
            what: "points",
            max: self.caps.points_max,
        }
    }

    /// Adds a path as a stroke with the attributes of `template`. Drops repeated points; a path
    /// without length becomes a dot, and an empty one adds nothing.
    pub(crate) fn push(
        &mut self,
        points_mm: Vec<Point>,
        template: &DesignStroke,
    ) -> Result<(), DesignError> {
        if points_mm.len() > self.points_left() {
            return Err(self.too_many_points(&template.source));
        }
        if self.strokes.len() >= self.caps.strokes_max {
            return Err(DesignError::TooMany {
                at: template.source.clone(),
                what: "strokes",
                max: self.caps.strokes_max,
            });
        }
        let points_mm: Vec<Point> = points_mm.into_iter().map(|at| self.measured(at)).collect();
        refuse_far_points(&points_mm, &template.source)?;
        if let Some(points_mm) = drop_repeated_points(points_mm, self.dot_mm) {
            self.points += points_mm.len();
            self.strokes.push(DesignStroke {
                points_mm,
                ..template.clone()
            });
        }
        Ok(())
    }

    /// Notes a point, and returns it in millimetres.
    fn measured(&mut self, at: Point) -> Point {
        let [low, high] = self.corners;
        self.corners = [
            [low[0].min(at[0]), low[1].min(at[1])],
            [high[0].max(at[0]), high[1].max(at[1])],
        ];
        at.map(|value| value * self.unit_mm)
    }

    /// Notes the height of a text's capital letters.
    pub(crate) fn note_capital(&mut self, capital: f64) {
        let capital_mm = capital * self.unit_mm;
        let smallest_mm = self.capital_mm.map_or(capital_mm, |mm| mm.min(capital_mm));
        self.capital_mm = Some(smallest_mm);
    }

    /// Takes all strokes out, to be changed and put back.
    pub(crate) fn take(&mut self) -> Vec<DesignStroke> {
        std::mem::take(&mut self.strokes)
    }

    /// Puts strokes back.
    pub(crate) fn put_back(&mut self, strokes: Vec<DesignStroke>) {
        self.strokes = strokes;
    }

    pub(crate) fn len(&self) -> usize {
        self.strokes.len()
    }

    /// Takes the pens from all strokes but the first `kept`.
    pub(crate) fn drop_pens(&mut self, kept: usize) {
        for stroke in self.strokes.iter_mut().skip(kept) {
            stroke.pen = None;
        }
    }

    /// Returns the drawing on the page that its file states.
    pub(crate) fn on_page(self, page_mm: Point, hint: &'static str) -> Result<Design, DesignError> {
        if self.strokes.is_empty() {
            return Err(DesignError::Empty { hint });
        }
        Ok(Design {
            page_mm,
            strokes: self.strokes,
            capital_mm: self.capital_mm,
            ..Design::default()
        })
    }

    /// Returns the drawing on a page that just fits it.
    pub(crate) fn on_fitted_page(self, hint: &'static str) -> Result<Design, DesignError> {
        let design = self.on_page([PAGE_MIN_MM; 2], hint)?;
        let corners_mm = design.bounds_mm().ok_or(DesignError::Empty { hint })?;
        Ok(design.on_box(corners_mm))
    }
}

/// Returns the sides of the page that just fits a box.
pub(crate) fn page_of([low, high]: [Point; 2]) -> Point {
    [high[0] - low[0], high[1] - low[1]].map(|side| side.max(PAGE_MIN_MM))
}

fn refuse_far_points(points_mm: &[Point], source: &str) -> Result<(), DesignError> {
    let is_near = |value: &f64| value.abs() <= REACH_MAX_MM;
    let Some([x, y]) = points_mm.iter().find(|point| !point.iter().all(is_near)) else {
        return Ok(());
    };
    Err(DesignError::FarAway {
        at: source.to_owned(),
        x: *x,
        y: *y,
        max_mm: REACH_MAX_MM,
    })
}

/// Drops points that repeat their neighbour. Returns `None` for no points, and a dot if one point
/// remains.
fn drop_repeated_points(mut points: Vec<Point>, dot_mm: f64) -> Option<Vec<Point>> {
    let [x, y] = *points.first()?;
    let last = *points.last()?;
    points.dedup_by(|next, kept| distance(*kept, *next) < SAME_POINT_MM);
    if points
        .iter()
        .all(|point| distance([x, y], *point) < POINT_SIZE_MM)
    {
        let half_mm = dot_mm / 2.0;
        return Some(vec![[x - half_mm, y], [x + half_mm, y]]);
    }
    // A closed path stays closed even if its last step is a short one.
    if let Some(end) = points.last_mut() {
        *end = last;
    }
    Some(points)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    fn template() -> DesignStroke {
        DesignStroke {
            source: "line 1".to_owned(),
            ..DesignStroke::default()
        }
    }

    #[test]
    fn drops_repeated_points_and_keeps_the_end() {
        let caps = DesignCaps::default();
        let mut strokes = StrokeCollector::new(&caps);
        let points = vec![[1.0, 1.0], [1.0, 1.0], [3.0, 1.0], [3.000_01, 1.0]];
        strokes.push(points, &template()).unwrap();
        let design = strokes.on_fitted_page("").unwrap();
        let stroke = design.strokes.first().unwrap();
        assert_eq!(stroke.points_mm.len(), 2);
        assert_eq!(stroke.points_mm.first(), Some(&[0.0, 0.0]));
        assert!((stroke.length_mm() - 2.000_01).abs() < 1e-9);
    }

    #[test]
    fn a_path_without_length_leaves_a_dot() {
        let caps = DesignCaps::default();
        let mut strokes = StrokeCollector::new(&caps);
        strokes.push(vec![[5.0, 5.0]], &template()).unwrap();
        let design = strokes.on_page([10.0, 10.0], "").unwrap();
        assert!((design.strokes.first().unwrap().length_mm() - DOT_MM).abs() < 1e-12);
    }

    #[test]
    fn refuses_what_exceeds_a_cap_or_has_no_place() {
        let caps = DesignCaps {
            points_max: 3,
            strokes_max: 1,
            ..DesignCaps::default()
        };
        let mut strokes = StrokeCollector::new(&caps);
        let four = vec![[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]];
        let error = strokes.push(four, &template()).unwrap_err().to_string();
        assert_eq!(
            error,
            "line 1: more than 3 points. Next: simplify the drawing"
        );
        let pushed = strokes.push(vec![[0.0, f64::NAN]], &template());
        assert!(matches!(pushed, Err(DesignError::FarAway { .. })));
        strokes.push(vec![[0.0, 0.0]], &template()).unwrap();
        let error = strokes.push(vec![[0.0, 0.0]], &template()).unwrap_err();
        assert!(matches!(
            error,
            DesignError::TooMany {
                what: "strokes",
                ..
            }
        ));
    }
}
