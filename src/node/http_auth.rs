//! The door to HTTP: tokens, and whether callers need one.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::bail;
use futures::future::BoxFuture;
use serde_json::Value;

use super::client_watch::ClientWatch;
use super::operator_verb::{self, OperatorVerb, VerbReply};
use super::verb_dispatch;
use base::clock::calendar_ms;
use call::{Refusal, refusal};
use caller::{AccessDenied, CallerRole, Principal, TokenStore};
use mcp::http::{AuthQueue, OperatorEndpoint, OperatorHandler};
use mcp::{Authenticator, CallHop, VerifiedIdentity};
use permit::ActorRank;
use tools::Node;

/// Returns whether every request over HTTP needs a token.
pub(crate) fn wants_tokens(node: &Node, address: SocketAddr) -> bool {
    !address.ip().is_loopback() || node.file.require_tokens
}

/// Returns the queue of tokens that HTTP requests and the page's logins bring. Where no token is required, a token still identifies its caller.
///
/// # Errors
/// The address is reachable from other machines but no token exists: every caller would be refused, while the address
/// looks open.
pub fn auth_queue(node: &Arc<Node>, address: SocketAddr) -> anyhow::Result<AuthQueue> {
    let is_wanted = wants_tokens(node, address);
    let book = TokenStore::at(&node.state);
    if is_wanted && book.list()?.is_empty() {
        let otherwise = match node.file.require_tokens {
            true => "take `require_tokens` out of the node file",
            false => "serve on 127.0.0.1",
        };
        bail!(
            "callers at {address} need tokens and there are none: make one with `steadyhand token add NAME --role planner` (with the same --config or --state), or {otherwise}"
        );
    }
    let node = Arc::clone(node);
    Ok(AuthQueue::new(Arc::new(NodeAuthenticator {
        book,
        node,
        is_wanted,
    })))
}

struct NodeAuthenticator {
    book: TokenStore,
    /// Counts calls.
    node: Arc<Node>,
    /// True if callers without a token are refused.
    is_wanted: bool,
}

const WANTS_TOKEN: &str = "this node wants a token: send `Authorization: Bearer …`; an operator makes one with `steadyhand token add`";

impl Authenticator for NodeAuthenticator {
    fn verify_cached(&self, token: Option<&str>) -> Option<Result<VerifiedIdentity, Refusal>> {
        match token {
            None => Some(Err(Refusal::new(WANTS_TOKEN))),
            Some(token) => self.book.check_cached(token, calendar_ms()).map(judged),
        }
    }

    fn verify(&self, token: Option<&str>) -> Result<VerifiedIdentity, Refusal> {
        let token = token.ok_or_else(|| Refusal::new(WANTS_TOKEN))?;
        judged(self.book.check(token, calendar_ms()))
    }

    fn wants_tokens(&self) -> bool {
        self.is_wanted
    }

    fn count_session(&self, who: &VerifiedIdentity) -> Result<(), f64> {
        self.node.count_call(&principal(who, None))
    }
}

fn judged(found: Result<Principal, AccessDenied>) -> Result<VerifiedIdentity, Refusal> {
    let standing =
        found.inspect_err(|denied| tracing::warn!(%denied, "a caller was turned away"))?;
    Ok(VerifiedIdentity {
        name: standing.name,
        role: standing.role.to_string(),
        calls_per_minute: standing.calls_per_minute,
    })
}

/// Operators' verbs over HTTP: as by the control socket, for operators' tokens alone, noted under the token's name.
pub(crate) fn operate(node: &Arc<Node>) -> OperatorEndpoint {
    OperatorEndpoint {
        bytes_max: verb_bytes_max,
        run: run_for_token(node),
    }
}

/// Returns the longest verb that is read of a caller: only an operator may send a drawing.
fn verb_bytes_max(identity: &VerifiedIdentity) -> usize {
    const OTHERS: usize = 64 * 1024;
    if is_operator(identity) {
        operator_verb::VERB_BYTES_MAX
    } else {
        OTHERS
    }
}

fn run_for_token(node: &Arc<Node>) -> OperatorHandler {
    let node = Arc::clone(node);
    Arc::new(move |identity, body| {
        if !is_operator(&identity) {
            let node = Arc::clone(&node);
            return Box::pin(async move { Err(refuse_verb(&node, &identity, body).await) });
        }
        run_verb(&node, format!("token {}", identity.name), body)
    })
}

/// Returns the refusal of a verb of somebody who is no operator. A stop is done all the same, as any caller's.
async fn refuse_verb(node: &Arc<Node>, identity: &VerifiedIdentity, body: Vec<u8>) -> Refusal {
    let verb = OperatorVerb::read_without_blocking(node, body).await;
    let stops = verb.as_ref().is_ok_and(OperatorVerb::stops);
    let heard = if stops && node.stray_stop("stop", ActorRank::Planner) {
        "; it names a stop, so every arm of this node was told to stop"
    } else {
        ""
    };
    let (name, role) = (&identity.name, &identity.role);
    refusal!("the token `{name}` is a {role}'s; verbs are for operators' tokens{heard}")
}

/// Does a verb of an operator who is not on the control socket.
pub(crate) fn run_verb(
    node: &Arc<Node>,
    caller: String,
    body: Vec<u8>,
) -> BoxFuture<'static, Result<Value, Refusal>> {
    let node = Arc::clone(node);
    Box::pin(async move {
        let verb = OperatorVerb::read_without_blocking(&node, body).await;
        let watch = ClientWatch::of(&node, verb.as_ref().ok());
        // A client that hangs up undoes nothing else: the verb is carried out and noted.
        let done = base::task::spawn(async move {
            let told = match verb {
                Ok(verb) => verb_dispatch::run_for_operator(&node, &caller, verb).await,
                Err(why) => VerbReply::failed(why),
            };
            serde_json::to_value(told).map_err(Refusal::from)
        });
        let broke = |_| {
            Err(refusal!(
                "the node broke while it did this; its log says why"
            ))
        };
        let told = done.await.unwrap_or_else(broke);
        watch.ends();
        told
    })
}

/// Returns whether an identity is an operator's own, with nobody behind it.
pub(super) fn is_operator(identity: &VerifiedIdentity) -> bool {
    principal(identity, None).role == CallerRole::Operator
}

/// Returns the permissions of an identity from [`NodeAuthenticator`], capped at those of the caller behind a hop.
pub(crate) fn principal(identity: &VerifiedIdentity, hop: Option<&CallHop>) -> Principal {
    // A word that is no role comes from no keeper of ours; it may look.
    let role = |word: &str| word.parse().unwrap_or(CallerRole::Viewer);
    let own = role(&identity.role);
    let brought = hop.and_then(|hop| hop.role.as_deref()).map_or(own, role);
    Principal {
        name: identity.name.clone(),
        role: own.min(brought),
        calls_per_minute: identity.calls_per_minute,
    }
}
