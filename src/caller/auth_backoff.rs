//! Delays attempts at a token after several wrong secrets: refusing each one costs a slow hash.

/// Number of wrong secrets of one token that cause no pause.
pub(super) const WRONG_FREE: u32 = 3;

/// Pause after the next failed attempt, in ms; it doubles with each, up to the maximum. Guessing a secret is
/// hopeless; the pause only keeps a guesser from keeping the machine busy.
pub(super) const PAUSE_MS: u64 = 1_000;
const PAUSE_MS_MAX: u64 = 8_000;

/// Recent failed attempts, and the end of the pause that they cause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FailedAttempts {
    count: u32,
    /// Milliseconds since 1970 until which no further secret is checked.
    until_ms: u64,
}

impl FailedAttempts {
    /// Records a failed attempt.
    pub(super) fn record(&mut self, now_ms: u64) {
        self.count = self.count.saturating_add(1);
        let Some(doublings) = self.count.checked_sub(WRONG_FREE + 1) else {
            return;
        };
        let pause_ms = PAUSE_MS.saturating_mul(1 << doublings.min(10));
        self.until_ms = now_ms.saturating_add(pause_ms.min(PAUSE_MS_MAX));
    }

    /// Returns the remaining pause. It never exceeds the maximum, even if the calendar was set back.
    pub(super) fn remaining_ms(&self, now_ms: u64) -> u64 {
        self.until_ms.saturating_sub(now_ms).min(PAUSE_MS_MAX)
    }
}
