//! Any text as arguments: no panic, no hang, nothing moves but what was said.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::args::{ReceivedArguments, explain_line};
use steadyhand_fuzz::{judge, shape};

fuzz_target!(|text: &str| {
    judge(&ReceivedArguments::Text(text.to_owned()), text);
    let _ = explain_line(shape(), text);
});
