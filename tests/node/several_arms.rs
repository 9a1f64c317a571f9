//! A node with several arms: which one a verb or a call means, and which one an answer is about.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;

use crate::sighted::TAGS;
use serde_json::{Value, json};
use support::{Bench, Caller, Running, SHORT_LINES, Served, scene, unless_starved};

/// Two arms of one model and one of another, all simulated, with a node file that names them.
struct Workshop {
    bench: Bench,
    node: Served,
}

const ARMS: [(&str, &str); 3] = [("left", "so101"), ("right", "so101"), ("third", "koch")];

impl Workshop {
    fn new() -> Self {
        Self::with("")
    }

    /// The same with more lines in the node file.
    fn with(more: &str) -> Self {
        let bench = Bench::at_test_rate();
        bench.scene("sheeted", &(scene("sheeted", SHORT_LINES) + TAGS));
        let arms = ARMS.map(|(name, model)| {
            format!("[[arms]]\nname = \"{name}\"\nmodel = \"{model}\"\nport = \"simulator\"\n\n")
        });
        let head = format!("name = \"workshop\"\nstate = {:?}\n\n", bench.state());
        let file = bench.path("node.toml");
        std::fs::write(&file, head + &arms.concat() + more).unwrap();
        let node = bench.serve(&["--config", file.to_str().unwrap()]);
        Self { bench, node }
    }

    /// Of two arms of one model one is simulated and the other at a port; with the simulator at its far end.
    fn with_one_at_a_port() -> (Self, Running) {
        let bench = Bench::at_test_rate();
        let (far_end, port) = bench.sim(&["--scene", "short"]);
        let arms = [("left", "simulator"), ("right", port.as_str())].map(|(name, port)| {
            format!("[[arms]]\nname = \"{name}\"\nmodel = \"so101\"\nport = \"{port}\"\napart = true\n\n")
        });
        let head = format!("name = \"workshop\"\nstate = {:?}\n\n", bench.state());
        let file = bench.path("node.toml");
        std::fs::write(&file, head + &arms.concat()).unwrap();
        let node = bench.serve(&["--config", file.to_str().unwrap()]);
        (Self { bench, node }, far_end)
    }

    /// An operator's command: whether it was done, and what was said.
    fn says(&self, args: &[&str]) -> (bool, String) {
        let (code, text) = self.bench.said(args);
        (code == 0, text)
    }

    /// The joints of an arm, in degrees.
    fn joints(&self, arm: &str) -> Vec<f64> {
        let (text, sensed) = self.node.told("sense", &json!({"arm": arm}));
        let joints = sensed["joints"].as_array();
        let joints = joints.unwrap_or_else(|| panic!("{text}")).iter();
        joints
            .map(|joint| joint["angle_deg"].as_f64().unwrap())
            .collect()
    }
}

fn refused(said: (bool, String), words: &[&str]) -> String {
    let (done, text) = said;
    assert!(!done, "{text}");
    has(&text, words);
    text
}

fn done(said: (bool, String), words: &[&str]) -> String {
    let (done, text) = said;
    assert!(done, "{text}");
    has(&text, words);
    text
}

fn has(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }
}

#[test]
fn a_jog_moves_the_named_arm_and_none_where_several_are_meant() {
    unless_starved(|| {
        let shop = Workshop::new();
        let before = shop.joints("left");
        let jog = ["jog", "--scene", "short", "--step", "j1+5"];
        refused(
            shop.says(&jog),
            &["several arms", "--arm: left, right", "nothing moved"],
        );
        let named = |arm| [&jog[..], &["--arm", arm]].concat();
        refused(shop.says(&named("third")), &["Valid: left, right"]);
        done(shop.says(&named("right")), &["right: the tip"]);
        assert_eq!(shop.joints("left"), before);
        assert!((shop.joints("right")[0] - 5.0).abs() < 1.0);
        // One arm draws this scene, so it needs no name.
        let koch = ["jog", "--scene", "koch", "--step", "j1+1"];
        done(shop.says(&koch), &["third: the tip"]);
        done(shop.says(&["disable"]), &[]);
        refused(
            shop.says(&named("right")),
            &["right: ", "`steadyhand enable --arm right --scene short"],
        );
    });
}

#[test]
fn a_touch_is_of_the_arm_that_is_named() {
    unless_starved(|| {
        let shop = Workshop::new();
        done(
            shop.says(&[
                "jog", "--scene", "short", "--step", "j1+5", "--arm", "right",
            ]),
            &[],
        );
        let touch = ["calibrate", "touch", "tool", "--scene", "short"];
        refused(shop.says(&touch), &["several arms", "--arm: left, right"]);
        let teach = ["teach", "pose", "rest", "--yes", "--scene", "short"];
        refused(shop.says(&teach), &["--arm: left, right"]);
        refused(shop.says(&["calibrate", "joints"]), &["--arm: left, right"]);
        refused(
            shop.says(&["calibrate", "export", "--lerobot"]),
            &["--arm: left, right"],
        );
        refused(
            shop.says(&["calibrate", "play", "--scene", "short"]),
            &["--arm: left, right", "nothing moved"],
        );
        let said = shop.says(&[&touch[..], &["--arm", "right"]].concat());
        has(&said.1, &["1 touch"]);
        let kept = shop.bench.path("state/calibration/proposal.toml");
        let kept: toml::Table = std::fs::read_to_string(kept).unwrap().parse().unwrap();
        let first_rad = kept["touches"][0]["joints_rad"][0].as_float().unwrap();
        assert!((first_rad.to_degrees() - 5.0).abs() < 1.0, "{kept}");
    });
}

/// The first arm of the model is another one, at which nothing was measured.
#[test]
fn what_an_arm_measured_is_accepted_for_that_arm() {
    unless_starved(|| {
        let (shop, _far_end) = Workshop::with_one_at_a_port();
        let (text, denied) = shop
            .node
            .told("stroke", &json!({"scene": "short", "arm": "right"}));
        assert_eq!(denied["code"], "not_calibrated", "{text}");
        has(
            &text,
            &[
                "`steadyhand calibrate joints --arm right`",
                "`steadyhand calibrate touch tool --arm right --scene short",
                "`steadyhand teach sheet --arm right --scene short`",
            ],
        );
        let touch = ["calibrate", "touch", "tool", "--scene", "short"];
        let touch = [&touch[..], &["--joints", "0,0,0,0,0"]].concat();
        refused(shop.says(&touch), &["several arms", "--arm: left, right"]);
        done(
            shop.says(&["enable", "--scene", "short", "--arm", "right"]),
            &[],
        );
        let (text, drawn) = shop
            .node
            .told("align", &json!({"scene": "short", "arm": "right"}));
        assert_eq!(drawn["success"], true, "{text}");
        let read = json!({"scene": "short", "arm": "right", "measured": {"dx": 1}});
        let (text, aligned) = shop.node.told("align", &read);
        assert_eq!(aligned["success"], true, "{text}");
        done(shop.says(&["calibrate", "accept"]), &["calibration 1"]);
        // As an older file, which does not say on which arm it was made.
        let record = |number: u32| {
            let name = format!("state/calibration/{number:06}.toml");
            shop.bench.path(&name)
        };
        let kept = std::fs::read_to_string(record(1)).unwrap();
        has(&kept, &["arm_name = \"right\"\n"]);
        std::fs::write(record(1), kept.replace("simulated = false\n", "")).unwrap();
        let restore = ["calibrate", "restore", "1"];
        refused(shop.says(&restore), &["--arm: left, right"]);
        let named = |arm| [&restore[..], &["--arm", arm]].concat();
        refused(shop.says(&named("rihgt")), &["Valid: left, right"]);
        done(shop.says(&named("right")), &["calibration 2"]);
        let kept = std::fs::read_to_string(record(2)).unwrap();
        has(&kept, &["simulated = false\n"]);
        // This one says it.
        refused(
            shop.says(&["calibrate", "restore", "2", "--arm", "left"]),
            &["--arm"],
        );
    });
}

#[test]
fn an_import_is_for_the_arm_that_is_named() {
    unless_starved(|| {
        let shop = Workshop::new();
        let export = ["calibrate", "export", "--lerobot", "--arm", "right"];
        let exported = shop.bench.run(&export);
        let file = shop.bench.path("lerobot.json");
        std::fs::write(&file, exported.stdout).unwrap();
        let import = |arm| {
            let file = file.to_str().unwrap();
            shop.says(&["calibrate", "import", file, "--arm", arm])
        };
        refused(import("so101"), &["several arms", "--arm: left, right"]);
        done(import("right"), &["add --accept"]);
    });
}

const CAMERA: &str = r#"
[[cameras]]
name = "rcam"
arm = "right"
size_px = [1280, 960]
focal_px = [900.0, 900.0]
source = "simulator"
[cameras.simulated]
stands_m = [0.01, -0.402, 0.345]
looks_at_m = [0.0, -0.175, 0.005]
"#;

#[test]
fn a_camera_is_calibrated_by_the_command_that_a_refusal_names() {
    unless_starved(|| {
        let shop = Workshop::with(CAMERA);
        let (text, refused) = shop
            .node
            .told("stroke", &json!({"scene": "sheeted", "arm": "right"}));
        assert_eq!(refused["code"], "sheet_unseen", "{refused:#}");
        has(
            &text,
            &["`steadyhand calibrate camera --camera rcam --scene"],
        );
        let camera = ["calibrate", "camera", "--scene", "sheeted"];
        done(
            shop.says(&[&camera[..], &["--camera", "rcam"]].concat()),
            &["verdict: good"],
        );
        done(shop.says(&camera), &["verdict: good"]);
    });
}

#[test]
fn the_doctor_examines_the_port_of_each_arm_or_of_the_named_one() {
    unless_starved(|| {
        let bench = Bench::new();
        let (_good, port) = bench.sim(&["--scene", "short"]);
        let file = bench.path("node.toml");
        let arm = |name: &str, model: &str, port: &str| {
            format!(
                "[[arms]]\nname = \"{name}\"\nmodel = \"{model}\"\nport = \"{port}\"\napart = true\n"
            )
        };
        let arms = [
            arm("left", "so101", &port),
            arm("right", "koch", "/dev/gone"),
        ];
        std::fs::write(&file, arms.concat()).unwrap();
        let doctor = |more: &[&str]| {
            let head = ["--config", file.to_str().unwrap(), "doctor"];
            let (code, text) = bench.said(&[&head[..], more].concat());
            (code == 0, text)
        };
        refused(doctor(&[]), &["arm left", "arm right", "/dev/gone"]);
        for right in ["right", "koch"] {
            let text = refused(doctor(&["--arm", right]), &["/dev/gone"]);
            assert!(!text.contains(&port), "{text}");
        }
        let text = doctor(&["--arm", "left"]).1;
        assert!(
            text.contains(&port) && !text.contains("/dev/gone"),
            "{text}"
        );
        refused(doctor(&["--arm", "thrid"]), &["left, right"]);
        // A simulated arm of the file says what should be at another port.
        std::fs::write(&file, arm("left", "so101", "simulator")).unwrap();
        let text = doctor(&[&port, "--arm", "left"]).1;
        has(&text, &["that answer"]);
        refused(doctor(&[&port, "--arm", "rihgt"]), &["arms: left"]);
        refused(doctor(&["--arm", "rihgt"]), &["Valid: left"]);
        done(doctor(&["--arm", "so101"]), &["arm left of"]);
        let arms = [
            arm("left", "so101", "simulator"),
            arm("right", "so101", &port),
        ];
        std::fs::write(&file, arms.concat()).unwrap();
        let names = "arms: left, right";
        refused(doctor(&["--arm", "rihgt"]), &["`rihgt`", names]);
        // Without an arm nothing of the scenes' folder is asked for.
        std::fs::remove_dir_all(bench.path("scenes")).unwrap();
        let output = bench.run(&["doctor", &port]);
        has(&String::from_utf8_lossy(&output.stdout), &["that answer"]);
    });
}

#[test]
fn a_reset_is_of_the_arm_that_needs_it_and_answers_name_their_arm() {
    unless_starved(|| {
        let shop = Workshop::new();
        let draw = |arm: &str, scene: &str| {
            shop.node
                .told("stroke", &json!({"scene": scene, "arm": arm}))
        };
        let (text, drawn) = draw("right", "short");
        assert_eq!(drawn["success"], true, "{text}");
        assert!(text.starts_with("right: "), "{text}");
        assert_eq!(drawn["understood"]["arm"], "right");
        let (text, drawn) = shop.node.told("stroke", &json!({"scene": "short"}));
        assert!(text.starts_with("left: "), "{text}");
        assert_eq!(drawn["understood"]["arm"], "left");
        has(
            &shop.node.told("list_nodes", &json!({})).0,
            &["left (simulated so101)", "third (simulated koch)"],
        );
        let jobs = done(shop.says(&["jobs"]), &[]);
        has(&jobs, &[" right ", " left "]);
        // A stop latches all of them: the answer says which ones still wait.
        assert_eq!(shop.node.call("stop", &json!({}))["success"], true);
        let (text, reset) = shop.node.told("reset", &json!({}));
        assert_eq!(reset["understood"]["arm"], "left", "{text}");
        has(
            &text,
            &[
                "left: ",
                "arm right",
                "(stopped: call `reset`)",
                r#"reset {"arm":"right"}"#,
            ],
        );
        // Now the first one needs none, and two could be meant.
        let (text, refused_call) = shop.node.told("reset", &json!({}));
        assert_eq!(refused_call["code"], "which_arm", "{text}");
        has(&text, &["arm right", "arm third", "nothing moved"]);
        let (text, reset) = shop.node.told("reset", &json!({"arm": "third"}));
        assert_eq!(reset["success"], true, "{text}");
        // One is left, so that one is meant.
        let (text, reset) = shop.node.told("reset", &json!({}));
        assert_eq!(reset["understood"]["arm"], "right", "{text}");
        has(&text, &["right: "]);
        // An arm that merely stands elsewhere is not moved unasked.
        done(
            shop.says(&[
                "jog", "--scene", "short", "--step", "j1+5", "--arm", "right",
            ]),
            &[],
        );
        let (text, reset) = shop.node.told("reset", &json!({}));
        assert_eq!(reset["understood"]["arm"], "left", "{text}");
        has(&text, &["arm right"]);
        // What an operator stopped is told with the command for that arm.
        done(shop.says(&["stop"]), &[]);
        let stroke = json!({"scene": "short", "arm": "right"});
        let (denied, _) = shop.node.told("stroke", &stroke);
        has(&denied, &["right: ", "`steadyhand reset --arm right`"]);
    });
}

#[test]
fn the_first_reset_of_an_arm_says_which_scenes_it_has() {
    unless_starved(|| {
        let bench = Bench::at_test_rate();
        let (_sim, port) = bench.sim(&["--arm", "koch"]);
        let arms = [("left", "so101", "simulator"), ("third", "koch", &port)];
        let arms = arms.map(|(name, model, port)| {
            format!("[[arms]]\nname = \"{name}\"\nmodel = \"{model}\"\nport = \"{port}\"\n\n")
        });
        let head = format!("name = \"workshop\"\nstate = {:?}\n\n", bench.state());
        let file = bench.path("node.toml");
        std::fs::write(&file, head + &arms.concat()).unwrap();
        let node = bench.serve(&["--config", file.to_str().unwrap()]);
        let shop = Workshop { bench, node };
        refused(
            shop.says(&["reset", "--arm", "third"]),
            &["`steadyhand reset --arm third --scene NAME`", "koch"],
        );
    });
}

#[test]
fn a_scene_of_another_arm_is_refused_with_the_name_of_that_arm() {
    unless_starved(|| {
        let shop = Workshop::new();
        let (text, refused_call) = shop.node.told("stroke", &json!({"scene": "koch"}));
        assert_eq!(refused_call["code"], "scene", "{text}");
        has(&text, &["`arm`: third"]);
        assert_eq!(refused_call.get("corrected_call"), None, "{text}");
        let (text, refused_call) = shop
            .node
            .told("stroke", &json!({"scene": "koch", "arm": "thrid"}));
        let valid = &refused_call["complaints"][0]["valid"];
        assert_eq!(valid[0], "third", "{text}");
        // The arms of the scene are tested, and the others are left out.
        let tested = shop.says(&["selftest", "--scene", "short", "--rounds", "1"]);
        done(tested, &["right (simulated so101)", "third is not"]);
    });
}

#[test]
fn what_another_arm_left_is_told_with_the_call_that_resumes_it() {
    unless_starved(|| {
        let shop = Workshop::new();
        let (text, drawn) = shop.node.told("stroke", &json!({"scene": "short"}));
        assert_eq!(drawn["success"], true, "{text}");
        let url = shop.node.url.clone();
        let bench = &shop.bench;
        let stopped = std::thread::scope(|scope| {
            let stroke = [
                "call",
                "--json",
                "--node",
                &url,
                "stroke",
                r#"{"scene":"short","arm":"right"}"#,
            ];
            let drawing = scope.spawn(move || bench.run(&stroke));
            let is_half = || {
                let sensed = shop.node.call("sense", &json!({"arm": "right"}));
                sensed["job"]["done"].as_u64().is_some_and(|done| done >= 1)
            };
            let began = std::time::Instant::now();
            while !is_half() && began.elapsed() < support::PATIENCE {
                std::thread::yield_now();
            }
            shop.node.call("stop", &json!({}));
            drawing.join().unwrap()
        });
        let stopped: Value = serde_json::from_slice(&stopped.stdout).unwrap();
        if stopped["success"] == true {
            panic!("it was drawn before it could be stopped");
        }
        has(
            &stopped.to_string(),
            &[r#"stroke {\"resume\":true,\"arm\":\"right\"}"#],
        );
        let (text, refused_call) = shop
            .node
            .told("stroke", &json!({"resume": true, "scene": "short"}));
        has(&text, &["right"]);
        assert_eq!(
            refused_call["corrected_call"]["arguments"],
            json!({"resume": true, "arm": "right", "dry_run": true}),
            "{text}"
        );
    });
}
