//! Measurements of a self-test, compared with the promised limits.

use serde_json::{Map, Value, json};

use super::performance::{TipPerformance, largest};
use motion::StopReport;

/// Promised time from the request to the first frame of the stop, in milliseconds, for 99 of 100 stops on an otherwise
/// idle machine.
const FIRST_FRAME_MS_MAX: f64 = 10.0;

/// Allowed lateness of the arm's thread beyond that of an idle thread, where the machine itself is late.
const EXTRA_LATE_MS_MAX: f64 = 5.0;

/// Promised time from the request to standstill, read back. A lift comes on top.
const STANDSTILL_MS_MAX: f64 = 300.0;

/// One stop.
#[derive(Debug)]
pub(super) struct MeasuredStop {
    pub(super) report: StopReport,
    /// Commanded speed of the tip at the stop.
    pub(super) mm_s: f64,
    /// Lateness of an idle thread's wake-up at the same time.
    pub(super) idle_ms: Option<f64>,
}

/// Measurements on one arm.
#[derive(Debug, Default)]
pub(super) struct StopMeasurements {
    pub(super) first_frame_ms: Vec<f64>,
    /// Speed of the slowest tip that was stopped.
    pub(super) mm_s: f64,
    /// Lateness of an idle thread's wake-ups at the same times.
    idle_ms: Vec<f64>,
    /// Times to standstill, without the lift.
    pub(super) standstill_ms: Vec<f64>,
    /// Times to standstill, with the lift.
    lifted_ms: Vec<f64>,
    pub(super) unverified: u32,
    pub(super) performance: Option<TipPerformance>,
}

/// A promised limit with its measurements.
struct MeasurementRow<'a> {
    key: &'static str,
    label: &'static str,
    all_ms: &'a [f64],
    fraction: f64,
    bound_ms: f64,
}

impl MeasurementRow<'_> {
    fn measured_ms(&self) -> f64 {
        quantile(self.all_ms, self.fraction)
    }

    fn is_held(&self) -> bool {
        self.measured_ms() <= self.bound_ms
    }
}

impl StopMeasurements {
    pub(super) fn with(performance: Option<TipPerformance>) -> Self {
        Self {
            performance,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, stopped: &MeasuredStop) {
        let report = &stopped.report;
        self.unverified += u32::from(!report.verified);
        self.mm_s = if self.first_frame_ms.is_empty() {
            stopped.mm_s
        } else {
            self.mm_s.min(stopped.mm_s)
        };
        self.first_frame_ms.extend(report.first_frame_ms);
        self.idle_ms.extend(stopped.idle_ms);
        self.standstill_ms.extend(report.braked_ms());
        let lifted = report.lift_ms.and(report.standstill_ms);
        self.lifted_ms.extend(lifted);
    }

    pub(super) fn is_good(&self) -> bool {
        self.unverified == 0 && self.rows().iter().all(MeasurementRow::is_held)
    }

    fn rows(&self) -> [MeasurementRow<'_>; 2] {
        let idle_ms = quantile_or_zero(&self.idle_ms, 0.99);
        [
            MeasurementRow {
                key: "first_frame_ms",
                label: "time from request to first stop frame, p99",
                all_ms: &self.first_frame_ms,
                fraction: 0.99,
                bound_ms: adjusted_bound_ms(FIRST_FRAME_MS_MAX, idle_ms),
            },
            MeasurementRow {
                key: "standstill_ms",
                label: "time from request to standstill, before the lift",
                all_ms: &self.standstill_ms,
                fraction: 1.0,
                bound_ms: STANDSTILL_MS_MAX,
            },
        ]
    }

    pub(super) fn table(&self, arm: &str) -> String {
        let mut lines = vec![format!(
            "{arm}: {} stops at {:.0} mm/s; {} of them not verified",
            self.first_frame_ms.len(),
            self.mm_s,
            self.unverified
        )];
        for row in self.rows() {
            let held = if row.is_held() { "held" } else { "NOT HELD" };
            lines.push(format!(
                "  {:<40}{:>8.1} ms   bound {:>4.0} ms   {held}   (median {:.1} ms)",
                row.label,
                row.measured_ms(),
                row.bound_ms,
                quantile(row.all_ms, 0.5)
            ));
        }
        lines.extend(self.explanations());
        lines.extend(self.performance.as_ref().map(TipPerformance::table));
        lines.join("\n")
    }

    /// Returns the lines that explain the rows; they have no limit.
    fn explanations(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.lifted_ms.is_empty() {
            lines.push(format!(
                "  including the lift: at most {:.0} ms (the tip goes up at travel speed)",
                largest(self.lifted_ms.iter().copied())
            ));
        }
        let idle_ms = quantile_or_zero(&self.idle_ms, 0.99);
        if adjusted_bound_ms(FIRST_FRAME_MS_MAX, idle_ms) > FIRST_FRAME_MS_MAX {
            lines.push(format!(
                "  this machine is slow: it woke an idle thread {idle_ms:.1} ms late, so the limit is raised by {EXTRA_LATE_MS_MAX:.0} ms"
            ));
        }
        lines
    }

    pub(super) fn card(&self, arm: &str) -> Value {
        let mut card = Map::new();
        for row in self.rows() {
            let of = if row.fraction < 1.0 { "p99" } else { "max" };
            card.insert(
                format!("{}_{of}", row.key),
                rounded(row.measured_ms()).into(),
            );
            card.insert(format!("{}_bound", row.key), rounded(row.bound_ms).into());
        }
        let rest = json!({
            "arm": arm,
            "stops": self.first_frame_ms.len(),
            "unverified": self.unverified,
            "tip_mm_s": rounded(self.mm_s),
            "with_lift_ms_max": rounded(largest(self.lifted_ms.iter().copied())),
            "held": self.is_good(),
            "performance": self.performance.as_ref().map(TipPerformance::card),
        });
        if let Value::Object(rest) = rest {
            card.extend(rest);
        }
        card.into()
    }
}

/// Returns a bound, raised if the machine itself is late.
fn adjusted_bound_ms(bound_ms: f64, idle_ms: f64) -> f64 {
    bound_ms.max(EXTRA_LATE_MS_MAX + idle_ms)
}

/// Returns a quantile; 0 of no values.
fn quantile_or_zero(all: &[f64], fraction: f64) -> f64 {
    match all {
        [] => 0.0,
        all => quantile(all, fraction),
    }
}

/// Returns a quantile; infinity of no values, so that an unmeasured row does not count as held.
fn quantile(all: &[f64], fraction: f64) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of a length"
    )]
    let rank = (fraction * sorted.len() as f64).ceil() as usize;
    let value = sorted.get(rank.saturating_sub(1));
    value.copied().unwrap_or(f64::INFINITY)
}

fn rounded(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_measured_value() {
        let all: Vec<f64> = (1..=100).map(f64::from).collect();
        for (q, value) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.0, 1.0)] {
            assert!((quantile(&all, q) - value).abs() < 1e-9, "{q}");
        }
        assert!(quantile(&[], 0.99).is_infinite());
        assert!(!StopMeasurements::default().is_good());
    }

    fn stop(standstill_ms: f64, lift_ms: Option<f64>, first_ms: f64, idle_ms: f64) -> MeasuredStop {
        MeasuredStop {
            report: StopReport {
                kind: "stop",
                by: permit::ActorRank::Node,
                emergency: false,
                was_held: false,
                first_frame_ms: Some(first_ms),
                standstill_ms: Some(standstill_ms),
                lift_ms,
                speed_rad_s: Some(0.0),
                verified: true,
                lifted: lift_ms.is_some(),
                neighbour: None,
                not_kept: None,
            },
            mm_s: 98.0,
            idle_ms: Some(idle_ms),
        }
    }

    fn is_held(measured: &StopMeasurements, key: &str) -> bool {
        let rows = measured.rows();
        rows.iter().any(|row| row.key == key && row.is_held())
    }

    /// A lift comes after standstill; it is reported, and it is not part of the bound.
    #[test]
    fn a_lift_is_reported_separately_from_standstill() {
        for (lift_ms, expected) in [(Some(160.0), true), (Some(20.0), false), (None, false)] {
            let mut measured = StopMeasurements::default();
            measured.add(&stop(345.0, lift_ms, 1.0, 0.1));
            assert_eq!(is_held(&measured, "standstill_ms"), expected, "{lift_ms:?}");
            let text = measured.table("arm");
            assert_eq!(text.contains("at most 345 ms"), lift_ms.is_some(), "{text}");
        }
    }

    /// The bound is 10 ms if the machine was on time; if it was late, the table says so.
    #[test]
    fn a_machine_that_is_late_itself_is_reported() {
        for (idle_ms, first_ms, expected) in [
            (0.1, 9.9, true),
            (0.1, 10.1, false),
            (4.9, 10.1, false),
            (20.0, 24.0, true),
            (20.0, 26.0, false),
        ] {
            let mut measured = StopMeasurements::default();
            measured.add(&stop(200.0, None, first_ms, idle_ms));
            assert_eq!(is_held(&measured, "first_frame_ms"), expected, "{idle_ms}");
            let is_reported = measured.table("arm").contains("slow");
            assert_eq!(is_reported, idle_ms > 5.0);
        }
    }

    /// A bound without measurements is not held.
    #[test]
    fn every_row_has_to_be_held() {
        let good = || StopMeasurements {
            first_frame_ms: vec![1.0],
            standstill_ms: vec![200.0],
            ..StopMeasurements::default()
        };
        assert!(good().is_good());
        let slow = StopMeasurements {
            standstill_ms: vec![301.0],
            ..good()
        };
        assert!(!slow.is_good() && slow.table("arm").contains("NOT HELD"));
        let unmeasured = StopMeasurements {
            first_frame_ms: Vec::new(),
            ..good()
        };
        assert!(!unmeasured.is_good());
    }
}
