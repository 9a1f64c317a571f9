//! A pattern of ink read by camera, by the commands that people give: play is found, proposed, accepted and made good.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failing test may panic, and says its figures"
)]

use std::f64::consts::TAU;

use serde_json::Value;

use crate::support::chance::Chance;
use crate::support::{Bench, Served, post};

const CAMERA: &str = r#"
[[cameras]]
name = "top"
size_px = [1920, 1440]
focal_px = [2600.0, 2600.0]
distortion = [-0.08, 0.02, 0.0005, -0.0005, 0.0]
source = "simulator"
[cameras.simulated]
stands_m = [0.03, -0.40, 0.385]
looks_at_m = [0.02, -0.223, 0.005]
"#;

/// A node with a simulated arm of a model, and a camera over the sheet of scene `tagged`.
struct InkBench(Bench);

impl InkBench {
    fn new(model: &str) -> Self {
        let bench = Bench::new();
        let node = format!(
            "[[arms]]\nname = \"arm\"\nmodel = \"{model}\"\nport = \"simulator\"\n{CAMERA}"
        );
        std::fs::write(bench.path("node.toml"), node).unwrap();
        Self(bench)
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let (config, state) = (self.0.path("node.toml"), self.0.state());
        let mut all = vec!["--config", config.to_str().unwrap(), "--state", &state];
        all.extend(args);
        let output = self.0.run(&all);
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap(), text)
    }

    fn call(&self, tool: &str, arguments: &str) -> Value {
        let (_, text) = self.run(&["call", "--json", tool, arguments]);
        let end = text.rfind('}').map_or(0, |end| end + 1);
        serde_json::from_str(&text[..end]).unwrap_or_else(|_| panic!("{text}"))
    }

    fn serve(&self) -> Served {
        let (config, state) = (self.0.path("node.toml"), self.0.state());
        let all = ["--config", config.to_str().unwrap(), "--state", &state];
        self.0.serve(&all)
    }

    fn file(&self, name: &str) -> Option<toml::Table> {
        let text = std::fs::read_to_string(self.0.path("scenes").join(name)).ok()?;
        Some(text.parse().unwrap())
    }

    /// Play of each joint as the arm's file has it.
    fn play_deg(&self, arm: &str) -> Option<Vec<f64>> {
        let file = self.file(&format!("arms/{arm}.toml"))?;
        let play = file.get("compensation")?.get("play_deg")?.as_array()?;
        Some(play.iter().map(|deg| deg.as_float().unwrap()).collect())
    }
}

/// Play of the base where the sheet lies, from the seed and the figures of so101-worn.
fn true_play_deg() -> f64 {
    let mut chance = Chance(1);
    let mut signed = || chance.within(1.0);
    let (play_deg, variation, phase_rad) = (1.0 + 0.3 * signed(), 0.3 * signed(), TAU * signed());
    let angles = (-10..=10).map(|deg| f64::from(deg).to_radians());
    let at = |angle: f64| play_deg * (1.0 + variation * (3.0 * angle + phase_rad).sin());
    angles.map(at).sum::<f64>() / 21.0
}

#[test]
fn the_play_of_a_worn_arm_is_drawn_read_proposed_accepted_and_written() {
    let bench = InkBench::new("so101-worn");
    let found = bench.call("align", r#"{"scene": "tagged", "ink": true}"#);
    println!("{}", found["message"]);
    assert_eq!(found["success"], true, "{found:#}");
    assert!(
        bench.play_deg("so101-worn").is_none(),
        "nothing is saved by itself"
    );
    let next = found["next"].as_str().unwrap();
    assert!(next.contains("steadyhand calibrate accept"), "{found:#}");
    let (code, shown) = bench.run(&["calibrate", "show"]);
    println!("{shown}");
    assert!(
        code == 0 && shown.contains("shoulder_pan_play_95_deg"),
        "{shown}"
    );
    let (code, said) = bench.run(&["calibrate", "accept"]);
    assert_eq!(code, 0, "{said}");
    let play = bench.play_deg("so101-worn").unwrap();
    let truth = true_play_deg();
    println!("found {play:?}, base truly {truth:.3}");
    assert!(
        (play[0] / truth - 1.0).abs() < 0.2,
        "{play:?}, truly {truth:.3}"
    );
    // Gravity keeps these on one side.
    assert!(play[1] < 0.2 && play[2] < 0.2, "{play:?}");
    let (_, history) = bench.run(&["calibrate", "history"]);
    assert!(history.contains("ink that a camera read"), "{history}");
}

#[test]
fn on_an_arm_without_play_nothing_is_proposed() {
    let bench = InkBench::new("so101");
    let found = bench.call("align", r#"{"scene": "tagged", "ink": true}"#);
    println!("{}", found["message"]);
    assert_eq!(found["success"], true, "{found:#}");
    assert!(
        found["message"]
            .as_str()
            .unwrap()
            .contains("nothing is proposed"),
        "{found:#}"
    );
    let (code, shown) = bench.run(&["calibrate", "show"]);
    assert!(
        code != 0 && shown.contains("nothing was touched"),
        "{shown}"
    );
}
