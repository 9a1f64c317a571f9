//! Tests of a pen's depth that is trimmed while it draws.

use super::*;

const MOST_MM: f64 = 0.3;

/// Returns the default drawing in a scene with a trim, and when its first stroke is under way.
pub(super) fn trimmable(change: impl FnOnce(&mut Scene)) -> (Arc<Scene>, Trajectory, usize) {
    let (scene, trajectory) = drawing();
    let mut scene = Scene::clone(scene);
    scene.heights.depth_trim_mm = MOST_MM;
    change(&mut scene);
    let mut spans = trajectory.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    (Arc::new(scene), trajectory.clone(), draw.first + 20)
}

pub(super) fn checked(
    scene: &Arc<Scene>,
    trajectory: &Trajectory,
) -> Result<CheckedTrajectory, RefusedTrajectory> {
    let start = reading(*trajectory.samples.first().unwrap(), ClockInstant::ZERO);
    check(
        scene,
        permit(scene),
        &start,
        ClockInstant::ZERO,
        trajectory.clone(),
    )
}

/// Runs a motion with `act` before each tick, and returns each goal with the sample that it belongs to.
pub(super) fn run(
    execution: &mut Execution,
    mut act: impl FnMut(&mut Execution, &ArmMeasurement, ClockInstant),
) -> Vec<(usize, JointVector)> {
    let trajectory = execution.checked().trajectory().clone();
    let (mut now, mut goals) = (ClockInstant::ZERO, Vec::new());
    loop {
        now = next_tick(now, &trajectory);
        let measured = reading(*execution.goal_rad(), now);
        act(execution, &measured, now);
        match execution.next(&measured, now).unwrap() {
            ExecutionStep::Go(_) => {
                goals.push((execution.progress().sample, *execution.goal_rad()));
            }
            ExecutionStep::Hold => {}
            ExecutionStep::Finished => return goals,
        }
    }
}

#[test]
fn a_trim_moves_the_pen_slowly_within_its_bound_and_ends_as_planned() {
    for target_mm in [MOST_MM, -MOST_MM] {
        let (scene, trajectory, at) = trimmable(|_| {});
        let start = reading(*trajectory.samples.first().unwrap(), ClockInstant::ZERO);
        let checked = checked(&scene, &trajectory).unwrap();
        let mut execution = checked.begin(&start, ClockInstant::ZERO).unwrap();
        let goals = run(&mut execution, |execution, _, _| {
            if execution.progress().sample == at {
                let change = DepthTrimChange::To(target_mm);
                execution.change_depth_trim(change).unwrap();
            }
        });
        let tip_mm = |q: &JointVector| clearance::tip_m(&scene, 0, q).unwrap().z * 1e3;
        let planned = |sample: usize| tip_mm(trajectory.samples.get(sample).unwrap());
        let deeper_mm = goals
            .iter()
            .map(|(sample, goal)| planned(*sample) - tip_mm(goal));
        let deeper_mm: Vec<f64> = deeper_mm.collect();
        let period_s = trajectory.period.as_secs_f64();
        for pair in deeper_mm.windows(2) {
            let [before, now] = pair else { continue };
            assert!((now - before).abs() / period_s < 1.1, "{before} {now}");
        }
        let furthest = |a: f64, b: &f64| if b.abs() > a.abs() { *b } else { a };
        let most_mm = deeper_mm.iter().fold(0.0, furthest);
        assert!((most_mm - target_mm).abs() < 0.005, "{most_mm}");
        let first = goals.iter().position(|(sample, _)| *sample >= at).unwrap();
        assert!(deeper_mm.iter().take(first).all(|mm| mm.abs() < 1e-9));
        let soon = deeper_mm.get(first + 3).unwrap();
        assert!(soon * target_mm > 0.0, "it acts within some ticks: {soon}");
        let last = goals.last().unwrap().1;
        let off_rad = last.distance_max(trajectory.samples.last().unwrap());
        assert!(off_rad < 1e-9, "{off_rad}");
    }
}

#[test]
fn a_hold_and_a_stop_lift_the_pen_from_where_it_was_trimmed_to() {
    let (scene, trajectory, at) = trimmable(|_| {});
    let start = reading(*trajectory.samples.first().unwrap(), ClockInstant::ZERO);
    let checked = checked(&scene, &trajectory).unwrap();
    let mut execution = checked.begin(&start, ClockInstant::ZERO).unwrap();
    let mut resumes = 0;
    let goals = run(&mut execution, |execution, measured, now| {
        let sample = execution.progress().sample;
        if sample == at {
            let change = DepthTrimChange::By(MOST_MM);
            drop(execution.change_depth_trim(change));
        }
        if sample == at + 50 && resumes == 0 {
            execution.hold(HoldAt::Once);
        }
        if execution.is_held() {
            execution.resume(measured, permit(&scene), now).unwrap();
            resumes += 1;
        }
        if sample >= at + 120 {
            execution.stop();
            let late = execution.change_depth_trim(DepthTrimChange::To(0.0));
            assert_eq!(late, Err(DepthTrimError::NotDrawing));
        }
    });
    assert!(resumes == 1 && execution.has_lifted(), "{resumes}");
    let limits = scene.arm.limits;
    for window in goals.windows(2) {
        let [(_, a), (_, b)] = window else { continue };
        let steps = b.zip(a, |b, a| (b - a).abs() / trajectory.period.as_secs_f64());
        let mut both = steps.iter().zip(limits.velocity_rad_s.iter());
        assert!(both.all(|(speed, limit)| speed <= limit));
    }
    let height_mm = execution.tip_height_mm(execution.goal_rad()).unwrap();
    assert!(
        height_mm > scene.heights.lift_mm - 2.0 * MOST_MM,
        "{height_mm}"
    );
}

#[test]
fn a_drawing_is_refused_where_a_trim_could_bring_the_pen_too_low() {
    let tip_z = |q: &JointVector| clearance::tip_m(&drawing().0, 0, q).unwrap().z;
    let lowest_m = drawing()
        .1
        .samples
        .iter()
        .map(tip_z)
        .fold(f64::INFINITY, f64::min);
    let above = |mm: f64| {
        let (scene, trajectory, _) = trimmable(|scene| {
            scene.limits.workspace.min_m.z = lowest_m - mm / 1e3;
        });
        checked(&scene, &trajectory).map(|_| ())
    };
    assert_eq!(above(MOST_MM + 0.01), Ok(()));
    let refused = above(MOST_MM - 0.05).unwrap_err();
    let refusal = refused.0.first().unwrap();
    assert_eq!(refusal.rule, GateRule::Workspace);
    assert!(refusal.why.contains("depth_trim_mm"), "{}", refusal.why);
}

#[test]
fn a_scene_without_a_bound_allows_no_trim() {
    let (scene, trajectory, _) = trimmable(|scene| scene.heights.depth_trim_mm = 0.0);
    let start = reading(*trajectory.samples.first().unwrap(), ClockInstant::ZERO);
    let checked = checked(&scene, &trajectory).unwrap();
    let mut execution = checked.begin(&start, ClockInstant::ZERO).unwrap();
    assert_eq!(execution.depth_trim(), None);
    let refused = execution.change_depth_trim(DepthTrimChange::By(-0.1));
    assert!(matches!(refused, Err(DepthTrimError::NotAllowed(_))));
}

/// On round, bumpy and led paths the copies pass wherever their plans do.
#[test]
fn the_copies_of_shipped_drawings_are_judged_well() {
    for name in ["bottle", "bumpy", "so100"] {
        let mut scene = Scene::clone(&SceneLibrary::new(None).scene(name, None).unwrap());
        scene.heights.depth_trim_mm = 0.5;
        let scene = Arc::new(scene);
        let plan = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver).unwrap();
        let judged = preview(&scene, &plan.trajectory);
        assert_eq!(judged, Ok(()), "{name}");
    }
}
