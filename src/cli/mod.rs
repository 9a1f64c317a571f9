//! The command line: wiring only. Everything that a command does is done in another room.

mod approve;
mod arm;
mod audit;
mod bus;
mod calibrate;
mod call;
mod check;
mod doctor;
mod exam;
mod explain;
mod init;
mod jobs;
mod jog;
mod keys;
mod operate;
mod plan;
mod playback;
mod reach;
mod recorded;
mod replay;
mod scenes;
mod show;
mod sim;
mod token;
mod tools;
mod trace;

pub use node::{Exit, desk};
pub use show::harmless;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use caller::Role;
use node::serve::{HttpAt, ServeOptions};
use node::{Options, control_socket, serve, systemd};

/// A robot-arm MCP server that forgives how a caller writes and never forgives physics.
#[derive(Debug, Parser)]
#[command(name = "steadyhand", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    node: NodeArgs,
    #[command(subcommand)]
    command: Command,
}

/// Which node this process is, if it is one.
#[derive(Debug, Clone, Args)]
struct NodeArgs {
    /// The node file; without one, a node with an embedded simulated SO-101
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A folder of scenes that come before the ones in the binary
    #[arg(long, global = true, value_name = "DIR")]
    scenes: Option<PathBuf>,
    /// Where pictures and reports are written [default: a folder in the system's temporary one]
    #[arg(long, global = true, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Where stops, jobs and keys are kept [default: the user's state folder; a temporary one where
    /// there is neither a node file nor a real port]
    #[arg(long, global = true, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The serial port of the node's first arm, instead of what the node file says
    #[arg(long, global = true, value_name = "PATH")]
    port: Option<String>,
    /// `elsewhere`: this arm, its tools and its sheets were measured by other means, and whoever says so answers for them; as
    /// `calibrated` in the node file, and for its first arm
    #[arg(long, global = true, value_name = "WHERE", value_parser = ["elsewhere"])]
    calibrated: Option<String>,
    /// Write every byte to and from the ports of the node's arms to this file
    #[arg(long, global = true, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// How the log is written [default: fields under systemd's journal, text elsewhere]
    #[arg(long, global = true, value_enum)]
    log: Option<LogForm>,
    /// Drive a real serial port although this process runs as root
    #[arg(long, global = true)]
    allow_root: bool,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LogForm {
    /// For people.
    Text,
    /// One object a line.
    Json,
    /// Fields in systemd's journal.
    Journal,
}

impl From<LogForm> for node::log::Form {
    fn from(form: LogForm) -> Self {
        match form {
            LogForm::Text => Self::Text,
            LogForm::Json => Self::Json,
            LogForm::Journal => Self::Journal,
        }
    }
}

impl From<NodeArgs> for Options {
    fn from(args: NodeArgs) -> Self {
        Self {
            config: args.config,
            scenes: args.scenes,
            output: args.output,
            state: args.state,
            port: args.port,
            calibrated_elsewhere: args.calibrated.is_some(),
            trace: args.trace,
            allow_root: args.allow_root,
            exams: Some(&exam::NodeExams),
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Call a tool and show what came of it: here on a node of its own, or on another node
    #[command(after_help = tools::help())]
    Call(CallArgs),
    /// Serve MCP: on standard input and output, or over HTTP with --http
    Serve(ServeArgs),
    /// Show the tools as a model sees them, or edit those that the node file declares
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
    Scene(SceneCommand),
    /// Plan a drawing and say how long it takes and what would be refused, without a node
    Plan(plan::PlanArgs),
    /// Show where the sheet may lie for a scene's arm and pen, and where it would lie better
    Reach(reach::ReachArgs),
    /// Make an arm's file from a URDF
    #[command(subcommand)]
    Arm(arm::ArmCommand),
    /// Find a tool's tip, a sheet's place or joints' zeros by touching; nothing is written before `accept`
    #[command(subcommand)]
    Calibrate(calibrate::CalibrateCommand),
    /// Move the arm in small steps from the keyboard; each is planned and checked like any motion
    Jog(jog::JogArgs),
    /// Teach a scene its poses, sheet, ink caps or calibrator from where the arm is; shown, asked for
    /// and kept
    #[command(subcommand)]
    Teach(calibrate::teach::TeachCommand),
    /// Show what a tool would understand, and what each profile would do; nothing is called
    Explain(ExplainArgs),
    /// Examine a language model before it may move the arm, and look at what came of it
    Exam(Box<exam::ExamArgs>),
    /// Put a simulated arm on a pseudo-terminal, for any program that opens serial ports
    Sim(SimArgs),
    /// Look at, set up and replay the servos of a port, without a node
    #[command(subcommand)]
    Bus(bus::BusCommand),
    /// Say why an arm does not answer, and what to do about it; nothing is written
    Doctor(doctor::DoctorArgs),
    /// Allow motion for scenes, on the node that runs on this machine
    Enable {
        /// The scene; say it once for each
        #[arg(id = "enabled", long = "scene", value_name = "SCENE", required = true)]
        scenes: Vec<String>,
        /// The overlay on it
        #[arg(long)]
        meta: Option<String>,
        /// For how long, such as 90s, 30m or 2h; without it as long as the node runs
        #[arg(long = "for", value_parser = duration)]
        for_: Option<Duration>,
        /// The arm, where several of the node draw the scene
        #[arg(long, value_name = "NAME")]
        arm: Option<String>,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Take back all that was enabled
    Disable(AtArgs),
    /// Stop the arm: decelerate, lift the pen, hold. Only an operator's reset goes on
    Stop(AtArgs),
    /// Emergency stop: stand where the arm is, no lift. Only `clear` ends it
    Estop(AtArgs),
    /// End an emergency stop; `reset` comes next
    Clear(AtArgs),
    /// Hold the motion under way at the end of its stroke, pen up; `resume` goes on
    Hold {
        /// At once, with a lift, and not at the end of the stroke
        #[arg(long)]
        now: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Go on with what is held, if it is enabled and the arm is where it was
    Resume(AtArgs),
    /// Take torque off every servo: the arm DROPS. Hold it first
    TorqueOff {
        /// Do not ask
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Measure how the attached arm stops, by small motions; motion must be enabled
    Selftest {
        /// The scene to move in [default: the one last moved in]
        #[arg(long)]
        scene: Option<String>,
        /// How many stops
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        rounds: u32,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Lift the pen and bring the arm to rest, as an operator
    Reset {
        /// The scene that says which way is up, where the node does not know
        #[arg(long)]
        scene: Option<String>,
        /// The arm, where the node has several
        #[arg(long, value_name = "NAME")]
        arm: Option<String>,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Show what the node on this machine is doing
    Status(AtArgs),
    /// Show what was asked, planned and done: of the node on this machine, or from --state or
    /// --config where it does not run
    Jobs {
        /// One job, with its plan, pictures, arguments, notes, figures and outcome
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Look at a plan that waits for a person, and let the arm carry it out
    Approve {
        /// Which job; without one, what waits is listed
        job: Option<String>,
        /// Do not ask at the terminal
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Carry out an earlier job's plan, or its recorded bytes, on a simulated arm, and compare
    Replay {
        /// Which job
        job: String,
        /// The bytes that went to the arm, and not the plan that they came from
        #[arg(long)]
        bytes: bool,
    },
    /// Work with audit logs
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Write a node file: asks what is plugged in, or takes what is said
    Init(init::InitArgs),
    /// Say everything that is wrong with a node before it is started: file, scenes, port, folders
    Check,
    /// Make, list and revoke the tokens by which callers from elsewhere come in
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token and print it; it cannot be shown again
    Add {
        /// Whose it is, such as claude-desktop
        name: String,
        /// viewer, planner or operator
        #[arg(long, default_value = "planner")]
        role: Role,
        /// So many calls a minute; stops are not counted
        #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=60_000))]
        calls_per_minute: u32,
        /// It ends by itself after so many days; without it only when it is revoked
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650))]
        expires: Option<u32>,
        /// Its holder moves the arm only with a certificate of this level, whatever the node file says
        #[arg(long, value_name = "LEVEL")]
        qualified: Option<::exam::Level>,
    },
    /// Show names, roles, when they end, and certificates
    List,
    /// End a token at once
    Revoke {
        /// Whose
        name: String,
    },
}

/// Which node.
#[derive(Debug, Clone, Args)]
struct AtArgs {
    /// The node's control socket, where several nodes run on this machine
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// A node elsewhere, such as https://arm.example:8700, for whoever has an operator's token
    #[arg(
        long,
        value_name = "URL",
        requires = "token_file",
        conflicts_with = "socket"
    )]
    node: Option<String>,
    /// The file that holds the token
    #[arg(long, value_name = "FILE", requires = "node")]
    token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct CallArgs {
    /// The tool, such as stroke
    tool: String,
    /// Its arguments, sent as typed: `{"scene":"letters"}`, or anything that a model might send
    arguments: Option<String>,
    /// Another node, such as http://127.0.0.1:8700/mcp, instead of one in this process
    #[arg(long, value_name = "URL")]
    node: Option<String>,
    /// The file that holds the token for that node
    #[arg(long, value_name = "FILE", requires = "node")]
    token_file: Option<PathBuf>,
    /// Print the structured result alone
    #[arg(long)]
    json: bool,
    /// Scenes to enable first, where the arm is not the embedded simulator
    #[arg(long, value_name = "SCENE", num_args = 1..)]
    enable: Vec<String>,
}

#[derive(Debug, Args)]
struct ServeArgs {
    /// Speak streamable HTTP at this address, under /mcp; `systemd` for the socket that it opened
    #[arg(long, value_name = "ADDRESS")]
    http: Option<HttpAt>,
    /// With --http: speak on standard input and output as well; their end is the node's
    #[arg(long, requires = "http")]
    stdio: bool,
    /// Names by which clients may call this node beside localhost
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Scenes in which motion is allowed from the start, where the arm is not the embedded simulator
    #[arg(long, value_name = "SCENE", num_args = 1..)]
    enable: Vec<String>,
    /// Where operators reach this node [default: a socket of its name in the runtime folder]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl From<ServeArgs> for ServeOptions {
    fn from(args: ServeArgs) -> Self {
        Self {
            http: args.http,
            stdio: args.stdio,
            host: args.host,
            enable: args.enable,
            socket: args.socket,
        }
    }
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Say that every record of a log is as its node wrote it, or name the first that is not
    Verify {
        /// The log: `audit.log` in the node's state folder
        file: PathBuf,
        /// The node's public key, where it is known from elsewhere: 64 hexadecimal digits
        #[arg(long)]
        key: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
enum SceneCommand {
    /// Names and what they are
    List,
    /// Say everything that is wrong with a scene, or that it can be drawn, as `plan SCENE` does
    Check {
        /// A scene's file, or its name
        scene: String,
        /// The overlay on it
        #[arg(long)]
        meta: Option<String>,
    },
    /// The same as `plan SCENE --out DIR`
    Preview {
        /// A scene's file, or its name
        scene: String,
        /// The overlay on it
        #[arg(long)]
        meta: Option<String>,
        /// Where plan.png is written
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
    },
    /// Print the JSON Schema of scene files, for editors
    Schema,
}

#[derive(Debug, Args)]
struct ExplainArgs {
    /// The tool
    #[arg(required_unless_present = "schema")]
    tool: Option<String>,
    /// Its arguments, as a model might send them
    arguments: Option<String>,
    /// A JSON Schema to read lines of {"s": …} from standard input by, instead of a tool
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    schema: Option<PathBuf>,
    /// In words or as JSON; without it in words on a terminal
    #[arg(long, value_enum, conflicts_with = "schema")]
    format: Option<ExplainFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExplainFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
struct SimArgs {
    /// On a pseudo-terminal, whose path is the first line of standard output
    #[arg(long, required = true)]
    pty: bool,
    /// Which arm
    #[arg(long, default_value = "so101")]
    arm: String,
    /// The scene whose sheet lies before it and whose pens it holds [default: the default scene
    /// where it is this arm's, otherwise the first that is]
    #[arg(long)]
    scene: Option<String>,
    /// Where what was drawn is written, every second while it changes: a picture, or points in
    /// sheet millimetres where the name ends in .json
    #[arg(long, value_name = "FILE")]
    ink: Option<PathBuf>,
    /// Where every byte that the arm hears is written, in hexadecimal
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Answer as fast as the bytes come, not as fast as a wire
    #[arg(long)]
    unpaced: bool,
}

/// Does what the command line says.
///
/// # Errors
/// One message that names the value, the limit and the fix.
pub fn run(cli: Cli) -> anyhow::Result<Exit> {
    let sockets = match cli.command {
        Command::Serve(_) => systemd::sockets()?,
        _ => systemd::Sockets::default(),
    };
    let quiet = !matches!(cli.command, Command::Serve(_) | Command::Sim(_));
    if let Err(error) = node::log::begin(cli.node.log.map(Into::into), quiet) {
        show::note(&format!("the log cannot be set up: {error}"));
    }
    // One thread hears everybody: with two, each message would wake both. What takes long is done
    // by others (`work`).
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let result = runtime.block_on(command(cli, sockets));
    // A thread that still reads standard input must not hold the process.
    runtime.shutdown_background();
    result
}

async fn command(cli: Cli, sockets: systemd::Sockets) -> anyhow::Result<Exit> {
    let node = Options::from(cli.node);
    match cli.command {
        Command::Call(args) => call::run(&node, args).await,
        Command::Serve(args) => serve::run(&node, args.into(), sockets).await,
        Command::Tools { format, what } => tools::run(&node, &format, what.map(|what| *what)),
        Command::Scene(what) => scenes::run(&node, what),
        Command::Plan(args) => plan::run(&node, &args),
        Command::Reach(args) => reach::run(&node, &args),
        Command::Arm(what) => arm::run(&what),
        Command::Calibrate(what) => calibrate::run(&node, what).await,
        Command::Jog(args) => jog::run(args).await,
        Command::Teach(what) => calibrate::teach::run(&node, &what).await,
        Command::Explain(args) => explain::run(&node, &args),
        Command::Exam(args) => exam::run(&node, *args).await,
        Command::Sim(args) => sim::run(&node, args).await,
        Command::Bus(what) => bus::run(&node, what).await,
        Command::Doctor(args) => doctor::run(&node, &args).await,
        Command::Enable {
            scenes,
            meta,
            for_,
            arm,
            at,
        } => operate::enable(&at, scenes, meta, for_, arm).await,
        Command::Disable(at) => operate::verb(&at, control_socket::Verb::Disable).await,
        Command::Stop(at) => operate::verb(&at, control_socket::Verb::Stop).await,
        Command::Estop(at) => operate::verb(&at, control_socket::Verb::Estop).await,
        Command::Clear(at) => operate::clear(&at).await,
        Command::Hold { now, at } => operate::verb(&at, control_socket::Verb::Hold { now }).await,
        Command::Resume(at) => operate::verb(&at, control_socket::Verb::Resume).await,
        Command::TorqueOff { yes, at } => operate::torque_off(&at, yes).await,
        Command::Selftest { scene, rounds, at } => {
            operate::verb(&at, control_socket::Verb::Selftest { scene, rounds }).await
        }
        Command::Reset { scene, arm, at } => {
            operate::verb(&at, control_socket::Verb::Reset { scene, arm }).await
        }
        Command::Init(args) => init::run(&node, args).await,
        Command::Check => check::run(&node),
        Command::Token(command) => token::run(&node, command),
        Command::Status(at) => operate::verb(&at, control_socket::Verb::Status).await,
        Command::Jobs { id, json, at } => jobs::run(&node, id, json, &at).await,
        Command::Approve { job, yes, at } => approve::run(job, yes, &at).await,
        Command::Replay { job, bytes } => replay::run(&node, &job, bytes).await,
        Command::Audit(AuditCommand::Verify { file, key }) => audit::verify(&file, key.as_deref()),
    }
}

/// A time such as `90s`, `30m`, `2h`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        _ => return Err(format!("{unit:?} is no unit of time; write 90s, 30m or 2h")),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "write a whole number, such as 90s, 30m or 2h".to_owned())?;
    match number
        .checked_mul(seconds)
        .filter(|all| (1..=7 * 24 * 3600).contains(all))
    {
        Some(all) => Ok(Duration::from_secs(all)),
        None => Err("1 second to 7 days are possible".to_owned()),
    }
}

/// An error with its causes, from the outside in; what one says already in its own words is not said again.
#[must_use]
pub fn why(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| {
        let cause = cause.to_string();
        match said.as_str() {
            "" => cause,
            said if said.contains(&cause) => said.to_owned(),
            said => format!("{said}: {cause}"),
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_cause_is_said_twice() {
        let lost = || driver::DriverError::from(driver::BusError::Read(link::LinkError::Unplugged));
        let said = why(&anyhow::Error::new(lost()));
        assert_eq!(said, lost().to_string());
        let said = why(&anyhow::Error::new(lost()).context("nothing was saved"));
        assert_eq!(said, format!("nothing was saved: {}", lost()));
    }

    #[test]
    fn enabling_parses_beside_the_global_options() {
        let said = "steadyhand --scenes mine enable --scene letters --scene default --for 30m";
        let cli = Cli::try_parse_from(said.split(' ')).unwrap();
        assert_eq!(cli.node.scenes, Some(PathBuf::from("mine")));
        let Command::Enable { scenes, for_, .. } = cli.command else {
            panic!("not read as `enable`");
        };
        assert_eq!(scenes, ["letters", "default"]);
        assert_eq!(for_, Some(Duration::from_secs(1800)));
    }

    #[test]
    fn durations_have_units_and_bounds() {
        assert_eq!(duration("30m").unwrap(), Duration::from_secs(1800));
        assert!(duration("0").is_err());
        assert!(duration("8d").is_err());
        assert!(duration("9999999999h").is_err());
    }
}
