//! Servos of one family on one bus: attach, energise, cycle and release.
//!
//! A servo without a watchdog finishes its last goal when the bus falls silent. So the goal is never
//! far ahead, and a speed and an acceleration cap travel with every goal.

#![expect(
    clippy::indexing_slicing,
    reason = "every place is one of the arm's servos, and every list has one entry a servo"
)]

use crate::servo_map::ServoEntry;
use std::marker::PhantomData;
use std::time::Duration;

use crate::dead_band_lead::{DeadBandLead, ServoAim};
use crate::error::{DriverError, ServoFault, ServoName};
use crate::position_filter::{JUMPS_MAX, PositionFilter, ReadingVerdict};
use crate::servo_map::{JointCommand, ServoMap, ticks_a_radian};
use crate::{AttachReport, BusCounts, BusError, ServoIdentity, TorqueOffReport};
use arm::{ArmFile, ArmModel};
use base::clock::NodeClock;
use base::units::{ArmMeasurement, ClockInstant, JointVector, ServoState};
use gate::TorqueLimit;
use link::ByteLink;
use servo::SetupFault;
use servo::bus::{SLACK_UNKNOWN, ServoBus, StatusReply};
use servo::dialect::{Dialect, ServoGoal, ServoReading, ServoRegister, ServoRequest, SlowReadings};
use servo::{MotionAuthority, RETRIES_MAX};

mod attach;
mod torque;

/// Interval at which every slow reading is taken.
const STATES_EVERY: Duration = Duration::from_millis(100);

/// The period that is assumed before two cycles have been seen.
const PERIOD_DEFAULT: Duration = Duration::from_millis(10);

/// Cycles in which new caps go out with the goals, and the share of those after.
const CAPS_NEW: u64 = 3;
const CAPS_EVERY: u64 = 50;

/// A transaction outside a cycle ends by its own patience.
const PATIENT: ClockInstant = ClockInstant::from_nanos(u64::MAX);

/// Further tries that all questions of a motion's beginning have together, where those of a cycle
/// were not answered: nothing moves yet, and a machine that is busy passes bytes on late.
const BEGIN_TRIES: u32 = 8;

/// Time beyond that of a cycle for which each of those is waited for.
const BEGIN_WAIT: Duration = Duration::from_millis(10);

/// A driver for the servos of one arm.
pub(crate) struct ServoDriver<D: Dialect> {
    arm: ArmFile,
    map: ServoMap,
    ids: Vec<u8>,
    bus: ServoBus,
    /// Authority of this driver to write goals and switch torque on: its commands take setpoints alone.
    authority: MotionAuthority,
    filters: Vec<PositionFilter>,
    found_ticks: Vec<i32>,
    /// Last goals of the joints, and the direction of travel.
    aimed_rad: Option<JointVector>,
    travel: JointVector,
    leads: Vec<DeadBandLead>,
    goals: Option<Vec<ServoGoal>>,
    known: Vec<SlowReadings>,
    /// Torque limit of each servo for [`TorqueLimit::Work`] and for [`TorqueLimit::ZerosTouch`], and the one
    /// that was written and read back last.
    torque_limits: Vec<[i32; 2]>,
    torque_limit: Option<TorqueLimit>,
    /// Last reported fault of each servo, and the fault that was established.
    suspected: Vec<Option<ServoFault>>,
    doubted: Vec<Option<ServoFault>>,
    ailing: Vec<Option<ServoFault>>,
    /// Number of consecutive readings of each servo that lie beyond one turn.
    strange: Vec<u32>,
    state_next: usize,
    state_read: ClockInstant,
    /// `true` if the last request of that kind had no reply.
    state_missed: bool,
    period: Duration,
    begun: Option<ClockInstant>,
    /// Processor time of this thread when the cycle began.
    worked: Duration,
    fast: bool,
    /// The speed caps that went out last, and in how many cycles since.
    capped: Vec<f64>,
    capped_cycles: u64,
    /// Of [`BEGIN_TRIES`], those that are left; none outside a motion's beginning.
    begin_tries: u32,
    dialect: PhantomData<fn() -> D>,
}

impl<D: Dialect> ServoDriver<D> {
    pub(crate) fn new(arm: &ArmModel, clock: &NodeClock) -> Self {
        let map = ServoMap::new(arm);
        let count = map.entries.len();
        Self {
            arm: arm.file.clone(),
            ids: map.ids(),
            bus: ServoBus::new(
                Box::new(D::Framing::default()),
                clock,
                arm.file.baud,
                map.counts(),
            ),
            authority: MotionAuthority::claim(),
            filters: vec![PositionFilter::default(); count],
            found_ticks: Vec::new(),
            aimed_rad: None,
            travel: JointVector::zeros(arm.dof()),
            leads: vec![DeadBandLead::default(); count],
            goals: None,
            known: vec![SlowReadings::default(); count],
            torque_limits: Vec::new(),
            torque_limit: None,
            suspected: vec![None; count],
            doubted: vec![None; count],
            ailing: vec![None; count],
            strange: vec![0; count],
            state_next: 0,
            state_read: ClockInstant::ZERO,
            state_missed: false,
            period: PERIOD_DEFAULT,
            begun: None,
            worked: Duration::ZERO,
            fast: false,
            capped: Vec::new(),
            capped_cycles: 0,
            begin_tries: 0,
            dialect: PhantomData,
            map,
        }
    }

    pub(crate) fn counts(&self) -> &BusCounts {
        &self.bus.counts
    }

    /// Returns whether the servos are energised. If any servo has lost its torque, the arm must be
    /// energised again.
    pub(crate) fn is_energised(&self) -> bool {
        self.goals.is_some() && self.ailing.iter().all(Option::is_none)
    }

    pub(crate) async fn cycle(
        &mut self,
        link: &mut dyn ByteLink,
        command: Option<&JointCommand>,
        deadline: ClockInstant,
    ) -> Result<ArmMeasurement, DriverError> {
        match command {
            Some(command) => self.aim(command)?,
            None => self.leads.iter_mut().for_each(DeadBandLead::hold),
        }
        self.count_period();
        let frame = self.goal_frame()?;
        let readings = self.read_present(link, frame, deadline).await?;
        let unnamed = self.has_unnamed_fault(&readings);
        if unnamed {
            // The first of the slow readings says what it is.
            self.state_next = 0;
        }
        if unnamed || self.state_is_due(deadline) {
            self.read_state(link, deadline).await?;
        }
        let measured = self.measure(&readings);
        self.count_time();
        let found = self.find_ailment(&readings, &measured);
        if let Err(DriverError::Device {
            ailment: ServoFault::TorqueLost,
            ..
        }) = found
        {
            // A goal would make the servo stiff again and pull it back: none until it is
            // energised anew, where it stands by then. The others hold without being told.
            self.goals = None;
        }
        found.map(|()| measured)
    }

    pub(crate) fn has_goals(&self) -> bool {
        self.goals.is_some()
    }

    fn count_time(&mut self) {
        if let Some(begun) = self.begun {
            let took = self.bus.clock.now().since(begun);
            let worked = self.bus.clock.thread_cpu_time().saturating_sub(self.worked);
            self.bus.counts.cycle_time.note(took);
            self.bus.counts.cycle_work.note(worked);
        }
    }

    fn count_period(&mut self) {
        let now = self.bus.clock.now();
        self.worked = self.bus.clock.thread_cpu_time();
        if let Some(before) = self.begun.replace(now) {
            // One late cycle must not widen what is believed for long.
            self.period = now
                .since(before)
                .clamp(PERIOD_DEFAULT / 10, 5 * PERIOD_DEFAULT);
        }
        self.bus.counts.cycles += 1;
    }

    fn aim(&mut self, command: &JointCommand) -> Result<(), DriverError> {
        let period_s = self.whole_period_s();
        if self.goals.is_none() {
            return Err(DriverError::Limp);
        }
        let wanted = self.map.goals(command, &self.found_ticks)?;
        self.note_travel(&command.goal_rad);
        let goals = self.goals.as_mut().ok_or(DriverError::Limp)?;
        let entries = self.map.entries.iter().zip(&mut self.leads);
        for ((goal, wanted), (entry, lead)) in goals.iter_mut().zip(wanted).zip(entries) {
            if let Some((exact, speed_ticks_s)) = wanted {
                let aim = ServoAim {
                    exact,
                    wanted: entry.lead_ticks(&self.travel),
                    last: goal.ticks,
                    period_s,
                };
                *goal = ServoGoal {
                    ticks: lead.goal(entry, &aim),
                    speed_ticks_s,
                };
            }
        }
        Ok(())
    }

    /// A cycle as it was meant to be: one that came a little early or late is no other.
    fn whole_period_s(&self) -> f64 {
        let period_s = PERIOD_DEFAULT.as_secs_f64();
        (self.period.as_secs_f64() / period_s).round().max(1.0) * period_s
    }

    /// Notes which way each joint is being sent; one that is not sent anywhere keeps its direction.
    fn note_travel(&mut self, goal_rad: &JointVector) {
        let Some(before) = self.aimed_rad.replace(*goal_rad) else {
            return;
        };
        let step = goal_rad.zip(&before, |now, then| now - then);
        self.travel = self.travel.zip(&step, |kept, step| {
            if step.abs() > TRAVEL_RAD {
                step.signum()
            } else {
                kept
            }
        });
    }

    /// Returns one frame with the goal of every servo; empty without goals. Caps that servos keep
    /// travel with it while they are new, and now and then: they are not acknowledged.
    fn goal_frame(&mut self) -> Result<Vec<u8>, DriverError> {
        let Some(goals) = self.goals.take() else {
            return Ok(Vec::new());
        };
        let caps = goals.iter().map(|goal| goal.speed_ticks_s);
        let known = self.capped.iter().copied().eq(caps.clone());
        if !known {
            self.capped = caps.collect();
            self.capped_cycles = 0;
        }
        let turn = self.capped_cycles;
        self.capped_cycles += 1;
        let known = turn >= CAPS_NEW && !turn.is_multiple_of(CAPS_EVERY);
        let register = match D::GOAL_ALONE {
            Some(alone) if known => alone,
            _ => D::GOAL,
        };
        let frame = self.goals_frame(&goals, register);
        self.goals = Some(goals);
        frame
    }

    /// The goals in a register that is [`Dialect::GOAL`] or its end.
    fn goals_frame(
        &self,
        goals: &[ServoGoal],
        register: ServoRegister,
    ) -> Result<Vec<u8>, DriverError> {
        let skip = usize::from(D::GOAL.length - register.length);
        let blocks = self.map.entries.iter().zip(goals);
        let blocks: Result<Vec<_>, DriverError> = blocks
            .map(|(entry, goal)| {
                let block = Self::goal_block(entry, *goal)?.split_off(skip);
                Ok((entry.name.id, block))
            })
            .collect();
        let mut frame = Vec::new();
        let goals = ServoRequest::MotionWrite(register, &blocks?, &self.authority);
        D::encode(&mut frame, goals);
        Ok(frame)
    }

    /// Returns the bytes of one servo's goal and the caps beside it.
    fn goal_block(entry: &ServoEntry, goal: ServoGoal) -> Result<Vec<u8>, DriverError> {
        D::goal_block(entry.acceleration_max_ticks_s2, goal).map_err(|refused| DriverError::Unfit {
            servo: entry.name.clone(),
            refused,
        })
    }

    /// Reads the present state of every servo; `first` goes out in front of the first request.
    async fn read_present(
        &mut self,
        link: &mut dyn ByteLink,
        first: Vec<u8>,
        deadline: ClockInstant,
    ) -> Result<Vec<ServoReading>, DriverError> {
        let mut readings = vec![None; self.ids.len()];
        let mut frame = first;
        let mut tries = 0;
        while self.asks_again(tries, deadline) {
            let missing = places(&readings);
            self.count_retries(&missing, tries);
            let fast = self.fast && tries == 0;
            tries += 1;
            let first = std::mem::take(&mut frame);
            let asked = (missing.as_slice(), fast);
            let replies = self
                .sync_read(link, first, D::PRESENT, asked, deadline)
                .await?;
            self.accept(&missing, &replies, &mut readings)?;
            if readings.iter().all(Option::is_some) {
                break;
            }
        }
        self.complete(readings, tries)
    }

    /// Returns whether a question that was asked so often is asked again: as often as in a cycle, and at a motion's
    /// beginning beyond that, while tries are left.
    fn asks_again(&mut self, tries: u32, deadline: ClockInstant) -> bool {
        let in_time = tries == 0 || self.bus.clock.now() < deadline;
        self.bus.longer = Duration::ZERO;
        if tries <= RETRIES_MAX && in_time {
            return true;
        }
        let Some(left) = self.begin_tries.checked_sub(1).filter(|_| in_time) else {
            return false;
        };
        self.begin_tries = left;
        self.bus.longer = BEGIN_WAIT;
        true
    }

    fn count_retries(&mut self, missing: &[usize], tries: u32) {
        for place in missing.iter().filter(|_| tries > 0) {
            self.bus.counts.servos[*place].retries += 1;
            self.bus.counts.resent += 1;
        }
    }

    /// Takes the replies that can be true.
    fn accept(
        &mut self,
        asked: &[usize],
        replies: &[Option<StatusReply>],
        readings: &mut [Option<ServoReading>],
    ) -> Result<(), DriverError> {
        for (place, reply) in asked.iter().zip(replies) {
            let Some(reading) = reply.as_ref().map(D::parse_reading) else {
                continue;
            };
            if self.believes(*place, &reading)? && self.is_confirmed(*place, &reading) {
                readings[*place] = Some(reading);
            }
        }
        Ok(())
    }

    /// An ailment must be reported twice in a row: a damaged reply could claim one.
    fn is_confirmed(&mut self, place: usize, reading: &ServoReading) -> bool {
        let ailment = self.reading_fault(place, reading);
        let before = std::mem::replace(&mut self.suspected[place], ailment);
        ailment.is_none() || before == ailment
    }

    fn believes(&mut self, place: usize, reading: &ServoReading) -> Result<bool, DriverError> {
        let now = self.bus.clock.now();
        if !D::POSITIONS.contains(&reading.ticks) {
            return self.finds_strange(place, reading.ticks);
        }
        self.strange[place] = 0;
        let filter = &mut self.filters[place];
        let most_ticks_s = self.map.entries[place].velocity_max_ticks_s;
        let verdict = filter.judge(reading.ticks, now, most_ticks_s, self.period);
        if verdict == ReadingVerdict::Believed {
            return Ok(true);
        }
        self.bus.counts.servos[place].jumps += 1;
        match verdict {
            ReadingVerdict::Jumped {
                from_ticks,
                bound_ticks,
            } if self.goals.is_some() => Err(DriverError::Jump {
                servo: self.map.name(place),
                from_ticks,
                to_ticks: reading.ticks,
                bound_ticks,
            }),
            // Nobody drives it: a person may turn it by hand as fast as they like.
            ReadingVerdict::Jumped { .. } => {
                filter.accept(reading.ticks, now);
                Ok(true)
            }
            ReadingVerdict::Believed | ReadingVerdict::Doubted => Ok(false),
        }
    }

    /// A position beyond one turn is never believed; a damaged reply can claim one, but not time
    /// after time.
    fn finds_strange(&mut self, place: usize, ticks: i32) -> Result<bool, DriverError> {
        self.bus.counts.servos[place].jumps += 1;
        let strange = &mut self.strange[place];
        *strange += 1;
        if *strange < JUMPS_MAX {
            return Ok(false);
        }
        *strange = 0;
        Err(out_of_turn(self.map.name(place), ticks))
    }

    fn complete(
        &mut self,
        readings: Vec<Option<ServoReading>>,
        tries: u32,
    ) -> Result<Vec<ServoReading>, DriverError> {
        let missing = places(&readings);
        for place in &missing {
            let counts = &mut self.bus.counts.servos[*place];
            counts.blind += 1;
            counts.blind_time += self.period;
        }
        self.check_missing(&missing, tries)?;
        Ok(readings.into_iter().flatten().collect())
    }

    fn measure(&self, readings: &[ServoReading]) -> ArmMeasurement {
        let servos = self.ids.iter().zip(readings).zip(&self.known);
        ArmMeasurement {
            at: self.bus.clock.now(),
            position_rad: self
                .map
                .joints(|place, servo| servo.angle_rad(readings[place].ticks)),
            velocity_rad_s: self.map.joints(|place, servo| {
                f64::from(servo.sign) * readings[place].speed_ticks_s / ticks_a_radian(servo)
            }),
            servos: servos
                .map(|((id, reading), known)| state(*id, reading, known))
                .collect(),
        }
    }

    fn find_ailment(
        &self,
        readings: &[ServoReading],
        measured: &ArmMeasurement,
    ) -> Result<(), DriverError> {
        for (place, reading) in readings.iter().enumerate() {
            if let Some(ailment) = self.servo_fault(place, reading) {
                return Err(DriverError::Device {
                    servo: self.map.name(place),
                    ailment,
                    measured: Some(Box::new(measured.clone())),
                });
            }
        }
        Ok(())
    }

    /// Returns whether a servo reports that a fault is latched without naming it.
    fn has_unnamed_fault(&self, readings: &[ServoReading]) -> bool {
        let mut all = readings.iter().enumerate();
        all.any(|(place, reading)| self.reading_fault(place, reading) == Some(ServoFault::Hardware))
    }

    fn servo_fault(&self, place: usize, reading: &ServoReading) -> Option<ServoFault> {
        let ailing = self.ailing[place];
        self.reading_fault(place, reading)
            .or(ailing.filter(|_| self.goals.is_some()))
    }

    /// Returns the fault that a reading reports by itself.
    fn reading_fault(&self, place: usize, reading: &ServoReading) -> Option<ServoFault> {
        let known = &self.known[place];
        let (least_v, most_v) = known.voltage_limits_v;
        let volts = reading.voltage_v.or(known.voltage_v);
        let voltage = volts.is_some_and(|volts| volts < least_v || volts > most_v);
        D::reported_fault(reading.error, known).or(voltage.then_some(ServoFault::Voltage))
    }

    /// Asks the servos at `places` for a register, which answer in one packet if it is `fast`; `first`
    /// goes out in front of the request.
    async fn sync_read(
        &mut self,
        link: &mut dyn ByteLink,
        first: Vec<u8>,
        register: ServoRegister,
        (places, fast): (&[usize], bool),
        until: ClockInstant,
    ) -> Result<Vec<Option<StatusReply>>, DriverError> {
        let ids: Vec<u8> = places.iter().map(|place| self.ids[*place]).collect();
        let request = if fast {
            ServoRequest::FastSyncRead(register, &ids)
        } else {
            ServoRequest::SyncRead(register, &ids)
        };
        Ok(self.bus.request::<D>(link, first, request, until).await?)
    }

    fn all_places(&self) -> Vec<usize> {
        (0..self.ids.len()).collect()
    }

    /// Refuses that servos are missing after so many tries.
    fn check_missing(&self, missing: &[usize], tries: u32) -> Result<(), DriverError> {
        match missing {
            [] => Ok(()),
            all if all.len() == self.ids.len() => Err(DriverError::SilentBus {
                servos: self.ids.len(),
                baud: self.bus.baud,
            }),
            [first, ..] => Err(DriverError::NoReply {
                servo: self.map.name(*first),
                tries,
            }),
        }
    }
}

/// Smaller steps of a goal have no direction.
const TRAVEL_RAD: f64 = 1e-7;

fn out_of_turn(servo: ServoName, ticks: i32) -> DriverError {
    DriverError::Setup {
        servo,
        fault: SetupFault::BeyondTurn(ticks),
    }
}

fn places<T>(readings: &[Option<T>]) -> Vec<usize> {
    let missing = readings
        .iter()
        .enumerate()
        .filter(|(_, reading)| reading.is_none());
    missing.map(|(place, _)| place).collect()
}

fn state(id: u8, reading: &ServoReading, known: &SlowReadings) -> ServoState {
    ServoState {
        id,
        position_ticks: Some(reading.ticks),
        voltage_v: reading.voltage_v.or(known.voltage_v),
        temperature_c: reading.temperature_c.or(known.temperature_c),
        load_ratio: Some(reading.load_ratio),
        error_bits: Some(reading.error | known.hardware_error),
        torque_on: known.torque_on,
    }
}
