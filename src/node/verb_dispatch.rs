//! Carries out what operators request, by whichever way it came, and records it.

use std::sync::Arc;
use std::time::Duration;

use super::job_list::unread;
use super::operator_verb::{OperatorVerb, VerbReply};
use super::running_nodes::NodeDescription;
use super::{
    arm_verbs, calibrate_verbs, doctor, job_list, job_replay, jog, measurements, selftest,
    worker_pool,
};
use args::ReceivedArguments;
use base::wording::duration;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use permit::ActorRank;
use serde_json::{Value, json};
use tools::{AwaitedPen, DrawingAssent, DrawingOrder, Node, RemoteCallWatch, Reply, ToolRequest};

/// Runs a verb of an authenticated operator and records it.
pub async fn run_for_operator(node: &Arc<Node>, caller: &str, verb: OperatorVerb) -> VerbReply {
    if let OperatorVerb::Progress { job } = &verb {
        // Asked several times a second: nothing is done, and nothing is recorded.
        return progress(node, job.as_deref()).await;
    }
    if matches!(verb, OperatorVerb::Describe) {
        // A stop may wait for this: it is done here and now.
        return describe(node);
    }
    if let OperatorVerb::Pen {
        job,
        confirmed: None,
    } = &verb
    {
        return pen(node, job.as_deref(), None);
    }
    tracing::info!(caller, ?verb, "operator");
    let words = format!("{caller}: {verb:?}");
    let stops = verb.stops();
    let acting = acting(Arc::clone(node), verb);
    let told = if stops {
        // Here and now: the others may read a scene, or wait for an arm.
        acting.await
    } else {
        let working = worker_pool::spawn(acting);
        let broke = |_| VerbReply::failed("the node broke while it did this; its log says why");
        working.await.unwrap_or_else(broke)
    };
    let note = format!("{words}: done {}: {}", told.done, told.text);
    node.audit.note("operator", note);
    told
}

/// Boxed, so that it is compiled here once and not wherever it is awaited.
fn acting(node: Arc<Node>, verb: OperatorVerb) -> BoxFuture<'static, VerbReply> {
    async move { act(&node, verb).await }.boxed()
}

async fn act(node: &Arc<Node>, verb: OperatorVerb) -> VerbReply {
    let moves = verb.moves();
    // An arm whose torque goes drops, which is a motion too.
    let drops = matches!(verb, OperatorVerb::TorqueOff) && node.file.read_only;
    if let Some(why) = node.motion_withheld().filter(|_| moves || drops) {
        return VerbReply::failed(why);
    }
    match verb {
        OperatorVerb::Enable {
            scene,
            meta,
            for_s,
            arm,
        } => enable(node, &scene, meta.as_deref(), for_s, arm.as_deref()),
        OperatorVerb::Disable => disable(node),
        OperatorVerb::Stop => call(node, "stop", ReceivedArguments::Absent).await,
        OperatorVerb::Estop => arm_verbs::estop(node).await,
        OperatorVerb::StopFleet { emergency } => arm_verbs::stop_fleet(node, emergency).await,
        OperatorVerb::Clear => arm_verbs::clear(node),
        OperatorVerb::Hold { now } => arm_verbs::hold(node, now).await,
        OperatorVerb::Resume => arm_verbs::resume(node).await,
        OperatorVerb::TorqueOff => arm_verbs::torque_off(node).await,
        OperatorVerb::Selftest { scene, rounds } => {
            selftest::run(node, scene.as_deref(), rounds).await
        }
        OperatorVerb::Reset { scene, arm } => reset(node, scene, arm).await,
        OperatorVerb::Align {
            scene,
            touch,
            ink,
            measured_mm,
        } => {
            let asked = json!({ "scene": scene, "touch": touch, "ink": ink });
            align(node, asked, measured_mm).await
        }
        OperatorVerb::FirstInk { scene } => {
            let reply = node.draw_first_ink(&scene).await;
            reply.map_or_else(VerbReply::failed, |reply| VerbReply::of_tool(&reply))
        }
        OperatorVerb::Status => status(node).await,
        OperatorVerb::Jobs { id, json } => job_list::jobs_reply(&node.state, id.as_deref(), json),
        OperatorVerb::Describe => describe(node),
        OperatorVerb::Replay { job } => job_replay::reply(node, &job).await,
        OperatorVerb::Calibrations => measurements::calibrations_reply(node),
        OperatorVerb::Calibrate(action) => calibrate_verbs::run(node, &action).await,
        OperatorVerb::Doctor => doctor::reply(node),
        OperatorVerb::Measured => measurements::measurements_reply(node),
        OperatorVerb::Look { scene, camera } => {
            measurements::camera_pose_reply(node, &scene, camera.as_deref()).await
        }
        OperatorVerb::Jog { scene, step } => jog::step(node, &scene, step).await,
        OperatorVerb::Jogged { scene } => jog::stand(node, &scene),
        OperatorVerb::Pending { job } => pending(node, job.as_deref()),
        OperatorVerb::Draw { order, assent } => draw(node, &order, assent.as_ref()).await,
        OperatorVerb::Progress { job } => progress(node, job.as_deref()).await,
        OperatorVerb::Pen { job, confirmed } => pen(node, job.as_deref(), confirmed),
        OperatorVerb::PageLogin => VerbReply::failed(
            "a login code is made on the node's own machine alone: run `steadyhand page` there",
        ),
        OperatorVerb::Refuse { job, plan } => VerbReply::of(node.refuse_plan(&job, &plan)),
        OperatorVerb::Approve { job, plan } => VerbReply::of(node.approve(&job, &plan)),
    }
}

/// Moves the arm to rest, in the scene and of the arm that are named.
async fn reset(node: &Arc<Node>, scene: Option<String>, arm: Option<String>) -> VerbReply {
    let said = [("scene", scene), ("arm", arm)].into_iter();
    let said = said.filter_map(|(name, said)| Some((name.to_owned(), Value::from(said?))));
    let said: serde_json::Map<String, Value> = said.collect();
    let arguments = match said.is_empty() {
        true => ReceivedArguments::Absent,
        false => ReceivedArguments::Value(said.into()),
    };
    call(node, "reset", arguments).await
}

/// Aligns as asked, by what a person read of the cross where they did.
async fn align(node: &Arc<Node>, mut asked: Value, measured_mm: Option<[f64; 2]>) -> VerbReply {
    if let (Some([dx, dy]), Some(asked)) = (measured_mm, asked.as_object_mut()) {
        asked.insert("measured".to_owned(), json!({ "dx": dx, "dy": dy }));
    }
    call(node, "align", ReceivedArguments::Value(asked)).await
}

/// Returns the node's description, as text and as data.
fn describe(node: &Node) -> VerbReply {
    let description = NodeDescription::of(node);
    VerbReply::with_data(description.words(), &description)
}

/// Shows a drawing as data, or begins the one that a person agreed to.
async fn draw(node: &Arc<Node>, order: &DrawingOrder, assent: Option<&DrawingAssent>) -> VerbReply {
    let Some(assent) = assent else {
        let offer = node.offer_drawing(order).await;
        let shown = offer.map(|offer| VerbReply::with_data(&offer.title, &offer));
        return shown.unwrap_or_else(VerbReply::failed);
    };
    let job = node.begin_drawing(order, assent).await;
    let begun = job.map(|job| VerbReply::with_data(format!("{job} has begun"), &job));
    begun.unwrap_or_else(VerbReply::failed)
}

async fn progress(node: &Node, job: Option<&str>) -> VerbReply {
    let progress = node.job_progress(job);
    progress.map_or_else(VerbReply::failed, |progress| {
        VerbReply::with_data(&progress.words, &progress)
    })
}

/// The pens that are awaited, as data if it is one; or the word of a person that one is in the holder.
fn pen(node: &Node, job: Option<&str>, confirmed: Option<usize>) -> VerbReply {
    let mut all = node.awaited_pens();
    all.retain(|awaited| job.is_none_or(|job| awaited.job == job));
    let words = |awaited: &AwaitedPen| {
        let (job, arm, words) = (&awaited.job, &awaited.arm, &awaited.words);
        format!("{job} on arm {arm} waits for {words}")
    };
    match (all.as_slice(), confirmed, job) {
        ([], _, Some(job)) => {
            VerbReply::failed(idle(node, job, "waits for no pen and at no pause"))
        }
        ([], Some(_), None) => VerbReply::failed("no job waits for a pen or at a pause"),
        ([], None, None) => VerbReply::done("no job waits for a pen or at a pause"),
        ([one], Some(pen), _) => VerbReply::of(node.confirm_pen(&one.job, pen)),
        (_, Some(_), _) => VerbReply::failed("several jobs wait for a person: name one of them"),
        ([one], None, _) => VerbReply::with_data(words(one), one),
        (several, None, _) => {
            let lines: Vec<String> = several.iter().map(words).collect();
            VerbReply::done(lines.join("\n"))
        }
    }
}

/// Says that a job does not wait, or that there is none of that name.
fn idle(node: &Node, job: &str, words: &str) -> String {
    match job::past(&node.state, job) {
        Err(error) => unread(&node.state, job, &error),
        Ok(_) => format!("{job} {words}"),
    }
}

/// The plans that wait, or one of them.
fn pending(node: &Node, job: Option<&str>) -> VerbReply {
    let mut all = node.pending();
    all.retain(|pending| job.is_none_or(|job| pending.job == job));
    match (all.as_slice(), job) {
        ([], Some(job)) => VerbReply::failed(idle(node, job, "does not wait for approval")),
        ([], None) => VerbReply::done("nothing waits for approval"),
        ([one], _) => VerbReply {
            plan: Some(one.plan.clone()),
            ..VerbReply::done(&one.words)
        },
        (several, _) => {
            let words: Vec<&str> = several.iter().map(|one| one.words.as_str()).collect();
            VerbReply::done(words.join("\n\n"))
        }
    }
}

fn disable(node: &Node) -> VerbReply {
    node.arms.iter().for_each(|seat| seat.permits().disable());
    VerbReply::done(
        "nothing is enabled now; a motion under way is held at the end of its stroke: `steadyhand stop` stops it at once",
    )
}

fn enable(
    node: &Node,
    name: &str,
    overlay: Option<&str>,
    for_s: Option<u64>,
    arm: Option<&str>,
) -> VerbReply {
    let scene = match node.scenes.scene(name, overlay) {
        Ok(scene) => scene,
        Err(error) => return VerbReply::failed(node.listing_own_scenes(error).to_string()),
    };
    let (title, until) = (scene.title(), for_s.map(Duration::from_secs));
    match node.enable(&scene, arm, until) {
        Err(why) => VerbReply::failed(why),
        Ok(seats) => {
            let until = match until {
                None => "as long as the node runs".to_owned(),
                Some(until) => format!("for {}", duration(until)),
            };
            let apart = seats.iter().find_map(|seat| node.kept_apart(seat));
            let apart = apart.map_or_else(String::new, |apart| format!("; {apart}"));
            VerbReply::done(format!(
                "motion is enabled for scene {title} (revision {}) {until}{apart}",
                scene.revision
            ))
        }
    }
}

/// Senses each arm; of several each is named.
async fn status(node: &Arc<Node>) -> VerbReply {
    if node.arms.len() < 2 {
        return call(node, "sense", ReceivedArguments::Absent).await;
    }
    let mut told = VerbReply::done("");
    for seat in &node.arms {
        let arm = ReceivedArguments::Value(json!({"arm": seat.name}));
        let sensed = call(node, "sense", arm).await;
        told.done &= sensed.done;
        told.text += &format!("{}: {}\n", seat.name, sensed.text);
    }
    told.text.truncate(told.text.trim_end().len());
    told
}

pub(super) async fn call(node: &Arc<Node>, tool: &str, arguments: ReceivedArguments) -> VerbReply {
    let reply = call_as(node, "operator", ActorRank::Operator, tool, arguments).await;
    VerbReply::of_tool(&reply)
}

/// Calls a tool of this node for one of its own ways in, which proved who asks. Its progress is not reported.
pub(super) fn call_as(
    node: &Arc<Node>,
    caller: &str,
    who: ActorRank,
    tool: &str,
    arguments: ReceivedArguments,
) -> BoxFuture<'static, Reply> {
    let request = ToolRequest {
        tool: tool.to_owned(),
        arguments,
        caller: caller.to_owned(),
        who,
        principal: None,
        hop: None,
        is_step: false,
    };
    Arc::clone(node).call(request, RemoteCallWatch::unobserved())
}

impl VerbReply {
    /// Passes a tool's reply on.
    fn of_tool(reply: &Reply) -> Self {
        Self {
            done: !reply.is_error,
            ..Self::with_data(&reply.text, &reply.structured)
        }
    }
}
