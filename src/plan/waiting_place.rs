//! Places of a trajectory at which its arm can wait with the pen up, and the trajectory with the waits.
//!
//! Where the arm is at rest, it just stands longer. Elsewhere the path is slowed to rest and on again: the
//! rate at which it is passed falls and rises smoothly, over so many samples that no joint exceeds a limit.

use super::limit_violations::seam_ratio;
use super::time_parameterization::NOISE;
use super::trajectory::{SpanKind, Trajectory, TrajectorySpan};
use arm::ArmModel;
use base::units::JointVector;

/// Samples before and after a place over which the rate may change, fewest first; 0 where the arm is at rest.
const RAMPS: [usize; 8] = [0, 4, 6, 9, 13, 18, 25, 35];
/// Rounding of a position, in samples.
const ROUNDING: f64 = 1e-9;
/// Samples around a ramp whose differences it changes.
const STENCIL: usize = 4;

/// A place at which an arm can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitingPlace {
    /// The sample at which it stands.
    pub(super) at: usize,
    /// Samples before and after that are passed ever slower and ever faster. Each takes that many samples longer.
    pub(super) ramp: usize,
}

/// A wait at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) place: WaitingPlace,
    /// Samples for which the arm stands still.
    pub(super) still: usize,
}

impl WaitingPlace {
    /// Returns the samples of path, from where it begins to slow, that are behind the arm after some periods.
    fn slowed(&self, period: usize) -> f64 {
        // The rate is 1 - 3 f² + 2 f³ on the way to rest, and the same backwards on the way on.
        let periods = (2 * self.ramp) as f64;
        let f = period as f64 / periods;
        (f - f.powi(3) + f.powi(4) / 2.0) * periods
    }

    /// Returns the samples of path, from the place on, that are behind the arm after some periods.
    fn sped(&self, period: usize) -> f64 {
        let periods = (2 * self.ramp) as f64;
        let f = period as f64 / periods;
        (f.powi(3) - f.powi(4) / 2.0) * periods
    }

    /// Returns the periods until it has passed so many samples from where it begins to slow.
    pub(super) fn slowing(&self, samples: usize) -> usize {
        let mut periods = 0..2 * self.ramp;
        let passed = periods.find(|period| self.slowed(*period) >= samples as f64 - ROUNDING);
        passed.unwrap_or(2 * self.ramp)
    }

    /// Returns the periods until it has passed so many samples from the place on.
    pub(super) fn speeding(&self, samples: usize) -> usize {
        if samples >= self.ramp {
            return samples + self.ramp;
        }
        let mut periods = 0..2 * self.ramp;
        let passed = periods.find(|period| self.sped(*period) >= samples as f64 - ROUNDING);
        passed.unwrap_or(2 * self.ramp)
    }
}

/// Returns the places in order: the first sample, the last one, and those between two lines.
pub(super) fn waiting_places(arm: &ArmModel, trajectory: &Trajectory) -> Vec<WaitingPlace> {
    let at_rest = |at| WaitingPlace { at, ramp: 0 };
    let last = trajectory.samples.len().saturating_sub(1);
    let mut places = vec![at_rest(0)];
    for spans in trajectory
        .spans
        .chunk_by(|one, next| is_up(one) && is_up(next))
    {
        let between = places_between(arm, trajectory, spans);
        places.extend(
            between
                .into_iter()
                .filter(|place| (1..last).contains(&place.at)),
        );
    }
    if last > 0 {
        places.push(at_rest(last));
    }
    places
}

/// Returns whether the pen is up or on its way up or down.
fn is_up(span: &TrajectorySpan) -> bool {
    is_clear(span) || matches!(span.kind, SpanKind::Lift | SpanKind::Lower)
}

/// Returns whether the pen is clear of the sheet.
fn is_clear(span: &TrajectorySpan) -> bool {
    matches!(
        span.kind,
        SpanKind::Travel | SpanKind::Pose | SpanKind::Approach
    )
}

/// Returns the places within spans with the pen up: at the ends of each way across where the arm is at rest
/// there, otherwise in the middle of the way.
fn places_between(
    arm: &ArmModel,
    trajectory: &Trajectory,
    spans: &[TrajectorySpan],
) -> Vec<WaitingPlace> {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return Vec::new();
    };
    let within = first.first..last.end;
    let possible = |at: usize, ramps: &[usize]| {
        let mut ramps = ramps.iter().copied();
        let has_room = |ramp: &usize| within.start + ramp <= at && at + ramp < within.end;
        let ramp =
            ramps.find(|ramp| has_room(ramp) && is_within_limits(arm, trajectory, at, *ramp));
        ramp.map(|ramp| WaitingPlace { at, ramp })
    };
    let mut places: Vec<WaitingPlace> = Vec::new();
    for span in spans.iter().filter(|span| is_clear(span)) {
        let ends = [span.first.saturating_sub(1), span.end - 1];
        let at_rest = ends.into_iter().filter_map(|at| possible(at, &[0]));
        let before = places.len();
        let is_new = |place: &WaitingPlace, places: &[WaitingPlace]| {
            places
                .last()
                .is_none_or(|last| last.at + last.ramp < place.at - place.ramp)
        };
        for place in at_rest {
            if is_new(&place, &places) {
                places.push(place);
            }
        }
        if places.len() == before {
            let middle = usize::midpoint(span.first, span.end);
            let place = possible(middle, &RAMPS);
            places.extend(place.filter(|place| is_new(place, &places)));
        }
    }
    places
}

/// Returns whether all joints keep their limits where the path is slowed to rest and on again.
fn is_within_limits(arm: &ArmModel, trajectory: &Trajectory, at: usize, ramp: usize) -> bool {
    let samples = trajectory.reached();
    let first = at.saturating_sub(ramp + STENCIL);
    let end = (at + ramp + STENCIL + 1).min(samples.len());
    let Some(near) = samples.get(first..end) else {
        return false;
    };
    let place = WaitingPlace {
        at: at - first,
        ramp,
    };
    let still = Wait {
        place,
        still: STENCIL,
    };
    let passed = positions(near.len(), &[still]);
    let slowed: Vec<JointVector> = passed.iter().map(|at| interpolated(near, *at)).collect();
    seam_ratio(arm, &slowed) <= seam_ratio(arm, near).max(1.0 + NOISE)
}

/// Returns the trajectory with waits, which are in the order of their places.
pub(super) fn with_waits(trajectory: &Trajectory, waits: &[Wait]) -> Trajectory {
    let passed = positions(trajectory.samples.len(), waits);
    let slowed = |samples: &[JointVector]| -> Vec<JointVector> {
        match samples.is_empty() {
            true => Vec::new(),
            false => passed.iter().map(|at| interpolated(samples, *at)).collect(),
        }
    };
    let index = |sample: usize| passed.partition_point(|at| *at < sample as f64 - ROUNDING);
    let spans = trajectory.spans.iter().map(|span| TrajectorySpan {
        first: index(span.first),
        end: index(span.end),
        ..span.clone()
    });
    Trajectory {
        period: trajectory.period,
        samples: slowed(&trajectory.samples),
        reached: slowed(&trajectory.reached),
        spans: spans.collect(),
    }
}

/// Returns the index that a sample has with these waits.
pub(super) fn index_with_waits(sample: usize, waits: &[Wait]) -> usize {
    let before = waits.iter().filter(|wait| wait.place.at < sample);
    sample
        + before
            .map(|wait| wait.still + 2 * wait.place.ramp)
            .sum::<usize>()
}

/// Returns the positions on a path of so many samples that are passed, one in each period.
fn positions(count: usize, waits: &[Wait]) -> Vec<f64> {
    let mut passed = Vec::with_capacity(count);
    let mut next = 0;
    for Wait { place, still } in waits {
        let (at, ramp) = (place.at, place.ramp);
        passed.extend((next..=at - ramp).map(|sample| sample as f64));
        let periods = 1..=2 * ramp;
        passed.extend(
            periods
                .clone()
                .map(|period| (at - ramp) as f64 + place.slowed(period)),
        );
        passed.extend(std::iter::repeat_n(at as f64, *still));
        passed.extend(periods.map(|period| at as f64 + place.sped(period)));
        next = at + ramp + 1;
    }
    passed.extend((next..count).map(|sample| sample as f64));
    passed
}

/// Returns the joints at a position between samples, on the cubic curve whose slopes at them are those of their neighbours.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    reason = "a position is within its samples, of which there is at least one"
)]
fn interpolated(samples: &[JointVector], at: f64) -> JointVector {
    let last = samples.len() - 1;
    let index = (at.floor() as usize).min(last);
    let f = at - index as f64;
    if f < 1e-12 {
        return samples[index];
    }
    let [p, q, r, s] = [
        index.saturating_sub(1),
        index,
        (index + 1).min(last),
        (index + 2).min(last),
    ]
    .map(|index| &samples[index]);
    let (ff, fff) = (f * f, f * f * f);
    let weights = [
        -0.5 * fff + ff - 0.5 * f,
        1.5 * fff - 2.5 * ff + 1.0,
        -1.5 * fff + 2.0 * ff + 0.5 * f,
        0.5 * fff - 0.5 * ff,
    ];
    let early = p.zip(q, |p, q| p * weights[0] + q * weights[1]);
    let late = r.zip(s, |r, s| r * weights[2] + s * weights[3]);
    early.zip(&late, |early, late| early + late)
}
