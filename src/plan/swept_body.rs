//! The space that an arm may take up along a trajectory, and how near two arms come to each other.
//!
//! A trajectory is cut into short pieces. In each, every part of the arm is a few capsules, thick enough for all
//! places of the part in that piece and in a stop's lift from there. While an arm is planned to be in a piece, it may
//! be in those around it: some samples ahead or behind, because two arms need not be at the same sample, and farther on
//! where it brakes. So two pieces that are apart with all that are around them stay apart at whatever time either is passed.

use std::ops::RangeInclusive;

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
const PIECE_M: f64 = 0.003;
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
/// Steps of a lift in each of which a part is one capsule, and those that the gate takes.
const LIFT_CELLS: usize = 4;
const GATE_LIFT_CELLS: f64 = 6.0;
/// Newton steps to a lifted pose, and damping in square metres per square radian.
const LIFT_STEPS: usize = 3;
const DAMPING: f64 = 1e-8;
/// A tip less than this below the height of travel is not lifted.
const UP_TOLERANCE_MM: f64 = 0.5;

/// An arm with its pens, in the frame that several arms have in common.
#[derive(Clone, Copy)]
pub(super) struct ArmBody<'a> {
    scene: &'a Scene,
    base: IsometryMatrix3<f64>,
}

/// A part of an arm that may be anywhere in a capsule.
struct SweptPart {
    capsule: PlacedCapsule,
    centre_m: Point3<f64>,
    /// Radius of the ball around it.
    ball_m: f64,
    is_fixed: bool,
}

/// An arm at one pose.
pub(super) struct PosedArm(Vec<SweptPart>);

impl PosedArm {
    pub(super) fn is_apart(&self, other: &Self, least_m: f64) -> bool {
        let mut ours = self.0.iter();
        ours.all(|our| other.0.iter().all(|their| our.is_apart(their, least_m)))
    }
}

/// A part in a piece of a trajectory: as one capsule, and one for each step of the lift.
struct PartInPiece {
    whole: SweptPart,
    cells: Vec<SweptPart>,
}

/// A piece of a trajectory.
struct SweptPiece {
    /// One past its last sample.
    end: usize,
    parts: Vec<PartInPiece>,
}

/// Where an arm may be while it is planned to be in a piece, or to stand at a place.
pub(super) struct PieceSurroundings {
    /// The pieces around it.
    pieces: RangeInclusive<usize>,
    /// Each part in all of them.
    parts: Vec<SweptPart>,
}

/// A whole trajectory, piece by piece.
pub(super) struct SweptMotion {
    pieces: Vec<SweptPiece>,
    around: Vec<PieceSurroundings>,
    /// The surroundings of each place at which the arm could wait.
    standing: Vec<PieceSurroundings>,
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

    pub(super) fn scene(&self) -> &'a Scene {
        self.scene
    }

    /// Returns its parts at one pose.
    pub(super) fn posed(&self, q: &JointVector) -> PosedArm {
        let placed = self.placed(q).into_iter().enumerate();
        let parts = placed.map(|(part, capsule)| {
            SweptPart::around(std::iter::once((capsule, 0.0)), self.is_fixed(part))
        });
        PosedArm(parts.collect())
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
        let mut poses = SamplePoses::new(self, trajectory);
        let (mut pieces, mut next) = (Vec::new(), 0);
        for place in places {
            while next < *place {
                let piece = poses.piece(next, *place);
                next = piece.end;
                pieces.push(piece);
            }
        }
        if let Some(last) = places.last() {
            // Where it stands in the end.
            pieces.push(poses.piece(*last, last + 1));
        }
        let piece_at = |sample: usize| pieces.partition_point(|piece| piece.end <= sample);
        let around = |first: usize, last: usize| {
            let from = piece_at(first.saturating_sub(HALF_SKEW));
            let to = piece_at(poses.reach(last)).min(pieces.len().saturating_sub(1));
            PieceSurroundings::new(from..=to, &pieces)
        };
        let mut first = 0;
        let around_pieces = pieces.iter().map(|piece| {
            let begin = std::mem::replace(&mut first, piece.end);
            around(begin, piece.end - 1)
        });
        let around_pieces = around_pieces.collect();
        let standing = places.iter().map(|place| around(*place, *place)).collect();
        SweptMotion {
            around: around_pieces,
            standing,
            samples: trajectory.samples.len(),
            pieces,
        }
    }
}

/// The parts at each step of a lift, from where it begins.
type LiftPoses = [Vec<PlacedCapsule>; LIFT_CELLS + 1];

/// The poses of the present piece.
struct SamplePoses<'a> {
    body: &'a ArmBody<'a>,
    trajectory: &'a Trajectory,
    /// Periods that braking takes from each sample on.
    brakes: Vec<f64>,
    first: usize,
    poses: VecDeque<Vec<LiftPoses>>,
}

impl<'a> SamplePoses<'a> {
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
        while self.first < begin && self.poses.pop_front().is_some() {
            self.first += 1;
        }
        let end_of_path = self.trajectory.samples.len() - 1;
        let start = self.own_pose(begin).to_vec();
        let mut last = begin;
        while last + 1 < end && last - begin < PIECE_SAMPLES {
            if farthest_m(&start, self.own_pose(last + 1)) > PIECE_M {
                break;
            }
            last += 1;
        }
        // The step to the next piece belongs to it as well.
        self.own_pose((last + 1).min(end_of_path));
        let parts = (0..start.len()).map(|part| self.part_in_piece(part));
        SweptPiece {
            end: last + 1,
            parts: parts.collect(),
        }
    }

    /// Returns a part in all poses that are held.
    fn part_in_piece(&self, part: usize) -> PartInPiece {
        let is_fixed = self.body.is_fixed(part);
        let own = |poses: &Vec<LiftPoses>| {
            let all = poses.iter().flatten();
            all.filter_map(|placed| placed.get(part).copied()).collect()
        };
        let all: Vec<Vec<PlacedCapsule>> = self.poses.iter().map(own).collect();
        let steps = all.iter().zip(all.iter().skip(1));
        let steps = steps.flat_map(|(one, next)| one.iter().zip(next));
        let step_m = steps
            .map(|(one, next)| moved_m(one, next))
            .fold(0.0, f64::max);
        let lifts = all.iter().flat_map(|own| own.chunks(LIFT_CELLS + 1));
        let lifts = lifts.filter_map(|lift| Some(moved_m(lift.first()?, lift.last()?)));
        let lift_m = lifts.fold(0.0, f64::max) / GATE_LIFT_CELLS;
        // The gate's own cells are not these.
        let grown_m = if is_fixed {
            0.0
        } else {
            (step_m + lift_m) / 2.0 + ROUNDING_M
        };
        let is_lifted = lift_m > 0.0;
        let cells = (0..if is_lifted { LIFT_CELLS } else { 1 }).map(|cell| {
            let lifts = all.iter().flat_map(|own| own.chunks(LIFT_CELLS + 1));
            let corners = lifts.flat_map(|lift| lift.iter().skip(cell).take(2));
            SweptPart::around(corners.map(|corner| (*corner, grown_m)), is_fixed)
        });
        let cells: Vec<SweptPart> = cells.collect();
        PartInPiece {
            whole: SweptPart::around_all(cells.iter()),
            cells,
        }
    }

    /// Returns the arm's own pose at a sample, after computing all up to it.
    #[expect(
        clippy::expect_used,
        reason = "an arm may not be judged where it is not"
    )]
    fn own_pose(&mut self, sample: usize) -> &[PlacedCapsule] {
        if self.poses.is_empty() {
            self.first = self.first.max(sample);
        }
        while self.first + self.poses.len() <= sample {
            let poses = self.poses_at(self.first + self.poses.len());
            self.poses.push_back(poses);
        }
        let poses = self.poses.get(sample - self.first);
        let own = poses.and_then(|poses| poses.first());
        own.map(|[own, ..]| &own[..]).expect("just computed")
    }

    /// Returns the poses at a sample, each with those of its lift.
    fn poses_at(&self, sample: usize) -> Vec<LiftPoses> {
        let pen = self
            .trajectory
            .span_at(sample)
            .map_or(0, |span: &TrajectorySpan| span.pen);
        let expected = self.trajectory.reached().get(sample);
        let goals = self.trajectory.samples.get(sample);
        let goals = goals.filter(|_| !self.trajectory.reached.is_empty());
        let all = expected.into_iter().chain(goals);
        let poses = all.map(|from| {
            let own = self.body.placed(from);
            let Some(to) = self.body.lifted(pen, from) else {
                return std::array::from_fn(|_| own.clone());
            };
            std::array::from_fn(|cell| {
                let fraction = cell as f64 / LIFT_CELLS as f64;
                self.body
                    .placed(&from.zip(&to, |from, to| from + (to - from) * fraction))
            })
        });
        poses.collect()
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
    /// Returns a capsule in the middle of some places of a part, thick enough for all of them, each with what it is grown by.
    fn around(all: impl Iterator<Item = (PlacedCapsule, f64)> + Clone, is_fixed: bool) -> Self {
        let middle = |end: fn(&PlacedCapsule) -> Point3<f64>| {
            let ends = || all.clone().map(|(place, _)| end(&place));
            let low = ends().reduce(|one, other| one.inf(&other));
            let high = ends().reduce(|one, other| one.sup(&other));
            low.zip(high)
                .map_or_else(Point3::origin, |(low, high)| nalgebra::center(&low, &high))
        };
        let (from_m, to_m) = (middle(|place| place.from_m), middle(|place| place.to_m));
        let radius_m = all
            .clone()
            .map(|(place, _)| place.radius_m)
            .fold(0.0, f64::max);
        let capsule = PlacedCapsule {
            from_m,
            to_m,
            radius_m,
        };
        let grown_m = all.map(|(place, grown_m)| {
            moved_m(&capsule, &place) + grown_m - radius_m + place.radius_m
        });
        let radius_m = radius_m + grown_m.fold(0.0, f64::max);
        Self {
            centre_m: nalgebra::center(&from_m, &to_m),
            ball_m: nalgebra::distance(&from_m, &to_m) / 2.0 + radius_m,
            capsule: PlacedCapsule {
                radius_m,
                ..capsule
            },
            is_fixed,
        }
    }

    /// Returns a part that holds all of some.
    fn around_all<'a>(parts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let is_fixed = parts.clone().all(|part| part.is_fixed);
        Self::around(parts.map(|part| (part.capsule, 0.0)), is_fixed)
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

impl PartInPiece {
    fn is_apart(&self, other: &Self, least_m: f64) -> bool {
        let cells = |cell: &SweptPart| {
            let mut others = other.cells.iter();
            others.all(|other| cell.is_apart(other, least_m))
        };
        self.whole.is_apart(&other.whole, least_m) || self.cells.iter().all(cells)
    }
}

impl PieceSurroundings {
    fn new(pieces: RangeInclusive<usize>, all: &[SweptPiece]) -> Self {
        let own = all.get(pieces.clone()).unwrap_or(&[]);
        let count = own.first().map_or(0, |piece| piece.parts.len());
        let parts = (0..count).map(|part| {
            let in_pieces = own.iter().filter_map(|piece| piece.parts.get(part));
            SweptPart::around_all(in_pieces.map(|part| &part.whole))
        });
        Self {
            parts: parts.collect(),
            pieces,
        }
    }

    /// Returns whether they are so far apart that their pieces need not be looked at.
    pub(super) fn is_apart(&self, other: &Self, least_m: f64) -> bool {
        let mut ours = self.parts.iter();
        ours.all(|our| other.parts.iter().all(|their| our.is_apart(their, least_m)))
    }

    /// Returns all pairs of pieces of both.
    pub(super) fn pairs(&self, other: &Self) -> impl Iterator<Item = [usize; 2]> {
        let others = other.pieces.clone();
        let own = self.pieces.clone();
        own.flat_map(move |own| others.clone().map(move |other| [own, other]))
    }
}

impl SweptMotion {
    pub(super) fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the number of its pieces, without the last sample, which is one of its own.
    pub(super) fn pieces(&self) -> usize {
        self.pieces.len().saturating_sub(1)
    }

    /// Returns the first sample of a piece; after the last piece, the last sample.
    pub(super) fn begin(&self, piece: usize) -> usize {
        let before = piece.min(self.pieces()).checked_sub(1);
        let before = before.and_then(|before| self.pieces.get(before));
        before.map_or(0, |before| before.end)
    }

    /// Returns the piece that begins at a sample or holds it.
    pub(super) fn piece_at(&self, sample: usize) -> usize {
        self.pieces.partition_point(|piece| piece.end <= sample)
    }

    /// Returns where it may be in what it does; `None` for what it does not.
    pub(super) fn around(&self, stay: Stay) -> Option<&PieceSurroundings> {
        match stay {
            Stay::At(place) => self.standing.get(place),
            Stay::In(piece) => self.around.get(piece),
        }
    }

    /// Returns whether two arms keep apart, each anywhere in a piece.
    pub(super) fn is_apart(
        &self,
        piece: usize,
        (other, their): (&Self, usize),
        least_m: f64,
    ) -> bool {
        let both = self.pieces.get(piece).zip(other.pieces.get(their));
        // A piece that does not exist is nowhere.
        both.is_none_or(|(ours, theirs)| {
            let mut parts = ours.parts.iter();
            parts.all(|our| {
                theirs
                    .parts
                    .iter()
                    .all(|their| our.is_apart(their, least_m))
            })
        })
    }

    /// Returns the samples at which pieces begin that come too near to the fixed parts of another arm, whatever that does.
    pub(super) fn samples_at_base(&self, other: &Self, least_m: f64) -> Vec<usize> {
        let Some(standing) = other.pieces.first() else {
            return Vec::new();
        };
        let is_near = |piece: &SweptPiece| {
            let mut fixed = standing.parts.iter().filter(|part| part.whole.is_fixed);
            !fixed.all(|base| piece.parts.iter().all(|part| part.is_apart(base, least_m)))
        };
        let pieces = self.pieces.iter().enumerate();
        let near = pieces.filter(|(_, piece)| is_near(piece));
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
