//! Cancellations in the wrong form: finds the intended request; otherwise every motion ends.

use std::collections::VecDeque;

use serde_json::Value;

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

/// Repairs a cancellation, received as `raw`: its method, and a request named under another key. Returns `false` if it names
/// no request.
pub(super) fn repair(message: &mut Value, raw: &[u8]) -> bool {
    let Some(message) = message.as_object_mut() else {
        return false;
    };
    message.insert("method".to_owned(), CANCELLED.into());
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

/// The ids of a client's latest requests.
#[derive(Debug, Default)]
pub(super) struct RecentIds(VecDeque<Value>);

impl RecentIds {
    pub(super) fn note(&mut self, id: &Value) {
        if self.0.len() == RECENT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(id.clone());
    }

    /// Gives a cancellation the type that the id of its request had: `"117"` for 117, and 117 for `"117"`.
    pub(super) fn match_id_type(&self, message: &mut Value) {
        let Some(id) = message.pointer_mut("/params/requestId") else {
            return;
        };
        if self.0.contains(id) {
            return;
        }
        let text = compared(id);
        if let Some(twin) = self.0.iter().rev().find(|known| compared(known) == text) {
            *id = twin.clone();
        }
    }
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
        let mut recent = RecentIds::default();
        recent.note(&json!(117));
        recent.note(&json!("8"));
        for (sent, intended) in [
            (json!("117"), json!(117)),
            (json!(8), json!("8")),
            (json!("9"), json!("9")),
        ] {
            let mut message = json!({"params": {"requestId": sent}});
            recent.match_id_type(&mut message);
            assert_eq!(message.pointer("/params/requestId"), Some(&intended));
        }
    }
}
