//! `recording replay`: carries out the recorded setpoints on a simulated arm, after the same check by the gate.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::read_recording;
use super::show::missing;
use crate::plan_record::span_kind;
use crate::recorded_job::{RecordedJob, RecordedTick};
use base::terminal as show;
use base::units::JointVector;
use base::wording::seconds;
use node::{ExitStatus, NodeOptions, open, simulated_playback, state_folder};
use plan::{Trajectory, TrajectorySpan};
use scene::Scene;

/// Largest distance of the replayed ink from the recorded one.
const DEVIATION_MM_MAX: f64 = 1.0;

/// Angle that rounding may take from a setpoint.
const SAME_RAD: f64 = 1e-9;

pub(super) async fn run(node: &NodeOptions, name: &str) -> anyhow::Result<ExitStatus> {
    let job = read_recording(node, name)?;
    let scene = recorded_scene(node, &job)?;
    if missing(&job) > 0 {
        bail!(
            "{name} cannot be replayed: {} ticks are missing",
            missing(&job)
        );
    }
    refuse(&job, interruption(&job))?;
    let motions: Vec<u32> = job.plans.iter().map(|plan| plan.motion).collect();
    let mut replayed = Vec::new();
    for motion in motions {
        let trajectory = trajectory(&samples(&job, motion))?;
        let ink = simulated_playback::carry_out(&scene, trajectory).await;
        // What was sent more slowly than planned is no fault of the limits that it misses.
        if ink.is_err() {
            refuse(&job, slowed(&job))?;
        }
        let ink = ink.with_context(|| format!("motion {motion}"))?;
        replayed.extend(ink);
    }
    let drawn: Vec<Vec<[f64; 2]>> = job.ink().into_iter().map(|ink| ink.points_mm).collect();
    if drawn.is_empty() {
        show::line(&format!("{} was replayed; it drew nothing", job.name()));
        return Ok(ExitStatus::Done);
    }
    let deviation = design::compare::deviation_mm(&drawn, &replayed);
    show::line(&format!(
        "{}: on the simulator, {} of the recorded ink",
        job.name(),
        deviation.describe()
    ));
    Ok(ExitStatus::of(deviation.max_mm <= DEVIATION_MM_MAX))
}

/// Refuses a job with a motion that did not take its planned course to its end, if there is a reason to: a hold, a stop and what
/// is cut off are no trajectory that a gate would pass.
fn refuse(job: &RecordedJob, why: Option<String>) -> anyhow::Result<()> {
    let Some(why) = why else {
        return Ok(());
    };
    let name = job.name();
    bail!(
        "{name} cannot be replayed from its recording: {why}. Only complete motions can be replayed. Next: play the sent bytes with `steadyhand replay {name} --bytes`"
    )
}

/// Returns what kept a job's motions from their ends.
fn interruption(job: &RecordedJob) -> Option<String> {
    let is_interrupted = |tick: &&RecordedTick| !matches!(&*tick.state, "moving" | "holding");
    if let Some(tick) = job.ticks.iter().find(is_interrupted) {
        let what = match &*tick.state {
            "held" => "held",
            "faulted" => "ended by a fault",
            _ => "stopped",
        };
        return Some(format!(
            "the motion was {what} after {}",
            seconds(job.time_s(tick))
        ));
    }
    if job.facts.is_none() {
        return Some("its node ended before the job".to_owned());
    }
    let mut motions = job.plans.iter().map(|plan| plan.motion);
    let last_tick = |motion| job.ticks.iter().rfind(|tick| tick.motion == motion);
    let cut = motions.find(|motion| last_tick(*motion).is_none_or(|tick| !tick.is_last));
    cut.map(|motion| format!("the end of motion {motion} is missing"))
}

/// Returns where the arm was first moved by less than a sample: what was sent from there on is not the plan's own samples.
fn slowed(job: &RecordedJob) -> Option<String> {
    let mut pairs = job.ticks.iter().zip(job.ticks.iter().skip(1));
    let (_, tick) = pairs.find(|(before, tick)| {
        let is_same_sample = (tick.motion, tick.sample) == (before.motion, before.sample);
        is_same_sample && !is_same_place(tick, before)
    })?;
    let at = seconds(job.time_s(tick));
    Some(format!(
        "a late reading or a slow disk slowed the motion down after {at}"
    ))
}

/// Returns the scene of the recorded job, which must be unchanged.
fn recorded_scene(node: &NodeOptions, job: &RecordedJob) -> anyhow::Result<Arc<Scene>> {
    let plan = job.plans.first().context("the recording has no plan")?;
    let file = open::file(node)?;
    let library = open::library(node, &file)?;
    if plan.drawing.is_some() {
        let state = state_folder::place(node, &file)?;
        let past = job::past(&state, &plan.job)?;
        return tools::scene_of_job(&library, &state, &past)
            .map_err(|error| anyhow!("{} cannot be replayed: {error}", plan.job));
    }
    let scene = library.scene(&plan.scene, plan.overlay.as_deref())?;
    if scene.revision.hex() != plan.revision {
        bail!(
            "scene `{}` has changed since {} was recorded. Next: restore that version of the scene",
            plan.scene,
            plan.job
        );
    }
    Ok(scene)
}

/// Returns the ticks of a motion that sent a new sample: one that was sent again is no motion.
fn samples(job: &RecordedJob, motion: u32) -> Vec<&RecordedTick> {
    let ticks = job.ticks.iter().filter(|tick| tick.motion == motion);
    let mut ticks: Vec<&RecordedTick> = ticks.collect();
    ticks.dedup_by(|tick, before| tick.sample == before.sample && is_same_place(tick, before));
    ticks
}

/// Returns whether two ticks want the arm at the same place, however they lead it there.
fn is_same_place(one: &RecordedTick, other: &RecordedTick) -> bool {
    unled(one).distance_max(&unled(other)) < SAME_RAD
}

/// Returns where a tick wants the arm: its setpoint without what leads it.
fn unled(tick: &RecordedTick) -> JointVector {
    let sent = JointVector::from_slice(&tick.setpoint_rad);
    match tick.lead_rad.as_deref().map(JointVector::from_slice) {
        Some(lead_rad) => sent.zip(&lead_rad, |sent, lead| sent - lead),
        None => sent,
    }
}

/// Returns the trajectory of the places that the arm was led to: another arm, without wear, is led there by its own gate.
fn trajectory(ticks: &[&RecordedTick]) -> anyhow::Result<Trajectory> {
    let mut spans: Vec<TrajectorySpan> = Vec::new();
    for (index, tick) in ticks.iter().enumerate() {
        let kind = span_kind(&tick.doing)
            .with_context(|| format!("{:?} is not a known kind of motion", tick.doing))?;
        let continues = |span: &&mut TrajectorySpan| {
            span.kind == kind && span.item == tick.stroke && span.pen == tick.pen
        };
        match spans.last_mut().filter(continues) {
            Some(span) => span.end = index + 1,
            None => spans.push(TrajectorySpan {
                kind,
                item: tick.stroke,
                pen: tick.pen,
                first: index,
                end: index + 1,
            }),
        }
    }
    Ok(Trajectory {
        period: Duration::from_secs_f64(plan::PERIOD.as_secs_f64()),
        samples: ticks.iter().map(|tick| unled(tick)).collect(),
        reached: Vec::new(),
        spans,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(samples: &[usize]) -> RecordedJob {
        let tick = |sample: &usize| RecordedTick {
            motion: 1,
            sample: *sample,
            state: "moving".to_owned(),
            ..RecordedTick::default()
        };
        RecordedJob {
            ticks: samples.iter().map(tick).collect(),
            ..RecordedJob::default()
        }
    }

    #[test]
    fn a_sample_that_was_sent_again_is_replayed_once() {
        let job = job(&[1, 2, 2, 3, 3]);
        let samples = samples(&job, 1);
        let samples: Vec<usize> = samples.iter().map(|tick| tick.sample).collect();
        assert_eq!(samples, [1, 2, 3]);
    }

    #[test]
    fn what_kept_a_motion_from_its_end_is_named() {
        for (state, why) in [
            ("held", "the motion was held after 0 s"),
            ("stopping", "the motion was stopped after 0 s"),
            ("faulted", "the motion was ended by a fault after 0 s"),
            ("moving", "its node ended before the job"),
        ] {
            let mut job = job(&[1, 2]);
            job.ticks
                .iter_mut()
                .for_each(|tick| tick.state = state.to_owned());
            assert_eq!(interruption(&job).as_deref(), Some(why));
        }
        let mut slowed = job(&[1, 2, 2, 3]);
        let places = [0.1, 0.2, 0.25, 0.35];
        for (tick, q_rad) in slowed.ticks.iter_mut().zip(places) {
            tick.setpoint_rad = vec![q_rad];
        }
        let why = "a late reading or a slow disk slowed the motion down after 0 s";
        assert_eq!(super::slowed(&slowed).as_deref(), Some(why));
    }
}
