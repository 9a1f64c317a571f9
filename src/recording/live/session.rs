//! One listener, from its handshake until it leaves.

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

/// A handshake, and a message that is sent, take no longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest message of a listener.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// Subscriptions of a listener at a time.
const SUBSCRIPTIONS_MAX: usize = 64;

/// Reasons why a listener leaves.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListenerError {
    /// It takes nothing.
    #[error("it took nothing for {} s", PATIENCE.as_secs())]
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

/// The requests of one listener so far.
pub(super) struct LiveSession {
    topics: Arc<LiveTopics>,
    messages: broadcast::Receiver<LiveMessage>,
    /// The listener's number of each channel that it looks at.
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

    /// Talks to the listener until it leaves or the view ends.
    pub(super) async fn run(mut self, stream: TcpStream) -> Result<(), ListenerError> {
        let config = WebSocketConfig::default()
            .max_message_size(Some(REQUEST_BYTES_MAX))
            .max_frame_size(Some(REQUEST_BYTES_MAX));
        let accepted = accept_hdr_async_with_config(stream, handshake::accept, Some(config));
        let accepted = timeout(PATIENCE, accepted).await;
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
                    Ok(message) => self.pass_on(&mut socket, &message).await?,
                    Err(RecvError::Lagged(missed)) => {
                        let words = format!("{missed} messages are left out here: you read too slowly; the recording has them");
                        tell(&mut socket, StatusLevel::Warning, &words).await?;
                    }
                    Err(RecvError::Closed) => return Ok(socket.close(None).await?),
                },
            }
        }
    }

    async fn answer(&mut self, socket: &mut Socket, request: Message) -> Result<(), ListenerError> {
        let request = match &request {
            Message::Text(text) => serde_json::from_str(text),
            Message::Binary(_) => Ok(ListenerRequest::Else),
            // Pings are answered by the socket; its end is seen by whoever reads next.
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
            Ok(ListenerRequest::Else) => {
                let words =
                    "only subscribing is possible: the live view shows, and changes nothing";
                tell(socket, StatusLevel::Warning, words).await?;
            }
            Err(error) => {
                let words = format!("that is no request of this protocol: {error}");
                tell(socket, StatusLevel::Error, &words).await?;
            }
        }
        Ok(())
    }

    async fn subscribe(
        &mut self,
        socket: &mut Socket,
        asked: &SubscriptionRequest,
    ) -> Result<(), ListenerError> {
        let SubscriptionRequest { id, channel_id } = *asked;
        let mut channels = self.topics.channels.iter();
        let problem = if !channels.any(|channel| channel.id == channel_id) {
            Some(format!("there is no channel {channel_id}"))
        } else if self.subscriptions.values().any(|used| *used == id) {
            Some(format!("subscription {id} is there already"))
        } else if self.subscriptions.contains_key(&channel_id) {
            Some(format!("channel {channel_id} is subscribed to already"))
        } else if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            Some(format!("{SUBSCRIPTIONS_MAX} subscriptions are the most"))
        } else {
            None
        };
        if let Some(problem) = problem {
            return tell(socket, StatusLevel::Error, &problem).await;
        }
        self.subscriptions.insert(channel_id, id);
        match self.topics.last_of(channel_id) {
            Some(last) => self.pass_on(socket, &last).await,
            None => Ok(()),
        }
    }

    async fn pass_on(
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

async fn tell(socket: &mut Socket, level: StatusLevel, words: &str) -> Result<(), ListenerError> {
    send(socket, Message::text(protocol::status(level, words))).await
}

async fn send(socket: &mut Socket, message: Message) -> Result<(), ListenerError> {
    let sent = timeout(PATIENCE, socket.send(message)).await;
    Ok(sent.map_err(|_| ListenerError::TooSlow)??)
}
