//! `sense` with `grid`: the sheet with a grid in millimetres, so that a caller can add to what is there.

use std::sync::Arc;

use serde_json::json;

use super::dispatch::ToolContext;
use super::reply::Reply;
use super::sheet_ink::InkLine;
use super::stroke::rounded;
use super::{AttachedArm, pictures};
use base::units::short;
use base::wording::{count, next_apart};
use scene::Scene;

/// Argument that asks for it.
pub(super) const GRID: &str = "grid";

/// Adds the sheet to an answer: its picture, and the same in a line of words, which it returns.
pub(super) async fn add(
    reply: &mut Reply,
    ctx: &ToolContext<'_>,
    arm: &Arc<AttachedArm>,
) -> String {
    let Some(scene) = shown_scene(ctx, arm) else {
        return "the node does not know which sheet is meant. Next: name a `scene`".to_owned();
    };
    // A simulated arm has no better camera than its own ink.
    let seen = match &arm.workcell {
        None if ctx.node.has_camera(arm) => Some(ctx.node.flat_sheet(arm, &scene).await),
        _ => None,
    };
    let (ink, drawings) = (
        ctx.node.ink_on_sheet(arm, &scene),
        ctx.node.drawings_on_sheet(arm, &scene).len(),
    );
    let photo = seen.as_ref().and_then(|seen| seen.as_ref().ok());
    let picture = pictures::grid(&scene, &ink, photo);
    let files = pictures::write_seen(ctx.node, &[("grid.png", picture.as_deref())]);
    *reply = files.add_to_report("captured_files", std::mem::take(reply));
    reply.show(picture);
    let extent = extent(&ink);
    reply.set(
        "sheet",
        json!({"scene": scene.name, "size_mm": scene.surface.size_mm(), "drawings": drawings, "ink_mm": extent}),
    );
    let no_photo = seen.and_then(Result::err);
    let no_photo = no_photo.map(|reason| {
        let reason = reason.to_string();
        format!(
            "; {}, so this shows the ink in the journals",
            next_apart(&reason).0
        )
    });
    format!(
        "{}{}",
        words(&scene, drawings, extent),
        no_photo.unwrap_or_default()
    )
}

/// Returns the scene that the call names, or whose sheet lies there, or the first that takes a caller's drawing.
fn shown_scene(ctx: &ToolContext<'_>, arm: &AttachedArm) -> Option<Arc<Scene>> {
    let read = |name: &str| ctx.node.scene(arm, name, ctx.text("meta")).ok();
    let given = ctx.reading.given.get("scene");
    if given.is_some() {
        return ctx.text("scene").and_then(read);
    }
    let canvases = || ctx.node.all_names().canvases;
    let lying = arm.sheet_scene();
    lying
        .or_else(|| canvases().iter().find_map(|name| read(name)))
        .or_else(|| ctx.text("scene").and_then(read))
}

/// Returns the box around ink: x from and to, then y from and to.
fn extent(ink: &[InkLine]) -> Option<[[f64; 2]; 2]> {
    let points = || ink.iter().flat_map(|(_, line)| line);
    points().next()?;
    let range = |axis: fn(&[f64; 2]) -> f64| {
        let values = || points().map(axis);
        let low = values().fold(f64::INFINITY, f64::min);
        [low, values().fold(f64::NEG_INFINITY, f64::max)].map(rounded)
    };
    Some([range(|[x, _]| *x), range(|[_, y]| *y)])
}

fn words(scene: &Scene, drawings: usize, extent: Option<[[f64; 2]; 2]>) -> String {
    let [width, height] = scene.surface.size_mm().map(short);
    let tenth = |mm: f64| short((mm * 10.0).round() / 10.0);
    let ink = match extent {
        None => "no ink on it".to_owned(),
        Some([[left, right], [low, high]]) => format!(
            "ink from x {} to {} mm, y {} to {} mm",
            tenth(left),
            tenth(right),
            tenth(low),
            tenth(high)
        ),
    };
    let drawings = match drawings {
        0 => String::new(),
        some => format!("{} and ", count(some, "drawing")),
    };
    format!(
        "sheet {} of {width} by {height} mm, origin lower left: {drawings}{ink}",
        scene.name
    )
}
