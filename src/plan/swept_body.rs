//! The space that an arm may take up along a trajectory, and how near two arms come to each other.
//!
//! A trajectory is cut into short pieces. In each, every part of the arm is one capsule, thick enough for all
//! places of the part in that piece, and for where it may be besides: some samples ahead or behind, because two
//! arms need not be at the same sample, farther on where it brakes, and up where a stop lifts it. So two pieces
//! that are apart stay apart at whatever time either is passed.

use std::collections::VecDeque;

use nalgebra::{IsometryMatrix3, Matrix3, Point3, Vector3};

use super::cartesian_path::to_count;
use super::tool_ik::tip_of;
use super::trajectory::{Trajectory, TrajectorySpan};
use super::{NEIGHBOUR_FOLLOWING_M, NEIGHBOUR_SKEW, PERIOD_S};
use base::units::JointVector;
use kin::capsule::{PlacedCapsule, place};
use scene::{CLEARANCE_M, PEN_RADIUS_M, Scene, ScenePart};

/// A piece ends where a part has moved this far from where it began.
const PIECE_M: f64 = 0.004;
/// Most samples of a piece.
const PIECE_SAMPLES: usize = 64;
/// Samples ahead of and behind the one near which both arms are.
const HALF_SKEW: usize = NEIGHBOUR_SKEW / 2;
/// Fraction of a joint's acceleration limit that braking uses, as the gate proves it, and its fewest and most periods.
const BRAKE_SHARE: f64 = 0.5;
const BRAKE_PERIODS: [f64; 2] = [3.0, 60.0];
/// Samples within which the longest brake begins.
const BRAKE_LOOK: usize = 30;
/// What the gate adds for bends between samples, and what the lift that it proves may differ from this one's.
const ROUNDING_M: f64 = 0.0005;
const LIFT_SLACK: f64 = 1.15;
/// Newton steps to a lifted pose, and damping in square metres per square radian.
const LIFT_STEPS: usize = 3;
const DAMPING: f64 = 1e-8;
/// A tip less than this below the height of travel is not lifted.
const UP_TOLERANCE_MM: f64 = 0.5;

/// An arm with its pens, in the frame that several arms have in common.
pub(super) struct ArmBody<'a> {
    scene: &'a Scene,
    base: IsometryMatrix3<f64>,
}

/// A part that may be anywhere in a piece of a trajectory.
struct SweptPart {
    capsule: PlacedCapsule,
    centre_m: Point3<f64>,
    /// Radius of the ball around it.
    ball_m: f64,
    is_fixed: bool,
}

/// A piece of a trajectory.
struct SweptPiece {
    /// One past its last sample.
    end: usize,
    parts: Vec<SweptPart>,
}

/// A whole trajectory, piece by piece.
pub(super) struct SweptMotion {
    pieces: Vec<SweptPiece>,
    /// The arm as it stands at each place at which it could wait.
    standing: Vec<SweptPiece>,
    samples: usize,
}

/// What an arm does: it stands at the place of an index, or is in the piece of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    At(usize),
    In(usize),
}

impl<'a> ArmBody<'a> {
    pub(super) fn new(part: &'a ScenePart) -> Self {
        Self {
            scene: &part.scene,
            base: part.base,
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "a part without its frame must not be judged as if it were elsewhere"
    )]
    fn placed(&self, q: &JointVector) -> Vec<PlacedCapsule> {
        let frames = self.scene.arm.chain.frames(q);
        let links = self.scene.arm.capsules.iter().map(|capsule| {
            let frame = frames.get(capsule.joints_before);
            let frame = frame.expect("an arm's file names a joint for each capsule");
            place(
                &(self.base * frame),
                &capsule.from_m,
                &capsule.to_m,
                capsule.radius_m,
            )
        });
        let tool = self.base * frames.tool;
        let pens = self.scene.pens.iter();
        let pens = pens.map(|pen| place(&tool, &Point3::origin(), &pen.tip_m, PEN_RADIUS_M));
        links.chain(pens).collect()
    }

    fn is_fixed(&self, part: usize) -> bool {
        let link = self.scene.arm.capsules.get(part);
        link.is_some_and(|link| link.joints_before == 0)
    }

    /// Returns the joints after a stop's lift, and a little farther; `None` where the tip is up.
    fn lifted(&self, pen: usize, from: &JointVector) -> Option<JointVector> {
        let (scene, pen) = (self.scene, self.scene.pens.get(pen)?);
        let tip = tip_of(pen);
        let start = scene.arm.chain.tip(from, &tip).0;
        let foot = scene.surface.project(&start);
        let rise_mm = scene.heights.lift_mm - foot.height_mm;
        if rise_mm < UP_TOLERANCE_MM {
            return None;
        }
        let target = start + scene.surface.at(foot.at_mm).normal.scale(rise_mm / 1e3);
        let mut q = *from;
        for _ in 0..LIFT_STEPS {
            let frames = scene.arm.chain.frames(&q);
            let error = target - frames.tool * pen.tip_m;
            let jacobian = scene.arm.chain.jacobian_at(&frames, &tip);
            let columns = jacobian
                .iter()
                .map(|[x, y, z, ..]| Vector3::new(*x, *y, *z));
            let damped = columns
                .clone()
                .fold(Matrix3::identity() * DAMPING, |all, column| {
                    all + column * column.transpose()
                });
            let pull = damped.try_inverse()? * error;
            for (angle, column) in q.iter_mut().zip(columns) {
                *angle += column.dot(&pull);
            }
        }
        Some(from.zip(&q, |from, to| from + (to - from) * LIFT_SLACK))
    }

    /// Sweeps the arm along a trajectory. `places` are the samples at which it could wait, the first and the last included:
    /// a piece ends at each.
    pub(super) fn sweep(&self, trajectory: &Trajectory, places: &[usize]) -> SweptMotion {
        let mut window = PoseWindow::new(self, trajectory);
        let (mut pieces, mut standing, mut next) = (Vec::new(), Vec::new(), 0);
        for place in places {
            while next < *place {
                let piece = window.piece(next, *place);
                next = piece.end;
                pieces.push(piece);
            }
            standing.push(window.piece(*place, place + 1));
        }
        SweptMotion {
            pieces,
            standing,
            samples: trajectory.samples.len(),
        }
    }
}

/// The poses around the present sample, each with its lifted one.
struct PoseWindow<'a> {
    body: &'a ArmBody<'a>,
    trajectory: &'a Trajectory,
    /// Periods that braking takes from each sample on.
    brakes: Vec<f64>,
    first: usize,
    poses: VecDeque<Vec<Vec<PlacedCapsule>>>,
}

impl<'a> PoseWindow<'a> {
    fn new(body: &'a ArmBody<'a>, trajectory: &'a Trajectory) -> Self {
        let limits = &body.scene.arm.limits;
        let steps = trajectory
            .samples
            .iter()
            .zip(trajectory.samples.iter().skip(1));
        let brakes = steps.map(|(from, to)| {
            let speed = from.zip(to, |from, to| (to - from).abs() / PERIOD_S);
            let periods = speed.zip(&limits.acceleration_rad_s2, |speed, limit| {
                speed / (limit * BRAKE_SHARE * PERIOD_S)
            });
            let [least, most] = BRAKE_PERIODS;
            periods.iter().copied().fold(least, f64::max).min(most)
        });
        Self {
            body,
            trajectory,
            brakes: brakes.chain([BRAKE_PERIODS[0]]).collect(),
            first: 0,
            poses: VecDeque::new(),
        }
    }

    /// Returns the last sample that may be reached while the one near which both arms are is `sample`.
    fn reach(&self, sample: usize) -> usize {
        let near = self.brakes.iter().skip(sample.saturating_sub(HALF_SKEW));
        let near = near.take(2 * HALF_SKEW + 1 + BRAKE_LOOK);
        let periods = near.copied().fold(0.0, f64::max);
        let passed = to_count((periods / 2.0).ceil());
        (sample + HALF_SKEW + passed).min(self.brakes.len() - 1)
    }

    /// Returns the piece that begins at a sample and ends at `end` at the latest.
    fn piece(&mut self, begin: usize, end: usize) -> SweptPiece {
        let from = begin.saturating_sub(HALF_SKEW);
        self.keep_from(from.min(begin));
        let start = self.own_pose(begin).to_vec();
        let mut last = begin;
        while last + 1 < end && last - begin < PIECE_SAMPLES {
            if farthest_m(&start, self.own_pose(last + 1)) > PIECE_M {
                break;
            }
            last += 1;
        }
        let reach = self.reach(last);
        self.own_pose(reach);
        let middle = self.own_pose(usize::midpoint(begin, last)).to_vec();
        let travels = self.travels(begin..=last, middle.len());
        let parts = middle.iter().enumerate().map(|(part, capsule)| {
            let own = (begin..=last).map(|sample| self.pose(sample));
            let off_m = own.zip(&travels).map(|(poses, travels)| {
                let here = poses.first().and_then(|own| own.get(part));
                let off_m = here.map_or(0.0, |here| moved_m(capsule, here));
                off_m + travels.get(part).copied().unwrap_or(0.0)
            });
            let is_fixed = self.body.is_fixed(part);
            let grown_m = if is_fixed {
                0.0
            } else {
                off_m.fold(0.0, f64::max) + ROUNDING_M
            };
            SweptPart::new(*capsule, grown_m, is_fixed)
        });
        SweptPiece {
            end: last + 1,
            parts: parts.collect(),
        }
    }

    /// Returns for each sample how far each part may be from its place there.
    fn travels(&self, samples: std::ops::RangeInclusive<usize>, parts: usize) -> Vec<Vec<f64>> {
        let travel = |sample: usize| {
            let mut travels = vec![0.0_f64; parts];
            let Some(here) = self.pose(sample).first() else {
                return travels;
            };
            for near in sample.saturating_sub(HALF_SKEW)..=self.reach(sample) {
                for there in self.pose(near) {
                    for ((most, here), there) in travels.iter_mut().zip(here).zip(there) {
                        *most = most.max(moved_m(here, there));
                    }
                }
            }
            travels
        };
        samples.map(travel).collect()
    }

    fn keep_from(&mut self, sample: usize) {
        while self.first < sample && self.poses.pop_front().is_some() {
            self.first += 1;
        }
        if self.poses.is_empty() {
            self.first = self.first.max(sample);
        }
    }

    /// Returns the pose of a sample that is in the window.
    #[expect(
        clippy::expect_used,
        reason = "an arm may not be judged where it is not"
    )]
    fn pose(&self, sample: usize) -> &[Vec<PlacedCapsule>] {
        let pose = self.poses.get(sample - self.first);
        pose.expect("the window reaches the farthest requested sample")
    }

    /// Returns the arm's own pose at a sample, and fills the window up to it.
    #[expect(clippy::expect_used, reason = "each sample of the window has a pose")]
    fn own_pose(&mut self, sample: usize) -> &[PlacedCapsule] {
        while self.first + self.poses.len() <= sample {
            let poses = self.poses_at(self.first + self.poses.len());
            self.poses.push_back(poses);
        }
        self.pose(sample).first().expect("a pose")
    }

    fn poses_at(&self, sample: usize) -> Vec<Vec<PlacedCapsule>> {
        let pen = self
            .trajectory
            .span_at(sample)
            .map_or(0, |span: &TrajectorySpan| span.pen);
        let expected = self.trajectory.reached().get(sample);
        let goals = self.trajectory.samples.get(sample);
        let goals = goals.filter(|_| !self.trajectory.reached.is_empty());
        let all = expected.into_iter().chain(goals);
        let lifted = all.clone().filter_map(|from| self.body.lifted(pen, from));
        let lifted: Vec<JointVector> = lifted.collect();
        let all = all.chain(&lifted);
        all.map(|q| self.body.placed(q)).collect()
    }
}

/// Returns how far any point of a part is from where it is at a second pose, at most.
fn moved_m(one: &PlacedCapsule, other: &PlacedCapsule) -> f64 {
    let from_m = (one.from_m - other.from_m).norm_squared();
    from_m.max((one.to_m - other.to_m).norm_squared()).sqrt()
}

fn farthest_m(one: &[PlacedCapsule], other: &[PlacedCapsule]) -> f64 {
    let moved = one
        .iter()
        .zip(other)
        .map(|(one, other)| moved_m(one, other));
    moved.fold(0.0, f64::max)
}

impl SweptPart {
    fn new(capsule: PlacedCapsule, grown_m: f64, is_fixed: bool) -> Self {
        let radius_m = capsule.radius_m + grown_m;
        Self {
            capsule: PlacedCapsule {
                radius_m,
                ..capsule
            },
            centre_m: nalgebra::center(&capsule.from_m, &capsule.to_m),
            ball_m: nalgebra::distance(&capsule.from_m, &capsule.to_m) / 2.0 + radius_m,
            is_fixed,
        }
    }

    fn is_apart(&self, other: &Self, least_m: f64) -> bool {
        let both_stand = self.is_fixed && other.is_fixed;
        let between_m2 = (other.centre_m - self.centre_m).norm_squared();
        let balls_m = self.ball_m + other.ball_m + least_m;
        both_stand
            || between_m2 > balls_m * balls_m
            || self.capsule.clearance_m(&other.capsule) >= least_m
    }
}

impl SweptPiece {
    fn is_apart(&self, other: &Self, least_m: f64) -> bool {
        let mut ours = self.parts.iter();
        ours.all(|our| other.parts.iter().all(|their| our.is_apart(their, least_m)))
    }

    /// Returns whether no part comes too near to what no joint of another arm moves.
    fn is_apart_from_base(&self, other: &Self, least_m: f64) -> bool {
        let mut fixed = other.parts.iter().filter(|part| part.is_fixed);
        fixed.all(|base| self.parts.iter().all(|part| part.is_apart(base, least_m)))
    }
}

impl SweptMotion {
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the number of its pieces.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the first sample of a piece; after the last piece, the last sample.
    pub(super) fn begin(&self, piece: usize) -> usize {
        let before = self.pieces.get(..piece).unwrap_or(&self.pieces).last();
        before.map_or(0, |before| before.end)
    }

    /// Returns the piece that begins at a sample or holds it.
    pub(super) fn piece_at(&self, sample: usize) -> usize {
        self.pieces.partition_point(|piece| piece.end <= sample)
    }

    fn piece(&self, stay: Stay) -> Option<&SweptPiece> {
        match stay {
            Stay::At(place) => self.standing.get(place),
            Stay::In(piece) => self.pieces.get(piece),
        }
    }

    /// Returns whether two arms keep apart, wherever each is in what it does.
    pub(super) fn is_apart(&self, own: Stay, (other, theirs): (&Self, Stay), least_m: f64) -> bool {
        let both = self.piece(own).zip(other.piece(theirs));
        // A piece that does not exist is nowhere.
        both.is_none_or(|(ours, theirs)| ours.is_apart(theirs, least_m))
    }

    /// Returns the samples at which pieces begin that come too near to the fixed parts of another arm, whatever that does.
    pub(super) fn samples_at_base(&self, other: &Self, least_m: f64) -> Vec<usize> {
        let Some(base) = other.standing.first() else {
            return Vec::new();
        };
        let pieces = self.pieces.iter().enumerate();
        let near = pieces.filter(|(_, piece)| !piece.is_apart_from_base(base, least_m));
        near.map(|(piece, _)| self.begin(piece)).collect()
    }
}

/// Returns the distance that the bodies of two arms keep, besides what each may move.
pub(super) fn least_apart_m(one: &Scene, other: &Scene) -> f64 {
    let of = |scene: &Scene| {
        scene
            .beside
            .iter()
            .map(|beside| beside.uncertainty_m)
            .fold(0.0, f64::max)
    };
    CLEARANCE_M + of(one).max(of(other)) + 2.0 * NEIGHBOUR_FOLLOWING_M
}
