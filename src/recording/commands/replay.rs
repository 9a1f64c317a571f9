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
use node::{ExitStatus, NodeOptions, open, simulated_playback, state_folder};
use plan::{Trajectory, TrajectorySpan};
use scene::Scene;

/// Largest distance of the replayed ink from the recorded one.
const DEVIATION_MM_MAX: f64 = 1.0;

pub(super) async fn run(node: &NodeOptions, name: &str) -> anyhow::Result<ExitStatus> {
    let job = read_recording(node, name)?;
    let scene = recorded_scene(node, &job)?;
    if missing(&job) > 0 {
        bail!(
            "{name} cannot be replayed: {} ticks are missing in it",
            missing(&job)
        );
    }
    let motions: Vec<u32> = job.plans.iter().map(|plan| plan.motion).collect();
    let mut replayed = Vec::new();
    for motion in motions {
        let ticks = job.ticks.iter().filter(|tick| tick.motion == motion);
        let ticks: Vec<&RecordedTick> = ticks.collect();
        let trajectory = trajectory(&ticks)?;
        let ink = simulated_playback::carry_out(&scene, trajectory)
            .await
            .with_context(|| format!("motion {motion}"))?;
        replayed.extend(ink);
    }
    let drawn: Vec<Vec<[f64; 2]>> = job.ink().into_iter().map(|ink| ink.points_mm).collect();
    if drawn.is_empty() {
        show::line(&format!("{}: replayed; it drew nothing", job.name()));
        return Ok(ExitStatus::Done);
    }
    let deviation = design::compare::deviation_mm(&drawn, &replayed);
    show::line(&format!(
        "{}: on the simulator {} of the recorded ink",
        job.name(),
        deviation.describe()
    ));
    Ok(ExitStatus::of(deviation.max_mm <= DEVIATION_MM_MAX))
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
            "scene `{}` was changed since {} was recorded: restore it to replay",
            plan.scene,
            plan.job
        );
    }
    Ok(scene)
}

/// Returns the trajectory of the setpoints that were sent.
fn trajectory(ticks: &[&RecordedTick]) -> anyhow::Result<Trajectory> {
    let mut spans: Vec<TrajectorySpan> = Vec::new();
    for (index, tick) in ticks.iter().enumerate() {
        let kind = span_kind(&tick.doing)
            .with_context(|| format!("{:?} is not a kind of motion", tick.doing))?;
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
    let sent = |tick: &&RecordedTick| JointVector::from_slice(&tick.setpoint_rad);
    let expected = |tick: &&RecordedTick| {
        let lead_rad = tick.lead_rad.as_deref().map(JointVector::from_slice)?;
        Some(sent(tick).zip(&lead_rad, |sent, lead| sent - lead))
    };
    let expected: Option<Vec<JointVector>> = ticks.iter().map(expected).collect();
    Ok(Trajectory {
        period: Duration::from_secs_f64(plan::PERIOD.as_secs_f64()),
        samples: ticks.iter().map(sent).collect(),
        reached: expected.unwrap_or_default(),
        spans,
    })
}
