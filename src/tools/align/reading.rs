//! Turns a person's reading of the drawn cross into a proposal. Nothing moves.

use serde_json::Value;

use super::{add_findings, change_json, cross_place_mm};
use crate::calibration_check;
use crate::cameras::CameraCapture;
use crate::dispatch::ToolContext;
use crate::motion_job::JobContext;
use crate::reply::{Reply, refused};
use crate::sheet_check;
use crate::{AttachedArm, Node};
use base::units::short;
use calib::{
    self, AlignmentResult, CalibrationDeskError, CalibrationKind, CalibrationSession,
    CalibrationStore, ProposalClaim, TouchAssessment, report,
};
use call::Refusal;
use job::PastJob;
use scene::Scene;
use vision::SheetOffset;

/// Returns the cross's measured offset from its nominal place, along the sheet's x and y.
pub(super) fn measured_offset_mm(ctx: &ToolContext<'_>) -> Option<[f64; 2]> {
    let measured = ctx.reading.understood.get("measured")?.as_object()?;
    let number = |name: &str| measured.get(name).and_then(Value::as_f64);
    match (number("dx"), number("dy")) {
        (None, None) => None,
        (dx, dy) => Some([dx.unwrap_or(0.0), dy.unwrap_or(0.0)]),
    }
}

/// Largest offset of the cross that is believed: a sheet is no larger.
const READ_MM_MAX: f64 = 100.0;

/// Keeps the reading as the proposal for the scene's sheet, for an operator to accept.
pub(super) fn propose(
    ctx: &ToolContext<'_>,
    scene: &Scene,
    read_mm: [f64; 2],
) -> Result<Reply, Box<Reply>> {
    let session = CalibrationSession {
        read_mm: Some(read_mm),
        ..session(ctx.node, ctx.arm()?, scene)?
    };
    let [dx, dy] = read_mm;
    if dx.hypot(dy) > READ_MM_MAX {
        return Err(refused(
            "calibration",
            format!(
                "`measured` is {} mm from the cross's planned place (at most {READ_MM_MAX} mm). Next: measure the cross again, in mm",
                short(dx.hypot(dy))
            ),
        ));
    }
    let _claim = claim_answer(ctx, scene)?;
    check_cross_drawn(ctx, scene)?;
    let summary = format!("the cross was read {dx:+.2}, {dy:+.2} mm from its place");
    keep_proposal(ctx, scene, &session, &summary)
}

/// Refuses a reading where this arm has drawn no cross in the scene as it is now: accepting a sheet changes the scene, and the
/// cross before it says nothing of the sheet's new place.
fn check_cross_drawn(ctx: &ToolContext<'_>, scene: &Scene) -> Result<(), Box<Reply>> {
    let arm = ctx.arm()?;
    if cross_place_mm(scene).is_none() {
        return Err(refused(
            "no_cross",
            format!(
                "`align` draws no cross in scene {}: the design leaves no room for one. Next: `steadyhand calibrate touch sheet`",
                scene.title()
            ),
        ));
    }
    let revision = scene.revision.hex();
    let has_cross = |past: &PastJob| {
        past.scene == scene.name && past.revision == revision && drew_cross(&past.understood)
    };
    let store = &ctx.node.job_store;
    if store.last_reached(arm.key(), "align", has_cross).is_some() {
        return Ok(());
    }
    Err(refused(
        "no_cross",
        format!(
            "there is no cross to read: arm {} has drawn none in scene {} since its last calibration or change. Next: `align` without `measured` draws one",
            arm.name,
            scene.title()
        ),
    ))
}

/// Returns whether `align` with these arguments draws its cross: it neither touches nor draws the pattern.
fn drew_cross(understood: &str) -> bool {
    // As a journal keeps them, without blanks.
    let others = [r#""touch":true"#, r#""ink":true"#, r#""bases":true"#];
    !others.iter().any(|other| understood.contains(other))
}

/// Keeps what a camera saw as the proposal for the scene's sheet. Nothing moves.
pub(super) fn propose_observed(
    ctx: &ToolContext<'_>,
    scene: &Scene,
    capture: &CameraCapture,
    offset: &SheetOffset,
) -> Result<Reply, Box<Reply>> {
    let seen = capture.sheet_observation();
    let seen = seen.ok_or_else(|| refused("calibration", "the sheet was not seen"))?;
    let session = CalibrationSession {
        seen: Some(seen),
        ..session(ctx.node, ctx.arm()?, scene)?
    };
    let summary = format!(
        "camera {} sees the sheet {} from where it was taught",
        capture.camera,
        sheet_check::offset_text(offset)
    );
    let _claim = claim_answer(ctx, scene)?;
    keep_proposal(ctx, scene, &session, &summary)
}

/// Claims the next proposal for an answer without any motion.
fn claim_answer(ctx: &ToolContext<'_>, scene: &Scene) -> Result<ProposalClaim, Box<Reply>> {
    let store = CalibrationStore::of_state(&ctx.node.state, &ctx.node.scenes);
    let arm = &ctx.arm()?.name;
    let claim = store.claim("another `align` is in progress");
    let claim = claim.map_err(|error| refused("calibration", error))?;
    refuse_open_proposal(&store, scene, arm).map_err(|error| refused("calibration", error))?;
    Ok(claim)
}

/// Keeps a session without any motion as the proposal, and answers with its summary and what it is worth.
fn keep_proposal(
    ctx: &ToolContext<'_>,
    scene: &Scene,
    session: &CalibrationSession,
    summary: &str,
) -> Result<Reply, Box<Reply>> {
    let store = CalibrationStore::of_state(&ctx.node.state, &ctx.node.scenes);
    let assessed = keep(&store, session, scene).map_err(|error| refused("calibration", error))?;
    let next = next_step(&assessed, ALIGN_AGAIN);
    let result = AlignmentResult::without_points(scene, assessed.finding.clone(), next);
    let reply = Reply::done(format!(
        "{summary}. This is proposed; it is saved only if an operator accepts it. Nothing moved"
    ))
    .with("change", change_json(assessed.change));
    let mut reply = add_findings(&result, reply);
    let text = report::assessment_text(session, &assessed);
    reply.text = format!("{}\n{text}", reply.text);
    Ok(reply)
}

/// Begins a session for the scene's sheet with its first pen.
pub(super) fn session(
    node: &Node,
    arm: &AttachedArm,
    scene: &Scene,
) -> Result<CalibrationSession, Box<Reply>> {
    let origin = calibration_check::origin(node, arm);
    calib::begin_session(CalibrationKind::Sheet, scene, None, origin)
        .map_err(|error| Reply::failed(error.to_string()).boxed())
}

/// Claims the next proposal for an arm before it moves; a measurement that is asked for meanwhile is told what it does.
///
/// # Errors
/// Another measurement is under way, or an operator must decide a proposal first.
pub(super) fn claim(ctx: &JobContext, scene: &Scene, does: &str) -> Result<ProposalClaim, Refusal> {
    let store = CalibrationStore::of_state(&ctx.node.state, &ctx.node.scenes);
    let (arm, scene_name) = (&ctx.arm.name, &scene.name);
    let claim = store.claim(&format!("arm {arm} {does} in scene {scene_name}"))?;
    refuse_open_proposal(&store, scene, arm)?;
    Ok(claim)
}

/// Refuses to measure while another proposal is open, which an operator must decide first. An arm replaces its own
/// proposals, but neither a person's touches nor another arm's.
fn refuse_open_proposal(store: &CalibrationStore, scene: &Scene, arm: &str) -> Result<(), Refusal> {
    store.check_not_interrupted()?;
    let is_ours = |session: &CalibrationSession| {
        let measured = session.probed || session.read_mm.is_some() || session.seen.is_some();
        let is_of_scene = session.kind == CalibrationKind::Sheet && session.scene == scene.name;
        // An arm has one model of its play, whichever the scene.
        let is_automatic = session.ink.as_ref().is_some_and(|ink| !ink.is_by_hand());
        let is_play = session.kind == CalibrationKind::Play && session.arm == scene.arm.file.name;
        let name = &session.origin.arm_name;
        (name.is_empty() || name == arm)
            && ((is_of_scene && (measured || is_automatic)) || (is_play && is_automatic))
    };
    match store.proposal()?.filter(|session| !is_ours(session)) {
        Some(session) => Err(is_open(&session)),
        None => Ok(()),
    }
}

/// Refuses because of a proposal that an operator must decide first.
pub(super) fn is_open(other: &CalibrationSession) -> Refusal {
    CalibrationDeskError::OtherThing(other.open_text()).into()
}

/// Judges a session and keeps it as the proposal.
pub(super) fn keep(
    store: &CalibrationStore,
    session: &CalibrationSession,
    scene: &Scene,
) -> Result<TouchAssessment, Refusal> {
    let lock = store.lock()?;
    refuse_open_proposal(store, scene, &session.origin.arm_name)?;
    let history = store.history()?;
    let mut newest_first = history.iter().rev();
    let last = newest_first.find(|record| record.session.is_of_same(session));
    let assessed = calib::assess(session, scene, last)?;
    store.propose(session, &lock)?;
    Ok(assessed)
}

/// Next step after an operator accepts a sheet.
pub(super) const ALIGN_AGAIN: &str = "then call `align` again";

/// Describes the operator's next step, and `then` the one after it.
pub(super) fn next_step(assessed: &TouchAssessment, then: &str) -> String {
    match assessed.finding.verdict {
        calib::FitVerdict::Redo => calib::next_step(assessed),
        _ => format!(
            "an operator checks it with `steadyhand calibrate show` and accepts it with `steadyhand calibrate accept`, {then}"
        ),
    }
}
