//! Figures of a recording: how well joints followed, how near the ink is to the plan, and the causes of its errors.

use crate::recorded_job::{RecordedJob, RecordedTick};
use base::plane::{distance, distance_to_piece, pieces};

/// Smallest distance of ink from its planned line that is reported.
pub(crate) const OFF_MM: f64 = 0.5;

/// Following error of a joint.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JointFollowing {
    pub(crate) name: String,
    pub(crate) max_deg: f64,
    pub(crate) rms_deg: f64,
}

/// The largest error of a stroke's ink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StrokeError {
    pub(crate) motion: u32,
    pub(crate) stroke: usize,
    pub(crate) max_mm: f64,
    pub(crate) at_mm: [f64; 2],
    pub(crate) at_s: f64,
    /// Cause, as far as the recording shows it.
    pub(crate) cause: String,
}

/// Figures of a whole recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingFigures {
    pub(crate) joints: Vec<JointFollowing>,
    /// Time since the first tick and distance of the ink from the plan, in mm.
    pub(crate) errors_mm: Vec<[f64; 2]>,
    pub(crate) mean_mm: f64,
    pub(crate) max_mm: f64,
    pub(crate) strokes: Vec<StrokeError>,
    /// Highest temperature of each servo.
    pub(crate) hottest_c: Vec<Option<f64>>,
}

impl RecordingFigures {
    pub(crate) fn from_job(job: &RecordedJob) -> Self {
        let mut figures = Self {
            joints: joints(job),
            hottest_c: hottest_c(&job.ticks),
            ..Self::default()
        };
        for tick in job.ticks.iter().filter(|tick| tick.pen_down) {
            let Some(error) = ink_error(job, tick) else {
                continue;
            };
            let at_s = job.time_s(tick);
            figures.errors_mm.push([at_s, error.mm]);
            figures.add_error(job, tick, &error, at_s);
        }
        let errors_mm = figures.errors_mm.iter().map(|[_, mm]| *mm);
        figures.max_mm = errors_mm.clone().fold(0.0, f64::max);
        figures.mean_mm = errors_mm.sum::<f64>() / figures.errors_mm.len().max(1) as f64;
        figures
    }

    /// Keeps the largest error of each stroke.
    fn add_error(&mut self, job: &RecordedJob, tick: &RecordedTick, error: &InkError, at_s: f64) {
        let Some(stroke) = tick.stroke else {
            return;
        };
        let stroke_error = StrokeError {
            motion: tick.motion,
            stroke,
            max_mm: error.mm,
            at_mm: error.at_mm,
            at_s,
            cause: String::new(),
        };
        let last = self.strokes.last_mut();
        match last.filter(|last| last.motion == tick.motion && last.stroke == stroke) {
            Some(last) if last.max_mm >= error.mm => {}
            Some(last) => *last = with_cause(stroke_error, job, tick, error),
            None => self
                .strokes
                .push(with_cause(stroke_error, job, tick, error)),
        }
    }
}

/// Distance of the ink at a tick from its planned line.
struct InkError {
    mm: f64,
    at_mm: [f64; 2],
    /// Distance of the setpoint from that line.
    target_mm: Option<f64>,
}

fn ink_error(job: &RecordedJob, tick: &RecordedTick) -> Option<InkError> {
    let plan = job.plan(tick.motion)?;
    let line = &plan.strokes.get(tick.stroke?)?.points_mm;
    let [x, y, _] = tick.tip_mm?;
    let target = tick.target_mm.map(|[x, y, _]| [x, y]);
    Some(InkError {
        mm: distance_mm([x, y], line),
        at_mm: [x, y],
        target_mm: target.map(|target| distance_mm(target, line)),
    })
}

fn with_cause(
    mut stroke_error: StrokeError,
    job: &RecordedJob,
    tick: &RecordedTick,
    error: &InkError,
) -> StrokeError {
    stroke_error.cause = match error.target_mm {
        Some(target_mm) if target_mm > error.mm / 2.0 => {
            format!("there the plan itself is {target_mm:.2} mm off the design")
        }
        _ => lag_cause(job, tick),
    };
    stroke_error
}

/// Names the joint with the largest following error at a tick.
fn lag_cause(job: &RecordedJob, tick: &RecordedTick) -> String {
    let pairs = tick.setpoint_rad.iter().zip(&tick.position_rad);
    let lags_deg = pairs.map(|(sent, read)| (sent - read).abs().to_degrees());
    let worst = lags_deg.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((joint, deg)) = worst else {
        return "there the joints were not read".to_owned();
    };
    let names = job.plan(tick.motion).map(|plan| plan.joints.as_slice());
    let name = names.and_then(|names| names.get(joint));
    let name = name.map_or("a joint", String::as_str);
    let load = tick.load_ratio.get(joint).copied().flatten();
    let load = load.map_or_else(String::new, |load| {
        format!(", at {:.0} % load", load.abs() * 100.0)
    });
    format!("{name} was {deg:.2}° from its setpoint{load}")
}

fn joints(job: &RecordedJob) -> Vec<JointFollowing> {
    let names = job.plans.first().map(|plan| plan.joints.clone());
    let names = names.unwrap_or_default().into_iter().enumerate();
    let following = names.map(|(joint, name)| {
        let lags_deg = job.ticks.iter().filter_map(|tick| {
            let sent = tick.setpoint_rad.get(joint)?;
            Some((sent - tick.position_rad.get(joint)?).abs().to_degrees())
        });
        let (mut max_deg, mut squares, mut count) = (0.0_f64, 0.0, 0_u32);
        for lag_deg in lags_deg {
            max_deg = max_deg.max(lag_deg);
            squares += lag_deg * lag_deg;
            count += 1;
        }
        JointFollowing {
            name,
            max_deg,
            rms_deg: (squares / f64::from(count.max(1))).sqrt(),
        }
    });
    following.collect()
}

fn hottest_c(ticks: &[RecordedTick]) -> Vec<Option<f64>> {
    let servos = ticks.iter().map(|tick| tick.temperature_c.len()).max();
    let hottest = |servo: usize| {
        let readings = ticks
            .iter()
            .filter_map(|tick| tick.temperature_c.get(servo).copied().flatten());
        readings.reduce(f64::max)
    };
    (0..servos.unwrap_or(0)).map(hottest).collect()
}

/// Returns the distance of a point from a polyline; infinite for a line without points.
pub(crate) fn distance_mm(at_mm: [f64; 2], line: &[[f64; 2]]) -> f64 {
    let first = line.first();
    let first_mm = first.map_or(f64::INFINITY, |first| distance(at_mm, *first));
    pieces(line)
        .map(|piece| distance_to_piece(at_mm, piece))
        .fold(first_mm, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of a job's motions come from the calendar, which may be set back between two of them.
    #[test]
    fn a_calendar_that_is_set_back_is_no_overflow() {
        let tick = |at_ns: u64| RecordedTick {
            at_ns,
            ..RecordedTick::default()
        };
        let job = RecordedJob {
            ticks: vec![tick(2_000_000_000), tick(1_000_000_000)],
            ..RecordedJob::default()
        };
        assert!(job.duration_s().abs() < 1e-9);
    }

    #[test]
    fn a_point_is_as_far_as_the_nearest_piece_of_the_line() {
        let line = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]];
        for (point, mm) in [
            ([5.0, 2.0], 2.0),
            ([12.0, 5.0], 2.0),
            ([-3.0, 4.0], 5.0),
            ([10.0, 10.0], 0.0),
        ] {
            assert!((distance_mm(point, &line) - mm).abs() < 1e-9, "{point:?}");
        }
        assert!(distance_mm([0.0, 0.0], &[]).is_infinite());
    }
}
