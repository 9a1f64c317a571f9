//! The other nodes: who they are, whether they answer, and how a call is passed on whole.
//!
//! How they are found and reached is behind one small trait, [`PeerTransport`]. Here is what holds for every way of reaching
//! them: how long each kind of call may take, what is tried again, and what is remembered of whom, with its age.

pub mod draw_queue;
mod forward_with_retries;
#[cfg(feature = "mdns")]
pub mod local_discovery;
mod peer_list;
mod presence;
mod queue_calls;
pub mod queue_desk;
pub mod stop_fan_out;
#[cfg(feature = "zenoh")]
pub mod zenoh_presence;
#[cfg(feature = "zenoh")]
pub mod zenoh_stop;
#[cfg(feature = "zenoh")]
pub mod zenoh_telemetry;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use base::lock::MutexExt as _;
use call::ReceivedArguments;
use stop_fan_out::StopEngine;

pub use call::{CallHop, QueueTag, ToolAnswer, ToolEffect};
pub use peer_list::{ClockOffset, PeerSighting};
pub use presence::{PeerPresence, PresenceTable};

/// A way to find and reach other nodes.
pub trait PeerTransport: Send + Sync {
    /// Every other node that is known now. Waits for nothing.
    fn peers(&self) -> Vec<FleetPeer>;

    /// Brings a call to a node and its answer back, however long that takes. A future that is dropped, or a watch that is
    /// cancelled, gives the call up there as well: what it moved comes to a stop.
    fn send(
        &self,
        peer: &FleetPeer,
        letter: OutgoingCall,
        watch: RemoteCallWatch,
    ) -> BoxFuture<'static, Result<ToolAnswer, RemoteCallError>>;
}

/// Another node, as this one knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetPeer {
    /// Name of the node here.
    pub name: String,
    /// Address of the node.
    pub address: String,
    /// Words that a person gave it.
    pub tags: Vec<String>,
}

/// A call on its way to another node: the arguments are what the caller sent.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingCall {
    /// The tool.
    pub tool: String,
    /// As they came.
    pub arguments: ReceivedArguments,
    /// By whom it is brought, and for whom.
    pub hop: CallHop,
}

/// Told how far a call is: so much done, of how much, and what is going on.
pub type ProgressCallback = Arc<dyn Fn(f64, f64, &str) + Send + Sync>;

/// Cancellation and progress of a running call.
#[derive(Clone)]
pub struct RemoteCallWatch {
    /// Set when the caller gave up: motion stops.
    pub cancelled: CancellationToken,
    /// Receiver of progress, if the caller wants any.
    pub progress: Option<ProgressCallback>,
    /// Name and version of the caller's program, as it introduced itself.
    pub client: Option<String>,
    /// Runtime that notices at once that the caller gave up, even while others are busy; `None` if the
    /// call's own runtime does.
    pub minder: Option<tokio::runtime::Handle>,
}

impl RemoteCallWatch {
    /// Returns a watch that nothing cancels or observes.
    #[must_use]
    pub fn unobserved() -> Self {
        Self {
            cancelled: CancellationToken::new(),
            progress: None,
            client: None,
            minder: None,
        }
    }

    /// Tells how far the call is, if anybody wants to know.
    pub fn report(&self, done: f64, of: f64, message: &str) {
        if let Some(progress) = &self.progress {
            progress(done, of, message);
        }
    }
}

/// Reason for having no answer of a different node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteCallError {
    /// It heard nothing.
    #[error("it cannot be reached: {0}")]
    Unreached(String),
    /// It may have heard the call; its answer is lost.
    #[error("the connection broke: {0}")]
    Lost(String),
    /// It answered that it does not take the call.
    #[error("it does not take the call: {0}")]
    Refused(String),
    /// It did not answer in time.
    #[error("it did not answer within {0:?}")]
    Silent(Duration),
    /// The caller gave up.
    #[error("the caller gave up")]
    Cancelled,
    /// Several nodes go by its name; nothing was sent.
    #[error(
        "{0} nodes announce themselves by this name: give each its own `name` in its node file"
    )]
    Ambiguous(usize),
}

impl RemoteCallError {
    /// Returns whether the same call may get through when it is sent again.
    fn is_retryable(&self) -> bool {
        matches!(self, Self::Unreached(_) | Self::Lost(_))
    }
}

/// Time limits and retries for asking other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetPolicy {
    /// The longest that a list waits.
    pub list_within: Duration,
    /// Time for which a report is shown without asking again.
    pub list_cache: Duration,
    /// Time for which the last report is shown.
    pub list_keep: Duration,
    /// The longest that a call that looks may take.
    pub read_within: Duration,
    /// The longest that a call that moves may take.
    pub move_within: Duration,
    /// The longest that a stop may take.
    pub stop_within: Duration,
    /// Number of retries for a reading call.
    pub read_retries: u32,
    /// The first pause before that; it doubles.
    pub retry_after: Duration,
}

/// The other nodes, and what is known of them.
pub struct Fleet {
    me: String,
    reach: Arc<dyn PeerTransport>,
    rules: FleetPolicy,
    presence: Arc<PresenceTable>,
    stop_engine: OnceLock<Arc<dyn StopEngine>>,
    seen: Mutex<HashMap<String, Arc<peer_list::PeerState>>>,
}

impl Fleet {
    /// The others around the node of this name.
    #[must_use]
    pub fn new(me: &str, reach: Arc<dyn PeerTransport>, rules: FleetPolicy) -> Self {
        Self {
            me: me.to_owned(),
            reach,
            rules,
            presence: Arc::default(),
            stop_engine: OnceLock::new(),
            seen: Mutex::default(),
        }
    }

    /// The table of who is present, for an engine that keeps it true.
    #[must_use]
    pub fn presence(&self) -> &Arc<PresenceTable> {
        &self.presence
    }

    /// Every other node that is known now.
    #[must_use]
    pub fn peers(&self) -> Vec<FleetPeer> {
        self.reach.peers()
    }

    /// The other node of exactly this name.
    #[must_use]
    pub fn peer(&self, name: &str) -> Option<FleetPeer> {
        self.peers().into_iter().find(|peer| peer.name == name)
    }

    /// Returns a call of this node's own to another one, in the name of `caller`.
    fn own_call(
        &self,
        peer: &FleetPeer,
        tool: &str,
        arguments: ReceivedArguments,
        caller: String,
    ) -> OutgoingCall {
        OutgoingCall {
            tool: tool.to_owned(),
            arguments,
            hop: CallHop {
                from: self.me.clone(),
                called: peer.name.clone(),
                role: None,
                caller,
                queue: None,
            },
        }
    }

    fn peer_state(&self, peer: &FleetPeer) -> Arc<peer_list::PeerState> {
        let mut seen = self.seen.locked();
        // What is known of nodes that are no longer known is forgotten.
        if !seen.contains_key(&peer.name) {
            let known = self.peers();
            seen.retain(|name, _| known.iter().any(|peer| peer.name == *name));
        }
        Arc::clone(seen.entry(peer.name.clone()).or_default())
    }
}

#[cfg(test)]
mod tests;
