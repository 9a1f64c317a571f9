//! `scene`: lists, checks and previews scenes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Subcommand;

use super::new_scene::{self, NewSceneArgs};
use super::plan::PlanArgs;
use super::{ExitStatus, NodeOptions, given_options, reach, terminal_output};
use base::disk;
use config::NodeFile;
use config::toml::FileError;
use node::open;
use scene::{Scene, SceneError, SceneFile, SceneLibrary, SharedScene};

/// Describes a scene without a design of its own.
pub(super) const CANVAS: &str = "this is a canvas: its drawing comes with the call";

#[derive(Debug, Subcommand)]
pub(super) enum SceneCommand {
    /// List scenes and overlays with their descriptions
    List,
    /// Write a scene of your own, check it and paint its first drawing
    New(NewSceneArgs),
    /// Report everything that is wrong with a scene
    Check {
        /// A scene's file, or its name
        scene: String,
        /// The overlay on it
        #[arg(long)]
        meta: Option<String>,
    },
    /// Plan a scene and write a picture of the plan; nothing moves
    Preview {
        /// A scene's file, or its name
        scene: String,
        /// The overlay on it
        #[arg(long)]
        meta: Option<String>,
        /// Folder for plan.png
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
    /// Show where a scene's sheet may lie, and where it would lie better
    Reach(reach::ReachArgs),
    /// Rewrite a file without `frame` to the frame of the arm's foot; comments stay
    Convert {
        /// The file
        file: PathBuf,
    },
    /// Print the JSON Schema of scene files, for editors
    Schema,
}

pub(super) fn run(args: &NodeOptions, what: SceneCommand) -> anyhow::Result<ExitStatus> {
    match what {
        SceneCommand::List => list(&open::library(args, &open::file(args)?)?),
        SceneCommand::New(new) => new_scene::run(args, &new),
        SceneCommand::Reach(reach) => reach::run(args, &reach),
        SceneCommand::Check { scene, meta } => plan_scene(args, scene, meta, None),
        SceneCommand::Preview { scene, meta, out } => plan_scene(args, scene, meta, Some(out)),
        SceneCommand::Convert { file } => convert(&open::library(args, &open::file(args)?)?, &file),
        SceneCommand::Schema => {
            terminal_output::json(&schemars::schema_for!(SceneFile))?;
            Ok(ExitStatus::Done)
        }
    }
}

/// Returns the scene that a command names, or the node's default scene.
pub(super) fn named_or_default(
    library: &SceneLibrary,
    file: &NodeFile,
    named: Option<&str>,
) -> anyhow::Result<String> {
    let arms: Vec<&str> = file.arms.iter().map(|arm| arm.model.as_str()).collect();
    let name = named
        .map(str::to_owned)
        .or_else(|| library.default_scene(&arms));
    name.with_context(|| {
        format!(
            "{} has no default scene. Next: choose one from `steadyhand scene list`",
            arms.join(", ")
        )
    })
}

/// Rewrites a file into the frame of its arm's foot.
fn convert(library: &SceneLibrary, file: &Path) -> anyhow::Result<ExitStatus> {
    let name = file.display();
    let Some(text) = library.converted_file(file)? else {
        return terminal_output::done(&format!(
            "{name} is unchanged: it already names its frame, or its arm never had an older frame"
        ));
    };
    disk::put(file, &text).with_context(|| format!("cannot write {name}"))?;
    terminal_output::done(&format!(
        "{name} is rewritten: its places are now in the frame of the arm's foot. Next: `steadyhand scene check` for this scene"
    ))
}

/// Runs `plan` with nothing but a scene.
fn plan_scene(
    args: &NodeOptions,
    scene: String,
    meta: Option<String>,
    out: Option<PathBuf>,
) -> anyhow::Result<ExitStatus> {
    let plan_args = PlanArgs {
        scene: Some(scene),
        meta,
        out,
        ..PlanArgs::default()
    };
    super::plan::run(args, &plan_args)
}

fn list(library: &SceneLibrary) -> anyhow::Result<ExitStatus> {
    let scenes = library
        .scenes()
        .into_iter()
        .map(|name| match library.scene(&name, None) {
            Ok(scene) => [name, scene.arm.file.name.clone(), scene.about.clone()],
            Err(error) => [name, String::new(), error.to_string()],
        });
    let shared =
        library
            .shared_scenes()
            .into_iter()
            .map(|name| match library.shared(&name, None) {
                Ok(shared) => {
                    let arms = shared.parts.iter().map(|part| &*part.scene.arm.file.name);
                    let about = shared.parts.first().map(|part| part.scene.about.clone());
                    let arms = arms.collect::<Vec<_>>().join("+");
                    [name, arms, about.unwrap_or_default()]
                }
                Err(error) => [name, String::new(), error.to_string()],
            });
    let overlays = library.overlays().into_iter().map(|name| {
        let about = library.overlay_about(&name);
        let about = about.unwrap_or_else(|error| error.to_string());
        [name, "overlay".to_owned(), about]
    });
    let rows: Vec<[String; 3]> = scenes.chain(shared).chain(overlays).collect();
    let column_width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(String::len).max().unwrap_or(0) + 2
    };
    let (name_width, arm_width) = (column_width(0), column_width(1));
    let row =
        |[name, arm, about]: &[String; 3]| format!("{name:<name_width$}{arm:<arm_width$}{about}");
    terminal_output::lines(rows.iter().map(row));
    Ok(ExitStatus::Done)
}

/// Returns whether a file's name ends as drawings do.
fn is_design(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    design::ENDINGS.contains(&ending.to_lowercase().as_str())
}

pub(super) fn find(
    library: &SceneLibrary,
    scene: &str,
    overlay: Option<&str>,
) -> Result<Arc<Scene>, SceneError> {
    match file_of(scene)? {
        Some(path) => library.scene_file(path, overlay),
        None => library.scene(scene, overlay),
    }
}

/// As [`find`], for all arms that share the scene.
pub(super) fn find_shared(
    library: &SceneLibrary,
    scene: &str,
    overlay: Option<&str>,
) -> Result<SharedScene, SceneError> {
    match file_of(scene)? {
        Some(path) => library.shared_file(path, overlay),
        None => library.shared(scene, overlay),
    }
}

/// Returns the path of a scene that is named by its file, and not by its name.
fn file_of(scene: &str) -> Result<Option<&Path>, SceneError> {
    let path = Path::new(scene);
    if is_design(path) {
        let words = format!(
            "is a drawing, not a scene. Next: `steadyhand draw {0} --dry-run`",
            given_options::quoted_for_shell(scene)
        );
        return Err(SceneError::File(FileError::single(scene, words)));
    }
    let is_file = path.is_file() || scene.contains('/') || scene.ends_with(".toml");
    Ok(is_file.then_some(path))
}
