//! Callers that give up, each in its own way. They come by the node's own ways in; the only call that
//! is done for them here waits until they are gone, and then stops the arm as every call does.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::mcp_service::repair;
use base::clock::Clock;
use base::units::Instant;
use mcp::http::{self, HttpConfig};
use mcp::{Answer, Call, CallWatch, Desk, ToolCard, Via, stdio};
use motion::Motion;
use permit::Who;
use tools::Seat;

/// A call comes in sooner than this, and is given up sooner.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a client that wait to be read: a few short lines.
const PIPE_BYTES: usize = 64 * 1024;

/// The number of the call.
const CALL: u32 = 2;

/// How a call is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It is cancelled.
    Cancel,
    /// Its connection is closed.
    HangUp,
    /// The client's stream ends.
    EndOfInput,
}

/// A client whose call waits.
pub(super) struct Caller {
    way: Way,
    told: oneshot::Receiver<Told>,
    _server: DropGuard,
}

enum Way {
    Cancels(DuplexStream),
    HangsUp(TcpStream),
    Goes(DuplexStream),
}

/// The arm was told to stop.
pub(super) struct Told {
    pub(super) at: Instant,
    pub(super) ticket: u64,
    pub(super) by: Who,
}

impl Caller {
    /// Comes in and calls; returns once the call is being done.
    ///
    /// # Errors
    /// Why it cannot: there may be no socket to be had.
    pub(super) async fn calls(how: How, seat: &Arc<Seat>) -> Result<Self, String> {
        let (tell, told) = oneshot::channel();
        let desk = Arc::new(Waits {
            seat: Arc::clone(seat),
            tell: Mutex::new(Some(tell)),
            begun: Notify::new(),
        });
        let over = CancellationToken::new();
        let way = match how {
            How::Cancel => connect(&desk, || {}, over.clone()).await.map(Way::Cancels),
            How::HangUp => post(&desk, over.clone()).await.map(Way::HangsUp),
            How::EndOfInput => {
                let own = Arc::clone(&desk);
                // As the node does at the end of its input.
                let ended = move || own.stops(Who::Node, |motion| motion.stop(Who::Node, false));
                connect(&desk, ended, over.clone()).await.map(Way::Goes)
            }
        };
        let way = way.map_err(|error| format!("no caller can come in: {error}"))?;
        let begun = tokio::time::timeout(PATIENCE, desk.begun.notified()).await;
        begun.map_err(|_| "a caller was not heard".to_owned())?;
        let _server = over.drop_guard();
        Ok(Self { way, told, _server })
    }

    /// Gives up: when it did, and when the arm was told.
    ///
    /// # Errors
    /// Nobody told it.
    pub(super) async fn gives_up(self, clock: &Clock) -> Result<(Instant, Told), String> {
        let unheard = || "a caller that gave up was not heard".to_owned();
        let asked = clock.now();
        // A connection stays open until it was heard: the end of it would be another stop.
        let _open = match self.way {
            Way::Cancels(mut client) => {
                let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": {"requestId": CALL}});
                send(&mut client, &cancelled).await.map_err(|_| unheard())?;
                Some(client)
            }
            Way::HangsUp(stream) => {
                drop(stream);
                None
            }
            Way::Goes(client) => {
                drop(client);
                None
            }
        };
        let told = tokio::time::timeout(PATIENCE, self.told).await;
        let told = told.map_err(|_| unheard())?.map_err(|_| unheard())?;
        Ok((asked, told))
    }
}

/// A desk whose calls wait until their callers are gone.
struct Waits {
    seat: Arc<Seat>,
    /// The first stop is told, and no other is made: what ends a connection may end its calls as well.
    tell: Mutex<Option<oneshot::Sender<Told>>>,
    begun: Notify,
}

impl Waits {
    fn stops(&self, by: Who, stop: impl FnOnce(&Motion) -> u64) {
        let mut tell = self.tell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tell) = tell.take() {
            let at = self.seat.motion.clock().now();
            let ticket = stop(&self.seat.motion);
            // Whoever does not wait any more is told nothing.
            let _ = tell.send(Told { at, ticket, by });
        }
    }
}

/// The same desk for several connections.
#[derive(Clone)]
struct WaitingDesk(Arc<Waits>);

impl Desk for WaitingDesk {
    fn list(&self) -> Vec<ToolCard> {
        Vec::new()
    }

    fn instructions(&self) -> String {
        String::new()
    }

    fn call(&self, _: Call, watch: CallWatch) -> BoxFuture<'static, Answer> {
        let own = Self::clone(self);
        Box::pin(async move {
            own.0.begun.notify_one();
            watch.cancelled.cancelled().await;
            own.0.stops(Who::Planner, Motion::abandon);
            Answer::default()
        })
    }

    fn give_up(&self) {
        self.0.stops(Who::Planner, Motion::abandon);
    }
}

fn call() -> Value {
    json!({"jsonrpc": "2.0", "id": CALL, "method": "tools/call",
        "params": {"name": "wait", "arguments": {}}})
}

/// A client on a pair of streams.
async fn connect(
    desk: &Arc<Waits>,
    ended: impl FnOnce() + Send + 'static,
    over: CancellationToken,
) -> io::Result<DuplexStream> {
    let (mut client, server) = tokio::io::duplex(PIPE_BYTES);
    let desk: Arc<dyn Desk> = Arc::new(WaitingDesk(Arc::clone(desk)));
    let streams = tokio::io::split(server);
    tokio::spawn(stdio::serve_on(
        desk,
        Via::Stdio,
        repair,
        streams,
        ended,
        over,
    ));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "selftest", "version": "1"}}});
    let opened = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for message in [hello, opened, call()] {
        send(&mut client, &message).await?;
    }
    Ok(client)
}

async fn send(client: &mut DuplexStream, message: &Value) -> io::Result<()> {
    let line = format!("{message}\n");
    client.write_all(line.as_bytes()).await
}

/// A client on a connection of its own.
async fn post(desk: &Arc<Waits>, over: CancellationToken) -> io::Result<TcpStream> {
    let listening = http::listen(([127, 0, 0, 1], 0).into());
    let listening = listening.await.map_err(io::Error::other)?;
    let address = listening.address();
    let desk: Arc<dyn Desk> = Arc::new(WaitingDesk(Arc::clone(desk)));
    tokio::spawn(listening.serve(desk, HttpConfig::default(), repair, over));
    let body = call().to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(stream)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::parking::tests::{House, house};

    /// One stop each, by whom it is due, and none for the end of what was given up already.
    #[tokio::test]
    async fn whoever_gives_up_stops_the_arm_once() {
        let House { seat, .. } = &house(Clock::simulated_at(4));
        for (how, by) in [
            (How::Cancel, Who::Planner),
            (How::HangUp, Who::Planner),
            (How::EndOfInput, Who::Node),
        ] {
            let before = seat.motion.stops_asked();
            let caller = Caller::calls(how, seat).await.unwrap();
            assert_eq!(seat.motion.stops_asked(), before, "{how:?}");
            let (asked, told) = caller.gives_up(seat.motion.clock()).await.unwrap();
            assert!(told.at >= asked && told.by == by, "{how:?}");
            assert_eq!(told.ticket, before + 1);
            assert!(seat.motion.stopped(told.ticket).await.unwrap().verified);
            assert_eq!(seat.motion.stops_asked(), before + 1, "{how:?}");
        }
    }
}
