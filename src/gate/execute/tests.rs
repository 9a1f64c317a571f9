//! Tests how a motion brakes, goes back and lifts.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]

use std::sync::Arc;

use super::super::clearance::tip_m;
use super::super::tests::{begin, drawing, reading, sample_in_stroke};
use super::super::{GateRule, TorqueLimit};
use super::let_go::PRESSING_RAD;
use super::*;
use plan::{self, Trajectory};
use scene::{PROBE_DEPTH_MM, PROBE_FROM_MM, PROBE_MM_S, SceneLibrary};

/// An execution in the middle of a stroke, at a rate.
fn at_rate(rate: f64) -> Execution {
    let (scene, trajectory) = drawing();
    let mut execution = begin(scene, trajectory);
    execution.position = sample_in_stroke() as f64;
    execution.rate = rate;
    execution.goal_rad = execution.goal_at(execution.position);
    execution
}

fn is_about(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn a_stalled_arm_goes_back_to_the_sample_nearest_to_it_and_not_too_far() {
    let samples = &drawing().1.samples;
    let here = 2 * BACK_SAMPLES_MAX + sample_in_stroke();
    let mut execution = at_rate(0.0);
    execution.position = here as f64 + 0.4;
    let back = |by: usize| execution.return_position(samples.get(here - by).unwrap());
    for by in [0, 1, 2, 17, BACK_SAMPLES_MAX] {
        assert!(is_about(back(by), (here - by) as f64), "{by}");
    }
    assert!(back(BACK_SAMPLES_MAX + 1) >= (here - BACK_SAMPLES_MAX) as f64);
}

/// Only samples that were sent count, from the last one on, and only as far ahead as it can be.
#[test]
fn an_arm_is_at_its_nearest_sample() {
    const FROM: usize = 20;
    let at = |sample: usize| drawing().1.samples.get(sample).unwrap();
    let mut execution = at_rate(0.0);
    let here = sample_in_stroke();
    execution.position = here as f64 + 0.4;
    for by in [0, 1, 17] {
        assert_eq!(execution.nearest(here - 30, at(here - by)), here - by);
    }
    assert_eq!(execution.nearest(here - 30, at(here + 5)), here, "not sent");
    assert_eq!(execution.nearest(here - 5, at(here - 9)), here - 5, "past");
    assert_eq!(execution.nearest(here + 3, at(here)), here + 3);
    let furthest = FROM + FOLLOW_SAMPLES_MAX - 1;
    assert!(furthest + 1 < here);
    assert_eq!(execution.nearest(FROM, at(furthest)), furthest);
    assert_eq!(execution.nearest(FROM, at(furthest + 1)), furthest, "far");
}

/// Where the path stands for longer than it is searched ahead, the arm comes to its end.
#[test]
fn an_arm_passes_a_long_stand() {
    let mut execution = at_rate(0.0);
    let here = sample_in_stroke();
    let samples = &mut execution.checked.trajectory.samples;
    let standing = *samples.get(here).unwrap();
    let stand = std::iter::repeat_n(standing, 3 * FOLLOW_SAMPLES_MAX);
    samples.splice(here..here, stand);
    let end = here + 3 * FOLLOW_SAMPLES_MAX;
    execution.position = end as f64;
    let mut reached = here;
    for _ in 0..4 {
        reached = execution.nearest(reached, &standing);
    }
    assert_eq!(reached, end);
}

#[test]
fn a_rate_ramps_to_its_target_and_not_beyond() {
    assert!(is_about(ramp_rate(0.0, 1.0, 4.0), 0.25));
    assert!(is_about(ramp_rate(1.0, 0.0, 4.0), 0.75));
    assert!(is_about(ramp_rate(0.0, -1.0, 4.0), -0.25));
    assert!(is_about(ramp_rate(0.9, 1.0, 4.0), 1.0));
    assert!(is_about(ramp_rate(-0.1, 0.0, 4.0), 0.0));
}

/// The rate falls evenly: half as many samples are passed as ticks, and at half the rate a quarter.
#[test]
fn braking_passes_what_an_even_ramp_passes() {
    let full_rate = at_rate(1.0).braking_samples();
    assert!(is_about(full_rate, at_rate(1.0).brake_ticks() / 2.0) && full_rate > 1.0);
    assert!(is_about(at_rate(-1.0).braking_samples(), full_rate));
    assert!(is_about(at_rate(0.5).braking_samples(), full_rate / 4.0));
    assert!(is_about(at_rate(0.0).braking_samples(), 0.0));
}

/// On the way back the leash applies to the goal itself.
#[test]
fn the_braked_goal_is_ahead_only_while_going_forward() {
    let forward = at_rate(1.0);
    let there = forward.goal_at(forward.position + forward.braking_samples());
    assert!(forward.braked_rad().distance_max(&there) < 1e-12);
    assert!(there.distance_max(forward.goal_rad()) > 1e-4);
    for rate in [0.0, -0.5, -1.0] {
        let back = at_rate(rate);
        assert!(back.braked_rad().distance_max(back.goal_rad()) < 1e-12);
    }
}

/// A servo on its way to a goal, which it brakes for with its largest acceleration.
struct FollowingJoint {
    at_rad: f64,
    speed_rad_s: f64,
}

impl FollowingJoint {
    fn follow(&mut self, goal_rad: f64, acceleration_rad_s2: f64, seconds: f64) {
        const STEPS: u32 = 10;
        let step_s = seconds / f64::from(STEPS);
        for _ in 0..STEPS {
            let error_rad = goal_rad - self.at_rad;
            let braking = (2.0 * acceleration_rad_s2 * error_rad.abs()).sqrt();
            let demand = braking.min(error_rad.abs() / 0.02).copysign(error_rad);
            let change = acceleration_rad_s2 * step_s;
            self.speed_rad_s += (demand - self.speed_rad_s).clamp(-change, change);
            self.at_rad += self.speed_rad_s * step_s;
        }
    }
}

/// Swings one joint through most of its range, as fast as the tip may be. Returns its greatest planned
/// share of its speed limit, and the number of samples and of ticks; `None` where something is in the
/// way.
fn swing(scene: &Arc<Scene>, joint: usize) -> Option<(f64, usize, usize)> {
    let limits = &scene.arm.limits;
    let pose = |end: &JointVector, inside_rad: f64| {
        let angle = end.get(joint).unwrap() + inside_rad;
        scene
            .ready_rad
            .map(|of, q| if of == joint { angle } else { q })
    };
    let (from, to) = (pose(&limits.lower_rad, 0.1), pose(&limits.upper_rad, -0.1));
    let plan = plan::go_to(scene, &from, &[to], &plan::SilentObserver);
    let trajectory = plan.ok()?.trajectory;
    let period_s = trajectory.period.as_secs_f64();
    let steps = trajectory.samples.windows(2).map(|pair| match pair {
        [a, b] => a.distance_max(b) / period_s,
        _ => 0.0,
    });
    let fastest_share = steps.fold(0.0, f64::max) / limits.velocity_rad_s.get(joint).unwrap();
    let mut joints: Vec<_> = (trajectory.samples.first().unwrap().iter())
        .map(|q| FollowingJoint {
            at_rad: *q,
            speed_rad_s: 0.0,
        })
        .collect();
    let read = |joints: &[FollowingJoint]| {
        JointVector::from_slice(&joints.iter().map(|joint| joint.at_rad).collect::<Vec<_>>())
    };
    let mut execution = begin(scene, &trajectory);
    let (mut now, mut ticks) = (ClockInstant::ZERO, 0);
    let mut measured = reading(read(&joints), now);
    loop {
        now = now.after(trajectory.period);
        match execution.next(&measured, now).unwrap() {
            ExecutionStep::Finished => {
                return Some((fastest_share, trajectory.samples.len(), ticks));
            }
            ExecutionStep::Go(_) | ExecutionStep::Hold => ticks += 1,
        }
        assert!(ticks < 10_000);
        // The next tick knows of what was read before this one's goal was followed.
        measured = reading(read(&joints), now);
        let goals = execution
            .goal_rad()
            .iter()
            .zip(limits.acceleration_rad_s2.iter());
        for (joint, (goal, hardest)) in joints.iter_mut().zip(goals) {
            joint.follow(*goal, *hardest, period_s);
        }
    }
}

#[test]
fn a_goal_never_waits_for_a_joint_that_follows() {
    for name in ["default", "two_pens", "bottle"] {
        let scene = SceneLibrary::new(None).scene(name, None).unwrap();
        let mut scene = Scene::clone(&scene);
        scene.limits.travel_mm_s = 250.0;
        let scene = Arc::new(scene);
        let mut fastest_share = 0.0_f64;
        for joint in 0..scene.arm.dof() {
            let Some((share, samples, ticks)) = swing(&scene, joint) else {
                continue;
            };
            fastest_share = fastest_share.max(share);
            assert_eq!(
                ticks,
                samples - 1,
                "{name}, joint {joint}, {share} of its speed"
            );
        }
        assert!(fastest_share > 0.5, "{name}: {fastest_share}");
    }
}

#[test]
fn a_move_back_brakes_in_time_for_its_end() {
    let until = sample_in_stroke() as f64;
    let target_rate = |rate: f64, before: f64| {
        let mut back = at_rate(rate);
        back.request = MotionGoal::Back(until - before);
        back.wanted_rate(false)
    };
    let braking = at_rate(-1.0).braking_samples();
    assert!(is_about(target_rate(0.0, 0.0), 0.0));
    assert!(is_about(target_rate(0.0, 0.1), -1.0));
    assert!(is_about(target_rate(-1.0, braking + 0.1), -1.0));
    assert!(is_about(target_rate(-1.0, braking - 0.1), 0.0));
}

/// A pause stops the move back; an arm that has arrived is already being lifted.
#[test]
fn a_paused_move_back_goes_on_and_is_not_left_for_a_lift() {
    let mut back = at_rate(-1.0);
    let here = back.position;
    back.request = MotionGoal::Back(here - 30.0);
    back.wait(true);
    let mut now = ClockInstant::ZERO;
    while !matches!(tick(&mut back, &mut now), Ok(ExecutionStep::Hold)) {}
    for _ in 0..3 {
        assert!(matches!(tick(&mut back, &mut now), Ok(ExecutionStep::Hold)));
        assert!(matches!(back.phase, ExecutionPhase::Path) && back.position > here - 29.0);
    }
    back.wait(false);
    let mut least = back.position;
    while !matches!(tick(&mut back, &mut now), Ok(ExecutionStep::Finished)) {
        least = least.min(back.position);
    }
    assert!(back.has_lifted() && least < here - 29.0, "{least} {here}");
    let mut there = at_rate(0.0);
    there.request = MotionGoal::Back(there.position);
    there.wait(true);
    assert!(matches!(
        tick(&mut there, &mut now),
        Ok(ExecutionStep::Hold)
    ));
    assert!(matches!(there.phase, ExecutionPhase::Lift(_)));
}

#[test]
fn only_what_stalls_on_the_path_goes_back() {
    let stalled = ExecutionError::Stalled {
        joint: "elbow".to_owned(),
        behind_deg: 5,
    };
    let ended_by = |error: &ExecutionError, change: fn(&mut Execution)| {
        let mut execution = at_rate(0.0);
        change(&mut execution);
        let measured = reading(*execution.goal_rad(), ClockInstant::ZERO);
        execution.choose_safe_end(error, &measured);
        execution.request
    };
    assert!(matches!(ended_by(&stalled, |_| {}), MotionGoal::Back(_)));
    assert_eq!(ended_by(&stalled, Execution::halt), MotionGoal::Halt);
    // Without a reading of every joint it goes nowhere.
    for unread in [
        JointVector::zeros(0),
        JointVector::zeros(4),
        at_rate(0.0)
            .goal_rad
            .map(|joint, q| if joint == 3 { f64::NAN } else { q }),
    ] {
        let mut execution = at_rate(0.0);
        execution.choose_safe_end(&stalled, &reading(unread, ClockInstant::ZERO));
        assert_eq!(execution.request, MotionGoal::Halt, "{unread:?}");
    }
    let upward = |execution: &mut Execution| {
        execution.phase = ExecutionPhase::Lift(JointSpaceMove {
            from_rad: *execution.goal_rad(),
            by_rad: *execution.goal_rad(),
            tick: 1.0,
            ticks: 9.0,
        });
    };
    // Where it stands it is let go of, which an arm that halts is not.
    assert_eq!(ended_by(&stalled, upward), MotionGoal::Stop);
    assert_eq!(ended_by(&stalled, Execution::stand), MotionGoal::Stop);
    assert_eq!(
        ended_by(&ExecutionError::Blind(120), |_| {}),
        MotionGoal::Halt
    );
}

#[test]
fn a_joint_presses_only_beyond_a_minimum_distance_from_its_goal() {
    let mut execution = at_rate(0.0);
    execution.goal_rad = execution.goal_rad.map(|_, _| 0.0);
    execution.sag.set_sent(execution.goal_rad);
    execution.stand();
    let behind = |by_rad: f64| {
        let zero = execution.goal_rad;
        reading(
            zero.map(|joint, q| if joint == 0 { by_rad } else { q }),
            ClockInstant::ZERO,
        )
    };
    let (just, more) = (behind(PRESSING_RAD), behind(1.01 * PRESSING_RAD));
    assert!(!execution.let_go(&just));
    assert!(execution.let_go(&more));
}

/// No joint exceeds its speed or acceleration limit, and no lift takes longer than it must.
#[test]
fn a_lift_is_as_quick_as_its_joints_may_be() {
    let execution = at_rate(0.0);
    let (limits, period) = (
        execution.scene().arm.limits,
        drawing().1.period.as_secs_f64(),
    );
    let is_within = |by_rad: &JointVector, ticks: f64| {
        let time = ticks * period;
        let mut by = by_rad.iter().enumerate();
        by.all(|(joint, by)| {
            let fastest = limits.velocity_rad_s.get(joint).unwrap();
            let hardest = limits.acceleration_rad_s2.get(joint).unwrap();
            1.875 * by / time <= fastest + 1e-9 && 5.774 * by / time.powi(2) <= hardest + 1e-9
        })
    };
    for joint in 0..limits.velocity_rad_s.len() {
        for by in [0.0, 0.01, 0.3, 1.0, 5.0, 50.0] {
            let by_rad = limits
                .velocity_rad_s
                .map(|index, _| if index == joint { by } else { 0.0 });
            let ticks = execution.lift_ticks(&by_rad);
            assert!(is_within(&by_rad, ticks), "{joint} {by}: {ticks}");
            assert!(ticks >= LIFT_TICKS_MIN);
            let is_least = ticks <= LIFT_TICKS_MIN || !is_within(&by_rad, ticks - 1.0);
            assert!(is_least, "{joint} {by}: {ticks}");
        }
    }
}

/// A lift that nothing interrupts needs no ramp: it begins and ends at rest by itself.
#[test]
fn a_lift_takes_its_time_and_no_more() {
    let (scene, trajectory) = drawing();
    let mut execution = begin(scene, trajectory);
    let mut now = ClockInstant::ZERO;
    while execution.sample() < sample_in_stroke() {
        tick(&mut execution, &mut now).unwrap();
    }
    execution.stop();
    while !matches!(execution.phase, ExecutionPhase::Lift(_)) {
        tick(&mut execution, &mut now).unwrap();
    }
    let ExecutionPhase::Lift(motion) = execution.phase else {
        return;
    };
    assert!(is_about(motion.tick, 1.0), "{motion:?}");
    let mut ticks = 1.0;
    while matches!(tick(&mut execution, &mut now), Ok(ExecutionStep::Go(_))) {
        ticks += 1.0;
    }
    assert!(is_about(ticks, motion.ticks), "{ticks} of {motion:?}");
}

fn tick(
    execution: &mut Execution,
    now: &mut ClockInstant,
) -> Result<ExecutionStep, ExecutionError> {
    *now = now.after(drawing().1.period);
    execution.next(&reading(*execution.goal_rad(), *now), *now)
}

/// There is nothing to lift where the path itself is at lift height.
#[test]
fn a_stop_where_the_tip_is_as_high_as_a_lift_brings_it_is_done_there() {
    let mut execution = at_rate(0.0);
    let stops = &execution.checked.stops;
    let is_up = |sample: &usize| {
        let by_rad = stops.lift(*sample).map(|lift| lift.by_rad);
        by_rad.is_some_and(|by| by.iter().all(|by| by.abs() < 1e-12))
    };
    let up = (0..drawing().1.samples.len()).find(is_up).unwrap();
    execution.position = up as f64;
    execution.goal_rad = execution.goal_at(execution.position);
    execution.stop();
    let mut now = ClockInstant::ZERO;
    let stands = tick(&mut execution, &mut now);
    assert!(matches!(stands, Ok(ExecutionStep::Finished)), "{stands:?}");
    assert!(execution.has_lifted());
}

/// A probe of the sheet's middle from the ready pose.
fn probing() -> (Arc<Scene>, Trajectory) {
    let scene = SceneLibrary::new(None).scene("default", None).unwrap();
    let plan = plan::probe(
        &scene,
        &scene.ready_rad,
        [50.0, 50.0],
        0,
        &plan::SilentObserver,
    )
    .unwrap();
    (scene, plan.trajectory)
}

fn height_mm(execution: &Execution) -> f64 {
    let scene = execution.scene();
    let tip = tip_m(scene, 0, execution.goal_rad()).unwrap();
    scene.surface.project(&tip).height_mm
}

/// Ticks until the motion has finished, calling `before_tick` each time; returns the goals' heights.
fn heights(execution: &mut Execution, mut before_tick: impl FnMut(&mut Execution)) -> Vec<f64> {
    let (mut now, mut heights) = (ClockInstant::ZERO, Vec::new());
    for _ in 0..5_000 {
        before_tick(execution);
        now = now.after(Duration::from_millis(10));
        let measured = reading(*execution.goal_rad(), now);
        match execution.next(&measured, now).unwrap() {
            ExecutionStep::Finished => return heights,
            _ => heights.push(height_mm(execution)),
        }
    }
    panic!("not at its end");
}

fn deepest(heights: &[f64]) -> f64 {
    heights.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn a_tip_that_looks_for_something_has_a_low_torque_limit_and_a_height() {
    let (scene, probe) = probing();
    let execution = begin(&scene, &probe);
    let goal_rad = *execution.goal_rad();
    assert_eq!(
        execution.tip_height_mm(&goal_rad),
        Some(height_mm(&execution))
    );
    let step = plan::JogIncrement::Tip {
        by_mm: [0.0, 0.0, 1.0],
    };
    let jog = plan::jog(&scene, &scene.ready_rad, step, 0, &plan::SilentObserver).unwrap();
    let pose = plan::go_to(
        &scene,
        &scene.ready_rad,
        &[scene.rest_rad],
        &plan::SilentObserver,
    );
    for (trajectory, limit) in [
        (probe, TorqueLimit::Touch),
        (jog.trajectory, TorqueLimit::Touch),
        (pose.unwrap().trajectory, TorqueLimit::Work),
    ] {
        let execution = begin(&scene, &trajectory);
        assert_eq!(execution.checked().torque_limit(), limit);
    }
}

#[test]
fn a_probe_that_finds_nothing_goes_up_again() {
    let (scene, trajectory) = probing();
    assert!(super::super::preview(&scene, &trajectory).is_ok());
    let mut execution = begin(&scene, &trajectory);
    let heights = heights(&mut execution, |_| {});
    let low = deepest(&heights);
    assert!((low + PROBE_DEPTH_MM).abs() < 0.05, "{low}");
    let end = *heights.last().unwrap();
    assert!(end > scene.heights.lift_mm - 0.5, "{end}");
    assert!(execution.has_lifted() && !execution.was_stopped());
}

#[test]
fn a_probe_that_felt_something_turns_back_once() {
    let (scene, trajectory) = probing();
    let mut execution = begin(&scene, &trajectory);
    assert!(!execution.turn_back(), "it is still on its way there");
    let (mut turn_backs, mut turned_at_mm) = (0, 0.0);
    let heights = heights(&mut execution, |execution| {
        if execution.progress().doing == SpanKind::Probe && height_mm(execution) < 1.0 {
            turned_at_mm = if turn_backs == 0 {
                height_mm(execution)
            } else {
                turned_at_mm
            };
            turn_backs += usize::from(execution.turn_back());
        }
    });
    let low = deepest(&heights);
    assert!(
        turn_backs == 1 && low <= turned_at_mm && low > turned_at_mm - 0.2,
        "{turn_backs} {turned_at_mm} {low}"
    );
    assert!(*heights.last().unwrap() > scene.heights.lift_mm - 0.5);
    // What it touched is not pushed at full speed on the way back either.
    let steps = heights.windows(2).map(|two| match two {
        [a, b] if a.max(*b) < PROBE_FROM_MM - 0.5 => (a - b).abs(),
        _ => 0.0,
    });
    let fastest = steps.fold(0.0, f64::max) * 100.0;
    assert!(
        fastest > 1.5 && fastest <= PROBE_MM_S * 1.01,
        "{fastest} mm/s"
    );
}

/// The move back from a touch lasts seconds: a stop does not wait for it.
#[test]
fn a_stop_does_not_wait_for_a_probe_to_come_back() {
    let (scene, trajectory) = probing();
    for (stops_below, turns_back) in [(2.0, false), (-1.0, true)] {
        let mut execution = begin(&scene, &trajectory);
        let mut after = 0;
        let all = heights(&mut execution, |execution| {
            if execution.progress().doing != SpanKind::Probe {
                return;
            }
            if turns_back && height_mm(execution) < stops_below {
                execution.turn_back();
            }
            if execution.request != MotionGoal::Go
                || (!turns_back && height_mm(execution) < stops_below)
            {
                execution.stop();
            }
            after += usize::from(execution.was_stopped());
        });
        assert!(execution.was_stopped() && execution.has_lifted());
        assert!(after < 100, "{after} ticks after the stop");
        assert!(*all.last().unwrap() > scene.heights.lift_mm - 0.5);
    }
}

#[test]
fn a_probe_is_slow_and_the_end_of_its_motion() {
    let (scene, trajectory) = probing();
    let probe = trajectory.spans.last().unwrap().clone();
    assert_eq!(probe.kind, SpanKind::Probe);
    let rules = |trajectory: &Trajectory| match super::super::preview(&scene, trajectory) {
        Ok(()) => Vec::new(),
        Err(refused) => refused.0.iter().map(|refusal| refusal.rule).collect(),
    };
    let mut fast = trajectory.clone();
    let is_kept = |(index, _): &(usize, &JointVector)| *index < probe.first || index % 2 == 0;
    let samples = trajectory.samples.iter().enumerate().filter(is_kept);
    fast.samples = samples.map(|(_, q)| *q).collect();
    fast.spans.last_mut().unwrap().end = fast.samples.len();
    assert!(
        rules(&fast).contains(&GateRule::TipSpeed),
        "{:?}",
        rules(&fast)
    );
    let mut early = trajectory.clone();
    early.samples.push(*trajectory.samples.last().unwrap());
    early.spans.push(TrajectorySpan {
        kind: SpanKind::Lift,
        first: probe.end,
        end: probe.end + 1,
        ..probe
    });
    assert_eq!(rules(&early), [GateRule::Form]);
}

/// A motion that is cut short has goals ahead of its path. What is let go of moves from the goals that were sent: a joint that
/// does not press keeps its goal, and none goes farther from where it is.
#[test]
fn letting_go_begins_at_the_goals_that_were_sent() {
    let ahead_rad = PRESSING_RAD / 2.0;
    for (reads_rad, moves) in [(1.0, true), (-1.0, true), (0.4, false)] {
        let mut execution = at_rate(0.0);
        let sent_rad = execution.goal_rad.map(|_, q| q + ahead_rad);
        execution.sag.set_sent(sent_rad);
        execution.stand();
        let arm_rad = sent_rad.map(|joint, q| match joint {
            0 => q + reads_rad * 2.0 * PRESSING_RAD,
            _ => q,
        });
        let measured = reading(arm_rad, ClockInstant::ZERO);
        assert_eq!(execution.let_go(&measured), moves, "{reads_rad}");
        let mut before = sent_rad;
        while let GoalUpdate::Release { sent_rad, .. } = advanced(&mut execution) {
            let farther = sent_rad.zip(&arm_rad, |goal, arm| (goal - arm).abs());
            let was = before.zip(&arm_rad, |goal, arm| (goal - arm).abs());
            assert!(
                farther
                    .zip(&was, |now, was| now - was)
                    .iter()
                    .all(|by| *by <= 1e-12)
            );
            before = sent_rad;
        }
        let arrived = if moves { arm_rad } else { sent_rad };
        assert!(before.distance_max(&arrived) < 1e-9, "{reads_rad}");
    }
}

fn advanced(execution: &mut Execution) -> GoalUpdate {
    match execution.phase {
        ExecutionPhase::LetGo(motion) => execution.advance_let_go(motion),
        _ => GoalUpdate::Keep,
    }
}
