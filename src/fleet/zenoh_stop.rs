//! Stops over Zenoh: each node answers at `steadyhand/NAME/stop`, and a stop for all is one query to every such key.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};
use zenoh::bytes::ZBytes;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::query::{ConsolidationMode, Query, QueryTarget, Queryable};
use zenoh::sample::Locality;
use zenoh::{Session, Wait};

use super::stop_fan_out::{FanOut, FleetStop, StopAcknowledgement, StopEngine};
use base::lock::MutexExt as _;

/// Keys at which nodes receive stops.
const EVERY_STOP: &str = "steadyhand/*/stop";

/// Time limit for answers: an arm stands within a second, or cannot be read.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(3);

/// Stops the node's arms before it returns; the returned future resolves to their outcome.
pub type StopHandler =
    Arc<dyn Fn(FleetStop) -> BoxFuture<'static, StopAcknowledgement> + Send + Sync>;

/// The current session, if there is one.
pub(super) type SharedSession = Arc<Mutex<Option<Session>>>;

/// Stops every node through the current session.
pub(super) struct ZenohStops(pub(super) SharedSession);

impl StopEngine for ZenohStops {
    fn stop_all(&self, order: FleetStop) -> BoxFuture<'static, FanOut> {
        let session = self.0.locked().clone();
        Box::pin(async move {
            let unsent = |reason: String| FanOut {
                unsent: Some(reason),
                ..FanOut::default()
            };
            match session {
                None => unsent("the fleet is not connected".to_owned()),
                Some(session) => fan_out(&session, order)
                    .await
                    .unwrap_or_else(|error| unsent(error.to_string())),
            }
        })
    }
}

async fn fan_out(session: &Session, order: FleetStop) -> Result<FanOut, zenoh::Error> {
    let deadline = Instant::now() + ACKNOWLEDGED_WITHIN;
    let replies = session
        .get(EVERY_STOP)
        .payload(order.words())
        .priority(Priority::RealTime)
        .congestion_control(CongestionControl::Block)
        .express(true)
        .allowed_destination(Locality::Remote)
        .target(QueryTarget::All)
        // Nodes of one name answer with one key, and each answer counts.
        .consolidation(ConsolidationMode::None)
        .timeout(ACKNOWLEDGED_WITHIN)
        .await?;
    let mut result = FanOut::default();
    while let Ok(reply) = timeout_at(deadline, replies.recv_async()).await {
        // All replies have arrived.
        let Ok(reply) = reply else {
            result.is_complete = Instant::now() < deadline;
            break;
        };
        let Ok(sample) = reply.result() else {
            continue;
        };
        let name = sample.key_expr().as_str().split('/').nth(1);
        let answer = text(sample.payload());
        if let Some(name) = name {
            let answer = StopAcknowledgement::read(&answer);
            let answers = result.acknowledged.entry(name.to_owned()).or_default();
            answers.push(answer);
        }
    }
    Ok(result)
}

fn text(payload: &ZBytes) -> String {
    String::from_utf8_lossy(&payload.to_bytes()).into_owned()
}

/// Answers stops for a node until the returned value is dropped.
pub(super) fn answer_stops(
    session: &Session,
    node: &str,
    runtime: &tokio::runtime::Handle,
    handler: &StopHandler,
) -> Result<Queryable<()>, zenoh::Error> {
    let key = format!("steadyhand/{node}/stop");
    let (runtime, handler, reply_key) = (runtime.clone(), Arc::clone(handler), key.clone());
    session
        .declare_queryable(key)
        .callback(move |query: Query| {
            let order = FleetStop::read(&query.payload().map(text).unwrap_or_default());
            // The arms are told to stop on this thread; only their standstill is awaited elsewhere.
            let stopped = handler(order);
            let reply_key = reply_key.clone();
            runtime.spawn(async move {
                let answer = stopped.await.words();
                if let Err(error) = query.reply(reply_key, answer).await {
                    tracing::warn!("a stop was carried out, but its answer was lost: {error}");
                }
            });
        })
        .wait()
}
