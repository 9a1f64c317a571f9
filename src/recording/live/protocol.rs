//! Messages of Foxglove's WebSocket protocol, as far as a server needs them that only shows.

use serde::Deserialize;
use serde_json::json;

use super::{LiveChannel, LiveMessage};

/// Names of the protocol, the newer one first; what is used of it is the same.
pub(super) const SUBPROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// The first byte of a message with data.
const MESSAGE_DATA: u8 = 1;

/// Gravity of a status.
#[derive(Clone, Copy, Debug)]
pub(super) enum StatusLevel {
    Warning = 1,
    Error = 2,
}

/// Request of a listener.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "op", rename_all = "camelCase")]
pub(super) enum ListenerRequest {
    Subscribe {
        subscriptions: Vec<SubscriptionRequest>,
    },
    #[serde(rename_all = "camelCase")]
    Unsubscribe { subscription_ids: Vec<u32> },
    /// Whatever would change something, or is not offered.
    #[serde(other)]
    Else,
}

/// One channel that a listener asks for, under a number of its own.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubscriptionRequest {
    pub(super) id: u32,
    pub(super) channel_id: u32,
}

/// The first message of a server. It has no capability: nothing can be sent to it, set or called.
pub(super) fn server_info() -> String {
    json!({
        "op": "serverInfo",
        "name": concat!("steadyhand ", env!("CARGO_PKG_VERSION")),
        "capabilities": [],
    })
    .to_string()
}

/// The list of channels.
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

/// Words for the person who listens.
pub(super) fn status(level: StatusLevel, words: &str) -> String {
    json!({ "op": "status", "level": level as u8, "message": words }).to_string()
}

/// A message under the number of a subscription.
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
    fn requests_are_read_and_what_would_change_something_is_not() {
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
            assert_eq!(read(&text), Some(ListenerRequest::Else), "{op}");
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
