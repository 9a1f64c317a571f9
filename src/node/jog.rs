//! Carries out one jogged step: planned, checked by the gate and journalled like any motion.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::operator_verb::VerbReply;
use base::units::ArmMeasurement;
use base::wording::with_statement;
use call::{ArrivalStamp, Refusal, refusal};
use motion::Snapshot;
use permit::MotionPermit;
use plan::{self, JogIncrement, Plan};
use scene::Scene;
use tools::{AttachedArm, Node, NodeJob};

/// Smallest and largest step, in millimetres or degrees: less than the smallest moves no servo.
const STEP_MIN: f64 = 0.001;
const STEP_MAX: f64 = 10.0;

/// Tool name of a jog's job.
pub const JOG: &str = "jog";

/// A step as a person requests it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// A text that is not a jog step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a step. Next: type a step such as x+1, z-0.1 or j2-1 ({STEP_MIN} to {STEP_MAX})"
)]
pub struct NoJogStep(String);

impl std::str::FromStr for JogRequest {
    type Err = NoJogStep;

    fn from_str(text: &str) -> Result<Self, NoJogStep> {
        let invalid = || NoJogStep(text.to_owned());
        let sign_index = text.find(['+', '-']).ok_or_else(invalid)?;
        let (axis, by) = text.split_at(sign_index);
        let axis = match (axis, axis.strip_prefix('j')) {
            ("x", _) => JogAxis::X,
            ("y", _) => JogAxis::Y,
            ("z", _) => JogAxis::Z,
            (_, Some(number)) => {
                let number: usize = number.parse().map_err(|_| invalid())?;
                JogAxis::Joint(number.checked_sub(1).ok_or_else(invalid)?)
            }
            _ => return Err(invalid()),
        };
        let by: f64 = by.parse().map_err(|_| invalid())?;
        let step = Self { axis, by };
        step.is_valid().then_some(step).ok_or_else(invalid)
    }
}

impl JogRequest {
    fn is_valid(self) -> bool {
        (STEP_MIN..=STEP_MAX).contains(&self.by.abs())
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
    /// Name of the arm, where the node has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// Activity of the arm.
    pub state: String,
    pub energised: bool,
    /// Reason that motion is denied.
    pub denied: Option<String>,
    pub joints: Vec<JogJoint>,
    pub tip_mm: [f64; 3],
    /// Height over the sheet, along its normal.
    pub height_mm: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JogJoint {
    pub name: String,
    pub deg: f64,
    pub lower_deg: f64,
    pub upper_deg: f64,
    /// Load of its servo that pushes hardest.
    pub load: Option<f64>,
    /// Temperature of its hottest servo.
    pub temperature_c: Option<f64>,
}

/// Returns the named arm that draws a scene, or the only one.
fn seat<'a>(
    node: &'a Node,
    scene: &str,
    arm: Option<&str>,
) -> Result<&'a Arc<AttachedArm>, Refusal> {
    node.arm_for(&*node.scenes.scene(scene, None)?, arm)
}

/// Jogs one step of the named arm, or of the only one that draws the scene, to its end.
pub async fn step(
    node: &Arc<Node>,
    arrived: &ArrivalStamp,
    (scene, arm): (&str, Option<&str>),
    request: JogRequest,
) -> VerbReply {
    let seat = match seat(node, scene, arm) {
        Ok(seat) => seat,
        Err(reason) => return VerbReply::failed(with_statement(reason, "nothing moved")),
    };
    let reply = VerbReply::of(run_step(node, arrived, seat, scene, request).await);
    VerbReply {
        text: node.text_of_arm(seat, &reply.text),
        ..reply
    }
}

/// A planned step with its job.
struct PlannedStep {
    job: NodeJob,
    scene: Arc<Scene>,
    permit: MotionPermit,
    plan: Plan,
}

async fn run_step(
    node: &Arc<Node>,
    arrived: &ArrivalStamp,
    seat: &Arc<AttachedArm>,
    scene: &str,
    request: JogRequest,
) -> Result<String, Refusal> {
    let step = plan_step(node, arrived, seat, scene, request).await;
    let PlannedStep {
        job,
        scene,
        permit,
        plan,
    } = step.map_err(|reason| Refusal::new(with_statement(reason, "nothing moved")))?;
    match job.run(&scene, permit, &plan).await {
        Ok(()) => {
            job.end("reached", "one step".to_owned()).await;
            let state = jog_state(node, seat, &scene)?;
            let [x, y, z] = state.tip_mm;
            Ok(format!(
                "the tip is at {x:.2} {y:.2} {z:.2} mm, {:.2} mm over the sheet",
                state.height_mm
            ))
        }
        // The message already says whether anything moved.
        Err(incomplete) => {
            job.end(incomplete.state, incomplete.why.to_string()).await;
            Err(incomplete.why)
        }
    }
}

async fn plan_step(
    node: &Arc<Node>,
    arrived: &ArrivalStamp,
    seat: &Arc<AttachedArm>,
    scene: &str,
    request: JogRequest,
) -> Result<PlannedStep, Refusal> {
    if !request.is_valid() {
        return Err(refusal!("a step must be {STEP_MIN} to {STEP_MAX}"));
    }
    let scene = node.scene(seat, scene, None)?;
    let seen_stops = node.stops_before(arrived, seat).stops;
    let permit = seat.permits().ask(&scene, seat.motion.clock().now())?;
    let start = measured(&seat.motion.snapshot())?.position_rad;
    let planned = tools::catch_panic("planning", || {
        plan::jog(&scene, &start, request.step(), 0, &plan::SilentObserver)
    });
    let plan = planned??;
    let job = NodeJob::begin(node, seat, JOG, &scene, (seen_stops, Some(arrived))).await?;
    Ok(PlannedStep {
        job,
        scene,
        permit,
        plan,
    })
}

/// Returns the state of the named arm that draws a scene, or of the only one, as JSON.
pub fn state_reply(node: &Node, scene: &str, arm: Option<&str>) -> VerbReply {
    let seat = seat(node, scene, arm);
    let state = seat.and_then(|seat| jog_state(node, seat, &*node.scene(seat, scene, None)?));
    VerbReply::of(state.map(|state| serde_json::to_string(&state).unwrap_or_default()))
}

fn measured(snapshot: &Snapshot) -> Result<&ArmMeasurement, Refusal> {
    let measured = snapshot.measured.as_deref();
    measured.ok_or_else(|| refusal!("the arm has not been read yet"))
}

fn jog_state(node: &Node, seat: &AttachedArm, scene: &Scene) -> Result<JogState, Refusal> {
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
        let drives = |id: u8| {
            arm.servos()
                .any(|(driven_joint, servo)| driven_joint == joint && servo.id == id)
        };
        let servos = || measured.servos.iter().filter(|servo| drives(servo.id));
        let loads = servos().filter_map(|servo| servo.load_ratio);
        JogJoint {
            name: arm.joint_name(joint),
            deg: q.to_degrees(),
            lower_deg: deg(&arm.limits.lower_rad),
            upper_deg: deg(&arm.limits.upper_rad),
            load: loads.map(f64::abs).reduce(f64::max),
            temperature_c: servos().filter_map(|s| s.temperature_c).reduce(f64::max),
        }
    });
    let denied = seat.permits().ask(scene, seat.motion.clock().now()).err();
    Ok(JogState {
        arm: node.has_several_arms().then(|| seat.name.clone()),
        state: format!("{:?}", snapshot.state).to_lowercase(),
        energised: snapshot.energised,
        denied: denied.map(|denied| node.commands_for_arm(seat, &denied.to_string())),
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
            "", "x", "x1", "+1", "j+1", "j0+1", "w+1", "x+11", "x+nan", "x+inf", "x+1+1", "z+0",
            "z+1e-9",
        ] {
            assert!(text.parse::<JogRequest>().is_err(), "{text}");
        }
    }
}
