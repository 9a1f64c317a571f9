//! Access to the node that an operator's command addresses: a running one, or one of the command's own.

use std::sync::Arc;
use std::time::Duration;

use super::{AtArgs, NodeOptions, operator_client, which_node};
use node::config_changes::ConfigWatcher;
use node::open::{self, SimulationRate};
use node::operator_verb::{OperatorVerb, VerbReply};
use node::verb_dispatch;
use tools::Node;

/// Interval between questions to a node on this machine, and to a remote one.
const POLL_HERE: Duration = Duration::from_millis(100);
const POLL_REMOTE: Duration = Duration::from_secs(1);

/// A node that takes operators' verbs.
#[derive(Clone)]
pub(super) enum OperatorDoor {
    /// A node that lives as long as this command.
    Own(Arc<Node>),
    /// A running node.
    Running(AtArgs),
}

impl OperatorDoor {
    /// Opens the addressed node: the named one; the running one of the named node file, or the only one on this machine; or else one
    /// of the command's own, also where several run and none is named if nothing is to move.
    ///
    /// # Errors
    /// Fails if several nodes run here and nobody picks one, or the command's own node cannot be opened.
    pub(super) async fn open(
        options: &NodeOptions,
        at: &AtArgs,
        (simulation, moves): (SimulationRate, bool),
    ) -> anyhow::Result<Self> {
        if at.is_named() {
            return Ok(Self::Running(at.clone()));
        }
        // A given port calls for a node of our own that opens it.
        let is_own = options.port.is_some();
        let running = match (is_own, moves) {
            (true, _) => None,
            (false, true) => which_node::find(options, at).await?,
            (false, false) => which_node::find_unless_several(options, at).await?,
        };
        if let Some(at) = running {
            return Ok(Self::Running(at));
        }
        let node = open::node(options, simulation)?;
        node.note_start();
        ConfigWatcher::since_last(&node, options);
        Ok(Self::Own(node))
    }

    /// Opens a running node.
    ///
    /// # Errors
    /// Fails if none runs here, or several do and none is named.
    pub(super) async fn running(options: &NodeOptions, at: &AtArgs) -> anyhow::Result<Self> {
        Ok(Self::Running(which_node::required(options, at).await?))
    }

    /// Asks the node.
    ///
    /// # Errors
    /// Fails if it does not answer.
    pub(super) async fn ask(&self, verb: OperatorVerb) -> anyhow::Result<VerbReply> {
        match self {
            Self::Own(node) => {
                let user = format!("user {}", base::file_access::user());
                Ok(verb_dispatch::run_for_operator(node, &user, verb, node.stamp_arrival()).await)
            }
            Self::Running(at) => operator_client::ask(at, &verb).await,
        }
    }

    /// Returns the node, if it is the command's own.
    pub(super) const fn own(&self) -> Option<&Arc<Node>> {
        match self {
            Self::Own(node) => Some(node),
            Self::Running(_) => None,
        }
    }

    /// Returns the time between two questions about a job.
    pub(super) const fn poll(&self) -> Duration {
        match self {
            Self::Running(AtArgs { node: Some(_), .. }) => POLL_REMOTE,
            _ => POLL_HERE,
        }
    }
}
