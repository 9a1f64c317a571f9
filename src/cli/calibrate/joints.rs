//! `calibrate joints`: each joint moved through its range by hand, beside a live table.
//!
//! Attaching moves nothing, and torque goes off after a person has agreed to hold the arm. What is
//! found is shown, asked for, and saved with who the servos are: a node attaches no others from then on.

use std::io::BufRead;
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
use node::measurements::NodeMeasurements;
use node::operator_verb::{OperatorVerb, VerbReply};

/// Interval at which the table is redrawn.
const EVERY: Duration = Duration::from_millis(150);

/// A recording with more lines is not read.
const LINES_MAX: usize = 200_000;

#[derive(Debug, Args)]
pub(crate) struct JointsArgs {
    /// Which arm
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
    let ended = with_person(node, args, &mut OperatorInput::listen()?).await?;
    Ok(ended.unwrap_or(ExitStatus::Refused))
}

/// Does it with a person who is listened to already; `None` where that person leaves.
pub(super) async fn with_person(
    node: &NodeOptions,
    args: &JointsArgs,
    person: &mut OperatorInput,
) -> anyhow::Result<Option<ExitStatus>> {
    let place = CalibrationFolders::find(node, &args.at).await?;
    let arm = place.library.arm(&args.arm)?;
    let mut ranges = RangeRecorder::new(&arm);
    let present = place.arm(&arm.file.name);
    let servos = present.map(|seen| seen.identity.clone());
    match &args.from {
        Some(file) => replay(file, &mut ranges)?,
        None => {
            let Some(at) = place.running.as_ref().filter(|_| present.is_some()) else {
                bail!(
                    "no running node has an arm {}, and --from says no recording: {}",
                    arm.file.name,
                    place.absent
                );
            };
            if present.is_some_and(|seen| seen.energised) {
                let Some(told) = let_go(at, person, args.consent.yes).await? else {
                    terminal_output::line(&format!("nothing was changed; {}", torque(true)));
                    return Ok(Some(ExitStatus::Refused));
                };
                terminal_output::line(&told.text);
            }
            if !by_hand(args, at, &mut ranges, person).await? {
                terminal_output::line(&format!("left: nothing was saved; {}", torque(false)));
                return Ok(None);
            }
        }
    }
    terminal_output::line(ranges.table().trim_end());
    let found = match ranges.result() {
        Ok(found) => found,
        Err(complaints) => {
            terminal_output::lines(complaints.iter().map(|why| format!("redo: {why}")));
            return Ok(Some(ExitStatus::Refused));
        }
    };
    let servos = servos.filter(|servos| !servos.is_empty());
    let saved = save(&place, args, &found, servos.as_ref(), person).await?;
    Ok(Some(saved))
}

/// Takes torque off once a person holds the arm. Returns `None` if no person does.
pub(super) async fn let_go(
    at: &AtArgs,
    person: &mut OperatorInput,
    yes: bool,
) -> anyhow::Result<Option<VerbReply>> {
    let warning = "torque goes off and the arm will drop: hold it.";
    if !person.confirm(warning, yes).await? {
        return Ok(None);
    }
    let told = operator_client::ask_for(at, &OperatorVerb::TorqueOff).await?;
    Ok(Some(told))
}

fn replay(file: &std::path::Path, ranges: &mut RangeRecorder<'_>) -> anyhow::Result<()> {
    let opened = std::fs::File::open(file);
    let opened = opened.with_context(|| format!("cannot read {}", file.display()))?;
    let reader = std::io::BufReader::new(opened);
    for (number, line) in reader.lines().take(LINES_MAX).enumerate() {
        let line: RecordingLine = serde_json::from_str(&line?).map_err(|error| {
            anyhow!(
                "{}: line {}, column {}: no reading; one is {{\"ticks\": {{\"1\": 2048}}}}, whole counts by the servos' ids, or {{\"enter\": true}}",
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

/// Reads the node again and again; Enter says that what was asked for is done. Returns `false` where the person leaves.
async fn by_hand(
    args: &JointsArgs,
    at: &AtArgs,
    ranges: &mut RangeRecorder<'_>,
    person: &mut OperatorInput,
) -> anyhow::Result<bool> {
    let mut unknown = String::new();
    while let Some(task) = ranges.task() {
        let told = operator_client::ask(at, &OperatorVerb::Measured).await?;
        let seen: NodeMeasurements = operator_client::read_text(&told)?;
        let arm = seen.arms.into_iter().find(|seen| seen.model == args.arm);
        let arm = arm.context("the node does not read the arm any more: `steadyhand status`")?;
        if arm.energised {
            bail!("torque came on again: nothing was saved");
        }
        ranges.observe(&arm.ticks);
        terminal_output::clear();
        let sketch = sketch(ranges.arm(), ranges.joint());
        terminal_output::line(&format!("{}\n{sketch}\n{task}{unknown}", ranges.table()));
        tokio::select! {
            said = person.next_input() => match said {
                OperatorAnswer::Line(said) => match said.trim() {
                    "" => {
                        unknown.clear();
                        ranges.next();
                    }
                    "q" | "Q" => return Ok(false),
                    other => unknown = format!("\n{other:?} is neither Enter nor q, which leaves: it was not heeded"),
                },
                OperatorAnswer::Interrupt => return Ok(false),
                OperatorAnswer::End => bail!("the input ended before every joint was moved: nothing was saved; {}", torque(false)),
            },
            () = pause(EVERY) => {}
        }
    }
    Ok(true)
}

async fn save(
    place: &CalibrationFolders,
    args: &JointsArgs,
    found: &RangeResult,
    servos: Option<&std::collections::BTreeMap<u8, String>>,
    person: &mut OperatorInput,
) -> anyhow::Result<ExitStatus> {
    terminal_output::line(report::compared(&found.old, &found.new).trim_end());
    let overridden = args.consent.change.overridden;
    if !place.may_turn(&args.arm, &found.new, found.turn_deg, overridden)? {
        return Ok(ExitStatus::Refused);
    }
    let question = "write this into the arm's file?";
    if !person.confirm(question, args.consent.yes).await? {
        // Where it was moved by hand it is limp now, whatever it was when this began.
        return terminal_output::refused(&match args.from {
            None => format!("nothing was written; {}", torque(false)),
            Some(_) => "nothing was written".to_owned(),
        });
    }
    let lock = place.store.lock()?;
    let arm = place.library.arm(&args.arm)?;
    let record = CalibrationRecord {
        old: found.old.clone(),
        new: found.new.clone(),
        ..place.record_of_zeros(&arm.file, "joints by hand")
    };
    place.write_with(&record, servos, &lock)?;
    if servos.is_some() {
        terminal_output::line("the file knows these servos now: a node attaches no others");
    }
    Ok(ExitStatus::Done)
}
