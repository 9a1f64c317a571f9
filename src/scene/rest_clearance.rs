//! Refuses keep-outs that contain the arm at rest: every motion would begin inside them.

use nalgebra::Point3;

use super::build_scene::TABLE_M;
use super::{KeepOut, ScenePen};
use arm::ArmModel;
use base::units::JointVector;

/// Least distance of an arm to the sheet and to itself, and of any moving part to a keep-out, in
/// metres. More than the distance covered between two samples at full speed.
pub const CLEARANCE_M: f64 = 0.003;

/// The radius of a pen's body, in metres.
pub const PEN_RADIUS_M: f64 = 0.005;

/// A part of the arm, or a pen, in the rest pose.
struct RestingPart<'a> {
    name: &'a str,
    moves: bool,
    from_m: Point3<f64>,
    to_m: Point3<f64>,
    radius_m: f64,
}

/// Returns a problem for each keep-out that contains the base, or another part or pen in the rest
/// pose.
pub(super) fn check_keep_outs(
    arm: &ArmModel,
    pens: &[ScenePen],
    rest_rad: &JointVector,
    keep_outs: &[KeepOut],
) -> Vec<String> {
    let resting = parts_at_rest(arm, pens, rest_rad);
    let problems = keep_outs.iter().flat_map(|keep_out| {
        [false, true].map(|moves| {
            let parts = resting.iter().filter(|part| part.moves == moves);
            let distances = parts.filter_map(|part| Some((part, distance_m(part, keep_out)?)));
            let nearest = distances.min_by(|(_, one), (_, other)| one.total_cmp(other));
            nearest.map(|(part, distance_m)| refusal(part, distance_m, keep_out))
        })
    });
    problems.flatten().collect()
}

/// Returns the distance of a part from a keep-out that it is too near to; negative inside. The base
/// may stand next to a keep-out, and on one below the table top.
fn distance_m(part: &RestingPart<'_>, keep_out: &KeepOut) -> Option<f64> {
    let corners = &keep_out.corners;
    if !part.moves && corners.max_m.z <= TABLE_M {
        return None;
    }
    let least_m = if part.moves { CLEARANCE_M } else { 0.0 };
    let max_m = least_m + part.radius_m;
    let axis_m = corners.segment_distance_m(&part.from_m, &part.to_m, max_m)?;
    Some(axis_m - part.radius_m).filter(|metres| *metres < least_m)
}

fn refusal(part: &RestingPart<'_>, distance_m: f64, keep_out: &KeepOut) -> String {
    let (name, part_name) = (&keep_out.name, part.name);
    let place = if distance_m < 0.0 {
        format!("{:.1} mm inside", -distance_m * 1e3)
    } else {
        format!("{:.1} mm from", distance_m * 1e3)
    };
    if part.moves {
        let least_mm = CLEARANCE_M * 1e3;
        return format!(
            "keep-out `{name}`: in the rest pose `{part_name}` is {place} it; at least {least_mm:.0} mm are needed. Make the box smaller, move it (`min_m`, `max_m`), or choose a different `poses.rest_rad`"
        );
    }
    format!(
        "keep-out `{name}`: the arm's fixed `{part_name}` is {place} it; no part of the arm may be in a keep-out. Make the box smaller or move it (`min_m`, `max_m`)"
    )
}

#[expect(
    clippy::expect_used,
    reason = "a part without its frame must not be judged as if it were elsewhere"
)]
fn parts_at_rest<'a>(
    arm: &'a ArmModel,
    pens: &'a [ScenePen],
    rest_rad: &JointVector,
) -> Vec<RestingPart<'a>> {
    let frames = arm.chain.frames(rest_rad);
    let parts = arm.capsules.iter().map(|capsule| {
        let frame = frames
            .get(capsule.joints_before)
            .expect("an arm's file names a joint for each capsule");
        RestingPart {
            name: &capsule.name,
            moves: capsule.joints_before > 0,
            from_m: frame * capsule.from_m,
            to_m: frame * capsule.to_m,
            radius_m: capsule.radius_m,
        }
    });
    let pens = pens.iter().map(|pen| RestingPart {
        name: &pen.name,
        moves: true,
        from_m: frames.tool * Point3::origin(),
        to_m: frames.tool * pen.tip_m,
        radius_m: PEN_RADIUS_M,
    });
    parts.chain(pens).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::{AxisAlignedBox, Scene, SceneLibrary};

    fn problems(scene: &Scene, min_m: [f64; 3], max_m: [f64; 3]) -> Vec<String> {
        let keep_out = KeepOut {
            name: "box".to_owned(),
            corners: AxisAlignedBox {
                min_m: min_m.into(),
                max_m: max_m.into(),
            },
        };
        check_keep_outs(&scene.arm, &scene.pens, &scene.rest_rad, &[keep_out])
    }

    #[test]
    fn refuses_a_keep_out_that_contains_the_base_or_the_rest_pose() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let everything = problems(&scene, [-2.0; 3], [2.0; 3]);
        let [base, rest] = &everything[..] else {
            unreachable!("{everything:?}")
        };
        assert!(base.contains("keep-out `box`") && base.contains("fixed `base"));
        assert!(rest.contains("in the rest pose `") && rest.contains("mm inside it"));
        // A thin rail through the base, below where anything else is at rest.
        let rail = problems(&scene, [0.0, -0.4, 0.01], [0.002, 0.4, 0.012]);
        assert!(rail.first().unwrap().contains("fixed `base"), "{rail:?}");
        // Beside the base, and a table that it stands on.
        assert!(problems(&scene, [0.2, -0.4, 0.0], [0.3, 0.4, 0.5]).is_empty());
        assert!(problems(&scene, [-1.0, -1.0, -0.5], [1.0, 1.0, 0.0]).is_empty());
        let higher = problems(&scene, [-1.0, -1.0, -0.5], [1.0, 1.0, 0.0031]);
        assert_eq!(higher.len(), 1, "{higher:?}");
    }

    /// A box above the arm that comes down on it.
    #[test]
    fn a_part_at_rest_is_3_mm_from_a_keep_out_and_the_base_may_touch_it() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let lowered_box = |z: f64| problems(&scene, [-1.0, -1.0, z], [1.0, 1.0, 2.0]);
        let resting = parts_at_rest(&scene.arm, &scene.pens, &scene.rest_rad);
        let top = |part: &RestingPart<'_>| part.from_m.z.max(part.to_m.z) + part.radius_m;
        let highest = resting.iter().map(top).fold(0.0, f64::max);
        assert!(lowered_box(highest + 0.0031).is_empty());
        let near = lowered_box(highest + 0.0029);
        assert!(
            near.len() == 1 && near.first().unwrap().contains("2.9 mm from it"),
            "{near:?}"
        );
        // The fixed part that stands farthest to the side.
        let side_of = |part: &RestingPart<'_>| part.from_m.x - part.radius_m;
        let fixed = resting.iter().filter(|part| !part.moves);
        let base = fixed
            .min_by(|one, other| side_of(one).total_cmp(&side_of(other)))
            .unwrap();
        let (at, side) = (base.from_m, side_of(base));
        assert!(base.to_m.x > at.x && at.z > TABLE_M);
        let box_at = |x: f64| {
            let max_m = [x + 0.01, at.y + 0.02, at.z];
            problems(&scene, [x, at.y - 0.02, 0.0], max_m)
        };
        let names_base = |problems: Vec<String>| problems.concat().contains(base.name);
        assert!(!names_base(box_at(side - 0.0101)) && names_base(box_at(side - 0.0099)));
    }
}
