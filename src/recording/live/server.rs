//! The listening socket, on a thread of its own: no thread of the node has a part in it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as BoundListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, broadcast, oneshot};

use super::session::LiveSession;
use super::{LiveMessage, LiveTopics};

/// Listeners at a time.
const LISTENERS_MAX: usize = 8;

/// Pause after a listener that could not be accepted.
const RETRY: Duration = Duration::from_secs(1);

/// Accepts listeners until its view is dropped.
pub(super) struct LiveServer {
    pub(super) topics: Arc<LiveTopics>,
    pub(super) messages: broadcast::WeakSender<LiveMessage>,
}

impl LiveServer {
    /// Takes the port, begins to accept and returns the address.
    pub(super) fn start(self, port: u16, over: oneshot::Receiver<()>) -> io::Result<SocketAddr> {
        let listener = BoundListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || runtime.block_on(self.serve(listener, over)))?;
        Ok(address)
    }

    async fn serve(self, listener: BoundListener, mut over: oneshot::Receiver<()>) {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!("there is no live view: {error}");
                return;
            }
        };
        let seats = Arc::new(Semaphore::new(LISTENERS_MAX));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                // Its sender is never used, only dropped.
                _ = &mut over => return,
            };
            match accepted {
                Ok((stream, _)) => self.attend(stream, &seats),
                // Mostly too many open files: others leave.
                Err(error) => {
                    tracing::warn!("a listener of the live view cannot be accepted: {error}");
                    base::task::pause(RETRY).await;
                }
            }
        }
    }

    fn attend(&self, stream: TcpStream, seats: &Arc<Semaphore>) {
        let Ok(seat) = Arc::clone(seats).try_acquire_owned() else {
            tracing::warn!(
                "a listener is sent away: {LISTENERS_MAX} look at the live view already"
            );
            return;
        };
        let Some(messages) = self.messages.upgrade() else {
            return;
        };
        let session = LiveSession::new(Arc::clone(&self.topics), messages.subscribe());
        base::task::spawn(async move {
            if let Err(error) = session.run(stream).await {
                tracing::debug!("a listener of the live view left: {error}");
            }
            drop(seat);
        });
    }
}
