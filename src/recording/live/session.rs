//! Serves one listener, from its handshake until it leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use super::protocol::{self, ListenerRequest, StatusLevel, SubscriptionRequest};
use super::{LiveMessage, LiveTopics, handshake};

/// Longest time for a handshake, and for sending a message.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest message of a listener.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// Largest number of subscriptions of a listener at a time.
const SUBSCRIPTIONS_MAX: usize = 64;

/// Reason why a listener is disconnected.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListenerError {
    /// It accepted no data in time.
    #[error("it read nothing for {} s", TIMEOUT.as_secs())]
    TooSlow,
    /// Its connection broke, or it does not speak the protocol.
    #[error("{0}")]
    Socket(Box<SocketError>),
}

impl From<SocketError> for ListenerError {
    fn from(error: SocketError) -> Self {
        Self::Socket(Box::new(error))
    }
}

/// State of one listener.
pub(super) struct LiveSession {
    topics: Arc<LiveTopics>,
    messages: broadcast::Receiver<LiveMessage>,
    /// The listener's subscription id of each subscribed channel.
    subscriptions: BTreeMap<u32, u32>,
}

type Socket = WebSocketStream<TcpStream>;

impl LiveSession {
    pub(super) fn new(topics: Arc<LiveTopics>, messages: broadcast::Receiver<LiveMessage>) -> Self {
        Self {
            topics,
            messages,
            subscriptions: BTreeMap::new(),
        }
    }

    /// Serves the listener until it leaves or the view ends.
    pub(super) async fn run(mut self, stream: TcpStream) -> Result<(), ListenerError> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(REQUEST_BYTES_MAX))
            .max_frame_size(Some(REQUEST_BYTES_MAX));
        let handshake = accept_hdr_async_with_config(stream, handshake::accept, Some(config));
        let accepted = timeout(TIMEOUT, handshake).await;
        let mut socket = accepted.map_err(|_| ListenerError::TooSlow)??;
        let channels = protocol::advertisement(&self.topics.channels);
        send(&mut socket, Message::text(protocol::server_info())).await?;
        send(&mut socket, Message::text(channels)).await?;
        loop {
            tokio::select! {
                request = socket.next() => match request {
                    Some(request) => self.answer(&mut socket, request?).await?,
                    None => return Ok(()),
                },
                message = self.messages.recv() => match message {
                    Ok(message) => self.forward(&mut socket, &message).await?,
                    Err(RecvError::Lagged(missed)) => {
                        let text = format!("{missed} messages were left out, because you read too slowly. The recording has them");
                        send_status(&mut socket, StatusLevel::Warning, &text).await?;
                    }
                    Err(RecvError::Closed) => return Ok(socket.close(None).await?),
                },
            }
        }
    }

    async fn answer(&mut self, socket: &mut Socket, request: Message) -> Result<(), ListenerError> {
        let request = match &request {
            Message::Text(text) => serde_json::from_str(text),
            Message::Binary(_) => Ok(ListenerRequest::Other),
            // The socket answers pings itself, and the next read returns its end.
            _ => return Ok(()),
        };
        match request {
            Ok(ListenerRequest::Subscribe { subscriptions }) => {
                for subscription in subscriptions {
                    self.subscribe(socket, &subscription).await?;
                }
            }
            Ok(ListenerRequest::Unsubscribe { subscription_ids }) => {
                self.subscriptions
                    .retain(|_, id| !subscription_ids.contains(id));
            }
            Ok(ListenerRequest::Other) => {
                let text = "only subscribing is possible: the live view is read-only";
                send_status(socket, StatusLevel::Warning, text).await?;
            }
            Err(error) => {
                let text = format!("this is not a request of the protocol: {error}");
                send_status(socket, StatusLevel::Error, &text).await?;
            }
        }
        Ok(())
    }

    async fn subscribe(
        &mut self,
        socket: &mut Socket,
        request: &SubscriptionRequest,
    ) -> Result<(), ListenerError> {
        let SubscriptionRequest { id, channel_id } = *request;
        let mut channels = self.topics.channels.iter();
        let problem = if !channels.any(|channel| channel.id == channel_id) {
            Some(format!("there is no channel {channel_id}"))
        } else if self.subscriptions.values().any(|used| *used == id) {
            Some(format!("subscription {id} exists already"))
        } else if self.subscriptions.contains_key(&channel_id) {
            Some(format!("channel {channel_id} is subscribed to already"))
        } else if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            Some(format!(
                "at most {SUBSCRIPTIONS_MAX} subscriptions are possible"
            ))
        } else {
            None
        };
        if let Some(problem) = problem {
            return send_status(socket, StatusLevel::Error, &problem).await;
        }
        self.subscriptions.insert(channel_id, id);
        match self.topics.last_of(channel_id) {
            Some(last) => self.forward(socket, &last).await,
            None => Ok(()),
        }
    }

    async fn forward(
        &self,
        socket: &mut Socket,
        message: &LiveMessage,
    ) -> Result<(), ListenerError> {
        let Some(subscription) = self.subscriptions.get(&message.channel) else {
            return Ok(());
        };
        let data = protocol::message_data(*subscription, message);
        send(socket, Message::binary(data)).await
    }
}

async fn send_status(
    socket: &mut Socket,
    level: StatusLevel,
    text: &str,
) -> Result<(), ListenerError> {
    send(socket, Message::text(protocol::status(level, text))).await
}

async fn send(socket: &mut Socket, message: Message) -> Result<(), ListenerError> {
    let sent = timeout(TIMEOUT, socket.send(message)).await;
    Ok(sent.map_err(|_| ListenerError::TooSlow)??)
}
