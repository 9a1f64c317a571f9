//! The door to HTTP: tokens, and whether callers need one.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::bail;

use super::control_socket::{self, Told, Verb};
use base::clock::calendar_ms;
use caller::{Book, Denied, Role, Standing};
use mcp::http::Operate;
use mcp::{Doorkeeper, Hop, Identity};
use tools::Node;

/// Returns whether every request over HTTP needs a token.
pub(crate) fn wants_tokens(node: &Node, address: SocketAddr) -> bool {
    !address.ip().is_loopback() || node.file.require_tokens
}

/// Returns the authenticator of HTTP requests. Where no token is required, a token still identifies its caller.
///
/// # Errors
/// The address is reachable from other machines but no token exists: every caller would be refused, while the address
/// looks open.
pub(crate) fn keeper(node: &Arc<Node>, address: SocketAddr) -> anyhow::Result<Arc<dyn Doorkeeper>> {
    let is_wanted = wants_tokens(node, address);
    let book = Book::at(&node.state);
    if is_wanted && book.list()?.is_empty() {
        bail!(
            "callers at {address} need tokens and there are none: make one with `steadyhand token add NAME --role planner` (with the same --config or --state), or serve on 127.0.0.1"
        );
    }
    let node = Arc::clone(node);
    Ok(Arc::new(Keeper {
        book,
        node,
        is_wanted,
    }))
}

struct Keeper {
    book: Book,
    /// Counts calls.
    node: Arc<Node>,
    /// True if callers without a token are refused.
    is_wanted: bool,
}

const WANTS_TOKEN: &str = "this node wants a token: send `Authorization: Bearer …`; an operator makes one with `steadyhand token add`";

impl Doorkeeper for Keeper {
    fn glance(&self, token: Option<&str>) -> Option<Result<Identity, String>> {
        match token {
            None => Some(Err(WANTS_TOKEN.to_owned())),
            Some(token) => self.book.glance(token, calendar_ms()).map(judged),
        }
    }

    fn admit(&self, token: Option<&str>) -> Result<Identity, String> {
        judged(self.book.check(token.ok_or(WANTS_TOKEN)?, calendar_ms()))
    }

    fn wants_tokens(&self) -> bool {
        self.is_wanted
    }

    fn opens(&self, who: &Identity) -> Result<(), f64> {
        self.node.count(&standing(who, None))
    }
}

fn judged(found: Result<Standing, Denied>) -> Result<Identity, String> {
    let standing = found.map_err(|denied| {
        tracing::warn!(%denied, "a caller was turned away");
        denied.to_string()
    })?;
    Ok(Identity {
        name: standing.name,
        role: standing.role.to_string(),
        calls_per_minute: standing.calls_per_minute,
    })
}

/// Operators' verbs over HTTP: as by the control socket, for operators' tokens alone, noted under the token's name.
pub(crate) fn operate(node: &Arc<Node>) -> Operate {
    let node = Arc::clone(node);
    Arc::new(move |identity, body| {
        let verb = Verb::read(&node, &body);
        let is_operator = standing(&identity, None).role == Role::Operator;
        let jogs = is_operator && matches!(verb, Ok(Verb::Jog { .. }));
        let watch = Watch(jogs.then(|| Arc::clone(&node)));
        let node = Arc::clone(&node);
        // Whoever hangs up undoes nothing else: what was begun is done and noted.
        let doing = async move {
            if !is_operator {
                return Err(format!(
                    "the token `{}` is a {}'s; verbs are for operators' tokens",
                    identity.name, identity.role
                ));
            }
            let told = match verb {
                Ok(verb) => {
                    let caller = format!("token {}", identity.name);
                    control_socket::done_for(&node, &caller, verb).await
                }
                Err(why) => Told::failed(why),
            };
            serde_json::to_value(told).map_err(|error| error.to_string())
        };
        let done = tokio::spawn(doing);
        Box::pin(async move {
            let broke = |_| Err("the node broke while it did this; its log says why".to_owned());
            let told = done.await.unwrap_or_else(broke);
            watch.ends();
            told
        })
    })
}

/// Stops the arm if a jog client disconnects before its jog is done, because then no client watches.
struct Watch(Option<Arc<Node>>);

impl Watch {
    fn ends(mut self) {
        self.0 = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(node) = &self.0 else {
            return;
        };
        tracing::warn!("the client that jogged has gone: the arm was told to stop");
        control_socket::leave_jog(node);
    }
}

/// Returns the permissions of an identity from [`NodeAuthenticator`], capped at those of the caller behind a hop.
pub(crate) fn standing(identity: &Identity, hop: Option<&Hop>) -> Standing {
    // A word that is no role comes from no keeper of ours; it may look.
    let role = |word: &str| word.parse().unwrap_or(Role::Viewer);
    let own = role(&identity.role);
    let brought = hop.and_then(|hop| hop.role.as_deref()).map_or(own, role);
    Standing {
        name: identity.name.clone(),
        role: own.min(brought),
        calls_per_minute: identity.calls_per_minute,
    }
}
