//! Warnings about a bus that still works: a slow adapter, a bad line.

use std::time::Duration;

use arm::ServoFamily;
use base::units::ClockInstant;
use driver::{AttachReport, BusCounts, ServoIdentity};
use plan::PERIOD;

/// Shortest time over which the line is judged.
const WINDOW: Duration = Duration::from_secs(1);

/// Fraction of repeated requests above which the line counts as bad.
const BAD_FRACTION: f64 = 0.01;

/// Least number of replies to judge: an arm at rest is read so seldom that one late cycle would be a
/// large fraction.
const REPLIES_MIN: u64 = 500;

/// Least number of frames to judge of a controller, which sends by itself, moving or not.
const FRAMES_MIN: u64 = 100;

/// Least number of bad cycles of a bad line.
const BAD_CYCLES_MIN: u32 = 2;

/// Health of the bus to the servos.
#[derive(Debug, Default)]
pub(super) struct BusHealth {
    attached: Vec<String>,
    line: Option<String>,
    window: Option<BusWindow>,
    /// Total of bad replies or frames at the last update.
    bad: u64,
}

#[derive(Clone, Debug)]
struct BusWindow {
    since: ClockInstant,
    start: BusTotals,
    /// Number of updates that found new errors.
    bad_cycles: u32,
}

#[derive(Clone, Debug, Default)]
struct BusTotals {
    /// Replies that were requested, or frames of a controller.
    total: u64,
    /// Those of them that were requested again, damaged or sent again.
    bad: u64,
    retries: Vec<u64>,
    is_controller: bool,
}

impl BusTotals {
    fn of(counts: &BusCounts) -> Self {
        let is_controller = counts.frames > 0;
        // A damaged reply is requested again; the two count once.
        let (total, bad) = if is_controller {
            let total = counts.frames + counts.corrupt;
            (total, counts.corrupt + counts.resent)
        } else {
            (counts.cycles * counts.servos.len() as u64, counts.resent)
        };
        Self {
            total,
            bad,
            retries: counts.servos.iter().map(|servo| servo.retries).collect(),
            is_controller,
        }
    }
}

impl BusHealth {
    /// Resets the observation after an attach to a bus of this family.
    pub(super) fn reset(&mut self, attached: &AttachReport, family: ServoFamily) {
        *self = Self {
            attached: attached.warnings.clone(),
            ..Self::default()
        };
        // A controller's driver warns of latency itself.
        if family != ServoFamily::Firmware {
            self.attached.extend(latency_warning(attached.latency));
        }
    }

    /// Returns all present warnings.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.attached.iter().chain(&self.line).cloned().collect()
    }

    /// Evaluates the present counts.
    pub(super) fn update(
        &mut self,
        now: ClockInstant,
        counts: &BusCounts,
        servos: &[ServoIdentity],
    ) {
        let totals = BusTotals::of(counts);
        let is_worse = totals.bad > self.bad;
        self.bad = totals.bad;
        let Some(window) = &mut self.window else {
            self.begin(now, totals);
            return;
        };
        window.bad_cycles += u32::from(is_worse);
        let total = totals.total.saturating_sub(window.start.total);
        let elapsed = now.since(window.since);
        let least = if totals.is_controller {
            FRAMES_MIN
        } else {
            REPLIES_MIN
        };
        if elapsed < WINDOW || total < least {
            return;
        }
        let is_bad = window.bad_cycles >= BAD_CYCLES_MIN;
        let warning = line_warning(&window.start, &totals, elapsed, servos).filter(|_| is_bad);
        if let Some(warning) = warning.as_ref().filter(|_| self.line.is_none()) {
            tracing::warn!("{warning}");
        }
        self.line = warning;
        self.begin(now, totals);
    }

    fn begin(&mut self, now: ClockInstant, start: BusTotals) {
        self.window = Some(BusWindow {
            since: now,
            start,
            bad_cycles: 0,
        });
    }
}

/// Returns the time limit of a cycle for an adapter with this latency: the control period, or longer
/// if two round trips do not fit into it.
pub(super) fn cycle_time(latency: Duration) -> Duration {
    if latency < PERIOD / 2 {
        PERIOD
    } else {
        2 * latency + PERIOD / 2
    }
}

fn latency_warning(latency: Duration) -> Option<String> {
    (latency >= PERIOD / 2).then(|| {
        format!(
            "a reply takes {:.0} ms, so the arm runs slower than 100 Hz. On an FTDI adapter, set `latency_timer` to 1 ms",
            latency.as_secs_f64() * 1e3
        )
    })
}

/// Describes a bad line, with its worst servo; `None` for a good one.
fn line_warning(
    start: &BusTotals,
    now: &BusTotals,
    elapsed: Duration,
    servos: &[ServoIdentity],
) -> Option<String> {
    let total = now.total.saturating_sub(start.total);
    let bad = now.bad.saturating_sub(start.bad);
    let fraction = bad as f64 / total as f64;
    if fraction <= BAD_FRACTION {
        return None;
    }
    let what = if now.is_controller {
        "of the traffic between node and controller was damaged or sent again".to_owned()
    } else {
        format!(
            "of the replies had to be requested again{}",
            worst_servo_text(start, now, servos)
        )
    };
    Some(format!(
        "{:.1} % {what} in the last {:.0} s: check the cable, its ground and the supply, and that no other program has the port open",
        fraction * 1e2,
        elapsed.as_secs_f64()
    ))
}

/// Names the servo with the most retries.
fn worst_servo_text(start: &BusTotals, now: &BusTotals, servos: &[ServoIdentity]) -> String {
    let pairs = now.retries.iter().zip(&start.retries);
    let retries = pairs.map(|(now, start)| now.saturating_sub(*start));
    let worst = retries.zip(servos).max_by_key(|(retries, _)| *retries);
    worst.map_or_else(String::new, |(_, identity)| {
        format!(", most often from {},", identity.servo)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use driver::ServoCounts;

    /// Returns the warning after this many updates at an interval of `each`; each update in `bad` counts
    /// one retry of each of six servos.
    fn warning_after(each: Duration, updates: u64, bad: &[u64]) -> Option<String> {
        let mut bus = BusHealth::default();
        let one = ServoCounts::default();
        let mut counts = BusCounts {
            servos: vec![one; 6],
            ..BusCounts::default()
        };
        let mut now = ClockInstant::ZERO;
        let mut warning = None;
        for update in 0..updates {
            now = now.after(each);
            counts.cycles += 1;
            if bad.contains(&update) {
                counts.resent += 6;
                counts.servos.iter_mut().for_each(|one| one.retries += 1);
            }
            bus.update(now, &counts, &[]);
            warning = warning.or_else(|| bus.warnings().pop());
        }
        warning
    }

    #[test]
    fn one_late_cycle_at_rest_or_in_motion_is_no_bad_line() {
        assert_eq!(warning_after(Duration::from_millis(50), 400, &[30]), None);
        assert_eq!(warning_after(Duration::from_millis(10), 400, &[30]), None);
    }

    #[test]
    fn several_bad_cycles_are_a_bad_line() {
        for ms in [10, 50] {
            let bad = [20, 24, 30, 37, 41, 60];
            let warning = warning_after(Duration::from_millis(ms), 400, &bad).unwrap();
            assert!(warning.contains("% of the replies"), "{warning}");
        }
    }

    #[test]
    fn damaged_and_repeated_frames_of_a_controller_are_a_bad_line() {
        let mut bus = BusHealth::default();
        let mut counts = BusCounts::default();
        let mut now = ClockInstant::ZERO;
        for update in 0..400_u64 {
            now = now.after(Duration::from_millis(10));
            counts.cycles += 1;
            counts.frames += 2;
            counts.corrupt += u64::from(update.is_multiple_of(10));
            counts.resent += u64::from(update.is_multiple_of(20));
            bus.update(now, &counts, &[]);
        }
        let warning = bus.warnings().pop().unwrap();
        assert!(warning.contains("controller was damaged"), "{warning}");
    }
}
