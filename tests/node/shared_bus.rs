//! Two arms on one port, as bi-SO-101 kits are wired: ids 1 to 6 and 7 to 12 behind one adapter.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;
use serde_json::Value;
use support::{Bench, Running, unless_starved, until};

/// A line for the pen of each arm.
const LINES: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="210mm" height="297mm" viewBox="0 0 210 297" fill="none">
<path d="M40 150H60" stroke="#1a1a2e"/><path d="M150 150H170" stroke="#c0392b"/></svg>"##;

/// A bench with a scene that both arms share, and the two arms on one pseudo-terminal.
struct Bus {
    bench: Bench,
    arms: Running,
    port: String,
}

impl Bus {
    fn new() -> Self {
        let bench = Bench::new();
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/two_arms.toml");
        let text = std::fs::read_to_string(shipped).unwrap();
        let (head, right) = text.rsplit_once("#1a1a2e").unwrap();
        let text = format!("{head}#c0392b{right}").replace("rings.svg", "pair.svg");
        bench.scene("pair", &text.replace("\"two_arms\"", "\"pair\""));
        std::fs::write(bench.path("scenes/pair.svg"), LINES).unwrap();
        let [ink, trace] = ["ink.json", "trace"].map(|name| bench.path(name).display().to_string());
        let args = [
            "--arms", "2", "--scene", "pair", "--ink", &ink, "--trace", &trace,
        ];
        let (arms, port) = bench.sim(&args);
        Self { bench, arms, port }
    }

    /// Gives the bench a node file with both arms, and this key of the second.
    fn with_second(self, key: &str) -> Self {
        let port = &self.port;
        let arm = |name: &str, key: &str| {
            format!(
                "[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"{port}\"\ncalibrated = \"elsewhere\"\n{key}\n"
            )
        };
        let text = format!("name = \"bus\"\n{}{}", arm("left", ""), arm("right", key));
        Self {
            bench: self.bench.with_file(&text),
            ..self
        }
    }

    /// Returns the drawn lines of an arm at the far end.
    fn ink(&self, file: &str) -> Vec<Vec<[f64; 2]>> {
        let text = std::fs::read_to_string(self.bench.path(file)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the ids of all frames that arrived at the far end, and how many bytes belong to none.
    fn frames(&self) -> (Vec<u8>, usize) {
        let text = std::fs::read_to_string(self.bench.path("trace")).unwrap();
        let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
        let bytes = digits
            .chunks(2)
            .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap());
        let bytes: Vec<u8> = bytes.collect();
        let (mut rest, mut ids, mut astray) = (bytes.as_slice(), Vec::new(), 0);
        while !rest.is_empty() {
            let is_frame = match rest {
                [0xFF, 0xFF, id, length, ..] => {
                    let end = 4 + usize::from(*length);
                    let sum = rest
                        .get(2..end)
                        .map(|frame| frame.iter().fold(0_u8, |sum, b| sum.wrapping_add(*b)));
                    (sum == Some(0xFF)).then_some((*id, end))
                }
                _ => None,
            };
            let length = is_frame.map_or(1, |(_, length)| length);
            astray += usize::from(is_frame.is_none());
            ids.extend(is_frame.map(|(id, _)| id));
            rest = &rest[length..];
        }
        (ids, astray)
    }
}

#[test]
fn both_arms_of_one_port_draw_at_once_and_no_frame_cuts_anothers() {
    unless_starved(|| {
        let mut bus = Bus::new().with_second("first_id = 7");
        let stroke = ["stroke", r#"{"scene":"pair"}"#, "--enable", "pair"];
        let (code, drawn) = bus.bench.call(&stroke);
        assert_eq!(
            (code, &drawn["success"]),
            (0, &Value::Bool(true)),
            "{drawn:#}"
        );
        let arms = drawn["arms"].as_array().unwrap();
        assert!(arms.iter().all(|arm| arm["stroke_count"] == 1), "{drawn:#}");
        assert_eq!(bus.arms.terminate(), Some(0));
        for (file, x_mm) in [("ink.json", [39.0, 61.0]), ("ink-2.json", [149.0, 171.0])] {
            let ink = bus.ink(file);
            let points: Vec<[f64; 2]> = ink.into_iter().flatten().collect();
            assert!(points.len() > 10, "{file}");
            let is_there = |point: &[f64; 2]| (x_mm[0]..x_mm[1]).contains(&point[0]);
            assert!(points.iter().all(is_there), "{file}: {points:?}");
        }
        let (ids, astray) = bus.frames();
        assert!(
            ids.contains(&1) && ids.contains(&12) && astray == 0,
            "{astray} bytes"
        );
    });
}

#[test]
fn doctor_and_check_tell_the_arms_of_one_port_apart_and_refuse_a_clash() {
    unless_starved(|| {
        let bus = Bus::new().with_second("first_id = 7");
        let checked = bus.bench.done(&["check"]);
        assert!(
            checked.contains("arm left") && checked.contains("arm right"),
            "{checked}"
        );
        let (_, text, errors) = bus.bench.streams(&["doctor", "--json"]);
        let cards: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{errors}"));
        for (card, first) in cards["arms"].as_array().unwrap().iter().zip([1, 7]) {
            let causes = card["findings"].as_array().unwrap().iter();
            // On a busy machine simulated servos answer as late as behind a slow adapter.
            let causes: Vec<&Value> = causes.filter(|one| one["cause"] != "latency").collect();
            assert!(causes.is_empty(), "{card:#}");
            let servos = card["servos"].as_array().unwrap().iter();
            let ids: Vec<u64> = servos
                .map(|one| one["servo"]["id"].as_u64().or(one["id"].as_u64()).unwrap())
                .collect();
            assert_eq!(ids, (first..first + 6).collect::<Vec<u64>>(), "{card:#}");
        }
        let bus = bus.with_second("first_id = 4");
        let (code, printed) = bus.bench.said(&["check"]);
        assert!(code != 0 && printed.contains("first_id = 7"), "{printed}");
    });
}

#[test]
fn unplugging_the_port_faults_both_arms() {
    unless_starved(|| {
        let mut bus = Bus::new().with_second("first_id = 7");
        let _node = bus.bench.serve(&[]);
        let status = || bus.bench.said(&["status"]).1;
        assert!(!status().contains("not connected"));
        assert_eq!(bus.arms.terminate(), Some(0));
        let is_lost =
            |status: &String, arm: &str| status.contains(&format!("{arm}: so101 is not connected"));
        until("detached", status, |status| {
            is_lost(status, "left") && is_lost(status, "right")
        });
    });
}
