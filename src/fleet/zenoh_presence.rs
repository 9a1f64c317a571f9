//! A node's part in a fleet over Zenoh: its own liveliness token, a table of the other nodes' tokens, stops and telemetry.
//!
//! It keeps a session with one router, on a thread of its own besides Zenoh's threads. Scouting by multicast and by gossip is
//! off, so that only a node that knows the router's address can join.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use zenoh::sample::{Sample, SampleKind};
use zenoh::{Config, Session, Wait};

use super::zenoh_stop::{SharedSession, StopHandler, ZenohStops, answer_stops};
use super::zenoh_telemetry::{self, TelemetrySource};
use super::{Fleet, PresenceTable};
use base::lock::MutexExt as _;

/// Keys of all tokens: the node's name, then the session's id, so that two nodes of one name have two tokens.
const EVERY_TOKEN: &str = "steadyhand/*/alive/*";

/// Pause before an unreachable router is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Time without a router after which a session is replaced by a new one.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);

/// Interval at which all tokens are queried in a fleet of up to [`REFRESHED_NODES`]. A change can be lost with the connection that
/// reports it, and each reported change is only a hint.
const REFRESH_AFTER: Duration = Duration::from_secs(10);

/// Size of a fleet beyond which the interval grows with the square of the size, because each node queries all tokens.
const REFRESHED_NODES: usize = 100;

/// Time in which a query for all tokens is answered.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Connection of a node to its fleet's router.
#[derive(Clone, Debug)]
pub struct ZenohOptions {
    /// Name of this node.
    pub node: String,
    /// Endpoint of the router: `tls/HOST:PORT`, or `tcp/HOST:PORT`.
    pub router: String,
    /// Silence after which either side considers the other gone.
    pub lease: Duration,
    /// Certificates, for a router that uses TLS.
    pub certificates: Option<ZenohCertificates>,
}

/// Files with which a node and a router authenticate each other.
#[derive(Clone, Debug)]
pub struct ZenohCertificates {
    /// The authority that signed the router's certificate.
    pub ca: PathBuf,
    /// This node's certificate, whose common name is the node's.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Reason why a node has no presence.
#[derive(Debug, thiserror::Error)]
pub enum ZenohPresenceError {
    /// The thread was not started.
    #[error("the thread that announces this node was not started: {0}")]
    Thread(#[from] std::io::Error),
    /// Zenoh rejects the options, or cannot reach the router.
    #[error("{0}")]
    Session(#[from] zenoh::Error),
}

/// Presence of this node; it ends when this is dropped.
#[derive(Debug)]
pub struct ZenohAnnouncement {
    wake: Sender<PresenceEvent>,
}

impl Drop for ZenohAnnouncement {
    fn drop(&mut self) {
        let _ = self.wake.send(PresenceEvent::End);
    }
}

enum PresenceEvent {
    /// The token of this key appeared.
    Appeared(String),
    /// The token of this key disappeared.
    Disappeared(String),
    /// This node leaves the fleet.
    End,
}

/// Role of a node in its fleet, besides being present.
pub struct FleetRole {
    /// Carries out stops that come from other nodes.
    pub stop: StopHandler,
    /// The runtime that waits for their answers.
    pub runtime: tokio::runtime::Handle,
    /// Source of its telemetry.
    pub telemetry: Arc<dyn TelemetrySource>,
}

/// Announces this node, keeps the fleet's presence table up to date, and gives the fleet an engine that stops every node. An
/// unreachable router is retried until this node ends.
///
/// # Errors
/// Zenoh rejects the options, or the thread cannot be started.
pub fn announce(
    options: &ZenohOptions,
    fleet: &Fleet,
    role: FleetRole,
) -> Result<ZenohAnnouncement, ZenohPresenceError> {
    let config = config(options)?;
    let (wake, events) = mpsc::channel();
    let session = SharedSession::default();
    fleet.set_stop_engine(Arc::new(ZenohStops(Arc::clone(&session))));
    let watcher = PresenceWatcher {
        node: options.node.clone(),
        poll: options.lease / 4,
        wake: wake.clone(),
        events,
        table: Arc::clone(fleet.presence()),
        session,
        role,
    };
    std::thread::Builder::new()
        .name("presence".to_owned())
        .spawn(move || watcher.run(&config))?;
    Ok(ZenohAnnouncement { wake })
}

fn config(options: &ZenohOptions) -> Result<Config, ZenohPresenceError> {
    let lease_ms = u64::try_from(options.lease.as_millis()).unwrap_or(u64::MAX);
    let mut link = json!({ "tx": { "lease": lease_ms, "keep_alive": 4 } });
    if let (Some(files), Some(link)) = (&options.certificates, link.as_object_mut()) {
        link.insert(
            "tls".to_owned(),
            json!({
                "root_ca_certificate": files.ca,
                "enable_mtls": true,
                "connect_certificate": files.cert,
                "connect_private_key": files.key,
                "verify_name_on_connect": true,
            }),
        );
    }
    let config = json!({
        "mode": "client",
        "connect": { "endpoints": [options.router], "timeout_ms": 2_000, "exit_on_failure": true },
        "scouting": { "multicast": { "enabled": false }, "gossip": { "enabled": false } },
        "transport": { "link": link },
    });
    Ok(Config::from_json5(&config.to_string())?)
}

struct PresenceWatcher {
    node: String,
    poll: Duration,
    wake: Sender<PresenceEvent>,
    events: Receiver<PresenceEvent>,
    table: Arc<PresenceTable>,
    session: SharedSession,
    role: FleetRole,
}

impl PresenceWatcher {
    fn run(&self, config: &Config) {
        let mut last_warning = String::new();
        loop {
            let result = self.take_part(config, &mut last_warning);
            self.share(None);
            self.table.replace(None);
            match result {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => warn_once(&mut last_warning, error.to_string()),
            }
            if let Ok(PresenceEvent::End) | Err(RecvTimeoutError::Disconnected) =
                self.events.recv_timeout(RETRY_AFTER)
            {
                return;
            }
        }
    }

    /// Takes part in the fleet through one session. Returns true if this node leaves, false if the router was lost.
    fn take_part(&self, config: &Config, last_warning: &mut String) -> Result<bool, zenoh::Error> {
        let session = zenoh::open(config.clone()).wait()?;
        let role = &self.role;
        let _stops = answer_stops(&session, &self.node, &role.runtime, &role.stop)?;
        self.share(Some(session.clone()));
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (node, source) = (self.node.as_str(), &role.telemetry);
            let (session, ended) = (&session, &ended);
            scope.spawn(move || zenoh_telemetry::publish(session, node, source, ended));
            let result = self.watch(session, last_warning);
            ended.store(true, Ordering::Relaxed);
            result
        })
    }

    /// Makes the session available for stops; `None` while there is none.
    fn share(&self, session: Option<Session>) {
        *self.session.locked() = session;
    }

    /// Watches which nodes are present. Returns true if this node leaves, false if the router was lost.
    fn watch(&self, session: &Session, last_warning: &mut String) -> Result<bool, zenoh::Error> {
        let key = format!("steadyhand/{}/alive/{}", self.node, session.zid());
        let _token = session.liveliness().declare_token(key).wait()?;
        let wake = self.wake.clone();
        let _changes = session
            .liveliness()
            .declare_subscriber(EVERY_TOKEN)
            // A session is not notified of the end of a token whose beginning it has not seen.
            .history(true)
            .callback(move |sample: Sample| {
                let key = sample.key_expr().to_string();
                let _ = wake.send(match sample.kind() {
                    SampleKind::Put => PresenceEvent::Appeared(key),
                    SampleKind::Delete => PresenceEvent::Disappeared(key),
                });
            })
            .wait()?;
        last_warning.clear();
        tracing::info!("connected to the fleet's router");
        let (mut last_contact, mut census) = (Instant::now(), TokenCensus::default());
        loop {
            if session.info().routers_zid().wait().next().is_none() {
                self.table.replace(None);
                census = TokenCensus::default();
                if last_contact.elapsed() > GIVE_UP_AFTER {
                    warn_once(
                        last_warning,
                        "lost the connection to the fleet's router".to_owned(),
                    );
                    return Ok(false);
                }
            } else {
                last_contact = Instant::now();
                if census.must_query() {
                    census.query(session)?;
                }
                let counts = census.counts();
                self.warn_of_duplicates(counts.as_ref(), last_warning);
                self.table.replace(counts);
            }
            let mut event = self.events.recv_timeout(self.poll);
            // Events that have arrived meanwhile are handled together.
            loop {
                match event {
                    Ok(PresenceEvent::Appeared(key)) => census.add(key),
                    Ok(PresenceEvent::Disappeared(key)) => census.remove(&key),
                    Ok(PresenceEvent::End) | Err(RecvTimeoutError::Disconnected) => {
                        return Ok(true);
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                }
                event = self.events.recv_timeout(Duration::ZERO);
            }
        }
    }

    fn warn_of_duplicates(
        &self,
        counts: Option<&BTreeMap<String, usize>>,
        last_warning: &mut String,
    ) {
        let name = &self.node;
        match counts.and_then(|counts| counts.get(name)) {
            Some(count) if *count > 1 => warn_once(
                last_warning,
                format!(
                    "{count} nodes of this fleet have the name `{name}`, so other nodes cannot call any of them. Next: give each its own `name`"
                ),
            ),
            _ => last_warning.clear(),
        }
    }
}

/// The fleet's tokens by their keys, as the router reported them.
#[derive(Default)]
struct TokenCensus {
    /// `None` if they must be queried.
    keys: Option<BTreeSet<String>>,
    /// Time of the last query for all, if there was one.
    queried: Option<Instant>,
}

impl TokenCensus {
    fn add(&mut self, key: String) {
        if let Some(keys) = &mut self.keys {
            keys.insert(key);
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some(keys) = &mut self.keys {
            keys.remove(key);
        }
    }

    fn must_query(&self) -> bool {
        let (Some(keys), Some(queried)) = (&self.keys, self.queried) else {
            return true;
        };
        queried.elapsed() > refresh_after(keys.len())
    }

    /// Queries all tokens. The known ones are kept if the router does not send all in time.
    fn query(&mut self, session: &Session) -> Result<(), zenoh::Error> {
        if let Some(keys) = announced_keys(session)? {
            self.keys = Some(keys);
            self.queried = Some(Instant::now());
        }
        Ok(())
    }

    /// Returns the number of tokens of each name.
    fn counts(&self) -> Option<BTreeMap<String, usize>> {
        let mut counts = BTreeMap::new();
        for key in self.keys.as_ref()? {
            if let Some(name) = key.split('/').nth(1) {
                *counts.entry(name.to_owned()).or_insert(0) += 1;
            }
        }
        Some(counts)
    }
}

/// Returns how long the tokens of a fleet of this size are valid.
fn refresh_after(nodes: usize) -> Duration {
    let factor = u32::try_from(nodes.div_ceil(REFRESHED_NODES)).unwrap_or(u32::MAX);
    REFRESH_AFTER.saturating_mul(factor.saturating_mul(factor).max(1))
}

/// Returns the keys of all tokens; `None` if the router does not send all in time. It may never do so: a query that coincides
/// with a change at the router may not end.
fn announced_keys(session: &Session) -> Result<Option<BTreeSet<String>>, zenoh::Error> {
    let deadline = Instant::now() + ANSWER_WITHIN;
    let replies = session
        .liveliness()
        .get(EVERY_TOKEN)
        .timeout(ANSWER_WITHIN)
        .wait()?;
    let mut keys = BTreeSet::new();
    loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match replies.recv_timeout(remaining) {
            Ok(Some(reply)) => match reply.result() {
                Ok(sample) => keys.insert(sample.key_expr().to_string()),
                Err(_) => return Ok(None),
            },
            Ok(None) => return Ok(None),
            // All replies have arrived.
            Err(_) => return Ok(Some(keys)),
        };
    }
}

fn warn_once(last_warning: &mut String, warning: String) {
    if *last_warning != warning {
        tracing::warn!("this node's presence in the fleet: {warning}");
        *last_warning = warning;
    }
}
