//! Collects touches, assesses them, and writes them into a file or drops them, for the terminal and the page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::assessment::{RIM_KEY, drawn_on, vector_value};
use super::calibration_record::{
    CalibrationKind, CalibrationOrigin, CalibrationRecord, CalibrationSession, TagObservation,
    TouchContact, TouchRole, check, servos, short_hash, zeros_of,
};
use super::calibration_store::file_error;
use super::{
    AssessError, CalibrationEditError, CalibrationLock, CalibrationStore, CalibrationStoreError,
    FileValues, FitFinding, TouchAssessment, TouchResidual, assess, assess_bases, basis_of,
    check_own, identify, put, stale, stale_bases, touches_of_place, write,
};
use arm::ArmFile;
use base::disk;
use base::plain_file;
use nalgebra::Point3;
use scene::{Scene, SceneError, SceneLibrary, SharedScene};

/// Reason that nothing was collected or written.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationDeskError {
    /// The folder of calibrations cannot be used.
    #[error(transparent)]
    Store(#[from] CalibrationStoreError),
    /// The scene or the arm cannot be read.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// The touches cannot be assessed.
    #[error(transparent)]
    Assess(#[from] AssessError),
    /// The file's text cannot be changed.
    #[error(transparent)]
    Edit(#[from] CalibrationEditError),
    /// Nothing is collected.
    #[error(
        "there are no touches yet. Next: `steadyhand calibrate touch tool --scene NAME` (or `sheet`, `zeros`, `bases`)"
    )]
    Nothing,
    /// Something else is proposed.
    #[error(
        "another proposal is open: {0}. Next: `steadyhand calibrate accept` or `steadyhand calibrate discard`"
    )]
    OtherThing(String),
    /// Touches of another arm are collected.
    #[error(
        "the open touches are of a different arm ({pending}); this one is {here}. Next: `steadyhand calibrate accept` or `steadyhand calibrate discard`"
    )]
    OtherArm {
        /// Theirs.
        pending: String,
        /// This one.
        here: String,
    },
    /// This kind has no such touch.
    #[error(
        "a calibration of {0} has no such touch. Valid: tool (point, verify), sheet (origin, x, y, sheet, verify), zeros (sheet, point, calibrator), bases (point)"
    )]
    NoSuchTouch(&'static str),
    /// The stated distance of a point on a sheet's edge is far beyond the sheet.
    #[error(
        "{axis} is {mm} mm from the origin (at most {most_mm} mm); the sheet is {side_mm} mm {along}. Next: measure from the origin to the tip in mm, or correct `size_mm` in the scene's `[sheet]`"
    )]
    OffSheet {
        /// "x" or "y".
        axis: &'static str,
        /// The stated distance.
        mm: f64,
        /// The sheet's width or height.
        side_mm: f64,
        /// "wide" or "high".
        along: &'static str,
        /// The largest distance that is accepted.
        most_mm: f64,
    },
    /// There is no touch of this number.
    #[error("there is no touch {number}; there are {} so far. Next: `steadyhand calibrate show` lists them", base::wording::count(*have, "touch"))]
    NoTouch {
        /// Counted from 1.
        number: usize,
        /// Number of touches.
        have: usize,
    },
    /// The proposal may not be accepted.
    #[error("not accepted: {0}")]
    Refused(String),
    /// There is no folder for it.
    #[error(
        "the shipped scenes are part of the program and cannot be changed. Next: add --scenes DIR, and a copy is written there"
    )]
    NoFolder,
    /// The file does not exist.
    #[error("there is no {0}")]
    NoFile(String),
    /// The new values make a file that does not load.
    #[error("the file was not changed: it would be invalid with these values: {0}")]
    Unusable(SceneError),
}

/// Warning for a node that runs while its zeros change.
pub const ZEROS_NEED_RESTART: &str = "a running node still has the arm's old file, so it refuses to enable, move or touch. A stop still works. Next: restart the node";

/// Consent to a proposal.
#[derive(Clone, Copy, Debug)]
pub struct AcceptConsent<'a> {
    /// Key of the proposal that was shown: no other is accepted.
    pub shown: &'a str,
    /// Accept a large change.
    pub overridden: bool,
}

/// A calibration that was written.
#[derive(Clone, Debug)]
pub struct AcceptedCalibration {
    /// Its number in the history.
    pub number: u64,
    /// The file that has it now.
    pub path: PathBuf,
    /// A sentence for each scene whose calibration went stale by it.
    pub stale: Vec<String>,
}

/// A file that was written, and what it said before; `None` where there was none.
struct FileChange {
    path: PathBuf,
    before: Option<String>,
}

impl FileChange {
    /// Puts the file back.
    fn undo(&self) -> Result<(), CalibrationStoreError> {
        match &self.before {
            Some(before) => put(&self.path, before),
            None => std::fs::remove_file(&self.path).map_err(file_error(&self.path)),
        }
    }
}

/// The scenes and the calibrations of a node.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct CalibrationDesk<'a> {
    /// The calibrations.
    pub store: &'a CalibrationStore,
    /// The scenes' and arms' files.
    pub library: &'a SceneLibrary,
    /// The time now, in milliseconds since 1970.
    pub at_ms: u64,
    /// Returns of every arm of a file the origin of what is measured on it now.
    pub arms: &'a dyn Fn(&ArmFile) -> Vec<CalibrationOrigin>,
}

impl CalibrationDesk<'_> {
    /// Returns the touches that are being collected.
    ///
    /// # Errors
    /// When there are none, or they cannot be read.
    pub fn proposal(&self) -> Result<CalibrationSession, CalibrationDeskError> {
        let session = self.store.proposal()?;
        session.ok_or(CalibrationDeskError::Nothing)
    }

    /// Returns the scene in which a session was collected; of bases, the part of the first arm.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn scene(&self, session: &CalibrationSession) -> Result<Arc<Scene>, CalibrationDeskError> {
        if self.library.is_shared(&session.scene) {
            let shared = self.library.shared(&session.scene, None)?;
            if let Some(first) = shared.parts.into_iter().next() {
                return Ok(first.scene);
            }
        }
        Ok(self.library.scene(&session.scene, None)?)
    }

    /// Assesses a session, compared with the last accepted one of the same object.
    ///
    /// # Errors
    /// When it cannot be assessed.
    pub fn assess(
        &self,
        session: &CalibrationSession,
    ) -> Result<TouchAssessment, CalibrationDeskError> {
        if let Some(record) = self.interrupted(session)? {
            return Ok(interrupted_assessment(record));
        }
        if session.kind == CalibrationKind::Bases {
            let shared = self.library.shared(&session.scene, None)?;
            return Ok(assess_bases(session, &shared)?);
        }
        let history = self.store.history()?;
        let mut newest = history.iter().rev();
        let last = newest.find(|record| record.session.is_of_same(session));
        Ok(assess(session, &*self.scene(session)?, last)?)
    }

    /// Returns the record of this proposal, if accepting it was interrupted.
    fn interrupted(
        &self,
        session: &CalibrationSession,
    ) -> Result<Option<CalibrationRecord>, CalibrationStoreError> {
        let record = self.store.interrupted()?;
        Ok(record.filter(|record| record.session == *session))
    }

    /// Adds a touch, by the joints at which the tip stands, to those of the same thing, and returns all of them, judged.
    ///
    /// # Errors
    /// When a calibration of this kind has no such touch, touches of another object or arm are being collected, or these
    /// cannot be assessed.
    pub fn add_touch(
        &self,
        mut fresh: CalibrationSession,
        touch_request: &HandTouch,
        joints_rad: Vec<f64>,
    ) -> Result<(CalibrationSession, TouchAssessment), CalibrationDeskError> {
        let kind = fresh.kind;
        let no_such_touch = || CalibrationDeskError::NoSuchTouch(kind.word());
        let role = role(kind, touch_request.of).ok_or_else(no_such_touch)?;
        let scene = self.scene(&fresh)?;
        check_distance(role, touch_request.mm, scene.surface.size_mm())?;
        if kind == CalibrationKind::Bases {
            scene.shared_name().clone_into(&mut fresh.scene);
        }
        let touch = TouchContact {
            role,
            arm: match kind {
                CalibrationKind::Bases => scene.arm_name.clone().unwrap_or_default(),
                _ => String::new(),
            },
            joints_rad,
            asked_mm: touch_request.mm,
            number: touch_request.number,
            place: touch_request.place,
            at_ms: self.at_ms,
            zeros: zeros_of(&scene.arm.file),
        };
        let _claim = self.store.claim("a touch by hand is being recorded")?;
        let lock = self.store.lock()?;
        let mut session = match self.store.proposal()? {
            None => fresh,
            Some(pending) if !pending.is_of_same(&fresh) || pending.is_by_itself() => {
                return Err(other_thing(&pending));
            }
            Some(pending) if !pending.may_go_on_with(&fresh.origin) => {
                return Err(CalibrationDeskError::OtherArm {
                    pending: pending.origin.describe(),
                    here: fresh.origin.describe(),
                });
            }
            Some(pending) => pending,
        };
        session.touches.push(touch);
        self.propose(session, &lock)
    }

    /// Assesses a session and stores it as the proposal.
    pub(super) fn propose(
        &self,
        session: CalibrationSession,
        lock: &CalibrationLock,
    ) -> Result<(CalibrationSession, TouchAssessment), CalibrationDeskError> {
        let assessed = self.assess(&session)?;
        self.store.propose(&session, lock)?;
        Ok((session, assessed))
    }

    /// Proposes a camera's observation of an arm's sheet, replacing an earlier proposal for the same object; returns it with its
    /// assessment.
    ///
    /// # Errors
    /// When touches of another object are being collected, or it cannot be assessed.
    pub fn propose_seen(
        &self,
        scene: &Scene,
        seen: TagObservation,
        origin: CalibrationOrigin,
    ) -> Result<(CalibrationSession, TouchAssessment), CalibrationDeskError> {
        let session = CalibrationSession {
            name: seen.camera.clone(),
            seen: Some(seen),
            ..begin_session(CalibrationKind::Camera, scene, None, origin)?
        };
        let _claim = self.store.claim("a camera is being calibrated")?;
        let lock = self.store.lock()?;
        let pending = self.store.proposal()?;
        if let Some(pending) = pending.filter(|pending| !pending.is_of_same(&session)) {
            return Err(other_thing(&pending));
        }
        self.propose(session, &lock)
    }

    /// Drops the touch of this number, counted from 1, and all others at its place from the proposal that was shown; returns how many
    /// were dropped.
    ///
    /// # Errors
    /// When there is no such touch, or the proposal has changed since.
    pub fn drop_place_of(
        &self,
        number: usize,
        shown: Option<&str>,
    ) -> Result<usize, CalibrationDeskError> {
        let lock = self.store.lock()?;
        let session = match shown {
            Some(key) => self.shown_proposal(key)?.0,
            None => self.proposal()?,
        };
        let scene = self.scene(&session)?;
        let indices = touches_of_place(&session, &scene, number.saturating_sub(1));
        if number == 0 || indices.is_empty() {
            let have = session.touches.len();
            return Err(CalibrationDeskError::NoTouch { number, have });
        }
        self.keep_without(session, &indices, &lock)
    }

    /// Drops the touches of these indices, counted from 0; returns their number. Without touches there is no proposal any more.
    ///
    /// # Errors
    /// When the proposal cannot be read or written.
    pub fn drop_touches(&self, indices: &[usize]) -> Result<usize, CalibrationDeskError> {
        let lock = self.store.lock()?;
        let session = self.proposal()?;
        let have = session.touches.len();
        if let Some(last) = indices.iter().max().filter(|last| **last >= have) {
            let number = last + 1;
            return Err(CalibrationDeskError::NoTouch { number, have });
        }
        self.keep_without(session, indices, &lock)
    }

    fn keep_without(
        &self,
        mut session: CalibrationSession,
        indices: &[usize],
        lock: &CalibrationLock,
    ) -> Result<usize, CalibrationDeskError> {
        let mut positions = 0..;
        let mut is_kept =
            |_: &TouchContact| positions.next().is_none_or(|at| !indices.contains(&at));
        session.touches.retain(&mut is_kept);
        if session.touches.is_empty() {
            self.store.discard(lock)?;
        } else {
            self.store.propose(&session, lock)?;
        }
        Ok(indices.len())
    }

    /// Writes the proposal into its file and the history, if it is good enough, is the one that was shown, and belongs to the present
    /// arm.
    ///
    /// # Errors
    /// When it may not be accepted, or cannot be written; nothing has changed then.
    pub fn accept(
        &self,
        consent: AcceptConsent<'_>,
    ) -> Result<AcceptedCalibration, CalibrationDeskError> {
        let lock = self.store.lock()?;
        let (session, assessed) = self.shown_proposal(consent.shown)?;
        if let Some(record) = self.interrupted(&session)? {
            let path = self.finish(&record, &lock)?;
            self.store.end_proposal(&lock)?;
            return self.accepted(record.number, path);
        }
        self.check_measuring_arm(&session)?;
        check(&assessed.finding, &assessed.change, consent.overridden)
            .map_err(CalibrationDeskError::Refused)?;
        let record = CalibrationRecord {
            number: self.store.next_number(),
            at_ms: self.at_ms,
            method: session.method().to_owned(),
            servos: servos(&self.scene(&session)?.arm.file),
            verdict: assessed.finding.verdict,
            reasons: assessed.finding.reasons,
            residuals_mm: assessed.points.iter().map(TouchResidual::mm).collect(),
            old: assessed.old,
            new: assessed.new,
            session,
        };
        let path = self.write_recorded(&record, None, &lock)?;
        self.store.end_proposal(&lock)?;
        self.accepted(record.number, path)
    }

    /// Refuses a proposal of a simulated arm where it would be used on one at a port, and the other way round: it belongs to the arm
    /// that measured it or, where none is recorded, to any arm of its model.
    fn check_measuring_arm(
        &self,
        session: &CalibrationSession,
    ) -> Result<(), CalibrationDeskError> {
        let name = session.origin.name_among_several();
        let origins = self.origins(&self.library.arm(&session.arm)?.file, name);
        let is_alike = |origin: &CalibrationOrigin| origin.simulated == session.origin.simulated;
        if origins.iter().any(is_alike) {
            return Ok(());
        }
        let here = origins.first().map(CalibrationOrigin::describe);
        Err(CalibrationDeskError::Refused(format!(
            "the touches were made on {}, but this is {}. Next: `steadyhand calibrate discard`, then touch again",
            session.origin.describe(),
            here.unwrap_or_default()
        )))
    }

    /// Returns the origins of the arms of a file, or of the named one alone; one that nothing is known of if there are none.
    fn origins(&self, file: &ArmFile, name: Option<&str>) -> Vec<CalibrationOrigin> {
        let mut arms = (self.arms)(file);
        arms.retain(|origin| name.is_none_or(|name| origin.arm_name == name));
        if arms.is_empty() {
            arms.push(CalibrationOrigin::default());
        }
        arms
    }

    /// Discards the proposal that was shown.
    ///
    /// # Errors
    /// When there is none, it has changed since, or it cannot be removed.
    pub fn discard(&self, shown: &str) -> Result<(), CalibrationDeskError> {
        let lock = self.store.lock()?;
        self.shown_proposal(shown)?;
        Ok(self.store.discard(&lock)?)
    }

    fn shown_proposal(
        &self,
        key: &str,
    ) -> Result<(CalibrationSession, TouchAssessment), CalibrationDeskError> {
        let session = self.proposal()?;
        let assessed = self.assess(&session)?;
        match proposal_key(&session, &assessed) == key {
            true => Ok((session, assessed)),
            false => Err(CalibrationDeskError::Refused(
                "the proposal has changed since it was shown. Next: `steadyhand calibrate show`"
                    .to_owned(),
            )),
        }
    }

    /// Writes a calibration into its file and the history. What is being written is recorded first, so that neither a full disk nor
    /// a kill leaves an unknown change; a file that does not load is put back.
    ///
    /// # Errors
    /// When it cannot be written, does not load, or accepting a proposal was interrupted; nothing has changed then.
    pub fn write(
        &self,
        record: &CalibrationRecord,
        servos: Option<&BTreeMap<u8, String>>,
        lock: &CalibrationLock,
    ) -> Result<AcceptedCalibration, CalibrationDeskError> {
        self.store.check_not_interrupted()?;
        let path = self.write_recorded(record, servos, lock)?;
        self.store.end(lock);
        self.accepted(record.number, path)
    }

    /// Writes like [`CalibrationDesk::write`]; its caller ends the record of what is being written.
    fn write_recorded(
        &self,
        record: &CalibrationRecord,
        servos: Option<&BTreeMap<u8, String>>,
        lock: &CalibrationLock,
    ) -> Result<PathBuf, CalibrationDeskError> {
        self.store.begin(record, lock)?;
        let changed = self.change_file(record, servos);
        let changed = changed.inspect_err(|_| self.store.end(lock))?;
        if let Err(error) = self.store.keep(record, lock) {
            // Where that fails too, accepting again finishes it.
            if changed.undo().is_ok() {
                self.store.forget(record.number, lock);
            }
            return Err(error.into());
        }
        Ok(changed.path)
    }

    /// Writes what was interrupted again, perhaps after its file was written: values are put, not added.
    fn finish(
        &self,
        record: &CalibrationRecord,
        lock: &CalibrationLock,
    ) -> Result<PathBuf, CalibrationDeskError> {
        let changed = self.change_file(record, None)?;
        self.store.keep(record, lock)?;
        Ok(changed.path)
    }

    fn accepted(
        &self,
        number: u64,
        path: PathBuf,
    ) -> Result<AcceptedCalibration, CalibrationDeskError> {
        Ok(AcceptedCalibration {
            number,
            path,
            stale: self.stale_scenes()?,
        })
    }

    fn change_file(
        &self,
        record: &CalibrationRecord,
        servos: Option<&BTreeMap<u8, String>>,
    ) -> Result<FileChange, CalibrationDeskError> {
        let session = &record.session;
        let name = match session.kind {
            CalibrationKind::Camera => return self.change_camera(record),
            CalibrationKind::Zeros | CalibrationKind::Play => format!("arms/{}.toml", session.arm),
            _ => format!("{}.toml", scene::shared_name(&session.scene)),
        };
        let folder = self.library.folder();
        let path = folder.ok_or(CalibrationDeskError::NoFolder)?.join(&name);
        let old = self.library.source(&name)?;
        let old = old.ok_or(CalibrationDeskError::NoFile(name))?;
        if let Some(folder) = path.parent() {
            disk::folder(folder).map_err(file_error(folder))?;
        }
        let mut text = write(&old, session, &self.in_frame_of_file(session, &record.new)?)?;
        if let Some(servos) = servos {
            text = identify(&text, servos)?;
        }
        let before = plain_file::read_text(&path).ok();
        let changed = FileChange { path, before };
        put(&changed.path, &text)?;
        match self.check_loads(session) {
            Ok(()) => Ok(changed),
            Err(error) => {
                changed.undo()?;
                Err(CalibrationDeskError::Unusable(error))
            }
        }
    }

    /// Returns values as their file has them: where several arms share a scene, ink caps are in their common frame.
    fn in_frame_of_file(
        &self,
        session: &CalibrationSession,
        values: &FileValues,
    ) -> Result<FileValues, CalibrationDeskError> {
        let mut values = values.clone();
        let Some((shared, arm)) = session.scene.split_once(scene::PART) else {
            return Ok(values);
        };
        if let Some([x, y, z]) = values.get(RIM_KEY).map(Vec::as_slice) {
            let shared = self.library.shared(shared, None)?;
            let part = shared.parts.iter().find(|part| part.arm_name() == arm);
            let missing = || CalibrationEditError::Missing(format!("arm `{arm}`"));
            let rim_m = part.ok_or_else(missing)?.base * Point3::new(*x, *y, *z);
            values.extend(vector_value(RIM_KEY, &rim_m.coords));
        }
        Ok(values)
    }

    fn change_camera(
        &self,
        record: &CalibrationRecord,
    ) -> Result<FileChange, CalibrationDeskError> {
        let path = self.store.camera_path(&record.session.name);
        let before = plain_file::read_text(&path).ok();
        self.store.keep_camera(record)?;
        Ok(FileChange { path, before })
    }

    fn check_loads(&self, session: &CalibrationSession) -> Result<(), SceneError> {
        self.library.arm(&session.arm)?;
        match session.kind {
            CalibrationKind::Zeros | CalibrationKind::Play => {}
            CalibrationKind::Bases => drop(self.library.shared(&session.scene, None)?),
            _ => drop(self.library.scene(&session.scene, None)?),
        }
        Ok(())
    }

    /// Returns a sentence for each calibrated scene whose drawings are refused from now on.
    fn stale_scenes(&self) -> Result<Vec<String>, CalibrationDeskError> {
        let history = self.store.history()?;
        let names = history
            .iter()
            .map(|record| scene::shared_name(&record.session.scene));
        let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
        let scenes = names
            .into_iter()
            .filter_map(|name| self.library.shared(name, None).ok());
        let stale_for_an_arm = |shared: SharedScene| {
            let of_bases = stale_bases(&history, &shared, None);
            let mut parts = shared.parts.iter().map(|part| &part.scene);
            of_bases.or_else(|| {
                parts.find_map(|scene| {
                    let origins = self.origins(&scene.arm.file, None);
                    let mut origins = origins.iter();
                    origins.find_map(|origin| stale(&history, scene, origin))
                })
            })
        };
        Ok(scenes.filter_map(stale_for_an_arm).collect())
    }
}

/// Returns the key of a proposal, over its touches and the values that it would change. It ensures that what is accepted is what
/// was shown.
#[must_use]
pub fn proposal_key(session: &CalibrationSession, assessed: &TouchAssessment) -> String {
    let (old, new) = (&assessed.old, &assessed.new);
    short_hash(&format!("{session:?} {old:?} {new:?}"))
}

/// Returns what is shown of a proposal that was accepted already: its values are in the record, whatever the file says now.
fn interrupted_assessment(record: CalibrationRecord) -> TouchAssessment {
    let CalibrationRecord {
        number,
        verdict,
        mut reasons,
        ..
    } = record;
    let interrupted = CalibrationStoreError::Interrupted { number };
    reasons.insert(0, interrupted.to_string());
    TouchAssessment {
        finding: FitFinding {
            verdict,
            reasons,
            notes: Vec::new(),
        },
        ..TouchAssessment::default()
    }
}

fn other_thing(pending: &CalibrationSession) -> CalibrationDeskError {
    CalibrationDeskError::OtherThing(pending.open_text())
}

/// A touch by hand, as a person asks for it.
#[derive(Clone, Debug, Default)]
pub struct HandTouch {
    /// Touched point; `None` for the usual one of the kind.
    pub of: Option<TouchRole>,
    /// Distance of x or y from the origin, by ruler.
    pub mm: Option<f64>,
    /// Number of the point, if zeros are found from several unknown points.
    pub number: usize,
    /// Number of the place in a guided round, from 1.
    pub place: usize,
}

fn role(kind: CalibrationKind, requested: Option<TouchRole>) -> Option<TouchRole> {
    use TouchRole::{Calibrator, Origin, Point, Sheet, Verify, X, Y};
    let (usual, others): (_, &[TouchRole]) = match kind {
        CalibrationKind::Tool => (Some(Point), &[Verify]),
        CalibrationKind::Sheet => (Some(Sheet), &[Origin, X, Y, Verify]),
        CalibrationKind::Zeros => (Some(Sheet), &[Point, Calibrator]),
        CalibrationKind::Bases => (Some(Point), &[]),
        _ => (None, &[]),
    };
    match requested {
        None => usual,
        Some(requested) => {
            (Some(requested) == usual || others.contains(&requested)).then_some(requested)
        }
    }
}

/// Largest distance of a touched x or y from the origin, in sides of the sheet: a larger one was not given in millimetres. A point
/// next to the sheet, on its table, is allowed as well.
const SIDES_MAX: f64 = 2.0;

/// Refuses a distance of x or y that is far beyond the sheet.
fn check_distance(
    role: TouchRole,
    mm: Option<f64>,
    [width_mm, height_mm]: [f64; 2],
) -> Result<(), CalibrationDeskError> {
    let (axis, side_mm, along) = match role {
        TouchRole::X => ("x", width_mm, "wide"),
        TouchRole::Y => ("y", height_mm, "high"),
        _ => return Ok(()),
    };
    let most_mm = side_mm * SIDES_MAX;
    match mm.filter(|mm| *mm > most_mm) {
        None => Ok(()),
        Some(mm) => Err(CalibrationDeskError::OffSheet {
            axis,
            mm,
            side_mm,
            along,
            most_mm,
        }),
    }
}

/// Returns a session without touches, in a scene and with one of its pens, by default the first.
///
/// # Errors
/// When the scene has no such pen, or another arm has the same object.
pub fn begin_session(
    kind: CalibrationKind,
    scene: &Scene,
    pen: Option<&str>,
    origin: CalibrationOrigin,
) -> Result<CalibrationSession, CalibrationDeskError> {
    let first = || scene.pen(0).map(|pen| pen.name.clone());
    let pen = pen.map(str::to_owned).or_else(first).unwrap_or_default();
    check_own(kind, scene, &pen, "")?;
    Ok(CalibrationSession {
        basis: basis_of(kind, scene, &pen)?,
        drawn_on: drawn_on(scene),
        kind,
        scene: scene.name.clone(),
        pen,
        arm: scene.arm.file.name.clone(),
        frame: scene.arm.file.frame,
        name: String::new(),
        probed: false,
        read_mm: None,
        seen: None,
        ink: None,
        origin,
        touches: Vec::new(),
    })
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    fn simulated_origin(_: &ArmFile) -> CalibrationOrigin {
        CalibrationOrigin {
            simulated: Some(true),
            ..CalibrationOrigin::default()
        }
    }

    /// Returns the desk of a node with one simulated arm.
    fn desk<'a>(store: &'a CalibrationStore, library: &'a SceneLibrary) -> CalibrationDesk<'a> {
        CalibrationDesk {
            store,
            library,
            at_ms: 0,
            arms: &|arm| vec![simulated_origin(arm)],
        }
    }

    /// As after a kill once the file was written: a reading says how far to move, so it must not move twice.
    #[test]
    fn accepting_what_was_interrupted_changes_nothing_twice() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path();
        let (store, library) = (
            CalibrationStore::of_state(state, &SceneLibrary::new(None)),
            SceneLibrary::new(Some(state.join("scenes"))),
        );
        let desk = desk(&store, &library);
        let scene = library.scene("default", None).unwrap();
        let kind = CalibrationKind::Sheet;
        let reading = |scene: &Scene| CalibrationSession {
            read_mm: Some([5.0, 0.0]),
            ..begin_session(kind, scene, None, simulated_origin(&scene.arm.file)).unwrap()
        };
        let session = reading(&scene);
        store.propose(&session, &store.lock().unwrap()).unwrap();
        let accept = || {
            let session = desk.proposal()?;
            desk.accept(AcceptConsent {
                shown: &proposal_key(&session, &desk.assess(&session)?),
                overridden: false,
            })
        };
        let kept = |name: &str| state.join("calibration").join(name);
        let proposal = std::fs::read(kept("proposal.toml")).unwrap();
        let accepted = accept().unwrap();
        let written = std::fs::read_to_string(&accepted.path).unwrap();
        let record = std::fs::read(kept("000001.toml")).unwrap();
        let accepted_record = store.history().unwrap().remove(0);
        // Before the file was written, after it, and after the record was.
        for (is_written, is_recorded) in [(false, false), (true, false), (true, true)] {
            std::fs::write(kept("accepting.toml"), &record).unwrap();
            std::fs::write(kept("proposal.toml"), &proposal).unwrap();
            if !is_written {
                std::fs::remove_file(&accepted.path).unwrap();
            }
            if !is_recorded {
                std::fs::remove_file(kept("000001.toml")).unwrap();
            }
            let lock = store.lock().unwrap();
            let is_interrupted =
                |error| matches!(error, CalibrationStoreError::Interrupted { number: 1 });
            let written_over = desk.write(&accepted_record, None, &lock).unwrap_err();
            assert!(
                written_over
                    .to_string()
                    .contains("was not completely accepted")
            );
            assert!(is_interrupted(store.propose(&session, &lock).unwrap_err()));
            assert!(is_interrupted(store.discard(&lock).unwrap_err()));
            let shown = desk.assess(&session).unwrap();
            let reason = CalibrationStoreError::Interrupted { number: 1 }.to_string();
            assert_eq!(shown.finding.reasons[0], reason);
            drop(lock);
            assert_eq!(accept().unwrap().number, 1);
            assert_eq!(std::fs::read_to_string(&accepted.path).unwrap(), written);
            assert_eq!(store.proposal().unwrap(), None);
            assert_eq!(store.history().unwrap().len(), 1);
        }
        // The same reading of another cross is another proposal.
        let session = reading(&library.scene("default", None).unwrap());
        store.propose(&session, &store.lock().unwrap()).unwrap();
        assert_eq!(accept().unwrap().number, 2);
        assert_ne!(std::fs::read_to_string(&accepted.path).unwrap(), written);
    }

    #[test]
    fn a_proposal_that_was_not_shown_is_neither_accepted_nor_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let (store, library) = (
            CalibrationStore::of_state(folder.path(), &SceneLibrary::new(None)),
            SceneLibrary::new(None),
        );
        let desk = desk(&store, &library);
        let scene = library.scene("default", None).unwrap();
        let kind = CalibrationKind::Sheet;
        let touch = |role| {
            let touch_request = HandTouch {
                of: Some(role),
                ..HandTouch::default()
            };
            let fresh =
                begin_session(kind, &scene, None, simulated_origin(&scene.arm.file)).unwrap();
            let joints_rad = vec![0.0; scene.arm.dof()];
            desk.add_touch(fresh, &touch_request, joints_rad).unwrap()
        };
        let (session, assessed) = touch(TouchRole::Origin);
        let shown = proposal_key(&session, &assessed);
        let (session, assessed) = touch(TouchRole::X);
        let consent = AcceptConsent {
            shown: &shown,
            overridden: true,
        };
        let is_refused = |error| matches!(error, CalibrationDeskError::Refused(_));
        assert!(is_refused(desk.accept(consent).unwrap_err()));
        assert!(is_refused(desk.discard(&shown).unwrap_err()));
        assert!(is_refused(desk.drop_place_of(1, Some(&shown)).unwrap_err()));
        assert_eq!(store.proposal().unwrap().as_ref(), Some(&session));
        assert!(matches!(
            desk.drop_touches(&[2]).unwrap_err(),
            CalibrationDeskError::NoTouch { number: 3, have: 2 }
        ));
        desk.discard(&proposal_key(&session, &assessed)).unwrap();
        assert_eq!(store.proposal().unwrap(), None);
    }
    #[test]
    fn a_proposal_is_accepted_for_the_arm_that_measured_it() {
        let origin = |name: &str, is_simulated| CalibrationOrigin {
            simulated: Some(is_simulated),
            arm_name: name.to_owned(),
            among_several: !name.is_empty(),
            ..CalibrationOrigin::default()
        };
        let arms = |_: &ArmFile| {
            let arms = [("left", true), ("right", false)];
            let arms = arms.map(|(name, is_simulated)| origin(name, is_simulated));
            arms.to_vec()
        };
        // An older proposal says no arm: any of the model may be meant.
        for (name, is_simulated, is_accepted) in [
            ("right", false, true),
            ("left", true, true),
            ("", false, true),
            ("right", true, false),
            ("left", false, false),
            ("gone", true, false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let desk = CalibrationDesk {
                store: &CalibrationStore::of_state(folder.path(), &SceneLibrary::new(None)),
                library: &SceneLibrary::new(Some(folder.path().join("scenes"))),
                at_ms: 0,
                arms: &arms,
            };
            let scene = desk.library.scene("default", None).unwrap();
            let origin = origin(name, is_simulated);
            let fresh = begin_session(CalibrationKind::Sheet, &scene, None, origin);
            let session = CalibrationSession {
                read_mm: Some([1.0, 0.0]),
                ..fresh.unwrap()
            };
            let assessed = desk.assess(&session).unwrap();
            let lock = desk.store.lock().unwrap();
            desk.store.propose(&session, &lock).unwrap();
            drop(lock);
            let accepted = desk.accept(AcceptConsent {
                shown: &proposal_key(&session, &assessed),
                overridden: false,
            });
            let text = format!("{name:?}, {is_simulated}: {accepted:?}");
            assert_eq!(accepted.is_ok(), is_accepted, "{text}");
        }
    }
}
