//! Tests that a drawing which its caller asks for again moments later is not drawn twice, however the call is spelled.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]

use serde_json::{Map, Value, json};

use crate::support::{self, Bench, Caller, Served};

fn stroke(served: &Served, arguments: &Value) -> Map<String, Value> {
    let result = served.call("stroke", arguments);
    let result = result.as_object().cloned();
    result.unwrap_or_else(|| panic!("no answer to {arguments}"))
}

fn bench_of_cell() -> Bench {
    Bench::at_test_rate().with_file("name = \"cell\"\n")
}

fn assert_not_drawn_again(served: &Served, spellings: &[Value]) {
    for arguments in spellings {
        let done = stroke(served, arguments);
        assert_eq!(done["success"], true, "{arguments} {done:#?}");
        assert_eq!(done["moved"], false, "{arguments} {done:#?}");
        assert_eq!(done["job"]["id"], "job-1", "{arguments} {done:#?}");
    }
}

#[test]
fn the_same_drawing_is_not_drawn_twice_however_the_call_is_spelled() {
    let bench = bench_of_cell();
    let mut served = bench.serve(&[]);
    let plain = json!({"scene": "short"});
    let drawn = stroke(&served, &plain);
    assert_eq!(drawn["job"]["state"], "reached", "{drawn:#?}");
    assert!(drawn.get("moved").is_none(), "{drawn:#?}");
    let spellings = [
        plain.clone(),
        json!({"scene": "short", "arm": "arm"}),
        json!({"scene": "short", "node": "cell"}),
        json!({"scene": "short", "plan": drawn["plan_hash"]}),
        json!({"scene": "Short", "arm": "arm", "node": "cell", "debug": true}),
    ];
    assert_not_drawn_again(&served, &spellings);
    // What moved nothing, or only parked the arm, is no other drawing.
    let other_plan = stroke(&served, &json!({"scene": "short", "plan": "0".repeat(64)}));
    assert_eq!(other_plan["code"], "plan_changed", "{other_plan:#?}");
    assert_not_drawn_again(&served, &spellings);
    served.child.terminate();
    let mut served = bench.serve(&[]);
    assert_not_drawn_again(&served, &spellings);
    served.child.0.kill().unwrap();
    served.child.0.wait().unwrap();
    let mut served = bench.serve(&[]);
    assert_not_drawn_again(&served, &spellings);
    let again = stroke(&served, &json!({"scene": "short", "again": true}));
    assert_eq!(again["job"]["state"], "reached", "{again:#?}");
    assert_ne!(again["job"]["id"], "job-1", "{again:#?}");
    served.child.terminate();
    // Two minutes later.
    let later = [("STEADYHAND_CALENDAR_OFFSET_MS", "121000")];
    let served = bench.serve_in(&[], &later);
    let drawn = stroke(&served, &plain);
    assert_eq!(drawn["success"], true, "{drawn:#?}");
    assert!(drawn.get("moved").is_none(), "{drawn:#?}");
}

#[test]
fn another_revision_of_the_scene_is_another_drawing() {
    let bench = bench_of_cell();
    let served = bench.serve(&[]);
    let arguments = json!({"scene": "short"});
    let drawn = stroke(&served, &arguments);
    assert_eq!(drawn["job"]["id"], "job-1", "{drawn:#?}");
    bench.scene(
        "short",
        &support::scene("short", "[[[0.0, 0.0], [31.0, 0.0]]]"),
    );
    let drawn = stroke(&served, &arguments);
    assert_eq!(drawn["job"]["id"], "job-2", "{drawn:#?}");
    assert_eq!(drawn["job"]["state"], "reached", "{drawn:#?}");
}
