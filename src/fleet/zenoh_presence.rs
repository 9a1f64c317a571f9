//! A node's part in a fleet over Zenoh: a liveliness token for it, a table of those of the others, stops and telemetry.
//!
//! A session with one router, on a plain thread of its own; Zenoh brings its own threads. Scouting by multicast and gossip are
//! off: nobody joins who is not told where the router is.

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

use super::zenoh_stop::{SharedSession, StopHandler, ZenohStops, hear_stops};
use super::zenoh_telemetry::{self, TelemetrySource};
use super::{Fleet, PresenceTable};
use base::lock::MutexExt as _;

/// Keys of all tokens: the node's name, then the session's own number, so that two nodes of one name are two tokens.
const EVERY_TOKEN: &str = "steadyhand/*/alive/*";

/// A router that is not reached in this time is tried anew, after as long a pause.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A session without a router for this long is given up for a new one.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);

/// All tokens are asked for this often in a fleet of [`REFRESHED_NODES`]: a change can be lost with the connection that tells it,
/// and what is told of one is a hint.
const REFRESH_AFTER: Duration = Duration::from_secs(10);

/// In a larger fleet they are asked for more rarely, by the square of its size: each node asks for all of them.
const REFRESHED_NODES: usize = 100;

/// A question for all tokens is answered within this.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// A node's way into a fleet's router.
#[derive(Clone, Debug)]
pub struct ZenohOptions {
    /// Name of this node.
    pub node: String,
    /// Endpoint of the router: `tls/HOST:PORT`, or `tcp/HOST:PORT`.
    pub router: String,
    /// After so long without a sign of life either side takes the other for gone.
    pub lease: Duration,
    /// Certificates, for a router by TLS.
    pub certificates: Option<ZenohCertificates>,
}

/// Files by which a node and a router know each other.
#[derive(Clone, Debug)]
pub struct ZenohCertificates {
    /// The authority that signed the router's certificate.
    pub ca: PathBuf,
    /// This node's certificate, whose common name is the node's.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Reason for having no presence.
#[derive(Debug, thiserror::Error)]
pub enum ZenohPresenceError {
    /// The thread was not started.
    #[error("the thread that announces this node was not started: {0}")]
    Thread(#[from] std::io::Error),
    /// Zenoh does not take the options, or does not reach its router.
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
    /// The token of this key came.
    Came(String),
    /// The token of this key went.
    Went(String),
    /// This node goes.
    End,
}

/// Part that a node takes in its fleet, beside being present.
pub struct FleetRole {
    /// Carries out stops that come from other nodes.
    pub stop: StopHandler,
    /// The runtime on which their answers are waited for.
    pub runtime: tokio::runtime::Handle,
    /// Source of its telemetry.
    pub telemetry: Arc<dyn TelemetrySource>,
}

/// Announces this node, keeps the fleet's presence true, and gives the fleet an engine that stops every node. A router that is
/// not there is tried again until this node ends.
///
/// # Errors
/// The options are none for Zenoh; no thread can be had.
pub fn announce(
    options: &ZenohOptions,
    fleet: &Fleet,
    role: FleetRole,
) -> Result<ZenohAnnouncement, ZenohPresenceError> {
    let config = config(options)?;
    let (wake, woken) = mpsc::channel();
    let session = SharedSession::default();
    fleet.set_stop_engine(Arc::new(ZenohStops(Arc::clone(&session))));
    let watcher = PresenceWatcher {
        node: options.node.clone(),
        poll: options.lease / 4,
        wake: wake.clone(),
        woken,
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
    let whole = json!({
        "mode": "client",
        "connect": { "endpoints": [options.router], "timeout_ms": 2_000, "exit_on_failure": true },
        "scouting": { "multicast": { "enabled": false }, "gossip": { "enabled": false } },
        "transport": { "link": link },
    });
    Ok(Config::from_json5(&whole.to_string())?)
}

struct PresenceWatcher {
    node: String,
    poll: Duration,
    wake: Sender<PresenceEvent>,
    woken: Receiver<PresenceEvent>,
    table: Arc<PresenceTable>,
    session: SharedSession,
    role: FleetRole,
}

impl PresenceWatcher {
    fn run(&self, config: &Config) {
        let mut told = String::new();
        loop {
            let ended = self.take_part(config, &mut told);
            self.share(None);
            self.table.replace(None);
            match ended {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => warn_once(&mut told, error.to_string()),
            }
            if let Ok(PresenceEvent::End) | Err(RecvTimeoutError::Disconnected) =
                self.woken.recv_timeout(RETRY_AFTER)
            {
                return;
            }
        }
    }

    /// Takes part in the fleet through one session. Returns true if this node goes, false if the router was lost.
    fn take_part(&self, config: &Config, told: &mut String) -> Result<bool, zenoh::Error> {
        let session = zenoh::open(config.clone()).wait()?;
        let role = &self.role;
        let _stops = hear_stops(&session, &self.node, &role.runtime, &role.stop)?;
        self.share(Some(session.clone()));
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (node, source) = (self.node.as_str(), &role.telemetry);
            let (session, ended) = (&session, &ended);
            scope.spawn(move || zenoh_telemetry::tell(session, node, source, ended));
            let watched = self.watch(session, told);
            ended.store(true, Ordering::Relaxed);
            watched
        })
    }

    fn share(&self, session: Option<Session>) {
        *self.session.locked() = session;
    }

    /// Watches who is present. Returns true if this node goes, false if the router was lost.
    fn watch(&self, session: &Session, told: &mut String) -> Result<bool, zenoh::Error> {
        let own = format!("steadyhand/{}/alive/{}", self.node, session.zid());
        let _token = session.liveliness().declare_token(own).wait()?;
        let wake = self.wake.clone();
        let _changes = session
            .liveliness()
            .declare_subscriber(EVERY_TOKEN)
            // A session that was told of no token as it came is not told as it goes.
            .history(true)
            .callback(move |sample: Sample| {
                let key = sample.key_expr().to_string();
                let _ = wake.send(match sample.kind() {
                    SampleKind::Put => PresenceEvent::Came(key),
                    SampleKind::Delete => PresenceEvent::Went(key),
                });
            })
            .wait()?;
        told.clear();
        tracing::info!("the fleet's router is reached");
        let (mut heard, mut census) = (Instant::now(), TokenCensus::default());
        loop {
            if session.info().routers_zid().wait().next().is_none() {
                self.table.replace(None);
                census = TokenCensus::default();
                if heard.elapsed() > GIVE_UP_AFTER {
                    warn_once(told, "the fleet's router is lost".to_owned());
                    return Ok(false);
                }
            } else {
                heard = Instant::now();
                if census.must_ask() {
                    census.ask(session)?;
                }
                let counts = census.counts();
                self.judge_own(counts.as_ref(), told);
                self.table.replace(counts);
            }
            let mut event = self.woken.recv_timeout(self.poll);
            // What has come meanwhile is taken together.
            loop {
                match event {
                    Ok(PresenceEvent::Came(key)) => census.came(key),
                    Ok(PresenceEvent::Went(key)) => census.went(&key),
                    Ok(PresenceEvent::End) | Err(RecvTimeoutError::Disconnected) => {
                        return Ok(true);
                    }
                    Err(RecvTimeoutError::Timeout) => break,
                }
                event = self.woken.recv_timeout(Duration::ZERO);
            }
        }
    }

    fn judge_own(&self, counts: Option<&BTreeMap<String, usize>>, told: &mut String) {
        let name = &self.node;
        match counts.and_then(|counts| counts.get(name)) {
            Some(count) if *count > 1 => warn_once(
                told,
                format!(
                    "{count} nodes of this fleet are called `{name}`: the others call none of them; give each its own `name`"
                ),
            ),
            _ => told.clear(),
        }
    }
}

/// The fleet's tokens by their keys, as the router told them.
#[derive(Default)]
struct TokenCensus {
    /// `None` where they have to be asked for.
    keys: Option<BTreeSet<String>>,
    /// The time of the last question for all, if there was one.
    asked: Option<Instant>,
}

impl TokenCensus {
    fn came(&mut self, key: String) {
        if let Some(keys) = &mut self.keys {
            keys.insert(key);
        }
    }

    fn went(&mut self, key: &str) {
        if let Some(keys) = &mut self.keys {
            keys.remove(key);
        }
    }

    fn must_ask(&self) -> bool {
        let (Some(keys), Some(asked)) = (&self.keys, self.asked) else {
            return true;
        };
        asked.elapsed() > refresh_after(keys.len())
    }

    /// Asks for all tokens. Those that are known stay where the router does not say all in time.
    fn ask(&mut self, session: &Session) -> Result<(), zenoh::Error> {
        if let Some(keys) = announced(session)? {
            self.keys = Some(keys);
            self.asked = Some(Instant::now());
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

/// Returns for how long the tokens of a fleet of this size are believed.
fn refresh_after(nodes: usize) -> Duration {
    let times = u32::try_from(nodes.div_ceil(REFRESHED_NODES)).unwrap_or(u32::MAX);
    REFRESH_AFTER.saturating_mul(times.saturating_mul(times).max(1))
}

/// Returns the keys of all tokens, of which some may be told twice; `None` if the router does not say all in time. It may never do:
/// a question that meets a change there can stay without its end.
fn announced(session: &Session) -> Result<Option<BTreeSet<String>>, zenoh::Error> {
    let until = Instant::now() + ANSWER_WITHIN;
    let replies = session
        .liveliness()
        .get(EVERY_TOKEN)
        .timeout(ANSWER_WITHIN)
        .wait()?;
    let mut keys = BTreeSet::new();
    loop {
        let patience = until.saturating_duration_since(Instant::now());
        match replies.recv_timeout(patience) {
            Ok(Some(reply)) => match reply.result() {
                Ok(sample) => keys.insert(sample.key_expr().to_string()),
                Err(_) => return Ok(None),
            },
            Ok(None) => return Ok(None),
            // The last one was heard.
            Err(_) => return Ok(Some(keys)),
        };
    }
}

fn warn_once(told: &mut String, why: String) {
    if *told != why {
        tracing::warn!("presence in the fleet: {why}");
        *told = why;
    }
}
