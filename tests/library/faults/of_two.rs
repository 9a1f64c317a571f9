//! The same faults, done to one of two arms that draw together: what ends its motion ends that of the other, and what does not
//! lets both draw on.
//!
//! Left out are outcomes without a motion of two: an arm that cannot be attached begins none, and nothing moves while torque is
//! taken off or an arm is found energised. Nor is an obstacle put before an arm with a controller: it is placed by time, and time
//! passes before both have begun.

use std::sync::Arc;
use std::time::Duration;

use nalgebra::{IsometryMatrix3, Rotation3, Translation3};
use steadyhand::gate::{self, CheckedTrajectory, MotionPart};
use steadyhand::motion::{BusThread, MotionHandle, MotionOutcome, MotionState, StopReport};
use steadyhand::permit::{ActorRank, StopLatch};
use steadyhand::plan::Trajectory;
use steadyhand::scene::{ArmBeside, Scene};
use steadyhand::units::ClockInstant;

use super::case::{Case, Want};
use super::far_end::{Family, Rig, middle_of_ink};
use super::outcome::{long_lines, names_all, stayed_on_the_line, takes_torque_off};

/// Distance of the bases: what is judged here is who stops, not how near the arms come.
const APART_M: f64 = 3.0;

/// Longest time in which an arm brakes and is read to stand.
const BRAKED_MS: f64 = 1_000.0;

/// How far an arm may sink that never begins: its torque comes on.
const SUNK_RAD: f64 = 0.05;

/// Two arms of one scene on wires of their own, with one clock.
struct Duo([Rig; 2]);

impl Duo {
    fn new(case: &Case) -> Self {
        let rig = || match case.long {
            true => Rig::with(case.family, long_lines),
            false => Rig::new(case.family),
        };
        let [mut left, mut right] = [rig(), rig()];
        right.clock = left.clock.clone();
        let names = ["left", "right"];
        for (arm, rig) in [&mut left, &mut right].into_iter().enumerate() {
            let ahead_m = if arm == 0 { APART_M } else { -APART_M };
            let base = Translation3::new(0.0, ahead_m, 0.0);
            let beside = ArmBeside {
                name: names[1 - arm].to_owned(),
                arm: Arc::clone(&rig.scene.arm),
                base_in_ours: IsometryMatrix3::from_parts(base, Rotation3::identity()),
                pens: rig.scene.pens.clone(),
                uncertainty_m: 0.0,
            };
            rig.scene = Arc::new(Scene {
                arm_name: Some(names[arm].to_owned()),
                beside: vec![beside],
                ..Scene::clone(&rig.scene)
            });
        }
        Self([left, right])
    }

    /// Judges both drawings together.
    fn proofs(
        &self,
        motions: [&MotionHandle; 2],
        plans: &[Trajectory; 2],
    ) -> [CheckedTrajectory; 2] {
        let starts = motions.map(|motion| motion.snapshot().measured.unwrap());
        let parts = [0, 1].map(|arm: usize| MotionPart {
            scene: Arc::clone(&self.0[arm].scene),
            permit: self.0[arm].permit(),
            start: &starts[arm],
            now: self.0[arm].clock.now(),
            trajectory: plans[arm].clone(),
        });
        let proofs = gate::check_together(parts.into(), &[]).unwrap();
        proofs.try_into().unwrap()
    }
}

/// Draws with both, breaks the left one, and judges what came of the right one.
pub(crate) async fn carry_out(case: Case) {
    let has_no_motion = matches!(case.want, Want::Untouched | Want::Released(..));
    let is_left_out = match case.family {
        Family::Sts | Family::Dxl2 => false,
        Family::Firmware => case.long,
    };
    if has_no_motion || is_left_out || case.other.is_some() {
        return;
    }
    let duo = Duo::new(&case);
    let [left, right] = &duo.0;
    left.break_all(&case.before);
    let thread = BusThread::start("pair").unwrap();
    let attached = [left, right].map(|rig| rig.attach_on(&thread));
    let [Ok(one), Ok(other)] = attached else {
        assert!(matches!(case.want, Want::Refused(_)), "{}", case.done);
        return;
    };
    let stood = right.sim.true_joints();
    let plans = [left.plan(&one), right.plan(&other)];
    if let Some(script) = case.during {
        left.wire.script(middle_of_ink(&plans[0]), script);
    }
    let [first, second] = duo.proofs([&one, &other], &plans);
    let drawn = other.run(second, other.stops_requested());
    let broken = one.run(first, one.stops_requested()).await.unwrap();
    let drawn = drawn.await.unwrap();
    match (case.want, broken, drawn) {
        (
            Want::Drawn(..) | Want::Warned(_),
            MotionOutcome::Reached { .. },
            MotionOutcome::Reached { .. },
        ) => duo.0.iter().for_each(stayed_on_the_line),
        (Want::Refused(names), MotionOutcome::Refused(message), MotionOutcome::Stopped(report)) => {
            names_all(&message.to_string(), names);
            stopped(right, &other, &report);
            let moved_rad = right.sim.true_joints().distance_max(&stood);
            assert!(moved_rad < SUNK_RAD, "{}: {moved_rad} rad", case.done);
        }
        (
            Want::Faulted(within_ms, names),
            MotionOutcome::Faulted(message),
            MotionOutcome::Stopped(report),
        ) => {
            // Beside another arm it is held closer to its path, and found sooner.
            let is_kept_close = message.contains("another arm");
            names_all(&message, if is_kept_close { &names[..1] } else { names });
            assert!(matches!(left.permits.latched(), Some(StopLatch::Fault(_))));
            stopped(right, &other, &report);
            stopped_in_time(&duo, &report, within_ms);
        }
        // One machine runs both: neither was run.
        (Want::Faulted(_, names), MotionOutcome::Faulted(one), MotionOutcome::Faulted(other))
            if names.iter().all(|name| name.contains("machine")) =>
        {
            names_all(&one, names);
            names_all(&other, names);
        }
        (_, broken, drawn) => {
            panic!("{:?}: {}: {broken:?}, {drawn:?}", case.family, case.done)
        }
    }
}

/// The right arm has stopped because of the left one, lifted, and holds.
fn stopped(right: &Rig, motion: &MotionHandle, report: &StopReport) {
    assert_eq!(report.neighbour.as_deref(), Some("left"));
    assert!(
        report.verified && report.by == ActorRank::Node,
        "{report:?}"
    );
    assert!(report.braked_ms() < Some(BRAKED_MS), "{report:?}");
    let snapshot = motion.snapshot();
    let (state, fault) = (snapshot.state, snapshot.fault);
    assert_eq!((state, fault), (MotionState::Stopped, None));
    let latched = right.permits.latched();
    assert_eq!(latched, Some(StopLatch::Stopped(ActorRank::Node)));
    assert!(
        !takes_torque_off(right, ClockInstant::ZERO),
        "it was let go"
    );
}

/// From the fault on, the right arm's goals go no longer than until the fault must be told, and until one arm has stopped.
fn stopped_in_time(duo: &Duo, report: &StopReport, within_ms: u64) {
    let [left, right] = &duo.0;
    if right.family == Family::Firmware {
        return;
    }
    let goals = right.wire.goals(right.family);
    let mut changes = goals
        .windows(2)
        .filter(|pair| pair[0].ticks != pair[1].ticks);
    let last = changes.next_back().unwrap()[1].at;
    let broken = left.wire.state().broken_at.unwrap();
    let stop_ms = BRAKED_MS + report.lift_ms.unwrap_or_default();
    let limit = Duration::from_millis(within_ms) + Duration::from_secs_f64(stop_ms / 1e3);
    assert!(last.since(broken) <= limit, "{:?}", last.since(broken));
}
