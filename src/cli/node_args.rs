//! Options that select a node: one in this process, or one that runs.

use std::path::PathBuf;

use clap::Args;

use super::NodeOptions;
use super::choice::{Choice, choice};
use super::given_options::quoted_for_shell;
use node::log::LogFormat;

/// Heading of the options of a node in this process.
const NODE: &str = "Node";

/// Options of a node in this process.
#[derive(Debug, Clone, Args)]
pub(super) struct NodeArgs {
    /// The node file; without one, a node with an embedded simulated SO-101
    #[arg(long, global = true, help_heading = NODE, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// A folder of scenes that come before the shipped ones
    #[arg(long, global = true, help_heading = NODE, value_name = "DIR")]
    pub(super) scenes: Option<PathBuf>,
    /// Folder for pictures and reports [default: a folder in the system's temporary one]
    #[arg(long, global = true, help_heading = NODE, hide_short_help = true, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Folder of stops, jobs and keys [default: the user's state folder; a temporary one where
    /// there is neither a node file nor a real port]
    #[arg(long, global = true, help_heading = NODE, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
    /// The serial port of the first arm, instead of the node file's
    #[arg(long, global = true, help_heading = NODE, value_name = "PATH")]
    pub(super) port: Option<String>,
    /// `elsewhere`: the first arm, its tools and its sheets were measured by other means, and you answer for it
    #[arg(long, global = true, help_heading = NODE, hide_short_help = true, value_name = "WHERE", value_parser = ["elsewhere"])]
    pub(super) calibrated: Option<String>,
    /// Write every byte to and from the ports of the node's arms to this file
    #[arg(long, global = true, help_heading = NODE, hide_short_help = true, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Record each job, like `record = true` in the node file
    #[arg(long, global = true, help_heading = NODE, hide_short_help = true)]
    pub(super) record: bool,
    /// Form of the log [default: fields under systemd's journal, text elsewhere]
    #[arg(long, global = true, help_heading = NODE, hide_short_help = true, value_parser = choice(&LOG_FORMS))]
    pub(super) log: Option<LogFormat>,
    /// Drive a real serial port although this process runs as root
    #[arg(long, global = true, help_heading = NODE, hide_short_help = true)]
    pub(super) allow_root: bool,
}

/// Forms of the log.
pub(super) const LOG_FORMS: [Choice<LogFormat>; 3] = [
    ("text", "For people", LogFormat::Text),
    ("json", "One object a line", LogFormat::Json),
    ("journal", "Fields in systemd's journal", LogFormat::Journal),
];

impl From<NodeArgs> for NodeOptions {
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
            exams: exams(),
            record: args.record,
            log: args.log,
            recordings: recordings(),
        }
    }
}

/// Returns the exam services of a running node, if the program has them.
fn exams() -> Option<&'static dyn node::ExamServices> {
    #[cfg(feature = "exam")]
    return Some(&exam::NodeExams);
    #[cfg(not(feature = "exam"))]
    return None;
}

/// Returns the recording services of a running node, if the program has them.
fn recordings() -> Option<&'static dyn node::RecordingServices> {
    #[cfg(feature = "recording")]
    return Some(&recording::NodeRecordings);
    #[cfg(not(feature = "recording"))]
    return None;
}

/// Options that address a running node.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct AtArgs {
    /// The node's control socket, if several nodes run on this machine
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
    /// A node elsewhere, such as arm.example:8700; needs an operator's token
    #[arg(
        long,
        value_name = "URL",
        requires = "token_file",
        conflicts_with = "socket"
    )]
    pub(super) node: Option<String>,
    /// The file that holds the token
    #[arg(long, value_name = "FILE", requires = "node")]
    pub(super) token_file: Option<PathBuf>,
}

impl AtArgs {
    /// Returns whether a node is named.
    pub(super) const fn is_named(&self) -> bool {
        self.socket.is_some() || self.node.is_some()
    }

    /// Returns the options that address the node, as text after a command.
    pub(super) fn text(&self) -> String {
        let Self {
            socket,
            node,
            token_file,
        } = self;
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let options = [
            ("--socket", path(socket)),
            ("--node", node.clone()),
            ("--token-file", path(token_file)),
        ];
        let options = options.into_iter().filter_map(|(option, value)| {
            let value = quoted_for_shell(&value?);
            Some(format!(" {option} {value}"))
        });
        options.collect()
    }

    /// Addresses the node at a control socket.
    pub(super) fn at_socket(socket: PathBuf) -> Self {
        Self {
            socket: Some(socket),
            ..Self::default()
        }
    }
}
