//! Asks the doorkeeper about every request that needs a token, and lets few tokens be proven at a time.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::sync::Semaphore;

use super::desk::{Doorkeeper, Identity};

/// Tokens that are proven at a time: each takes megabytes, and whoever sends wrong ones sends many. Who has been believed
/// needs no proof, and waits for none.
const PROOFS_MAX: usize = 1;

/// A doorkeeper and the queue before it; clones are the same queue.
#[derive(Clone)]
pub(super) struct Porter {
    doorkeeper: Arc<dyn Doorkeeper>,
    proofs: Arc<Semaphore>,
}

impl Porter {
    pub(super) fn new(doorkeeper: Arc<dyn Doorkeeper>) -> Self {
        Self {
            doorkeeper,
            proofs: Arc::new(Semaphore::new(PROOFS_MAX)),
        }
    }

    /// The bearer token's owner. Proving a token the first time costs a slow hash: not on this thread.
    ///
    /// # Errors
    /// Why the caller does not come in.
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<Identity, String> {
        const FAILED: &str = "the token could not be looked up";
        let token = bearer(headers);
        if let Some(judged) = self.doorkeeper.glance(token.as_deref()) {
            return judged;
        }
        let turn = Arc::clone(&self.proofs).acquire_owned().await;
        let turn = turn.map_err(|_| FAILED.to_owned())?;
        let doorkeeper = Arc::clone(&self.doorkeeper);
        let proof = tokio::task::spawn_blocking(move || {
            // Kept until the memory is free again, whether or not somebody still waits.
            let _turn = turn;
            doorkeeper.admit(token.as_deref())
        });
        proof.await.unwrap_or_else(|_| Err(FAILED.to_owned()))
    }

    /// Counts a session that is opened.
    ///
    /// # Errors
    /// The seconds until one may be.
    pub(super) fn opens(&self, who: &Identity) -> Result<(), f64> {
        self.doorkeeper.opens(who)
    }
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim().to_owned())
}
