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
use crate::servo_map::{JointCommand, ServoMap, ticks_per_radian};
use crate::{AttachReport, BusCounts, BusError, SentGoals, ServoIdentity, TorqueOffReport};
use arm::ArmModel;
use base::clock::NodeClock;
use base::units::{ArmMeasurement, ClockInstant, Finite, JointVector, ServoState};
use gate::TorqueLimit;
use link::ByteLink;
use servo::SetupFault;
use servo::bus::{SLACK_UNKNOWN, ServoBus, StatusReply};
use servo::dialect::{Dialect, ServoGoal, ServoReading, ServoRegister, ServoRequest, SlowReadings};
use servo::supply::{OddSupply, SHARE_UNDER_LOAD, ServoSupply, odd_supplies};
use servo::{MotionAuthority, RETRIES_MAX};

mod attach;
mod torque;

/// Interval at which every slow reading is taken.
const STATES_EVERY: Duration = Duration::from_millis(100);

/// The period that is assumed before two cycles have been seen.
const PERIOD_DEFAULT: Duration = Duration::from_millis(10);

/// Number of cycles in which new caps go out with the goals, and the interval of cycles after that.
const CAPS_NEW_CYCLES: u64 = 3;
const CAPS_EVERY_CYCLES: u64 = 50;

/// Number of cycles without a new goal in which the last one is sent again, because goals are not
/// acknowledged. After that a servo holds it by itself: a goal would energise one that has restarted.
const GOAL_REPEATS: u32 = 5;

/// Longest time between two cycles in which no servo restarts unseen: the thread did not run, or the machine was paused.
const UNWATCHED_MAX: Duration = Duration::from_millis(100);

/// Deadline of a transaction outside a cycle, which ends by its own timeout.
const NO_DEADLINE: ClockInstant = ClockInstant::from_nanos(u64::MAX);

/// Additional tries that all requests at a motion's beginning share, beyond those of a cycle: nothing
/// moves yet, and a busy machine passes bytes on late.
const BEGIN_TRIES: u32 = 8;

/// Additional time to wait for the reply to each of those, beyond that of a cycle.
const BEGIN_WAIT: Duration = Duration::from_millis(10);

/// A driver for the servos of one arm.
pub(crate) struct ServoDriver<D: Dialect> {
    arm: ArmModel,
    map: ServoMap,
    ids: Vec<u8>,
    bus: ServoBus,
    /// Authority of this driver to write goals and switch torque on: its commands take only setpoints.
    authority: MotionAuthority,
    filters: Vec<PositionFilter>,
    found_ticks: Vec<i32>,
    /// Last goals of the joints, and the direction of travel.
    last_goal_rad: Option<JointVector>,
    travel: JointVector,
    leads: Vec<DeadBandLead>,
    goals: Option<Vec<ServoGoal>>,
    /// Number of cycles since the last new goal in which it was sent.
    goal_repeats: u32,
    /// `false` from a cycle in which a servo was not read, and from a motion's beginning, until every
    /// servo is known to have its torque: a goal would energise one that has restarted.
    has_torque: bool,
    /// Place of the goals among the frames of the last cycle.
    sent_goals: SentGoals,
    slow_readings: Vec<SlowReadings>,
    /// Torque limits of each servo for [`TorqueLimit::Work`] and [`TorqueLimit::Touch`], and the limit
    /// that was last written and read back.
    torque_limits: Vec<[i32; 2]>,
    torque_limit: Option<TorqueLimit>,
    /// Last fault of each servo in its readings and in its slow readings, and the confirmed fault.
    suspected: Vec<Option<ServoFault>>,
    doubted: Vec<Option<ServoFault>>,
    confirmed: Vec<Option<ServoFault>>,
    /// Number of consecutive readings of each servo that lie beyond one turn.
    out_of_range: Vec<u32>,
    state_next: usize,
    state_read_at: ClockInstant,
    /// `true` if the last request of that kind had no reply.
    state_missed: bool,
    period: Duration,
    cycle_began: Option<ClockInstant>,
    /// Processor time of this thread when the cycle began.
    cpu: Duration,
    has_fast_read: bool,
    /// The speed caps that went out last, and in how many cycles since.
    sent_caps: Vec<f64>,
    caps_age: u64,
    /// Remaining tries of [`BEGIN_TRIES`]; none outside a motion's beginning.
    begin_tries: u32,
    dialect: PhantomData<fn() -> D>,
}

impl<D: Dialect> ServoDriver<D> {
    pub(crate) fn new(arm: &ArmModel, clock: &NodeClock) -> Self {
        let map = ServoMap::new(arm);
        let count = map.entries.len();
        Self {
            arm: arm.clone(),
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
            last_goal_rad: None,
            travel: JointVector::zeros(arm.dof()),
            leads: vec![DeadBandLead::default(); count],
            goals: None,
            goal_repeats: 0,
            has_torque: false,
            sent_goals: SentGoals::None,
            slow_readings: vec![SlowReadings::default(); count],
            torque_limits: Vec::new(),
            torque_limit: None,
            suspected: vec![None; count],
            doubted: vec![None; count],
            confirmed: vec![None; count],
            out_of_range: vec![0; count],
            state_next: 0,
            state_read_at: ClockInstant::ZERO,
            state_missed: false,
            period: PERIOD_DEFAULT,
            cycle_began: None,
            cpu: Duration::ZERO,
            has_fast_read: false,
            sent_caps: Vec::new(),
            caps_age: 0,
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
        self.goals.is_some() && self.confirmed.iter().all(Option::is_none)
    }

    pub(crate) async fn cycle(
        &mut self,
        link: &mut dyn ByteLink,
        command: Option<&JointCommand>,
        deadline: ClockInstant,
    ) -> Result<ArmMeasurement, DriverError> {
        self.sent_goals = SentGoals::None;
        match command {
            Some(command) => self.set_goals(command)?,
            None => self.leads.iter_mut().for_each(DeadBandLead::hold),
        }
        if self.update_period() > UNWATCHED_MAX {
            self.doubt_torque();
        }
        // Behind the readings where it is in doubt whether they permit goals.
        let is_in_doubt = !std::mem::replace(&mut self.has_torque, false);
        let mut first = Vec::new();
        if !is_in_doubt {
            first = self.goal_frame()?;
            if !first.is_empty() {
                self.sent_goals = SentGoals::First;
            }
        }
        let readings = self.read_present(link, first, deadline).await?;
        self.has_torque = !is_in_doubt;
        self.read_state_if_due(link, &readings, deadline).await?;
        let measured = self.measure(&readings);
        self.record_times();
        self.check_faults(&readings, &measured)?;
        if is_in_doubt && self.has_torque {
            self.send_goals_last(link).await?;
        }
        Ok(measured)
    }

    async fn send_goals_last(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        let goals = self.goal_frame()?;
        if !goals.is_empty() {
            self.bus.send_unanswered(link, &goals).await?;
            self.sent_goals = SentGoals::Last;
        }
        Ok(())
    }

    async fn read_state_if_due(
        &mut self,
        link: &mut dyn ByteLink,
        readings: &[ServoReading],
        deadline: ClockInstant,
    ) -> Result<(), DriverError> {
        let has_unnamed_fault = self.has_unnamed_fault(readings);
        if has_unnamed_fault {
            // The first of the slow readings names it.
            self.state_next = 0;
        }
        if self.goals.is_some() && !self.has_torque {
            self.check_torque(link, deadline).await
        } else if has_unnamed_fault || self.state_is_due(deadline) {
            self.read_state(link, deadline).await
        } else {
            Ok(())
        }
    }

    /// Reads whether every servo has its torque; in time as often as the present state.
    async fn check_torque(
        &mut self,
        link: &mut dyn ByteLink,
        deadline: ClockInstant,
    ) -> Result<(), DriverError> {
        for tries in 0..=RETRIES_MAX {
            if self.has_torque || (tries > 0 && self.bus.clock.now() >= deadline) {
                break;
            }
            self.state_next = 0;
            // A slow bus has no time for two readings in a cycle; one late cycle is better than no goals.
            let until = if tries == 0 { NO_DEADLINE } else { deadline };
            self.read_state(link, until).await?;
        }
        Ok(())
    }

    /// Returns an error for a servo with a fault. One that has lost its torque would be energised and
    /// pulled back by a goal: none is sent until the arm is energised again, where it stands by then.
    /// The others hold without further goals.
    fn check_faults(
        &mut self,
        readings: &[ServoReading],
        measured: &ArmMeasurement,
    ) -> Result<(), DriverError> {
        let found = self.find_fault(readings, measured);
        if let Err(DriverError::Device {
            fault: ServoFault::TorqueLost,
            ..
        }) = found
        {
            self.goals = None;
        }
        found
    }

    pub(crate) fn sent_goals(&self) -> SentGoals {
        self.sent_goals
    }

    /// Holds goals back until a reading shows that every servo has its torque.
    pub(crate) fn doubt_torque(&mut self) {
        self.has_torque = false;
    }

    /// Forgets the goals if the servos could not be read in the last cycle.
    pub(crate) fn forget_unread_goals(&mut self) {
        if !self.has_torque {
            self.goals = None;
        }
    }

    fn record_times(&mut self) {
        if let Some(cycle_began) = self.cycle_began {
            let elapsed = self.bus.clock.now().since(cycle_began);
            let cpu = self.bus.clock.thread_cpu_time().saturating_sub(self.cpu);
            self.bus.counts.cycle_time.note(elapsed);
            self.bus.counts.cycle_work.note(cpu);
        }
    }

    /// Notes that a cycle begins. Returns the time since the one before.
    fn update_period(&mut self) -> Duration {
        self.bus.counts.cycles += 1;
        let now = self.bus.clock.now();
        self.cpu = self.bus.clock.thread_cpu_time();
        let Some(previous) = self.cycle_began.replace(now) else {
            return Duration::ZERO;
        };
        let elapsed = now.since(previous);
        // One late cycle must not widen the plausible range for long.
        self.period = elapsed.clamp(PERIOD_DEFAULT / 10, 5 * PERIOD_DEFAULT);
        elapsed
    }

    fn set_goals(&mut self, command: &JointCommand) -> Result<(), DriverError> {
        let period_s = self.nominal_period_s();
        if self.goals.is_none() {
            return Err(DriverError::Limp);
        }
        let desired = self.map.goals(command, &self.found_ticks)?;
        self.update_travel(&command.goal_rad);
        self.goal_repeats = 0;
        let goals = self.goals.as_mut().ok_or(DriverError::Limp)?;
        let entries = self.map.entries.iter().zip(&mut self.leads);
        for ((goal, desired), (entry, lead)) in goals.iter_mut().zip(desired).zip(entries) {
            if let Some((exact, speed_ticks_s)) = desired {
                let aim = ServoAim {
                    exact,
                    lead_ticks: entry.lead_ticks(&self.travel),
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

    /// Returns the nominal duration of a cycle, whether it came a little early or late.
    fn nominal_period_s(&self) -> f64 {
        let period_s = PERIOD_DEFAULT.as_secs_f64();
        (self.period.as_secs_f64() / period_s).round().max(1.0) * period_s
    }

    /// Updates each joint's direction of travel; a joint whose goal stays keeps its direction.
    fn update_travel(&mut self, goal_rad: &JointVector) {
        let Some(previous) = self.last_goal_rad.replace(*goal_rad) else {
            return;
        };
        let step = goal_rad.zip(&previous, |now, then| now - then);
        self.travel = self.travel.zip(&step, |direction, step| {
            if step.abs() > TRAVEL_RAD {
                step.signum()
            } else {
                direction
            }
        });
    }

    /// Returns one frame with the goal of every servo; empty without goals, and once the last ones have
    /// been repeated often enough. Caps that servos keep are
    /// included while they are new, and at intervals, because they are not acknowledged.
    fn goal_frame(&mut self) -> Result<Vec<u8>, DriverError> {
        if self.goal_repeats > GOAL_REPEATS {
            return Ok(Vec::new());
        }
        let Some(goals) = self.goals.take() else {
            return Ok(Vec::new());
        };
        self.goal_repeats += 1;
        let caps = goals.iter().map(|goal| goal.speed_ticks_s);
        let is_unchanged = self.sent_caps.iter().copied().eq(caps.clone());
        if !is_unchanged {
            self.sent_caps = caps.collect();
            self.caps_age = 0;
        }
        let age = self.caps_age;
        self.caps_age += 1;
        let omits_caps = age >= CAPS_NEW_CYCLES && !age.is_multiple_of(CAPS_EVERY_CYCLES);
        let register = match D::GOAL_POSITION {
            Some(position) if omits_caps => position,
            _ => D::GOAL,
        };
        let frame = self.goals_frame(&goals, register);
        self.goals = Some(goals);
        frame
    }

    /// Returns a frame with the goals in a register that is [`Dialect::GOAL`] or its end.
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

    /// Returns the bytes of one servo's goal and its caps.
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
        let readings = self.read_every_servo(link, first, deadline).await?;
        if self.check_twins(&readings).is_ok() {
            return Ok(readings);
        }
        // One reply may be damaged, or of another moment than its twin's. One late cycle is better than a needless fault.
        let again = self.read_every_servo(link, Vec::new(), NO_DEADLINE).await?;
        self.check_twins(&again)?;
        Ok(again)
    }

    fn check_twins(&self, readings: &[ServoReading]) -> Result<(), DriverError> {
        self.map.check_twins(|index| readings[index].ticks)
    }

    async fn read_every_servo(
        &mut self,
        link: &mut dyn ByteLink,
        first: Vec<u8>,
        deadline: ClockInstant,
    ) -> Result<Vec<ServoReading>, DriverError> {
        let mut readings = vec![None; self.ids.len()];
        let mut frame = first;
        let mut tries = 0;
        while self.may_retry(tries, deadline) {
            let missing = indices(&readings);
            self.count_retries(&missing, tries);
            let is_fast = self.has_fast_read && tries == 0;
            tries += 1;
            let first = std::mem::take(&mut frame);
            let requested = (missing.as_slice(), is_fast);
            let replies = self
                .sync_read(link, first, D::PRESENT, requested, deadline)
                .await?;
            self.accept(&missing, &replies, &mut readings)?;
            if readings.iter().all(Option::is_some) {
                break;
            }
        }
        self.complete(readings, tries)
    }

    /// Returns whether a request may be sent again after so many tries: as often as in a cycle and, at a
    /// motion's beginning, beyond that while tries are left.
    fn may_retry(&mut self, tries: u32, deadline: ClockInstant) -> bool {
        let in_time = tries == 0 || self.bus.clock.now() < deadline;
        self.bus.extra_wait = Duration::ZERO;
        if tries <= RETRIES_MAX && in_time {
            return true;
        }
        let Some(left) = self.begin_tries.checked_sub(1).filter(|_| in_time) else {
            return false;
        };
        self.begin_tries = left;
        self.bus.extra_wait = BEGIN_WAIT;
        true
    }

    fn count_retries(&mut self, missing: &[usize], tries: u32) {
        for index in missing.iter().filter(|_| tries > 0) {
            self.bus.counts.servos[*index].retries += 1;
            self.bus.counts.resent += 1;
        }
    }

    /// Accepts the plausible replies.
    fn accept(
        &mut self,
        requested: &[usize],
        replies: &[Option<StatusReply>],
        readings: &mut [Option<ServoReading>],
    ) -> Result<(), DriverError> {
        let replies = requested.iter().zip(replies);
        let received = replies.filter_map(|(index, reply)| {
            let reading = reply.as_ref().map(D::parse_reading)?;
            Some((*index, reading))
        });
        let received: Vec<(usize, ServoReading)> = received.collect();
        for (index, reading) in &received {
            let voltage_v = &mut self.slow_readings[*index].voltage_v;
            *voltage_v = reading.voltage_v.or(*voltage_v);
        }
        let odd = self.odd_supplies();
        for (index, reading) in received {
            if self.is_plausible(index, &reading)? && self.is_confirmed(index, &reading, &odd) {
                readings[index] = Some(reading);
            }
        }
        Ok(())
    }

    /// Returns whether a reading reports no fault, or the same one as before: a single damaged reply
    /// could claim a fault.
    fn is_confirmed(&mut self, index: usize, reading: &ServoReading, odd: &[OddSupply]) -> bool {
        let fault = self.reading_fault(index, reading, odd);
        let previous = std::mem::replace(&mut self.suspected[index], fault);
        fault.is_none() || previous == fault
    }

    fn is_plausible(&mut self, index: usize, reading: &ServoReading) -> Result<bool, DriverError> {
        let now = self.bus.clock.now();
        if !D::POSITIONS.contains(&reading.ticks) {
            return self.count_out_of_range(index, reading.ticks);
        }
        self.out_of_range[index] = 0;
        let filter = &mut self.filters[index];
        let max_ticks_s = self.map.entries[index].velocity_max_ticks_s;
        let verdict = filter.judge(reading.ticks, now, max_ticks_s, self.period);
        if verdict == ReadingVerdict::Believed {
            return Ok(true);
        }
        self.bus.counts.servos[index].jumps += 1;
        match verdict {
            ReadingVerdict::Jumped {
                from_ticks,
                bound_ticks,
            } if self.goals.is_some() => Err(DriverError::Jump {
                servo: self.map.name(index),
                from_ticks,
                to_ticks: reading.ticks,
                bound_ticks,
            }),
            // Without torque, a person may turn it by hand as fast as they like.
            ReadingVerdict::Jumped { .. } => {
                filter.accept(reading.ticks, now);
                Ok(true)
            }
            ReadingVerdict::Believed | ReadingVerdict::Doubted => Ok(false),
        }
    }

    /// Counts a position beyond one turn. It is never believed, and an error once it is read repeatedly,
    /// which damaged replies cannot explain.
    fn count_out_of_range(&mut self, index: usize, ticks: i32) -> Result<bool, DriverError> {
        self.bus.counts.servos[index].jumps += 1;
        let out_of_range = &mut self.out_of_range[index];
        *out_of_range += 1;
        if *out_of_range < JUMPS_MAX {
            return Ok(false);
        }
        *out_of_range = 0;
        Err(out_of_turn(self.map.name(index), ticks))
    }

    fn complete(
        &mut self,
        readings: Vec<Option<ServoReading>>,
        tries: u32,
    ) -> Result<Vec<ServoReading>, DriverError> {
        let missing = indices(&readings);
        for index in &missing {
            let counts = &mut self.bus.counts.servos[*index];
            counts.blind += 1;
            counts.blind_time += self.period;
        }
        self.check_missing(&missing, tries)?;
        Ok(readings.into_iter().flatten().collect())
    }

    fn measure(&self, readings: &[ServoReading]) -> ArmMeasurement {
        let servos = self.ids.iter().zip(readings).zip(&self.slow_readings);
        ArmMeasurement {
            at: self.bus.clock.now(),
            position_rad: self
                .map
                .joints(|index, servo| servo.angle_rad(readings[index].ticks)),
            velocity_rad_s: self.map.joints(|index, servo| {
                f64::from(servo.sign) * readings[index].speed_ticks_s / ticks_per_radian(servo)
            }),
            servos: servos
                .map(|((id, reading), slow)| servo_state(*id, reading, slow))
                .collect(),
        }
    }

    fn find_fault(
        &self,
        readings: &[ServoReading],
        measured: &ArmMeasurement,
    ) -> Result<(), DriverError> {
        let odd = self.odd_supplies();
        for (index, reading) in readings.iter().enumerate() {
            if let Some(fault) = self.servo_fault(index, reading, &odd) {
                return Err(DriverError::Device {
                    servo: self.map.name(index),
                    fault,
                    measured: Some(Box::new(measured.clone())),
                });
            }
        }
        Ok(())
    }

    /// Returns whether a servo reports that a fault is latched without naming it.
    fn has_unnamed_fault(&self, readings: &[ServoReading]) -> bool {
        let mut all = readings.iter().zip(&self.slow_readings);
        all.any(|(reading, slow)| {
            D::reported_fault(reading.error, slow) == Some(ServoFault::Hardware)
        })
    }

    fn servo_fault(
        &self,
        index: usize,
        reading: &ServoReading,
        odd: &[OddSupply],
    ) -> Option<ServoFault> {
        let confirmed = self.confirmed[index];
        self.reading_fault(index, reading, odd)
            .or(confirmed.filter(|_| self.goals.is_some()))
    }

    /// Returns the fault that a reading reports by itself, or the servo's supply beside the others.
    fn reading_fault(
        &self,
        index: usize,
        reading: &ServoReading,
        odd: &[OddSupply],
    ) -> Option<ServoFault> {
        let id = self.ids[index];
        let is_odd = odd.iter().any(|odd| odd.ids.contains(&id));
        let slow = &self.slow_readings[index];
        let (min_v, max_v) = slow.voltage_limits_v;
        let voltage_v = reading.voltage_v.or(slow.voltage_v);
        let is_outside = voltage_v.is_some_and(|voltage_v| voltage_v < min_v || voltage_v > max_v);
        D::reported_fault(reading.error, slow)
            .or(is_outside.then_some(ServoFault::Voltage))
            .or(is_odd.then_some(ServoFault::OddSupply))
    }

    /// Returns the supplies that are far from those of the others with the same limits, or from the stated one.
    fn odd_supplies(&self) -> Vec<OddSupply> {
        let servos = self.ids.iter().zip(&self.slow_readings);
        let supplies = servos.filter_map(|(id, slow)| {
            Some(ServoSupply {
                id: *id,
                kind: slow.voltage_limits_v.1.to_bits(),
                voltage_v: slow.voltage_v?,
                // A weak supply moves an arm all the same.
                voltage_max_v: None,
            })
        });
        let supplies: Vec<ServoSupply> = supplies.collect();
        let stated_v = self.arm.file.supply_v.map(Finite::get);
        odd_supplies(&supplies, stated_v, &SHARE_UNDER_LOAD)
    }

    /// Reads a register of the servos at `indices`, in one packet if `is_fast`; `first` goes out in front
    /// of the request.
    async fn sync_read(
        &mut self,
        link: &mut dyn ByteLink,
        first: Vec<u8>,
        register: ServoRegister,
        (indices, is_fast): (&[usize], bool),
        until: ClockInstant,
    ) -> Result<Vec<Option<StatusReply>>, DriverError> {
        let ids: Vec<u8> = indices.iter().map(|index| self.ids[*index]).collect();
        let request = if is_fast {
            ServoRequest::FastSyncRead(register, &ids)
        } else {
            ServoRequest::SyncRead(register, &ids)
        };
        Ok(self.bus.request::<D>(link, first, request, until).await?)
    }

    fn all_indices(&self) -> Vec<usize> {
        (0..self.ids.len()).collect()
    }

    /// Returns an error if servos are still missing after so many tries.
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

/// Step of a goal below which it has no direction.
const TRAVEL_RAD: f64 = 1e-7;

fn out_of_turn(servo: ServoName, ticks: i32) -> DriverError {
    DriverError::Setup {
        servo,
        fault: SetupFault::BeyondTurn(ticks),
    }
}

fn indices<T>(readings: &[Option<T>]) -> Vec<usize> {
    let missing = readings
        .iter()
        .enumerate()
        .filter(|(_, reading)| reading.is_none());
    missing.map(|(index, _)| index).collect()
}

fn servo_state(id: u8, reading: &ServoReading, slow: &SlowReadings) -> ServoState {
    ServoState {
        id,
        position_ticks: Some(reading.ticks),
        voltage_v: reading.voltage_v.or(slow.voltage_v),
        temperature_c: reading.temperature_c.or(slow.temperature_c),
        load_ratio: Some(reading.load_ratio),
        error_bits: Some(reading.error | slow.hardware_error),
        torque_on: slow.torque_on,
    }
}
