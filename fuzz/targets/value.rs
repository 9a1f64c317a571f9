//! Any JSON value as arguments, as a client's library hands it on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::args::Received;
use steadyhand_fuzz::judge;

fuzz_target!(|text: &str| {
    if let Ok(value) = serde_json::from_str(text) {
        judge(&Received::Value(value), text);
    }
});
