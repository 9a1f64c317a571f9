//! `plan`: plans a drawing without a node: length, time, every refusal, and a picture.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use super::design_files::{NamedDesign, designs, file_name, stem};
use super::drawing_words::size_text;
use super::placement_args::PlacementArgs;
use super::scenes::{self, CANVAS};
use super::{ExitStatus, NodeOptions, files, retyped_command, terminal_output};
use base::wording::{count, millimetres, seconds};
use node::open;
use plan::{PlanError, PlanReport, SilentObserver};
use scene::{DesignOverflow, Scene, SceneError, SceneLibrary, SheetStroke};
use tools::{self, DrawingPreview, RuleViolation, StrokeJoining};

mod shared;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct PlanArgs {
    /// A scene's file, or its name [default: the node's default scene]
    pub(super) scene: Option<String>,
    /// The overlay on it
    #[arg(long)]
    pub(super) meta: Option<String>,
    /// Draw this instead: SVG, G-code, HP-GL, DXF or JSON, or a folder of them; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(super) design: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) placement: PlacementArgs,
    /// Folder for pictures; without it none are written
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Print the result as JSON: one line for each if there are several designs
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(node: &NodeOptions, args: &PlanArgs) -> anyhow::Result<ExitStatus> {
    let file = open::file(node)?;
    let library = open::library(node, &file)?;
    let args = &PlanArgs {
        scene: Some(scenes::named_or_default(
            &library,
            &file,
            args.scene.as_deref(),
        )?),
        ..args.clone()
    };
    let is_text = args.placement.text.is_some();
    if args.placement.is_given() && args.design.is_empty() && !is_text {
        bail!(
            "--size, --at and other placement options are only for --design FILE or --text WORDS. The scene's file places its own design"
        );
    }
    if let Some(out) = &args.out {
        files::make_folder(out)?;
    }
    let designs = designs(&args.design)?;
    if designs.len() > 1 {
        return Ok(run_many(&library, args, &designs));
    }
    let report = DesignReport::of(&library, args, designs.first(), "plan.png");
    Ok(report.show(args, ExitStatus::Done))
}

/// Plans several designs, as many at a time as there are processors, and prints them in the order of their names.
fn run_many(library: &SceneLibrary, args: &PlanArgs, designs: &[NamedDesign]) -> ExitStatus {
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    let pictures = pictures(designs);
    let designs: Vec<(&NamedDesign, &String)> = designs.iter().zip(&pictures).collect();
    let mut exit = ExitStatus::Done;
    for batch in designs.chunks(at_a_time) {
        let reports: Vec<DesignReport> = std::thread::scope(|scope| {
            let threads: Vec<_> = batch
                .iter()
                .map(|(design, picture)| {
                    scope.spawn(move || DesignReport::of(library, args, Some(design), picture))
                })
                .collect();
            let reports = threads.into_iter().map(|thread| match thread.join() {
                Ok(report) => report,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            reports.collect()
        });
        for report in reports {
            exit = report.show(args, exit);
        }
    }
    exit
}

/// Returns the name of each design's picture: that of its file, with the extension if two would be equal.
fn pictures(designs: &[NamedDesign]) -> Vec<String> {
    let mut stem_counts: HashMap<String, usize> = HashMap::new();
    for design in designs {
        *stem_counts.entry(stem(&design.path)).or_default() += 1;
    }
    let mut used_names: HashMap<String, usize> = HashMap::new();
    let name = |design: &NamedDesign| {
        let stem = stem(&design.path);
        let name = match stem_counts.get(&stem) {
            Some(1) => stem,
            _ => file_name(&design.path),
        };
        let uses = used_names.entry(name.clone()).or_default();
        *uses += 1;
        match *uses {
            1 => format!("{name}.png"),
            uses => format!("{name}.{uses}.png"),
        }
    };
    designs.iter().map(name).collect()
}

/// Rule of a refusal that no rule of the plan made, such as a picture that could not be written.
const NOT_DONE: &str = "not_done";

/// Result for one design.
struct DesignReport {
    title: String,
    lines: Vec<String>,
    facts: Map<String, Value>,
    exit: ExitStatus,
}

impl DesignReport {
    fn of(
        library: &SceneLibrary,
        args: &PlanArgs,
        design: Option<&NamedDesign>,
        picture: &str,
    ) -> Self {
        let title = design.map_or_else(
            || args.scene.clone().unwrap_or_default(),
            |d| d.path.display().to_string(),
        );
        let title = title.replace('\n', "\\n");
        Self::build(title, |report| report.plan(library, args, design, picture))
    }

    /// Builds the result with `work`, or reports its error or panic.
    fn build(title: String, work: impl FnOnce(&mut Self) -> anyhow::Result<()>) -> Self {
        let mut report = Self {
            title,
            lines: Vec::new(),
            facts: Map::new(),
            exit: ExitStatus::Done,
        };
        report.set("success", true);
        match tools::catch_panic("planning", || work(&mut report)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => report.refuse(super::describe_error(&error)),
            Err(panic) => {
                report.refuse(panic.to_string());
                report.exit = ExitStatus::Broken;
            }
        }
        report
    }

    fn refuse(&mut self, reason: String) {
        self.exit = ExitStatus::Refused;
        self.set("success", false);
        self.set("message", reason.clone());
        let refusals = self.facts.get("refusals");
        if refusals.is_none_or(|all| *all == json!([])) {
            let is_read = self.facts.contains_key("scene");
            let rule = if is_read { NOT_DONE } else { "unreadable" };
            self.set("refusals", json!([{ "rule": rule, "why": reason }]));
        }
        self.lines.push(reason);
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    fn plan(
        &mut self,
        library: &SceneLibrary,
        args: &PlanArgs,
        design: Option<&NamedDesign>,
        picture: &str,
    ) -> anyhow::Result<()> {
        if let Some(design) = design {
            self.set("design", design.path.display().to_string());
        }
        let library = match design {
            None if args.placement.text.is_none() => library,
            design => &library.with_drawing(args.placement.drawing(design)?),
        };
        let scene = match scenes::find(
            library,
            args.scene.as_deref().unwrap_or_default(),
            args.meta.as_deref(),
        ) {
            Ok(scene) => scene,
            Err(SceneError::Outside { file, outside }) => {
                return self
                    .add_outside(&outside, args, picture)
                    .with_context(|| file);
            }
            Err(SceneError::SeveralArms { .. }) => return self.plan_shared(library, args, picture),
            Err(other) => return Err(other.into()),
        };
        self.add_identity(&scene);
        driver::check_ranges(&scene.arm)?;
        let refused_poses = tools::refused_poses(&[&scene]);
        if scene.canvas.is_some() && scene.strokes.is_empty() {
            self.add_canvas();
            return self.add_refusals(&refused_poses);
        }
        self.add_size(&scene);
        let mut preview = match DrawingPreview::new(&scene, &scene.rest_rad, &SilentObserver) {
            Ok(preview) => preview,
            Err(error @ PlanError::Nothing) => bail!("{error}"),
            Err(error) => return Err(error.into()),
        };
        preview.refusals.extend(refused_poses);
        let lengths = scene.strokes.iter().map(SheetStroke::length_mm);
        self.set("design_mm", rounded(lengths.sum()));
        self.add_preview(&preview, scene.surface.is_flat())?;
        if let Some(plan) = &preview.plan {
            self.add_joining(&StrokeJoining::of(&plan.report, scene.strokes.len()));
        }
        if let Some(out) = &args.out {
            self.save_picture(out, picture, tools::preview_picture(&scene, &preview))?;
        }
        Ok(())
    }

    /// Reports that a canvas without a design has nothing to plan yet.
    fn add_canvas(&mut self) {
        let message = format!("{CANVAS}. Next: add --design FILE or --text WORDS");
        self.set("message", message.clone());
        self.lines.push(message);
    }

    /// Adds the scene and its arm.
    fn add_identity(&mut self, scene: &Scene) {
        self.set("scene", scene.title());
        self.set("arm", scene.arm.file.name.clone());
        self.set("revision", scene.revision.to_string());
    }

    /// Adds the size of what a scene draws.
    fn add_size(&mut self, scene: &Scene) {
        let page = &scene.page;
        self.set("size_mm", rounded(page.long_mm));
        self.set("size_from", json!(page.from));
        self.set("notes", scene.notes.clone());
        self.lines
            .push(size_text(page.long_mm, page.drawn_mm, page.from));
        let notes = scene.notes.iter().map(|note| format!("note: {note}"));
        self.lines.extend(notes);
    }

    /// Adds the refusal and a picture of a design that does not fit.
    fn add_outside(
        &mut self,
        outside: &DesignOverflow,
        args: &PlanArgs,
        picture: &str,
    ) -> anyhow::Result<()> {
        let refusal = json!({
            "rule": "outside",
            "at_mm": outside.at_mm.map(rounded),
            "value": rounded(outside.by_mm),
            "limit": 0.0,
            "unit": "mm",
            "strokes": outside.count,
            "fits_mm": outside.fits_mm.map(tools::down_to_a_tenth),
            "fits_centred": outside.fits_centred,
            "why": outside.why,
        });
        self.set("refusals", json!([refusal]));
        self.set("size_mm", rounded(outside.page.long_mm));
        self.set("size_from", json!(outside.page.from));
        self.set("notes", outside.notes.clone());
        if let Some(out) = &args.out {
            self.save_picture(out, picture, tools::outside_picture(outside))?;
        }
        let next = (!outside.is_own).then(|| {
            let fits_mm = outside.fits_mm.map(tools::down_to_a_tenth);
            retyped_command::fitting(outside.moves_to_mm, fits_mm, outside.fits_centred, true)
        });
        match next.flatten() {
            Some(next) => bail!("{}. {next}", outside.why),
            None => bail!("{}", outside.why),
        }
    }

    fn save_picture(&mut self, out: &Path, name: &str, png: Option<Vec<u8>>) -> anyhow::Result<()> {
        let path = out.join(name).display().to_string();
        let result = png
            .context("the picture could not be drawn")
            .and_then(|png| Ok(std::fs::write(&path, png)?));
        result.with_context(|| format!("cannot write {path}"))?;
        self.lines.push(path.clone());
        self.set("files", vec![path]);
        Ok(())
    }

    fn add_preview(&mut self, preview: &DrawingPreview, is_flat: bool) -> anyhow::Result<()> {
        self.set("message", preview.message());
        match &preview.plan {
            Some(plan) => {
                self.add_figures(&plan.report);
                self.set("plan_hash", plan.hash.clone());
                self.lines.extend(figure_lines(&plan.report));
                self.add_limit_note(&plan.report);
                if let Some(slowest) = plan.report.slowest_part() {
                    self.set("faster", slowest.to_string());
                    self.lines.push(format!("faster: {slowest}"));
                }
                if !is_flat {
                    self.set("stretch_max", rounded(plan.report.stretch_max));
                    self.lines.push(plan.report.stretch_text());
                }
                self.lines.push(format!("plan {}", plan.hash));
            }
            None => self
                .lines
                .push("no part of the drawing can be planned".to_owned()),
        }
        self.add_refusals(&preview.refusals)
    }

    /// Adds everything that refuses the plan.
    fn add_refusals(&mut self, refusals: &[RuleViolation]) -> anyhow::Result<()> {
        self.set("refusals", serde_json::to_value(refusals)?);
        if !refusals.is_empty() {
            self.exit = ExitStatus::Refused;
            self.set("success", false);
        }
        for group in tools::refusal_groups(refusals) {
            self.lines.push(format!("refused: {}", group.words()));
        }
        Ok(())
    }

    /// Adds a note where a joint comes to the end of its range.
    fn add_limit_note(&mut self, report: &PlanReport) {
        let Some(note) = report.limit_note() else {
            return;
        };
        self.lines.push(format!("note: {note}"));
        if let Some(Value::Array(notes)) = self.facts.get_mut("notes") {
            notes.push(note.into());
        }
    }

    /// Adds the figures of a plan that are facts of the result.
    fn add_figures(&mut self, report: &PlanReport) {
        let all = [
            ("stroke_count", report.stroke_count.into()),
            ("pen_down_mm", rounded(report.pen_down_mm)),
            ("pen_up_mm", rounded(report.pen_up_mm)),
            ("pen_up_s", rounded(report.pen_up_s)),
            ("pen_up_bound_s", rounded(report.pen_up_bound_s)),
            ("duration_s", rounded(report.duration_s)),
            ("approach_s", rounded(report.approach_s)),
            ("dips", report.dips.into()),
            ("tilt_max_deg", rounded(report.tilt_max_deg)),
            ("margin_least_deg", rounded(report.margin_least_deg)),
            (
                "margin_least_joint",
                report.margin_least_joint.as_str().into(),
            ),
            ("at_speed_share", rounded(report.at_speed_share)),
            ("limiting_joint", report.limiting_joint.as_str().into()),
            ("limiting_ratio", rounded(report.limiting_ratio)),
        ];
        for (name, figure) in all {
            self.set(name, figure);
        }
    }

    /// Adds what became of the design's strokes.
    fn add_joining(&mut self, joining: &StrokeJoining) {
        self.set("design_strokes", joining.of_design);
        self.set("strokes_joined", joining.joined);
        self.set("strokes_left_out", joining.left_out);
        self.set("strokes_cut", joining.cut);
        self.set("strokes_reversed", joining.reversed);
        // A plan that is refused lacks strokes for another reason than that they lie on others.
        if self.exit != ExitStatus::Refused {
            self.lines.extend(joining.description());
        }
    }

    /// Returns whether everything can be drawn, even if its picture could not be written.
    fn is_planned(&self) -> bool {
        let refusals = self.facts.get("refusals").and_then(Value::as_array);
        let is_of_plan = |refusal: &Value| refusal["rule"] != NOT_DONE;
        let is_refused = refusals.is_none_or(|all| all.iter().any(is_of_plan));
        !is_refused && self.facts.contains_key("plan_hash")
    }

    /// Prints the result and returns the worse of both exit statuses.
    fn show(&self, args: &PlanArgs, exit: ExitStatus) -> ExitStatus {
        if args.json {
            let value = Value::Object(self.facts.clone());
            let is_one = args.design.len() < 2 && !args.design.iter().any(|path| path.is_dir());
            terminal_output::line(&match is_one {
                true => format!("{value:#}"),
                false => value.to_string(),
            });
        } else {
            let is_good = matches!(self.exit, ExitStatus::Done) || self.is_planned();
            let verdict = if is_good { "good" } else { "refused" };
            terminal_output::line(&format!("{}: {verdict}", self.title));
            terminal_output::lines(self.lines.iter().map(|line| format!("  {line}")));
        }
        if self.exit as u8 > exit as u8 {
            self.exit
        } else {
            exit
        }
    }
}

/// Rounds to a thousandth; further digits are noise.
fn rounded(value: f64) -> Value {
    Value::from((value * 1e3).round() / 1e3)
}

/// Describes the figures, for people and for callers that see no pictures.
fn figure_lines(report: &PlanReport) -> Vec<String> {
    let dips = match report.dips {
        0 => "no dips".to_owned(),
        dips => count(dips, "dip"),
    };
    vec![
        format!(
            "{}, {} of line, {} pen up, {dips}",
            report.strokes_text(),
            millimetres(report.pen_down_mm, 0),
            millimetres(report.pen_up_mm, 0)
        ),
        format!(
            "it takes {} from rest; {:.0} % of the line is drawn at the requested speed. {} works hardest: {:.0} % of its speed or acceleration limit",
            seconds(report.duration_s),
            report.at_speed_share * 1e2,
            report.limiting_joint,
            report.limiting_ratio * 1e2
        ),
        format!(
            "the pen is up for {}, {:.0} % of the time (at least {} is needed with these limits)",
            seconds(report.pen_up_s),
            report.pen_up_s / report.duration_s * 1e2,
            seconds(report.pen_up_bound_s)
        ),
        format!(
            "the pen leans by at most {:.1}°; {} comes within {:.1}° of its limit",
            report.tilt_max_deg, report.margin_least_joint, report.margin_least_deg
        ),
    ]
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    /// Formerly, a panic blamed one design among many, and ended the program with a single one.
    #[test]
    fn a_planner_that_panics_is_a_refusal_that_names_the_panic() {
        let empty: Vec<f64> = Vec::new();
        let answer = DesignReport::build("cat.svg".to_owned(), |answer| {
            answer.set("scene", "default");
            answer.set("width_mm", empty[empty.len()]);
            Ok(())
        });
        assert!(matches!(answer.exit, ExitStatus::Broken));
        assert_eq!(answer.facts["success"], false);
        let message = answer.facts["message"].as_str().unwrap();
        assert!(
            message.contains("internal error while planning: index out"),
            "{message}"
        );
    }
}
