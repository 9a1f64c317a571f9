//! Tests what a person does by small steps, and how a tip feels its way: how fast, and how deep.

use std::sync::Arc;
use std::time::Duration;

use gate::GateRule;
use plan::{JogIncrement, SilentObserver, SpanKind, Trajectory};
use scene::Scene;

use super::{default_plan, edge, only, refusals, sheet, slow};

/// Highest speeds of a probing tip and of a person's jog, and the depth by which a tip may be deeper than
/// it should.
const PROBE_MM_S: f64 = 2.0;
const PROBE_DEPTH_MM: f64 = 5.0;
const JOG_MM_S: f64 = 25.0;
const DEPTH_SLACK_MM: f64 = 0.25;

/// The last span of a plan, alone: it begins at rest.
fn last(plan: &Trajectory, kind: SpanKind) -> Trajectory {
    let span = plan.spans.last().unwrap();
    assert_eq!(span.kind, kind);
    only(kind, 10, plan.samples[span.first..].to_vec())
}

/// Down at the middle of the sheet, until it is given up.
fn probe() -> Trajectory {
    let (scene, _) = default_plan();
    let plan = plan::probe(scene, &scene.ready_rad, [50.0, 50.0], 0, &SilentObserver).unwrap();
    last(&plan.trajectory, SpanKind::Probe)
}

/// The tip straight by so much, from above the middle of the sheet.
fn jog(by_mm: [f64; 3]) -> Trajectory {
    let (scene, _) = default_plan();
    let step = JogIncrement::Tip { by_mm };
    let plan = plan::jog(scene, &scene.ready_rad, step, 0, &SilentObserver).unwrap();
    last(&plan.trajectory, SpanKind::Jog)
}

fn fastest_mm_s(plan: &Trajectory) -> f64 {
    let (scene, _) = default_plan();
    let tips = plan.samples.windows(2).map(|two| {
        let way = slow::tip(scene, 0, &two[1]) - slow::tip(scene, 0, &two[0]);
        way.norm() * 1e3 / plan.period.as_secs_f64()
    });
    tips.fold(0.0, f64::max)
}

/// Returns how low over the sheet of a scene a plan brings the tip.
fn lowest_mm(scene: &Scene, plan: &Trajectory) -> f64 {
    let tips = plan.samples.iter().map(|q| slow::tip(scene, 0, q));
    let heights = tips.map(|tip| scene.surface.project(&tip).height_mm);
    heights.fold(f64::INFINITY, f64::min)
}

/// The same path at another speed.
fn at_speed(plan: &Trajectory, mm_s: f64) -> Trajectory {
    let slower = fastest_mm_s(plan) / mm_s;
    Trajectory {
        reached: Vec::new(),
        period: Duration::from_secs_f64(plan.period.as_secs_f64() * slower),
        ..plan.clone()
    }
}

fn in_default(plan: &Trajectory) -> Vec<gate::GateRefusal> {
    refusals(Scene::clone(&default_plan().0), plan)
}

#[test]
fn a_probe_at_its_speed() {
    let plan = probe();
    edge(GateRule::TipSpeed, 0.005, |by| {
        in_default(&at_speed(&plan, PROBE_MM_S * (1.0 - by)))
    });
    // A scene that draws more slowly narrows it.
    let fastest = fastest_mm_s(&plan);
    edge(GateRule::TipSpeed, 0.005, |by| {
        let mut scene = Scene::clone(&default_plan().0);
        scene.limits.draw_mm_s = fastest * (1.0 + by);
        refusals(scene, &plan)
    });
}

#[test]
fn a_step_by_hand_at_its_speed() {
    let plan = jog([0.0, -20.0, 10.0]);
    edge(GateRule::TipSpeed, 0.005, |by| {
        in_default(&at_speed(&plan, JOG_MM_S * (1.0 - by)))
    });
    let fastest = fastest_mm_s(&plan);
    edge(GateRule::TipSpeed, 0.005, |by| {
        let mut scene = Scene::clone(&default_plan().0);
        scene.limits.travel_mm_s = fastest * (1.0 + by);
        refusals(scene, &plan)
    });
}

/// The sheet is so high that the lowest place of a plan is this deep below it, and so much less.
fn deep(plan: &Trajectory, deepest_mm: f64) {
    let (scene, _) = default_plan();
    let lowest = lowest_mm(scene, plan);
    edge(GateRule::Sheet, 0.005, |by| {
        let mut scene = Scene::clone(scene);
        let up_mm = lowest + deepest_mm - by;
        scene.surface = sheet([0.0, 0.0, up_mm / 1e3]);
        // The gripper comes nearer to it as well: only this rule is looked at.
        let mut refused = refusals(scene, plan);
        refused.retain(|refusal| refusal.rule == GateRule::Sheet);
        refused
    });
}

#[test]
fn a_probe_at_its_depth() {
    deep(&probe(), PROBE_DEPTH_MM + DEPTH_SLACK_MM);
}

#[test]
fn a_step_by_hand_at_the_sheet() {
    let (scene, _) = default_plan();
    deep(
        &jog([0.0, 0.0, -5.0]),
        scene.heights.press_mm + DEPTH_SLACK_MM,
    );
}

/// A tip that stands below the sheet, as where it lies higher than was believed, may be stepped up and not down.
#[test]
fn a_tip_that_begins_below_the_sheet_may_rise_and_not_sink() {
    let begins_below = |plan: &Trajectory| {
        let mut scene = Scene::clone(&default_plan().0);
        let first = slow::tip(&scene, 0, &plan.samples[0]);
        let up_mm = scene.surface.project(&first).height_mm + 8.0;
        scene.surface = sheet([0.0, 0.0, up_mm / 1e3]);
        let refused = refusals(scene, plan);
        refused.iter().any(|one| one.rule == GateRule::Sheet)
    };
    assert!(!begins_below(&jog([0.0, 0.0, 5.0])));
    assert!(begins_below(&jog([0.0, 0.0, -5.0])));
}

/// A second judge, which shares no code with the gate, says the same of both.
#[test]
fn a_second_judge_agrees_on_small_steps() {
    let (scene, _) = default_plan();
    for plan in [probe(), jog([0.0, 0.0, -5.0]), jog([5.0, -5.0, 2.0])] {
        for speed in [0.5, 1.3] {
            let plan = at_speed(&plan, fastest_mm_s(&plan) * speed);
            for up_mm in [0.0, 0.5, 6.0] {
                let mut scene = Scene::clone(scene);
                scene.surface = sheet([0.0, 0.0, up_mm / 1e3]);
                let second = slow::Slow::judge(&scene, &plan);
                let refusals_found = gate::preview(&Arc::new(scene), &plan);
                let refusals_found = refusals_found
                    .err()
                    .map_or_else(Vec::new, |refused| refused.0);
                for rule in [
                    GateRule::TipSpeed,
                    GateRule::Sheet,
                    GateRule::Condition,
                    GateRule::Tilt,
                ] {
                    let by_gate = refusals_found.iter().any(|refusal| refusal.rule == rule);
                    let Some(found) = second.found.get(&format!("{rule:?}")) else {
                        assert!(!by_gate, "{rule:?}: {refusals_found:#?}");
                        continue;
                    };
                    let agrees = (by_gate || !found.surely) && (!by_gate || found.possibly);
                    assert!(
                        agrees,
                        "{rule:?} up {up_mm}: {found:?}, {refusals_found:#?}"
                    );
                }
            }
        }
    }
}
