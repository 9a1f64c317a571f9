//! `scene`: list, check, preview.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;

use super::{Exit, NodeArgs, SceneCommand, open, show};
use crate::gate;
use crate::plan::{self, Patient};
use crate::scene::{Library, Scene, SceneError, SceneFile};
use crate::tools;

pub(super) fn run(args: &NodeArgs, what: SceneCommand) -> anyhow::Result<Exit> {
    let library = open::library(args, &open::file(args)?)?;
    match what {
        SceneCommand::List => list(&library),
        SceneCommand::Check { scene, meta } => check(&library, &scene, meta.as_deref()),
        SceneCommand::Preview { scene, meta, out } => {
            preview(&library, &scene, meta.as_deref(), &out)
        }
        SceneCommand::Schema => {
            show::line(&serde_json::to_string_pretty(&schemars::schema_for!(
                SceneFile
            ))?);
            Ok(Exit::Done)
        }
    }
}

fn list(library: &Library) -> anyhow::Result<Exit> {
    for name in library.scenes() {
        match library.scene(&name, None) {
            Ok(scene) => show::line(&format!(
                "{name:<16}{:<12}{}",
                scene.arm.file.name, scene.about
            )),
            Err(error) => show::line(&format!("{name:<16}{error}")),
        }
    }
    Ok(Exit::Done)
}

fn find(library: &Library, scene: &str, overlay: Option<&str>) -> Result<Arc<Scene>, SceneError> {
    let path = Path::new(scene);
    if path.is_file() || scene.contains('/') || scene.ends_with(".toml") {
        library.scene_file(path, overlay)
    } else {
        library.scene(scene, overlay)
    }
}

fn check(library: &Library, name: &str, overlay: Option<&str>) -> anyhow::Result<Exit> {
    let scene = find(library, name, overlay)?;
    let plan = plan::draw(&scene, &scene.rest_rad, &Patient)?;
    gate::preview(&scene, &plan.trajectory)?;
    let report = &plan.report;
    show::line(&format!(
        "{}: good; {} strokes, {:.0} mm of line, {:.1} s from rest; revision {}, plan {}",
        scene.title(),
        report.stroke_count,
        report.pen_down_mm,
        report.duration_s,
        scene.revision,
        plan.hash
    ));
    Ok(Exit::Done)
}

fn preview(
    library: &Library,
    name: &str,
    overlay: Option<&str>,
    out: &Path,
) -> anyhow::Result<Exit> {
    let scene = find(library, name, overlay)?;
    let plan = plan::draw(&scene, &scene.rest_rad, &Patient)?;
    let picture = tools::plan_picture(&scene, &plan).context("there is no picture of this plan")?;
    std::fs::create_dir_all(out)
        .with_context(|| format!("cannot make the folder {}", out.display()))?;
    let path = out.join("plan.png");
    std::fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))?;
    show::line(&format!("{}", path.display()));
    match gate::preview(&scene, &plan.trajectory) {
        Ok(()) => Ok(Exit::Done),
        Err(refused) => {
            show::note(&format!("it would be {refused}"));
            Ok(Exit::Refused)
        }
    }
}
