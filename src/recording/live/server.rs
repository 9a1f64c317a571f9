//! The listening socket, on a thread of its own, separate from those of the node.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as BoundListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, broadcast, oneshot};

use super::session::LiveSession;
use super::{LiveMessage, LiveTopics};

/// Largest number of listeners at a time.
const LISTENERS_MAX: usize = 8;

/// Pause after a connection that could not be accepted.
const RETRY: Duration = Duration::from_secs(1);

/// Accepts listeners until its view is dropped.
pub(super) struct LiveServer {
    pub(super) topics: Arc<LiveTopics>,
    pub(super) messages: broadcast::WeakSender<LiveMessage>,
}

impl LiveServer {
    /// Binds the port, starts accepting listeners and returns the address.
    pub(super) fn start(self, port: u16, closed: oneshot::Receiver<()>) -> io::Result<SocketAddr> {
        let listener = BoundListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || runtime.block_on(self.serve(listener, closed)))?;
        Ok(address)
    }

    async fn serve(self, listener: BoundListener, mut closed: oneshot::Receiver<()>) {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!("the live view cannot be opened: {error}");
                return;
            }
        };
        let permits = Arc::new(Semaphore::new(LISTENERS_MAX));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                // Its sender is never used, only dropped.
                _ = &mut closed => return,
            };
            match accepted {
                Ok((stream, _)) => self.accept(stream, &permits),
                // Usually there are too many open files, which others will close.
                Err(error) => {
                    tracing::warn!("a viewer of the live view cannot be accepted: {error}");
                    base::task::pause(RETRY).await;
                }
            }
        }
    }

    fn accept(&self, stream: TcpStream, permits: &Arc<Semaphore>) {
        let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
            tracing::warn!("a viewer is refused: the live view already has {LISTENERS_MAX}");
            return;
        };
        let Some(messages) = self.messages.upgrade() else {
            return;
        };
        let session = LiveSession::new(Arc::clone(&self.topics), messages.subscribe());
        base::task::spawn(async move {
            if let Err(error) = session.run(stream).await {
                tracing::debug!("a viewer left the live view: {error}");
            }
            drop(permit);
        });
    }
}
