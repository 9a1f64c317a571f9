//! Limits how far a motion may go. The journal releases samples once their effect is recorded; the
//! arm's thread sends none beyond, and reports how far it came.
//!
//! Atomics and a wake-up: the arm's thread never waits for a lock, and a stop waits for no release.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The limit up to which one motion may go; clones share it.
#[derive(Clone, Debug)]
pub struct MotionRelease(Arc<ReleaseState>);

#[derive(Debug)]
struct ReleaseState {
    /// The job that owns the motion, for the log.
    job: Option<String>,
    /// Samples before this one may be sent.
    end: AtomicUsize,
    /// The sample that was last sent.
    at: AtomicUsize,
    /// The furthest sample at which the arm was measured.
    reached: AtomicUsize,
    /// The furthest sample that the motion needs to be released.
    wanted: AtomicUsize,
    change: Notify,
}

impl MotionRelease {
    /// Releases the whole motion at once: for motions that draw nothing.
    #[must_use]
    pub fn whole() -> Self {
        Self::of(usize::MAX, None)
    }

    /// Releases nothing yet.
    #[must_use]
    pub fn nothing() -> Self {
        Self::of(0, None)
    }

    /// Releases nothing yet of this job's motion.
    #[must_use]
    pub fn nothing_of(job: &str) -> Self {
        Self::of(0, Some(job.to_owned()))
    }

    fn of(end: usize, job: Option<String>) -> Self {
        Self(Arc::new(ReleaseState {
            job,
            end: AtomicUsize::new(end),
            at: AtomicUsize::new(0),
            reached: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            change: Notify::new(),
        }))
    }

    /// Releases all samples before `end`. Released samples stay released: a lesser `end` changes
    /// nothing.
    pub fn up_to(&self, end: usize) {
        self.0.end.fetch_max(end, Ordering::SeqCst);
        self.0.change.notify_one();
    }

    /// Returns the job whose motion it is, if any.
    pub(super) fn job(&self) -> Option<&str> {
        self.0.job.as_deref()
    }

    /// Returns the sample that the motion last sent; 0 before the first.
    #[must_use]
    pub fn at(&self) -> usize {
        self.0.at.load(Ordering::SeqCst)
    }

    /// Returns the furthest sample at which the arm was measured, never beyond the last one sent.
    #[must_use]
    pub fn reached(&self) -> usize {
        self.0.reached.load(Ordering::SeqCst)
    }

    /// Returns the furthest sample that the motion needs to be released, and [`Self::reached`] no earlier than then. The
    /// first is beyond the next sample by as much as a stop from there would still pass.
    #[must_use]
    pub fn wanted_and_reached(&self) -> (usize, usize) {
        // The motion may go on between two reads: a sample reached before it would be too far behind what it wants now.
        loop {
            let wanted = self.wanted();
            let reached = self.reached();
            if self.wanted() == wanted {
                return (wanted, reached);
            }
        }
    }

    fn wanted(&self) -> usize {
        self.0.wanted.load(Ordering::SeqCst)
    }

    #[cfg(test)]
    pub(super) fn end(&self) -> usize {
        self.0.end.load(Ordering::SeqCst)
    }

    /// Returns whether all samples up to this one may be sent.
    pub(super) fn covers(&self, sample: usize) -> bool {
        self.0.wanted.store(sample, Ordering::SeqCst);
        sample < self.0.end.load(Ordering::SeqCst)
    }

    pub(super) fn came_to(&self, sample: usize, reached: usize) {
        self.0.at.store(sample, Ordering::SeqCst);
        self.0.reached.store(reached.min(sample), Ordering::SeqCst);
    }

    /// Returns when more is released, at once if that happened since the last call.
    pub(super) async fn changed(&self) {
        self.0.change.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_samples_stay_released() {
        let release = MotionRelease::nothing();
        assert!(!release.covers(0));
        release.up_to(7);
        release.up_to(3);
        assert!(release.covers(6) && !release.covers(7));
        assert!(MotionRelease::whole().covers(usize::MAX - 1));
    }

    #[test]
    fn what_is_wanted_and_reached_is_of_one_moment_of_a_moving_arm() {
        /// Samples between the one that is reached and the one that is wanted, at most.
        const LEAD: usize = 6;
        const SAMPLES: usize = 2_000_000;
        let release = MotionRelease::whole();
        let arm = release.clone();
        let motion = std::thread::spawn(move || {
            for sample in 0..SAMPLES {
                arm.covers(sample + LEAD - 1);
                arm.came_to(sample, sample);
            }
        });
        while !motion.is_finished() {
            let (wanted, reached) = release.wanted_and_reached();
            assert!(wanted <= reached + LEAD, "{wanted} after {reached}");
        }
        assert!(motion.join().is_ok());
    }
}
