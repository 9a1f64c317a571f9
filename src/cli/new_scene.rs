//! `scene new`: writes a complete, commented scene from an arm, a sheet's size and a name, with the sheet in good reach.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use nalgebra::{Point3, Vector3};

use super::files::folder_of;
use super::placement_args::size_mm;
use super::questions::{ask, pick};
use super::{ExitStatus, NodeOptions, files, terminal_output};
use arm::{ArmModel, BaseFrame};
use base::disk;
use base::units::JointVector;
use base::wording::seconds;
use node::open;
use plan::{FirstSheet, SilentObserver};
use scene::{Scene, SceneLibrary, ScenePen};
use tools::DrawingPreview;

/// Fraction of the sheet's shorter side that the first drawing takes.
const FIRST_DRAWING: f64 = 0.6;

#[derive(Debug, Args)]
pub(super) struct NewSceneArgs {
    /// The file to write; its name is the scene's [default: NAME.toml, in the folder of --scenes]
    file: Option<PathBuf>,
    /// The scene's name: lower case letters, digits, _ and - [default: the file's, or mine]
    #[arg(long)]
    name: Option<String>,
    /// The arm [default: so101]
    #[arg(long)]
    arm: Option<String>,
    /// The sheet's width and height, such as 100x80mm
    #[arg(long, value_name = "WxH", value_parser = size_mm)]
    sheet: Option<[f64; 2]>,
    /// The pen's name
    #[arg(long, value_name = "NAME")]
    pen: Option<String>,
    /// Do not ask: use the default for everything that is not given
    #[arg(long)]
    yes: bool,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// Answers to the questions of a new scene.
struct SceneChoices {
    name: String,
    sheet_mm: [f64; 2],
    pen: String,
    /// The scene from which arm, pen and poses are taken.
    template: Arc<Scene>,
    /// Where its pen is from.
    pen_source: String,
}

pub(super) fn run(options: &NodeOptions, args: &NewSceneArgs) -> anyhow::Result<ExitStatus> {
    let library = open::library(options, &open::file(options)?)?;
    let choices = SceneChoices::ask(&library, args)?;
    let file = match &args.file {
        Some(file) => scene_file(file)?,
        None => {
            let folder = library.folder().unwrap_or(Path::new(""));
            folder.join(format!("{}.toml", choices.name))
        }
    };
    ensure!(
        args.force || !file.exists(),
        "{} already exists. Next: name another file, or add --force",
        file.display()
    );
    let sheet = SheetPlace::centred_on(&choices.template, choices.sheet_mm)?;
    let first = library.scene_from_text(&choices.name, &choices.text(&sheet))?;
    // A place in better reach is taken instead.
    let better = plan::reach(&first, 0, &SilentObserver)?.suggestion;
    let sheet = SheetPlace {
        origin_m: better.map_or(sheet.origin_m, |better| better.origin_m.into()),
        ..sheet
    };
    let text = choices.text(&sheet);
    let scene = library.scene_from_text(&choices.name, &text)?;
    let preview = DrawingPreview::new(&scene, &scene.rest_rad, &SilentObserver)?;
    if let Some(refusal) = preview.refusals.first() {
        bail!(
            "nothing was written: a sheet of {} by {} mm does not fit {} (try a smaller --sheet): {}",
            choices.sheet_mm[0],
            choices.sheet_mm[1],
            scene.arm.file.name,
            refusal.why
        );
    }
    if let Some(worst) = tools::worst_pose(&[&scene]) {
        bail!(
            "nothing was written, because a pose of scene `{}` is refused here: {}",
            choices.template.name,
            worst.words()
        );
    }
    save(&file, &text)?;
    terminal_output::line(&format!("{} is written", file.display()));
    let picture = file.with_extension("png");
    if let Some(png) = tools::preview_picture(&scene, &preview) {
        files::write(&picture, &png)?;
        terminal_output::line(&format!("{} shows its first drawing", picture.display()));
    }
    if let Some(plan) = &preview.plan {
        let time = seconds(plan.report.duration_s);
        terminal_output::line(&format!(
            "its plan draws the scene's name in {time}; no limit is broken"
        ));
    }
    terminal_output::done(&format!(
        "Next: correct `sheet.origin_m` and the pen's `tip_m` for your table (`steadyhand teach`, `steadyhand calibrate`), then `steadyhand --scenes {} draw FILE --scene {}`",
        folder_of(&file).display(),
        choices.name
    ))
}

/// Returns the file to write, with the extension of scene files.
fn scene_file(file: &Path) -> anyhow::Result<PathBuf> {
    match file.extension() {
        None => Ok(file.with_extension("toml")),
        Some(ending) if ending == "toml" => Ok(file.to_owned()),
        Some(_) => {
            let file = file.display();
            bail!("{file} must end in .toml")
        }
    }
}

fn save(file: &Path, text: &str) -> anyhow::Result<()> {
    let error_text = || format!("cannot write {}", file.display());
    std::fs::create_dir_all(folder_of(file)).with_context(error_text)?;
    disk::put(file, text).with_context(error_text)
}

impl SceneChoices {
    /// Takes the given options, and asks for the rest at a terminal.
    fn ask(library: &SceneLibrary, args: &NewSceneArgs) -> anyhow::Result<Self> {
        let answer = |given: Option<String>, question: &str, default: &str| match given {
            Some(given) => Ok(given),
            None if args.yes => Ok(default.to_owned()),
            None => ask(question, default),
        };
        let stem = args.file.as_ref().and_then(|file| file.file_stem());
        let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
        if let (Some(stem), Some(name)) = (&stem, &args.name)
            && stem != name
        {
            bail!(
                "a scene is named after its file, which is {stem}.toml, but --name is {name}. Next: leave --name out"
            );
        }
        let name = args.name.clone().or(stem);
        let name = answer(name, "what is the scene's name?", "mine")?;
        check_name(&name)?;
        let arm = match &args.arm {
            Some(arm) => arm.clone(),
            None if args.yes || !std::io::stdin().is_terminal() => "so101".to_owned(),
            None => pick("which arm is it for?", &arms(library))?,
        };
        let (template, pen_source) = scene_of(library, &arm)?;
        let [width, height] = template.surface.size_mm();
        let sheet_mm = match args.sheet {
            Some(sheet_mm) => sheet_mm,
            None => {
                let default = format!("{width}x{height}mm");
                let given = answer(None, "how large is the sheet, width x height?", &default)?;
                size_mm(&given).map_err(|error| anyhow!("the sheet: {error}"))?
            }
        };
        let pen = template
            .pen(0)
            .map(|pen| pen.name.clone())
            .unwrap_or_default();
        let pen = answer(args.pen.clone(), "what is the pen's name?", &pen)?;
        Ok(Self {
            name,
            sheet_mm,
            pen,
            template,
            pen_source,
        })
    }

    /// Returns the text of the scene's file.
    fn text(&self, sheet: &SheetPlace) -> String {
        let template = &self.template;
        let arm = &template.arm.file.name;
        let [width, height] = self.sheet_mm;
        let size_mm = (width.min(height) * FIRST_DRAWING).floor().max(1.0);
        let mut text = format!(
            r#"# A scene: what is there and what is allowed. docs/scene-keys.md lists every key; lengths on the sheet are
# millimetres, places in space metres in the arm's base frame.
name = {name}
about = "A sheet of {width} by {height} mm"   # one line for people and models
arm = {arm}{frame}

# Drawn by `stroke`; `steadyhand draw FILE --scene {plain}` draws another file in its place.
[design]
text = {name}          # or file = "drawing.svg", beside this file or in designs/
size_mm = {size_mm:?}          # the longer side of the page on the sheet
# at_mm = [10.0, 10.0]     # its lower left corner; left out, it lies in the middle

# Where the sheet lies. `steadyhand scene reach` shows where the arm reaches well; teach or calibrate it before a real arm draws.
[sheet]
origin_m = {origin}   # the lower left corner, as a reader sees it
x_axis = {x}
y_axis = {y}
size_mm = [{width:?}, {height:?}]
"#,
            name = quoted(&self.name),
            plain = self.name,
            arm = quoted(arm),
            frame = match template.arm.file.frame {
                Some(BaseFrame::Foot) =>
                    "\nframe = \"foot\"   # places in space are measured from the arm's foot",
                None => "",
            },
            origin = numbers(&sheet.origin_m.coords, 4),
            x = numbers(&sheet.x, 6),
            y = numbers(&sheet.y, 6),
        );
        if let Some(pen) = template.pen(0) {
            text.push_str(&self.pen_text(pen));
        }
        let angles = |q: &JointVector| format!("{:?}", q.iter().collect::<Vec<_>>());
        // Writing to a string never fails.
        let _ = write!(
            text,
            r"
# Where the arm is left, and where it waits between jobs; rad, a number a joint.
[poses]
rest_rad = {}
ready_rad = {}

# Heights over the sheet.
[heights]
lift_mm = {:?}      # of travel between strokes
press_mm = {:?}     # as deep below the surface is a yielding pen sent

# Limits of the tip; the arm's own limits hold as well.
[limits]
draw_mm_s = {:?}
travel_mm_s = {:?}
",
            angles(&template.rest_rad),
            angles(&template.ready_rad),
            template.heights.lift_mm,
            template.heights.press_mm,
            template.limits.draw_mm_s,
            template.limits.travel_mm_s,
        );
        text
    }

    fn pen_text(&self, pen: &ScenePen) -> String {
        let [r, g, b] = pen.colour;
        format!(
            r##"
# What draws: its tip and its direction in the tool mount's frame, {template}. Measure yours:
# `steadyhand calibrate touch tool`.
[[pens]]
name = {name}
tip_m = {tip}
axis = {axis}
width_mm = {width:?}
colour = "#{r:02x}{g:02x}{b:02x}"
"##,
            template = self.pen_source,
            name = quoted(&self.pen),
            tip = numbers(&pen.tip_m.coords, 6),
            axis = numbers(&pen.axis, 6),
            width = pen.width_mm,
        )
    }
}

/// Quotes a text for TOML, which for these texts equals JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn numbers(vector: &Vector3<f64>, decimals: i32) -> String {
    let step = 10_f64.powi(decimals);
    let rounded = vector.map(|value| (value * step).round() / step + 0.0);
    format!("{:?}", rounded.as_slice())
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    ensure!(
        !name.is_empty() && name.chars().all(is_allowed),
        "{name:?} cannot be a scene's name. Next: use lower-case letters, digits, _ and -"
    );
    Ok(())
}

fn arms(library: &SceneLibrary) -> Vec<String> {
    let mut arms = library.arms();
    // The usual one is shown first.
    arms.sort_by_key(|arm| arm != "so101");
    arms
}

/// Returns a scene of an arm with a flat sheet, to take its pen and poses from.
fn flat_scene_of(library: &SceneLibrary, arm: &str) -> Option<Arc<Scene>> {
    let names = library
        .default_scene(&[arm])
        .into_iter()
        .chain(library.scenes_for(&[arm]));
    let mut scenes = names.filter_map(|name| library.scene(&name, None).ok());
    scenes.find(|scene| scene.arm.file.name == arm && scene.surface.is_flat())
}

/// Returns the scene to take an arm's pen and poses from, and what the pen is: of a scene that it has, or a guess.
///
/// # Errors
/// Fails if there is no such arm, or no sheet in its reach.
fn scene_of(library: &SceneLibrary, arm: &str) -> anyhow::Result<(Arc<Scene>, String)> {
    let model = library.arm(arm)?;
    if let Some(scene) = flat_scene_of(library, arm) {
        let source = format!("as mounted in scene `{}`", scene.name);
        return Ok((scene, source));
    }
    let Some(place) = plan::first_sheet(&model) else {
        bail!(
            "{arm} cannot reach a sheet on its table with an upright pen. Next: write its scene by hand (docs/scenes.md)"
        );
    };
    let text = proposed_text(&model, &place);
    let scene = library.scene_from_text("proposed", &text);
    let scene = scene.with_context(|| format!("the first scene of {arm}"))?;
    Ok((scene, "guessed from the arm's file".to_owned()))
}

/// Returns the text of a scene at a proposed place.
fn proposed_text(arm: &ArmModel, place: &FirstSheet) -> String {
    let right = place.ahead.cross(&Vector3::z());
    let corner_m = place.centre_m - (right + place.ahead).scale(place.side_mm / 2e3);
    let frame = arm
        .file
        .frame
        .map_or("", |BaseFrame::Foot| "frame = \"foot\"\n");
    let angles = |q: &JointVector| {
        let rounded = q.iter().map(|angle| (angle * 1e4).round() / 1e4);
        format!("{:?}", rounded.collect::<Vec<_>>())
    };
    format!(
        "name = \"proposed\"\nabout = \"a sheet in reach\"\narm = {arm}\n{frame}[design]\ntext = \"a\"\nsize_mm = {design:?}\n[sheet]\norigin_m = {origin}\nx_axis = {x}\ny_axis = {y}\nsize_mm = [{side:?}, {side:?}]\n[[pens]]\nname = \"pen\"\ntip_m = {tip}\naxis = {axis}\n[poses]\nrest_rad = {rest}\nready_rad = {ready}\n",
        arm = quoted(&arm.file.name),
        design = place.side_mm / 2.0,
        origin = numbers(&corner_m.coords, 4),
        x = numbers(&right, 6),
        y = numbers(&place.ahead, 6),
        side = place.side_mm,
        tip = numbers(&place.tip_m.coords, 4),
        axis = numbers(&place.pen_axis, 6),
        rest = angles(&place.rest_rad),
        ready = angles(&place.ready_rad),
    )
}

/// Place of a flat sheet.
struct SheetPlace {
    origin_m: Point3<f64>,
    x: Vector3<f64>,
    y: Vector3<f64>,
}

impl SheetPlace {
    /// Places a sheet of another size with the same centre as a scene's.
    fn centred_on(template: &Scene, [width, height]: [f64; 2]) -> anyhow::Result<Self> {
        let surface = &template.surface;
        let centre = surface.at(surface.size_mm().map(|side| side / 2.0));
        if !surface.is_flat() {
            bail!("the sheet of scene `{}` is not flat", template.name);
        }
        let (x, normal) = (centre.x.into_inner(), centre.normal.into_inner());
        let y = normal.cross(&x);
        let origin_m = centre.point_m - x * (width / 2e3) - y * (height / 2e3);
        Ok(Self { origin_m, x, y })
    }
}
