//! Tests of the tip's speed while it is lifted and lowered, and of the handling of unreachable goals.

use super::*;
use scene::ToolKind;

/// The default drawing, otherwise.
fn other(change: impl FnOnce(&mut Scene)) -> (Arc<Scene>, Trajectory) {
    let (scene, _) = drawing();
    let mut scene = (**scene).clone();
    change(&mut scene);
    let plan = plan::draw(&scene, &scene.rest_rad, &Wanted).unwrap();
    (Arc::new(scene), plan.trajectory)
}

fn middle_of_ink(trajectory: &Trajectory) -> usize {
    let mut spans = trajectory.spans.iter();
    let draw = spans.find(|span| span.kind == SpanKind::Draw).unwrap();
    draw.first + 40
}

/// Held in a stroke, resumed, and stopped: every goal from the hold on.
fn held_resumed_and_stopped(scene: &Arc<Scene>, trajectory: &Trajectory) -> Vec<JointVector> {
    let mut execution = begun(scene, trajectory);
    let (mut now, mut goals) = (ClockInstant::ZERO, Vec::new());
    let mut downs = 0;
    for _ in 0..6_000 {
        now = now.after(trajectory.period);
        let is = seen(*execution.goal_rad(), now);
        let at = execution.progress().sample;
        if downs == 0 && at >= middle_of_ink(trajectory) {
            execution.hold(HoldAt::Once);
        }
        if execution.is_held() {
            execution.resume(&is, leave(scene), now).unwrap();
            downs += 1;
        }
        if at > middle_of_ink(trajectory) + 60 {
            execution.stop();
        }
        match execution.next(&is, now).unwrap() {
            ExecutionStep::Go(setpoint) => goals.push(*setpoint.goal_rad()),
            ExecutionStep::Hold => {}
            ExecutionStep::Finished => break,
        }
    }
    assert!(downs == 1 && execution.has_lifted(), "{downs} times down");
    goals
}

#[test]
fn no_lift_and_no_way_down_is_faster_than_its_tip_may_be() {
    let needle = other(|scene| {
        for pen in &mut scene.pens {
            pen.kind = ToolKind::Needle;
        }
    });
    let high = other(|scene| scene.heights.lift_mm = 40.0);
    for (what, (scene, trajectory)) in [("needle", needle), ("high", high)] {
        let pen = scene.pens.first().unwrap();
        let tip = |q: &JointVector| clearance::tip_m(&scene, 0, q).unwrap();
        let goals = held_resumed_and_stopped(&scene, &trajectory);
        let lifted = |q: &JointVector| scene.surface.project(&tip(q)).height_mm;
        // What the plan itself does it may, the needle apart: that is planned as a pen here.
        let mut fastest = 0.0_f64;
        for pair in goals.windows(2) {
            let [a, b] = pair else { continue };
            let low = if lifted(a) < lifted(b) { a } else { b };
            let is_lift = (lifted(a) - lifted(b)).abs() > 0.02;
            let speed = (tip(b) - tip(a)).norm() * 1e3 / trajectory.period.as_secs_f64();
            let limit = check::tip_limit_mm_s(&scene, pen.kind, SpanKind::Lift, &tip(low));
            let held = lifted(low) > 0.1 && lifted(low) < scene.heights.lift_mm - 0.1;
            if is_lift && held && what == "needle" || what == "high" {
                fastest = fastest.max(speed / limit);
            }
        }
        assert!((0.5..=1.002).contains(&fastest), "{what}: {fastest}");
    }
}

/// An arm that an obstacle holds 5 degrees behind, stopped at once.
fn pressing(by_rad: f64) -> (Execution, ClockInstant, JointVector) {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, in_a_stroke());
    execution.stand();
    let goal = *execution.goal_rad();
    let is = goal.map(|joint, q| if joint == 0 { q - by_rad } else { q });
    (execution, now, is)
}

#[test]
fn what_presses_against_something_is_let_go_of_once() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now, is) = pressing(0.09);
    let fastest = *scene.arm.limits.velocity_rad_s.first().unwrap();
    assert!(execution.let_go(&seen(is, now)));
    let mut apart = vec![0.09];
    loop {
        now = now.after(trajectory.period);
        match execution.next(&seen(is, now), now).unwrap() {
            ExecutionStep::Go(setpoint) => apart.push(setpoint.goal_rad().distance_max(&is)),
            ExecutionStep::Hold => panic!("it waits"),
            ExecutionStep::Finished => break,
        }
        // Another one does not leave it half way.
        execution.stand();
    }
    let step = fastest * trajectory.period.as_secs_f64();
    for pair in apart.windows(2) {
        let [before, after] = pair else { continue };
        assert!(
            after <= before && before - after <= step * 1.001,
            "{apart:?}"
        );
    }
    assert!(*apart.last().unwrap() < 1e-9, "{apart:?}");
    // A weak servo sags under the arm's weight: that is not followed down.
    let sagged = is.map(|_, q| q - 0.2);
    assert!(!execution.let_go(&seen(sagged, now)));
}

#[test]
fn a_goal_that_was_nearly_reached_stays() {
    let (mut execution, now, is) = pressing(0.03);
    assert!(!execution.let_go(&seen(is, now)));
    let mut moving = begun(&drawing().0, &drawing().1);
    assert!(!moving.let_go(&seen(is, now)), "it is not at its end");
}

/// To move to what a servo says that lies would be to move on its word.
#[test]
fn no_goal_goes_to_a_reading_that_cannot_be() {
    let (scene, _) = drawing();
    let leash = scene.arm.limits.velocity_rad_s.first().unwrap() * 0.150;
    let (mut execution, now, is) = pressing(leash * 1.3);
    assert!(!execution.let_go(&seen(is, now)), "farther than its leash");
    let (mut execution, now, is) = pressing(leash * 1.2);
    assert!(execution.let_go(&seen(is, now)), "it may be so far");
    let (mut execution, now, is) = pressing(leash * 0.9);
    execution.halt();
    assert!(!execution.let_go(&seen(is, now)), "its readings jumped");
}

/// A joint stalls, and on its way back nothing more is read: the goal waits, and then stands.
#[test]
fn a_way_back_that_nobody_sees_is_not_gone() {
    let (scene, trajectory) = drawing();
    let (mut execution, mut now) = (begun(scene, trajectory), ClockInstant::ZERO);
    run_to(&mut execution, &mut now, in_a_stroke());
    let stuck = *execution.goal_rad().first().unwrap();
    let (mut is, mut told, mut silent) = (seen(*execution.goal_rad(), now), 0, None);
    let mut goals_after = Vec::new();
    for _ in 0..400 {
        now = now.after(trajectory.period);
        if silent.is_none() {
            is = seen(*execution.goal_rad(), now);
            *is.position_rad.first_mut().unwrap() = stuck;
            let behind = (execution.goal_rad().first().unwrap() - stuck).abs();
            is.servos = vec![base::units::ServoState {
                id: 1,
                load_ratio: Some((behind / 0.05).min(1.0)),
                ..<_>::default()
            }];
        }
        match execution.next(&is, now) {
            Ok(ExecutionStep::Finished) => break,
            Ok(ExecutionStep::Hold) => {}
            Ok(ExecutionStep::Go(_)) => {
                told += usize::from(told > 0);
                if let Some(since) = silent {
                    goals_after.push(now.since(since));
                }
                if told == 4 {
                    silent = Some(now);
                    told += 1;
                }
            }
            Err(_) => told = 1,
        }
    }
    assert!(silent.is_some(), "it never went back");
    let last = goals_after.last().copied().unwrap_or_default();
    // Three periods, and what the brake takes.
    assert!(last <= trajectory.period * 12, "{goals_after:?}");
    assert!(!execution.has_lifted());
    assert!(matches!(
        execution.next(&is, now.after(trajectory.period)),
        Ok(ExecutionStep::Finished)
    ));
}
