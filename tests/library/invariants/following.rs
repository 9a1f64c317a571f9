//! Tests how far an arm goes on by itself, and what becomes of one that cannot follow.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadyhand::driver::ArmDriver;
use steadyhand::gate::{self, ExecutionStep};
use steadyhand::link::memory::MemoryLink;
use steadyhand::motion::MotionOutcome;
use steadyhand::plan::{self, SilentObserver};
use steadyhand::sim::SimulatedFault;
use steadyhand::units::{ClockInstant, JointVector};

use super::joints;
use crate::far_end::{Family, Goals, Hands, PERIOD, Rig};

/// The goal is never further ahead than so much time at full speed.
const LEASH_S: f64 = 0.15;

/// Two periods between a reading and the truth, two counts of rounding and a dead band.
const SEEN_LATER_S: f64 = 0.02;
const ROUNDING_RAD: f64 = 4.0 * std::f64::consts::TAU / 4096.0;

/// The joints' true positions when each frame of goals left the port.
type Truths = Arc<Mutex<Vec<(ClockInstant, JointVector)>>>;

/// Draws two lines that are long enough to stay far behind on; from `block_at` on the first joint
/// cannot pass. Where the joints were, by frame of goals.
async fn drawn_against(
    family: Family,
    block_at: Option<usize>,
) -> (Rig, MotionOutcome, Truths, usize) {
    let rig = Rig::with(family, |scene| {
        let design = "polylines = [[[0.0, 0.0], [80.0, 0.0]], [[80.0, 12.0], [0.0, 12.0]]]";
        let design: toml::Table = toml::from_str(design).unwrap();
        scene.insert("design".to_owned(), design.into());
    });
    let motion = rig.attach().unwrap();
    let trajectory = rig.plan(&motion);
    let from = crate::far_end::middle_of_ink(&trajectory);
    let (truths, mut before) = (Truths::default(), None);
    let kept = Arc::clone(&truths);
    let script = move |number: usize, hands: &mut Hands<'_>| {
        let truth = hands.sim.true_joints();
        kept.lock().unwrap().push((hands.clock.now(), truth));
        if block_at.is_some_and(|later| number == from + later) {
            let was: f64 = before.unwrap_or(truth[0]);
            let at_rad = Some(truth[0] + 1e-4_f64.copysign(truth[0] - was));
            hands
                .sim
                .break_it(SimulatedFault::Block { joint: 0, at_rad });
        }
        before = Some(truth[0]);
    };
    rig.wire.script(0, Box::new(script));
    let proof = rig.check(&motion, rig.permit(), trajectory);
    let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
    rig.wire.mend();
    (rig, outcome, truths, from)
}

#[tokio::test]
async fn invariant_5_a_goal_is_never_further_ahead_than_the_leash() {
    for family in Family::ALL {
        for block_at in [None, Some(0), Some(20)] {
            let (rig, _, truths, _) = drawn_against(family, block_at).await;
            let goals = rig.wire.goals(family);
            let truths = truths.lock().unwrap();
            // After the end of the motion nothing is observed any more.
            assert!(truths.len() > 100 && goals.len() >= truths.len());
            for (goals, (_, truth)) in goals.iter().zip(truths.iter()) {
                let goal = joints(&rig.scene, goals);
                for (joint, fastest) in rig.scene.arm.limits.velocity_rad_s.iter().enumerate() {
                    let ahead = (goal[joint] - truth[joint]).abs();
                    let most = fastest * (LEASH_S + SEEN_LATER_S) + ROUNDING_RAD;
                    assert!(
                        ahead <= most,
                        "{family:?}, joint {joint}: {ahead} rad ahead"
                    );
                }
            }
        }
    }
}

/// Draws for so many cycles and then says nothing more, as a node that was killed; how far each
/// joint went on.
async fn killed_after(family: Family, cycles: usize) -> (Rig, JointVector) {
    let rig = Rig::new(family);
    let mut link = MemoryLink::new(rig.sim.clone(), &rig.clock, "killed").unwrap();
    let mut driver = ArmDriver::new(&rig.scene.arm, &rig.clock);
    driver.attach(&mut link).await.unwrap();
    let mut measured = driver.energise(&mut link).await.unwrap();
    let plan = plan::draw(&rig.scene, &measured.position_rad, &SilentObserver).unwrap();
    let now = rig.clock.now();
    let proof = gate::check(&rig.scene, rig.permit(), &measured, now, plan.trajectory).unwrap();
    let mut execution = proof.begin(&measured, now).unwrap();
    for _ in 0..cycles {
        let Ok(ExecutionStep::Go(setpoint)) = execution.next(&measured, rig.clock.now()) else {
            panic!("it did not go on");
        };
        let next = rig.clock.now().after(PERIOD);
        let sent = driver.cycle(&mut link, Some(&setpoint), next).await;
        measured = sent.unwrap();
        rig.clock.jump_to(next);
    }
    let stands = rig.sim.true_joints();
    rig.sim
        .advance(rig.clock.now().after(Duration::from_secs(10)));
    let went = rig
        .sim
        .true_joints()
        .zip(&stands, |after, before| after - before);
    (rig, went)
}

#[tokio::test]
async fn invariant_5_an_arm_of_a_killed_node_goes_no_further_than_the_leash() {
    for family in [Family::Sts, Family::Dxl2, Family::Firmware] {
        for cycles in [5, 25, 40, 60, 90, 130, 170] {
            let (rig, went) = killed_after(family, cycles).await;
            for (joint, fastest) in rig.scene.arm.limits.velocity_rad_s.iter().enumerate() {
                let most = fastest * LEASH_S + ROUNDING_RAD;
                assert!(
                    went[joint].abs() <= most,
                    "{family:?}, joint {joint}: {} rad after {cycles} cycles",
                    went[joint]
                );
            }
        }
    }
}

/// A goal that is so far ahead of its joint is given up: two degrees, and how far it was ahead before.
const UNMOVED_RAD: f64 = 2.3 * std::f64::consts::PI / 180.0;

/// Time after which a joint counts as stalled.
const STALL: Duration = Duration::from_millis(300);

#[tokio::test]
async fn invariant_19_a_stalled_joint_is_given_up_in_300_ms_tool_lifted() {
    for family in Family::ALL {
        let (rig, outcome, truths, from) = drawn_against(family, Some(10)).await;
        let MotionOutcome::Faulted(reason) = outcome else {
            panic!("{family:?}: {outcome:?}")
        };
        let name = rig.scene.arm.joint_name(0);
        assert!(reason.starts_with(&name), "{reason}");
        let goals = rig.wire.goals(family);
        let truths = truths.lock().unwrap();
        let lags_rad: Vec<(ClockInstant, f64)> = goals
            .iter()
            .zip(truths.iter())
            .skip(from + 10)
            .map(|(goals, (at, truth))| (*at, (joints(&rig.scene, goals)[0] - truth[0]).abs()))
            .collect();
        // Servos whose load says what holds them are given up sooner than they are far behind.
        let is_watched = rig.scene.arm.file.servo.is_some();
        let far = lags_rad
            .iter()
            .find(|(_, lags_rad)| is_watched || *lags_rad > UNMOVED_RAD);
        let far = far
            .unwrap_or_else(|| panic!("{family:?}: never far behind"))
            .0;
        let furthest = lags_rad
            .iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap()
            .0;
        let took = furthest.since(far);
        // A reading is judged a cycle later, and the goal brakes for up to four. On which side of a cycle
        // that ends depends on when the motion began.
        assert!(
            took <= STALL + 6 * PERIOD,
            "{family:?}: pushed on for {took:?}"
        );
        let tip = rig.scene.arm.chain.forward(&rig.sim.true_joints()) * rig.scene.pens[0].tip_m;
        let height_mm = rig.scene.surface.project(&tip).height_mm;
        assert!(
            height_mm > 3.0,
            "{family:?}: the pen stayed at {height_mm:.1} mm"
        );
    }
}

/// The servo says that its torque is on, and its joint hangs.
#[tokio::test]
async fn a_joint_that_has_lost_its_torque_turns_the_drawing_back_within_300_ms() {
    for (id, name) in [(2, "shoulder_lift"), (3, "elbow_flex")] {
        let rig = Rig::new(Family::Sts);
        let motion = rig.attach().unwrap();
        let broken_at = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&broken_at);
        let script = move |_: usize, hands: &mut Hands<'_>| {
            kept.lock().unwrap().get_or_insert_with(|| {
                hands
                    .sim
                    .break_it(SimulatedFault::Limp { id, is_limp: true });
                hands.clock.now()
            });
        };
        let outcome = rig.draw(&motion, Some(Box::new(script))).await;
        let MotionOutcome::Faulted(reason) = outcome else {
            panic!("{name}: {outcome:?}")
        };
        assert!(
            reason.starts_with(name) && reason.contains("no torque"),
            "{reason}"
        );
        let broken_at: ClockInstant = broken_at.lock().unwrap().unwrap();
        let goals = rig.wire.goals(rig.family).into_iter();
        let base = |goals: Goals| Some((goals.at, goals.ticks.iter().find(|(id, _)| *id == 1)?.1));
        let goals: Vec<(ClockInstant, i32)> = goals
            .filter(|goals| goals.at >= broken_at)
            .filter_map(base)
            .collect();
        // Along the line the base turns one way; where the motion ends, it comes back, and may go farther than it came.
        let first = goals[0].1;
        let sign = (goals.iter().map(|(_, goal)| (goal - first).signum()))
            .find(|sign| *sign != 0)
            .unwrap();
        let way = |goal: i32| sign * (goal - first);
        let (turned_at, _) = goals.iter().max_by_key(|(_, goal)| way(*goal)).unwrap();
        let took = turned_at.since(broken_at);
        assert!(took < Duration::from_millis(300), "{name}: {took:?}");
    }
}

/// Its shoulder or elbow loses its torque after so many cycles of a drawing; the time until that is a fault.
async fn limp_after(rig: Rig, id: u8, cycles: usize) -> Duration {
    let motion = rig.attach().unwrap();
    let trajectory = rig.plan(&motion);
    let from = crate::far_end::middle_of_ink(&trajectory) + cycles;
    let script = move |number: usize, hands: &mut Hands<'_>| {
        if number == 0 {
            let limp = SimulatedFault::Limp { id, is_limp: true };
            hands.sim.break_it(limp);
        }
    };
    rig.wire.script(from, Box::new(script));
    let proof = rig.check(&motion, rig.permit(), trajectory);
    let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
    assert!(matches!(outcome, MotionOutcome::Faulted(_)), "{outcome:?}");
    rig.wire.latched_after(rig.clock.now())
}

#[tokio::test]
async fn a_joint_without_torque_is_a_fault_wherever_the_drawing_is() {
    let rigs: [fn() -> Rig; 2] = [|| Rig::new(Family::Sts), Rig::twelve_volts];
    for rig in rigs {
        for (id, cycles) in [2, 3]
            .into_iter()
            .flat_map(|id| (0..24).map(move |step| (id, 13 * step)))
        {
            let took = limp_after(rig(), id, cycles).await;
            // A stall counts from the first reading without torque, a cycle later.
            assert!(
                took <= STALL + PERIOD,
                "servo {id}, {cycles} cycles: {took:?}"
            );
        }
    }
}
