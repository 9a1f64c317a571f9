//! How far the tip, the pens and the body are from what they may not touch.

use nalgebra::Point3;

use crate::kin::Frames;
use crate::scene::{Corners, Scene};
use crate::units::Joints;

/// How far beyond its edges a sheet still counts as something to run into.
const SHEET_BORDER_MM: f64 = 30.0;

/// The radius of a pen's body, for keep-outs.
const PEN_RADIUS_M: f64 = 0.005;

/// Steps of the search for the point of a segment nearest to a box. The distance is convex along
/// it, so that each step keeps two thirds: 2 mm in 300 mm after twelve.
const SEARCH_STEPS: usize = 12;

/// The arm at one sample.
pub(super) struct Posture {
    frames: Frames,
}

/// A distance and what it belongs to.
pub(super) struct Clearance {
    pub(super) metres: f64,
    pub(super) what: String,
}

impl Posture {
    pub(super) fn new(scene: &Scene, q_rad: &Joints) -> Self {
        Self {
            frames: scene.arm.chain.frames(q_rad),
        }
    }

    /// The tip of a pen, in the base frame.
    pub(super) fn tip_m(&self, scene: &Scene, pen: usize) -> Option<Point3<f64>> {
        Some(self.frames.tool * scene.pen(pen)?.tip_m)
    }

    /// How far a pen leans from the surface's normal under its tip.
    pub(super) fn tilt_rad(&self, scene: &Scene, pen: usize) -> Option<f64> {
        let pen = scene.pen(pen)?;
        let under = scene.surface.project(&(self.frames.tool * pen.tip_m));
        let normal = scene.surface.at(under.at_mm).normal;
        let axis = self.frames.tool * pen.axis;
        Some((-axis.dot(&normal)).clamp(-1.0, 1.0).acos())
    }

    /// How high over the sheet a point is, if the sheet is below it at all.
    pub(super) fn height_mm(scene: &Scene, point_m: &Point3<f64>) -> Option<f64> {
        let seen = scene.surface.project(point_m);
        let [x, y] = seen.at_mm;
        let [width, height] = scene.surface.size_mm();
        let border = SHEET_BORDER_MM;
        let over =
            (-border..=width + border).contains(&x) && (-border..=height + border).contains(&y);
        over.then_some(seen.height_mm)
    }

    /// The lowest tip of the pens that do not draw.
    pub(super) fn idle_pens(&self, scene: &Scene, drawing: usize) -> Option<Clearance> {
        let others = scene
            .pens
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != drawing);
        let heights = others.filter_map(|(_, pen)| {
            let height = Self::height_mm(scene, &(self.frames.tool * pen.tip_m))?;
            Some(Clearance {
                metres: height / 1e3,
                what: format!("the tip of `{}`", pen.name),
            })
        });
        nearest(heights)
    }

    /// The part of the body nearest to the sheet.
    pub(super) fn body_over_sheet(&self, scene: &Scene) -> Option<Clearance> {
        let ends = self.capsules(scene).flat_map(|(name, from, to, radius)| {
            [from, to].into_iter().filter_map(move |end| {
                let height = Self::height_mm(scene, &end)? / 1e3 - radius;
                Some(Clearance {
                    metres: height,
                    what: name.to_owned(),
                })
            })
        });
        nearest(ends)
    }

    /// The part of arm or tool nearest to a box.
    pub(super) fn near_box(&self, scene: &Scene, corners: &Corners) -> Option<Clearance> {
        let mount: Point3<f64> = self.frames.tool.translation.vector.into();
        let pens = scene.pens.iter().map(|pen| {
            (
                pen.name.as_str(),
                mount,
                self.frames.tool * pen.tip_m,
                PEN_RADIUS_M,
            )
        });
        let parts = self
            .capsules(scene)
            .chain(pens)
            .map(|(name, from, to, radius)| Clearance {
                metres: segment_to_box(from, to, corners) - radius,
                what: name.to_owned(),
            });
        nearest(parts)
    }

    fn capsules<'a>(
        &'a self,
        scene: &'a Scene,
    ) -> impl Iterator<Item = (&'a str, Point3<f64>, Point3<f64>, f64)> {
        scene.arm.capsules.iter().filter_map(|capsule| {
            let frame = self.frames.get(capsule.joints_before)?;
            let (from, to) = (frame * capsule.from_m, frame * capsule.to_m);
            Some((capsule.name.as_str(), from, to, capsule.radius_m))
        })
    }
}

fn nearest(all: impl Iterator<Item = Clearance>) -> Option<Clearance> {
    all.min_by(|a, b| a.metres.total_cmp(&b.metres))
}

/// How far a point is outside of a box; negative inside, as far as the nearest side.
pub(super) fn point_to_box(point: &Point3<f64>, corners: &Corners) -> f64 {
    let mut outside = 0.0_f64;
    let mut inside = f64::NEG_INFINITY;
    for axis in 0..3 {
        let beyond = (corners.min_m[axis] - point[axis]).max(point[axis] - corners.max_m[axis]);
        outside += beyond.max(0.0).powi(2);
        inside = inside.max(beyond);
    }
    if inside > 0.0 { outside.sqrt() } else { inside }
}

fn segment_to_box(from: Point3<f64>, to: Point3<f64>, corners: &Corners) -> f64 {
    let at = |share: f64| point_to_box(&(from + (to - from).scale(share)), corners);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..SEARCH_STEPS {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if at(a) < at(b) { high = b } else { low = a }
    }
    at(low).min(at(high)).min(at(0.0)).min(at(1.0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn corners() -> Corners {
        Corners {
            min_m: Point3::new(-1.0, -2.0, 0.0),
            max_m: Point3::new(1.0, 2.0, 0.5),
        }
    }

    #[test]
    fn a_point_inside_is_negative() {
        assert!((point_to_box(&Point3::new(0.0, 0.0, 0.1), &corners()) + 0.1).abs() < 1e-12);
        assert!((point_to_box(&Point3::new(4.0, 6.0, 0.5), &corners()) - 5.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn a_segment_is_never_nearer_than_its_samples_say(
            a in prop::array::uniform3(-3.0..3.0_f64), b in prop::array::uniform3(-3.0..3.0_f64)
        ) {
            let (from, to) = (Point3::from(a), Point3::from(b));
            let found = segment_to_box(from, to, &corners());
            let sampled = (0..=400)
                .map(|i| point_to_box(&(from + (to - from).scale(f64::from(i) / 400.0)), &corners()))
                .fold(f64::INFINITY, f64::min);
            prop_assert!((found - sampled).abs() < 0.06, "{found} {sampled}");
        }
    }
}
