//! Two arms in one scene: they draw together, and wait, stop and go on together.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use support::{Bench, Served, unless_starved, until};

const STROKE: &str = r#"{"scene":"pair"}"#;

/// Eight lines, which both arms reach.
fn eight_lines() -> String {
    let line = |y: u32| format!(r#"<path fill="none" stroke="black" d="M0 {y}H140"/>"#);
    let lines: String = (0..8).map(|row| line(row * 25)).collect();
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="140mm" height="176mm" viewBox="0 0 140 176">{lines}</svg>"#
    )
}

/// A bench whose node file has two embedded arms, and whose scene `pair` is the shipped one with less to draw.
fn with_two_arms(bench: Bench) -> Bench {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/two_arms.toml");
    let scene = std::fs::read_to_string(shipped).unwrap();
    let scene = scene.replace("rings.svg", "lines.svg");
    let scene = scene.replace("\"two_arms\"", "\"pair\"");
    std::fs::write(bench.path("scenes/pair.toml"), scene).unwrap();
    std::fs::write(bench.path("scenes/lines.svg"), eight_lines()).unwrap();
    let arm = |name: &str| {
        format!("[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"simulator\"\n")
    };
    let text = format!("name = \"pair\"\n{}{}", arm("left"), arm("right"));
    bench.with_file(&text)
}

fn call(bench: &Bench, tool: &str, arguments: &str) -> Value {
    bench.call(&[tool, arguments]).1
}

fn arms(reply: &Value) -> &Vec<Value> {
    let arms = reply["arms"].as_array();
    arms.unwrap_or_else(|| panic!("{reply:#}"))
}

/// A node that serves both arms in real time.
struct Pair {
    bench: Bench,
    served: Served,
}

impl Pair {
    fn new() -> Self {
        let bench = with_two_arms(Bench::at_test_rate());
        let served = bench.serve(&[]);
        Self { bench, served }
    }

    fn call(&self, tool: &str, arguments: &str) -> Value {
        self.bench.call_at(&self.served.url, &[tool, arguments]).1
    }

    fn verb(&self, args: &[&str]) -> String {
        let (code, printed) = self.bench.said(args);
        assert_eq!(code, 0, "{args:?}: {printed}");
        printed
    }

    fn state(&self, arm: &str) -> String {
        let sensed = self.call("sense", &format!(r#"{{"arm":"{arm}"}}"#));
        sensed["state"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the ink that both arms have drawn.
    fn drawn_mm(&self) -> f64 {
        let output = self.bench.run(&["jobs", "--json"]);
        let jobs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let drawn = jobs.iter().filter_map(|job| job["drawn_mm"].as_f64());
        drawn.sum()
    }

    /// Begins to draw, and waits until there is ink.
    fn draw(&self) -> std::process::Child {
        let args = [
            "call",
            "stroke",
            STROKE,
            "--json",
            "--node",
            &self.served.url,
        ];
        let mut command = self.bench.command(&args);
        let drawing = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let drawing = drawing.spawn().unwrap();
        until("drawing", || self.drawn_mm(), |drawn_mm| *drawn_mm >= 5.0);
        drawing
    }

    fn until(&self, states: [&str; 2]) {
        let seen = || ["left", "right"].map(|arm| self.state(arm));
        until(&format!("{states:?}"), seen, |seen| *seen == states);
    }
}

#[test]
fn each_stroke_is_drawn_once_by_one_arm_and_sooner_than_by_one_alone() {
    let bench = with_two_arms(Bench::new());
    let drawn = call(&bench, "stroke", STROKE);
    assert_eq!(drawn["success"], true, "{drawn:#}");
    assert_eq!(arms(&drawn).len(), 2);
    let strokes = |reply: &Value| reply["stroke_count"].as_u64().unwrap();
    let by_arm: Vec<u64> = arms(&drawn).iter().map(strokes).collect();
    assert!(by_arm.iter().all(|count| *count > 0), "{drawn:#}");
    let alone = call(&bench, "stroke", r#"{"scene":"pair","arm":"left"}"#);
    assert_eq!(alone["success"], true, "{alone:#}");
    assert_eq!(by_arm.iter().sum::<u64>(), strokes(&alone));
    let seconds = |reply: &Value| reply["arm_time_s"].as_f64().unwrap();
    assert!(seconds(&drawn) < seconds(&alone), "{drawn:#}");
}

/// `pair:left` is the scene with that arm, in every tool.
#[test]
fn an_arm_s_part_is_named_as_a_scene() {
    let bench = with_two_arms(Bench::new());
    for tool in ["stroke", "align"] {
        let shown = call(&bench, tool, r#"{"scene":"pair:right","dry_run":true}"#);
        assert_eq!(shown["understood"]["scene"], "pair", "{shown:#}");
        assert_eq!(shown["understood"]["arm"], "right", "{shown:#}");
        let both = r#"{"scene":"pair:right","arm":"left","dry_run":true}"#;
        let refused = call(&bench, tool, both);
        let code = &refused["complaints"][0]["code"];
        assert_eq!(code, "two_arms_named", "{refused:#}");
    }
    let unknown = call(
        &bench,
        "stroke",
        r#"{"scene":"pair:middle","dry_run":true}"#,
    );
    let valid = unknown["complaints"][0]["valid"].as_array();
    let valid = valid.unwrap_or_else(|| panic!("{unknown:#}"));
    assert!(valid.iter().any(|name| name == "pair:left"), "{unknown:#}");
    let drawn = call(&bench, "stroke", r#"{"scene":"pair:left"}"#);
    assert_eq!(drawn["success"], true, "{drawn:#}");
    assert!(drawn.get("arms").is_none(), "{drawn:#}");
    let home = call(&bench, "reset", r#"{"scene":"pair:left"}"#);
    assert_eq!(home["success"], true, "{home:#}");
}

#[test]
fn either_arm_aligns_the_shipped_scene() {
    let bench = with_two_arms(Bench::new());
    for arm in ["left", "right"] {
        let scene = format!(r#"{{"scene":"two_arms:{arm}"}}"#);
        let aligned = call(&bench, "align", &scene);
        assert_eq!(aligned["success"], true, "{aligned:#}");
        assert_eq!(aligned["cross_inked"], true, "{aligned:#}");
    }
}

/// A drawing of one's own takes one command, for two arms as for one.
#[test]
fn both_arms_draw_a_file_by_one_command() {
    let bench = with_two_arms(Bench::new());
    let file = bench.path("lines.svg").display().to_string();
    std::fs::write(&file, eight_lines()).unwrap();
    let draw = |more: &[&str]| {
        let args = ["draw", &file, "--scene", "pair", "--json"];
        let output = bench.run(&[&args[..], more].concat());
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(output.status.code(), Some(0), "{reply:#}");
        reply
    };
    let shown = draw(&["--dry-run"]);
    assert_eq!(shown["drawing"]["strokes"], 8, "{shown:#}");
    let drawn = draw(&[]);
    assert_eq!(drawn["success"], true, "{drawn:#}");
    let strokes = |reply: &Value| reply["stroke_count"].as_u64().unwrap();
    assert_eq!(arms(&drawn).iter().map(strokes).sum::<u64>(), 8);
    assert!(arms(&drawn).iter().all(|arm| strokes(arm) > 0), "{drawn:#}");
    // One picture of what both drew.
    assert_eq!(drawn["stroke_count"], 8, "{drawn:#}");
    assert_eq!(drawn["files"].as_array().unwrap().len(), 2, "{drawn:#}");
    let of_right = arms(&drawn)[1]["files"].as_array();
    assert!(of_right.is_none_or(Vec::is_empty), "{drawn:#}");
    for (reply, name) in arms(&drawn).iter().zip(["left: ", "right: "]) {
        let message = reply["message"].as_str().unwrap();
        assert!(message.starts_with(name), "{drawn:#}");
    }
    let alone = draw(&["--arm", "left"]);
    assert_eq!(alone["stroke_count"], 8, "{alone:#}");
}

/// What a call brings is drawn as it is or not at all.
#[test]
fn a_design_in_a_call_is_not_replaced_by_that_of_the_scene() {
    let bench = with_two_arms(Bench::new());
    for (arguments, code) in [
        (r#"{"scene":"pair","text":"hi"}"#, "no_canvas"),
        (r#"{"scene":"pair","size_mm":40}"#, "no_design"),
    ] {
        let reply = call(&bench, "stroke", arguments);
        assert_eq!(reply["code"], code, "{reply:#}");
    }
}

/// An operator's drawing of two arms goes on with both by one command, and nothing of it is lost or drawn twice.
#[test]
fn what_both_arms_left_of_a_file_is_drawn_by_one_command() {
    unless_starved(|| {
        let pair = Pair::new();
        let file = pair.bench.path("drawn.svg").display().to_string();
        std::fs::write(&file, eight_lines()).unwrap();
        let mut drawing = pair.bench.command(&["draw", &file, "--scene", "pair"]);
        let drawing = drawing.stdout(Stdio::null()).stderr(Stdio::null());
        let mut drawing = drawing.spawn().unwrap();
        until("drawing", || pair.drawn_mm(), |drawn_mm| *drawn_mm >= 150.0);
        let stopped = pair.verb(&["stop"]);
        assert!(stopped.contains("`steadyhand draw --resume`"), "{stopped}");
        drawing.wait().unwrap();
        for arm in ["left", "right"] {
            pair.verb(&["reset", "--arm", arm]);
        }
        assert!(pair.drawn_mm() < 1000.0);
        pair.verb(&["draw", "--resume", "--scene", "pair"]);
        // Eight lines of 140 mm, of which up to 8 mm may be drawn twice by each arm.
        let drawn_mm = pair.drawn_mm();
        assert!((1115.0..1140.0).contains(&drawn_mm), "{drawn_mm}");
        let (code, printed) = pair.bench.said(&["draw", "--resume"]);
        assert_ne!(code, 0, "{printed}");
    });
}

#[test]
fn one_arm_s_part_is_previewed_beside_the_other_where_it_stands() {
    let bench = with_two_arms(Bench::new());
    let left = r#"{"scene":"pair","arm":"left","dry_run":true}"#;
    let shown = call(&bench, "stroke", left);
    assert_eq!(shown["success"], true, "{shown:#}");
}

#[test]
fn a_preview_says_what_each_arm_draws_and_its_plan_is_what_is_drawn() {
    let bench = with_two_arms(Bench::new());
    let shown = call(&bench, "stroke", r#"{"scene":"pair","dry_run":true}"#);
    assert_eq!(shown["success"], true, "{shown:#}");
    assert_eq!(shown["moved"], false);
    let names: Vec<&Value> = arms(&shown).iter().map(|arm| &arm["arm"]).collect();
    assert_eq!(names, ["left", "right"]);
    let plan = shown["plan_hash"].as_str().unwrap();
    let with_plan = |plan: &str| format!(r#"{{"scene":"pair","plan":"{plan}"}}"#);
    let drawn = call(&bench, "stroke", &with_plan(plan));
    assert_eq!(drawn["success"], true, "{drawn:#}");
    assert_eq!(drawn["plan_hash"], plan);
    let other = call(&bench, "stroke", &with_plan("0123456789abcdef"));
    assert_eq!(other["success"], false, "{other:#}");
}

#[test]
fn a_node_without_one_of_the_arms_says_which_it_needs() {
    let one = "[[arms]]\nname = \"left\"\nmodel = \"so101\"\nport = \"simulator\"\n";
    let reply = call(
        &Bench::new().with_file(one),
        "stroke",
        r#"{"scene":"two_arms"}"#,
    );
    assert_eq!(reply["success"], false, "{reply:#}");
    assert!(reply.to_string().contains("two_arms"), "{reply:#}");
}

#[test]
fn a_stop_stops_both_and_a_hold_holds_both_until_they_go_on() {
    let pair = Pair::new();
    let held = pair.draw();
    pair.verb(&["hold"]);
    pair.until(["held", "held"]);
    pair.verb(&["continue"]);
    pair.until(["moving", "moving"]);
    let stopped = pair.call("stop", "{}");
    assert_eq!(stopped["success"], true, "{stopped:#}");
    pair.until(["stopped", "stopped"]);
    let output = held.wait_with_output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    // Both go on by one call.
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains(r#"stroke {\"resume\":true}"#), "{told}");
    for arm in ["left", "right"] {
        let reset = pair.call("reset", &format!(r#"{{"arm":"{arm}"}}"#));
        assert_eq!(reset["success"], true, "{reset:#}");
    }
    let rest = pair.call("stroke", r#"{"resume":true}"#);
    // On a busy machine the arms, each with a clock of its own, wait for each other in the middle of lines.
    let is_drawn = rest["success"] == true || rest["code"] == "did_not_follow";
    assert!(is_drawn, "{rest:#}");
}

#[test]
fn an_arm_whose_neighbour_is_stopped_alone_stops_too() {
    let pair = Pair::new();
    let drawing = pair.draw();
    pair.verb(&["estop", "--arm", "left"]);
    let state = until(
        "at a stand",
        || pair.state("right"),
        |state| state != "moving",
    );
    assert_eq!(state, "stopped");
    drop(drawing);
}
