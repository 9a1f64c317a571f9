//! Live view of recordings: every message that is written is also sent to listeners on this machine, over
//! Foxglove's WebSocket protocol.
//!
//! The recorder's thread waits for no listener: one that is too slow misses messages, and is told how many. Nothing that a
//! listener sends reaches the node.

mod handshake;
mod protocol;
mod server;
mod session;

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{broadcast, oneshot};

use crate::error::RecordingError;
use crate::mcap_file::MessageObserver;
use crate::topic::{CAMERA_TOPIC, COMPRESSED_IMAGE, MessageSchema, Topic};
use base::lock::MutexExt;

/// Number of messages that wait for a slow listener: about four seconds of a moving arm.
const MESSAGES_WAITING_MAX: usize = 4_096;

/// A topic that listeners can subscribe to.
#[derive(Debug)]
struct LiveChannel {
    /// Counted from 1.
    id: u32,
    topic: String,
    schema: MessageSchema,
}

/// A message on its way to listeners.
#[derive(Clone, Debug)]
struct LiveMessage {
    channel: u32,
    at_ns: u64,
    data: Arc<[u8]>,
}

/// Topics with the last message of each, so that a later listener sees the plan and the latest ink.
#[derive(Debug)]
struct LiveTopics {
    channels: Vec<LiveChannel>,
    last: Mutex<Vec<LiveMessage>>,
}

impl LiveTopics {
    fn new(cameras: &[String]) -> Self {
        let fixed = Topic::ALL.map(|topic| (topic.name.to_owned(), topic.schema));
        let cameras = cameras
            .iter()
            .map(|name| (format!("{CAMERA_TOPIC}{name}"), COMPRESSED_IMAGE));
        let channels = fixed.into_iter().chain(cameras).zip(1..);
        let channels = channels.map(|((topic, schema), id)| LiveChannel { id, topic, schema });
        Self {
            channels: channels.collect(),
            last: Mutex::default(),
        }
    }

    fn last(&self) -> MutexGuard<'_, Vec<LiveMessage>> {
        self.last.locked()
    }

    fn last_of(&self, channel: u32) -> Option<LiveMessage> {
        let last = self.last();
        last.iter().find(|last| last.channel == channel).cloned()
    }

    fn keep(&self, message: LiveMessage) {
        let mut last = self.last();
        last.retain(|old| old.channel != message.channel);
        last.push(message);
    }
}

/// The live view of a node's recordings. It ends when it is dropped.
pub(crate) struct LiveView {
    topics: Arc<LiveTopics>,
    messages: broadcast::Sender<LiveMessage>,
    /// Ends the server when it is dropped.
    _open: oneshot::Sender<()>,
    #[cfg(test)]
    address: std::net::SocketAddr,
}

impl LiveView {
    /// Listens on this machine only; port 0 selects any free port.
    pub(crate) fn open(port: u16, cameras: &[String]) -> Result<Self, RecordingError> {
        let topics = Arc::new(LiveTopics::new(cameras));
        let (messages, _) = broadcast::channel(MESSAGES_WAITING_MAX);
        let (open, closed) = oneshot::channel();
        let server = server::LiveServer {
            topics: Arc::clone(&topics),
            messages: messages.downgrade(),
        };
        let address = server
            .start(port, closed)
            .map_err(RecordingError::live(port))?;
        tracing::info!("live view for Foxglove at ws://{address}");
        Ok(Self {
            topics,
            messages,
            _open: open,
            #[cfg(test)]
            address,
        })
    }
}

impl MessageObserver for LiveView {
    fn wrote(&self, topic: &str, at_ns: u64, data: &[u8]) {
        let mut channels = self.topics.channels.iter();
        let Some(channel) = channels.find(|channel| channel.topic == topic) else {
            return;
        };
        let message = LiveMessage {
            channel: channel.id,
            at_ns,
            data: data.into(),
        };
        self.topics.keep(message.clone());
        // There may be no listener.
        let _ = self.messages.send(message);
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use futures::{SinkExt, StreamExt};
    use serde_json::{Value, json};
    use tokio::net::TcpStream;
    use tokio_tungstenite::tungstenite::client::IntoClientRequest;
    use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
    use tokio_tungstenite::{WebSocketStream, client_async};

    use super::*;

    type Listener = WebSocketStream<TcpStream>;

    async fn listen(
        view: &LiveView,
        headers: &[(&'static str, &str)],
    ) -> Result<Listener, SocketError> {
        let stream = TcpStream::connect(view.address).await.unwrap();
        let mut request = format!("ws://{}", view.address).into_client_request()?;
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        Ok(client_async(request, stream).await?.0)
    }

    async fn next(listener: &mut Listener) -> Message {
        listener.next().await.unwrap().unwrap()
    }

    async fn next_json(listener: &mut Listener) -> Value {
        serde_json::from_str(next(listener).await.to_text().unwrap()).unwrap()
    }

    async fn send_request(listener: &mut Listener, request: &Value) {
        listener
            .send(Message::text(request.to_string()))
            .await
            .unwrap();
    }

    const OFFER: (&str, &str) = ("sec-websocket-protocol", "foxglove.websocket.v1");

    /// Connects a listener and reads the channels; returns it with the id of the topic `/job`.
    async fn connect(view: &LiveView) -> (Listener, Value) {
        let mut listener = listen(view, &[OFFER]).await.unwrap();
        let info = next_json(&mut listener).await;
        assert_eq!(
            (&info["op"], &info["capabilities"]),
            (&json!("serverInfo"), &json!([]))
        );
        let advertised = next_json(&mut listener).await;
        let channels = advertised["channels"].as_array().unwrap();
        assert_eq!(channels.len(), Topic::ALL.len() + 1);
        let job = channels
            .iter()
            .find(|channel| channel["topic"] == "/job")
            .unwrap();
        (listener, job["id"].clone())
    }

    fn view() -> LiveView {
        LiveView::open(0, &["top".to_owned()]).unwrap()
    }

    #[tokio::test]
    async fn a_listener_gets_its_topics_and_the_last_message_that_it_missed() {
        let view = view();
        view.wrote("/job", 1, b"missed");
        view.wrote("/job", 2, b"last");
        let (mut listener, job) = connect(&view).await;
        send_request(
            &mut listener,
            &json!({"op": "subscribe", "subscriptions": [{"id": 5, "channelId": job}]}),
        )
        .await;
        let data = next(&mut listener).await.into_data();
        assert_eq!(
            (data[0], data[1], data[5], &data[13..]),
            (1, 5, 2, &b"last"[..])
        );
        view.wrote("/log", 3, b"not asked for");
        view.wrote("/job", 4, b"next");
        assert_eq!(&next(&mut listener).await.into_data()[13..], b"next");
        send_request(
            &mut listener,
            &json!({"op": "unsubscribe", "subscriptionIds": [5]}),
        )
        .await;
        // The answer to the next request shows that this one was handled.
        send_request(&mut listener, &json!({"op": "setParameters"})).await;
        let status = next_json(&mut listener).await;
        assert!(
            status["message"].as_str().unwrap().contains("read-only"),
            "{status}"
        );
        view.wrote("/job", 6, b"unheard");
        send_request(
            &mut listener,
            &json!({"op": "subscribe", "subscriptions": [{"id": 5, "channelId": 99}]}),
        )
        .await;
        let status = next_json(&mut listener).await;
        assert_eq!(status["level"], 2, "{status}");
    }

    #[tokio::test]
    async fn a_listener_that_reads_too_slowly_misses_messages_and_blocks_nothing() {
        let view = view();
        let (mut listener, job) = connect(&view).await;
        send_request(
            &mut listener,
            &json!({"op": "subscribe", "subscriptions": [{"id": 1, "channelId": job}]}),
        )
        .await;
        // The channel has no message yet: the answer to a second request shows that the first was handled.
        send_request(&mut listener, &json!({"op": "advertise"})).await;
        next_json(&mut listener).await;
        let long = vec![b'x'; 64 << 10];
        for at_ns in 0..2 * MESSAGES_WAITING_MAX as u64 {
            view.wrote("/job", at_ns, &long);
        }
        let missed = loop {
            if let Message::Text(text) = next(&mut listener).await {
                break text;
            }
        };
        assert!(missed.contains("you read too slowly"), "{missed}");
    }

    #[tokio::test]
    async fn foreign_pages_are_refused_and_listeners_are_disconnected_at_the_end() {
        let view = view();
        for (headers, status) in [
            (&[OFFER, ("origin", "https://evil.example")][..], 403),
            (&[("sec-websocket-protocol", "chat")], 400),
            (&[], 400),
        ] {
            let error = listen(&view, headers).await.unwrap_err();
            let SocketError::Http(answer) = error else {
                unreachable!("{error}");
            };
            assert_eq!(answer.status(), status);
        }
        let both = (
            "sec-websocket-protocol",
            "foxglove.websocket.v1, foxglove.sdk.v1",
        );
        let origin = ("origin", "https://app.foxglove.dev");
        listen(&view, &[both, origin]).await.unwrap();
        let (mut listener, _) = connect(&view).await;
        let port = view.address.port();
        assert!(
            LiveView::open(port, &[]).is_err(),
            "the port was opened twice"
        );
        drop(view);
        while let Some(Ok(_)) = listener.next().await {}
    }
}
