//! Any bytes as a JSON-RPC line or body: what a moving tool would do with the arguments in it equals what is understood.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::args::{Received, envelope};
use steadyhand_fuzz::{calls, judge};

fuzz_target!(|bytes: &[u8]| {
    let Ok(read) = envelope::read(bytes) else {
        return;
    };
    let text = String::from_utf8_lossy(bytes);
    for arguments in calls(&read.message) {
        let received = arguments.map_or(Received::Absent, |value| Received::Value(value.clone()));
        judge(&received, &text);
    }
    // A message that was mended is a message: it needs no mending again.
    let again =
        envelope::read(read.message.to_string().as_bytes()).expect("a mended message can be read");
    assert_eq!(again.message, read.message);
});
