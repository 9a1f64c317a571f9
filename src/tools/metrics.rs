//! Metrics of a node in the Prometheus text format. `docs/metrics.md` lists the names.

use std::fmt::Write as _;
use std::time::Duration;

use super::Node;
use base::units::ServoState;
use motion::{DurationHistogram, MotionState, ServoCounts, Snapshot};
use plan::PERIOD;

/// A family of metrics: its name, kind and meaning.
struct MetricFamily {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: MetricSource,
}

/// Source of a metric's numbers; `None` if the arm has no such number.
enum MetricSource {
    Arm(fn(&ArmMetricsSample) -> Option<f64>),
    Times(fn(&ArmMetricsSample) -> &DurationHistogram),
    Counts(fn(&ServoCounts) -> f64),
    State(fn(&ServoState) -> Option<f64>),
}

/// One arm as it was when it was asked.
struct ArmMetricsSample {
    arm: String,
    snapshot: Snapshot,
    age: Option<Duration>,
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2 to the 53rd")]
const fn count(number: u64) -> f64 {
    number as f64
}

const fn flag(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

const METRICS: [MetricFamily; 26] = [
    arm(
        "steadyhand_arm_moving",
        "gauge",
        "1 while the arm moves or comes to a stop",
        |seen| {
            Some(flag(matches!(
                seen.snapshot.state,
                MotionState::Moving | MotionState::Stopping
            )))
        },
    ),
    arm(
        "steadyhand_arm_faulted",
        "gauge",
        "1 while something is broken",
        |seen| Some(flag(seen.snapshot.fault.is_some())),
    ),
    arm(
        "steadyhand_arm_energised",
        "gauge",
        "1 while any torque is on",
        |seen| Some(flag(seen.snapshot.energised)),
    ),
    arm(
        "steadyhand_arm_warnings",
        "gauge",
        "Things that a person should look at",
        |seen| Some(count(seen.snapshot.warnings.len() as u64)),
    ),
    arm(
        "steadyhand_arm_reading_age_seconds",
        "gauge",
        "Time since the arm was last read",
        |seen| Some(seen.age?.as_secs_f64()),
    ),
    arm(
        "steadyhand_bus_cycles_total",
        "counter",
        "Cycles that were begun",
        |seen| Some(count(seen.snapshot.counts.cycles)),
    ),
    arm(
        "steadyhand_bus_requests_total",
        "counter",
        "Requests sent",
        |seen| Some(count(seen.snapshot.counts.transactions)),
    ),
    arm(
        "steadyhand_bus_corrupt_replies_total",
        "counter",
        "Replies, or a controller's frames, dropped for a wrong checksum",
        |seen| Some(count(seen.snapshot.counts.corrupt)),
    ),
    arm(
        "steadyhand_bus_resent_total",
        "counter",
        "Requests, or a controller's pieces of motion, that were sent again",
        |seen| Some(count(seen.snapshot.counts.resent)),
    ),
    arm(
        "steadyhand_bus_foreign_replies_total",
        "counter",
        "Replies that were not asked for, late ones among them",
        |seen| Some(count(seen.snapshot.counts.foreign)),
    ),
    arm(
        "steadyhand_bus_echoes_total",
        "counter",
        "Requests that the adapter returned",
        |seen| Some(count(seen.snapshot.counts.echoes)),
    ),
    times(
        "steadyhand_bus_cycle_seconds",
        "How long a cycle took, from the first byte sent to the last one used",
        |seen| &seen.snapshot.counts.cycle_time,
    ),
    times(
        "steadyhand_bus_cycle_work_seconds",
        "How long the processor worked for a cycle",
        |seen| &seen.snapshot.counts.cycle_work,
    ),
    times(
        "steadyhand_bus_lateness_seconds",
        "By how much a tick came too late while the arm moved",
        |seen| &seen.snapshot.lateness,
    ),
    arm(
        "steadyhand_bus_lost_cycles_total",
        "counter",
        "Ticks that came more than a period too late while the arm moved: with each a cycle was lost",
        |seen| Some(count(seen.snapshot.lateness.longer_than(PERIOD))),
    ),
    times(
        "steadyhand_bus_wake_lateness_seconds",
        "By how much the machine woke the sleeping loop too late while the arm moved",
        |seen| &seen.snapshot.woken_late,
    ),
    counts(
        "steadyhand_servo_retries_total",
        "Times that a servo was asked again, or a piece of its motion was sent again",
        |servo| count(servo.retries),
    ),
    counts(
        "steadyhand_servo_blind_cycles_total",
        "Cycles in which a servo gave no reading in the end",
        |servo| count(servo.blind),
    ),
    counts(
        "steadyhand_servo_blind_seconds_total",
        "How long those cycles took together",
        |servo| servo.blind_time.as_secs_f64(),
    ),
    counts(
        "steadyhand_servo_jumps_rejected_total",
        "Positions that no movement explains, which were discarded",
        |servo| count(servo.jumps),
    ),
    state(
        "steadyhand_servo_temperature_celsius",
        "How hot a servo is",
        |servo| servo.temperature_c,
    ),
    state(
        "steadyhand_servo_supply_volts",
        "A servo's supply",
        |servo| servo.voltage_v,
    ),
    state(
        "steadyhand_servo_load_ratio",
        "Signed share of what a servo can push",
        |servo| servo.load_ratio,
    ),
    state(
        "steadyhand_servo_position_ticks",
        "Where a servo stands",
        |servo| servo.position_ticks.map(f64::from),
    ),
    state(
        "steadyhand_servo_torque",
        "1 while a servo's torque is on",
        |servo| servo.torque_on.map(flag),
    ),
    state(
        "steadyhand_servo_error_bits",
        "A servo's error bits as its manual numbers them",
        |servo| servo.error_bits.map(f64::from),
    ),
];

const fn arm(
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: fn(&ArmMetricsSample) -> Option<f64>,
) -> MetricFamily {
    let of = MetricSource::Arm(of);
    MetricFamily {
        name,
        kind,
        help,
        of,
    }
}

const fn times(
    name: &'static str,
    help: &'static str,
    of: fn(&ArmMetricsSample) -> &DurationHistogram,
) -> MetricFamily {
    let (kind, of) = ("summary", MetricSource::Times(of));
    MetricFamily {
        name,
        kind,
        help,
        of,
    }
}

const fn counts(
    name: &'static str,
    help: &'static str,
    of: fn(&ServoCounts) -> f64,
) -> MetricFamily {
    let (kind, of) = ("counter", MetricSource::Counts(of));
    MetricFamily {
        name,
        kind,
        help,
        of,
    }
}

const fn state(
    name: &'static str,
    help: &'static str,
    of: fn(&ServoState) -> Option<f64>,
) -> MetricFamily {
    let (kind, of) = ("gauge", MetricSource::State(of));
    MetricFamily {
        name,
        kind,
        help,
        of,
    }
}

/// Everything that a node counts, as of now.
#[must_use]
pub fn metrics(node: &Node) -> String {
    let seen: Vec<ArmMetricsSample> = node
        .seats
        .iter()
        .map(|seat| {
            let snapshot = seat.motion.snapshot();
            let now = seat.motion.clock().now();
            ArmMetricsSample {
                arm: label(&seat.name),
                age: snapshot
                    .measured
                    .as_ref()
                    .map(|measured| now.since(measured.at)),
                snapshot,
            }
        })
        .collect();
    let mut text = String::new();
    for metric in &METRICS {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# HELP {} {}\n# TYPE {} {}",
            metric.name, metric.help, metric.name, metric.kind
        );
        seen.iter().for_each(|seen| lines(&mut text, metric, seen));
    }
    text
}

/// The characters that would end a label are escaped.
fn label(name: &str) -> String {
    name.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn lines(text: &mut String, metric: &MetricFamily, seen: &ArmMetricsSample) {
    let (name, arm) = (metric.name, &seen.arm);
    match metric.of {
        MetricSource::Arm(of) => {
            if let Some(value) = of(seen) {
                let _ = writeln!(text, "{name}{{arm=\"{arm}\"}} {value}");
            }
        }
        MetricSource::Times(of) => {
            let times = of(seen);
            for share in [0.5, 0.99, 1.0] {
                let value = times.quantile(share).as_secs_f64();
                let _ = writeln!(text, "{name}{{arm=\"{arm}\",quantile=\"{share}\"}} {value}");
            }
            let _ = writeln!(text, "{name}_count{{arm=\"{arm}\"}} {}", times.count());
        }
        MetricSource::Counts(of) => {
            for servo in &seen.snapshot.counts.servos {
                let _ = writeln!(
                    text,
                    "{name}{{arm=\"{arm}\",servo=\"{}\"}} {}",
                    servo.id,
                    of(servo)
                );
            }
        }
        MetricSource::State(of) => {
            let servos = seen
                .snapshot
                .measured
                .iter()
                .flat_map(|measured| &measured.servos);
            for (id, value) in servos.filter_map(|servo| Some((servo.id, of(servo)?))) {
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
        for metric in &METRICS {
            let row = format!("| `{}` | {} | {} |", metric.name, metric.kind, metric.help);
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
