//! Feetech STS servos: attach, energise, cycle and release.
//!
//! These servos have no watchdog: when nobody speaks to them they finish their last goal. So the
//! goal is never far ahead, and a speed and an acceleration cap travel with every goal.

use std::time::Duration;

use crate::arm::Arm;
use crate::clock::Clock;
use crate::driver::bus::{Bus, Expect, SLACK_UNKNOWN, Status};
use crate::driver::error::{Ailment, DriverError, ServoName};
use crate::driver::map::{Command, Entry, ServoMap};
use crate::driver::plausible::{Filter, Verdict};
use crate::driver::{Attached, BusCounts, Identity, RETRIES_MAX, Released};
use crate::link::Link;
use crate::units::{Instant, Measured, ServoState};

pub mod codec;
pub mod registers;

mod attach;
mod torque;

use codec::{BROADCAST, Decoder, Instruction, encode, from_sign_magnitude, to_sign_magnitude};
use registers::{Register, present};

/// How often torque is read back while it should be on.
const TORQUE_POLL: Duration = Duration::from_millis(100);

/// The period that is assumed before two cycles have been seen.
const PERIOD_DEFAULT: Duration = Duration::from_millis(10);

/// The servo may accelerate this much harder than the plan: at the plan's own figure its ramps
/// would lag behind the stream of goals.
const ACCELERATION_HEADROOM: f64 = 2.0;

/// Goal, and the caps that travel with it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Goal {
    ticks: i32,
    speed_ticks_s: f64,
}

/// The present state of one servo as it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reading {
    ticks: i32,
    speed_ticks_s: i32,
    load_ratio: f64,
    voltage_v: f64,
    temperature_c: f64,
    error: u8,
}

/// A driver for the servos of one arm.
pub struct Feetech {
    arm: String,
    map: ServoMap,
    ids: Vec<u8>,
    bus: Bus<Decoder>,
    filters: Vec<Filter>,
    found_ticks: Vec<i32>,
    goals: Option<Vec<Goal>>,
    torque: Vec<Option<bool>>,
    torque_read: Instant,
    torque_doubted: Vec<bool>,
    suspected: Vec<Option<Ailment>>,
    strange: Option<(usize, i32)>,
    voltage_limits_v: Vec<(f64, f64)>,
    period: Duration,
    begun: Option<Instant>,
}

impl Feetech {
    /// A driver that has not spoken yet.
    #[must_use]
    pub fn new(arm: &Arm, clock: &Clock) -> Self {
        let map = ServoMap::new(arm);
        let count = map.entries.len();
        Self {
            arm: arm.file.name.clone(),
            ids: map.ids(),
            bus: Bus::new(Decoder::default(), clock, arm.file.baud, map.counts()),
            filters: vec![Filter::default(); count],
            found_ticks: Vec::new(),
            goals: None,
            torque: vec![None; count],
            torque_read: Instant::ZERO,
            torque_doubted: vec![false; count],
            suspected: vec![None; count],
            strange: None,
            voltage_limits_v: vec![(0.0, f64::INFINITY); count],
            period: PERIOD_DEFAULT,
            begun: None,
            map,
        }
    }

    pub(crate) fn counts(&self) -> &BusCounts {
        &self.bus.counts
    }

    pub(crate) fn is_energised(&self) -> bool {
        self.goals.is_some()
    }

    pub(crate) async fn cycle(
        &mut self,
        link: &mut dyn Link,
        command: Option<&Command>,
        deadline: Instant,
    ) -> Result<Measured, DriverError> {
        if let Some(command) = command {
            self.aim(command)?;
        }
        self.count_period();
        let frame = self.goal_frame();
        let readings = self.read_present(link, frame, deadline).await?;
        if self.torque_is_due(deadline) {
            self.read_torque(link, deadline).await?;
        }
        let measured = self.measure(&readings);
        let found = self.find_ailment(&readings, &measured);
        if let Err(DriverError::Device {
            ailment: Ailment::TorqueLost,
            ..
        }) = found
        {
            // A goal would make the servo stiff again and pull it back: none until it is
            // energised anew, where it stands by then. The others hold without being told.
            self.goals = None;
        }
        found.map(|()| measured)
    }

    fn count_period(&mut self) {
        let now = self.bus.clock.now();
        if let Some(before) = self.begun.replace(now) {
            // One late cycle must not widen what is believed for long.
            self.period = now
                .since(before)
                .clamp(PERIOD_DEFAULT / 10, 5 * PERIOD_DEFAULT);
        }
        self.bus.counts.cycles += 1;
    }

    fn aim(&mut self, command: &Command) -> Result<(), DriverError> {
        let goals = self.goals.as_mut().ok_or(DriverError::Limp)?;
        let wanted = self.map.goals(command, &self.found_ticks)?;
        for (goal, wanted) in goals.iter_mut().zip(wanted) {
            if let Some((ticks, speed_ticks_s)) = wanted {
                *goal = Goal {
                    ticks,
                    speed_ticks_s,
                };
            }
        }
        Ok(())
    }

    /// One frame with the goal of every servo; empty while there are none.
    fn goal_frame(&self) -> Vec<u8> {
        let Some(goals) = &self.goals else {
            return Vec::new();
        };
        let blocks = self.map.entries.iter().zip(goals);
        sync_write(
            registers::GOAL,
            blocks.map(|(entry, goal)| (entry.name.id, goal_block(entry, *goal))),
        )
    }

    /// Reads the present state of every servo; `first` goes out in front of the first request.
    async fn read_present(
        &mut self,
        link: &mut dyn Link,
        first: Vec<u8>,
        deadline: Instant,
    ) -> Result<Vec<Reading>, DriverError> {
        let mut readings = vec![None; self.ids.len()];
        let mut frame = first;
        let mut tries = 0;
        while tries <= RETRIES_MAX && (tries == 0 || self.bus.clock.now() < deadline) {
            let missing = places(&readings);
            self.count_retries(&missing, tries);
            tries += 1;
            let until = deadline;
            let replies = self
                .sync_read(
                    link,
                    std::mem::take(&mut frame),
                    registers::PRESENT,
                    &missing,
                    until,
                )
                .await?;
            self.accept(&missing, &replies, &mut readings)?;
            if readings.iter().all(Option::is_some) {
                break;
            }
        }
        self.complete(readings, tries)
    }

    fn count_retries(&mut self, missing: &[usize], tries: u32) {
        for place in missing.iter().filter(|_| tries > 0) {
            if let Some(counts) = self.bus.counts.servos.get_mut(*place) {
                counts.retries += 1;
            }
        }
    }

    /// Takes the replies that can be true.
    fn accept(
        &mut self,
        asked: &[usize],
        replies: &[Option<Status>],
        readings: &mut [Option<Reading>],
    ) -> Result<(), DriverError> {
        for (place, reply) in asked.iter().zip(replies) {
            let Some(reading) = reply.as_ref().map(reading) else {
                continue;
            };
            if self.believes(*place, &reading)?
                && self.is_confirmed(*place, &reading)
                && let Some(slot) = readings.get_mut(*place)
            {
                *slot = Some(reading);
            }
        }
        Ok(())
    }

    /// An ailment must be reported twice in a row: a damaged reply could claim one.
    fn is_confirmed(&mut self, place: usize, reading: &Reading) -> bool {
        let ailment = self.complaint(place, reading);
        let Some(suspected) = self.suspected.get_mut(place) else {
            return false;
        };
        let before = std::mem::replace(suspected, ailment);
        ailment.is_none() || before == ailment
    }

    fn believes(&mut self, place: usize, reading: &Reading) -> Result<bool, DriverError> {
        let now = self.bus.clock.now();
        let Some((filter, entry)) = self.filters.get_mut(place).zip(self.map.entries.get(place))
        else {
            return Ok(false);
        };
        let verdict = filter.judge(reading.ticks, now, entry.velocity_max_ticks_s, self.period);
        if !registers::POSITIONS.contains(&reading.ticks) {
            self.strange = Some((place, reading.ticks));
        } else if verdict == Verdict::Believed {
            return Ok(true);
        }
        if let Some(counts) = self.bus.counts.servos.get_mut(place) {
            counts.jumps += 1;
        }
        match verdict {
            Verdict::Jumped {
                from_ticks,
                bound_ticks,
            } if self.goals.is_some() => Err(DriverError::Jump {
                servo: self.map.name(place),
                from_ticks,
                to_ticks: reading.ticks,
                bound_ticks,
            }),
            // Nobody drives it: a person may turn it by hand as fast as they like.
            Verdict::Jumped { .. } => {
                filter.believe(reading.ticks, now);
                Ok(registers::POSITIONS.contains(&reading.ticks))
            }
            Verdict::Believed | Verdict::Doubted => Ok(false),
        }
    }

    fn complete(
        &mut self,
        readings: Vec<Option<Reading>>,
        tries: u32,
    ) -> Result<Vec<Reading>, DriverError> {
        let missing = places(&readings);
        let strange = self.strange.take();
        for place in &missing {
            if let Some(counts) = self.bus.counts.servos.get_mut(*place) {
                counts.blind += 1;
            }
        }
        match missing.first() {
            None => Ok(readings.into_iter().flatten().collect()),
            Some(first) if strange.is_some_and(|(place, _)| place == *first) => {
                let ticks = strange.map_or(0, |(_, ticks)| ticks);
                Err(out_of_turn(self.map.name(*first), ticks))
            }
            Some(_) if missing.len() == readings.len() => Err(DriverError::SilentBus {
                servos: missing.len(),
                baud: self.bus.baud,
            }),
            Some(first) => Err(DriverError::NoReply {
                servo: self.map.name(*first),
                tries,
            }),
        }
    }

    fn measure(&self, readings: &[Reading]) -> Measured {
        let ticks = |place: usize| readings.get(place).map_or(0, |r| r.ticks);
        let speed = |place: usize| readings.get(place).map_or(0, |r| r.speed_ticks_s);
        let servos = self.ids.iter().zip(readings).zip(&self.torque);
        Measured {
            at: self.bus.clock.now(),
            position_rad: self
                .map
                .joints(|place, servo| servo.angle_rad(ticks(place))),
            velocity_rad_s: self.map.joints(|place, servo| {
                f64::from(servo.sign) * f64::from(speed(place))
                    / crate::driver::map::ticks_a_radian(servo)
            }),
            servos: servos
                .map(|((id, reading), torque_on)| state(*id, reading, *torque_on))
                .collect(),
        }
    }

    fn find_ailment(&self, readings: &[Reading], measured: &Measured) -> Result<(), DriverError> {
        for (place, reading) in readings.iter().enumerate() {
            if let Some(ailment) = self.ailment(place, reading) {
                return Err(DriverError::Device {
                    servo: self.map.name(place),
                    ailment,
                    measured: Some(Box::new(measured.clone())),
                });
            }
        }
        Ok(())
    }

    fn ailment(&self, place: usize, reading: &Reading) -> Option<Ailment> {
        let lost = self.goals.is_some() && self.torque.get(place) == Some(&Some(false));
        self.complaint(place, reading)
            .or(lost.then_some(Ailment::TorqueLost))
    }

    /// What a reading by itself complains of.
    fn complaint(&self, place: usize, reading: &Reading) -> Option<Ailment> {
        let (least_v, most_v) = *self.voltage_limits_v.get(place)?;
        let voltage = reading.voltage_v < least_v || reading.voltage_v > most_v;
        by_bits(reading.error).or(voltage.then_some(Ailment::Voltage))
    }

    /// Asks the servos at `places` for a register; `first` goes out in front of the request.
    async fn sync_read(
        &mut self,
        link: &mut dyn Link,
        first: Vec<u8>,
        register: Register,
        places: &[usize],
        until: Instant,
    ) -> Result<Vec<Option<Status>>, DriverError> {
        let ids: Vec<u8> = places
            .iter()
            .filter_map(|place| self.ids.get(*place).copied())
            .collect();
        let mut request = first;
        let mut parameters = vec![register.address, register.length];
        parameters.extend(&ids);
        encode(&mut request, BROADCAST, Instruction::SyncRead, &parameters);
        let expect = Expect {
            ids: &ids,
            parameters: usize::from(register.length),
            until,
        };
        self.bus.ask(link, &request, expect).await
    }
}

fn out_of_turn(servo: ServoName, ticks: i32) -> DriverError {
    DriverError::Setup {
        servo,
        what: format!(
            "it reports position {ticks}, outside 0 to 4095: it counts beyond one turn or its homing offset is wrong; calibrate it again"
        ),
    }
}

fn places<T>(readings: &[Option<T>]) -> Vec<usize> {
    let missing = readings
        .iter()
        .enumerate()
        .filter(|(_, reading)| reading.is_none());
    missing.map(|(place, _)| place).collect()
}

fn sync_write<const N: usize>(
    register: Register,
    blocks: impl Iterator<Item = (u8, [u8; N])>,
) -> Vec<u8> {
    let mut parameters = vec![register.address, register.length];
    for (id, block) in blocks {
        parameters.push(id);
        parameters.extend(block);
    }
    let mut frame = Vec::with_capacity(parameters.len() + 8);
    encode(&mut frame, BROADCAST, Instruction::SyncWrite, &parameters);
    frame
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both numbers are clamped to their register's range first"
)]
fn goal_block(entry: &Entry, goal: Goal) -> [u8; 7] {
    let steps = ACCELERATION_HEADROOM * entry.acceleration_max_ticks_s2
        / registers::ACCELERATION_STEP_TICKS_S2;
    // 0 would mean "without limit" in both registers.
    let acceleration = steps
        .ceil()
        .clamp(1.0, f64::from(registers::ACCELERATION_MAX)) as u8;
    let speed = goal
        .speed_ticks_s
        .ceil()
        .clamp(1.0, f64::from(registers::SPEED_MAX)) as u16;
    let [goal_low, goal_high] = to_sign_magnitude(goal.ticks, 15).to_le_bytes();
    let [speed_low, speed_high] = speed.to_le_bytes();
    [
        acceleration,
        goal_low,
        goal_high,
        0,
        0,
        speed_low,
        speed_high,
    ]
}

fn reading(status: &Status) -> Reading {
    Reading {
        ticks: from_sign_magnitude(status.word(present::POSITION), 15),
        speed_ticks_s: from_sign_magnitude(status.word(present::SPEED), 15),
        load_ratio: f64::from(from_sign_magnitude(status.word(present::LOAD), 10)) / 1000.0,
        voltage_v: f64::from(status.byte(present::VOLTAGE)) / 10.0,
        temperature_c: f64::from(status.byte(present::TEMPERATURE)),
        error: status.error,
    }
}

fn state(id: u8, reading: &Reading, torque_on: Option<bool>) -> ServoState {
    ServoState {
        id,
        position_ticks: Some(reading.ticks),
        voltage_v: Some(reading.voltage_v),
        temperature_c: Some(reading.temperature_c),
        load_ratio: Some(reading.load_ratio),
        error_bits: Some(reading.error),
        torque_on,
    }
}

/// The gravest of a servo's error bits.
fn by_bits(error: u8) -> Option<Ailment> {
    [
        (32, Ailment::Overload),
        (4, Ailment::Heat),
        (8, Ailment::Current),
        (2, Ailment::Encoder),
        (1, Ailment::Voltage),
    ]
    .into_iter()
    .find_map(|(bit, ailment)| (error & bit != 0).then_some(ailment))
}
