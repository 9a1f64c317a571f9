//! Loads scenes by name: from a folder first, then from the files in the binary.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::area_fill;
use super::arm_variant;
use super::build_scene::SceneFileError;
use super::canvas::CanvasBoundError;
use super::copies::Copies;
use super::design_overflow::DesignOverflow;
use super::design_part::DesignPart;
use super::embedded::{self, EmbeddedFile};
use super::file::{DesignFile, PenFile, SceneFile};
use super::mesh_sheet::MeshCache;
use super::picture_design::PictureMemory;
use super::placement::{DesignPlacement, PlacedPart, edge_margin_mm, fitting_size_mm};
use super::replacement::{DesignReplacement, DesignSource};
use super::shared_scene::PART;
use super::{Scene, SceneFault, SizeSource, foot_frame, text_layout};
use arm::{ArmError, ArmFault, ArmFile, ArmModel};
use base::lock::MutexExt;
use base::nearest;
use base::units::Finite;
use config::toml::{self as strict, FileError};
use design::{self, AreaFill, ChoiceWords, Design, DesignCaps, DesignError, ReadOptions};
use mesh::MeshError;

mod build_parts;
mod read_files;
mod revision_hash;

use build_parts::shared_by;

use read_files::{read_file, read_within};
pub(super) use revision_hash::hash_part;
use revision_hash::{hash_files, hash_strokes};

/// Loads scenes from a folder and from the files in the binary.
#[derive(Clone, Debug, Default)]
pub struct SceneLibrary {
    folder: Option<PathBuf>,
    /// Pairs of an arm and the arm that draws its scenes in its place.
    stand_ins: Vec<(String, String)>,
    replacement: Option<Arc<DesignReplacement>>,
    /// True if the replacement comes from a caller, who may draw only on canvases.
    pub(super) is_of_caller: bool,
    /// Cached heads of scene files, with the stamps of the files they were read from: every call
    /// lists the scenes.
    head_cache: Arc<Mutex<HashMap<String, (FileStamp, SceneHead)>>>,
    pub(super) pictures: PictureMemory,
    pub(super) meshes: MeshCache,
}

/// A file's date and length; `None` for one of the binary's.
type FileStamp = Option<(SystemTime, u64)>;

/// Values of a scene file that every list of scenes needs.
#[derive(Clone, Debug, Default)]
struct SceneHead {
    /// The arm that it is for.
    arm: Option<String>,
    /// The arms that share it, name and model; empty for any other scene.
    shared_by: Vec<[String; 2]>,
    /// Sides of the sheet of a canvas; `None` for any other scene.
    canvas_mm: Option<[f64; 2]>,
}

/// A file larger than this is not read.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Largest number of other files in a set.
const SET_MAX: usize = 100;

/// Name of the scene that is every arm's default where it is for that arm.
pub const DEFAULT_SCENE: &str = "default";

/// Folder of the arms.
const ARMS: &str = "arms/";

/// Largest number of arms that are each a variant of the next.
const VARIANTS_MAX: u32 = 4;

/// Number of names that an error lists; it counts the others.
const LISTED_MAX: usize = 12;

/// Reason that a scene cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SceneError {
    /// No scene, overlay or arm of that name.
    #[error("there is no {what} `{name}`. Valid: {}", list_of(valid))]
    Unknown {
        /// "scene", "overlay" or "arm".
        what: &'static str,
        /// The name that was asked for.
        name: String,
        /// The known names, the most similar first.
        valid: Vec<String>,
    },
    /// Several arms share the scene where one is needed.
    #[error(
        "scene `{scene}` is shared by the arms {}; this command works for one arm only. Next: name one arm's part, such as `{scene}:{}`",
        arms.join(", "),
        arms.first().map_or("ARM", String::as_str)
    )]
    SeveralArms {
        /// The scene.
        scene: String,
        /// The names of its arms.
        arms: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {file}: {why}")]
    Missing {
        /// The file.
        file: String,
        /// Message of the system.
        why: String,
    },
    /// The file is not a valid scene.
    #[error(transparent)]
    File(#[from] FileError),
    /// The arm's file is not a valid arm.
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
    /// The mesh is not a surface to draw on.
    #[error("{file}: {source}")]
    Mesh {
        /// The mesh's file.
        file: String,
        /// Cause.
        source: MeshError,
    },
}

impl SceneError {
    /// Lists only the scenes in `known`, which are those that the connected arms can draw.
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

/// Said where a fill is asked for in vain.
const NOTHING_FILLED: &str =
    "nothing is filled, because no coloured area is wide enough for a line";

impl SceneLibrary {
    /// Creates the library of the scenes in `folder` and in the binary; those in `folder` take
    /// precedence.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            ..Self::default()
        }
    }

    /// Returns the same scenes, each with this design instead of its own, placed as the design
    /// states.
    #[must_use]
    pub fn with_drawing(&self, drawing: DesignReplacement) -> Self {
        Self {
            replacement: Some(Arc::new(drawing)),
            is_of_caller: false,
            ..self.clone()
        }
    }

    /// Returns the same canvases with a caller's design on them, and no other scenes. Their
    /// revisions do not change: a person who enables a canvas enables whatever is drawn on it.
    #[must_use]
    pub fn with_design_of_caller(&self, design: DesignReplacement) -> Self {
        Self {
            is_of_caller: true,
            ..self.with_drawing(design)
        }
    }

    /// Lets `arm` draw the scenes of the arm named by `like` in its file, if there is one.
    ///
    /// # Errors
    /// As [`SceneLibrary::arm`], and two arms with different numbers of joints.
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

    /// Returns the arm that draws the scenes of `arm`: its stand-in, or itself.
    fn stand_in_for<'a>(&'a self, arm: &'a str) -> &'a str {
        let mut stand_ins = self.stand_ins.iter();
        stand_ins
            .find(|(like, _)| like == arm)
            .map_or(arm, |(_, stand_in)| stand_in)
    }

    /// Returns the folder whose scenes take precedence over those in the binary, if there is one.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the names of all scenes of one arm, sorted.
    #[must_use]
    pub fn scenes(&self) -> Vec<String> {
        let mut names = self.names("");
        names.retain(|name| !self.is_shared(name));
        names
    }

    /// Returns the names of the scenes that several arms share, sorted.
    #[must_use]
    pub fn shared_scenes(&self) -> Vec<String> {
        let mut names = self.names("");
        names.retain(|name| !self.head_of(name).shared_by.is_empty());
        names
    }

    /// Returns whether several arms share a scene.
    #[must_use]
    pub fn is_shared(&self, name: &str) -> bool {
        !self.head_of(name).shared_by.is_empty()
    }

    /// Returns the names of the scenes for these arms, sorted. Unreadable files are kept: a call
    /// for one of them reports what is wrong with it.
    #[must_use]
    pub fn scenes_for(&self, arms: &[&str]) -> Vec<String> {
        let is_for = |name: &String| {
            let arm = self.head_of(name).arm;
            arm.is_none_or(|arm| arms.contains(&self.stand_in_for(&arm)))
        };
        self.scenes().into_iter().filter(is_for).collect()
    }

    /// Returns the scene that a call without a scene means for these arms: `default` if it is for one of them, otherwise the
    /// first that has a design of its own.
    #[must_use]
    pub fn default_scene(&self, arms: &[&str]) -> Option<String> {
        let mut scenes = self.scenes_for(arms);
        // A file that cannot be read is for no arm.
        scenes.retain(|name| {
            let head = self.head_of(name);
            head.arm.is_some() && head.canvas_mm.is_none()
        });
        let usual = scenes.iter().find(|name| *name == DEFAULT_SCENE);
        usual.or(scenes.first()).cloned()
    }

    /// Returns the names of the canvases for these arms, sorted.
    #[must_use]
    pub fn canvases_for(&self, arms: &[&str]) -> Vec<String> {
        let scenes = self.scenes_for(arms).into_iter();
        let is_canvas = |name: &String| self.head_of(name).canvas_mm.is_some();
        scenes.filter(is_canvas).collect()
    }

    /// Returns the sides of the sheet of a canvas.
    #[must_use]
    pub fn canvas_mm(&self, canvas: &str) -> Option<[f64; 2]> {
        self.head_of(canvas).canvas_mm
    }

    /// Returns the head of a scene file. A file that has not changed is not read again.
    fn head_of(&self, scene: &str) -> SceneHead {
        let stamp = self.stamp(&format!("{scene}.toml"));
        let cache = || self.head_cache.locked();
        let cached = cache().get(scene).cloned();
        if let Some((_, head)) = cached.filter(|(cached_stamp, _)| *cached_stamp == stamp) {
            return head;
        }
        let head = self.read_head_of(scene).unwrap_or_default();
        cache().insert(scene.to_owned(), (stamp, head.clone()));
        head
    }

    fn stamp(&self, place: &str) -> FileStamp {
        let file = std::fs::metadata(self.folder.as_ref()?.join(place)).ok()?;
        Some((file.modified().ok()?, file.len()))
    }

    fn read_head_of(&self, scene: &str) -> Option<SceneHead> {
        let text = String::from_utf8(self.bytes(&format!("{scene}.toml")).ok()??).ok()?;
        let may_be_canvas = text.contains("from_caller");
        if let Some(arm) = quick_arm(&text).filter(|_| !may_be_canvas) {
            return Some(SceneHead {
                arm: Some(arm.to_owned()),
                ..SceneHead::default()
            });
        }
        let table: toml::Table = toml::from_str(&text).ok()?;
        let arm = table.get("arm").and_then(toml::Value::as_str);
        let design = table.get("design");
        let kinds = design.and_then(|design| design.get("from_caller")?.as_array());
        let is_canvas = kinds.is_some_and(|kinds| !kinds.is_empty());
        let sheet = table.get("sheet");
        let sides = sheet.and_then(|sheet| sheet.get("size_mm")?.as_array());
        let side = |index: usize| {
            let side = sides?.get(index)?;
            side.as_float()
                .or_else(|| side.as_integer().map(|mm| mm as f64))
        };
        let [width, height] = [side(0), side(1)].map(Option::unwrap_or_default);
        Some(SceneHead {
            arm: arm.map(str::to_owned),
            shared_by: shared_by(&table),
            canvas_mm: is_canvas.then_some([width, height]),
        })
    }

    /// Returns the names of all overlays, sorted.
    #[must_use]
    pub fn overlays(&self) -> Vec<String> {
        self.names("overlays/")
    }

    /// Returns the names of all arms, sorted.
    #[must_use]
    pub fn arms(&self) -> Vec<String> {
        self.names(ARMS)
    }

    /// Loads a scene, with an overlay if one is named. `two_arms:left` is the part of one arm of a shared scene.
    ///
    /// # Errors
    /// Unknown names, unreadable files, and everything wrong with a file.
    pub fn scene(&self, name: &str, overlay: Option<&str>) -> Result<Arc<Scene>, SceneError> {
        if let Some((shared, arm)) = name.split_once(PART) {
            return self.part(shared, arm, overlay);
        }
        let text = self.text("scene", "", name)?;
        self.build(&format!("{name}.toml"), Some(name), &text, overlay)
    }

    /// Builds a scene from text that is not in a file yet, with this library's arms and designs.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn scene_from_text(&self, name: &str, text: &str) -> Result<Arc<Scene>, SceneError> {
        self.build(&format!("{name}.toml"), Some(name), text, None)
    }

    /// Returns the `about` line of an overlay.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn overlay_about(&self, name: &str) -> Result<String, SceneError> {
        Ok(self.overlay(name)?.1.about)
    }

    /// Loads a scene from any file; its designs are looked for in the same folder first.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn scene_file(&self, path: &Path, overlay: Option<&str>) -> Result<Arc<Scene>, SceneError> {
        let file = path.display().to_string();
        let text = utf8(&file, read_file(path)?)?;
        let name = path.file_stem().and_then(|stem| stem.to_str());
        self.beside(path).build(&file, name, &text, overlay)
    }

    /// Returns the library with the folder of a file instead of its own.
    fn beside(&self, path: &Path) -> Self {
        let parent = path.parent();
        let parent = parent.filter(|folder| !folder.as_os_str().is_empty());
        Self {
            folder: Some(parent.unwrap_or(Path::new(".")).to_owned()),
            stand_ins: self.stand_ins.clone(),
            replacement: self.replacement.clone(),
            is_of_caller: self.is_of_caller,
            meshes: Arc::clone(&self.meshes),
            ..Self::default()
        }
    }

    /// Returns the text of a scene's or an arm's file in the frame of the arm's foot; `None` if it names its frame, or no frame of
    /// before is known for it.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn converted_file(&self, path: &Path) -> Result<Option<String>, SceneError> {
        let file = path.display().to_string();
        let (library, text) = (self.beside(path), utf8(&file, read_file(path)?)?);
        library.in_foot_frame(&file, &library.completed(text)?)
    }

    fn in_foot_frame(&self, file: &str, text: &str) -> Result<Option<String>, SceneError> {
        let table: Option<toml::Table> = toml::from_str(text).ok();
        if table.is_some_and(|table| table.contains_key("joints")) {
            return Ok(foot_frame::shipped_arm(text, &strict::read(file, text)?));
        }
        self.in_foot_frame_of(&strict::read(file, text)?, text)
    }

    /// Loads an arm.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`].
    pub fn arm(&self, name: &str) -> Result<Arc<ArmModel>, SceneError> {
        Ok(self.arm_and_age(name)?.0)
    }

    /// Loads an arm; true if its file names no frame and was read in that of before.
    fn arm_and_age(&self, name: &str) -> Result<(Arc<ArmModel>, bool), SceneError> {
        let (text, place) = (self.arm_text(name)?, arm_place(name));
        let mut file: ArmFile = strict::read(&place, &text)?;
        let converted = foot_frame::shipped_arm(&text, &file);
        if let Some(text) = &converted {
            file = strict::read(&place, text)?;
        }
        Ok((Arc::new(ArmModel::new(file)?), converted.is_some()))
    }

    /// Returns the text of an arm, completed if it is a variant of another one.
    fn arm_text(&self, name: &str) -> Result<String, SceneError> {
        let text = self.text("arm", ARMS, name)?;
        self.completed(text)
    }

    fn completed(&self, text: String) -> Result<String, SceneError> {
        self.completed_within(VARIANTS_MAX, text)
    }

    /// A variant may be one of a variant. Arms that are like each other in a ring stay incomplete, and are refused so.
    fn completed_within(&self, depth: u32, text: String) -> Result<String, SceneError> {
        let origin = arm_variant::origin(&text).zip(depth.checked_sub(1));
        let Some((origin, depth)) = origin else {
            return Ok(text);
        };
        let of_origin = self.completed_within(depth, self.text("arm", ARMS, &origin)?)?;
        Ok(arm_variant::complete(&text, &of_origin).unwrap_or(text))
    }

    /// Returns the text of a library file by its path in the folder, such as `arms/so101.toml`, in the frame of the arm's foot;
    /// `None` if it does not exist.
    ///
    /// # Errors
    /// An unreadable file, or one that is not valid.
    pub fn source(&self, place: &str) -> Result<Option<String>, SceneError> {
        let Some(bytes) = self.bytes(place)? else {
            return Ok(None);
        };
        let text = self.completed(utf8(place, bytes)?)?;
        let converted = self.in_foot_frame(place, &text)?;
        Ok(Some(converted.unwrap_or(text)))
    }

    /// Returns the copies that are asked for, if they are possible; others are refused once the design is read.
    pub(super) fn copies(&self) -> Option<Copies> {
        let replacement = self.replacement.as_ref()?;
        Copies::of(replacement).ok().flatten()
    }

    /// Returns the placement of the replacement design, if there is one.
    fn placement(&self) -> Option<&DesignPlacement> {
        self.replacement.as_ref().map(|drawing| &drawing.placement)
    }

    /// Returns the words in which messages name what else could be chosen for the design.
    const fn choice_words(&self) -> ChoiceWords {
        match (&self.replacement, self.is_of_caller) {
            (None, _) => ChoiceWords::SceneFile,
            (Some(_), true) => ChoiceWords::Call,
            (Some(_), false) => ChoiceWords::CommandLine,
        }
    }

    /// Returns the part of a design that is drawn, in all its copies.
    fn design(
        &self,
        scene: &str,
        scene_file: &mut SceneFile,
        hash: &mut blake3::Hasher,
    ) -> Result<SizedDesign, SceneError> {
        let mut sized = self.whole_design(scene, scene_file, hash)?;
        let Some(replacement) = &self.replacement else {
            return Ok(sized);
        };
        let invalid = |fault: SceneFault| FileError::single(scene, fault.to_string());
        if let Some(part) = DesignPart::of(replacement) {
            part.keep_in(&mut sized.design).map_err(invalid)?;
        }
        if let Some(copies) = Copies::of(replacement).map_err(invalid)? {
            let caps = DesignCaps::default();
            sized.design =
                copies
                    .repeated(&sized.design, &caps)
                    .map_err(|source| SceneError::Design {
                        file: scene.to_owned(),
                        source,
                    })?;
        }
        Ok(sized)
    }

    fn whole_design(
        &self,
        scene: &str,
        scene_file: &mut SceneFile,
        hash: &mut blake3::Hasher,
    ) -> Result<SizedDesign, SceneError> {
        let sheet_mm = scene_file.sheet.size_mm.map(Finite::get);
        let (file, pens) = (&mut scene_file.design, &scene_file.pens);
        let wrap = |name: &str| {
            let file = format!("{scene}: design {name}");
            move |source| SceneError::Design { file, source }
        };
        let invalid = |problem: String| FileError::single(scene, problem);
        let checked = area_fill::check(file).and_then(|()| text_layout::check(file));
        checked.map_err(|fault| invalid(fault.to_string()))?;
        let sheet = DesignSheet {
            size_mm: sheet_mm,
            margin_mm: edge_margin_mm(pens),
            placed: PlacedPart::of(self.placement()),
        };
        match (&file.file, &file.text, &file.polylines) {
            (Some(name), None, None) => {
                let name = name.clone();
                self.file_design(scene, &name, file, pens, sheet, hash)
            }
            (None, Some(text), None) => {
                let from = SizeSource::of(self.placement(), file.size_mm, true);
                let lines = text_layout::lay_out(text, file, sheet, from);
                Ok(self.sized(file, lines.map_err(wrap("text"))?, sheet))
            }
            (None, None, Some(paths)) => {
                let paths: Vec<Vec<[f64; 2]>> = paths
                    .iter()
                    .map(|path| path.iter().map(|point| point.map(|v| v.get())).collect())
                    .collect();
                let design = design::polylines(&paths).map_err(wrap("polylines"))?;
                Ok(self.sized(file, design, sheet))
            }
            (None, None, None) if !file.from_caller.is_empty() => Ok(SizedDesign::default()),
            _ => {
                let problem =
                    "`[design]` needs exactly one of `file`, `text`, `polylines` and `from_caller`";
                Err(invalid(problem.to_owned()).into())
            }
        }
    }

    fn file_design(
        &self,
        scene: &str,
        name: &str,
        file: &mut DesignFile,
        pens: &[PenFile],
        sheet: DesignSheet,
        hash: &mut blake3::Hasher,
    ) -> Result<SizedDesign, SceneError> {
        let wrap = |source| SceneError::Design {
            file: format!("{scene}: design {name}"),
            source,
        };
        let caps = DesignCaps::default();
        let files = self.design_files(scene, name)?;
        hash_files(hash, &files);
        let parts = files.iter().map(|(name, bytes)| (&**name, &**bytes));
        let parts: Vec<(&str, &[u8])> = parts.collect();
        if let Some(picture) = self.picture_design([scene, name], &parts, file, pens, sheet)? {
            return Ok(picture);
        }
        let options = ReadOptions {
            skip_images: file.skip_images,
            hide: self.replacement.as_ref().is_some_and(|new| new.hide),
            outlines_text: (self.replacement.as_ref()).is_some_and(|new| new.outlines_text),
            font: text_layout::font(file).map_err(wrap)?,
            words: self.choice_words(),
            ..ReadOptions::default()
        };
        let outline = design::load_set(&parts, &caps, options).map_err(wrap)?;
        if options.outlines_text {
            // Another font on the machine is another drawing.
            hash_strokes(hash, &outline.strokes);
        }
        let mut outline = self.sized(file, outline, sheet);
        outline.design.notes.extend(set_note(&files));
        let is_svg = area_fill::is_svg(name);
        let (hide, outlines) = (options.hide, options.outlines_text);
        let unused = [(hide, NO_AREAS_NOTE), (outlines, NO_FONTS_NOTE)];
        let unused = unused
            .into_iter()
            .filter(|(is_asked, _)| *is_asked && !is_svg);
        let notes = unused.map(|(_, note)| note.to_owned());
        outline.design.notes.extend(notes);
        let fill = area_fill::fill_of(file, pens, outline.design.page_mm)
            .map_err(|fault| FileError::single(scene, fault.to_string()))?;
        let [(_, bytes)] = parts.as_slice() else {
            return Ok(outline);
        };
        if fill == AreaFill::Outline {
            return Ok(outline);
        }
        let options = ReadOptions { fill, ..options };
        let mut filled = design::load_with(name, bytes, &caps, options).map_err(wrap)?;
        if filled.strokes.len() == outline.design.strokes.len() {
            filled.notes.push(NOTHING_FILLED.to_owned());
        }
        let design = match outline.box_mm {
            Some(box_mm) => filled.on_box(box_mm),
            None => filled,
        };
        Ok(SizedDesign { design, ..outline })
    }

    /// Puts a design in place of the scene's own on the box around its lines, and gives it a size.
    pub(super) fn sized(
        &self,
        file: &mut DesignFile,
        design: Design,
        sheet: DesignSheet,
    ) -> SizedDesign {
        let placement = self.placement();
        let from = SizeSource::of(placement, file.size_mm, design.states_lengths);
        let whole_page = placement.is_none_or(|placement| placement.fits_page);
        let box_mm = design.bounds_mm().filter(|_| !whole_page);
        let mut design = match box_mm {
            Some(box_mm) => design.on_box(box_mm),
            None => design,
        };
        let copies = self.copies();
        if from == SizeSource::Fitted {
            let all = copies.map(|copies| copies.outline(&design));
            let all = all.as_ref().unwrap_or(&design);
            let fitting_mm = |file: &_| fitting_size_mm(file, all, sheet, whole_page);
            // Where no size fits at the place, that of the middle shows what is off the sheet.
            let fitted_mm = fitting_mm(file).or_else(|| {
                fitting_mm(&DesignFile {
                    at_mm: None,
                    ..file.clone()
                })
            });
            file.size_mm = fitted_mm.and_then(|mm| Finite::new(mm).ok());
            design
                .notes
                .extend((!design.states_lengths).then(|| NO_LENGTHS_NOTE.to_owned()));
        } else if let (Some(copies), Some(one_mm)) = (copies, file.size_mm) {
            // A size is that of one copy.
            file.size_mm = Finite::new(one_mm.get() * copies.growth(design.page_mm)).ok();
        }
        SizedDesign {
            design,
            box_mm,
            from,
        }
    }

    /// Reads the file of that name, or all files of the set that it belongs to.
    fn design_files(&self, scene: &str, name: &str) -> Result<Vec<(String, Vec<u8>)>, SceneError> {
        let source = self.replacement.as_ref().map(|new| &new.source);
        if let Some(DesignSource::Files(files)) = source {
            return Ok(files.clone());
        }
        if !is_plain_name(name) {
            let why = format!("`design.file` is `{name}`; it must be a file name without folders");
            return Err(FileError::single(scene, why).into());
        }
        for folder in ["", "designs/"] {
            if let Some(bytes) = self.bytes(&format!("{folder}{name}"))? {
                return self.read_set(folder, name, bytes);
            }
        }
        let known_names = self.files("designs/").into_iter();
        Err(unknown("design file", name, known_names.collect()))
    }

    fn read_set(
        &self,
        folder: &str,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<Vec<(String, Vec<u8>)>, SceneError> {
        let mut files = vec![(name.to_owned(), bytes)];
        let Some(set) = design::set_of(name) else {
            return Ok(files);
        };
        let is_in_set = |other: &String| other != name && design::set_of(other) == Some(set);
        let others = self.files(folder).into_iter().filter(is_in_set);
        for other in others.take(SET_MAX) {
            if let Some(bytes) = self.bytes(&format!("{folder}{other}"))? {
                files.push((other, bytes));
            }
        }
        files.sort();
        Ok(files)
    }

    fn text(&self, what: &'static str, folder: &str, name: &str) -> Result<String, SceneError> {
        let unknown = || unknown(what, name, self.names(folder));
        if !is_plain_name(name) {
            return Err(unknown());
        }
        let file = format!("{folder}{name}.toml");
        utf8(&file, self.bytes(&file)?.ok_or_else(unknown)?)
    }

    fn bytes(&self, place: &str) -> Result<Option<Vec<u8>>, SceneError> {
        self.bytes_at_most(place, FILE_BYTES_MAX)
    }

    pub(super) fn bytes_at_most(
        &self,
        place: &str,
        bytes_max: u64,
    ) -> Result<Option<Vec<u8>>, SceneError> {
        if let Some(folder) = &self.folder {
            let path = folder.join(place);
            if path.is_file() {
                return read_within(folder, &path, bytes_max).map(Some);
            }
        }
        Ok(embedded::find(place).map(|file| file.bytes.to_vec()))
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let stem = |file: String| file.strip_suffix(".toml").map(str::to_owned);
        let names = self.files(folder).into_iter().filter_map(stem);
        names.filter(|name| is_plain_name(name)).collect()
    }

    pub(super) fn files(&self, folder: &str) -> BTreeSet<String> {
        let inner = |file: &EmbeddedFile| {
            let rest = file.path.strip_prefix(folder)?;
            (!rest.contains('/')).then(|| rest.to_owned())
        };
        let mut files: BTreeSet<String> = embedded::FILES.iter().filter_map(inner).collect();
        let own = self.folder.iter();
        let entries = own.flat_map(|own| std::fs::read_dir(own.join(folder)));
        for entry in entries.flatten().flatten() {
            if entry.path().is_file() {
                files.insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
        files
    }
}

fn arm_place(name: &str) -> String {
    format!("{ARMS}{name}.toml")
}

/// Returns the arm of a scene's text if it is in a plain line before the first table: every list of
/// tools needs it for every scene, and parsing the whole text takes a hundred times as long. `None`
/// means that the whole text must be parsed.
fn quick_arm(text: &str) -> Option<&str> {
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

fn scene_error(file: &str, error: SceneFileError) -> SceneError {
    let file = file.to_owned();
    match error {
        SceneFileError::Values(problems) => FileError { file, problems }.into(),
        SceneFileError::DoesNotFit(outside) => SceneError::Outside { file, outside },
    }
}

/// A design on the page that is placed, and where its size comes from.
#[derive(Default)]
pub(super) struct SizedDesign {
    pub(super) design: Design,
    /// The part of the file's page that is placed; `None` for all of it.
    pub(super) box_mm: Option<[[f64; 2]; 2]>,
    pub(super) from: SizeSource,
}

/// The sheet that a design is sized for.
#[derive(Clone, Copy)]
pub(super) struct DesignSheet {
    pub(super) size_mm: [f64; 2],
    /// Distance from its edges that a fitted design keeps.
    pub(super) margin_mm: f64,
    /// The part of the design that is placed.
    pub(super) placed: PlacedPart,
}

/// Note on a file without lengths.
const NO_LENGTHS_NOTE: &str = "the lengths in the file are in pixels or without a unit, so its drawing is scaled to fit the sheet";

/// Note on a design that cannot hide lines.
const NO_AREAS_NOTE: &str = "no hidden lines are removed: only an SVG has filled areas";

/// Note on a design that has no text in fonts.
const NO_FONTS_NOTE: &str = "no letters are outlined: only an SVG has text in fonts";

/// Note on a design that is a single dot.
const DOT_NOTE: &str = "the drawing is a single dot, which cannot be scaled";

/// Returns a note that lists the files of the drawing if there are several.
fn set_note(files: &[(String, Vec<u8>)]) -> Option<String> {
    let count = files.len();
    if count < 2 {
        return None;
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(", ");
    Some(format!("{count} files are one drawing: {names}"))
}

pub(super) fn is_plain_name(name: &str) -> bool {
    let is_forbidden = |c: char| matches!(c, '/' | '\\') || c.is_control();
    !name.is_empty() && !name.starts_with('.') && !name.contains(is_forbidden)
}

pub(super) fn unknown(what: &'static str, name: &str, mut valid: Vec<String>) -> SceneError {
    nearest::sort(name, &mut valid);
    let name = name.to_owned();
    SceneError::Unknown { what, name, valid }
}

fn utf8(file: &str, bytes: Vec<u8>) -> Result<String, SceneError> {
    String::from_utf8(bytes).map_err(|_| FileError::single(file, "is not UTF-8 text").into())
}

/// Lists the first names, and counts the others.
fn list_of(valid: &[String]) -> String {
    let listed = valid.iter().take(LISTED_MAX).map(String::as_str);
    let listed = listed.collect::<Vec<_>>().join(", ");
    match valid.len().saturating_sub(LISTED_MAX) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests;
