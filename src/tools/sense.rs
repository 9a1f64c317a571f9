//! `sense`: what the arm measures, what it is doing, and what a camera sees. Moves nothing.

use std::time::Duration;

use serde_json::{Value, json};

use super::camera_report::{self, CameraReport};
use super::dispatch::ToolContext;
use super::job_board::JobCard;
use super::motion_job::{refresh_card, tip_m};
use super::reply::Reply;
use super::reset::pen_text;
use super::sheet_grid::{self, GRID};
use super::sheet_view::{self, SHEET_KEY};
use super::sim_photo_cache;
use super::stroke::rounded;
use super::{AttachedArm, Node};
use base::units::{ArmMeasurement, ServoState};
use base::wording::with_statement;
use gate::READING_AGE_MAX;
use motion::{DurationHistogram, MotionState, Snapshot};
use permit::{ActorRank, StandingOrder, StandingOrders, StopLatch};
use scene::Scene;

pub(super) async fn call(ctx: &ToolContext<'_>) -> Result<Reply, Box<Reply>> {
    let arm = ctx.arm()?;
    // Each camera has its own deadline, and one that gives no picture becomes a note.
    let (for_view, shows_grid) = (ctx.text(SHEET_KEY).is_some(), ctx.is(GRID));
    let mut report = match for_view || shows_grid {
        true => CameraReport::default(),
        false => camera_report::take(ctx, arm).await,
    };
    let snapshot = arm.motion.snapshot();
    let mut message = message(arm, &snapshot);
    if let Some(call) = arm.abandoned_call() {
        message = with_statement(message, &call.describe_for_others());
    }
    if let Some(past) = ctx.node.job_store.interrupted(arm.key()) {
        let how_far = past.summary();
        message = with_statement(message, &format!("{} was interrupted: {how_far}", past.id));
    }
    if let Some(pen) = pen_text(ctx.node, arm) {
        message = with_statement(message, &pen);
    }
    let mut reply = Reply::done(message)
        .with("arm", arm.title())
        .with("state", state_name(&snapshot))
        .with("enabled", ctx.node.enabled_text(arm))
        .with("energised", snapshot.energised);
    let latch = arm.permits().latched();
    reply.set("condition", ctx.node.condition(arm).to_json());
    reply.set_some("fault", &snapshot.fault);
    reply.set_some("unsteady", snapshot.is_unsteady.then_some(true));
    reply.set_some("latched", latch.map(|latch| latch_text(&latch)));
    reply.set_some("stopped_by", arm.stopped_by().map(|cause| cause.to_json()));
    let orders = arm.permits().orders();
    reply.set_some("orders", (!orders.is_empty()).then(|| orders_json(&orders)));
    let abandoned = arm.abandoned_call();
    reply.set_some("client_left", abandoned.map(|call| call.to_json()));
    reply.set_some("warnings", &snapshot.warnings);
    if !snapshot.health.says.is_empty() {
        reply.set("health", &snapshot.health);
    }
    reply.set_some("steps", snapshot.recovery);
    reply.set_some("selftest", ctx.node.selftest());
    if let Some(measured) = snapshot.measured.as_deref() {
        add_readings(&mut reply, ctx, arm, measured);
    }
    if let Some(job) = arm.board.job() {
        refresh_card(arm, &job);
        let card = job.card();
        let reason = card.waiting_text();
        reply.set("job", JobCard { reason, ..card });
    }
    reply.set_some("unfinished", ctx.node.unfinished(arm));
    reply.set_some("depth_trim", snapshot.depth_trim);
    reply.set_some("journal_damaged", ctx.node.job_store.damaged());
    reply.set_some("bus", ctx.is("debug").then(|| bus(&snapshot)));
    reply.set_some("cameras", &report.cards);
    if for_view {
        sheet_view::add(&mut reply, ctx, arm);
    } else if shows_grid {
        let line = sheet_grid::add(&mut reply, ctx, arm).await;
        report.lines.push(line);
    } else {
        add_picture(&mut reply, ctx, arm, &report);
    }
    reply.text = sense_text(&reply, &report.lines);
    reply.show(report.pngs);
    let notes = report.notes.iter();
    Ok(notes.fold(reply, |reply, note| reply.hint(note)))
}

/// Describes the whole result as text, with one line each for the arm's permission, activity and measurements.
fn sense_text(reply: &Reply, cameras: &[String]) -> String {
    let value = |field: &str| reply.structured.get(field);
    let text = |field: &str| value(field).and_then(Value::as_str);
    let mut lines = vec![reply.text.clone()];
    lines.extend(text("latched").map(|latched| format!("latched: {latched}")));
    let stopped_by = |field: &str| value("stopped_by")?.get(field)?.as_str();
    lines.extend(stopped_by("cause").map(|cause| match stopped_by("caller") {
        Some(caller) => format!("stopped by: {cause}, {caller}"),
        None => format!("stopped by: {cause}"),
    }));
    let orders = value("orders").and_then(Value::as_array);
    let orders = orders.into_iter().flatten();
    let orders = orders.filter_map(|order| order.get("text")?.as_str());
    lines.extend(orders.map(|order| format!("an operator's order is in force: {order}")));
    lines.extend(text("enabled").map(|enabled| format!("enabled: {enabled}")));
    lines.extend(value("job").and_then(job_text));
    lines.extend(value("depth_trim").and_then(depth_trim_text));
    let warnings = value("warnings").and_then(Value::as_array);
    let warnings = warnings.into_iter().flatten().filter_map(Value::as_str);
    lines.extend(warnings.map(|warning| format!("warning: {warning}")));
    lines.extend(value("age_ms").and_then(age_text));
    lines.extend(value("tip").and_then(tip_text));
    lines.extend(value("joints").and_then(joints_text));
    lines.extend(cameras.iter().cloned());
    lines.join("\n")
}

fn job_text(job: &Value) -> Option<String> {
    let text = |field: &str| job.get(field)?.as_str();
    let (id, tool, state) = (text("id")?, text("tool")?, text("state")?);
    let (done, of) = (job.get("done")?, job.get("of")?);
    let counted = match of.as_u64() {
        Some(0) => String::new(),
        _ => format!(", {done} of {of}"),
    };
    let reason = text("reason").map_or_else(String::new, |reason| format!("; {reason}"));
    Some(format!("job: {id}, {tool}, {state}{counted}{reason}"))
}

/// Describes how a person trimmed the depth of the pen; `None` while it is as planned.
fn depth_trim_text(trim: &Value) -> Option<String> {
    let mm = |field: &str| trim.get(field)?.as_f64();
    let (target, now, most) = (mm("target_mm")?, mm("now_mm")?, mm("most_mm")?);
    let is_trimmed = target.abs() > 0.0 || now.abs() > 0.0;
    is_trimmed.then(|| {
        format!(
            "pen depth: an operator set it to {}; it is now {now:+.2} mm (±{most} mm are possible)",
            trim_words(target)
        )
    })
}

/// Describes how much deeper than planned a pen goes.
#[must_use]
pub fn trim_words(deeper_mm: f64) -> String {
    match deeper_mm {
        as_planned if as_planned.abs() < 5e-4 => "as planned".to_owned(),
        deeper if deeper > 0.0 => format!("{deeper:.2} mm deeper than planned"),
        higher => format!("{:.2} mm higher than planned", -higher),
    }
}

/// Describes the age of readings that do not say where the arm is now.
fn age_text(age_ms: &Value) -> Option<String> {
    let age_s = age_ms.as_f64()? / 1e3;
    let age = base::wording::seconds(age_s);
    (age_s > READING_AGE_MAX.as_secs_f64())
        .then(|| format!("the arm cannot be read now: the values below are {age} old"))
}

fn tip_text(tip: &Value) -> Option<String> {
    let at = tip.get("sheet_mm")?.as_array()?;
    let (across, up, height) = (at.first()?, at.get(1)?, tip.get("height_mm")?);
    Some(format!(
        "pen tip: {height} mm over the sheet, {across} mm across and {up} mm up on it"
    ))
}

fn joints_text(joints: &Value) -> Option<String> {
    let one = |joint: &Value| {
        let name = joint.get("name")?.as_str()?;
        Some(format!("{name} {}°", joint.get("angle_deg")?))
    };
    let each: Vec<String> = joints.as_array()?.iter().filter_map(one).collect();
    Some(format!("joints: {}", each.join(", ")))
}

fn message(arm: &AttachedArm, snapshot: &Snapshot) -> String {
    let fault = snapshot.fault.as_ref();
    let fault = fault.map(|fault| format!("; fault: {fault}"));
    let activity = activity_text(snapshot);
    format!("{} {activity}{}", arm.title(), fault.unwrap_or_default())
}

impl Node {
    /// Returns what `sense` says of an arm as the terminal's `status` says it: the arm's condition first, the next step last.
    #[must_use]
    pub fn status_text(&self, arm: &AttachedArm, sensed: &str) -> String {
        let condition = self.condition(arm);
        let rest = sensed.strip_prefix(&message(arm, &arm.motion.snapshot()));
        let rest = rest.map_or_else(|| format!("\n{sensed}"), str::to_owned);
        let (words, next) = (condition.words(), condition.next_line());
        format!("{}: {words}{rest}\n{next}", arm.title())
    }
}

/// Describes what an arm does, from its snapshot.
pub(super) fn activity_text(snapshot: &Snapshot) -> String {
    let state = state_name(snapshot);
    let state = state.as_str().unwrap_or_default();
    state_text(state, !snapshot.energised, snapshot.is_unsteady)
}

/// Returns the state of an arm as data; an arm that stands without torque is `limp`, as in words.
pub(super) fn state_name(snapshot: &Snapshot) -> Value {
    match (snapshot.state, snapshot.energised) {
        (MotionState::Holding, false) => LIMP.into(),
        (state, _) => serde_json::to_value(state).unwrap_or_default(),
    }
}

/// State of an arm that stands without torque.
const LIMP: &str = "limp";
const LIMP_WORDS: &str = "is limp: its torque is off";

/// Describes what an arm does, as the rest of a sentence that begins with its name. An arm that stands without torque is limp:
/// it holds nothing.
pub(super) fn state_text(state: &str, is_limp: bool, is_unsteady: bool) -> String {
    let words = match state {
        LIMP => return LIMP_WORDS.to_owned(),
        // As nodes of older versions say it.
        "holding" if is_limp => return LIMP_WORDS.to_owned(),
        "holding" if is_unsteady => "holds its pose, but its standstill was not verified",
        "stopped" if is_unsteady => "is stopped, but its standstill was not verified",
        "holding" => "stands and holds its pose",
        "held" => "is held during a motion, pen up",
        "detached" => "is not connected",
        other => &format!("is {other}"),
    };
    match is_limp {
        true => format!("{words}; its torque is off"),
        false => words.to_owned(),
    }
}

/// Describes a latched stop, and what ends it.
#[must_use]
pub fn latch_text(latch: &StopLatch) -> &'static str {
    match latch {
        StopLatch::Stopped(ActorRank::Operator) => "stopped: an operator must reset it",
        StopLatch::Stopped(_) => "stopped: call `reset`",
        StopLatch::Emergency(_) => "emergency stop: an operator must clear it",
        StopLatch::Fault(_) => "fault: remove its cause, then call `reset`",
        StopLatch::Hot(_) => "fault: a servo is too hot. Let it cool, then call `reset`",
    }
}

/// Returns an operator's orders as data.
fn orders_json(orders: &StandingOrders) -> Vec<Value> {
    let order_json = |order: &StandingOrder| {
        json!({
            "order": order.verb.name(),
            "by": order.by,
            "at_ms": order.at_ms,
            "text": order.to_string(),
        })
    };
    orders.iter().map(order_json).collect()
}

fn add_readings(
    reply: &mut Reply,
    ctx: &ToolContext<'_>,
    arm: &AttachedArm,
    measured: &ArmMeasurement,
) {
    let model = arm.motion.arm();
    let both = measured.position_rad.iter().zip(&*measured.velocity_rad_s);
    let joints: Vec<Value> = both
        .enumerate()
        .map(|(index, (angle, speed))| {
            json!({"name": model.joint_name(index), "angle_deg": rounded(angle.to_degrees()), "speed_deg_s": rounded(speed.to_degrees())})
        })
        .collect();
    let age_s = arm.motion.clock().now().seconds_since(measured.at);
    reply.set("joints", joints);
    reply.set("age_ms", rounded(age_s * 1e3));
    let servos: Vec<Value> = measured.servos.iter().map(servo).collect();
    reply.set("servos", servos);
    // The pen is that of the scene last moved in, or of the requested scene.
    let scene = arm.last_scene().or_else(|| {
        let (name, overlay) = (ctx.text("scene")?, ctx.text("meta"));
        ctx.node.scene(arm, name, overlay).ok()
    });
    reply.set_some("tip", scene.and_then(|scene| tip(&scene, measured)));
}

fn tip(scene: &Scene, measured: &ArmMeasurement) -> Option<Value> {
    let tip_m = tip_m(scene, 0, &measured.position_rad)?;
    let projected = scene.surface.project(&tip_m);
    let base_mm = [tip_m.x, tip_m.y, tip_m.z].map(|m| rounded(m * 1e3));
    Some(json!({
        "pen": scene.pens.first().map(|pen| pen.name.clone()),
        "base_mm": base_mm,
        "sheet_mm": projected.at_mm.map(rounded),
        "height_mm": rounded(projected.height_mm),
    }))
}

/// Returns a servo's state as data. Values that were not read are omitted, never shown as zero.
fn servo(servo: &ServoState) -> Value {
    let mut value = serde_json::to_value(servo).unwrap_or(Value::Null);
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    value
}

fn bus(snapshot: &Snapshot) -> Value {
    let counts = &snapshot.counts;
    let identity: Vec<Value> = snapshot
        .identity
        .iter()
        .map(|one| json!({"servo": one.servo.to_string(), "model": one.model, "firmware": format!("{}.{}", one.firmware.0, one.firmware.1), "identity": one.fingerprint()}))
        .collect();
    let servos: Vec<Value> = counts
        .servos
        .iter()
        .map(|one| json!({"id": one.id, "retries": one.retries, "blind": one.blind, "blind_ms": ms(one.blind_time), "jumps": one.jumps}))
        .collect();
    let times = |times: &DurationHistogram| json!({"p50": ms(times.quantile(0.5)), "p99": ms(times.quantile(0.99)), "max": ms(times.longest())});
    json!({"cycle_ms": times(&counts.cycle_time), "work_ms": times(&counts.cycle_work), "late_ms": times(&snapshot.lateness), "woken_late_ms": times(&snapshot.woken_late), "real_time_priority": snapshot.is_ahead, "cycles": counts.cycles, "transactions": counts.transactions, "corrupt": counts.corrupt, "resent": counts.resent, "foreign": counts.foreign, "echoes": counts.echoes, "servos": servos, "identity": identity})
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn add_picture(reply: &mut Reply, ctx: &ToolContext<'_>, arm: &AttachedArm, report: &CameraReport) {
    let picture = sim_photo_cache::picture_of(arm);
    let files = report.write(ctx, picture.as_deref());
    *reply = files.add_to_report("captured_files", std::mem::take(reply));
    reply.show(picture);
}
