//! Opens a node: its file, its scenes, its arms.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, bail};
use nalgebra::Point3;

use super::qualification::QualificationPolicy;
use super::remote_tools::RemoteServers;
use super::{NodeOptions, peers, selftest, state_folder};
use arm::ArmModel;
use base::clock::{NodeClock, calendar_ms};
use base::disk;
use base::file_access;
use base::units::JointVector;
use call::{Refusal, refusal};
use config::{ANSWER_WITHIN_S_MAX, ArmEntry, CalibrationSource, NodeFile, RecordEntry};
use link::byte_trace::{self, RecordLink};
use link::memory::MemoryLink;
use link::serial::SerialLink;
use link::tap::TapSwitch;
use link::{ByteLink, LinkError};
use motion::{MotionHandle, PortOpener};
use permit::{PermitRegistry, StopLatch};
use scene::{PenHolder, Scene, SceneLibrary, Surface};
use sim::{ArmSimulator, HeldPens, PRINTED, PaperSurface, SceneLight, SimPen, ViewedSheet};
use tools::{
    self, AttachedArm, DeclaredTools, Node, NodeStorage, RenderExposure, SimulatedWorkcell,
    TrafficRecorder,
};
use vision::{ImageFrame, PlacedCamera};

/// Rate of time for an embedded simulated arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulationRate {
    /// As everybody's.
    Real,
    /// As fast as it can be computed, where every arm of the node is simulated.
    Fast,
    /// Accelerated, for a person who watches.
    Watched,
}

/// An arm on a port did not answer as itself: the port is missing, a different device's, or silent. That may change.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ArmUnavailable(String);

/// A drawing of half a minute passes in three seconds.
const WATCHED_RATE: u32 = 10;

/// The node file, with what the command line says instead.
pub fn file(args: &NodeOptions) -> anyhow::Result<NodeFile> {
    let mut file = match &args.config {
        None => NodeFile::default(),
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {name}"))?;
            NodeFile::read(&name, &text)?
        }
    };
    if let Some(arm) = file.arms.first_mut() {
        if let Some(port) = &args.port {
            arm.port.clone_from(port);
        }
        if args.calibrated_elsewhere {
            arm.calibrated = Some(CalibrationSource::Elsewhere);
        }
    }
    if args.record && !file.record.is_on() {
        file.record = RecordEntry::Motion(true);
    }
    Ok(file)
}

/// The node's scenes.
pub fn library(args: &NodeOptions, file: &NodeFile) -> anyhow::Result<SceneLibrary> {
    let folder = args.scenes.clone().or_else(|| file.scenes.clone());
    if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
        bail!(
            "there is no folder {} to read scenes from; correct --scenes or `scenes` in the node file",
            folder.display()
        );
    }
    let mut library = SceneLibrary::new(folder);
    let has = |model: &str| file.arms.iter().any(|entry| entry.model == model);
    for entry in &file.arms {
        // What cannot be read is said when the arm is opened.
        let arm = library.arm(&entry.model).ok();
        let stands_in = arm.filter(|arm| !arm.file.like.as_deref().is_some_and(has));
        stands_in.map_or(Ok(()), |arm| library.let_stand_in(&arm))?;
    }
    Ok(library)
}

/// The tools that the node file declares.
pub fn declared(file: &NodeFile, library: &SceneLibrary) -> anyhow::Result<DeclaredTools> {
    let here = tools::known_names(file, library, &DeclaredTools::default());
    Ok(DeclaredTools::from_file(file, &here)?)
}

/// The node with its arms attached; nothing has moved.
pub fn node(args: &NodeOptions, pace: SimulationRate) -> anyhow::Result<Arc<Node>> {
    let mut file = file(args)?;
    let state =
        NodeStorage::open(state_folder::folder(args, &file)?, &file).map_err(anyhow::Error::msg)?;
    if pace != SimulationRate::Real {
        // Whoever has a node of their own waits for the end: it ends with them.
        file.answer_within_s = ANSWER_WITHIN_S_MAX;
    }
    let library = library(args, &file)?;
    let declared = declared(&file, &library)?;
    let all_simulated = file.arms.iter().all(ArmEntry::is_simulated);
    let real = NodeClock::real();
    let mut seats = Vec::with_capacity(file.arms.len());
    for entry in &file.arms {
        let arm = library.arm(&entry.model)?;
        // A clock that one arm jumps on would make the readings of another old.
        let clock = match pace {
            SimulationRate::Fast if all_simulated => NodeClock::simulated(),
            SimulationRate::Watched if all_simulated => NodeClock::simulated_at(WATCHED_RATE),
            _ if entry.is_simulated() => NodeClock::starvation_tolerant(),
            _ => real.clone(),
        };
        let seat = if entry.is_simulated() {
            simulated(&file.name, entry, arm, &clock, &library, args)?
        } else {
            on_port(&file.name, entry, arm, &clock, args)?
        };
        keep_emergency(entry, &seat, state.folder())?;
        seats.push(Arc::new(seat));
    }
    let helpers = args.exams.map(|exams| exams.helpers(state.folder(), &file));
    let helpers = helpers.transpose()?;
    let check = args.exams.map(|exams| exams.certificates(state.folder()));
    let policy = QualificationPolicy::new(state.folder(), &file, check);
    let output = or_temporary(args.output.clone().or_else(|| file.output.clone()))?;
    let fleet = peers::fleet(&file);
    let mut node = Node::new(file, library, seats, output, state);
    node.examiner = Some(Arc::new(policy));
    node.helpers = helpers;
    record(args, &mut node)?;
    if let Some(long) = declared.long_names() {
        tracing::warn!("declared tools: {long}");
    }
    node.declared = declared;
    node.remote_tools = Some(Arc::new(RemoteServers::default()));
    node.fleet = fleet;
    let node = Arc::new(node);
    selftest::recall(&node);
    for told in node.recover() {
        tracing::warn!("{told}");
    }
    node.note_stops();
    Ok(node)
}

/// Gives the node what tells of its recordings, and a recorder where its file or the command line asks for one.
fn record(args: &NodeOptions, node: &mut Node) -> anyhow::Result<()> {
    let Some(recordings) = args.recordings else {
        if node.file.record.is_on() {
            bail!(
                "`record` is asked for, and this program was built without recordings: take it away, or build with the cargo feature `recording`, which is on by default"
            );
        }
        return Ok(());
    };
    if node.file.record.is_on() {
        node.job_recorder = Some(recordings.recorder(&node.state, &node.file)?);
    }
    node.recordings = Some(recordings.library(&node.state));
    Ok(())
}

/// Returns the folder that is named, or else a temporary one of this process's own.
///
/// # Errors
/// None is named, and the user's temporary folder is a link, another user's, or others may write to it.
pub fn or_temporary(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    named.map_or_else(own_temporary, Ok)
}

/// Returns a folder of this process's own, in the one that this user has in the system's temporary one.
///
/// # Errors
/// The user's folder is a link, another user's, or others may write to it.
pub(crate) fn own_temporary() -> anyhow::Result<PathBuf> {
    let users = users_temporary();
    disk::private_folder(&users)
        .with_context(|| format!("cannot use the folder {}", users.display()))?;
    Ok(users.join(own_name()))
}

/// Names this process among all that ever ran here: the system gives a process number again, and containers that share a
/// temporary folder each have a process 1.
fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| format!("{}-{}", std::process::id(), calendar_ms()))
}

/// Removes what this process keeps in its own temporary folder and nobody was told of: its state, and the folder itself unless it
/// holds pictures or reports, whose paths were printed or sent to a client. Those are removed by a later process, a day after the
/// process that made them has ended.
pub fn end_temporary() {
    let users = users_temporary();
    if disk::check_private(&users).is_err() {
        return;
    }
    let own = users.join(own_name());
    // None of these need be there.
    let _ = std::fs::remove_dir_all(own.join("state"));
    let _ = std::fs::remove_dir(&own);
    // Where processes are not seen in a folder, none is taken for dead.
    if !Path::new("/proc/self").exists() {
        return;
    }
    for folder in std::fs::read_dir(&users).into_iter().flatten().flatten() {
        if is_left_over(&folder) {
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}

/// Time that pictures of a practice run stay after the process that made them has ended.
const PICTURES_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns whether a folder is that of a process that ended long ago. Most are known by their names: none of those is looked into.
fn is_left_over(folder: &std::fs::DirEntry) -> bool {
    let name = folder.file_name().to_string_lossy().into_owned();
    let (process, began_ms) = name.split_once('-').unwrap_or_default();
    let Ok(process) = process.parse::<u32>() else {
        return false;
    };
    let began_ms = began_ms.parse().unwrap_or(u64::MAX);
    if Duration::from_millis(calendar_ms().saturating_sub(began_ms)) < PICTURES_KEPT {
        return false;
    }
    let changed = folder.metadata().and_then(|about| about.modified());
    let age = changed.ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > PICTURES_KEPT)
        && !Path::new("/proc").join(process.to_string()).exists()
}

/// The folder of this user in the system's temporary one, where anybody may have made one of that name.
pub(crate) fn users_temporary() -> PathBuf {
    std::env::temp_dir().join(format!("steadyhand-{}", file_access::user()))
}

fn simulated(
    node: &str,
    entry: &ArmEntry,
    arm: Arc<ArmModel>,
    clock: &NodeClock,
    library: &SceneLibrary,
    args: &NodeOptions,
) -> anyhow::Result<AttachedArm> {
    let truth = truth(entry)?;
    let as_it_is = match &truth {
        Some(truth) => truth.arm(&entry.model)?,
        None => Arc::clone(&arm),
    };
    let scene = first_scene(&arm, library);
    let start = scene.as_ref().map(|scene| scene.rest_rad);
    let start = start.unwrap_or_else(|| JointVector::zeros(arm.dof()));
    let simulator = ArmSimulator::new(&as_it_is, &start);
    let open = simulated_port(&simulator);
    let permits = Arc::new(PermitRegistry::everything());
    let tap = TapSwitch::default();
    let open = tapped(traced(open, args)?, &tap);
    let motion = attach(node, entry, arm, clock, permits, open)?;
    let studio = EmbeddedWorkcell { simulator, truth };
    let seat = AttachedArm::new(&entry.name, motion, Some(Box::new(studio)));
    let seat = seat.recorded_by(Box::new(JobTrafficRecorder(tap)));
    // This process has put the simulated arm where this scene rests it.
    if let Some(scene) = scene {
        seat.moved_in(&scene);
    }
    Ok(seat)
}

/// Returns what opens the link to a simulated arm.
pub(super) fn simulated_port(simulator: &ArmSimulator) -> PortOpener {
    let device = simulator.clone();
    Box::new(move |clock| {
        let link = MemoryLink::new(device.clone(), clock, "simulated arm");
        Ok(Box::new(link.map_err(LinkError::Read)?) as Box<dyn ByteLink>)
    })
}

/// Returns the true scenes for practice. Fails on an unreadable one, which would count as the believed scene.
fn truth(entry: &ArmEntry) -> anyhow::Result<Option<SceneLibrary>> {
    let Some(folder) = entry.truth.clone() else {
        return Ok(None);
    };
    let said = || format!("arm `{}`: truth {}", entry.name, folder.display());
    let entries = std::fs::read_dir(&folder).with_context(said)?;
    let library = SceneLibrary::new(Some(folder.clone()));
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(scene) = name.strip_suffix(".toml") {
            library.scene(scene, None).with_context(said)?;
        }
    }
    Ok(Some(library))
}

/// Emergency stops of this arm outlive the process, and one that did is latched from here on.
fn keep_emergency(entry: &ArmEntry, seat: &AttachedArm, state: &Path) -> anyhow::Result<()> {
    let file = state.join(format!("emergency-stop-{}", entry.file_name_part()));
    let permits = seat.permits();
    let kept = permits.keep_emergency_in(file);
    kept.map_err(|why| anyhow::anyhow!("{}: {why}", seat.name))?;
    let told = match permits.latched() {
        Some(StopLatch::Emergency(_)) => {
            "an emergency stop is latched; an operator ends it with `steadyhand clear`"
        }
        Some(_) => {
            "an emergency stop was cleared and the arm not reset since: its pen may stand on the paper; `steadyhand reset` lifts it"
        }
        None => return Ok(()),
    };
    tracing::warn!(arm = seat.name, "{told}");
    Ok(())
}

/// `default`, or the first scene that is for this arm.
fn first_scene(arm: &ArmModel, library: &SceneLibrary) -> Option<Arc<Scene>> {
    let names = std::iter::once("default".to_owned()).chain(library.scenes());
    let mut scenes = names.filter_map(|name| library.scene(&name, None).ok());
    scenes.find(|scene| scene.arm.file.name == arm.file.name)
}

/// As root, another program that has the port is not kept out.
pub fn check_user(port: &str, allow_root: bool) -> anyhow::Result<()> {
    let is_pseudo_terminal = port.starts_with("/dev/pts/");
    if file_access::is_root() && !is_pseudo_terminal && !allow_root {
        let missing = match Path::new(port).exists() {
            true => "",
            false => "; there is no such port now",
        };
        bail!(
            "this process runs as root, where the lock on {port} protects nothing: run it as another user, or say --allow-root{missing}"
        );
    }
    Ok(())
}

fn on_port(
    node: &str,
    entry: &ArmEntry,
    arm: Arc<ArmModel>,
    clock: &NodeClock,
    args: &NodeOptions,
) -> anyhow::Result<AttachedArm> {
    if entry.truth.is_some() {
        bail!(
            "arm `{}`: `truth` is for practice on a simulated arm, and this one is at {}: take the key away",
            entry.name,
            entry.port
        );
    }
    if arm.file.simulation.wear.is_some() {
        let like = arm.file.like.as_ref();
        bail!(
            "arm `{}`: {} is a simulated arm with worn servos, and this one is at {}: name the arm that it is like{}",
            entry.name,
            entry.model,
            entry.port,
            like.map_or_else(String::new, |like| format!(", {like}"))
        );
    }
    check_user(&entry.port, args.allow_root)?;
    let (path, baud) = (entry.port.clone(), arm.file.baud);
    let open: PortOpener = Box::new(move |clock| {
        SerialLink::open(&path, baud, clock).map(|link| Box::new(link) as Box<dyn ByteLink>)
    });
    let permits = Arc::new(PermitRegistry::none());
    let tap = TapSwitch::default();
    let open = tapped(traced(open, args)?, &tap);
    let motion = attach(node, entry, arm, clock, permits, open);
    // Its adapter may be plugged in, and its supply switched on, later than this machine.
    let motion = motion.map_err(|why| ArmUnavailable(why.to_string()))?;
    Ok(AttachedArm::new(&entry.name, motion, None).recorded_by(Box::new(JobTrafficRecorder(tap))))
}

/// Writes down what passes, where the command line says so. The file's thread is made here: one that an arm's own
/// thread made would go ahead of others as that does.
fn traced(open: PortOpener, args: &NodeOptions) -> Result<PortOpener, LinkError> {
    let Some(path) = &args.trace else {
        return Ok(open);
    };
    let trace = byte_trace::open_in_background(path)?;
    Ok(Box::new(move |clock| {
        let link = open(clock)?;
        Ok(Box::new(RecordLink::new(link, clock, Box::new(trace.clone()))) as Box<dyn ByteLink>)
    }))
}

/// With a tap that is opened while a job moves.
fn tapped(open: PortOpener, tap: &TapSwitch) -> PortOpener {
    let tap = tap.clone();
    Box::new(move |clock| {
        let link = open(clock)?;
        Ok(Box::new(RecordLink::tapped(link, clock, tap.clone())) as Box<dyn ByteLink>)
    })
}

/// Keeps the bytes of jobs.
struct JobTrafficRecorder(TapSwitch);

impl TrafficRecorder for JobTrafficRecorder {
    fn begin(&self, file: &Path) -> std::io::Result<()> {
        self.0.open(file)
    }

    fn end(&self) {
        self.0.shut();
    }
}

fn attach(
    node: &str,
    entry: &ArmEntry,
    arm: Arc<ArmModel>,
    clock: &NodeClock,
    permits: Arc<PermitRegistry>,
    open: PortOpener,
) -> anyhow::Result<MotionHandle> {
    let span = tracing::info_span!("arm", node, arm = entry.name);
    span.in_scope(|| MotionHandle::start(arm, clock.clone(), permits, open))
        .map_err(|why| anyhow::anyhow!("arm `{}` cannot be used: {why}; nothing moved", entry.name))
}

/// Enables scenes on every arm that they are for.
pub fn enable(node: &Node, scenes: &[String]) -> anyhow::Result<()> {
    for name in scenes {
        let scene = node.scenes.scene(name, None)?;
        let enabled = node.enable(&scene, None, None);
        enabled.map_err(anyhow::Error::msg)?;
    }
    Ok(())
}

/// The person and the camera beside an embedded simulated arm.
struct EmbeddedWorkcell {
    simulator: ArmSimulator,
    /// Scenes as they really are, for practice.
    truth: Option<SceneLibrary>,
}

impl SimulatedWorkcell for EmbeddedWorkcell {
    fn place_sheet(&self, scene: &Scene) {
        let true_one = self.true_one(scene);
        lay(&self.simulator, true_one.as_deref().unwrap_or(scene));
    }

    fn hold_pen(&self, pen: Option<usize>) {
        self.simulator
            .hold_pens(pen.map_or(HeldPens::Empty, HeldPens::One));
    }

    fn ink(&self) -> Vec<(usize, Vec<[f64; 2]>)> {
        let ink = self.simulator.ink().into_iter();
        ink.map(|ink| (ink.pen, ink.points_mm)).collect()
    }

    fn picture(
        &self,
        scene: &Scene,
        eye: &PlacedCamera,
        exposure: &RenderExposure,
    ) -> Result<ImageFrame, Refusal> {
        let true_one = self.true_one(scene);
        let laid = simulated_sheet(true_one.as_deref().unwrap_or(scene))?;
        let light = SceneLight {
            level: exposure.light,
            slope: [0.05, -0.08],
            noise_grey: exposure.noise_grey,
            seed: exposure.seed,
        };
        Ok(self.simulator.picture(eye, &light, &laid)?)
    }
}

impl EmbeddedWorkcell {
    /// A scene as it really is, where that was said.
    fn true_one(&self, scene: &Scene) -> Option<Arc<Scene>> {
        self.truth.as_ref()?.scene(&scene.name, None).ok()
    }
}

/// Returns the appearance of a scene's sheet: flat, with tags that the simulator can print.
fn simulated_sheet(scene: &Scene) -> Result<ViewedSheet, Refusal> {
    let lies = scene.surface.flat_pose();
    let lies = lies.ok_or_else(|| refusal!("a simulated camera shows flat sheets alone"))?;
    let fiducials = scene.fiducials.as_ref();
    let tags = fiducials.map(|fiducials| fiducials.layout.clone());
    let all = tags.iter().flat_map(|layout| &layout.tags);
    let mut ids = all.map(|tag| tag.id);
    if let Some(id) = ids.find(|id| *id >= PRINTED) {
        return Err(refusal!(
            "tag {id} cannot be shown: the simulator has the tags 0 to {} of each family",
            PRINTED - 1
        ));
    }
    Ok(ViewedSheet {
        lies,
        size_mm: scene.surface.size_mm(),
        tags,
        blots: Vec::new(),
    })
}

/// Lays a scene's sheet before a simulated arm and puts its pens into the holder; of pens that a person changes, the one
/// that is known to be there.
pub fn lay(simulator: &ArmSimulator, scene: &Scene) {
    let pens = scene.pens.iter().map(|pen| {
        let [r, g, b] = pen.colour;
        SimPen {
            tip_m: pen.tip_m.coords.into(),
            colour: format!("#{r:02x}{g:02x}{b:02x}"),
            width_mm: pen.width_mm,
        }
    });
    let sheet = Box::new(SimulatedSheet(scene.surface.clone()));
    simulator.place_sheet(sheet, pens.collect());
    simulator.hold_pens(match &scene.holder {
        PenHolder::AllMounted => HeldPens::All,
        PenHolder::ByHand { mounted, .. } => mounted.map_or(HeldPens::Empty, HeldPens::One),
    });
}

struct SimulatedSheet(Surface);

impl PaperSurface for SimulatedSheet {
    fn touch(&self, tip_m: [f64; 3]) -> Option<([f64; 2], f64)> {
        let seen = self.0.project(&Point3::from(tip_m));
        let is_held = self.0.holds(seen.at_mm);
        is_held.then_some((seen.at_mm, seen.height_mm))
    }
}
