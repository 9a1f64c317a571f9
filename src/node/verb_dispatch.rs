//! Carries out the verbs of operators, from whichever channel they come, and records them.

use std::sync::Arc;
use std::time::Duration;

use super::job_list::describe_unread;
use super::operator_verb::{AlignRequest, OperatorVerb, VerbReply};
use super::running_nodes::NodeDescription;
use super::{
    arm_verbs, calibrate_verbs, doctor, job_list, job_replay, jog, measurements, selftest,
    worker_pool,
};
use args::ReceivedArguments;
use base::wording::{duration, names_step, with_next, with_statement};
use call::ArrivalStamp;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use permit::ActorRank;
use serde_json::{Map, Value, json};
use tools::{AwaitedPen, DrawingAssent, DrawingOrder, Node, RemoteCallWatch, Reply, ToolRequest};

/// Runs a verb of an authenticated operator, which a stop after `arrived` ends, and records it.
pub async fn run_for_operator(
    node: &Arc<Node>,
    caller: &str,
    verb: OperatorVerb,
    arrived: ArrivalStamp,
) -> VerbReply {
    if let OperatorVerb::Progress { job } = &verb {
        // Asked several times a second: nothing is done, and nothing is recorded.
        return progress_reply(node, job.as_deref()).await;
    }
    if matches!(verb, OperatorVerb::Describe) {
        // A client may wait for this before it stops an arm, so it does not go through the worker pool.
        return describe(node);
    }
    if let OperatorVerb::Pen {
        job,
        confirmed: None,
    } = &verb
    {
        return pen_reply(node, job.as_deref(), None).await;
    }
    let action = format!("{caller}: {}", verb.words());
    tracing::info!("operator: {action}");
    let stops = verb.stops();
    let running = carry_out_boxed(Arc::clone(node), caller.to_owned(), verb, arrived);
    let reply = if stops {
        // Not in the worker pool, where other verbs may be reading a scene or waiting for an arm.
        running.await
    } else {
        let worker = worker_pool::spawn(running);
        let worker_panicked =
            |_| VerbReply::failed("the node failed while it did this; its log has the reason");
        worker.await.unwrap_or_else(worker_panicked)
    };
    let reply = if stops { reply } else { with_step(reply) };
    let outcome = match reply.done {
        true => "done",
        false => "not done",
    };
    let note = format!("{action}; {outcome}: {}", reply.text);
    node.audit.note("operator", note);
    reply
}

/// Adds the next step to a refusal without one: the state of the node ends with it. What a failed stop asks for is no command.
fn with_step(mut reply: VerbReply) -> VerbReply {
    if !reply.done && !names_step(&reply.text) && !reply.text.contains('\n') {
        reply.text = with_next(&reply.text, "`steadyhand status`");
    }
    reply
}

/// Boxes [`carry_out`], so that it is compiled once and not in every function that awaits it.
fn carry_out_boxed(
    node: Arc<Node>,
    caller: String,
    verb: OperatorVerb,
    arrived: ArrivalStamp,
) -> BoxFuture<'static, VerbReply> {
    async move { carry_out(&node, verb, (&caller, &arrived)).await }.boxed()
}

/// Returns why a node that withholds motion refuses a verb. An arm that loses its torque drops, which is a motion too.
fn withheld(node: &Node, verb: &OperatorVerb) -> Option<&'static str> {
    let drops = matches!(verb, OperatorVerb::TorqueOff) && node.file.read_only;
    let withheld = node.motion_withheld();
    withheld.filter(|_| verb.moves() || drops)
}

async fn carry_out(
    node: &Arc<Node>,
    verb: OperatorVerb,
    (caller, arrived): (&str, &ArrivalStamp),
) -> VerbReply {
    if let Some(reason) = withheld(node, &verb) {
        return VerbReply::failed(reason);
    }
    match verb {
        OperatorVerb::Enable {
            scene,
            meta,
            for_s,
            arm,
        } => enable(
            node,
            arrived,
            (&scene, meta.as_deref()),
            (for_s, arm.as_deref()),
        ),
        OperatorVerb::Disable => arm_verbs::disable(node, caller).await,
        OperatorVerb::Stop => {
            arm_verbs::stop(node, (caller, arrived), ReceivedArguments::Absent).await
        }
        OperatorVerb::Estop => arm_verbs::estop(node, caller).await,
        OperatorVerb::StopFleet { emergency } => {
            arm_verbs::stop_fleet(node, (caller, arrived), emergency).await
        }
        OperatorVerb::Clear => arm_verbs::clear(node, arrived),
        OperatorVerb::Hold { now } => arm_verbs::hold(node, now, caller).await,
        OperatorVerb::Resume => arm_verbs::resume(node, arrived).await,
        OperatorVerb::NewSheet { arm } => VerbReply::of(node.lay_new_sheet(arm.as_deref())),
        OperatorVerb::Trim(request) => arm_verbs::trim(node, &request).await,
        OperatorVerb::TorqueOff => arm_verbs::torque_off(node, caller).await,
        OperatorVerb::Selftest { scene, rounds } => {
            selftest::run(node, arrived, scene.as_deref(), rounds).await
        }
        OperatorVerb::Reset { scene, arm } => reset(node, arrived, scene, arm).await,
        OperatorVerb::Align(request) => align(node, arrived, &request).await,
        OperatorVerb::FirstInk { scene, arm } => first_ink(node, arrived, &scene, arm).await,
        OperatorVerb::Status => status_reply(node, arrived).await,
        OperatorVerb::Jobs { id, json } => {
            job_list::jobs_reply(&node.state, Some(&node.job_store), id.as_deref(), json)
        }
        OperatorVerb::Describe => describe(node),
        OperatorVerb::Replay { job } => job_replay::reply(node, &job).await,
        OperatorVerb::Calibrations => measurements::calibrations_reply(node),
        OperatorVerb::Calibrate(action) => calibrate_verbs::run(node, &action).await,
        OperatorVerb::Doctor => doctor::reply(node),
        OperatorVerb::Measured => measurements::measurements_reply(node),
        OperatorVerb::Look { scene, camera } => {
            measurements::camera_pose_reply(node, &scene, camera.as_deref()).await
        }
        OperatorVerb::Jog { scene, step, arm } => {
            jog::step(node, arrived, (&scene, arm.as_deref()), step).await
        }
        OperatorVerb::Jogged { scene, arm } => jog::state_reply(node, &scene, arm.as_deref()),
        OperatorVerb::Pending { job } => pending_reply(node, job.as_deref()).await,
        OperatorVerb::Draw { order, assent } => draw(node, arrived, &order, assent.as_ref()).await,
        OperatorVerb::Progress { job } => progress_reply(node, job.as_deref()).await,
        OperatorVerb::Pen { job, confirmed } => pen_reply(node, job.as_deref(), confirmed).await,
        OperatorVerb::PageLogin => VerbReply::failed(
            "a login code can be made only on the node's own machine. Next: run `steadyhand page` there",
        ),
        OperatorVerb::Refuse { job, plan } => VerbReply::of(node.refuse_plan(&job, &plan)),
        OperatorVerb::Approve { job, plan } => VerbReply::of(node.approve(&job, &plan)),
    }
}

/// Moves the named arm to rest in the named scene.
async fn reset(
    node: &Arc<Node>,
    arrived: &ArrivalStamp,
    scene: Option<String>,
    arm: Option<String>,
) -> VerbReply {
    let named: serde_json::Map<String, Value> = [("scene", scene), ("arm", arm)]
        .into_iter()
        .filter_map(|(key, name)| Some((key.to_owned(), Value::from(name?))))
        .collect();
    let arguments = match named.is_empty() {
        true => ReceivedArguments::Absent,
        false => ReceivedArguments::Value(named.into()),
    };
    call(node, arrived, "reset", arguments).await
}

/// Aligns the named arm, or the only one that draws the scene: by the offset of the cross that a person measured, if there is one.
async fn align(node: &Arc<Node>, arrived: &ArrivalStamp, request: &AlignRequest) -> VerbReply {
    let mut arguments = Map::from_iter([
        ("scene".to_owned(), request.scene.as_str().into()),
        ("touch".to_owned(), request.touch.into()),
        ("ink".to_owned(), request.ink.into()),
    ]);
    // A scene that cannot be read is refused by the tool itself.
    if let Ok(scene) = node.scenes.scene(&request.scene, None) {
        let seat = match node.arm_for(&scene, request.arm.as_deref()) {
            Ok(seat) => seat,
            Err(reason) => return VerbReply::failed(with_statement(reason, "nothing moved")),
        };
        if node.has_several_arms() {
            arguments.insert("arm".to_owned(), seat.name.as_str().into());
        }
    }
    if let Some([dx, dy]) = request.measured_mm {
        arguments.insert("measured".to_owned(), json!({ "dx": dx, "dy": dy }));
    }
    let arguments = ReceivedArguments::Value(arguments.into());
    call(node, arrived, "align", arguments).await
}

/// Returns the node's description, as text and as data.
fn describe(node: &Node) -> VerbReply {
    let description = NodeDescription::of(node);
    VerbReply::with_data(description.words(), &description)
}

/// Draws a scene's own design as the first ink on its sheet.
async fn first_ink(
    node: &Arc<Node>,
    arrived: &ArrivalStamp,
    scene: &str,
    arm: Option<String>,
) -> VerbReply {
    let reply = node.draw_first_ink(scene, arm.as_deref(), arrived).await;
    reply.map_or_else(VerbReply::failed, |reply| VerbReply::of_tool(&reply))
}

/// Shows a drawing as data, or begins the one that a person agreed to.
async fn draw(
    node: &Arc<Node>,
    arrived: &ArrivalStamp,
    order: &DrawingOrder,
    assent: Option<&DrawingAssent>,
) -> VerbReply {
    let Some(assent) = assent else {
        let offer = node.offer_drawing(order).await;
        let reply = offer.map(|offer| VerbReply::with_data(&offer.title, &offer));
        return reply.unwrap_or_else(VerbReply::failed);
    };
    let jobs = node.begin_drawing(order, assent, arrived).await;
    let reply = jobs.map(|jobs| {
        let verb = if jobs.len() == 1 { "has" } else { "have" };
        VerbReply::with_data(format!("{} {verb} begun", jobs.join(" and ")), &jobs)
    });
    reply.unwrap_or_else(VerbReply::failed)
}

/// Returns the progress of a job, as text and as data.
async fn progress_reply(node: &Arc<Node>, job: Option<&str>) -> VerbReply {
    let progress = node.job_progress(job).await;
    progress.map_or_else(VerbReply::failed, |progress| {
        VerbReply::with_data(&progress.words, &progress)
    })
}

/// Lists the awaited pens, a single one as data as well; or confirms that a pen is in the holder.
async fn pen_reply(node: &Arc<Node>, job: Option<&str>, confirmed: Option<usize>) -> VerbReply {
    let mut awaited_pens = node.awaited_pens();
    awaited_pens.retain(|awaited| job.is_none_or(|job| awaited.job == job));
    let describe = |awaited: &AwaitedPen| {
        let (job, arm, pen) = (&awaited.job, &awaited.arm, &awaited.words);
        format!("{job} on arm {arm} waits for {pen}")
    };
    match (awaited_pens.as_slice(), confirmed, job) {
        ([], _, Some(job)) => {
            VerbReply::failed(idle_line(node, job, "does not wait for a person").await)
        }
        ([], Some(_), None) => VerbReply::failed("no job waits for a person"),
        ([], None, None) => VerbReply::done("no job waits for a person"),
        ([one], Some(pen), _) => VerbReply::of(node.confirm_pen(&one.job, pen)),
        (_, Some(_), _) => {
            VerbReply::failed("several jobs wait for a person. Next: name one of them")
        }
        ([one], None, _) => VerbReply::with_data(describe(one), one),
        (several, None, _) => {
            let lines: Vec<String> = several.iter().map(describe).collect();
            VerbReply::done(lines.join("\n"))
        }
    }
}

/// Says that a job does not wait, or that no job has that name. Its journal is read on another thread.
async fn idle_line(node: &Arc<Node>, job: &str, predicate: &str) -> String {
    let (node, id) = (Arc::clone(node), job.to_owned());
    let unread_reason = tokio::task::spawn_blocking(move || {
        let unread = job::past(&node.state, &id).err()?;
        Some(describe_unread(&node.state, &id, &unread))
    });
    match unread_reason.await {
        Ok(Some(reason)) => reason,
        Ok(None) => format!("{job} {predicate}"),
        Err(_) => format!("the journal of {job} could not be read"),
    }
}

/// Lists the plans that wait for approval, or describes the only one.
async fn pending_reply(node: &Arc<Node>, job: Option<&str>) -> VerbReply {
    let mut plans = node.pending();
    plans.retain(|pending| job.is_none_or(|job| pending.job == job));
    match (plans.as_slice(), job) {
        ([], Some(job)) => {
            VerbReply::failed(idle_line(node, job, "does not wait for approval").await)
        }
        ([], None) => VerbReply::done("nothing waits for approval"),
        ([one], _) => VerbReply {
            plan: Some(one.plan.clone()),
            ..VerbReply::done(&one.words)
        },
        (several, _) => {
            let texts: Vec<&str> = several.iter().map(|one| one.words.as_str()).collect();
            VerbReply::done(texts.join("\n\n"))
        }
    }
}

fn enable(
    node: &Node,
    arrived: &ArrivalStamp,
    named: (&str, Option<&str>),
    (for_s, arm): (Option<u64>, Option<&str>),
) -> VerbReply {
    let period = for_s.map(Duration::from_secs);
    let enabled = match node.enable_by_name(named, arm, period, arrived) {
        Err(reason) => return VerbReply::failed(reason),
        Ok(enabled) => enabled,
    };
    let period = match period {
        None => "as long as the node runs".to_owned(),
        Some(period) => format!("for {}", duration(period)),
    };
    let interlock = enabled.iter().find_map(|(seat, _)| node.kept_apart(seat));
    let interlock = interlock.map_or_else(String::new, |text| format!("; {text}"));
    let names: Vec<&str> = enabled.iter().map(|(seat, _)| &*seat.name).collect();
    let arms = match (node.has_several_arms(), names.as_slice()) {
        (false, _) => String::new(),
        (true, [one]) => format!(" on arm {one}"),
        (true, several) => format!(" on the arms {}", several.join(", ")),
    };
    let scenes = enabled
        .iter()
        .map(|(_, scene)| format!("{} (revision {})", scene.title(), scene.revision));
    let mut scenes: Vec<String> = scenes.collect();
    scenes.dedup();
    VerbReply::done(format!(
        "motion is enabled{arms} for scene {} {period}{interlock}",
        scenes.join(" and ")
    ))
}

/// Senses each arm, and says what it is doing and the next step.
async fn status_reply(node: &Arc<Node>, arrived: &ArrivalStamp) -> VerbReply {
    let mut texts = Vec::new();
    let mut reply = VerbReply::done("");
    for seat in &node.arms {
        let arguments = match node.has_several_arms() {
            true => ReceivedArguments::Value(json!({"arm": seat.name})),
            false => ReceivedArguments::Absent,
        };
        let sensed = call(node, arrived, "sense", arguments).await;
        texts.push(node.text_of_arm(seat, &node.status_text(seat, &sensed.text)));
        reply = VerbReply {
            done: reply.done && sensed.done,
            data: sensed.data.filter(|_| !node.has_several_arms()),
            ..reply
        };
    }
    VerbReply {
        text: texts.join("\n"),
        ..reply
    }
}

pub(super) async fn call(
    node: &Arc<Node>,
    arrived: &ArrivalStamp,
    tool: &str,
    arguments: ReceivedArguments,
) -> VerbReply {
    let call = (ActorRank::Operator, tool, arguments);
    let reply = call_as(node, "operator", arrived.clone(), call).await;
    VerbReply::of_tool(&reply)
}

/// Calls a tool of this node for a channel that has authenticated the caller. Its progress is not reported.
pub(super) fn call_as(
    node: &Arc<Node>,
    caller: &str,
    arrived: ArrivalStamp,
    (who, tool, arguments): (ActorRank, &str, ReceivedArguments),
) -> BoxFuture<'static, Reply> {
    let request = ToolRequest {
        tool: tool.to_owned(),
        arguments,
        caller: caller.to_owned(),
        who,
        principal: None,
        hop: None,
        is_step: false,
        arrived,
    };
    Arc::clone(node).call(request, RemoteCallWatch::unobserved())
}

impl VerbReply {
    /// Passes a tool's reply on.
    pub(super) fn of_tool(reply: &Reply) -> Self {
        Self {
            done: !reply.is_error,
            ..Self::with_data(&reply.text, &reply.structured)
        }
    }
}
