//! Detects contact by the servos. A baseline is learned in free air; a deviation from it is a touch.
//!
//! Of an arm whose servos' figures are known, the loads tell the force with which the tip presses, and the rise of that
//! force is a touch (`touch_force.rs`). Of others two signals are watched: a joint lags behind its goal, and its servo
//! pushes harder. If nothing is detected, the gate's depth limit for probes ends the motion.
//!
//! A baseline is valid only if the tip moved freely meanwhile: it came down as its goal did, and no
//! servo pushed harder at the end than at the beginning. Otherwise the tip pressed from the start,
//! and the height of the sheet is not known.

use super::touch_force::{FeltTouch, ForceReading, ForceVerdict, TouchForce};
use arm::ArmModel;
use base::units::{ArmMeasurement, ClockInstant, JointVector};
use gate::NormalLoads;

/// Least number of readings ignored while the tip comes to its speed.
const SETTLE: usize = 30;

/// Number of readings in free air from which the baseline is learned.
const LEARN: usize = 120;

/// Number of readings after learning during which the tip must still be free: a touch is detected a
/// little after it began.
const GUARD: usize = 15;

/// Number of readings at either end of these that are compared to tell whether the tip moved freely.
const END: usize = LEARN / 3;

/// Least number of learned readings to compare with.
const LEARNED_MIN: usize = 10;

/// Number of consecutive readings beyond the threshold that make a touch.
const TOUCH_READINGS: usize = 3;

/// Least additional lag of a joint, in encoder counts, that can be a touch.
const LAG_COUNTS: f64 = 3.0;

/// Least additional load of a servo, as a fraction of its torque, that can be a touch.
const LOAD: f64 = 0.03;

/// Factor by which the baseline's spread is added to the threshold.
const SPREAD_FACTOR: f64 = 2.0;

/// A tip that came down by less than this fraction of its goal's way did not move freely.
const FOLLOW_FRACTION: f64 = 0.5;

/// A goal that came down by less proves nothing about its tip.
const DOWN_MM: f64 = 0.2;

/// A goal that came down by more, before joints that turn freely have shown what they bear, presses on something.
const HELD_MM: f64 = 5.0;

/// A tip whose servo's mean load rises by more, as a fraction of its torque, did not move freely.
const HELD_LOAD: f64 = LOAD;

/// One reading of a probe.
#[derive(Debug)]
pub(super) struct ProbeReading<'a> {
    pub(super) goal_rad: &'a JointVector,
    /// Goal height and measured height of the tip over the sheet; `None` if unknown.
    pub(super) goal_mm: Option<f64>,
    pub(super) tip_mm: Option<f64>,
    /// What the joints bear of a push along the sheet's normal; `None` where the figures of their servos are not known.
    pub(super) loads: Option<NormalLoads>,
    pub(super) measured: &'a ArmMeasurement,
}

/// The verdict on one reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ContactVerdict {
    Nothing,
    /// The tip touched; `free_rad` is the last place without contact.
    Contact {
        free_rad: JointVector,
        /// Force for each millimetre by which the pen gave way, where the loads tell it.
        give_n_per_mm: Option<f64>,
    },
    /// The tip touches, and has not moved freely before.
    EarlyContact,
}

/// Contact detector for one probe.
#[derive(Debug)]
pub(super) struct ContactDetector {
    channels: Vec<ContactChannel>,
    force: TouchForce,
    goal_mm: BaselineDrift,
    tip_mm: BaselineDrift,
    readings: usize,
    first_tip_mm: Option<f64>,
    first_goal_mm: Option<f64>,
    /// Readings since the tip came to its speed.
    learned: usize,
    beyond: usize,
    read_at: Option<ClockInstant>,
    /// Index and joint angles of the last reading without contact.
    free: Option<(usize, JointVector)>,
}

/// One signal with its baseline.
#[derive(Debug)]
struct ContactChannel {
    signal: ContactSignal,
    /// Least deviation from the baseline that can be a touch.
    threshold: f64,
    sum: f64,
    low: f64,
    high: f64,
    drift: BaselineDrift,
}

/// The growth of a value from the first learned readings to the last ones.
#[derive(Debug, Default)]
struct BaselineDrift {
    first: f64,
    last: f64,
}

#[derive(Clone, Copy, Debug)]
enum ContactSignal {
    /// Lag of a joint behind its goal.
    Lag(usize),
    /// Load of the servo at a place among the arm's.
    Load(usize),
}

impl ContactDetector {
    pub(super) fn new(arm: &ArmModel) -> Self {
        let channels = arm
            .servos()
            .enumerate()
            .flat_map(|(place, (joint, servo))| {
                let count_rad = std::f64::consts::TAU / f64::from(servo.ticks_per_turn.max(1));
                [
                    ContactChannel::new(ContactSignal::Lag(joint), LAG_COUNTS * count_rad),
                    ContactChannel::new(ContactSignal::Load(place), LOAD),
                ]
            });
        Self {
            channels: channels.collect(),
            force: TouchForce::new(arm),
            goal_mm: BaselineDrift::default(),
            tip_mm: BaselineDrift::default(),
            readings: 0,
            first_tip_mm: None,
            first_goal_mm: None,
            learned: 0,
            beyond: 0,
            read_at: None,
            free: None,
        }
    }

    /// Returns the least force that would be felt; `None` where it is not known.
    pub(super) fn least_n(&self) -> Option<f64> {
        self.force.least_n()
    }

    /// Evaluates the next reading of a probe. A repeated reading is ignored.
    pub(super) fn update(&mut self, reading: &ProbeReading<'_>) -> ContactVerdict {
        if self.read_at.replace(reading.measured.at) == Some(reading.measured.at) {
            return ContactVerdict::Nothing;
        }
        self.readings += 1;
        if let (Some(loads), Some(goal_mm), Some(tip_mm)) =
            (reading.loads, reading.goal_mm, reading.tip_mm)
        {
            return self.feel(reading, loads, [goal_mm, tip_mm]);
        }
        if self.is_settling(reading) {
            return ContactVerdict::Nothing;
        }
        let learned = self.learned;
        self.learned += 1;
        let score = self.score(reading, learned);
        if score < 0.5 {
            self.free = Some((learned, reading.measured.position_rad));
        }
        self.beyond = if score > 1.0 { self.beyond + 1 } else { 0 };
        let is_touching = self.beyond >= TOUCH_READINGS;
        let is_held = learned + 1 == LEARN && self.is_held();
        match self.free {
            _ if !is_touching && !is_held => ContactVerdict::Nothing,
            Some((at, free_rad)) if at >= LEARN + GUARD => ContactVerdict::Contact {
                free_rad,
                give_n_per_mm: None,
            },
            _ => ContactVerdict::EarlyContact,
        }
    }

    /// Returns the verdict on the force with which the tip presses.
    fn feel(
        &mut self,
        reading: &ProbeReading<'_>,
        loads: NormalLoads,
        [goal_mm, tip_mm]: [f64; 2],
    ) -> ContactVerdict {
        let first_mm = *self.first_goal_mm.get_or_insert(goal_mm);
        let felt = self.force.update(
            ForceReading {
                loads,
                tip_mm,
                path_rad: *reading.goal_rad,
                position_rad: reading.measured.position_rad,
            },
            LEARN,
        );
        match felt {
            ForceVerdict::Touch(FeltTouch {
                position_rad,
                give_n_per_mm,
            }) => ContactVerdict::Contact {
                free_rad: position_rad,
                give_n_per_mm: Some(give_n_per_mm),
            },
            ForceVerdict::Unknown if first_mm - goal_mm > HELD_MM => ContactVerdict::EarlyContact,
            ForceVerdict::Early => ContactVerdict::EarlyContact,
            ForceVerdict::Unknown | ForceVerdict::Nothing => ContactVerdict::Nothing,
        }
    }

    /// Learns the descent of goal and tip while the baseline is incomplete.
    fn learn_heights(&mut self, reading: &ProbeReading<'_>, learned: usize) {
        if learned < LEARN {
            // An unknown height counts as no descent.
            let or_nan = |height_mm: Option<f64>| height_mm.unwrap_or(f64::NAN);
            self.goal_mm.learn(or_nan(reading.goal_mm), learned);
            self.tip_mm.learn(or_nan(reading.tip_mm), learned);
        }
    }

    /// Returns whether the tip came down with its goal while the baseline was learned.
    fn is_free(&self) -> bool {
        let (goal_mm, tip_mm) = (self.goal_mm.mean(), self.tip_mm.mean());
        // A NaN counts as no free movement.
        goal_mm < -DOWN_MM && tip_mm < FOLLOW_FRACTION * goal_mm
    }

    /// Returns whether the tip has yet to come to its speed. Where friction holds a sagging arm, the
    /// tip stays below its goal until the goal has come down to it.
    fn is_settling(&mut self, reading: &ProbeReading<'_>) -> bool {
        let (Some(goal_mm), Some(tip_mm)) = (reading.goal_mm, reading.tip_mm) else {
            return self.readings <= SETTLE;
        };
        let first_mm = *self.first_tip_mm.get_or_insert(tip_mm);
        let is_blocked = self.learned == 0 && tip_mm < goal_mm && first_mm - tip_mm < DOWN_MM;
        self.readings <= SETTLE || is_blocked
    }

    /// Learns from a reading while the baseline is incomplete. Returns the largest deviation of any
    /// channel, as a fraction of its threshold.
    fn score(&mut self, reading: &ProbeReading<'_>, learned: usize) -> f64 {
        let mut score: f64 = 0.0;
        for channel in &mut self.channels {
            let Some(value) = channel.signal.value(reading.goal_rad, reading.measured) else {
                continue;
            };
            if learned >= LEARNED_MIN {
                score = score.max(channel.deviation(value, learned.min(LEARN)));
            }
            if learned < LEARN {
                channel.learn(value);
                channel.drift.learn(value, learned);
            }
        }
        self.learn_heights(reading, learned);
        score
    }

    /// Returns whether the tip was held while the baseline was learned.
    fn is_held(&self) -> bool {
        let mut loads = self.channels.iter();
        !self.is_free()
            || loads.any(|channel| {
                matches!(channel.signal, ContactSignal::Load(_))
                    && channel.drift.mean().abs() > HELD_LOAD
            })
    }
}

impl BaselineDrift {
    fn learn(&mut self, value: f64, learned: usize) {
        if learned < END {
            self.first += value;
        }
        if (LEARN - END..LEARN).contains(&learned) {
            self.last += value;
        }
    }

    fn mean(&self) -> f64 {
        (self.last - self.first) / END as f64
    }
}

impl ContactChannel {
    fn new(signal: ContactSignal, threshold: f64) -> Self {
        Self {
            signal,
            threshold,
            sum: 0.0,
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            drift: BaselineDrift::default(),
        }
    }

    fn learn(&mut self, value: f64) {
        self.sum += value;
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    /// Returns the deviation of a value from the baseline, as a fraction of the threshold.
    fn deviation(&self, value: f64, learned: usize) -> f64 {
        let mean = self.sum / learned as f64;
        // A touch during learning must not widen the baseline.
        let spread = (self.high - self.low).min(self.threshold);
        (value - mean).abs() / (self.threshold + SPREAD_FACTOR * spread)
    }
}

impl ContactSignal {
    fn value(self, goal_rad: &JointVector, measured: &ArmMeasurement) -> Option<f64> {
        match self {
            Self::Lag(joint) => Some(goal_rad.get(joint)? - measured.position_rad.get(joint)?),
            Self::Load(place) => measured.servos.get(place)?.load_ratio,
        }
        .filter(|value| value.is_finite())
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test may panic"
)]
mod tests {
    use std::time::Duration;

    use super::*;
    use base::units::ServoState;
    use scene::SceneLibrary;

    const TICK: Duration = Duration::from_millis(10);

    fn new_detector() -> (ContactDetector, usize) {
        let arm = SceneLibrary::new(None).arm("so101").unwrap();
        (ContactDetector::new(&arm), arm.dof())
    }

    /// A reading in which the second joint lags and its servo pushes.
    fn reading(dof: usize, tick: u64, behind_rad: f64, load: f64) -> ArmMeasurement {
        let mut at = ClockInstant::ZERO;
        (0..tick).for_each(|_| at = at.after(TICK));
        ArmMeasurement {
            at,
            position_rad: JointVector::zeros(dof)
                .map(|j, _| if j == 1 { -behind_rad } else { 0.0 }),
            velocity_rad_s: JointVector::zeros(dof),
            servos: vec![
                ServoState::default(),
                ServoState {
                    load_ratio: Some(load),
                    ..<_>::default()
                },
            ],
        }
    }

    /// Descent of a probe between two readings.
    const STEP_MM: f64 = 0.0196;

    /// Evaluates a reading of a tip above its goal, which comes down with every reading.
    fn step(detector: &mut ContactDetector, now: &ArmMeasurement, above_mm: f64) -> ContactVerdict {
        let goal_rad = JointVector::zeros(now.position_rad.len());
        let goal_mm = -STEP_MM * detector.readings as f64;
        detector.update(&ProbeReading {
            goal_rad: &goal_rad,
            goal_mm: Some(goal_mm),
            tip_mm: Some(goal_mm + above_mm),
            loads: None,
            measured: now,
        })
    }

    /// Returns the first contact and its tick, after noise in the air and then the values that `then`
    /// gives for joint, servo and tip.
    fn detect(air: u64, then: impl Fn(u64) -> (f64, f64, f64)) -> Option<(u64, ContactVerdict)> {
        let (mut detector, dof) = new_detector();
        (1..=air + 300).find_map(|tick| {
            let noise = if tick % 3 == 0 { 0.001 } else { 0.0 };
            let (behind, load, above_mm) = tick.checked_sub(air).map_or((0.0, 0.0, 0.0), &then);
            let measured = reading(dof, tick, behind + noise, load + noise * 5.0);
            match step(&mut detector, &measured, above_mm) {
                ContactVerdict::Nothing => None,
                detect => Some((tick, detect)),
            }
        })
    }

    fn contact(detect: Option<(u64, ContactVerdict)>) -> u64 {
        match detect {
            Some((tick, ContactVerdict::Contact { .. })) => tick,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_detected_in_free_air() {
        assert_eq!(detect(400, |_| (0.0, 0.0, 0.0)), None);
        // Nor is a constant offset: a servo that sags, a bearing that is stiff.
        assert_eq!(detect(0, |_| (0.02, 0.3, 4.0)), None);
    }

    #[test]
    fn a_joint_that_lags_and_a_servo_that_pushes_are_detected() {
        let slow = |rise: f64| move |ticks: u64| (ticks as f64 * rise, 0.0, 0.0);
        let tick = contact(detect(200, slow(0.0002)));
        assert!((210..260).contains(&tick), "{tick}");
        let tick = contact(detect(200, |ticks| (0.0, -(ticks as f64) * 0.002, 0.0)));
        assert!((210..240).contains(&tick), "{tick}");
    }

    #[test]
    fn refuses_a_contact_before_the_tip_has_moved_freely() {
        let (tick, detect) = detect(60, |ticks| (0.0, ticks as f64 * 0.01, 0.0)).unwrap();
        assert!(
            tick < 120 && detect == ContactVerdict::EarlyContact,
            "{tick}: {detect:?}"
        );
    }

    /// A contact is detected a little after it began.
    #[test]
    fn refuses_a_contact_that_is_detected_right_after_learning() {
        let learned = (SETTLE + LEARN) as u64;
        let firm = |ticks: u64| (0.0, ticks as f64 * 0.002, 0.0);
        let early = detect(learned, firm).unwrap().1;
        assert_eq!(early, ContactVerdict::EarlyContact);
        contact(detect(learned + GUARD as u64, firm));
    }

    /// A change too slow for a threshold does not pass for free air either.
    #[test]
    fn refuses_to_learn_air_from_a_tip_held_back_or_pressing_harder() {
        let end = (SETTLE + LEARN) as u64;
        let early = |then: fn(f64) -> (f64, f64, f64)| detect(0, |ticks| then(ticks as f64));
        let refused = Some((end, ContactVerdict::EarlyContact));
        assert_eq!(early(|ticks| (0.0, 0.0, ticks * STEP_MM)), refused);
        assert_eq!(early(|ticks| (0.0, 0.0, ticks * STEP_MM * 0.55)), refused);
        assert_eq!(early(|ticks| (0.0, 0.0, ticks * STEP_MM * 0.45)), None);
        assert_eq!(early(|ticks| (0.0, ticks * 0.0005, 0.0)), refused);
        assert_eq!(early(|ticks| (0.0, -ticks * 0.0005, 0.0)), refused);
        // A tip of unknown height is not known to move, nor is one whose goal does not move.
        assert_eq!(early(|_| (0.0, 0.0, f64::NAN)), refused);
        for (goal_mm, tip_mm) in [(None, Some(1.0)), (Some(1.0), None), (Some(1.0), Some(1.0))] {
            let (mut detector, dof) = new_detector();
            let goal_rad = JointVector::zeros(dof);
            let last = (1..=end).map(|tick| {
                detector.update(&ProbeReading {
                    goal_rad: &goal_rad,
                    goal_mm,
                    tip_mm,
                    loads: None,
                    measured: &reading(dof, tick, 0.0, 0.0),
                })
            });
            assert_eq!(last.last(), Some(ContactVerdict::EarlyContact));
        }
    }

    /// Friction holds a sagging arm below its goal until the goal has come down to the tip: nothing is
    /// learned meanwhile.
    #[test]
    fn waits_for_a_goal_that_comes_down_to_a_sagging_tip() {
        // Readings until the goal has come down to the tip, and until the tip begins to follow.
        let (down, follows_from) = (128, 87);
        let held = |ticks: u64| (0.0, 0.0, (ticks as f64 - down as f64) * STEP_MM);
        let follows = |ticks: u64| held(ticks.min(follows_from));
        assert_eq!(detect(0, follows), None);
        let firm_from = follows_from + LEARN as u64 + 40;
        let firm = |ticks: u64| {
            let load = ticks.saturating_sub(firm_from) as f64 * 0.002;
            (0.0, load, follows(ticks).2)
        };
        assert!(contact(detect(0, firm)) > firm_from);
        // A sheet still holds the tip after its goal has passed it.
        let (tick, verdict) = detect(0, held).unwrap();
        assert_eq!(verdict, ContactVerdict::EarlyContact);
        assert!((down + LEARN as u64).abs_diff(tick) < 5, "{tick}");
    }

    #[test]
    fn one_reading_counts_once_and_a_single_outlier_is_no_touch() {
        let (mut detector, dof) = new_detector();
        let mut judge = |measured: ArmMeasurement| step(&mut detector, &measured, 0.0);
        for tick in 1..200 {
            assert_eq!(judge(reading(dof, tick, 0.0, 0.0)), ContactVerdict::Nothing);
        }
        let outlier = reading(dof, 200, 0.1, 1.0);
        assert!((0..10).all(|_| judge(outlier.clone()) == ContactVerdict::Nothing));
        assert_eq!(judge(reading(dof, 201, 0.0, 0.0)), ContactVerdict::Nothing);
        let touched = (202..210)
            .map(|tick| judge(reading(dof, tick, 0.1, 0.0)))
            .find(|detect| *detect != ContactVerdict::Nothing);
        // The position is that of the last free reading, not of the detection.
        let free_rad = JointVector::zeros(dof);
        let contact = ContactVerdict::Contact {
            free_rad,
            give_n_per_mm: None,
        };
        assert_eq!(touched, Some(contact));
    }
}
