//! Opens a node: its file, its scenes, its arms.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, bail};
use nalgebra::Point3;

use super::bus_places::{SharedBuses, arms_on_their_buses};
use super::qualification::QualificationPolicy;
use super::remote_tools::RemoteServers;
use super::{NodeOptions, left_practice, peers, renamed_arms, selftest, state_folder};
use arm::ArmModel;
use base::clock::{NodeClock, calendar_ms};
use base::disk;
use base::file_access;
use base::plain_file;
use base::units::JointVector;
use base::wording::with_statement;
use call::{Refusal, refusal};
use config::{ANSWER_WITHIN_S_MAX, ArmEntry, CalibrationSource, NodeFile, RecordEntry};
use link::byte_trace::{self, RecordLink};
use link::memory::MemoryLink;
use link::serial::SerialLink;
use link::tap::TapSwitch;
use link::{ByteLink, LinkError};
use motion::{BusThread, MotionHandle, PortOpener};
use permit::{OrderFiles, OrderLog, PermitRegistry, PortRecords};
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
    /// As fast as real time.
    Real,
    /// As fast as it can be computed, where every arm of the node is simulated.
    Fast,
    /// Accelerated, for a person who watches.
    Watched,
}

/// The expected arm did not answer on its port: the port is missing, belongs to another device, or is silent. That may change.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ArmUnavailable(String);

/// Speed-up for a person who watches: a drawing of half a minute takes three seconds.
const WATCHED_RATE: u32 = 10;

/// Reads the node file and applies the command line's overrides.
pub fn file(args: &NodeOptions) -> anyhow::Result<NodeFile> {
    let mut file = match &args.config {
        None => NodeFile::default(),
        Some(path) => {
            let name = path.display().to_string();
            let text = plain_file::read_text(path);
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

/// Opens the node's scenes.
pub fn library(args: &NodeOptions, file: &NodeFile) -> anyhow::Result<SceneLibrary> {
    let folder = args.scenes.clone().or_else(|| file.scenes.clone());
    if let Some(folder) = folder.as_ref().filter(|folder| !folder.is_dir()) {
        bail!(
            "the scenes' folder {} does not exist. Next: correct --scenes, or `scenes` in the node file",
            folder.display()
        );
    }
    let mut library = SceneLibrary::new(folder);
    let has_model = |model: &str| file.arms.iter().any(|entry| entry.model == model);
    for entry in &file.arms {
        // An arm file that cannot be read is reported when the arm is opened.
        let arm = library.arm(&entry.model).ok();
        let stands_in = arm.filter(|arm| !arm.file.like.as_deref().is_some_and(has_model));
        stands_in.map_or(Ok(()), |arm| library.let_stand_in(&arm))?;
    }
    Ok(library)
}

/// Reads the tools that the node file declares.
pub fn declared(file: &NodeFile, library: &SceneLibrary) -> anyhow::Result<DeclaredTools> {
    let here = tools::known_names(file, library, &DeclaredTools::default());
    Ok(DeclaredTools::from_file(file, &here)?)
}

/// Opens the node and attaches its arms. Nothing moves.
pub fn node(args: &NodeOptions, rate: SimulationRate) -> anyhow::Result<Arc<Node>> {
    let mut file = file(args)?;
    if rate != SimulationRate::Real {
        // A caller with a node of its own waits for the end, because the node ends with it.
        file.answer_within_s = ANSWER_WITHIN_S_MAX;
    }
    let library = library(args, &file)?;
    let declared = declared(&file, &library)?;
    let all_simulated = file.arms.iter().all(ArmEntry::is_simulated);
    let real_clock = NodeClock::real();
    // Arms that share a scene need one time, in which none runs away from another.
    let simulated_clock = match rate {
        SimulationRate::Watched => NodeClock::simulated_at(WATCHED_RATE),
        SimulationRate::Real | SimulationRate::Fast => NodeClock::simulated(),
    };
    let models = arms_on_their_buses(&file, &library)?;
    let state =
        NodeStorage::open(state_folder::folder(args, &file)?, &file).map_err(anyhow::Error::msg)?;
    let mut seats = Vec::with_capacity(file.arms.len());
    let mut buses = SharedBuses::default();
    for (entry, arm) in file.arms.iter().zip(models) {
        let clock = match rate {
            SimulationRate::Fast | SimulationRate::Watched if all_simulated => {
                simulated_clock.clone()
            }
            _ if entry.is_simulated() => NodeClock::starvation_tolerant(),
            _ => real_clock.clone(),
        };
        let permits = keep_orders(&state, entry, &arm)?;
        let seat = if entry.is_simulated() {
            let thread = buses.simulated(&arm, &clock)?;
            let with = (&clock, permits, thread);
            open_simulated(&file, entry, arm, with, &library, args)?
        } else {
            check_system(&file, entry)?;
            let of = (&*file.name, entry);
            open_on_port(of, arm, (&clock, permits), args, &mut buses)?
        };
        seats.push(Arc::new(seat));
    }
    let helpers = args.exams.map(|exams| exams.helpers(state.folder(), &file));
    let helpers = helpers.transpose()?;
    let certificate_check = args.exams.map(|exams| exams.certificates(state.folder()));
    let policy = QualificationPolicy::new(state.folder(), &file, certificate_check);
    let output = or_temporary(args.output.clone().or_else(|| file.output.clone()))?;
    let fleet = peers::fleet(&file);
    let mut node = Node::new(file, library, seats, output, state);
    for (entry, seat) in node.file.arms.iter().zip(&node.arms) {
        warn_of_orders(&node, entry, seat);
    }
    renamed_arms::take_over_orders(&node);
    node.examiner = Some(Arc::new(policy));
    node.helpers = helpers;
    attach_recordings(args, &mut node)?;
    if let Some(long_names) = declared.long_names() {
        tracing::warn!("declared tools: {long_names}");
    }
    node.declared = declared;
    node.remote_tools = Some(Arc::new(RemoteServers::default()));
    node.fleet = fleet;
    let node = Arc::new(node);
    selftest::recall(&node);
    for notice in node.recover() {
        tracing::warn!("{notice}");
    }
    node.note_stops();
    Ok(node)
}

/// Attaches the library of recordings, and a recorder if the node file or the command line asks for one.
fn attach_recordings(args: &NodeOptions, node: &mut Node) -> anyhow::Result<()> {
    let Some(recordings) = args.recordings else {
        if node.file.record.is_on() {
            bail!(
                "the node file has `record`, but this program was built without recordings. Next: remove that, or build with the cargo feature `recording` (on by default)"
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

/// Returns the absolute path of the named folder, or of a temporary one of this process if none is named.
///
/// # Errors
/// The name is empty, or no folder is named and the user's temporary folder is a link, belongs to another user, or is writable by others.
pub fn or_temporary(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let Some(named) = named else {
        return own_temporary();
    };
    std::path::absolute(&named)
        .with_context(|| format!("cannot use the folder {}", named.display()))
}

/// Returns this process's folder inside the user's folder in the system's temporary directory.
///
/// # Errors
/// The user's folder is a link, belongs to another user, or is writable by others.
pub(crate) fn own_temporary() -> anyhow::Result<PathBuf> {
    let users = users_temporary();
    disk::private_folder(&users)
        .with_context(|| format!("cannot use the folder {}", users.display()))?;
    Ok(users.join(own_name()))
}

/// Returns a name that no other process here ever had: the system reuses process ids, and containers that share a
/// temporary folder each have a process 1.
fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| format!("{}-{}", std::process::id(), calendar_ms()))
}

/// Removes this process's state from its temporary folder unless a drawing is left half done, and the folder itself unless it
/// holds pictures or reports, whose paths were printed or sent to a client. A later process removes those, a day after the process
/// that made them has ended.
pub fn end_temporary() {
    let users = users_temporary();
    if disk::check_private(&users).is_err() {
        return;
    }
    let own = users.join(own_name());
    left_practice::end(&own);
    // It does not have to exist, and stays if something is in it.
    let _ = std::fs::remove_dir(&own);
    // Without /proc there is no telling which processes have ended, so nothing is removed.
    if !Path::new("/proc/self").exists() {
        return;
    }
    for folder in std::fs::read_dir(&users).into_iter().flatten().flatten() {
        if is_left_over(&folder) {
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}

/// Time for which pictures of a practice run are kept after the process that made them has ended.
const PICTURES_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns whether a folder belongs to a process that ended long ago. Most folders are recent by their names alone, and are not
/// looked into.
fn is_left_over(folder: &std::fs::DirEntry) -> bool {
    let name = folder.file_name().to_string_lossy().into_owned();
    let (process_id, started_ms) = name.split_once('-').unwrap_or_default();
    let Ok(process_id) = process_id.parse::<u32>() else {
        return false;
    };
    let started_ms = started_ms.parse().unwrap_or(u64::MAX);
    if Duration::from_millis(calendar_ms().saturating_sub(started_ms)) < PICTURES_KEPT {
        return false;
    }
    let changed = folder.metadata().and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age > PICTURES_KEPT)
        && !Path::new("/proc").join(process_id.to_string()).exists()
}

/// Returns this user's folder in the system's temporary directory, where any user may have created one of that name.
pub(crate) fn users_temporary() -> PathBuf {
    std::env::temp_dir().join(format!("steadyhand-{}", file_access::user()))
}

/// Opens an embedded simulated arm.
fn open_simulated(
    file: &NodeFile,
    entry: &ArmEntry,
    arm: Arc<ArmModel>,
    (clock, permits, thread): (&NodeClock, Arc<PermitRegistry>, BusThread),
    library: &SceneLibrary,
    args: &NodeOptions,
) -> anyhow::Result<AttachedArm> {
    let truth = true_scenes(entry)?;
    let true_arm = match (&truth, entry.first_id) {
        (Some(scenes), Some(first)) => Arc::new(scenes.arm(&entry.model)?.with_first_id(first)?),
        (Some(scenes), None) => scenes.arm(&entry.model)?,
        (None, _) => Arc::clone(&arm),
    };
    let scene = first_scene(file, entry, &arm, library);
    let start = scene.as_ref().map(|scene| scene.rest_rad);
    let start = start.unwrap_or_else(|| JointVector::zeros(arm.dof()));
    let simulator = ArmSimulator::new(&true_arm, &start);
    let open = simulated_port(&simulator);
    let tap = TapSwitch::default();
    let open = with_tap(with_trace(open, args)?, &tap);
    let motion = attach(&file.name, entry, arm, (clock, permits), (&thread, open))?;
    let workcell = EmbeddedWorkcell { simulator, truth };
    let seat = AttachedArm::new(&entry.name, motion, Some(Box::new(workcell)));
    let seat = seat.recorded_by(Box::new(JobTrafficRecorder(tap)));
    // The simulated arm starts at this scene's rest pose.
    if let Some(scene) = scene {
        seat.moved_in(&scene);
    }
    Ok(seat)
}

/// Returns the opener of the link to a simulated arm.
pub(super) fn simulated_port(simulator: &ArmSimulator) -> PortOpener {
    let device = simulator.clone();
    Box::new(move |clock| {
        let link = MemoryLink::new(device.clone(), clock, "simulated arm");
        Ok(Box::new(link.map_err(LinkError::Read)?) as Box<dyn ByteLink>)
    })
}

/// Returns the true scenes for practice. Fails on an unreadable one, for which the believed scene would be used instead.
fn true_scenes(entry: &ArmEntry) -> anyhow::Result<Option<SceneLibrary>> {
    let Some(folder) = entry.truth.clone() else {
        return Ok(None);
    };
    let library = scenes_of_truth(&folder);
    library
        .with_context(|| format!("arm `{}`", entry.name))
        .map(Some)
}

/// Returns the scenes of a folder, which say how things really are.
///
/// # Errors
/// When one of them cannot be read.
pub fn scenes_of_truth(folder: &Path) -> anyhow::Result<SceneLibrary> {
    let context = || format!("truth {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(context)?;
    let library = SceneLibrary::new(Some(folder.to_owned()));
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(scene) = name.strip_suffix(".toml") {
            library.shared(scene, None).with_context(context)?;
        }
    }
    Ok(library)
}

/// Returns an arm's permits, with the operator's orders that stand and that outlive this process. Comes before the arm is attached: a
/// start that is refused because the arm is not there leaves what says that no order stands.
fn keep_orders(
    state: &NodeStorage,
    entry: &ArmEntry,
    arm: &ArmModel,
) -> anyhow::Result<Arc<PermitRegistry>> {
    let (folder, part) = (state.folder(), entry.file_name_part());
    let is_on_port = !entry.is_simulated();
    let permits = Arc::new(match is_on_port {
        true => PermitRegistry::none(),
        false => PermitRegistry::everything(),
    });
    let (name, audit) = (entry.name.clone(), Arc::downgrade(state.audit()));
    let log: OrderLog = Box::new(move |change| {
        let entry = tools::order_entry(&name, is_on_port, change);
        if let Some(audit) = audit.upgrade() {
            // A log that cannot be written is told there; the files have the orders.
            let _ = audit.note_durably("orders", entry);
        }
    });
    permit::split_unmarked_estop(folder, &part)
        .and_then(|()| {
            let mut files = OrderFiles::of_arm(folder, &part, is_on_port);
            // Without a home there are no records.
            if is_on_port && let Ok(records) = state_folder::usual("ports") {
                let place = (&*entry.port, arm.moved_first_id());
                files = files.at_port(PortRecords::of(&records, place, folder, &part));
            }
            permits.keep_orders_in(files, state.recorded_orders(&entry.name, is_on_port), log)
        })
        .map_err(|error| anyhow::anyhow!("{}: {error}", entry.name))?;
    Ok(permits)
}

/// Logs the orders that stand for an arm.
fn warn_of_orders(node: &Node, entry: &ArmEntry, seat: &AttachedArm) {
    if let Some(notice) = orders_on_port(node, entry) {
        tracing::warn!(arm = seat.name, "{notice}");
    }
    let orders = seat.permits().orders();
    if !orders.is_empty() {
        let notice =
            format!("an operator's order is still in force, so motion is disabled: {orders}");
        let notice = node.commands_for_arm(seat, &notice);
        tracing::warn!(arm = seat.name, "{notice}");
    }
}

/// Says of an arm that is simulated here which orders stand for the one on a port.
pub(crate) fn orders_on_port(node: &Node, entry: &ArmEntry) -> Option<String> {
    if !entry.is_simulated() {
        return None;
    }
    let files = OrderFiles::of_arm(&node.state, &entry.file_name_part(), true);
    let orders = files.kept();
    (!orders.is_empty()).then(|| {
        format!(
            "an operator's order is still in force for the real arm {}: {orders}. This node simulates the arm, so it cannot end the order. Next: `steadyhand --port PORT serve` with this node's --state or --config",
            entry.name
        )
    })
}

/// Returns the arm's part of the first scene that all arms of the node share, beside which it has to rest; otherwise its default
/// scene, or the first readable one that is for it.
fn first_scene(
    file: &NodeFile,
    entry: &ArmEntry,
    arm: &ArmModel,
    library: &SceneLibrary,
) -> Option<Arc<Scene>> {
    let arms = file.arms.iter();
    let arms: Vec<[&str; 2]> = arms.map(|arm| [&*arm.name, &*arm.model]).collect();
    let shared = library.shared_scenes_for(&arms).into_iter();
    let is_of_all = |scene: &String| {
        let shared = library.shared(scene, None);
        shared.is_ok_and(|shared| shared.parts.len() == arms.len())
    };
    let parts = shared
        .filter(is_of_all)
        .map(|scene| scene::part_name(&scene, &entry.name));
    let default = library.default_scene(&[&arm.file.name]);
    let names = parts.chain(default).chain(library.scenes());
    let mut scenes = names.filter_map(|name| library.scene(&name, None).ok());
    scenes.find(|scene| scene.arm.file.name == arm.file.name)
}

/// Refuses to run as root, for which the port's lock does not keep other programs out.
pub fn check_user(port: &str, allow_root: bool) -> anyhow::Result<()> {
    let is_pseudo_terminal = port.starts_with("/dev/pts/");
    if file_access::is_root() && !is_pseudo_terminal && !allow_root {
        let missing = match Path::new(port).exists() {
            true => "",
            false => ". That port does not exist now",
        };
        bail!(
            "root ignores the lock on {port}, so two programs could drive the arm{missing}. Next: run this as another user, or add --allow-root"
        );
    }
    Ok(())
}

/// Refuses to drive a real arm on a system on which they are untested, unless the node file allows it.
fn check_system(file: &NodeFile, entry: &ArmEntry) -> anyhow::Result<()> {
    if cfg!(target_os = "linux") {
        return Ok(());
    }
    let (name, system) = (&entry.name, std::env::consts::OS);
    if !file.untried_system {
        bail!(
            "arm `{name}`: real arms are untested on {system}. Next: write `untried_system = true` into the node file, and keep a hand at the arm's switch"
        );
    }
    tracing::warn!("arm `{name}`: real arms are untested on {system}");
    Ok(())
}

/// Opens an arm on a serial port, which others may share.
fn open_on_port(
    (node, entry): (&str, &ArmEntry),
    arm: Arc<ArmModel>,
    by: (&NodeClock, Arc<PermitRegistry>),
    args: &NodeOptions,
    buses: &mut SharedBuses,
) -> anyhow::Result<AttachedArm> {
    if entry.truth.is_some() {
        bail!(
            "arm `{}`: `truth` is only for a simulated arm, but this arm is at {}. Next: remove the key",
            entry.name,
            entry.port
        );
    }
    if arm.file.simulation.wear.is_some() {
        let like = arm.file.like.as_ref();
        bail!(
            "arm `{}`: {} is a model of worn servos for simulation, but this arm is real, at {}. Next: name the model without wear{}",
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
    let (thread, open) = buses.join(&arm, &entry.port, open)?;
    let tap = TapSwitch::default();
    let open = with_tap(with_trace(open, args)?, &tap);
    let motion = attach(node, entry, arm, by, (&thread, open));
    // Its adapter may be plugged in, or its supply switched on, after this machine has started.
    let motion = motion.map_err(|error| ArmUnavailable(error.to_string()))?;
    Ok(AttachedArm::new(&entry.name, motion, None).recorded_by(Box::new(JobTrafficRecorder(tap))))
}

/// Records the bytes of the link, if the command line asks for it. The file's thread is started here, because one started by an
/// arm's thread would inherit its priority.
fn with_trace(open: PortOpener, args: &NodeOptions) -> Result<PortOpener, LinkError> {
    let Some(path) = &args.trace else {
        return Ok(open);
    };
    let trace = byte_trace::open_in_background(path)?;
    Ok(Box::new(move |clock| {
        let link = open(clock)?;
        Ok(Box::new(RecordLink::new(link, clock, Box::new(trace.clone()))) as Box<dyn ByteLink>)
    }))
}

/// Adds a tap, which is open while a job moves.
fn with_tap(open: PortOpener, tap: &TapSwitch) -> PortOpener {
    let tap = tap.clone();
    Box::new(move |clock| {
        let link = open(clock)?;
        Ok(Box::new(RecordLink::tapped(link, clock, tap.clone())) as Box<dyn ByteLink>)
    })
}

/// Records the bytes of jobs.
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
    (clock, permits): (&NodeClock, Arc<PermitRegistry>),
    (thread, open): (&BusThread, PortOpener),
) -> anyhow::Result<MotionHandle> {
    let span = tracing::info_span!("arm", node, arm = entry.name);
    let name = &entry.name;
    span.in_scope(|| thread.attach(arm, clock.clone(), permits, open))
        .map_err(|error| {
            let message = format!("arm `{name}` cannot be used: {error}");
            anyhow::Error::msg(with_statement(message, "nothing moved"))
        })
}

/// Enables each scene on every arm that it is for, unless an operator should look first.
pub fn enable(node: &Node, scenes: &[String]) -> anyhow::Result<()> {
    if node.has_orders() && !scenes.is_empty() {
        tracing::warn!(
            "--enable is ignored while an operator's order is in force. Next: `steadyhand enable`"
        );
        return Ok(());
    }
    for name in scenes {
        let enabled = node.enable_by_name((name, None), None, None, &node.stamp_arrival());
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
        let true_scene = self.true_scene(scene);
        lay(&self.simulator, true_scene.as_deref().unwrap_or(scene));
    }

    fn has_true_sheet(&self, scene: &Scene) -> bool {
        self.true_scene(scene).is_some()
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
        camera: &PlacedCamera,
        exposure: &RenderExposure,
    ) -> Result<ImageFrame, Refusal> {
        let true_scene = self.true_scene(scene);
        let sheet = simulated_sheet(true_scene.as_deref().unwrap_or(scene))?;
        let light = SceneLight {
            level: exposure.light,
            slope: [0.05, -0.08],
            noise_grey: exposure.noise_grey,
            seed: exposure.seed,
        };
        Ok(self.simulator.picture(camera, &light, &sheet)?)
    }
}

impl EmbeddedWorkcell {
    /// Returns the scene as it really is, if the node file names true scenes.
    fn true_scene(&self, scene: &Scene) -> Option<Arc<Scene>> {
        self.truth.as_ref()?.scene(&scene.name, None).ok()
    }
}

/// Returns the appearance of a scene's sheet: flat, with tags that the simulator can print.
fn simulated_sheet(scene: &Scene) -> Result<ViewedSheet, Refusal> {
    let pose = scene.surface.flat_pose();
    let pose = pose.ok_or_else(|| refusal!("a simulated camera shows only flat sheets"))?;
    let fiducials = scene.fiducials.as_ref();
    let tags = fiducials.map(|fiducials| fiducials.layout.clone());
    let all = tags.iter().flat_map(|layout| &layout.tags);
    let mut ids = all.map(|tag| tag.id);
    if let Some(id) = ids.find(|id| *id >= PRINTED) {
        return Err(refusal!(
            "the simulator cannot show tag {id}; each family has the ids 0 to {}",
            PRINTED - 1
        ));
    }
    Ok(ViewedSheet {
        pose,
        size_mm: scene.surface.size_mm(),
        tags,
        blots: Vec::new(),
    })
}

/// Lays a scene's sheet before a simulated arm and puts its pens into the holder. Of pens that a person changes, only the one
/// that is known to be mounted.
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
        let projected = self.0.project(&Point3::from(tip_m));
        let is_held = self.0.holds(projected.at_mm);
        is_held.then_some((projected.at_mm, projected.height_mm))
    }
}
