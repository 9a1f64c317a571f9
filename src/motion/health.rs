//! What a person should know of an arm that still works: heat, a slow adapter, a bad line.

use std::time::Duration;

use crate::driver::{Attached, BusCounts, Identity};
use crate::plan::PERIOD;
use crate::units::{Instant, Measured};

/// A servo this hot is told of.
const WARM_C: f64 = 55.0;

/// With a servo this hot no drawing begins.
const HOT_C: f64 = 60.0;

/// A servo this hot ends what it does: pen up, then a fault. The servos' own limits are 70 °C and
/// more, and there they go limp.
const TOO_HOT_C: f64 = 65.0;

/// Readings in a row that make a temperature: a damaged one must not end a stroke.
const HOT_READINGS: u32 = 5;

/// How long the line is watched before it is judged.
const WINDOW: Duration = Duration::from_secs(1);

/// Share of replies that had to be asked for again above which the line is called bad.
const BAD_SHARE: f64 = 0.01;

/// Fewer replies than this are not judged.
const JUDGED_MIN: u64 = 50;

/// What is known of an arm's health.
#[derive(Debug, Default)]
pub(super) struct Health {
    attached: Vec<String>,
    line: Option<String>,
    warm: Option<String>,
    hot_readings: u32,
    window: Option<(Instant, Sums)>,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    asked: u64,
    retries: Vec<u64>,
}

impl Health {
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
        let now = self.line.iter().chain(&self.warm);
        self.attached.iter().chain(now).cloned().collect()
    }

    /// Takes a reading; why the motion must end, if it must.
    pub(super) fn look(
        &mut self,
        measured: &Measured,
        counts: &BusCounts,
        servos: &[Identity],
    ) -> Option<String> {
        self.judge_line(measured.at, counts, servos);
        let hottest = hottest(measured, servos);
        self.warm = hottest
            .as_ref()
            .filter(|(_, celsius)| *celsius >= WARM_C)
            .map(|(who, celsius)| {
                format!("{who} is at {celsius:.0} °C; from {HOT_C:.0} °C on no drawing begins")
            });
        let too_hot = hottest.filter(|(_, celsius)| *celsius >= TOO_HOT_C);
        self.hot_readings = match too_hot {
            Some(_) => self.hot_readings.saturating_add(1),
            None => 0,
        };
        let (who, celsius) = too_hot.filter(|_| self.hot_readings >= HOT_READINGS)?;
        Some(format!(
            "{who} is at {celsius:.0} °C, {TOO_HOT_C:.0} °C is the limit: let it cool, and lessen the load"
        ))
    }

    fn judge_line(&mut self, now: Instant, counts: &BusCounts, servos: &[Identity]) {
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

/// Why no drawing may begin, if a servo is too hot for that.
pub(super) fn too_hot_to_begin(measured: &Measured, servos: &[Identity]) -> Option<String> {
    let (who, celsius) = hottest(measured, servos).filter(|(_, celsius)| *celsius >= HOT_C)?;
    Some(format!(
        "{who} is at {celsius:.0} °C; from {HOT_C:.0} °C on no drawing begins: let it cool"
    ))
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

/// The hottest servo, by name.
fn hottest(measured: &Measured, servos: &[Identity]) -> Option<(String, f64)> {
    let read = measured.servos.iter().filter_map(|servo| {
        let name = servos.iter().find(|one| one.servo.id == servo.id);
        let name = name.map_or_else(
            || format!("servo {}", servo.id),
            |one| one.servo.to_string(),
        );
        Some((name, servo.temperature_c?))
    });
    read.max_by(|a, b| a.1.total_cmp(&b.1))
}
