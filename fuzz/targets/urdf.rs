//! Any text as a URDF: refused with its place, or an arm that is one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::arm::ArmModel;
use steadyhand::arm::urdf::{UrdfOptions, import};

/// Links that the seeds have, as base and tip, and a joint that slides there.
const WAYS: [(&str, &str); 3] = [
    ("base", "tool"),
    ("left/base_link", "left/tattoo_needle"),
    ("a", "b"),
];

fuzz_target!(|text: &str| {
    let held = [("left/left_carriage_joint".to_owned(), 0.02)];
    for (base, tip) in WAYS {
        for held in [&[][..], &held] {
            let ask = UrdfOptions {
                held,
                ..UrdfOptions::new(base, tip)
            };
            if let Ok(found) = import(text, &ask) {
                assert!(ArmModel::new(found.file).is_ok());
            }
        }
    }
});
