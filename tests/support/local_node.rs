//! A node in the test's process, with a simulated arm on an in-memory port.

use std::sync::Arc;

use steadyhand::args::ReceivedArguments;
use steadyhand::clock::NodeClock;
use steadyhand::link::memory::MemoryLink;
use steadyhand::link::{ByteLink, LinkError};
use steadyhand::motion::{MotionHandle, PortOpener};
use steadyhand::permit::{ActorRank, PermitRegistry};
use steadyhand::scene::Scene;
use steadyhand::sim::ArmSimulator;
use steadyhand::tools::{AttachedArm, Node, RemoteCallWatch, Reply, ToolRequest};
use steadyhand::units::JointVector;

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
