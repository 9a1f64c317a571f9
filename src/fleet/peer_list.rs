//! Lists the last report of each node with its age, and the nodes that do not answer. An unresponsive node is never waited for
//! twice.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Fleet, FleetPeer, PeerPresence, RemoteCallError, RemoteCallWatch, ToolAnswer};
use base::clock::calendar_ms;
use base::lock::MutexExt as _;
use call::ReceivedArguments;

/// Longest wait for a node that did not answer the last time; if it is back, it answers sooner.
const GRACE: Duration = Duration::from_millis(150);

/// Time after which an unanswered request is given up. The next list sends a new one.
const REQUEST_MAX: Duration = Duration::from_secs(5);

/// Known state of one node.
#[derive(Default)]
pub(super) struct PeerState {
    known: Mutex<PeerKnowledge>,
    /// Counts the requests that have ended.
    ended: watch::Sender<u64>,
}

#[derive(Clone, Default)]
struct PeerKnowledge {
    /// True if a request is under way.
    is_asking: bool,
    /// Result of the last request.
    last: Option<Result<(), RemoteCallError>>,
    report: Option<PeerReport>,
}

/// Report of a node, with the time of its arrival.
#[derive(Clone)]
struct PeerReport {
    at: Instant,
    answer: Map<String, Value>,
    offset: Option<ClockOffset>,
}

/// Offset of another node's calendar from this one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    /// Milliseconds; negative where it is behind.
    pub ms: f64,
    /// Uncertainty: half the time that the request took.
    pub within_ms: f64,
}

/// One node in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerSighting {
    /// The peer.
    pub peer: FleetPeer,
    /// Presence of the node, as an engine reports it.
    pub presence: PeerPresence,
    /// Reason why it counts as unreachable; absent if it answered.
    pub unreached: Option<String>,
    /// Its last report, if that is not too old to be shown.
    pub report: Option<Map<String, Value>>,
    /// Age of the report.
    pub age: Option<Duration>,
    /// Offset of its clock at that time.
    pub offset: Option<ClockOffset>,
}

impl Fleet {
    /// Returns every other node, within [`super::FleetPolicy::list_within`], even if some are down.
    pub async fn list(self: &Arc<Self>) -> Vec<PeerSighting> {
        let deadline = Instant::now() + self.policy.list_within;
        let sightings = self
            .peers()
            .into_iter()
            .map(|peer| self.sight(peer, deadline));
        join_all(sightings).await
    }

    async fn sight(self: &Arc<Self>, peer: FleetPeer, deadline: Instant) -> PeerSighting {
        let state = self.peer_state(&peer);
        let known = state.now();
        let began = Instant::now();
        if !self.is_fresh(&peer, &known) {
            let mut ended = state.ended.subscribe();
            self.ask(&peer, &state);
            let is_gone = matches!(self.presence.of(&peer.name), PeerPresence::Gone { .. });
            let wait_until = if is_gone || matches!(known.last, Some(Err(_))) {
                deadline.min(began + GRACE)
            } else {
                deadline
            };
            if timeout_at(wait_until, ended.changed()).await.is_err() {
                state.mark_late(wait_until - began);
            }
        }
        self.sighting(peer, &state.now(), began)
    }

    fn is_fresh(&self, peer: &FleetPeer, known: &PeerKnowledge) -> bool {
        let is_recent = |report: &PeerReport| {
            report.at.elapsed() <= self.policy.list_cache
                && !self.presence.changed_since(&peer.name, report.at)
        };
        matches!(known.last, Some(Ok(()))) && known.report.as_ref().is_some_and(is_recent)
    }

    fn sighting(&self, peer: FleetPeer, known: &PeerKnowledge, began: Instant) -> PeerSighting {
        let presence = self.presence.of(&peer.name);
        let unreached = match (presence, &known.last) {
            (PeerPresence::Duplicate { count }, _) => {
                Some(RemoteCallError::Ambiguous(count).to_string())
            }
            (_, Some(Err(failure))) => Some(failure.to_string()),
            _ => None,
        };
        let is_shown = |report: &&PeerReport| {
            let is_new = report.at + self.policy.list_cache >= began;
            is_new || report.at.elapsed() <= self.policy.list_keep
        };
        let report = known.report.as_ref().filter(is_shown);
        PeerSighting {
            peer,
            presence,
            unreached,
            report: report.map(|report| report.answer.clone()),
            age: report.map(|report| report.at.elapsed()),
            offset: report.and_then(|report| report.offset),
        }
    }

    /// Sends a request in the background, unless one is under way.
    fn ask(self: &Arc<Self>, peer: &FleetPeer, state: &Arc<PeerState>) {
        if !state.try_begin() {
            return;
        }
        let (fleet, peer, state) = (Arc::clone(self), peer.clone(), Arc::clone(state));
        base::task::spawn(async move {
            // However the request ends, dropping this records its end.
            let mut request = OpenRequest {
                state,
                result: Err(RemoteCallError::Lost("the request was dropped".to_owned())),
            };
            request.result = fleet.fetch_report(&peer).await;
        });
    }

    async fn fetch_report(&self, peer: &FleetPeer) -> Result<PeerReport, RemoteCallError> {
        let (arguments, caller) = (ReceivedArguments::Absent, "list".to_owned());
        let call = self.own_call(peer, "list_nodes", arguments, caller);
        let (began, began_ms) = (Instant::now(), calendar_ms());
        let watch = RemoteCallWatch::unobserved();
        let sending = self.transport.send(peer, call, watch);
        let answer = timeout(REQUEST_MAX, sending).await;
        let answer = answer.map_err(|_| RemoteCallError::Silent(REQUEST_MAX))??;
        let took = began.elapsed();
        let report = own_report(answer)?;
        Ok(PeerReport {
            at: Instant::now(),
            offset: offset(&report, began_ms, took),
            answer: report,
        })
    }
}

/// Returns a node's report about itself: the entry in its list that is the node itself.
pub(super) fn own_report(mut answer: ToolAnswer) -> Result<Map<String, Value>, RemoteCallError> {
    if answer.is_error {
        return Err(RemoteCallError::Refused(answer.text));
    }
    let is_own = |node: &Value| node.get("this") == Some(&Value::Bool(true));
    let own = match answer.structured.remove("nodes") {
        Some(Value::Array(nodes)) => nodes.into_iter().find(is_own),
        _ => None,
    };
    match own {
        Some(Value::Object(own)) => Ok(own),
        _ => Err(RemoteCallError::Refused(
            "the program at that address is not a Steadyhand node".to_owned(),
        )),
    }
}

fn offset(report: &Map<String, Value>, began_ms: u64, took: Duration) -> Option<ClockOffset> {
    let theirs = report.get("time_ms")?.as_u64()?;
    let half_ms = took.as_secs_f64() * 1e3 / 2.0;
    Some(ClockOffset {
        ms: theirs as f64 - (began_ms as f64 + half_ms),
        // Both calendars are read in whole milliseconds.
        within_ms: half_ms + 1.0,
    })
}

impl PeerState {
    fn now(&self) -> PeerKnowledge {
        self.known.locked().clone()
    }

    /// Records that the request under way was not answered in time. Its answer may still come.
    fn mark_late(&self, waited: Duration) {
        let mut known = self.known.locked();
        if known.is_asking && !matches!(known.last, Some(Err(_))) {
            known.last = Some(Err(RemoteCallError::Silent(waited)));
        }
    }

    /// Begins a request unless one is under way. Returns whether it began.
    fn try_begin(&self) -> bool {
        let mut known = self.known.locked();
        !std::mem::replace(&mut known.is_asking, true)
    }
}

/// A request under way.
struct OpenRequest {
    state: Arc<PeerState>,
    result: Result<PeerReport, RemoteCallError>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut known = self.state.known.locked();
        known.is_asking = false;
        match &self.result {
            Ok(report) => {
                known.report = Some(report.clone());
                known.last = Some(Ok(()));
            }
            Err(error) => known.last = Some(Err(error.clone())),
        }
        drop(known);
        self.state.ended.send_modify(|ended| *ended += 1);
    }
}
