//! Cuts recordings into episodes: one for each finished stroke, with its approach and lift.

use crate::error::RecordingError;
use crate::plan_record::PlanRecord;
use crate::recorded_job::{RecordedJob, RecordedTick, seconds};
use base::wording;

const SECOND_NS: u64 = 1_000_000_000;

/// By how much ticks may come less often than frames: their times are read from a clock.
const RATE_TOLERANCE: f64 = 1.02;

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
    /// Number of frames that a gap in the ticks cuts off.
    frames_cut_off: usize,
}

/// Refuses more frames a second than ticks were recorded.
pub(crate) fn refuse_rate(jobs: &[RecordedJob], fps: u32) -> Result<(), RecordingError> {
    for job in jobs {
        let ticks: Vec<&RecordedTick> = job.ticks.iter().collect();
        let Some(interval_ns) = tick_interval_ns(&ticks) else {
            continue;
        };
        let ticks_hz = seconds(SECOND_NS) / seconds(interval_ns);
        if f64::from(fps) > ticks_hz * RATE_TOLERANCE {
            return Err(RecordingError::Rate {
                path: job.path.clone(),
                ticks_hz,
                fps,
            });
        }
    }
    Ok(())
}

/// Returns the median time between two ticks.
fn tick_interval_ns(ticks: &[&RecordedTick]) -> Option<u64> {
    let pairs = ticks.iter().zip(ticks.iter().skip(1));
    let mut intervals_ns: Vec<u64> = pairs
        .filter_map(|(one, next)| next.at_ns.checked_sub(one.at_ns))
        .filter(|interval_ns| *interval_ns > 0)
        .collect();
    intervals_ns.sort_unstable();
    intervals_ns.get(intervals_ns.len() / 2).copied()
}

/// Returns the episodes of recordings, and notes on strokes without one.
pub(crate) fn episodes(jobs: &[RecordedJob], fps: u32) -> (Vec<Episode<'_>>, Vec<String>) {
    let (mut episodes, mut notes) = (Vec::new(), Vec::new());
    for job in jobs {
        for plan in &job.plans {
            for stroke in 0..plan.strokes.len() {
                match episode(job, plan, stroke, fps) {
                    Some(episode) => {
                        notes.extend(episode.gap_note());
                        episodes.push(episode);
                    }
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
    let (frames, frames_cut_off) = frames(&of_stroke, fps);
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
        frames_cut_off,
    })
}

impl Episode<'_> {
    /// Returns a note on frames that a gap cuts off, if there are any.
    fn gap_note(&self) -> Option<String> {
        let kept = self.frames.len();
        (self.frames_cut_off > 0).then(|| {
            format!(
                "{}: stroke {} has a gap in its ticks after {}; {kept} of {} are exported",
                self.job,
                self.stroke + 1,
                wording::seconds(kept as f64 / self.fps),
                wording::count(kept + self.frames_cut_off, "frame")
            )
        })
    }
}

/// Returns the tick nearest to each frame's time until the last tick, and the number of frames that were cut off: a gap longer
/// than a frame ends the episode, for readings are never made up.
fn frames<'a>(ticks: &[&'a RecordedTick], fps: u32) -> (Vec<&'a RecordedTick>, usize) {
    let mut frames: Vec<&RecordedTick> = Vec::new();
    let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else {
        return (frames, 0);
    };
    let period_ns = SECOND_NS / u64::from(fps);
    let late_ns = tick_interval_ns(ticks).unwrap_or(0) / 2;
    let length_ns = last.at_ns.saturating_sub(first.at_ns) + late_ns;
    let all = u128::from(length_ns) * u128::from(fps) / u128::from(SECOND_NS) + 1;
    let all = usize::try_from(all).unwrap_or(usize::MAX);
    let mut index = 0;
    while frames.len() < all {
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
            _ => break,
        }
    }
    let cut_off = all - frames.len();
    (frames, cut_off)
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

    fn at_ms(ticks: &[RecordedTick], fps: u32) -> (Vec<u64>, usize) {
        let ticks: Vec<&RecordedTick> = ticks.iter().collect();
        let (frames, cut_off) = frames(&ticks, fps);
        let at_ms = frames.iter().map(|tick| tick.at_ns / 1_000_000);
        (at_ms.collect(), cut_off)
    }

    #[test]
    fn a_frame_is_the_nearest_tick_and_a_gap_ends_the_episode() {
        let even = ticks(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
        assert_eq!(at_ms(&even, 20), (vec![0, 50, 100], 0));
        assert_eq!(at_ms(&even, 100).0.len(), 11);
        let jittered = ticks(&[3, 12, 24, 33, 51, 54, 61, 103]);
        assert_eq!(at_ms(&jittered, 20), (vec![3, 54, 103], 0));
        let gap = ticks(&[0, 10, 50, 51, 200, 210, 250]);
        assert_eq!(at_ms(&gap, 20), (vec![0, 50], 4));
        assert!(at_ms(&[], 20).0.is_empty());
    }

    /// At a low rate the last reading stood for a time after the end.
    #[test]
    fn frames_at_any_rate_end_with_the_ticks() {
        let second = ticks(&(0..=60).map(|tick| tick * 10).collect::<Vec<u64>>());
        assert_eq!(at_ms(&second, 1), (vec![0], 0));
        assert_eq!(at_ms(&second, 2), (vec![0, 500], 0));
        for fps in [24, 30, 60, 100] {
            let (frames, cut_off) = at_ms(&second, fps);
            let expected: Vec<u64> = (0..=u64::from(fps) * 600 / 1000)
                .map(|frame| (frame * 1000 + u64::from(fps) / 2) / u64::from(fps))
                .collect();
            assert_eq!((frames.len(), cut_off), (expected.len(), 0), "{fps}");
            let is_near = |(at, due): (&u64, &u64)| at.abs_diff(*due) <= 5;
            assert!(
                frames.iter().zip(&expected).all(is_near),
                "{fps}: {frames:?}"
            );
            assert!(frames.is_sorted_by(|one, next| one < next), "{fps}");
        }
    }

    #[test]
    fn a_rate_above_that_of_the_ticks_is_refused() {
        let job = |period_ms: u64| RecordedJob {
            ticks: ticks(&(0..20).map(|tick| tick * period_ms).collect::<Vec<u64>>()),
            ..RecordedJob::default()
        };
        assert!(refuse_rate(&[job(10)], 100).is_ok());
        assert!(refuse_rate(&[job(10), job(20)], 50).is_ok());
        assert!(refuse_rate(&[RecordedJob::default()], 60).is_ok());
        for (period_ms, fps) in [(10, 110), (10, u32::MAX), (20, 60), (20, 100)] {
            let refused = refuse_rate(&[job(period_ms)], fps);
            assert!(matches!(refused, Err(RecordingError::Rate { .. })), "{fps}");
        }
    }
}
