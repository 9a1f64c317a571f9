//! What the view in MCP clients asks `sense` for: the words of the page's head, and the lines of its paper where they changed.

use serde::Serialize;
use serde_json::Value;

use super::dispatch::ToolContext;
use super::live_sheet::{LiveSheet, LiveTip, SheetKey, SheetMessage};
use super::reply::Reply;
use super::{ArmCondition, AttachedArm, LiveJob};
use base::lock::MutexExt;

/// Argument that asks for it: the key of the sheet that the view has already.
pub(super) const SHEET_KEY: &str = "sheet_key";

/// What the view shows of a node and one of its arms.
#[derive(Debug, Serialize)]
struct SheetView<'a> {
    node: &'a str,
    /// What the view shows once it hears the node no more.
    lost: Value,
    arm: ViewedArm<'a>,
    sheet_key: String,
    /// Absent if the view has it, or if no scene is for the arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    sheet: Option<&'a SheetMessage>,
}

#[derive(Debug, Serialize)]
struct ViewedArm<'a> {
    name: &'a str,
    title: String,
    condition: Value,
    enabled: String,
    holder: Option<String>,
    age_ms: Option<f64>,
    tip: Option<LiveTip>,
    job: Option<LiveJob>,
    ink_mm: f64,
}

/// Adds it to an answer. May read a journal.
pub(super) fn add(reply: &mut Reply, ctx: &ToolContext<'_>, arm: &AttachedArm) {
    let Some(known) = ctx.text(SHEET_KEY) else {
        return;
    };
    let (job, scene) = (arm.live_job(), arm.last_scene());
    let key = SheetKey::of(arm, job.as_ref());
    let mut sheet = arm.viewed_sheet.locked();
    if sheet.key != key || sheet.message.is_none() {
        *sheet = LiveSheet::read(ctx.node, arm, key);
    }
    let snapshot = arm.motion.snapshot();
    let measured = snapshot.measured.as_deref();
    let age_s = measured.map(|seen| arm.motion.clock().now().seconds_since(seen.at));
    let ink_mm = sheet.ink_mm(arm);
    let sheet_key = sheet.key.text();
    let view = SheetView {
        node: &ctx.node.file.name,
        lost: ArmCondition::of_lost_node().to_view(),
        arm: ViewedArm {
            name: &arm.name,
            title: arm.title(),
            condition: ctx.node.condition(arm).to_view(),
            enabled: ctx.node.enabled_text(arm),
            holder: arm.holder(ctx.node.lease_idle()),
            age_ms: age_s.map(|seconds| (seconds * 1e3).round()),
            tip: measured.and_then(|seen| LiveTip::of(scene.as_deref()?, &seen.position_rad)),
            ink_mm,
            job,
        },
        sheet: sheet.message.as_ref().filter(|_| known != sheet_key),
        sheet_key,
    };
    reply.set("view", view);
}
