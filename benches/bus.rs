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
use std::time::{Duration, Instant};

use steadyhand::arm::{ArmFile, ArmModel, ServoFamily};
use steadyhand::clock::NodeClock;
use steadyhand::driver::ArmDriver;
use steadyhand::link::memory::MemoryLink;
use steadyhand::servo::framing::{self, FrameFormat, ReplyFraming};
use steadyhand::servo::{dynamixel, feetech};
use steadyhand::sim::{ArmSimulator, SimulatedFault};
use steadyhand::units::JointVector;

const CYCLES: u32 = 2000;
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

/// Five joints and a gripper, whatever they speak.
fn arm(family: ServoFamily) -> ArmModel {
    let text = include_str!("../scenes/arms/so101.toml");
    let mut file: ArmFile = toml::from_str(text).unwrap();
    file.family = family;
    ArmModel::new(file).unwrap()
}

/// Cycles a second on the simulated clock: the wire's time and nothing else.
async fn rate(family: ServoFamily, fast: bool) -> f64 {
    let arm = arm(family);
    let clock = NodeClock::simulated();
    let sim = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
    for id in 1..=6 {
        let address = if family == ServoFamily::FeetechSts {
            7
        } else {
            9
        };
        sim.break_it(SimulatedFault::Register {
            id,
            address,
            value: 0,
        });
        if !fast && family == ServoFamily::Dynamixel2 {
            // Firmware that is too old to answer together.
            sim.break_it(SimulatedFault::Register {
                id,
                address: 6,
                value: 40,
            });
        }
    }
    let mut link = MemoryLink::new(sim, &clock, "bench").unwrap();
    let mut driver = ArmDriver::new(&arm, &clock);
    driver.attach(&mut link).await.unwrap();
    driver.energise(&mut link).await.unwrap();
    let begun = clock.now();
    for _ in 0..CYCLES {
        let deadline = clock.now().after(Duration::from_millis(10));
        driver.hold(&mut link, deadline).await.unwrap();
    }
    f64::from(CYCLES) / clock.now().since(begun).as_secs_f64()
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
