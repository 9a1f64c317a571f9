//! How near an arm's parts come to each other. The gate judges the same again, and every stop; here it decides which way the tip
//! goes between two places.

use nalgebra::Point3;

use base::units::JointVector;
use kin::capsule::{PlacedCapsule, nearest_pair, place};
use scene::{CLEARANCE_M, PEN_RADIUS_M, Scene};

/// Tolerance for rounding.
const ROUNDING_M: f64 = 1e-9;

/// The parts of an arm that can touch each other.
pub(super) struct SelfClearance<'a> {
    scene: &'a Scene,
    parts: Vec<Part<'a>>,
    pairs: Vec<(usize, usize)>,
}

/// A capsule of the body, or a pen.
struct Part<'a> {
    name: &'a str,
    /// `None` for the mount of the pens.
    joints_before: Option<usize>,
    ends_m: [Point3<f64>; 2],
    radius_m: f64,
}

impl<'a> SelfClearance<'a> {
    /// Takes all pairs of parts but those of one link, of neighbouring links, and those that the arm's file allows.
    pub(super) fn new(scene: &'a Scene) -> Self {
        let body = scene.arm.capsules.iter().map(|capsule| Part {
            name: &capsule.name,
            joints_before: Some(capsule.joints_before),
            ends_m: [capsule.from_m, capsule.to_m],
            radius_m: capsule.radius_m,
        });
        let pens = scene.pens.iter().enumerate();
        let held = pens.filter(|(pen, _)| scene.holder.may_hold(*pen));
        let pens = held.map(|(_, pen)| Part {
            name: &pen.name,
            joints_before: None,
            ends_m: [Point3::origin(), pen.tip_m],
            radius_m: PEN_RADIUS_M,
        });
        let parts: Vec<Part<'_>> = body.chain(pens).collect();
        let link = |part: &Part<'_>| part.joints_before.unwrap_or(scene.arm.dof());
        let mut links: Vec<usize> = parts.iter().map(link).collect();
        links.sort_unstable();
        links.dedup();
        let rank = |part: &Part<'_>| links.partition_point(|of| *of < link(part));
        let allowed = &scene.arm.file.may_touch;
        let may_meet = |one: &Part<'_>, other: &Part<'_>| {
            let are_these = |[a, b]: &[String; 2]| {
                [[one.name, other.name], [other.name, one.name]].contains(&[a, b])
            };
            rank(one).abs_diff(rank(other)) > 1 && !allowed.iter().any(are_these)
        };
        let mut pairs = Vec::new();
        for (first, one) in parts.iter().enumerate() {
            let later = parts.iter().enumerate().skip(first + 1);
            let met = later.filter(|(_, other)| may_meet(one, other));
            pairs.extend(met.map(|(second, _)| (first, second)));
        }
        Self {
            scene,
            parts,
            pairs,
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
        let frames = self.scene.arm.chain.frames(q);
        let placed = self.parts.iter().map(|part| {
            let link = part.joints_before.map(|before| {
                let link = frames.get(before);
                link.expect("an arm's file names a joint for each capsule")
            });
            let [from_m, to_m] = &part.ends_m;
            place(link.unwrap_or(&frames.tool), from_m, to_m, part.radius_m)
        });
        let placed: Vec<PlacedCapsule> = placed.collect();
        nearest_pair(&placed, &self.pairs).map_or(f64::INFINITY, |(_, apart_m)| apart_m)
    }
}
