//! What becomes of a drawing that an operator began and that did not come to its end: how it is gone on with, by which commands, and
//! what is said of its pen after a restart.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use steadyhand::config::NodeFile;
use steadyhand::motion::MotionState;
use steadyhand::node::job_list::jobs_reply;
use steadyhand::node::operator_verb::{OperatorVerb, VerbReply};
use steadyhand::node::verb_dispatch::run_for_operator;
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::scene::DesignReplacement;
use steadyhand::sim::SimulatedFault;
use steadyhand::tools::{AttachedArm, DrawingAssent, DrawingOrder};
use steadyhand::units::JointVector;
use support::local_node::{LocalNode, scenes};
use support::{Bench, PATIENCE};

/// Three lines: about ten seconds of arm time.
const LINES: &str = "[[[0, 0], [60, 0]], [[60, 12], [0, 12]], [[0, 24], [60, 24]]]";

/// A node with an arm on an in-memory port, in the scene `short`, and the name of its state folder.
struct TestNode(LocalNode, String);

impl Deref for TestNode {
    type Target = LocalNode;

    fn deref(&self) -> &LocalNode {
        &self.0
    }
}

impl TestNode {
    fn new() -> Self {
        let bench = Arc::new(Bench::new());
        let rest_rad = scenes(&bench).scene("short", None).unwrap().rest_rad;
        Self::open(bench, "state", &rest_rad)
    }

    /// Opens a node on a state folder; its arm stands at these angles.
    fn open(bench: Arc<Bench>, state: &str, stands: &JointVector) -> Self {
        let (file, permits) = (NodeFile::default(), PermitRegistry::none());
        let node = LocalNode::open(bench, state, file, "short", stands, permits);
        Self(node, state.to_owned())
    }

    /// Opens a node on what this one has written so far, as after a restart or a crash at this moment.
    fn restarted(&self) -> Self {
        let state = format!("{}-later", self.1);
        let copied = std::process::Command::new("cp")
            .args([Path::new("-r"), &self.bench.path(&self.1)])
            .arg(self.bench.path(&state))
            .status();
        assert!(copied.unwrap().success());
        let stands = self.sim.true_joints();
        let test_node = Self::open(Arc::clone(&self.bench), &state, &stands);
        test_node.node.recover();
        test_node
    }

    fn seat(&self) -> &Arc<AttachedArm> {
        &self.node.arms[0]
    }

    /// Runs an operator's verb.
    async fn verb(&self, verb: OperatorVerb) -> VerbReply {
        let arrived = self.node.stamp_arrival();
        run_for_operator(&self.node, "operator", verb, arrived).await
    }

    async fn enable(&self) {
        let verb = OperatorVerb::Enable {
            scene: "short".to_owned(),
            meta: None,
            for_s: None,
            arm: None,
        };
        let printed = self.verb(verb).await;
        assert!(printed.done, "{}", printed.text);
    }

    async fn reset(&self) -> VerbReply {
        let (scene, arm) = (None, None);
        self.verb(OperatorVerb::Reset { scene, arm }).await
    }

    /// Calls a tool as a model.
    async fn call(&self, tool: &str, arguments: Value) -> Map<String, Value> {
        self.call_as(ActorRank::Planner, tool, arguments).await
    }

    /// Begins what an operator asks for, with their yes.
    async fn begin(&self, order: &DrawingOrder) -> Result<String, String> {
        let offer = self.node.offer_drawing(order).await;
        let offer = offer.map_err(|reason| reason.to_string())?;
        let assent = DrawingAssent {
            revision: offer.revision,
            plan: offer.plan.unwrap(),
            duration_s: offer.duration_s,
            orders_seen: offer.orders_seen,
        };
        let arrived = self.node.stamp_arrival();
        let begun = self.node.begin_drawing(order, &assent, &arrived).await;
        begun
            .map(|mut jobs| jobs.remove(0))
            .map_err(|reason| reason.to_string())
    }

    /// Begins to draw three lines and waits until the arm is in the middle of the second.
    async fn draws(&self) -> String {
        let job = self.begin(&drawing("house.json")).await.unwrap();
        self.draws_line(Some(1)).await;
        job
    }

    async fn is_held(&self) {
        let mut snapshots = self.motion().watch();
        let held = snapshots.wait_for(|observed| observed.state == MotionState::Held);
        drop(held.await.unwrap());
    }

    /// Waits for the end of a job; returns its record.
    async fn ended(&self, job: &str) -> Value {
        let began = Instant::now();
        loop {
            let reply = self.node.job(job).unwrap_or_default();
            if !reply["result"].is_null() {
                return reply["record"].clone();
            }
            assert!(began.elapsed() < PATIENCE, "{reply:#}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Three lines in the scene `short`, in place of its own design.
fn drawing(name: &str) -> DrawingOrder {
    let file = (name.to_owned(), LINES.as_bytes().to_vec());
    DrawingOrder {
        scene: Some("short".to_owned()),
        design: Some(DesignReplacement::from_files(vec![file])),
        ..DrawingOrder::default()
    }
}

/// What is left of the last drawing, whichever that is.
fn rest() -> DrawingOrder {
    DrawingOrder::default()
}

/// Returns the commands that a message names.
fn commands(printed: &str) -> Vec<&str> {
    let quoted = printed.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| text.starts_with("steadyhand "))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_drawn_only_where_no_other_scene_is_named() {
    let test_node = TestNode::new();
    let job = test_node.draws().await;
    assert!(test_node.verb(OperatorVerb::Stop).await.done);
    test_node.ended(&job).await;
    assert!(test_node.reset().await.done);
    let named = |scene: Option<&str>, overlay: Option<&str>| DrawingOrder {
        scene: scene.map(str::to_owned),
        overlay: overlay.map(str::to_owned),
        ..rest()
    };
    for (order, option) in [
        (named(Some("letters"), None), "leave --scene letters out"),
        (named(Some("nope"), None), "leave --scene nope out"),
        (named(None, Some("leaf")), "leave --meta leaf out"),
    ] {
        let reason = test_node.begin(&order).await.unwrap_err();
        assert!(
            reason.contains("house.json in short") && reason.contains(option),
            "{reason}"
        );
        assert!(reason.contains("Nothing moved"), "{reason}");
    }
    let job = test_node.begin(&named(Some("short"), None)).await.unwrap();
    assert_eq!(test_node.ended(&job).await["state"], "reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_after_a_stop_of_what_is_disabled_do_what_they_say() {
    let test_node = TestNode::new();
    let job = test_node.draws().await;
    assert!(test_node.verb(OperatorVerb::Disable).await.done);
    assert!(test_node.verb(OperatorVerb::Stop).await.done);
    test_node.ended(&job).await;
    let reply = test_node.node.job(&job).unwrap()["result"].clone();
    let next = ["enable --scene short --for 30m", "reset", "draw --resume"];
    assert_eq!(reply["next_commands"], json!(next), "{reply:#}");
    // A request for the second reports the first.
    let refused = test_node.begin(&rest()).await.unwrap_err();
    assert_eq!(commands(&refused), ["steadyhand reset"], "{refused}");
    let refused = test_node.reset().await;
    assert!(!refused.done, "{}", refused.text);
    let enable = "steadyhand enable --scene short --for 30m";
    assert_eq!(commands(&refused.text), [enable], "{}", refused.text);
    test_node.enable().await;
    let reset = test_node.reset().await;
    assert!(reset.done, "{}", reset.text);
    let job = test_node.begin(&rest()).await.unwrap();
    assert_eq!(test_node.ended(&job).await["state"], "reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planner_resets_after_an_operators_drawing_in_an_enabled_scene() {
    let test_node = TestNode::new();
    let job = test_node.begin(&drawing("house.json")).await.unwrap();
    assert_eq!(test_node.ended(&job).await["state"], "reached");
    assert!(test_node.verb(OperatorVerb::Disable).await.done);
    let refused = test_node.call("reset", json!({"scene": "short"})).await;
    assert_eq!(refused["code"], "needs_enabling", "{refused:#?}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.contains("`steadyhand enable --scene short --for 30m`"),
        "{message}"
    );
    test_node.enable().await;
    let reset = test_node.call("reset", json!({"scene": "short"})).await;
    assert_eq!(reset["success"], true, "{reset:#?}");
    // Permission for that scene does not cover an operator's own design.
    let other = test_node.begin(&drawing("dog.json")).await.unwrap();
    test_node.ended(&other).await;
    // Another sheet than the one that it was drawn on.
    assert!(test_node.verb(OperatorVerb::Disable).await.done);
    let moved = support::scene("short", support::SHORT_LINES).replace("-0.125", "-0.124");
    test_node.bench.scene("short", &moved);
    test_node.enable().await;
    let refused = test_node.call("reset", json!({})).await;
    assert_eq!(refused["code"], "needs_enabling", "{refused:#?}");
    let reset = test_node.reset().await;
    assert!(reset.done, "{}", reset.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drawing_held_as_leave_ended_goes_on_once_its_scene_is_enabled() {
    let test_node = TestNode::new();
    let job = test_node.draws().await;
    assert!(test_node.verb(OperatorVerb::Disable).await.done);
    test_node.is_held().await;
    let busy = test_node.begin(&rest()).await.unwrap_err();
    let expected = ["steadyhand continue", "steadyhand stop"];
    assert_eq!(commands(&busy), expected, "{busy}");
    let refused = test_node.verb(OperatorVerb::Resume).await;
    assert!(!refused.done);
    let enable = "steadyhand enable --scene short --for 30m";
    assert_eq!(commands(&refused.text), [enable], "{}", refused.text);
    test_node.enable().await;
    let resumed = test_node.verb(OperatorVerb::Resume).await;
    assert!(resumed.done, "{}", resumed.text);
    assert_eq!(test_node.ended(&job).await["state"], "reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drawing_that_is_held_does_not_go_on_in_a_scene_that_was_changed() {
    let test_node = TestNode::new();
    test_node.draws().await;
    assert!(test_node.verb(OperatorVerb::Disable).await.done);
    test_node.is_held().await;
    let moved = support::scene("short", support::SHORT_LINES).replace("-0.125", "-0.124");
    test_node.bench.scene("short", &moved);
    test_node.enable().await;
    let refused = test_node.verb(OperatorVerb::Resume).await;
    assert!(!refused.done, "{}", refused.text);
    assert_eq!(test_node.motion().snapshot().state, MotionState::Held);
}

const PEN: &str = "its pen may";

impl TestNode {
    async fn sensed(&self) -> String {
        let reply = self.call("sense", json!({})).await;
        reply["message"].as_str().unwrap().to_owned()
    }

    /// Returns all that tells of the pen: `sense`, the list of jobs, a job's card and the note of a drawing that is shown.
    async fn tell_of_pen(&self, job: &str) -> [bool; 4] {
        let state = self.bench.path(&self.1);
        let offer = self.node.offer_drawing(&drawing("dog.json")).await.unwrap();
        let notes = offer.notes.concat();
        let jobs = |job: Option<&str>| jobs_reply(&state, None, job, false).text;
        let replies = [self.sensed().await, jobs(None), jobs(Some(job)), notes];
        replies.map(|reply| reply.contains(PEN))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_restarted_after_a_fault_pen_down_asks_for_a_reset() {
    let test_node = TestNode::new();
    let job = test_node.draws().await;
    test_node.sim.break_it(SimulatedFault::Unplug);
    assert_eq!(test_node.ended(&job).await["state"], "faulted");
    let later = test_node.restarted();
    later.enable().await;
    assert_eq!(later.tell_of_pen(&job).await, [true; 4]);
    let reply = later.sensed().await;
    assert_eq!(commands(&reply), ["steadyhand reset"], "{reply}");
    let stroke = json!({"scene": "short"});
    let refused = later.call("stroke", stroke).await;
    assert_eq!(refused["code"], "fault", "{refused:#?}");
    let reason = later.begin(&rest()).await.unwrap_err();
    assert!(
        reason.contains(&job) && reason.contains("call `reset`"),
        "{reason}"
    );
    let reset = later.reset().await;
    assert!(reset.done, "{}", reset.text);
    assert_eq!(later.tell_of_pen(&job).await, [false; 4]);
    // Nor after one more start; and the drawing is still there to be gone on with.
    let last = later.restarted();
    assert_eq!(last.tell_of_pen(&job).await, [false; 4]);
    let job = last.begin(&rest()).await.unwrap();
    assert_eq!(last.ended(&job).await["state"], "reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_the_pen_is_told_of_until_it_is_lifted() {
    let test_node = TestNode::new();
    let job = test_node.draws().await;
    let later = test_node.restarted();
    assert_eq!(later.tell_of_pen(&job).await, [true; 4]);
    let reply = later.sensed().await;
    let lifts = [
        "steadyhand enable --scene short --for 30m",
        "steadyhand reset",
    ];
    assert_eq!(commands(&reply), lifts, "{reply}");
    let refused = later.begin(&drawing("dog.json")).await.unwrap_err();
    assert!(
        refused.contains(PEN) && refused.contains("was interrupted"),
        "{refused}"
    );
    later.enable().await;
    let reset = later.reset().await;
    assert!(reset.done, "{}", reset.text);
    assert_eq!(later.tell_of_pen(&job).await, [false; 4]);
    let reply = later.sensed().await;
    assert!(reply.contains(&format!("{job} was interrupted")), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pen_that_a_stop_has_lifted_is_not_told_of() {
    let test_node = TestNode::new();
    let job = test_node.draws().await;
    assert!(test_node.verb(OperatorVerb::Stop).await.done);
    assert_eq!(test_node.ended(&job).await["state"], "stopped");
    assert_eq!(test_node.tell_of_pen(&job).await, [false; 4]);
    let later = test_node.restarted();
    assert_eq!(later.tell_of_pen(&job).await, [false; 4]);
    assert_eq!(later.seat().permits().latched(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_whose_scene_was_changed_is_told_the_commands_own_option() {
    let test_node = TestNode::new();
    let job = test_node.draws().await;
    assert!(test_node.verb(OperatorVerb::Stop).await.done);
    test_node.ended(&job).await;
    let moved = support::scene("short", support::SHORT_LINES).replace("-0.125", "-0.124");
    test_node.bench.scene("short", &moved);
    let reason = test_node.begin(&rest()).await.unwrap_err();
    assert!(reason.contains("--again"), "{reason}");
    assert!(!reason.contains("`again` true"), "{reason}");
}
