//! Joints moved by hand: fits their zeros, ranges and directions from the servos' counts, and reports a count that
//! wraps, turns more than once, hardly moves, or belongs to a different joint.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::calibration_record::FileValues;
use super::edit_scene_file::{sign_key, zero_key};
use arm::{ArmModel, ServoFile};

/// Counts by servo.
pub type ServoTicks = BTreeMap<u8, i32>;

/// A joint that was moved through less of its range was not moved through it.
const SHARE_MIN: f64 = 0.5;

/// And less than this is no range at all.
const RANGE_MIN_DEG: f64 = 20.0;

/// Distance between a joint's limit and the stop that the hand felt.
const MARGIN_DEG: f64 = 2.0;

/// Joints being moved by hand, one after the other.
#[derive(Debug)]
pub struct RangeRecorder<'a> {
    arm: &'a ArmModel,
    tracks: Vec<CountTracker>,
    task: RangeTask,
    complaints: Vec<String>,
}

/// Present task of the person at the arm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RangeTask {
    /// Bring every joint to its zero.
    Zero,
    /// Move this joint through its range.
    Range(usize),
    /// Nothing more.
    Done,
}

/// One servo's count as it goes.
#[derive(Clone, Copy, Debug)]
struct CountTracker {
    joint: usize,
    servo: ServoFile,
    now: Option<i32>,
    zero: Option<i32>,
    /// Since the present task began.
    range: CountRange,
    /// That of its joint's turn, once that is over.
    moved: Option<CountRange>,
    wrapped: bool,
    beyond: bool,
}

/// Counts that were passed, as if they did not wrap.
#[derive(Clone, Copy, Debug, Default)]
struct CountRange {
    last: i64,
    least: i64,
    most: i64,
}

impl CountRange {
    const fn at(count: i64) -> Self {
        Self {
            last: count,
            least: count,
            most: count,
        }
    }

    /// Returns whether it ended nearer to its greatest count.
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
    /// The largest angle by which a zero turns.
    pub turn_deg: f64,
}

impl<'a> RangeRecorder<'a> {
    /// Nothing was read yet.
    #[must_use]
    pub fn new(arm: &'a ArmModel) -> Self {
        let tracks = arm.servos().map(|(joint, servo)| CountTracker {
            joint,
            servo,
            now: None,
            zero: None,
            range: CountRange::default(),
            moved: None,
            wrapped: false,
            beyond: false,
        });
        Self {
            arm,
            tracks: tracks.collect(),
            task: RangeTask::Zero,
            complaints: Vec::new(),
        }
    }

    /// A reading; servos that did not answer keep what they said before.
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
                "bring every joint to its zero, the pose that is drawn here, and press Enter"
                    .to_owned(),
            ),
            RangeTask::Range(joint) => Some(format!(
                "move {} alone from one end to the other, leave it at its positive end, and press Enter",
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

    /// Returns the joint that is to be moved now; `None` while all are to be at zero.
    #[must_use]
    pub const fn joint(&self) -> Option<usize> {
        match self.task {
            RangeTask::Range(joint) => Some(joint),
            _ => None,
        }
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
            track.zero = track.now;
        }
        if let Some(track) = self.tracks.iter().find(|track| track.now.is_none()) {
            let (name, id) = (self.arm.joint_name(track.joint), track.servo.id);
            self.complaints.push(format!(
                "servo {id} of {name} was not read: look at its cable"
            ));
        }
    }

    fn of_joint(&self, joint: usize) -> impl Iterator<Item = &CountTracker> {
        self.tracks.iter().filter(move |track| track.joint == joint)
    }

    fn take_range(&mut self, joint: usize) {
        let name = self.arm.joint_name(joint);
        let complaints: Vec<String> = self
            .of_joint(joint)
            .filter_map(|track| track.complaint(&name))
            .chain(self.complaint_of_travel(joint, &name))
            .collect();
        self.complaints.extend(complaints);
        for track in self.tracks.iter_mut().filter(|track| track.joint == joint) {
            track.moved = Some(track.range);
        }
    }

    /// Returns why a joint was not moved through its range, if it was not.
    fn complaint_of_travel(&self, joint: usize, name: &str) -> Option<String> {
        let travels = self.of_joint(joint).map(CountTracker::travel_deg);
        let travelled = travels.fold(f64::INFINITY, f64::min);
        let least_deg = self.least_deg(joint);
        if travelled >= least_deg {
            return None;
        }
        let ticks = |track: &&CountTracker| track.range.most - track.range.least;
        let furthest = self.tracks.iter().max_by_key(ticks);
        let other = furthest.filter(|track| track.joint != joint);
        Some(match other.filter(|other| other.travel_deg() > travelled) {
            Some(other) => format!(
                "servo {}, which is to turn {}, moved by {:.0} degrees where {name} was to be moved: their ids are swapped, or another joint was moved",
                other.servo.id,
                self.arm.joint_name(other.joint),
                other.travel_deg()
            ),
            None => format!(
                "{name} was moved by {travelled:.0} degrees only, {least_deg:.0} are needed: move it from one end to the other"
            ),
        })
    }

    /// Returns the least angle through which a joint must be moved.
    fn least_deg(&self, joint: usize) -> f64 {
        let file = self.arm.file.joints.get(joint);
        let range = file.map_or(0.0, |file| file.upper_rad.get() - file.lower_rad.get());
        (SHARE_MIN * range.to_degrees()).max(RANGE_MIN_DEG)
    }

    /// The live table: counts, degrees from zero, range and direction.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<16}{:>4}{:>8}{:>10}{:>16}{:>9}  direction\n",
            "joint", "id", "ticks", "degrees", "range, ticks", "degrees"
        );
        for track in &self.tracks {
            let degrees = track.now.zip(track.zero).map(|(now, zero)| {
                track.degrees(i64::from(now) - i64::from(zero)) * f64::from(track.servo.sign)
            });
            let or = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let range = track.moved.unwrap_or(track.range);
            let CountRange { least, most, .. } = range;
            let rises = if range.rises() { "+" } else { "-" };
            let has_range = most > least;
            let _ = writeln!(
                text,
                "{:<16}{:>4}{:>8}{:>10}{:>16}{:>9}  {}",
                self.arm.joint_name(track.joint),
                track.servo.id,
                or(track.now.map(|now| now.to_string())),
                or(degrees.map(|degrees| format!("{degrees:.1}"))),
                or(has_range.then(|| format!("{least} to {most}"))),
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
        let mut complaints = self.complaints.clone();
        let moved = match self.task {
            RangeTask::Zero => 0,
            RangeTask::Range(joint) => joint,
            RangeTask::Done => self.arm.dof(),
        };
        if self.task != RangeTask::Done {
            complaints.push("not every joint was moved".to_owned());
        }
        let mut found = RangeResult::default();
        let taken = (0..moved).map(|joint| self.take_over(joint, &mut found));
        complaints.extend(taken.filter_map(Result::err));
        if complaints.is_empty() {
            Ok(found)
        } else {
            Err(complaints)
        }
    }

    /// Takes over the zero, the direction and the limits of a joint that was moved, or says why it cannot.
    fn take_over(&self, joint: usize, found: &mut RangeResult) -> Result<(), String> {
        let name = self.arm.joint_name(joint);
        let (mut lower_deg, mut upper_deg) = (f64::NEG_INFINITY, f64::INFINITY);
        for track in self.of_joint(joint) {
            let (servo, range) = (track.servo, track.moved.unwrap_or_default());
            let CountRange { least, most, .. } = range;
            let unread = || format!("the zero of {name} was not read");
            let zero = i64::from(track.zero.ok_or_else(unread)?);
            if zero <= least || zero >= most {
                return Err(format!(
                    "the zero of {name} is at {zero}, outside of its range of {least} to {most}: it was not in the middle pose, or wraps"
                ));
            }
            let sign = if range.rises() { 1.0 } else { -1.0 };
            let [a, b] = [least, most].map(|ticks| sign * track.degrees(ticks - zero));
            lower_deg = lower_deg.max(a.min(b) + MARGIN_DEG);
            upper_deg = upper_deg.min(a.max(b) - MARGIN_DEG);
            let zeros = [f64::from(servo.zero_tick), zero as f64];
            let signs = [f64::from(servo.sign), sign];
            for (key, [old, new]) in [(zero_key(servo.id), zeros), (sign_key(servo.id), signs)] {
                found.old.insert(key.clone(), vec![old]);
                found.new.insert(key, vec![new]);
            }
            let turned = track.degrees(zero - i64::from(servo.zero_tick));
            found.turn_deg = found.turn_deg.max(turned.abs());
        }
        self.narrow(joint, [lower_deg, upper_deg], found);
        Ok(())
    }

    /// Limits only narrow: what the file forbids stays forbidden.
    fn narrow(&self, joint: usize, reached_deg: [f64; 2], found: &mut RangeResult) {
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
            found.old.insert(key.clone(), vec![old]);
            found.new.insert(key, vec![rounded]);
        }
    }
}

impl CountTracker {
    fn observe(&mut self, ticks: i32) {
        let turn = i64::from(self.servo.ticks_per_turn);
        self.beyond |= !(0..turn).contains(&i64::from(ticks));
        let range = &mut self.range;
        match self.now {
            None => *range = CountRange::at(i64::from(ticks)),
            Some(before) => {
                let mut by = i64::from(ticks) - i64::from(before);
                if by.abs() > turn / 2 && !self.beyond {
                    // No hand turns a joint by half a turn between two readings.
                    by -= by.signum() * turn;
                    self.wrapped = true;
                }
                range.last += by;
            }
        }
        self.now = Some(ticks);
        range.least = range.least.min(range.last);
        range.most = range.most.max(range.last);
    }

    /// Restarts the range from the present count.
    fn restart(&mut self) {
        self.range = CountRange::at(i64::from(self.now.unwrap_or(0)));
        (self.wrapped, self.beyond) = (false, false);
    }

    /// Returns what is wrong with how its joint's servo counts, if anything is.
    fn complaint(&self, joint: &str) -> Option<String> {
        let (id, turn) = (self.servo.id, self.servo.ticks_per_turn);
        if self.beyond {
            return Some(format!(
                "servo {id} of {joint} counts beyond one turn of {turn}: it counts several turns; `steadyhand bus configure --repair` sets that right"
            ));
        }
        self.wrapped.then(|| {
            format!(
                "the count of servo {id} of {joint} wraps within its range: set its homing offset so that the middle reads about {}, or mount its horn anew",
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
