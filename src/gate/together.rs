//! Judges the motion of one arm, or of several that share a scene, before anything moves.

use std::sync::Arc;

use super::apart;
use super::check::TrajectoryJudge;
use super::concert::ConcertPart;
use super::depth_trim::{TrimProof, TrimmedCopies};
use super::neighbour_body::JudgedMotion;
use super::stop_proof::StopProof;
use super::{CheckedTrajectory, GateRefusal, RefusedTrajectory};
use base::units::{ArmMeasurement, ClockInstant};
use permit::MotionPermit;
use plan::Trajectory;
use scene::Scene;

/// The motion of one arm.
#[derive(Debug)]
pub struct MotionPart<'a> {
    /// Its scene.
    pub scene: Arc<Scene>,
    /// Its permit.
    pub permit: MotionPermit,
    /// Where it was measured to be.
    pub start: &'a ArmMeasurement,
    /// The time on the clock of that reading.
    pub now: ClockInstant,
    /// What it is to do.
    pub trajectory: Trajectory,
}

impl MotionPart<'_> {
    /// Returns it as far as its permit lets the arm go.
    fn narrowed(self) -> Self {
        Self {
            scene: self.permit.narrowed(self.scene),
            ..self
        }
    }
}

/// An arm that stands beside those that move.
#[derive(Clone, Copy, Debug)]
pub struct StandingArm<'a> {
    /// Its scene.
    pub scene: &'a Arc<Scene>,
    /// Where it was measured to be.
    pub measured: &'a ArmMeasurement,
    /// The time on the clock of that reading.
    pub now: ClockInstant,
}

/// Judges a trajectory. Nothing is repaired; the error lists every rule that refused, each with
/// its worst sample.
///
/// `start` is where the arm was measured to be, `now` is on the same clock.
///
/// # Errors
/// [`RefusedTrajectory`] with one refusal per rule, stroke and activity.
pub fn check(
    scene: &Arc<Scene>,
    permit: MotionPermit,
    start: &ArmMeasurement,
    now: ClockInstant,
    trajectory: Trajectory,
) -> Result<CheckedTrajectory, RefusedTrajectory> {
    let part = MotionPart {
        scene: Arc::clone(scene),
        permit,
        start,
        now,
        trajectory,
    };
    let mut checked = check_together(vec![part], &[])?;
    #[expect(clippy::expect_used, reason = "a motion without a proof may not begin")]
    Ok(checked.pop().expect("one motion gives one proof"))
}

/// Judges the motions of arms that share a scene, each as [`check`] does, and that they keep the
/// arms apart, from each other and from those that stand. The proofs are in the order of the
/// motions, and are carried out together or not at all.
///
/// # Errors
/// As [`check`], with the arm of each refusal.
pub fn check_together(
    moving: Vec<MotionPart<'_>>,
    standing: &[StandingArm<'_>],
) -> Result<Vec<CheckedTrajectory>, RefusedTrajectory> {
    let moving: Vec<MotionPart<'_>> = moving.into_iter().map(MotionPart::narrowed).collect();
    let motions: Vec<_> = moving
        .iter()
        .map(|part| (&part.scene, &part.trajectory))
        .collect();
    let proofs = prove(&motions, standing, |index, judge| {
        if let Some(part) = moving.get(index) {
            judge.check_permit_and_start(&part.permit, part.start, part.now);
        }
    })?;
    let names = moving.iter().map(|part| part.scene.arm_name.clone());
    let concert = ConcertPart::of_all(names);
    let proven = moving.into_iter().zip(proofs).zip(concert);
    let checked = proven.map(
        |((part, Proof { stops, copies }), concert)| CheckedTrajectory {
            concert,
            trim: copies.map(|copies| TrimProof::new(&part.scene, copies)),
            scene: part.scene,
            permit: part.permit,
            trajectory: part.trajectory,
            stops,
        },
    );
    Ok(checked.collect())
}

/// Judges all of a trajectory except the permit and the arm's start, and makes no proof: for
/// previews.
///
/// # Errors
/// As [`check`].
pub fn preview(scene: &Arc<Scene>, trajectory: &Trajectory) -> Result<(), RefusedTrajectory> {
    preview_together(&[(scene, trajectory)], &[])
}

/// Judges motions as [`check_together`] does, except the permits and the arms' starts, and makes no
/// proof: for previews.
///
/// # Errors
/// As [`check_together`].
pub fn preview_together(
    moving: &[(&Arc<Scene>, &Trajectory)],
    standing: &[StandingArm<'_>],
) -> Result<(), RefusedTrajectory> {
    prove(moving, standing, |_, _| {}).map(|_| ())
}

/// What was proven of a motion.
struct Proof {
    stops: StopProof,
    copies: Option<TrimmedCopies>,
}

/// Applies every rule to each motion, and then [`GateRule::Apart`](super::GateRule::Apart) to all of
/// them.
fn prove(
    moving: &[(&Arc<Scene>, &Trajectory)],
    standing: &[StandingArm<'_>],
    check_permit: impl Fn(usize, &mut TrajectoryJudge<'_>),
) -> Result<Vec<Proof>, RefusedTrajectory> {
    let (mut proofs, mut refusals) = (Vec::new(), Vec::new());
    for (index, (scene, trajectory)) in moving.iter().enumerate() {
        let copies = TrimmedCopies::of(scene, trajectory);
        let judge = TrajectoryJudge::new(scene, trajectory);
        match judge.run(copies.as_ref(), |judge| check_permit(index, judge)) {
            Ok(stops) => proofs.push(Proof { stops, copies }),
            Err(RefusedTrajectory(refused)) => {
                refusals.extend(refused.into_iter().map(|refusal| GateRefusal {
                    arm: scene.arm_name.clone(),
                    ..refusal
                }));
            }
        }
    }
    if refusals.is_empty() {
        let judged = moving.iter().zip(&proofs);
        let judged: Vec<_> = judged
            .map(|((scene, trajectory), proof)| JudgedMotion {
                scene,
                trajectory,
                stops: &proof.stops,
                copies: proof.copies.as_ref(),
            })
            .collect();
        refusals = apart::check(&judged, standing);
    }
    match refusals.is_empty() {
        true => Ok(proofs),
        false => Err(RefusedTrajectory(refusals)),
    }
}
