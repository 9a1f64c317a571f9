//! Estimates the force with which the tip presses, from the loads of a probing arm, and where that force began.
//!
//! Only torques that a push along the sheet's normal makes count, each joint by its lever, and only those of joints that turn as
//! in free air: friction holds a joint that stands either way, and hides a push. In free air their force is noise around a
//! constant; on a sheet it grows with the descent. A line that is flat and then rises, fitted to all readings, begins to rise
//! where the tip touched: a threshold is passed only once the pen has given way. The slope is how far a newton pushes the pen in.
//!
//! A servo that creeps stands still between its counts. So the angles at a touch are those of the path there, with the distance
//! that the joints kept from it in free air over many counts.

use arm::ArmModel;
use base::units::JointVector;
use gate::NormalLoads;

/// Least force that can be a touch.
const FORCE_N: f64 = 0.25;

/// A touch exceeds the noise of free air by this factor.
const NOISE_FACTOR: f64 = 6.0;

/// A force that rises by less in free air drifts: friction and the stiffness of the servos are known that well.
const DRIFT_N: f64 = 0.1;

/// Readings that are averaged, and readings in a row that are beyond the threshold.
const AVERAGED: usize = 20;
const TOUCH_READINGS: usize = 5;

/// Least rise of a touch from one reading to the next: 0.03 N/mm, of a soft pen on soft servos.
const RISE_N: f64 = 0.0005;

/// Last readings that a line is fitted to.
const FITTED: usize = 360;

/// Readings on either side of a beginning that a fit needs.
const FIT_MARGIN: usize = 10;

/// A touch is told once its height is known as well as this by some readings in which the tip pressed, after many of them
/// (1.5 mm), or at a force that is no noise.
const SHARP_MM: f64 = 0.05;
const PRESSED_MIN: usize = 30;
const PRESSED: usize = 75;
const HARD_N: f64 = 2.0;

/// Readings before the touch whose distance from the path tells the joints' angles at it.
const APPROACH: usize = 200;

/// Counts by which a joint has turned once its friction is wound up, and by which one that turns goes on in so many readings.
const TURNED_COUNTS: f64 = 1.5;
const TURNING_READINGS: usize = 100;

/// Counts through which a joint has to turn until its load tells more than where between two counts it stands.
const TELLING_COUNTS: f64 = 2.5;

/// Readings by which the joints that tell may come to turn one after the other.
const LATER: usize = 60;

/// Readings in which a joint may still turn of the motion before.
const SETTLE: usize = 30;

/// Counts by which a creeping servo's reading is ahead of it, give or take as much.
const AHEAD_COUNTS: f64 = 0.25;

/// Counts that a joint's path turns in as many readings, below which it counts as standing.
const STANDING_COUNTS: f64 = 0.5;

/// Least lever of a joint whose load tells a push, as a share of the longest: a short one makes much of its friction.
const LEVER_SHARE: f64 = 0.5;

/// Multiple of a servo's friction that may hold a joint; from one way to the other it is twice that.
const FRICTION_MOST: f64 = 1.2;

/// Readings of a probe at its slowest, for which room is made before it moves.
const READINGS: usize = 1500;

/// One reading of a probing arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForceReading {
    pub(super) loads: NormalLoads,
    pub(super) tip_mm: f64,
    pub(super) path_rad: JointVector,
    pub(super) position_rad: JointVector,
}

/// Where and on what a tip touched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FeltTouch {
    pub(super) position_rad: JointVector,
    /// Force for each millimetre that the tip came down after it had touched.
    pub(super) give_n_per_mm: f64,
}

/// What the loads of a probe say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ForceVerdict {
    /// No joint has turned freely for long enough to tell a touch.
    Unknown,
    Nothing,
    Touch(FeltTouch),
    /// The tip pressed before the joints were known to turn freely.
    Early,
}

/// Force of one probe.
#[derive(Debug)]
pub(super) struct TouchForce {
    joints: Vec<TurningJoint>,
    /// Of all servos of each joint.
    friction_n_m: JointVector,
    readings: Vec<ForceReading>,
    beyond: usize,
    /// Least force beyond that of free air which is no noise.
    least_n: Option<f64>,
}

/// How far a joint follows its path in one direction.
#[derive(Clone, Copy, Debug)]
struct TurningJoint {
    count_rad: f64,
    direction: f64,
    /// Places of path and joint where that began.
    from_rad: [f64; 2],
    /// Index of the reading at which its friction was wound up, and where it was then.
    turned_at: Option<(usize, f64)>,
    at_rad: f64,
}

/// The joints whose loads tell a push, and the reading from which on they do.
#[derive(Clone, Debug)]
struct TellingJoints {
    tells: Vec<bool>,
    from: usize,
}

/// A flat line that begins to rise.
#[derive(Clone, Copy, Debug)]
struct RisingLine {
    /// Index of the value from which it rises.
    began: usize,
    slope: f64,
    /// Sum of the squares that it leaves over, and the number of values.
    error: f64,
    count: usize,
}

impl RisingLine {
    /// Returns the standard deviation of the place at which it begins to rise.
    fn doubt(&self) -> f64 {
        let (count, pressed) = (self.count as f64, (self.count - self.began) as f64);
        2.0 * (self.error / (count * pressed)).sqrt() / self.slope
    }
}

impl TouchForce {
    /// Makes room for what the arm's thread notes while it moves.
    pub(super) fn new(arm: &ArmModel) -> Self {
        let mut joints = vec![TurningJoint::new(std::f64::consts::TAU / 4096.0); arm.dof()];
        for (joint, servo) in arm.servos() {
            if let Some(turning) = joints.get_mut(joint) {
                let ticks = f64::from(servo.ticks_per_turn.max(1));
                *turning = TurningJoint::new(std::f64::consts::TAU / ticks);
            }
        }
        let figures = arm.file.servo.as_ref();
        Self {
            joints,
            friction_n_m: arm
                .servos_per_joint()
                .map(|_, servos| figures.map_or(0.0, |servo| servos * servo.friction_n_m.get())),
            readings: Vec::with_capacity(READINGS),
            beyond: 0,
            least_n: None,
        }
    }

    /// Returns the least force that would be felt; `None` as long as free air is not known.
    pub(super) fn least_n(&self) -> Option<f64> {
        self.least_n
    }

    /// Adds a reading, and judges all of them. A touch comes after `free` readings, which are of free air.
    pub(super) fn update(&mut self, reading: ForceReading, free: usize) -> ForceVerdict {
        let now = self.readings.len();
        let before = self.readings.last().map(|before| before.path_rad);
        self.readings.push(reading);
        let place = reading.path_rad.iter().zip(reading.position_rad.iter());
        for (index, (joint, (path, at))) in self.joints.iter_mut().zip(place).enumerate() {
            let before = before.and_then(|before| before.get(index).copied());
            joint.note(now, path - before.unwrap_or(*path), [*path, *at]);
        }
        let Some(telling) = self.telling_joints(free) else {
            return ForceVerdict::Unknown;
        };
        let forces = self.forces_n(&telling);
        let air = AirForce::new(forces.get(..free).unwrap_or(&forces));
        self.least_n = Some(air.least_n());
        if air.is_pressed() {
            return ForceVerdict::Early;
        }
        let last = forces.get(forces.len() - AVERAGED..).unwrap_or(&forces);
        let is_beyond = forces.len() > free && mean(last) - air.mean_n > air.least_n();
        self.beyond = if is_beyond { self.beyond + 1 } else { 0 };
        // Each time that so many more are beyond, as long as they leave open where the force began.
        if self.beyond == 0 || !self.beyond.is_multiple_of(TOUCH_READINGS) {
            return ForceVerdict::Nothing;
        }
        self.felt(&telling, &forces, free)
            .unwrap_or(ForceVerdict::Nothing)
    }

    /// Returns the joints that turn along their path and have done so for `free` readings, or are held by more than friction;
    /// where there are none any more, all that did.
    fn telling_joints(&self, free: usize) -> Option<TellingJoints> {
        let reading = self.readings.last()?;
        let levers_m = || reading.loads.levers_m.iter().map(|lever| lever.abs());
        let least_m = LEVER_SHARE * levers_m().fold(0.0, f64::max);
        let turned: Vec<Option<usize>> = (self.joints.iter().zip(levers_m()))
            .map(|(joint, lever_m)| joint.turned_at().filter(|_| lever_m >= least_m))
            .collect();
        let since = self.readings.len().checked_sub(free)?;
        // What comes to turn much later would leave little of the free air.
        let soon = turned.iter().flatten().min()? + LATER;
        let free: Vec<bool> = turned
            .iter()
            .map(|turned| turned.is_some_and(|at| at <= since.min(soon)))
            .collect();
        let told = self.joints.iter().zip(&turned).zip(&free).enumerate();
        let turning: Vec<bool> = told
            .map(|(index, ((joint, turned), free))| {
                let is_held = || self.is_held(index, joint);
                (*free && self.turns(index, joint))
                    || (turned.is_some_and(|at| at <= since) && is_held())
            })
            .collect();
        let tells = if turning.contains(&true) {
            turning
        } else {
            free
        };
        let told = self.joints.iter().zip(&tells);
        let from = told
            .filter(|(_, tells)| **tells)
            .filter_map(|(joint, _)| joint.turned_at());
        Some(TellingJoints {
            from: from.max()?,
            tells,
        })
    }

    fn turns(&self, index: usize, joint: &TurningJoint) -> bool {
        let at = |reading: &ForceReading| reading.position_rad.get(index).copied();
        let before = self.readings.len().saturating_sub(TURNING_READINGS);
        let places = self
            .readings
            .last()
            .and_then(at)
            .zip(self.readings.get(before).and_then(at));
        places.is_some_and(|(now, before)| {
            (now - before) * joint.direction > TURNED_COUNTS * joint.count_rad
        })
    }

    /// Returns whether a joint bears more than when it had come to turn, and than friction explains.
    fn is_held(&self, index: usize, joint: &TurningJoint) -> bool {
        let torque = |reading: &ForceReading| reading.loads.torque_n_m.get(index).copied();
        let since = joint.turned_at().unwrap_or(self.readings.len());
        let before: Vec<f64> = (self.readings.iter().skip(since).take(AVERAGED))
            .filter_map(torque)
            .collect();
        let now: Vec<f64> = (self.readings.iter().rev().take(AVERAGED))
            .filter_map(torque)
            .collect();
        let friction_n_m = self.friction_n_m.get(index).copied().unwrap_or(0.0);
        (mean(&now) - mean(&before)).abs() > 2.0 * FRICTION_MOST * friction_n_m
    }

    /// Returns the force by the joints that tell it, at each reading since they do; with an unknown constant.
    fn forces_n(&self, telling: &TellingJoints) -> Vec<f64> {
        let force = |reading: &ForceReading| {
            let NormalLoads {
                levers_m,
                torque_n_m,
            } = &reading.loads;
            let loads = levers_m.iter().zip(torque_n_m.iter());
            let (sum, squares) = loads.zip(&telling.tells).filter(|(_, tells)| **tells).fold(
                (0.0, 0.0),
                |(sum, squares), ((lever, torque), _)| {
                    (sum - lever * torque, squares + lever * lever)
                },
            );
            sum / f64::max(squares, f64::MIN_POSITIVE)
        };
        self.readings.iter().skip(telling.from).map(force).collect()
    }

    /// Returns the verdict on a force beyond the threshold; `None` as long as readings to come will tell better where it began.
    fn felt(&self, telling: &TellingJoints, forces: &[f64], free: usize) -> Option<ForceVerdict> {
        let first = forces.len().saturating_sub(FITTED);
        let line = rising_line(forces.get(first..)?)?;
        let began = first + line.began;
        let (at, pressed) = (telling.from + began, forces.len() - began);
        let height_mm = |index: usize| Some(self.readings.get(index)?.tip_mm);
        let (from_mm, at_mm, to_mm) = (
            height_mm(telling.from)?,
            height_mm(at)?,
            self.readings.last()?.tip_mm,
        );
        let fall_mm = (from_mm - at_mm).max(0.0) / began.max(1) as f64;
        let is_hard = line.slope * pressed as f64 > HARD_N;
        let is_sharp = pressed > PRESSED_MIN && line.doubt() * fall_mm < SHARP_MM;
        if !(is_hard || is_sharp || pressed > PRESSED) {
            return None;
        }
        if began + FIT_MARGIN < free {
            return Some(ForceVerdict::Early);
        }
        Some(ForceVerdict::Touch(FeltTouch {
            position_rad: self.position_rad(telling, at)?,
            give_n_per_mm: line.slope * pressed as f64 / (at_mm - to_mm).max(0.01),
        }))
    }

    /// Returns the joints' angles at a reading, by their mean distance from the path before it.
    fn position_rad(&self, telling: &TellingJoints, at: usize) -> Option<JointVector> {
        let from = telling.from.max(at.saturating_sub(APPROACH));
        let some = self
            .readings
            .get(from..at)
            .filter(|some| !some.is_empty())?;
        let here = self.readings.get(at)?;
        let sum = some
            .iter()
            .fold(here.path_rad.map(|_, _| 0.0), |sum, reading| {
                let off_rad = reading
                    .position_rad
                    .zip(&reading.path_rad, |at, path| at - path);
                sum.zip(&off_rad, |sum, off| sum + off)
            });
        let followed = here
            .path_rad
            .zip(&sum, |path, sum| path + sum / some.len() as f64);
        // A joint that stands is where it stands.
        Some(followed.map(|joint, angle| {
            let turned = self
                .joints
                .get(joint)
                .filter(|turning| turning.turned_at().is_some_and(|turned| turned <= from));
            let stands = here.position_rad.get(joint).copied().unwrap_or(angle);
            turned.map_or(stands, |turning| angle - turning.ahead_rad())
        }))
    }
}

impl TurningJoint {
    fn new(count_rad: f64) -> Self {
        Self {
            count_rad,
            direction: 0.0,
            from_rad: [0.0; 2],
            turned_at: None,
            at_rad: 0.0,
        }
    }

    /// Returns the reading from which it has turned with its path, through some counts.
    fn turned_at(&self) -> Option<usize> {
        let (at, from_rad) = self.turned_at?;
        let turned_rad = (self.at_rad - from_rad) * self.direction;
        (turned_rad > TELLING_COUNTS * self.count_rad).then_some(at)
    }

    /// Returns by how much the readings of a servo that creeps are ahead of it: by nothing if it turns evenly, by half a count if
    /// it stands as soon as its count has changed.
    fn ahead_rad(&self) -> f64 {
        AHEAD_COUNTS * self.count_rad * self.direction
    }

    /// Notes a reading, before which the path has gone on by a step. What it still turns of the motion before is no following.
    fn note(&mut self, index: usize, step_rad: f64, [path_rad, at_rad]: [f64; 2]) {
        let least_rad = STANDING_COUNTS * self.count_rad / TURNING_READINGS as f64;
        let direction = match step_rad.abs() > least_rad {
            true => step_rad.signum(),
            false => 0.0,
        };
        if index < SETTLE || (direction - self.direction).abs() > 0.5 {
            (self.direction, self.turned_at) = (direction, None);
            self.from_rad = [path_rad, at_rad];
        }
        self.at_rad = at_rad;
        let [path_from, from] = self.from_rad;
        let turned_rad = [path_rad - path_from, at_rad - from].map(|rad| rad * self.direction);
        if turned_rad
            .iter()
            .all(|rad| *rad > TURNED_COUNTS * self.count_rad)
        {
            self.turned_at.get_or_insert((index, at_rad));
        }
    }
}

/// Force in free air.
#[derive(Clone, Copy, Debug)]
struct AirForce {
    mean_n: f64,
    /// Scatter of averaged readings.
    noise_n: f64,
    /// By how much it rose from the first third to the last, in which it should not.
    rise_n: f64,
}

impl AirForce {
    fn new(forces: &[f64]) -> Self {
        let third = forces.len() / 3;
        let (first, last) = (forces.get(..third), forces.get(forces.len() - third..));
        let rise_n = last.map_or(0.0, mean) - first.map_or(0.0, mean);
        let means: Vec<f64> = forces.windows(AVERAGED).map(mean).collect();
        let (mean_n, middle) = (mean(&means), (means.len() as f64 - 1.0) / 2.0);
        let slope = rise_n / f64::max((forces.len() - third) as f64, 1.0);
        // What rises steadily is no noise.
        let off = |(index, mean): (usize, &f64)| mean - mean_n - slope * (index as f64 - middle);
        let squares: f64 = means.iter().enumerate().map(|at| off(at).powi(2)).sum();
        Self {
            mean_n,
            noise_n: (squares / f64::max(means.len() as f64, 1.0)).sqrt(),
            rise_n,
        }
    }

    /// Returns whether the tip pressed already.
    fn is_pressed(&self) -> bool {
        self.rise_n > DRIFT_N.max(NOISE_FACTOR / 2.0 * self.noise_n)
    }

    /// Returns the least force beyond its own that is no noise.
    fn least_n(&self) -> f64 {
        FORCE_N.max(NOISE_FACTOR * self.noise_n)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / f64::max(values.len() as f64, 1.0)
}

/// Returns the line of least squares that is flat and rises from one of the values on.
fn rising_line(values: &[f64]) -> Option<RisingLine> {
    let last = values.len().checked_sub(FIT_MARGIN)?;
    let lines = (FIT_MARGIN..last).filter_map(|began| line_from(values, began));
    let rising = lines.filter(|line| line.slope > RISE_N);
    rising.min_by(|a, b| a.error.total_cmp(&b.error))
}

fn line_from(values: &[f64], began: usize) -> Option<RisingLine> {
    let all = values.len() as f64;
    let (mut y, mut h, mut hh, mut hy, mut yy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let rise = index.saturating_sub(began) as f64;
        y += value;
        h += rise;
        hh += rise * rise;
        hy += rise * value;
        yy += value * value;
    }
    let determinant = all * hh - h * h;
    let slope = (determinant > 0.0).then(|| (all * hy - h * y) / determinant)?;
    let flat = (y - slope * h) / all;
    Some(RisingLine {
        began,
        slope,
        error: (yy - flat * y - slope * hy).max(0.0),
        count: values.len(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use scene::SceneLibrary;

    const FREE: usize = 120;
    const STEP_MM: f64 = 0.0196;

    /// Feels with a tip that the first joint moves, by a lever of 250 mm. It comes down from 8 mm, with a force at each height. Returns the first touch, and its height.
    fn feel(force_n: impl Fn(f64) -> f64, noise_n: f64) -> Option<(FeltTouch, f64)> {
        let arm = SceneLibrary::new(None).arm("so101").unwrap();
        let mut force = TouchForce::new(&arm);
        (0..600_u32).find_map(|tick| {
            let tip_mm = 8.0 - STEP_MM * f64::from(tick);
            // A count of a stiff servo's error comes and goes.
            let noise = noise_n * (f64::from(tick * tick % 97) / 48.0 - 1.0);
            let pressed_n = 2.0 + force_n(tip_mm) + noise;
            let at_rad = JointVector::from_slice(&[tip_mm / 250.0]);
            let reading = ForceReading {
                loads: NormalLoads {
                    levers_m: JointVector::from_slice(&[0.25]),
                    torque_n_m: JointVector::from_slice(&[-0.25 * pressed_n]),
                },
                tip_mm,
                path_rad: at_rad,
                position_rad: at_rad,
            };
            match force.update(reading, FREE) {
                ForceVerdict::Touch(touch) => Some((touch, touch.position_rad.first()? * 250.0)),
                _ => None,
            }
        })
    }

    #[test]
    fn no_touch_is_felt_in_air_however_much_a_servo_hunts() {
        for noise_n in [0.0, 0.3, 3.0] {
            assert_eq!(feel(|_| 0.0, noise_n), None);
            // Nor is a force that was there all the time.
            assert_eq!(feel(|_| 4.0, noise_n), None);
        }
    }

    #[test]
    fn a_pen_that_gives_way_is_felt_where_it_touched_and_its_slope_is_told() {
        for (sheet_mm, give) in [(3.0, 0.4), (0.0, 0.4), (-2.0, 2.0), (1.0, 20.0)] {
            for noise_n in [0.0, 0.3] {
                let press = |tip_mm: f64| give * f64::max(0.0, sheet_mm - tip_mm);
                let (touch, at_mm) = feel(press, noise_n).unwrap();
                assert!((at_mm - sheet_mm).abs() < 0.4, "{sheet_mm} {give}: {at_mm}");
                let ratio = touch.give_n_per_mm / give;
                assert!((0.6..1.6).contains(&ratio), "{sheet_mm} {give}: {touch:?}");
            }
        }
    }
}
