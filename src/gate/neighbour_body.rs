//! The body of an arm beside another: where each part may be while its motion is between two samples.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use nalgebra::{IsometryMatrix3, Point3};

use super::collision_body::CollisionBody;
use super::collision_world::JointLevers;
use super::depth_trim::TrimmedCopies;
use super::stop_proof::StopProof;
use base::units::JointVector;
use kin::capsule::PlacedCapsule;
use plan::{NEIGHBOUR_FOLLOWING_M, NEIGHBOUR_SKEW, Trajectory};
use scene::Scene;

/// Number of steps in which a lift is followed.
const LIFT_STEPS: u32 = 6;

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

/// An arm of a pair, in the base frame of the first one.
pub(super) struct NeighbourBody<'a> {
    body: CollisionBody<'a>,
    base: IsometryMatrix3<f64>,
    levers: JointLevers,
    track: BodyTrack<'a>,
    /// The places of its parts from each sample of the present window to the next.
    places: HashMap<usize, Vec<PartPlaces>>,
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
        /// How far any point leaves what is straight between the corners of a cell.
        bend_m: f64,
    },
}

/// A part wherever it may be from one sample to the next, and in a lift from there.
pub(super) struct PartPlaces {
    is_fixed: bool,
    /// Holds all of it.
    whole: GrownCapsule,
    /// Each holds the part for one step of a lift; all together hold it everywhere.
    cells: Vec<GrownCapsule>,
}

/// A part at one place, and how far any point of it may be from there.
struct GrownCapsule {
    capsule: PlacedCapsule,
    grown_m: f64,
    /// The ball around all of it.
    middle_m: Point3<f64>,
    ball_m: f64,
}

/// Two parts that are too near to each other.
pub(super) struct Nearness {
    pub(super) parts: (usize, usize),
    pub(super) gap_m: f64,
    pub(super) limit_m: f64,
}

impl Nearness {
    fn margin_m(&self) -> f64 {
        self.gap_m - self.limit_m
    }
}

impl<'a> NeighbourBody<'a> {
    pub(super) fn standing(
        scene: &'a Scene,
        base: IsometryMatrix3<f64>,
        at_rad: JointVector,
    ) -> Self {
        Self::new(scene, base, BodyTrack::Stands(at_rad))
    }

    pub(super) fn moving(
        motion: &'a JudgedMotion<'a>,
        base: IsometryMatrix3<f64>,
        is_beside_motion: bool,
    ) -> Self {
        let track = BodyTrack::Moves {
            motion,
            is_beside_motion,
            bend_m: 0.0,
        };
        let mut body = Self::new(motion.scene, base, track);
        let most_m = body.largest_bend_m(motion);
        if let BodyTrack::Moves { bend_m, .. } = &mut body.track {
            *bend_m = most_m;
        }
        body
    }

    fn new(scene: &'a Scene, base: IsometryMatrix3<f64>, track: BodyTrack<'a>) -> Self {
        let body = CollisionBody::new(scene);
        Self {
            levers: JointLevers::new(&body),
            body,
            base,
            track,
            places: HashMap::new(),
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
        let pose = self.body.pose(q_rad);
        let parts = self.body.placed(&pose).iter();
        let placed = parts.map(|part| PlacedCapsule {
            from_m: self.base * part.from_m,
            to_m: self.base * part.to_m,
            ..*part
        });
        placed.collect()
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
        let last = first + BLOCK - 1;
        let steps = self.window(first, last);
        let ends = *steps.start()..=self.after(*steps.end());
        let poses = ends.flat_map(|near| self.poses_rad(near));
        let (low, high) = poses.fold((at_rad, at_rad), |(low, high), pose| {
            (low.zip(&pose, f64::min), high.zip(&pose, f64::max))
        });
        self.levers.moved_m(&low, &high)
    }

    /// Computes the places of each part from each sample of a window to the next.
    pub(super) fn fill(&mut self, window: &RangeInclusive<usize>) {
        self.places.retain(|near, _| window.contains(near));
        for near in window.clone() {
            if !self.places.contains_key(&near) {
                let places = self.places_from(near);
                self.places.insert(near, places);
            }
        }
    }

    fn places_from(&self, sample: usize) -> Vec<PartPlaces> {
        let grown_m = self.bend_m() + self.following_m();
        let cells = self.cells(sample);
        let count = cells.first().and_then(|corners| corners.first());
        let parts = 0..count.map_or(0, Vec::len);
        let places = parts.map(|part| {
            let grown_m = if self.is_fixed(part) { 0.0 } else { grown_m };
            let cells = cells.iter().map(|corners| {
                let corners = corners.iter().filter_map(|placed| placed.get(part));
                GrownCapsule::around(corners.map(|corner| (corner, grown_m)))
            });
            let cells: Vec<GrownCapsule> = cells.flatten().collect();
            let all = cells.iter().map(|cell| (&cell.capsule, cell.grown_m));
            Some(PartPlaces {
                is_fixed: self.is_fixed(part),
                whole: GrownCapsule::around(all)?,
                cells,
            })
        });
        places.flatten().collect()
    }

    /// Returns the corners of each cell: the poses at both ends of a step of the path, and of a step of the lift from there.
    fn cells(&self, sample: usize) -> Vec<Vec<Vec<PlacedCapsule>>> {
        let BodyTrack::Moves { motion, .. } = &self.track else {
            return vec![vec![self.parts(sample)]];
        };
        let next = self.after(sample);
        let from = self.own_poses_rad(sample).zip(self.own_poses_rad(next));
        let lift = motion.stops.lift(sample);
        let steps = lift.map_or(0, |_| LIFT_STEPS);
        let cells = from.flat_map(|(here, there)| {
            let row = (0..=steps).map(|step| {
                let fraction = f64::from(step) / f64::from(LIFT_STEPS);
                let raised = |from: &JointVector| {
                    lift.map_or(*from, |lift| {
                        from.zip(&lift.by_rad, |from, by| from + by * fraction)
                    })
                };
                [here, there].map(|from| self.placed(&raised(&from)))
            });
            let row: Vec<_> = row.collect();
            let cells: Vec<Vec<_>> = match &row[..] {
                [only] => vec![only.to_vec()],
                row => row.windows(2).map(<[_]>::concat).collect(),
            };
            cells
        });
        cells.collect()
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
        let lift = match &self.track {
            BodyTrack::Stands(_) => None,
            BodyTrack::Moves { motion, .. } => motion.stops.lift(sample),
        };
        self.own_poses_rad(sample).flat_map(move |from| {
            let steps = 0..=lift.map_or(0, |_| LIFT_STEPS);
            steps.map(move |step| {
                let fraction = f64::from(step) / f64::from(LIFT_STEPS);
                let raised = lift.map(|lift| from.zip(&lift.by_rad, |q, by| q + by * fraction));
                self.placed(&raised.unwrap_or(from))
            })
        })
    }

    /// Returns the sample after one; the last one after itself.
    fn after(&self, sample: usize) -> usize {
        match &self.track {
            BodyTrack::Stands(_) => sample,
            BodyTrack::Moves { motion, .. } => {
                let end = motion.trajectory.samples.len().saturating_sub(1);
                (sample + 1).min(end)
            }
        }
    }

    /// Returns the samples from which on it may be, or be lifted, while the one near which both arms are is from `first` to
    /// `last`.
    pub(super) fn window(&self, first: usize, last: usize) -> RangeInclusive<usize> {
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
            // Every sample is judged by itself, with the step to the next.
            return first..=last.min(end);
        }
        let (first, ahead) = (first.saturating_sub(HALF_SKEW), last + HALF_SKEW);
        let passed = motion.stops.braking_samples(first, ahead.min(end));
        first..=(ahead + passed).min(end)
    }

    /// Returns the poses that it has at a sample where nothing lifts it: where it is expected, and where its goals may be.
    fn own_poses_rad(&self, sample: usize) -> impl Iterator<Item = JointVector> {
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
        expected.chain(others)
    }

    /// Returns the poses between which it may be at a sample: those on its path, and the lifts from there and from just before.
    fn poses_rad(&self, sample: usize) -> impl Iterator<Item = JointVector> {
        let lifts: Vec<JointVector> = match &self.track {
            BodyTrack::Stands(_) => Vec::new(),
            BodyTrack::Moves { motion, .. } => {
                let lift = |from: usize| motion.stops.lift(from).map(|lift| lift.by_rad);
                let before = sample.checked_sub(1).and_then(lift);
                lift(sample).into_iter().chain(before).collect()
            }
        };
        self.own_poses_rad(sample).flat_map(move |from| {
            let lifted: Vec<JointVector> = lifts
                .iter()
                .map(|by| from.zip(by, |from, by| from + by))
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
        // A lift may begin anywhere in a step of the path.
        on_path.fold(0.0, f64::max) + lifts.fold(0.0, f64::max)
    }
}

/// Returns the two parts that lack most of the distance that they have to keep, from a sample of either arm on; `None` if no two
/// lack any.
pub(super) fn nearness(
    (one, sample): (&NeighbourBody<'_>, usize),
    (other, other_sample): (&NeighbourBody<'_>, usize),
    limit_m: f64,
) -> Option<Nearness> {
    let (ours, theirs) = (one.places_at(sample), other.places_at(other_sample));
    let mut worst: Option<Nearness> = None;
    for (part, our) in ours.iter().enumerate() {
        for (other_part, their) in theirs.iter().enumerate() {
            let near = our.nearness(their, limit_m);
            let near = near.map(|(gap_m, limit_m)| Nearness {
                parts: (part, other_part),
                gap_m,
                limit_m,
            });
            let is_worst = |near: &Nearness| {
                worst
                    .as_ref()
                    .is_none_or(|worst| near.margin_m() < worst.margin_m())
            };
            if let Some(near) = near.filter(is_worst) {
                worst = Some(near);
            }
        }
    }
    worst
}

impl NeighbourBody<'_> {
    #[expect(
        clippy::expect_used,
        reason = "an arm may not be judged where it is not"
    )]
    fn places_at(&self, sample: usize) -> &[PartPlaces] {
        let places = self.places.get(&sample);
        places.expect("the window is filled before it is judged")
    }
}

impl PartPlaces {
    /// Returns the least distance of two parts and the one that they have to keep, where it is less.
    fn nearness(&self, other: &Self, limit_m: f64) -> Option<(f64, f64)> {
        if (self.is_fixed && other.is_fixed) || self.whole.is_apart(&other.whole, limit_m) {
            return None;
        }
        let mut worst: Option<(f64, f64)> = None;
        for cell in &self.cells {
            for their in &other.cells {
                if cell.is_apart(their, limit_m) {
                    continue;
                }
                let gap_m = cell.gap_m(their);
                let limit_m = limit_m + cell.grown_m + their.grown_m;
                let is_worst = worst.is_none_or(|(gap, limit)| gap_m - limit_m < gap - limit);
                if is_worst {
                    worst = Some((gap_m, limit_m));
                }
            }
        }
        worst
    }
}

impl GrownCapsule {
    /// Returns a capsule in the middle of others that holds them all, each with what it is grown by; `None` of none.
    fn around<'a>(all: impl Iterator<Item = (&'a PlacedCapsule, f64)> + Clone) -> Option<Self> {
        let radius_m = all.clone().next()?.0.radius_m;
        let middle = |end: fn(&PlacedCapsule) -> Point3<f64>| {
            let ends = || all.clone().map(|(capsule, _)| end(capsule));
            let low = ends().reduce(|one, other| one.inf(&other))?;
            let high = ends().reduce(|one, other| one.sup(&other))?;
            Some(nalgebra::center(&low, &high))
        };
        let capsule = PlacedCapsule {
            from_m: middle(|capsule| capsule.from_m)?,
            to_m: middle(|capsule| capsule.to_m)?,
            radius_m,
        };
        let grown = all.map(|(other, grown_m)| {
            let from_m = (other.from_m - capsule.from_m).norm();
            from_m.max((other.to_m - capsule.to_m).norm()) + grown_m
        });
        let grown_m = grown.fold(0.0, f64::max);
        let half_m = nalgebra::distance(&capsule.from_m, &capsule.to_m) / 2.0;
        Some(Self {
            middle_m: nalgebra::center(&capsule.from_m, &capsule.to_m),
            ball_m: half_m + radius_m + grown_m,
            capsule,
            grown_m,
        })
    }

    /// Returns whether any two points of both keep a distance; never for one that is not a number.
    fn is_apart(&self, other: &Self, limit_m: f64) -> bool {
        let balls_m = self.ball_m + other.ball_m + limit_m;
        let between_m2 = (self.middle_m - other.middle_m).norm_squared();
        between_m2 > balls_m * balls_m
            || self.gap_m(other) >= limit_m + self.grown_m + other.grown_m
    }

    /// Returns the distance of both where they are; one that is not a number counts as none at all.
    fn gap_m(&self, other: &Self) -> f64 {
        let gap_m = self.capsule.clearance_m(&other.capsule);
        if gap_m.is_nan() {
            f64::NEG_INFINITY
        } else {
            gap_m
        }
    }
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
    use crate::tests::{drawing, judged};

    fn blend(from: &JointVector, to: &JointVector, share: f64) -> JointVector {
        from.zip(to, |from, to| from + (to - from) * share)
    }

    /// By how much a part sticks out of the best of its cells, without what is added for following.
    fn beyond_m(places: &PartPlaces, part: &PlacedCapsule) -> f64 {
        let beyond = places.cells.iter().map(|cell| {
            let from_m = (cell.capsule.from_m - part.from_m).norm();
            let off_m = from_m.max((cell.capsule.to_m - part.to_m).norm());
            off_m
                - (cell.grown_m
                    - if places.is_fixed {
                        0.0
                    } else {
                        NEIGHBOUR_FOLLOWING_M
                    })
        });
        beyond.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn cells_hold_each_part_between_samples_and_in_lifts_and_little_more() {
        judged(|motion| {
            let base = IsometryMatrix3::translation(0.3, -0.2, 0.1);
            let mut body = NeighbourBody::moving(motion, base, true);
            let samples = &motion.trajectory.samples;
            let last = samples.len() - 1;
            let (mut lifted, mut thickest_m) = (0, 0.0_f64);
            for sample in (0..=last).step_by(17).chain([last - 1, last]) {
                body.fill(&(sample..=sample));
                let next = (sample + 1).min(last);
                let lift = motion.stops.lift(sample);
                lifted += usize::from(lift.is_some());
                for [along, up] in [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.3, 0.9], [0.8, 0.1]] {
                    let on_path = blend(&samples[sample], &samples[next], along);
                    let by = lift.map(|lift| on_path.zip(&lift.by_rad, |q, by| q + by * up));
                    let placed = body.placed(&by.unwrap_or(on_path));
                    for (places, part) in body.places_at(sample).iter().zip(&placed) {
                        let beyond_m = beyond_m(places, part);
                        assert!(beyond_m <= 1e-12, "{sample} {along} {up}: {beyond_m}");
                        let cells = places.cells.iter().map(|cell| cell.grown_m);
                        thickest_m = cells.fold(thickest_m, f64::max);
                        let is_fixed = places.is_fixed;
                        assert!(!is_fixed || places.whole.grown_m.abs() <= 0.0);
                    }
                }
                // A bound that costs little holds what costs more.
                let here = body.parts(sample);
                let bound_m = body.travel_bound_m(sample);
                for (places, here) in body.places_at(sample).iter().zip(&here) {
                    for cell in &places.cells {
                        let off_m = (cell.capsule.from_m - here.from_m).norm();
                        assert!(
                            off_m + cell.grown_m <= bound_m + 2e-3,
                            "{sample}: {off_m} {bound_m}"
                        );
                    }
                }
            }
            assert!(lifted > 10, "{lifted}");
            assert!(thickest_m < NEIGHBOUR_FOLLOWING_M + 0.004, "{thickest_m}");
        });
    }

    #[test]
    fn a_window_reaches_half_the_skew_and_as_far_as_a_brake_goes() {
        judged(|motion| {
            let body = NeighbourBody::moving(motion, IsometryMatrix3::identity(), true);
            let alone = NeighbourBody::moving(motion, IsometryMatrix3::identity(), false);
            let last = motion.trajectory.samples.len() - 1;
            for sample in (0..=last).step_by(29).chain([last]) {
                let first = sample.saturating_sub(NEIGHBOUR_SKEW / 2);
                let ahead = (sample + NEIGHBOUR_SKEW / 2).min(last);
                let brakes =
                    (first..=(ahead + 30).min(last)).map(|at| motion.stops.brake_ticks(at));
                let passed = (brakes.fold(0.0, f64::max) / 2.0).ceil() as usize;
                let end = (sample + NEIGHBOUR_SKEW / 2 + passed).min(last);
                assert_eq!(body.window(sample, sample), first..=end, "{sample}");
                assert_eq!(alone.window(sample, sample), sample..=sample, "{sample}");
            }
        });
    }

    #[test]
    fn an_arm_that_stands_is_nowhere_else() {
        let (scene, trajectory) = drawing();
        let at_rad = trajectory.samples[0];
        let mut body = NeighbourBody::standing(scene, IsometryMatrix3::identity(), at_rad);
        assert_eq!(body.window(5, 5), 5..=5);
        body.fill(&(5..=5));
        let thin =
            |places: &PartPlaces| places.cells.len() == 1 && places.whole.grown_m.abs() <= 0.0;
        assert!(body.places_at(5).iter().all(thin));
        assert!(body.travel_bound_m(5).abs() <= 0.0 && body.moved_m(3, 700).abs() <= 0.0);
        assert_eq!(body.lifted(9).count(), 1);
    }

    #[test]
    fn what_lacks_most_is_named_wherever_both_may_be() {
        judged(|motion| {
            let moving = |base| NeighbourBody::moving(motion, base, true);
            let mut one = moving(IsometryMatrix3::identity());
            // Its base is inside the other's: two parts that no joint moves are not judged.
            let mut other = moving(IsometryMatrix3::translation(0.02, 0.01, 0.0));
            let last = motion.trajectory.samples.len() - 1;
            let (mut named, mut fixed) = (0, 0);
            for (sample, limit_m) in (0..last).step_by(61).zip([0.003, 0.05].into_iter().cycle()) {
                let theirs_at = (sample * 7) % last;
                one.fill(&(sample..=sample));
                other.fill(&(theirs_at..=theirs_at));
                let mut lacking: Vec<((usize, usize), f64)> = Vec::new();
                for (part, ours) in one.places_at(sample).iter().enumerate() {
                    for (other_part, theirs) in other.places_at(theirs_at).iter().enumerate() {
                        let cells = ours.cells.iter().flat_map(|our| {
                            let theirs = theirs.cells.iter();
                            theirs.map(move |their| {
                                our.gap_m(their) - limit_m - our.grown_m - their.grown_m
                            })
                        });
                        let least_m = cells.fold(f64::INFINITY, f64::min);
                        let is_judged = one.is_fixed(part) as u8 + other.is_fixed(other_part) as u8;
                        fixed += usize::from(is_judged == 1 && least_m < 0.0);
                        if is_judged < 2 && least_m < 0.0 {
                            lacking.push(((part, other_part), least_m));
                        }
                    }
                }
                let most = lacking.iter().min_by(|a, b| a.1.total_cmp(&b.1));
                let found = nearness((&one, sample), (&other, theirs_at), limit_m);
                let found = found.map(|near| (near.parts, near.margin_m()));
                assert_eq!(
                    found.map(|near| near.0),
                    most.map(|near| near.0),
                    "{sample}"
                );
                let off_m = found
                    .zip(most)
                    .map_or(0.0, |(found, most)| found.1 - most.1);
                let [bases, theirs] = [&one.places_at(sample)[0], &other.places_at(theirs_at)[0]];
                assert!(bases.cells[0].gap_m(&theirs.cells[0]) < 0.0);
                assert_eq!(bases.nearness(theirs, limit_m), None);
                assert!(off_m.abs() < 1e-12, "{sample}: {off_m}");
                named += usize::from(found.is_some());
            }
            assert!(named > 10 && fixed > 10, "{named} {fixed}");
        });
    }

    #[test]
    fn lifts_are_followed_in_even_steps_from_the_path_to_their_ends() {
        judged(|motion| {
            let body = NeighbourBody::moving(motion, IsometryMatrix3::identity(), true);
            let all = 0..motion.trajectory.samples.len();
            let mut lifts = 0;
            for (sample, lift) in all
                .filter_map(|at| Some((at, motion.stops.lift(at)?)))
                .step_by(31)
            {
                let from = motion.trajectory.reached()[sample];
                let places: Vec<_> = body.lifted(sample).collect();
                assert_eq!(places.len(), LIFT_STEPS as usize + 1);
                for (step, placed) in places.iter().enumerate() {
                    let share = step as f64 / f64::from(LIFT_STEPS);
                    let at = from.zip(&lift.by_rad, |q, by| q + by * share);
                    for (part, there) in placed.iter().zip(&body.placed(&at)) {
                        assert!((part.to_m - there.to_m).norm() < 1e-12, "{sample} {step}");
                    }
                }
                let end = from.zip(&lift.by_rad, |q, by| q + by);
                let is_end = |pose: JointVector| pose.distance_max(&end) < 1e-12;
                assert!(body.poses_rad(sample).any(is_end), "{sample}");
                lifts += 1;
            }
            assert!(lifts > 10, "{lifts}");
        });
    }

    /// Goals lead the joints: an arm may be where either is.
    #[test]
    fn an_arm_may_be_where_its_goals_are() {
        judged(|motion| {
            let mut trajectory = motion.trajectory.clone();
            let lead = |q: &JointVector| q.map(|_, angle| angle + 0.01);
            trajectory.reached = std::mem::take(&mut trajectory.samples);
            trajectory.samples = trajectory.reached.iter().map(lead).collect();
            let (scene, stops) = (motion.scene, motion.stops);
            let led = JudgedMotion {
                scene,
                trajectory: &trajectory,
                stops,
                copies: None,
            };
            let body = NeighbourBody::moving(&led, IsometryMatrix3::identity(), true);
            let poses: Vec<JointVector> = body.own_poses_rad(3).collect();
            assert_eq!(poses, [trajectory.reached[3], trajectory.samples[3]]);
            let alone = NeighbourBody::moving(motion, IsometryMatrix3::identity(), true);
            assert_eq!(alone.own_poses_rad(3).count(), 1);
        });
    }

    #[test]
    fn bounds_hold_what_they_are_of() {
        judged(|motion| {
            let mut body = NeighbourBody::moving(motion, IsometryMatrix3::identity(), true);
            let last = motion.trajectory.samples.len() - 1;
            for sample in (0..=last).step_by(13).chain((0..last).step_by(97)) {
                let bound_m = body.travel_bound_m(sample);
                // It is that of the samples around it.
                let around_m = body.block_bound_m(sample - sample % BLOCK);
                let off_m = bound_m - around_m - NEIGHBOUR_FOLLOWING_M;
                assert!(off_m.abs() < 1e-12, "{sample}: {off_m}");
                let lifted = body
                    .window(sample, sample)
                    .flat_map(|near| body.poses_rad(near));
                for pose in lifted {
                    let moved_m = body.levers.moved_m(body.at_rad(sample), &pose);
                    assert!(
                        moved_m + NEIGHBOUR_FOLLOWING_M <= bound_m + 1e-12,
                        "{sample}"
                    );
                }
                let here = body.parts(sample);
                for near in body.window(sample, sample) {
                    let moved_m = body.moved_m(sample, near);
                    assert!(moved_m <= bound_m, "{sample} {near}: {moved_m} {bound_m}");
                    for (from, to) in here.iter().zip(&body.parts(near)) {
                        assert!((from.to_m - to.to_m).norm() <= moved_m + 1e-12);
                    }
                }
            }
            let reached = motion.trajectory.reached();
            let steps = reached.iter().zip(reached.iter().skip(1));
            let on_path = steps.map(|(from, to)| body.levers.midpoint_deviation_m(from, to));
            let on_path_m = on_path.fold(0.0, f64::max);
            let lifts = motion.stops.lifts().map(|lift| {
                let [low, high] = [0.0, 1.0 / f64::from(LIFT_STEPS)]
                    .map(|share| lift.by_rad.map(|_, by| by * share));
                body.levers.midpoint_deviation_m(&low, &high)
            });
            let lifts_m = lifts.fold(0.0, f64::max);
            assert!(on_path_m > 0.0 && lifts_m > 0.0, "{on_path_m} {lifts_m}");
            assert!((body.bend_m() - on_path_m - lifts_m).abs() < 1e-12);
            // A part is named as the arm's file names it, and no joint moves the first.
            let names = motion
                .scene
                .arm
                .capsules
                .iter()
                .map(|capsule| &capsule.name);
            let named: Vec<String> = (0..names.len()).map(|part| body.part_name(part)).collect();
            assert!(names.eq(&named), "{named:?}");
            assert!(body.is_fixed(0) && !body.is_fixed(named.len() - 1));
        });
    }

    #[test]
    fn places_that_are_no_number_are_never_apart() {
        let capsule = |x: f64| PlacedCapsule {
            from_m: Point3::new(x, 0.0, 0.0),
            to_m: Point3::new(x, 0.0, 0.1),
            radius_m: 0.01,
        };
        let part = |x: f64, grown_m: f64| {
            GrownCapsule::around([(&capsule(x), grown_m)].into_iter()).unwrap()
        };
        assert!(part(0.0, 0.001).is_apart(&part(0.1, 0.001), 0.078));
        assert!(!part(0.0, 0.001).is_apart(&part(0.1, 0.0011), 0.078));
        assert!(!part(0.0, 0.0).is_apart(&part(f64::NAN, 0.0), 0.003));
        assert!(!part(f64::NAN, 0.0).is_apart(&part(0.0, 0.0), 0.003));
    }
}
