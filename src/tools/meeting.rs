//! A step that jobs of several arms do together: each brings its part, and the last to come does it for all.

use std::sync::Mutex;

use tokio::sync::oneshot;

use base::lock::MutexExt;

/// A step of jobs that belong together. A job that ends without its part ends the step for all.
pub(super) struct Meeting<Part, Share> {
    state: Mutex<MeetingState<Part, Share>>,
}

/// A part that has come, and where its share goes.
type Seat<Part, Share> = (Part, oneshot::Sender<Share>);

struct MeetingState<Part, Share> {
    /// Those that have come.
    seats: Vec<Option<Seat<Part, Share>>>,
    /// Why there will be no step.
    cancelled: Option<String>,
}

impl<Part, Share> Meeting<Part, Share> {
    /// Creates a meeting of this many jobs.
    pub(super) fn of(jobs: usize) -> Self {
        let seats = std::iter::repeat_with(|| None).take(jobs).collect();
        Self {
            state: Mutex::new(MeetingState {
                seats,
                cancelled: None,
            }),
        }
    }

    /// Brings the part of the job at this seat and returns its share of the step, which the last to come carries out.
    ///
    /// # Errors
    /// The reason why another job brings no part.
    pub(super) async fn bring<F>(
        &self,
        seat: usize,
        part: Part,
        step: impl FnOnce(Vec<Part>) -> F,
    ) -> Result<Share, String>
    where
        F: Future<Output = Vec<Share>>,
    {
        let (send, share) = oneshot::channel();
        if let Some(all) = self.sit_down(seat, part, send)? {
            let (parts, sends): (Vec<Part>, Vec<_>) = all.into_iter().unzip();
            for (send, share) in sends.into_iter().zip(step(parts).await) {
                // A job that has ended meanwhile does without.
                let _ = send.send(share);
            }
        }
        share.await.map_err(|_| self.reason())
    }

    /// Takes a seat; returns all parts if it was the last one.
    fn sit_down(
        &self,
        seat: usize,
        part: Part,
        send: oneshot::Sender<Share>,
    ) -> Result<Option<Vec<Seat<Part, Share>>>, String> {
        let mut state = self.state.locked();
        if let Some(reason) = &state.cancelled {
            return Err(reason.clone());
        }
        if let Some(place) = state.seats.get_mut(seat) {
            *place = Some((part, send));
        }
        let all_came = state.seats.iter().all(Option::is_some);
        Ok(all_came.then(|| state.seats.iter_mut().filter_map(Option::take).collect()))
    }

    /// Ends the step for all that wait, because a job brings no part.
    pub(super) fn cancel(&self, reason: &str) {
        let mut state = self.state.locked();
        state.cancelled.get_or_insert_with(|| reason.to_owned());
        state.seats.fill_with(|| None);
    }

    fn reason(&self) -> String {
        let state = self.state.locked();
        let reason = state.cancelled.clone();
        reason.unwrap_or_else(|| "this step failed for another arm".to_owned())
    }
}
