//! Wrong secrets of a token: each costs a slow hash to refuse, so that many of them have to wait.

/// Wrong secrets of one token that cost nothing but their proof.
pub(super) const WRONG_FREE: u32 = 3;

/// Pause after the next failed attempt, in ms; it doubles with each, up to the maximum. Guessing a secret is
/// hopeless: this only keeps a guesser from keeping the machine at work.
pub(super) const PAUSE_MS: u64 = 1_000;
const PAUSE_MS_MAX: u64 = 8_000;

/// Recent failed attempts, and the end of the pause that they cause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FailedAttempts {
    count: u32,
    /// Milliseconds since 1970 until which no other is proven.
    until_ms: u64,
}

impl FailedAttempts {
    /// One more, now.
    pub(super) fn record(&mut self, now_ms: u64) {
        self.count = self.count.saturating_add(1);
        let Some(paid) = self.count.checked_sub(WRONG_FREE + 1) else {
            return;
        };
        let pause_ms = PAUSE_MS.saturating_mul(1 << paid.min(10));
        self.until_ms = now_ms.saturating_add(pause_ms.min(PAUSE_MS_MAX));
    }

    /// Returns the remaining pause. It never exceeds the maximum, even if the calendar was set back.
    pub(super) fn remaining_ms(&self, now_ms: u64) -> u64 {
        self.until_ms.saturating_sub(now_ms).min(PAUSE_MS_MAX)
    }
}
