//! `stroke` in a scene that several arms share: each draws its part, and all begin, wait and stop together.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use super::dispatch::ToolContext;
use super::motion_job::{self, MotionJobRequest, StartedJob};
use super::reply::{Reply, refused};
use super::stroke::{self, DrawingScope, rounded};
use super::team::TeamSeat;
use super::{AttachedArm, Node, SharedPreview, calibration_check, pictures, resume, sheet_check};
use call::Refusal;
use job::{ArmKey, JobStore, PastJob};
use scene::{Order, Scene, ScenePart, SharedScene, SharedStroke, SheetStroke};

/// An arm that draws a part of a scene.
pub(super) struct Member {
    pub(super) arm: Arc<AttachedArm>,
    pub(super) scene: Arc<Scene>,
    /// What it left half done, if that is drawn now.
    pub(super) past: Option<PastJob>,
}

/// Returns the scene that a call means if several arms share it and the call names none of them alone.
pub(super) fn shared_scene(ctx: &ToolContext<'_>) -> Result<Option<SharedScene>, Box<Reply>> {
    let library = &ctx.node.scenes;
    let name = ctx.text("scene").filter(|name| library.is_shared(name));
    let Some(name) = name.filter(|_| !ctx.reading.given.contains_key("arm")) else {
        return Ok(None);
    };
    let shared = library.shared(name, ctx.text("meta"));
    shared.map(Some).map_err(|error| refused("scene", error))
}

/// Previews or draws a scene that several arms share.
pub(super) async fn call(ctx: &ToolContext<'_>, shared: SharedScene) -> Result<Reply, Box<Reply>> {
    let members = members(ctx.node, &shared).map_err(|error| refused("scene", error))?;
    let shared = Arc::new(shared);
    if ctx.is("dry_run") {
        return preview(ctx, &shared, &members).await;
    }
    for member in &members {
        resume::check_none_cut_short(ctx, &member.arm)?;
    }
    draw(ctx, &shared, &members).await
}

/// Returns whether a job drew an arm's part of a scene that several share.
pub(super) fn is_part(past: &PastJob) -> bool {
    past.scene.contains(scene::PART)
}

/// Returns what was left half done last of a scene that arms share, for a call that names no arm.
pub(super) fn unfinished(ctx: &ToolContext<'_>) -> Option<PastJob> {
    if ctx.reading.given.contains_key("arm") {
        return None;
    }
    let arms = ctx.node.arms.iter();
    let left = arms.filter_map(|arm| ctx.node.job_store.unfinished(arm.key()));
    left.filter(is_part)
        .max_by_key(|past| job::job_number(&past.id))
}

/// Returns what an arm left of the drawing that another job is a part of: also all of its share, where the others were stopped
/// before this one drew anything.
fn left_of_drawing(store: &JobStore, arm: ArmKey<'_>, of: &PastJob) -> Option<PastJob> {
    let is_of_it = |past: &PastJob| past.first_job == of.first_job;
    let unfinished = store.unfinished(arm).filter(is_of_it);
    unfinished.or_else(|| {
        let last = store.last_begun_drawing(arm, |_| true);
        last.filter(|past| is_of_it(past) && !past.is_on_sheet() && !past.may_have_inked())
    })
}

/// Draws what several arms left half done of a scene that they share; `None` if the drawing is of no such scene, or the call names
/// its arm alone.
pub(super) async fn resume(
    ctx: &ToolContext<'_>,
    past: &PastJob,
) -> Result<Option<Reply>, Box<Reply>> {
    let Some((name, _)) = past.scene.split_once(scene::PART) else {
        return Ok(None);
    };
    if ctx.reading.given.contains_key("arm") {
        return Ok(None);
    }
    resume::check_is_callers(ctx, past)?;
    let of_all = PastJob {
        scene: name.to_owned(),
        ..past.clone()
    };
    resume::check_same_target(ctx, &of_all)?;
    let left = left_by_all(ctx.node, name, past);
    let (shared, members) = left.map_err(|error| refused("scene_changed", error))?;
    let shared = Arc::new(shared);
    let reply = match ctx.is("dry_run") {
        true => preview(ctx, &shared, &members).await?,
        false => draw(ctx, &shared, &members).await?,
    };
    let mut understood = resume::understood(ctx, &of_all);
    understood.shift_remove("arm");
    Ok(Some(reply.with("understood", understood)))
}

/// Returns the scene of the drawing that a job is a part of, with what is left of it, and the arms that left it, each with its job.
pub(super) fn left_by_all(
    node: &Node,
    name: &str,
    past: &PastJob,
) -> Result<(SharedScene, Vec<Member>), Refusal> {
    let mut shared = node.scenes.shared(name, past.overlay())?;
    let mut members = members(node, &shared)?;
    for (part, member) in shared.parts.iter_mut().zip(&mut members) {
        member.past = left_of_drawing(&node.job_store, member.arm.key(), past);
        if let Some(past) = &member.past {
            // With the design that was drawn, which may be an operator's.
            member.scene = resume::same_scene(node, &member.arm, past)?;
            part.scene = Arc::clone(&member.scene);
        }
    }
    Ok(rest_of(node, shared, members))
}

/// Returns the job of a part that was left last, if all that this node's arms left are parts of one drawing.
pub(super) fn left_of_one_drawing(node: &Node) -> Option<PastJob> {
    let arms = node.arms.iter();
    let left = arms.filter_map(|arm| node.job_store.unfinished(arm.key()));
    let left: Vec<PastJob> = left.collect();
    let (first, others) = left.split_first()?;
    let is_of_it = |past: &PastJob| past.first_job == first.first_job;
    (is_part(first) && others.iter().all(is_of_it)).then(|| first.clone())
}

/// Returns what is left of a drawing, for the arms that left something of it.
fn rest_of(
    node: &Node,
    mut shared: SharedScene,
    members: Vec<Member>,
) -> (SharedScene, Vec<Member>) {
    let parts = shared.parts.into_iter().zip(members);
    let left = parts.filter(|(_, member)| member.past.is_some());
    let (mut parts, members): (Vec<ScenePart>, Vec<Member>) = left.unzip();
    shared.strokes.clear();
    for (own, (part, member)) in parts.iter_mut().zip(&members).enumerate() {
        let past = member.past.iter();
        let rest: Vec<SheetStroke> = past
            .flat_map(|past| resume::rest_of(node, past).strokes)
            .collect();
        let pen_of = |arm: usize, stroke: &SheetStroke| (arm == own).then_some(stroke.pen);
        shared
            .strokes
            .extend(rest.iter().map(|stroke| SharedStroke {
                pens: (0..members.len()).map(|arm| pen_of(arm, stroke)).collect(),
                stroke: stroke.clone(),
            }));
        part.scene = Arc::new(Scene {
            strokes: rest,
            order: Order::AsDrawn,
            ..Scene::clone(&part.scene)
        });
    }
    shared.parts = parts;
    (shared, members)
}

/// Draws with all arms, and waits for the end of each.
async fn draw(
    ctx: &ToolContext<'_>,
    shared: &Arc<SharedScene>,
    members: &[Member],
) -> Result<Reply, Box<Reply>> {
    for Member { arm, scene, .. } in members {
        calibration_check::check(ctx.node, arm, scene)?;
        ctx.check_previewed(arm, scene)?;
        sheet_check::check(ctx.node, arm, scene).await?;
    }
    let started = start(ctx, shared, members).await?;
    let waiting = started.into_iter().zip(members);
    let waiting =
        waiting.map(|(started, member)| started.wait_for_end(ctx.node, &member.arm, ctx.watch));
    let replies = join_all(waiting).await;
    let names = members.iter().map(|member| member.arm.name.as_str());
    Ok(joined(&names.collect::<Vec<_>>(), replies))
}

/// Begins the job of each arm. Where one does not begin, the others end before anything moves.
async fn start(
    ctx: &ToolContext<'_>,
    shared: &Arc<SharedScene>,
    members: &[Member],
) -> Result<Vec<StartedJob>, Box<Reply>> {
    let names = members.iter().map(|member| member.arm.name.clone());
    let seats = TeamSeat::together(names.collect());
    let mut started = Vec::new();
    for (Member { arm, scene, past }, seat) in members.iter().zip(seats) {
        let mut call = MotionJobRequest {
            team: seat.clone(),
            ..ctx.job("stroke", arm, scene, ctx.is("again"))?
        };
        // A call for one of the arms alone draws something else.
        call.key.work.insert_str(0, "together ");
        if let Some(past) = past {
            call.accepted.resumes.clone_from(&past.id);
            call.accepted.first_job.clone_from(&past.first_job);
            call.key.work = format!("together stroke resume {}", past.id);
        }
        let scope = DrawingScope {
            shared: Some(Arc::clone(shared)),
            rest: past.as_ref().map(|past| resume::rest_of(ctx.node, past)),
            plan: ctx.plan_hash(),
        };
        let scene = Arc::clone(scene);
        let work = move |ctx| stroke::draw(ctx, scene, scope);
        let job = motion_job::start_job(ctx.node, arm, call, work).await;
        if !matches!(job, StartedJob::UnderWay(_)) {
            seat.leave(&format!("arm `{}` does not draw its part", arm.name));
        }
        started.push(job);
    }
    Ok(started)
}

/// Returns the arms of this node that draw the parts of a scene.
fn members(node: &Node, shared: &SharedScene) -> Result<Vec<Member>, Refusal> {
    let of_part = |part: &ScenePart| {
        let arm = node.arm_of_part(&shared.name, part.arm_name(), &part.scene.arm.file.name)?;
        Ok(Member {
            arm: Arc::clone(arm),
            scene: Arc::clone(&part.scene),
            past: None,
        })
    };
    shared.parts.iter().map(of_part).collect()
}

/// Joins the answers of all arms to one.
fn joined(arms: &[&str], replies: Vec<Reply>) -> Reply {
    let lines = arms.iter().zip(&replies);
    let lines = lines.map(|(arm, reply)| format!("{arm}: {}", reply.text));
    let text = lines.collect::<Vec<_>>().join("\n");
    let is_own = |reply: &&Reply| {
        reply
            .structured
            .get("stop")
            .and_then(|stop| stop.get("neighbour"))
            .is_none()
    };
    // One that stopped because of another says less than that one.
    let errors = || replies.iter().filter(|reply| reply.is_error);
    let failed = errors().find(is_own).or_else(|| errors().next());
    let mut all = match failed {
        None => Reply::done(text),
        Some(failed) => {
            let mut all = Reply::failed(text);
            all.set_some("code", failed.code());
            all
        }
    };
    let longest = replies
        .iter()
        .filter_map(|reply| reply.structured.get("arm_time_s"));
    all.set_some(
        "arm_time_s",
        longest.filter_map(Value::as_f64).reduce(f64::max),
    );
    let mut plans = replies
        .iter()
        .filter_map(|reply| reply.structured.get("plan_hash"));
    all.set_some("plan_hash", plans.next());
    // Only where no arm moved, nothing did.
    let has_not_moved = |reply: &Reply| reply.structured.get("moved") == Some(&false.into());
    if replies.iter().all(has_not_moved) {
        all.set("moved", false);
    }
    let parts = arms.iter().zip(&replies).map(|(arm, reply)| {
        let mut part = reply.structured.clone();
        part.shift_remove("understood");
        part.insert("arm".to_owned(), (*arm).into());
        Value::Object(part)
    });
    all.set("arms", parts.collect::<Vec<_>>());
    let files = replies
        .iter()
        .filter_map(|reply| reply.structured.get("files")?.as_array());
    let files: Vec<&Value> = files.flatten().collect();
    all.set_some("files", (!files.is_empty()).then_some(files));
    all.images = replies.into_iter().flat_map(|reply| reply.images).collect();
    all
}

/// Shows the plan of all arms, without a motion.
async fn preview(
    ctx: &ToolContext<'_>,
    shared: &Arc<SharedScene>,
    members: &[Member],
) -> Result<Reply, Box<Reply>> {
    let arms = members.iter().map(|member| Arc::clone(&member.arm));
    let preview = SharedPreview::from_here(ctx.node, arms.collect(), shared, ctx.watch).await;
    let preview = preview.map_err(|error| error.reply().1.boxed())?;
    Ok(preview_reply(ctx.node, shared, &preview))
}

fn preview_reply(node: &Node, shared: &SharedScene, preview: &SharedPreview) -> Reply {
    let message = preview.message(shared);
    let mut reply = match preview.refusals.is_empty() {
        true => Reply::done(message),
        false => Reply::failed(message)
            .with("code", "plan_refused")
            .with("refusals", &preview.refusals),
    };
    reply.set("moved", false);
    let Some(plan) = &preview.plan else {
        return reply;
    };
    let arms = shared.parts.iter().zip(&plan.plans);
    let arms = arms.map(|(part, plan)| {
        json!({
            "arm": part.arm_name(),
            "stroke_count": plan.report.stroke_count,
            "pen_down_mm": rounded(plan.report.pen_down_mm),
        })
    });
    reply.set("arms", arms.collect::<Vec<_>>());
    reply.set("planned_s", rounded(plan.duration_s));
    reply.set("plan_hash", &plan.hash);
    let picture = pictures::shared(shared, plan);
    let folder = format!("preview-{}", node.number());
    let files = pictures::write(node, &folder, &[("plan.png", picture.as_deref())]);
    reply.show(picture);
    files.add_to(reply)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use job::{AcceptedJob, RetentionPolicy, TipPlace};

    fn arm(name: &str) -> ArmKey<'_> {
        ArmKey {
            name,
            is_on_port: false,
        }
    }

    /// Keeps a job of an arm's part that was stopped before it drew anything.
    fn stopped(store: &JobStore, arm: &str, first_job: &str) -> PastJob {
        let accepted = AcceptedJob {
            id: store.next_id(),
            tool: "stroke".to_owned(),
            arm: arm.to_owned(),
            scene: scene::part_name("two_arms", arm),
            first_job: first_job.to_owned(),
            ..AcceptedJob::default()
        };
        let entry = store.begin(&accepted).unwrap();
        entry.moving().unwrap();
        let tip = Some(TipPlace::Off);
        entry.ended("stopped", "told", "{}", tip).unwrap();
        store.ended_with(&entry);
        entry.past()
    }

    #[test]
    fn an_arm_has_a_share_of_no_drawing_but_its_last() {
        let folder = tempfile::tempdir().unwrap();
        let keep = RetentionPolicy {
            jobs: 100,
            bytes: 1 << 30,
            days: 30,
        };
        let store = JobStore::open(folder.path(), keep).unwrap();
        let share_of = |of: &PastJob| {
            let left = left_of_drawing(&store, arm("right"), of);
            left.map(|past| past.id)
        };
        let left = stopped(&store, "left", "");
        let right = stopped(&store, "right", &left.first_job);
        assert_eq!(share_of(&left), Some(right.id.clone()));
        // The left arm goes on with it, and is stopped again.
        let resumed = stopped(&store, "left", &left.first_job);
        assert_eq!(share_of(&resumed), Some(right.id));
        // It draws all of the same scene alone.
        let alone = stopped(&store, "left", "");
        assert_eq!(share_of(&alone), None);
        // Both begin anew.
        let left = stopped(&store, "left", "");
        let right = stopped(&store, "right", &left.first_job);
        assert_eq!(share_of(&left), Some(right.id));
        assert_eq!(share_of(&resumed), None);
    }

    #[test]
    fn a_fault_is_told_in_place_of_the_stop_that_it_caused() {
        let stopped = |neighbour: Option<&str>| {
            let stop = match neighbour {
                Some(name) => json!({"by": "node", "neighbour": name}),
                None => json!({"by": "operator"}),
            };
            let reply = Reply::failed("stopped").with("code", "stopped");
            reply.with("stop", stop)
        };
        let fault = || Reply::failed("broke").with("code", "fault");
        let done = || Reply::done("drew");
        for (replies, code) in [
            (vec![done(), done()], None),
            (vec![stopped(Some("right")), fault()], Some("fault")),
            (vec![fault(), stopped(Some("left"))], Some("fault")),
            (vec![stopped(None), stopped(Some("left"))], Some("stopped")),
            (vec![done(), stopped(Some("left"))], Some("stopped")),
        ] {
            let texts: Vec<String> = replies.iter().map(|reply| reply.text.clone()).collect();
            let all = joined(&["left", "right"], replies);
            assert_eq!((all.code(), all.is_error), (code, code.is_some()));
            assert!(texts.iter().all(|text| all.text.contains(text)));
        }
    }
}
