//! Authentication over HTTP: tokens, and whether callers need one.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::bail;
use futures::future::BoxFuture;
use serde_json::Value;

use super::client_watch::ClientWatch;
use super::operator_verb::{self, OperatorVerb, VerbReply};
use super::verb_dispatch;
use base::clock::calendar_ms;
use call::{ArrivalStamp, Refusal, refusal};
use caller::{AccessDenied, CallerRole, Principal, TokenStore};
use mcp::http::{AuthQueue, OperatorEndpoint, OperatorHandler};
use mcp::{Authenticator, CallHop, VerifiedIdentity};
use permit::ActorRank;
use tools::{Node, StopCause};

/// Returns whether every request over HTTP needs a token.
pub(crate) fn wants_tokens(node: &Node, address: SocketAddr) -> bool {
    !address.ip().is_loopback() || node.file.require_tokens
}

/// Returns the queue that checks the tokens of HTTP requests and of the page's logins. Where none is required, a token still
/// identifies its caller.
///
/// # Errors
/// The address is reachable from other machines but no token exists: every caller would be refused, while the address
/// looks open.
pub fn auth_queue(node: &Arc<Node>, address: SocketAddr) -> anyhow::Result<AuthQueue> {
    let is_required = wants_tokens(node, address);
    let tokens = TokenStore::at(&node.state);
    if is_required && tokens.list()?.is_empty() {
        let alternative = match node.file.require_tokens {
            true => "remove `require_tokens` from the node file",
            false => "serve on 127.0.0.1",
        };
        bail!(
            "callers at {address} need tokens, but there are none. Next: `steadyhand token add NAME --role planner` (with the same --config or --state), or {alternative}"
        );
    }
    let node = Arc::clone(node);
    Ok(AuthQueue::new(Arc::new(NodeAuthenticator {
        tokens,
        node,
        is_required,
    })))
}

struct NodeAuthenticator {
    tokens: TokenStore,
    /// The node, which counts calls.
    node: Arc<Node>,
    /// True if callers without a token are refused.
    is_required: bool,
}

const WANTS_TOKEN: &str = "this node needs a token. Next: an operator makes one with `steadyhand token add`; send it as `Authorization: Bearer …`";

impl Authenticator for NodeAuthenticator {
    fn verify_cached(&self, token: Option<&str>) -> Option<Result<VerifiedIdentity, Refusal>> {
        match token {
            None => Some(Err(Refusal::new(WANTS_TOKEN))),
            Some(token) => self.tokens.check_cached(token, calendar_ms()).map(identity),
        }
    }

    fn verify(&self, token: Option<&str>) -> Result<VerifiedIdentity, Refusal> {
        let token = token.ok_or_else(|| Refusal::new(WANTS_TOKEN))?;
        identity(self.tokens.check(token, calendar_ms()))
    }

    fn wants_tokens(&self) -> bool {
        self.is_required
    }

    fn count_session(&self, who: &VerifiedIdentity) -> Result<(), f64> {
        self.node.count_call(&principal(who, None))
    }
}

/// Returns the identity of a checked token, and logs a refusal.
fn identity(result: Result<Principal, AccessDenied>) -> Result<VerifiedIdentity, Refusal> {
    let principal = result.inspect_err(|denied| tracing::warn!(%denied, "a caller was refused"))?;
    Ok(VerifiedIdentity {
        name: principal.name,
        role: principal.role.to_string(),
        calls_per_minute: principal.calls_per_minute,
    })
}

/// Returns the endpoint for operators' verbs: like the control socket, but only for operators' tokens. Verbs are recorded under the
/// token's name.
pub(crate) fn operate(node: &Arc<Node>) -> OperatorEndpoint {
    OperatorEndpoint {
        bytes_max: verb_bytes_max,
        stamp_arrival: {
            let node = Arc::clone(node);
            Arc::new(move || node.stamp_arrival())
        },
        hear_stop: {
            let node = Arc::clone(node);
            Arc::new(move |identity, text| hear_stop(&node, identity, text))
        },
        run: run_for_token(node),
    }
}

/// Returns the longest verb that a caller may send: only an operator may send a drawing.
fn verb_bytes_max(identity: &VerifiedIdentity) -> usize {
    const OTHERS_MAX: usize = 64 * 1024;
    if is_operator(identity) {
        operator_verb::VERB_BYTES_MAX
    } else {
        OTHERS_MAX
    }
}

fn run_for_token(node: &Arc<Node>) -> OperatorHandler {
    let node = Arc::clone(node);
    Arc::new(move |identity, body, arrived| {
        if !is_operator(&identity) {
            let node = Arc::clone(&node);
            return Box::pin(async move { Err(refuse_verb(&node, &identity, body).await) });
        }
        let caller = format!("token {}", identity.name);
        run_verb(&node, caller, body, arrived)
    })
}

/// Carries out the stop that is named in a text that was to become a verb.
fn hear_stop(node: &Node, identity: &VerifiedIdentity, text: &[u8]) {
    let verb = OperatorVerb::read(node, text).ok();
    let Some(verb) = verb.filter(OperatorVerb::stops) else {
        return;
    };
    let caller = format!("token {}", identity.name);
    let cause = StopCause::by("an incomplete request", caller.as_str());
    match is_operator(identity) {
        true => node.stop_all(ActorRank::Operator, verb.is_emergency(), &cause),
        false => node.stop_all(ActorRank::Planner, false, &cause),
    }
    node.audit.note(
        "operator",
        format!("token {}: {verb:?} in an incomplete request", identity.name),
    );
}

/// Refuses the verb of a caller who is not an operator. A stop is carried out all the same, as for any caller.
async fn refuse_verb(node: &Arc<Node>, identity: &VerifiedIdentity, body: Vec<u8>) -> Refusal {
    let verb = OperatorVerb::read_async(node, body).await;
    let stops = verb.as_ref().is_ok_and(OperatorVerb::stops);
    let (name, role) = (&identity.name, &identity.role);
    let stop_note = if stops && node.stray_stop("stop", ActorRank::Planner, Some(name)) {
        ". It asks for a stop, so all arms of this node were stopped"
    } else {
        ""
    };
    refusal!(
        "the token `{name}` is a {role}'s, but operators' commands need an operator's token{stop_note}"
    )
}

/// Carries out the verb of an operator who does not use the control socket.
pub(crate) fn run_verb(
    node: &Arc<Node>,
    caller: String,
    body: Vec<u8>,
    arrived: ArrivalStamp,
) -> BoxFuture<'static, Result<Value, Refusal>> {
    let node = Arc::clone(node);
    Box::pin(async move {
        let verb = OperatorVerb::read_async(&node, body).await;
        let watch = ClientWatch::of(&node, verb.as_ref().ok(), &arrived);
        // Even if the client disconnects, the verb is carried out and recorded.
        let task = base::task::spawn(async move {
            let reply = match verb {
                Ok(verb) => verb_dispatch::run_for_operator(&node, &caller, verb, arrived).await,
                Err(error) => VerbReply::failed(error),
            };
            serde_json::to_value(reply).map_err(Refusal::from)
        });
        let task_panicked = |_| {
            Err(refusal!(
                "the node failed while it did this; its log has the reason"
            ))
        };
        let reply = task.await.unwrap_or_else(task_panicked);
        watch.ends();
        reply
    })
}

/// Returns whether an identity is an operator's own, not one that forwards for another caller.
pub(super) fn is_operator(identity: &VerifiedIdentity) -> bool {
    principal(identity, None).role == CallerRole::Operator
}

/// Returns the permissions of an identity from [`NodeAuthenticator`], capped at those of the caller behind a hop.
pub(crate) fn principal(identity: &VerifiedIdentity, hop: Option<&CallHop>) -> Principal {
    // An unknown role does not come from our own authenticator; it may only look.
    let role = |name: &str| name.parse().unwrap_or(CallerRole::Viewer);
    let own = role(&identity.role);
    let hop_role = hop.and_then(|hop| hop.role.as_deref()).map_or(own, role);
    Principal {
        name: identity.name.clone(),
        role: own.min(hop_role),
        calls_per_minute: identity.calls_per_minute,
    }
}
