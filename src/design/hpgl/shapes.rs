//! Arcs, circles, wedges and rectangles of HP-GL, in user units.

use std::f64::consts::TAU;

use base::plane::Point;

use super::super::flatten::{self, CHORD_ERROR_MM};

/// An arc around a centre.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserArc {
    pub(super) centre: Point,
    pub(super) from: Point,
    /// Positive is counter-clockwise.
    pub(super) sweep_rad: f64,
}

impl UserArc {
    /// Returns its points after the first. Without a chord angle they stray from the arc by at most
    /// the chord error.
    pub(super) fn points(&self, chord_rad: Option<f64>, mm_per_unit: f64) -> Vec<Point> {
        let [dx, dy] = [self.from[0] - self.centre[0], self.from[1] - self.centre[1]];
        let radius = dx.hypot(dy);
        let fine_rad = flatten::chord_rad(radius * mm_per_unit, CHORD_ERROR_MM);
        let chords = self.sweep_rad.abs() / chord_rad.unwrap_or(fine_rad);
        let chords = if chords.is_finite() {
            chords.ceil().clamp(1.0, flatten::PIECES_MAX)
        } else {
            1.0
        };
        let start = dy.atan2(dx);
        let mut points = Vec::new();
        let mut step = 0.0;
        while step < chords {
            step += 1.0;
            let at = start + self.sweep_rad * step / chords;
            points.push([
                self.centre[0] + radius * at.cos(),
                self.centre[1] + radius * at.sin(),
            ]);
        }
        points
    }

    /// Returns the full circle of this radius, which begins at angle 0, with its first point.
    pub(super) fn circle(
        centre: Point,
        radius: f64,
        chord_rad: Option<f64>,
        mm_per_unit: f64,
    ) -> Vec<Point> {
        let from = [centre[0] + radius, centre[1]];
        let arc = Self {
            centre,
            from,
            sweep_rad: TAU,
        };
        let mut points = vec![from];
        points.extend(arc.points(chord_rad, mm_per_unit));
        // Rounding must not leave it open.
        if let Some(last) = points.last_mut() {
            *last = from;
        }
        points
    }

    /// Returns the arc from one point through a second to a third; `None` for points on a line.
    pub(super) fn through(from: Point, via: Point, end: Point) -> Option<Self> {
        let [ax, ay] = [via[0] - from[0], via[1] - from[1]];
        let [bx, by] = [end[0] - from[0], end[1] - from[1]];
        let cross = 2.0 * (ax * by - ay * bx);
        let (a2, b2) = (ax * ax + ay * ay, bx * bx + by * by);
        let centre = [
            from[0] + (by * a2 - ay * b2) / cross,
            from[1] + (ax * b2 - bx * a2) / cross,
        ];
        let angle = |p: Point| (p[1] - centre[1]).atan2(p[0] - centre[0]);
        let ccw_rad = (angle(end) - angle(from)).rem_euclid(TAU);
        let sweep_rad = if cross > 0.0 { ccw_rad } else { ccw_rad - TAU };
        let is_arc = centre.iter().all(|value| value.is_finite());
        is_arc.then_some(Self {
            centre,
            from,
            sweep_rad,
        })
    }
}

/// Returns the outline of a wedge: from its centre along the start, around, and back.
pub(super) fn wedge(
    centre: Point,
    [radius, start_deg, sweep_deg]: [f64; 3],
    chord_rad: Option<f64>,
    mm_per_unit: f64,
) -> Vec<Point> {
    // A negative radius begins on the other side.
    let start_rad = start_deg.to_radians();
    let from = [
        centre[0] + radius * start_rad.cos(),
        centre[1] + radius * start_rad.sin(),
    ];
    let arc = UserArc {
        centre,
        from,
        sweep_rad: sweep_deg.to_radians().clamp(-TAU, TAU),
    };
    let mut points = vec![centre, from];
    points.extend(arc.points(chord_rad, mm_per_unit));
    points.push(centre);
    points
}

/// Returns the outline of a rectangle between two corners.
pub(super) fn rectangle([x1, y1]: Point, [x2, y2]: Point) -> Vec<Point> {
    vec![[x1, y1], [x2, y1], [x2, y2], [x1, y2], [x1, y1]]
}
