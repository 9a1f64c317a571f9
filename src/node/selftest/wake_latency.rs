//! Measures how late this machine wakes an idle thread, so that a late stop can be judged against it.

use std::sync::mpsc;

use base::clock::NodeClock;
use base::units::ClockInstant;
use call::{Refusal, refusal};

/// An idle thread that measures how late it is woken, which is how late the machine itself is.
pub(super) struct WakeupProbe {
    wake: mpsc::Sender<ClockInstant>,
    late_ms: mpsc::Receiver<f64>,
    clock: NodeClock,
}

impl WakeupProbe {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(clock: &NodeClock) -> Result<Self, Refusal> {
        let (wake, woken) = mpsc::channel::<ClockInstant>();
        let (report, late_ms) = mpsc::channel();
        let thread_clock = clock.clone();
        std::thread::Builder::new()
            .name("idle".to_owned())
            .spawn(move || {
                while let Ok(sent_at) = woken.recv() {
                    let late_ms = thread_clock.now().seconds_since(sent_at) * 1e3;
                    if report.send(late_ms).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| refusal!("the idle thread cannot be started: {error}"))?;
        Ok(Self {
            wake,
            late_ms,
            clock: clock.clone(),
        })
    }

    /// Returns the lateness of a wake-up now; `None` if the thread has ended.
    pub(super) fn wake_ms(&mut self) -> Option<f64> {
        self.wake.send(self.clock.now()).ok()?;
        self.late_ms.recv().ok()
    }
}
