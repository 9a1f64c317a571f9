//! One jogged step on the node's side: planned, judged by the gate and journalled like any motion.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::operator_verb::VerbReply;
use base::units::ArmMeasurement;
use call::{Refusal, refusal};
use motion::Snapshot;
use permit::MotionPermit;
use plan::{self, JogIncrement, Plan};
use scene::Scene;
use tools::{AttachedArm, Node, NodeJob};

/// Larger steps are not jogged.
const STEP_MAX: f64 = 10.0;

/// Tool name of a jog's job.
pub const JOG: &str = "jog";

/// A step as a person says it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JogRequest {
    pub axis: JogAxis,
    /// In millimetres, or degrees of a joint.
    pub by: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JogAxis {
    X,
    Y,
    Z,
    /// From 0 at the base.
    Joint(usize),
}

/// A text that is no step of a jog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a step: write x+1, z-0.1 or j2-1, up to {STEP_MAX}")]
pub struct NoJogStep(String);

impl std::str::FromStr for JogRequest {
    type Err = NoJogStep;

    fn from_str(text: &str) -> Result<Self, NoJogStep> {
        let wrong = || NoJogStep(text.to_owned());
        let at = text.find(['+', '-']).ok_or_else(wrong)?;
        let (axis, by) = text.split_at(at);
        let axis = match (axis, axis.strip_prefix('j')) {
            ("x", _) => JogAxis::X,
            ("y", _) => JogAxis::Y,
            ("z", _) => JogAxis::Z,
            (_, Some(number)) => {
                let number: usize = number.parse().map_err(|_| wrong())?;
                JogAxis::Joint(number.checked_sub(1).ok_or_else(wrong)?)
            }
            _ => return Err(wrong()),
        };
        let by: f64 = by.parse().map_err(|_| wrong())?;
        let step = Self { axis, by };
        step.is_fit().then_some(step).ok_or_else(wrong)
    }
}

impl JogRequest {
    fn is_fit(self) -> bool {
        self.by.is_finite() && self.by.abs() <= STEP_MAX
    }

    fn step(self) -> JogIncrement {
        let by = self.by;
        let tip = |by_mm| JogIncrement::Tip { by_mm };
        match self.axis {
            JogAxis::X => tip([by, 0.0, 0.0]),
            JogAxis::Y => tip([0.0, by, 0.0]),
            JogAxis::Z => tip([0.0, 0.0, by]),
            JogAxis::Joint(joint) => JogIncrement::Joint {
                joint,
                by_rad: by.to_radians(),
            },
        }
    }
}

/// State of an arm, for a client that jogs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JogState {
    /// Activity of the arm.
    pub state: String,
    pub energised: bool,
    /// Reason that motion is denied.
    pub denied: Option<String>,
    pub joints: Vec<JogJoint>,
    pub tip_mm: [f64; 3],
    /// Over the sheet, along its normal.
    pub height_mm: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JogJoint {
    pub name: String,
    pub deg: f64,
    pub lower_deg: f64,
    pub upper_deg: f64,
    /// Of its servo that pushes hardest, and of its hottest.
    pub load: Option<f64>,
    pub temperature_c: Option<f64>,
}

/// Returns the arm that draws a scene.
pub(super) fn seat<'a>(node: &'a Node, scene: &Scene) -> Result<&'a Arc<AttachedArm>, Refusal> {
    let model = &scene.arm.file.name;
    let mut seats = node.arms.iter();
    let found = seats.find(|seat| seat.motion.arm().file.name == *model);
    found.ok_or_else(|| refusal!("this node has no arm {model}, for which the scene is"))
}

/// The node's side: one step, to its end.
pub async fn step(node: &Arc<Node>, scene: &str, wanted: JogRequest) -> VerbReply {
    VerbReply::of(stepped(node, scene, wanted).await)
}

/// A step that is planned and has its job.
struct PlannedStep {
    job: NodeJob,
    scene: Arc<Scene>,
    permit: MotionPermit,
    plan: Plan,
}

async fn stepped(node: &Arc<Node>, scene: &str, wanted: JogRequest) -> Result<String, Refusal> {
    let step = planned(node, scene, wanted).await;
    let PlannedStep {
        job,
        scene,
        permit,
        plan,
    } = step.map_err(|why| refusal!("{why}; nothing moved"))?;
    match job.run(&scene, permit, &plan).await {
        Ok(()) => {
            job.end("reached", "one step".to_owned()).await;
            let stance = stance(node, &scene)?;
            let [x, y, z] = stance.tip_mm;
            Ok(format!(
                "the tip is at {x:.2} {y:.2} {z:.2} mm, {:.2} mm over the sheet",
                stance.height_mm
            ))
        }
        // It says itself whether anything moved.
        Err(short) => {
            job.end(short.state, short.why.to_string()).await;
            Err(short.why)
        }
    }
}

async fn planned(
    node: &Arc<Node>,
    scene: &str,
    wanted: JogRequest,
) -> Result<PlannedStep, Refusal> {
    if !wanted.is_fit() {
        return Err(refusal!("a step is {STEP_MAX} at the most"));
    }
    let named = node.scenes.scene(scene, None)?;
    let seat = seat(node, &named)?;
    let scene = node.scene(seat, scene, None)?;
    let seen_stops = seat.motion.stops_requested();
    let permit = seat.permits().ask(&scene, seat.motion.clock().now())?;
    let start = measured(&seat.motion.snapshot())?.position_rad;
    let planned = tools::catch_panic("planning", || {
        plan::jog(&scene, &start, wanted.step(), 0, &plan::SilentObserver)
    });
    let plan = planned??;
    let job = NodeJob::begin(node, seat, JOG, &scene, seen_stops).await?;
    Ok(PlannedStep {
        job,
        scene,
        permit,
        plan,
    })
}

/// The node's side: how the arm is.
pub fn stand(node: &Node, scene: &str) -> VerbReply {
    let scene = node.scenes.scene(scene, None).map_err(Refusal::from);
    let stance = scene.and_then(|scene| stance(node, &scene));
    VerbReply::of(stance.map(|stance| serde_json::to_string(&stance).unwrap_or_default()))
}

fn measured(snapshot: &Snapshot) -> Result<&ArmMeasurement, Refusal> {
    let measured = snapshot.measured.as_deref();
    measured.ok_or_else(|| refusal!("the arm has not been read yet"))
}

fn stance(node: &Node, scene: &Scene) -> Result<JogState, Refusal> {
    let seat = seat(node, scene)?;
    let snapshot = seat.motion.snapshot();
    let measured = measured(&snapshot)?;
    let arm = seat.motion.arm();
    let q = &measured.position_rad;
    let tip_m = scene.pen(0).map(|pen| pen.tip_m).unwrap_or_default();
    let tip = arm.chain.point(q, &tip_m);
    let joints = q.iter().enumerate().map(|(joint, q)| {
        let deg = |limits: &base::units::JointVector| {
            limits.get(joint).copied().unwrap_or(0.0).to_degrees()
        };
        let turns = |id: u8| {
            arm.servos()
                .any(|(of, servo)| of == joint && servo.id == id)
        };
        let own = || measured.servos.iter().filter(|servo| turns(servo.id));
        let loads = own().filter_map(|servo| servo.load_ratio);
        JogJoint {
            name: arm.joint_name(joint),
            deg: q.to_degrees(),
            lower_deg: deg(&arm.limits.lower_rad),
            upper_deg: deg(&arm.limits.upper_rad),
            load: loads.map(f64::abs).reduce(f64::max),
            temperature_c: own().filter_map(|s| s.temperature_c).reduce(f64::max),
        }
    });
    let denied = seat.permits().ask(scene, seat.motion.clock().now()).err();
    Ok(JogState {
        state: format!("{:?}", snapshot.state).to_lowercase(),
        energised: snapshot.energised,
        denied: denied.map(|denied| denied.to_string()),
        joints: joints.collect(),
        tip_mm: [tip.x, tip.y, tip.z].map(|m| m * 1e3),
        height_mm: scene.surface.project(&tip).height_mm,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_nonsense_is_not() {
        for (text, axis, by) in [
            ("x+1", JogAxis::X, 1.0),
            ("z-0.1", JogAxis::Z, -0.1),
            ("j2-10", JogAxis::Joint(1), -10.0),
            ("y+10", JogAxis::Y, 10.0),
        ] {
            assert_eq!(text.parse(), Ok(JogRequest { axis, by }));
        }
        for text in [
            "", "x", "x1", "+1", "j+1", "j0+1", "w+1", "x+11", "x+nan", "x+inf", "x+1+1",
        ] {
            assert!(text.parse::<JogRequest>().is_err(), "{text}");
        }
    }
}
