//! Invariants 5, 16 and 19 of the safety contract, on the bytes: a goal on its leash, a cable that is
//! pulled, a joint that is blocked. 1 is in `stop_bounds`, 15 and 21 in `stop.rs`, 24 in `systemd.rs`,
//! the others in `invariants.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::far_end;
use crate::support;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use far_end::{Family, Goals, Rig, Script};
use steadyhand::link::{ByteLink, LinkError};
use steadyhand::motion::{MotionHandle, MotionOutcome, PortOpener};
use steadyhand::scene::Scene;
use steadyhand::sim::SimulatedFault;
use steadyhand::units::JointVector;
use support::{Bench, PATIENCE};

fn joints(scene: &Scene, goals: &Goals) -> JointVector {
    let servos = scene.arm.servos();
    let angles: Vec<f64> = servos
        .filter_map(|(_, servo)| {
            let (_, ticks) = goals.ticks.iter().find(|(id, _)| *id == servo.id)?;
            Some(servo.angle_rad(*ticks))
        })
        .collect();
    JointVector::from_slice(&angles)
}

/// Blocks a joint where it is, at the script's first frame.
fn block(joint: usize) -> Script {
    Box::new(move |number, hands| {
        if number == 0 {
            let at_rad = Some(hands.sim.true_joints()[joint]);
            hands.sim.break_it(SimulatedFault::Block { joint, at_rad });
        }
    })
}

/// Largest distance to the last goal, to which an arm that loses its host moves on.
#[tokio::test]
async fn invariant_5_an_arm_without_its_host_moves_no_further_than_its_leash() {
    const LEASH_S: f64 = 0.150;
    /// Age of a measurement when the goal is judged by it.
    const READING_S: f64 = 0.020;
    let rig = Rig::new(Family::Sts);
    let motion = rig.attach().unwrap();
    let observed: Arc<Mutex<Vec<(steadyhand::units::ClockInstant, JointVector)>>> = Arc::default();
    let own = Arc::clone(&observed);
    let mut inner = block(1);
    let script: Script = Box::new(move |number, hands| {
        inner(number, hands);
        own.lock()
            .unwrap()
            .push((hands.clock.now(), hands.sim.true_joints()));
    });
    let outcome = rig.draw(&motion, Some(script)).await;
    assert!(matches!(outcome, MotionOutcome::Faulted(_)), "{outcome:?}");
    let goals = rig.wire.goals(Family::Sts);
    let observed = observed.lock().unwrap();
    let mut furthest = 0.0_f64;
    for (at, truth) in observed.iter() {
        let Some(goals) = goals.iter().find(|goals| goals.at == *at) else {
            continue;
        };
        let goal = joints(&rig.scene, goals);
        for (joint, fastest) in rig.scene.arm.limits.velocity_rad_s.iter().enumerate() {
            let fraction = (goal[joint] - truth[joint]).abs() / (fastest * (LEASH_S + READING_S));
            furthest = furthest.max(fraction);
        }
    }
    assert!(observed.len() > 30, "{} frames", observed.len());
    // A blocked joint pulls the goal away from it; the leash, and a count, hold it.
    assert!((0.05..=1.02).contains(&furthest), "{furthest} of the leash");
    // Nobody says anything any more.
    let left = rig.sim.true_joints();
    rig.sim
        .advance(rig.clock.now().after(Duration::from_secs(5)));
    let moved = rig.sim.true_joints();
    for (joint, fastest) in rig.scene.arm.limits.velocity_rad_s.iter().enumerate() {
        assert!((moved[joint] - left[joint]).abs() <= fastest * LEASH_S);
    }
}

#[tokio::test]
async fn invariant_19_a_blocked_joint_is_named_and_the_tip_is_lifted() {
    let rig = Rig::new(Family::Sts);
    let motion = rig.attach().unwrap();
    let outcome = rig.draw(&motion, Some(block(1))).await;
    let MotionOutcome::Faulted(reason) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(reason.contains("shoulder_lift"), "{reason}");
    let goals = rig.wire.goals(Family::Sts);
    let height_mm = |goals: &Goals| {
        let tip = rig.scene.arm.chain.forward(&joints(&rig.scene, goals)) * rig.scene.pens[0].tip_m;
        rig.scene.surface.project(&tip).height_mm
    };
    let last = goals.last().unwrap();
    assert!(height_mm(last) > 5.0, "{} mm", height_mm(last));
    // From the obstacle to the fault: what counts as a stall, the brake, the way back, the lift.
    let took = rig.wire.latched_after(rig.clock.now());
    assert!(took < Duration::from_secs(3), "{took:?}");
    let stands = goals.iter().rev().take_while(|one| one.ticks == last.ticks);
    assert!(stands.count() >= 3);
}

/// The port is tried again ever less often, nothing moves when it is back, and motion wants a reset.
#[tokio::test]
async fn invariant_16_a_pulled_plug_is_a_fault_and_what_comes_back_stands() {
    let rig = Rig {
        clock: steadyhand::clock::NodeClock::starvation_tolerant(),
        ..Rig::new(Family::Sts)
    };
    let tries: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let (own, inner) = (Arc::clone(&tries), rig.opener());
    let sim = rig.sim.clone();
    let open: PortOpener = Box::new(move |clock| {
        own.lock().unwrap().push(Instant::now());
        // A port that is not there cannot be opened.
        let mut link: Box<dyn ByteLink> = inner(clock)?;
        link.discard_input().map_err(|_| LinkError::Unplugged)?;
        Ok(link)
    });
    let motion = MotionHandle::start(
        Arc::clone(&rig.scene.arm),
        rig.clock.clone(),
        Arc::clone(&rig.permits),
        open,
    )
    .unwrap();
    let pulled: Script = Box::new(|number, hands| {
        if number == 0 {
            hands.sim.break_it(SimulatedFault::Unplug);
        }
    });
    let outcome = rig.draw(&motion, Some(pulled)).await;
    let MotionOutcome::Faulted(reason) = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        reason.contains("unplugged") && reason.contains("reset"),
        "{reason}"
    );
    sleep(Duration::from_millis(2500));
    let gaps: Vec<Duration> = {
        let tries = tries.lock().unwrap();
        tries[1..]
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect()
    };
    // 0.1 s, then twice as long each time: no more than these in so many seconds.
    assert!((1..=5).contains(&gaps.len()), "{gaps:?}");
    assert!(gaps.windows(2).all(|pair| pair[1] > pair[0]), "{gaps:?}");
    let before = rig.wire.goals(Family::Sts).len();
    sim.break_it(SimulatedFault::Plug);
    let began = Instant::now();
    while motion.snapshot().state == steadyhand::motion::MotionState::Detached {
        assert!(began.elapsed() < PATIENCE, "it did not come back");
        sleep(Duration::from_millis(50));
    }
    sleep(Duration::from_millis(500));
    let goals = rig.wire.goals(Family::Sts);
    assert!(
        goals[before..]
            .windows(2)
            .all(|pair| pair[0].ticks == pair[1].ticks)
    );
    assert!(rig.permits.ask(&rig.scene, rig.clock.now()).is_err());
}

/// Jiffies of a process so far, in hundredths of a second.
fn jiffies(id: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let rest = text.rsplit(')').next().unwrap();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// A port that is gone reads as ready forever: a loop that trusts it would use up the processor.
#[test]
fn invariant_16_a_node_without_its_arm_takes_no_time() {
    let bench = Bench::new();
    let (sim, path) = bench.sim(&["--scene", "short"]);
    let state = bench.state();
    let mut child = bench
        .command(&[
            "serve",
            "--http",
            "127.0.0.1:0",
            "--port",
            &path,
            "--state",
            &state,
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = support::lines(child.stderr.take().unwrap());
    let child = support::Running(child);
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("MCP at ")) {
        lines.push(stderr.recv_timeout(PATIENCE).unwrap());
    }
    drop(sim);
    sleep(Duration::from_millis(500));
    let (before, began) = (jiffies(child.0.id()), Instant::now());
    sleep(Duration::from_secs(3));
    let used_s = (jiffies(child.0.id()) - before) as f64 / 100.0;
    let fraction = used_s / began.elapsed().as_secs_f64();
    assert!(fraction < 0.05, "{:.1} % of a processor", fraction * 100.0);
}
