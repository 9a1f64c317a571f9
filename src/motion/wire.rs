//! What a person should know of a bus that still works: a slow adapter, a bad line.

use std::time::Duration;

use crate::driver::{Attached, BusCounts, Identity};
use crate::plan::PERIOD;
use crate::units::Instant;

/// How long the line is watched before it is judged.
const WINDOW: Duration = Duration::from_secs(1);

/// Share of replies that had to be asked for again above which the line is called bad.
const BAD_SHARE: f64 = 0.01;

/// Fewer replies than this are not judged.
const JUDGED_MIN: u64 = 50;

/// What is known of the way to the servos.
#[derive(Debug, Default)]
pub(super) struct Wire {
    attached: Vec<String>,
    line: Option<String>,
    window: Option<(Instant, Sums)>,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    asked: u64,
    retries: Vec<u64>,
}

impl Wire {
    /// Begins anew with what was found on the bus.
    pub(super) fn attached(&mut self, attached: &Attached) {
        *self = Self {
            attached: attached.warnings.clone(),
            ..Self::default()
        };
        self.attached.extend(slow(attached.latency));
    }

    /// All of it, as of now.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.attached.iter().chain(&self.line).cloned().collect()
    }

    /// Looks at the counts as of now.
    pub(super) fn look(&mut self, now: Instant, counts: &BusCounts, servos: &[Identity]) {
        let sums = Sums {
            asked: counts.cycles * counts.servos.len() as u64,
            retries: counts.servos.iter().map(|servo| servo.retries).collect(),
        };
        let Some((since, before)) = &self.window else {
            self.window = Some((now, sums));
            return;
        };
        let asked = sums.asked.saturating_sub(before.asked);
        if now.since(*since) < WINDOW || asked < JUDGED_MIN {
            return;
        }
        let was_bad = self.line.is_some();
        self.line = bad_line(before, &sums, asked, servos);
        if let Some(words) = self.line.as_ref().filter(|_| !was_bad) {
            tracing::warn!("{words}");
        }
        self.window = Some((now, sums));
    }
}

/// How long a cycle may take with an adapter that passes replies on so late: its own period, or
/// where that is too short for two turn-rounds, as long as they take.
pub(super) fn cycle_time(latency: Duration) -> Duration {
    if latency < PERIOD / 2 {
        PERIOD
    } else {
        2 * latency + PERIOD / 2
    }
}

fn slow(latency: Duration) -> Option<String> {
    (latency >= PERIOD / 2).then(|| {
        format!(
            "a reply takes {:.0} ms to come back, so that the arm is driven slower than at 100 Hz: on an FTDI adapter set its `latency_timer` to 1 ms",
            latency.as_secs_f64() * 1e3
        )
    })
}

/// In words, with the servo that had to be asked most.
fn bad_line(before: &Sums, now: &Sums, asked: u64, servos: &[Identity]) -> Option<String> {
    let pairs = now.retries.iter().zip(&before.retries);
    let again: Vec<u64> = pairs
        .map(|(now, before)| now.saturating_sub(*before))
        .collect();
    let all: u64 = again.iter().sum();
    #[expect(clippy::cast_precision_loss, reason = "a share for a person")]
    let share = all as f64 / asked as f64;
    if share <= BAD_SHARE {
        return None;
    }
    let worst = again.iter().zip(servos).max_by_key(|(again, _)| **again);
    let worst = worst.map_or_else(String::new, |(_, identity)| {
        format!(", most often from {}", identity.servo)
    });
    Some(format!(
        "{:.1} % of the replies had to be asked for again in the last second{worst}: check the cable, its ground and the supply before the line is lost",
        share * 1e2
    ))
}
