//! The control socket: how operators on the same machine reach a node, a stdio one too.
//!
//! One line of JSON each way. The socket is this user's alone, and the kernel says who calls.

use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::jog::{self, JOG};
use super::open::users_temporary;
use super::running_nodes::NodeDescription;
use super::{job_list, job_replay, measurements, operator_verbs, selftest, worker_pool};
use args::ReceivedArguments;
use base::disk;
use base::wording::duration;
use caller::CODE_VALID;
use permit::ActorRank;
use tools::{
    AttachedArm, AwaitedPen, DrawingAssent, DrawingOrder, Node, RemoteCallWatch, ToolRequest,
};

/// Request of an operator.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", tag = "verb")]
pub enum OperatorVerb {
    /// Allow motion in a scene as it is now.
    Enable {
        /// The scene.
        scene: String,
        /// The overlay on it.
        meta: Option<String>,
        /// For how long.
        for_s: Option<u64>,
        /// The one arm that is meant, where several draw the scene.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Take back all that was enabled.
    Disable,
    /// Stop, as an operator.
    Stop,
    /// Emergency stop.
    Estop,
    /// End an emergency stop.
    Clear,
    /// Bring the arm to rest, as an operator.
    Reset {
        /// The scene that says which way is up, where the node does not know.
        scene: Option<String>,
        /// The arm, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Stand with the pen up until `resume`.
    Hold {
        /// At once, and not at the end of the stroke.
        now: bool,
    },
    /// Go on with what is held.
    Resume,
    /// Visit the sheet and draw a cross, or feel where the sheet is.
    Align {
        /// In which scene.
        scene: String,
        /// Feel the sheet.
        touch: bool,
    },
    /// Draw a scene as it is.
    Stroke {
        /// The scene.
        scene: String,
    },
    /// Take torque off: the arm drops.
    TorqueOff,
    /// Measure stops on the arm that is attached.
    Selftest {
        /// Scene to test in.
        scene: Option<String>,
        /// Number of stops.
        rounds: u32,
    },
    /// State of the node.
    Status,
    /// Records of requested, planned and done jobs.
    Jobs {
        /// One job.
        id: Option<String>,
        /// As JSON.
        json: bool,
    },
    /// Who it is: its name, arms and ports, the files that it was opened from, and where it keeps its state.
    Describe,
    /// Positions of the arms' joints, and the place of calibrations.
    Measured,
    /// Pose of a camera, from a picture taken now.
    Look {
        /// Of which scene's sheet.
        scene: String,
        /// Which camera, where there are several.
        camera: Option<String>,
    },
    /// One small step. The client must stay connected: if it leaves before the step ends, the arm stops.
    Jog {
        /// In which scene.
        scene: String,
        /// Axis and distance.
        step: jog::JogRequest,
    },
    /// State of a scene's arm, for a client that jogs it.
    Jogged {
        /// The scene.
        scene: String,
    },
    /// The plans that wait for a person.
    Pending {
        /// One of them.
        job: Option<String>,
    },
    /// Show a drawing; with an assent, enable exactly that and begin it.
    Draw {
        /// The drawing, its place and its arm.
        order: Box<DrawingOrder>,
        /// A person's yes to what was shown.
        #[serde(default)]
        assent: Option<DrawingAssent>,
    },
    /// Progress of a job.
    Progress {
        /// The job; without one, the one that is under way, or the last.
        job: Option<String>,
    },
    /// The pens that jobs wait for; with a number, confirm that this one is in the holder.
    Pen {
        /// One of the jobs.
        job: Option<String>,
        /// The confirmed pen, counted from 1.
        #[serde(default)]
        confirmed: Option<usize>,
    },
    /// Carry an earlier job's plan out on a simulated arm of its own, and compare.
    Replay {
        /// The job.
        job: String,
    },
    /// The calibrations that were accepted, the newest first, as data.
    Calibrations,
    /// Make a code that opens the operator's page once. By the control socket alone, where the kernel says who asks.
    PageLogin,
    /// Refuse a plan that waits.
    Refuse {
        /// Of which job.
        job: String,
        /// Its hash.
        plan: String,
    },
    /// Allow a plan.
    Approve {
        /// Of which job.
        job: String,
        /// Its hash.
        plan: String,
    },
}

impl OperatorVerb {
    /// Returns whether something may move because of it.
    fn moves(&self) -> bool {
        matches!(
            self,
            Self::Enable { .. }
                | Self::Draw {
                    assent: Some(_),
                    ..
                }
                | Self::Selftest { .. }
                | Self::Pen {
                    confirmed: Some(_),
                    ..
                }
                | Self::Resume
                | Self::Jog { .. }
                | Self::Align { .. }
                | Self::Stroke { .. }
        )
    }

    /// Reads a verb. An invalid text that names a stop becomes one: an emergency stop if it says so.
    pub(super) fn read(node: &Node, text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).or_else(|error| {
            let names = mcp::tool_names(text);
            let meant = names.iter().find(|name| node.stops(name));
            let is_emergency =
                |name: &String| EMERGENCY.contains(&args::name::normalise(name).as_str());
            match meant {
                Some(name) if is_emergency(name) => Ok(Self::Estop),
                Some(_) => Ok(Self::Stop),
                None => Err(format!("not understood: {error}")),
            }
        })
    }
}

/// Names of an emergency stop, form aside.
const EMERGENCY: [&str; 2] = ["emergencystop", "estop"];

/// Reply to a verb.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct VerbReply {
    /// True if the verb succeeded.
    pub done: bool,
    /// In words.
    pub text: String,
    /// The hash of the plan that it is about.
    #[serde(default)]
    pub plan: Option<String>,
    /// The same as data, for verbs whose clients need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl VerbReply {
    fn of(told: Result<String, String>) -> Self {
        told.map_or_else(Self::failed, Self::done)
    }

    pub fn done(text: impl Into<String>) -> Self {
        Self {
            done: true,
            text: text.into(),
            plan: None,
            data: None,
        }
    }

    /// Done, with the same as data.
    pub(super) fn with_data(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self {
            data: serde_json::to_value(data).ok(),
            ..Self::done(text)
        }
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            done: false,
            ..Self::done(text)
        }
    }
}

/// Longest verb: it may carry a drawing of 8 MiB, as JSON.
pub(crate) const VERB_BYTES_MAX: usize = 18 * 1024 * 1024;

/// An open control socket; its file goes with it, where this process has made it.
pub struct ControlListener {
    listener: UnixListener,
    path: Option<PathBuf>,
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that is gone already needs no removing.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Folder in which systemd's units put the socket of a node that is a service.
pub(super) const SERVICE_FOLDER: &str = "/run/steadyhand";

/// A socket that systemd opened; its file is systemd's.
pub fn adopt(listener: std::os::unix::net::UnixListener) -> anyhow::Result<ControlListener> {
    listener.set_nonblocking(true)?;
    Ok(ControlListener {
        listener: UnixListener::from_std(listener)?,
        path: None,
    })
}

/// Returns the folder for sockets: the unit's runtime directory, the user's, or a private folder of this user.
pub fn folder() -> PathBuf {
    let own = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    let users =
        || std::env::var_os("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("steadyhand"));
    own.or_else(users).unwrap_or_else(users_temporary)
}

/// Opens the socket of a node.
pub fn open(path: Option<&Path>, node: &str) -> anyhow::Result<ControlListener> {
    let path = match path {
        Some(path) => path.to_path_buf(),
        None => in_folder(&folder(), node)?,
    };
    if std::os::unix::net::UnixStream::connect(&path).is_ok() {
        bail!(
            "a node answers at {} already; give this one another name in its node file, or another --socket",
            path.display()
        );
    }
    // Nobody answers there: a socket that is left is a dead node's. Another file is not ours.
    if std::fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_socket()) {
        let _ = std::fs::remove_file(&path);
    }
    let listener = UnixListener::bind(&path)
        .with_context(|| format!("cannot open the control socket {}", path.display()))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(ControlListener {
        listener,
        path: Some(path),
    })
}

fn in_folder(folder: &Path, node: &str) -> anyhow::Result<PathBuf> {
    let made = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
    check_owner(folder)?;
    Ok(folder.join(format!("{node}.sock")))
}

/// Another user may have made the folder, and would then answer in the node's name. Where anybody can make one, a link may
/// lead there as well.
pub(super) fn check_owner(folder: &Path) -> anyhow::Result<()> {
    if folder == users_temporary() {
        return Ok(disk::check_private(folder)?);
    }
    let owner = rustix::fs::stat(folder)?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        bail!(
            "the folder {} belongs to another user; name a socket with --socket",
            folder.display()
        );
    }
    Ok(())
}

/// Answers operators until it is dropped.
pub async fn serve(door: &ControlListener, node: &Arc<Node>) -> io::Result<()> {
    loop {
        let (stream, _) = door.listener.accept().await?;
        let node = Arc::clone(node);
        tokio::spawn(async move {
            if let Err(error) = one(stream, node).await {
                tracing::warn!("control socket: {error:#}");
            }
        });
    }
}

async fn one(mut stream: UnixStream, node: Arc<Node>) -> anyhow::Result<()> {
    let caller = stream.peer_cred()?.uid();
    let (read, mut write) = stream.split();
    if caller != rustix::process::geteuid().as_raw() && caller != 0 {
        bail!("user {caller} was turned away");
    }
    let mut line = Vec::new();
    let mut reader = BufReader::new(read.take(VERB_BYTES_MAX as u64));
    reader.read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        // It only looked whether a node answers.
        return Ok(());
    }
    let told = match OperatorVerb::read(&node, &line) {
        Ok(verb @ OperatorVerb::Jog { .. }) => {
            let who = format!("user {caller}");
            tokio::select! {
                told = run_for_operator(&node, &who, verb) => told,
                () = gone(&mut reader) => {
                    abort_jog(&node);
                    bail!("the client that jogged has gone: the arm was told to stop");
                }
            }
        }
        Ok(OperatorVerb::PageLogin) => page_login(&node, &format!("user {caller}")),
        Ok(verb) => run_for_operator(&node, &format!("user {caller}"), verb).await,
        Err(why) => VerbReply::failed(why),
    };
    let mut answer = serde_json::to_vec(&told)?;
    answer.push(b'\n');
    write.write_all(&answer).await?;
    Ok(())
}

/// Makes a code for the page. The audit log gets to know that there is one, and not which.
fn page_login(node: &Node, caller: &str) -> VerbReply {
    let now = node.clock.now();
    let told = match node.login_codes.make(caller, now) {
        Ok((address, code)) => VerbReply::done(format!(
            "open {address} and type {code} there; it opens once, within {}",
            duration(CODE_VALID)
        )),
        Err(error) => VerbReply::failed(error.to_string()),
    };
    let note = format!("{caller}: PageLogin: done {}", told.done);
    node.audit.note("operator", note);
    told
}

/// Stops the motion that a departed jog client may have requested, even before it has begun: a jog needs a client that
/// watches. Leaves other clients' motion alone.
pub fn abort_jog(node: &Node) {
    let is_theirs = |seat: &&Arc<AttachedArm>| seat.under_way().is_none_or(|tool| tool == JOG);
    node.seats.iter().filter(is_theirs).for_each(|seat| {
        seat.motion.abandon();
    });
}

/// Until the other side closes; what it says meanwhile is nothing.
async fn gone(reader: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut rest = [0; 64];
    while reader.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}

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
    let told = if matches!(verb, OperatorVerb::Stop | OperatorVerb::Estop) {
        // Here and now: the others may read a scene, or wait for an arm.
        act(node, verb).await
    } else {
        let here = Arc::clone(node);
        let working = worker_pool::spawn(async move { act(&here, verb).await });
        let broke = |_| VerbReply::failed("the node broke while it did this; its log says why");
        working.await.unwrap_or_else(broke)
    };
    let note = format!("{words}: done {}: {}", told.done, told.text);
    node.audit.note("operator", note);
    told
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
        OperatorVerb::Estop => operator_verbs::estop(node).await,
        OperatorVerb::Clear => operator_verbs::clear(node),
        OperatorVerb::Hold { now } => operator_verbs::hold(node, now).await,
        OperatorVerb::Resume => operator_verbs::resume(node).await,
        OperatorVerb::TorqueOff => operator_verbs::torque_off(node).await,
        OperatorVerb::Selftest { scene, rounds } => {
            selftest::run(node, scene.as_deref(), rounds).await
        }
        OperatorVerb::Reset { scene, arm } => {
            let said = [("scene", scene), ("arm", arm)];
            let said: serde_json::Map<String, serde_json::Value> = said
                .into_iter()
                .filter_map(|(name, said)| Some((name.to_owned(), said?.into())))
                .collect();
            let arguments = match said.is_empty() {
                true => ReceivedArguments::Absent,
                false => ReceivedArguments::Value(said.into()),
            };
            call(node, "reset", arguments).await
        }
        OperatorVerb::Align { scene, touch } => {
            let arguments = serde_json::json!({ "scene": scene, "touch": touch });
            call(node, "align", ReceivedArguments::Value(arguments)).await
        }
        OperatorVerb::Stroke { scene } => {
            let arguments = serde_json::json!({ "scene": scene });
            call(node, "stroke", ReceivedArguments::Value(arguments)).await
        }
        OperatorVerb::Status => status(node).await,
        OperatorVerb::Jobs { id, json } => job_list::jobs_reply(&node.state, id.as_deref(), json),
        OperatorVerb::Describe => describe(node),
        OperatorVerb::Replay { job } => job_replay::reply(node, &job).await,
        OperatorVerb::Calibrations => measurements::calibrations_reply(node),
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

/// Returns the node's description, as text and as data.
fn describe(node: &Node) -> VerbReply {
    let description = NodeDescription::of(node);
    VerbReply::with_data(description.words(), &description)
}

/// Shows a drawing as data, or begins the one that a person agreed to.
async fn draw(node: &Arc<Node>, order: &DrawingOrder, assent: Option<&DrawingAssent>) -> VerbReply {
    let told = match assent {
        None => node
            .offer_drawing(order)
            .await
            .map(|offer| VerbReply::with_data(&offer.title, &offer)),
        Some(assent) => node
            .begin_drawing(order, assent)
            .await
            .map(|job| VerbReply::with_data(format!("{job} has begun"), &job)),
    };
    told.unwrap_or_else(VerbReply::failed)
}

async fn progress(node: &Node, job: Option<&str>) -> VerbReply {
    let progress = node.job_progress(job).await;
    progress.map_or_else(VerbReply::failed, |progress| {
        VerbReply::with_data(&progress.words, &progress)
    })
}

/// The pens that are awaited, as data if it is one; or the word of a person that one is in the holder.
fn pen(node: &Node, job: Option<&str>, confirmed: Option<usize>) -> VerbReply {
    let mut all = node.awaited_pens();
    all.retain(|awaited| job.is_none_or(|job| awaited.job == job));
    let words = |awaited: &AwaitedPen| {
        let AwaitedPen {
            job, arm, words, ..
        } = awaited;
        format!("{job} on arm {arm} waits for {words}")
    };
    match (all.as_slice(), confirmed, job) {
        ([], _, Some(job)) => VerbReply::failed(format!("{job} waits for no pen and at no pause")),
        ([], Some(_), None) => VerbReply::failed("no job waits for a pen or at a pause"),
        ([], None, None) => VerbReply::done("no job waits for a pen or at a pause"),
        ([one], Some(pen), _) => match node.confirm_pen(&one.job, pen) {
            Ok(text) => VerbReply::done(text),
            Err(text) => VerbReply::failed(text),
        },
        (_, Some(_), _) => VerbReply::failed("several jobs wait for a person: name one of them"),
        ([one], None, _) => VerbReply::with_data(words(one), one),
        (several, None, _) => {
            let lines: Vec<String> = several.iter().map(words).collect();
            VerbReply::done(lines.join("\n"))
        }
    }
}

/// The plans that wait, or one of them.
fn pending(node: &Node, job: Option<&str>) -> VerbReply {
    let mut all = node.pending();
    all.retain(|pending| job.is_none_or(|job| pending.job == job));
    match (all.as_slice(), job) {
        ([], Some(job)) => VerbReply::failed(format!("{job} does not wait for approval")),
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
    node.seats.iter().for_each(|seat| seat.permits().disable());
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
        Err(error) => return VerbReply::failed(error.to_string()),
    };
    let (title, until) = (scene.title(), for_s.map(Duration::from_secs));
    match node.enable(&scene, arm, until) {
        Err(why) => VerbReply::failed(why),
        Ok(seats) => {
            let until = for_s.map_or_else(
                || "as long as the node runs".to_owned(),
                |s| format!("for {}", duration(Duration::from_secs(s))),
            );
            let mut words = format!(
                "motion is enabled for scene {title} (revision {}) {until}",
                scene.revision
            );
            let apart = seats.iter().find_map(|seat| node.kept_apart(seat));
            apart
                .iter()
                .for_each(|apart| words.push_str(&format!("; {apart}")));
            VerbReply::done(words)
        }
    }
}

/// Senses each arm; of several each is named.
async fn status(node: &Arc<Node>) -> VerbReply {
    if node.seats.len() < 2 {
        return call(node, "sense", ReceivedArguments::Absent).await;
    }
    let mut told = VerbReply::done("");
    for seat in &node.seats {
        let arm = ReceivedArguments::Value(serde_json::json!({"arm": seat.name}));
        let sensed = call(node, "sense", arm).await;
        told.done &= sensed.done;
        told.text += &format!("{}: {}\n", seat.name, sensed.text);
    }
    told.text.truncate(told.text.trim_end().len());
    told
}

async fn call(node: &Arc<Node>, tool: &str, arguments: ReceivedArguments) -> VerbReply {
    let request = ToolRequest {
        tool: tool.to_owned(),
        arguments,
        caller: "operator".to_owned(),
        who: ActorRank::Operator,
        standing: None,
        hop: None,
        is_step: false,
    };
    let reply = Arc::clone(node)
        .call(request, RemoteCallWatch::unobserved())
        .await;
    VerbReply {
        done: !reply.is_error,
        ..VerbReply::with_data(&reply.text, &reply.structured)
    }
}

/// Asks the node at a socket.
pub async fn ask(path: &Path, verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    let missing = || format!("no node answers at {}; is it running?", path.display());
    let mut stream = UnixStream::connect(path).await.with_context(missing)?;
    let mut line = serde_json::to_vec(verb)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await?;
    serde_json::from_str(&answer)
        .with_context(|| format!("the node's answer cannot be read: {answer:?}"))
}
