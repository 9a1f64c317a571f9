//! Measures how well a cycle uses the wire, and how the decoders treat noise.

use super::*;
use servo::framing::ReplyFraming;

/// Returns the cycles per second that the wire allows, on the simulated clock.
async fn rate(name: &str) -> f64 {
    let mut bench = Bench::new(name);
    for id in 1..=9 {
        // No return delay: register 7 of the one family, 9 of the other.
        let address = if name == "so101" { 7 } else { 9 };
        bench.sim.break_it(SimulatedFault::Register {
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
    // for the shorter write without it, of which at least 93 % are required.
    let feetech = rate("so101").await;
    assert!(feetech >= 0.93 * 676.0, "{feetech}");
    // Nine servos, 14 + 9 times 5 and 23 bytes out, 7 + 9 times 14 back together.
    let dynamixel = rate("widowx250s").await;
    assert!(
        dynamixel >= 0.93 * 1e5 / (59.0 + 23.0 + 133.0),
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

/// Number of bytes to fuzz: a million, or `STEADYHAND_FUZZ_BYTES`.
fn fuzzed_bytes() -> usize {
    let text = std::env::var("STEADYHAND_FUZZ_BYTES").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(1_000_000)
}

/// Feeds noise in pieces of every length.
fn feed(bytes: &[u8], mut take: impl FnMut(&[u8])) {
    let (mut at, mut piece) = (0, 1);
    while at < bytes.len() {
        let end = (at + piece).min(bytes.len());
        take(&bytes[at..end]);
        at = end;
        piece = piece % 97 + 1;
    }
}

/// Counts the frames that are accepted in noise.
fn accepted(framing: &mut impl ReplyFraming, header: &[u8], parameters: usize) -> u64 {
    let mut count = 0;
    feed(&noise(fuzzed_bytes(), header), |piece| {
        framing.push(piece);
        while framing.next(parameters).is_some() {
            count += 1;
        }
    });
    count
}

#[test]
fn noisy_bytes_pass_only_as_often_as_the_checksum_says() {
    let mut sts = servo::feetech::codec::FeetechDecoder::default();
    let passed = accepted(&mut sts, &[0xFF, 0xFF, 1, 10, 0], 8);
    // Each candidate frame had one chance in 256.
    let tried = passed + sts.corrupt();
    assert!(tried > 1000, "{tried}");
    assert!(passed <= tried / 128, "{passed} of {tried}");
    let mut dxl = servo::dynamixel::codec::DynamixelDecoder::default();
    let passed = accepted(&mut dxl, &[0xFF, 0xFF, 0xFD, 0, 1, 14, 0, 0x55], 10);
    let tried = passed + dxl.corrupt();
    assert!(tried > 1000, "{tried}");
    // One in 65 536.
    assert!(passed <= 8 + tried / 16_384, "{passed} of {tried}");
    let mut firmware = firmware_protocol::Decoder::new();
    feed(&noise(fuzzed_bytes(), &[0x00, 0x02, 0x43]), |mut piece| {
        while !piece.is_empty() {
            firmware.take(&mut piece);
        }
    });
    let counters = firmware.counters();
    assert!(counters.corrupt > 1000, "{counters:?}");
    // One in four thousand million.
    assert_eq!(counters.frames, 0, "{counters:?}");
}

/// Returns whether a reply after noise is found.
fn is_found(
    framing: &mut impl ReplyFraming,
    noise: &[u8],
    reply: &[u8],
    parameters: usize,
) -> bool {
    framing.clear();
    framing.push(noise);
    framing.push(reply);
    // Further bytes of the same cycle, which show that a cut frame is incomplete.
    framing.push(&[0; 64]);
    let mut found = false;
    while let Some(reply) = framing.next(parameters) {
        found |= reply.id == 1 && reply.parameters.iter().all(|byte| *byte == 0);
    }
    found
}

#[test]
fn the_next_frame_after_64_bytes_of_garbage_is_found() {
    let mut sts = servo::feetech::codec::FeetechDecoder::default();
    let mut dxl = servo::dynamixel::codec::DynamixelDecoder::default();
    let sts_reply = [0xFF, 0xFF, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF4];
    let mut dxl_reply = vec![0xFF, 0xFF, 0xFD, 0, 1, 14, 0, 0x55, 0];
    dxl_reply.extend([0; 10]);
    let crc = crc::Crc::<u16>::new(&crc::CRC_16_UMTS).checksum(&dxl_reply);
    dxl_reply.extend(crc.to_le_bytes());
    let beat = firmware_protocol::Message::Beat(7).encode(1);
    let cases = fuzzed_bytes() / 64;
    // A false frame whose eight-bit sum is right may swallow the true one: one in 256 of those.
    let mut lost = (0, 0);
    for garbage in noise(cases * 64, &[0xFF, 0xFF, 1, 10]).chunks_exact(64) {
        lost.0 += usize::from(!is_found(&mut sts, garbage, &sts_reply, 8));
        lost.1 += usize::from(!is_found(&mut dxl, garbage, &dxl_reply, 10));
        let mut decoder = firmware_protocol::Decoder::new();
        let mut is_received = false;
        for mut bytes in [garbage, beat.as_slice()] {
            while !bytes.is_empty() {
                is_received |= matches!(
                    decoder.take(&mut bytes),
                    firmware_protocol::Received::Frame(_)
                );
            }
        }
        assert!(is_received, "{garbage:?}");
    }
    assert!(lost.0 <= cases / 128, "{lost:?} of {cases}");
    assert_eq!(lost.1, 0, "of {cases}");
}
