//! `calibrate joints`: a person moves each joint through its range by hand, next to a live table.
//!
//! Attaching moves nothing, and torque goes off after a person has agreed to hold the arm. The result is shown and, with
//! consent, saved with the identities of the servos: from then on a node attaches no others.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde::Deserialize;

use super::arguments::ConsentArgs;
use super::operator_input::{OperatorAnswer, OperatorInput};
use super::place::{CalibrationFolders, torque};
use super::pose_sketch::sketch;
use crate::{AtArgs, ExitStatus, NodeOptions, operator_client, terminal_output};
use base::task::pause;
use calib::{self, CalibrationRecord, RangeRecorder, RangeResult, ServoTicks, report};
use node::measurements::{MeasuredArm, NodeMeasurements};
use node::operator_verb::{OperatorVerb, VerbReply};

/// Interval at which the table is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(150);

/// Most lines of a recording that are read.
const LINES_MAX: usize = 200_000;

#[derive(Debug, Args)]
pub(crate) struct JointsArgs {
    /// Which arm: its model, or its name on the node if the node has several of that model
    #[arg(long, default_value = "so101")]
    pub(super) arm: String,
    /// A recording instead of a running node: a line `{"ticks": {"1": 2048, …}}` a reading, and
    /// `{"enter": true}` where Enter was pressed
    #[arg(long, value_name = "FILE")]
    pub(super) from: Option<PathBuf>,
    #[command(flatten)]
    pub(super) consent: ConsentArgs,
    #[command(flatten)]
    pub(super) at: AtArgs,
}

/// A line of a recording.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordingLine {
    #[serde(default)]
    ticks: ServoTicks,
    #[serde(default)]
    enter: bool,
}

pub(super) async fn run(node: &NodeOptions, args: &JointsArgs) -> anyhow::Result<ExitStatus> {
    let folders = CalibrationFolders::find(node, &args.at).await?;
    let ended = with_person(folders, args, &mut OperatorInput::listen()?).await?;
    Ok(ended.unwrap_or(ExitStatus::Refused))
}

/// Calibrates with a person whose input is already being read; `None` if that person leaves.
pub(super) async fn with_person(
    folders: CalibrationFolders,
    args: &JointsArgs,
    person: &mut OperatorInput,
) -> anyhow::Result<Option<ExitStatus>> {
    let (folders, model) = folders.named(&args.arm)?;
    let arm = folders.library.arm(&model)?;
    let mut ranges = RangeRecorder::new(&arm);
    let measured_arm = folders.arm(&arm.file.name);
    let servos = measured_arm.map(|arm| arm.identity.clone());
    match &args.from {
        Some(file) => replay(file, &mut ranges)?,
        None => {
            let Some((at, measured_arm)) = folders.running.as_ref().zip(measured_arm) else {
                bail!(
                    "no running node has an arm of model {}, and --from names no file of readings: {}",
                    arm.file.name,
                    folders.absent
                );
            };
            if measured_arm.energised {
                let Some(reply) = let_go(at, person, args.consent.yes).await? else {
                    terminal_output::line(&format!("nothing was changed; {}", torque(true)));
                    return Ok(Some(ExitStatus::Refused));
                };
                terminal_output::line(&reply.text);
            }
            if !record_by_hand(measured_arm, at, &mut ranges, person).await? {
                terminal_output::line(&format!("you quit: nothing was saved; {}", torque(false)));
                return Ok(None);
            }
        }
    }
    terminal_output::line(ranges.table().trim_end());
    let result = match ranges.result() {
        Ok(result) => result,
        Err(complaints) => {
            terminal_output::lines(complaints.iter().map(|text| format!("redo: {text}")));
            return Ok(Some(ExitStatus::Refused));
        }
    };
    let servos = servos.filter(|servos| !servos.is_empty());
    let saved = save(&folders, (args, &model), &result, servos.as_ref(), person).await?;
    Ok(Some(saved))
}

/// Takes torque off once a person holds the arm. Returns `None` if no person does.
pub(super) async fn let_go(
    at: &AtArgs,
    person: &mut OperatorInput,
    yes: bool,
) -> anyhow::Result<Option<VerbReply>> {
    let warning = "torque goes off and the arm drops: hold the arm.";
    if !person.confirm(warning, yes).await? {
        return Ok(None);
    }
    let reply = operator_client::require(at, &OperatorVerb::TorqueOff).await?;
    Ok(Some(reply))
}

fn replay(file: &std::path::Path, ranges: &mut RangeRecorder<'_>) -> anyhow::Result<()> {
    let text = super::super::files::read(file)?;
    for (number, line) in text.lines().take(LINES_MAX).enumerate() {
        let line: RecordingLine = serde_json::from_str(line).map_err(|error| {
            anyhow!(
                "{}: line {}, column {} is not a reading. A reading is {{\"ticks\": {{\"1\": 2048}}}} (whole counts by servo id) or {{\"enter\": true}}",
                file.display(),
                number + 1,
                error.column()
            )
        })?;
        ranges.observe(&line.ticks);
        if line.enter {
            ranges.next();
        }
    }
    Ok(())
}

/// Polls the node until every joint was moved; Enter completes a task. Returns `false` if the person leaves.
async fn record_by_hand(
    recorded: &MeasuredArm,
    at: &AtArgs,
    ranges: &mut RangeRecorder<'_>,
    person: &mut OperatorInput,
) -> anyhow::Result<bool> {
    let mut hint = String::new();
    while let Some(task) = ranges.task() {
        let reply = operator_client::ask(at, &OperatorVerb::Measured).await?;
        let measured: NodeMeasurements = operator_client::parse_text(&reply)?;
        let is_it = |arm: &MeasuredArm| arm.name == recorded.name && arm.model == recorded.model;
        let arm = measured.arms.into_iter().find(is_it);
        let arm = arm.context("the node no longer reads the arm. Next: `steadyhand status`")?;
        if arm.energised {
            bail!("torque is on again. Nothing was saved");
        }
        let unread = arm.unread.map(|reason| format!("\n{reason}"));
        if unread.is_none() {
            ranges.observe(&arm.ticks);
        }
        terminal_output::clear();
        let sketch = sketch(ranges.arm(), ranges.joint());
        let hints = unread.as_deref().unwrap_or_default();
        terminal_output::line(&format!(
            "{}\n{sketch}\n{task}{hints}{hint}",
            ranges.table()
        ));
        tokio::select! {
            answer = person.next_input() => match answer {
                OperatorAnswer::Line(answer) => match answer.trim() {
                    "" if unread.is_some() => {
                        hint = "\nthe arm cannot be read now, so Enter was ignored".to_owned();
                    }
                    "" => hint = end_task(ranges),
                    "q" | "Q" => return Ok(false),
                    other => hint = format!("\n{other:?} was ignored: press Enter, or type q to quit"),
                },
                OperatorAnswer::Interrupt => return Ok(false),
                OperatorAnswer::End => bail!("the input ended before every joint was moved. Nothing was saved; {}", torque(false)),
            },
            () = pause(REDRAW_INTERVAL) => {}
        }
    }
    Ok(true)
}

/// Completes the present task, or begins it again and returns why: a person corrects a joint while it is at hand.
fn end_task(ranges: &mut RangeRecorder<'_>) -> String {
    let problems = ranges.problems_now();
    if problems.is_empty() {
        ranges.next();
    } else {
        ranges.again();
    }
    let lines = problems.iter().map(|problem| format!("\nredo: {problem}"));
    let mut hint: String = lines.collect();
    if !problems.is_empty() {
        hint += "\nmove the joint again and press Enter, or type q to quit and start again from the zero pose";
    }
    hint
}

async fn save(
    folders: &CalibrationFolders,
    (args, model): (&JointsArgs, &str),
    result: &RangeResult,
    servos: Option<&std::collections::BTreeMap<u8, String>>,
    person: &mut OperatorInput,
) -> anyhow::Result<ExitStatus> {
    terminal_output::line(report::comparison(&result.old, &result.new).trim_end());
    let overridden = args.consent.change.overridden;
    if !folders.may_turn(model, &result.new, result.turn_deg, overridden)? {
        return Ok(ExitStatus::Refused);
    }
    let question = "write this into the arm's file?";
    if !person.confirm(question, args.consent.yes).await? {
        // An arm that was moved by hand is limp now, regardless of its state at the beginning.
        return terminal_output::refused(&match args.from {
            None => format!("nothing was written; {}", torque(false)),
            Some(_) => "nothing was written".to_owned(),
        });
    }
    let lock = folders.store.lock()?;
    let arm = folders.library.arm(model)?;
    let record = CalibrationRecord {
        old: result.old.clone(),
        new: result.new.clone(),
        ..folders.record_of_zeros(&arm.file, "joints by hand")
    };
    folders.write_with(&record, servos, &lock)?;
    if servos.is_some() {
        terminal_output::line("the file now names these servos, so a node accepts only them");
    }
    Ok(ExitStatus::Done)
}
