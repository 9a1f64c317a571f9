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
    zero: Option<ServoTicks>,
    /// The joint that is moved now.
    joint: Option<usize>,
    done: Vec<MovedJoint>,
    complaints: Vec<String>,
}

/// One servo's count as it goes.
#[derive(Clone, Copy, Debug)]
struct CountTracker {
    joint: usize,
    servo: ServoFile,
    now: Option<i32>,
    /// As if it did not wrap.
    unrolled: i64,
    least: i64,
    most: i64,
    wrapped: bool,
    beyond: bool,
}

/// A joint that was moved through its range.
#[derive(Clone, Debug, PartialEq)]
struct MovedJoint {
    joint: usize,
    /// Per servo its least and greatest count and the one at the positive end.
    servos: Vec<(ServoFile, i64, i64, i64)>,
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

/// Reason that the zero of a joint cannot be taken over.
#[derive(Debug, thiserror::Error)]
enum ZeroFault {
    #[error("the zero of {0} was not read")]
    Unread(String),
    #[error(
        "the zero of {joint} is at {zero}, outside of its range of {least} to {most}: it was not in the middle pose, or wraps"
    )]
    OutOfRange {
        joint: String,
        zero: i64,
        least: i64,
        most: i64,
    },
}

impl<'a> RangeRecorder<'a> {
    /// Nothing was read yet.
    #[must_use]
    pub fn new(arm: &'a ArmModel) -> Self {
        let tracks = arm
            .servos()
            .map(|(joint, servo)| CountTracker::new(joint, servo));
        Self {
            arm,
            tracks: tracks.collect(),
            zero: None,
            joint: None,
            done: Vec::new(),
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
        if self.zero.is_none() {
            return Some(
                "bring every joint to its zero, the pose that is drawn here, and press Enter"
                    .to_owned(),
            );
        }
        let joint = self.joint?;
        Some(format!(
            "move {} alone from one end to the other, leave it at its positive end, and press Enter",
            self.arm.joint_name(joint)
        ))
    }

    /// Returns the arm whose joints are moved.
    #[must_use]
    pub const fn arm(&self) -> &ArmModel {
        self.arm
    }

    /// Returns the joint that is to be moved now; `None` while all are to be at zero.
    #[must_use]
    pub const fn joint(&self) -> Option<usize> {
        self.joint
    }

    /// Completes the present task.
    pub fn next(&mut self) {
        match self.joint {
            None if self.zero.is_none() => self.take_zero(),
            None => {}
            Some(joint) => {
                self.take_range(joint);
                let following = joint + 1;
                self.joint = (following < self.arm.dof()).then_some(following);
            }
        }
        self.tracks.iter_mut().for_each(CountTracker::restart);
    }

    fn take_zero(&mut self) {
        let read = self.tracks.iter();
        let zero: ServoTicks = read.filter_map(|t| Some((t.servo.id, t.now?))).collect();
        let missing = self.tracks.iter().find(|track| track.now.is_none());
        if let Some(track) = missing {
            let name = self.arm.joint_name(track.joint);
            let id = track.servo.id;
            self.complaints.push(format!(
                "servo {id} of {name} was not read: look at its cable"
            ));
        }
        self.zero = Some(zero);
        self.joint = Some(0);
    }

    fn take_range(&mut self, joint: usize) {
        let name = self.arm.joint_name(joint);
        self.complain_of_counts(joint, &name);
        let furthest = self
            .tracks
            .iter()
            .max_by_key(|track| track.most - track.least);
        let other = furthest.filter(|track| track.joint != joint);
        let own = self.tracks.iter().filter(|track| track.joint == joint);
        let travelled = own
            .clone()
            .map(CountTracker::travel_deg)
            .fold(f64::INFINITY, f64::min);
        let least_deg = self.least_deg(joint);
        if let Some(other) =
            other.filter(|other| travelled < least_deg && other.travel_deg() > travelled)
        {
            let (moved, id) = (self.arm.joint_name(other.joint), other.servo.id);
            self.complaints.push(format!(
                "servo {id}, which is to turn {moved}, moved by {:.0} degrees where {name} was to be moved: their ids are swapped, or another joint was moved",
                other.travel_deg()
            ));
        } else if travelled < least_deg {
            self.complaints.push(format!(
                "{name} was moved by {travelled:.0} degrees only, {least_deg:.0} are needed: move it from one end to the other"
            ));
        }
        let servos = own.map(|track| (track.servo, track.least, track.most, track.unrolled));
        let servos = servos.collect();
        self.done.push(MovedJoint { joint, servos });
    }

    fn complain_of_counts(&mut self, joint: usize, name: &str) {
        for track in self.tracks.iter().filter(|track| track.joint == joint) {
            let (id, turn) = (track.servo.id, track.servo.ticks_per_turn);
            if track.beyond {
                self.complaints.push(format!(
                    "servo {id} of {name} counts beyond one turn of {turn}: it counts several turns; `steadyhand bus configure --repair` sets that right"
                ));
            } else if track.wrapped {
                self.complaints.push(format!(
                    "the count of servo {id} of {name} wraps within its range: set its homing offset so that the middle reads about {}, or mount its horn anew",
                    turn / 2
                ));
            }
        }
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
            let zero = self
                .zero
                .as_ref()
                .and_then(|zero| zero.get(&track.servo.id));
            let degrees = track.now.zip(zero).map(|(now, zero)| {
                track.degrees(i64::from(now) - i64::from(*zero)) * f64::from(track.servo.sign)
            });
            let or = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            let (least, most, end) = self.range_of(track);
            let rises = if end * 2 >= least + most { "+" } else { "-" };
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

    /// A servo's least and greatest count and the last one: of its joint's turn, or as it goes.
    fn range_of(&self, track: &CountTracker) -> (i64, i64, i64) {
        let moved = self.done.iter().find(|moved| moved.joint == track.joint);
        let mut servos = moved.into_iter().flat_map(|moved| &moved.servos);
        let own = servos.find(|(servo, ..)| servo.id == track.servo.id);
        own.map_or(
            (track.least, track.most, track.unrolled),
            |(_, least, most, end)| (*least, *most, *end),
        )
    }

    /// Returns the proposed values of the arm's file.
    ///
    /// # Errors
    /// Every problem in the readings.
    pub fn result(&self) -> Result<RangeResult, Vec<String>> {
        let mut complaints = self.complaints.clone();
        if self.task().is_some() {
            complaints.push("not every joint was moved".to_owned());
        }
        let mut found = RangeResult::default();
        for moved in &self.done {
            if let Err(why) = self.take_over(moved, &mut found) {
                complaints.push(why.to_string());
            }
        }
        if complaints.is_empty() {
            Ok(found)
        } else {
            Err(complaints)
        }
    }

    fn take_over(&self, moved: &MovedJoint, found: &mut RangeResult) -> Result<(), ZeroFault> {
        let name = self.arm.joint_name(moved.joint);
        let (mut lower_deg, mut upper_deg) = (f64::NEG_INFINITY, f64::INFINITY);
        for (servo, least, most, at_plus) in &moved.servos {
            let zero = self.zero.as_ref().and_then(|zero| zero.get(&servo.id));
            let zero = i64::from(*zero.ok_or_else(|| ZeroFault::Unread(name.clone()))?);
            if zero <= *least || zero >= *most {
                return Err(ZeroFault::OutOfRange {
                    joint: name,
                    zero,
                    least: *least,
                    most: *most,
                });
            }
            let sign = if at_plus * 2 >= least + most {
                1.0
            } else {
                -1.0
            };
            let degrees = |ticks: i64| sign * degrees(ticks - zero, *servo);
            let (a, b) = (degrees(*least), degrees(*most));
            lower_deg = lower_deg.max(a.min(b) + MARGIN_DEG);
            upper_deg = upper_deg.min(a.max(b) - MARGIN_DEG);
            let (old, new) = (&mut found.old, &mut found.new);
            old.insert(zero_key(servo.id), vec![f64::from(servo.zero_tick)]);
            new.insert(zero_key(servo.id), vec![zero as f64]);
            old.insert(sign_key(servo.id), vec![f64::from(servo.sign)]);
            new.insert(sign_key(servo.id), vec![sign]);
            let turned = self::degrees(zero - i64::from(servo.zero_tick), *servo);
            found.turn_deg = found.turn_deg.max(turned.abs());
        }
        self.narrow(moved.joint, &name, lower_deg, upper_deg, found);
        Ok(())
    }

    /// Limits only narrow: what the file forbids stays forbidden.
    fn narrow(
        &self,
        joint: usize,
        name: &str,
        lower_deg: f64,
        upper_deg: f64,
        found: &mut RangeResult,
    ) {
        let Some(file) = self.arm.file.joints.get(joint) else {
            return;
        };
        for (key, said, reached) in [
            (
                "lower_rad",
                file.lower_rad.get(),
                lower_deg.to_radians().max(file.lower_rad.get()),
            ),
            (
                "upper_rad",
                file.upper_rad.get(),
                upper_deg.to_radians().min(file.upper_rad.get()),
            ),
        ] {
            let key = format!("{key} of {name}");
            let rounded = (reached * 1e5).round() / 1e5;
            found.old.insert(key.clone(), vec![said]);
            found.new.insert(key, vec![rounded]);
        }
    }
}

impl CountTracker {
    fn new(joint: usize, servo: ServoFile) -> Self {
        Self {
            joint,
            servo,
            now: None,
            unrolled: 0,
            least: 0,
            most: 0,
            wrapped: false,
            beyond: false,
        }
    }

    fn observe(&mut self, ticks: i32) {
        let turn = i64::from(self.servo.ticks_per_turn);
        self.beyond |= !(0..turn).contains(&i64::from(ticks));
        match self.now {
            None => {
                self.unrolled = i64::from(ticks);
                (self.least, self.most) = (self.unrolled, self.unrolled);
            }
            Some(before) => {
                let mut by = i64::from(ticks) - i64::from(before);
                if by.abs() > turn / 2 && !self.beyond {
                    // No hand turns a joint by half a turn between two readings.
                    by -= by.signum() * turn;
                    self.wrapped = true;
                }
                self.unrolled += by;
            }
        }
        self.now = Some(ticks);
        self.least = self.least.min(self.unrolled);
        self.most = self.most.max(self.unrolled);
    }

    /// Restarts the range from the present count.
    fn restart(&mut self) {
        self.unrolled = i64::from(self.now.unwrap_or(0));
        (self.least, self.most) = (self.unrolled, self.unrolled);
        (self.wrapped, self.beyond) = (false, false);
    }

    fn degrees(&self, ticks: i64) -> f64 {
        degrees(ticks, self.servo)
    }

    fn travel_deg(&self) -> f64 {
        self.degrees(self.most - self.least)
    }
}

fn degrees(ticks: i64, servo: ServoFile) -> f64 {
    ticks as f64 * 360.0 / f64::from(servo.ticks_per_turn.max(1))
}
