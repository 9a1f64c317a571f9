//! The body of an arm beside another: where it is planned to be at a sample, and how far any part of
//! it may be from there.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use nalgebra::IsometryMatrix3;

use super::collision_body::CollisionBody;
use super::collision_world::JointLevers;
use super::depth_trim::TrimmedCopies;
use super::stop_proof::StopProof;
use base::units::JointVector;
use kin::capsule::PlacedCapsule;
use plan::{NEIGHBOUR_FOLLOWING_M, NEIGHBOUR_SKEW, Trajectory};
use scene::Scene;

/// Number of steps in which a lift is followed.
const LIFT_STEPS: u32 = 4;

/// Samples for which one bound is computed.
const BLOCK: usize = 16;

/// Samples around the one near which both arms are.
const HALF_SKEW: usize = NEIGHBOUR_SKEW / 2;
const _: () = assert!(NEIGHBOUR_SKEW.is_multiple_of(2));

/// A motion that was judged on its own.
pub(super) struct JudgedMotion<'a> {
    pub(super) scene: &'a Scene,
    pub(super) trajectory: &'a Trajectory,
    pub(super) stops: &'a StopProof,
    pub(super) copies: Option<&'a TrimmedCopies>,
}

/// An arm of a pair.
pub(super) struct NeighbourBody<'a> {
    body: CollisionBody<'a>,
    levers: JointLevers,
    track: BodyTrack<'a>,
    /// Every pose that it may take from a sample on, by sample.
    poses: HashMap<usize, Vec<Vec<PlacedCapsule>>>,
    /// The last block of samples, and how far any point may be from its place there.
    bound: Option<(usize, f64)>,
}

/// The places of an arm over time.
enum BodyTrack<'a> {
    Stands(JointVector),
    Moves {
        motion: &'a JudgedMotion<'a>,
        /// `true` if the other arm moves, too, and need not be at the same sample.
        is_beside_motion: bool,
        /// How far any point leaves the straight line between two poses that follow each other.
        bend_m: f64,
    },
}

impl<'a> NeighbourBody<'a> {
    pub(super) fn standing(scene: &'a Scene, at_rad: JointVector) -> Self {
        Self::new(scene, BodyTrack::Stands(at_rad))
    }

    pub(super) fn moving(motion: &'a JudgedMotion<'a>, is_beside_motion: bool) -> Self {
        let track = BodyTrack::Moves {
            motion,
            is_beside_motion,
            bend_m: 0.0,
        };
        let mut body = Self::new(motion.scene, track);
        let most_m = body.largest_bend_m(motion);
        if let BodyTrack::Moves { bend_m, .. } = &mut body.track {
            *bend_m = most_m;
        }
        body
    }

    fn new(scene: &'a Scene, track: BodyTrack<'a>) -> Self {
        let body = CollisionBody::new(scene);
        Self {
            levers: JointLevers::new(&body),
            body,
            track,
            poses: HashMap::new(),
            bound: None,
        }
    }

    /// Returns the name of a part for messages.
    pub(super) fn part_name(&self, part: usize) -> String {
        self.body.part_name(part)
    }

    /// Returns whether no joint moves a part.
    pub(super) fn is_fixed(&self, part: usize) -> bool {
        self.body.is_fixed(part)
    }

    /// Returns the joint angles at which it is expected.
    #[expect(
        clippy::expect_used,
        reason = "an arm may not be judged where it is not"
    )]
    fn at_rad(&self, sample: usize) -> &JointVector {
        match &self.track {
            BodyTrack::Stands(at_rad) => at_rad,
            BodyTrack::Moves { motion, .. } => {
                let reached = motion.trajectory.reached().get(sample);
                reached.expect("the sample is one of the judged trajectory")
            }
        }
    }

    /// Returns its parts where they are expected.
    pub(super) fn parts(&self, sample: usize) -> Vec<PlacedCapsule> {
        self.placed(self.at_rad(sample))
    }

    fn placed(&self, q_rad: &JointVector) -> Vec<PlacedCapsule> {
        self.body.placed(&self.body.pose(q_rad)).to_vec()
    }

    /// Returns an upper bound of the movement of any point between two samples, by its joints.
    pub(super) fn moved_m(&self, from: usize, to: usize) -> f64 {
        self.levers.moved_m(self.at_rad(from), self.at_rad(to))
    }

    /// Returns an upper bound of how far any point may be from where it is expected at a sample: by the
    /// range of each joint around a block of samples, so that it costs little.
    pub(super) fn travel_bound_m(&mut self, sample: usize) -> f64 {
        let block = sample / BLOCK;
        match self.bound {
            Some((known, bound_m)) if known == block => bound_m,
            _ => {
                let bound_m = self.block_bound_m(block * BLOCK) + self.following_m();
                self.bound = Some((block, bound_m));
                bound_m
            }
        }
    }

    fn block_bound_m(&self, first: usize) -> f64 {
        let at_rad = *self.at_rad(first);
        let window = self.window(first, first + BLOCK - 1);
        let poses = window.flat_map(|near| self.poses_rad(near, 1));
        let (low, high) = poses.fold((at_rad, at_rad), |(low, high), pose| {
            (low.zip(&pose, f64::min), high.zip(&pose, f64::max))
        });
        self.levers.moved_m(&low, &high)
    }

    /// Returns how far any point of each part may be from where it is expected at a sample.
    pub(super) fn travels_m(&mut self, sample: usize) -> Vec<f64> {
        let window = self.window(sample, sample);
        self.poses.retain(|near, _| window.contains(near));
        for near in window {
            if !self.poses.contains_key(&near) {
                let poses = self.poses_rad(near, LIFT_STEPS);
                let placed = poses.map(|pose| self.placed(&pose)).collect();
                self.poses.insert(near, placed);
            }
        }
        let here = self.parts(sample);
        let mut travels = vec![0.0_f64; here.len()];
        for pose in self.poses.values().flatten() {
            for ((most, here), there) in travels.iter_mut().zip(&here).zip(pose) {
                let from_m = (there.from_m - here.from_m).norm();
                *most = most.max(from_m).max((there.to_m - here.to_m).norm());
            }
        }
        for (part, travel_m) in travels.iter_mut().enumerate() {
            if !self.is_fixed(part) {
                *travel_m += self.bend_m() + self.following_m();
            }
        }
        travels
    }

    /// Returns how far any point may be from its path.
    fn following_m(&self) -> f64 {
        match self.track {
            BodyTrack::Stands(_) => 0.0,
            BodyTrack::Moves { .. } => NEIGHBOUR_FOLLOWING_M,
        }
    }

    fn bend_m(&self) -> f64 {
        match self.track {
            BodyTrack::Stands(_) => 0.0,
            BodyTrack::Moves { bend_m, .. } => bend_m,
        }
    }

    /// Returns its parts at each pose of a lift from a sample.
    pub(super) fn lifted(&self, sample: usize) -> impl Iterator<Item = Vec<PlacedCapsule>> {
        self.poses_rad(sample, LIFT_STEPS)
            .map(|pose| self.placed(&pose))
    }

    /// Returns the samples at which it may be, or from which it may be lifted, while the one near which
    /// both arms are is from `first` to `last`.
    fn window(&self, first: usize, last: usize) -> RangeInclusive<usize> {
        let BodyTrack::Moves {
            motion,
            is_beside_motion,
            ..
        } = self.track
        else {
            return first..=first;
        };
        let end = motion.trajectory.samples.len().saturating_sub(1);
        if !is_beside_motion {
            // Every sample is judged by itself; this covers the step to the next.
            return first..=(last + 1).min(end);
        }
        let (first, ahead) = (first.saturating_sub(HALF_SKEW), last + HALF_SKEW);
        let passed = motion.stops.braking_samples(first, ahead.min(end));
        first..=(ahead + passed).min(end)
    }

    /// Returns every pose that it may take at a sample: where it is expected, where its goals may
    /// be, and lifts from there and from just before the next sample.
    fn poses_rad(&self, sample: usize, lift_steps: u32) -> impl Iterator<Item = JointVector> {
        let motion = match &self.track {
            BodyTrack::Stands(_) => None,
            BodyTrack::Moves { motion, .. } => Some(*motion),
        };
        let expected = std::iter::once(*self.at_rad(sample));
        let others = motion.into_iter().flat_map(move |motion| {
            let trajectory = motion.trajectory;
            let goals = (!trajectory.reached.is_empty()).then_some(&trajectory.samples[..]);
            let copies = motion.copies.into_iter().flat_map(TrimmedCopies::all);
            let all = goals.into_iter().chain(copies);
            all.filter_map(move |joints| joints.get(sample).copied())
        });
        let lifts: Vec<JointVector> = motion.map_or_else(Vec::new, |motion| {
            let lift = |from: usize| motion.stops.lift(from).map(|lift| lift.by_rad);
            let before = sample.checked_sub(1).and_then(lift);
            lift(sample).into_iter().chain(before).collect()
        });
        expected.chain(others).flat_map(move |from| {
            let lifted: Vec<JointVector> = lifts
                .iter()
                .flat_map(|by| {
                    let steps = 1..=lift_steps;
                    steps.map(|step| {
                        let fraction = f64::from(step) / f64::from(lift_steps);
                        from.zip(by, |from, by| from + by * fraction)
                    })
                })
                .collect();
            std::iter::once(from).chain(lifted)
        })
    }

    fn largest_bend_m(&self, motion: &JudgedMotion<'_>) -> f64 {
        let reached = motion.trajectory.reached();
        let steps = reached.iter().zip(reached.iter().skip(1));
        let on_path = steps.map(|(from, to)| self.levers.midpoint_deviation_m(from, to));
        let lifts = motion.stops.lifts().map(|lift| {
            let still = lift.by_rad.map(|_, _| 0.0);
            let step = lift.by_rad.map(|_, by| by / f64::from(LIFT_STEPS));
            self.levers.midpoint_deviation_m(&still, &step)
        });
        on_path.chain(lifts).fold(0.0, f64::max)
    }
}

/// Returns parts of one arm in another arm's base frame.
pub(super) fn seen_from(
    base: &IsometryMatrix3<f64>,
    parts: Vec<PlacedCapsule>,
) -> Vec<PlacedCapsule> {
    let seen = parts.into_iter().map(|part| PlacedCapsule {
        from_m: base * part.from_m,
        to_m: base * part.to_m,
        ..part
    });
    seen.collect()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use crate::collision_world::CollisionWorld;
    use crate::tests::drawing;

    /// How far each part is from its place at a sample at the most: in the samples around it, in
    /// those that a brake passes, and in the lifts from each of them.
    fn farthest_m(motion: &JudgedMotion<'_>, sample: usize, around: usize) -> Vec<f64> {
        let (scene, samples) = (motion.scene, &motion.trajectory.samples);
        let body = CollisionBody::new(scene);
        let placed = |q: &JointVector| body.placed(&body.pose(q)).to_vec();
        let here = placed(&samples[sample]);
        let last = samples.len() - 1;
        let (first, ahead) = (sample.saturating_sub(around), sample + around.max(1));
        let ahead = if around == 0 {
            ahead
        } else {
            let reach = (ahead + 30).min(last);
            let brakes = (first..=reach).map(|near| motion.stops.brake_ticks(near));
            ahead + (brakes.fold(0.0, f64::max) / 2.0).ceil() as usize
        };
        let mut most = vec![0.0_f64; here.len()];
        let window = samples.iter().enumerate().take(ahead + 1).skip(first);
        for (near, at) in window {
            let lifts = [near.checked_sub(1), Some(near)].into_iter().flatten();
            let lifts = lifts.filter_map(|from| motion.stops.lift(from));
            let steps = lifts.flat_map(|lift| {
                (1..=4).map(|step| at.zip(&lift.by_rad, |q, by| q + by * f64::from(step) / 4.0))
            });
            for pose in std::iter::once(*at).chain(steps) {
                for (part, there) in placed(&pose).iter().enumerate() {
                    let from_m = (there.from_m - here[part].from_m).norm();
                    let to_m = (there.to_m - here[part].to_m).norm();
                    most[part] = most[part].max(from_m).max(to_m);
                }
            }
        }
        most
    }

    #[test]
    fn a_part_is_as_far_from_its_place_as_skew_brake_and_lift_bring_it() {
        let (scene, trajectory) = drawing();
        let stops = StopProof::prove(CollisionWorld::new(scene), trajectory, None).unwrap();
        let motion = JudgedMotion {
            scene,
            trajectory,
            stops: &stops,
            copies: None,
        };
        let last = trajectory.samples.len() - 1;
        let mut farthest = 0.0_f64;
        for (is_beside_motion, around) in [(true, NEIGHBOUR_SKEW / 2), (false, 0)] {
            let mut body = NeighbourBody::moving(&motion, is_beside_motion);
            for sample in (0..=last).step_by(37).chain([last - 3, last]) {
                let expected = farthest_m(&motion, sample, around);
                let travels = body.travels_m(sample);
                let bound_m = body.travel_bound_m(sample);
                for (part, travel_m) in travels.iter().enumerate() {
                    let spare_m = match body.is_fixed(part) {
                        true => 0.0,
                        false => NEIGHBOUR_FOLLOWING_M,
                    };
                    let beyond_m = travel_m - expected[part] - spare_m;
                    assert!(
                        (0.0..2e-4).contains(&(beyond_m + 1e-12)),
                        "{sample}: {beyond_m}"
                    );
                    assert!(bound_m >= travel_m - 2e-4, "{sample}: {bound_m} {travel_m}");
                    farthest = farthest.max(expected[part]);
                }
            }
        }
        // The drawing brakes and lifts, so that all of it is looked at.
        assert!(farthest > 0.02, "{farthest}");
    }

    #[test]
    fn an_arm_that_stands_is_nowhere_else() {
        let (scene, trajectory) = drawing();
        let at_rad = trajectory.samples[0];
        let mut body = NeighbourBody::standing(scene, at_rad);
        assert!(
            body.travels_m(5)
                .iter()
                .all(|travel_m| travel_m.abs() <= 0.0)
        );
        assert!(body.travel_bound_m(5).abs() <= 0.0 && body.moved_m(3, 700).abs() <= 0.0);
        assert_eq!(body.lifted(9).count(), 1);
    }
}
