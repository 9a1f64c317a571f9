//! Services for the operator's page: verifies tokens, senses arms, carries out verbs and stops.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::operator_verb::{self, OperatorVerb};
use super::verb_dispatch;
use super::{http_auth, worker_pool};
use args::ReceivedArguments;
use call::{ArrivalStamp, Refusal, ToolAnswer};
use mcp::VerifiedIdentity;
use mcp::http::AuthQueue;
use page::{PageDoor, PageServices, StopAnswer};
use permit::ActorRank;
use tools::Node;

/// Returns the router of the page, and stores its address for `steadyhand page`.
pub fn pages(
    node: &Arc<Node>,
    tokens: &AuthQueue,
    scheme: &'static str,
    address: SocketAddr,
    stop: &CancellationToken,
) -> page::Router {
    let services = Arc::new(NodePageServices {
        node: Arc::clone(node),
        tokens: tokens.clone(),
    });
    node.login_codes.served_at(&page_address(scheme, address));
    let door = PageDoor::new(node, services, scheme, address.port(), stop.clone());
    page::routes(door)
}

/// Returns the address of the page for a browser on the node's own machine.
pub(crate) fn page_address(scheme: &str, address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("{scheme}://localhost:{}/", address.port()),
        false => format!("{scheme}://{address}/"),
    }
}

struct NodePageServices {
    node: Arc<Node>,
    tokens: AuthQueue,
}

impl PageServices for NodePageServices {
    fn verify(&self, token: String) -> BoxFuture<'static, Result<VerifiedIdentity, Refusal>> {
        let tokens = self.tokens.clone();
        Box::pin(async move { tokens.verify(token).await })
    }

    fn holder(&self, token: String) -> BoxFuture<'static, Option<VerifiedIdentity>> {
        let tokens = self.tokens.clone();
        Box::pin(async move { tokens.verify_cached(token).await })
    }

    fn verb_bytes_max(&self) -> usize {
        operator_verb::VERB_BYTES_MAX
    }

    fn operate(
        &self,
        caller: String,
        verb: Vec<u8>,
        arrived: ArrivalStamp,
    ) -> BoxFuture<'static, Result<Value, Refusal>> {
        http_auth::run_verb(&self.node, caller, verb, arrived)
    }

    fn stop_in(&self, verb: &[u8]) -> Option<bool> {
        let verb = OperatorVerb::read(&self.node, verb).ok()?;
        verb.stops().then(|| verb.is_emergency())
    }

    fn sense(&self, caller: String, arm: Option<String>) -> BoxFuture<'static, ToolAnswer> {
        let mut arguments = json!({"debug": true});
        if let (Some(arguments), Some(arm)) = (arguments.as_object_mut(), arm)
            && self.node.arms.len() > 1
        {
            arguments.insert("arm".to_owned(), arm.into());
        }
        let arguments = ReceivedArguments::Value(arguments);
        let planner = ActorRank::Planner;
        let arrived = self.node.stamp_arrival();
        let call = (planner, "sense", arguments);
        let sensing = verb_dispatch::call_as(&self.node, &caller, arrived, call);
        let sensing = worker_pool::spawn(sensing);
        Box::pin(async move {
            let worker_panicked = |_| {
                ToolAnswer::failed("the node failed while it read the arm; its log has the reason")
            };
            sensing.await.unwrap_or_else(worker_panicked)
        })
    }

    fn stop(&self, caller: String, emergency: bool) -> BoxFuture<'static, StopAnswer> {
        let verb = match emergency {
            true => OperatorVerb::Estop,
            false => OperatorVerb::Stop,
        };
        let node = Arc::clone(&self.node);
        // The stop and its outcome are recorded even if the page is closed at once.
        let stopping = base::task::spawn(async move {
            verb_dispatch::run_for_operator(&node, &caller, verb, node.stamp_arrival()).await
        });
        Box::pin(async move {
            match stopping.await {
                Ok(reply) => StopAnswer {
                    verified: reply.done,
                    words: reply.text,
                },
                Err(_) => StopAnswer {
                    verified: false,
                    words: "the node failed while it stopped the arm. Look at the arm, and cut its power if it moves"
                        .to_owned(),
                },
            }
        })
    }
}
