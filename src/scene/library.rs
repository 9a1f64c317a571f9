//! Scenes by name: those in the binary, and a folder that comes before them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::area_fill;
use super::build_scene::{self, SceneFileError, SceneParts};
use super::canvas::{Canvas, CanvasBoundError};
use super::design_overflow::DesignOverflow;
use super::embedded::{self, EmbeddedFile};
use super::file::{DesignFile, OverlayFile, PenFile, SceneFile};
use super::placement::{DesignPlacement, fitting_size_mm};
use super::replacement::{DesignReplacement, DesignSource};
use super::{Revision, Scene, SizeSource};
use arm::{ArmError, ArmFault, ArmFile, ArmModel};
use base::lock::MutexExt;
use base::units::Finite;
use config::toml::{self as strict, FileError};
use design::{self, AreaFill, Design, DesignCaps, DesignError, ReadOptions};

/// Source of scenes: a folder and the files in the binary.
#[derive(Clone, Debug, Default)]
pub struct SceneLibrary {
    folder: Option<PathBuf>,
    /// Arms that stand in for others: whose scenes, which arm.
    stand_ins: Vec<(String, String)>,
    instead: Option<Arc<DesignReplacement>>,
    /// It comes from a caller, and goes on a canvas alone.
    is_of_caller: bool,
    /// Words of each scene's file about itself when it was last read, for every call lists scenes.
    heads_seen: Arc<Mutex<HashMap<String, (FileStamp, SceneHead)>>>,
}

/// A file's date and length; `None` for one of the binary's.
type FileStamp = Option<(SystemTime, u64)>;

/// Facts of a scene's file that every list of scenes shows.
#[derive(Clone, Debug, Default)]
struct SceneHead {
    /// The arm that it is for.
    arm: Option<String>,
    is_canvas: bool,
}

/// A file larger than this is not read.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A set has no more files for other pens.
const SET_MAX: usize = 100;

/// Names that an error lists; it counts the others.
const NEAREST_MAX: usize = 12;

/// Reason that a scene cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SceneError {
    /// No scene, overlay or arm of that name.
    #[error("there is no {what} `{name}`; valid: {}", nearest_words(valid))]
    Unknown {
        /// "scene", "overlay" or "arm".
        what: &'static str,
        /// The name that was asked for.
        name: String,
        /// The names there are, the nearest first.
        valid: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {file}: {why}")]
    Missing {
        /// The file.
        file: String,
        /// Message of the system.
        why: String,
    },
    /// The file is not what a scene must be.
    #[error(transparent)]
    File(#[from] FileError),
    /// The arm's file is not what an arm must be.
    #[error(transparent)]
    Arm(#[from] ArmError),
    /// The design does not fit its sheet; nothing else is wrong.
    #[error("{file}: {}", outside.why)]
    Outside {
        /// The scene's file.
        file: String,
        /// Extent of the overflow, with the lines for a picture of it.
        outside: Box<DesignOverflow>,
    },
    /// The design is beyond the bounds of its canvas.
    #[error("{file}: {bound}")]
    Canvas {
        /// The scene's file.
        file: String,
        /// The bound.
        bound: CanvasBoundError,
    },
    /// The design cannot be drawn.
    #[error("{file}: {source}")]
    Design {
        /// The design's file.
        file: String,
        /// Cause.
        source: DesignError,
    },
}

impl SceneError {
    /// Leaves out of the scenes that are listed those that are not among `known`, which the arms at hand draw.
    #[must_use]
    pub fn listing_scenes(mut self, known: &[String]) -> Self {
        if let Self::Unknown {
            what: "scene",
            valid,
            ..
        } = &mut self
        {
            valid.retain(|name| known.contains(name));
        }
        self
    }
}

impl SceneLibrary {
    /// The scenes in the binary, and before them those in `folder`.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            ..Self::default()
        }
    }

    /// The same scenes, all with another design, placed on their sheets as it says.
    #[must_use]
    pub fn with_drawing(&self, drawing: DesignReplacement) -> Self {
        Self {
            instead: Some(Arc::new(drawing)),
            is_of_caller: false,
            ..self.clone()
        }
    }

    /// The same canvases with a caller's design on them, and no other scenes. Their revisions stay the same: a person enables
    /// a canvas with all that is drawn on it.
    #[must_use]
    pub fn with_design_of_caller(&self, design: DesignReplacement) -> Self {
        Self {
            is_of_caller: true,
            ..self.with_drawing(design)
        }
    }

    /// Lets `arm` draw the scenes of the arm that its file says it is like, if it says so.
    ///
    /// # Errors
    /// As [`SceneLibrary::arm`], and where the two have not as many joints.
    pub fn let_stand_in(&mut self, arm: &ArmModel) -> Result<(), SceneError> {
        let Some(like) = arm.file.like.clone() else {
            return Ok(());
        };
        let other = self.arm(&like)?;
        if other.dof() != arm.dof() {
            return Err(ArmError::Wrong {
                arm: arm.file.name.clone(),
                fault: ArmFault::StandIn {
                    like,
                    joints: other.dof(),
                    own_joints: arm.dof(),
                },
            }
            .into());
        }
        self.stand_ins.push((like, arm.file.name.clone()));
        Ok(())
    }

    /// The arm that carries out what a scene says of `arm`.
    fn acting<'a>(&'a self, arm: &'a str) -> &'a str {
        let mut acting = self.stand_ins.iter();
        acting
            .find(|(like, _)| like == arm)
            .map_or(arm, |(_, stand_in)| stand_in)
    }

    /// The folder that comes before the scenes in the binary, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Every scene's name, in order.
    #[must_use]
    pub fn scenes(&self) -> Vec<String> {
        self.names("")
    }

    /// Every scene's name that is for one of these arms, in order. Files that cannot be read are
    /// kept: a call for one of them says what is wrong with it.
    #[must_use]
    pub fn scenes_for(&self, arms: &[&str]) -> Vec<String> {
        let is_for = |name: &String| {
            let arm = self.head_of(name).arm;
            arm.is_none_or(|arm| arms.contains(&self.acting(&arm)))
        };
        self.scenes().into_iter().filter(is_for).collect()
    }

    /// The names of those of the scenes for these arms whose designs come with the call, in order.
    #[must_use]
    pub fn canvases_for(&self, arms: &[&str]) -> Vec<String> {
        let scenes = self.scenes_for(arms).into_iter();
        scenes.filter(|name| self.head_of(name).is_canvas).collect()
    }

    /// Returns what a scene's file says of itself. A file that has not changed is not read again.
    fn head_of(&self, scene: &str) -> SceneHead {
        let stamp = self.stamp(&format!("{scene}.toml"));
        let seen = || self.heads_seen.locked();
        let known = seen().get(scene).cloned();
        if let Some((_, head)) = known.filter(|(then, _)| *then == stamp) {
            return head;
        }
        let head = self.read_head_of(scene).unwrap_or_default();
        seen().insert(scene.to_owned(), (stamp, head.clone()));
        head
    }

    fn stamp(&self, place: &str) -> FileStamp {
        let file = std::fs::metadata(self.folder.as_ref()?.join(place)).ok()?;
        Some((file.modified().ok()?, file.len()))
    }

    fn read_head_of(&self, scene: &str) -> Option<SceneHead> {
        let text = String::from_utf8(self.bytes(&format!("{scene}.toml")).ok()??).ok()?;
        let may_be_canvas = text.contains("from_caller");
        if let Some(arm) = plain_arm(&text).filter(|_| !may_be_canvas) {
            return Some(SceneHead {
                arm: Some(arm.to_owned()),
                is_canvas: false,
            });
        }
        let table: toml::Table = toml::from_str(&text).ok()?;
        let arm = table.get("arm").and_then(toml::Value::as_str);
        let design = table.get("design");
        let kinds = design.and_then(|design| design.get("from_caller")?.as_array());
        Some(SceneHead {
            arm: arm.map(str::to_owned),
            is_canvas: kinds.is_some_and(|kinds| !kinds.is_empty()),
        })
    }

    /// Every overlay's name, in order.
    #[must_use]
    pub fn overlays(&self) -> Vec<String> {
        self.names("overlays/")
    }

    /// Every arm's name, in order.
    #[must_use]
    pub fn arms(&self) -> Vec<String> {
        self.names("arms/")
    }

    /// A scene, with an overlay laid over it where one is named.
    ///
    /// # Errors
    /// Names that are not known, files that cannot be read, everything wrong with a file.
    pub fn scene(&self, name: &str, overlay: Option<&str>) -> Result<Arc<Scene>, SceneError> {
        let text = self.text("scene", "", name)?;
        self.build(&format!("{name}.toml"), Some(name), &text, overlay)
    }

    /// Builds a scene from a text that is in no file yet, with this library's arms and designs.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn scene_from_text(&self, name: &str, text: &str) -> Result<Arc<Scene>, SceneError> {
        self.build(&format!("{name}.toml"), Some(name), text, None)
    }

    /// Returns what an overlay says of itself.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn overlay_about(&self, name: &str) -> Result<String, SceneError> {
        Ok(self.overlay(name)?.1.about)
    }

    /// A scene from a file anywhere; its designs are looked for beside it first.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn scene_file(&self, path: &Path, overlay: Option<&str>) -> Result<Arc<Scene>, SceneError> {
        let file = path.display().to_string();
        let text = utf8(&file, read_file(path)?)?;
        let beside = path.parent();
        let beside = beside.filter(|folder| !folder.as_os_str().is_empty());
        let library = Self {
            folder: Some(beside.unwrap_or(Path::new(".")).to_owned()),
            stand_ins: self.stand_ins.clone(),
            instead: self.instead.clone(),
            is_of_caller: self.is_of_caller,
            ..Self::default()
        };
        let name = path.file_stem().and_then(|stem| stem.to_str());
        library.build(&file, name, &text, overlay)
    }

    /// An arm.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn arm(&self, name: &str) -> Result<Arc<ArmModel>, SceneError> {
        let text = self.text("arm", "arms/", name)?;
        let file: ArmFile = strict::read(&format!("arms/{name}.toml"), &text)?;
        Ok(Arc::new(ArmModel::new(file)?))
    }

    /// Returns the text of a library file by its path in the folder, such as `arms/so101.toml`; `None` if it does not
    /// exist.
    ///
    /// # Errors
    /// It cannot be read, or is not text.
    pub fn source(&self, place: &str) -> Result<Option<String>, SceneError> {
        let bytes = self.bytes(place)?;
        bytes.map(|bytes| utf8(place, bytes)).transpose()
    }

    fn build(
        &self,
        file: &str,
        name: Option<&str>,
        text: &str,
        overlay: Option<&str>,
    ) -> Result<Arc<Scene>, SceneError> {
        let mut hash = blake3::Hasher::new();
        hash_part(&mut hash, text.as_bytes());
        let mut scene = self.overlaid(file, text, overlay, &mut hash)?;
        let mut setting = hash.clone();
        let canvas = self.canvas(file, &scene, name.zip(overlay))?;
        if let Some(drawing) = &self.instead {
            drawing.apply_to(&mut scene.design);
            // What a caller draws on a canvas is no part of what a person enables.
            if canvas.is_none() {
                hash_part(&mut hash, &drawing.hashed());
            }
        }
        if let Some(name) = name.filter(|name| *name != scene.name) {
            let why = format!(
                "name is `{}`; it must be `{name}`, as the file is called",
                scene.name
            );
            return Err(FileError::single(file, why).into());
        }
        let arm = self.arm(self.acting(&scene.arm))?;
        let arm_said = serde_json::to_vec(&arm.file).unwrap_or_default();
        hash_part(&mut hash, &arm_said);
        hash_part(&mut setting, &arm_said);
        let mut of_caller = blake3::Hasher::new();
        let into = match canvas {
            Some(_) => &mut of_caller,
            None => &mut hash,
        };
        let mut design = self.design(file, &mut scene, into)?;
        if design.is_a_dot() && scene.design.size_mm.take().is_some() {
            design.notes.push(DOT_NOTE.to_owned());
        }
        let revision = Revision(*hash.finalize().as_bytes());
        let parts = SceneParts {
            arm,
            design,
            overlay: overlay.map(str::to_owned),
            canvas,
            instead: self.instead.clone(),
            size_from: self.size_from(&scene.design),
            revision,
            setting: Revision(*setting.finalize().as_bytes()),
        };
        let built = build_scene::scene(&scene, parts);
        let built = built.map_err(|wrong| wrong_file(file, wrong))?;
        if let Some(Err(bound)) = built.canvas.as_ref().map(|canvas| canvas.check(&built)) {
            let file = file.to_owned();
            return Err(SceneError::Canvas { file, bound });
        }
        Ok(Arc::new(built))
    }

    /// The canvas that a scene is, with the caller's design on it. It is none for an operator's drawing, which is enabled
    /// on its own.
    fn canvas(
        &self,
        file: &str,
        scene: &SceneFile,
        overlaid: Option<(&str, &str)>,
    ) -> Result<Option<Canvas>, SceneError> {
        let canvas = Canvas::of(scene).map_err(|problems| FileError {
            file: file.to_owned(),
            problems,
        })?;
        match (canvas, &self.instead) {
            (None, Some(_)) if self.is_of_caller => {
                let overlay = overlaid.filter(|(name, _)| self.head_of(name).is_canvas);
                let what = match overlay {
                    Some((_, overlay)) => format!(
                        "overlay `{overlay}` has a design of its own, which takes the place of the caller's: leave the overlay out"
                    ),
                    None => "is no canvas: [design] has no `from_caller`".to_owned(),
                };
                Err(FileError::single(file, &what).into())
            }
            (Some(canvas), Some(drawing)) if self.is_of_caller => Ok(Some(Canvas {
                design_hash: Some(*blake3::hash(&drawing.hashed()).as_bytes()),
                ..canvas
            })),
            (_, Some(_)) => Ok(None),
            (canvas, None) => Ok(canvas),
        }
    }

    /// The place of the drawing that comes instead of scenes' own.
    fn placement(&self) -> Option<&DesignPlacement> {
        self.instead.as_ref().map(|drawing| &drawing.placement)
    }

    fn size_from(&self, file: &DesignFile) -> SizeSource {
        match (self.placement(), file.size_mm) {
            (Some(placement), _) if placement.fits => SizeSource::Fitted,
            (Some(placement), _) if placement.size_mm.is_some() => SizeSource::Asked,
            (_, Some(_)) => SizeSource::Scene,
            (_, None) => SizeSource::File,
        }
    }

    fn overlaid(
        &self,
        file: &str,
        text: &str,
        overlay: Option<&str>,
        hash: &mut blake3::Hasher,
    ) -> Result<SceneFile, SceneError> {
        let scene: SceneFile = strict::read(file, text)?;
        let Some(name) = overlay else {
            return Ok(scene);
        };
        let (text, over) = self.overlay(name)?;
        hash_part(hash, text.as_bytes());
        Ok(over.apply_to(scene))
    }

    fn overlay(&self, name: &str) -> Result<(String, OverlayFile), SceneError> {
        let text = self.text("overlay", "overlays/", name)?;
        let read = strict::read(&format!("overlays/{name}.toml"), &text)?;
        Ok((text, read))
    }

    fn design(
        &self,
        scene: &str,
        of: &mut SceneFile,
        hash: &mut blake3::Hasher,
    ) -> Result<Design, SceneError> {
        let sheet_mm = of.sheet.size_mm.map(Finite::get);
        let (file, pens) = (&mut of.design, &of.pens);
        let wrap = |name: &str| {
            let file = format!("{scene}: design {name}");
            move |source| SceneError::Design { file, source }
        };
        let wrong = |what: String| FileError::single(scene, what);
        area_fill::check(file).map_err(|fault| wrong(fault.to_string()))?;
        match (&file.file, &file.text, &file.polylines) {
            (Some(name), None, None) => {
                let name = name.clone();
                self.file_design(scene, &name, file, pens, sheet_mm, hash)
            }
            (None, Some(text), None) => {
                let height_mm = file.letter_height_mm.map_or(LETTER_HEIGHT_MM, |h| h.get());
                let design = design::letters(text, height_mm).map_err(wrap("text"))?;
                self.fit(scene, file, &design, sheet_mm)?;
                Ok(design)
            }
            (None, None, Some(paths)) => {
                let paths: Vec<Vec<[f64; 2]>> = paths
                    .iter()
                    .map(|path| path.iter().map(|point| point.map(|v| v.get())).collect())
                    .collect();
                design::polylines(&paths).map_err(wrap("polylines"))
            }
            (None, None, None) if !file.from_caller.is_empty() => Ok(Design::default()),
            _ => {
                let one =
                    "[design] needs exactly one of `file`, `text`, `polylines` and `from_caller`";
                Err(wrong(one.to_owned()).into())
            }
        }
    }

    fn file_design(
        &self,
        scene: &str,
        name: &str,
        file: &mut DesignFile,
        pens: &[PenFile],
        sheet_mm: [f64; 2],
        hash: &mut blake3::Hasher,
    ) -> Result<Design, SceneError> {
        let wrap = |source| SceneError::Design {
            file: format!("{scene}: design {name}"),
            source,
        };
        let caps = DesignCaps::default();
        let files = self.design_files(scene, name)?;
        hash_files(hash, &files);
        let parts = files.iter().map(|(n, b)| (n.as_str(), b.as_slice()));
        let parts: Vec<(&str, &[u8])> = parts.collect();
        let options = ReadOptions {
            skip_images: file.skip_images,
            ..ReadOptions::default()
        };
        let mut plain = design::load_set(&parts, &caps, options).map_err(wrap)?;
        plain.notes.extend(set_note(&files));
        // A size on paper is its author's will; the scene's is that of its own design.
        let is_unasked = self
            .placement()
            .is_some_and(|placement| !placement.is_sized());
        if plain.states_size && is_unasked {
            file.size_mm = None;
        }
        self.fit(scene, file, &plain, sheet_mm)?;
        let fill = area_fill::fill_of(file, pens, plain.page_mm)
            .map_err(|fault| FileError::single(scene, fault.to_string()))?;
        match parts.as_slice() {
            [(_, bytes)] if fill != AreaFill::Outline => {
                let options = ReadOptions { fill, ..options };
                design::load_with(name, bytes, &caps, options).map_err(wrap)
            }
            _ => Ok(plain),
        }
    }

    /// Makes a drawing as large as its sheet holds, where that is asked for.
    fn fit(
        &self,
        scene: &str,
        file: &mut DesignFile,
        design: &Design,
        sheet_mm: [f64; 2],
    ) -> Result<(), SceneError> {
        if !self.placement().is_some_and(|placement| placement.fits) {
            return Ok(());
        }
        let size_mm = fitting_size_mm(file, design, sheet_mm).and_then(|mm| Finite::new(mm).ok());
        let nowhere = || {
            let [width, height] = sheet_mm;
            FileError::single(
                scene,
                format!(
                    "design: no size of it lies on the sheet of {width} by {height} mm there: move it by --at, or leave --at out"
                ),
            )
        };
        file.size_mm = Some(size_mm.ok_or_else(nowhere)?);
        Ok(())
    }

    /// The file of that name, or all of the set that it belongs to.
    fn design_files(&self, scene: &str, name: &str) -> Result<Vec<(String, Vec<u8>)>, SceneError> {
        if let Some(DesignSource::Files(files)) = self.instead.as_deref().map(|of| &of.source) {
            return Ok(files.clone());
        }
        if !is_plain(name) {
            let why = format!("design.file `{name}` must be a file name without folders");
            return Err(FileError::single(scene, why).into());
        }
        for folder in ["", "designs/"] {
            if let Some(bytes) = self.bytes(&format!("{folder}{name}"))? {
                return self.set_in(folder, name, bytes);
            }
        }
        let known = self.files("designs/");
        Err(unknown("design file", name, known.into_iter().collect()))
    }

    fn set_in(
        &self,
        folder: &str,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<Vec<(String, Vec<u8>)>, SceneError> {
        let mut files = vec![(name.to_owned(), bytes)];
        let Some(set) = design::set_of(name) else {
            return Ok(files);
        };
        let of_set = |other: &String| other != name && design::set_of(other) == Some(set);
        for other in self.files(folder).into_iter().filter(of_set).take(SET_MAX) {
            if let Some(bytes) = self.bytes(&format!("{folder}{other}"))? {
                files.push((other, bytes));
            }
        }
        files.sort();
        Ok(files)
    }

    fn text(&self, what: &'static str, folder: &str, name: &str) -> Result<String, SceneError> {
        let unknown = || unknown(what, name, self.names(folder));
        if !is_plain(name) {
            return Err(unknown());
        }
        let file = format!("{folder}{name}.toml");
        utf8(&file, self.bytes(&file)?.ok_or_else(unknown)?)
    }

    fn bytes(&self, place: &str) -> Result<Option<Vec<u8>>, SceneError> {
        if let Some(folder) = &self.folder {
            let path = folder.join(place);
            if path.is_file() {
                return read_within(folder, &path).map(Some);
            }
        }
        Ok(embedded::find(place).map(|file| file.bytes.to_vec()))
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let stem = |file: String| file.strip_suffix(".toml").map(str::to_owned);
        let names = self.files(folder).into_iter().filter_map(stem);
        names.filter(|name| is_plain(name)).collect()
    }

    fn files(&self, folder: &str) -> BTreeSet<String> {
        let inner = |file: &EmbeddedFile| {
            let rest = file.place.strip_prefix(folder)?;
            (!rest.contains('/')).then(|| rest.to_owned())
        };
        let mut files: BTreeSet<String> = embedded::FILES.iter().filter_map(inner).collect();
        let own = self.folder.iter();
        let own = own.flat_map(|own| std::fs::read_dir(own.join(folder)));
        for entry in own.flatten().flatten() {
            if entry.path().is_file() {
                files.insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
        files
    }
}

/// The arm that a scene's text names, where it does so in a plain line before its first table: this is asked of every scene
/// for every list of tools, and reading all of each takes a hundred times as long. `None` says nothing.
fn plain_arm(text: &str) -> Option<&str> {
    if text.contains("\"\"\"") || text.contains("'''") {
        return None;
    }
    let mut head = text
        .lines()
        .take_while(|line| !line.trim_start().starts_with('['));
    let value = head.find_map(|line| {
        let rest = line.trim_start().strip_prefix("arm")?;
        rest.trim_start().strip_prefix('=')
    })?;
    let (name, _) = value.trim_start().strip_prefix('"')?.split_once('"')?;
    (!name.contains('\\')).then_some(name)
}

fn wrong_file(file: &str, wrong: SceneFileError) -> SceneError {
    let file = file.to_owned();
    match wrong {
        SceneFileError::Values(problems) => FileError { file, problems }.into(),
        SceneFileError::Outside(outside) => SceneError::Outside { file, outside },
    }
}

/// Says why a dot is as small as it is.
const DOT_NOTE: &str = "the drawing is one dot, which has no size: it is not made larger";

/// Says which files make up the drawing, where there are several.
fn set_note(files: &[(String, Vec<u8>)]) -> Option<String> {
    let count = files.len();
    if count < 2 {
        return None;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    Some(format!("{count} files are one drawing: {names}"))
}

/// A set's names say which pen draws what; a single file's bytes say it all.
fn hash_files(hash: &mut blake3::Hasher, files: &[(String, Vec<u8>)]) {
    for (name, bytes) in files {
        if design::set_of(name).is_some() {
            hash_part(hash, name.as_bytes());
        }
        hash_part(hash, bytes);
    }
}

const LETTER_HEIGHT_MM: f64 = 10.0;

fn is_plain(name: &str) -> bool {
    let is_wrong = |c: char| matches!(c, '/' | '\\') || c.is_control();
    !name.is_empty() && !name.starts_with('.') && !name.contains(is_wrong)
}

/// A link that leads out of the folder would make any file of this machine a scene or a design.
fn read_within(folder: &Path, path: &Path) -> Result<Vec<u8>, SceneError> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let leads_out = match (real(folder), real(path)) {
        (Some(folder), Some(path)) => !path.starts_with(folder),
        _ => true,
    };
    if leads_out {
        return Err(SceneError::Missing {
            file: path.display().to_string(),
            why: "it is a link that leads out of the folder of scenes; put a copy there".to_owned(),
        });
    }
    read_file(path)
}

fn read_file(path: &Path) -> Result<Vec<u8>, SceneError> {
    let missing = |why: String| SceneError::Missing {
        file: path.display().to_string(),
        why,
    };
    let facts = std::fs::metadata(path).map_err(|error| missing(error.to_string()))?;
    let size = facts.len();
    if size > FILE_BYTES_MAX {
        return Err(missing(format!(
            "it has {size} bytes; at most {FILE_BYTES_MAX} are read"
        )));
    }
    std::fs::read(path).map_err(|error| missing(error.to_string()))
}

fn hash_part(hash: &mut blake3::Hasher, part: &[u8]) {
    hash.update(&(part.len() as u64).to_le_bytes());
    hash.update(part);
}

fn unknown(what: &'static str, name: &str, mut valid: Vec<String>) -> SceneError {
    valid.sort_by_key(|known| strsim::damerau_levenshtein(known, name));
    let name = name.to_owned();
    SceneError::Unknown { what, name, valid }
}

fn utf8(file: &str, bytes: Vec<u8>) -> Result<String, SceneError> {
    String::from_utf8(bytes).map_err(|_| FileError::single(file, "is not UTF-8 text").into())
}

/// Lists the first names, and says how many more there are.
fn nearest_words(valid: &[String]) -> String {
    let shown = valid.iter().take(NEAREST_MAX).map(String::as_str);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match valid.len().saturating_sub(NEAREST_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::{SceneLibrary, plain_arm};

    #[test]
    fn a_file_whose_name_a_terminal_would_obey_is_no_scene() {
        let folder = tempfile::tempdir().unwrap();
        let text = include_str!("../../scenes/default.toml");
        for name in ["fine", "\u{1b}[2J", "two\nlines"] {
            std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        }
        let library = SceneLibrary::new(Some(folder.path().to_owned()));
        let names = library.scenes();
        assert!(names.contains(&"fine".to_owned()), "{names:?}");
        assert!(!names.concat().contains(char::is_control), "{names:?}");
        assert!(library.scene("two\nlines", None).is_err());
    }

    #[test]
    fn names_that_are_not_listed_are_counted() {
        let valid: Vec<String> = (1..=15).map(|number| format!("scene{number}")).collect();
        assert!(super::nearest_words(&valid).ends_with(", scene12 and 3 more"));
        let few = valid.iter().take(12).cloned().collect::<Vec<_>>();
        assert!(super::nearest_words(&few).ends_with(", scene12"));
    }

    #[test]
    fn a_revision_covers_play_sag_and_correction() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("arms")).unwrap();
        let (arm, scene) = (
            include_str!("../../scenes/arms/so101.toml"),
            include_str!("../../scenes/default.toml"),
        );
        let revision = |known: &str, corrected: &str| {
            let sheet = "size_mm = [100.0, 100.0]";
            let corrected = scene.replace(sheet, &format!("{sheet}\n{corrected}"));
            std::fs::write(folder.path().join("default.toml"), corrected).unwrap();
            let known = format!("{arm}\n{known}");
            std::fs::write(folder.path().join("arms/so101.toml"), known).unwrap();
            let library = SceneLibrary::new(Some(folder.path().to_owned()));
            library.scene("default", None).unwrap().revision
        };
        let known = |play: f64, sag: f64| {
            format!(
                "[compensation]\nplay_deg = [{play:?}, 0, 0, 0, 0]\nsag_deg_per_n_m = [0, {sag:?}, 0, 0, 0]"
            )
        };
        let corrected = "correction = { x_mm = [0, 1, 0, 0, 0, 0], y_mm = [0, 0, 0, 0, 0, 0] }";
        let all = [
            revision("", ""),
            revision(&known(1.0, 0.1), ""),
            revision(&known(1.1, 0.1), ""),
            revision(&known(1.0, 0.2), ""),
            revision("", corrected),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all.iter().take(index).any(|other| other == one), "{index}");
        }
    }

    #[test]
    fn an_arm_is_found_in_a_plain_line_and_nowhere_else() {
        let named = Some("so101");
        for (text, arm) in [
            ("name = \"a\"\narm = \"so101\" # that one\n[x]\n", named),
            ("  arm=\"so101\"\n", named),
            ("arms = \"x\"\narm = \"so101\"\n", named),
            ("[x]\narm = \"so101\"\n", None),
            (
                "about = \"\"\"\narm = \"so101\"\n\"\"\"\narm = \"b\"\n",
                None,
            ),
            ("arm = 'so101'\n", None),
            ("arm = \"so\\u0031\"\n", None),
            ("# arm = \"so101\"\n", None),
        ] {
            assert_eq!(plain_arm(text), arm, "{text}");
        }
    }
}
