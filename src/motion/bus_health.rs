//! Warnings about a bus that still works: a slow adapter, a bad line.

use std::time::Duration;

use arm::ServoFamily;
use base::units::ClockInstant;
use driver::{AttachReport, BusCounts, ServoIdentity};
use plan::PERIOD;

/// Shortest observation of the line before it is judged.
const WINDOW: Duration = Duration::from_secs(1);

/// Share of replies that had to be asked for again above which the line is called bad.
const BAD_SHARE: f64 = 0.01;

/// Fewer replies than this are not judged: a standing arm is asked so seldom that one cycle which
/// came late would be a large share.
const JUDGED_MIN: u64 = 500;

/// A controller speaks by itself, whether it moves or stands.
const FRAMES_MIN: u64 = 100;

/// One bad cycle is no bad line.
const BAD_CYCLES_MIN: u32 = 2;

/// Health of the bus to the servos.
#[derive(Debug, Default)]
pub(super) struct BusHealth {
    attached: Vec<String>,
    line: Option<String>,
    window: Option<BusWindow>,
    /// Everything that went wrong up to the last look.
    wrong: u64,
}

#[derive(Clone, Debug)]
struct BusWindow {
    since: ClockInstant,
    before: BusTotals,
    /// Looks that found something newly wrong.
    bad_cycles: u32,
}

#[derive(Clone, Debug, Default)]
struct BusTotals {
    /// Replies that were asked for, or frames of a controller.
    asked: u64,
    /// Of those, asked for again, or damaged, or sent again.
    wrong: u64,
    retries: Vec<u64>,
    is_controller: bool,
}

impl BusTotals {
    fn of(counts: &BusCounts) -> Self {
        let is_controller = counts.frames > 0;
        // A servo whose reply is damaged is asked again: that is counted once.
        let (asked, wrong) = if is_controller {
            let asked = counts.frames + counts.corrupt;
            (asked, counts.corrupt + counts.resent)
        } else {
            (counts.cycles * counts.servos.len() as u64, counts.resent)
        };
        Self {
            asked,
            wrong,
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
        // A controller's driver says itself what lateness means to it.
        let slow = slow(attached.latency).filter(|_| family != ServoFamily::Firmware);
        self.attached.extend(slow);
    }

    /// All of it, as of now.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.attached.iter().chain(&self.line).cloned().collect()
    }

    /// Looks at the counts as of now.
    pub(super) fn update(
        &mut self,
        now: ClockInstant,
        counts: &BusCounts,
        servos: &[ServoIdentity],
    ) {
        let sums = BusTotals::of(counts);
        let is_worse = sums.wrong > self.wrong;
        self.wrong = sums.wrong;
        let Some(window) = &mut self.window else {
            self.begin(now, sums);
            return;
        };
        window.bad_cycles += u32::from(is_worse);
        let asked = sums.asked.saturating_sub(window.before.asked);
        let lasted = now.since(window.since);
        let enough = if sums.is_controller {
            FRAMES_MIN
        } else {
            JUDGED_MIN
        };
        if lasted < WINDOW || asked < enough {
            return;
        }
        let is_bad = window.bad_cycles >= BAD_CYCLES_MIN;
        let words = bad_line(&window.before, &sums, lasted, servos).filter(|_| is_bad);
        if let Some(words) = words.as_ref().filter(|_| self.line.is_none()) {
            tracing::warn!("{words}");
        }
        self.line = words;
        self.begin(now, sums);
    }

    fn begin(&mut self, now: ClockInstant, before: BusTotals) {
        self.window = Some(BusWindow {
            since: now,
            before,
            bad_cycles: 0,
        });
    }
}

/// Returns the time limit of a cycle for an adapter with this latency: the control period, or, if
/// that is too short for two turn-rounds, as long as they take.
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
fn bad_line(
    before: &BusTotals,
    now: &BusTotals,
    lasted: Duration,
    servos: &[ServoIdentity],
) -> Option<String> {
    let asked = now.asked.saturating_sub(before.asked);
    let wrong = now.wrong.saturating_sub(before.wrong);
    let share = wrong as f64 / asked as f64;
    if share <= BAD_SHARE {
        return None;
    }
    let what = if now.is_controller {
        "of what passes between the node and the controller was damaged or had to be sent again"
            .to_owned()
    } else {
        format!(
            "of the replies had to be asked for again{}",
            worst_servo_text(before, now, servos)
        )
    };
    Some(format!(
        "{:.1} % {what} in the last {:.0} s: check the cable, its ground and the supply before the line is lost, and that no other program has the port open",
        share * 1e2,
        lasted.as_secs_f64()
    ))
}

/// The servo that had to be asked again most.
fn worst_servo_text(before: &BusTotals, now: &BusTotals, servos: &[ServoIdentity]) -> String {
    let pairs = now.retries.iter().zip(&before.retries);
    let again = pairs.map(|(now, before)| now.saturating_sub(*before));
    let worst = again.zip(servos).max_by_key(|(again, _)| *again);
    worst.map_or_else(String::new, |(_, identity)| {
        format!(", most often of {},", identity.servo)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use driver::ServoCounts;

    /// Returns the warning after `looks` updates at this interval; each update in `bad` counts one retry of
    /// each of six servos.
    fn warned(each: Duration, looks: u64, bad: &[u64]) -> Option<String> {
        let mut wire = BusHealth::default();
        let servo = ServoCounts::default();
        let mut counts = BusCounts {
            servos: vec![servo; 6],
            ..BusCounts::default()
        };
        let mut now = ClockInstant::ZERO;
        let mut said = None;
        for look in 0..looks {
            now = now.after(each);
            counts.cycles += 1;
            if bad.contains(&look) {
                counts.resent += 6;
                counts.servos.iter_mut().for_each(|one| one.retries += 1);
            }
            wire.update(now, &counts, &[]);
            said = said.or_else(|| wire.warnings().pop());
        }
        said
    }

    #[test]
    fn one_late_cycle_at_rest_or_in_motion_is_no_bad_line() {
        assert_eq!(warned(Duration::from_millis(50), 400, &[30]), None);
        assert_eq!(warned(Duration::from_millis(10), 400, &[30]), None);
    }

    #[test]
    fn several_bad_cycles_are_a_bad_line() {
        for ms in [10, 50] {
            let bad = [20, 24, 30, 37, 41, 60];
            let words = warned(Duration::from_millis(ms), 400, &bad).unwrap();
            assert!(words.contains("% of the replies"), "{words}");
        }
    }

    #[test]
    fn damaged_and_repeated_frames_of_a_controller_are_a_bad_line() {
        let mut wire = BusHealth::default();
        let mut counts = BusCounts::default();
        let mut now = ClockInstant::ZERO;
        for look in 0..400_u64 {
            now = now.after(Duration::from_millis(10));
            counts.cycles += 1;
            counts.frames += 2;
            counts.corrupt += u64::from(look.is_multiple_of(10));
            counts.resent += u64::from(look.is_multiple_of(20));
            wire.update(now, &counts, &[]);
        }
        let words = wire.warnings().pop().unwrap();
        assert!(words.contains("the controller was damaged"), "{words}");
    }
}
