//! Authenticates every request that needs a token, and verifies one token at a time.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::sync::{mpsc, oneshot};

use super::service_trait::Authenticator;
use call::{Refusal, VerifiedIdentity, refusal};

/// Most tokens that wait to be verified; further requests are bounded by their connections.
const WAITING_MAX: usize = 16;

/// An authenticator with a queue in front of it; clones share the queue.
#[derive(Clone)]
pub struct AuthQueue {
    auth: Arc<dyn Authenticator>,
    requests: mpsc::Sender<AuthRequest>,
}

/// A token to be verified, and the receiver of the result.
struct AuthRequest {
    token: Option<String>,
    answer: oneshot::Sender<Result<VerifiedIdentity, Refusal>>,
}

impl AuthQueue {
    /// Tokens are verified on one thread, which ends with the last clone: each takes megabytes, which the allocator then keeps
    /// for one thread only, not for as many as senders of wrong tokens could start.
    #[must_use]
    pub fn new(auth: Arc<dyn Authenticator>) -> Self {
        let (requests, queue) = mpsc::channel(WAITING_MAX);
        let verifier = Arc::clone(&auth);
        let thread = std::thread::Builder::new()
            .name("tokens".to_owned())
            .spawn(move || verify_queued(verifier.as_ref(), queue));
        if let Err(error) = thread {
            tracing::error!("tokens cannot be verified: {error}");
        }
        Self { auth, requests }
    }

    /// Returns the bearer token's owner; `None` if there is no token and none is required. A token that was verified before does
    /// not wait.
    ///
    /// # Errors
    /// The reason why the caller is not let in.
    pub(super) async fn admit(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<VerifiedIdentity>, Refusal> {
        let token = bearer(headers);
        if token.is_none() && !self.auth.wants_tokens() {
            return Ok(None);
        }
        self.authenticate(token).await.map(Some)
    }

    /// Returns the owner of a token, verified in its turn.
    ///
    /// # Errors
    /// The reason why the token is not valid.
    pub async fn verify(&self, token: String) -> Result<VerifiedIdentity, Refusal> {
        self.authenticate(Some(token)).await
    }

    /// Returns the owner of a token that was verified before, if it is still valid.
    pub async fn verify_cached(&self, token: String) -> Option<VerifiedIdentity> {
        self.judge_cached(Some(token)).await?.ok()
    }

    /// Judges a token without a slow hash, on another thread: it looks whether the file of tokens has changed, and that file may be
    /// on a disk that does not answer.
    async fn judge_cached(
        &self,
        token: Option<String>,
    ) -> Option<Result<VerifiedIdentity, Refusal>> {
        let auth = Arc::clone(&self.auth);
        let judging = tokio::task::spawn_blocking(move || auth.verify_cached(token.as_deref()));
        judging.await.ok()?
    }

    async fn authenticate(&self, token: Option<String>) -> Result<VerifiedIdentity, Refusal> {
        if let Some(judged) = self.judge_cached(token.clone()).await {
            return judged;
        }
        let (answer, judged) = oneshot::channel();
        // If the thread has ended, the answer is an error.
        let _ = self.requests.send(AuthRequest { token, answer }).await;
        let lost = |_| Err(refusal!("the token could not be checked"));
        judged.await.unwrap_or_else(lost)
    }

    /// Counts a session that is opened.
    ///
    /// # Errors
    /// The seconds until a session may be opened.
    pub(super) fn count_session(&self, caller: &VerifiedIdentity) -> Result<(), f64> {
        self.auth.count_session(caller)
    }
}

fn verify_queued(auth: &dyn Authenticator, mut queue: mpsc::Receiver<AuthRequest>) {
    while let Some(AuthRequest { token, answer }) = queue.blocking_recv() {
        // No request waits for it any more.
        if !answer.is_closed() {
            let _ = answer.send(auth.verify(token.as_deref()));
        }
    }
}

/// Returns the bearer token of a request, as it was sent. Anything under another scheme, or that is not text, counts as a token
/// that no caller has, so that its sender is not let in as one without a token.
pub(super) fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?;
    let value = String::from_utf8_lossy(value.as_bytes());
    // A client with an empty token has still sent one.
    let (scheme, token) = value.split_once(' ').unwrap_or((&value, ""));
    let token = if scheme.eq_ignore_ascii_case("bearer") {
        token.trim()
    } else {
        value.as_ref()
    };
    Some(token.to_owned())
}
