//! Long messages over HTTP: read off the thread that serves all clients, so that no stop waits behind them, and bounded in
//! total, so that no number of them takes all memory.

use std::sync::Arc;

use axum::body::Bytes;
use call::VerifiedIdentity;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::message_intake::{self, AcceptedMessage, MessageIntake, MessageRepair};
use super::service_trait::McpService;
use super::stray_stop;

/// Longest text that is read on the thread that serves all clients; a stop is shorter.
pub const INLINE_BYTES_MAX: usize = 4 * 1024;

/// Bodies longer than this are received [`LONG_BODIES_MAX`] at a time, until they are read.
pub(super) const SHORT_BODY_BYTES_MAX: usize = 64 * 1024;

/// Long bodies that are received at one time.
const LONG_BODIES_MAX: usize = 8;

/// Most JSON values of all long messages that are not answered yet. Every [`BYTES_PER_VALUE`] bytes count as one more.
const OPEN_VALUES_MAX: usize = 100_000;
const BYTES_PER_VALUE: usize = 256;

/// Longest message without the arguments of its call: the protocol library reads it on the thread that serves all clients.
const REST_BYTES_MAX: usize = 64 * 1024;

/// Share of the memory for long messages, given back when dropped.
pub(super) type MemoryShare = Option<OwnedSemaphorePermit>;

/// Judge of a message: the repair of its form, and the service that carries out a stop in it.
#[derive(Clone)]
pub(super) struct MessageJudge {
    pub(super) repair: MessageRepair,
    pub(super) service: Option<Arc<dyn McpService>>,
    pub(super) sender: Option<VerifiedIdentity>,
}

impl MessageJudge {
    fn judge(&self, raw: &[u8]) -> MessageIntake {
        let (repair, sender) = (self.repair, self.sender.as_ref());
        match &self.service {
            Some(service) => stray_stop::admit(raw, repair, service.as_ref(), sender),
            None => message_intake::admit(raw, repair),
        }
    }

    /// Judges a long message, and takes its share of `values`.
    fn judge_long(&self, raw: &[u8], values: Arc<Semaphore>) -> (MessageIntake, MemoryShare) {
        let mut admitted = self.judge(raw);
        let MessageIntake::Pass(accepted) = &mut admitted else {
            return (admitted, None);
        };
        if bytes_beside_arguments(accepted) > REST_BYTES_MAX {
            let reason = format!(
                "the message is too long (at most {REST_BYTES_MAX} bytes, not counting the `arguments` of a `tools/call`)"
            );
            let refused = self.refuse(&accepted.message, message_intake::INVALID_REQUEST, &reason);
            return (refused, None);
        }
        let weight = values_in(&accepted.message) + raw.len() / BYTES_PER_VALUE;
        match values.try_acquire_many_owned(u32::try_from(weight).unwrap_or(u32::MAX)) {
            Ok(share) => (admitted, Some(share)),
            Err(_) => {
                let reason = "as many long messages as may be are being answered; send this again when one of them is";
                let refused = self.refuse(&accepted.message, message_intake::BUSY, reason);
                (refused, None)
            }
        }
    }

    /// Refuses a message, but does not lose a stop.
    fn refuse(&self, message: &Value, code: i64, reason: &str) -> MessageIntake {
        let refusal = message_intake::refusal(code, message.get("id").cloned(), reason);
        let sender = self.sender.as_ref();
        let stops =
            |service: &Arc<dyn McpService>| stray_stop::preempt(message, service.as_ref(), sender);
        let is_stopped = self.service.as_ref().is_some_and(stops);
        MessageIntake::Reply(stray_stop::with_stop_notice(refusal, is_stopped))
    }
}

/// The long messages of a server.
#[derive(Debug)]
pub(super) struct LongMessages {
    /// Admits one reader at a time; short messages do not wait for it.
    reading: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    values: Arc<Semaphore>,
}

impl Default for LongMessages {
    fn default() -> Self {
        Self {
            reading: Arc::new(Semaphore::new(1)),
            bodies: Arc::new(Semaphore::new(LONG_BODIES_MAX)),
            values: Arc::new(Semaphore::new(OPEN_VALUES_MAX)),
        }
    }
}

impl LongMessages {
    /// Waits until one more long body may be received.
    pub(super) async fn receive(&self) -> MemoryShare {
        Arc::clone(&self.bodies).acquire_owned().await.ok()
    }

    /// Judges a message, a long one on another thread. `received` is its share while it is received; the returned share is to be
    /// kept until it is answered.
    pub(super) async fn admit(
        &self,
        raw: Bytes,
        received: MemoryShare,
        judge: MessageJudge,
    ) -> (MessageIntake, MemoryShare) {
        if raw.len() <= INLINE_BYTES_MAX {
            return (judge.judge(&raw), None);
        }
        let reading = Arc::clone(&self.reading).acquire_owned().await;
        let values = Arc::clone(&self.values);
        let judging = tokio::task::spawn_blocking(move || {
            let judged = judge.judge_long(&raw, values);
            // Free the text before the next is read.
            drop(raw);
            drop((received, reading));
            judged
        });
        let failed = |_| (MessageIntake::Reply(message_intake::internal_error()), None);
        judging.await.unwrap_or_else(failed)
    }
}

fn bytes_beside_arguments(accepted: &mut AcceptedMessage) -> usize {
    const ARGUMENTS: &str = "/params/arguments";
    let is_call = accepted.tool().is_some();
    let arguments = accepted.message.pointer_mut(ARGUMENTS);
    let taken = arguments.filter(|_| is_call).map(Value::take);
    let bytes = accepted.message.to_string().len();
    if let (Some(taken), Some(place)) = (taken, accepted.message.pointer_mut(ARGUMENTS)) {
        *place = taken;
    }
    bytes
}

fn values_in(value: &Value) -> usize {
    1 + match value {
        Value::Array(all) => all.iter().map(values_in).sum(),
        Value::Object(all) => all.values().map(values_in).sum(),
        _ => 0,
    }
}
