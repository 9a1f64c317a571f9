//! Tests what the gate lets through, what it refuses and by which rule, and what comes out of it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::units::{ArmMeasurement, ClockInstant, Finite, JointVector};
use gate::{
    CheckedTrajectory, Execution, ExecutionError, ExecutionStep, GateRule, RefusedTrajectory,
};
use nalgebra::{Point3, Unit, Vector3};
use permit::{MotionPermit, PermitRegistry};
use plan::{SilentObserver, SpanKind, Trajectory, TrajectorySpan};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngSeed, TestCaseResult};
use scene::PenHolder;
use scene::file::SheetFile;
use scene::{AxisAlignedBox, KeepOut, Scene, SceneLibrary, Surface, ToolKind};

/// Greatest lead of a goal over its joint, as time at full speed.
const LEASH_S: f64 = 0.15;

/// Frames that are sent as planned while no reading comes.
const BLIND_FRAMES: usize = 3;

/// More ticks than a goal may wait for a joint.
const HOLDS_MAX: usize = 40;

type Verdict = Result<CheckedTrajectory, RefusedTrajectory>;

/// The same cases on every run; `PROPTEST_CASES` may ask for fewer.
fn fixed(cases: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: cases.min(usual.cases),
        rng_seed: RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..usual
    }
}

/// The shipped practice drawing, planned once.
fn default_plan() -> &'static (Arc<Scene>, Trajectory) {
    static PLAN: OnceLock<(Arc<Scene>, Trajectory)> = OnceLock::new();
    PLAN.get_or_init(|| {
        let scene = SceneLibrary::new(None).scene("default", None).unwrap();
        let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
        (scene, plan.trajectory)
    })
}

fn seen(q: JointVector, at: ClockInstant) -> ArmMeasurement {
    ArmMeasurement {
        at,
        position_rad: q,
        velocity_rad_s: q.map(|_, _| 0.0),
        servos: Vec::new(),
    }
}

fn leave(scene: &Scene) -> MotionPermit {
    PermitRegistry::everything()
        .ask(scene, ClockInstant::ZERO)
        .unwrap()
}

/// With leave, and with the arm where the scene rests.
fn judge(scene: &Arc<Scene>, trajectory: Trajectory) -> Verdict {
    let start = seen(scene.rest_rad, ClockInstant::ZERO);
    gate::check(scene, leave(scene), &start, ClockInstant::ZERO, trajectory)
}

/// The default plan after a change to it.
fn judge_changed(change: impl FnOnce(&mut Trajectory)) -> Verdict {
    let (scene, trajectory) = default_plan();
    let mut changed = trajectory.clone();
    change(&mut changed);
    judge(scene, changed)
}

/// The default plan in a scene that is not the one it was planned for.
fn judge_in(change: impl FnOnce(&mut Scene)) -> Verdict {
    let (scene, trajectory) = default_plan();
    let mut changed = Scene::clone(scene);
    change(&mut changed);
    judge(&Arc::new(changed), trajectory.clone())
}

fn rules(verdict: &Verdict) -> Vec<GateRule> {
    verdict.as_ref().err().map_or_else(Vec::new, |refused| {
        refused.0.iter().map(|refusal| refusal.rule).collect()
    })
}

/// Checks that it was refused, by one of these rules at least.
fn refused_by(verdict: &Verdict, any_of: &[GateRule]) -> TestCaseResult {
    let refused = rules(verdict);
    let found = refused.iter().any(|rule| any_of.contains(rule));
    prop_assert!(found, "refused by {refused:?}; one of {any_of:?} was due");
    Ok(())
}

fn tip_m(scene: &Scene, q: &JointVector) -> Point3<f64> {
    scene.arm.chain.frames(q).tool * scene.pens[0].tip_m
}

fn height_mm(scene: &Scene, q: &JointVector) -> f64 {
    scene.surface.project(&tip_m(scene, q)).height_mm
}

/// Samples at which the tip draws.
fn drawn() -> Vec<usize> {
    let spans = default_plan().1.spans.iter();
    let draws = spans.filter(|span| span.kind == SpanKind::Draw);
    draws.flat_map(|span| span.first..span.end).collect()
}

/// The default scene's sheet, moved.
fn sheet(by_m: [f64; 3]) -> Surface {
    let text = include_str!("../../scenes/default.toml");
    let file: toml::Table = toml::from_str(text).unwrap();
    let mut sheet: SheetFile = file["sheet"].clone().try_into().unwrap();
    for (at, by) in sheet.origin_m.iter_mut().zip(by_m) {
        *at = Finite::new(at.get() + by).unwrap();
    }
    Surface::new(&sheet).unwrap()
}

/// Ends a trajectory before a sample.
fn cut(trajectory: &mut Trajectory, end: usize) {
    trajectory.samples.truncate(end);
    trajectory.spans.retain(|span| span.first < end);
    trajectory.spans.last_mut().unwrap().end = end;
}

#[test]
fn every_shipped_scene_passes() {
    let library = SceneLibrary::new(None);
    let names = library.scenes();
    assert!(names.len() >= 12, "{names:?}");
    for name in names {
        let scene = library.scene(&name, None).unwrap();
        // A canvas has no design; pens that a person changes are judged one by one, in `rules/pens.rs`.
        let is_by_hand = matches!(scene.holder, PenHolder::ByHand { .. });
        if scene.strokes.is_empty() || is_by_hand {
            continue;
        }
        let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let end = *plan.trajectory.reached().last().unwrap();
        judge(&scene, plan.trajectory).unwrap_or_else(|refused| panic!("{name}: {refused}"));
        let home = [scene.ready_rad, scene.rest_rad];
        let home = plan::go_to(&scene, &end, &home, &SilentObserver).unwrap();
        let home = gate::preview(&scene, &home.trajectory);
        home.unwrap_or_else(|refused| panic!("{name}, to its rest: {refused}"));
    }
}

#[test]
fn a_tip_faster_than_its_scene_allows_is_refused() {
    let verdict = judge_in(|scene| scene.limits.draw_mm_s /= 2.0);
    assert!(rules(&verdict).contains(&GateRule::TipSpeed));
}

#[test]
fn a_needle_near_the_surface_is_slow() {
    let verdict = judge_in(|scene| scene.pens[0].kind = ToolKind::Needle);
    let refused = verdict.unwrap_err();
    let speeds = refused
        .0
        .iter()
        .filter(|one| one.rule == GateRule::TipSpeed);
    let limits: Vec<f64> = speeds.map(|one| one.excess.unwrap().limit).collect();
    assert!(!limits.is_empty());
    // Nothing else is slower because of it.
    assert!(
        limits.iter().all(|limit| (limit - 25.0).abs() < 1e-9),
        "{limits:?}"
    );
    // Twenty millimetres away it is as fast as a pen.
    let far = judge_in(|scene| {
        scene.pens[0].kind = ToolKind::Needle;
        scene.surface = sheet([0.0, 0.0, -0.3]);
    });
    assert!(
        !rules(&far).contains(&GateRule::TipSpeed),
        "{:?}",
        rules(&far)
    );
}

#[test]
fn an_arm_without_parts_that_may_not_touch_is_judged_by_the_rest() {
    let verdict = judge_in(|scene| {
        let mut arm = arm::ArmModel::clone(&scene.arm);
        arm.capsules.clear();
        scene.arm = Arc::new(arm);
    });
    assert!(verdict.is_ok(), "{:?}", rules(&verdict));
}

#[test]
fn a_stop_that_cannot_lift_is_refused() {
    let verdict = judge_in(|scene| scene.heights.lift_mm = 500.0);
    assert_eq!(rules(&verdict), [GateRule::Stop]);
    assert!(verdict.unwrap_err().0[0].at_mm.is_some());
}

/// A limit that is missing or not a number does not limit anything.
#[test]
fn refuses_an_arm_without_a_limit_for_every_joint() {
    type Limit = fn(&mut arm::ArmLimits) -> &mut JointVector;
    let all: [(&str, Limit); 5] = [
        ("lower", |limits| &mut limits.lower_rad),
        ("upper", |limits| &mut limits.upper_rad),
        ("speed", |limits| &mut limits.velocity_rad_s),
        ("acceleration", |limits| &mut limits.acceleration_rad_s2),
        ("jerk", |limits| &mut limits.jerk_rad_s3),
    ];
    for (name, limit) in all {
        let spoilt: [fn(&JointVector) -> JointVector; 3] = [
            |original| JointVector::from_slice(&original[..4]),
            |original| original.map(|joint, at| if joint == 2 { f64::NAN } else { at }),
            |original| original.map(|joint, at| if joint == 2 { f64::INFINITY } else { at }),
        ];
        for spoil in spoilt {
            let verdict = judge_in(|scene| {
                let mut arm = arm::ArmModel::clone(&scene.arm);
                let original = limit(&mut arm.limits);
                *original = spoil(original);
                scene.arm = Arc::new(arm);
            });
            assert_eq!(rules(&verdict), [GateRule::Form], "{name}");
            let reason = &verdict.unwrap_err().0[0].why;
            assert!(
                reason.contains(name) && reason.contains("5 finite"),
                "{reason}"
            );
        }
    }
}

#[test]
fn a_sample_with_a_joint_too_few_is_refused() {
    let verdict = judge_changed(|plan| plan.samples[7] = JointVector::from_slice(&[0.0; 4]));
    assert_eq!(rules(&verdict), [GateRule::Form]);
}

#[test]
fn fewer_than_two_samples_are_refused() {
    assert_eq!(rules(&judge_changed(|plan| cut(plan, 1))), [GateRule::Form]);
    let none = judge_changed(|plan| {
        plan.samples.clear();
        plan.spans.clear();
    });
    assert_eq!(rules(&none), [GateRule::Form]);
}

#[test]
fn a_span_that_is_empty_or_without_a_pen_is_refused() {
    let empty = judge_changed(|plan| {
        let mut nothing = plan.spans[0].clone();
        nothing.end = nothing.first;
        plan.spans.insert(0, nothing);
    });
    assert_eq!(rules(&empty), [GateRule::Form]);
    let unarmed = judge_changed(|plan| plan.spans[1].pen = 99);
    assert_eq!(rules(&unarmed), [GateRule::Form]);
}

#[test]
fn a_lean_is_held_against_a_pen_beyond_rounding_alone() {
    let (scene, trajectory) = default_plan();
    let under = scene.surface.at([0.0, 0.0]).normal;
    let leans = drawn().into_iter().map(|sample| {
        let axis = scene.arm.chain.frames(&trajectory.samples[sample]).tool * scene.pens[0].axis;
        (-axis.dot(&under)).clamp(-1.0, 1.0).acos()
    });
    let most = leans.fold(0.0, f64::max);
    for (fraction, refused) in [(1.0005, false), (1.002, true)] {
        let verdict = judge_in(|scene| scene.pens[0].cone_rad = most / fraction);
        assert_eq!(
            rules(&verdict).contains(&GateRule::Tilt),
            refused,
            "{fraction}"
        );
    }
}

#[test]
fn a_start_that_is_not_a_number_is_refused() {
    let (scene, trajectory) = default_plan();
    for joint in 0..scene.arm.dof() {
        let mut at = scene.rest_rad;
        at[joint] = f64::NAN;
        let start = seen(at, ClockInstant::ZERO);
        let verdict = gate::check(
            scene,
            leave(scene),
            &start,
            ClockInstant::ZERO,
            trajectory.clone(),
        );
        assert_eq!(rules(&verdict), [GateRule::Start]);
    }
}

#[test]
fn a_start_with_a_joint_too_few_is_refused() {
    let (scene, trajectory) = default_plan();
    for joints in 0..scene.arm.dof() {
        let start = seen(
            JointVector::from_slice(&scene.rest_rad[..joints]),
            ClockInstant::ZERO,
        );
        let verdict = gate::check(
            scene,
            leave(scene),
            &start,
            ClockInstant::ZERO,
            trajectory.clone(),
        );
        assert_eq!(rules(&verdict), [GateRule::Start], "{joints} joints");
    }
}

#[test]
fn calling_it_a_dip_does_not_let_a_tip_through_the_sheet() {
    let (scene, trajectory) = default_plan();
    assert!(scene.inks.is_empty());
    let mut raised = Scene::clone(scene);
    raised.surface = sheet([0.0, 0.0, 0.003]);
    let mut dips = trajectory.clone();
    for span in &mut dips.spans {
        span.kind = SpanKind::Dip;
    }
    let verdict = judge(&Arc::new(raised), dips);
    assert!(
        rules(&verdict).contains(&GateRule::Sheet),
        "{:?}",
        rules(&verdict)
    );
}

proptest! {
    #![proptest_config(fixed(24))]

    #[test]
    fn a_number_that_is_none_is_refused(
        at in any::<Index>(), joint in 0_usize..5,
        bad in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
    ) {
        let verdict = judge_changed(|plan| at.get_mut(&mut plan.samples)[joint] = bad);
        refused_by(&verdict, &[GateRule::Form])?;
    }

    #[test]
    fn a_joint_beyond_its_limit_is_refused(
        at in any::<Index>(), joint in 0_usize..5, up in any::<bool>(), by_rad in 0.001..2.0_f64,
    ) {
        let limits = default_plan().0.arm.limits;
        let verdict = judge_changed(|plan| {
            // An arm that stands beyond a limit may get away from it: not the first.
            at.get_mut(&mut plan.samples[1..])[joint] = if up {
                limits.upper_rad[joint] + by_rad
            } else {
                limits.lower_rad[joint] - by_rad
            };
        });
        refused_by(&verdict, &[GateRule::JointLimit])?;
    }

    #[test]
    fn a_sample_out_of_line_is_refused(
        at in any::<Index>(), joint in 0_usize..5, up in any::<bool>(),
    ) {
        let by_rad = if up { 0.3 } else { -0.3 };
        let verdict = judge_changed(|plan| at.get_mut(&mut plan.samples)[joint] += by_rad);
        refused_by(&verdict, &[GateRule::JointSpeed, GateRule::JointAcceleration])?;
    }

    #[test]
    fn a_sample_repeated_in_the_middle_of_a_motion_is_refused(at in any::<Index>()) {
        let (scene, trajectory) = default_plan();
        let at = *at.get(&hurried(scene, trajectory));
        let verdict = judge_changed(|plan| plan.samples[at] = plan.samples[at - 1]);
        refused_by(&verdict, &[GateRule::JointAcceleration])?;
    }

    #[test]
    fn an_end_in_motion_is_refused(at in any::<Index>()) {
        let (scene, trajectory) = default_plan();
        let at = *at.get(&hurried(scene, trajectory));
        refused_by(&judge_changed(|plan| cut(plan, at + 1)), &[GateRule::JointAcceleration])?;
    }

    #[test]
    fn the_same_path_in_half_the_time_is_refused(ms in 2_u64..6) {
        let verdict = judge_changed(|plan| plan.period = Duration::from_millis(ms));
        refused_by(&verdict, &[GateRule::JointSpeed, GateRule::JointAcceleration])?;
        refused_by(&verdict, &[GateRule::TipSpeed])?;
    }

    #[test]
    fn a_period_that_no_servo_keeps_is_refused(
        period in prop_oneof![
            Just(Duration::ZERO), Just(Duration::from_secs(1)), Just(Duration::MAX),
            (1_u64..2_000_000).prop_map(Duration::from_nanos),
            (50_000_001_u64..u64::MAX).prop_map(Duration::from_nanos),
        ],
    ) {
        refused_by(&judge_changed(|plan| plan.period = period), &[GateRule::Form])?;
    }

    #[test]
    fn a_sheet_higher_than_planned_is_refused(by_mm in 0.5..10.0_f64) {
        let verdict = judge_in(|scene| scene.surface = sheet([0.0, 0.0, by_mm / 1e3]));
        refused_by(&verdict, &[GateRule::Sheet])?;
    }

    #[test]
    fn a_keep_out_in_the_way_is_refused(at in any::<Index>(), half_mm in 0.1..15.0_f64) {
        let (scene, trajectory) = default_plan();
        let tip = tip_m(scene, &trajectory.samples[*at.get(&drawn())]);
        let half = Vector3::repeat(half_mm / 1e3);
        let corners = AxisAlignedBox { min_m: tip - half, max_m: tip + half };
        let verdict = judge_in(|scene| {
            scene.keep_outs.push(KeepOut { name: "cup".to_owned(), corners });
        });
        refused_by(&verdict, &[GateRule::KeepOut])?;
    }

    #[test]
    fn a_workspace_too_small_is_refused(at in any::<Index>(), by_mm in 0.1..20.0_f64) {
        let (scene, trajectory) = default_plan();
        let tip = tip_m(scene, &trajectory.samples[*at.get(&drawn())]);
        let verdict = judge_in(|scene| scene.limits.workspace.min_m.z = tip.z + by_mm / 1e3);
        refused_by(&verdict, &[GateRule::Workspace])?;
    }

    #[test]
    fn a_pen_that_leans_is_refused(about_rad in 0.0..std::f64::consts::TAU, beyond_rad in 0.02..0.5_f64) {
        let verdict = judge_in(|scene| {
            let pen = &mut scene.pens[0];
            let lean = (2.0 * pen.cone_rad + beyond_rad).tan();
            let sideways = pen.axis.cross(&Vector3::x()).normalize();
            let other = pen.axis.cross(&sideways);
            let way = sideways * about_rad.cos() + other * about_rad.sin();
            pen.axis = Unit::new_normalize(pen.axis.into_inner() + way * lean);
        });
        refused_by(&verdict, &[GateRule::Tilt])?;
    }

    #[test]
    fn spans_that_do_not_fit_are_refused(
        which in any::<Index>(), how in 0_usize..7, by in 1_usize..50,
    ) {
        let verdict = judge_changed(|plan| misfit(&mut plan.spans, which, how, by));
        refused_by(&verdict, &[GateRule::Form])?;
    }

    #[test]
    fn an_arm_that_is_elsewhere_is_refused(
        joint in 0_usize..5, up in any::<bool>(), by_rad in 0.0201..3.0_f64,
    ) {
        let (scene, trajectory) = default_plan();
        let mut at = scene.rest_rad;
        at[joint] += if up { by_rad } else { -by_rad };
        let start = seen(at, ClockInstant::ZERO);
        let verdict = gate::check(scene, leave(scene), &start, ClockInstant::ZERO, trajectory.clone());
        refused_by(&verdict, &[GateRule::Start])?;
    }

    #[test]
    fn a_reading_that_is_old_is_refused(age_ms in 251_u64..5_000) {
        let (scene, trajectory) = default_plan();
        let start = seen(scene.rest_rad, ClockInstant::ZERO);
        let now = ClockInstant::ZERO.after(Duration::from_millis(age_ms));
        let verdict = gate::check(scene, leave(scene), &start, now, trajectory.clone());
        refused_by(&verdict, &[GateRule::Start])?;
    }

    #[test]
    fn a_permit_that_ends_before_the_motion_is_refused(
        lasts_ms in 1_u64..24_000, late_ms in 0_u64..60_000,
    ) {
        let (scene, trajectory) = default_plan();
        prop_assume!(Duration::from_millis(lasts_ms) < trajectory.duration());
        let permits = PermitRegistry::none();
        permits.enable(scene, ClockInstant::ZERO, Some(Duration::from_millis(lasts_ms)), 0).unwrap();
        let permit = permits.ask(scene, ClockInstant::ZERO).unwrap();
        let now = ClockInstant::ZERO.after(Duration::from_millis(late_ms));
        let verdict = gate::check(scene, permit, &seen(scene.rest_rad, now), now, trajectory.clone());
        refused_by(&verdict, &[GateRule::Enabled])?;
    }

    #[test]
    fn a_permit_for_another_scene_is_refused(
        other in prop::sample::select(vec!["a5_sheet", "letters", "two_pens", "calibration"]),
    ) {
        let (scene, trajectory) = default_plan();
        let other = SceneLibrary::new(None).scene(other, None).unwrap();
        let start = seen(scene.rest_rad, ClockInstant::ZERO);
        let verdict = gate::check(scene, leave(&other), &start, ClockInstant::ZERO, trajectory.clone());
        refused_by(&verdict, &[GateRule::Enabled])?;
    }
}

/// Samples that a joint reaches at such a speed that it cannot stand at the next.
fn hurried(scene: &Scene, trajectory: &Trajectory) -> Vec<usize> {
    let period = trajectory.period.as_secs_f64();
    let hardest = scene.arm.limits.acceleration_rad_s2;
    let pairs = trajectory.samples.windows(2).enumerate();
    let hurried = pairs.filter(|(_, pair)| {
        let push = pair[1].zip(&pair[0], |b, a| (b - a).abs() / period.powi(2));
        push.iter().zip(hardest.iter()).any(|(a, b)| *a > b * 1.01)
    });
    hurried.map(|(before, _)| before + 1).collect()
}

/// One of the ways in which spans may not fit their samples.
fn misfit(spans: &mut Vec<TrajectorySpan>, which: Index, how: usize, by: usize) {
    let at = which.index(spans.len());
    match how {
        0 => drop(spans.remove(at)),
        1 => spans[at].end += by,
        2 => spans[at].end -= by.min(spans[at].end),
        3 => spans[at].first += by,
        4 => spans[at].pen = by,
        5 => spans.insert(at, spans[at].clone()),
        _ => spans.truncate(at),
    }
}

fn begun() -> Execution {
    let (scene, trajectory) = default_plan();
    let start = seen(scene.rest_rad, ClockInstant::ZERO);
    let checked = judge(scene, trajectory.clone()).unwrap();
    checked.begin(&start, ClockInstant::ZERO).unwrap()
}

/// The end of a run, and every goal from the start on.
struct Run {
    goals: Vec<JointVector>,
    broken: Option<ExecutionError>,
    execution: Execution,
    now: ClockInstant,
}

/// Runs the default plan to its end. `follow` says where the arm is from tick and goal.
fn run(stop_at: Option<usize>, follow: impl Fn(usize, &JointVector) -> JointVector) -> Run {
    let (scene, trajectory) = default_plan();
    let mut run = Run {
        goals: vec![scene.rest_rad],
        broken: None,
        execution: begun(),
        now: ClockInstant::ZERO,
    };
    let ticks_max = trajectory.samples.len() + 1_000;
    for tick in 0..ticks_max {
        if stop_at == Some(tick) {
            run.execution.stop();
        }
        run.now = run.now.after(trajectory.period);
        let is = follow(tick, run.goals.last().unwrap());
        match run.execution.next(&seen(is, run.now), run.now) {
            Ok(ExecutionStep::Go(setpoint)) => run.goals.push(*setpoint.goal_rad()),
            Ok(ExecutionStep::Hold) => {}
            Ok(ExecutionStep::Finished) => return run,
            Err(broken) => {
                run.broken = Some(broken);
                return run;
            }
        }
    }
    panic!("not at its end after {ticks_max} ticks");
}

fn assert_within_limits(scene: &Scene, goals: &[JointVector], period_s: f64) {
    let limits = scene.arm.limits;
    for joint in 0..scene.arm.dof() {
        for goal in goals {
            assert!(goal[joint] >= limits.lower_rad[joint] - 1e-6);
            assert!(goal[joint] <= limits.upper_rad[joint] + 1e-6);
        }
        let most = limits.velocity_rad_s[joint] * period_s * 1.001;
        for pair in goals.windows(2) {
            let step = (pair[1][joint] - pair[0][joint]).abs();
            assert!(step <= most, "joint {joint}: {step} rad in a tick; {most}");
        }
    }
}

/// The hardest acceleration of any joint, as a share of its limit; the arm stands afterwards.
fn hardest_push(scene: &Scene, goals: &[JointVector], period_s: f64) -> f64 {
    let last = *goals.last().unwrap();
    let goals: Vec<JointVector> = goals.iter().copied().chain([last]).collect();
    let limits = scene.arm.limits.acceleration_rad_s2;
    let shares = goals.windows(3).flat_map(|three| {
        (0..limits.len()).map(move |joint| {
            let change = three[2][joint] - 2.0 * three[1][joint] + three[0][joint];
            change.abs() / period_s.powi(2) / limits[joint]
        })
    });
    shares.fold(0.0, f64::max)
}

#[test]
fn an_arm_that_follows_is_sent_every_sample_within_its_limits() {
    let (scene, trajectory) = default_plan();
    let run = run(None, |_, goal| *goal);
    assert_eq!(run.broken, None);
    assert!(!run.execution.was_stopped());
    assert_eq!(run.goals, trajectory.samples);
    assert_within_limits(scene, &run.goals, trajectory.period.as_secs_f64());
}

/// A joint that stays where it was at a tick, the others following; every goal is on the leash.
fn blocked(joint: usize, from_tick: usize) -> Run {
    let (scene, trajectory) = default_plan();
    let stuck_at = trajectory.samples[from_tick.min(trajectory.samples.len() - 1)][joint];
    let run = run(None, |tick, goal| {
        let mut is = *goal;
        if tick >= from_tick {
            is[joint] = stuck_at;
        }
        is
    });
    let fastest = scene.arm.limits.velocity_rad_s[joint];
    let leash = fastest * (LEASH_S + trajectory.period.as_secs_f64());
    for goal in run.goals.iter().skip(from_tick + 1) {
        let ahead = (goal[joint] - stuck_at).abs();
        assert!(ahead <= leash, "{ahead} rad ahead; {leash} is the leash");
    }
    run
}

#[test]
fn a_joint_that_never_follows_ends_the_motion() {
    let (scene, trajectory) = default_plan();
    let mut ended = 0;
    for joint in 0..scene.arm.dof() {
        let goes = trajectory
            .samples
            .iter()
            .map(|q| (q[joint] - scene.rest_rad[joint]).abs())
            .fold(0.0, f64::max);
        let run = blocked(joint, 0);
        // Nothing is known of a joint that is to move by less.
        if goes.to_degrees() <= 2.0 {
            assert_eq!(run.broken, None);
            continue;
        }
        ended += 1;
        let named = unfollowing_joint(run.broken.as_ref());
        assert_eq!(named, Some(scene.arm.joint_name(joint)), "{:?}", run.broken);
        let waited = run.now.since(ClockInstant::ZERO).as_millis() / trajectory.period.as_millis();
        let waited = usize::try_from(waited).unwrap() - run.goals.len();
        assert!(waited < HOLDS_MAX, "{waited} ticks waited");
    }
    assert!(ended >= 4, "only {ended} joints go far");
}

/// Returns the joint that an error says does not follow.
fn unfollowing_joint(error: Option<&ExecutionError>) -> Option<String> {
    match error? {
        ExecutionError::Stalled { joint, .. }
        | ExecutionError::Unmoved { joint, .. }
        | ExecutionError::Limp { joint, .. } => Some(joint.clone()),
        _ => None,
    }
}

#[test]
fn an_arm_that_is_not_heard_ends_the_motion() {
    let period = default_plan().1.period;
    let mut execution = begun();
    let last = seen(default_plan().0.rest_rad, ClockInstant::ZERO);
    let (mut now, mut sent, mut reach) = (ClockInstant::ZERO, 0, 0);
    let broken = loop {
        now = now.after(period);
        match execution.next(&last, now) {
            Ok(step) => {
                assert!(now < ClockInstant::ZERO.after(Duration::from_secs(1)));
                sent += usize::from(matches!(step, ExecutionStep::Go(_)));
            }
            Err(broken) => break broken,
        }
        if sent <= BLIND_FRAMES {
            reach = execution.next_reach();
        }
    };
    // Then the ramp to a stand: the rate falls evenly, so it takes twice the samples it passes.
    let ramp = 2 * (reach - BLIND_FRAMES);
    assert!(
        (BLIND_FRAMES..=BLIND_FRAMES + ramp).contains(&sent),
        "{sent} frames without a reading; {BLIND_FRAMES} and {ramp} of the ramp are due"
    );
    assert!(
        matches!(broken, ExecutionError::Blind(100..=120)),
        "{broken:?}"
    );
}

#[test]
fn a_proof_does_not_begin_elsewhere_or_late() {
    let (scene, trajectory) = default_plan();
    let mut away = scene.rest_rad;
    away[0] += 0.1;
    let moved = judge(scene, trajectory.clone()).unwrap();
    let moved = moved.begin(&seen(away, ClockInstant::ZERO), ClockInstant::ZERO);
    assert!(matches!(moved, Err(ExecutionError::Moved(_))));

    let lasts = trajectory.duration() + Duration::from_secs(1);
    let permits = PermitRegistry::none();
    permits
        .enable(scene, ClockInstant::ZERO, Some(lasts), 0)
        .unwrap();
    let permit = permits.ask(scene, ClockInstant::ZERO).unwrap();
    let start = seen(scene.rest_rad, ClockInstant::ZERO);
    let checked = gate::check(
        scene,
        permit,
        &start,
        ClockInstant::ZERO,
        trajectory.clone(),
    )
    .unwrap();
    let late = ClockInstant::ZERO.after(lasts);
    let late = checked.begin(&seen(scene.rest_rad, late), late);
    assert_eq!(late.unwrap_err(), ExecutionError::Expired);
}

/// The arm turned about its foot from one side to a place that it draws, and nothing else.
fn turn_in(from_aside_rad: f64) -> Trajectory {
    const STEPS: u32 = 400;
    let (_, trajectory) = default_plan();
    let to = trajectory.samples[drawn()[0]];
    let samples: Vec<JointVector> = (0..=STEPS)
        .map(|step| {
            let way = f64::from(step) / f64::from(STEPS);
            let left = 1.0 - way * way * (3.0 - 2.0 * way);
            to.map(|joint, at| {
                at + if joint == 0 {
                    from_aside_rad * left
                } else {
                    0.0
                }
            })
        })
        .collect();
    let span = TrajectorySpan {
        kind: SpanKind::Travel,
        item: None,
        pen: 0,
        first: 0,
        end: samples.len(),
    };
    Trajectory {
        reached: Vec::new(),
        period: trajectory.period,
        samples,
        spans: vec![span],
    }
}

#[test]
fn a_tip_that_comes_in_below_the_sheet_from_its_side_is_refused() {
    for from_aside_rad in [-1.3, 1.3] {
        let turn = turn_in(from_aside_rad);
        let mut raised = Scene::clone(&default_plan().0);
        raised.surface = sheet([0.0, 0.0, 0.01]);
        let start = seen(turn.samples[0], ClockInstant::ZERO);
        let beside = raised.surface.project(&tip_m(&raised, &turn.samples[0]));
        assert!(beside.at_mm[0] < -30.0 || beside.at_mm[0] > 130.0);
        let raised = Arc::new(raised);
        let verdict = gate::check(&raised, leave(&raised), &start, ClockInstant::ZERO, turn);
        let refused = rules(&verdict);
        assert!(refused.contains(&GateRule::Sheet), "refused by {refused:?}");
    }
}

#[test]
fn a_reading_with_a_joint_too_few_is_not_taken_for_an_arm_that_follows() {
    let period = default_plan().1.period;
    let (mut execution, mut now) = (begun(), ClockInstant::ZERO);
    let broken = loop {
        now = now.after(period);
        match execution.next(&seen(JointVector::zeros(0), now), now) {
            Ok(ExecutionStep::Finished) => panic!("it ran to its end"),
            Ok(_) => assert!(now < ClockInstant::ZERO.after(Duration::from_secs(1))),
            Err(broken) => break broken,
        }
    };
    assert!(
        now < ClockInstant::ZERO.after(Duration::from_secs(1)),
        "{broken}"
    );
}

/// A joint bent smoothly over a stretch of a motion until the tip is so low in its middle.
fn bent(trajectory: &mut Trajectory, middle: usize, joint: usize, height: f64) -> bool {
    const HALF: usize = 60;
    let (scene, _) = default_plan();
    let with =
        |q: &JointVector, by: f64| q.map(|at, angle| if at == joint { angle + by } else { angle });
    let q = trajectory.samples[middle];
    let lowers = |by: f64| height_mm(scene, &with(&q, by)) <= height;
    let Some(by) = (1..200)
        .flat_map(|step| [f64::from(step) * 2e-3, f64::from(step) * -2e-3])
        .find(|by| lowers(*by))
    else {
        return false;
    };
    for (index, q) in trajectory.samples.iter_mut().enumerate() {
        let off = index.abs_diff(middle) as f64 / HALF as f64;
        if off < 1.0 {
            *q = with(q, by * (1.0 - off * off).powi(4));
        }
    }
    true
}

proptest! {
    #![proptest_config(fixed(16))]

    /// With the pen up, at any place of any way, the tip may not come below the sheet.
    #[test]
    fn a_way_with_the_pen_up_that_dips_into_the_sheet_is_refused(
        at in any::<Index>(), joint in 1_usize..4, deep_mm in 0.4..4.0_f64,
    ) {
        let (scene, trajectory) = default_plan();
        let over = |q: &JointVector| (0.0..40.0).contains(&height_mm(scene, q));
        let travels = trajectory.spans.iter().filter(|span| span.kind == SpanKind::Travel);
        let middles: Vec<usize> = travels
            .flat_map(|span| span.first..span.end)
            .filter(|sample| over(&trajectory.samples[*sample]))
            .collect();
        let middle = *at.get(&middles);
        let mut plan = trajectory.clone();
        prop_assume!(bent(&mut plan, middle, joint, -deep_mm));
        refused_by(&judge(scene, plan), &[GateRule::Sheet])?;
    }
}

/// Cages the hand in cubes that drawing is clear of, and the lift that a stop would make is not: as
/// many as there is room for, so that no other way up leads around them.
#[test]
fn a_lift_that_would_run_into_something_is_refused() {
    let (scene, trajectory) = default_plan();
    let here = trajectory.samples[drawn()[0]];
    let standing = Trajectory {
        reached: Vec::new(),
        samples: vec![here; 2],
        spans: vec![TrajectorySpan {
            kind: SpanKind::Draw,
            item: Some(0),
            pen: 0,
            first: 0,
            end: 2,
        }],
        ..trajectory.clone()
    };
    let refused = |scene: &Scene| -> Vec<GateRule> { rules(&judge_standing(scene, &standing)) };
    assert_eq!(refused(scene), []);
    let mut caged = Scene::clone(scene);
    let tip = tip_m(scene, &here);
    let steps = || (-4..=4).map(|step| f64::from(step) * 0.014);
    let places = steps().flat_map(|x| steps().map(move |y| (x, y)));
    for (place, z) in places.flat_map(|(x, y)| (1..9).map(move |up| ([x, y], f64::from(up)))) {
        let middle = tip + Vector3::new(place[0], place[1], z * 0.014);
        let half = Vector3::repeat(0.006);
        caged.keep_outs.push(KeepOut {
            name: "cube".to_owned(),
            corners: AxisAlignedBox {
                min_m: middle - half,
                max_m: middle + half,
            },
        });
        if refused(&caged).contains(&GateRule::KeepOut) {
            caged.keep_outs.pop();
        }
    }
    assert_eq!(
        refused(&caged),
        [GateRule::Stop],
        "{} cubes",
        caged.keep_outs.len()
    );
}

fn judge_standing(scene: &Scene, standing: &Trajectory) -> Verdict {
    let scene = Arc::new(scene.clone());
    let start = seen(standing.samples[0], ClockInstant::ZERO);
    gate::check(
        &scene,
        leave(&scene),
        &start,
        ClockInstant::ZERO,
        standing.clone(),
    )
}

/// A second pen in the holder may not come near the sheet either.
#[test]
fn a_pen_that_does_not_draw_is_kept_above_the_sheet() {
    let scene = SceneLibrary::new(None).scene("two_pens", None).unwrap();
    let plan = plan::draw(&scene, &scene.rest_rad, &SilentObserver).unwrap();
    let mut idle = 0;
    for index in 0..scene.pens.len() {
        let mut longer = Scene::clone(&scene);
        let pen = &mut longer.pens[index];
        pen.tip_m += pen.axis.scale(0.08);
        let tip_m = pen.tip_m;
        let height_mm = |q: &JointVector| {
            let tip = scene.arm.chain.point(q, &tip_m);
            scene.surface.project(&tip).height_mm
        };
        let refused = gate::preview(&Arc::new(longer), &plan.trajectory).unwrap_err();
        let named = |one: &&gate::GateRefusal| one.why.contains("not draw");
        for one in refused.0.iter().filter(named) {
            idle += 1;
            assert_eq!(one.rule, GateRule::Sheet);
            let said_mm = one.excess.unwrap().value;
            let is_mm = height_mm(&plan.trajectory.samples[one.sample]);
            assert!((said_mm - is_mm).abs() < 0.01, "{one:?}: {is_mm}");
            let below = format!("{} mm below", base::units::short(-said_mm));
            let near = said_mm >= 0.0 && one.why.contains("mm of the");
            assert!(near || one.why.contains(&below), "{one:?}");
        }
    }
    assert!(idle > 0);
}

proptest! {
    #![proptest_config(fixed(12))]

    #[test]
    fn a_joint_that_gives_up_is_left_within_the_leash(at in any::<Index>(), joint in 0_usize..5) {
        let (scene, trajectory) = default_plan();
        let run = blocked(joint, at.index(trajectory.samples.len()));
        match &run.broken {
            None => prop_assert_eq!(run.goals.len(), trajectory.samples.len()),
            broken => {
                let named = unfollowing_joint(broken.as_ref());
                prop_assert_eq!(named, Some(scene.arm.joint_name(joint)), "{:?}", broken);
            }
        }
    }

    #[test]
    fn a_stop_is_gentle_lifts_and_is_the_end(at in any::<Index>(), drawing in any::<bool>()) {
        let (scene, trajectory) = default_plan();
        let stop_at = if drawing {
            *at.get(&drawn())
        } else {
            at.index(trajectory.samples.len())
        };
        let mut run = run(Some(stop_at), |_, goal| *goal);
        prop_assert_eq!(&run.broken, &None);
        prop_assert!(run.execution.was_stopped());
        let last = *run.goals.last().unwrap();
        for _ in 0..5 {
            run.now = run.now.after(trajectory.period);
            let next = run.execution.next(&seen(last, run.now), run.now);
            prop_assert!(matches!(next, Ok(ExecutionStep::Finished)), "{next:?}");
        }
        let period_s = trajectory.period.as_secs_f64();
        assert_within_limits(scene, &run.goals, period_s);
        let push = hardest_push(scene, &run.goals, period_s);
        prop_assert!(push <= 2.0, "{push} of the acceleration limit");
        if trajectory.span_at(stop_at).unwrap().kind == SpanKind::Draw {
            let height = height_mm(scene, &last);
            prop_assert!(run.execution.has_lifted());
            prop_assert!(height >= scene.heights.lift_mm - 1.0, "{height} mm over the sheet");
        }
    }
}
