//! The other nodes: which there are, whether they answer, and how calls are forwarded to them.
//!
//! A small trait, [`PeerTransport`], finds and reaches them. This crate holds what is common to every transport: the time limit of
//! each kind of call, what is retried, and the last report of each node with its age.

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
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use base::lock::MutexExt as _;
use call::ReceivedArguments;
use stop_fan_out::StopEngine;

/// Most stops that are carried on for callers that have gone: each has a connection.
const ABANDONED_STOPS_MAX: usize = 64;

pub use call::{CallHop, QueueTag, ToolAnswer, ToolEffect};
pub use peer_list::{ClockOffset, PeerSighting};
pub use presence::{PeerPresence, PresenceTable};

/// A way to find and reach other nodes.
pub trait PeerTransport: Send + Sync {
    /// Returns every other node that is known now, without waiting.
    fn peers(&self) -> Vec<FleetPeer>;

    /// Sends a call to a node and returns its answer, however long that takes. If the future is dropped or the watch is cancelled,
    /// the node gives the call up as well, and what it moves comes to a stop.
    fn send(
        &self,
        peer: &FleetPeer,
        call: OutgoingCall,
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
    /// Tags that a person gave it.
    pub tags: Vec<String>,
}

/// A call to another node.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingCall {
    /// The tool.
    pub tool: String,
    /// The arguments as the caller sent them.
    pub arguments: ReceivedArguments,
    /// Which node forwards it, and for which caller.
    pub hop: CallHop,
}

/// Callback for a call's progress: the amount done, the total, and a message.
pub type ProgressCallback = Arc<dyn Fn(f64, f64, &str) + Send + Sync>;

/// Cancellation and progress of a running call.
#[derive(Clone)]
pub struct RemoteCallWatch {
    /// Set when the caller gives up: motion stops.
    pub cancelled: CancellationToken,
    /// Receiver of progress, if the caller wants any.
    pub progress: Option<ProgressCallback>,
    /// Name and version of the caller's program, as it introduced itself.
    pub client: Option<String>,
    /// Runtime that notices at once that the caller gave up, even while others are busy; `None` if the
    /// call's own runtime does.
    pub cancel_runtime: Option<tokio::runtime::Handle>,
}

impl RemoteCallWatch {
    /// Returns a watch that nothing cancels or observes.
    #[must_use]
    pub fn unobserved() -> Self {
        Self {
            cancelled: CancellationToken::new(),
            progress: None,
            client: None,
            cancel_runtime: None,
        }
    }

    /// Returns the same watch without the caller's cancellation.
    fn without_cancellation(&self) -> Self {
        Self {
            cancelled: CancellationToken::new(),
            ..self.clone()
        }
    }

    /// Reports progress, if the caller wants any.
    pub fn report(&self, done: f64, total: f64, message: &str) {
        if let Some(progress) = &self.progress {
            progress(done, total, message);
        }
    }
}

/// Reason why another node gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteCallError {
    /// The call did not reach it.
    #[error("it cannot be reached: {0}")]
    Unreached(String),
    /// It may have received the call; its answer is lost.
    #[error("its answer was lost: {0}")]
    Lost(String),
    /// It answered that it rejects the call.
    #[error("it refuses the call: {0}")]
    Refused(String),
    /// It did not answer in time.
    #[error("it did not answer within {0:?}")]
    Silent(Duration),
    /// The caller gave up.
    #[error("the caller stopped waiting")]
    Cancelled,
    /// Several nodes have its name; nothing was sent.
    #[error("{0} nodes have this name. Next: give each its own `name` in its node file")]
    Ambiguous(usize),
}

impl RemoteCallError {
    /// Returns whether the same call may get through when it is sent again.
    fn is_retryable(&self) -> bool {
        matches!(self, Self::Unreached(_) | Self::Lost(_))
    }
}

/// Time limits and retries of calls to other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetPolicy {
    /// The longest that a list waits.
    pub list_within: Duration,
    /// Time for which a report is shown without asking again.
    pub list_cache: Duration,
    /// Time for which the last report of an unreachable node is shown.
    pub list_keep: Duration,
    /// The longest that a call that looks may take.
    pub read_within: Duration,
    /// The longest that a call that moves may take.
    pub move_within: Duration,
    /// The longest that a stop may take.
    pub stop_within: Duration,
    /// Number of retries for a call that looks.
    pub read_retries: u32,
    /// Pause before the first retry; it doubles each time.
    pub retry_after: Duration,
}

/// The other nodes, and what is known of them.
pub struct Fleet {
    me: String,
    transport: Arc<dyn PeerTransport>,
    policy: FleetPolicy,
    presence: Arc<PresenceTable>,
    stop_engine: OnceLock<Arc<dyn StopEngine>>,
    /// Stops that are being forwarded.
    stops_under_way: TaskTracker,
    /// Stops that are carried on though their callers have gone.
    abandoned_stops: Semaphore,
    states: Mutex<HashMap<String, Arc<peer_list::PeerState>>>,
}

impl Fleet {
    /// Creates the fleet as seen by the node of this name.
    #[must_use]
    pub fn new(me: &str, transport: Arc<dyn PeerTransport>, policy: FleetPolicy) -> Self {
        Self {
            me: me.to_owned(),
            transport,
            policy,
            presence: Arc::default(),
            stop_engine: OnceLock::new(),
            stops_under_way: TaskTracker::new(),
            abandoned_stops: Semaphore::new(ABANDONED_STOPS_MAX),
            states: Mutex::default(),
        }
    }

    /// Returns the table of present nodes, for an engine that updates it.
    #[must_use]
    pub fn presence(&self) -> &Arc<PresenceTable> {
        &self.presence
    }

    /// Returns every other node that is known now.
    #[must_use]
    pub fn peers(&self) -> Vec<FleetPeer> {
        self.transport.peers()
    }

    /// Returns the other node of exactly this name.
    #[must_use]
    pub fn peer(&self, name: &str) -> Option<FleetPeer> {
        self.peers().into_iter().find(|peer| peer.name == name)
    }

    /// Creates a call by this node to another one, in the name of `caller`.
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
                order: None,
            },
        }
    }

    fn peer_state(&self, peer: &FleetPeer) -> Arc<peer_list::PeerState> {
        let mut states = self.states.locked();
        // A new name: drop the state of peers that no longer exist.
        if !states.contains_key(&peer.name) {
            let peers = self.peers();
            states.retain(|name, _| peers.iter().any(|peer| peer.name == *name));
        }
        Arc::clone(states.entry(peer.name.clone()).or_default())
    }
}

#[cfg(test)]
mod tests;
