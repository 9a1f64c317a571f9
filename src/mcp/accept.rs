//! Accepts connections and bounds them: their number, the time for a request's head, and the time an answer waits for its
//! reader; decides which connection makes way for a new one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncRead;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::guarded_body::GuardedBody;
use super::http::{holds_messages, refusal, refuse_gone};
use super::origin_guard::{OriginGuard, RefusedOrigin};
use super::read_ahead::{ReadAheadStream, ReadBlock};
use super::request_sender::RequestSender;
use super::tls::{ByteStream, SharedTlsAcceptor};
use super::write_timeout::{UNREAD_MAX, WriteTimeoutStream};

/// Most connections at a time. One more replaces the connection that has been idle longest, so that a flood of idle ones keeps
/// no stop out.
const CONNECTIONS_MAX: usize = 256;

/// Time within which a request's line and headers must arrive; an idle connection is closed after as long.
const HEAD_MAX: Duration = Duration::from_secs(15);

/// Time for which a connection that is closing may still write.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// Most bytes of one request's line and headers.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Pause after the system had no descriptor left for a connection.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Time after which a client counts as gone if the end of its connection stays unread behind bytes that it sent ahead.
const END_UNREAD_MAX: Duration = Duration::from_millis(50);

/// Time after which a client counts as gone if it sends so much ahead that the end of its connection cannot be seen.
const END_HIDDEN_MAX: Duration = Duration::from_secs(1);

async fn pause(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

/// The connections of a server.
#[derive(Debug, Default)]
pub(super) struct HttpConnections {
    queue: Arc<ConnectionQueue>,
    tasks: TaskTracker,
    quit: CancellationToken,
}

impl HttpConnections {
    /// Serves `setup` on every new connection until `stop` is set.
    pub(super) async fn serve(
        &self,
        listener: TcpListener,
        setup: SharedConnectionSetup,
        stop: &CancellationToken,
    ) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => return,
            };
            self.start(accepted, &setup).await;
        }
    }

    /// Ends every connection, the idle ones at once.
    pub(super) async fn close(&self) {
        self.quit.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn start(
        &self,
        accepted: std::io::Result<(TcpStream, SocketAddr)>,
        setup: &SharedConnectionSetup,
    ) {
        match accepted {
            Ok((stream, from)) => {
                let slot = self.queue.take(&self.quit);
                self.tasks
                    .spawn(handshake(stream, from, setup.clone(), slot));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                pause(EXHAUSTED_PAUSE).await;
            }
        }
    }
}

/// Router, guard and TLS settings that all connections share.
#[derive(Clone)]
pub(super) struct SharedConnectionSetup {
    pub(super) router: Router,
    /// Checked before the router, for every path.
    pub(super) guard: Arc<OriginGuard>,
    pub(super) tls: Option<SharedTlsAcceptor>,
}

/// Completes the TLS handshake on the connection's own task and in its own slot, so that a slow client delays no other
/// connection, and a newer one may take the slot meanwhile.
async fn handshake(
    stream: TcpStream,
    from: SocketAddr,
    setup: SharedConnectionSetup,
    slot: HttpConnectionSlot,
) {
    // Small answers in two segments would each wait 40 ms for the other side's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let Some(tls) = setup.tls.clone() else {
        return serve_http(stream, from, setup, slot).await;
    };
    let closed = slot.connection.close.clone();
    let agreed = tokio::select! {
        agreed = tls.accept(stream) => agreed,
        () = closed.cancelled() => return,
    };
    match agreed {
        Ok(stream) => serve_http(stream, from, setup, slot).await,
        Err(error) => tracing::debug!(%from, %error, "a TLS handshake failed"),
    }
}

async fn serve_http(
    stream: impl ByteStream,
    from: SocketAddr,
    setup: SharedConnectionSetup,
    slot: HttpConnectionSlot,
) {
    let connection = Arc::clone(&slot.connection);
    let service = ConnectionService {
        setup,
        slot: Arc::new(slot),
    };
    let stream = ReadAheadStream::new(WriteTimeoutStream::new(stream, UNREAD_MAX));
    let watched = stream.clone();
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        // The server reads first; only the rest is read ahead.
        biased;
        ended = &mut serving => ended,
        () = until_hung_up(&watched, &connection) => Ok(()),
        () = connection.close.cancelled() => {
            // Bytes already written still reach the other side.
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(CLOSE_MAX, serving).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%from, %error, "a connection ended");
    }
}

/// Waits until a client has hung up on an open call after sending bytes ahead, past which the protocol library does not read.
async fn until_hung_up<S: AsyncRead + Unpin>(
    stream: &ReadAheadStream<S>,
    connection: &HttpConnection,
) {
    loop {
        let (block, reads) = stream.blocked().await;
        let requests = connection.requests.load(Ordering::Acquire);
        pause(match block {
            ReadBlock::Ended => END_UNREAD_MAX,
            ReadBlock::Full => END_HIDDEN_MAX,
        })
        .await;
        // If a request was answered meanwhile, the next one may be read.
        let is_same = connection.requests.load(Ordering::Acquire) == requests;
        if connection.has_open_call() && is_same && stream.blocked().await == (block, reads) {
            return;
        }
    }
}

/// All connections, the one that has been idle longest first.
#[derive(Debug, Default)]
struct ConnectionQueue(Mutex<VecDeque<Arc<HttpConnection>>>);

#[derive(Debug)]
struct HttpConnection {
    /// Requests that are being answered.
    busy: AtomicUsize,
    /// Requests so far.
    requests: AtomicUsize,
    /// Requests whose body has not been read to its end.
    uploads: AtomicUsize,
    /// Set once the connection has ended and only its last request is worked on.
    is_gone: AtomicBool,
    /// Set when another connection needs its slot, or the server ends. A call in progress then counts as hung up, and its motion
    /// stops.
    close: CancellationToken,
}

impl HttpConnection {
    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Acquire) == 0
    }

    /// Returns whether a request that was read to its end is being answered.
    fn has_open_call(&self) -> bool {
        !self.is_idle() && self.uploads.load(Ordering::Acquire) == 0
    }
}

/// One connection's slot, given back when dropped.
struct HttpConnectionSlot {
    queue: Arc<ConnectionQueue>,
    connection: Arc<HttpConnection>,
}

impl ConnectionQueue {
    fn take(self: &Arc<Self>, quit: &CancellationToken) -> HttpConnectionSlot {
        let connection = Arc::new(HttpConnection {
            busy: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            uploads: AtomicUsize::new(0),
            is_gone: AtomicBool::new(false),
            close: quit.child_token(),
        });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= CONNECTIONS_MAX {
            // No client waits for the answer of one that is gone.
            let gone = all
                .iter()
                .position(|other| other.is_gone.load(Ordering::Acquire));
            let idle = || all.iter().position(|other| other.is_idle());
            let evicted = gone.or_else(idle).unwrap_or(0);
            if let Some(longest) = all.remove(evicted) {
                longest.close.cancel();
            }
        }
        all.push_back(Arc::clone(&connection));
        HttpConnectionSlot {
            queue: Arc::clone(self),
            connection,
        }
    }

    /// Moves a connection that was just used to the back.
    fn touch(&self, connection: &Arc<HttpConnection>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(|other| Arc::ptr_eq(other, connection))
            && let Some(used) = all.remove(at)
        {
            all.push_back(used);
        }
    }
}

impl Drop for HttpConnectionSlot {
    fn drop(&mut self) {
        let mut all = self.queue.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| !Arc::ptr_eq(other, &self.connection));
    }
}

/// The router, for the requests of one connection.
struct ConnectionService {
    setup: SharedConnectionSetup,
    slot: Arc<HttpConnectionSlot>,
}

impl hyper::service::Service<http::Request<Incoming>> for ConnectionService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        let busy = ActiveRequest::new(&self.slot);
        if head_bytes(&request) > HEAD_BYTES_MAX {
            let reason = format!("the line and headers are longer than {HEAD_BYTES_MAX} bytes");
            let refused = refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &reason);
            return Box::pin(std::future::ready(Ok(refused)));
        }
        let refused = self.setup.guard.refuses(&request);
        if let Some((status, reason)) = refused {
            tracing::warn!(why = reason, "a request was refused");
            if !holds_messages(request.uri()) {
                return Box::pin(std::future::ready(Ok(refusal(status, reason))));
            }
        }
        let upload = RequestUpload::new(&self.slot);
        let mut request = request.map(|body| GuardedBody::wrap(Body::new(body), upload));
        if let Some((status, reason)) = refused {
            // Only a stop in it is heard.
            request
                .extensions_mut()
                .insert(RefusedOrigin { status, reason });
        }
        let sender = RequestSender::default();
        let gone = sender.gone().clone();
        let close = self.slot.connection.close.clone();
        let work = answer(self.setup.router.clone(), request, busy, sender, close);
        let work = Some(work.boxed());
        let slot = Arc::clone(&self.slot);
        Box::pin(PendingAnswer { work, gone, slot })
    }
}

/// Answers a request, unless its sender goes, and nothing keeps it or its slot is needed.
async fn answer(
    mut router: Router,
    mut request: http::Request<Body>,
    busy: ActiveRequest,
    sender: RequestSender,
    close: CancellationToken,
) -> http::Response<Body> {
    request.extensions_mut().insert(sender.clone());
    let closed = async {
        sender.gone().cancelled().await;
        close.cancelled().await;
    };
    tokio::select! {
        // What has arrived is heard before it is given up.
        biased;
        Ok(response) = tower_service::Service::call(&mut router, request) => {
            response.map(|body| GuardedBody::wrap(body, busy))
        }
        () = sender.until_given_up() => refuse_gone(),
        () = closed => refuse_gone(),
    }
}

/// A request that is worked on by its connection's task. If the connection ends first, perhaps before this was polled at all, a task
/// of its own goes on with it.
struct PendingAnswer {
    work: Option<BoxFuture<'static, http::Response<Body>>>,
    /// Set when the connection ends.
    gone: CancellationToken,
    slot: Arc<HttpConnectionSlot>,
}

impl Future for PendingAnswer {
    type Output = Result<http::Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Out of its place, so that work that panics is not gone on with.
        let Some(mut work) = self.work.take() else {
            return Poll::Pending;
        };
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled.map(Ok)
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else {
            return;
        };
        self.slot.connection.is_gone.store(true, Ordering::Release);
        self.gone.cancel();
        // Without a runtime the process ends.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(work);
        }
    }
}

/// Returns the bytes of a request's line and headers. The buffer's own limit may be exceeded by one more read.
fn head_bytes<B>(request: &http::Request<B>) -> usize {
    const BETWEEN: usize = ": \r\n".len();
    let target = request.uri().path_and_query();
    let target = target.map_or(0, |at| at.as_str().len());
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + BETWEEN);
    target + headers.sum::<usize>()
}

/// Counts a request as being answered while this lives; the answer's body holds it and keeps the connection busy.
struct ActiveRequest(Arc<HttpConnectionSlot>);

impl ActiveRequest {
    fn new(slot: &Arc<HttpConnectionSlot>) -> Self {
        slot.connection.busy.fetch_add(1, Ordering::AcqRel);
        slot.connection.requests.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(slot))
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let Self(slot) = self;
        slot.connection.busy.fetch_sub(1, Ordering::AcqRel);
        slot.queue.touch(&slot.connection);
    }
}

/// Counts a request's body as being received until it is read or given up.
struct RequestUpload(Arc<HttpConnectionSlot>);

impl RequestUpload {
    fn new(slot: &Arc<HttpConnectionSlot>) -> Self {
        slot.connection.uploads.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(slot))
    }
}

impl Drop for RequestUpload {
    fn drop(&mut self) {
        let Self(slot) = self;
        slot.connection.uploads.fetch_sub(1, Ordering::AcqRel);
    }
}
