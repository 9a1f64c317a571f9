//! Tests that what a person allowed is done, and nothing else: leave and approval that end, designs that were
//! swapped, drawings that are gone on with, and what is kept of them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use steadyhand::args::ReceivedArguments;
use steadyhand::calib::{
    CalibrationKind, CalibrationOrigin, CalibrationRecord, CalibrationSession, CalibrationStore,
    FileValues, FitVerdict,
};
use steadyhand::config::{CanvasApproval, NodeFile};
use steadyhand::motion::MotionHandle;
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::plan::SpanKind;
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::sim::ArmSimulator;
use steadyhand::tools::{Node, NodeStorage, PendingPlan};
use support::local_node::{attach_arm, call_tool};
use support::{Bench, PATIENCE};

/// Three lines of 60 mm: about ten seconds of arm time.
const LINES: &str =
    "[[[0.0, 0.0], [60.0, 0.0]], [[60.0, 12.0], [0.0, 12.0]], [[0.0, 24.0], [60.0, 24.0]]]";

const OTHER_LINES: &str = "[[[0.0, 0.0], [31.0, 0.0]]]";

/// A node with an arm in this process, whose time can be made to pass.
struct House {
    bench: Bench,
    node: Arc<Node>,
    sim: ArmSimulator,
}

impl House {
    /// With nothing enabled.
    fn new(file: NodeFile) -> Self {
        let bench = Bench::new();
        let scene = library(&bench).scene("short", None).unwrap();
        let (sim, arm) = attach_arm(&scene, &scene.rest_rad, PermitRegistry::none());
        let folder = bench.path("state");
        std::fs::create_dir_all(&folder).unwrap();
        let state = NodeStorage::open(folder, &file).unwrap();
        let node = Node::new(file, library(&bench), vec![arm], bench.path("out"), state);
        Self {
            node: Arc::new(node),
            bench,
            sim,
        }
    }

    fn motion(&self) -> &MotionHandle {
        &self.node.arms[0].motion
    }

    fn draws(&self, lines: &str) {
        self.bench.scene("short", &support::scene("short", lines));
    }

    fn scene(&self) -> Arc<Scene> {
        library(&self.bench).scene("short", None).unwrap()
    }

    /// Enables the scene as it is now, for as long as the node runs.
    fn enable(&self) {
        let now = self.motion().clock().now();
        self.motion()
            .permits()
            .enable(&self.scene(), now, None)
            .unwrap();
    }

    /// A model's call.
    async fn call(&self, tool: &str, arguments: Value) -> Map<String, Value> {
        self.call_as(ActorRank::Planner, tool, arguments).await
    }

    async fn call_as(&self, who: ActorRank, tool: &str, arguments: Value) -> Map<String, Value> {
        let (caller, arguments) = (format!("{who:?}"), ReceivedArguments::Value(arguments));
        let reply = call_tool(&self.node, (who, &caller), tool, arguments).await;
        reply.structured
    }

    /// Returns what waits for approval, as soon as something does.
    async fn pending(&self) -> PendingPlan {
        let began = Instant::now();
        loop {
            if let Some(pending) = self.node.pending().pop() {
                return pending;
            }
            assert!(began.elapsed() < PATIENCE, "nothing waits");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Stops the arm in the middle of its second stroke.
    async fn stop_while_it_draws(&self) {
        let mut snapshots = self.motion().watch();
        let draws = snapshots.wait_for(|seen| {
            let at = seen.progress.as_ref();
            at.is_some_and(|at| at.doing == SpanKind::Draw && at.item == Some(1))
        });
        drop(draws.await.unwrap());
        let ticket = self.motion().stop(ActorRank::Planner, false);
        assert!(self.motion().stopped(ticket).await.unwrap().verified);
    }
}

fn library(bench: &Bench) -> SceneLibrary {
    SceneLibrary::new(Some(bench.path("scenes")))
}

fn said(result: &Map<String, Value>) -> &str {
    result["message"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_design_is_not_drawn_under_leave_for_the_one_before() {
    let house = House::new(NodeFile::default());
    house.enable();
    let before = house.sim.true_joints();
    house.draws(OTHER_LINES);
    let refused = house.call("stroke", json!({"scene": "short"})).await;
    assert_eq!(refused["code"], "needs_enabling", "{refused:#?}");
    assert!(said(&refused).contains("nothing moved"));
    assert!(house.sim.true_joints().distance_max(&before) < 1e-3);
    assert!(house.motion().snapshot().progress.is_none());
    house.enable();
    let drawn = house.call("stroke", json!({"scene": "short"})).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_for_one_plan_and_not_for_what_was_swapped_in() {
    let house = House::new(NodeFile {
        require_approval: true,
        ..NodeFile::default()
    });
    house.enable();
    let first = async {
        let seen = house.pending().await;
        assert!(seen.words.contains("revision"), "{seen:?}");
        house.node.approve(&seen.job, &seen.plan).unwrap();
        seen
    };
    let arguments = json!({"scene": "short"});
    let (drawn, first) = tokio::join!(house.call("stroke", arguments.clone()), first);
    assert_eq!(drawn["plan_hash"], first.plan.as_str(), "{drawn:#?}");
    house.draws(OTHER_LINES);
    house.enable();
    let before = house.sim.true_joints();
    let second = async {
        let seen = house.pending().await;
        assert_ne!((&seen.job, &seen.plan), (&first.job, &first.plan));
        // The word that was given before, and the same word for this job.
        for (job, plan) in [(&first.job, &first.plan), (&seen.job, &first.plan)] {
            let refused = house.node.approve(job, plan);
            assert!(refused.is_err(), "{refused:?}");
        }
        assert!(house.sim.true_joints().distance_max(&before) < 0.05);
        let clock = house.motion().clock();
        clock.jump_to(clock.now().after(Duration::from_secs(601)));
        seen
    };
    let (refused, second) = tokio::join!(house.call("stroke", arguments), second);
    // Nobody allowed it in time, and too late is too late.
    assert_eq!(refused["job"]["state"], "refused", "{refused:#?}");
    assert!(
        said(&refused).contains("was not approved within 10 min"),
        "{refused:#?}"
    );
    assert!(said(&refused).contains("nothing moved"), "{refused:#?}");
    assert!(house.node.approve(&second.job, &second.plan).is_err());
    assert!(house.sim.true_joints().distance_max(&before) < 0.05);
}

/// Enables the shipped canvas on the arm of a house.
fn enable_canvas(house: &House) {
    let canvas = library(&house.bench).scene("canvas", None).unwrap();
    let now = house.motion().clock().now();
    house.motion().permits().enable(&canvas, now, None).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn on_hardware_a_person_approves_each_design_of_a_caller() {
    let house = House::new(NodeFile::default());
    let write = |dry_run: bool| json!({"scene": "canvas", "text": "l", "dry_run": dry_run});
    let refused = house.call("stroke", write(false)).await;
    assert_eq!(refused["code"], "needs_enabling", "{refused:#?}");
    assert!(
        said(&refused).contains("enable --scene canvas "),
        "{refused:#?}"
    );
    enable_canvas(&house);
    // The planner's own look at the plan is no word of a person.
    let shown = house.call("stroke", write(true)).await;
    assert_eq!(shown["success"], true, "{shown:#?}");
    let before = house.sim.true_joints();
    let person = async {
        let seen = house.pending().await;
        assert!(seen.words.contains("“l”"), "{seen:?}");
        assert_eq!(json!(seen.plan), shown["plan_hash"]);
        assert!(house.sim.true_joints().distance_max(&before) < 0.05);
        house.node.approve(&seen.job, &seen.plan).unwrap();
    };
    let call = shown["draw_call"]["arguments"].clone();
    let (drawn, ()) = tokio::join!(house.call("stroke", call), person);
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_file_may_ask_for_a_previewed_design_instead_of_a_person() {
    let house = House::new(NodeFile {
        canvas_approval: CanvasApproval::Preview,
        ..NodeFile::default()
    });
    enable_canvas(&house);
    let refused = house.call("stroke", json!({"text": "l"})).await;
    assert_eq!(refused["code"], "needs_preview", "{refused:#?}");
    let shown = house
        .call("stroke", json!({"text": "l", "dry_run": true}))
        .await;
    let other = json!({"text": "i", "plan": shown["plan_hash"]});
    let refused = house.call("stroke", other).await;
    assert_eq!(refused["code"], "plan_changed", "{refused:#?}");
    let call = shown["draw_call"]["arguments"].clone();
    let drawn = house.call("stroke", call).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
}

/// Another zero for the first joint, as a calibration would write it.
fn calibrated(zero_tick: i32) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenes/arms/so101.toml");
    let text = std::fs::read_to_string(path).unwrap();
    text.replacen("zero_tick = 2048", &format!("zero_tick = {zero_tick}"), 1)
}

/// The sheet was touched with a tool that was calibrated anew since.
fn went_stale(house: &House) {
    let scene = house.scene();
    let session = CalibrationSession {
        kind: CalibrationKind::Sheet,
        scene: scene.name.clone(),
        pen: scene.pens[0].name.clone(),
        arm: scene.arm.file.name.clone(),
        name: String::new(),
        basis: "another tool".to_owned(),
        probed: false,
        read_mm: None,
        seen: None,
        ink: None,
        origin: CalibrationOrigin::default(),
        touches: Vec::new(),
    };
    let record = CalibrationRecord {
        number: 1,
        at_ms: 1_760_000_000_000,
        method: "touches".to_owned(),
        servos: String::new(),
        verdict: FitVerdict::Good,
        reasons: Vec::new(),
        residuals_mm: Vec::new(),
        old: FileValues::new(),
        new: FileValues::new(),
        session,
    };
    let store = CalibrationStore::of_state(&house.bench.path("state"));
    let lock = store.lock().unwrap();
    store.keep(&record, &lock).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drawing_is_gone_on_with_only_where_nothing_was_changed() {
    let house = House::new(NodeFile::default());
    house.draws(LINES);
    house.enable();
    let stopped = house.call("stroke", json!({"scene": "short"}));
    let (stopped, ()) = tokio::join!(stopped, house.stop_while_it_draws());
    assert_eq!(stopped["code"], "stopped", "{stopped:#?}");
    assert_eq!(house.call("reset", json!({})).await["success"], true);
    let stands = house.sim.true_joints();
    let refused_with = async |code: &str, words: &str| {
        for arguments in [
            json!({"resume": true}),
            json!({"resume": true, "dry_run": true}),
        ] {
            let refused = house.call("stroke", arguments).await;
            assert_eq!(refused["code"], code, "{refused:#?}");
            assert!(said(&refused).contains(words), "{refused:#?}");
        }
        assert!(house.sim.true_joints().distance_max(&stands) < 1e-3);
    };
    house.draws(OTHER_LINES);
    house.enable();
    refused_with("scene_changed", "was revision").await;
    house.draws(LINES);
    let arm = house.bench.path("scenes/arms/so101.toml");
    std::fs::write(&arm, calibrated(2100)).unwrap();
    refused_with("scene_changed", "calibration was changed").await;
    std::fs::remove_file(&arm).unwrap();
    house.enable();
    let stale = house.bench.path("state/calibration");
    went_stale(&house);
    refused_with("stale_calibration", "touch it again").await;
    std::fs::remove_dir_all(stale).unwrap();
    let both = json!({"resume": true, "again": true});
    let refused = house.call("stroke", both).await;
    assert_eq!(refused["code"], "resume_or_again", "{refused:#?}");
    assert!(house.sim.true_joints().distance_max(&stands) < 1e-3);
    house.enable();
    // From where the arm stands now, whatever it stood like when it was stopped.
    let drawn = house.call("stroke", json!({"resume": true})).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    let sensed = house.call("sense", json!({})).await;
    assert!(
        sensed.get("unfinished").is_none_or(Value::is_null),
        "{sensed:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_refuses_a_scene_overlay_or_arm_that_the_unfinished_job_does_not_have() {
    let house = House::new(NodeFile::default());
    house.draws(LINES);
    house
        .bench
        .scene("other", &support::scene("other", OTHER_LINES));
    house.enable();
    let stopped = house.call("stroke", json!({"scene": "short"}));
    let (stopped, ()) = tokio::join!(stopped, house.stop_while_it_draws());
    assert_eq!(stopped["code"], "stopped", "{stopped:#?}");
    assert_eq!(house.call("reset", json!({})).await["success"], true);
    house.enable();
    let stands = house.sim.true_joints();
    for (named, words) in [
        (json!({"scene": "other"}), "\"other\""),
        (json!({"scene": "default"}), "\"default\""),
        (json!({"scene": "short", "meta": "crosses"}), "\"crosses\""),
        (json!({"meta": "leaf"}), "\"leaf\""),
    ] {
        for dry_run in [false, true] {
            let mut arguments = named.clone();
            arguments["resume"] = true.into();
            if dry_run {
                arguments["dry_run"] = true.into();
            }
            let refused = house.call("stroke", arguments.clone()).await;
            assert_eq!(
                refused["code"], "resume_differs",
                "{arguments}: {refused:#?}"
            );
            let message = said(&refused);
            assert!(
                message.contains(words) && message.contains("scene \"short\""),
                "{message}"
            );
            assert!(message.ends_with("nothing moved"), "{message}");
            // What was asked to move nothing is not corrected to what moves.
            assert_eq!(message.contains("draws that"), !dry_run, "{message}");
            let corrected = refused["corrected_call"]["arguments"].clone();
            assert_eq!(corrected["dry_run"], true, "{corrected}");
            let shown = house.call("stroke", corrected.clone()).await;
            assert_eq!(shown["success"], true, "{corrected}: {shown:#?}");
            assert_eq!(shown["understood"]["scene"], "short", "{shown:#?}");
            assert!(house.sim.true_joints().distance_max(&stands) < 1e-3);
        }
    }
    // What is named as it is, or not named, goes on with it.
    let drawn = house
        .call("stroke", json!({"scene": "short", "resume": true}))
        .await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    assert_eq!(drawn["understood"]["scene"], "short");
    assert!(drawn["understood"].get("meta").is_none(), "{drawn:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_resumed_call_says_it_understood_is_what_is_drawn() {
    let house = House::new(NodeFile::default());
    house.draws(LINES);
    let crosses = library(&house.bench)
        .scene("short", Some("crosses"))
        .unwrap();
    let now = house.motion().clock().now();
    house
        .motion()
        .permits()
        .enable(&crosses, now, None)
        .unwrap();
    let with_crosses = json!({"scene": "short", "meta": "crosses"});
    let stopped = house.call("stroke", with_crosses);
    let (stopped, ()) = tokio::join!(stopped, house.stop_while_it_draws());
    assert_eq!(stopped["code"], "stopped", "{stopped:#?}");
    assert_eq!(house.call("reset", json!({})).await["success"], true);
    let now = house.motion().clock().now();
    house
        .motion()
        .permits()
        .enable(&crosses, now, None)
        .unwrap();
    let drawn = house.call("stroke", json!({"resume": true})).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    for (key, value) in [("scene", "short"), ("meta", "crosses"), ("arm", "arm")] {
        assert_eq!(drawn["understood"][key], value, "{drawn:#?}");
    }
    // The journal says the same.
    let id = drawn["job"]["id"].as_str().unwrap();
    let record = house.node.job_record(id).unwrap();
    let kept: Value = serde_json::from_str(record["understood"].as_str().unwrap()).unwrap();
    assert_eq!(kept, drawn["understood"]);
}

/// A call that is answered before its motion ends leaves the job to the node: the same call finds it,
/// another one is told whose it is and how far along, and nothing is drawn twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_outlasts_its_call_is_the_nodes() {
    let house = House::new(NodeFile {
        answer_within_s: 1,
        ..NodeFile::default()
    });
    let row = |row: u32| format!("[[0.0, {y}.0], [60.0, {y}.0]]", y = 2 * row);
    let rows: Vec<String> = (0..20).map(row).collect();
    house.draws(&format!("[{}]", rows.join(", ")));
    house.enable();
    let arguments = json!({"scene": "short"});
    let begun = house.call("stroke", arguments.clone()).await;
    assert_eq!(begun["success"], true, "{begun:#?}");
    let job = begun["job"]["id"].clone();
    let mut snapshots = house.motion().watch();
    let moves = snapshots.wait_for(|seen| seen.progress.is_some());
    drop(moves.await.unwrap());
    let other = house.call("align", arguments.clone()).await;
    assert_eq!(other["code"], "busy", "{other:#?}");
    for words in [job.as_str().unwrap(), "a stroke by Planner", " of 20 done"] {
        assert!(said(&other).contains(words), "{words}: {other:#?}");
    }
    let same = house.call("stroke", json!({"scene": "Short"})).await;
    assert_eq!(same["job"]["id"], job, "{same:#?}");
    let began = Instant::now();
    let done = loop {
        let done = house.call("stroke", arguments.clone()).await;
        assert_eq!(done["job"]["id"], job, "{done:#?}");
        if done["job"]["state"] == "reached" {
            break done;
        }
        assert!(began.elapsed() < PATIENCE * 4, "{done:#?}");
    };
    assert_eq!(done["success"], true);
    let once = house.call("stroke", arguments).await;
    assert!(said(&once).contains("not again"), "{once:#?}");
    assert_eq!(once["job"]["id"], job);
    let jobs = steadyhand::job::past_jobs(&house.bench.path("state")).unwrap();
    let drawn = jobs.iter().flatten().filter(|job| job.moved);
    assert_eq!(drawn.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_kept_to_a_number_and_an_age() {
    for (jobs, days, most) in [(2, 30, 3), (100, 0, 1)] {
        let house = House::new(NodeFile {
            keep_jobs: jobs,
            keep_jobs_days: days,
            ..NodeFile::default()
        });
        house.enable();
        for _ in 0..5 {
            let arguments = json!({"scene": "short", "again": true});
            let drawn = house.call("stroke", arguments).await;
            assert_eq!(drawn["success"], true, "{drawn:#?}");
        }
        let kept = steadyhand::job::past_jobs(&house.bench.path("state")).unwrap();
        let names: Vec<String> = kept.into_iter().map(|job| job.unwrap().id).collect();
        assert!(names.len() <= most, "{names:?}");
        // The newest are.
        assert_eq!(names.last().map(String::as_str), Some("job-5"));
    }
}

/// A person takes an arm from the model that has it: the log says from whom.
#[tokio::test(flavor = "multi_thread")]
async fn an_arm_that_is_taken_over_is_in_the_audit_log() {
    let house = House::new(NodeFile::default());
    house.enable();
    let arguments = json!({"scene": "short"});
    let drawn = house.call("stroke", arguments.clone()).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    let again = json!({"scene": "short", "again": true});
    let drawn = house.call_as(ActorRank::Operator, "stroke", again).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    house.node.audit.flush();
    let log = std::fs::read_to_string(house.bench.path("state/audit.log")).unwrap();
    let taken: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("\tlease\t"))
        .collect();
    assert_eq!(taken.len(), 1, "{log}");
    for word in ["Planner", "Operator", "\"arm\""] {
        assert!(taken[0].contains(word), "{taken:?}");
    }
    steadyhand::job::verify(&log, None).unwrap();
}

fn call(bench: &Bench, node: &str, args: &[&str]) -> Value {
    bench.call(&[args, &["--node", node]].concat()).1
}

/// Waits for a job that is held, with its pen up.
fn wait_until_held(bench: &Bench, node: &str) -> Value {
    let began = Instant::now();
    loop {
        let sensed = call(bench, node, &["sense"]);
        let is_up = sensed["tip"]["height_mm"]
            .as_f64()
            .is_some_and(|mm| mm > 6.0);
        if sensed["job"]["state"] == "held" && is_up {
            return sensed;
        }
        assert!(began.elapsed() < PATIENCE, "{sensed:#}");
        sleep(Duration::from_millis(100));
    }
}

/// A terminal that hung up takes no lines; the node still hears what was typed.
#[cfg(target_os = "linux")]
#[test]
fn a_verb_reaches_its_node_though_standard_error_takes_nothing() {
    let bench = Bench::at_test_rate();
    let served = bench.serve(&[]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut disable = bench.command(&["disable"]);
    let run = disable.stderr(full.unwrap()).output().unwrap();
    assert_eq!(run.status.code(), Some(0));
    let (_, refused) = bench.call(&["stroke", r#"{"scene":"short"}"#, "--node", &served.url]);
    assert_eq!(refused["code"], "needs_enabling", "{refused:#}");
}

/// The node's own process, an operator's verbs, and time that runs out while the pen is down.
#[test]
fn leave_that_ends_during_a_job_holds_it_at_a_strokes_end() {
    let bench = Bench::new();
    bench.scene("short", &support::scene("short", LINES));
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    let verb = |words: &[&str]| bench.run(words).status.code();
    assert_eq!(verb(&["disable"]), Some(0));
    assert_eq!(verb(&["enable", "--scene", "short"]), Some(0));
    std::thread::scope(|scope| {
        let stroke = || call(&bench, node, &["stroke", r#"{"scene":"short"}"#]);
        let drawn = scope.spawn(stroke);
        bench.hold();
        wait_until_held(&bench, node);
        // So long as it takes to say so, on a machine that is busy.
        let began = Instant::now();
        loop {
            let _ = verb(&["enable", "--scene", "short", "--for", "3s"]);
            if verb(&["resume"]) == Some(0) {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "it does not go on");
        }
        // It says so again once those seconds are over.
        let began = Instant::now();
        while call(&bench, node, &["sense"])["enabled"] != "nothing" {
            assert!(began.elapsed() < PATIENCE, "leave never ends");
        }
        let held = wait_until_held(&bench, node);
        let done = held["job"]["done"].as_u64().unwrap();
        assert!(done < 3, "{held:#}");
        assert_ne!(verb(&["resume"]), Some(0));
        assert_eq!(call(&bench, node, &["sense"])["job"]["state"], "held");
        assert_eq!(verb(&["enable", "--scene", "short"]), Some(0));
        assert_eq!(verb(&["resume"]), Some(0));
        let drawn = drawn.join().unwrap();
        assert_eq!(drawn["job"]["state"], "reached", "{drawn:#}");
    });
}
