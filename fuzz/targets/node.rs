//! Any text as a node file: refused with its place, or a node.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::config::NodeFile;

fuzz_target!(|text: &str| {
    let _ = NodeFile::read("node.toml", text);
});
