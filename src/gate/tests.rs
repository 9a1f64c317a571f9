//! Stops at every place of a real drawing.
#![allow(clippy::unwrap_used, reason = "a failing test may panic")]

use super::*;
use crate::permit::Permits;
use crate::plan;
use crate::scene::Library;
use crate::units::{Instant, Measured};

struct Wanted;

impl plan::Watch for Wanted {
    fn progress(&self, _: usize, _: usize) {}
    fn cancelled(&self) -> bool {
        false
    }
}

fn seen(q: Joints, at: Instant) -> Measured {
    Measured {
        at,
        position_rad: q,
        velocity_rad_s: q.map(|_, _| 0.0),
        servos: Vec::new(),
    }
}

/// Runs as far as `stop_at`, stops, and returns every goal that was sent.
fn stopped(scene: &Arc<Scene>, trajectory: &Trajectory, stop_at: usize) -> Vec<Joints> {
    let permit = Permits::everything().ask(scene, Instant::ZERO).unwrap();
    let first = *trajectory.samples.first().unwrap();
    let mut now = Instant::ZERO;
    let start = seen(first, now);
    // As good as a whole check here, without its cost: only stops are looked at.
    let stops = super::stopping::Stops::prove(scene, trajectory).unwrap();
    let checked = CheckedTrajectory {
        scene: Arc::clone(scene),
        permit,
        trajectory: trajectory.clone(),
        stops,
    };
    let mut execution = checked.begin(&start, now).unwrap();
    let mut goals = vec![first];
    for tick in 0.. {
        if tick == stop_at {
            execution.stop();
        }
        now = now.after(trajectory.period);
        let is = seen(*goals.last().unwrap(), now);
        match execution.next(&is, now).unwrap() {
            Step::Go(setpoint) => goals.push(*setpoint.goal_rad()),
            Step::Hold => {}
            Step::Finished => break,
        }
    }
    goals
}

#[test]
fn stops_stay_within_limits_wherever_they_come() {
    let scene = Library::new(None).scene("default", None).unwrap();
    let plan = plan::draw(&scene, &scene.rest_rad, &Wanted).unwrap();
    let (limits, period) = (scene.arm.limits, plan.trajectory.period.as_secs_f64());
    // What two counts of a servo come to.
    let rounding = 2.0 * std::f64::consts::TAU / 4096.0 / period.powi(2);
    let (mut worst, mut beyond) = (0.0_f64, 0);
    for stop_at in (1..plan.trajectory.samples.len()).step_by(97) {
        let goals = stopped(&scene, &plan.trajectory, stop_at);
        let last = *goals.last().unwrap();
        let goals: Vec<Joints> = goals.into_iter().chain([last, last]).collect();
        for three in goals.windows(3) {
            let [a, b, c] = three else { continue };
            let push = a
                .zip(b, |a, b| b - a)
                .zip(&b.zip(c, |b, c| c - b), |then, now| {
                    (now - then) / period.powi(2)
                });
            for (push, most) in push.iter().zip(limits.acceleration_rad_s2.iter()) {
                worst = worst.max(push.abs() / most);
                beyond += usize::from(push.abs() > most + rounding);
            }
        }
        for (joint, angle) in last.iter().enumerate() {
            assert!(*angle >= limits.lower_rad.get(joint).unwrap() - 1e-6);
            assert!(*angle <= limits.upper_rad.get(joint).unwrap() + 1e-6);
        }
    }
    assert_eq!(beyond, 0, "worst {worst}");
}
