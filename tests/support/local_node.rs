//! A node in the test's process, with a simulated arm on an in-memory port.

use std::sync::Arc;

use serde_json::{Map, Value};
use steadyhand::args::ReceivedArguments;
use steadyhand::clock::NodeClock;
use steadyhand::config::NodeFile;
use steadyhand::link::memory::MemoryLink;
use steadyhand::link::{ByteLink, LinkError};
use steadyhand::motion::{MotionHandle, PortOpener};
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::plan::SpanKind;
use steadyhand::scene::{Scene, SceneLibrary};
use steadyhand::sim::ArmSimulator;
use steadyhand::tools::{AttachedArm, Node, NodeStorage, RemoteCallWatch, Reply, ToolRequest};
use steadyhand::units::JointVector;

use super::Bench;

/// Rate of the arm's clock, relative to real time.
const RATE: u32 = 20;

/// Attaches the arm of a scene, at these joint angles, as `arm`.
pub(crate) fn attach_arm(
    scene: &Scene,
    joints_rad: &JointVector,
    permits: PermitRegistry,
) -> (ArmSimulator, Arc<AttachedArm>) {
    let sim = ArmSimulator::new(&scene.arm, joints_rad);
    let device = sim.clone();
    let open: PortOpener = Box::new(move |clock| {
        let link = MemoryLink::new(device.clone(), clock, "test node").map_err(LinkError::Read)?;
        Ok(Box::new(link) as Box<dyn ByteLink>)
    });
    let (clock, permits) = (NodeClock::simulated_at(RATE), Arc::new(permits));
    let motion = MotionHandle::start(Arc::clone(&scene.arm), clock, permits, open).unwrap();
    (sim, Arc::new(AttachedArm::new("arm", motion, None)))
}

/// A node in the test's process with one such arm, and the bench with its scenes and folders.
pub(crate) struct LocalNode {
    pub(crate) bench: Arc<Bench>,
    pub(crate) node: Arc<Node>,
    pub(crate) sim: ArmSimulator,
}

impl LocalNode {
    /// Opens a node with this file on a state folder; its arm stands in the rest pose of a scene.
    pub(crate) fn at_rest(
        bench: Bench,
        file: NodeFile,
        scene: &str,
        permits: PermitRegistry,
    ) -> Self {
        let rest_rad = scenes(&bench).scene(scene, None).unwrap().rest_rad;
        Self::open(Arc::new(bench), "state", file, scene, &rest_rad, permits)
    }

    /// Opens a node with this file on a state folder; its arm stands at these joint angles.
    pub(crate) fn open(
        bench: Arc<Bench>,
        state: &str,
        file: NodeFile,
        scene: &str,
        joints_rad: &JointVector,
        permits: PermitRegistry,
    ) -> Self {
        let scene = scenes(&bench).scene(scene, None).unwrap();
        let (sim, arm) = attach_arm(&scene, joints_rad, permits);
        let folder = bench.path(state);
        std::fs::create_dir_all(&folder).unwrap();
        let state = NodeStorage::open(folder, &file).unwrap();
        let node = Node::new(file, scenes(&bench), vec![arm], bench.path("out"), state);
        let node = Arc::new(node);
        Self { bench, node, sim }
    }

    pub(crate) fn motion(&self) -> &MotionHandle {
        &self.node.arms[0].motion
    }

    /// Calls a tool as a caller of this rank. Returns the structured result.
    pub(crate) async fn call_as(
        &self,
        who: ActorRank,
        tool: &str,
        arguments: Value,
    ) -> Map<String, Value> {
        let (caller, arguments) = (format!("{who:?}"), ReceivedArguments::Value(arguments));
        let reply = call_tool(&self.node, (who, &caller), tool, arguments).await;
        reply.structured
    }

    /// Waits until the arm draws a line of its motion, or any line.
    pub(crate) async fn draws_line(&self, item: Option<usize>) {
        let mut snapshots = self.motion().watch();
        let draws = snapshots.wait_for(|observed| {
            let at = observed.progress.as_ref();
            at.is_some_and(|at| at.doing == SpanKind::Draw && (item.is_none() || at.item == item))
        });
        drop(draws.await.unwrap());
    }
}

/// Returns the scenes of a bench.
pub(crate) fn scenes(bench: &Bench) -> SceneLibrary {
    SceneLibrary::new(Some(bench.path("scenes")))
}

/// Calls a tool as a caller of this rank, and waits for the reply.
pub(crate) async fn call_tool(
    node: &Arc<Node>,
    (who, caller): (ActorRank, &str),
    tool: &str,
    arguments: ReceivedArguments,
) -> Reply {
    let request = ToolRequest {
        tool: tool.to_owned(),
        arguments,
        caller: caller.to_owned(),
        who,
        principal: None,
        hop: None,
        is_step: false,
        arrived: node.stamp_arrival(),
    };
    let node = Arc::clone(node);
    node.call(request, RemoteCallWatch::unobserved()).await
}
