//! Measures how late this machine wakes a thread: a late stop is judged beside it.

use std::sync::mpsc;

use base::clock::NodeClock;
use base::units::ClockInstant;
use call::{Refusal, refusal};

/// A thread with nothing to do but to note how late it is woken: as late as the machine itself is.
pub(super) struct WakeupProbe {
    ask: mpsc::Sender<ClockInstant>,
    late_ms: mpsc::Receiver<f64>,
    clock: NodeClock,
}

impl WakeupProbe {
    /// # Errors
    /// When there is no thread for it.
    pub(super) fn start(clock: &NodeClock) -> Result<Self, Refusal> {
        let (ask, asked) = mpsc::channel::<ClockInstant>();
        let (tell, late_ms) = mpsc::channel();
        let own = clock.clone();
        std::thread::Builder::new()
            .name("bare".to_owned())
            .spawn(move || {
                while let Ok(at) = asked.recv() {
                    if tell.send(own.now().seconds_since(at) * 1e3).is_err() {
                        return;
                    }
                }
            })
            .map_err(|error| refusal!("no bare thread: {error}"))?;
        Ok(Self {
            ask,
            late_ms,
            clock: clock.clone(),
        })
    }

    /// Returns the lateness of a wake-up now; `None` if the thread has ended.
    pub(super) fn wake_ms(&mut self) -> Option<f64> {
        self.ask.send(self.clock.now()).ok()?;
        self.late_ms.recv().ok()
    }
}
