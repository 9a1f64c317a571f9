//! `first-line`: guides a person from the box to the first line, step by step. The guide can be left and resumed.

mod cross_reading;
mod guide_progress;
mod guide_step;
mod hand_places;
mod motions;
mod served_node;

use anyhow::{Context, bail, ensure};
use clap::Args;

use super::arguments::{ConsentArgs, HereArgs};
use super::guided_touches::{self, TouchPlace, TouchRoundEnd};
use super::joints::{self, JointsArgs, let_go};
use super::operator_input::{OperatorAnswer, OperatorInput};
use super::place::{CalibrationFolders, torque};
use crate::doctor::{self, DoctorArgs};
use crate::given_options::{self, quoted_for_shell};
use crate::{
    AtArgs, ExitStatus, NodeOptions, operator_client, scenes, terminal_output, which_node,
};
use arm::ServoFamily;
use calib::CalibrationKind;
use guide_progress::GuideProgress;
use guide_step::{GuideStep, GuideStepWords, STEPS};
pub(super) use motions::move_to_end;
use node::open;
use node::running_nodes::{self, NodeDescription};
use scene::{Revision, Scene};
use served_node::ServedNode;
use std::path::Path;
use std::sync::Arc;

/// Prompt after a step that was refused.
const RETRY_PROMPT: &str = "press Enter to do this step again, or type q to quit";

#[derive(Debug, Args)]
pub(crate) struct FirstLineArgs {
    /// Scene of the first line [default: the node's default scene]
    #[arg(long)]
    scene: Option<String>,
    /// The arm, if several arms of the node draw the scene
    #[arg(long, value_name = "NAME")]
    arm: Option<String>,
    /// Repeat the steps that were done before, from the joints on
    #[arg(long)]
    again: bool,
}

/// End of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepEnd {
    Done,
    /// The step is not needed here.
    NotNeeded,
    /// The step was refused, and is to be repeated.
    Again,
    /// The person left.
    Left,
}

/// A guided person, and the node of the node file.
struct Guide<'a> {
    options: &'a NodeOptions,
    scene: String,
    /// The arm, once it is known which one is guided.
    arm: Option<String>,
    /// True if the command named the arm.
    names_arm: bool,
    person: OperatorInput,
    /// Address of the node, once it serves.
    at: AtArgs,
    served: Option<ServedNode>,
    /// True if no hand can move the arm: the node simulates it.
    is_simulated: bool,
    progress: Option<GuideProgress>,
    /// Revision of the scene for which motion was enabled.
    enabled: Option<Revision>,
    again: bool,
}

pub(crate) async fn run(options: &NodeOptions, args: &FirstLineArgs) -> anyhow::Result<ExitStatus> {
    if options.config.is_none() {
        bail!(
            "the guide needs a node file. Next: `steadyhand init`, then `steadyhand --config node.toml first-line`"
        );
    }
    let file = open::file(options)?;
    let library = open::library(options, &file)?;
    // What the hand finds is written into a scene's or an arm's file: not only the last step may find that it cannot be.
    ensure!(
        library.folder().is_some(),
        "the guide must change the scene's file, but the shipped scenes cannot be changed. Next: add `scenes = \"scenes\"` to the node file, and make that folder beside it"
    );
    let mut guide = Guide {
        options,
        scene: scenes::named_or_default(&library, &file, args.scene.as_deref())?,
        arm: args.arm.clone(),
        names_arm: args.arm.is_some(),
        person: OperatorInput::listen()?,
        at: AtArgs::default(),
        served: None,
        is_simulated: false,
        progress: None,
        enabled: None,
        again: args.again,
    };
    let result = guide.run_steps().await;
    guide.leave().await?;
    result
}

/// Prints the reason for leaving a step out.
fn not_needed(reason: &str) -> anyhow::Result<StepEnd> {
    terminal_output::line(reason);
    Ok(StepEnd::NotNeeded)
}

impl Guide<'_> {
    async fn run_steps(&mut self) -> anyhow::Result<ExitStatus> {
        for step in &STEPS {
            loop {
                match self.run_step(step).await? {
                    StepEnd::Done => {
                        if let Some(progress) = &mut self.progress {
                            progress.keep(step.step)?;
                        }
                        break;
                    }
                    StepEnd::NotNeeded => break,
                    StepEnd::Again => terminal_output::note("this step is not done yet"),
                    StepEnd::Left => return Ok(self.print_left()),
                }
            }
        }
        terminal_output::done(&format!(
            "the first line is drawn. Next: draw your own file with `steadyhand {}draw FILE`",
            given_options::text(self.options)
        ))
    }

    fn print_left(&self) -> ExitStatus {
        let arm = self.arm.as_ref().filter(|_| self.names_arm);
        let arm = arm.map_or_else(String::new, |arm| {
            format!(" --arm {}", quoted_for_shell(arm))
        });
        terminal_output::line(&format!(
            "you quit the guide; the finished steps are kept. Next: continue with `steadyhand {}first-line --scene {}{arm}`",
            given_options::text(self.options),
            quoted_for_shell(&self.scene)
        ));
        ExitStatus::Refused
    }

    /// Ends the guide's own node, if there is one, and prints the state in which the arm is left.
    async fn leave(&mut self) -> anyhow::Result<()> {
        let energised = self.is_energised().await;
        let Some(served) = self.served.take() else {
            if let Some(energised) = energised {
                terminal_output::line(torque(energised));
            }
            return Ok(());
        };
        const AT_REST: i32 = ExitStatus::Done as i32;
        const HOLDING: i32 = ExitStatus::Energised as i32;
        let (log, code) = served.end().await?;
        terminal_output::line(&match (code, energised) {
            (Some(AT_REST), Some(false)) => {
                "the arm is limp: it lies where your hands leave it".to_owned()
            }
            (Some(AT_REST), Some(true)) => {
                "the arm is at rest, with its torque on".to_owned()
            }
            (Some(HOLDING), _) => {
                "the arm stands where it is, with its torque on, until you switch its supply off or start a node".to_owned()
            }
            _ => format!(
                "the state of the arm is unknown. Look at it, and cut its power if it moves (log of its node: {})",
                log.display()
            ),
        });
        Ok(())
    }

    /// Returns whether the arm of the scene has its torque on, if the node reports it.
    async fn is_energised(&self) -> Option<bool> {
        if !self.at.is_named() {
            return None;
        }
        let (folders, scene) = self.folders().await.ok()?;
        Some(folders.arm(&scene.arm.file.name)?.energised)
    }

    async fn run_step(&mut self, words: &GuideStepWords) -> anyhow::Result<StepEnd> {
        let step = words.step;
        let is_done = self.progress.as_ref().is_some_and(|all| all.is_done(step));
        if is_done && step.is_kept() && !self.again {
            return not_needed(&format!("{}: already done", words.title));
        }
        terminal_output::line(&words.heading());
        if step.is_by_hand() && self.is_simulated {
            return not_needed(
                "  not needed with a simulated arm: no hand can move it, and its file describes it exactly",
            );
        }
        if step.is_kept() {
            let answer = self.confirm_start(step).await;
            if answer != StepEnd::Done {
                return Ok(answer);
            }
        }
        match step {
            GuideStep::Port => self.port(),
            GuideStep::Doctor => self.doctor().await,
            GuideStep::Serve => self.serve().await,
            GuideStep::Joints => self.joints().await,
            GuideStep::Zeros => self.zeros().await,
            GuideStep::Tool => {
                self.touch_all(CalibrationKind::Tool, &hand_places::tool())
                    .await
            }
            GuideStep::Sheet => self.sheet().await,
            GuideStep::Enable => self.enable().await,
            GuideStep::Feel => self.feel().await,
            GuideStep::Align => self.align().await,
            GuideStep::Cross => self.cross().await,
            GuideStep::Line => self.line().await,
        }
    }

    /// Waits for Enter before a step; an optional step can also be skipped.
    async fn confirm_start(&mut self, step: GuideStep) -> StepEnd {
        match step.is_optional() {
            true => {
                let prompt = "press Enter to begin, type s to skip this step, or q to quit";
                self.wait_for_enter(prompt, Some("s")).await
            }
            false => {
                let prompt = "press Enter to begin, or type q to quit";
                self.wait_for_enter(prompt, None).await
            }
        }
    }

    /// Waits for Enter, for the word that skips this step, or for `q`, which leaves the guide.
    async fn wait_for_enter(&mut self, prompt: &str, skip_word: Option<&str>) -> StepEnd {
        loop {
            match self.ask(prompt).await.as_str() {
                "" => return StepEnd::Done,
                "q" => return StepEnd::Left,
                answer if Some(answer) == skip_word => return StepEnd::NotNeeded,
                other => terminal_output::note(&format!("{other:?} is not one of these")),
            }
        }
    }

    /// Asks, and returns the answer in lower case; the end of the input or Ctrl-C counts as `q`.
    async fn ask(&mut self, prompt: &str) -> String {
        terminal_output::note(prompt);
        match self.person.next_input().await {
            OperatorAnswer::Line(line) => line.trim().to_lowercase(),
            OperatorAnswer::End | OperatorAnswer::Interrupt => "q".to_owned(),
        }
    }

    fn port(&mut self) -> anyhow::Result<StepEnd> {
        let file = open::file(self.options)?;
        let scene = open::library(self.options, &file)?.scene(&self.scene, None)?;
        let model = &scene.arm.file.name;
        let config = self
            .options
            .config
            .as_deref()
            .unwrap_or(Path::new(""))
            .display();
        let drawing: Vec<_> = file
            .arms
            .iter()
            .filter(|entry| entry.model == *model)
            .collect();
        let names: Vec<&str> = drawing.iter().map(|entry| entry.name.as_str()).collect();
        let names = names.join(", ");
        let entry = match (drawing.as_slice(), &self.arm) {
            ([], _) => bail!(
                "scene {} needs an arm of model {model}, but {config} has none. Next: choose another --scene, or add the arm",
                self.scene
            ),
            ([one], None) => one,
            (several, None) => bail!(
                "{} arms of {config} can draw scene {}. Nothing moved. Next: name one with --arm: {names}",
                several.len(),
                self.scene
            ),
            (all, Some(name)) => {
                let named = all.iter().find(|entry| entry.name == *name);
                named.with_context(|| {
                    format!(
                        "{config} has no arm `{name}` for scene {}. Valid: {names}",
                        self.scene
                    )
                })?
            }
        };
        self.arm = Some(entry.name.clone());
        self.is_simulated = entry.is_simulated();
        terminal_output::line(&format!(
            "arm {} ({model}) is at {}",
            entry.name, entry.port
        ));
        Ok(StepEnd::Done)
    }

    async fn doctor(&mut self) -> anyhow::Result<StepEnd> {
        if self.is_simulated {
            return not_needed("  not needed with a simulated arm: there is no cable");
        }
        let running_nodes = running_nodes::nodes_of(self.options.config.as_deref(), None).await?;
        if !running_nodes.is_empty() {
            return not_needed(
                "  not needed: a running node already reads the arm through this port",
            );
        }
        if doctor::run(self.options, &DoctorArgs::of_arm(self.arm.clone())).await?
            == ExitStatus::Done
        {
            return Ok(StepEnd::Done);
        }
        let prompt = "correct that and press Enter to check again, or type q to quit";
        Ok(self.again_or_leave(prompt).await)
    }

    async fn serve(&mut self) -> anyhow::Result<StepEnd> {
        match which_node::find(self.options, &AtArgs::default()).await? {
            Some(at) => self.at = at,
            None => self.start_node().await?,
        }
        let description = operator_client::description(&self.at).await?;
        self.check_port(&description)?;
        self.progress = Some(GuideProgress::open(
            &description.state,
            &self.scene,
            self.arm.as_deref().unwrap_or_default(),
        )?);
        Ok(StepEnd::Done)
    }

    /// Refuses a node that has its first arm at another port than the one that was given.
    fn check_port(&self, node: &NodeDescription) -> anyhow::Result<()> {
        let first = node.arms.first().map(|arm| arm.port.as_str());
        match (&self.options.port, first) {
            (Some(requested), Some(actual)) if requested != actual => bail!(
                "the running node has its arm at {actual}; --port names {requested}. Nothing moved. Next: shut down that node, or leave --port out"
            ),
            _ => Ok(()),
        }
    }

    /// Starts a node that ends with the guide.
    async fn start_node(&mut self) -> anyhow::Result<()> {
        let (served, at) = ServedNode::start(self.options).await?;
        (self.served, self.at) = (Some(served), at);
        let description = operator_client::description(&self.at).await?.words();
        terminal_output::line(&format!(
            "node started; it ends with this guide: {description}"
        ));
        Ok(())
    }

    async fn folders(&self) -> anyhow::Result<(CalibrationFolders, Arc<Scene>)> {
        let folders = self.own_folders().await?;
        let scene = folders.library.scene(&self.scene, None)?;
        let folders = folders.only(&scene.arm.file.name, self.arm.as_deref())?;
        Ok((folders, scene))
    }

    async fn own_folders(&self) -> anyhow::Result<CalibrationFolders> {
        let mut found = CalibrationFolders::find(self.options, &self.at).await?;
        found.is_guided = true;
        Ok(found)
    }

    fn here(&self) -> HereArgs {
        HereArgs {
            scene: self.scene.clone(),
            arm: self.arm.clone(),
            pen: None,
            joints: None,
            at: self.at.clone(),
        }
    }

    /// Makes sure that the node measures with the zeros that are now in the arm's file.
    async fn with_new_zeros(&mut self) -> anyhow::Result<StepEnd> {
        loop {
            let (folders, scene) = self.folders().await?;
            if folders.check_zeros(&scene.arm.file).is_ok() {
                return Ok(StepEnd::Done);
            }
            match self.served.take() {
                Some(served) => {
                    terminal_output::line("the node restarts with the new zeros");
                    served.end().await?;
                    self.start_node().await?;
                }
                None => {
                    let prompt = "restart the node in its terminal, so that it reads the arm's new file. Then press Enter, or type q to quit";
                    if self.wait_for_enter(prompt, None).await == StepEnd::Left {
                        return Ok(StepEnd::Left);
                    }
                    let found = which_node::find(self.options, &AtArgs::default()).await?;
                    self.at = found.unwrap_or_else(|| self.at.clone());
                }
            }
        }
    }

    async fn joints(&mut self) -> anyhow::Result<StepEnd> {
        let (_, scene) = self.folders().await?;
        if scene.arm.file.family == ServoFamily::Firmware {
            return not_needed("  not needed: this arm's controller knows its own positions");
        }
        let args = JointsArgs {
            arm: self
                .arm
                .clone()
                .unwrap_or_else(|| scene.arm.file.name.clone()),
            from: None,
            consent: ConsentArgs::default(),
            at: self.at.clone(),
        };
        let folders = self.own_folders().await?;
        match joints::with_person(folders, &args, &mut self.person).await? {
            None => Ok(StepEnd::Left),
            Some(ExitStatus::Done) => self.with_new_zeros().await,
            Some(_) => Ok(self.again_or_leave(RETRY_PROMPT).await),
        }
    }

    async fn again_or_leave(&mut self, prompt: &str) -> StepEnd {
        match self.wait_for_enter(prompt, None).await {
            StepEnd::Done => StepEnd::Again,
            other => other,
        }
    }

    async fn zeros(&mut self) -> anyhow::Result<StepEnd> {
        let (_, scene) = self.folders().await?;
        if scene.calibrator_m.is_none() {
            return not_needed(
                "  skipped: the scene has no `calibrator_m`, so the zeros stay as good as your eye. Next: measure the tip of a fixed pin from the middle of the base, and write it as `calibrator_m = [x, y, z]` in metres into a scene of your own",
            );
        }
        let places = hand_places::zeros();
        match self.touch_all(CalibrationKind::Zeros, &places).await? {
            StepEnd::Done => self.with_new_zeros().await,
            other => Ok(other),
        }
    }

    async fn sheet(&mut self) -> anyhow::Result<StepEnd> {
        let (_, scene) = self.folders().await?;
        let places = hand_places::sheet(scene.surface.radius_mm().is_some());
        self.touch_all(CalibrationKind::Sheet, &places).await
    }

    /// Has the places touched by hand with a limp arm, and asks before the result is written.
    async fn touch_all(
        &mut self,
        what: CalibrationKind,
        places: &[TouchPlace],
    ) -> anyhow::Result<StepEnd> {
        if !self.let_go().await? {
            return Ok(StepEnd::Left);
        }
        let here = self.here();
        let end =
            guided_touches::collect(self.options, &here, what, places, &mut self.person).await?;
        if end == TouchRoundEnd::Left {
            return Ok(StepEnd::Left);
        }
        self.accept().await
    }

    /// Takes the arm's torque off once a person holds it. Returns `false` if nobody does.
    async fn let_go(&mut self) -> anyhow::Result<bool> {
        let (folders, scene) = self.folders().await?;
        let arm = folders.arm(&scene.arm.file.name);
        if !arm.is_some_and(|arm| arm.energised) {
            return Ok(true);
        }
        let reply = let_go(&self.at, &mut self.person, false).await?;
        Ok(reply.is_some())
    }

    /// Asks whether to write the proposal. If its touches are not good enough, asks whether to discard them.
    async fn accept(&mut self) -> anyhow::Result<StepEnd> {
        let (folders, _) = self.folders().await?;
        if folders.accept_asking(&mut self.person).await? == ExitStatus::Done {
            return Ok(StepEnd::Done);
        }
        let is_touched = !folders.proposal()?.is_by_itself();
        let prompt = match is_touched {
            true => {
                "type the number of a touch to repeat its place, `discard` to delete all touches, or q to quit and keep them"
            }
            false => "type `discard` to delete it and repeat this step, or q to quit and keep it",
        };
        // Only a written word deletes what a hand has measured.
        loop {
            let answer = self.ask(prompt).await;
            match (answer.as_str(), answer.parse()) {
                ("discard", _) => return folders.discard().map(|_| StepEnd::Again),
                ("q", _) => return Ok(StepEnd::Left),
                (_, Ok(number)) if is_touched => {
                    folders.drop_place_of(number)?;
                    return Ok(StepEnd::Again);
                }
                _ => terminal_output::note(&format!(
                    "{answer:?} is not one of these. Nothing was deleted"
                )),
            }
        }
    }
}
