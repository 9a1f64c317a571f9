//! Checks whether a position is plausible: an eight-bit checksum lets damaged readings pass.

use std::time::Duration;

use base::units::ClockInstant;

/// Number of consecutive implausible readings that count as real.
pub(crate) const JUMPS_MAX: u32 = 3;

/// Ticks that a reading may be off without any movement.
const NOISE_TICKS: f64 = 4.0;

/// Periods of full speed that a reading may be away from the last one.
const PERIODS: f64 = 3.0;

/// The last plausible position of one servo.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PositionFilter {
    last: Option<(i32, ClockInstant)>,
    jumps: u32,
}

/// The verdict on a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadingVerdict {
    /// Movement explains it.
    Believed,
    /// Movement does not explain it; read again.
    Doubted,
    /// Movement does not explain it, and it persists.
    Jumped { from_ticks: i32, bound_ticks: i32 },
}

impl PositionFilter {
    /// Judges a reading taken at `at` of a servo that moves at most at `speed_ticks_s` and is read
    /// every `period`. Only believed readings are kept.
    pub(crate) fn judge(
        &mut self,
        ticks: i32,
        at: ClockInstant,
        speed_ticks_s: f64,
        period: Duration,
    ) -> ReadingVerdict {
        let Some((from_ticks, last_at)) = self.last else {
            self.accept(ticks, at);
            return ReadingVerdict::Believed;
        };
        let elapsed_s = at.seconds_since(last_at);
        let reach_s = (PERIODS * period.as_secs_f64()).max(elapsed_s + period.as_secs_f64());
        let bound = speed_ticks_s * reach_s + NOISE_TICKS;
        if f64::from(ticks.saturating_sub(from_ticks)).abs() <= bound {
            self.accept(ticks, at);
            return ReadingVerdict::Believed;
        }
        self.jumps += 1;
        if self.jumps < JUMPS_MAX {
            return ReadingVerdict::Doubted;
        }
        #[expect(clippy::cast_possible_truncation, reason = "`as` saturates")]
        let bound_ticks = bound as i32;
        ReadingVerdict::Jumped {
            from_ticks,
            bound_ticks,
        }
    }

    /// Accepts a reading as true, regardless of earlier ones.
    pub(crate) fn accept(&mut self, ticks: i32, at: ClockInstant) {
        *self = Self {
            last: Some((ticks, at)),
            jumps: 0,
        };
    }

    /// Forgets everything: the next reading is the first.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(10);

    #[test]
    fn a_step_that_speed_explains_is_believed_and_a_jump_is_not() {
        let mut filter = PositionFilter::default();
        let at = ClockInstant::ZERO;
        assert_eq!(
            filter.judge(2048, at, 2000.0, PERIOD),
            ReadingVerdict::Believed
        );
        let later = at.after(PERIOD);
        assert_eq!(
            filter.judge(2100, later, 2000.0, PERIOD),
            ReadingVerdict::Believed
        );
        assert_eq!(
            filter.judge(2300, later, 2000.0, PERIOD),
            ReadingVerdict::Doubted
        );
        assert_eq!(
            filter.judge(2110, later, 2000.0, PERIOD),
            ReadingVerdict::Believed
        );
        assert_eq!(filter.last.map(|(ticks, _)| ticks), Some(2110));
    }

    #[test]
    fn a_jump_that_stays_is_reported_with_its_bound() {
        let mut filter = PositionFilter::default();
        filter.accept(0, ClockInstant::ZERO);
        let judged = [(); 3].map(|()| filter.judge(4095, ClockInstant::ZERO, 1000.0, PERIOD));
        assert_eq!(judged[0], ReadingVerdict::Doubted);
        assert_eq!(
            judged[2],
            ReadingVerdict::Jumped {
                from_ticks: 0,
                bound_ticks: 34
            }
        );
    }

    #[test]
    fn after_a_gap_a_larger_step_is_believed() {
        let mut filter = PositionFilter::default();
        filter.accept(0, ClockInstant::ZERO);
        let later = ClockInstant::ZERO.after(Duration::from_millis(90));
        assert_eq!(
            filter.judge(100, later, 1000.0, PERIOD),
            ReadingVerdict::Believed
        );
    }
}
