//! Last report of each node, its age, and the nodes that do not answer. A sleeping node is never waited for twice.

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

/// A node that did not answer the last time is asked again and waited for no longer than this: one that is back answers sooner.
const GRACE: Duration = Duration::from_millis(150);

/// A question that was not answered after so long is given up. The next list asks a new one.
const ASK_MAX: Duration = Duration::from_secs(5);

/// State of one node, as far as it is known.
#[derive(Default)]
pub(super) struct PeerState {
    known: Mutex<PeerKnowledge>,
    /// Counts the questions that came to an end.
    ended: watch::Sender<u64>,
}

#[derive(Clone, Default)]
struct PeerKnowledge {
    /// True if a question is under way.
    asking: bool,
    /// Result of the last question.
    last: Option<Result<(), RemoteCallError>>,
    said: Option<PeerReport>,
}

/// Report of a node, with its time.
#[derive(Clone)]
struct PeerReport {
    at: Instant,
    answer: Map<String, Value>,
    offset: Option<ClockOffset>,
}

/// Offset of a different node's calendar from this one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockOffset {
    /// Milliseconds; negative where it is behind.
    pub ms: f64,
    /// The truth is no further away than this: half the time that the question took.
    pub within_ms: f64,
}

/// One node in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerSighting {
    /// The peer.
    pub peer: FleetPeer,
    /// Presence of the node, as an engine tells it.
    pub presence: PeerPresence,
    /// Reason why it counts as out of reach; absent if it answered.
    pub unreached: Option<String>,
    /// Its last report, if that is not too old to be shown.
    pub said: Option<Map<String, Value>>,
    /// Age of the report.
    pub age: Option<Duration>,
    /// Offset of its clock at that time.
    pub offset: Option<ClockOffset>,
}

impl Fleet {
    /// Returns every other node, within [`super::FleetPolicy::list_within`], even if some are down.
    pub async fn list(self: &Arc<Self>) -> Vec<PeerSighting> {
        let until = Instant::now() + self.rules.list_within;
        let sightings = self.peers().into_iter().map(|peer| self.sight(peer, until));
        join_all(sightings).await
    }

    async fn sight(self: &Arc<Self>, peer: FleetPeer, until: Instant) -> PeerSighting {
        let seen = self.peer_state(&peer);
        let known = seen.now();
        let began = Instant::now();
        if !self.is_fresh(&peer, &known) {
            let mut ended = seen.ended.subscribe();
            self.ask(&peer, &seen);
            let is_gone = matches!(self.presence.of(&peer.name), PeerPresence::Gone { .. });
            let patience = if is_gone || matches!(known.last, Some(Err(_))) {
                until.min(began + GRACE)
            } else {
                until
            };
            if timeout_at(patience, ended.changed()).await.is_err() {
                seen.is_late(patience - began);
            }
        }
        self.sighting(peer, &seen.now(), began)
    }

    fn is_fresh(&self, peer: &FleetPeer, known: &PeerKnowledge) -> bool {
        let lately = |said: &PeerReport| {
            said.at.elapsed() <= self.rules.list_cache
                && !self.presence.changed_since(&peer.name, said.at)
        };
        matches!(known.last, Some(Ok(()))) && known.said.as_ref().is_some_and(lately)
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
        let kept = |said: &&PeerReport| {
            let is_new = said.at + self.rules.list_cache >= began;
            is_new || said.at.elapsed() <= self.rules.list_keep
        };
        let said = known.said.as_ref().filter(kept);
        PeerSighting {
            peer,
            presence,
            unreached,
            said: said.map(|said| said.answer.clone()),
            age: said.map(|said| said.at.elapsed()),
            offset: said.and_then(|said| said.offset),
        }
    }

    /// Asks in the background, unless a question is under way.
    fn ask(self: &Arc<Self>, peer: &FleetPeer, seen: &Arc<PeerState>) {
        if !seen.try_begin() {
            return;
        }
        let (fleet, peer, seen) = (Arc::clone(self), peer.clone(), Arc::clone(seen));
        base::task::spawn(async move {
            // Whatever becomes of the question, it is over when this goes.
            let mut asked = OpenQuestion {
                seen,
                came: Err(RemoteCallError::Lost("the question was dropped".to_owned())),
            };
            asked.came = fleet.question(&peer).await;
        });
    }

    async fn question(&self, peer: &FleetPeer) -> Result<PeerReport, RemoteCallError> {
        let (asked, caller) = (ReceivedArguments::Absent, "list".to_owned());
        let letter = self.own_call(peer, "list_nodes", asked, caller);
        let (began, began_ms) = (Instant::now(), calendar_ms());
        let sent = self.reach.send(peer, letter, RemoteCallWatch::unobserved());
        let answer = timeout(ASK_MAX, sent).await;
        let answer = answer.map_err(|_| RemoteCallError::Silent(ASK_MAX))??;
        let took = began.elapsed();
        let said = own_report(answer)?;
        Ok(PeerReport {
            at: Instant::now(),
            offset: offset(&said, began_ms, took),
            answer: said,
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
            "what answers there is no node of this kind".to_owned(),
        )),
    }
}

fn offset(said: &Map<String, Value>, began_ms: u64, took: Duration) -> Option<ClockOffset> {
    let theirs = said.get("time_ms")?.as_u64()?;
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

    /// Says that the question under way was not answered in time; its answer may still come.
    fn is_late(&self, waited: Duration) {
        let mut known = self.known.locked();
        if known.asking && !matches!(known.last, Some(Err(_))) {
            known.last = Some(Err(RemoteCallError::Silent(waited)));
        }
    }

    /// Begins a question unless one is under way. Returns whether it began.
    fn try_begin(&self) -> bool {
        let mut known = self.known.locked();
        !std::mem::replace(&mut known.asking, true)
    }
}

/// A question under way.
struct OpenQuestion {
    seen: Arc<PeerState>,
    came: Result<PeerReport, RemoteCallError>,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut known = self.seen.known.locked();
        known.asking = false;
        match &self.came {
            Ok(said) => {
                known.said = Some(said.clone());
                known.last = Some(Ok(()));
            }
            Err(error) => known.last = Some(Err(error.clone())),
        }
        drop(known);
        self.seen.ended.send_modify(|ended| *ended += 1);
    }
}
