//! Says whether the arm has room where a goal leads its path.
//!
//! The path itself was judged, and the arm is on it as far as the lead is right. Where it is too large the arm stands up to the
//! goal, so a goal may not come nearer to anything than its limit, or than the path is there.

use super::collision_body::{CollisionBody, PosedBody};
use super::escape::PartProximity;
use base::units::JointVector;
use scene::{CLEARANCE_M, Scene};

/// Rounding between two distances.
const ROUNDING_M: f64 = 1e-6;

/// Returns whether the body, at joint angles that lead those of a judged path, is as clear of everything as it has to be.
pub(super) fn has_room(scene: &Scene, path_rad: &JointVector, led_rad: &JointVector) -> bool {
    let body = CollisionBody::new(scene);
    let (path, led) = (body.pose(path_rad), body.pose(led_rad));
    let outside = |pose: &PosedBody| body.outside_workspace(pose).near;
    let own = |pose: &PosedBody| body.near_itself(pose).near;
    is_as_clear(&path, &led, 0.0, outside)
        && is_as_clear(&path, &led, CLEARANCE_M, |pose| body.over_sheet(pose))
        && is_as_clear(&path, &led, CLEARANCE_M, own)
        && scene.keep_outs.iter().all(|keep_out| {
            let near = |pose: &PosedBody| body.near_box(pose, &keep_out.corners).near;
            is_as_clear(&path, &led, CLEARANCE_M, near)
        })
}

/// Returns whether nothing that is nearer than a limit is nearer than it is on the path.
fn is_as_clear<K: PartialEq>(
    path: &PosedBody,
    led: &PosedBody,
    limit_m: f64,
    near: impl Fn(&PosedBody) -> Vec<PartProximity<K>>,
) -> bool {
    let too_near: Vec<_> = near(led)
        .into_iter()
        .filter(|part| part.gap_m < limit_m - ROUNDING_M)
        .collect();
    if too_near.is_empty() {
        return true;
    }
    let on_path = near(path);
    too_near.iter().all(|part| {
        let same = on_path.iter().find(|other| other.key == part.key);
        same.is_some_and(|same| part.gap_m >= same.gap_m - ROUNDING_M)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    #[test]
    fn goals_lead_into_nothing_that_the_path_keeps_off() {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let path_rad = JointVector::from_slice(&[0.0, -0.2, 0.3, 1.2, 0.0]);
        let lowered = |rad: f64| path_rad.map(|joint, at| if joint == 1 { at + rad } else { at });
        let mut steps = (0..200).map(|step| lowered(0.01 * f64::from(step)));
        let low_rad = steps.find(|led| !has_room(&scene, &path_rad, led)).unwrap();
        // Where the path itself is as near, the goal may be there, and farther off.
        let higher_rad = low_rad.map(|joint, at| if joint == 1 { at - 0.01 } else { at });
        assert!(has_room(&scene, &low_rad, &low_rad) && has_room(&scene, &low_rad, &higher_rad));
        assert!(!has_room(&scene, &higher_rad, &low_rad));
    }
}
