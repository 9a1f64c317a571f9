//! The arithmetic of a motion that is braked, goes back and is lifted.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use super::super::tests::{begun, drawing, in_a_stroke, seen};
use super::*;

/// In the middle of a stroke, at a rate.
fn going(rate: f64) -> Execution {
    let (scene, trajectory) = drawing();
    let mut execution = begun(scene, trajectory);
    execution.at = in_a_stroke() as f64;
    execution.rate = rate;
    execution.goal_rad = execution.on_path(execution.at);
    execution
}

fn is_about(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn a_stalled_arm_goes_back_to_the_sample_nearest_to_it_and_not_too_far() {
    let samples = &drawing().1.samples;
    let here = 2 * BACK_SAMPLES_MAX + in_a_stroke();
    let mut execution = going(0.0);
    execution.at = here as f64 + 0.4;
    let back = |by: usize| execution.back_to(samples.get(here - by).unwrap());
    for by in [0, 1, 2, 17, BACK_SAMPLES_MAX] {
        assert!(is_about(back(by), (here - by) as f64), "{by}");
    }
    assert!(back(BACK_SAMPLES_MAX + 1) >= (here - BACK_SAMPLES_MAX) as f64);
}

#[test]
fn a_rate_goes_evenly_to_another_and_not_beyond() {
    assert!(is_about(ramped(0.0, 1.0, 4.0), 0.25));
    assert!(is_about(ramped(1.0, 0.0, 4.0), 0.75));
    assert!(is_about(ramped(0.0, -1.0, 4.0), -0.25));
    assert!(is_about(ramped(0.9, 1.0, 4.0), 1.0));
    assert!(is_about(ramped(-0.1, 0.0, 4.0), 0.0));
}

/// The rate falls evenly: half as many samples are passed as ticks, and at half the rate a quarter.
#[test]
fn braking_passes_what_an_even_ramp_passes() {
    let whole = going(1.0).braking_samples();
    assert!(is_about(whole, going(1.0).brake_ticks() / 2.0) && whole > 1.0);
    assert!(is_about(going(-1.0).braking_samples(), whole));
    assert!(is_about(going(0.5).braking_samples(), whole / 4.0));
    assert!(is_about(going(0.0).braking_samples(), 0.0));
}

/// On the way back the goal itself is what the leash is held against.
#[test]
fn what_braking_comes_to_is_ahead_only_on_the_way_forth() {
    let forth = going(1.0);
    let there = forth.on_path(forth.at + forth.braking_samples());
    assert!(forth.braked_rad().distance_max(&there) < 1e-12);
    assert!(there.distance_max(forth.goal_rad()) > 1e-4);
    for rate in [0.0, -0.5, -1.0] {
        let back = going(rate);
        assert!(back.braked_rad().distance_max(back.goal_rad()) < 1e-12);
    }
}

#[test]
fn a_way_back_is_braked_so_that_it_ends_where_it_is_to() {
    let until = in_a_stroke() as f64;
    let wanted = |rate: f64, before: f64| {
        let mut back = going(rate);
        back.wish = Wish::Back(until - before);
        back.wanted_rate(false)
    };
    let braking = going(-1.0).braking_samples();
    assert!(is_about(wanted(0.0, 0.0), 0.0));
    assert!(is_about(wanted(0.0, 0.1), -1.0));
    assert!(is_about(wanted(-1.0, braking + 0.1), -1.0));
    assert!(is_about(wanted(-1.0, braking - 0.1), 0.0));
}

/// No joint is faster or pushed harder than it may be, and no lift takes longer than it must.
#[test]
fn a_lift_is_as_quick_as_its_joints_may_be() {
    let execution = going(0.0);
    let (limits, period) = (
        execution.scene().arm.limits,
        drawing().1.period.as_secs_f64(),
    );
    let is_within = |by_rad: &Joints, ticks: f64| {
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
                .map(|of, _| if of == joint { by } else { 0.0 });
            let ticks = execution.lift_ticks(&by_rad);
            assert!(is_within(&by_rad, ticks), "{joint} {by}: {ticks}");
            assert!(ticks >= LIFT_TICKS_MIN);
            let is_least = ticks <= LIFT_TICKS_MIN || !is_within(&by_rad, ticks - 1.0);
            assert!(is_least, "{joint} {by}: {ticks}");
        }
    }
}

/// A lift that nothing interrupts is not ramped besides: it begins and ends at rest by itself.
#[test]
fn a_lift_takes_its_time_and_no_more() {
    let (scene, trajectory) = drawing();
    let mut execution = begun(scene, trajectory);
    let mut now = Instant::ZERO;
    while execution.sample() < in_a_stroke() {
        tick(&mut execution, &mut now).unwrap();
    }
    execution.stop();
    while !matches!(execution.phase, Phase::Line(_)) {
        tick(&mut execution, &mut now).unwrap();
    }
    let Phase::Line(line) = execution.phase else {
        return;
    };
    assert!(is_about(line.tick, 1.0), "{line:?}");
    let mut ticks = 1.0;
    while matches!(tick(&mut execution, &mut now), Ok(Step::Go(_))) {
        ticks += 1.0;
    }
    assert!(is_about(ticks, line.ticks), "{ticks} of {line:?}");
}

fn tick(execution: &mut Execution, now: &mut Instant) -> Result<Step, Broken> {
    *now = now.after(drawing().1.period);
    execution.next(&seen(*execution.goal_rad(), *now), *now)
}

/// At the end of a lift of its own there is nothing to lift.
#[test]
fn a_stop_where_the_tip_is_as_high_as_a_lift_brings_it_is_done_there() {
    let mut execution = going(0.0);
    let stops = &execution.checked.stops;
    let is_up = |sample: &usize| {
        let by_rad = stops.lift_rad(*sample);
        by_rad.is_some_and(|by| by.iter().all(|by| by.abs() < 1e-12))
    };
    let up = (0..drawing().1.samples.len()).find(is_up).unwrap();
    execution.at = up as f64;
    execution.goal_rad = execution.on_path(execution.at);
    execution.stop();
    let mut now = Instant::ZERO;
    let stands = tick(&mut execution, &mut now);
    assert!(matches!(stands, Ok(Step::Finished)), "{stands:?}");
    assert!(execution.has_lifted());
}
