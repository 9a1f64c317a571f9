//! `replay --bytes`: plays the bytes that a job sent to its arm to a simulated one.

use std::path::Path;

use anyhow::{Context, bail};

use super::playback::{PlaybackResult, play};
use super::{ExitStatus, terminal_output};
use arm::ServoFamily;
use base::clock::NodeClock;
use base::plain_file;
use base::plane::length;
use base::units::{ClockInstant, JointVector};
use base::wording::{count, millimetres, seconds};
use design::compare::deviation_mm;
use driver::ArmDriver;
use job::{self, PastJob};
use link::byte_trace::{ByteDirection, TraceEvent};
use link::memory::MemoryLink;
use link::tap::CUT;
use node::job_replay::APART_MM_MAX;
use node::open;
use scene::Scene;
use sim::ArmSimulator;

/// Length by which the drawing of a stopped job may differ from its journal.
const JOURNAL_TOLERANCE_MM: f64 = 5.5;

pub(super) async fn run(state: &Path, past: &PastJob, scene: &Scene) -> anyhow::Result<ExitStatus> {
    if scene.arm.file.family == ServoFamily::Firmware {
        bail!(
            "the bytes of a controller with its own firmware cannot be played again: they belong to one connection. Next: replay the plan of {} without --bytes",
            past.id
        );
    }
    let events = read_bytes(state, past)?;
    if past.began_rad.len() != scene.arm.dof() {
        bail!(
            "{} has {} joint angles at its start; arm {} has {} joints, so the job belongs to a different arm",
            past.id,
            past.began_rad.len(),
            scene.arm.file.name,
            scene.arm.dof()
        );
    }
    let start = JointVector::from_slice(&past.began_rad);
    let mut arm = ArmSimulator::new(&scene.arm, &start);
    open::lay(&arm, scene);
    let began = energise(&arm, scene).await?;
    let playback = play(&mut arm, began, &events);
    let ink: Vec<_> = arm.ink().into_iter().map(|ink| ink.points_mm).collect();
    Ok(print_comparison(
        past,
        &playback,
        &ink,
        end_error_deg(past, &arm),
    ))
}

/// Reads the complete record of bytes.
fn read_bytes(state: &Path, past: &PastJob) -> anyhow::Result<Vec<TraceEvent>> {
    let path = job::folder(state, &past.id).join(job::BYTES);
    let text = plain_file::read_text(&path).with_context(|| {
        format!(
            "{} has no bytes in {}: it moved nothing, or an older node ran it. Next: `steadyhand replay {}` replays its plan",
            past.id,
            path.display(),
            past.id
        )
    })?;
    if text.lines().next_back() == Some(CUT) {
        bail!(
            "the bytes of {} are incomplete: there were too many for one job, or the disk was too slow. Next: replay its plan with `steadyhand replay {}`",
            past.id,
            past.id
        );
    }
    let events: Result<Vec<TraceEvent>, _> = text.lines().map(str::parse).collect();
    let events = events.with_context(|| path.display().to_string())?;
    let is_received = |event: &TraceEvent| event.direction == ByteDirection::Came;
    if events.iter().all(is_received) {
        bail!("{} has no sent bytes", path.display());
    }
    Ok(events)
}

/// Turns the arm's torque on, as the job found it, and returns the time.
async fn energise(arm: &ArmSimulator, scene: &Scene) -> anyhow::Result<ClockInstant> {
    let clock = NodeClock::simulated();
    let mut link = MemoryLink::new(arm.clone(), &clock, "simulated arm")?;
    let mut driver = ArmDriver::new(&scene.arm, &clock);
    driver.attach(&mut link).await?;
    driver.energise(&mut link).await?;
    Ok(clock.now())
}

/// Returns the distance of the arm's final position from the end of the job's plan, in degrees, if the job reached it.
fn end_error_deg(past: &PastJob, arm: &ArmSimulator) -> Option<f64> {
    let end = JointVector::from_slice(&past.end_rad);
    let is_known = past.state == "reached" && !past.end_rad.is_empty();
    is_known.then(|| end.distance_max(&arm.true_joints()).to_degrees())
}

/// Largest distance of a joint from the plan's end that still counts as the same motion.
const END_ERROR_DEG_MAX: f64 = 1.5;

fn print_comparison(
    past: &PastJob,
    playback: &PlaybackResult,
    ink: &[Vec<[f64; 2]>],
    end_error_deg: Option<f64>,
) -> ExitStatus {
    let inked_mm: f64 = ink.iter().map(|line| length(line)).sum();
    terminal_output::line(&format!(
        "{}: {} in {} were played to a simulated arm. It answered with {} bytes ({} were recorded). It drew {}; the job {} and has {} in its journal",
        past.id,
        count(playback.frames, "frame"),
        seconds(playback.seconds),
        playback.answered,
        playback.recorded,
        millimetres(inked_mm, 1),
        past.state_text(),
        millimetres(past.drawn.mm, 1)
    ));
    let is_ink_near = if past.state == "reached" {
        let strokes = past.strokes.iter().map(|stroke| stroke.points_mm.clone());
        let strokes: Vec<_> = strokes.collect();
        let deviation = deviation_mm(&strokes, ink);
        terminal_output::line(&format!(
            "against the job's strokes: {}. The job's own figures: {}",
            deviation.describe(),
            figures(past)
        ));
        past.strokes.is_empty() || deviation.max_mm <= APART_MM_MAX
    } else {
        (inked_mm - past.drawn.mm).abs() <= JOURNAL_TOLERANCE_MM
    };
    if let Some(end_error_deg) = end_error_deg {
        terminal_output::line(&format!(
            "its joints end at most {end_error_deg:.2} degrees from the plan's end; the real arm's joints were {}",
            figure(past, "joint_error_deg").map_or_else(
                || "not read".to_owned(),
                |deg| format!("read {deg:.2} degrees from that end")
            )
        ));
    }
    ExitStatus::of(is_ink_near && end_error_deg.is_none_or(|deg| deg <= END_ERROR_DEG_MAX))
}

fn figures(past: &PastJob) -> String {
    let max = figure(past, "deviation_mm_max");
    match max.zip(figure(past, "deviation_mm_p95")) {
        Some((max, p95)) => format!("{max:.2} mm (95 %: {p95:.2} mm)"),
        None => "the paper was not measured".to_owned(),
    }
}

fn figure(past: &PastJob, name: &str) -> Option<f64> {
    let all: serde_json::Value = serde_json::from_str(&past.figures).ok()?;
    all.get(name)?.as_f64()
}
