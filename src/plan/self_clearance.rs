//! How near an arm's parts come to each other. The gate judges the same again, and every stop; here it decides which way the tip
//! goes between two places.

use nalgebra::Point3;

use base::units::JointVector;
use kin::capsule::{PlacedCapsule, nearest_pair, place};
use scene::{CLEARANCE_M, PEN_RADIUS_M, Scene};

/// Tolerance for rounding.
const ROUNDING_M: f64 = 1e-9;

/// An arm and the pens that it may hold.
pub(super) struct SelfClearance<'a> {
    scene: &'a Scene,
    pens_m: Vec<Point3<f64>>,
    pairs: Vec<(usize, usize)>,
}

impl<'a> SelfClearance<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        let pens_m: Vec<_> = scene.pens_in_holder().map(|pen| pen.tip_m).collect();
        Self {
            scene,
            pairs: scene.arm.pairs_kept_apart(pens_m.len()),
            pens_m,
        }
    }

    /// Returns whether the parts keep apart along a way, and in stops, which lift the tip. No more is asked than its ends have.
    pub(super) fn is_kept(&self, ends: &[JointVector], samples: &[JointVector]) -> bool {
        let wanted_m = CLEARANCE_M + self.scene.heights.lift_mm / 1e3;
        let at_ends_m = ends.iter().map(|end| self.nearest_m(end) - ROUNDING_M);
        let least_m = at_ends_m.fold(wanted_m, f64::min);
        samples.iter().all(|q| self.nearest_m(q) >= least_m)
    }

    /// Returns how near the nearest two parts are at a pose.
    #[expect(
        clippy::expect_used,
        reason = "a part without its frame must not be judged as if it were elsewhere"
    )]
    fn nearest_m(&self, q: &JointVector) -> f64 {
        let arm = &self.scene.arm;
        let frames = arm.chain.frames(q);
        let body = arm.capsules.iter().map(|part| {
            let link = frames.get(part.joints_before);
            let link = link.expect("an arm's file names a joint for each capsule");
            place(link, &part.from_m, &part.to_m, part.radius_m)
        });
        let mount = Point3::origin();
        let pens = self.pens_m.iter();
        let pens = pens.map(|tip_m| place(&frames.tool, &mount, tip_m, PEN_RADIUS_M));
        let placed: Vec<PlacedCapsule> = body.chain(pens).collect();
        nearest_pair(&placed, &self.pairs).map_or(f64::INFINITY, |(_, apart_m)| apart_m)
    }
}
