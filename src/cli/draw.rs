//! `draw`: draws a file or a text: shows it, asks before a real arm moves, and follows the job to its end.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Value, json};

use super::design_files::{self, NamedDesign};
use super::drawing_words::{describe, question, refusals};
use super::follow_job::{self, FollowedJob};
use super::given_options::{self, quoted_for_shell};
use super::operator_door::OperatorDoor;
use super::placement_args::{PlacementArgs, minutes};
use super::plan::{self, PlanArgs};
use super::progress_bar::WatchArgs;
use super::questions;
use super::{
    AtArgs, ExitStatus, NodeOptions, files, own_node, result_copies, retyped_command,
    terminal_output, watch, which_node,
};
use base::units::Finite;
use base::wording::with_statement;
use node::operator_verb::{OperatorVerb, VerbReply};
use node::serve::ShutdownRequests;
use node::{left_practice, open};
use tools::{ALL_DRAWN, DrawingAssent, DrawingOffer, DrawingOrder};

#[derive(Debug, Args)]
pub(super) struct DrawArgs {
    /// SVG, G-code, HP-GL, DXF or JSON to draw; several only as the files of one G-code set, or to compare them with --dry-run
    #[arg(value_name = "FILE", conflicts_with_all = ["text", "resume"])]
    files: Vec<PathBuf>,
    #[command(flatten)]
    placement: PlacementArgs,
    /// The scene that defines the sheet's place and the arm that draws [default: default; with --resume that of the drawing]
    #[arg(long, value_name = "NAME")]
    scene: Option<String>,
    /// The overlay on it
    #[arg(long, value_name = "OVERLAY")]
    meta: Option<String>,
    /// The arm, if several arms of the node draw the scene
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// Continue the drawing that the arm left half done
    #[arg(long)]
    resume: bool,
    /// Draw from the beginning, even if an interrupted drawing could be resumed
    #[arg(long, conflicts_with = "resume")]
    again: bool,
    /// Lead the pen round the drawing's box, up, and draw nothing
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    frame: bool,
    /// With --frame: lead it round the drawing's convex hull, which is narrower than the box
    #[arg(long, requires = "frame")]
    hull: bool,
    /// Thin a picture until the arm needs no longer than this, such as 10
    #[arg(long, value_name = "MINUTES", value_parser = minutes, allow_hyphen_values = true, conflicts_with = "resume")]
    minutes: Option<Finite>,
    /// Show what would be drawn, and draw nothing
    #[arg(long)]
    dry_run: bool,
    /// Folder for all pictures [default: the node's output]; a node on another machine keeps those of the drawing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Do not ask: somebody has looked at the drawing and stands by the arm
    #[arg(long)]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    at: AtArgs,
}

impl DrawArgs {
    /// Returns the arguments that plan each of several drawings, without a node.
    fn comparison(&self) -> PlanArgs {
        PlanArgs {
            scene: self.scene.clone(),
            meta: self.meta.clone(),
            design: self.files.clone(),
            placement: self.placement.clone(),
            out: self.out.clone(),
            json: self.json,
        }
    }
}

pub(super) async fn run(options: &NodeOptions, args: &DrawArgs) -> anyhow::Result<ExitStatus> {
    if args.dry_run && design_files::designs(&args.files)?.len() > 1 {
        return plan::run(options, &args.comparison());
    }
    let order = order(args)?;
    // A node of this command's own without a file or a state folder has only the jobs of the last one.
    let at = match args.resume && !keeps_jobs(options) {
        true => match which_node::find(options, &args.at).await? {
            Some(running) => running,
            None if left_practice::take_over()? => args.at.clone(),
            None => bail!(
                "there is no unfinished drawing here, and no node runs. Nothing moved. Next: start the drawing's node, or name it with --config FILE or --state DIR"
            ),
        },
        false => args.at.clone(),
    };
    let simulation = args.watch.simulation_rate();
    // All that the command writes lies where --out says.
    let own = NodeOptions {
        output: args.out.clone().or_else(|| options.output.clone()),
        ..options.clone()
    };
    let door = OperatorDoor::open(&own, &at, (simulation, !args.dry_run)).await?;
    let command = DrawCommand {
        options,
        args,
        order,
        door: &door,
    };
    let result = command.run().await;
    let shutdown = result
        .as_ref()
        .ok()
        .and_then(|outcome| outcome.shutdown.as_ref());
    let ended = match door.own() {
        Some(node) => own_node::end(node, shutdown).await,
        None => ExitStatus::Done,
    };
    let exit = result?.exit;
    Ok(match ended {
        ExitStatus::Done => exit,
        ended => ended,
    })
}

/// Returns whether all jobs of a node of this command's own outlive it.
const fn keeps_jobs(options: &NodeOptions) -> bool {
    options.state.is_some() || options.config.is_some() || options.port.is_some()
}

/// Builds the order for the requested drawing.
fn order(args: &DrawArgs) -> anyhow::Result<DrawingOrder> {
    let design = match args.resume {
        true if args.placement.is_given() => bail!(
            "--resume keeps the drawing's place and size. Next: leave out --size, --at and other placement options"
        ),
        true => None,
        false => Some(args.placement.drawing(only_design(&args.files)?.as_ref())?),
    };
    refuse_scene_file(args.scene.as_deref())?;
    Ok(DrawingOrder {
        scene: args.scene.clone(),
        overlay: args.meta.clone(),
        arm: args.arm.clone(),
        design,
        repeats: None,
        trim: None,
        again: args.again,
        minutes: args.minutes,
        frame: args.frame,
        hull: args.hull,
    })
}

/// Returns commands in backticks, with these options, each followed by another one.
fn each_then(commands: impl Iterator<Item = String>, options: &str) -> String {
    let typed = commands.map(|command| format!("`steadyhand {options}{command}`, then "));
    typed.collect()
}

/// Refuses a scene's file where its name is asked for.
fn refuse_scene_file(scene: Option<&str>) -> anyhow::Result<()> {
    let path = Path::new(scene.unwrap_or_default());
    let has_folder = path.components().count() > 1;
    let is_toml = path.extension().is_some_and(|ending| ending == "toml");
    if !has_folder && !is_toml {
        return Ok(());
    }
    let folder = files::folder_of(path).display().to_string();
    bail!(
        "--scene takes a scene's name, not a file. A running node knows only the --scenes folder that it was started with. Next: `--scenes {} --scene {}`",
        quoted_for_shell(&folder),
        quoted_for_shell(&design_files::stem(path))
    )
}

/// Returns the single drawing that the files make up.
fn only_design(files: &[PathBuf]) -> anyhow::Result<Option<NamedDesign>> {
    let mut designs = design_files::designs(files)?;
    let Some(first) = designs.pop() else {
        return Ok(None);
    };
    if designs.is_empty() {
        return Ok(Some(first));
    }
    bail!(
        "these are {} drawings; a sheet takes one. Only a G-code set is one drawing in several files, such as `STEM_pen1_NAME.gcode` and `STEM_pen2_NAME.gcode`. Next: draw one, or compare them: {}",
        designs.len() + 1,
        retyped_command::command(&[], &["--dry-run"])
    )
}

/// End of the command.
struct DrawOutcome {
    exit: ExitStatus,
    /// Shutdown requests for the command's own node, if the process was told to end.
    shutdown: Option<ShutdownRequests>,
}

struct DrawCommand<'a> {
    options: &'a NodeOptions,
    args: &'a DrawArgs,
    order: DrawingOrder,
    door: &'a OperatorDoor,
}

impl DrawCommand<'_> {
    async fn run(&self) -> anyhow::Result<DrawOutcome> {
        let offer: DrawingOffer = self.ask(self.order.clone(), None).await?;
        let picture = self.save_picture(&offer)?;
        let mut drawing = serde_json::to_value(&offer)?;
        if let Some(drawing) = drawing.as_object_mut() {
            drawing.insert("picture".to_owned(), picture.as_deref().into());
        }
        if !self.args.json {
            self.print_lines(&describe(&offer, picture.as_deref()));
        }
        if !offer.refusals.is_empty() {
            return self.end_early(&drawing, ExitStatus::Refused, &refusals(&offer));
        }
        if self.args.dry_run {
            let message = "planned, not drawn; nothing moved".to_owned();
            return self.end_early(&drawing, ExitStatus::Done, &[message]);
        }
        if let Some(reason) = &offer.hindrance {
            let message = format!("refused: {reason}");
            return self.end_early(&drawing, ExitStatus::Refused, &[message]);
        }
        let plan = offer.plan.clone();
        let plan = plan.context("no part of the drawing can be planned. Nothing moved")?;
        // A yes that was given before the order was seen does not end it.
        let must_agree = !offer.orders.is_empty() || (offer.is_real && !self.args.yes);
        if must_agree && !self.is_agreed(&offer)? {
            let message = "not drawn; nothing moved".to_owned();
            return self.end_early(&drawing, ExitStatus::Refused, &[message]);
        }
        let assent = DrawingAssent {
            revision: offer.revision.clone(),
            plan,
            duration_s: offer.duration_s,
            orders_seen: offer.orders_seen,
        };
        let jobs: Vec<String> = self.ask(self.agreed_order(&offer), Some(assent)).await?;
        let mut followed = Vec::new();
        for job in jobs {
            followed
                .push(follow_job::own_job(self.door, &job, &offer.title, self.args.json).await?);
        }
        let followed = follow_job::joined(followed).context("the node began no job")?;
        self.print_outcome(drawing, followed)
    }

    /// Returns the order that was shown: a picture that was thinned has its ink in place of the time.
    fn agreed_order(&self, offer: &DrawingOffer) -> DrawingOrder {
        let mut order = self.order.clone();
        order.minutes = None;
        if let (Some(design), Some(percent)) = (&mut order.design, offer.ink_percent) {
            design.ink_percent = Finite::new(percent).ok();
        }
        order
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        order: DrawingOrder,
        assent: Option<DrawingAssent>,
    ) -> anyhow::Result<T> {
        let order = Box::new(order);
        let reply: VerbReply = self.door.ask(OperatorVerb::Draw { order, assent }).await?;
        if !reply.done {
            bail!("{}", self.with_scene_advice(reply.text));
        }
        let data = reply.data.context("the node has a different version")?;
        Ok(T::deserialize(data)?)
    }

    /// Adds what to do about a scene that is not known but whose file lies in this folder.
    fn with_scene_advice(&self, refusal: String) -> String {
        let name = self.order.scene.as_deref().unwrap_or_default();
        let is_unknown = refusal.contains(&format!("there is no scene `{name}`"));
        match is_unknown && Path::new(&format!("{name}.toml")).is_file() {
            true => with_statement(
                refusal,
                &format!(
                    "{name}.toml is in this folder. Next: add `--scenes .` (a running node must be restarted with it)"
                ),
            ),
            false => refusal,
        }
    }

    /// Asks a person at the terminal.
    fn is_agreed(&self, offer: &DrawingOffer) -> anyhow::Result<bool> {
        let refusal = match offer.orders.is_empty() {
            true => format!(
                "arm {} at {} is real: a person must confirm at a terminal before it draws. Next: look at the picture, stay beside the arm, and run: {}",
                offer.arm,
                offer.port,
                retyped_command::retyped(std::env::args().skip(1), &[], &["--yes"])
            ),
            false => format!(
                "an operator's order is still in force: {}. --yes does not end it. Next: run the command named there, then this one again",
                offer.orders
            ),
        };
        questions::confirm(&question(offer, self.args.frame), &refusal)
    }

    /// Returns the folder that this command names for its files.
    fn folder(&self) -> Option<&PathBuf> {
        self.args.out.as_ref().or(self.options.output.as_ref())
    }

    fn save_picture(&self, offer: &DrawingOffer) -> anyhow::Result<Option<String>> {
        let Some(png) = offer.png() else {
            return Ok(None);
        };
        let folder = open::or_temporary(self.folder().cloned())?;
        let path = files::write_into(&folder, "draw-plan.png", &png)?;
        Ok(Some(path.display().to_string()))
    }

    /// Ends the command before anything began, with these messages.
    fn end_early(
        &self,
        drawing: &Value,
        exit: ExitStatus,
        messages: &[String],
    ) -> anyhow::Result<DrawOutcome> {
        let own = self.door.own();
        let start = own.and_then(|_| given_options::serve_line(&messages.concat(), self.options));
        let messages: Vec<String> = messages.iter().cloned().chain(start).collect();
        if self.args.json {
            let (success, message) = (exit == ExitStatus::Done, messages.join("; "));
            let result = json!({ "success": success, "message": message, "drawing": drawing });
            terminal_output::json(&result)?;
        } else {
            self.print_lines(&messages);
        }
        Ok(DrawOutcome {
            exit,
            shutdown: None,
        })
    }

    /// Prints messages of the node, with this command's options in the commands that they name.
    fn print_lines(&self, messages: &[String]) {
        let options = match self.door.own() {
            Some(_) => self.options.clone(),
            None => given_options::addressing(self.options),
        };
        let named = |message: &String| given_options::with_given(message, &options);
        terminal_output::lines(messages.iter().map(named));
    }

    fn print_outcome(&self, drawing: Value, followed: FollowedJob) -> anyhow::Result<DrawOutcome> {
        let FollowedJob {
            mut outcome,
            shutdown,
        } = followed;
        let exit = watch::exit_of(&outcome);
        let next = self.resume_advice(&outcome.result);
        let is_here = result_copies::is_here(self.args.at.node.as_deref());
        let folder = self.folder().filter(|_| is_here);
        let gathered = folder.map(|folder| result_copies::gather(folder, &mut outcome.result));
        if self.args.json {
            let next = next.map(|next| ("next".to_owned(), next.into()));
            outcome.result.extend(next);
            outcome.result.insert("drawing".to_owned(), drawing);
            terminal_output::json(&outcome.result)?;
        } else {
            terminal_output::line(&outcome.words);
            terminal_output::facts(&outcome.result);
            terminal_output::result_files(&outcome.result);
            terminal_output::lines(&next);
        }
        gathered.transpose()?;
        Ok(DrawOutcome { exit, shutdown })
    }

    /// Returns how to continue a drawing that did not finish.
    fn resume_advice(&self, result: &serde_json::Map<String, Value>) -> Option<String> {
        let strings = |field: &str| {
            let all = result.get(field).and_then(Value::as_array);
            all.into_iter().flatten().filter_map(Value::as_str)
        };
        if strings("usage_hints").any(|hint| hint == ALL_DRAWN) {
            return Some(ALL_DRAWN.to_owned());
        }
        let next: Vec<&str> = strings("next_commands").collect();
        let (last, before) = next.split_last()?;
        let given = given_options::text(self.options);
        let at = self.args.at.text();
        let before = before.iter().map(|command| format!("{command}{at}"));
        let address = given_options::addressing_text(self.options);
        let resets = self.door.own().map(|node| node.resets_at_next_start());
        Some(match (resets, keeps_jobs(self.options)) {
            (None, _) => format!(
                "to draw the rest: {}`steadyhand {given}{last}{at}`",
                each_then(before, &address)
            ),
            (Some(resets), true) if !resets.is_empty() => format!(
                "to draw the rest: start a node in another terminal with `steadyhand {given}serve`, then run {}`steadyhand {address}{last}`",
                each_then(resets.into_iter(), &address)
            ),
            (Some(resets), false) if !resets.is_empty() => "the drawing cannot be resumed: the emergency stop also ended this command, with its simulated arm. Next: draw all of it again".to_owned(),
            (Some(_), _) => format!("to draw the rest: `steadyhand {given}{last}`"),
        })
    }
}
