//! Imports and exports calibrations of LeRobot, and lists what cannot be imported.
//!
//! Its present files hold a homing offset, which the servo itself adds, and a range for each joint, whose
//! middle is angle zero. Its older ones hold lists, and an angle is `drive · count + homing offset`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::calibration_record::FileValues;
use super::edit_scene_file::zero_key;
use arm::{ArmModel, JointFile, ServoFile};

/// A joint in a present file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeRobotMotor {
    /// Id on the bus.
    pub id: u8,
    /// 1 if percentages are reversed; angles in degrees are not affected.
    pub drive_mode: u8,
    /// Offset that the servo adds to its count, or subtracts from it.
    pub homing_offset: i64,
    /// Smallest count of the range.
    pub range_min: i64,
    /// Largest count of the range.
    pub range_max: i64,
}

/// A file, in either form.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum LeRobotFile {
    /// The older form without ranges: one list for each property.
    Lists {
        /// The joints' names.
        motor_names: Vec<String>,
        /// Offset of each joint, in counts.
        homing_offset: Vec<i64>,
        /// For each joint, 1 if the count falls as the angle grows.
        drive_mode: Vec<u8>,
    },
    /// The present form, by the joints' names.
    Motors(BTreeMap<String, LeRobotMotor>),
}

/// Values read from a LeRobot file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeRobotImport {
    /// Present values of the arm's file for the imported keys.
    pub old: FileValues,
    /// Imported values.
    pub new: FileValues,
    /// Values that could not be imported, with the reasons.
    pub skipped: Vec<String>,
    /// The arm's joints that are not in the file.
    pub missing: Vec<String>,
}

/// Reason that a file does not apply to this arm.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LeRobotError {
    /// None of its joints is one of the arm's.
    #[error("none of the file's motors ({}) is a joint of arm {arm} ({})", found.join(", "), known.join(", "))]
    NoneKnown {
        /// The arm.
        arm: String,
        /// The file's names.
        found: Vec<String>,
        /// The arm's names.
        known: Vec<String>,
    },
    /// A count that was read from the servo without its sign.
    #[error(
        "{name}: {found} is probably {signed} with a lost sign. Next: write {signed}, or calibrate again with LeRobot"
    )]
    Unsigned {
        /// The joint.
        name: String,
        /// The count in the file.
        found: i64,
        /// The count with its sign.
        signed: i64,
    },
    /// A range that begins below the first count of a turn.
    #[error(
        "{name}: its range begins at {min} (at least 0), so its homing offset was not set at its middle. {CALIBRATE_AGAIN}"
    )]
    Negative {
        /// The joint.
        name: String,
        /// Start of the range in the file.
        min: i64,
    },
    /// A range that ends beyond the last count of a turn.
    #[error(
        "{name}: its range ends at {max} (at most {last}), so its servo counted more than one turn. {CALIBRATE_AGAIN}"
    )]
    BeyondATurn {
        /// The joint.
        name: String,
        /// End of the range in the file.
        max: i64,
        /// Last count of a turn.
        last: i64,
    },
    /// A range that ends before it begins.
    #[error(
        "{name}: its range ends at {max}, before it begins at {min}: the numbers are swapped, or its count wrapped. {CALIBRATE_AGAIN}"
    )]
    Reversed {
        /// The joint.
        name: String,
        /// Start of the range in the file.
        min: i64,
        /// End of the range in the file.
        max: i64,
    },
    /// A range through which the joint was not moved.
    #[error(
        "{name}: its range is {span} counts ({min} to {max}; at least {RANGE_TICKS_MIN}), so it was not moved when it was calibrated. {CALIBRATE_AGAIN}"
    )]
    Range {
        /// The joint.
        name: String,
        /// Start of the range in the file.
        min: i64,
        /// End of the range in the file.
        max: i64,
        /// Its length.
        span: i64,
    },
    /// A range that the seam between the last count and 0 cut or widened.
    #[error(
        "{name}: its count wrapped during its calibration. Its range is {min} to {max} counts, but the joint turns {turns_deg:.0}°. {CALIBRATE_AGAIN}"
    )]
    Wrapped {
        /// The joint.
        name: String,
        /// Start of the range in the file.
        min: i64,
        /// End of the range in the file.
        max: i64,
        /// Range of the joint in the arm's file.
        turns_deg: f64,
    },
    /// A zero from which the joint cannot reach its limits without crossing the seam.
    #[error(
        "{name}: with its zero at {zero}, its limits are at {lower} and {upper}; its counts are 0 to {last}. {CALIBRATE_AGAIN}"
    )]
    ZeroOnSeam {
        /// The joint.
        name: String,
        /// The zero in the file.
        zero: i64,
        /// Count of its lower limit.
        lower: i64,
        /// Count of its upper limit.
        upper: i64,
        /// Last count of a turn.
        last: i64,
    },
    /// An id that belongs to another joint.
    #[error(
        "{name} has id {found} in this file and {known} in the arm's file: ids are swapped, or this is a different arm's file"
    )]
    Id {
        /// The joint.
        name: String,
        /// The id in the file.
        found: u8,
        /// The id in the arm's file.
        known: u8,
    },
    /// Lists of unequal length.
    #[error("its lists have {names} names, {offsets} homing offsets and {modes} drive modes")]
    Lists {
        /// Number of names.
        names: usize,
        /// Number of offsets.
        offsets: usize,
        /// Number of modes.
        modes: usize,
    },
}

/// Advice for a joint whose counts cannot be used.
const CALIBRATE_AGAIN: &str =
    "Next: bring every joint to its middle and calibrate again with LeRobot";

/// Smallest range of a joint that was moved through its range.
const RANGE_TICKS_MIN: i64 = 64;

/// Share of a turn that a joint has which may turn all round, as a wrist may.
const WHOLE_TURN_PART: f64 = 7.0 / 8.0;

/// Smallest share of a turn that is more than a joint's own range, whatever its limits are.
const WRAPPED_PART: f64 = 3.0 / 4.0;

/// Share of a turn so near to the seam that a joint which is pushed against its stop crosses it.
const SEAM_PART: f64 = 1.0 / 128.0;

/// Names of follower arms' joints in other files, with the names here.
const OTHER_NAMES: [(&str, &str); 2] = [("shoulder", "shoulder_lift"), ("elbow", "elbow_flex")];

/// Returns the values of a file that apply to an arm's file.
///
/// # Errors
/// The file belongs to a different arm, or was not made by moving each joint through its range.
pub fn import(file: &LeRobotFile, arm: &ArmModel) -> Result<LeRobotImport, LeRobotError> {
    let mut imported = LeRobotImport::default();
    let (found, skipped): (Vec<&String>, _) = match file {
        LeRobotFile::Motors(motors) => {
            for (name, motor) in motors {
                imported.import_motor(name, motor, arm)?;
            }
            (
                motors.keys().collect(),
                "homing offsets: the servos already have them. `steadyhand doctor` shows whether they match the file",
            )
        }
        LeRobotFile::Lists {
            motor_names,
            homing_offset,
            drive_mode,
        } => {
            let [names, offsets, modes] =
                [motor_names.len(), homing_offset.len(), drive_mode.len()];
            if offsets != names || modes != names {
                return Err(LeRobotError::Lists {
                    names,
                    offsets,
                    modes,
                });
            }
            for (name, pair) in motor_names.iter().zip(homing_offset.iter().zip(drive_mode)) {
                imported.import_offset(name, pair, arm)?;
            }
            (
                motor_names.iter().collect(),
                "ranges: this old form has none, so the limits stay as they are. Its zero is LeRobot's stretched-out pose: compare it with the arm's zero before anything moves",
            )
        }
    };
    if imported.new.is_empty() {
        let known = arm.file.joints.iter().map(|joint| joint.name.clone());
        return Err(LeRobotError::NoneKnown {
            arm: arm.file.name.clone(),
            found: found.into_iter().cloned().collect(),
            known: known.collect(),
        });
    }
    let has_zero = |servo: &ServoFile| imported.new.contains_key(&zero_key(servo.id));
    let joints = arm.file.joints.iter();
    imported.missing = joints
        .filter(|joint| !joint.servos.first().is_some_and(has_zero))
        .map(|joint| joint.name.clone())
        .collect();
    if !imported.missing.is_empty() {
        imported.skipped.push(format!(
            "{}: not in the file, so their zeros stay as they are and the arm is not calibrated",
            imported.missing.join(", ")
        ));
    }
    imported.skipped.push(skipped.to_owned());
    Ok(imported)
}

impl LeRobotImport {
    /// Returns the joint of that name with its first servo; records the name as skipped if there is none.
    fn find<'a>(&mut self, arm: &'a ArmModel, name: &str) -> Option<(&'a JointFile, ServoFile)> {
        let of_name = |name: &str| arm.file.joints.iter().find(|joint| joint.name == name);
        let same_joint = || {
            let (_, ours) = OTHER_NAMES.iter().find(|(theirs, _)| *theirs == name)?;
            of_name(ours)
        };
        let joint = of_name(name).or_else(same_joint);
        let found = joint.and_then(|joint| Some((joint, *joint.servos.first()?)));
        if found.is_none() {
            self.skipped
                .push(format!("{name}: the arm's file has no such joint"));
        }
        found
    }

    /// Imports a joint of a present file.
    fn import_motor(
        &mut self,
        name: &str,
        motor: &LeRobotMotor,
        arm: &ArmModel,
    ) -> Result<(), LeRobotError> {
        let Some((joint, servo)) = self.find(arm, name) else {
            return Ok(());
        };
        if motor.id != servo.id {
            return Err(LeRobotError::Id {
                name: name.to_owned(),
                found: motor.id,
                known: servo.id,
            });
        }
        refuse_range(name, motor, joint, servo)?;
        let span = (motor.range_max - motor.range_min) as f64;
        self.set_zero(servo, motor.range_min as f64 + span / 2.0);
        self.narrow(joint, servo, span);
        if motor.drive_mode != 0 {
            self.skipped.push(format!(
                "{name}: the sign stays {}, because drive mode 1 reverses percentages, not angles",
                servo.sign
            ));
        }
        if joint.servos.len() > 1 {
            self.skipped
                .push(format!("{name}: its second servo is not in the file"));
        }
        Ok(())
    }

    /// Imports a joint of an older file: its homing offset and its drive mode.
    fn import_offset(
        &mut self,
        name: &str,
        (offset, mode): (&i64, &u8),
        arm: &ArmModel,
    ) -> Result<(), LeRobotError> {
        let Some((joint, servo)) = self.find(arm, name) else {
            return Ok(());
        };
        refuse_unsigned(name, *offset)?;
        let drive = if *mode == 0 { 1 } else { -1 };
        if drive != i64::from(servo.sign) {
            self.skipped.push(format!(
                "{name}: the sign stays {}, although the file counts the other way",
                servo.sign
            ));
        }
        // drive · count + offset = 0
        let zero = offset.saturating_mul(-drive);
        refuse_zero_on_seam(name, zero, joint, servo)?;
        self.set_zero(servo, zero as f64);
        Ok(())
    }

    fn set_zero(&mut self, servo: ServoFile, ticks: f64) {
        let key = zero_key(servo.id);
        self.old
            .insert(key.clone(), vec![f64::from(servo.zero_tick)]);
        self.new.insert(key, vec![ticks.round()]);
    }

    /// Narrows the limits to the range through which the joint was moved; never widens them.
    fn narrow(&mut self, joint: &JointFile, servo: ServoFile, span: f64) {
        let tick_rad = std::f64::consts::TAU / f64::from(servo.ticks_per_turn);
        let half_rad = (span / 2.0 * tick_rad * 1e6).floor() / 1e6;
        let (lower, upper) = (joint.lower_rad.get(), joint.upper_rad.get());
        let narrower = [
            (lower < -half_rad).then_some(("lower_rad", lower, -half_rad)),
            (upper > half_rad).then_some(("upper_rad", upper, half_rad)),
        ];
        for (key, old, new) in narrower.into_iter().flatten() {
            let key = format!("{key} of {}", joint.name);
            self.old.insert(key.clone(), vec![old]);
            self.new.insert(key, vec![new]);
        }
    }

    /// Returns the largest change of a zero, in degrees.
    #[must_use]
    pub fn turn_deg(&self, arm: &ArmModel) -> f64 {
        let changes_deg = arm.servos().filter_map(|(_, servo)| {
            let new = self.new.get(&zero_key(servo.id))?.first()?;
            let ticks = (new - f64::from(servo.zero_tick)).abs();
            Some(360.0 * ticks / f64::from(servo.ticks_per_turn))
        });
        changes_deg.fold(0.0, f64::max)
    }
}

/// Returns whether a range of that many counts is all round for the servo.
fn is_whole_turn(counts: f64, servo: ServoFile) -> bool {
    counts >= WHOLE_TURN_PART * f64::from(servo.ticks_per_turn)
}

/// Refuses a range that is not where the joint was moved, with the cause.
fn refuse_range(
    name: &str,
    motor: &LeRobotMotor,
    joint: &JointFile,
    servo: ServoFile,
) -> Result<(), LeRobotError> {
    let (min, max) = (motor.range_min, motor.range_max);
    let turn = f64::from(servo.ticks_per_turn);
    let last = i64::from(servo.ticks_per_turn) - 1;
    for count in [min, max, motor.homing_offset] {
        refuse_unsigned(name, count)?;
    }
    let name = || name.to_owned();
    if min < 0 {
        return Err(LeRobotError::Negative { name: name(), min });
    }
    if max > last {
        return Err(LeRobotError::BeyondATurn {
            name: name(),
            max,
            last,
        });
    }
    let span = max - min;
    if span < 0 {
        return Err(LeRobotError::Reversed {
            name: name(),
            min,
            max,
        });
    }
    if span < RANGE_TICKS_MIN {
        return Err(LeRobotError::Range {
            name: name(),
            min,
            max,
            span,
        });
    }
    let turns_rad = joint.upper_rad.get() - joint.lower_rad.get();
    let turns = turns_rad / std::f64::consts::TAU * turn;
    let is_all_round = is_whole_turn(turns, servo) && is_whole_turn(span as f64, servo);
    let wrapped = f64::midpoint(turns, turn).max(WRAPPED_PART * turn);
    let to_seam = min.min(last - max) as f64;
    if !is_all_round && (span as f64 > wrapped || to_seam <= SEAM_PART * turn) {
        let turns_deg = turns_rad.to_degrees();
        return Err(LeRobotError::Wrapped {
            name: name(),
            min,
            max,
            turns_deg,
        });
    }
    Ok(())
}

/// Refuses a count that a program read as a number of 16 or 32 bits without its sign.
fn refuse_unsigned(name: &str, found: i64) -> Result<(), LeRobotError> {
    for bits in [16, 32] {
        let whole = 1_i64 << bits;
        if (whole / 2..whole).contains(&found) {
            return Err(LeRobotError::Unsigned {
                name: name.to_owned(),
                found,
                signed: found - whole,
            });
        }
    }
    Ok(())
}

/// Refuses a zero from which the joint's limits are beyond the first or the last count.
fn refuse_zero_on_seam(
    name: &str,
    zero: i64,
    joint: &JointFile,
    servo: ServoFile,
) -> Result<(), LeRobotError> {
    let ticks =
        |limit_rad: f64| zero.saturating_add((servo.ticks(limit_rad) - servo.zero_tick).into());
    let [one, other] = [joint.lower_rad, joint.upper_rad].map(|limit| ticks(limit.get()));
    let (lower, upper) = (one.min(other), one.max(other));
    let last = i64::from(servo.ticks_per_turn) - 1;
    if lower < 0 || upper > last {
        return Err(LeRobotError::ZeroOnSeam {
            name: name.to_owned(),
            zero,
            lower,
            upper,
            last,
        });
    }
    Ok(())
}

/// Returns an arm's zeros and limits in LeRobot's present form. `homing` has the offsets in the servos
/// by their ids; 0 if they are not known. Held servos get a whole turn.
#[must_use]
pub fn export(arm: &ArmModel, homing: &BTreeMap<u8, i32>) -> BTreeMap<String, LeRobotMotor> {
    let motor = |id: u8, range_min: i32, range_max: i32| LeRobotMotor {
        id,
        drive_mode: 0,
        homing_offset: homing.get(&id).copied().map_or(0, i64::from),
        range_min: range_min.into(),
        range_max: range_max.into(),
    };
    let joints = arm.file.joints.iter().filter_map(|joint| {
        let servo = joint.servos.first()?;
        // The middle of the range is angle zero, so the nearer limit determines its width.
        let reach_rad = joint.upper_rad.get().min(-joint.lower_rad.get()).max(0.0);
        let half = (servo.ticks(reach_rad) - servo.zero_tick).abs();
        let last = i32::try_from(servo.ticks_per_turn).unwrap_or(i32::MAX) - 1;
        let (min, max) = (servo.zero_tick - half, servo.zero_tick + half);
        // All round from 2048 would be one count more than a turn has.
        let max = if max == last + 1 { last } else { max };
        Some((joint.name.clone(), motor(servo.id, min, max)))
    });
    let held = arm.file.held.iter();
    let held = held.map(|held| (held.name.clone(), motor(held.id, 0, 4095)));
    joints.chain(held).collect()
}
