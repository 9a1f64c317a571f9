//! Goals that lead: what explains them, how far they may be from where the arm is expected, and that both are judged.

use super::*;
use arm::CompensationFile;
use scene::{SheetCorrection, SheetStroke, ToolKind};

const PLAY_DEG: [f64; 5] = [1.0, 0.0, 0.0, 0.0, 0.5];

fn compensation(play_deg: &[f64], sag_deg_per_n_m: &[f64]) -> CompensationFile {
    let finite = |all: &[f64]| all.iter().map(|of| Finite::new(*of).unwrap()).collect();
    CompensationFile {
        play_deg: finite(play_deg),
        sag_deg_per_n_m: finite(sag_deg_per_n_m),
    }
}

fn calibrated(play_deg: &[f64], sag_deg_per_n_m: &[f64]) -> Scene {
    let mut scene = Scene::clone(&default_plan().0);
    let mut file = scene.arm.file.clone();
    file.compensation = Some(compensation(play_deg, sag_deg_per_n_m));
    scene.arm = Arc::new(ArmModel::new(file).unwrap());
    scene
}

/// The practice drawing of an arm whose play and sag are known, planned once.
fn leading_plan() -> &'static (Scene, Trajectory) {
    static PLAN: OnceLock<(Scene, Trajectory)> = OnceLock::new();
    PLAN.get_or_init(|| {
        let scene = calibrated(&PLAY_DEG, &[0.1; 5]);
        let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
        (scene, plan.trajectory)
    })
}

/// The rules that refuse the leading plan after a change to scene and plan.
fn rules(change: impl FnOnce(&mut Scene, &mut Trajectory)) -> Vec<GateRule> {
    let (scene, plan) = leading_plan();
    let (mut scene, mut plan) = (scene.clone(), plan.clone());
    change(&mut scene, &mut plan);
    let mut rules: Vec<GateRule> = refusals(scene, &plan)
        .iter()
        .map(|refusal| refusal.rule)
        .collect();
    rules.sort_unstable_by_key(|rule| format!("{rule:?}"));
    rules.dedup();
    rules
}

#[test]
fn lets_goals_lead_by_what_was_calibrated() {
    assert_eq!(rules(|_, _| {}), []);
}

#[test]
fn refuses_goals_that_lead_where_nothing_was_calibrated() {
    let without = rules(|scene, _| {
        with_arm(scene, |arm| arm.compensation = None);
    });
    assert_eq!(without, [GateRule::Form]);
}

#[test]
fn refuses_an_expectation_that_is_not_one_for_each_goal() {
    let fewer = rules(|_, plan| {
        plan.reached.pop();
    });
    assert_eq!(fewer, [GateRule::Form]);
    let odd = rules(|_, plan| {
        let middle = plan.reached.len() / 2;
        plan.reached[middle] = plan.reached[middle].map(|_, _| f64::NAN);
    });
    assert_eq!(odd, [GateRule::Form]);
}

#[test]
fn refuses_a_lead_that_the_calibrated_play_does_not_explain() {
    for (fraction, is_refused) in [(1.0, false), (0.5, true), (0.05, true)] {
        let less: Vec<f64> = PLAY_DEG.iter().map(|deg| deg * fraction).collect();
        let known = calibrated(&less, &[0.1; 5]);
        let refused = rules(|scene, _| scene.arm = Arc::clone(&known.arm));
        assert_eq!(refused.contains(&GateRule::Lead), is_refused, "{fraction}");
    }
}

#[test]
fn refuses_goals_that_would_not_bring_the_tip_where_it_is_expected() {
    // The lead of the pan the other way round: as large, and wrong.
    let turned = rules(|_, plan| {
        for (goal, expected) in plan.samples.iter_mut().zip(&plan.reached) {
            *goal = expected.zip(goal, |expected, goal| 2.0 * expected - goal);
        }
    });
    assert!(turned.contains(&GateRule::Lead), "{turned:?}");
}

#[test]
fn keeps_goals_off_what_only_goals_come_near() {
    // A wall beside the sheet, brought nearer until the arm would come too near to it where it is expected.
    let wall = |from_m: f64| KeepOut {
        name: "wall".to_owned(),
        corners: AxisAlignedBox {
            min_m: Point3::new(from_m, -0.6, -0.1),
            max_m: Point3::new(from_m + 0.3, 0.6, 0.04),
        },
    };
    let of_expected = |from_m: f64| {
        rules(|scene, plan| {
            scene.keep_outs.push(wall(from_m));
            plan.samples.clone_from(&plan.reached);
        })
    };
    let steps = (0..150).map(|step| 0.15 - 1e-3 * f64::from(step));
    let mut clear_of =
        steps.take_while(|from_m| !of_expected(*from_m).contains(&GateRule::KeepOut));
    let nearest = clear_of.by_ref().last().unwrap();
    let of_goals = rules(|scene, _| scene.keep_outs.push(wall(nearest)));
    assert_eq!(of_goals, [GateRule::KeepOut]);
    let farther = rules(|scene, _| scene.keep_outs.push(wall(nearest + 5e-3)));
    assert_eq!(farther, []);
}

/// The pan's lead brings a hopping pen to the wall's edge before it is as high as it is expected to be there.
#[test]
fn a_hop_whose_goals_lead_clears_what_is_between_the_lines() {
    let mut scene = calibrated(&PLAY_DEG, &[0.1; 5]);
    (scene.heights.lift_mm, scene.heights.lift_least_mm) = (20.0, 2.0);
    let line = |x: f64| SheetStroke {
        points_mm: vec![[x, 40.0], [x, 60.0]],
        pen: 0,
        source: format!("at {x} mm"),
        pause: None,
    };
    let strokes = [30.0, 54.0].map(line);
    let [a, b] = [[41.0, 49.0], [43.0, 51.0]].map(|at_mm| scene.surface.at(at_mm).point_m);
    for height_mm in [2.3, 2.7, 5.3, 5.7] {
        let mut scene = scene.clone();
        scene.keep_outs.push(KeepOut {
            name: "wall".to_owned(),
            corners: AxisAlignedBox {
                min_m: Point3::new(a.x.min(b.x), -0.5, a.z),
                // It ends before the shoulder, which is as low.
                max_m: Point3::new(a.x.max(b.x), -0.08, a.z + 1e-3 * height_mm),
            },
        });
        let order = scene.order;
        let plan = plan::draw_strokes(&scene, &scene.rest_rad, &strokes, order, &SilentObserver);
        let refused = refusals(scene, &plan.unwrap().trajectory);
        assert_eq!(refused, [], "{height_mm} mm");
    }
}

#[test]
fn a_sheets_correction_explains_a_lead_of_two_millimetres_and_no_more() {
    let mut scene = Scene::clone(&default_plan().0);
    let most = scene::CORRECTION_MM_MAX;
    let shift = |mm: f64| [[mm, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0; 6]];
    let size_mm = scene.surface.size_mm();
    assert!(SheetCorrection::new(shift(most + 0.01), size_mm).is_err());
    assert!(SheetCorrection::new(shift(f64::NAN), size_mm).is_err());
    scene.correction = Some(SheetCorrection::new(shift(most), size_mm).unwrap());
    let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    assert_eq!(refusals(scene.clone(), &plan.trajectory), []);
    let mut farther = plan.trajectory.clone();
    for (goal, expected) in farther.samples.iter_mut().zip(&plan.trajectory.reached) {
        *goal = goal.zip(expected, |goal, expected| {
            expected + (goal - expected) * 1.1
        });
    }
    let refused = refusals(scene, &farther);
    assert!(refused.iter().any(|refusal| refusal.rule == GateRule::Lead));
}

/// The practice drawing in a scene, planned and judged.
fn judged(scene: Scene) -> (Trajectory, Vec<GateRefusal>) {
    let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    let refused = refusals(scene, &plan.trajectory);
    (plan.trajectory, refused)
}

/// The lead against gravity is added when a goal is sent: what is planned has none.
#[test]
fn lets_an_arm_draw_of_which_sag_alone_is_known() {
    for sag_deg_per_n_m in [0.2, 0.5] {
        let (trajectory, refused) = judged(calibrated(&[0.0; 5], &[sag_deg_per_n_m; 5]));
        assert_eq!(refused, [], "{sag_deg_per_n_m}");
        assert!(trajectory.reached.is_empty());
    }
}

/// The sheet's correction is known, and nothing of the arm: goals that lead the other way are wrong.
#[test]
fn refuses_a_lead_against_the_sheets_correction() {
    let mut scene = Scene::clone(&default_plan().0);
    let shift = [[1.5, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0; 6]];
    scene.correction = Some(SheetCorrection::new(shift, scene.surface.size_mm()).unwrap());
    let (mut plan, refused) = judged(scene.clone());
    assert_eq!(refused, []);
    for (goal, expected) in plan.samples.iter_mut().zip(&plan.reached) {
        *goal = expected.zip(goal, |expected, goal| 2.0 * expected - goal);
    }
    let refused = refusals(scene, &plan);
    assert!(refused.iter().any(|refusal| refusal.rule == GateRule::Lead));
}

/// The fastest that goals bring a tip from one sample to the next.
fn fastest_mm_s(scene: &Scene, goals: &Trajectory) -> f64 {
    let tip = |q: &JointVector| scene.arm.chain.point(q, &scene.pens[0].tip_m);
    let steps = goals.samples.windows(2);
    let way_m = steps.map(|pair| (tip(&pair[1]) - tip(&pair[0])).norm());
    way_m.fold(0.0, f64::max) * 1e3 / goals.period.as_secs_f64()
}

/// A needle that is said to stand in the sheet, while its goals go to and fro by less than the correction explains.
#[test]
fn refuses_goals_that_move_a_needle_faster_than_it_may_be() {
    let mut scene = Scene::clone(&default_plan().0);
    let shift = [[2.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0; 6]];
    scene.correction = Some(SheetCorrection::new(shift, scene.surface.size_mm()).unwrap());
    scene.pens[0].kind = ToolKind::Needle;
    let drawn = &default_plan().1;
    let draws = |span: &&TrajectorySpan| span.kind == SpanKind::Draw;
    let here = drawn.samples[drawn.spans.iter().find(draws).unwrap().end - 1];
    let to_and_fro = |by_rad: f64| {
        let goal = |sample: usize| {
            let grown = (sample.min(199 - sample) as f64 / 60.0).min(1.0);
            let turn = (sample as f64 * std::f64::consts::TAU / 16.0).sin();
            here.map(|joint, q| match joint {
                0 => q + by_rad * grown * grown * (3.0 - 2.0 * grown) * turn,
                _ => q,
            })
        };
        let goals = only(SpanKind::Draw, 10, (0..200).map(goal).collect());
        Trajectory {
            reached: vec![here; 200],
            ..goals
        }
    };
    let rules = |by_rad| {
        let refused = refusals(scene.clone(), &to_and_fro(by_rad));
        refused
            .iter()
            .map(|refusal| refusal.rule)
            .collect::<Vec<_>>()
    };
    let by_rad = |mm_s: f64| 0.002 * mm_s / fastest_mm_s(&scene, &to_and_fro(0.002));
    assert_eq!(rules(by_rad(24.99)), []);
    assert!(rules(by_rad(25.06)).contains(&GateRule::TipSpeed));
}

#[test]
fn a_needle_is_led_within_its_speed_and_no_deeper_than_it_may_be() {
    let needle = |play_deg: [f64; 5], sag_deg_per_n_m: f64| {
        let mut scene = calibrated(&play_deg, &[sag_deg_per_n_m; 5]);
        scene.pens[0].kind = ToolKind::Needle;
        let terms = [
            [0.5, 0.3, 0.0, 0.2, 0.0, 0.0],
            [0.0, 0.2, 0.5, 0.0, 0.3, 0.0],
        ];
        scene.correction = Some(SheetCorrection::new(terms, scene.surface.size_mm()).unwrap());
        judged(scene).1
    };
    assert_eq!(needle([0.0; 5], 0.2), []);
    assert_eq!(needle([1.0, 0.0, 0.0, 0.0, 1.0], 0.0), []);
    let deeper = needle([2.0; 5], 0.0);
    let is_sheet = |refusal: &GateRefusal| refusal.rule == GateRule::Sheet;
    assert!(deeper.iter().any(is_sheet), "{deeper:#?}");
}

#[test]
fn lets_a_correction_pass_over_from_pen_to_pen() {
    let library = SceneLibrary::new(None);
    let mut scene = Scene::clone(&library.scene("two_pens", None).unwrap());
    let terms = [
        [1.2, 0.4, 0.0, 0.0, 0.0, 0.0],
        [0.6, 0.0, -0.3, 0.0, 0.0, 0.0],
    ];
    scene.correction = Some(SheetCorrection::new(terms, scene.surface.size_mm()).unwrap());
    let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    assert_eq!(refusals(scene, &plan.trajectory), []);
}

/// Returns whether goals are refused that lead by a share of a correction of 1 mm in spans of one kind.
fn is_lead_refused(scene: &str, kind: SpanKind, fraction: f64) -> bool {
    let mut scene = Scene::clone(&SceneLibrary::new(None).scene(scene, None).unwrap());
    let shift = [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0; 6]];
    scene.correction = Some(SheetCorrection::new(shift, scene.surface.size_mm()).unwrap());
    let mut plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver)
        .unwrap()
        .trajectory;
    for span in plan.spans.iter().filter(|span| span.kind == kind) {
        for sample in span.first..span.end {
            let (goal, expected) = (plan.samples[sample], plan.reached[sample]);
            plan.samples[sample] = goal.zip(&expected, |goal, expected| {
                expected + (goal - expected) * fraction
            });
        }
    }
    let refused = refusals(scene, &plan);
    refused.iter().any(|refusal| refusal.rule == GateRule::Lead)
}

/// One pen has nothing to pass over to.
#[test]
fn lets_a_tip_lead_farther_only_between_two_pens_where_it_does_not_draw() {
    for (scene, kind, fraction, is_refused) in [
        ("default", SpanKind::Travel, 1.05, false),
        ("default", SpanKind::Travel, 1.3, true),
        ("default", SpanKind::Draw, 1.3, true),
        // Half of the way to where it is corrected.
        ("default", SpanKind::Draw, 0.5, false),
        ("two_pens", SpanKind::Travel, 1.3, false),
        ("two_pens", SpanKind::Travel, 1.8, true),
        ("two_pens", SpanKind::Draw, 1.05, false),
        ("two_pens", SpanKind::Draw, 1.3, true),
    ] {
        let refused = is_lead_refused(scene, kind, fraction);
        assert_eq!(refused, is_refused, "{scene} {kind:?} {fraction}");
    }
}

/// Random drawings of arms with random play, sag and correction: what is planned passes.
#[test]
fn lets_through_what_is_planned_for_any_calibration() {
    let config = ProptestConfig {
        cases: 24,
        rng_seed: RngSeed::Fixed(20_261_124),
        ..ProptestConfig::default()
    };
    let point = || [12.0..88.0, 12.0..88.0_f64];
    let line = prop::collection::vec(point(), 2..7);
    let drawing = prop::collection::vec(line, 1..5);
    let five = |most: f64| prop::array::uniform5(0.0..most);
    let terms = prop::array::uniform2(prop::array::uniform6(-0.25..0.25));
    let all = (drawing, five(1.5), five(0.3), terms);
    let judged = TestRunner::new(config).run(&all, |(lines, play_deg, sag, terms)| {
        let mut scene = calibrated(&play_deg, &sag);
        let size_mm = scene.surface.size_mm();
        scene.correction = Some(SheetCorrection::new(terms, size_mm).unwrap());
        let strokes: Vec<SheetStroke> = lines
            .into_iter()
            .map(|points_mm| SheetStroke {
                points_mm,
                pen: 0,
                source: "random".to_owned(),
                pause: None,
            })
            .collect();
        let order = scene.order;
        let plan = plan::draw_strokes(&scene, &scene.rest_rad, &strokes, order, &SilentObserver);
        let plan = plan.map_err(|error| TestCaseError::fail(error.to_string()))?;
        let refused = refusals(scene, &plan.trajectory);
        prop_assert!(refused.is_empty(), "{play_deg:?} {sag:?}: {refused:#?}");
        Ok(())
    });
    judged.unwrap();
}
