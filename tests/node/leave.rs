//! Tests that what a person allowed is done, and nothing else: leave and approval that end, designs that were
//! swapped, drawings that are gone on with, and what is kept of them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use steadyhand::calib::{
    CalibrationKind, CalibrationOrigin, CalibrationRecord, CalibrationSession, CalibrationStore,
    FileValues, FitVerdict,
};
use steadyhand::config::{BeforeDrawing, BeforeDrawingEntry, NodeFile};
use steadyhand::motion::MotionHandle;
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::plan::SpanKind;
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::tools::PendingPlan;
use support::local_node::{LocalNode, scenes};
use support::{Bench, Caller, PATIENCE, until};

/// Three lines of 60 mm: about ten seconds of arm time.
const LINES: &str =
    "[[[0.0, 0.0], [60.0, 0.0]], [[60.0, 12.0], [0.0, 12.0]], [[0.0, 24.0], [60.0, 24.0]]]";

const OTHER_LINES: &str = "[[[0.0, 0.0], [31.0, 0.0]]]";

/// A node with a simulated arm in this process, whose clock the test can advance.
struct TestNode(LocalNode);

impl Deref for TestNode {
    type Target = LocalNode;

    fn deref(&self) -> &LocalNode {
        &self.0
    }
}

impl TestNode {
    /// Starts a node with nothing enabled.
    fn new(file: NodeFile) -> Self {
        let permits = PermitRegistry::none();
        Self(LocalNode::at_rest(Bench::new(), file, "short", permits))
    }

    fn draws(&self, lines: &str) {
        self.bench.scene("short", &support::scene("short", lines));
    }

    fn scene(&self) -> Arc<Scene> {
        scenes(&self.bench).scene("short", None).unwrap()
    }

    /// Enables the scene as it is now, for as long as the node runs.
    fn enable(&self) {
        enable(self.motion(), &self.scene());
    }

    /// Calls a tool as a model.
    async fn call(&self, tool: &str, arguments: Value) -> Map<String, Value> {
        self.call_as(ActorRank::Planner, tool, arguments).await
    }

    /// Waits for a plan that needs approval, and returns it.
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
        self.draws_line(Some(1)).await;
        let ticket = self.motion().stop(ActorRank::Planner, false);
        assert!(self.motion().stopped(ticket).await.unwrap().verified);
    }
}

fn message_of(result: &Map<String, Value>) -> &str {
    result["message"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_design_is_not_drawn_under_leave_for_the_one_before() {
    let test_node = TestNode::new(NodeFile::default());
    test_node.enable();
    let before = test_node.sim.true_joints();
    test_node.draws(OTHER_LINES);
    let refused = test_node.call("stroke", json!({"scene": "short"})).await;
    assert_eq!(refused["code"], "needs_enabling", "{refused:#?}");
    assert!(message_of(&refused).contains("nothing moved"));
    assert!(test_node.sim.true_joints().distance_max(&before) < 1e-3);
    assert!(test_node.motion().snapshot().progress.is_none());
    test_node.enable();
    let drawn = test_node.call("stroke", json!({"scene": "short"})).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_for_one_plan_and_not_for_what_was_swapped_in() {
    let test_node = TestNode::new(NodeFile {
        before_drawing: BeforeDrawingEntry::All(BeforeDrawing::Person),
        ..NodeFile::default()
    });
    test_node.enable();
    let first = async {
        let pending = test_node.pending().await;
        assert!(pending.words.contains("revision"), "{pending:?}");
        test_node.node.approve(&pending.job, &pending.plan).unwrap();
        pending
    };
    let arguments = json!({"scene": "short"});
    let (drawn, first) = tokio::join!(test_node.call("stroke", arguments.clone()), first);
    assert_eq!(drawn["plan_hash"], first.plan.as_str(), "{drawn:#?}");
    test_node.draws(OTHER_LINES);
    test_node.enable();
    let before = test_node.sim.true_joints();
    let second = async {
        let pending = test_node.pending().await;
        assert_ne!((&pending.job, &pending.plan), (&first.job, &first.plan));
        // The word that was given before, and the same word for this job.
        for (job, plan) in [(&first.job, &first.plan), (&pending.job, &first.plan)] {
            let refused = test_node.node.approve(job, plan);
            assert!(refused.is_err(), "{refused:?}");
        }
        assert!(test_node.sim.true_joints().distance_max(&before) < 0.05);
        let clock = test_node.motion().clock();
        clock.jump_to(clock.now().after(Duration::from_secs(601)));
        pending
    };
    let (refused, second) = tokio::join!(test_node.call("stroke", arguments), second);
    // Nobody allowed it in time, and too late is too late.
    assert_eq!(refused["job"]["state"], "refused", "{refused:#?}");
    assert!(message_of(&refused).contains("10 min"), "{refused:#?}");
    assert!(
        message_of(&refused).contains("nothing moved"),
        "{refused:#?}"
    );
    assert!(test_node.node.approve(&second.job, &second.plan).is_err());
    assert!(test_node.sim.true_joints().distance_max(&before) < 0.05);
}

/// Enables a scene for as long as the node runs.
fn enable(motion: &MotionHandle, scene: &Scene) {
    let (permits, now) = (motion.permits(), motion.clock().now());
    let enabled = permits.enable(scene, now, None, permits.orders_given());
    enabled.unwrap();
}

/// Enables the shipped canvas on the arm of a house.
fn enable_canvas(test_node: &TestNode) {
    let canvas = scenes(&test_node.bench).scene("canvas", None).unwrap();
    enable(test_node.motion(), &canvas);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_hardware_a_person_approves_each_design_of_a_caller() {
    let test_node = TestNode::new(NodeFile::default());
    let write = |dry_run: bool| json!({"scene": "canvas", "text": "l", "dry_run": dry_run});
    let refused = test_node.call("stroke", write(false)).await;
    assert_eq!(refused["code"], "needs_enabling", "{refused:#?}");
    assert!(
        message_of(&refused).contains("enable --scene canvas "),
        "{refused:#?}"
    );
    enable_canvas(&test_node);
    // A planner's look at the plan does not count as a person's approval.
    let shown = test_node.call("stroke", write(true)).await;
    assert_eq!(shown["success"], true, "{shown:#?}");
    let before = test_node.sim.true_joints();
    let person = async {
        let pending = test_node.pending().await;
        assert!(pending.words.contains("“l”"), "{pending:?}");
        assert_eq!(json!(pending.plan), shown["plan_hash"]);
        assert!(test_node.sim.true_joints().distance_max(&before) < 0.05);
        test_node.node.approve(&pending.job, &pending.plan).unwrap();
    };
    let call = shown["draw_call"]["arguments"].clone();
    let (drawn, ()) = tokio::join!(test_node.call("stroke", call), person);
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_file_may_ask_for_a_previewed_design_instead_of_a_person() {
    let test_node = TestNode::new(NodeFile {
        before_drawing: BeforeDrawingEntry::Scenes(
            [("canvas".to_owned(), BeforeDrawing::Preview)].into(),
        ),
        ..NodeFile::default()
    });
    enable_canvas(&test_node);
    let refused = test_node.call("stroke", json!({"text": "l"})).await;
    assert_eq!(refused["code"], "needs_preview", "{refused:#?}");
    let shown = test_node
        .call("stroke", json!({"text": "l", "dry_run": true}))
        .await;
    let other = json!({"text": "i", "plan": shown["plan_hash"]});
    let refused = test_node.call("stroke", other).await;
    assert_eq!(refused["code"], "plan_changed", "{refused:#?}");
    let call = shown["draw_call"]["arguments"].clone();
    let drawn = test_node.call("stroke", call).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    assert_eq!(drawn["plan_hash"], shown["plan_hash"]);
}

/// Another zero for the first joint, as a calibration would write it.
fn calibrated(zero_tick: i32) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenes/arms/so101.toml");
    let text = std::fs::read_to_string(path).unwrap();
    text.replacen("zero_tick = 2048", &format!("zero_tick = {zero_tick}"), 1)
}

/// The sheet was touched with a tool that has since been recalibrated.
fn went_stale(test_node: &TestNode) {
    let scene = test_node.scene();
    let session = CalibrationSession {
        kind: CalibrationKind::Sheet,
        scene: scene.name.clone(),
        pen: scene.pens[0].name.clone(),
        arm: scene.arm.file.name.clone(),
        frame: scene.arm.file.frame,
        name: String::new(),
        basis: "another tool".to_owned(),
        drawn_on: String::new(),
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
    let store =
        CalibrationStore::of_state(&test_node.bench.path("state"), &SceneLibrary::default());
    let lock = store.lock().unwrap();
    store.keep(&record, &lock).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drawing_is_gone_on_with_only_where_nothing_was_changed() {
    let test_node = TestNode::new(NodeFile::default());
    test_node.draws(LINES);
    test_node.enable();
    let stopped = test_node.call("stroke", json!({"scene": "short"}));
    let (stopped, ()) = tokio::join!(stopped, test_node.stop_while_it_draws());
    assert_eq!(stopped["code"], "stopped", "{stopped:#?}");
    assert_eq!(test_node.call("reset", json!({})).await["success"], true);
    let stands = test_node.sim.true_joints();
    let refused_with = async |code: &str, expected: &str| {
        for arguments in [
            json!({"resume": true}),
            json!({"resume": true, "dry_run": true}),
        ] {
            let refused = test_node.call("stroke", arguments).await;
            assert_eq!(refused["code"], code, "{refused:#?}");
            assert!(message_of(&refused).contains(expected), "{refused:#?}");
        }
        assert!(test_node.sim.true_joints().distance_max(&stands) < 1e-3);
    };
    test_node.draws(OTHER_LINES);
    test_node.enable();
    refused_with("scene_changed", "from revision").await;
    test_node.draws(LINES);
    let arm = test_node.bench.path("scenes/arms/so101.toml");
    std::fs::write(&arm, calibrated(2100)).unwrap();
    refused_with("scene_changed", "or calibration").await;
    std::fs::remove_file(&arm).unwrap();
    test_node.enable();
    let stale = test_node.bench.path("state/calibration");
    went_stale(&test_node);
    refused_with("stale_calibration", "out of date").await;
    std::fs::remove_dir_all(stale).unwrap();
    let both = json!({"resume": true, "again": true});
    let refused = test_node.call("stroke", both).await;
    assert_eq!(refused["code"], "resume_or_again", "{refused:#?}");
    assert!(test_node.sim.true_joints().distance_max(&stands) < 1e-3);
    test_node.enable();
    // From where the arm stands now, whatever it stood like when it was stopped.
    let drawn = test_node.call("stroke", json!({"resume": true})).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    let sensed = test_node.call("sense", json!({})).await;
    assert!(
        sensed.get("unfinished").is_none_or(Value::is_null),
        "{sensed:#?}"
    );
}

/// Draws in a scene, and stops the arm while it is on its way to the sheet.
async fn stopped_before_ink(test_node: &TestNode, scene: &str) {
    let mut snapshots = test_node.motion().watch();
    let stop = async {
        let is_on_its_way = |doing: SpanKind| doing == SpanKind::Approach;
        let begins = snapshots.wait_for(|observed| {
            let at = observed.progress.as_ref();
            at.is_some_and(|at| is_on_its_way(at.doing))
        });
        drop(begins.await.unwrap());
        let ticket = test_node.motion().stop(ActorRank::Planner, false);
        assert!(test_node.motion().stopped(ticket).await.unwrap().verified);
    };
    let stopped = test_node.call("stroke", json!({ "scene": scene }));
    let (stopped, ()) = tokio::join!(stopped, stop);
    assert_eq!(stopped["code"], "stopped", "{stopped:#?}");
    assert_eq!(stopped["drawn_mm"], 0.0, "{stopped:#?}");
    assert_eq!(test_node.call("reset", json!({})).await["success"], true);
}

/// Adds a scene and allows it beside `short`.
fn adds_scene(test_node: &TestNode, name: &str, lines: &str) {
    test_node.bench.scene(name, &support::scene(name, lines));
    let scene = scenes(&test_node.bench).scene(name, None).unwrap();
    enable(test_node.motion(), &scene);
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_is_about_the_last_drawing_of_the_named_scene() {
    let test_node = TestNode::new(NodeFile::default());
    test_node.enable();
    adds_scene(&test_node, "other", OTHER_LINES);
    let drawn = test_node.call("stroke", json!({"scene": "short"})).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    stopped_before_ink(&test_node, "other").await;
    for (arguments, code, job) in [
        (json!({"resume": true}), "nothing_to_resume", "job-2"),
        (
            json!({"resume": true, "scene": "other"}),
            "nothing_to_resume",
            "job-2",
        ),
        (
            json!({"resume": true, "scene": "short"}),
            "drawing_complete",
            "job-1",
        ),
        (
            json!({"resume": true, "scene": "default"}),
            "nothing_to_resume",
            "unfinished",
        ),
    ] {
        let refused = test_node.call("stroke", arguments.clone()).await;
        assert_eq!(refused["code"], code, "{arguments} {refused:#?}");
        assert!(message_of(&refused).contains(job), "{refused:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_asks_which_drawing_is_meant_where_another_was_begun_since() {
    let test_node = TestNode::new(NodeFile::default());
    test_node.draws(LINES);
    test_node.enable();
    adds_scene(&test_node, "other", OTHER_LINES);
    let stopped = test_node.call("stroke", json!({"scene": "short"}));
    let (stopped, ()) = tokio::join!(stopped, test_node.stop_while_it_draws());
    assert_eq!(stopped["code"], "stopped", "{stopped:#?}");
    assert_eq!(test_node.call("reset", json!({})).await["success"], true);
    stopped_before_ink(&test_node, "other").await;
    let stands = test_node.sim.true_joints();
    let refused = test_node.call("stroke", json!({"resume": true})).await;
    assert_eq!(refused["code"], "resume_differs", "{refused:#?}");
    assert!(test_node.sim.true_joints().distance_max(&stands) < 1e-3);
    let mut call = refused["corrected_call"]["arguments"].clone();
    let shown = test_node.call("stroke", call.clone()).await;
    assert_eq!(shown["success"], true, "{shown:#?}");
    call.as_object_mut().unwrap().remove("dry_run");
    let drawn = test_node.call("stroke", call).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_refuses_a_scene_overlay_or_arm_of_another_job() {
    let test_node = TestNode::new(NodeFile::default());
    test_node.draws(LINES);
    test_node
        .bench
        .scene("other", &support::scene("other", OTHER_LINES));
    test_node.enable();
    let stopped = test_node.call("stroke", json!({"scene": "short"}));
    let (stopped, ()) = tokio::join!(stopped, test_node.stop_while_it_draws());
    assert_eq!(stopped["code"], "stopped", "{stopped:#?}");
    assert_eq!(test_node.call("reset", json!({})).await["success"], true);
    test_node.enable();
    let stands = test_node.sim.true_joints();
    for (named, expected) in [
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
            let refused = test_node.call("stroke", arguments.clone()).await;
            assert_eq!(
                refused["code"], "resume_differs",
                "{arguments}: {refused:#?}"
            );
            let message = message_of(&refused);
            assert!(
                message.contains(expected) && message.contains("scene \"short\""),
                "{message}"
            );
            assert!(message.contains("; nothing moved"), "{message}");
            // A refusal offers nothing that moves.
            assert!(!message.contains("draws that"), "{message}");
            let corrected = refused["corrected_call"]["arguments"].clone();
            assert_eq!(corrected["dry_run"], true, "{corrected}");
            let shown = test_node.call("stroke", corrected.clone()).await;
            assert_eq!(shown["success"], true, "{corrected}: {shown:#?}");
            assert_eq!(shown["understood"]["scene"], "short", "{shown:#?}");
            assert!(test_node.sim.true_joints().distance_max(&stands) < 1e-3);
        }
    }
    // What is named as it is, or not named, goes on with it.
    let drawn = test_node
        .call("stroke", json!({"scene": "short", "resume": true}))
        .await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    assert_eq!(drawn["understood"]["scene"], "short");
    assert!(drawn["understood"].get("meta").is_none(), "{drawn:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_resumed_call_says_it_understood_is_what_is_drawn() {
    let test_node = TestNode::new(NodeFile::default());
    test_node.draws(LINES);
    let crosses = scenes(&test_node.bench)
        .scene("short", Some("crosses"))
        .unwrap();
    enable(test_node.motion(), &crosses);
    let with_crosses = json!({"scene": "short", "meta": "crosses"});
    let stopped = test_node.call("stroke", with_crosses);
    let (stopped, ()) = tokio::join!(stopped, test_node.stop_while_it_draws());
    assert_eq!(stopped["code"], "stopped", "{stopped:#?}");
    assert_eq!(test_node.call("reset", json!({})).await["success"], true);
    enable(test_node.motion(), &crosses);
    let drawn = test_node.call("stroke", json!({"resume": true})).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    for (key, value) in [("scene", "short"), ("meta", "crosses"), ("arm", "arm")] {
        assert_eq!(drawn["understood"][key], value, "{drawn:#?}");
    }
    // The journal says the same.
    let id = drawn["job"]["id"].as_str().unwrap();
    let record = test_node.node.job_record(id).unwrap();
    let kept: Value = serde_json::from_str(record["understood"].as_str().unwrap()).unwrap();
    assert_eq!(kept, drawn["understood"]);
}

/// A call that is answered before its motion ends leaves the job to the node: the same call finds it,
/// another caller gets its owner and progress, and nothing is drawn twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_outlasts_its_call_is_the_nodes() {
    let test_node = TestNode::new(NodeFile {
        answer_within_s: 1,
        ..NodeFile::default()
    });
    let row = |row: u32| format!("[[0.0, {y}.0], [60.0, {y}.0]]", y = 2 * row);
    let rows: Vec<String> = (0..20).map(row).collect();
    test_node.draws(&format!("[{}]", rows.join(", ")));
    test_node.enable();
    let arguments = json!({"scene": "short"});
    let begun = test_node.call("stroke", arguments.clone()).await;
    assert_eq!(begun["success"], true, "{begun:#?}");
    let job = begun["job"]["id"].clone();
    let mut snapshots = test_node.motion().watch();
    let moves = snapshots.wait_for(|observed| observed.progress.is_some());
    drop(moves.await.unwrap());
    let other = test_node.call("align", arguments.clone()).await;
    assert_eq!(other["code"], "busy", "{other:#?}");
    for expected in [job.as_str().unwrap(), "a stroke by Planner", " of 20 done"] {
        assert!(
            message_of(&other).contains(expected),
            "{expected}: {other:#?}"
        );
    }
    let same = test_node.call("stroke", json!({"scene": "Short"})).await;
    assert_eq!(same["job"]["id"], job, "{same:#?}");
    let began = Instant::now();
    let done = loop {
        let done = test_node.call("stroke", arguments.clone()).await;
        assert_eq!(done["job"]["id"], job, "{done:#?}");
        if done["job"]["state"] == "reached" {
            break done;
        }
        assert!(began.elapsed() < PATIENCE * 4, "{done:#?}");
    };
    assert_eq!(done["success"], true);
    let once = test_node.call("stroke", arguments).await;
    assert_eq!(once["moved"], false, "{once:#?}");
    assert_eq!(once["job"]["id"], job);
    let jobs = steadyhand::job::past_jobs(&test_node.bench.path("state")).unwrap();
    let drawn = jobs.iter().flatten().filter(|job| job.moved);
    assert_eq!(drawn.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_kept_to_a_number_and_an_age() {
    // The last that moved stays whatever its age: it says where the pen is.
    for (jobs, days, most) in [(2, 30, 3), (100, 0, 2)] {
        let test_node = TestNode::new(NodeFile {
            keep_jobs: jobs,
            keep_jobs_days: days,
            ..NodeFile::default()
        });
        test_node.enable();
        for _ in 0..5 {
            let arguments = json!({"scene": "short", "again": true});
            let drawn = test_node.call("stroke", arguments).await;
            assert_eq!(drawn["success"], true, "{drawn:#?}");
        }
        let kept = steadyhand::job::past_jobs(&test_node.bench.path("state")).unwrap();
        let names: Vec<String> = kept.into_iter().map(|job| job.unwrap().id).collect();
        assert!(names.len() <= most, "{names:?}");
        // The newest are.
        assert_eq!(names.last().map(String::as_str), Some("job-5"));
    }
}

/// A person takes an arm over from a model, and the log names the model.
#[tokio::test(flavor = "multi_thread")]
async fn an_arm_that_is_taken_over_is_in_the_audit_log() {
    let test_node = TestNode::new(NodeFile::default());
    test_node.enable();
    let arguments = json!({"scene": "short"});
    let drawn = test_node.call("stroke", arguments.clone()).await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    let again = json!({"scene": "short", "again": true});
    let drawn = test_node
        .call_as(ActorRank::Operator, "stroke", again)
        .await;
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    test_node.node.audit.flush();
    let log = std::fs::read_to_string(test_node.bench.path("state/audit.log")).unwrap();
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

/// Waits for a job that is held, with its pen up.
fn wait_until_held(bench: &Bench, node: &str) -> Value {
    let sense = || bench.call_at(node, &["sense"]).1;
    until("held with its pen up", sense, |sensed| {
        sensed["job"]["state"] == "held" && sensed["tip"]["height_mm"].as_f64() > Some(6.0)
    })
}

/// A terminal that hung up takes no lines; the node still receives what was typed.
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
    let verb = |args: &[&str]| bench.run(args).status.code();
    assert_eq!(verb(&["disable"]), Some(0));
    assert_eq!(verb(&["enable", "--scene", "short"]), Some(0));
    std::thread::scope(|scope| {
        let stroke = || bench.call_at(node, &["stroke", r#"{"scene":"short"}"#]).1;
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
        let sense = || bench.call_at(node, &["sense"]).1;
        until("disabled", sense, |sensed| sensed["enabled"] == "nothing");
        let held = wait_until_held(&bench, node);
        let done = held["job"]["done"].as_u64().unwrap();
        assert!(done < 3, "{held:#}");
        assert_ne!(verb(&["resume"]), Some(0));
        assert_eq!(bench.call_at(node, &["sense"]).1["job"]["state"], "held");
        assert_eq!(verb(&["enable", "--scene", "short"]), Some(0));
        assert_eq!(verb(&["resume"]), Some(0));
        let drawn = drawn.join().unwrap();
        assert_eq!(drawn["job"]["state"], "reached", "{drawn:#}");
    });
}

/// A word that comes before the arm moves is heeded as one that comes after.
#[test]
fn a_hold_before_a_planned_job_moves_keeps_it_from_beginning() {
    let bench = Bench::new();
    let points = |row: usize| -> Vec<String> {
        let y = row as f64 / 10.0;
        (0..200)
            .map(|x| format!("[{}, {y}]", f64::from(x) / 4.0))
            .collect()
    };
    let lines: Vec<String> = (0..300)
        .map(|row| format!("[{}]", points(row).join(",")))
        .collect();
    bench.scene(
        "long",
        &support::scene("long", &format!("[{}]", lines.join(","))),
    );
    let served = bench.serve(&[]);
    let node = served.url.as_str();
    std::thread::scope(|scope| {
        let drawn = scope.spawn(|| bench.call_at(node, &["stroke", r#"{"scene":"long"}"#]).1);
        served.until_job("planning");
        let held = bench.run(&["hold"]);
        assert!(held.status.success(), "{held:?}");
        let drawn = drawn.join().unwrap();
        assert_eq!(drawn["success"], false, "{drawn:#}");
    });
    let sensed = bench.call_at(node, &["sense"]).1;
    assert_eq!(sensed["orders"][0]["order"], "hold", "{sensed:#}");
    assert!(bench.run(&["resume"]).status.success());
}
