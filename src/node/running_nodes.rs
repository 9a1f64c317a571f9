//! The nodes that run on this machine, and which of them belongs to a node file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::units::ClockInstant;
use base::wording::{count, seconds};
use futures::future::join_all;
use serde::{Deserialize, Serialize};

use super::control_socket::{self, SERVICE_FOLDER, check_owner};
use super::operator_verb::OperatorVerb;
use motion::{MotionState, Snapshot};
use tools::{AttachedArm, Node};

/// Time for a node to describe itself; a node that takes longer is listed by its socket alone.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(2);

/// Description of a running node: its name, arms, files and folders.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NodeDescription {
    /// Its name.
    pub name: String,
    /// Its arms.
    pub arms: Vec<DescribedArm>,
    /// The folder of its state.
    pub state: PathBuf,
    /// The node file, if it has one.
    pub config: Option<PathBuf>,
    /// The folder of its own scenes, if it has one.
    pub scenes: Option<PathBuf>,
    /// Its process; `None` from a node of an older version.
    #[serde(default)]
    pub process: Option<ProcessDescription>,
}

/// The process of a running node: what tells two nodes of one person apart.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ProcessDescription {
    /// Its process id.
    pub id: u32,
    /// The program that started it.
    pub starter: Option<String>,
    /// The address of its HTTP endpoint; `None` if it serves standard input and output alone.
    pub address: Option<String>,
    /// Time since it was opened.
    pub age_s: f64,
    /// The state of each of its arms.
    pub doing: String,
}

impl ProcessDescription {
    fn of(node: &Node) -> Self {
        let age = node.clock.now().since(ClockInstant::ZERO);
        Self {
            id: std::process::id(),
            starter: STARTER.get().cloned().flatten(),
            address: node.login_codes.address().map(str::to_owned),
            age_s: age.as_secs_f64(),
            doing: node_activity(node),
        }
    }

    /// Describes the process for a person: process, starter, age, address and what its arms do.
    fn words(&self) -> String {
        let starter = self.starter.as_deref().unwrap_or("another program");
        let address = self.address.as_deref().unwrap_or("standard input");
        let (id, age, doing) = (self.id, seconds(self.age_s), &self.doing);
        format!("process {id} (started by {starter} {age} ago) serves {address}; {doing}")
    }
}

/// The program that started this process; it may have ended later.
static STARTER: OnceLock<Option<String>> = OnceLock::new();

/// Remembers which program started this process, while that program still runs.
pub(super) fn remember_starter() {
    STARTER.get_or_init(parent_program);
}

/// Returns the name of this process's parent.
fn parent_program() -> Option<String> {
    #[cfg(unix)]
    {
        let parent = std::os::unix::process::parent_id();
        let name = base::plain_file::read_text(format!("/proc/{parent}/comm")).ok()?;
        Some(name.trim().to_owned())
    }
    #[cfg(not(unix))]
    None
}

/// Describes in a few words what each arm of a node does.
fn node_activity(node: &Node) -> String {
    let activity = |arm: &Arc<AttachedArm>| activity(&arm.motion.snapshot());
    match node.arms.as_slice() {
        [arm] => format!("the arm {}", activity(arm)),
        arms => {
            let arms = arms
                .iter()
                .map(|arm| format!("{} {}", arm.name, activity(arm)));
            arms.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Describes what an arm does, after its name.
pub(super) fn activity(snapshot: &Snapshot) -> String {
    match (snapshot.state, &snapshot.fault) {
        (_, Some(fault)) => format!("has a fault: {fault}"),
        (MotionState::Moving, _) => "draws or moves".to_owned(),
        (MotionState::Held, _) => "is held, pen up".to_owned(),
        (MotionState::Stopping, _) => "comes to a stop".to_owned(),
        _ if snapshot.is_unsteady => "may still be moving".to_owned(),
        _ if snapshot.energised => "holds still".to_owned(),
        _ => "is at rest, torque off".to_owned(),
    }
}

/// An arm of a running node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DescribedArm {
    /// Its name for callers.
    pub name: String,
    /// The name of its arm file.
    pub model: String,
    /// Its serial port, or `simulator`.
    pub port: String,
}

impl NodeDescription {
    pub(super) fn of(node: &Node) -> Self {
        let arms = node.file.arms.iter().map(|entry| DescribedArm {
            name: entry.name.clone(),
            model: entry.model.clone(),
            port: entry.port.clone(),
        });
        Self {
            name: node.file.name.clone(),
            arms: arms.collect(),
            state: absolute(&node.state),
            config: node.file.source.path().map(absolute),
            scenes: node.scenes.folder().map(absolute),
            process: Some(ProcessDescription::of(node)),
        }
    }

    /// Describes the node for a person who chooses among several: as [`Self::words`], and its process.
    #[must_use]
    pub fn distinct_words(&self) -> String {
        match &self.process {
            Some(process) => format!("{}; {}", self.words(), process.words()),
            None => self.words(),
        }
    }

    /// Describes the node for a person: name, arms with their ports, file.
    #[must_use]
    pub fn words(&self) -> String {
        let arms = self.arms.iter().map(|arm| match arm.name == arm.model {
            true => format!("{} at {}", arm.model, arm.port),
            false => format!("{} ({}) at {}", arm.name, arm.model, arm.port),
        });
        let arms: Vec<String> = arms.collect();
        let file = match &self.config {
            Some(file) => format!("file {}", file.display()),
            None => "no node file".to_owned(),
        };
        let arm = if arms.len() == 1 { "arm" } else { "arms" };
        format!("node {}, {arm} {}, {file}", self.name, arms.join(" and "))
    }
}

/// Returns a path that does not depend on the working directory of a node.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A node that answers at its control socket.
#[derive(Clone, Debug)]
pub struct RunningNode {
    /// Its control socket.
    pub socket: PathBuf,
    /// Its description; `None` if it gave none in time.
    pub description: Option<NodeDescription>,
}

impl RunningNode {
    /// Describes the node for a person, in one line.
    #[must_use]
    pub fn words(&self) -> String {
        self.worded(NodeDescription::words)
    }

    /// Describes the node for a person who chooses among several, in one line.
    #[must_use]
    pub fn distinct_words(&self) -> String {
        self.worded(NodeDescription::distinct_words)
    }

    fn worded(&self, words: fn(&NodeDescription) -> String) -> String {
        let silent = || {
            let socket = self.socket.display();
            format!("a node at {socket} that does not answer")
        };
        self.description.as_ref().map_or_else(silent, words)
    }

    /// Returns whether it was opened from this node file and keeps its state in this folder. A path that is not given matches any.
    #[must_use]
    pub fn is_of(&self, config: Option<&Path>, state: Option<&Path>) -> bool {
        let Some(description) = &self.description else {
            return false;
        };
        let matches = |given: Option<&Path>, actual: Option<&Path>| {
            given.is_none_or(|given| actual.is_some_and(|actual| is_same(given, actual)))
        };
        matches(config, description.config.as_deref()) && matches(state, Some(&description.state))
    }
}

/// Returns whether two paths lead to the same file, with links resolved.
fn is_same(first: &Path, second: &Path) -> bool {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| absolute(path));
    resolved(first) == resolved(second)
}

/// Lists nodes for a person, each with its socket.
#[must_use]
pub fn list(nodes: &[RunningNode]) -> String {
    let line = |node: &RunningNode| {
        format!(
            "  {}\n    --socket {}",
            node.distinct_words(),
            node.socket.display()
        )
    };
    let lines: Vec<String> = nodes.iter().map(line).collect();
    let count = count(nodes.len(), "node");
    format!("{count} run on this machine:\n{}", lines.join("\n"))
}

/// Finds the nodes of this user, or those of the machine's service if this user has none.
///
/// # Errors
/// The folder of sockets belongs to another user, who could answer in a node's name.
pub async fn running_nodes() -> anyhow::Result<Vec<RunningNode>> {
    Ok(join_all(answering_sockets()?.into_iter().map(described)).await)
}

/// Finds the nodes of this user and of the machine's service that were opened from this node file, or keep their state in this
/// folder.
///
/// # Errors
/// The folder of sockets belongs to another user.
pub async fn nodes_of(
    config: Option<&Path>,
    state: Option<&Path>,
) -> anyhow::Result<Vec<RunningNode>> {
    let mut found = join_all(all_sockets()?.into_iter().map(described)).await;
    found.retain(|node| node.is_of(config, state));
    Ok(found)
}

/// Finds a node of this user or of the machine's service that listens and does not say who it is: it hangs.
///
/// # Errors
/// The folder of sockets belongs to another user.
pub async fn silent_node() -> anyhow::Result<Option<RunningNode>> {
    let nodes = join_all(all_sockets()?.into_iter().map(described)).await;
    Ok(nodes.into_iter().find(|node| node.description.is_none()))
}

/// Asks the node at a socket for its description.
pub async fn described(socket: PathBuf) -> RunningNode {
    let request = control_socket::ask(&socket, &OperatorVerb::Describe);
    let reply = tokio::time::timeout(DESCRIBED_WITHIN, request).await;
    let data = reply.ok().and_then(Result::ok).and_then(|reply| reply.data);
    RunningNode {
        description: data.and_then(|data| NodeDescription::deserialize(data).ok()),
        socket,
    }
}

/// Returns the sockets at which a node answers now: of this user's nodes and of the machine's service.
///
/// # Errors
/// The folder of sockets belongs to another user.
pub fn all_sockets() -> anyhow::Result<Vec<PathBuf>> {
    let mut sockets = users_sockets()?;
    sockets.extend(services_sockets());
    Ok(sockets)
}

/// Returns the sockets at which a node answers now: of this user's nodes, or of the machine's service if this user has none.
///
/// # Errors
/// The folder of sockets belongs to another user.
fn answering_sockets() -> anyhow::Result<Vec<PathBuf>> {
    let users = users_sockets()?;
    if users.is_empty() {
        Ok(services_sockets())
    } else {
        Ok(users)
    }
}

fn users_sockets() -> anyhow::Result<Vec<PathBuf>> {
    let own = control_socket::folder();
    if own.exists() {
        check_owner(&own)?;
    }
    let mut folders = control_socket::folders();
    // No node of this user opens a socket in another user's folder.
    folders.retain(|folder| *folder == own || (folder.exists() && check_owner(folder).is_ok()));
    let mut sockets: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| sockets_in(folder))
        .collect();
    let mut seen = Vec::new();
    sockets.retain(|socket| {
        let target = socket.canonicalize().unwrap_or_else(|_| socket.clone());
        let is_new = !seen.contains(&target);
        seen.push(target);
        is_new
    });
    Ok(sockets)
}

/// Returns the sockets of the machine's service. Only root and the service itself can create their folder.
fn services_sockets() -> Vec<PathBuf> {
    let folder = SERVICE_FOLDER.map(Path::new);
    let folder = folder.filter(|folder| control_socket::folder() != **folder);
    match folder {
        Some(folder) if !control_socket::has_own_folder() => sockets_in(folder),
        _ => Vec::new(),
    }
}

fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_node = |path: &PathBuf| {
        let is_socket = path.extension().is_some_and(|ext| ext == "sock");
        is_socket && control_socket::is_answered(path)
    };
    let mut sockets: Vec<PathBuf> = paths.filter(is_node).collect();
    sockets.sort();
    sockets
}
