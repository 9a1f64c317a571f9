//! Servos that give up come with steps for a person; a self-test is printed beside its bounds and
//! quoted until the next.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a failing test may panic"
)]

use crate::support;

use serde_json::json;
use steadyhand::config::NodeFile;
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::sim::SimulatedFault;
use support::local_node::LocalNode;
use support::{Bench, printed_by, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_servo_comes_with_steps_that_bring_it_back() {
    const OVERLOAD: u8 = 32;
    let permits = PermitRegistry::everything();
    let test_node = LocalNode::at_rest(Bench::new(), NodeFile::default(), "default", permits);
    let call = |tool| test_node.call_as(ActorRank::Operator, tool, json!({}));
    let draws = async {
        test_node.draws_line(Some(0)).await;
        test_node.sim.break_it(SimulatedFault::ErrorBits {
            id: 3,
            bits: OVERLOAD,
        });
    };
    let (stroke, ()) = tokio::join!(call("stroke"), draws);
    assert_eq!(stroke["code"], "fault", "{stroke:#?}");
    assert!(
        stroke["message"].as_str().unwrap().contains("servo 3"),
        "{stroke:#?}"
    );
    for tool in ["sense", "reset"] {
        let reply = call(tool).await;
        let steps = reply["steps"].as_array().unwrap();
        assert!(
            steps[0].as_str().unwrap().contains("hold"),
            "{tool}: {reply:#?}"
        );
        assert!(
            steps
                .iter()
                .any(|step| step.as_str().unwrap().contains("torque-off")),
            "{tool}: {reply:#?}"
        );
    }
    // A person does what the steps say.
    test_node.motion().release().await.unwrap().unwrap();
    test_node
        .sim
        .break_it(SimulatedFault::ErrorBits { id: 3, bits: 0 });
    let reset = call("reset").await;
    assert_eq!(reset["success"], true, "{reset:#?}");
    let sensed = call("sense").await;
    assert_eq!(sensed.get("steps"), None, "{sensed:#?}");
}

#[test]
fn a_self_test_is_printed_beside_its_bounds_and_quoted_from_then_on() {
    let bench = Bench::at_test_rate();
    let state = bench.state();
    let served = bench.serve(&["--state", &state]);
    let here = ["selftest", "--scene", "short", "--rounds", "2"];
    assert_eq!(bench.run(&["disable"]).status.code(), Some(0));
    let refused = bench.run(&here);
    let output_text = printed_by(&refused);
    assert_ne!(refused.status.code(), Some(0));
    assert!(output_text.contains("not enabled"), "{output_text}");
    bench.run(&["enable", "--scene", "short"]);
    let output = bench.run(&here);
    let stdout = stdout(&output);
    for word in ["2 stops at ", "bound  300 ms", "median"] {
        assert!(stdout.contains(word), "{stdout}");
    }
    // More only where the machine was late itself, and says so.
    assert!(
        stdout.contains("bound   10 ms") || stdout.contains("slow"),
        "{stdout}"
    );
    let quoted = |served: &support::Served, tool: &str| {
        let (_, result) = bench.call_at(&served.url, &[tool]);
        result["selftest"]["arms"][0].clone()
    };
    let kept = quoted(&served, "sense");
    assert_eq!(
        (&kept["stops"], &kept["standstill_ms_bound"]),
        (&json!(2), &json!(300.0)),
        "{kept:#}"
    );
    let first_ms = kept["first_frame_ms_p99"].as_f64();
    assert!(first_ms.is_some_and(|ms| ms >= 0.0), "{kept:#}");
    let observed = &kept["performance"];
    assert_eq!(
        (
            &observed["visits"],
            observed["joints"].as_array().map(Vec::len)
        ),
        (&json!(8), Some(5)),
        "{kept:#}"
    );
    assert!(
        stdout.contains("pose repeatability") && stdout.contains("shoulder_pan"),
        "{stdout}"
    );
    assert_eq!(quoted(&served, "stop"), kept);
    drop(served);
    // The next process remembers.
    let again = bench.serve(&["--state", &state]);
    assert_eq!(quoted(&again, "sense"), kept);
}
