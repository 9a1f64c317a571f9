//! Builds scenes from the text of a file, and one for each arm where several share it.

use std::path::Path;
use std::sync::Arc;

use super::revision_hash::hash_part;
use super::{
    DOT_NOTE, FileError, SceneError, SceneLibrary, arm_place, read_file, scene_error, strict, utf8,
};
use crate::arm_places::{self, ArmPlace};
use crate::build_scene::{self, BuiltScene, SceneParts};
use crate::canvas::Canvas;
use crate::file::{OverlayFile, SceneFile};
use crate::shared_scene::{SharedScene, part_name};
use crate::{Revision, Scene, SceneFault, foot_frame};
use arm::ArmModel;
use mesh::MeshPatch;

/// A scene's file as it was read, before anything is built from it.
struct ReadScene<'a> {
    file: &'a str,
    name: Option<&'a str>,
    overlay: Option<&'a str>,
    scene: SceneFile,
    /// True if it names no frame and was read in that of before.
    is_of_before: bool,
    /// Hash of its text and its overlay's.
    hash: blake3::Hasher,
}

/// One of several arms: its name, the pens that it holds, and the models of all of them.
#[derive(Clone, Copy)]
struct OneOfSeveral<'a> {
    place: &'a ArmPlace,
    all: &'a [Arc<ArmModel>],
}

impl SceneLibrary {
    /// Loads a scene for all arms that share it, with an overlay if one is named. A scene of one arm is shared by that one.
    ///
    /// # Errors
    /// As [`SceneLibrary::scene`], but for the number of arms.
    pub fn shared(&self, name: &str, overlay: Option<&str>) -> Result<SharedScene, SceneError> {
        let text = self.text("scene", "", name)?;
        self.parts_of(&self.read(&format!("{name}.toml"), Some(name), &text, overlay)?)
    }

    /// Loads a scene for all arms that share it from any file, as [`SceneLibrary::scene_file`].
    ///
    /// # Errors
    /// As [`SceneLibrary::shared`].
    pub fn shared_file(
        &self,
        path: &Path,
        overlay: Option<&str>,
    ) -> Result<SharedScene, SceneError> {
        let file = path.display().to_string();
        let text = utf8(&file, read_file(path)?)?;
        let name = path.file_stem().and_then(|stem| stem.to_str());
        let library = self.beside(path);
        library.parts_of(&library.read(&file, name, &text, overlay)?)
    }

    /// Loads the part of one arm of a shared scene.
    pub(super) fn part(
        &self,
        name: &str,
        arm: &str,
        overlay: Option<&str>,
    ) -> Result<Arc<Scene>, SceneError> {
        let shared = self.shared(name, overlay)?;
        let arms = shared.arm_names().into_iter().map(str::to_owned).collect();
        let is_of = |scene: &Arc<Scene>| scene.arm_name.as_deref() == Some(arm);
        let mut parts = shared.parts.into_iter().map(|part| part.scene);
        parts.find(is_of).ok_or(SceneError::SeveralArms {
            scene: shared.name,
            arms,
        })
    }

    /// Returns the names of the scenes that several of these arms share, each given by name and model, and that need no other one.
    #[must_use]
    pub fn shared_scenes_for(&self, arms: &[[&str; 2]]) -> Vec<String> {
        let is_there =
            |[name, model]: &[String; 2]| arms.contains(&[name, self.stand_in_for(model)]);
        let mut names = self.shared_scenes();
        names.retain(|name| self.head_of(name).shared_by.iter().all(is_there));
        names
    }

    /// Returns the names of each arm's part of a scene; none where only one arm draws it.
    #[must_use]
    pub fn part_names(&self, scene: &str) -> Vec<String> {
        let shared_by = self.head_of(scene).shared_by;
        let names = shared_by.iter().map(|[arm, _]| part_name(scene, arm));
        names.collect()
    }

    pub(super) fn build(
        &self,
        file: &str,
        name: Option<&str>,
        text: &str,
        overlay: Option<&str>,
    ) -> Result<Arc<Scene>, SceneError> {
        let read = self.read(file, name, text, overlay)?;
        let arms: Vec<String> = read.scene.arms.iter().map(|arm| arm.name.clone()).collect();
        let scene = read.scene.name.clone();
        let mut parts = match arms.len() {
            0 | 1 => self.parts_of(&read)?.parts.into_iter(),
            _ => Vec::new().into_iter(),
        };
        let only = parts.next().map(|part| part.scene);
        only.ok_or(SceneError::SeveralArms { scene, arms })
    }

    fn read<'a>(
        &self,
        file: &'a str,
        name: Option<&'a str>,
        text: &str,
        overlay: Option<&'a str>,
    ) -> Result<ReadScene<'a>, SceneError> {
        let mut hash = blake3::Hasher::new();
        hash_part(&mut hash, text.as_bytes());
        let (scene, is_of_before) = self.read_scene(file, text, overlay, &mut hash)?;
        Ok(ReadScene {
            file,
            name,
            overlay,
            scene,
            is_of_before,
            hash,
        })
    }

    fn parts_of(&self, read: &ReadScene<'_>) -> Result<SharedScene, SceneError> {
        let places = arm_places::expand(&read.scene).map_err(|problems| FileError {
            file: read.file.to_owned(),
            problems,
        })?;
        if places.is_empty() {
            return Ok(SharedScene::of_one(
                self.build_one(read, read.scene.clone(), None)?.scene,
            ));
        }
        let models = places.iter().filter_map(|place| place.file.arm.as_deref());
        let arms = models.map(|model| self.arm(self.stand_in_for(model)));
        let all: Vec<Arc<ArmModel>> = arms.collect::<Result<_, _>>()?;
        let mut scenes = Vec::with_capacity(places.len());
        let mut is_pen_named = Vec::new();
        for place in &places {
            let one = OneOfSeveral { place, all: &all };
            let built = self.build_one(read, place.file.clone(), Some(one))?;
            is_pen_named = built.is_pen_named;
            scenes.push(built.scene);
        }
        Ok(SharedScene::of_several(&places, scenes, &is_pen_named))
    }

    /// Builds the scene of one arm. One that is shared has all pens and strokes of the file.
    fn build_one(
        &self,
        read: &ReadScene<'_>,
        mut scene: SceneFile,
        of_several: Option<OneOfSeveral<'_>>,
    ) -> Result<BuiltScene, SceneError> {
        let (file, name, overlay) = (read.file, read.name, read.overlay);
        let mut hash = read.hash.clone();
        let mesh = self.mesh(file, &scene, &mut hash)?;
        let mut setting_hash = hash.clone();
        let canvas = self.canvas(file, &scene, name.zip(overlay))?;
        if let Some(drawing) = &self.replacement {
            drawing.apply_to(&mut scene.design);
            drawing.lay_paper(file, &mut scene, &mut setting_hash)?;
            // A person enables a canvas whatever a caller draws on it: its hash has no design.
            if canvas.is_none() {
                hash_part(&mut hash, &drawing.bytes_to_hash());
            }
        }
        let named = scene.check_name(name);
        named.map_err(|why| FileError::single(file, why))?;
        let (arm, is_arm_of_before) = self.arm_and_age(self.stand_in_for(model_of(&scene)))?;
        if scene.frame.is_some() && scene.frame != arm.file.frame {
            let arm = arm.file.name.clone();
            return Err(FileError::single(file, SceneFault::OtherFrame { arm }.to_string()).into());
        }
        for hash in [&mut hash, &mut setting_hash] {
            hash_arms(hash, &arm, of_several);
        }
        let mut caller_hash = blake3::Hasher::new();
        let design_hash = match canvas {
            Some(_) => &mut caller_hash,
            None => &mut hash,
        };
        let sized = self.design(file, &mut scene, design_hash)?;
        let (mut design, size_from) = (sized.design, sized.from);
        if design.is_a_dot() && scene.design.size_mm.take().is_some() {
            design.notes.push(DOT_NOTE.to_owned());
        }
        let notes = notes(read, &arm, is_arm_of_before, mesh.as_deref());
        design.notes.extend(notes);
        let revision = Revision(*hash.finalize().as_bytes());
        let parts = SceneParts {
            arm,
            mesh,
            design,
            overlay: overlay.map(str::to_owned),
            canvas,
            replacement: self.replacement.clone(),
            size_from,
            words: self.choice_words(),
            held: of_several.map(|one| one.place.pens.clone()),
            revision,
            setting: Revision(*setting_hash.finalize().as_bytes()),
        };
        let built = build_scene::scene(&scene, parts).map_err(|error| scene_error(file, error))?;
        if let Some(Err(bound)) = built
            .scene
            .canvas
            .as_ref()
            .map(|canvas| canvas.check(&built.scene))
        {
            let file = file.to_owned();
            return Err(SceneError::Canvas { file, bound });
        }
        Ok(built)
    }

    /// Returns the canvas of a scene, with the hash of the caller's design. It is `None` for an
    /// operator's drawing, which is enabled by itself.
    fn canvas(
        &self,
        file: &str,
        scene: &SceneFile,
        scene_and_overlay: Option<(&str, &str)>,
    ) -> Result<Option<Canvas>, SceneError> {
        let canvas = Canvas::of(scene).map_err(|problems| FileError {
            file: file.to_owned(),
            problems,
        })?;
        match (canvas, &self.replacement) {
            (None, Some(_)) if self.is_of_caller => {
                let overlay =
                    scene_and_overlay.filter(|(name, _)| self.head_of(name).canvas_mm.is_some());
                let what = match overlay {
                    Some((_, overlay)) => format!(
                        "overlay `{overlay}` has its own design, which would replace the caller's: leave the overlay out"
                    ),
                    None => "is not a canvas: its `[design]` has no `from_caller`".to_owned(),
                };
                Err(FileError::single(file, &what).into())
            }
            (Some(canvas), Some(drawing)) if self.is_of_caller => Ok(Some(Canvas {
                design_hash: Some(*blake3::hash(&drawing.bytes_to_hash()).as_bytes()),
                ..canvas
            })),
            (_, Some(_)) => Ok(None),
            (canvas, None) => Ok(canvas),
        }
    }

    /// Reads a scene with its overlay; true if its file names no frame and was read in that of before.
    fn read_scene(
        &self,
        file: &str,
        text: &str,
        overlay: Option<&str>,
        hash: &mut blake3::Hasher,
    ) -> Result<(SceneFile, bool), SceneError> {
        let mut scene: SceneFile = strict::read(file, text)?;
        let converted = match scene.frame {
            Some(_) => None,
            None => self.in_foot_frame_of(&scene, text)?,
        };
        if let Some(text) = &converted {
            scene = strict::read(file, text)?;
        }
        let is_of_before = converted.is_some();
        let Some(name) = overlay else {
            return Ok((scene, is_of_before));
        };
        let (text, mut changes) = self.overlay(name)?;
        hash_part(hash, text.as_bytes());
        if changes.inks.is_some()
            && let Some(text) = self.in_foot_frame_of(&scene, &text)?
        {
            changes = strict::read(&format!("overlays/{name}.toml"), &text)?;
        }
        Ok((changes.apply_to(scene), is_of_before))
    }

    /// Returns a scene's or its overlay's text in the frame of the arm's foot, as [`foot_frame::scene`]; `None` where several
    /// arms share the scene.
    pub(super) fn in_foot_frame_of(
        &self,
        scene: &SceneFile,
        text: &str,
    ) -> Result<Option<String>, SceneError> {
        let Some(model) = &scene.arm else {
            return Ok(None);
        };
        let arm = self.arm(self.stand_in_for(model))?;
        Ok(foot_frame::scene(text, &arm))
    }

    pub(super) fn overlay(&self, name: &str) -> Result<(String, OverlayFile), SceneError> {
        let text = self.text("overlay", "overlays/", name)?;
        let file = strict::read(&format!("overlays/{name}.toml"), &text)?;
        Ok((text, file))
    }
}

/// Returns notes on files that were read in an older frame, and on what was mended of a mesh.
fn notes(
    read: &ReadScene<'_>,
    arm: &ArmModel,
    is_arm_of_before: bool,
    mesh: Option<&MeshPatch>,
) -> Vec<String> {
    let arm_file = arm_place(&arm.file.name);
    let of_before = [
        (read.is_of_before, read.file),
        (is_arm_of_before, &*arm_file),
    ];
    let mended = mesh.into_iter().flat_map(|mesh| mesh.lines());
    let mended = mended.map(|line| format!("mesh: {line}"));
    let moved = foot_frame::note(&arm.file, &of_before);
    moved.into_iter().chain(mended).collect()
}

#[expect(
    clippy::expect_used,
    reason = "another arm's scene must not be built in its place"
)]
fn model_of(scene: &SceneFile) -> &str {
    let model = scene.arm.as_deref();
    model.expect("each arm of a scene has a model")
}

/// Hashes the arm of a scene. One of several comes after its name and all of them, so that no two have the same revision.
fn hash_arms(hash: &mut blake3::Hasher, arm: &ArmModel, of_several: Option<OneOfSeveral<'_>>) {
    let bytes = |arm: &ArmModel| serde_json::to_vec(&arm.file).unwrap_or_default();
    if let Some(OneOfSeveral { place, all }) = of_several {
        hash_part(hash, place.name.as_bytes());
        for arm in all {
            hash_part(hash, &bytes(arm));
        }
    }
    hash_part(hash, &bytes(arm));
}

/// Returns the arms that share a scene, name and model, from its table.
pub(super) fn shared_by(table: &toml::Table) -> Vec<[String; 2]> {
    let arms = table.get("arms").and_then(toml::Value::as_array);
    let text = |arm: &toml::Value, key: &str| Some(arm.get(key)?.as_str()?.to_owned());
    let both = |arm| Some([text(arm, "name")?, text(arm, "model")?]);
    arms.into_iter().flatten().filter_map(both).collect()
}
