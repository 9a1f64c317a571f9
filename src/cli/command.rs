//! The command line as data: every command with its options.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};

use super::duration::duration;
use super::node_args::{AtArgs, NodeArgs};
use super::serve_args::ServeArgs;
use super::trim::TrimArgs;
use super::{
    audit, bus, calibrate, call, clients, command_groups, doctor, draw, explain, fleet, fonts,
    init, jog, plan, scenes, sim, stop_names, token, tools,
};

/// A robot-arm MCP server that forgives how a caller writes and never forgives physics.
#[derive(Debug, Parser)]
#[command(name = "steadyhand", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub(super) node: NodeArgs,
    #[command(subcommand)]
    pub(super) command: CliCommand,
    /// Sentence on the reading of a line, where that differs from what was typed.
    #[arg(skip)]
    pub(super) remark: Option<String>,
    /// Tells that another node, which words of the line may mean, was not stopped.
    #[arg(skip)]
    pub(super) not_stopped: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Call a tool and show the result
    #[command(after_help = tools::help())]
    Call(call::CallArgs),
    /// Draw a file (SVG, G-code, HP-GL, DXF, JSON, PNG, JPEG) or a text; a real arm asks first
    Draw(Box<draw::DrawArgs>),
    /// Follow a job to its end
    Watch {
        /// The job [default: the one under way]
        job: Option<String>,
        /// Print its result as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Serve MCP on standard input and output, or over HTTP with --http
    Serve(ServeArgs),
    /// Show the tools as a model sees them, or edit declared ones
    #[command(after_help = tools::help())]
    Tools {
        /// text, markdown, json, openai, hermes or page
        #[arg(long, default_value = "text")]
        format: String,
        #[command(subcommand)]
        what: Option<Box<tools::ToolsCommand>>,
    },
    /// List, check and preview scenes
    #[command(subcommand)]
    Scene(scenes::SceneCommand),
    /// List the single-line fonts; --out writes a sheet with a sample of each
    Fonts(fonts::FontsArgs),
    /// Plan a drawing without a node, like `draw --dry-run`
    #[command(hide = true)]
    Plan(plan::PlanArgs),
    /// Find a tool's tip, a sheet's place or joints' zeros by touching; nothing is written before `accept`
    #[command(subcommand)]
    Calibrate(calibrate::CalibrateCommand),
    /// Guide you from the box to the first line
    ///
    /// The steps are port, node, joints, tip, sheet and line. You can leave it and go on later.
    FirstLine(calibrate::first_line::FirstLineArgs),
    /// Move the arm in small checked steps from the keyboard
    Jog(jog::JogArgs),
    /// Teach a scene its poses, sheet, ink caps or calibrator from the arm's position; shows the
    /// values and asks before it writes
    #[command(subcommand)]
    Teach(calibrate::teach::TeachCommand),
    /// Show what a tool would understand of a call, and do nothing
    ///
    /// It also says what each profile would do.
    Explain(explain::ExplainArgs),
    /// Examine a language model before it may move the arm
    #[cfg(feature = "exam")]
    Exam(Box<exam::ExamArgs>),
    /// Not part of this program: it was built without the exam
    #[cfg(not(feature = "exam"))]
    Exam {
        /// Anything
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<String>,
    },
    /// Look at recordings of jobs, export them as data sets and drawings, report on them and replay them
    #[cfg(feature = "recording")]
    Recording(Box<recording::RecordingArgs>),
    /// Not part of this program: it was built without recordings
    #[cfg(not(feature = "recording"))]
    Recording {
        /// Anything
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<String>,
    },
    /// Put a simulated arm on a pseudo-terminal
    Sim(sim::SimArgs),
    /// Look at, set up and replay the servos of a port, without a node
    #[command(subcommand)]
    Bus(bus::BusCommand),
    /// Find out why an arm does not answer
    Doctor(doctor::DoctorArgs),
    /// Print the address of the operator's page and a code
    Page {
        /// The node's control socket
        #[arg(long, value_name = "PATH")]
        socket: Option<std::path::PathBuf>,
    },
    /// Allow the arm to move, for a scene and for a time
    Enable {
        /// The scene; may be repeated
        #[arg(id = "enabled", long = "scene", value_name = "SCENE", required = true)]
        scenes: Vec<String>,
        /// The overlay on it
        #[arg(long)]
        meta: Option<String>,
        /// For how long, such as 90s, 30m or 2h; without it as long as the node runs
        #[arg(long = "for", value_parser = duration)]
        for_: Option<Duration>,
        /// The arm, if several arms of the node draw the scene
        #[arg(long, value_name = "NAME")]
        arm: Option<String>,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Revoke everything that was enabled
    Disable(AtArgs),
    /// Stop the arm: slow down, lift the pen, hold
    ///
    /// Only an operator's `reset` ends it.
    Stop(AtArgs),
    /// Emergency stop: stand where the arm is, no lift. Only `clear` ends it
    Estop(AtArgs),
    /// End an emergency stop; `reset` comes next
    Clear(AtArgs),
    /// Hold the motion at the end of its stroke, pen up; `continue` ends the hold
    Hold {
        /// Hold at once, with a lift, instead of at the end of the stroke
        #[arg(long)]
        now: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Continue the held motion
    ///
    /// It must be enabled, and the arm where it was.
    #[command(alias = "resume")]
    Continue(AtArgs),
    /// Say that a clean sheet lies before the arm
    ///
    /// A canvas keeps its drawings until then.
    NewSheet {
        /// The arm, if the node has several
        #[arg(long, value_name = "NAME")]
        arm: Option<String>,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Raise or lower the pen while it draws: 0.1 is deeper, -0.1 higher
    ///
    /// The scene sets how far (`heights.depth_trim_mm`). The trim ends with the drawing.
    Trim(TrimArgs),
    /// Take torque off every servo: the arm DROPS. Hold it first
    TorqueOff {
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Measure how the arm stops, by small motions; motion must be enabled
    Selftest {
        /// The scene to move in [default: the one last moved in]
        #[arg(long)]
        scene: Option<String>,
        /// Number of stops
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Lift the pen and bring the arm to rest; ends a stop
    Reset {
        /// The scene that defines which way is up, if the node does not know
        #[arg(long)]
        scene: Option<String>,
        /// The arm, if the node has several
        #[arg(long, value_name = "NAME")]
        arm: Option<String>,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Show what the node on this machine is doing
    Status(AtArgs),
    /// Show what was asked, planned and drawn
    ///
    /// It asks the node on this machine. If none runs, it reads --state or --config.
    #[command(args_conflicts_with_subcommands = true)]
    Jobs {
        #[command(subcommand)]
        what: Option<JobsCommand>,
        /// One job, with its plan, pictures, arguments, notes, figures and outcome
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Look at a plan that waits for a person, and allow it
    Approve {
        /// The job; without one, the waiting plans are listed
        job: Option<String>,
        /// Do not ask at the terminal
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Confirm the pen that a drawing waits for, or end its pause; the arm continues
    Pen {
        /// The job; may be left out if only one waits
        job: Option<String>,
        /// The pen that is in the holder, counted from 1: refused if another is awaited
        #[arg(long, value_name = "N")]
        pen: Option<usize>,
        /// Do not ask at the terminal: somebody has put the pen in, and all hands are away
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Repeat a job on a simulated arm, and compare
    Replay(JobReplayArgs),
    /// Hand drawings out to the arms of several nodes
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    /// Write a node file: finds out what is plugged in
    Init(init::InitArgs),
    /// Check a node's file, scenes, port and folders
    Check,
    /// Connect an MCP client: print its entry, or write it into its file
    Clients(clients::ClientsArgs),
    /// Make, list and revoke the tokens of callers on other machines
    #[command(subcommand)]
    Token(token::TokenCommand),
}

/// Which job is carried out again, and by what of it.
#[derive(Debug, Args)]
pub(super) struct JobReplayArgs {
    /// Which job
    pub(super) job: String,
    /// Replay the bytes that went to the arm instead of the plan
    #[arg(long)]
    pub(super) bytes: bool,
    /// Replay the recorded setpoints instead of the plan, of a job or of a recording's file
    #[cfg(feature = "recording")]
    #[arg(long, conflicts_with = "bytes")]
    pub(super) setpoints: bool,
}

/// Commands about the record of jobs.
#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// Work with audit logs
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

/// Options that take a safeguard away. No mistyped option may lead to them.
const OVERRIDES: [&str; 4] = ["--calibrated", "--allow-root", "--yes", "--again"];

impl Cli {
    /// Reads the command line, or ends the process with what is wrong with it. What means a stop is one.
    #[must_use]
    pub fn of_process() -> Self {
        let line: Vec<OsString> = std::env::args_os().collect();
        let read = match command_groups::help(&line) {
            Some(help) => Err(help),
            None => Self::try_parse_from(&line),
        };
        let read = read.or_else(|error| elsewhere(&error, &line).unwrap_or(Err(error)));
        let read = read.or_else(|error| drawing_of(&line).ok_or(error));
        // Help and the version are no mistakes.
        let stop = |error: clap::Error| match error.use_stderr() {
            true => stop_names::of(&line).unwrap_or(Err(error)),
            false => Err(error),
        };
        read.or_else(stop)
            .unwrap_or_else(|error| advised(error).exit())
    }
}

/// Commands of before, and where they are now.
const MOVED: [(&str, &[&str]); 4] = [
    ("reach", &["scene", "reach"]),
    ("arm", &["init"]),
    ("nodes", &["fleet", "nodes"]),
    ("audit", &["jobs", "audit"]),
];

/// Reads a line again whose command is another's now.
fn elsewhere(error: &clap::Error, line: &[OsString]) -> Option<Result<Cli, clap::Error>> {
    let ContextValue::String(name) = error.get(ContextKind::InvalidSubcommand)? else {
        return None;
    };
    let (_, now) = MOVED.iter().find(|(before, _)| before == name)?;
    let mut places = (0..line.len()).filter(|at| line.get(*at).is_some_and(|w| w == name.as_str()));
    // The value of an option may be the same word.
    places.find_map(|at| {
        let before = line.iter().take(at).cloned();
        let words = before.chain(now.iter().map(OsString::from));
        let read = Cli::try_parse_from(words.chain(line.iter().skip(at + 1).cloned()));
        let is_value = |error: &clap::Error| error.kind() == ErrorKind::InvalidSubcommand;
        (!read.as_ref().is_err_and(is_value)).then_some(read)
    })
}

/// Returns the drawing that a line means whose first word, options aside, is a file: `steadyhand logo.svg --fit`.
fn drawing_of(line: &[OsString]) -> Option<Cli> {
    let at = line
        .iter()
        .skip(1)
        .position(|word| Path::new(word).is_file())?
        + 1;
    let (before, file) = line.split_at_checked(at)?;
    // Options before a file may have taken it as their value.
    let words = before.iter().cloned();
    let words = words.chain(std::iter::once("draw".into()));
    Cli::try_parse_from(words.chain(file.iter().cloned())).ok()
}

/// Takes back the advice to use an option that takes a safeguard away, and adds advice of our own.
fn advised(mut error: clap::Error) -> clap::Error {
    let text = |value: &ContextValue| value.to_string();
    let usage = error.get(ContextKind::Usage).map(text).unwrap_or_default();
    let draws = ["draw", "plan"]
        .iter()
        .any(|command| usage.contains(&format!("steadyhand {command} ")));
    let suggested = error.get(ContextKind::SuggestedArg).map(text);
    let is_override = |option: &str| OVERRIDES.iter().any(|one| option.starts_with(one));
    if suggested.is_some_and(|option| is_override(&option)) {
        error.remove(ContextKind::SuggestedArg);
        // The usage line names what was suggested.
        error.remove(ContextKind::Usage);
    }
    let unknown = error.get(ContextKind::InvalidArg).map(text);
    let unknown = unknown.unwrap_or_default();
    let number = unknown.strip_prefix('-').unwrap_or_default();
    let advice = match draws && unknown.starts_with("--scale") {
        true => Some("give the drawing's size: --size 60mm (its longer side), or --fit"),
        false if number.starts_with(|c: char| c.is_ascii_digit()) => {
            Some("a value that begins with - must follow an =, such as `--for=-5m`")
        }
        false => None,
    };
    if let Some(advice) = advice {
        let advice = ContextValue::StyledStrs(vec![advice.into()]);
        error.insert(ContextKind::Suggested, advice);
    }
    error
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_command_of_before_is_read_where_it_is_now() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        for (before, now) in MOVED {
            let line = words(&format!("steadyhand --scenes {before} {before} --help"));
            let error = Cli::try_parse_from(&line).unwrap_err();
            let read = elsewhere(&error, &line).unwrap().unwrap_err();
            let usage = format!("steadyhand {}", now.join(" "));
            assert!(read.to_string().contains(&usage), "{read}");
        }
        let line = words("steadyhand reach short --json");
        let error = Cli::try_parse_from(&line).unwrap_err();
        let read = elsewhere(&error, &line).unwrap().unwrap();
        assert!(matches!(read.command, CliCommand::Scene(_)));
        let unknown = words("steadyhand reaches short");
        let error = Cli::try_parse_from(&unknown).unwrap_err();
        assert!(elsewhere(&error, &unknown).is_none());
    }

    #[test]
    fn a_file_alone_is_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("logo.svg");
        std::fs::write(&file, "<svg/>").unwrap();
        let line = |file: &Path| ["steadyhand".into(), file.into(), "--fit".into()];
        let read = drawing_of(&line(&file)).unwrap();
        assert!(matches!(read.command, CliCommand::Draw(_)));
        assert!(drawing_of(&line(&folder.path().join("none.svg"))).is_none());
    }

    #[test]
    fn no_mistake_leads_to_an_option_that_takes_a_safeguard_away() {
        let told = |line: &str| {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            advised(error).to_string()
        };
        let scale = told("steadyhand draw house.svg --scale 2");
        assert!(scale.contains("--size 60mm"), "{scale}");
        for (line, typed) in [
            ("steadyhand draw house.svg --scale 2", "--scale"),
            ("steadyhand plan default --scale 2", "--scale"),
            (
                "steadyhand draw house.svg --calibrate elsewhere",
                "--calibrate",
            ),
            ("steadyhand draw house.svg --allow-roots", "--allow-roots"),
            ("steadyhand draw house.svg --yess", "--yess"),
        ] {
            let advice = told(line).replace(typed, "");
            let named = OVERRIDES.iter().find(|option| advice.contains(**option));
            assert_eq!(named, None, "{advice}");
        }
        let serve = told("steadyhand serve --scale 2");
        assert!(!serve.contains("60mm"), "{serve}");
        let size = told("steadyhand draw house.svg --sizes 60mm");
        assert!(size.contains("--size"), "{size}");
    }

    #[test]
    fn negative_values_are_refused_by_what_is_possible() {
        for (line, said) in [
            (
                "steadyhand draw house.svg --merge -1mm",
                "this is -1 mm; 0 to",
            ),
            (
                "steadyhand draw house.svg --simplify -1mm",
                "this is -1 mm; 0 to",
            ),
            (
                "steadyhand enable --scene default --for=-5m",
                "1 second to 7 days",
            ),
            (
                "steadyhand draw --text --size 60mm",
                "the value before `--size` is missing",
            ),
        ] {
            let told = Cli::try_parse_from(line.split(' '))
                .unwrap_err()
                .to_string();
            assert!(told.contains(said), "{line}: {told}");
        }
    }

    #[test]
    fn a_value_that_begins_with_a_minus_is_told_how_it_is_written() {
        for line in [
            "steadyhand enable --scene default --for -5m",
            "steadyhand fleet nodes --for -5s",
            "steadyhand calibrate touch sheet --scene default --mm -5",
            "steadyhand scene new mine --sheet -100x80mm",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            let told = advised(error).to_string();
            assert!(told.contains("`--for=-5m`"), "{line}: {told}");
        }
        let draw = "steadyhand draw --text -hi --rotate -5 --at -3,4";
        assert!(Cli::try_parse_from(draw.split(' ')).is_ok());
    }

    #[test]
    fn enabling_parses_with_the_global_options() {
        let line = "steadyhand --scenes mine enable --scene letters --scene default --for 30m";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        assert_eq!(cli.node.scenes, Some(PathBuf::from("mine")));
        let CliCommand::Enable { scenes, for_, .. } = cli.command else {
            panic!("not read as `enable`");
        };
        assert_eq!(scenes, ["letters", "default"]);
        assert_eq!(for_, Some(Duration::from_secs(1800)));
    }
}
