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
                reached.expect("a sample of the judged trajectory")
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
