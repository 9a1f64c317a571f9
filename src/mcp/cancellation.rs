//! Cancellations in the wrong form: finds the intended request; otherwise every motion ends.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::message_intake;
use super::wide_ids::{self, compared};

/// The protocol's method for a cancellation.
pub(super) const CANCELLED: &str = "notifications/cancelled";

/// Latest requests of a client that a cancellation can refer to.
const RECENT_MAX: usize = 256;

/// Returns whether a method is a cancellation, in either spelling and any case.
pub(super) fn is_cancellation(method: &str) -> bool {
    [CANCELLED, "notifications/canceled"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(method))
}

/// Returns whether a message, or one of a batch, is a cancellation.
pub(super) fn holds_cancellation(message: &Value) -> bool {
    match message {
        Value::Array(batch) => batch.iter().any(holds_cancellation),
        other => {
            let method = other.get("method").and_then(Value::as_str);
            method.is_some_and(is_cancellation)
        }
    }
}

/// Returns whether a message that cannot be read names a cancellation.
pub(super) fn names_cancellation(raw: &[u8]) -> bool {
    const NAME: &[u8] = b"notifications/cancel";
    raw.windows(NAME.len())
        .any(|part| part.eq_ignore_ascii_case(NAME))
}

/// Repairs a cancellation, received as `raw`: its method, a request named under another key, and an id of its own, which only
/// requests have. Returns `false` if it names no request.
pub(super) fn repair(message: &mut Value, raw: &[u8]) -> bool {
    let Some(message) = message.as_object_mut() else {
        return false;
    };
    message.insert("method".to_owned(), CANCELLED.into());
    message.remove("id");
    let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) else {
        return false;
    };
    let is_id = |id: &Value| id.is_string() || id.is_number();
    let named = ["requestId", "request_id", "requestID", "id"]
        .iter()
        .find_map(|key| Some((key, params.get(*key).filter(|id| is_id(id))?.clone())));
    named.is_some_and(|(key, mut id)| {
        wide_ids::stand_in(&mut id, || message_intake::text_at(raw, &["params", key]));
        params.insert("requestId".to_owned(), id);
        true
    })
}

/// The latest requests of a client, to which a cancellation can refer.
#[derive(Debug, Default)]
pub(super) struct RequestIds(Mutex<VecDeque<KnownRequest>>);

#[derive(Debug)]
struct KnownRequest {
    id: Value,
    /// Set once it is answered or given up.
    over: CancellationToken,
}

impl RequestIds {
    /// Notes a request that is open until `over` is set. Returns `false`, and notes nothing, where one of this id is open: its
    /// answer and its cancellation could not be told from the other's.
    pub(super) fn begin(&self, id: &Value, over: CancellationToken) -> bool {
        if self
            .lock()
            .iter()
            .any(|known| known.id == *id && known.is_open())
        {
            return false;
        }
        self.begin_any(id, over);
        true
    }

    /// Notes a request beside others of the same id: without a session, clients cannot be told apart.
    pub(super) fn begin_any(&self, id: &Value, over: CancellationToken) {
        let mut all = self.lock();
        if all.len() >= RECENT_MAX {
            let closed = all.iter().position(|known| !known.is_open());
            all.remove(closed.unwrap_or_default());
        }
        all.push_back(KnownRequest {
            id: id.clone(),
            over,
        });
    }

    /// Notes that a request was answered.
    pub(super) fn end(&self, id: &Value) {
        let all = self.lock();
        let ended = all.iter().filter(|known| is_same(&known.id, id));
        ended.for_each(|known| known.over.cancel());
    }

    /// As [`RequestIds::end`], by the answer.
    pub(super) fn end_answered(&self, answer: &ServerJsonRpcMessage) {
        if let Some(id) = answered_id(answer) {
            self.end(&id);
        }
    }

    /// Returns whether the request of an answer was given up before it.
    pub(super) fn is_given_up(&self, answer: &ServerJsonRpcMessage) -> bool {
        let id = answered_id(answer);
        let all = self.lock();
        let latest = id.and_then(|id| all.iter().rev().find(|known| is_same(&known.id, &id)));
        latest.is_some_and(|known| !known.is_open())
    }

    /// Gives up what a cancellation means, and gives its id the type that the request's had: `"117"` for 117, and 117 for `"117"`.
    /// Returns whether there was such a request.
    pub(super) fn cancel(&self, message: &mut Value) -> bool {
        let Some(id) = message.pointer_mut("/params/requestId") else {
            return false;
        };
        let all = self.lock();
        let is_exact = all.iter().any(|known| known.id == *id);
        let text = compared(id);
        let is_intended = |known: &&KnownRequest| match is_exact {
            true => known.id == *id,
            false => compared(&known.id) == text,
        };
        let mut intended = None;
        for known in all.iter().filter(is_intended) {
            known.over.cancel();
            intended = Some(&known.id);
        }
        let Some(intended) = intended.cloned() else {
            return false;
        };
        *id = intended;
        true
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KnownRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownRequest {
    fn is_open(&self) -> bool {
        !self.over.is_cancelled()
    }
}

/// Returns the id of the request that a message answers.
fn answered_id(answer: &ServerJsonRpcMessage) -> Option<Value> {
    let id = match answer {
        ServerJsonRpcMessage::Response(answer) => &answer.id,
        ServerJsonRpcMessage::Error(answer) => answer.id.as_ref()?,
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => return None,
    };
    serde_json::to_value(id).ok()
}

/// Returns whether two ids are the same, however a whole number is written.
fn is_same(one: &Value, other: &Value) -> bool {
    // A double does not tell all integers apart.
    let are_integers = one.is_i64() && other.is_i64();
    let mut doubles = one.as_f64().into_iter().zip(other.as_f64());
    one == other || (!are_integers && doubles.any(|(one, other)| one.total_cmp(&other).is_eq()))
}

/// Returns the refusal of a request whose id is another's that is still open.
pub(super) fn id_in_use(id: &Value) -> Value {
    let reason = format!(
        "a request with the id {} is still open. Give every request its own id",
        compared(id)
    );
    message_intake::refusal(message_intake::INVALID_REQUEST, Some(id.clone()), &reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cancellation_names_its_request_in_any_spelling() {
        for (params, named) in [
            (json!({"requestId": 7}), Some(json!(7))),
            (json!({"request_id": "a"}), Some(json!("a"))),
            (json!({"id": 7}), Some(json!(7))),
            (json!({"requestId": null}), None),
            (json!({}), None),
        ] {
            let mut message = json!({"method": "notifications/canceled", "params": params});
            assert_eq!(repair(&mut message, b""), named.is_some(), "{params}");
            assert_eq!(message.get("method"), Some(&json!(CANCELLED)));
            if let Some(id) = named {
                assert_eq!(message.pointer("/params/requestId"), Some(&id), "{params}");
            }
        }
        assert!(!repair(&mut json!({"method": CANCELLED}), b""));
        assert!(is_cancellation("notifications/Canceled"));
        assert!(!is_cancellation("notifications/progress"));
    }

    #[test]
    fn an_id_of_another_type_is_that_of_its_request() {
        let recent = RequestIds::default();
        assert!(recent.begin(&json!(117), CancellationToken::new()));
        assert!(recent.begin(&json!("8"), CancellationToken::new()));
        for (sent, intended, is_known) in [
            (json!("117"), json!(117), true),
            (json!(8), json!("8"), true),
            (json!("9"), json!("9"), false),
        ] {
            let mut message = json!({"params": {"requestId": sent}});
            assert_eq!(recent.cancel(&mut message), is_known);
            assert_eq!(message.pointer("/params/requestId"), Some(&intended));
        }
    }

    #[test]
    fn an_id_is_free_once_its_request_is_over_and_not_before() {
        let ids = RequestIds::default();
        let over = CancellationToken::new();
        assert!(ids.begin(&json!(5), over.clone()));
        for id in 0..2 * RECENT_MAX {
            let id = json!(format!("look {id}"));
            assert!(ids.begin(&id, CancellationToken::new()));
            ids.end(&id);
        }
        assert!(!ids.begin(&json!(5), CancellationToken::new()));
        assert!(ids.begin(&json!("5"), CancellationToken::new()));
        over.cancel();
        assert!(ids.begin(&json!(5), CancellationToken::new()));
    }

    #[test]
    fn a_cancellation_without_a_session_gives_up_every_request_of_its_id() {
        let ids = RequestIds::default();
        let tokens = [5, 5, 6].map(|id| {
            let over = CancellationToken::new();
            ids.begin_any(&json!(id), over.clone());
            over
        });
        assert!(ids.cancel(&mut json!({"params": {"requestId": "5"}})));
        assert_eq!(tokens.map(|over| over.is_cancelled()), [true, true, false]);
        assert!(!ids.cancel(&mut json!({"params": {"requestId": 7}})));
    }
}
