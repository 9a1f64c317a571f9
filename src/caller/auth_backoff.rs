//! Delays attempts at a token after several wrong secrets: refusing each one costs a slow hash.

use std::time::Duration;

use base::units::ClockInstant;

/// Number of wrong secrets of one token that cause no pause.
pub(super) const WRONG_FREE: u32 = 3;

/// Pause after the next failed attempt; it doubles with each, up to the maximum. Guessing a secret is
/// hopeless; the pause only keeps a guesser from keeping the machine busy.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// Recent failed attempts, and the end of the pause that they cause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FailedAttempts {
    count: u32,
    /// Moment until which no further secret is checked.
    until: ClockInstant,
}

impl FailedAttempts {
    /// Records a failed attempt.
    pub(super) fn record(&mut self, now: ClockInstant) {
        self.count = self.count.saturating_add(1);
        let Some(doublings) = self.count.checked_sub(WRONG_FREE + 1) else {
            return;
        };
        let pause = PAUSE.saturating_mul(1 << doublings.min(10));
        self.until = now.after(pause.min(PAUSE_MAX));
    }

    /// Returns the remaining pause.
    pub(super) fn remaining(&self, now: ClockInstant) -> Duration {
        self.until.since(now)
    }
}
