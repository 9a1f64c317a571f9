//! The sender of an HTTP request, who may go before it is answered. A request that has arrived is not dropped at the end of its connection, so
//! that a stop whose sender closes at once is carried out all the same.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The sender of a request, in the request's extensions. Without a connection, a sender never goes.
#[derive(Clone, Debug)]
pub(super) struct RequestSender {
    gone: CancellationToken,
    /// Counts what keeps the request.
    kept: TaskTracker,
}

impl Default for RequestSender {
    fn default() -> Self {
        let kept = TaskTracker::new();
        // A wait for an open tracker never ends; tokens of a closed one still count.
        kept.close();
        Self {
            gone: CancellationToken::new(),
            kept,
        }
    }
}

impl RequestSender {
    /// Returns the sender of a request.
    pub(super) fn of(extensions: &http::Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Returns the token that is set when the connection ends.
    pub(super) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    /// Keeps the request from being dropped when its sender goes, for as long as the returned token lives.
    pub(super) fn keep_request(&self) -> TaskTrackerToken {
        self.kept.token()
    }

    /// Waits until the sender has gone and nothing keeps the request.
    pub(super) async fn until_given_up(&self) {
        self.gone.cancelled().await;
        self.kept.wait().await;
    }
}
