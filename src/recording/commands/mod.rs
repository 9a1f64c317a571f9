//! `recording`: shows, exports and replays recordings. Wiring only.

mod export;
mod replay;
mod report;
mod show;

pub(crate) use report::report_html;
pub(crate) use show::summary_json;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};

use crate::RECORDING;
use crate::recorded_job::{RecordedJob, is_job_name};
use node::{ExitStatus, NodeOptions, open, state_folder};

/// `recording`.
#[derive(Debug, Args)]
pub struct RecordingArgs {
    #[command(subcommand)]
    what: RecordingCommand,
}

#[derive(Debug, Subcommand)]
enum RecordingCommand {
    /// Show a recording, and paint plan, ink and error over time
    Show {
        /// A job of the node that runs here, or whose state --state or --config names, or a file
        of: String,
        /// The picture to write [default: JOB-recording.png in --output's folder]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// As JSON, without a picture
        #[arg(long)]
        json: bool,
    },
    /// Write recordings as a LeRobot data set, tables, drawings or G-code
    Export {
        /// In which form
        #[arg(value_enum)]
        form: ExportForm,
        /// Jobs or files, in the order of the export
        #[arg(required = true, value_name = "JOB")]
        of: Vec<String>,
        /// The folder to write into
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Frames a second of a LeRobot data set
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        fps: u32,
    },
    /// Write a report of a recording
    Report {
        /// A job, or a file
        of: String,
        /// The HTML file to write [default: JOB-recording.html in --output's folder]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// The same as `steadyhand replay --setpoints`
    #[command(hide = true)]
    Replay {
        /// A job, or a file
        of: String,
    },
}

impl RecordingArgs {
    /// Returns the command that carries out recorded setpoints on a simulated arm, through the same gate.
    #[must_use]
    pub const fn replay(of: String) -> Self {
        Self {
            what: RecordingCommand::Replay { of },
        }
    }

    /// Returns whether a job of a node is named, rather than only files.
    #[must_use]
    pub fn names_job(&self) -> bool {
        let named = match &self.what {
            RecordingCommand::Show { of, .. }
            | RecordingCommand::Report { of, .. }
            | RecordingCommand::Replay { of } => std::slice::from_ref(of),
            RecordingCommand::Export { of, .. } => of,
        };
        named.iter().any(|of| !Path::new(of).is_file())
    }
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportForm {
    /// A `LeRobotDataset` v3.0, an episode a stroke
    Lerobot,
    /// A table, a row a tick
    Csv,
    /// The ink as it was drawn
    Svg,
    /// The ink as it was drawn, as moves
    Gcode,
}

/// Runs the command.
///
/// # Errors
/// Names the recording that cannot be used, and the reason.
pub async fn run(node: &NodeOptions, args: RecordingArgs) -> anyhow::Result<ExitStatus> {
    match args.what {
        RecordingCommand::Show { of, out, json } => show::run(node, &of, out, json),
        RecordingCommand::Export { form, of, out, fps } => export::run(node, form, &of, &out, fps),
        RecordingCommand::Report { of, out } => report::run(node, &of, out),
        RecordingCommand::Replay { of } => replay::run(node, &of).await,
    }
}

/// Reads a recording, named by its file or its job.
fn read_recording(node: &NodeOptions, name: &str) -> anyhow::Result<RecordedJob> {
    let path = recording_path(node, name)?;
    Ok(RecordedJob::read(&path)?)
}

fn recording_path(node: &NodeOptions, name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(name);
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => return Ok(path.to_owned()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            bail!("cannot read {}: {error}", path.display())
        }
        _ => {}
    }
    if !is_job_name(name) {
        bail!("there is no file {name}. Next: `steadyhand jobs` lists the jobs of a node");
    }
    let file = open::file(node)?;
    let state = state_folder::place(node, &file)?;
    let path = job::folder(&state, name).join(RECORDING);
    if !path.is_file() {
        bail!(
            "there is no recording {name}: it is neither a file nor a recorded job of {}. (--record, or `record = true` in the node file, records jobs.) Next: `steadyhand jobs` lists them, with --config FILE or --state DIR of their node",
            state.display()
        );
    }
    Ok(path)
}

/// Returns the path of a recording's output: as requested, or its default.
fn output_path(
    requested: Option<PathBuf>,
    node: &NodeOptions,
    job: &RecordedJob,
    extension: &str,
) -> anyhow::Result<PathBuf> {
    if let Some(requested) = requested {
        return Ok(requested);
    }
    let folder = open::or_temporary(node.output.clone())?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    Ok(folder.join(format!("{}-recording.{extension}", job.name())))
}
