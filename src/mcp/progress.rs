//! Progress of one call: the service reports it, and the client gets a notice at least once a second, which never goes back.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

/// Longest silence towards a caller that requested progress: clients and session timeouts count from the last message.
pub(super) const PROGRESS_PERIOD_MAX: Duration = Duration::from_millis(900);

/// Shortest time between two notices, so that a fast job does not flood a slow client.
pub(super) const PROGRESS_PERIOD_MIN: Duration = Duration::from_millis(100);

/// Notices count in thousandths. One without news is a thousandth greater than the last, because the protocol requires each
/// to increase.
const STEPS_PER_UNIT: f64 = 1e3;

/// Progress of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallProgress {
    /// Amount done, in the same unit as `total`: of a motion, seconds of arm time. A step back is not sent.
    pub done: f64,
    /// Total amount, if known.
    pub total: Option<f64>,
    /// One line for a person; empty: none.
    pub message: String,
}

impl From<ProgressNotificationParam> for CallProgress {
    fn from(notice: ProgressNotificationParam) -> Self {
        Self {
            done: notice.progress,
            total: notice.total,
            message: notice.message.unwrap_or_default(),
        }
    }
}

/// Sender of a call's progress. Sending costs nothing and never waits; only the newest value is kept.
#[derive(Debug, Clone)]
pub struct ProgressSender(watch::Sender<CallProgress>);

impl ProgressSender {
    /// Returns a sender and the receiver of its newest value.
    #[must_use]
    pub fn pair() -> (Self, watch::Receiver<CallProgress>) {
        let (sender, receiver) = watch::channel(CallProgress::default());
        (Self(sender), receiver)
    }

    /// Reports how far the call has come.
    pub fn tell(&self, progress: CallProgress) {
        self.0.send_replace(progress);
    }
}

/// Sends the newest progress, at once when it changes and at least every [`PROGRESS_PERIOD_MAX`], until `finish`.
///
/// The last notice is sent before this returns, so that nothing follows the answer. Nothing is sent once `cancelled` is set.
pub(super) async fn pump(
    mut updates: watch::Receiver<CallProgress>,
    peer: Peer<RoleServer>,
    token: ProgressToken,
    (finish, cancelled): (CancellationToken, CancellationToken),
) {
    cancelled
        .run_until_cancelled(send_notices(&mut updates, &peer, &token, &finish))
        .await;
}

async fn send_notices(
    updates: &mut watch::Receiver<CallProgress>,
    peer: &Peer<RoleServer>,
    token: &ProgressToken,
    finish: &CancellationToken,
) {
    let mut history = SentProgress::default();
    let mut earliest = Instant::now();
    loop {
        let finished = wait(updates, earliest, finish).await;
        if finished && !updates.borrow().has_changed() {
            return;
        }
        let progress = updates.borrow_and_update().clone();
        let sent = peer.notify_progress(history.notice(token, progress)).await;
        if finished || sent.is_err() {
            return;
        }
        earliest = Instant::now() + PROGRESS_PERIOD_MIN;
    }
}

/// Waits for an update, not before `earliest`, or for the longest silence; returns `true` once the call is finished.
async fn wait(
    updates: &mut watch::Receiver<CallProgress>,
    earliest: Instant,
    finish: &CancellationToken,
) -> bool {
    let silence = earliest + PROGRESS_PERIOD_MAX - PROGRESS_PERIOD_MIN;
    let due = async {
        sleep_until(earliest).await;
        // A dropped sender has no more updates; `finish` tells when the call is finished.
        if let Ok(Err(_)) = timeout_at(silence, updates.changed()).await {
            sleep_until(silence).await;
        }
    };
    tokio::select! {
        () = finish.cancelled() => true,
        () = due => false,
    }
}

/// Progress that was sent so far.
#[derive(Debug, Default)]
struct SentProgress {
    last_steps: Option<f64>,
}

impl SentProgress {
    fn notice(
        &mut self,
        token: &ProgressToken,
        progress: CallProgress,
    ) -> ProgressNotificationParam {
        let done = self.next_value(progress.done);
        let mut notice = ProgressNotificationParam::new(token.clone(), done);
        // A call that waits at its end goes on increasing, but never beyond its total.
        let total = progress.total.filter(|total| total.is_finite());
        notice.total = total.map(|total| total.max(done));
        notice.message = Some(progress.message).filter(|message| !message.is_empty());
        notice
    }

    fn next_value(&mut self, done: f64) -> f64 {
        let floor = self.last_steps.map_or(0.0, |last| last + 1.0);
        let steps = if done.is_finite() {
            (done * STEPS_PER_UNIT).round().max(floor)
        } else {
            floor
        };
        self.last_steps = Some(steps);
        // Divided once, so that it prints as a short decimal.
        steps / STEPS_PER_UNIT
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{NumberOrString, ProgressToken};

    use super::{CallProgress, SentProgress};

    #[test]
    fn each_notice_is_greater_than_the_last() {
        let mut history = SentProgress::default();
        let reported = [0.0, 0.0, 2.0, 1.0, f64::NAN, 2.0, 3.0];
        let sent: Vec<f64> = reported.map(|done| history.next_value(done)).into();
        assert!(sent.is_sorted_by(|a, b| a < b), "{sent:?}");
        assert!(sent.iter().all(|done| *done <= 3.0), "{sent:?}");
    }

    #[test]
    fn a_call_that_waits_at_its_end_never_exceeds_its_total() {
        let mut history = SentProgress::default();
        for _ in 0..3 {
            let progress = CallProgress {
                done: 2.0,
                total: Some(2.0),
                ..CallProgress::default()
            };
            let notice = history.notice(&ProgressToken(NumberOrString::Number(1)), progress);
            assert!(notice.total >= Some(notice.progress), "{notice:?}");
        }
    }

    #[test]
    fn the_first_notice_is_zero_and_none_has_noise() {
        let mut history = SentProgress::default();
        let reported = [0.0, 0.1 + 0.2, 0.3, 2.0 / 3.0, 2.0];
        let sent = reported.map(|done| history.next_value(done).to_string());
        assert_eq!(sent, ["0", "0.3", "0.301", "0.667", "2"]);
    }
}
