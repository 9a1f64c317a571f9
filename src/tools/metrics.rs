//! Metrics of a node in the Prometheus text format. `docs/metrics.md` lists the names.

use std::fmt::Write as _;
use std::time::Duration;

use super::Node;
use MetricSource::{Counter, Counts, Gauge, State, Times};
use base::units::ServoState;
use motion::{DurationHistogram, MotionState, ServoCounts, Snapshot};
use plan::PERIOD;

/// Source of a metric's numbers; `None` if the arm has no such number.
enum MetricSource {
    Gauge(fn(&ArmMetricsSample) -> Option<f64>),
    Counter(fn(&ArmMetricsSample) -> Option<f64>),
    Times(fn(&ArmMetricsSample) -> &DurationHistogram),
    Counts(fn(&ServoCounts) -> f64),
    State(fn(&ServoState) -> Option<f64>),
}

impl MetricSource {
    /// Returns the metric's type in the text format.
    const fn kind(&self) -> &'static str {
        match self {
            Self::Gauge(_) | Self::State(_) => "gauge",
            Self::Counter(_) | Self::Counts(_) => "counter",
            Self::Times(_) => "summary",
        }
    }
}

/// A family of metrics, and the source of its numbers.
struct MetricFamily {
    name: &'static str,
    help: &'static str,
    source: MetricSource,
}

const fn metric(name: &'static str, help: &'static str, source: MetricSource) -> MetricFamily {
    MetricFamily { name, help, source }
}

/// The state of one arm when its metrics were read.
struct ArmMetricsSample {
    arm: String,
    snapshot: Snapshot,
    age: Option<Duration>,
}

const fn count(number: u64) -> f64 {
    number as f64
}

/// The families of metrics.
const METRICS: [MetricFamily; 26] = [
    metric(
        "steadyhand_arm_moving",
        "1 while the arm moves or comes to a stop",
        Gauge(|sample| {
            let state = sample.snapshot.state;
            let moves = matches!(state, MotionState::Moving | MotionState::Stopping);
            Some(f64::from(moves))
        }),
    ),
    metric(
        "steadyhand_arm_faulted",
        "1 while the arm has a fault",
        Gauge(|sample| Some(f64::from(sample.snapshot.fault.is_some()))),
    ),
    metric(
        "steadyhand_arm_energised",
        "1 while any torque is on",
        Gauge(|sample| Some(f64::from(sample.snapshot.energised))),
    ),
    metric(
        "steadyhand_arm_warnings",
        "Number of warnings for a person",
        Gauge(|sample| Some(count(sample.snapshot.warnings.len() as u64))),
    ),
    metric(
        "steadyhand_arm_reading_age_seconds",
        "Time since the arm was last read",
        Gauge(|sample| Some(sample.age?.as_secs_f64())),
    ),
    metric(
        "steadyhand_bus_cycles_total",
        "Started cycles",
        Counter(|sample| Some(count(sample.snapshot.counts.cycles))),
    ),
    metric(
        "steadyhand_bus_requests_total",
        "Requests sent",
        Counter(|sample| Some(count(sample.snapshot.counts.transactions))),
    ),
    metric(
        "steadyhand_bus_corrupt_replies_total",
        "Replies, or a controller's frames, dropped for a wrong checksum",
        Counter(|sample| Some(count(sample.snapshot.counts.corrupt))),
    ),
    metric(
        "steadyhand_bus_resent_total",
        "Requests, or parts of a controller's motion, that were sent again",
        Counter(|sample| Some(count(sample.snapshot.counts.resent))),
    ),
    metric(
        "steadyhand_bus_foreign_replies_total",
        "Replies without a request, including late ones",
        Counter(|sample| Some(count(sample.snapshot.counts.foreign))),
    ),
    metric(
        "steadyhand_bus_echoes_total",
        "Requests that the adapter echoed",
        Counter(|sample| Some(count(sample.snapshot.counts.echoes))),
    ),
    metric(
        "steadyhand_bus_cycle_seconds",
        "Duration of a cycle, from the first byte sent to the last byte used",
        Times(|sample| &sample.snapshot.counts.cycle_time),
    ),
    metric(
        "steadyhand_bus_cycle_work_seconds",
        "Processor time of a cycle",
        Times(|sample| &sample.snapshot.counts.cycle_work),
    ),
    metric(
        "steadyhand_bus_lateness_seconds",
        "Lateness of ticks while the arm moved",
        Times(|sample| &sample.snapshot.lateness),
    ),
    metric(
        "steadyhand_bus_lost_cycles_total",
        "Ticks more than a period late while the arm moved; each lost a cycle",
        Counter(|sample| Some(count(sample.snapshot.lateness.longer_than(PERIOD)))),
    ),
    metric(
        "steadyhand_bus_wake_lateness_seconds",
        "How late the machine woke the sleeping loop while the arm moved",
        Times(|sample| &sample.snapshot.woken_late),
    ),
    metric(
        "steadyhand_servo_retries_total",
        "Repeated requests to a servo, or repeated parts of its motion",
        Counts(|servo| count(servo.retries)),
    ),
    metric(
        "steadyhand_servo_blind_cycles_total",
        "Cycles in which a servo gave no reading after all tries",
        Counts(|servo| count(servo.blind)),
    ),
    metric(
        "steadyhand_servo_blind_seconds_total",
        "Total duration of the cycles without a reading",
        Counts(|servo| servo.blind_time.as_secs_f64()),
    ),
    metric(
        "steadyhand_servo_jumps_rejected_total",
        "Discarded positions that no movement can explain",
        Counts(|servo| count(servo.jumps)),
    ),
    metric(
        "steadyhand_servo_temperature_celsius",
        "Temperature of a servo",
        State(|servo| servo.temperature_c),
    ),
    metric(
        "steadyhand_servo_supply_volts",
        "A servo's supply",
        State(|servo| servo.voltage_v),
    ),
    metric(
        "steadyhand_servo_load_ratio",
        "Load of a servo: signed share of its largest torque",
        State(|servo| servo.load_ratio),
    ),
    metric(
        "steadyhand_servo_position_ticks",
        "Position of a servo",
        State(|servo| servo.position_ticks.map(f64::from)),
    ),
    metric(
        "steadyhand_servo_torque",
        "1 while a servo's torque is on",
        State(|servo| servo.torque_on.map(f64::from)),
    ),
    metric(
        "steadyhand_servo_error_bits",
        "Error bits of a servo, numbered as in its manual",
        State(|servo| servo.error_bits.map(f64::from)),
    ),
];

/// Returns the current metrics of a node.
#[must_use]
pub fn metrics(node: &Node) -> String {
    let samples: Vec<ArmMetricsSample> = node
        .arms
        .iter()
        .map(|arm| {
            let snapshot = arm.motion.snapshot();
            let now = arm.motion.clock().now();
            let measured = snapshot.measured.as_ref();
            ArmMetricsSample {
                arm: label(&arm.name),
                age: measured.map(|measured| now.since(measured.at)),
                snapshot,
            }
        })
        .collect();
    let mut text = String::new();
    for metric in &METRICS {
        let MetricFamily { name, help, source } = metric;
        let kind = source.kind();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for sample in &samples {
            lines(&mut text, metric, sample);
        }
    }
    text
}

/// Escapes the characters that would end a label.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn lines(text: &mut String, metric: &MetricFamily, sample: &ArmMetricsSample) {
    let (name, arm) = (metric.name, &sample.arm);
    match &metric.source {
        Gauge(read) | Counter(read) => {
            if let Some(value) = read(sample) {
                let _ = writeln!(text, "{name}{{arm=\"{arm}\"}} {value}");
            }
        }
        Times(read) => {
            let times = read(sample);
            for q in [0.5, 0.99, 1.0] {
                let value = times.quantile(q).as_secs_f64();
                let _ = writeln!(text, "{name}{{arm=\"{arm}\",quantile=\"{q}\"}} {value}");
            }
            let _ = writeln!(text, "{name}_count{{arm=\"{arm}\"}} {}", times.count());
        }
        Counts(read) => {
            for servo in &sample.snapshot.counts.servos {
                let (id, value) = (servo.id, read(servo));
                let _ = writeln!(text, "{name}{{arm=\"{arm}\",servo=\"{id}\"}} {value}");
            }
        }
        State(read) => {
            let measured = sample.snapshot.measured.iter();
            let servos = measured.flat_map(|measured| &measured.servos);
            for (id, value) in servos.filter_map(|servo| Some((servo.id, read(servo)?))) {
                let _ = writeln!(text, "{name}{{arm=\"{arm}\",servo=\"{id}\"}} {value}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_in_the_docs() {
        let page = include_str!("../../docs/metrics.md");
        for MetricFamily { name, help, source } in &METRICS {
            let row = format!("| `{}` | {} | {} |", name, source.kind(), help);
            assert!(page.contains(&row), "docs/metrics.md lacks this row: {row}");
        }
        let rows = page
            .lines()
            .filter(|line| line.starts_with("| `steadyhand_"))
            .count();
        assert_eq!(rows, METRICS.len());
    }

    #[test]
    fn a_name_with_quotes_ends_no_label() {
        assert_eq!(label("a\"b\\c"), "a\\\"b\\\\c");
    }
}
