//! Random calls of tools, as clients make them, against what leaves the port.

use std::sync::Arc;

use serde_json::json;
use steadyhand::args::ReceivedArguments;
use steadyhand::config::NodeFile;
use steadyhand::permit::ActorRank;
use steadyhand::scene::SceneLibrary;
use steadyhand::tools::{AttachedArm, Node, NodeStorage};

use super::{Chance, cases, torque_address};
use crate::far_end::{self, Family, Rig};
use crate::invariants::judge::Judge;
use crate::support::local_node::call_tool;

/// A node on a monitored wire.
struct TestNode {
    rig: Rig,
    node: Arc<Node>,
    _state: tempfile::TempDir,
}

impl TestNode {
    fn new(family: Family) -> Self {
        let rig = Rig::new(family);
        let motion = rig.attach().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut file = NodeFile::default();
        file.arms[0].model = family.arm().to_owned();
        let state = NodeStorage::open(folder.path().to_owned(), &file).unwrap();
        let scenes = SceneLibrary::new(Some(rig.folder.path().to_owned()));
        let arms = vec![Arc::new(AttachedArm::new("arm", motion, None))];
        let output = folder.path().to_owned();
        Self {
            node: Arc::new(Node::new(file, scenes, arms, output, state)),
            rig,
            _state: folder,
        }
    }

    /// Calls a tool and ignores the result.
    async fn call(&self, tool: &str, arguments: ReceivedArguments) {
        let caller = (ActorRank::Operator, "chance");
        drop(call_tool(&self.node, caller, tool, arguments).await);
    }

    /// Writes a random scene, possibly far out of range, under a name that calls may use.
    fn write_wild(&self, chance: &mut Chance) {
        let path = self.rig.folder.path();
        let text = std::fs::read_to_string(path.join("short.toml")).unwrap();
        let mut scene: toml::Table = toml::from_str(&text).unwrap();
        scene.insert("name".to_owned(), "wild".into());
        // On the sheet about its middle, and now and then far beyond it.
        let reach_mm = [5.0, 30.0, 30.0, 400.0][chance.pick(4)];
        let points: Vec<_> = (0..2 + chance.pick(6))
            .map(|_| [0, 1].map(|_| 40.0 + reach_mm * chance.share()).to_vec())
            .map(toml::Value::from)
            .collect();
        let mut design = toml::Table::new();
        design.insert("polylines".to_owned(), vec![points].into());
        scene.insert("design".to_owned(), design.into());
        let mut limits = toml::Table::new();
        let speeds = [1.0, 40.0, 100.0, 250.0, 1e4];
        limits.insert("draw_mm_s".to_owned(), speeds[chance.pick(5)].into());
        limits.insert("travel_mm_s".to_owned(), speeds[chance.pick(5)].into());
        scene.insert("limits".to_owned(), limits.into());
        if let Some(sheet) = scene.get_mut("sheet").and_then(toml::Value::as_table_mut) {
            let origin = sheet["origin_m"].as_array().unwrap().clone();
            let off = [0.0, 0.0, 0.005, 0.3][chance.pick(4)];
            let moved = origin.iter().map(|at| {
                let at = at.as_float().unwrap_or_default();
                toml::Value::from(at + off * chance.share())
            });
            sheet.insert("origin_m".to_owned(), moved.collect::<Vec<_>>().into());
        }
        std::fs::write(path.join("wild.toml"), scene.to_string()).unwrap();
    }

    /// Judges what left the port since this was last asked.
    fn judge(&self, judge: &mut Judge) {
        let family = self.rig.family;
        let sent = std::mem::take(&mut self.rig.wire.state().sent);
        for (_, bytes) in sent {
            let on = far_end::requests(family, &bytes)
                .iter()
                .flat_map(|request| far_end::writes(family, request))
                .any(|write| write.address == torque_address(family));
            if on {
                judge.forget();
            }
            judge.hear(&far_end::goals(family, &bytes).unwrap_or_default());
        }
    }
}

impl Chance {
    fn pick(&mut self, count: u64) -> usize {
        usize::try_from(self.below(count)).unwrap()
    }
}

/// A tool and its arguments: right ones, wrong ones, and no JSON at all.
fn nonsense(chance: &mut Chance) -> (&'static str, ReceivedArguments) {
    let tools = [
        "stroke", "stroke", "stroke", "reset", "align", "sense", "stop", "Stroke ",
    ];
    let tool = tools[chance.pick(8)];
    let scenes = ["wild", "wild", "wild", "short", "Short", "nowhere"];
    let mut arguments = json!({"scene": scenes[chance.pick(6)], "again": true});
    let more = [
        ("dry_run", json!("yes")),
        ("speed_mm_s", json!(1e300)),
        ("scale", json!(-40)),
        ("joints", json!([1e9, "NaN", null, 7])),
        ("scene", json!("NaN")),
        ("resume", json!(true)),
        ("arm", json!("another")),
        ("debug", json!(3.5)),
    ];
    if chance.below(3) == 0 {
        let (key, value) = more[chance.pick(8)].clone();
        arguments[key] = value;
    }
    let arguments = match chance.below(12) {
        0 => ReceivedArguments::Absent,
        1 => ReceivedArguments::Text(format!("{arguments}}}")),
        2 => ReceivedArguments::Value(json!([arguments])),
        _ => ReceivedArguments::Value(arguments),
    };
    (tool, arguments)
}

/// A call moves an arm for seconds, and a drawing is planned for it: one in so many of the cases.
const SHARE: usize = 400;

#[tokio::test(flavor = "multi_thread")]
async fn invariant_2_no_call_of_a_tool_sends_a_goal_outside_the_limits() {
    for family in Family::ALL {
        let test_node = TestNode::new(family);
        let mut judge = Judge::new(&test_node.rig.scene);
        let mut chance = Chance(23);
        let calls = (cases() / SHARE).max(1);
        let mut moved = 0;
        for _ in 0..calls {
            test_node.write_wild(&mut chance);
            let (tool, arguments) = nonsense(&mut chance);
            let before = judge.frames;
            test_node.call(tool, arguments).await;
            if tool == "stop" {
                // Or nothing would move any more.
                let scene = json!({"scene": "short"});
                test_node
                    .call("reset", ReceivedArguments::Value(scene))
                    .await;
            }
            test_node.judge(&mut judge);
            moved += usize::from(judge.frames > before + 100);
        }
        assert!(
            moved > calls / 50,
            "{family:?}: {moved} of {calls} calls moved the arm"
        );
    }
}
