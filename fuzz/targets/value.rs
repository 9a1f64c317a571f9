//! Any JSON value as arguments, as a client's library hands it on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::args::ReceivedArguments;
use steadyhand_fuzz::judge;

fuzz_target!(|text: &str| {
    if let Ok(value) = serde_json::from_str(text) {
        judge(&ReceivedArguments::Value(value), text);
    }
});
