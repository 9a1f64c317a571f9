//! `recording show`: prints a summary, and renders a picture of plan, ink and error over time.

use anyhow::Context as _;
use std::path::PathBuf;

use serde_json::json;

use super::{output_path, read_recording};
use crate::figures::RecordingFigures;
use crate::recorded_job::RecordedJob;
use base::terminal as show;
use base::wording::{count, millimetres, seconds};
use node::{ExitStatus, NodeOptions};
use picture::{PictureError, PlanView, PlannedStroke, SheetLine, TimeStrip};

pub(super) fn run(
    node: &NodeOptions,
    name: &str,
    out: Option<PathBuf>,
    as_json: bool,
) -> anyhow::Result<ExitStatus> {
    let job = read_recording(node, name)?;
    let figures = RecordingFigures::from_job(&job);
    if as_json {
        show::line(&summary_json(&job, &figures).to_string());
        return Ok(ExitStatus::Done);
    }
    for line in summary(&job, &figures) {
        show::line(&line);
    }
    let out = output_path(out, node, &job, "png")?;
    std::fs::write(&out, png(&job, &figures)?)
        .with_context(|| format!("cannot write {}", out.display()))?;
    show::line(&format!("picture         {}", out.display()));
    Ok(ExitStatus::Done)
}

/// Returns the lines of a recording's summary.
pub(super) fn summary(job: &RecordedJob, figures: &RecordingFigures) -> Vec<String> {
    let size = std::fs::metadata(&job.path).map_or(0, |metadata| metadata.len());
    let ended = match &job.facts {
        Some(facts) => format!("{}: {}", facts.state, facts.message),
        None => "not recorded: the process ended before the job did".to_owned(),
    };
    let mut lines = Vec::new();
    if let Some(plan) = job.plans.first() {
        lines.push(format!(
            "{:<15} {} by {} in {}, plan {}",
            plan.job, plan.tool, plan.model, plan.scene, plan.plan_hash
        ));
    }
    lines.push(format!("ended           {ended}"));
    let torn = if job.is_torn {
        "; the file is damaged"
    } else {
        ""
    };
    lines.push(format!(
        "ticks           {} in {}, {}{torn}",
        job.ticks.len(),
        seconds(job.duration_s()),
        count(job.plans.len(), "motion")
    ));
    lines.push(format!("missing         {}", count(missing(job), "tick")));
    let warnings = job.warnings();
    lines.extend(warnings.map(|warning| format!("                {warning}")));
    lines.push(format!("size            {} kB", size / 1000));
    if !figures.errors_mm.is_empty() {
        lines.push(format!(
            "ink             at most {} from the plan, {} on average",
            millimetres(figures.max_mm, 2),
            millimetres(figures.mean_mm, 2)
        ));
    }
    for joint in &figures.joints {
        lines.push(format!(
            "{:<15} at most {:.2}° from its goal, {:.2}° rms",
            joint.name, joint.max_deg, joint.rms_deg
        ));
    }
    for (topic, messages) in &job.messages {
        lines.push(format!("{topic:<15} {messages}"));
    }
    lines
}

/// Returns the number of ticks for which the recorder was too slow.
pub(super) fn missing(job: &RecordedJob) -> usize {
    let missing = job.facts.as_ref().map_or(0, |facts| facts.dropped_ticks);
    usize::try_from(missing).unwrap_or(usize::MAX)
}

/// Returns the summary as JSON.
pub(crate) fn summary_json(job: &RecordedJob, figures: &RecordingFigures) -> serde_json::Value {
    let joints = figures.joints.iter().map(
        |joint| json!({ "name": joint.name, "max_deg": joint.max_deg, "rms_deg": joint.rms_deg }),
    );
    json!({
        "job": job.name(),
        "file": job.path,
        "is_torn": job.is_torn,
        "state": job.facts.as_ref().map(|facts| &facts.state),
        "motions": job.plans.len(),
        "strokes": figures.strokes.len(),
        "ticks": job.ticks.len(),
        "missing_ticks": missing(job),
        "duration_s": job.duration_s(),
        "ink_max_mm": figures.max_mm,
        "ink_mean_mm": figures.mean_mm,
        "joints": joints.collect::<Vec<_>>(),
        "topics": job.messages,
        "attachments": job.attachments,
    })
}

/// Renders the plan in grey, the ink over it in the pens' colours, and the ink's error over time.
pub(super) fn png(job: &RecordedJob, figures: &RecordingFigures) -> Result<Vec<u8>, PictureError> {
    let planned = job.plans.iter().flat_map(|plan| &plan.strokes);
    let mut strokes: Vec<PlannedStroke> = planned
        .map(|stroke| line(stroke.points_mm.clone(), [190, 190, 190], 0.2))
        .collect();
    strokes.extend(job.ink().into_iter().map(|ink| {
        let (colour, width_mm) = job.look(&ink);
        line(ink.points_mm, colour, width_mm)
    }));
    picture::plan_png(&PlanView {
        title: job.name(),
        caption: format!(
            "ink at most {} from the plan, {} on average",
            millimetres(figures.max_mm, 2),
            millimetres(figures.mean_mm, 2)
        ),
        sheet_mm: job.sheet_mm(),
        strokes,
        strips: vec![TimeStrip {
            name: "ink off plan, mm".to_owned(),
            samples: figures.errors_mm.clone(),
            limit: None,
        }],
        ..PlanView::default()
    })
}

fn line(points_mm: Vec<[f64; 2]>, colour: [u8; 3], width_mm: f64) -> PlannedStroke {
    PlannedStroke {
        line: SheetLine {
            points_mm,
            colour,
            width_mm,
        },
        ..PlannedStroke::default()
    }
}
