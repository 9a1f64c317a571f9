//! Asks the doorkeeper about every request that needs a token, and lets one token be proven at a time.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::sync::{mpsc, oneshot};

use super::service_trait::Authenticator;
use call::{Refusal, VerifiedIdentity, refusal};

/// Tokens that wait for their proof; the requests behind them are bounded with their connections.
const WAITING_MAX: usize = 16;

/// A doorkeeper and the queue before it; clones are the same queue.
#[derive(Clone)]
pub struct AuthQueue {
    doorkeeper: Arc<dyn Authenticator>,
    proofs: mpsc::Sender<AuthRequest>,
}

/// A token to be proven, and who waits for what comes of it.
struct AuthRequest {
    token: Option<String>,
    answer: oneshot::Sender<Result<VerifiedIdentity, Refusal>>,
}

impl AuthQueue {
    /// Proofs are made on one plain thread, which ends with the last clone: each takes megabytes, which the allocator then
    /// keeps for one thread and not for as many as senders of wrong tokens can wake.
    #[must_use]
    pub fn new(doorkeeper: Arc<dyn Authenticator>) -> Self {
        let (proofs, queue) = mpsc::channel(WAITING_MAX);
        let prover = Arc::clone(&doorkeeper);
        let thread = std::thread::Builder::new()
            .name("tokens".to_owned())
            .spawn(move || prove(prover.as_ref(), queue));
        if let Err(error) = thread {
            tracing::error!("no token can be proven: {error}");
        }
        Self { doorkeeper, proofs }
    }

    /// The bearer token's owner; `None` where there is no token and none is wanted. Who has been believed needs no proof,
    /// and waits for none.
    ///
    /// # Errors
    /// Why the caller does not come in.
    pub(super) async fn admit(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<VerifiedIdentity>, Refusal> {
        let token = bearer(headers);
        if token.is_none() && !self.doorkeeper.wants_tokens() {
            return Ok(None);
        }
        self.prove(token).await.map(Some)
    }

    /// Returns the owner of a token, proven in its turn.
    ///
    /// # Errors
    /// Why it opens nothing.
    pub async fn verify(&self, token: String) -> Result<VerifiedIdentity, Refusal> {
        self.prove(Some(token)).await
    }

    /// Returns the owner of a token that was proven before, if it still opens anything. Takes no time.
    #[must_use]
    pub fn verify_cached(&self, token: &str) -> Option<VerifiedIdentity> {
        self.doorkeeper.verify_cached(Some(token))?.ok()
    }

    async fn prove(&self, token: Option<String>) -> Result<VerifiedIdentity, Refusal> {
        if let Some(judged) = self.doorkeeper.verify_cached(token.as_deref()) {
            return judged;
        }
        let (answer, judged) = oneshot::channel();
        // A thread that has gone answers nobody.
        let _ = self.proofs.send(AuthRequest { token, answer }).await;
        let lost = |_| Err(refusal!("the token could not be looked up"));
        judged.await.unwrap_or_else(lost)
    }

    /// Counts a session that is opened.
    ///
    /// # Errors
    /// The seconds until one may be.
    pub(super) fn count_session(&self, who: &VerifiedIdentity) -> Result<(), f64> {
        self.doorkeeper.count_session(who)
    }
}

fn prove(doorkeeper: &dyn Authenticator, mut queue: mpsc::Receiver<AuthRequest>) {
    while let Some(AuthRequest { token, answer }) = queue.blocking_recv() {
        // Nobody waits for a caller that has hung up.
        if !answer.is_closed() {
            let _ = answer.send(doorkeeper.verify(token.as_deref()));
        }
    }
}

/// Returns the bearer token of a request, as it was sent. What is sent under another scheme, or is no text, is a token that
/// nobody has: whoever sends one does not come in as one who sends none.
pub(super) fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(AUTHORIZATION)?;
    let value = String::from_utf8_lossy(value.as_bytes());
    // A client whose token is empty has sent one all the same.
    let (scheme, token) = value.split_once(' ').unwrap_or((&value, ""));
    let token = if scheme.eq_ignore_ascii_case("bearer") {
        token.trim()
    } else {
        value.as_ref()
    };
    Some(token.to_owned())
}
