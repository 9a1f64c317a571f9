//! The safety contract's invariants, by their numbers, on the bytes that leave the port.
//!
//! `STEADYHAND_CASES=1000000` runs a million cases, a part runs always. `docs/internals/invariants.md` says where the others are.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::float_cmp,
    reason = "a failing test may panic"
)]

use crate::far_end;
use std::f64::consts::TAU;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use nalgebra::Point3;
use steadyhand::clock::NodeClock;
use steadyhand::driver::ArmDriver;
use steadyhand::gate::{self, ExecutionStep, SagLead};
use steadyhand::link::byte_trace::{ByteDirection, RecordLink, ReplayDevice, TraceEvent};
use steadyhand::link::memory::MemoryLink;
use steadyhand::link::{ByteLink, LinkError};
use steadyhand::motion::{MotionHandle, MotionOutcome, PortOpener};
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::plan::{SpanKind, Trajectory, TrajectorySpan};
use steadyhand::scene::{AxisAlignedBox, Scene};
use steadyhand::sim::{ArmSimulator, SimulatedFault};
use steadyhand::units::{ClockInstant, JointVector};
use tokio::runtime::Runtime;

mod calls;
mod false_alarms;
mod following;
mod identity;
mod judge;
mod speed;

use far_end::{Family, Goals, PERIOD, Rig, Script};
use judge::Judge;

const PERIOD_S: f64 = 0.01;

/// Cases where a million are asked for.
fn cases() -> usize {
    let setting = std::env::var("STEADYHAND_CASES").ok();
    setting.and_then(|text| text.parse().ok()).unwrap_or(5_000)
}

/// SplitMix64, so that a failure comes again.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[7]
    }

    /// Returns a number from -1 to 1.
    fn share(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap()) / f64::from(u32::MAX) * 2.0 - 1.0
    }
}

/// A joint's servos, by their ids, and what a tick is worth.
fn joint_of(scene: &Scene, id: u8) -> Option<(usize, steadyhand::arm::ServoFile)> {
    scene.arm.servos().find(|(_, servo)| servo.id == id)
}

/// The joints that a frame of goals sends the arm to.
fn joints(scene: &Scene, goals: &Goals) -> JointVector {
    let mut joints = JointVector::zeros(scene.arm.dof());
    for (id, ticks) in &goals.ticks {
        if let Some((joint, servo)) = joint_of(scene, *id) {
            joints[joint] = servo.angle_rad(*ticks);
        }
    }
    joints
}

/// Draws, with a stop after so many frames if given, and returns every frame of goals.
async fn draw_until(rig: Rig, stop_at: Option<usize>) -> (Rig, Vec<Goals>) {
    let family = rig.family;
    let motion = Arc::new(rig.attach().unwrap());
    let own: Arc<OnceLock<Weak<MotionHandle>>> = Arc::default();
    own.set(Arc::downgrade(&motion)).unwrap();
    let script: Option<Script> = stop_at.map(|stop_at| {
        Box::new(move |number: usize, _: &mut far_end::Hands<'_>| {
            if number == stop_at
                && let Some(motion) = own.get().and_then(Weak::upgrade)
            {
                motion.stop(ActorRank::Planner, false);
            }
        }) as Script
    });
    let stopped = script.is_some();
    let outcome = rig.draw(&motion, script).await;
    assert_eq!(
        matches!(outcome, MotionOutcome::Stopped(_)),
        stopped,
        "{outcome:?}"
    );
    let goals = rig.wire.goals(family);
    (rig, goals)
}

/// Draws to the end, and stops in every tenth of a second of the first line.
async fn drawings(rig: impl Fn() -> Rig) -> Vec<(Rig, Vec<Goals>)> {
    let mut all = vec![draw_until(rig(), None).await];
    for stop_at in [0, 3, 9, 14, 27, 60] {
        all.push(draw_until(rig(), Some(stop_at)).await);
    }
    all
}

/// The outcome of random motions.
struct Tried {
    /// Number of those that were carried out.
    taken: usize,
    judge: Judge,
}

/// Random trajectories, most of them nonsense, through the only door to a driver.
async fn random_motions(family: Family, cases: usize) -> Tried {
    let rig = Rig::with(family, speed::scene(250.0, 250.0));
    let mut link = MemoryLink::new(rig.sim.clone(), &rig.clock, "random").unwrap();
    let mut driver = ArmDriver::new(&rig.scene.arm, &rig.clock);
    driver.attach(&mut link).await.unwrap();
    let mut measured = driver.energise(&mut link).await.unwrap();
    let trace = Arc::new(Mutex::new(Vec::new()));
    let mut link = RecordLink::new(link, &rig.clock, Box::new(Kept(Arc::clone(&trace))));
    let (mut chance, mut taken, mut judge) = (Chance(7), 0, Judge::new(&rig.scene));
    let mut sag = SagLead::new(&rig.scene.arm, |_| Some(32), None);
    for _ in 0..cases {
        let trajectory = nonsense(&mut chance, &rig.scene, &measured.position_rad);
        let now = rig.clock.now();
        let Ok(proof) = gate::check(&rig.scene, rig.permit(), &measured, now, trajectory) else {
            continue;
        };
        let Ok(mut execution) = proof.begin_led(&measured, sag, now) else {
            continue;
        };
        taken += 1;
        while let Ok(ExecutionStep::Go(setpoint)) = execution.next(&measured, rig.clock.now()) {
            let next = rig.clock.now().after(PERIOD);
            measured = driver
                .cycle(&mut link, Some(&setpoint), next)
                .await
                .unwrap();
            rig.clock.jump_to(next);
        }
        sag = *execution.sag();
        for _ in 0..10 {
            let next = rig.clock.now().after(PERIOD);
            measured = driver.hold(&mut link, next).await.unwrap();
            rig.clock.jump_to(next);
        }
        let text = String::from_utf8(std::mem::take(&mut *trace.lock().unwrap())).unwrap();
        for line in text.lines() {
            let event: TraceEvent = line.parse().unwrap();
            if event.direction == ByteDirection::Sent {
                judge.hear(&far_end::goals(family, &event.bytes).unwrap_or_default());
            }
        }
    }
    Tried { taken, judge }
}

/// To somewhere within or beyond the limits, smoothly or not at all so, now and then by no number.
fn nonsense(chance: &mut Chance, scene: &Scene, from: &JointVector) -> Trajectory {
    let limits = scene.arm.limits;
    let count = 2 + usize::try_from(chance.below(100)).unwrap();
    let reach = [0.02, 0.1, 1.5, 10.0][usize::try_from(chance.below(4)).unwrap()];
    // All joints together are soon faster at the tip than one alone.
    let alone = usize::try_from(chance.below(2 * from.len() as u64)).unwrap();
    let to: Vec<f64> = (0..from.len())
        .map(|joint| match chance.below(400) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => -1e300,
            3 => limits.upper_rad[joint] + 1e-3,
            4 => limits.lower_rad[joint],
            _ if alone < from.len() && alone != joint => from[joint],
            _ => from[joint] + reach * chance.share(),
        })
        .collect();
    let to = JointVector::from_slice(&to);
    let smooth = chance.below(4) > 0;
    let samples = (0..count).map(|at| {
        let fraction = at as f64 / (count - 1) as f64;
        let fraction = if smooth {
            fraction.powi(3) * (10.0 + fraction * (6.0 * fraction - 15.0))
        } else {
            fraction
        };
        from.zip(&to, |from, to| from + (to - from) * fraction)
    });
    Trajectory {
        reached: Vec::new(),
        period: PERIOD,
        samples: samples.collect(),
        spans: vec![TrajectorySpan {
            kind: SpanKind::Pose,
            item: None,
            pen: 0,
            first: 0,
            end: count,
        }],
    }
}

/// A trace in memory that outlives the link that writes it.
struct Kept(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Each family on a thread of its own.
#[test]
fn invariants_2_3_and_4_of_random_motions() {
    std::thread::scope(|threads| {
        for family in Family::ALL {
            threads.spawn(move || Runtime::new().unwrap().block_on(try_random_motions(family)));
        }
    });
}

async fn try_random_motions(family: Family) {
    let cases = cases() / 2;
    let Tried { taken, judge } = random_motions(family, cases).await;
    assert!(taken > cases / 100, "{family:?}: only {taken}");
    assert!(judge.frames > 10 * taken, "{}", judge.frames);
    // They come near to what is allowed, or a wrong bound would not be seen.
    let reached = judge.reached;
    assert!(
        reached.step > 0.5 && reached.change > 0.6,
        "{family:?}: {reached:?}"
    );
}

/// Letters: every joint turns round in the middle of curves.
fn letters(text: &mut toml::Table) {
    let design = "text = \"steadyhand\"\nletter_height_mm = 12.0\nsize_mm = 80.0";
    let design: toml::Table = toml::from_str(design).unwrap();
    text.insert("design".to_owned(), design.into());
}

#[tokio::test]
async fn invariants_3_and_4_steps_and_their_changes_are_bounded() {
    for family in Family::ALL {
        let mut all = drawings(|| Rig::new(family)).await;
        all.push(draw_until(Rig::with(family, letters), None).await);
        for (rig, goals) in all {
            let mut judge = Judge::new(&rig.scene);
            goals.iter().for_each(|goals| judge.hear(&goals.ticks));
        }
    }
}

/// A box that no part of the arm may enter.
fn beside_a_hand(text: &mut toml::Table) {
    let hand =
        "[[keep_outs]]\nname = \"hand\"\nmin_m = [0.0, 0.25, 0.0]\nmax_m = [0.1, 0.3, 0.1]\n";
    text.extend(toml::from_str::<toml::Table>(hand).unwrap());
}

#[tokio::test]
async fn invariant_7_tip_and_joints_stay_where_they_may_be() {
    for family in Family::ALL {
        for (rig, goals) in drawings(|| Rig::with(family, beside_a_hand)).await {
            let scene = &rig.scene;
            for goals in &goals {
                let at = joints(scene, goals);
                let tip = scene.arm.chain.forward(&at) * scene.pens[0].tip_m;
                let projected = scene.surface.project(&tip);
                let deepest = -(scene.heights.press_mm + 1.0);
                assert!(
                    !scene.surface.holds(projected.at_mm) || projected.height_mm > deepest,
                    "{projected:?}"
                );
                // What the first joint turns and carries: the base stands where it was put.
                for frame in scene.arm.chain.frames(&at).iter().skip(1) {
                    stays_where_it_may(scene, &frame.translation.vector.into());
                }
                stays_where_it_may(scene, &tip);
            }
        }
    }
}

fn is_inside(corners: &AxisAlignedBox, point: &Point3<f64>) -> bool {
    (0..3).all(|axis| {
        let range = corners.min_m[axis] - 1e-3..=corners.max_m[axis] + 1e-3;
        range.contains(&point[axis])
    })
}

fn stays_where_it_may(scene: &Scene, point: &Point3<f64>) {
    assert!(point.z > -1e-3, "{point} is below the table");
    let workspace = &scene.limits.workspace;
    assert!(
        is_inside(workspace, point),
        "{point} is out of {workspace:?}"
    );
    assert!(!scene.keep_outs.is_empty());
    for keep_out in &scene.keep_outs {
        let corners = &keep_out.corners;
        assert!(!is_inside(corners, point), "{point} is in {corners:?}");
    }
}

#[tokio::test]
async fn invariant_8_lost_replies_are_asked_for_twice_more_at_most() {
    for family in Family::ALL {
        let rig = Rig::new(family);
        let motion = rig.attach().unwrap();
        // Torque goes on before: to find where limp servos are asks more often than a cycle does.
        rig.draw(&motion, None).await;
        rig.sim.break_it(SimulatedFault::DropReplies(0.05));
        let from = rig.wire.state().sent.len();
        // A minute of drawing: it goes on over the same lines again.
        let mut began = rig.clock.now();
        let end = began.after(Duration::from_secs(60));
        while began < end {
            let outcome = rig.draw(&motion, None).await;
            assert!(
                matches!(outcome, MotionOutcome::Reached { .. }),
                "{outcome:?}"
            );
            began = rig.clock.now();
        }
        let sent: Vec<_> = rig.wire.state().sent[from..].to_vec();
        let (mut request_count, mut cycle_at) = (0, ClockInstant::ZERO);
        let (mut first, mut last): (&[u8], &[u8]) = (&[], &[]);
        for (at, bytes) in &sent {
            // Behind a cycle that was not read the goals come last; one without goals ends where its first question comes again.
            let comes_again = bytes == first && last != first;
            let is_over = comes_again || at.since(cycle_at) >= PERIOD;
            if is_over || far_end::goals(family, bytes).is_some() {
                (request_count, cycle_at, first) = (0, *at, bytes);
            }
            last = bytes;
            request_count += far_end::requests(family, bytes)
                .iter()
                .filter(|r| matches!(r.instruction, 0x82 | 0x8A))
                .count();
            // Three for the present state, and three for the torque behind a cycle that was not read.
            assert!(request_count <= 6, "{request_count} questions in a cycle");
        }
    }
}

#[tokio::test]
async fn invariant_9_a_blind_arm_is_held_in_3_cycles_and_faulted_in_100_ms() {
    for family in Family::ALL {
        let rig = Rig::new(family);
        let motion = rig.attach().unwrap();
        let silence: Script = Box::new(|number, hands| {
            if number == 0 {
                hands.sim.break_it(SimulatedFault::Silence(2));
            }
        });
        let outcome = rig.draw(&motion, Some(silence)).await;
        let MotionOutcome::Faulted(reason) = outcome else {
            panic!("{outcome:?}")
        };
        let broken = rig.wire.state().broken_at.unwrap();
        // The first cycle that begins past 100 ms finds it; the next frame shows the latch.
        let took = rig.wire.latched_after(rig.clock.now());
        assert!(took <= Duration::from_millis(120), "{took:?}: {reason}");
        let blind_ms: u64 = reason
            .split_whitespace()
            .find_map(|word| word.parse().ok())
            .unwrap();
        assert!((101..=110).contains(&blind_ms), "{reason}");
        // It is not known whether its servos still have power: none gets a goal.
        let goals = rig.wire.goals(family);
        let after = goals.iter().find(|goals| goals.at > broken.after(PERIOD));
        assert_eq!(after, None);
    }
}

/// A standing arm on a wire that is disturbed; what was read is always near the truth.
struct Noisy {
    rig: Rig,
    link: MemoryLink<ArmSimulator>,
    driver: ArmDriver,
    chance: Chance,
    good: usize,
}

impl Noisy {
    async fn new(family: Family) -> Self {
        let rig = Rig::new(family);
        let mut link = MemoryLink::new(rig.sim.clone(), &rig.clock, "noisy").unwrap();
        let mut driver = ArmDriver::new(&rig.scene.arm, &rig.clock);
        driver.attach(&mut link).await.unwrap();
        driver.energise(&mut link).await.unwrap();
        Self {
            rig,
            link,
            driver,
            chance: Chance(11),
            good: 0,
        }
    }

    async fn cycle(&mut self, mut each: impl FnMut(&ArmSimulator, &mut Chance)) {
        each(&self.rig.sim, &mut self.chance);
        let next = self.rig.clock.now().after(PERIOD);
        match self.driver.hold(&mut self.link, next).await {
            Ok(measured) => {
                self.good += 1;
                let distance = measured
                    .position_rad
                    .distance_max(&self.rig.sim.true_joints());
                assert!(distance <= NOISE_RAD, "{distance} rad from the truth");
            }
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        self.rig.clock.jump_to(next);
    }

    fn damaged(&self) -> usize {
        usize::try_from(self.rig.sim.damaged_replies()).unwrap()
    }
}

/// Runs so many cycles. Returns the number of readings.
async fn read_through(
    family: Family,
    cycles: usize,
    mut each: impl FnMut(&ArmSimulator, &mut Chance),
) -> usize {
    let mut bus = Noisy::new(family).await;
    for _ in 0..cycles {
        bus.cycle(&mut each).await;
    }
    bus.good
}

/// Angle that is not told from movement: what a servo may turn in three periods at 3 rad/s, and four counts.
const NOISE_RAD: f64 = 3.0 * 3.0 * PERIOD_S + 4.0 * TAU / 4096.0 + 0.002;

#[tokio::test]
async fn invariant_10_damaged_frames_never_change_what_is_known() {
    for family in Family::ALL {
        let target = cases();
        let damage = |sim: &ArmSimulator, chance: &mut Chance| {
            let bits = 1 + u32::try_from(chance.below(8)).unwrap();
            sim.break_it(SimulatedFault::CorruptReplies { share: 0.2, bits });
        };
        let mut bus = Noisy::new(family).await;
        let mut cycles = 0;
        while bus.damaged() < target {
            bus.cycle(damage).await;
            cycles += 1;
            assert!(cycles <= 10 * target, "{} damaged only", bus.damaged());
        }
        // Three attempts come to nothing in a cycle in a hundred, a servo.
        assert!(bus.good > cycles * 8 / 10, "{} of {cycles}", bus.good);
    }
}

/// A reply as a servo would send it: its checksum is right.
fn reply(family: Family, id: u8, data: &[u8]) -> Vec<u8> {
    match family {
        Family::Sts => {
            let mut frame = vec![0xFF, 0xFF, id, u8::try_from(data.len() + 2).unwrap(), 0];
            frame.extend(data);
            let sum: u32 = frame[2..].iter().map(|byte| u32::from(*byte)).sum();
            frame.push(!sum.to_le_bytes()[0]);
            frame
        }
        _ => {
            let mut frame = vec![0xFF, 0xFF, 0xFD, 0, id];
            frame.extend(u16::try_from(data.len() + 4).unwrap().to_le_bytes());
            frame.extend([0x55, 0]);
            frame.extend(data);
            let crc = crc::Crc::<u16>::new(&crc::CRC_16_UMTS).checksum(&frame);
            frame.extend(crc.to_le_bytes());
            frame
        }
    }
}

#[tokio::test]
async fn invariant_11_replies_of_others_and_late_ones_are_never_used() {
    for family in Family::ALL {
        let present = if family == Family::Sts { 8 } else { 10 };
        let cycles = cases() / 10;
        let good = read_through(family, cycles, |sim, chance| {
            // Another id with the right length, the right id with another length, an
            // acknowledgement; what is left of the last transaction among them.
            let id = u8::try_from(1 + chance.below(8)).unwrap();
            let (id, length) = match chance.below(3) {
                0 => (100 + id, present),
                1 => (id, present - 1 - usize::try_from(chance.below(4)).unwrap()),
                _ => (id, 0),
            };
            let data: Vec<u8> = (0..length).map(|_| chance.byte() & 0x7F).collect();
            sim.break_it(SimulatedFault::Noise(reply(family, id, &data)));
        })
        .await;
        assert_eq!(good, cycles, "{family:?}");
    }
}

#[tokio::test]
async fn invariant_12_garbage_of_64_bytes_costs_no_cycle() {
    for family in Family::ALL {
        let cycles = cases() / 10;
        let good = read_through(family, cycles, |sim, chance| {
            let length = chance.below(65);
            let bytes = (0..length).map(|_| {
                if chance.below(3) == 0 {
                    0xFF
                } else {
                    chance.byte()
                }
            });
            sim.break_it(SimulatedFault::Noise(bytes.collect()));
        })
        .await;
        assert_eq!(good, cycles, "{family:?}");
    }
}

/// Address of torque enable, and of what must be set before the first motion.
fn torque_address(family: Family) -> u16 {
    match family {
        Family::Sts => 40,
        _ => 64,
    }
}

#[tokio::test]
async fn invariant_13_torque_goes_on_where_the_arm_stands() {
    for family in Family::ALL {
        let rig = Rig::new(family);
        let motion = rig.attach().unwrap();
        let stands = rig.sim.true_joints();
        let moved: Arc<Mutex<f64>> = Arc::default();
        let observed = Arc::clone(&moved);
        let script = move |_: usize, hands: &mut far_end::Hands<'_>| {
            *observed.lock().unwrap() = hands.sim.true_joints().distance_max(&stands);
        };
        rig.wire.script(1, Box::new(script));
        let trajectory = rig.plan(&motion);
        let proof = rig.check(
            &motion,
            rig.permit(),
            Trajectory {
                reached: Vec::new(),
                samples: vec![trajectory.samples[0]; 20],
                spans: vec![TrajectorySpan {
                    kind: SpanKind::Pose,
                    item: None,
                    pen: 0,
                    first: 0,
                    end: 20,
                }],
                ..trajectory
            },
        );
        let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{outcome:?}"
        );
        let writes = rig.wire.writes(family);
        let on = writes
            .iter()
            .position(|w| w.address == torque_address(family) && w.data == [1])
            .unwrap();
        for (id, ticks) in writes[..on]
            .iter()
            .filter_map(|w| Some((w.id, far_end::goal_of(family, w)?)))
        {
            if let Some((joint, servo)) = joint_of(&rig.scene, id) {
                let distance_ticks = (servo.ticks(stands[joint]) - ticks).abs();
                assert!(distance_ticks <= 2, "servo {id}: {distance_ticks} ticks");
            }
        }
        let goals_before = writes[..on]
            .iter()
            .filter(|w| far_end::goal_of(family, w).is_some())
            .count();
        assert_eq!(goals_before, rig.wire.goals(family)[0].ticks.len());
        goals_are_read_back(&rig);
        assert!(*moved.lock().unwrap() <= 5.0 * TAU / 4096.0);
    }
}

/// Between the last goal that is written and torque, the goal of each servo is asked for.
fn goals_are_read_back(rig: &Rig) {
    let family = rig.family;
    let state = rig.wire.state();
    let requests: Vec<_> = state
        .sent
        .iter()
        .flat_map(|(_, bytes)| far_end::requests(family, bytes))
        .collect();
    let writes = |request: &far_end::Request| far_end::writes(family, request);
    let on = requests.iter().position(|request| {
        let mut writes = writes(request).into_iter();
        writes.any(|write| write.address == torque_address(family) && write.data == [1])
    });
    let before = &requests[..on.unwrap()];
    let aimed = before.iter().rposition(|request| {
        let mut writes = writes(request).into_iter();
        writes.any(|write| far_end::goal_of(family, &write).is_some())
    });
    let aimed = aimed.unwrap();
    let all = writes(&before[aimed]).len();
    let mut ids: Vec<u8> = before[aimed..]
        .iter()
        .filter(|request| far_end::reads_goal(family, request))
        .map(|request| request.id)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "of {all} goals, those of {ids:?}");
}

#[tokio::test]
async fn invariant_14_watchdog_and_caps_are_set_and_read_before_anything_moves() {
    for family in Family::ALL {
        let (rig, goals) = draw_until(Rig::new(family), None).await;
        let first = goals
            .iter()
            .find(|later| later.ticks != goals[0].ticks)
            .unwrap()
            .at;
        let state = rig.wire.state();
        let before = state.sent.iter().take_while(|(at, _)| *at < first);
        let requests: Vec<_> = before
            .flat_map(|(_, bytes)| far_end::requests(family, bytes))
            .collect();
        let all = goals[0].ticks.len();
        let wrote = |address: u16, data: &[u8]| {
            let writes = requests
                .iter()
                .flat_map(|request| far_end::writes(family, request));
            writes
                .filter(|w| w.address == address && w.data == data)
                .count()
        };
        let read = |address: u16| {
            let reads = requests.iter().filter(|request| request.instruction == 2);
            reads
                .filter(|request| match family {
                    Family::Sts => u16::from(request.parameters[0]) == address,
                    _ => {
                        u16::from_le_bytes([request.parameters[0], request.parameters[1]])
                            == address
                    }
                })
                .count()
        };
        match family {
            // The torque limit; speed and acceleration travel with every goal.
            Family::Sts => assert!(wrote(48, &950_u16.to_le_bytes()) == all && read(48) >= all),
            // Five steps of 20 ms, after it was cleared.
            _ => {
                assert!(wrote(98, &[5]) == all && wrote(98, &[0]) == all && read(98) >= 2 * all);
            }
        }
        drop(state);
        caps_travel_with_every_goal(&rig);
    }
}

/// The torque limits that were written, in order, each as often as there are servos.
fn torque_limits(rig: &Rig) -> Vec<u16> {
    let address = match rig.family {
        Family::Sts => 48,
        _ => 100,
    };
    let all = rig.wire.writes(rig.family);
    let writes: Vec<_> = all
        .iter()
        .filter(|write| write.address == address)
        .collect();
    let servos = rig.wire.goals(rig.family)[0].ticks.len();
    let registers = writes.chunks(servos).map(|together| {
        let values: Vec<u16> = together
            .iter()
            .map(|write| u16::from_le_bytes([write.data[0], write.data[1]]))
            .collect();
        let is_one = values.len() == servos && values.iter().all(|word| *word == values[0]);
        assert!(is_one, "{values:?}");
        values[0]
    });
    registers.collect()
}

#[tokio::test]
async fn invariant_14_a_touch_has_half_the_torque_of_a_drawing() {
    for family in Family::ALL {
        let rig = Rig::new(family);
        let motion = Arc::new(rig.attach().unwrap());
        let start = motion.snapshot().measured.unwrap();
        let probe = steadyhand::plan::probe(
            &rig.scene,
            &start.position_rad,
            [20.0, 20.0],
            0,
            &steadyhand::plan::SilentObserver,
        );
        let trajectory = probe.unwrap().trajectory;
        let middle = trajectory.samples.len() - 300;
        let own = Arc::downgrade(&motion);
        rig.wire.script(
            middle,
            Box::new(move |number, _| {
                if number == 0
                    && let Some(motion) = own.upgrade()
                {
                    motion.stop(ActorRank::Planner, false);
                }
            }),
        );
        let proof = rig.check(&motion, rig.permit(), trajectory);
        let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
        assert!(matches!(outcome, MotionOutcome::Stopped(_)), "{outcome:?}");
        let (all, half) = match family {
            Family::Sts => (950, 475),
            _ => (885, 442),
        };
        assert_eq!(torque_limits(&rig), [all, half]);
        rig.reset(&motion, ActorRank::Planner).await;
        assert_eq!(torque_limits(&rig), [all, half, all]);
        rig.draw(&motion, None).await;
        assert_eq!(torque_limits(&rig), [all, half, all], "once is enough");
        assert_eq!(rig.sim.kept_writes(), 0);
    }
}

fn caps_travel_with_every_goal(rig: &Rig) {
    for write in rig.wire.writes(rig.family) {
        // Dynamixel servos keep their caps until they receive others: a goal may come alone.
        if far_end::goal_of(rig.family, &write).is_none() || write.address == 116 {
            continue;
        }
        // 0 would mean "without limit".
        let (acceleration, speed) = match rig.family {
            Family::Sts => (&write.data[0..1], &write.data[5..7]),
            _ => (&write.data[0..4], &write.data[4..8]),
        };
        assert!(acceleration.iter().any(|byte| *byte != 0) && speed.iter().any(|byte| *byte != 0));
    }
}

#[tokio::test]
async fn invariant_17_a_restart_is_found_in_200_ms_and_torque_stays_off() {
    for family in Family::ALL {
        for fault in [SimulatedFault::PowerCycle(3), SimulatedFault::SupplyV(3.0)] {
            let rig = Rig::new(family);
            let motion = rig.attach().unwrap();
            let script: Script = Box::new(move |number, hands| {
                if number == 0 {
                    hands.sim.break_it(fault.clone());
                }
            });
            let outcome = rig.draw(&motion, Some(script)).await;
            let MotionOutcome::Faulted(reason) = outcome else {
                panic!("{outcome:?}")
            };
            let broken = rig.wire.state().broken_at.unwrap();
            let took = rig.wire.latched_after(rig.clock.now());
            assert!(took <= Duration::from_millis(200), "{took:?}: {reason}");
            let state = rig.wire.state();
            let after = state.sent.iter().filter(|(at, _)| *at > broken);
            let on = after
                .flat_map(|(_, bytes)| far_end::requests(family, bytes))
                .flat_map(|request| far_end::writes(family, &request))
                .filter(|write| write.address == torque_address(family))
                .count();
            assert_eq!(on, 0, "torque was written after {reason}");
        }
    }
}

fn warm(temperature_c: f64) -> SimulatedFault {
    SimulatedFault::Heat {
        id: 3,
        temperature_c,
    }
}

#[tokio::test]
async fn invariant_18_heat_is_told_then_refused_then_ends_the_motion() {
    for family in Family::ALL {
        let rig = Rig::new(family);
        let motion = rig.attach().unwrap();
        for (temperature_c, tells) in [(54.0, false), (55.0, true), (59.0, true)] {
            rig.sim.break_it(warm(temperature_c));
            let outcome = rig.draw(&motion, None).await;
            assert!(
                matches!(outcome, MotionOutcome::Reached { .. }),
                "{outcome:?}"
            );
            let health = motion.snapshot().health.summary();
            let is_told = health.contains("servo 3");
            assert_eq!(is_told, tells, "{temperature_c}: {health:?}");
        }
        rig.sim.break_it(warm(60.0));
        // To rest it may go, and on the way its heat is read.
        let outcome = rig.reset(&motion, ActorRank::Operator).await;
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{outcome:?}"
        );
        let outcome = rig.draw(&motion, None).await;
        let MotionOutcome::Refused(reason) = outcome else {
            panic!("{outcome:?}")
        };
        let text = reason.to_string();
        assert!(text.contains("servo 3") && text.contains("60 °C"), "{text}");
        let (_, outcome) = heated(family, 64.0).await;
        assert!(
            matches!(outcome, MotionOutcome::Reached { .. }),
            "{outcome:?}"
        );
        let (rig, outcome) = heated(family, 65.0).await;
        let MotionOutcome::Faulted(reason) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(
            reason.contains("servo 3") && reason.contains("65 °C"),
            "{reason}"
        );
        let tip = rig.scene.arm.chain.forward(&rig.sim.true_joints()) * rig.scene.pens[0].tip_m;
        let height_mm = rig.scene.surface.project(&tip).height_mm;
        assert!(
            height_mm > 3.0,
            "the pen stayed {height_mm:.1} mm over the sheet"
        );
    }
}

/// Draws, and a servo comes to be so warm in the middle of it.
async fn heated(family: Family, temperature_c: f64) -> (Rig, MotionOutcome) {
    let rig = Rig::new(family);
    let motion = rig.attach().unwrap();
    let heat: Script = Box::new(move |number, hands| {
        if number == 0 {
            hands.sim.break_it(warm(temperature_c));
        }
    });
    let outcome = rig.draw(&motion, Some(heat)).await;
    (rig, outcome)
}

#[tokio::test]
async fn invariant_20_torque_and_goals_go_to_every_servo_in_one_frame() {
    for family in Family::ALL {
        let (rig, goals) = draw_until(Rig::new(family), None).await;
        let mut all: Vec<u8> = rig.scene.arm.servos().map(|(_, servo)| servo.id).collect();
        all.extend(rig.scene.arm.file.held.iter().map(|held| held.id));
        all.sort_unstable();
        let ids = |frame: &[(u8, i32)]| {
            let mut ids: Vec<u8> = frame.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids
        };
        assert!(goals.iter().all(|goals| ids(&goals.ticks) == all));
        let state = rig.wire.state();
        let requests = state
            .sent
            .iter()
            .flat_map(|(_, bytes)| far_end::requests(family, bytes));
        for request in requests {
            let writes = far_end::writes(family, &request);
            if writes
                .iter()
                .any(|write| write.address == torque_address(family))
            {
                assert_eq!(writes.len(), all.len(), "torque for some servos only");
            }
        }
    }
}

#[tokio::test]
async fn invariant_23_nothing_is_written_that_outlives_the_power() {
    for family in Family::ALL {
        let first_volatile = if family == Family::Sts { 40 } else { 64 };
        let rig = Rig::new(family);
        let motion = rig.attach().unwrap();
        let fault: Script = Box::new(|number, hands| {
            if number == 40 {
                hands.sim.break_it(SimulatedFault::PowerCycle(2));
            }
        });
        rig.draw(&motion, Some(fault)).await;
        let ticket = motion.stop(ActorRank::Operator, false);
        motion.stopped(ticket).await.unwrap();
        rig.reset(&motion, ActorRank::Operator).await;
        drop(motion);
        let writes = rig.wire.writes(family);
        assert!(writes.len() > 1000);
        for write in writes {
            assert!(write.address >= first_volatile, "{write:?}");
            assert!(
                write.address != 55 || family == Family::Dxl2,
                "the lock of settings was touched"
            );
        }
        assert_eq!(rig.sim.kept_writes(), 0);
    }
}

/// A life over a link, on a clock of its own: every goal, the outcome and what was counted.
async fn life(scene: &Arc<Scene>, open: PortOpener) -> String {
    let clock = NodeClock::simulated();
    let permits = Arc::new(PermitRegistry::everything());
    let motion = MotionHandle::start(
        Arc::clone(&scene.arm),
        clock.clone(),
        Arc::clone(&permits),
        open,
    )
    .unwrap();
    let start = motion.snapshot().measured.unwrap();
    let plan = steadyhand::plan::draw(
        scene,
        &start.position_rad,
        &steadyhand::plan::SilentObserver,
    )
    .unwrap();
    let permit = permits.ask(scene, clock.now()).unwrap();
    let proof = gate::check(scene, permit, &start, clock.now(), plan.trajectory).unwrap();
    let outcome = motion.run(proof, motion.stops_requested()).await.unwrap();
    let at = clock.now();
    let mut snapshots = motion.watch();
    let ended = snapshots
        .wait_for(|snapshot| snapshot.progress.is_none())
        .await
        .unwrap()
        .clone();
    format!(
        "{outcome:?}\n{at:?}\n{:?}\n{:?}\n{:?}",
        ended.state, ended.counts, ended.measured
    )
}

#[tokio::test]
async fn invariant_25_a_recorded_drawing_plays_back_bit_for_bit() {
    for family in Family::ALL {
        let rig = Rig::new(family);
        rig.sim.break_it(SimulatedFault::DropReplies(0.03));
        rig.sim.break_it(SimulatedFault::CorruptReplies {
            share: 0.03,
            bits: 2,
        });
        let trace: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (sim, kept) = (rig.sim.clone(), Arc::clone(&trace));
        let lived = life(
            &rig.scene,
            Box::new(move |clock| {
                let link = MemoryLink::new(sim.clone(), clock, "wire").map_err(LinkError::Read)?;
                let kept = Box::new(Kept(Arc::clone(&kept)));
                Ok(Box::new(RecordLink::new(link, clock, kept)) as Box<dyn ByteLink>)
            }),
        )
        .await;
        let text = String::from_utf8(trace.lock().unwrap().clone()).unwrap();
        let events: Vec<TraceEvent> = text.lines().map(|line| line.parse().unwrap()).collect();
        let again = life(
            &rig.scene,
            Box::new(move |clock| {
                let link = MemoryLink::new(ReplayDevice::new(events.clone()), clock, "wire");
                Ok(Box::new(link.map_err(LinkError::Read)?) as Box<dyn ByteLink>)
            }),
        )
        .await;
        assert_eq!(lived, again);
        assert!(lived.starts_with("Reached"), "{lived}");
    }
}
