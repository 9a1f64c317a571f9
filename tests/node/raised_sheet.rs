//! A sheet that lies above the ready pose: how an arm that was stopped over it comes to rest, and what is said of its pen.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use crate::support;

use serde_json::{Map, Value, json};
use steadyhand::config::NodeFile;
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::plan::SpanKind;
use support::local_node::LocalNode;
use support::{Bench, SHORT_LINES, scene};

/// A node with an arm at rest, and the scene `raised` whose sheet lies 20 mm above the tip in the ready pose.
struct TestNode(LocalNode);

impl TestNode {
    fn new() -> Self {
        let bench = Bench::new();
        let raised = scene("raised", SHORT_LINES).replace("-0.125, 0.005]", "-0.125, 0.085]");
        bench.scene("raised", &raised);
        let (file, permits) = (NodeFile::default(), PermitRegistry::everything());
        Self(LocalNode::at_rest(bench, file, "raised", permits))
    }

    async fn call(&self, tool: &str, arguments: Value) -> Map<String, Value> {
        self.0.call_as(ActorRank::Operator, tool, arguments).await
    }

    /// Draws until a span of this kind is under way, and stops there. Returns the answer of the stroke.
    async fn stop_in(&self, kind: SpanKind) -> Map<String, Value> {
        let stop = async {
            let mut snapshots = self.0.motion().watch();
            let is_under_way = |progress: &steadyhand::gate::ExecutionProgress| {
                progress.doing == kind && progress.sample > 60
            };
            let moves =
                snapshots.wait_for(|observed| observed.progress.as_ref().is_some_and(is_under_way));
            drop(moves.await.unwrap());
            self.call("stop", json!({})).await
        };
        let (stroke, stopped) = tokio::join!(self.call("stroke", json!({"scene": "raised"})), stop);
        assert_eq!(stopped["success"], true, "{stopped:#?}");
        assert_eq!(stroke["code"], "stopped", "{stroke:#?}");
        stroke
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_goes_straight_to_rest_under_a_sheet_above_ready_pose() {
    let test_node = TestNode::new();
    let stroke = test_node.stop_in(SpanKind::Draw).await;
    assert_eq!(stroke["stop"]["lifted"], true, "{stroke:#?}");
    let reset = test_node.call("reset", json!({})).await;
    assert_eq!(reset["success"], true, "{reset:#?}");
    assert!(test_node.0.node.arms[0].is_at_rest());
    let stroke = test_node.call("stroke", json!({"scene": "raised", "again": true}));
    assert_eq!(stroke.await["success"], true);
}

/// A pen that is up already is not lifted, and the answer says how high it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_on_the_approach_says_that_the_pen_is_up() {
    let test_node = TestNode::new();
    let stroke = test_node.stop_in(SpanKind::Approach).await;
    let message = stroke["message"].as_str().unwrap();
    assert!(message.contains(" mm over"), "{message}");
    assert_eq!(stroke["stop"]["lifted"], false, "{stroke:#?}");
}
