//! How much of the wire a cycle uses, and what decoders make of noise.

use super::*;
use crate::driver::bus::Framing;

/// Cycles a second as fast as the wire allows, on the simulated clock.
async fn rate(name: &str) -> f64 {
    let mut bench = Bench::new(name);
    for id in 1..=8 {
        // No return delay: register 7 of the one family, 9 of the other.
        let address = if name == "so101" { 7 } else { 9 };
        bench.sim.break_it(Fault::Register {
            id,
            address,
            value: 0,
        });
    }
    bench.driver.attach(&mut bench.link).await.unwrap();
    bench.driver.energise(&mut bench.link).await.unwrap();
    let begun = bench.clock.now();
    for _ in 0..1000 {
        let deadline = bench.clock.now().after(PERIOD);
        bench
            .driver
            .follow(&mut bench.link, None, deadline)
            .await
            .unwrap();
    }
    1000.0 / bench.clock.now().since(begun).as_secs_f64()
}

#[tokio::test]
async fn cycles_use_the_wire_as_well_as_it_can_be() {
    // Six servos: 52 + 14 bytes out with the acceleration, 6 times 14 back; 676 Hz is the bound
    // for the shorter write without it, 93 % of which are wanted.
    let feetech = rate("so101").await;
    assert!(feetech >= 0.93 * 676.0, "{feetech}");
    // Eight servos, 118 + 22 bytes out with both profiles, 11 + 8 times 14 - 4 back together.
    let dynamixel = rate("widowx250s").await;
    assert!(
        dynamixel >= 0.93 * 1e5 / (118.0 + 22.0 + 119.0),
        "{dynamixel}"
    );
}

/// Noise from a seed in which every sixteenth byte begins a header.
fn noise(count: usize, header: &[u8]) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut bytes = Vec::with_capacity(count + header.len());
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [byte, .., chance] = state.to_le_bytes();
        if chance < 16 {
            bytes.extend(header);
        } else {
            bytes.push(byte);
        }
    }
    bytes
}

/// Frames that pass among a million bytes of noise, fed in pieces of every length.
fn accepted(framing: &mut impl Framing, header: &[u8], parameters: usize) -> u64 {
    let bytes = noise(1_000_000, header);
    let (mut count, mut at, mut piece) = (0, 0, 1);
    while at < bytes.len() {
        let end = (at + piece).min(bytes.len());
        framing.push(&bytes[at..end]);
        while framing.next(parameters).is_some() {
            count += 1;
        }
        at = end;
        piece = piece % 97 + 1;
    }
    count
}

#[test]
fn a_million_noisy_bytes_pass_only_as_often_as_the_checksum_says() {
    let mut sts = crate::driver::feetech::codec::Decoder::default();
    let passed = accepted(&mut sts, &[0xFF, 0xFF, 1, 10, 0], 8);
    // Each frame that looked whole had one chance in 256.
    let looked = passed + sts.corrupt();
    assert!(looked > 1000, "{looked}");
    assert!(passed <= looked / 128, "{passed} of {looked}");
    let mut dxl = crate::driver::dynamixel::codec::Decoder::default();
    let passed = accepted(&mut dxl, &[0xFF, 0xFF, 0xFD, 0, 1, 14, 0, 0x55], 10);
    let looked = passed + dxl.corrupt();
    assert!(looked > 1000, "{looked}");
    // One in 65 536.
    assert!(passed <= 8, "{passed} of {looked}");
}

#[test]
#[ignore = "a benchmark: cargo test --release --lib driver::tests::rates -- --ignored --nocapture"]
#[expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "its figure is what it is for"
)]
fn nanoseconds_a_packet() {
    let time = |name: &str, framing: &mut dyn FnMut() -> u32| {
        let begun = std::time::Instant::now();
        let packets = framing();
        let each = begun.elapsed().as_nanos() / u128::from(packets);
        eprintln!("{name}: {each} ns a packet");
        assert!(each < 2000, "{each}");
    };
    time("sts", &mut || {
        let mut decoder = crate::driver::feetech::codec::Decoder::default();
        let reply = [0xFF, 0xFF, 1, 10, 0, 0, 8, 0, 0, 0, 0, 120, 25, 0x5B];
        let replies: Vec<u8> = std::iter::repeat_n(reply, 6).flatten().collect();
        decode(&mut decoder, &replies, 8)
    });
    time("dynamixel", &mut || {
        let mut decoder = crate::driver::dynamixel::codec::Decoder::default();
        let mut reply = vec![0xFF, 0xFF, 0xFD, 0, 1, 14, 0, 0x55, 0];
        reply.extend([0, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
        let crc = crc::Crc::<u16>::new(&crc::CRC_16_UMTS).checksum(&reply);
        reply.extend(crc.to_le_bytes());
        let replies: Vec<u8> = std::iter::repeat_n(reply, 6).flatten().collect();
        decode(&mut decoder, &replies, 10)
    });
}

fn decode(decoder: &mut impl Framing, replies: &[u8], parameters: usize) -> u32 {
    let mut packets = 0;
    for _ in 0..100_000 {
        decoder.push(replies);
        while decoder.next(parameters).is_some() {
            packets += 1;
        }
    }
    packets
}
