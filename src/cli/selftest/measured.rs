//! What a self-test measured, beside what is promised.

use serde_json::{Map, Value, json};

use crate::motion::StopReport;

/// What is promised: milliseconds from the request to the first frame of the stop, 99 of 100.
const FIRST_FRAME_MS_MAX: f64 = 10.0;

/// The same while a long plan is made and clients ask, or so much later than a bare thread.
const BUSY_MS_MAX: f64 = 50.0;
const LATER_MS_MAX: f64 = 5.0;

/// And from a call that is cancelled or hung up on.
const GIVEN_UP_MS_MAX: f64 = 50.0;

/// And to standstill, read back.
const STANDSTILL_MS_MAX: f64 = 300.0;

/// How an arm is stopped, and what the machine does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    /// A stop is asked for, and nothing else is done.
    Idle,
    /// A stop is asked for while a long plan is made and clients ask.
    Busy,
    /// Whoever called gives up.
    GivenUp,
}

impl Series {
    pub(super) const ALL: [Self; 3] = [Self::Idle, Self::Busy, Self::GivenUp];
}

/// One stop.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) report: StopReport,
    /// What passed between the request and the moment from which the report counts.
    pub(super) before_ms: f64,
    /// How late a bare thread was woken at the same time.
    pub(super) bare_ms: Option<f64>,
}

/// What was measured on one arm.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) first_frame_ms: Vec<f64>,
    pub(super) standstill_ms: Vec<f64>,
    busy_ms: Vec<f64>,
    bare_ms: Vec<f64>,
    given_up_ms: Vec<f64>,
    /// Why nothing was measured on a busy machine.
    pub(super) never_busy: Option<String>,
    pub(super) unverified: u32,
}

/// A promise, and what was found.
struct Row<'a> {
    key: &'static str,
    words: &'static str,
    all_ms: &'a [f64],
    share: f64,
    bound_ms: f64,
}

impl Row<'_> {
    fn found_ms(&self) -> f64 {
        quantile(self.all_ms, self.share)
    }

    fn is_held(&self) -> bool {
        self.found_ms() <= self.bound_ms
    }
}

impl Measured {
    pub(super) fn take(&mut self, series: Series, stopped: &Stopped) {
        let report = &stopped.report;
        let first_ms = report.first_frame_ms.map(|ms| ms + stopped.before_ms);
        self.unverified += u32::from(!report.verified);
        match series {
            Series::Idle => {
                self.first_frame_ms.extend(first_ms);
                self.standstill_ms.extend(report.standstill_ms);
            }
            Series::Busy => {
                self.busy_ms.extend(first_ms);
                self.bare_ms.extend(stopped.bare_ms);
            }
            Series::GivenUp => self.given_up_ms.extend(first_ms),
        }
    }

    /// The machine was not busy: that says nothing, and is said.
    pub(super) fn was_never_busy(&mut self, why: String) {
        self.busy_ms.clear();
        self.bare_ms.clear();
        self.never_busy = Some(why);
    }

    pub(super) fn is_good(&self) -> bool {
        self.unverified == 0 && self.rows().iter().all(Row::is_held)
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let row = |key, words, all_ms, share, bound_ms| Row {
            key,
            words,
            all_ms,
            share,
            bound_ms,
        };
        let busy_ms = BUSY_MS_MAX.max(LATER_MS_MAX + highest(&self.bare_ms));
        let mut rows = vec![
            row(
                "first_frame_ms",
                "request to first stop frame, p99",
                &self.first_frame_ms[..],
                0.99,
                FIRST_FRAME_MS_MAX,
            ),
            row(
                "standstill_ms",
                "request to standstill, longest",
                &self.standstill_ms,
                1.0,
                STANDSTILL_MS_MAX,
            ),
            row(
                "given_up_ms",
                "call given up to first stop frame, p99",
                &self.given_up_ms,
                0.99,
                GIVEN_UP_MS_MAX,
            ),
        ];
        if self.never_busy.is_none() {
            rows.push(row(
                "busy_first_frame_ms",
                "first stop frame, busy machine, p99",
                &self.busy_ms,
                0.99,
                busy_ms,
            ));
        }
        rows
    }

    pub(super) fn table(&self, arm: &str) -> String {
        let mut lines = vec![format!(
            "{arm}: {} stops, {} not verified",
            self.first_frame_ms.len(),
            self.unverified
        )];
        for row in self.rows() {
            let held = if row.is_held() { "held" } else { "NOT HELD" };
            lines.push(format!(
                "  {:<40}{:>8.1} ms   bound {:>4.0} ms   {held}   (median {:.1} ms)",
                row.words,
                row.found_ms(),
                row.bound_ms,
                quantile(row.all_ms, 0.5)
            ));
        }
        let why = self.never_busy.iter();
        lines.extend(why.map(|why| format!("  busy machine: not measured: {why}")));
        lines.join("\n")
    }

    pub(super) fn card(&self, arm: &str) -> Value {
        let mut card = Map::new();
        for row in self.rows() {
            let of = if row.share < 1.0 { "p99" } else { "max" };
            card.insert(format!("{}_{of}", row.key), rounded(row.found_ms()).into());
            card.insert(format!("{}_bound", row.key), rounded(row.bound_ms).into());
        }
        let rest = json!({
            "arm": arm,
            "stops": self.first_frame_ms.len(),
            "unverified": self.unverified,
            "never_busy": self.never_busy,
            "held": self.is_good(),
        });
        if let Value::Object(rest) = rest {
            card.extend(rest);
        }
        card.into()
    }
}

fn highest(all: &[f64]) -> f64 {
    all.iter().copied().fold(0.0, f64::max)
}

/// Of nothing, no time at all is a promise.
fn quantile(all: &[f64], share: f64) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(f64::INFINITY)
}

fn rounded(ms: f64) -> f64 {
    (ms * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_value_that_was_seen() {
        let all: Vec<f64> = (1..=100).map(f64::from).collect();
        for (share, value) in [(0.5, 50.0), (0.99, 99.0), (1.0, 100.0), (0.0, 1.0)] {
            assert!((quantile(&all, share) - value).abs() < 1e-9, "{share}");
        }
        assert!(quantile(&[], 0.99).is_infinite());
        assert!(!Measured::default().is_good());
    }

    /// A bound that nothing was measured for is not held.
    #[test]
    fn every_row_has_to_be_held() {
        let ok = || Measured {
            first_frame_ms: vec![1.0],
            standstill_ms: vec![200.0],
            busy_ms: vec![60.0],
            bare_ms: vec![56.0],
            given_up_ms: vec![2.0],
            ..Measured::default()
        };
        assert!(ok().is_good());
        let late = Measured {
            bare_ms: vec![1.0],
            ..ok()
        };
        assert!(!late.is_good() && late.table("arm").contains("NOT HELD"));
        let gone = Measured {
            given_up_ms: Vec::new(),
            ..ok()
        };
        assert!(!gone.is_good());
        let mut never = late;
        never.was_never_busy("the sheet is too small".to_owned());
        assert!(never.is_good() && never.table("arm").contains("too small"));
    }
}
