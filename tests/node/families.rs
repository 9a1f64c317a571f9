//! Text in, bytes out: a simulated arm of every family in a process of its own, a node in another,
//! and a pseudo-terminal between them. Each draws the whole drawing that is shipped for it and is
//! brought to rest when its node is ended.
//!
//! Both sides keep real time: `cargo test --test node families:: -- --ignored`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use firmware_protocol::{Decoder, Message, Received};
use serde_json::Value;
use support::{Bench, Running, Served, ink, unless_starved};

/// Attempts at a drawing, which begins again on a machine that does not run both sides in time.
const ATTEMPTS: u32 = 4;

/// Time limit of a drawing of half a minute on a busy machine.
const DRAWN: Duration = Duration::from_secs(180);

/// Least number of frames of a drawing.
const FRAMES_MIN: usize = 500;

/// Time after which a service is killed.
const ENDED: Duration = Duration::from_secs(8);

struct Lab {
    bench: Bench,
    scene: &'static str,
    _sim: Running,
    served: Served,
}

impl Lab {
    fn new(arm: &str, scene: &'static str) -> Self {
        let bench = Bench::new();
        let (ink, received) = (bench.path("ink.json"), bench.path("heard"));
        let (ink, received) = (ink.to_str().unwrap(), received.to_str().unwrap());
        let (sim, port) = bench.sim(&["--arm", arm, "--ink", ink, "--trace", received]);
        let arms = format!(
            "arms = [{{ name = \"arm\", model = \"{arm}\", port = \"{port}\", calibrated = \"elsewhere\" }}]\n"
        );
        let [config, file, state, folder] = bench.file(&arms);
        let served = bench.serve(&[&config, &file, &state, &folder, "--enable", scene]);
        Self {
            bench,
            scene,
            _sim: sim,
            served,
        }
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let args = [tool, &arguments.to_string()];
        self.bench.call_at(&self.served.url, &args).1
    }

    /// Draws, until it is drawn whole; only the machine may keep it from that.
    fn draw(&self) {
        for _ in 0..ATTEMPTS {
            let stroke = serde_json::json!({ "scene": self.scene, "again": true });
            let mut reply = self.call("stroke", &stroke);
            let began = Instant::now();
            while !has_ended(&reply["job"]) && began.elapsed() < DRAWN {
                sleep(Duration::from_millis(500));
                reply["job"] = self.call("sense", &serde_json::json!({}))["job"].clone();
            }
            if reply["job"]["state"] == "reached" {
                return;
            }
            let reason = reply.to_string();
            // A simulated arm that gets no time is as silent as one without power.
            let starved = ["machine", "no valid reading"].map(|expected| reason.contains(expected));
            assert!(starved.contains(&true), "{reason}");
            self.reset();
        }
        panic!("this machine is too busy for a drawing in real time");
    }

    /// Brings the arm back; on its way it may be starved as well.
    fn reset(&self) {
        let scene = serde_json::json!({ "scene": self.scene });
        let mut reply = Value::Null;
        for _ in 0..ATTEMPTS {
            reply = self.call("reset", &scene);
            if reply["success"] == true {
                return;
            }
        }
        panic!("{reply:#}");
    }

    fn received(&self) -> Vec<u8> {
        let text = std::fs::read_to_string(self.bench.path("heard")).unwrap();
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks_exact(2);
        pairs
            .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    }

    /// Returns what the drawing planned, and what is on the simulated paper, in millimetres of line.
    fn lines_mm(&self) -> (f64, f64) {
        let ink: Vec<ink::Line> = read(&self.bench.path("ink.json"));
        let dry = serde_json::json!({ "scene": self.scene, "dry_run": true });
        let planned = self.call("stroke", &dry);
        let planned_mm = planned["pen_down_mm"].as_f64();
        (
            planned_mm.unwrap_or_else(|| panic!("{planned:#}")),
            ink::length_mm(&ink),
        )
    }
}

fn has_ended(job: &Value) -> bool {
    let ends = ["reached", "stopped", "refused", "faulted"];
    ends.iter().any(|end| job["state"] == *end)
}

fn read(path: &Path) -> Vec<ink::Line> {
    // It is written once a second.
    sleep(Duration::from_millis(1500));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Frames of goals: `header`, and behind `at` bytes of it `then`.
fn frames(received: &[u8], header: &[u8], at: usize, then: u8) -> usize {
    let starts = received.windows(at + 1);
    starts
        .filter(|window| window.starts_with(header) && window[at] == then)
        .count()
}

fn segments(received: &[u8]) -> usize {
    let (mut decoder, mut rest, mut count) = (Decoder::new(), received, 0);
    while !rest.is_empty() {
        if let Received::Frame(frame) = decoder.take(&mut rest) {
            let message = Message::decode(&frame);
            count += usize::from(matches!(message, Ok(Message::Segment(_))));
        }
    }
    count
}

fn draws_and_parks(arm: &str, scene: &'static str, goals: fn(&[u8]) -> usize) {
    let mut lab = Lab::new(arm, scene);
    lab.draw();
    let (planned_mm, drawn_mm) = lab.lines_mm();
    assert!(
        drawn_mm > 0.95 * planned_mm,
        "{drawn_mm} mm of {planned_mm} mm are on the paper"
    );
    let sent = goals(&lab.received());
    assert!(sent > FRAMES_MIN, "{sent} frames of goals were heard");
    let began = Instant::now();
    let code = lab.served.child.terminate();
    let took = began.elapsed();
    let lines: Vec<String> = lab.served.lines.iter().collect();
    let at_rest = lines.iter().any(|line| line.contains("at rest"));
    assert_eq!((code, at_rest), (Some(0), true), "{took:?}: {lines:#?}");
    assert!(took < ENDED, "{took:?}");
}

#[test]
#[ignore = "draws in real time: cargo test --test node families:: -- --ignored"]
fn feetech_servos_draw_the_default_scene() {
    unless_starved(|| {
        draws_and_parks("so101", "default", |received| {
            frames(received, &[0xFF, 0xFF, 0xFE], 4, 0x83)
        });
    });
}

#[test]
#[ignore = "draws in real time: cargo test --test node families:: -- --ignored"]
fn dynamixel_servos_draw_the_scene_of_their_arm() {
    unless_starved(|| {
        draws_and_parks("widowx250s", "widowx", |received| {
            frames(received, &[0xFF, 0xFF, 0xFD, 0, 0xFE], 7, 0x83)
        });
    });
}

#[test]
#[ignore = "draws in real time: cargo test --test node families:: -- --ignored"]
fn other_feetech_arms_draw_the_scenes_of_their_arms() {
    for (arm, scene) in [
        ("so100", "so100"),
        ("roarm-m2", "roarm_m2"),
        ("roarm-m3", "roarm_m3"),
    ] {
        unless_starved(|| {
            draws_and_parks(arm, scene, |received| {
                frames(received, &[0xFF, 0xFF, 0xFE], 4, 0x83)
            });
        });
    }
}

#[test]
#[ignore = "draws in real time: cargo test --test node families:: -- --ignored"]
fn other_dynamixel_arms_draw_the_scenes_of_their_arms() {
    for (arm, scene) in [
        ("koch", "koch"),
        ("openmanipulator-x", "openmanipulator_x"),
        ("vx300", "vx300"),
    ] {
        unless_starved(|| {
            draws_and_parks(arm, scene, |received| {
                frames(received, &[0xFF, 0xFF, 0xFD, 0, 0xFE], 7, 0x83)
            });
        });
    }
}

#[test]
#[ignore = "draws in real time: cargo test --test node families:: -- --ignored"]
fn a_self_built_controller_draws_the_default_scene() {
    unless_starved(|| {
        draws_and_parks("custom", "default", segments);
    });
}
