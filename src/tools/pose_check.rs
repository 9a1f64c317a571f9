//! Judges a scene's rest and ready pose before anything moves, as the gate will when an arm goes there.

use std::sync::Arc;

use super::preview::RuleViolation;
use super::refusal_groups::{RefusalGroup, refusal_groups};
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use gate::StandingArm;
use plan::{PlanError, PlanReport, SilentObserver};
use scene::{Scene, SceneLibrary};

/// Rule of every refusal of these poses.
const POSES: &str = "poses";

/// Returns what the planner and the gate refuse of the way of each arm of a scene from over its sheet to the ready pose and on to
/// the rest pose, while the others rest. The way begins in neither: what begins beyond a limit may move away from it.
#[must_use]
pub fn refused_poses(scenes: &[&Arc<Scene>]) -> Vec<RuleViolation> {
    let at_rest = scenes.iter().map(|scene| ArmMeasurement {
        at: ClockInstant::ZERO,
        position_rad: scene.rest_rad,
        velocity_rad_s: JointVector::zeros(scene.arm.dof()),
        servos: Vec::new(),
    });
    let at_rest: Vec<ArmMeasurement> = at_rest.collect();
    let resting = scenes.iter().zip(&at_rest);
    let resting = resting.map(|(scene, measured)| StandingArm {
        scene,
        measured,
        now: measured.at,
    });
    let resting: Vec<StandingArm<'_>> = resting.collect();
    let mut refused = Vec::new();
    for (index, scene) in scenes.iter().enumerate() {
        let mut beside = resting.clone();
        beside.remove(index);
        // Of one part of a scene alone the gate says only that the others are unknown.
        if beside.len() != scene.beside.len() {
            continue;
        }
        let arm = scene.arm_name.as_ref();
        let arm = arm.map_or(String::new(), |arm| format!("{arm}: "));
        let of_arm = refused_way(scene, &beside).into_iter();
        refused.extend(of_arm.map(|violation| RuleViolation {
            rule: POSES.to_owned(),
            why: format!("{arm}{}", violation.why),
            ..violation
        }));
    }
    refused
}

/// Returns the worst of [`refused_poses`].
#[must_use]
pub fn worst_pose(scenes: &[&Arc<Scene>]) -> Option<RefusalGroup> {
    refusal_groups(&refused_poses(scenes)).pop()
}

/// Returns the scenes of these arms, each with its name and model, in which the gate refuses a pose, with the worst refusal. What
/// cannot be read is left out.
#[must_use]
pub fn scenes_with_refused_poses(
    library: &SceneLibrary,
    arms: &[[&str; 2]],
) -> Vec<(String, RefusalGroup)> {
    let models: Vec<&str> = arms.iter().map(|[_, model]| *model).collect();
    let names = library.scenes_for(&models).into_iter();
    let names = names.chain(library.shared_scenes_for(arms));
    let refused = names.filter_map(|name| {
        let shared = library.shared(&name, None).ok()?;
        let parts: Vec<_> = shared.parts.iter().map(|part| &part.scene).collect();
        Some((name, worst_pose(&parts)?))
    });
    refused.collect()
}

fn refused_way(scene: &Arc<Scene>, beside: &[StandingArm<'_>]) -> Vec<RuleViolation> {
    let (ready_rad, rest_rad) = (scene.ready_rad, scene.rest_rad);
    let middle_mm = scene.surface.size_mm().map(|side| side / 2.0);
    let lift_mm = scene.heights.lift_mm;
    let start = plan::joints_over(scene, middle_mm, lift_mm, [0.0; 2], &ready_rad);
    let start_rad = start.map_or(ready_rad, |(q_rad, _)| q_rad);
    let way = plan::go_to(scene, &start_rad, &[ready_rad, rest_rad], &SilentObserver);
    let way = match way {
        Ok(plan) => plan.trajectory,
        Err(PlanError::Refused(refusals)) => {
            return refusals.iter().map(RuleViolation::of_planner).collect();
        }
        Err(PlanError::Cancelled | PlanError::Nothing) => return Vec::new(),
    };
    let judged = gate::preview_together(&[(scene, &way)], beside);
    let refused = judged.err().map(|refused| refused.0).unwrap_or_default();
    let violations = refused.iter().map(|refusal| {
        let pose = if refusal.item == Some(0) {
            "ready"
        } else {
            "rest"
        };
        let violation = RuleViolation::of_gate(refusal, &PlanReport::default());
        let why = format!(
            "on the way to the {pose} pose, {}; choose a different `poses.{pose}_rad`",
            violation.why
        );
        RuleViolation { why, ..violation }
    });
    violations.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn the_arms_of_every_shipped_scene_come_to_rest() {
        let library = SceneLibrary::new(None);
        let names = library.scenes().into_iter();
        let mut arms = 0;
        for name in names.chain(library.shared_scenes()) {
            let shared = library.shared(&name, None).unwrap();
            let parts: Vec<_> = shared.parts.iter().map(|part| &part.scene).collect();
            assert_eq!(refused_poses(&parts), [], "{name}");
            arms += parts.len();
        }
        assert!(arms > 20, "{arms}");
    }

    /// The default scene with poses in which its last bend has another angle.
    fn bent(rest: Option<f64>, ready: Option<f64>) -> Arc<Scene> {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let bent = |pose: &JointVector, bend: Option<f64>| {
            pose.map(|joint, q| bend.filter(|_| joint == 3).unwrap_or(q))
        };
        Arc::new(Scene {
            rest_rad: bent(&scene.rest_rad, rest),
            ready_rad: bent(&scene.rest_rad, ready),
            ..Scene::clone(&scene)
        })
    }

    #[test]
    fn a_pose_in_which_the_arm_is_too_near_itself_is_refused() {
        assert_eq!(refused_poses(&[&bent(None, None)]), []);
        let folded = Some(1.26);
        for (rest, ready, named) in [
            (folded, None, &["rest"][..]),
            (None, folded, &["ready"]),
            // Where both are the same, nothing begins there.
            (folded, folded, &["ready"]),
        ] {
            let refused = refused_poses(&[&bent(rest, ready)]);
            let key = |pose: &&str| format!("`poses.{pose}_rad`");
            for violation in &refused {
                assert_eq!(
                    (violation.rule.as_str(), violation.unit),
                    (POSES, Some("mm"))
                );
                assert!(violation.value < violation.limit, "{violation:?}");
            }
            for key in named.iter().map(key) {
                assert!(
                    refused.iter().any(|one| one.why.contains(&key)),
                    "{key}: {refused:?}"
                );
            }
        }
    }

    #[test]
    fn the_arm_whose_pose_is_refused_is_named_and_one_part_alone_is_not_judged() {
        let shared = SceneLibrary::new(None).shared("two_arms", None).unwrap();
        let bent = |part: &Arc<Scene>| {
            let rest_rad = part
                .rest_rad
                .map(|joint, q| if joint == 3 { 1.26 } else { q });
            Arc::new(Scene {
                rest_rad,
                ..Scene::clone(part)
            })
        };
        let mut parts: Vec<_> = shared.parts.iter().map(|part| part.scene.clone()).collect();
        let right = parts.pop().unwrap();
        let left = parts.pop().unwrap();
        let worst = worst_pose(&[&left, &bent(&right)]).unwrap();
        assert!(worst.why.starts_with("right: "), "{}", worst.why);
        assert_eq!(refused_poses(&[&bent(&right)]), []);
    }

    /// The planner knows no way to a pose with the tip in the table.
    #[test]
    fn a_pose_without_a_way_is_refused() {
        let scene = bent(None, None);
        let low = scene
            .rest_rad
            .map(|joint, q| if joint == 1 { 1.5 } else { q });
        let low = Arc::new(Scene {
            rest_rad: low,
            ..Scene::clone(&scene)
        });
        let worst = worst_pose(&[&low]).unwrap();
        assert_eq!(worst.rule, POSES);
        assert!(worst.why.contains("the rest pose"), "{}", worst.why);
    }
}
