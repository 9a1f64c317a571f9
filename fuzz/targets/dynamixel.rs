//! Any bytes on a servo bus, in any pieces: no panic, and no reply longer than was asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::servo::ReplyFraming;
use steadyhand::servo::dynamixel::codec::DynamixelDecoder;

fuzz_target!(|pieces: (u8, Vec<Vec<u8>>)| {
    let (parameters_max, pieces) = (usize::from(pieces.0), pieces.1);
    let mut decoder = DynamixelDecoder::default();
    for piece in pieces {
        decoder.push(&piece);
        while let Some(reply) = decoder.next(parameters_max) {
            assert!(reply.parameters.len() <= parameters_max);
        }
    }
});
