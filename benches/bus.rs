//! Measures how much of the wire the bus loop uses, and how long a packet takes to decode: prints one line a
//! case. `benches/README.md` says what they are.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a benchmark prints, measures time, and may panic"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use steadyhand::arm::{ArmModel, ServoFamily};
use steadyhand::clock::NodeClock;
use steadyhand::driver::ArmDriver;
use steadyhand::gate::{self, ExecutionStep};
use steadyhand::link::memory::MemoryLink;
use steadyhand::permit::PermitRegistry;
use steadyhand::plan::{self, PERIOD, SilentObserver};
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::servo::framing::{self, FrameFormat, ReplyFraming};
use steadyhand::servo::{dynamixel, feetech};
use steadyhand::sim::{ArmSimulator, SimulatedFault};

const PACKETS: u32 = 6_000;
const ROUNDS: u32 = 500;

/// The rate that the wire alone allows with six servos at 1 Mbaud and no return delay: bytes that the
/// manual's shortest requests take, ten bits each.
const STS_FULL_HZ: f64 = 1e6 / 1480.0;
const DYNAMIXEL_HZ: f64 = 1e6 / 1900.0;
const DYNAMIXEL_FAST_HZ: f64 = 1e6 / 1560.0;

/// The share of it that the loop must reach.
const SHARE: f64 = 0.93;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();
    println!(
        "six servos, 1 Mbaud, no return delay, paced: cycles a second, and share of the wire's limit"
    );
    let cases = [
        (
            "sts, 8 bytes each",
            ServoFamily::FeetechSts,
            false,
            STS_FULL_HZ,
        ),
        (
            "dynamixel, 10 bytes each",
            ServoFamily::Dynamixel2,
            false,
            DYNAMIXEL_HZ,
        ),
        (
            "dynamixel, fast sync read",
            ServoFamily::Dynamixel2,
            true,
            DYNAMIXEL_FAST_HZ,
        ),
    ];
    for (name, family, fast, limit_hz) in cases {
        let hz = runtime.block_on(rate(family, fast));
        println!(
            "{name:26} {hz:6.1} Hz of {limit_hz:6.1}: {:5.1} %",
            100.0 * hz / limit_hz
        );
        assert!(
            hz >= SHARE * limit_hz,
            "{name}: below {SHARE} of the wire's limit"
        );
    }
    println!("nanoseconds a packet");
    decoding();
}

/// The shipped scene of five joints and a gripper, whatever they speak.
fn scene(family: ServoFamily) -> Arc<Scene> {
    let shipped = SceneLibrary::new(None).scene("default", None).unwrap();
    let mut scene = Scene::clone(&shipped);
    let mut file = scene.arm.file.clone();
    file.family = family;
    scene.arm = Arc::new(ArmModel::new(file).unwrap());
    Arc::new(scene)
}

/// Cycles a second of a drawing on the simulated clock: the wire's time and nothing else. It is the median's rate: one cycle in
/// ten also asks for temperatures.
async fn rate(family: ServoFamily, fast: bool) -> f64 {
    let scene = scene(family);
    let clock = NodeClock::simulated();
    let sim = ArmSimulator::new(&scene.arm, &scene.rest_rad);
    set_registers(&sim, family, fast);
    let mut link = MemoryLink::new(sim, &clock, "bench").unwrap();
    let mut driver = ArmDriver::new(&scene.arm, &clock);
    driver.attach(&mut link).await.unwrap();
    let mut measured = driver.energise(&mut link).await.unwrap();
    let plan = plan::draw(&scene, &measured.position_rad, &SilentObserver).unwrap();
    let permit = PermitRegistry::everything().ask(&scene, clock.now());
    let checked = gate::check(
        &scene,
        permit.unwrap(),
        &measured,
        clock.now(),
        plan.trajectory,
    );
    let mut execution = checked.unwrap().begin(&measured, clock.now()).unwrap();
    let mut spent = Vec::new();
    loop {
        let now = clock.now();
        let goal = match execution.next(&measured, now).unwrap() {
            ExecutionStep::Go(goal) => goal,
            ExecutionStep::Hold => panic!("a goal waits"),
            ExecutionStep::Finished => break,
        };
        let next = now.after(PERIOD);
        measured = driver.cycle(&mut link, Some(&goal), next).await.unwrap();
        spent.push(clock.now().since(now));
        clock.jump_to(next);
    }
    spent.sort_unstable();
    1.0 / spent[spent.len() / 2].as_secs_f64()
}

/// Takes the return delay off every servo, and makes Dynamixel servos too old to answer together unless `fast`.
fn set_registers(sim: &ArmSimulator, family: ServoFamily, fast: bool) {
    let is_feetech = family == ServoFamily::FeetechSts;
    for id in 1..=6 {
        let set = |address, value| sim.break_it(SimulatedFault::Register { id, address, value });
        set(if is_feetech { 7 } else { 9 }, 0);
        if !fast && !is_feetech {
            set(6, 40);
        }
    }
}

fn decoding() {
    let sts = [0xFF, 0xFF, 1, 10, 0, 0, 8, 0, 0, 0, 0, 120, 25, 0x5B];
    timed("sts, 8 bytes", || {
        servo_packets(&mut feetech::codec::FeetechDecoder::default(), &sts, 8)
    });
    let mut dxl = vec![0xFF, 0xFF, 0xFD, 0, 1, 14, 0, 0x55, 0];
    dxl.extend([0, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
    let crc = crc::Crc::<u16>::new(&crc::CRC_16_UMTS).checksum(&dxl);
    dxl.extend(crc.to_le_bytes());
    timed("dynamixel, 10 bytes", || {
        servo_packets(&mut dynamixel::codec::DynamixelDecoder::default(), &dxl, 10)
    });
    let segment = segment();
    timed("firmware, 67-byte segment", || firmware_packets(&segment));
}

/// The quickest of many rounds: what else the machine does only ever adds.
fn timed(name: &str, mut packets: impl FnMut() -> u32) {
    let mut best_ns = u128::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let count = packets();
        best_ns = best_ns.min(begun.elapsed().as_nanos() / u128::from(count.max(1)));
        assert!(count >= PACKETS, "only {count} packets came back");
    }
    println!("{name:26} {best_ns:6} ns");
}

fn servo_packets<S: FrameFormat>(
    decoder: &mut framing::FrameDecoder<S>,
    reply: &[u8],
    length: usize,
) -> u32 {
    let six = reply.repeat(6);
    let mut packets = 0;
    for _ in 0..PACKETS / 6 {
        decoder.push(black_box(&six));
        while let Some(reply) = decoder.next(length) {
            black_box(reply);
            packets += 1;
        }
    }
    packets
}

/// A segment of six joints in motion.
fn segment() -> Vec<u8> {
    use firmware_protocol::message::{Knot, Message, Segment};
    let mut end = firmware_protocol::Joints::empty();
    for joint in 1..=6 {
        end.push(Knot {
            position_urad: 123_456 * joint,
            velocity_urad_s: -654_321 * joint,
        });
    }
    let segment = Message::Segment(Segment {
        epoch: 0x1234,
        index: 0x0567,
        start_us: 0x89AB_CDEF,
        duration_us: 20_000,
        end,
    });
    segment.encode(7).as_slice().to_vec()
}

fn firmware_packets(segment: &[u8]) -> u32 {
    use firmware_protocol::{Decoder, Received};
    assert_eq!(segment.len(), 67);
    let mut decoder = Decoder::new();
    let mut packets = 0;
    for _ in 0..PACKETS {
        let mut rest = black_box(segment);
        while !rest.is_empty() {
            if let Received::Frame(frame) = decoder.take(&mut rest) {
                black_box(frame);
                packets += 1;
            }
        }
    }
    packets
}
