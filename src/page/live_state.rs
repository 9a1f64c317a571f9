//! State of a node's arms, as the page reads it several times a second. It is built from copies, without asking any arm's thread.

use base::clock::calendar_ms;
use base::units::{ArmMeasurement, JointVector, ServoState};
use motion::{DepthTrim, MotionState, StopReport};
use nalgebra::Point3;
use scene::Scene;
use serde::Serialize;
use tools::{
    ArmCondition, AttachedArm, AwaitedPen, LiveJob, LiveTip, Node, latch_text, point_mm,
    to_hundredths as rounded,
};

/// State of a node.
#[derive(Debug, Serialize)]
pub(super) struct LiveNode {
    node: String,
    version: &'static str,
    time_ms: u64,
    /// Plans that wait for a person.
    waiting: usize,
    /// Pens that jobs wait for.
    pens: Vec<AwaitedPen>,
    /// What the page shows once it hears the node no more.
    lost: ArmCondition,
    pub(super) arms: Vec<LiveArm>,
}

/// State of one arm.
#[derive(Debug, Serialize)]
pub(super) struct LiveArm {
    pub(super) name: String,
    title: String,
    is_simulated: bool,
    /// A camera sees its sheet.
    has_camera: bool,
    state: MotionState,
    /// What it is doing, why, and the next step.
    condition: ArmCondition,
    /// Scenes that may be drawn and until when, as text.
    enabled: String,
    may_move: bool,
    /// The planner that has the arm.
    holder: Option<String>,
    energised: bool,
    fault: Option<String>,
    latched: Option<&'static str>,
    warnings: Vec<String>,
    steps: Vec<String>,
    /// Age of the reading when this was written.
    age_ms: Option<f64>,
    joints: Vec<LiveJoint>,
    servos: Vec<ServoState>,
    /// The base, each joint, the tool's mount and the pen's tip, in the base's frame.
    chain_mm: Vec<[f64; 3]>,
    /// The body's capsules in the base's frame: both ends of the axis and the radius.
    body_mm: Vec<[f64; 7]>,
    tip: Option<LiveTip>,
    pub(super) job: Option<LiveJob>,
    /// The trim of the pen's depth, while something is drawn whose scene allows one.
    depth_trim: Option<DepthTrim>,
    stops_done: u64,
    stop: Option<StopReport>,
    /// Length drawn so far of the planned strokes; only while a page follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ink_mm: Option<f64>,
}

#[derive(Debug, Serialize)]
struct LiveJoint {
    name: String,
    angle_deg: f64,
    speed_deg_s: f64,
    lower_deg: f64,
    upper_deg: f64,
}

impl LiveNode {
    /// Reads the state of a node. The caller fills in the ink.
    pub(super) fn of(node: &Node) -> Self {
        Self {
            node: node.file.name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            time_ms: calendar_ms(),
            waiting: node.pending().len(),
            pens: node.awaited_pens(),
            lost: ArmCondition::of_lost_node(),
            arms: node.arms.iter().map(|seat| live_arm(node, seat)).collect(),
        }
    }

    /// Returns whether a job is under way, so that the state changes many times a second.
    pub(super) fn is_busy(&self) -> bool {
        let is_under_way = |arm: &LiveArm| arm.job.as_ref().is_some_and(|job| !job.is_over);
        self.arms.iter().any(is_under_way)
    }

    /// Returns a line with everything whose change a page must show at once.
    pub(super) fn headline(&self) -> String {
        let arm = |arm: &LiveArm| {
            format!(
                "{} {:?} {} {:?} {:?} {:?} {}",
                arm.name,
                arm.condition,
                arm.enabled,
                arm.fault,
                arm.latched,
                arm.job.as_ref().map(|job| (&job.id, job.state)),
                arm.stops_done
            )
        };
        let arms: Vec<String> = self.arms.iter().map(arm).collect();
        let pens: Vec<_> = self.pens.iter().map(|pen| (&pen.job, pen.pen)).collect();
        format!("{} {pens:?} {}", self.waiting, arms.join("|"))
    }
}

fn live_arm(node: &Node, seat: &AttachedArm) -> LiveArm {
    let snapshot = seat.motion.snapshot();
    let scene = seat.last_scene();
    let measured = snapshot.measured.as_deref();
    let latched = seat.permits().latched();
    let steps = snapshot.recovery.iter();
    let steps = steps.map(|step| node.commands_for_arm(seat, step));
    LiveArm {
        name: seat.name.clone(),
        title: seat.title(),
        is_simulated: seat.workcell.is_some(),
        has_camera: node.has_camera(seat),
        state: snapshot.state,
        condition: node.condition(seat),
        enabled: node.enabled_text(seat),
        may_move: node.may_move(seat),
        holder: seat.holder(node.lease_idle()),
        energised: snapshot.energised,
        fault: snapshot.fault,
        latched: latched.as_ref().map(latch_text),
        warnings: snapshot.warnings,
        steps: steps.collect(),
        age_ms: measured.map(|measured| age_ms(seat, measured)),
        joints: measured.map_or_else(Vec::new, |measured| joints(seat, measured)),
        servos: measured.map_or_else(Vec::new, |measured| measured.servos.clone()),
        chain_mm: measured.map_or_else(Vec::new, |measured| {
            chain_mm(seat, scene.as_deref(), &measured.position_rad)
        }),
        body_mm: measured.map_or_else(Vec::new, |measured| body_mm(seat, &measured.position_rad)),
        tip: measured.and_then(|measured| LiveTip::of(scene.as_deref()?, &measured.position_rad)),
        job: seat.live_job(),
        depth_trim: snapshot.depth_trim,
        stops_done: snapshot.stops_done,
        stop: snapshot.stop,
        ink_mm: None,
    }
}

fn age_ms(seat: &AttachedArm, measured: &ArmMeasurement) -> f64 {
    (seat.motion.clock().now().seconds_since(measured.at) * 1e3).round()
}

fn joints(seat: &AttachedArm, state: &ArmMeasurement) -> Vec<LiveJoint> {
    let arm = seat.motion.arm();
    let limits = arm.limits.lower_rad.iter().zip(arm.limits.upper_rad.iter());
    let states = state.position_rad.iter().zip(state.velocity_rad_s.iter());
    let rows = states.zip(limits).enumerate();
    rows.map(|(index, ((angle, speed), (lower, upper)))| LiveJoint {
        name: arm.joint_name(index),
        angle_deg: rounded(angle.to_degrees()),
        speed_deg_s: rounded(speed.to_degrees()),
        lower_deg: rounded(lower.to_degrees()),
        upper_deg: rounded(upper.to_degrees()),
    })
    .collect()
}

fn chain_mm(seat: &AttachedArm, scene: Option<&Scene>, q_rad: &JointVector) -> Vec<[f64; 3]> {
    let frames = seat.motion.arm().chain.frames(q_rad);
    let tip = scene
        .and_then(|scene| scene.pens.first())
        .map(|pen| frames.tool * pen.tip_m);
    let links = frames.iter().chain(std::iter::once(&frames.tool));
    let mut points: Vec<[f64; 3]> = links
        .map(|frame| point_mm(&Point3::from(frame.translation.vector)))
        .collect();
    points.extend(tip.map(|tip| point_mm(&tip)));
    points
}

fn body_mm(seat: &AttachedArm, q_rad: &JointVector) -> Vec<[f64; 7]> {
    let arm = seat.motion.arm();
    let frames = arm.chain.frames(q_rad);
    let capsules = arm.capsules.iter().filter_map(|capsule| {
        let link = frames.get(capsule.joints_before)?;
        let [x0, y0, z0] = point_mm(&(link * capsule.from_m));
        let [x1, y1, z1] = point_mm(&(link * capsule.to_m));
        Some([x0, y0, z0, x1, y1, z1, rounded(capsule.radius_m * 1e3)])
    });
    capsules.collect()
}
