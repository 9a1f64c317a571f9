//! Any bytes as a drawing of this kind: refused, or strokes of finite points.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| steadyhand_fuzz::draw("a.dxf", bytes));
