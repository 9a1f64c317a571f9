//! Keeps arms apart that share a scene: the rule [`GateRule::Apart`].
//!
//! While two arms are carried out together, neither goes on more than [`plan::NEIGHBOUR_SKEW`]
//! samples ahead of where either was measured (`concert`): an arm that lags is on its path, late. So
//! at any moment there is one sample near which both are. Wherever each may be near it, and wherever a
//! stop finds it and leaves it, the two are apart by the clearance, by what is not known of where their
//! bases stand, and by how far an arm may be beside its path (`neighbour_body`). An arm that stands is
//! where it was measured.

use std::ops::RangeInclusive;

use nalgebra::IsometryMatrix3;

use super::check::{READING_AGE_MAX, TrajectoryJudge, exceeds};
use super::escape::Ratchet;
use super::joint_rates::excess;
use super::neighbour_body::{JudgedMotion, Nearness, NeighbourBody, nearness};
use super::{GateRefusal, GateRule, StandingArm};
use base::units::value_and_limit;
use base::wording::duration;
use kin::capsule::PlacedCapsule;
use plan::SpanKind;
use scene::{ArmBeside, CLEARANCE_M, Scene};

/// Speed of a joint from which an arm does not stand; noise between two readings is less.
const STANDING_RAD_S: f64 = 0.1;

/// Largest difference between where two arms have each other's bases, in metres and in a matrix of
/// rotation.
const SAME_BASE: f64 = 1e-6;

/// Most that may be unknown of where an arm stands beside another.
const UNCERTAINTY_M_MAX: f64 = 1.0;

/// Exceeds the rounding of a distance.
const ROUNDING_M: f64 = 1e-9;

/// An arm of a pair.
#[derive(Clone, Copy)]
enum Neighbour<'a> {
    Moves(&'a JudgedMotion<'a>),
    Stands(&'a StandingArm<'a>),
}

/// Refuses motions that do not keep their arms apart from each other and from those that stand.
pub(super) fn check(moving: &[JudgedMotion<'_>], standing: &[StandingArm<'_>]) -> Vec<GateRefusal> {
    let Some(first) = moving.first() else {
        return Vec::new();
    };
    let moving_arms = moving.iter().map(Neighbour::Moves);
    let standing_arms = standing.iter().map(Neighbour::Stands);
    let arms: Vec<Neighbour<'_>> = moving_arms.chain(standing_arms).collect();
    let checked = check_all_there(&arms)
        .and_then(|()| check_time_base(moving))
        .and_then(|()| standing.iter().try_for_each(check_stands));
    if let Err(why) = checked {
        return vec![refusal(first, why)];
    }
    let mut refusals = Vec::new();
    for (index, motion) in moving.iter().enumerate() {
        for other in arms.iter().skip(index + 1) {
            match PairJudge::new(motion, *other) {
                Ok(pair) => refusals.extend(pair.run()),
                Err(why) => refusals.push(refusal(motion, why)),
            }
        }
    }
    refusals
}

/// Returns the refusal of a motion as a whole.
fn refusal(motion: &JudgedMotion<'_>, why: String) -> GateRefusal {
    GateRefusal {
        arm: motion.scene.arm_name.clone(),
        rule: GateRule::Apart,
        sample: 0,
        doing: None,
        item: None,
        at_mm: None,
        excess: None,
        why,
    }
}

/// Checks that the arms are exactly those of one scene.
fn check_all_there(arms: &[Neighbour<'_>]) -> Result<(), String> {
    for arm in arms {
        let scene = arm.scene();
        for beside in &scene.beside {
            let mut names = arms.iter().map(|other| other.scene().arm_name.as_ref());
            if !names.any(|name| name == Some(&beside.name)) {
                return Err(format!(
                    "the position of arm `{}`, which stands beside {}, is unknown: that arm must also be read or planned",
                    beside.name,
                    words_of(scene)
                ));
            }
        }
        let (count, known) = (arms.len(), scene.beside.len() + 1);
        if known != count {
            return Err(format!(
                "{count} arms are judged together, but the scene of {} has {known} arms. All must be of the same scene",
                words_of(scene)
            ));
        }
    }
    Ok(())
}

/// Checks that all motions have one time base, and that none goes back along its path while another
/// goes on.
fn check_time_base(moving: &[JudgedMotion<'_>]) -> Result<(), String> {
    let bases = moving.iter().map(|motion| {
        let trajectory = motion.trajectory;
        (trajectory.period, trajectory.samples.len())
    });
    let pairs = bases.clone().zip(bases.skip(1));
    for ((period, samples), (other_period, other_samples)) in pairs {
        if (period, samples) != (other_period, other_samples) {
            return Err(format!(
                "motions of neighbouring arms must have the same samples: one has {samples} of {period:?}, the other {other_samples} of {other_period:?}"
            ));
        }
    }
    let mut spans = moving.iter().flat_map(|motion| &motion.trajectory.spans);
    match moving.len() > 1 && spans.any(|span| span.kind == SpanKind::Probe) {
        true => Err(
            "no other arm may move during a probe: the probing arm turns back wherever it touches"
                .to_owned(),
        ),
        false => Ok(()),
    }
}

/// Checks that an arm was read a moment ago and does not move.
fn check_stands(arm: &StandingArm<'_>) -> Result<(), String> {
    let (name, measured) = (words_of(arm.scene), arm.measured);
    let age = arm.now.since(measured.at);
    if exceeds(age, READING_AGE_MAX) {
        return Err(format!(
            "{name} has not answered for {} (at most {}), so its position is unknown",
            duration(age),
            duration(READING_AGE_MAX)
        ));
    }
    let (dof, angles) = (arm.scene.arm.dof(), &measured.position_rad);
    if angles.len() != dof || !angles.is_finite() {
        return Err(format!(
            "the reading of {name} lacks a valid angle for at least one of its {dof} joints"
        ));
    }
    let is_moving = |speed: &f64| exceeds(speed.abs(), STANDING_RAD_S) || speed.is_nan();
    if measured.velocity_rad_s.iter().any(is_moving) {
        return Err(format!(
            "{name} is moving: it must stand still, or be planned together with the others"
        ));
    }
    Ok(())
}

fn words_of(scene: &Scene) -> String {
    let name = scene.arm_name.as_ref();
    name.map_or_else(|| "this arm".to_owned(), |name| format!("arm `{name}`"))
}

impl<'a> Neighbour<'a> {
    fn scene(&self) -> &'a Scene {
        match self {
            Self::Moves(motion) => motion.scene,
            Self::Stands(arm) => arm.scene,
        }
    }

    /// Returns what the arm knows of another one.
    fn beside(&self, other: &Self) -> Result<&'a ArmBeside, String> {
        let name = other.scene().arm_name.as_ref();
        let mut beside = self.scene().beside.iter();
        let found = beside.find(|beside| Some(&beside.name) == name);
        found.ok_or_else(|| {
            let (one, other) = (words_of(self.scene()), words_of(other.scene()));
            format!("in the scene of {one} there is no {other}: all arms must be of the same scene")
        })
    }
}

/// Judges two arms, of which the first moves.
struct PairJudge<'a> {
    motion: &'a JudgedMotion<'a>,
    one: NeighbourBody<'a>,
    other: NeighbourBody<'a>,
    other_name: String,
    /// Distance that their bodies keep where both are as planned.
    limit_m: f64,
    /// The greatest distance so far of a motion that may only go away from an arm that stands; `None` for any other.
    escape: Option<Ratchet>,
    /// The samples of either of which every one was found far enough from every one of the other.
    cleared: Option<[RangeInclusive<usize>; 2]>,
    /// The last two samples, one of each, that were found too near to each other.
    too_near: Option<[usize; 2]>,
}

impl<'a> PairJudge<'a> {
    fn new(motion: &'a JudgedMotion<'a>, other: Neighbour<'a>) -> Result<Self, String> {
        let one = Neighbour::Moves(motion);
        let (ours, theirs) = (one.beside(&other)?, other.beside(&one)?);
        let loop_back = ours.base_in_ours * theirs.base_in_ours;
        let off = loop_back.to_homogeneous() - nalgebra::Matrix4::identity();
        // NaN is no agreement.
        if !off.iter().all(|off| off.abs() <= SAME_BASE) {
            return Err(format!(
                "{} and {} have different places for their bases: all arms must be of the same scene",
                words_of(motion.scene),
                words_of(other.scene())
            ));
        }
        let known_within_m = [ours.uncertainty_m, theirs.uncertainty_m];
        for uncertainty_m in known_within_m {
            if !(0.0..=UNCERTAINTY_M_MAX).contains(&uncertainty_m) {
                return Err(format!(
                    "the distance between {} and {} is uncertain by {uncertainty_m} m; 0 to {UNCERTAINTY_M_MAX} m are possible. Measure it again",
                    words_of(motion.scene),
                    words_of(other.scene())
                ));
            }
        }
        let base = ours.base_in_ours;
        let (both_move, body) = match other {
            Neighbour::Moves(other) => (true, NeighbourBody::moving(other, base, true)),
            Neighbour::Stands(arm) => {
                let at_rad = arm.measured.position_rad;
                (false, NeighbourBody::standing(arm.scene, base, at_rad))
            }
        };
        let withdraws = motion
            .trajectory
            .spans
            .iter()
            .all(|span| matches!(span.kind, SpanKind::Lift | SpanKind::Pose | SpanKind::Jog));
        Ok(Self {
            motion,
            one: NeighbourBody::moving(motion, IsometryMatrix3::identity(), both_move),
            other: body,
            other_name: words_of(other.scene()),
            limit_m: known_within_m.into_iter().fold(0.0, f64::max) + CLEARANCE_M,
            escape: (!both_move && withdraws).then(Ratchet::new),
            cleared: None,
            too_near: None,
        })
    }

    /// Judges every sample; returns the worst one of each stroke and activity.
    fn run(mut self) -> Vec<GateRefusal> {
        let motion = self.motion;
        let mut judge = TrajectoryJudge::new(motion.scene, motion.trajectory);
        let mut measured: Option<(usize, f64)> = None;
        for sample in 0..motion.trajectory.samples.len() {
            let travel_m = self.one.travel_bound_m(sample) + self.other.travel_bound_m(sample);
            let bound_m = self.limit_m + travel_m;
            let room_m = measured.map_or(f64::NEG_INFINITY, |(at, gap_m)| {
                gap_m - self.one.moved_m(at, sample) - self.other.moved_m(at, sample)
            });
            if room_m >= bound_m {
                continue;
            }
            let gap_m = self.nearest_of(&self.one.parts(sample), sample);
            measured = Some((sample, gap_m));
            let escape = self.escape.as_mut();
            let comes_nearer =
                escape.is_none_or(|farthest| farthest.breached(gap_m, f64::INFINITY));
            if gap_m < bound_m && (comes_nearer || !self.is_lifted_away(sample, gap_m)) {
                self.judge_near(&mut judge, sample);
            }
        }
        let arm = &motion.scene.arm_name;
        let refusals = judge.refusals.into_iter();
        let of_arm = refusals.map(|refusal| GateRefusal {
            arm: arm.clone(),
            ..refusal
        });
        of_arm.collect()
    }

    fn judge_near(&mut self, judge: &mut TrajectoryJudge<'_>, sample: usize) {
        let Some(near) = self.nearness(sample) else {
            return;
        };
        let (value, limit) = (near.gap_m * 1e3, near.limit_m * 1e3);
        let part = self.one.part_name(near.parts.0);
        let theirs = self.other.part_name(near.parts.1);
        let other = format!("{theirs} of {}", self.other_name);
        judge.refuse(GateRule::Apart, sample, excess(value, limit, "mm"), || {
            let (value, limit) = value_and_limit(value, limit);
            format!(
                "{part} would come within {value} mm of {other}. The limit here, {limit} mm, includes the clearance and room for a late stop of either arm"
            )
        });
    }

    /// Returns two parts that are too near to each other where the arms may be while the one near which both are is `sample`.
    fn nearness(&mut self, sample: usize) -> Option<Nearness> {
        let windows = [
            self.one.window(sample, sample),
            self.other.window(sample, sample),
        ];
        let [ours, theirs] = &windows;
        self.one.fill(ours);
        self.other.fill(theirs);
        let known = self
            .too_near
            .filter(|[our, their]| ours.contains(our) && theirs.contains(their));
        let all = ours
            .clone()
            .flat_map(|our| theirs.clone().map(move |their| [our, their]));
        let is_cleared = |[our, their]: &[usize; 2]| {
            let cleared = self.cleared.as_ref();
            cleared.is_some_and(|[ours, theirs]| ours.contains(our) && theirs.contains(their))
        };
        let new = all.filter(|pair| !is_cleared(pair));
        let found = known.into_iter().chain(new).find_map(|pair| {
            let [our, their] = pair;
            let near = nearness((&self.one, our), (&self.other, their), self.limit_m)?;
            Some((pair, near))
        });
        match found {
            Some((pair, near)) => {
                self.too_near = Some(pair);
                Some(near)
            }
            None => {
                self.cleared = Some(windows);
                None
            }
        }
    }

    /// Returns whether a stop does not lift the first arm nearer to the other than it is.
    fn is_lifted_away(&self, sample: usize, gap_m: f64) -> bool {
        let lifted = self.one.lifted(sample);
        let mut gaps = lifted.map(|parts| self.nearest_of(&parts, sample));
        gaps.all(|lifted_m| lifted_m >= gap_m.min(self.limit_m) - ROUNDING_M)
    }

    /// Returns the distance of some parts of the first arm from the other where that is expected; one that is not a number counts
    /// as none at all.
    fn nearest_of(&self, ours: &[PlacedCapsule], sample: usize) -> f64 {
        let theirs = self.other.parts(sample);
        let mut least_m = f64::INFINITY;
        for (one, our) in ours.iter().enumerate() {
            for (other, their) in theirs.iter().enumerate() {
                if self.one.is_fixed(one) && self.other.is_fixed(other) {
                    continue;
                }
                let gap_m = our.clearance_m(their);
                if gap_m.is_nan() {
                    return f64::NEG_INFINITY;
                }
                least_m = least_m.min(gap_m);
            }
        }
        least_m
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use crate::tests::judged;
    use nalgebra::{Rotation3, Translation3, Vector3};

    fn pair<'a>(
        motion: &'a JudgedMotion<'a>,
        other: NeighbourBody<'a>,
        both_move: bool,
    ) -> PairJudge<'a> {
        PairJudge {
            motion,
            one: NeighbourBody::moving(motion, IsometryMatrix3::identity(), both_move),
            other,
            other_name: String::new(),
            limit_m: CLEARANCE_M,
            escape: None,
            cleared: None,
            too_near: None,
        }
    }

    /// Returns the last distance that is too near, and the first that is not.
    fn edge_m(is_near: impl Fn(f64) -> bool) -> [f64; 2] {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            match is_near(middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        [low, high]
    }

    /// A stop lifts: what goes away along its path and would be lifted into the other arm may not go.
    #[test]
    fn a_lift_that_goes_nearer_is_told_from_one_that_goes_away() {
        judged(|motion| {
            let samples = 0..motion.trajectory.samples.len();
            let drawn = samples.filter(|at| motion.stops.lift(*at).is_some());
            let (mut nearer, mut away) = (0, 0);
            for sample in drawn.step_by(97) {
                for [x, y, z] in [
                    [0.0, 0.0, 1.0],
                    [0.0, -1.0, 0.0],
                    [0.0, -0.8, 0.6],
                    [0.0, -0.8, -0.6],
                ] {
                    // The same arm in the same pose, so far away.
                    let judge = |away_m: f64| {
                        let base = IsometryMatrix3::translation(x * away_m, y * away_m, z * away_m);
                        let at_rad = motion.trajectory.reached()[sample];
                        let other = NeighbourBody::standing(motion.scene, base, at_rad);
                        pair(motion, other, false)
                    };
                    let gap_m =
                        |judge: &PairJudge<'_>| judge.nearest_of(&judge.one.parts(sample), sample);
                    let [_, away_m] = edge_m(|away_m| gap_m(&judge(away_m)) < 0.002);
                    let near = judge(away_m);
                    let raised = near.one.lifted(sample).last().unwrap();
                    let goes_nearer = near.nearest_of(&raised, sample) < gap_m(&near) - 1e-6;
                    let is_away = near.is_lifted_away(sample, gap_m(&near));
                    assert!(!goes_nearer || !is_away, "{sample} {x} {y} {z}");
                    nearer += usize::from(goes_nearer);
                    away += usize::from(is_away);
                    let far = judge(away_m + 0.3);
                    assert!(far.is_lifted_away(sample, gap_m(&far)), "{sample}");
                }
            }
            assert!(nearer > 0 && away > 0, "{nearer} {away}");
        });
    }

    /// What was found around one sample is kept for the next, and changes no answer.
    #[test]
    fn a_sample_is_judged_as_if_it_were_the_first() {
        judged(|motion| {
            let judge = |away_m: f64| {
                let turned = Rotation3::from_axis_angle(&Vector3::z_axis(), std::f64::consts::PI);
                let away = Translation3::new(0.0, -away_m, 0.0);
                let base = IsometryMatrix3::from_parts(away, turned);
                pair(motion, NeighbourBody::moving(motion, base, true), true)
            };
            for sample in (40..motion.trajectory.samples.len()).step_by(23) {
                let [near_m, clear_m] = edge_m(|away_m| judge(away_m).nearness(sample).is_some());
                for (away_m, is_near) in [(near_m, true), (clear_m, false)] {
                    let mut kept = judge(away_m);
                    for before in (sample - 40..sample).step_by(4) {
                        kept.nearness(before);
                    }
                    assert_eq!(kept.nearness(sample).is_some(), is_near, "{sample}");
                }
            }
        });
    }
}
