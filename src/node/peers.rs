//! Calls to the nodes that the node file names: MCP over HTTP, one request per call.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;

use config::{FleetEntry, NodeFile, PeerEntry};
use fleet::{
    Fleet, FleetPeer, FleetPolicy, OutgoingCall, PeerTransport, RemoteCallError, RemoteCallWatch,
    ToolAnswer,
};
use mcp::{self, ForwardError, ForwardedCall};

use super::remote_tools::forward_progress;
use base::plain_file;

/// Longest token file.
const TOKEN_BYTES_MAX: usize = 4 * 1024;

/// Longest report of another node about itself: a list repeats each, on the thread that hears stops.
const REPORT_BYTES_MAX: usize = 128 * 1024;

/// Longest answer to any other call: a node's own pictures, and as much text.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// The peers of a node file.
struct PeerDirectory {
    entries: Vec<PeerEntry>,
    /// Silence after which a working node is given up.
    quiet: Duration,
}

/// Returns the fleet of the other nodes, if the node file names any.
pub fn fleet(file: &NodeFile) -> Option<Arc<Fleet>> {
    if file.peers.is_empty() && file.fleet.zenoh.is_none() {
        return None;
    }
    let directory = PeerDirectory {
        entries: file.peers.clone(),
        quiet: Duration::from_secs(file.fleet.quiet_s),
    };
    let fleet = Fleet::new(&file.name, Arc::new(directory), policy(&file.fleet));
    Some(Arc::new(fleet))
}

fn policy(entry: &FleetEntry) -> FleetPolicy {
    FleetPolicy {
        list_within: Duration::from_millis(entry.list_within_ms),
        list_cache: Duration::from_millis(entry.list_cache_ms),
        list_keep: Duration::from_secs(entry.list_keep_s),
        read_within: Duration::from_secs(entry.read_within_s),
        move_within: Duration::from_secs(entry.move_within_s),
        stop_within: Duration::from_secs(entry.stop_within_s),
        read_retries: entry.read_retries,
        retry_after: Duration::from_millis(entry.retry_after_ms),
    }
}

impl PeerTransport for PeerDirectory {
    fn peers(&self) -> Vec<FleetPeer> {
        let peer = |entry: &PeerEntry| FleetPeer {
            name: entry.name.clone(),
            address: entry.address.clone(),
            tags: entry.tags.clone(),
        };
        self.entries.iter().map(peer).collect()
    }

    fn send(
        &self,
        peer: &FleetPeer,
        call: OutgoingCall,
        watch: RemoteCallWatch,
    ) -> BoxFuture<'static, Result<ToolAnswer, RemoteCallError>> {
        let mut entries = self.entries.iter();
        let forwarded = match entries.find(|entry| entry.name == peer.name) {
            Some(entry) => forwarded_call(entry, call, self.quiet),
            None => Err(RemoteCallError::Unreached(
                "no node has this name".to_owned(),
            )),
        };
        Box::pin(async move {
            let cancelled = watch.cancelled.clone();
            let (call_watch, forwarding) = forward_progress(watch);
            let sending = mcp::forward_call(forwarded?, call_watch.progress);
            let answer = tokio::select! {
                answer = sending => answer.map_err(failure),
                () = cancelled.cancelled() => Err(RemoteCallError::Cancelled),
            };
            forwarding.abort();
            answer
        })
    }
}

fn forwarded_call(
    entry: &PeerEntry,
    call: OutgoingCall,
    quiet: Duration,
) -> Result<ForwardedCall, RemoteCallError> {
    let not_an_address =
        || RemoteCallError::Unreached(format!("{} is not an address", entry.address));
    let url = entry.url().ok_or_else(not_an_address)?;
    let answer_bytes_max = match call.tool.as_str() {
        "list_nodes" => REPORT_BYTES_MAX,
        _ => ANSWER_BYTES_MAX,
    };
    Ok(ForwardedCall {
        url,
        token: token(entry).map_err(RemoteCallError::Unreached)?,
        hop: call.hop,
        tool: call.tool,
        arguments: call.arguments,
        quiet,
        answer_bytes_max,
    })
}

fn failure(error: ForwardError) -> RemoteCallError {
    match error {
        ForwardError::Unreached(reason) => RemoteCallError::Unreached(reason),
        ForwardError::Lost(reason) => RemoteCallError::Lost(reason),
        ForwardError::Refused(reason) => RemoteCallError::Refused(reason),
    }
}

/// Returns the token for a peer. Reads it at each call, so that a replaced token takes effect at once.
///
/// # Errors
/// The file cannot be read; the message does not contain its content.
pub fn token(entry: &PeerEntry) -> Result<Option<String>, String> {
    match (&entry.token, &entry.token_file) {
        (Some(token), _) => Ok(Some(token.reveal().trim().to_owned())),
        (None, Some(file)) => read_token(file).map(Some),
        (None, None) => Ok(None),
    }
}

/// Reads the only token of a file.
///
/// # Errors
/// The file cannot be read, or holds something else; the message does not contain its content.
pub fn read_token(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let text = plain_file::read_text(file)
        .map_err(|error| format!("the token cannot be read from {shown}: {error}"))?;
    let token = text.trim();
    let is_single_token = (1..=TOKEN_BYTES_MAX).contains(&token.len())
        && !token.contains(|c: char| c.is_whitespace() || c.is_control());
    match is_single_token {
        true => Ok(token.to_owned()),
        false => Err(format!("{shown} must contain one token and nothing else")),
    }
}
