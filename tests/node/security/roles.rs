//! Tests which caller has the arm, where nothing may move, and what the log records of each caller.

use std::time::Duration;

use serde_json::{Value, json};

use super::support::{self, Bench, Served, bearer, post, tool_call, unless_starved};
use super::{Guarded, node, result};

/// A minute of lines.
fn long() -> String {
    let lines: Vec<String> = (0..60)
        .map(|row| format!("[[0.0, {row}.0], [70.0, {row}.0]]"))
        .collect();
    super::scene("long", &format!("[{}]", lines.join(", ")))
}

fn arm(served: &Served, headers: &str) -> Value {
    let (_, preview) = post(served, headers, &tool_call("list_nodes", &json!({})));
    result(&preview)["nodes"][0]["arms"][0].clone()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let ask = || {
        // Slower than a token's rate.
        std::thread::sleep(Duration::from_millis(600));
        is_so()
    };
    support::until(what, ask, |is_so| *is_so);
}

#[test]
fn an_operators_call_that_is_refused_takes_nobodys_arm() {
    let node = Guarded::new();
    node.bench.scene("long", &long());
    let [viewer, planner, operator] = node.tokens.clone();
    let drawing = {
        let (host, headers) = (node.served.host(), bearer(&planner));
        let body = tool_call("stroke", &json!({"scene": "long"}));
        std::thread::spawn(move || support::post_to(&host, &headers, &body))
    };
    let observed_by = || arm(&node.served, &bearer(&viewer));
    until("moving", || observed_by()["state"] == "moving");
    for (scene, code) in [("short", "busy"), ("no-such-scene", "scene")] {
        let body = tool_call("stroke", &json!({"scene": scene}));
        let (_, refused) = post(&node.served, &bearer(&operator), &body);
        assert_eq!(result(&refused)["success"], false, "{code}: {refused}");
        assert_eq!(observed_by()["lease"], "token planner", "{scene}");
    }
    assert_eq!(node.call(Some(&planner), "stop").0, 200);
    drawing.join().unwrap();
    // The motion that an operator begins is what takes the arm over.
    let (_, reset) = node.call(Some(&operator), "reset");
    assert_eq!(result(&reset)["success"], true, "{reset}");
    assert_eq!(observed_by()["lease"], Value::Null);
}

#[test]
fn where_nothing_may_move_nothing_is_enabled_and_no_torque_taken_off() {
    for (file, drops) in [
        ("name = \"bench\"\nread_only = true\n", false),
        (
            "name = \"bench\"\nonly_tools = [\"sense\", \"list_nodes\"]\n",
            true,
        ),
    ] {
        let bench = Bench::new();
        let served = node(&bench, file);
        assert_eq!(arm(&served, "")["motion_enabled"], false, "{file}");
        let enabled = arm(&served, "")["enabled"].clone();
        assert!(enabled.as_str().unwrap().contains("may move"), "{enabled}");
        for verb in [
            &["enable", "--scene", "short"][..],
            &["selftest", "--scene", "short"],
        ] {
            let refused = bench.run(verb);
            assert_eq!(
                refused.status.code(),
                Some(1),
                "{file}{verb:?}: {refused:?}"
            );
            let reason = String::from_utf8(refused.stdout).unwrap();
            assert!(reason.contains("may move"), "{reason}");
        }
        let dropped = bench.run(&["torque-off", "--yes"]);
        assert_eq!(dropped.status.success(), drops, "{file}: {dropped:?}");
        assert_eq!(arm(&served, "")["job"], Value::Null);
    }
}

/// Every line of a node's log, as its node ends.
fn lines(mut served: Served) -> Vec<Value> {
    served.child.terminate();
    let lines = served
        .lines
        .iter()
        .filter_map(|line| serde_json::from_str(&line).ok());
    lines.collect()
}

#[test]
fn all_that_a_job_does_is_found_in_the_log_by_its_name() {
    let bench = Bench::new();
    let served = bench.serve(&["--log", "json"]);
    let (_, drawn) = post(
        &served,
        "",
        &tool_call("stroke", &json!({"scene": "short"})),
    );
    let job = result(&drawn)["job"]["id"].clone();
    assert_eq!(result(&drawn)["success"], true, "{drawn}");
    let lines = lines(served);
    let done = lines.iter().find(|line| line["message"] == "done");
    let done = done.unwrap_or_else(|| panic!("no line in {lines:#?}"));
    for (field, value) in [
        ("job", &job),
        ("node", &json!("local")),
        ("tool", &json!("stroke")),
    ] {
        assert_eq!(&done[field], value, "{done}");
    }
    assert!(
        done["client"].is_string() && done["level"] == "info",
        "{done}"
    );
}

#[test]
fn what_an_arm_says_names_its_node_itself_and_the_job() {
    unless_starved(|| {
        let bench = Bench::new();
        bench.scene("long", &long());
        let (sim, port) = bench.sim(&["--unpaced"]);
        let here = ["--port", &port, "--calibrated", "elsewhere"];
        let served = bench.serve(&[&["--log", "json", "--enable", "long"][..], &here].concat());
        let drawing = {
            let (host, body) = (
                served.host(),
                tool_call("stroke", &json!({"scene": "long"})),
            );
            std::thread::spawn(move || support::post_to(&host, "", &body))
        };
        until("moving", || arm(&served, "")["state"] == "moving");
        drop(sim);
        let (_, error) = drawing.join().unwrap();
        let job = result(&error)["job"]["id"].clone();
        assert_eq!(result(&error)["success"], false, "{error}");
        let lines = lines(served);
        let is_arms = |line: &&Value| {
            line["target"]
                .as_str()
                .is_some_and(|target| target.contains("motion"))
                && line["job"] == job
        };
        let printed = lines.iter().find(is_arms);
        let printed = printed.unwrap_or_else(|| panic!("no line of {job} in {lines:#?}"));
        assert_eq!(
            (&printed["node"], &printed["arm"]),
            (&json!("local"), &json!("arm")),
            "{printed}"
        );
    });
}
