//! The depth of a pen, trimmed by an operator while it draws.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::stop::{begin_to_draw, drawing_on_a_port};
use crate::support;
use serde_json::Value;
use support::{Bench, json_of, unless_starved, until};

const LONG_LINE: &str =
    "[[[0.0, 0.0], [80.0, 0.0], [80.0, 20.0], [0.0, 20.0], [0.0, 40.0], [80.0, 40.0]]]";

fn bench(most: &str) -> Bench {
    let bench = Bench::new();
    let scene = support::scene("long", LONG_LINE);
    bench.scene("long", &format!("{scene}\n[heights]\n{most}\n"));
    bench
}

/// Runs `trim` and returns whether it was done, and all that it printed.
fn trim(bench: &Bench, args: &[&str]) -> (bool, String) {
    let output = bench.run(&[&["trim"], args].concat());
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.success(), text)
}

/// Waits until the trim has come to its target, and returns it.
fn trim_of(bench: &Bench, node: &str) -> Value {
    let trim = || bench.call_at(node, &["sense"]).1["depth_trim"].clone();
    until("at its target", trim, |trim| {
        trim["now_mm"] == trim["target_mm"]
    })
}

#[test]
fn an_operator_trims_the_pen_while_it_draws_and_the_job_says_so() {
    unless_starved(|| {
        let bench = bench("depth_trim_mm = 0.3");
        let (_sim, _path, served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        let (done, text) = trim(&bench, &["0.1"]);
        assert!(done && text.contains("0.10 mm deeper"), "{text}");
        assert_eq!(trim_of(&bench, &served.url)["target_mm"], 0.1);
        let (done, text) = trim(&bench, &["0.25"]);
        assert!(!done && text.contains("±0.3 mm"), "{text}");
        let (done, text) = trim(&bench, &["-0.3"]);
        assert!(done && text.contains("0.20 mm higher"), "{text}");
        assert_eq!(trim_of(&bench, &served.url)["target_mm"], -0.2);
        let (done, text) = trim(&bench, &["--to", "0"]);
        assert!(done && text.contains("as planned"), "{text}");
        let (_, sensed) = bench.call_at(&served.url, &["sense"]);
        let job = sensed["job"]["id"].as_str().unwrap().to_owned();
        assert!(bench.run(&["stop"]).status.success());
        let (done, text) = trim(&bench, &["0.1"]);
        assert!(!done && text.contains("being drawn"), "{text}");
        let kept = json_of(&bench.run(&["jobs", &job, "--json"]));
        let trims = kept["depth_trims"].as_array().unwrap();
        let trims: Vec<&str> = trims.iter().map(|one| one.as_str().unwrap()).collect();
        assert_eq!(trims.len(), 3, "{trims:?}");
        assert!(trims[1].starts_with("-0.20 mm"), "{trims:?}");
    });
}

#[test]
fn a_scene_that_sets_no_bound_lets_nothing_be_trimmed() {
    unless_starved(|| {
        let bench = bench("press_mm = 1.0");
        let (_sim, _path, served) = drawing_on_a_port(&bench);
        let _caller = begin_to_draw(&bench, &served.url);
        let (done, text) = trim(&bench, &["-0.1"]);
        assert!(!done && text.contains("heights.depth_trim_mm"), "{text}");
    });
}
