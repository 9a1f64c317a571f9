//! The servos' temperatures, voltages and loads over the last ten minutes, from copies of what the arms' threads have read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::calendar_ms;
use base::lock::MutexExt as _;
use base::units::ServoState;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tools::{AttachedArm, Node};

use tools::to_hundredths as rounded;

/// Time from one sample to the next.
const INTERVAL: Duration = Duration::from_secs(5);

/// Number of samples that are kept: ten minutes.
const SAMPLES_MAX: usize = 120;

/// History of every arm of a node.
pub(super) struct ServoHistory {
    arms: Mutex<Vec<ArmHistory>>,
}

/// History of one arm.
#[derive(Clone, Debug, Serialize)]
struct ArmHistory {
    arm: String,
    /// Temperature at which a stroke is ended.
    temperature_c_max: f64,
    /// The supply that the arm's file states.
    supply_v: Option<f64>,
    samples: VecDeque<ServoSample>,
}

/// One reading of all servos, in the order of `ids`. What was not read is `null`.
#[derive(Clone, Debug, Serialize)]
struct ServoSample {
    time_ms: u64,
    ids: Vec<u8>,
    temperature_c: Vec<Option<f64>>,
    voltage_v: Vec<Option<f64>>,
    load_percent: Vec<Option<f64>>,
}

impl ServoHistory {
    /// Creates the history and starts to take samples. Must be called on a runtime.
    pub(super) fn of(node: &Arc<Node>, stop: CancellationToken) -> Arc<Self> {
        let arms = node.arms.iter().map(|seat| ArmHistory::of(seat)).collect();
        let history = Arc::new(Self {
            arms: Mutex::new(arms),
        });
        base::task::spawn(sample(Arc::clone(node), Arc::clone(&history), stop));
        history
    }

    /// Returns the history as JSON.
    pub(super) fn json(&self) -> String {
        serde_json::to_string(&*self.arms.locked()).unwrap_or_default()
    }

    fn take(&self, node: &Node) {
        let mut arms = self.arms.locked();
        for (seat, history) in node.arms.iter().zip(arms.iter_mut()) {
            let measured = seat.motion.snapshot().measured;
            if let Some(measured) = measured.filter(|measured| !measured.servos.is_empty()) {
                history.add(ServoSample::of(&measured.servos));
            }
        }
    }
}

impl ArmHistory {
    fn of(seat: &AttachedArm) -> Self {
        Self {
            arm: seat.name.clone(),
            temperature_c_max: motion::TOO_HOT_C,
            supply_v: seat
                .motion
                .arm()
                .file
                .supply_v
                .map(base::units::Finite::get),
            samples: VecDeque::new(),
        }
    }

    fn add(&mut self, sample: ServoSample) {
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

impl ServoSample {
    fn of(servos: &[ServoState]) -> Self {
        let each = |value: fn(&ServoState) -> Option<f64>| {
            let values = servos.iter().map(|servo| value(servo).map(rounded));
            values.collect()
        };
        Self {
            time_ms: calendar_ms(),
            ids: servos.iter().map(|servo| servo.id).collect(),
            temperature_c: each(|servo| servo.temperature_c),
            voltage_v: each(|servo| servo.voltage_v),
            load_percent: each(|servo| servo.load_ratio.map(|load| load * 100.0)),
        }
    }
}

async fn sample(node: Arc<Node>, history: Arc<ServoHistory>, stop: CancellationToken) {
    let mut interval = tokio::time::interval(INTERVAL);
    loop {
        tokio::select! {
            _ = interval.tick() => history.take(&node),
            () = stop.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_ten_minutes_are_kept() {
        let mut history = ArmHistory {
            arm: "arm".to_owned(),
            temperature_c_max: 65.0,
            supply_v: None,
            samples: VecDeque::new(),
        };
        for id in 0..=200 {
            let servo = ServoState {
                id,
                ..ServoState::default()
            };
            history.add(ServoSample::of(&[servo]));
        }
        assert_eq!(history.samples.len(), SAMPLES_MAX);
        let newest = history.samples.back().map(|sample| sample.ids.clone());
        assert_eq!(newest, Some(vec![200]));
    }
}
