//! Tests of the tip's speed while it is lifted and lowered, and of the handling of unreachable goals.

use super::*;
use scene::ToolKind;

/// Draws the default drawing in a modified scene.
fn modified_drawing(change: impl FnOnce(&mut Scene)) -> (Arc<Scene>, Trajectory) {
    let (scene, _) = drawing();
    let mut scene = (**scene).clone();
    change(&mut scene);
    let plan = plan::draw(&scene, &scene.rest_rad, &plan::SilentObserver).unwrap();
    (Arc::new(scene), plan.trajectory)
}

fn sample_in_first_stroke(trajectory: &Trajectory) -> usize {
    let mut spans = trajectory.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    draw.first + 40
}

/// Holds in a stroke, resumes and stops; returns every goal that was sent.
fn held_resumed_and_stopped(scene: &Arc<Scene>, trajectory: &Trajectory) -> Vec<JointVector> {
    let mut execution = begin(scene, trajectory);
    let (mut now, mut goals) = (ClockInstant::ZERO, Vec::new());
    let mut resumes = 0;
    for _ in 0..6_000 {
        now = now.after(trajectory.period);
        let measured = reading(*execution.goal_rad(), now);
        let sample = execution.progress().sample;
        if resumes == 0 && sample >= sample_in_first_stroke(trajectory) {
            execution.hold(HoldAt::Once);
        }
        if execution.is_held() {
            execution.resume(&measured, permit(scene), now).unwrap();
            resumes += 1;
        }
        if sample > sample_in_first_stroke(trajectory) + 60 {
            execution.stop();
        }
        match execution.next(&measured, now).unwrap() {
            ExecutionStep::Go(setpoint) => goals.push(*setpoint.goal_rad()),
            ExecutionStep::Hold => {}
            ExecutionStep::Finished => break,
        }
    }
    assert!(resumes == 1 && execution.has_lifted(), "{resumes}");
    goals
}

#[test]
fn no_lift_or_descent_exceeds_the_tips_speed_limit() {
    let needle = modified_drawing(|scene| {
        for pen in &mut scene.pens {
            pen.kind = ToolKind::Needle;
        }
    });
    let high = modified_drawing(|scene| scene.heights.lift_mm = 40.0);
    for (what, (scene, trajectory)) in [("needle", needle), ("high", high)] {
        let pen = scene.pens.first().unwrap();
        let tip = |q: &JointVector| clearance::tip_m(&scene, 0, q).unwrap();
        let goals = held_resumed_and_stopped(&scene, &trajectory);
        let height_mm = |q: &JointVector| scene.surface.project(&tip(q)).height_mm;
        // The plan's own moves count too, except for the needle, which is planned as a pen here.
        let mut fastest = 0.0_f64;
        for pair in goals.windows(2) {
            let [a, b] = pair else { continue };
            let low = if height_mm(a) < height_mm(b) { a } else { b };
            let is_lift = (height_mm(a) - height_mm(b)).abs() > 0.02;
            let speed = (tip(b) - tip(a)).norm() * 1e3 / trajectory.period.as_secs_f64();
            let limit = check::tip_limit_mm_s(&scene, pen.kind, SpanKind::Lift, &tip(low));
            let is_between = height_mm(low) > 0.1 && height_mm(low) < scene.heights.lift_mm - 0.1;
            if is_lift && is_between && what == "needle" || what == "high" {
                fastest = fastest.max(speed / limit);
            }
        }
        assert!((0.5..=1.002).contains(&fastest), "{what}: {fastest}");
    }
}

/// A stopped execution of an arm that an obstacle holds `by_rad` behind, and its measured joints.
fn blocked(by_rad: f64) -> (Execution, ClockInstant, JointVector) {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, sample_in_stroke());
    execution.stand();
    let goal = *execution.goal_rad();
    let measured_rad = goal.map(|joint, q| if joint == 0 { q - by_rad } else { q });
    (execution, now, measured_rad)
}

#[test]
fn a_joint_that_presses_against_something_is_let_go_once() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now, q) = blocked(0.09);
    let fastest = *scene.arm.limits.velocity_rad_s.first().unwrap();
    assert!(execution.let_go(&reading(q, now)));
    let mut lag_rad = vec![0.09];
    loop {
        now = now.after(trajectory.period);
        match execution.next(&reading(q, now), now).unwrap() {
            ExecutionStep::Go(setpoint) => lag_rad.push(setpoint.goal_rad().distance_max(&q)),
            ExecutionStep::Hold => panic!("it waits"),
            ExecutionStep::Finished => break,
        }
        // A second call does not interrupt it.
        execution.stand();
    }
    let step = fastest * trajectory.period.as_secs_f64();
    for pair in lag_rad.windows(2) {
        let [earlier, later] = pair else { continue };
        assert!(
            later <= earlier && earlier - later <= step * 1.001,
            "{lag_rad:?}"
        );
    }
    assert!(*lag_rad.last().unwrap() < 1e-9, "{lag_rad:?}");
    // A weak servo sags under the arm's weight: that is not followed down.
    let sagged = q.map(|_, q| q - 0.2);
    assert!(!execution.let_go(&reading(sagged, now)));
}

#[test]
fn a_goal_that_was_nearly_reached_stays() {
    let (mut execution, now, q) = blocked(0.03);
    assert!(!execution.let_go(&reading(q, now)));
    let mut moving = begin(&drawing().0, &drawing().1);
    assert!(!moving.let_go(&reading(q, now)), "it is not at its end");
}

/// An implausible reading must not become a goal.
#[test]
fn no_goal_moves_to_an_implausible_reading() {
    let (scene, _) = drawing();
    let leash = scene.arm.limits.velocity_rad_s.first().unwrap() * 0.150;
    let (mut execution, now, q) = blocked(leash * 1.3);
    assert!(!execution.let_go(&reading(q, now)), "beyond its leash");
    let (mut execution, now, q) = blocked(leash * 1.2);
    assert!(execution.let_go(&reading(q, now)), "it may be so far");
    let (mut execution, now, q) = blocked(leash * 0.9);
    execution.halt();
    assert!(!execution.let_go(&reading(q, now)), "its readings jumped");
}

/// A joint stalls, and on its way back nothing more is read: the goal waits, and then stands.
#[test]
fn a_stalled_arm_does_not_go_back_without_readings() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begin(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, sample_in_stroke());
    let stuck = *execution.goal_rad().first().unwrap();
    let (mut measured, mut goals_back, mut silent_since) =
        (reading(*execution.goal_rad(), now), 0, None);
    let mut goals_after = Vec::new();
    for _ in 0..400 {
        now = now.after(trajectory.period);
        if silent_since.is_none() {
            measured = reading(*execution.goal_rad(), now);
            *measured.position_rad.first_mut().unwrap() = stuck;
            let behind = (execution.goal_rad().first().unwrap() - stuck).abs();
            measured.servos = vec![base::units::ServoState {
                id: 1,
                load_ratio: Some((behind / 0.05).min(1.0)),
                ..<_>::default()
            }];
        }
        match execution.next(&measured, now) {
            Ok(ExecutionStep::Finished) => break,
            Ok(ExecutionStep::Hold) => {}
            Ok(ExecutionStep::Go(_)) => {
                goals_back += usize::from(goals_back > 0);
                if let Some(since) = silent_since {
                    goals_after.push(now.since(since));
                }
                if goals_back == 4 {
                    silent_since = Some(now);
                    goals_back += 1;
                }
            }
            Err(_) => goals_back = 1,
        }
    }
    assert!(silent_since.is_some(), "it never went back");
    let last = goals_after.last().copied().unwrap_or_default();
    // Three periods, and the brake.
    assert!(last <= trajectory.period * 12, "{goals_after:?}");
    assert!(!execution.has_lifted());
    assert!(matches!(
        execution.next(&measured, now.after(trajectory.period)),
        Ok(ExecutionStep::Finished)
    ));
}

/// What braking asks of the goals would hold the joints away from where they stopped.
#[test]
fn goals_that_stand_lead_an_arm_at_rest() {
    let (scene, trajectory) = drawing();
    let sag = SagLead::new(&scene.arm, |_| Some(32), None);
    let mut execution = begin_led(scene, trajectory, sag);
    let mut now = ClockInstant::ZERO;
    run_to(&mut execution, &mut now, 100);
    let moves = execution.sag().lead_rad(execution.goal_rad());
    execution.halt();
    run_out(&mut execution, &mut now);
    let at_rad = *execution.goal_rad();
    let rests = execution.sag().lead_rad(&at_rad);
    let holds = execution.sag().hold_rad(&scene.arm, &at_rad);
    let count_rad = std::f64::consts::TAU / 4096.0;
    // Friction holds each joint back as it did.
    assert!(
        rests.distance_max(&holds) < 5.0 * count_rad,
        "{rests:?} {holds:?}"
    );
    assert!(moves.distance_max(&holds) > 10.0 * count_rad, "{moves:?}");
}
