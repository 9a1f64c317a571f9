//! A node: its arms, its scenes and what it remembers between calls.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use args::ForgivenessProfile;
use base::clock::NodeClock;
use base::disk::write_advice;
use base::lock::MutexExt;
use base::wording::with_next;
use call::{ArrivalStamp, Refusal, StopCounts, StopOrder, refusal};
use caller::{ArmLease, LoginCodes, RateLimiter};
use catalogue::ToolEffect;
use config::{ForgivenessSetting, NodeFile};
use fleet::Fleet;
use fleet::queue_desk::QueueDesk;
use job::{ArmKey, AuditLog, JobStore, JobStoreError, RetentionPolicy};
use motion::MotionHandle;
use permit::{ActorRank, PermitRegistry, RecordedOrders};
use scene::{Scene, SceneError, SceneLibrary};
use vision::{ImageFrame, PlacedCamera};

use super::abandoned_call::AbandonedCall;
use super::cameras::{self, NodeCamera, RenderExposure};
use super::declared_tools::DeclaredTools;
use super::dispatch::ToolRequest;
use super::interlock::{self, ArmSeparation};
use super::job_board::JobBoard;
use super::journal_entries;
use super::live_sheet::LiveSheet;
use super::names_cache::NamesCache;
use super::order_history::OrderHistory;
use super::overtaken_calls::{PassedOnStops, random_run};
use super::passed_on_motion::PassedOnMotion;
use super::pen_change::{ConfirmedPen, PenChanges};
use super::remote_tools::RemoteTools;
use super::sequence::SequenceRegistry;
use super::sim_photo_cache::SimPhotoCache;
use super::stop_cause::StopCause;

/// Simulated counterpart of the person and the camera next to an arm: lays a sheet and takes pictures. The embedded
/// simulator has one; an arm on a port has none.
pub trait SimulatedWorkcell: Send + Sync {
    /// Lays a clean sheet of this scene before the arm and puts its pens into the holder.
    fn place_sheet(&self, scene: &Scene);

    /// Returns whether the scene's sheet has a place of its own, whatever the scene says.
    fn has_true_sheet(&self, scene: &Scene) -> bool;

    /// Puts a pen of the laid scene into the holder, alone, or takes the pen out.
    fn hold_pen(&self, pen: Option<usize>);

    /// Returns the ink on the sheet: pen index and points in sheet millimetres.
    fn ink(&self) -> Vec<(usize, Vec<[f64; 2]>)>;

    /// Renders the camera's view of the workcell, with this scene's sheet.
    ///
    /// # Errors
    /// The part that cannot be rendered.
    fn picture(
        &self,
        scene: &Scene,
        camera: &PlacedCamera,
        exposure: &RenderExposure,
    ) -> Result<ImageFrame, Refusal>;
}

/// Records every byte to and from an arm while a job moves it. One job moves at a time.
pub trait TrafficRecorder: Send + Sync {
    /// Begins to append bytes to this file.
    ///
    /// # Errors
    /// The file cannot be written; the job goes on without a recording.
    fn begin(&self, file: &std::path::Path) -> std::io::Result<()>;

    /// Ends the recording. All bytes are in the file afterwards; this waits for the disk.
    fn end(&self);
}

/// Largest difference of each joint from the rest pose for an arm that counts as at rest.
pub const AT_REST_RAD: f64 = 0.03;

/// One arm of a node.
pub struct AttachedArm {
    /// Name used by callers.
    pub name: String,
    /// Handle of its motion thread.
    pub motion: MotionHandle,
    /// Simulated surroundings; `None` for an arm on a port.
    pub workcell: Option<Box<dyn SimulatedWorkcell>>,
    pub(super) recorder: Option<Box<dyn TrafficRecorder>>,
    pub(super) board: JobBoard,
    pub(super) lease: ArmLease,
    /// Held by the motion of this arm, or by that of an arm beside which it has to stand.
    pub(super) motion_claim: Arc<tokio::sync::Mutex<()>>,
    /// The last abandoned call since its last motion began.
    pub(super) abandoned: Mutex<Option<AbandonedCall>>,
    /// What made the arm stop last.
    pub(super) stop_cause: Mutex<Option<StopCause>>,
    last_scene: Mutex<Option<Arc<Scene>>>,
    placed_scene: Mutex<Option<Arc<Scene>>>,
    /// Number of its stops that are in the audit log.
    pub(super) stops_noted: Mutex<u64>,
    /// The pen that a person has confirmed to be in the holder, since this process began.
    pub(super) pen: Mutex<Option<ConfirmedPen>>,
    pub(super) photo_cache: SimPhotoCache,
    /// Number of the first job whose ink may be on its sheet.
    pub(super) sheet_from: Mutex<u64>,
    /// What the view in MCP clients was told of its sheet.
    pub(super) viewed_sheet: Mutex<LiveSheet>,
}

/// A node.
pub struct Node {
    /// As its file describes it.
    pub file: NodeFile,
    /// Its scenes.
    pub scenes: SceneLibrary,
    /// Its arms, at least one.
    pub arms: Vec<Arc<AttachedArm>>,
    /// Folder for reports and pictures.
    pub output: PathBuf,
    /// Folder for state that must outlive this process; it exists and only this user can access it.
    pub state: PathBuf,
    /// The journals of its jobs.
    pub job_store: JobStore,
    /// Log of calls, refusals, stops, enabling and changes.
    pub audit: Arc<AuditLog>,
    /// The tools that its file declares.
    pub declared: DeclaredTools,
    /// Client for other servers, which some of the declared tools need.
    pub remote_tools: Option<Arc<dyn RemoteTools>>,
    /// The checker of the tokens' certificates.
    pub examiner: Option<Arc<dyn super::CertificateChecker>>,
    /// The service behind the exam toolset.
    pub helpers: Option<Arc<dyn super::ExamHelperService>>,
    /// The library behind the toolset `recording`.
    pub recordings: Option<Arc<dyn super::RecordingLibrary>>,
    /// The recorder of its jobs.
    pub job_recorder: Option<Arc<dyn super::JobRecorder>>,
    pub(super) cameras: Vec<Arc<NodeCamera>>,
    /// The other nodes, where there are any.
    pub fleet: Option<Arc<Fleet>>,
    pub(super) sequences: SequenceRegistry,
    pub(super) doubts: super::doubt::CallerDoubts,
    pub(super) refusals: super::audit::RefusalHistory,
    pub(super) approvals: super::plan_approval::PlanApprovals,
    pub(super) pen_changes: PenChanges,
    pub(super) queue_desk: Arc<QueueDesk>,
    pub(super) previews: super::stroke::PreviewHistory,
    selftest: Mutex<Option<serde_json::Value>>,
    pub(super) separations: Vec<ArmSeparation>,
    pub(super) rates: RateLimiter,
    pub(super) names: NamesCache,
    /// Codes by which a person logs in to the operator's page.
    pub login_codes: LoginCodes,
    /// The machine's clock, by which logins end. Arms may have clocks of their own, which may stand still.
    pub clock: NodeClock,
    next_number: AtomicU64,
    /// Number of stops heard, of this node or of another.
    stops_heard: AtomicU64,
    is_ending: AtomicBool,
    /// Random number of this run, in which the stops are counted.
    run: u64,
    pub(super) passed_on_stops: PassedOnStops,
    pub(super) passed_on_motion: PassedOnMotion,
    /// Calls of other servers' tools that move something.
    pub(super) remote_motion: PassedOnMotion,
}

/// Open files of the state that outlives the node's process.
pub struct NodeStorage {
    folder: PathBuf,
    job_store: JobStore,
    order_history: OrderHistory,
    audit: Arc<AuditLog>,
}

/// Reason why a node's state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NodeStorageError {
    /// The journals of its jobs cannot be used.
    #[error(transparent)]
    Jobs(#[from] JobStoreError),
    /// The audit log cannot be used.
    #[error("{}", unusable_audit(.0))]
    Audit(#[from] std::io::Error),
}

fn unusable_audit(error: &std::io::Error) -> String {
    with_next(
        format!("the audit log cannot be used: {error}"),
        write_advice(error),
    )
}

impl NodeStorage {
    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The audit log.
    #[must_use]
    pub const fn audit(&self) -> &Arc<AuditLog> {
        &self.audit
    }

    /// Returns what the audit log of earlier processes says of an operator's orders to an arm.
    #[must_use]
    pub fn recorded_orders(&self, arm: &str, is_on_port: bool) -> RecordedOrders {
        let key = ArmKey {
            name: arm,
            is_on_port,
        };
        self.order_history.of_arm(key)
    }

    /// Opens a node's state folder, which exists. No other process can until this one ends.
    ///
    /// # Errors
    /// Another process has it, or a part of it cannot be used.
    pub fn open(folder: PathBuf, file: &NodeFile) -> Result<Self, NodeStorageError> {
        let keep = RetentionPolicy {
            jobs: file.keep_jobs,
            bytes: file.keep_jobs_mb << 20,
            days: file.keep_jobs_days,
        };
        let begun = |id: &str| journal_entries::begun_job(&folder, id);
        // First: it asks whether a node was here before, and the store makes its folder.
        let order_history = OrderHistory::read(&folder);
        let job_store = JobStore::open_with(&folder, keep, begun)?;
        let audit = Arc::new(AuditLog::open(&folder)?);
        Ok(Self {
            folder,
            job_store,
            order_history,
            audit,
        })
    }
}

impl AttachedArm {
    /// Returns whether the arm neither moves nor has to stand for the motion of another one.
    #[must_use]
    pub fn is_free_to_move(&self) -> bool {
        self.motion_claim.try_lock().is_ok()
    }

    /// Creates an attached arm.
    #[must_use]
    pub fn new(
        name: &str,
        motion: MotionHandle,
        workcell: Option<Box<dyn SimulatedWorkcell>>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            motion,
            workcell,
            recorder: None,
            board: JobBoard::default(),
            lease: ArmLease::default(),
            motion_claim: Arc::default(),
            abandoned: Mutex::default(),
            stop_cause: Mutex::default(),
            last_scene: Mutex::default(),
            placed_scene: Mutex::default(),
            stops_noted: Mutex::default(),
            pen: Mutex::default(),
            photo_cache: SimPhotoCache::default(),
            sheet_from: Mutex::default(),
            viewed_sheet: Mutex::default(),
        }
    }

    /// Returns the arm with a recorder for the bytes of its jobs.
    #[must_use]
    pub fn recorded_by(self, recorder: Box<dyn TrafficRecorder>) -> Self {
        Self {
            recorder: Some(recorder),
            ..self
        }
    }

    /// Returns the arm as its jobs know it.
    #[must_use]
    pub fn key(&self) -> ArmKey<'_> {
        ArmKey {
            name: &self.name,
            is_on_port: self.workcell.is_none(),
        }
    }

    /// Returns the arm's title in results.
    #[must_use]
    pub fn title(&self) -> String {
        let model = &self.motion.arm().file.name;
        if self.workcell.is_some() {
            format!("simulated {model}")
        } else {
            model.clone()
        }
    }

    /// Returns the motion permits of this arm.
    #[must_use]
    pub fn permits(&self) -> &Arc<PermitRegistry> {
        self.motion.permits()
    }

    /// Returns the scene that the arm last moved in.
    #[must_use]
    pub fn last_scene(&self) -> Option<Arc<Scene>> {
        self.last_scene.locked().clone()
    }

    /// Returns the scene whose sheet lies before the arm, as far as this process knows.
    #[must_use]
    pub fn sheet_scene(&self) -> Option<Arc<Scene>> {
        match self.workcell {
            Some(_) => self.placed_scene(),
            None => self.last_scene(),
        }
    }

    /// Returns whether the arm was last measured at the rest pose of the scene that it last moved in.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let measured = self.motion.snapshot().measured;
        self.last_scene().zip(measured).is_some_and(|(scene, arm)| {
            arm.position_rad.distance_max(&scene.rest_rad) < AT_REST_RAD
        })
    }

    /// Remembers the scene that the arm moves in.
    pub fn moved_in(&self, scene: &Arc<Scene>) {
        *self.last_scene.locked() = Some(match scene.holder.is_by_hand() {
            // Which pen is in the holder is asked again when the arm moves next.
            true => Arc::new(scene.without_mounted()),
            false => Arc::clone(scene),
        });
    }

    /// Undoes [`AttachedArm::moved_in`] after a motion that did not begin.
    pub fn moved_back_to(&self, scene: Option<Arc<Scene>>) {
        *self.last_scene.locked() = scene;
    }

    /// Lays a clean sheet, if the arm is simulated. The ink of the job with this number may come onto it, and that of later ones.
    pub(super) fn place_sheet(&self, scene: &Arc<Scene>, from: u64) {
        if let Some(workcell) = &self.workcell {
            workcell.place_sheet(&self.with_confirmed_pen(scene));
            self.photo_cache.invalidate();
            *self.sheet_from.locked() = from;
            *self.placed_scene.locked() = Some(Arc::clone(scene));
        }
    }

    /// Lays a scene's sheet, as [`Self::place_sheet`]; that of a canvas stays with all that is on it.
    pub(super) fn keep_or_place_sheet(&self, scene: &Arc<Scene>, from: u64) {
        let placed = self.placed_scene();
        if scene.canvas.is_some() && placed.is_some_and(|old| old.revision == scene.revision) {
            *self.placed_scene.locked() = Some(Arc::clone(scene));
        } else {
            self.place_sheet(scene, from);
        }
    }

    /// Returns the scene whose sheet lies before a simulated arm.
    pub(super) fn placed_scene(&self) -> Option<Arc<Scene>> {
        self.placed_scene.locked().clone()
    }
}

/// Returns the forgiveness profile of a node with this file.
#[must_use]
pub fn forgiveness(file: &NodeFile) -> ForgivenessProfile {
    match file.forgiveness() {
        ForgivenessSetting::Lenient => ForgivenessProfile::Lenient,
        ForgivenessSetting::Guarded => ForgivenessProfile::Guarded,
    }
}

impl Node {
    /// Creates a node with its arms attached.
    #[must_use]
    pub fn new(
        file: NodeFile,
        scenes: SceneLibrary,
        arms: Vec<Arc<AttachedArm>>,
        output: PathBuf,
        state: NodeStorage,
    ) -> Self {
        let node = Self {
            cameras: cameras::from_file(&file),
            separations: interlock::join(&file, &scenes, &arms),
            file,
            scenes,
            arms,
            output,
            state: state.folder,
            job_store: state.job_store,
            audit: state.audit,
            declared: DeclaredTools::default(),
            remote_tools: None,
            examiner: None,
            helpers: None,
            recordings: None,
            job_recorder: None,
            fleet: None,
            sequences: SequenceRegistry::default(),
            doubts: super::doubt::CallerDoubts::default(),
            refusals: super::audit::RefusalHistory::default(),
            approvals: super::plan_approval::PlanApprovals::default(),
            pen_changes: PenChanges::default(),
            queue_desk: Arc::default(),
            previews: super::stroke::PreviewHistory::default(),
            selftest: Mutex::default(),
            rates: RateLimiter::default(),
            names: NamesCache::default(),
            login_codes: LoginCodes::default(),
            clock: NodeClock::real(),
            next_number: AtomicU64::new(1),
            stops_heard: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
            run: random_run(),
            passed_on_stops: PassedOnStops::default(),
            passed_on_motion: PassedOnMotion::default(),
            remote_motion: PassedOnMotion::default(),
        };
        for arm in &node.arms {
            node.read_sheet_mark(arm);
        }
        node
    }

    /// Records the stops so far for a message that arrives now: before it is read, checked or given to another thread. Waits for
    /// no lock.
    #[must_use]
    pub fn stamp_arrival(&self) -> ArrivalStamp {
        let counts = self.arms.iter().map(|arm| StopCounts {
            stops: arm.motion.stops_requested(),
            emergencies: arm.permits().emergencies(),
            orders: arm.permits().orders_given(),
        });
        ArrivalStamp::new(counts.collect(), self.stops_heard.load(Ordering::SeqCst))
    }

    /// Returns the stops of an arm that had been heard when a message arrived.
    #[must_use]
    pub fn stops_before(&self, arrived: &ArrivalStamp, arm: &AttachedArm) -> StopCounts {
        let mut arms = self.arms.iter();
        let index = arms.position(|own| std::ptr::eq(Arc::as_ptr(own), arm));
        index.map(|index| arrived.arm(index)).unwrap_or_default()
    }

    /// Counts a stop of this node or of another: no call that arrived before it is passed on any more.
    pub fn count_stop(&self) {
        self.stops_heard.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns whether a stop, of whichever node, was heard after a message arrived.
    pub(super) fn has_heard_stop_since(&self, arrived: &ArrivalStamp) -> bool {
        self.stops_heard.load(Ordering::SeqCst) > arrived.stops_heard()
    }

    /// Returns where a call for another node stands among the stops that were heard: behind all of them if it is a stop.
    pub(super) fn stop_order(&self, request: &ToolRequest, effect: ToolEffect) -> StopOrder {
        let stops = match effect {
            ToolEffect::Stops => self.stops_heard.load(Ordering::SeqCst),
            ToolEffect::Reads | ToolEffect::Moves => request.arrived.stops_heard(),
        };
        StopOrder {
            run: self.run,
            stops,
        }
    }

    /// Returns whether an arm was told to stop after a message arrived.
    pub(super) fn is_stopped_since(&self, arrived: &ArrivalStamp) -> bool {
        let mut arms = self.arms.iter().enumerate();
        arms.any(|(index, arm)| arm.motion.stops_requested() > arrived.arm(index).stops)
    }

    /// Asks every arm to stop, without waiting.
    pub fn stop_all(&self, by: ActorRank, emergency: bool, cause: &StopCause) {
        for arm in &self.arms {
            arm.stop(by, emergency, cause);
        }
        self.end_sequences();
    }

    /// Asks every arm to stop because the node ends, and gives up what its calls move on other nodes. No motion begins
    /// any more; stops are still heard.
    pub fn stop_to_end(&self, by: ActorRank, emergency: bool, cause: &StopCause) {
        // First: what is asked for before this is ended by the stop.
        self.is_ending.store(true, Ordering::SeqCst);
        self.stop_all(by, emergency, cause);
        self.passed_on_motion.give_up();
    }

    /// Returns whether the node ends.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Counts a stop, and ends every sequence and what other servers' tools move: no further step begins, and no call that arrived
    /// before is passed on.
    pub fn end_sequences(&self) {
        self.count_stop();
        self.sequences.cancel();
        self.remote_motion.give_up();
    }

    /// Returns the forgiveness profile for calls.
    #[must_use]
    pub fn profile(&self) -> ForgivenessProfile {
        forgiveness(&self.file)
    }

    /// Returns whether calls for a serial arm are read leniently, which every result must say.
    #[must_use]
    pub fn is_lenient_on_hardware(&self) -> bool {
        self.profile() == ForgivenessProfile::Lenient
            && self.arms.iter().any(|arm| arm.workcell.is_none())
    }

    /// Returns the arm with this name; without a name, the arm `default` or else the first one.
    #[must_use]
    pub fn arm(&self, name: Option<&str>) -> Option<&Arc<AttachedArm>> {
        match name {
            Some(name) => self.arms.iter().find(|arm| arm.name == name),
            None => self
                .arms
                .iter()
                .find(|arm| arm.name == "default")
                .or_else(|| self.arms.first()),
        }
    }

    /// Returns a scene for an arm.
    ///
    /// # Errors
    /// The reason why there is no such scene, or that it is for another arm.
    pub fn scene(
        &self,
        arm: &AttachedArm,
        name: &str,
        overlay: Option<&str>,
    ) -> Result<Arc<Scene>, Refusal> {
        let scene = self.scene_or_part(arm, name, overlay);
        let scene = scene.map_err(|error| self.listing_own_scenes(error))?;
        check_is_for(arm, &scene)?;
        Ok(scene)
    }

    /// Returns a scene, or the part of it that is for an arm where several share it.
    pub(super) fn scene_or_part(
        &self,
        arm: &AttachedArm,
        name: &str,
        overlay: Option<&str>,
    ) -> Result<Arc<Scene>, SceneError> {
        match self.scenes.scene(name, overlay) {
            Err(SceneError::SeveralArms { scene, arms }) if arms.contains(&arm.name) => {
                let part = scene::part_name(&scene, &arm.name);
                self.scenes.scene(&part, overlay)
            }
            found => found,
        }
    }

    /// Returns an error that lists only scenes which the node's arms draw.
    #[must_use]
    pub fn listing_own_scenes(&self, error: SceneError) -> SceneError {
        let arms = self.arms.iter();
        let models: Vec<&str> = arms.map(|arm| &*arm.motion.arm().file.name).collect();
        error.listing_scenes(&self.scenes.scenes_for(&models))
    }

    /// Returns the measurements of the last self-test, on this arm or from before this node's start.
    #[must_use]
    pub fn selftest(&self) -> Option<serde_json::Value> {
        self.selftest.locked().clone()
    }

    /// Remembers what a self-test measured.
    pub fn tested(&self, result: serde_json::Value) {
        *self.selftest.locked() = Some(result);
    }

    /// Returns the next number for a preview or picture.
    pub(super) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }
}

/// Refuses a scene that is for another arm.
pub(super) fn check_is_for(arm: &AttachedArm, scene: &Scene) -> Result<(), Refusal> {
    let model = &arm.motion.arm().file.name;
    if scene.arm.file.name == *model {
        return match scene.arm_name.as_ref().filter(|name| **name != arm.name) {
            None => Ok(()),
            Some(name) => Err(refusal!(
                "scene `{}` is for the arm `{name}`, and this arm is `{}`",
                scene.name,
                arm.name
            )),
        };
    }
    Err(refusal!(
        "scene `{}` is for an arm of model {}, but the model of this arm is {model}",
        scene.name,
        scene.arm.file.name
    ))
}
