//! Bounds the sessions over HTTP: a new one replaces the one that has been idle longest. `rmcp` has no bound, and keeps the entry
//! of a session whose client went without a `DELETE` (modelcontextprotocol/rust-sdk#1244).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _};
use http::HeaderMap;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cancellation::RequestIds;
use super::cut_streams::{self, CutStreams};
use super::http::SessionEndCallback;
use super::origin_guard::SESSION;
use super::server::OpenRequest;
use super::stranded_clients::{StrandedClients, UnknownSession};

/// Most sessions at a time. Calls without a session, and every stop, are served regardless.
pub(super) const SESSIONS_MAX: usize = 64;

/// Time after which an idle session is forgotten: its client is told when it comes back, and opens another. A call in progress
/// keeps its session alive.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);

/// Longest wait for the calls of a session that has ended, whose arms were told to stop.
const CALLS_END_MAX: Duration = Duration::from_secs(15);

/// Reason why a session is not opened, or not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    /// A call is open in each of them.
    #[error("all {SESSIONS_MAX} sessions are in use")]
    Full,
    /// The protocol library's reason.
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
}

/// The protocol library's sessions, and which of them are idle.
pub(super) struct McpSessions {
    library: LocalSessionManager,
    all: Arc<SessionTable>,
    on_end: Option<SessionEndCallback>,
    stranded: StrandedClients,
    /// Requests outside any session.
    alone: Arc<RequestIds>,
}

/// All sessions, the one that has been idle longest first.
#[derive(Default)]
struct SessionTable(Mutex<VecDeque<Arc<McpSession>>>);

/// Owner of a session: the hash of the token that opened it; `None` if no token was sent.
pub(super) type SessionOwner = Option<blake3::Hash>;

struct McpSession {
    id: SessionId,
    /// Set before any client learns the id.
    owner: OnceLock<SessionOwner>,
    /// Calls whose answers are still to come.
    open: AtomicUsize,
    /// Set when the session ends: no client waits for its calls any more.
    ended: CancellationToken,
    /// Its requests, for as long as they are worked on.
    work: TaskTracker,
    /// Its requests, as its client names them.
    requests: Arc<RequestIds>,
    /// Its calls whose streams can be come back to.
    cut: CutStreams,
}

impl McpSession {
    fn is_idle(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }
}

impl SessionTable {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<McpSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, id: &SessionId) -> Option<Arc<McpSession>> {
        let mut all = self.lock();
        let at = all.iter().position(|session| session.id == *id)?;
        all.remove(at)
    }

    /// Moves a session that was just used to the back.
    fn touch(&self, id: &SessionId) -> Option<Arc<McpSession>> {
        let session = self.take(id)?;
        self.lock().push_back(Arc::clone(&session));
        Some(session)
    }

    /// Returns whether one more session fits, or can replace an idle one.
    fn has_room(&self) -> bool {
        let all = self.lock();
        all.len() < SESSIONS_MAX || all.iter().any(|session| session.is_idle())
    }

    /// Removes sessions until one more fits, and returns them.
    fn evict_surplus(&self) -> Result<Vec<Arc<McpSession>>, SessionsError> {
        let mut all = self.lock();
        let mut gone = Vec::new();
        while all.len() >= SESSIONS_MAX {
            let idle = all.iter().position(|session| session.is_idle());
            let longest = idle.and_then(|at| all.remove(at));
            gone.push(longest.ok_or(SessionsError::Full)?);
        }
        Ok(gone)
    }
}

/// One call of a session, until its answer is read or given up.
struct OpenSessionCall {
    session: Arc<McpSession>,
    all: Arc<SessionTable>,
}

impl OpenSessionCall {
    fn new(all: &Arc<SessionTable>, id: &SessionId) -> Option<Self> {
        let session = all.touch(id)?;
        session.open.fetch_add(1, Ordering::AcqRel);
        Some(Self {
            session,
            all: Arc::clone(all),
        })
    }
}

impl Drop for OpenSessionCall {
    fn drop(&mut self) {
        self.session.open.fetch_sub(1, Ordering::AcqRel);
        self.all.touch(&self.session.id);
    }
}

impl McpSessions {
    /// Creates an empty table; `on_end` is called for each session that ends.
    pub(super) fn new(on_end: Option<SessionEndCallback>) -> Self {
        let mut library = LocalSessionManager::default();
        library.session_config.keep_alive = Some(IDLE_MAX);
        library.session_config.sse_retry = None;
        Self {
            library,
            all: Arc::default(),
            on_end,
            stranded: StrandedClients::default(),
            alone: Arc::default(),
        }
    }

    /// Returns whether one more session can be opened now.
    pub(super) fn has_room(&self) -> bool {
        self.all.has_room()
    }

    /// Binds a session to its owner, once.
    pub(super) fn bind(&self, id: &str, owner: SessionOwner) {
        let all = self.all.lock();
        if let Some(session) = all.iter().find(|session| *session.id == *id) {
            session.owner.get_or_init(|| owner);
        }
    }

    /// Returns whether a caller may name this session: it is the caller's own, or does not exist.
    pub(super) fn may_use(&self, id: &str, owner: SessionOwner) -> bool {
        let all = self.all.lock();
        let found = all.iter().find(|session| *session.id == *id);
        found.is_none_or(|session| session.owner.get() == Some(&owner))
    }

    /// Judges a session that a request names; `None` for one that is open.
    pub(super) fn unknown(&self, id: &str, owner: SessionOwner) -> Option<UnknownSession> {
        let is_open = self.all.lock().iter().any(|session| *session.id == *id);
        (!is_open).then(|| self.stranded.judge(id, owner))
    }

    /// Begins a request, which belongs to the session that its headers name, if that is open. Returns `None` if that session has
    /// an open request of this id.
    pub(super) fn open_call(
        &self,
        headers: &HeaderMap,
        request: Option<&Value>,
    ) -> Option<OpenRequest> {
        let all = self.all.lock();
        let Some(session) = named_session(&all, headers) else {
            let hung_up = CancellationToken::new();
            if let Some(id) = request {
                self.alone.begin_any(id, hung_up.clone());
            }
            let work = TaskTracker::new().token();
            return Some(OpenRequest { hung_up, work });
        };
        let hung_up = session.ended.child_token();
        let is_new = request.is_none_or(|id| session.requests.begin(id, hung_up.clone()));
        let work = session.work.token();
        is_new.then_some(OpenRequest { hung_up, work })
    }

    /// Gives up what a cancellation means, of the session that its headers name or outside any. Returns whether there was such a
    /// request.
    pub(super) fn cancel(&self, headers: &HeaderMap, message: &mut Value) -> bool {
        let all = self.all.lock();
        let session = named_session(&all, headers);
        let requests = session.map_or(&self.alone, |session| &session.requests);
        requests.cancel(message)
    }

    /// Gives up the calls of a session that has ended, and calls `on_end` once none of them is running: until then the session
    /// keeps its leases.
    fn end(&self, session: Arc<McpSession>) {
        session.ended.cancel();
        session.work.close();
        self.stranded.ended(&session.id);
        let Some(on_end) = self.on_end.clone() else {
            return;
        };
        if session.work.is_empty() {
            return on_end(&session.id);
        }
        let report = async move {
            // After that the lease is given back even if a call hangs.
            let _ = tokio::time::timeout(CALLS_END_MAX, session.work.wait()).await;
            on_end(&session.id);
        };
        tokio::spawn(report.boxed());
    }
}

/// Returns the session that a request's headers name, if it is open.
fn named_session<'s>(
    all: &'s VecDeque<Arc<McpSession>>,
    headers: &HeaderMap,
) -> Option<&'s Arc<McpSession>> {
    let id = headers.get(SESSION)?.to_str().ok()?;
    all.iter().find(|session| *session.id == *id)
}

impl SessionManager for McpSessions {
    type Error = SessionsError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionsError> {
        for gone in self.all.evict_surplus()? {
            tracing::info!("a new session replaces the one that was idle longest");
            self.end(Arc::clone(&gone));
            self.library.close_session(&gone.id).await?;
        }
        let (id, transport) = self.library.create_session().await?;
        let session = McpSession {
            id: Arc::clone(&id),
            owner: OnceLock::new(),
            open: AtomicUsize::new(0),
            ended: CancellationToken::new(),
            work: TaskTracker::new(),
            requests: Arc::default(),
            cut: CutStreams::default(),
        };
        self.all.lock().push_back(Arc::new(session));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionsError> {
        Ok(self.library.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionsError> {
        Ok(self.library.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionsError> {
        // Its calls are given up before the library closes it.
        if let Some(session) = self.all.take(id) {
            self.end(session);
        }
        Ok(self.library.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let open = OpenSessionCall::new(&self.all, id);
        let stream = self.library.create_stream(id, message).await?;
        // Whoever reads it: the stream is read to its end.
        Ok(stream.inspect(move |event| {
            // The call is open for as long as its stream is.
            if let Some(OpenSessionCall { session, .. }) = &open {
                let is_cut = |answer: &_| session.requests.is_given_up(answer);
                session.cut.observe(event, is_cut);
            }
        }))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionsError> {
        self.all.touch(id);
        Ok(self.library.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        self.all.touch(id);
        Ok(self.library.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionsError> {
        let session = self.all.touch(id);
        let resumed = self.library.resume(id, last_event_id.clone()).await;
        // The library forgets a stream with its answer, read or not.
        let error = match resumed {
            Ok(stream) => return Ok(stream.left_stream()),
            Err(error) => error,
        };
        let answer = session.and_then(|session| session.cut.answer(&last_event_id));
        let answer = answer.ok_or(error)?;
        let answer = futures::stream::once(cut_streams::answered(answer));
        Ok(answer.filter_map(std::future::ready).right_stream())
    }
}
