//! Goals that compensate the play of the joints and the errors measured on drawn ink, so
//! that the tip arrives where it is planned.
//!
//! A joint that reverses moves nothing until its gears have crossed their play. Its goal therefore
//! leads by half of the play in the direction of travel, and crosses to the other side around each
//! reversal: half of the crossing before it, and half after.

use std::borrow::Cow;
use std::sync::Arc;

use nalgebra::{Matrix3, Point3, Vector3};

use super::PERIOD_S;
use super::tool_ik::tip_of;
use super::trajectory::{SpanKind, Trajectory, TrajectorySpan};
use super::trajectory_builder::NEEDLE_M_S;
use arm::ArmModel;
use base::units::JointVector;
use scene::{Scene, ScenePen, SheetCorrection, ToolKind};

/// Fraction of the joints' accelerations and jerks that a drawing is planned with where goals cross
/// play; the rest is left for the crossings.
const EASED: f64 = 0.5;

/// The same fraction of the joints' speeds, and of all three limits where no play is known.
const EASED_SLIGHTLY: f64 = 0.9;

/// Fastest travel of a tip whose goals cross play: the crossings may add to it.
const TRAVEL_MM_S: f64 = 140.0;

/// Samples over which the goals start to lead before the arm moves, and stop leading after it has
/// come to rest.
pub(super) const SETTLE_SAMPLES: usize = 40;

/// A joint that turns back by less than this has not reversed.
const REVERSAL_RAD: f64 = 5e-4;

/// A joint that turns by less than this stands still.
const STAND_RAD: f64 = 2e-5;

/// Largest speed of the smooth step over its duration, largest acceleration over the duration
/// squared, and largest jerk over its cube.
const SMOOTH_SPEED: f64 = 1.875;
const SMOOTH_ACCELERATION: f64 = 5.774;
const SMOOTH_JERK: f64 = 60.0;

/// Heights over the sheet up to which its correction applies in full, and from which it no longer
/// applies.
const CORRECTED_MM: [f64; 2] = [30.0, 80.0];

/// Largest depth below the plan to which leads over play may bring a tip at the sheet, and the
/// interval in samples at which it is checked.
const LOWERED_MM: f64 = 0.2;
const LOWERED_EVERY: usize = 5;

/// Damping of the joint motion that yields a tip's offset, in square metres per square radian.
const DAMPING: f64 = 1e-6;

/// Returns the scene that a drawing is planned with: it leaves room in the joints' limits for goals
/// that lead.
pub(super) fn eased(scene: &Scene) -> Cow<'_, Scene> {
    if !crosses_play(&scene.arm) && scene.correction.is_none() {
        return Cow::Borrowed(scene);
    }
    let crosses_play = crosses_play(&scene.arm);
    let eased = if crosses_play { EASED } else { EASED_SLIGHTLY };
    let mut tip_limits = scene.limits;
    if crosses_play {
        tip_limits.travel_mm_s = tip_limits.travel_mm_s.min(TRAVEL_MM_S);
    }
    if has_needle(scene) {
        let max_mm_s = NEEDLE_M_S * 1e3 * EASED_SLIGHTLY;
        tip_limits.draw_mm_s = tip_limits.draw_mm_s.min(max_mm_s);
        tip_limits.travel_mm_s = tip_limits.travel_mm_s.min(max_mm_s);
    }
    Cow::Owned(Scene {
        arm: Arc::new(with_scaled_limits(
            &scene.arm,
            [EASED_SLIGHTLY, eased, eased],
        )),
        limits: tip_limits,
        ..scene.clone()
    })
}

/// Returns an arm with these fractions of its joints' speeds, accelerations and jerks.
pub(super) fn with_scaled_limits(
    arm: &ArmModel,
    [speed, acceleration, jerk]: [f64; 3],
) -> ArmModel {
    let mut arm = arm.clone();
    let limits = &mut arm.limits;
    for (limit, fraction) in [
        (&mut limits.velocity_rad_s, speed),
        (&mut limits.acceleration_rad_s2, acceleration),
        (&mut limits.jerk_rad_s3, jerk),
    ] {
        *limit = limit.map(|_, value| value * fraction);
    }
    arm
}

/// Returns whether a tip is a needle: goals must not move it faster than allowed where the play is
/// smaller than measured.
pub(super) fn has_needle(scene: &Scene) -> bool {
    (scene.pens.iter()).any(|pen| pen.kind == ToolKind::Needle)
}

fn crosses_play(arm: &ArmModel) -> bool {
    let compensation = arm.compensation.as_ref();
    compensation.is_some_and(|found| found.play_rad.iter().any(|play_rad| *play_rad > 0.0))
}

/// Compensates what is known of the arm and of the sheet. Returns the trajectory and the number of
/// samples inserted before it.
pub(super) fn compensated(scene: &Scene, planned: Trajectory) -> (Trajectory, usize) {
    if !crosses_play(&scene.arm) && scene.correction.is_none() {
        return (planned, 0);
    }
    let settled = with_settling(planned);
    let mut leads_rad = smooth_leads(scene, &settled);
    for joint in crossing_joints(scene, &settled) {
        add_play(&scene.arm, joint, &settled.samples, &mut leads_rad);
    }
    let samples = settled.samples.iter().zip(&leads_rad).enumerate();
    let last = settled.samples.len().saturating_sub(1);
    let goals = samples.map(|(sample, (reached, lead))| {
        let fraction = settling_fraction(sample) * settling_fraction(last - sample);
        leading_goal(&scene.arm, reached, &lead.map(|_, lead| lead * fraction))
    });
    let compensated = Trajectory {
        samples: goals.collect(),
        reached: settled.samples,
        ..settled
    };
    (compensated, SETTLE_SAMPLES)
}

/// Makes the arm stand still for a while before the first motion and after the last.
fn with_settling(planned: Trajectory) -> Trajectory {
    let (mut samples, mut spans) = (planned.samples, planned.spans);
    if let (Some(first), Some(last)) = (samples.first().copied(), samples.last().copied()) {
        samples.splice(0..0, [first; SETTLE_SAMPLES]);
        samples.extend([last; SETTLE_SAMPLES]);
    }
    for span in &mut spans {
        span.first += SETTLE_SAMPLES;
        span.end += SETTLE_SAMPLES;
    }
    if let Some(span) = spans.first_mut() {
        span.first = 0;
    }
    if let Some(TrajectorySpan { pen, end, .. }) = spans.last().cloned() {
        spans.push(TrajectorySpan {
            kind: SpanKind::Travel,
            item: None,
            pen,
            first: end,
            end: samples.len(),
        });
    }
    Trajectory {
        samples,
        spans,
        ..planned
    }
}

/// Returns the fraction of the full lead at this many samples from an end.
fn settling_fraction(samples: usize) -> f64 {
    smooth_step(samples.min(SETTLE_SAMPLES) as f64 / SETTLE_SAMPLES as f64)
}

/// Rises from 0 to 1 with no speed and no acceleration at either end.
fn smooth_step(t: f64) -> f64 {
    let t = t.clamp(0.0, 1.0);
    t.powi(3) * (10.0 + t * (6.0 * t - 15.0))
}

/// Returns the goal with its lead, within the joints' limits or no farther beyond them than the
/// plan.
fn leading_goal(arm: &ArmModel, reached: &JointVector, lead: &JointVector) -> JointVector {
    let (lower, upper) = (&arm.limits.lower_rad, &arm.limits.upper_rad);
    let unlimited = reached.zip(lead, |reached, lead| reached + lead);
    let above_lower = unlimited.zip(&lower.zip(reached, f64::min), f64::max);
    above_lower.zip(&upper.zip(reached, f64::max), f64::min)
}

/// Returns the lead that each sample needs for the sheet's correction.
fn smooth_leads(scene: &Scene, settled: &Trajectory) -> Vec<JointVector> {
    let reached = settled.samples.iter().zip(pen_shares(settled));
    let lead = |(reached, pens): (&JointVector, PenShare)| {
        let mut lead = JointVector::zeros(scene.arm.dof());
        if let Some(correction) = &scene.correction {
            let corrected = |pen: usize| match scene.pen(pen) {
                Some(pen) => corrected_by(scene, correction, pen, reached),
                None => JointVector::zeros(scene.arm.dof()),
            };
            let (from, to) = (corrected(pens.from), corrected(pens.to));
            let between = from.zip(&to, |from, to| from + (to - from) * pens.to_fraction);
            lead = lead.zip(&between, |lead, correction| lead + correction);
        }
        lead
    };
    reached.map(lead).collect()
}

/// The pens by whose tips a sample is corrected.
#[derive(Clone, Copy)]
struct PenShare {
    from: usize,
    to: usize,
    /// Weight of the second, 0 to 1.
    to_fraction: f64,
}

/// Returns the pens of each sample. The weight passes from one pen to the next while neither draws.
fn pen_shares(settled: &Trajectory) -> Vec<PenShare> {
    let mut shares = Vec::with_capacity(settled.samples.len());
    for span in &settled.spans {
        let single_pen = PenShare {
            from: span.pen,
            to: span.pen,
            to_fraction: 0.0,
        };
        shares.resize(span.end, single_pen);
    }
    let is_up = |span: &&TrajectorySpan| span.kind != SpanKind::Draw;
    for (before, pair) in settled.spans.windows(2).enumerate() {
        let [one, next] = pair else { continue };
        if one.pen == next.pen {
            continue;
        }
        let (earlier, later) = settled.spans.split_at(before + 1);
        let first = earlier.iter().rev().take_while(is_up).last();
        let last = later.iter().take_while(is_up).last();
        let first = first.map_or(next.first, |span| span.first);
        let end = last.map_or(next.first, |span| span.end);
        let from = first.max(next.first.saturating_sub(SETTLE_SAMPLES));
        let until = end.min(next.first + SETTLE_SAMPLES);
        for (sample, share) in shares.iter_mut().enumerate().take(until).skip(from) {
            *share = PenShare {
                from: one.pen,
                to: next.pen,
                to_fraction: smooth_step((sample - from) as f64 / (until - from) as f64),
            };
        }
    }
    shares
}

/// Returns the joint motion that moves a tip by the sheet's correction.
fn corrected_by(
    scene: &Scene,
    correction: &SheetCorrection,
    pen: &ScenePen,
    reached: &JointVector,
) -> JointVector {
    let chain = &scene.arm.chain;
    let by_m = correction_m(scene, correction, &chain.point(reached, &pen.tip_m));
    let jacobian = chain.jacobian(reached, &tip_of(pen));
    let columns: Vec<Vector3<f64>> = jacobian
        .iter()
        .map(|[x, y, z, ..]| Vector3::new(*x, *y, *z))
        .collect();
    let square: Matrix3<f64> = columns.iter().map(|v| v * v.transpose()).sum();
    let Some(inverse) = (square + Matrix3::identity() * DAMPING).try_inverse() else {
        return JointVector::zeros(scene.arm.dof());
    };
    let weights = inverse * by_m;
    let turns_rad: Vec<f64> = columns.iter().map(|v| v.dot(&weights)).collect();
    JointVector::from_slice(&turns_rad)
}

/// Returns the sheet's correction of a tip, in the arm's base frame.
fn correction_m(scene: &Scene, correction: &SheetCorrection, tip_m: &Point3<f64>) -> Vector3<f64> {
    let projection = scene.surface.project(tip_m);
    let [full_mm, none_mm] = CORRECTED_MM;
    let weight = smooth_step((none_mm - projection.height_mm) / (none_mm - full_mm));
    let [dx_mm, dy_mm] = correction.at(projection.at_mm).map(|by_mm| by_mm * weight);
    let surface = scene.surface.at(projection.at_mm);
    let y = surface.normal.cross(&surface.x);
    (surface.x.scale(dx_mm) + y.scale(dy_mm)) / 1e3
}

/// Returns the largest distance of a drawing tip from its plan, as the measured play and sag of the
/// arm predict it; `None` where they were not measured.
pub(super) fn expected_deviation_mm(scene: &Scene, trajectory: &Trajectory) -> Option<f64> {
    let compensation = scene.arm.compensation.as_ref();
    let mut gears = (compensation.filter(|_| !trajectory.reached.is_empty())?).gears();
    let mut max_m = 0.0_f64;
    for span in &trajectory.spans {
        let goals = trajectory.goals_of(span).iter();
        for (goal, planned) in goals.zip(trajectory.between(span.first, span.end)) {
            let expected = gears.follow(goal);
            let pen = scene.pen(span.pen).filter(|_| span.kind == SpanKind::Draw);
            let Some(pen) = pen else { continue };
            let tip = |joints: &JointVector| scene.arm.chain.point(joints, &pen.tip_m);
            let correction = scene.correction.as_ref();
            let by_m = correction.map(|known| correction_m(scene, known, &tip(planned)));
            let deviation_m = tip(&expected) - tip(planned) - by_m.unwrap_or_default();
            max_m = max_m.max(deviation_m.norm());
        }
    }
    Some(max_m * 1e3)
}

/// Returns the joints whose play is compensated. If the play were smaller than measured, leads
/// would press a tip deeper into the sheet: their sum is limited, and joints beyond the limit are
/// left out. With a needle no play is compensated.
fn crossing_joints(scene: &Scene, settled: &Trajectory) -> Vec<usize> {
    let compensation = scene.arm.compensation.as_ref();
    let Some(compensation) = compensation.filter(|_| !has_needle(scene)) else {
        return Vec::new();
    };
    let plays = compensation.play_rad.iter().copied().enumerate();
    let mut joints: Vec<(usize, f64)> = plays
        .filter(|(_, play_rad)| *play_rad > 0.0)
        .map(|(joint, play_rad)| (joint, lowered_mm(scene, settled, joint, play_rad / 2.0)))
        .collect();
    joints.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut total_mm = 0.0;
    let within = joints.into_iter().take_while(|(_, mm)| {
        total_mm += mm;
        total_mm <= LOWERED_MM
    });
    within.map(|(joint, _)| joint).collect()
}

/// Returns the most by which a turn of one joint, either way, lowers a tip that is at the sheet.
fn lowered_mm(scene: &Scene, settled: &Trajectory, joint: usize, by_rad: f64) -> f64 {
    let at_sheet = |span: &&TrajectorySpan| matches!(span.kind, SpanKind::Draw | SpanKind::Lower);
    let mut max_mm = 0.0_f64;
    for span in settled.spans.iter().filter(at_sheet) {
        let Some(pen) = scene.pen(span.pen) else {
            continue;
        };
        let height_mm = |q: &JointVector| {
            let tip_m = scene.arm.chain.point(q, &pen.tip_m);
            scene.surface.project(&tip_m).height_mm
        };
        let samples = settled.between(span.first, span.end);
        for q in samples.iter().step_by(LOWERED_EVERY).chain(samples.last()) {
            let rotated = |by: f64| q.map(|of, q| if of == joint { q + by } else { q });
            let lowest_mm = height_mm(&rotated(by_rad)).min(height_mm(&rotated(-by_rad)));
            max_mm = max_mm.max(height_mm(q) - lowest_mm);
        }
    }
    max_mm
}

/// Adds half of a joint's play in the direction of travel.
fn add_play(arm: &ArmModel, joint: usize, reached: &[JointVector], leads_rad: &mut [JointVector]) {
    let compensation = arm.compensation.as_ref();
    let Some(play_rad) = compensation.and_then(|found| found.play_rad.get(joint)) else {
        return;
    };
    let angles: Vec<f64> = (reached.iter())
        .filter_map(|q| q.get(joint).copied())
        .collect();
    let crossing = crossing_samples(arm, joint, *play_rad);
    let leads = play_leads(&angles, *play_rad, crossing);
    for (all, lead) in leads_rad.iter_mut().zip(leads) {
        *all = all.map(|of, before| if of == joint { before + lead } else { before });
    }
}

/// Returns the samples that a joint needs to cross its play on top of the planned motion.
fn crossing_samples(arm: &ArmModel, joint: usize, play_rad: f64) -> f64 {
    let spare = |limit: &JointVector, eased: f64| {
        let most = limit.get(joint).copied();
        most.map_or(f64::INFINITY, |most| most * (1.0 - eased))
    };
    let limits = &arm.limits;
    let by_speed = SMOOTH_SPEED * play_rad / spare(&limits.velocity_rad_s, EASED_SLIGHTLY);
    let by_acceleration =
        SMOOTH_ACCELERATION * play_rad / spare(&limits.acceleration_rad_s2, EASED);
    let by_jerk = SMOOTH_JERK * play_rad / spare(&limits.jerk_rad_s3, EASED);
    let seconds = by_speed.max(by_acceleration.sqrt()).max(by_jerk.cbrt());
    (seconds / PERIOD_S).ceil()
}

/// Returns the lead of one joint at each sample, with a crossing of this many samples around each
/// reversal.
fn play_leads(angles_rad: &[f64], play_rad: f64, crossing: f64) -> Vec<f64> {
    let reversals = find_reversals(angles_rad);
    let Some(first) = reversals.first_direction else {
        return vec![0.0; angles_rad.len()];
    };
    let (mut lead, mut direction) = (first * play_rad / 2.0, -first);
    let mut crossings = drop_short_reversals(&reversals.at, crossing)
        .into_iter()
        .peekable();
    let at = |sample: usize| {
        // Crossings do not overlap: at most one is under way.
        while let Some(centre) = crossings.peek() {
            let t = (sample as f64 - centre) / crossing + 0.5;
            if t < 1.0 {
                return lead + direction * play_rad * smooth_step(t);
            }
            lead += direction * play_rad;
            direction = -direction;
            crossings.next();
        }
        lead
    };
    (0..angles_rad.len()).map(at).collect()
}

/// Drops pairs of reversals with no time for a crossing between them: a joint that turns back so
/// briefly stays within its play.
fn drop_short_reversals(at: &[f64], crossing: f64) -> Vec<f64> {
    let mut kept: Vec<f64> = Vec::new();
    for sample in at {
        match kept.last() {
            Some(last) if sample - last < crossing => {
                kept.pop();
            }
            _ => kept.push(*sample),
        }
    }
    kept
}

/// Reversals of one joint.
struct JointReversals {
    /// Sign of its first motion; `None` where it does not move.
    first_direction: Option<f64>,
    /// Middle of each pause at which it reverses, in samples.
    at: Vec<f64>,
}

fn find_reversals(angles_rad: &[f64]) -> JointReversals {
    let mut found = JointReversals {
        first_direction: None,
        at: Vec::new(),
    };
    let Some(mut extreme) = angles_rad.first().copied() else {
        return found;
    };
    let (mut from, mut until) = (0, 0);
    let mut direction = 0.0;
    for (sample, angle) in angles_rad.iter().enumerate() {
        let ahead = (angle - extreme) * direction;
        if direction == 0.0 {
            if (angle - extreme).abs() > REVERSAL_RAD {
                direction = (angle - extreme).signum();
                found.first_direction = Some(direction);
                (extreme, from, until) = (*angle, sample, sample);
            }
        } else if ahead > STAND_RAD {
            (extreme, from, until) = (*angle, sample, sample);
        } else if ahead >= -STAND_RAD {
            until = sample;
        } else if ahead < -REVERSAL_RAD {
            found.at.push((from + until) as f64 / 2.0);
            direction = -direction;
            (extreme, from, until) = (*angle, sample, sample);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Back and forth ten thousand times: looking at all samples for each reversal would take
    /// minutes.
    #[test]
    fn crosses_play_at_each_of_many_reversals() {
        const LEG: u16 = 40;
        let leg = |leg: u16| {
            (0..LEG).map(move |step| {
                let at = f64::from(step) / f64::from(LEG);
                if leg.is_multiple_of(2) { at } else { 1.0 - at }
            })
        };
        let angles: Vec<f64> = (0..20_000).flat_map(leg).collect();
        let leads = play_leads(&angles, 0.02, 14.0);
        assert_eq!(leads.len(), angles.len());
        for (index, leg) in leads.chunks(LEG.into()).enumerate() {
            let lead = if index.is_multiple_of(2) { 0.01 } else { -0.01 };
            let middle = leg.iter().skip(10).take(20);
            assert!(
                middle.into_iter().all(|at| (at - lead).abs() < 1e-12),
                "{index}"
            );
        }
        let steps = leads.iter().zip(leads.iter().skip(1));
        let most = steps.fold(0.0, |most: f64, (a, b)| most.max((b - a).abs()));
        assert!(most < 0.02 * SMOOTH_SPEED / 14.0, "{most}");
    }
}
