//! Any bytes on the wire of a controller that somebody built: what is decoded encodes to the same message.
#![no_main]

use firmware_protocol::frame::{Decoder, Received};
use firmware_protocol::message::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = Decoder::new();
    for byte in bytes {
        if let Received::Frame(frame) = decoder.push(*byte)
            && let Ok(message) = Message::decode(&frame)
        {
            let _ = message.encode(frame.sequence);
        }
    }
});
