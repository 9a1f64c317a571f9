//! The messages of Foxglove's WebSocket protocol that a read-only server needs.

use serde::Deserialize;
use serde_json::json;

use super::{LiveChannel, LiveMessage};

/// Names of the protocol, the newer one first; the parts that are used here are the same in both.
pub(super) const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// First byte of a message with data.
const MESSAGE_DATA: u8 = 1;

/// Severity of a status.
#[derive(Clone, Copy, Debug)]
pub(super) enum StatusLevel {
    Warning = 1,
    Error = 2,
}

/// A listener's request.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "op", rename_all = "camelCase")]
pub(super) enum ListenerRequest {
    Subscribe {
        subscriptions: Vec<SubscriptionRequest>,
    },
    #[serde(rename_all = "camelCase")]
    Unsubscribe { subscription_ids: Vec<u32> },
    /// Any request that would change something, or is not supported.
    #[serde(other)]
    Other,
}

/// A subscription to a channel, under an id that the listener chooses.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubscriptionRequest {
    pub(super) id: u32,
    pub(super) channel_id: u32,
}

/// Returns the first message of the server. It has no capabilities: nothing can be published, set or called.
pub(super) fn server_info() -> String {
    json!({
        "op": "serverInfo",
        "name": concat!("steadyhand ", env!("CARGO_PKG_VERSION")),
        "capabilities": [],
    })
    .to_string()
}

/// Returns the list of channels.
pub(super) fn advertisement(channels: &[LiveChannel]) -> String {
    let channel = |channel: &LiveChannel| {
        json!({
            "id": channel.id,
            "topic": channel.topic,
            "encoding": "json",
            "schemaName": channel.schema.name,
            "schemaEncoding": "jsonschema",
            "schema": channel.schema.text,
        })
    };
    let channels: Vec<_> = channels.iter().map(channel).collect();
    json!({ "op": "advertise", "channels": channels }).to_string()
}

/// Returns a status message for a person.
pub(super) fn status(level: StatusLevel, text: &str) -> String {
    json!({ "op": "status", "level": level as u8, "message": text }).to_string()
}

/// Encodes a message for a subscription.
pub(super) fn message_data(subscription: u32, message: &LiveMessage) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + 4 + 8 + message.data.len());
    bytes.push(MESSAGE_DATA);
    bytes.extend(subscription.to_le_bytes());
    bytes.extend(message.at_ns.to_le_bytes());
    bytes.extend(message.data.iter());
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn only_requests_for_subscriptions_are_parsed() {
        let read = |text: &str| serde_json::from_str::<ListenerRequest>(text).ok();
        assert_eq!(
            read(r#"{"op":"subscribe","subscriptions":[{"id":7,"channelId":3}]}"#),
            Some(ListenerRequest::Subscribe {
                subscriptions: vec![SubscriptionRequest {
                    id: 7,
                    channel_id: 3
                }]
            })
        );
        assert_eq!(
            read(r#"{"op":"unsubscribe","subscriptionIds":[7]}"#),
            Some(ListenerRequest::Unsubscribe {
                subscription_ids: vec![7]
            })
        );
        for op in ["advertise", "setParameters", "fetchAsset", "stop"] {
            let text = format!(r#"{{"op":"{op}","parameters":[]}}"#);
            assert_eq!(read(&text), Some(ListenerRequest::Other), "{op}");
        }
        assert_eq!(read("{"), None);
        assert_eq!(
            read(r#"{"op":"subscribe","subscriptions":[{"id":-1,"channelId":3}]}"#),
            None
        );
    }

    #[test]
    fn data_begins_with_its_subscription_and_its_time() {
        let message = LiveMessage {
            channel: 3,
            at_ns: 0x0102,
            data: b"{}".as_slice().into(),
        };
        let bytes = message_data(7, &message);
        assert_eq!(bytes, b"\x01\x07\0\0\0\x02\x01\0\0\0\0\0\0{}");
    }
}
