//! Clearances of a hop: of the body and the pens that do not draw over the sheet, and of all parts
//! from keep-outs. The gate checks the same again, also for goals that lead; here it decides how
//! high a hop must be.

use nalgebra::{IsometryMatrix3, Point3};

use base::units::JointVector;
use kin::capsule::{PlacedCapsule, place};
use scene::{CLEARANCE_M, PEN_RADIUS_M, Scene, SheetCorrection};

/// Number of intervals of a part at whose ends its height over a curved sheet is checked.
const LOOKS: u32 = 16;
/// Extra height required over a curved sheet, for what lies between those points.
const BETWEEN_M: f64 = 5e-4;
/// Tolerance for rounding.
const ROUNDING_M: f64 = 1e-9;

/// The clearances that a hop must keep.
pub(super) struct HopClearance<'a> {
    scene: &'a Scene,
    pen: usize,
    /// Least height over the sheet of each capsule of the body, then of each pen.
    least_m: Vec<f64>,
    /// Largest distance by which goals that lead may displace a part.
    lead_m: f64,
}

impl<'a> HopClearance<'a> {
    /// Sets the clearances. A part that is nearer at an end of the hop may come equally near
    /// between the ends: a line is drawn there, which the gate checks.
    pub(super) fn new(scene: &'a Scene, pen: usize, ends: [&JointVector; 2]) -> Self {
        let mut clearance = Self {
            scene,
            pen,
            least_m: Vec::new(),
            lead_m: 0.0,
        };
        let lead_m = ends.map(|end| clearance.lead_at_m(end));
        clearance.lead_m = lead_m.into_iter().fold(0.0, f64::max);
        let between_m = if scene.surface.is_flat() {
            0.0
        } else {
            BETWEEN_M
        };
        let body_m = CLEARANCE_M + scene.surface.uncertainty_m() + between_m + clearance.lead_m;
        let body = scene.arm.capsules.iter().map(|_| body_m);
        let idle_m = scene.idle_clearance_m() + clearance.lead_m;
        let pens = scene.pens.iter().map(|_| idle_m);
        clearance.least_m = body.chain(pens).collect();
        for end in ends {
            let heights_m = clearance.heights_m(end);
            for (least_m, height_m) in clearance.least_m.iter_mut().zip(heights_m) {
                *least_m = least_m.min(height_m - ROUNDING_M);
            }
        }
        clearance
    }

    /// Returns the largest distance by which goals that lead may move a part at these joints: by
    /// play of all joints together, and by the sheet's correction.
    fn lead_at_m(&self, q: &JointVector) -> f64 {
        let arm = &self.scene.arm;
        let correction = self.scene.correction.as_ref();
        let correction_m = correction.map_or(0.0, SheetCorrection::largest_mm) / 1e3;
        let Some(compensation) = &arm.compensation else {
            return correction_m;
        };
        let leads = compensation.play_rad.map(|_, play| play / 2.0);
        let parts = self.moving_parts(q);
        let moved_m = leads.iter().enumerate().map(|(joint, lead)| {
            let displaced = q.map(|of, at| if of == joint { at + lead } else { at });
            let pairs = parts.iter().zip(self.moving_parts(&displaced));
            pairs
                .map(|(part, moved)| {
                    let [from, to] = [part.from_m - moved.from_m, part.to_m - moved.to_m];
                    from.norm().max(to.norm())
                })
                .fold(0.0, f64::max)
        });
        correction_m + moved_m.sum::<f64>()
    }

    /// Returns whether all samples are clear.
    pub(super) fn is_clear(&self, samples: &[JointVector]) -> bool {
        samples
            .iter()
            .all(|q| self.is_over_sheet(q) && self.is_off_keep_outs(q))
    }

    fn is_over_sheet(&self, q: &JointVector) -> bool {
        let heights_m = self.heights_m(q);
        (heights_m.iter().zip(&self.least_m)).all(|(height_m, least_m)| height_m >= least_m)
    }

    /// Returns the height over the sheet of every moving capsule and of every tip that does not
    /// draw; where a person changes the pens, no other tip is mounted.
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
            if index == self.pen || self.scene.holder.is_by_hand() {
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
                let least_m = CLEARANCE_M + self.lead_m + part.radius_m;
                let corners = &keep_out.corners;
                corners
                    .segment_distance_m(&part.from_m, &part.to_m, least_m)
                    .is_none_or(|distance_m| distance_m >= least_m)
            })
        })
    }

    fn moving_parts(&self, q: &JointVector) -> Vec<PlacedCapsule> {
        let (arm, frames) = (&self.scene.arm, self.scene.arm.chain.frames(q));
        let moving = arm
            .capsules
            .iter()
            .filter(|capsule| capsule.joints_before > 0);
        let body = moving.filter_map(|capsule| {
            let frame = frames.get(capsule.joints_before)?;
            let (from_m, to_m) = (&capsule.from_m, &capsule.to_m);
            Some(place(frame, from_m, to_m, capsule.radius_m))
        });
        let tool: &IsometryMatrix3<f64> = &frames.tool;
        let pens = self.scene.pens_in_holder();
        let pens = pens.map(|pen| place(tool, &Point3::origin(), &pen.tip_m, PEN_RADIUS_M));
        body.chain(pens).collect()
    }
}
