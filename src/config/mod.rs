//! The node file as data; unknown keys are refused with the nearest known one.

pub mod toml;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node as its file describes it. Everything may be left out: the node is then called `local`
/// and has an embedded simulated SO-101.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NodeFile {
    /// The node's name.
    pub name: String,
    /// Its arms, by name; one of them is `default` or the only one.
    pub arms: Vec<ArmEntry>,
    /// How much is guessed for a caller. Absent: `lenient` with embedded simulated arms only,
    /// `guarded` otherwise.
    pub forgiveness: Option<Forgiveness>,
    /// Whether tool aliases are listed, or only callable.
    pub list_aliases: bool,
    /// A folder of scenes that come before the ones in the binary.
    pub scenes: Option<PathBuf>,
    /// Where reports and pictures are written; absent: a folder in the system's temporary one.
    pub output: Option<PathBuf>,
    /// Where stops, jobs and keys are kept; absent: the user's state folder.
    pub state: Option<PathBuf>,
    /// A motion that lasts longer than this is answered with its job while it goes on.
    pub answer_within_s: u32,
    /// After so long at rest, in seconds, an arm may be moved by another caller than the last.
    pub lease_idle_s: u32,
    /// Whether callers over HTTP need a token on this machine too; from elsewhere they always do.
    pub require_tokens: bool,
    /// The other nodes.
    pub nodes: Vec<PeerEntry>,
}

/// One arm of a node.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArmEntry {
    /// What callers call it.
    pub name: String,
    /// Which arm it is: the name of an arm file.
    pub model: String,
    /// `"simulator"` or a serial port's path. A port that is missing is an error, never a
    /// simulator.
    pub port: String,
}

/// Another node.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerEntry {
    /// Its name.
    pub name: String,
    /// Where it speaks MCP, such as `http://10.0.0.7:8700/mcp`.
    pub url: String,
}

/// How much is guessed for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Forgiveness {
    /// Garbage may run the default; for the simulator.
    Lenient,
    /// Nothing moves after a guess; for hardware.
    Guarded,
}

/// The longest that a call may be kept waiting.
pub const ANSWER_WITHIN_S_MAX: u32 = 3600;

/// The port's name that means the embedded simulator.
pub const SIMULATOR_PORT: &str = "simulator";

impl Default for NodeFile {
    fn default() -> Self {
        Self {
            name: "local".to_owned(),
            arms: vec![ArmEntry {
                name: "arm".to_owned(),
                model: "so101".to_owned(),
                port: SIMULATOR_PORT.to_owned(),
            }],
            forgiveness: None,
            list_aliases: true,
            scenes: None,
            output: None,
            state: None,
            answer_within_s: 45,
            lease_idle_s: 120,
            require_tokens: false,
            nodes: Vec::new(),
        }
    }
}

impl ArmEntry {
    /// Whether it is the embedded simulator.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.port == SIMULATOR_PORT
    }
}

impl NodeFile {
    /// Reads a node file; `file` is what messages call it.
    ///
    /// # Errors
    /// Every unknown key, or the first value that cannot be.
    pub fn read(file: &str, text: &str) -> Result<Self, toml::FileError> {
        let node: Self = toml::read(file, text)?;
        let problems = node.problems();
        if problems.is_empty() {
            Ok(node)
        } else {
            Err(toml::FileError {
                file: file.to_owned(),
                problems,
            })
        }
    }

    /// The profile in force.
    #[must_use]
    pub fn forgiveness(&self) -> Forgiveness {
        self.forgiveness.unwrap_or_else(|| {
            if self.arms.iter().all(ArmEntry::is_simulated) {
                Forgiveness::Lenient
            } else {
                Forgiveness::Guarded
            }
        })
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.arms.is_empty() {
            problems.push("`arms` is empty; a node needs at least one arm".to_owned());
        }
        for (index, arm) in self.arms.iter().enumerate() {
            if self
                .arms
                .iter()
                .take(index)
                .any(|other| other.name == arm.name)
            {
                problems.push(format!(
                    "two arms are called `{}`; each needs its own name",
                    arm.name
                ));
            }
            if !arm.is_simulated()
                && self
                    .arms
                    .iter()
                    .take(index)
                    .any(|other| other.port == arm.port)
            {
                problems.push(format!(
                    "arms share the port `{}`; a port has one arm",
                    arm.port
                ));
            }
        }
        if !(1..=ANSWER_WITHIN_S_MAX).contains(&self.answer_within_s) {
            problems.push(format!(
                "answer_within_s is {}; 1 to {ANSWER_WITHIN_S_MAX} are possible",
                self.answer_within_s
            ));
        }
        problems
    }
}
