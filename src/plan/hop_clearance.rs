//! What a hop must keep clear of: the sheet, keep-outs and, for pens that do not draw, the sheet as
//! well. The gate judges the same again; here it decides how high a hop must be.

use nalgebra::{IsometryMatrix3, Point3};

use base::units::JointVector;
use kin::capsule::{PlacedCapsule, place};
use scene::{CLEARANCE_M, PEN_RADIUS_M, Scene};

/// Number of points of a part at which its height over a curved sheet is looked at.
const LOOKS: u32 = 16;
/// So much more is asked for over a curved sheet, for what lies between those points.
const BETWEEN_M: f64 = 5e-4;
/// Rounding.
const ROUNDING_M: f64 = 1e-9;

/// The clearances that a hop must keep.
pub(super) struct HopClearance<'a> {
    scene: &'a Scene,
    pen: usize,
    /// For each capsule of the body, and for each pen, the least height over the sheet.
    least_m: Vec<f64>,
}

impl<'a> HopClearance<'a> {
    /// Where a part is nearer than it should be at an end of the hop, it may come as near between
    /// them: a line is drawn there, and the gate judges that.
    pub(super) fn new(scene: &'a Scene, pen: usize, ends: [&JointVector; 2]) -> Self {
        let asked = scene.arm.capsules.iter().map(|_| {
            if scene.surface.is_flat() {
                CLEARANCE_M
            } else {
                CLEARANCE_M + BETWEEN_M
            }
        });
        let mut clearance = Self {
            scene,
            pen,
            least_m: asked.chain(scene.pens.iter().map(|_| 0.0)).collect(),
        };
        for end in ends {
            let heights_m = clearance.heights_m(end);
            for (least_m, height_m) in clearance.least_m.iter_mut().zip(heights_m) {
                *least_m = least_m.min(height_m - ROUNDING_M);
            }
        }
        clearance
    }

    /// Returns whether all samples are clear.
    pub(super) fn is_clear(&self, samples: &[JointVector]) -> bool {
        samples
            .iter()
            .all(|q| self.is_over_sheet(q) && self.is_off_keep_outs(q))
    }

    fn is_over_sheet(&self, q: &JointVector) -> bool {
        let heights_m = self.heights_m(q);
        let mut both = heights_m.iter().zip(&self.least_m);
        both.all(|(height_m, least_m)| height_m >= least_m)
    }

    /// The height over the sheet of every capsule that moves and of every tip that does not draw.
    fn heights_m(&self, q: &JointVector) -> Vec<f64> {
        let (arm, frames) = (&self.scene.arm, self.scene.arm.chain.frames(q));
        let capsules = arm.capsules.iter().map(|capsule| {
            let frame = frames.get(capsule.joints_before);
            match frame.filter(|_| capsule.joints_before > 0) {
                Some(frame) => {
                    let ends = [capsule.from_m, capsule.to_m].map(|end| frame * end);
                    self.segment_height_m(&ends) - capsule.radius_m
                }
                None => f64::INFINITY,
            }
        });
        let pens = self.scene.pens.iter().enumerate().map(|(index, pen)| {
            if index == self.pen {
                f64::INFINITY
            } else {
                self.height_m(&(frames.tool * pen.tip_m))
            }
        });
        capsules.chain(pens).collect()
    }

    fn segment_height_m(&self, [from, to]: &[Point3<f64>; 2]) -> f64 {
        if self.scene.surface.is_flat() {
            return self.height_m(from).min(self.height_m(to));
        }
        let at = |n: u32| from.lerp(to, f64::from(n) / f64::from(LOOKS));
        (0..=LOOKS)
            .map(|n| self.height_m(&at(n)))
            .fold(f64::INFINITY, f64::min)
    }

    fn height_m(&self, point: &Point3<f64>) -> f64 {
        self.scene.surface.project(point).height_mm / 1e3
    }

    fn is_off_keep_outs(&self, q: &JointVector) -> bool {
        if self.scene.keep_outs.is_empty() {
            return true;
        }
        let parts = self.moving_parts(q);
        let mut keep_outs = self.scene.keep_outs.iter();
        keep_outs.all(|keep_out| {
            parts.iter().all(|part| {
                let least_m = CLEARANCE_M + part.radius_m;
                let corners = &keep_out.corners;
                corners
                    .segment_distance_m(&part.from_m, &part.to_m, least_m)
                    .is_none_or(|apart_m| apart_m >= least_m)
            })
        })
    }

    fn moving_parts(&self, q: &JointVector) -> Vec<PlacedCapsule> {
        let (arm, frames) = (&self.scene.arm, self.scene.arm.chain.frames(q));
        let moving = arm.capsules.iter().filter(|of| of.joints_before > 0);
        let body = moving.filter_map(|of| {
            let frame = frames.get(of.joints_before)?;
            Some(place(frame, &of.from_m, &of.to_m, of.radius_m))
        });
        let tool: &IsometryMatrix3<f64> = &frames.tool;
        let pens = self.scene.pens.iter();
        let pens = pens.map(|pen| place(tool, &Point3::origin(), &pen.tip_m, PEN_RADIUS_M));
        body.chain(pens).collect()
    }
}
