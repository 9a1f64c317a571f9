//! Any text as a scene file: refused with its place, or a scene.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadyhand::config::toml;
use steadyhand::scene::SceneFile;

fuzz_target!(|text: &str| {
    let _ = toml::read::<SceneFile>("scene.toml", text);
});
