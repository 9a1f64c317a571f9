//! Determines zeros, ranges and directions of joints that are moved by hand from the servos' counts, and reports counts that
//! wrap, turn more than once, hardly move, or belong to a different joint.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::calibration_record::FileValues;
use super::edit_scene_file::{sign_key, zero_key};
use arm::{ArmModel, ServoFile};

/// Counts by servo.
pub type ServoTicks = BTreeMap<u8, i32>;

/// Smallest part of a joint's range through which it must be moved.
const RANGE_PART_MIN: f64 = 0.5;

/// Smallest angle through which it must be moved.
const RANGE_MIN_DEG: f64 = 20.0;

/// Distance of a joint's limit from the mechanical stop.
const MARGIN_DEG: f64 = 2.0;

/// Joints being moved by hand, one after the other.
#[derive(Debug)]
pub struct RangeRecorder<'a> {
    arm: &'a ArmModel,
    tracks: Vec<CountTracker>,
    task: RangeTask,
    problems: Vec<String>,
}

/// Present task of the person at the arm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RangeTask {
    /// Bring every joint to its zero.
    Zero,
    /// Move this joint through its range.
    Range(usize),
    /// All joints were moved.
    Done,
}

/// Follows one servo's count.
#[derive(Clone, Copy, Debug)]
struct CountTracker {
    joint: usize,
    servo: ServoFile,
    ticks_now: Option<i32>,
    zero: Option<i32>,
    /// Counts since the present task began.
    range: CountRange,
    /// Counts while its own joint was moved, once that is over.
    moved: Option<CountRange>,
    wrapped: bool,
    left_range: bool,
}

/// Range of counts that were passed, unwrapped.
#[derive(Clone, Copy, Debug, Default)]
struct CountRange {
    last: i64,
    least: i64,
    most: i64,
}

impl CountRange {
    const fn from_count(count: i64) -> Self {
        Self {
            last: count,
            least: count,
            most: count,
        }
    }

    /// Returns why a joint's zero does not fit its range, if it does not.
    fn zero_problem(&self, zero: i64, name: &str) -> Option<String> {
        let Self { least, most, .. } = *self;
        (zero <= least || zero >= most).then(|| {
            format!(
                "the zero of {name} is at {zero}, outside its range of {least} to {most}: the joint was not in its middle, or its count wraps"
            )
        })
    }

    /// Returns whether it ended nearer to its largest count.
    const fn rises(&self) -> bool {
        self.last * 2 >= self.least + self.most
    }
}

/// Result of moving all joints of an arm by hand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RangeResult {
    /// Values in the file now.
    pub old: FileValues,
    /// Proposed values.
    pub new: FileValues,
    /// The largest angle by which a zero changes.
    pub turn_deg: f64,
}

impl<'a> RangeRecorder<'a> {
    /// Creates a recorder without readings.
    #[must_use]
    pub fn new(arm: &'a ArmModel) -> Self {
        let tracks = arm.servos().map(|(joint, servo)| CountTracker {
            joint,
            servo,
            ticks_now: None,
            zero: None,
            range: CountRange::default(),
            moved: None,
            wrapped: false,
            left_range: false,
        });
        Self {
            arm,
            tracks: tracks.collect(),
            task: RangeTask::Zero,
            problems: Vec::new(),
        }
    }

    /// Takes a reading; servos that did not answer keep their last counts.
    pub fn observe(&mut self, ticks: &ServoTicks) {
        for track in &mut self.tracks {
            if let Some(ticks) = ticks.get(&track.servo.id) {
                track.observe(*ticks);
            }
        }
    }

    /// Returns the present task for a person; `None` once all is done.
    #[must_use]
    pub fn task(&self) -> Option<String> {
        match self.task {
            RangeTask::Zero => Some(
                "bring every joint to its zero (the pose in the sketch), then press Enter"
                    .to_owned(),
            ),
            RangeTask::Range(joint) => Some(format!(
                "move {} alone from one end to the other, leave it at its positive end, then press Enter",
                self.arm.joint_name(joint)
            )),
            RangeTask::Done => None,
        }
    }

    /// Returns the arm whose joints are moved.
    #[must_use]
    pub const fn arm(&self) -> &ArmModel {
        self.arm
    }

    /// Returns the joint to be moved now; `None` while all are to be at zero.
    #[must_use]
    pub const fn joint(&self) -> Option<usize> {
        match self.task {
            RangeTask::Range(joint) => Some(joint),
            _ => None,
        }
    }

    /// Returns what is wrong with the readings of the present task, if it ended now.
    #[must_use]
    pub fn problems_now(&self) -> Vec<String> {
        match self.task {
            RangeTask::Zero => self.unread_problem().into_iter().collect(),
            RangeTask::Range(joint) => {
                let mut problems = self.range_problems(joint);
                if problems.is_empty() {
                    let name = self.arm.joint_name(joint);
                    let tracks = self.tracks_of(joint);
                    problems.extend(tracks.filter_map(|track| {
                        let zero = i64::from(track.zero?);
                        track.range.zero_problem(zero, &name)
                    }));
                }
                problems
            }
            RangeTask::Done => Vec::new(),
        }
    }

    /// Begins the present task again.
    pub fn again(&mut self) {
        self.tracks.iter_mut().for_each(CountTracker::restart);
    }

    /// Completes the present task.
    pub fn next(&mut self) {
        self.task = match self.task {
            RangeTask::Zero => {
                self.take_zero();
                RangeTask::Range(0)
            }
            RangeTask::Range(joint) => {
                self.take_range(joint);
                if joint + 1 < self.arm.dof() {
                    RangeTask::Range(joint + 1)
                } else {
                    RangeTask::Done
                }
            }
            RangeTask::Done => RangeTask::Done,
        };
        self.tracks.iter_mut().for_each(CountTracker::restart);
    }

    fn take_zero(&mut self) {
        for track in &mut self.tracks {
            track.zero = track.ticks_now;
        }
        self.problems.extend(self.unread_problem());
    }

    fn unread_problem(&self) -> Option<String> {
        let mut tracks = self.tracks.iter();
        let track = tracks.find(|track| track.ticks_now.is_none())?;
        let (name, id) = (self.arm.joint_name(track.joint), track.servo.id);
        Some(format!(
            "servo {id} of {name} was not read: check its cable"
        ))
    }

    fn tracks_of(&self, joint: usize) -> impl Iterator<Item = &CountTracker> {
        self.tracks.iter().filter(move |track| track.joint == joint)
    }

    fn take_range(&mut self, joint: usize) {
        self.problems.extend(self.range_problems(joint));
        for track in self.tracks.iter_mut().filter(|track| track.joint == joint) {
            track.moved = Some(track.range);
        }
    }

    /// Returns what is wrong with a joint's movement.
    fn range_problems(&self, joint: usize) -> Vec<String> {
        let name = self.arm.joint_name(joint);
        let tracks = self.tracks_of(joint);
        let problems = tracks.filter_map(|track| track.problem(&name));
        problems.chain(self.travel_problem(joint, &name)).collect()
    }

    /// Returns why a joint's movement does not count, if it does not.
    fn travel_problem(&self, joint: usize, name: &str) -> Option<String> {
        let travels_deg = self.tracks_of(joint).map(CountTracker::travel_deg);
        let travelled_deg = travels_deg.fold(f64::INFINITY, f64::min);
        let least_deg = self.least_deg(joint);
        if travelled_deg >= least_deg {
            return None;
        }
        let span = |track: &&CountTracker| track.range.most - track.range.least;
        let furthest = self.tracks.iter().max_by_key(span);
        let other = furthest.filter(|track| track.joint != joint);
        let other = other.filter(|other| other.travel_deg() > travelled_deg);
        Some(match other {
            Some(other) => format!(
                "servo {} of joint {} moved by {:.0}°, but {name} did not. Their ids are swapped, or you moved the wrong joint",
                other.servo.id,
                self.arm.joint_name(other.joint),
                other.travel_deg()
            ),
            None => format!(
                "{name} moved by only {travelled_deg:.0}° (at least {least_deg:.0}°): move it from one end to the other"
            ),
        })
    }

    /// Returns the least angle through which a joint must be moved.
    fn least_deg(&self, joint: usize) -> f64 {
        let file = self.arm.file.joints.get(joint);
        let range = file.map_or(0.0, |file| file.upper_rad.get() - file.lower_rad.get());
        (RANGE_PART_MIN * range.to_degrees()).max(RANGE_MIN_DEG)
    }

    /// Returns the live table: counts, degrees from zero, range and direction.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<16}{:>4}{:>8}{:>10}{:>16}{:>9}  direction\n",
            "joint", "id", "ticks", "degrees", "range, ticks", "degrees"
        );
        for track in &self.tracks {
            let degrees = track.ticks_now.zip(track.zero).map(|(ticks_now, zero)| {
                track.degrees(i64::from(ticks_now) - i64::from(zero)) * f64::from(track.servo.sign)
            });
            let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let range = track.moved.unwrap_or(track.range);
            let CountRange { least, most, .. } = range;
            let rises = if range.rises() { "+" } else { "-" };
            let has_range = most > least;
            let _ = writeln!(
                text,
                "{:<16}{:>4}{:>8}{:>10}{:>16}{:>9}  {}",
                self.arm.joint_name(track.joint),
                track.servo.id,
                or_dash(track.ticks_now.map(|ticks_now| ticks_now.to_string())),
                or_dash(degrees.map(|degrees| format!("{degrees:.1}"))),
                or_dash(has_range.then(|| format!("{least} to {most}"))),
                format!("{:.0}", track.degrees(most - least)),
                if has_range { rises } else { "" }
            );
        }
        text
    }

    /// Returns the proposed values of the arm's file.
    ///
    /// # Errors
    /// Every problem in the readings.
    pub fn result(&self) -> Result<RangeResult, Vec<String>> {
        let mut problems = self.problems.clone();
        let moved = match self.task {
            RangeTask::Zero => 0,
            RangeTask::Range(joint) => joint,
            RangeTask::Done => self.arm.dof(),
        };
        if self.task != RangeTask::Done {
            problems.push("not every joint was moved".to_owned());
        }
        let mut result = RangeResult::default();
        let adopted = (0..moved).map(|joint| self.adopt(joint, &mut result));
        problems.extend(adopted.filter_map(Result::err));
        if problems.is_empty() {
            Ok(result)
        } else {
            Err(problems)
        }
    }

    /// Adopts the zero, the direction and the limits of a joint that was moved, or returns why it cannot.
    fn adopt(&self, joint: usize, result: &mut RangeResult) -> Result<(), String> {
        let name = self.arm.joint_name(joint);
        let (mut lower_deg, mut upper_deg) = (f64::NEG_INFINITY, f64::INFINITY);
        for track in self.tracks_of(joint) {
            let (servo, range) = (track.servo, track.moved.unwrap_or_default());
            let CountRange { least, most, .. } = range;
            let not_read = || format!("the zero of {name} was not read");
            let zero = i64::from(track.zero.ok_or_else(not_read)?);
            if let Some(problem) = range.zero_problem(zero, &name) {
                return Err(problem);
            }
            let sign = if range.rises() { 1.0 } else { -1.0 };
            let [a, b] = [least, most].map(|ticks| sign * track.degrees(ticks - zero));
            lower_deg = lower_deg.max(a.min(b) + MARGIN_DEG);
            upper_deg = upper_deg.min(a.max(b) - MARGIN_DEG);
            let zeros = [f64::from(servo.zero_tick), zero as f64];
            let signs = [f64::from(servo.sign), sign];
            for (key, [old, new]) in [(zero_key(servo.id), zeros), (sign_key(servo.id), signs)] {
                result.old.insert(key.clone(), vec![old]);
                result.new.insert(key, vec![new]);
            }
            let change_deg = track.degrees(zero - i64::from(servo.zero_tick));
            result.turn_deg = result.turn_deg.max(change_deg.abs());
        }
        self.narrow(joint, [lower_deg, upper_deg], result);
        Ok(())
    }

    /// Narrows the limits to the angles that were reached; never widens those of the file.
    fn narrow(&self, joint: usize, reached_deg: [f64; 2], result: &mut RangeResult) {
        let Some(file) = self.arm.file.joints.get(joint) else {
            return;
        };
        let [lower, upper] = [file.lower_rad.get(), file.upper_rad.get()];
        let [reached_lower, reached_upper] = reached_deg.map(f64::to_radians);
        for (key, old, reached) in [
            ("lower_rad", lower, reached_lower.max(lower)),
            ("upper_rad", upper, reached_upper.min(upper)),
        ] {
            let key = format!("{key} of {}", file.name);
            let rounded = (reached * 1e5).round() / 1e5;
            result.old.insert(key.clone(), vec![old]);
            result.new.insert(key, vec![rounded]);
        }
    }
}

impl CountTracker {
    fn observe(&mut self, ticks: i32) {
        let turn = i64::from(self.servo.ticks_per_turn);
        self.left_range |= !(0..turn).contains(&i64::from(ticks));
        let range = &mut self.range;
        match self.ticks_now {
            None => *range = CountRange::from_count(i64::from(ticks)),
            Some(before) => {
                let mut change = i64::from(ticks) - i64::from(before);
                if change.abs() > turn / 2 && !self.left_range {
                    // Nobody turns a joint by half a turn between two readings.
                    change -= change.signum() * turn;
                    self.wrapped = true;
                }
                range.last += change;
            }
        }
        self.ticks_now = Some(ticks);
        range.least = range.least.min(range.last);
        range.most = range.most.max(range.last);
    }

    /// Restarts the range from the present count.
    fn restart(&mut self) {
        self.range = CountRange::from_count(i64::from(self.ticks_now.unwrap_or(0)));
        (self.wrapped, self.left_range) = (false, false);
    }

    /// Returns a problem with the servo's counts, if there is one.
    fn problem(&self, joint: &str) -> Option<String> {
        let (id, turn) = (self.servo.id, self.servo.ticks_per_turn);
        if self.left_range {
            return Some(format!(
                "servo {id} of {joint} counts beyond one turn ({turn}): `steadyhand bus configure --repair` corrects this setting"
            ));
        }
        self.wrapped.then(|| {
            format!(
                "the count of servo {id} of {joint} wraps within its range: set its homing offset so that the middle reads about {}, or mount its horn again",
                turn / 2
            )
        })
    }

    fn degrees(&self, ticks: i64) -> f64 {
        ticks as f64 * 360.0 / f64::from(self.servo.ticks_per_turn.max(1))
    }

    fn travel_deg(&self) -> f64 {
        self.degrees(self.range.most - self.range.least)
    }
}
