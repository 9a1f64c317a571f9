//! Cuts recordings into episodes: one for each finished stroke, with its approach and lift.

use crate::plan_record::PlanRecord;
use crate::recorded_job::{RecordedJob, RecordedTick};

const SECOND_NS: u64 = 1_000_000_000;

/// A stroke with its approach and lift.
pub(crate) struct Episode<'a> {
    pub(crate) job: String,
    pub(crate) motion: u32,
    pub(crate) stroke: usize,
    pub(crate) task: String,
    /// Frames per second.
    pub(crate) fps: f64,
    /// The recording from which it is cut.
    pub(crate) recording: &'a RecordedJob,
    pub(crate) frames: Vec<&'a RecordedTick>,
}

/// Returns the episodes of recordings, and notes on strokes without one.
pub(crate) fn episodes(jobs: &[RecordedJob], fps: u32) -> (Vec<Episode<'_>>, Vec<String>) {
    let (mut episodes, mut notes) = (Vec::new(), Vec::new());
    for job in jobs {
        for plan in &job.plans {
            for stroke in 0..plan.strokes.len() {
                match episode(job, plan, stroke, fps) {
                    Some(episode) => episodes.push(episode),
                    None => notes.push(format!(
                        "{}: stroke {} was not finished, and is left out",
                        plan.job,
                        stroke + 1
                    )),
                }
            }
        }
    }
    (episodes, notes)
}

fn episode<'a>(
    job: &'a RecordedJob,
    plan: &PlanRecord,
    stroke: usize,
    fps: u32,
) -> Option<Episode<'a>> {
    let record = plan.strokes.get(stroke)?;
    let of_motion = || job.ticks.iter().filter(|tick| tick.motion == plan.motion);
    let furthest = of_motion().map(|tick| tick.sample).max()?;
    if record.drawn_at == 0 || furthest + 1 < record.drawn_at {
        return None;
    }
    let of_stroke: Vec<&RecordedTick> = of_motion()
        .filter(|tick| tick.stroke == Some(stroke) && !tick.position_rad.is_empty())
        .collect();
    let frames = frames(&of_stroke, fps);
    let pen = plan
        .pens
        .get(record.pen)
        .map_or("a", |pen| pen.name.as_str());
    let design = plan.drawing.as_ref().unwrap_or(&plan.scene);
    (!frames.is_empty()).then(|| Episode {
        job: plan.job.clone(),
        motion: plan.motion,
        stroke,
        task: format!("draw stroke {} of {design} with the {pen} pen", stroke + 1),
        fps: f64::from(fps),
        recording: job,
        frames,
    })
}

/// Returns the tick nearest to each frame's time. A gap longer than a frame ends the episode: readings are never made up.
fn frames<'a>(ticks: &[&'a RecordedTick], fps: u32) -> Vec<&'a RecordedTick> {
    let mut frames: Vec<&RecordedTick> = Vec::new();
    let Some(first) = ticks.first() else {
        return frames;
    };
    let period_ns = SECOND_NS / u64::from(fps);
    let mut index = 0;
    loop {
        let elapsed_ns = frames.len() as u64 * SECOND_NS / u64::from(fps);
        let due_ns = first.at_ns.saturating_add(elapsed_ns);
        let distance_ns = |tick: &&RecordedTick| tick.at_ns.abs_diff(due_ns);
        while let (Some(now), Some(next)) = (ticks.get(index), ticks.get(index + 1))
            && distance_ns(next) <= distance_ns(now)
        {
            index += 1;
        }
        match ticks.get(index) {
            Some(tick) if distance_ns(tick) <= period_ns / 2 => frames.push(tick),
            _ => return frames,
        }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn ticks(at_ms: &[u64]) -> Vec<RecordedTick> {
        let tick = |at_ms: &u64| RecordedTick {
            at_ns: at_ms * 1_000_000,
            ..RecordedTick::default()
        };
        at_ms.iter().map(tick).collect()
    }

    fn at_ms(ticks: &[RecordedTick], fps: u32) -> Vec<u64> {
        let ticks: Vec<&RecordedTick> = ticks.iter().collect();
        let frames = frames(&ticks, fps);
        frames.iter().map(|tick| tick.at_ns / 1_000_000).collect()
    }

    #[test]
    fn a_frame_is_the_nearest_tick_and_a_gap_ends_the_episode() {
        let even = ticks(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert_eq!(at_ms(&even, 20), [0, 50, 100]);
        assert_eq!(at_ms(&even, 100).len(), 11);
        let jittered = ticks(&[3, 12, 24, 33, 51, 54, 61, 103]);
        assert_eq!(at_ms(&jittered, 20), [3, 54, 103]);
        let gap = ticks(&[0, 10, 50, 51, 200, 210, 250]);
        assert_eq!(at_ms(&gap, 20), [0, 50]);
        assert!(at_ms(&[], 20).is_empty());
    }
}
