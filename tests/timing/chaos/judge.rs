//! Judges what must hold whatever happened: ink, journals, the audit log, the wire and the answers, each
//! against the others.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use steadyhand::job::{PastJob, past_jobs, verify};
use steadyhand::scene::SheetStroke;

use super::far_end::FarArm;
use super::support::ink::{Line, length_mm, missing_mm};

/// Beyond the plan's own line a pen that is put down, or lags, may leave so much.
const SLACK_MM: f64 = 2.5;

/// Ink is never further from a line that was released.
const ASIDE_MM: f64 = 1.5;

/// A design is drawn where ink is as near as this.
const COVERED_MM: f64 = 1.0;

/// Line that a blocked or limp joint may spoil until it is noticed: where it happened, so much of
/// the ink is beside the plan, and so much is missing.
const SPOILT_MM: f64 = 20.0;

/// A servo's counts make a drawn line zigzag by some tenths of a millimetre. Measured point by point
/// a line of 60 mm is 65 mm long, so ink is measured in steps of this.
const STEP_MM: f64 = 2.5;

/// Length that a continued drawing may draw again, and how far beyond what is certain a crash may leave ink.
const OVERLAP_MM: f64 = 3.0;
const AHEAD_MM: f64 = 5.0;

/// A job's last record may follow its last frame by so much.
const LATE: Duration = Duration::from_millis(500);

pub(super) fn read_jobs(state: &Path) -> Result<Vec<PastJob>, String> {
    let all = past_jobs(state).map_err(|error| error.to_string())?;
    all.into_iter()
        .map(|job| job.map_err(|error| format!("a journal cannot be read: {error}")))
        .collect()
}

/// Steps of at least so much, and the last point.
fn coarse(line: &Line, step_mm: f64) -> Line {
    let mut kept: Line = line.first().copied().into_iter().collect();
    for point in line {
        let last = kept[kept.len() - 1];
        if (last[0] - point[0]).hypot(last[1] - point[1]) >= step_mm {
            kept.push(*point);
        }
    }
    kept.extend(line.last());
    kept
}

pub(super) fn ink_mm(ink: &[Line]) -> f64 {
    let lines: Vec<Line> = ink.iter().map(|line| coarse(line, STEP_MM)).collect();
    length_mm(&lines)
}

/// Every bit of ink is on a line that a job's journal released, and there is no more of it than all
/// of them released together. `spoilt` counts joints that were held up or let go.
pub(super) fn ink_is_told(ink: &[Line], jobs: &[PastJob], spoilt: usize) -> Result<(), String> {
    let moved = || jobs.iter().filter(|job| job.moved);
    let released_mm = |job: &PastJob| job.drawn.mm.max(job.released_mm);
    let allowed: Vec<Line> = moved()
        .flat_map(|job| first_mm(&job.strokes, released_mm(job) + SLACK_MM))
        .collect();
    let fine: Vec<Line> = ink.iter().map(|line| coarse(line, 0.3)).collect();
    let spoilt_mm = SPOILT_MM * spoilt as f64;
    let stray_mm = missing_mm(&fine, &allowed, ASIDE_MM);
    if stray_mm > 1.0 + spoilt_mm {
        return Err(format!("{stray_mm} mm of ink where no job had released it"));
    }
    // Each time that the pen comes down it may slide.
    let most_mm: f64 = moved().map(released_mm).sum::<f64>() + ink.len() as f64 + spoilt_mm;
    let mm = ink_mm(ink);
    let slack_mm = SLACK_MM + 0.02 * most_mm;
    if mm > most_mm + slack_mm {
        return Err(format!("{mm} mm of ink, {most_mm} released"));
    }
    Ok(())
}

/// Checks that what the journals say was drawn is on the sheet.
pub(super) fn ink_is_there(ink: &[Line], jobs: &[PastJob], spoilt: usize) -> Result<(), String> {
    let mut lacks = 0.0;
    let mut text = Vec::new();
    for job in jobs.iter().filter(|job| job.moved) {
        let drawn = first_mm(&job.strokes, job.drawn.mm - SLACK_MM);
        let missing = missing_mm(&drawn, ink, ASIDE_MM);
        if missing > 0.5 {
            text.push(format!("{} lacks {missing} mm: {}", job.id, job.summary()));
        }
        lacks += missing;
    }
    if lacks > 1.0 + SPOILT_MM * spoilt as f64 {
        return Err(text.join("; "));
    }
    Ok(())
}

/// A drawing that was blocked, stopped and gone on with is all there, though ink that was on the sheet
/// before does not count. `last` is the job that came to the end of it; `before` were there when the
/// drawing was begun: one that goes on with those says nothing.
pub(super) fn is_covered(
    design: &[Line],
    ink: &[Line],
    jobs: &[PastJob],
    last: &str,
    before: usize,
) -> Result<bool, String> {
    let mut first = last.to_owned();
    // Each goes on with an earlier one.
    for job in jobs.iter().rev() {
        if job.id == first && !job.resumes.is_empty() {
            first.clone_from(&job.resumes);
        }
    }
    let begun = jobs.iter().position(|job| job.id == first);
    if begun.is_none_or(|at| at < before) {
        return Ok(false);
    }
    let missing = missing_mm(design, ink, COVERED_MM);
    if missing > 0.5 {
        return Err(format!(
            "{missing} mm of the design is missing though {last} reached its end"
        ));
    }
    Ok(true)
}

/// A drawing that was gone on with begins no earlier than the overlap before where it was left, and
/// a crash left no more in doubt than was released ahead.
pub(super) fn nothing_is_doubled(jobs: &[PastJob]) -> Result<(), String> {
    for job in jobs.iter().filter(|job| job.interrupted) {
        let ahead_mm = job.released_mm - job.drawn.mm;
        if ahead_mm > AHEAD_MM + 1e-6 {
            return Err(format!("{} released {ahead_mm} mm ahead", job.id));
        }
    }
    for job in jobs
        .iter()
        .filter(|job| !job.resumes.is_empty() && !job.strokes.is_empty())
    {
        let Some(before) = jobs.iter().find(|past| past.id == job.resumes) else {
            return Err(format!("{} resumes a job that is not there", job.id));
        };
        let left_mm = before.total_mm() - before.drawn.mm;
        let again_mm = job.total_mm() - left_mm;
        // What is shorter than a hundredth of a millimetre is not drawn.
        if !(-0.1..=OVERLAP_MM + 1e-6).contains(&again_mm) {
            return Err(format!(
                "{} draws {again_mm} mm of {} again",
                job.id, before.id
            ));
        }
    }
    Ok(())
}

/// The servos were sent somewhere else only while a job's journal was open. Files are dated by the
/// machine's own calendar, whatever the node takes the time for.
pub(super) fn moves_are_told(
    arm: &FarArm,
    state: &Path,
    jobs: &[PastJob],
    now: SystemTime,
) -> Result<(), String> {
    let mut windows = Vec::new();
    for job in jobs {
        let path = state.join("jobs").join(&job.id).join("journal");
        let observed = std::fs::metadata(&path).map_err(|error| error.to_string())?;
        let Ok(created) = observed.created() else {
            // This file system does not say.
            return Ok(());
        };
        let last = if job.is_over() {
            observed.modified().map_err(|error| error.to_string())? + LATE
        } else {
            now + LATE
        };
        windows.push(created..=last);
    }
    let received = arm.received();
    for moved in received.moves.iter().filter(|moved| **moved <= now) {
        if !windows.iter().any(|window| window.contains(moved)) {
            let ago = now.duration_since(*moved).unwrap_or_default();
            return Err(format!("the arm was sent on {ago:?} ago, by no job"));
        }
    }
    Ok(())
}

pub(super) fn audit_holds(state: &Path) -> Result<(), String> {
    let text =
        std::fs::read_to_string(state.join("audit.log")).map_err(|error| error.to_string())?;
    // A line may be half written.
    let complete_len = text.rfind('\n').map_or(0, |end| end + 1);
    verify(&text[..complete_len], None)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// Every call that came to a job is in the audit log, with the job's name: by now, or soon.
pub(super) fn answers_are_noted(answers: &[Value], state: &Path) -> Result<(), String> {
    const SOON: Duration = Duration::from_secs(5);
    let of_job = |answer: &Value| {
        let id = &answer["result"]["structuredContent"]["job"]["id"];
        Some(format!("\"job\":\"{}\"", id.as_str()?))
    };
    let names: Vec<String> = answers.iter().filter_map(of_job).collect();
    let began = SystemTime::now();
    loop {
        let log = std::fs::read_to_string(state.join("audit.log"));
        let log = log.map_err(|error| error.to_string())?;
        let Some(name) = names.iter().find(|name| !log.contains(*name)) else {
            return Ok(());
        };
        if began.elapsed().unwrap_or_default() > SOON {
            return Err(format!("no call with {name} is in the audit log"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that a job's end is in its journal before its caller hears of it, in the same word.
pub(super) fn answer_is_kept(answer: &Value, jobs: &[PastJob]) -> Result<(), String> {
    const ENDS: [&str; 4] = ["reached", "stopped", "refused", "faulted"];
    let reply = &answer["result"]["structuredContent"]["job"];
    let (Some(id), Some(state)) = (reply["id"].as_str(), reply["state"].as_str()) else {
        return Ok(());
    };
    if !ENDS.contains(&state) {
        return Ok(());
    }
    match jobs.iter().find(|job| job.id == id) {
        Some(job) if job.state == state => Ok(()),
        Some(job) => Err(format!(
            "{id} was answered as {state}, and its journal says {}",
            job.state
        )),
        None => Err(format!("{id} was answered and has no journal")),
    }
}

/// The part of strokes that is drawn first.
fn first_mm(strokes: &[SheetStroke], mut mm: f64) -> Vec<Line> {
    let mut part = Vec::new();
    for stroke in strokes {
        let line = &stroke.points_mm;
        let mut kept: Line = line.first().copied().into_iter().collect();
        for (a, b) in line.iter().zip(line.iter().skip(1)) {
            let step = (a[0] - b[0]).hypot(a[1] - b[1]);
            if mm <= 0.0 {
                break;
            }
            let fraction = (mm / step).min(1.0);
            kept.push([
                a[0] + (b[0] - a[0]) * fraction,
                a[1] + (b[1] - a[1]) * fraction,
            ]);
            mm -= step;
        }
        part.push(kept);
    }
    part.retain(|line| line.len() > 1);
    part
}

/// The case that was taken for ink beyond what was released: a straight line by servos that know
/// only whole counts.
#[test]
fn a_line_that_zigzags_is_no_longer_than_it_is() {
    let zigzag: Line = (0_i32..=6000)
        .map(|at| {
            let side = if at % 40 < 20 { 0.0 } else { 0.12 };
            [f64::from(at) / 100.0, side]
        })
        .collect();
    let line = vec![zigzag];
    assert!(length_mm(&line) > 90.0);
    assert!((ink_mm(&line) - 60.0).abs() < 0.5, "{}", ink_mm(&line));
}
