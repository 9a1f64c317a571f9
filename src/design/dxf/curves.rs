//! Converts curves of DXF to points: elliptical arcs, bulges, splines.

use std::f64::consts::TAU;

use base::plane::Point;

use super::super::flatten;

/// Highest degree of a spline.
const DEGREE_MAX: usize = 10;

/// A part of an ellipse: `centre + major · cos t + minor · sin t`.
#[derive(Clone, Copy, Debug)]
pub(super) struct EllipseArc {
    pub(super) centre: Point,
    pub(super) major: Point,
    pub(super) minor: Point,
    pub(super) start_rad: f64,
    /// Positive is from major to minor.
    pub(super) sweep_rad: f64,
}

impl EllipseArc {
    /// Returns the arc of a circle from one angle counter-clockwise to another; the full circle if
    /// they are equal.
    pub(super) fn of_circle(centre: Point, radius: f64, from_rad: f64, to_rad: f64) -> Self {
        let sweep_rad = (to_rad - from_rad).rem_euclid(TAU);
        Self {
            centre,
            major: [radius, 0.0],
            minor: [0.0, radius],
            start_rad: from_rad,
            sweep_rad: if sweep_rad < 1e-9 { TAU } else { sweep_rad },
        }
    }

    /// Returns the arc between two vertices of a polyline with this bulge, the tangent of a quarter
    /// of its angle.
    pub(super) fn of_bulge(from: Point, to: Point, bulge: f64) -> Self {
        let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
        let offset = (1.0 - bulge * bulge) / (4.0 * bulge);
        let centre = [
            f64::midpoint(from[0], to[0]) - dy * offset,
            f64::midpoint(from[1], to[1]) + dx * offset,
        ];
        let [x, y] = [from[0] - centre[0], from[1] - centre[1]];
        Self {
            centre,
            major: [x, y],
            minor: [-y, x],
            start_rad: 0.0,
            sweep_rad: 4.0 * bulge.atan(),
        }
    }

    /// Returns its points, both ends included; `mm` is the number of millimetres in a unit.
    pub(super) fn points(&self, mm: f64, error_mm: f64) -> Vec<Point> {
        let [major, minor] = [self.major, self.minor];
        let radius = major[0].hypot(major[1]).max(minor[0].hypot(minor[1]));
        let at = |t: f64| {
            let (sin, cos) = (self.start_rad + self.sweep_rad * t).sin_cos();
            [
                self.centre[0] + major[0] * cos + minor[0] * sin,
                self.centre[1] + major[1] * cos + minor[1] * sin,
            ]
        };
        // A full ellipse ends exactly where it began.
        let is_full = (self.sweep_rad.abs() - TAU).abs() < 1e-9;
        let mut points = vec![at(0.0)];
        let pieces = flatten::arc_pieces(radius * mm, self.sweep_rad, error_mm);
        flatten::append(&mut points, pieces, at(if is_full { 0.0 } else { 1.0 }), at);
        points
    }
}

/// A rational B-spline.
pub(super) struct BSpline {
    pub(super) degree: usize,
    pub(super) knots: Vec<f64>,
    pub(super) controls: Vec<Point>,
    /// One for each control point, or none at all.
    pub(super) weights: Vec<f64>,
}

impl BSpline {
    /// Returns its points; `None` if knots and control points do not match.
    pub(super) fn points(&self, mm: f64, error_mm: f64) -> Option<Vec<Point>> {
        let count = self.controls.len();
        let is_spline = (1..=DEGREE_MAX).contains(&self.degree)
            && count > self.degree
            && self.knots.len() == count + self.degree + 1
            && self.knots.is_sorted()
            && (self.weights.is_empty() || self.weights.len() == count)
            && self.weights.iter().all(|weight| *weight > 0.0);
        if !is_spline {
            return None;
        }
        let pieces = self.pieces(mm / error_mm);
        let mut points = Vec::new();
        for span in self.degree..count {
            let (from, to) = (*self.knots.get(span)?, *self.knots.get(span + 1)?);
            if to <= from {
                continue;
            }
            let mut step = 0.0;
            while step < pieces {
                points.push(self.at(span, from + (to - from) * step / pieces)?);
                step += 1.0;
            }
        }
        points.push(self.at(count - 1, *self.knots.get(count)?)?);
        Some(points)
    }

    /// Returns the number of chords in each span, from the curvature of the control polygon;
    /// weights may double it.
    fn pieces(&self, errors_per_unit: f64) -> f64 {
        let bends = self.controls.windows(3).map(|window| match window {
            [a, b, c] => flatten::second_difference(*a, *b, *c),
            _ => 0.0,
        });
        let bend = bends.fold(0.0, f64::max) * errors_per_unit;
        let degree = f64::from(u8::try_from(self.degree).unwrap_or(u8::MAX));
        let weight_factor = if self.weights.is_empty() { 1.0 } else { 2.0 };
        let bound = weight_factor * degree * (degree - 1.0) / 8.0 * bend;
        bound.sqrt().ceil().clamp(1.0, flatten::PIECES_MAX / 16.0)
    }

    /// Evaluates the spline by de Boor's algorithm with weights.
    fn at(&self, span: usize, t: f64) -> Option<Point> {
        let mut points: Vec<[f64; 3]> = Vec::with_capacity(self.degree + 1);
        for index in span - self.degree..=span {
            let [x, y] = *self.controls.get(index)?;
            let weight = self.weights.get(index).copied().unwrap_or(1.0);
            points.push([x * weight, y * weight, weight]);
        }
        for level in 1..=self.degree {
            for index in (level..=self.degree).rev() {
                let knot = span + index - self.degree;
                let (from, to) = (
                    *self.knots.get(knot)?,
                    *self.knots.get(knot + self.degree + 1 - level)?,
                );
                let ratio = if to > from {
                    (t - from) / (to - from)
                } else {
                    0.0
                };
                let (previous, current) = (*points.get(index - 1)?, *points.get(index)?);
                let mut blended = [0.0; 3];
                for (blended, (a, b)) in blended.iter_mut().zip(previous.iter().zip(current)) {
                    *blended = a * (1.0 - ratio) + b * ratio;
                }
                *points.get_mut(index)? = blended;
            }
        }
        let [x, y, weight] = *points.last()?;
        Some([x / weight, y / weight])
    }
}
