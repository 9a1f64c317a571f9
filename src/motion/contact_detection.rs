//! Contact detection by the servos. A baseline is learned in free air; a deviation from it is a
//! touch.
//!
//! Two signals show a touch: a joint lags behind its goal, and its servo pushes harder. Which comes
//! first depends on servo and pen, so both are watched. If neither is seen, the gate's depth limit
//! for probes ends the motion.
//!
//! A baseline is valid only if the tip moved freely meanwhile: it came down as its goal did, and no
//! servo pushed harder at the end than at the beginning. Otherwise the tip pressed from the start,
//! and the place where the sheet begins is not known.

use arm::ArmModel;
use base::units::{ArmMeasurement, ClockInstant, JointVector};

/// Readings that are let pass while the tip comes to its speed, at least.
const SETTLE: usize = 30;

/// Readings in the air from which it is learned what nothing feels like.
const LEARN: usize = 120;

/// Number of readings after learning during which the tip must still be free: a touch is detected a
/// little after it began.
const GUARD: usize = 15;

/// Readings at either end of these that are compared to say whether the tip moved freely.
const END: usize = LEARN / 3;

/// A first few of them are too little to compare anything with.
const LEARNED_MIN: usize = 10;

/// Number of consecutive readings beyond the threshold that are a touch.
const IN_A_ROW: usize = 3;

/// Least additional lag of a joint, in encoder counts, that can be a touch.
const COUNTS: f64 = 3.0;

/// A servo is not felt before it pushes by so much of its torque more than in the air.
const LOAD: f64 = 0.03;

/// Factor by which the baseline's spread is added to the threshold.
const SPREADS: f64 = 2.0;

/// A tip that came down by less than this share of the way that its goal came did not move freely.
const FOLLOWS: f64 = 0.5;

/// A goal that came down by less, in mm, proves nothing of its tip.
const DOWN_MM: f64 = 0.2;

/// Neither did one whose servo pushes by so much of its torque more: as means over many readings tell
/// more than three in a row do, as much as is felt later.
const HELD_LOAD: f64 = LOAD;

/// One reading of a probe.
#[derive(Debug)]
pub(super) struct ProbeReading<'a> {
    pub(super) goal_rad: &'a JointVector,
    /// Goal height and measured height of the tip over the sheet; `None` if unknown.
    pub(super) goal_mm: Option<f64>,
    pub(super) tip_mm: Option<f64>,
    pub(super) seen: &'a ArmMeasurement,
}

/// The verdict on one reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ContactVerdict {
    Nothing,
    /// The tip came to touch; nothing was felt for the last time where the joints were there.
    Contact {
        free_rad: JointVector,
    },
    /// The tip touches, and has not moved freely before.
    EarlyContact,
}

/// Contact detector for one probe.
#[derive(Debug, Default)]
pub(super) struct ContactDetector {
    channels: Vec<ContactChannel>,
    goal_mm: BaselineDrift,
    tip_mm: BaselineDrift,
    readings: usize,
    first_tip_mm: Option<f64>,
    /// Readings since the tip came to its speed.
    learned: usize,
    beyond: usize,
    read_at: Option<ClockInstant>,
    /// Index and joint angles of the last reading without contact.
    free: Option<(usize, JointVector)>,
}

/// One number that tells of a touch.
#[derive(Debug)]
struct ContactChannel {
    of: ContactSignal,
    /// Least deviation from the baseline that can be a touch.
    least: f64,
    sum: f64,
    low: f64,
    high: f64,
    drift: BaselineDrift,
}

/// By how much a number grew from the first readings of the learning to its last ones.
#[derive(Debug, Default)]
struct BaselineDrift {
    first: f64,
    last: f64,
}

#[derive(Clone, Copy, Debug)]
enum ContactSignal {
    /// Lag of a joint behind its goal.
    Behind(usize),
    /// Load of a servo.
    Load(u8),
}

impl ContactDetector {
    pub(super) fn new(arm: &ArmModel) -> Self {
        let channels = arm.servos().flat_map(|(joint, servo)| {
            let count_rad = std::f64::consts::TAU / f64::from(servo.ticks_per_turn.max(1));
            [
                ContactChannel::new(ContactSignal::Behind(joint), COUNTS * count_rad),
                ContactChannel::new(ContactSignal::Load(servo.id), LOAD),
            ]
        });
        Self {
            channels: channels.collect(),
            ..Self::default()
        }
    }

    /// Takes the next reading of a probe. One that was looked at before says nothing new.
    pub(super) fn update(&mut self, reading: &ProbeReading<'_>) -> ContactVerdict {
        if self.read_at.replace(reading.seen.at) == Some(reading.seen.at) {
            return ContactVerdict::Nothing;
        }
        self.readings += 1;
        if self.is_settling(reading) {
            return ContactVerdict::Nothing;
        }
        let learned = self.learned;
        self.learned += 1;
        let most = self.score(reading, learned);
        if most < 0.5 {
            self.free = Some((learned, reading.seen.position_rad));
        }
        self.beyond = if most > 1.0 { self.beyond + 1 } else { 0 };
        let touches = self.beyond >= IN_A_ROW;
        let is_held = learned + 1 == LEARN && self.is_held();
        match self.free {
            _ if !touches && !is_held => ContactVerdict::Nothing,
            Some((at, free_rad)) if at >= LEARN + GUARD => ContactVerdict::Contact { free_rad },
            _ => ContactVerdict::EarlyContact,
        }
    }

    /// Returns whether the tip has yet to come to its speed. Where friction holds a sagging arm, the tip stands below its goal
    /// until that has come down to it.
    fn is_settling(&mut self, reading: &ProbeReading<'_>) -> bool {
        let (Some(goal_mm), Some(tip_mm)) = (reading.goal_mm, reading.tip_mm) else {
            return self.readings <= SETTLE;
        };
        let first_mm = *self.first_tip_mm.get_or_insert(tip_mm);
        let waits = self.learned == 0 && tip_mm < goal_mm && first_mm - tip_mm < DOWN_MM;
        self.readings <= SETTLE || waits
    }

    /// Learns from a reading as long as it is air that is learned. Returns the largest share of a
    /// threshold.
    fn score(&mut self, reading: &ProbeReading<'_>, learned: usize) -> f64 {
        let mut most: f64 = 0.0;
        for channel in &mut self.channels {
            let Some(value) = channel.of.value(reading.goal_rad, reading.seen) else {
                continue;
            };
            if learned >= LEARNED_MIN {
                most = most.max(channel.deviation(value, learned.min(LEARN)));
            }
            if learned < LEARN {
                channel.learn(value);
                channel.drift.learn(value, learned);
            }
        }
        if learned < LEARN {
            // Heights that are not known compare as no way down.
            let known = |height_mm: Option<f64>| height_mm.unwrap_or(f64::NAN);
            self.goal_mm.learn(known(reading.goal_mm), learned);
            self.tip_mm.learn(known(reading.tip_mm), learned);
        }
        most
    }

    /// Returns whether the tip was held while the baseline was learned.
    fn is_held(&self) -> bool {
        let (goal_mm, tip_mm) = (self.goal_mm.mean(), self.tip_mm.mean());
        // What is no number is no free movement.
        let is_free = goal_mm < -DOWN_MM && tip_mm < FOLLOWS * goal_mm;
        let mut loads = self.channels.iter();
        !is_free
            || loads.any(|channel| {
                matches!(channel.of, ContactSignal::Load(_))
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
    fn new(of: ContactSignal, least: f64) -> Self {
        Self {
            of,
            least,
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

    /// Returns the deviation of a value from the baseline, as a share of the threshold.
    fn deviation(&self, value: f64, learned: usize) -> f64 {
        let mean = self.sum / learned as f64;
        // What already touches while it is learned must not pass for air.
        let varied = (self.high - self.low).min(self.least);
        (value - mean).abs() / (self.least + SPREADS * varied)
    }
}

impl ContactSignal {
    fn value(self, goal_rad: &JointVector, seen: &ArmMeasurement) -> Option<f64> {
        match self {
            Self::Behind(joint) => Some(goal_rad.get(joint)? - seen.position_rad.get(joint)?),
            Self::Load(id) => {
                let servo = seen.servos.iter().find(|servo| servo.id == id)?;
                servo.load_ratio
            }
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

    fn feeler() -> (ContactDetector, usize) {
        let arm = SceneLibrary::new(None).arm("so101").unwrap();
        (ContactDetector::new(&arm), arm.dof())
    }

    /// Readings in which the second joint is so far behind and its servo pushes so hard.
    fn reading(dof: usize, tick: u64, behind_rad: f64, load: f64) -> ArmMeasurement {
        let mut at = ClockInstant::ZERO;
        (0..tick).for_each(|_| at = at.after(TICK));
        ArmMeasurement {
            at,
            position_rad: JointVector::zeros(dof)
                .map(|j, _| if j == 1 { -behind_rad } else { 0.0 }),
            velocity_rad_s: JointVector::zeros(dof),
            servos: vec![ServoState {
                id: 2,
                load_ratio: Some(load),
                ..<_>::default()
            }],
        }
    }

    /// Descent of a probe between two readings.
    const STEP_MM: f64 = 0.0196;

    /// Takes a reading of a tip that is so far above its goal, which comes down with every reading.
    fn feel(feeler: &mut ContactDetector, seen: &ArmMeasurement, above_mm: f64) -> ContactVerdict {
        let goal_rad = JointVector::zeros(seen.position_rad.len());
        let goal_mm = -STEP_MM * feeler.readings as f64;
        feeler.update(&ProbeReading {
            goal_rad: &goal_rad,
            goal_mm: Some(goal_mm),
            tip_mm: Some(goal_mm + above_mm),
            seen,
        })
    }

    /// Returns the first contact and its tick, after noise in the air and then the values that `then`
    /// gives for joint, servo and tip.
    fn felt(air: u64, then: impl Fn(u64) -> (f64, f64, f64)) -> Option<(u64, ContactVerdict)> {
        let (mut feeler, dof) = feeler();
        (1..=air + 300).find_map(|tick| {
            let noise = if tick % 3 == 0 { 0.001 } else { 0.0 };
            let (behind, load, above_mm) = tick.checked_sub(air).map_or((0.0, 0.0, 0.0), &then);
            let seen = reading(dof, tick, behind + noise, load + noise * 5.0);
            match feel(&mut feeler, &seen, above_mm) {
                ContactVerdict::Nothing => None,
                felt => Some((tick, felt)),
            }
        })
    }

    fn contact(felt: Option<(u64, ContactVerdict)>) -> u64 {
        match felt {
            Some((tick, ContactVerdict::Contact { .. })) => tick,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_felt_in_the_air() {
        assert_eq!(felt(400, |_| (0.0, 0.0, 0.0)), None);
        // Not even what is always so: a servo that sags, a bearing that is stiff.
        assert_eq!(felt(0, |_| (0.02, 0.3, 4.0)), None);
    }

    #[test]
    fn a_joint_that_stays_behind_and_a_servo_that_pushes_are_felt() {
        let slow = |rise: f64| move |ticks: u64| (ticks as f64 * rise, 0.0, 0.0);
        let tick = contact(felt(200, slow(0.0002)));
        assert!((210..260).contains(&tick), "{tick}");
        let tick = contact(felt(200, |ticks| (0.0, -(ticks as f64) * 0.002, 0.0)));
        assert!((210..240).contains(&tick), "{tick}");
    }

    #[test]
    fn refuses_a_contact_before_the_tip_has_moved_freely() {
        let (tick, felt) = felt(60, |ticks| (0.0, ticks as f64 * 0.01, 0.0)).unwrap();
        assert!(
            tick < 120 && felt == ContactVerdict::EarlyContact,
            "{tick}: {felt:?}"
        );
    }

    /// It is felt a little after it began.
    #[test]
    fn refuses_a_contact_that_is_felt_as_soon_as_air_was_learned() {
        let learned = (SETTLE + LEARN) as u64;
        let firm = |ticks: u64| (0.0, ticks as f64 * 0.002, 0.0);
        let early = felt(learned, firm).unwrap().1;
        assert_eq!(early, ContactVerdict::EarlyContact);
        contact(felt(learned + GUARD as u64, firm));
    }

    /// A change too slow for a threshold does not pass for free air either.
    #[test]
    fn refuses_to_learn_air_from_a_tip_that_is_held_back_or_presses_ever_harder() {
        let end = (SETTLE + LEARN) as u64;
        let early = |then: fn(f64) -> (f64, f64, f64)| felt(0, |ticks| then(ticks as f64));
        let refused = Some((end, ContactVerdict::EarlyContact));
        assert_eq!(early(|ticks| (0.0, 0.0, ticks * STEP_MM)), refused);
        assert_eq!(early(|ticks| (0.0, 0.0, ticks * STEP_MM * 0.55)), refused);
        assert_eq!(early(|ticks| (0.0, 0.0, ticks * STEP_MM * 0.45)), None);
        assert_eq!(early(|ticks| (0.0, ticks * 0.0005, 0.0)), refused);
        assert_eq!(early(|ticks| (0.0, -ticks * 0.0005, 0.0)), refused);
        // Neither a tip whose height is not known is known to move, nor one that was sent nowhere.
        assert_eq!(early(|_| (0.0, 0.0, f64::NAN)), refused);
        for (goal_mm, tip_mm) in [(None, Some(1.0)), (Some(1.0), None), (Some(1.0), Some(1.0))] {
            let (mut feeler, dof) = feeler();
            let goal_rad = JointVector::zeros(dof);
            let last = (1..=end).map(|tick| {
                feeler.update(&ProbeReading {
                    goal_rad: &goal_rad,
                    goal_mm,
                    tip_mm,
                    seen: &reading(dof, tick, 0.0, 0.0),
                })
            });
            assert_eq!(last.last(), Some(ContactVerdict::EarlyContact));
        }
    }

    /// Friction holds a sagging arm below its goal until that has come down to the tip: nothing is learned meanwhile.
    #[test]
    fn waits_for_a_goal_that_comes_down_to_a_sagging_tip() {
        // Readings in which the goal comes down to the tip, and to where the tip begins to follow.
        let (down, follows_from) = (128, 87);
        let held = |ticks: u64| (0.0, 0.0, (ticks as f64 - down as f64) * STEP_MM);
        let follows = |ticks: u64| held(ticks.min(follows_from));
        assert_eq!(felt(0, follows), None);
        let firm_from = follows_from + LEARN as u64 + 40;
        let firm = |ticks: u64| {
            let load = ticks.saturating_sub(firm_from) as f64 * 0.002;
            (0.0, load, follows(ticks).2)
        };
        assert!(contact(felt(0, firm)) > firm_from);
        // A sheet holds it as well when its goal has come by.
        let (tick, verdict) = felt(0, held).unwrap();
        assert_eq!(verdict, ContactVerdict::EarlyContact);
        assert!((down + LEARN as u64).abs_diff(tick) < 5, "{tick}");
    }

    #[test]
    fn one_reading_counts_once_and_a_single_strange_one_is_no_touch() {
        let (mut feeler, dof) = feeler();
        let mut feels = |seen: ArmMeasurement| feel(&mut feeler, &seen, 0.0);
        for tick in 1..200 {
            assert_eq!(feels(reading(dof, tick, 0.0, 0.0)), ContactVerdict::Nothing);
        }
        let strange = reading(dof, 200, 0.1, 1.0);
        assert!((0..10).all(|_| feels(strange.clone()) == ContactVerdict::Nothing));
        assert_eq!(feels(reading(dof, 201, 0.0, 0.0)), ContactVerdict::Nothing);
        let touched = (202..210)
            .map(|tick| feels(reading(dof, tick, 0.1, 0.0)))
            .find(|felt| *felt != ContactVerdict::Nothing);
        // Where it was free for the last time, not where it was when that was sure.
        let free_rad = JointVector::zeros(dof);
        assert_eq!(touched, Some(ContactVerdict::Contact { free_rad }));
    }
}
