//! A node: its arms, its scenes and what it remembers between calls.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use args::Profile;
use base::units::Measured;
use caller::{Lease, Rates};
use config::{Forgiveness, NodeFile};
use fleet::Fleet;
use job::{Audit, Book, Keep};
use motion::Motion;
use permit::{Permits, Who};
use scene::{Library, Scene, SceneError};
use vision::{Eye, Frame};

use super::abroad::Abroad;
use super::declared::Declared;
use super::eyes::{self, Exposure, Watcher};
use super::interlock::{self, ArmSeparation};
use super::job::Board;
use super::known::KnownNames;
use super::photograph::Photograph;
use super::relay::Courses;

/// Simulated counterpart of the person and the camera beside an arm: lays a sheet and takes pictures. The embedded
/// simulator has one; an arm on a port has none.
pub trait Studio: Send + Sync {
    /// Lays a clean sheet of this scene before the arm and puts its pens into the holder.
    fn lay(&self, scene: &Scene);

    /// Returns the ink on the sheet: pen index and points in sheet millimetres.
    fn ink(&self) -> Vec<(usize, Vec<[f64; 2]>)>;

    /// Renders the camera's view of the workcell, with this scene's sheet.
    ///
    /// # Errors
    /// The part that cannot be rendered.
    fn picture(&self, scene: &Scene, eye: &Eye, exposure: &Exposure) -> Result<Frame, String>;
}

/// Writes down every byte to and from an arm while a job moves it. One job moves at a time.
pub trait Recorder: Send + Sync {
    /// From now on bytes go to this file, behind what is there.
    ///
    /// # Errors
    /// When it cannot be written; the job goes on without.
    fn begin(&self, file: &std::path::Path) -> std::io::Result<()>;

    /// No longer. All that was written is in the file afterwards; this waits for the disk.
    fn end(&self);
}

/// Largest difference of each joint from the rest pose for an arm that counts as at rest.
pub const AT_REST_RAD: f64 = 0.03;

/// One arm of a node.
pub struct Seat {
    /// Name used by callers.
    pub name: String,
    /// Its thread.
    pub motion: Motion,
    /// Simulated surroundings; `None` for an arm on a port.
    pub studio: Option<Box<dyn Studio>>,
    pub(super) recorder: Option<Box<dyn Recorder>>,
    pub(super) board: Board,
    pub(super) lease: Lease,
    last_scene: Mutex<Option<Arc<Scene>>>,
    laid: Mutex<Option<Arc<Scene>>>,
    pub(super) photograph: Photograph,
}

/// A node.
pub struct Node {
    /// As its file describes it.
    pub file: NodeFile,
    /// Its scenes.
    pub scenes: Library,
    /// Its arms, at least one.
    pub seats: Vec<Arc<Seat>>,
    /// Folder for reports and pictures.
    pub output: PathBuf,
    /// Folder for state that must outlive this process; it exists and only this user can access it.
    pub state: PathBuf,
    /// The journals of its jobs.
    pub book: Book,
    /// Log of calls, refusals, stops, enabling and changes.
    pub audit: Audit,
    /// The tools that its file declares.
    pub declared: Declared,
    pub(super) abroad: Option<Arc<dyn Abroad>>,
    pub(super) examiner: Option<Arc<dyn super::Examiner>>,
    pub(super) helpers: Option<Arc<dyn super::Helpers>>,
    pub(super) cameras: Vec<Arc<Watcher>>,
    /// The other nodes, where there are any.
    pub fleet: Option<Arc<Fleet>>,
    pub(super) courses: Courses,
    pub(super) memory: Mutex<super::dispatch::Memory>,
    pub(super) refusals: super::audit::Refusals,
    pub(super) approvals: super::approve::Approvals,
    pub(super) previews: super::stroke::Previews,
    selftest: Mutex<Option<serde_json::Value>>,
    pub(super) separations: Vec<ArmSeparation>,
    pub(super) rates: Rates,
    pub(super) names: KnownNames,
    numbers: AtomicU64,
}

/// Open files of the state that outlives the node's process.
pub struct State {
    folder: PathBuf,
    book: Book,
    audit: Audit,
}

impl State {
    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Opens a node's state folder, which exists. No other process can until this one ends.
    ///
    /// # Errors
    /// Who has it, or what of it cannot be used.
    pub fn open(folder: PathBuf, file: &NodeFile) -> Result<Self, String> {
        let keep = Keep {
            jobs: file.keep_jobs,
            bytes: file.keep_jobs_mb << 20,
            days: file.keep_jobs_days,
        };
        let book = Book::open(&folder, keep).map_err(|error| error.to_string())?;
        let audit = Audit::open(&folder)
            .map_err(|error| format!("the audit log cannot be used: {error}"))?;
        Ok(Self {
            folder,
            book,
            audit,
        })
    }
}

impl Seat {
    /// An arm that is attached.
    #[must_use]
    pub fn new(name: &str, motion: Motion, studio: Option<Box<dyn Studio>>) -> Self {
        Self {
            name: name.to_owned(),
            motion,
            studio,
            recorder: None,
            board: Board::default(),
            lease: Lease::default(),
            last_scene: Mutex::default(),
            laid: Mutex::default(),
            photograph: Photograph::default(),
        }
    }

    /// The same arm, with the bytes of its jobs kept.
    #[must_use]
    pub fn recorded_by(self, recorder: Box<dyn Recorder>) -> Self {
        Self {
            recorder: Some(recorder),
            ..self
        }
    }

    /// Returns the arm's title in results.
    #[must_use]
    pub fn title(&self) -> String {
        let model = &self.motion.arm().file.name;
        if self.studio.is_some() {
            format!("simulated {model}")
        } else {
            model.clone()
        }
    }

    /// Returns the motion permits of this arm.
    #[must_use]
    pub fn permits(&self) -> &Arc<Permits> {
        self.motion.permits()
    }

    /// The scene that the arm last moved in.
    #[must_use]
    pub fn last_scene(&self) -> Option<Arc<Scene>> {
        self.last_scene
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns whether the arm was read to stand where the scene that it last moved in rests it.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let (scene, seen) = (self.last_scene(), self.motion.snapshot().measured);
        let off_rad = |(scene, seen): (Arc<Scene>, Arc<Measured>)| {
            seen.position_rad.distance_max(&scene.rest_rad)
        };
        scene
            .zip(seen)
            .map(off_rad)
            .is_some_and(|off_rad| off_rad < AT_REST_RAD)
    }

    /// Remembers the scene that the arm moves in.
    pub fn moved_in(&self, scene: &Arc<Scene>) {
        *self
            .last_scene
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(scene));
    }

    /// Takes back [`Seat::moved_in`] after a motion that did not begin.
    pub fn moved_back_to(&self, scene: Option<Arc<Scene>>) {
        *self
            .last_scene
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = scene;
    }

    /// Lays a clean sheet for a drawing, if the arm is simulated.
    pub(super) fn lay(&self, scene: &Arc<Scene>) {
        if let Some(studio) = &self.studio {
            studio.lay(scene);
            self.photograph.forget();
            *self.laid.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(scene));
        }
    }

    /// The scene whose sheet lies before a simulated arm.
    pub(super) fn laid(&self) -> Option<Arc<Scene>> {
        self.laid
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Node {
    /// A node with its arms attached.
    #[must_use]
    pub fn new(
        file: NodeFile,
        scenes: Library,
        seats: Vec<Arc<Seat>>,
        output: PathBuf,
        state: State,
    ) -> Self {
        Self {
            cameras: eyes::of(&file),
            separations: interlock::join(&file, &scenes, &seats),
            file,
            scenes,
            seats,
            output,
            state: state.folder,
            book: state.book,
            audit: state.audit,
            declared: Declared::default(),
            abroad: None,
            examiner: None,
            helpers: None,
            fleet: None,
            courses: Courses::default(),
            memory: Mutex::default(),
            refusals: super::audit::Refusals::default(),
            approvals: super::approve::Approvals::default(),
            previews: super::stroke::Previews::default(),
            selftest: Mutex::default(),
            rates: Rates::default(),
            names: KnownNames::default(),
            numbers: AtomicU64::new(1),
        }
    }

    /// Sets the checker of the tokens' certificates.
    #[must_use]
    pub fn with_examiner(self, examiner: Arc<dyn super::Examiner>) -> Self {
        Self {
            examiner: Some(examiner),
            ..self
        }
    }

    /// Sets the service behind the exam toolset.
    #[must_use]
    pub fn with_helpers(self, helpers: Arc<dyn super::Helpers>) -> Self {
        Self {
            helpers: Some(helpers),
            ..self
        }
    }

    /// The same node with the tools that its file declares, and the way to other servers that some of them need.
    #[must_use]
    pub fn with_declared(self, declared: Declared, abroad: Arc<dyn Abroad>) -> Self {
        Self {
            declared,
            abroad: Some(abroad),
            ..self
        }
    }

    /// The same node with a way to others.
    #[must_use]
    pub fn with_fleet(self, fleet: Arc<Fleet>) -> Self {
        Self {
            fleet: Some(fleet),
            ..self
        }
    }

    /// Asks every arm to stop; waits for none.
    pub fn stop_all(&self, by: Who, emergency: bool) {
        for seat in &self.seats {
            seat.motion.stop(by, emergency);
        }
    }

    /// Returns the forgiveness profile for calls.
    #[must_use]
    pub fn profile(&self) -> Profile {
        match self.file.forgiveness() {
            Forgiveness::Lenient => Profile::Lenient,
            Forgiveness::Guarded => Profile::Guarded,
        }
    }

    /// Returns whether calls for a serial arm are read leniently, which every result must say.
    #[must_use]
    pub fn is_daring(&self) -> bool {
        self.profile() == Profile::Lenient && self.seats.iter().any(|seat| seat.studio.is_none())
    }

    /// The arm of a name; the only one, or `default`, where none is named.
    #[must_use]
    pub fn seat(&self, name: Option<&str>) -> Option<&Arc<Seat>> {
        match name {
            Some(name) => self.seats.iter().find(|seat| seat.name == name),
            None => self
                .seats
                .iter()
                .find(|seat| seat.name == "default")
                .or_else(|| self.seats.first()),
        }
    }

    /// A scene for an arm.
    ///
    /// # Errors
    /// Why there is no such scene, or that it is for another arm.
    pub fn scene(
        &self,
        seat: &Seat,
        name: &str,
        overlay: Option<&str>,
    ) -> Result<Arc<Scene>, String> {
        let scene = self
            .scenes
            .scene(name, overlay)
            .map_err(|error: SceneError| error.to_string())?;
        let model = &seat.motion.arm().file.name;
        if scene.arm.file.name == *model {
            Ok(scene)
        } else {
            Err(format!(
                "scene `{name}` is for the arm {}; this arm is a {model}",
                scene.arm.file.name
            ))
        }
    }

    /// Returns the last self-test's measurements, on this arm or from before this node's start.
    #[must_use]
    pub fn selftest(&self) -> Option<serde_json::Value> {
        self.selftest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Remembers what a self-test measured.
    pub fn tested(&self, result: serde_json::Value) {
        *self.selftest.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// The next number of a preview or picture.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}
