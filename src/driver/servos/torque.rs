//! Switches torque on where the arm stands and off in any case, and checks that it is still on.

use super::*;
use servo::dialect::RegisterSetting;

/// Largest difference between a goal that was read back and the servo's position.
const GOAL_TOLERANCE_TICKS: i32 = 2;

/// A gain P may be set so many times below the delivered one.
const SOFTER: u8 = 4;

/// Number of attempts to find a limp arm where it was just read.
const ATTEMPTS_MAX: u32 = 3;

/// Longest time for a servo to start.
const REBOOT_TIMEOUT: Duration = Duration::from_secs(2);

impl<D: Dialect> ServoDriver<D> {
    pub(crate) async fn energise(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<ArmMeasurement, DriverError> {
        self.goals = None;
        self.begin_tries = BEGIN_TRIES;
        let limp = self.read_limp(link).await;
        self.end_begin_tries();
        let limp = limp?;
        self.begin_tries = BEGIN_TRIES;
        let result = self.try_energise(link, &limp).await;
        // The cleanup has only the tries of a cycle, so that an error is reported without more waiting.
        self.end_begin_tries();
        if result.is_err() {
            self.goals = None;
            // The first error is the one to report; this is only cleanup.
            let _ = self.torque_off(link, &limp).await;
        }
        result
    }

    /// Reads anew which servos have no torque: one may have lost its power since the last reading. One that does not
    /// answer is an error: it may hold the arm.
    async fn read_limp(&mut self, link: &mut dyn ByteLink) -> Result<Vec<usize>, DriverError> {
        let slow = self.slow_readings.iter_mut();
        slow.for_each(|slow| slow.torque_on = None);
        let mut tries = 0;
        while self.may_retry(tries, NO_DEADLINE) {
            self.state_next = 0;
            self.read_state(link, NO_DEADLINE).await?;
            tries += 1;
            let mut slow = self.slow_readings.iter();
            if slow.all(|slow| slow.torque_on.is_some()) {
                break;
            }
        }
        self.check_missing(&self.servos_with_torque(None), tries)?;
        Ok(self.servos_with_torque(Some(false)))
    }

    /// Returns the servos whose torque was read to be this; `None` for those of which it is not known.
    fn servos_with_torque(&self, torque_on: Option<bool>) -> Vec<usize> {
        let slow = self.slow_readings.iter().enumerate();
        slow.filter(|(_, slow)| slow.torque_on == torque_on)
            .map(|(index, _)| index)
            .collect()
    }

    async fn try_energise(
        &mut self,
        link: &mut dyn ByteLink,
        limp: &[usize],
    ) -> Result<ArmMeasurement, DriverError> {
        self.confirmed.fill(None);
        self.doubted.fill(None);
        let readings = self.read_present(link, Vec::new(), NO_DEADLINE).await?;
        self.find_fault(&readings, &self.measure(&readings))?;
        self.set_all(link, D::PREPARE).await?;
        self.write_torque_limit(link, TorqueLimit::Work).await?;
        self.hold_present_positions(link, limp).await?;
        self.set_all(link, &[(D::TORQUE_ENABLE, 1)]).await?;
        self.set_all(link, D::ARM).await?;
        self.slow_readings
            .iter_mut()
            .for_each(|slow| slow.torque_on = Some(true));
        let readings = self.read_present(link, Vec::new(), NO_DEADLINE).await?;
        let measured = self.measure(&readings);
        self.find_fault(&readings, &measured)?;
        self.goals = Some(self.present_goals());
        self.has_torque = true;
        self.last_goal_rad = None;
        self.travel = self.travel.map(|_, _| 0.0);
        self.leads.fill(DeadBandLead::default());
        Ok(measured)
    }

    /// Sets the goal of every servo to its position. A limp joint may be moved by hand after it was read,
    /// and torque would pull it back, so it is read again.
    async fn hold_present_positions(
        &mut self,
        link: &mut dyn ByteLink,
        limp: &[usize],
    ) -> Result<(), DriverError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let readings = self.read_present(link, Vec::new(), NO_DEADLINE).await?;
            self.found_ticks = readings.iter().map(|reading| reading.ticks).collect();
            self.write_present_goals(link, &readings).await?;
            let later = self.read_present(link, Vec::new(), NO_DEADLINE).await?;
            let sinks = self.sinks_ticks(&readings);
            let has_moved = |index: &&usize| {
                let (goal, now) = (readings[**index].ticks, later[**index].ticks);
                let sinks = sinks[**index];
                let explained = f64::from(now - goal).clamp(sinks.min(0.0), sinks.max(0.0));
                (f64::from(now - goal) - explained).abs() > f64::from(GOAL_TOLERANCE_TICKS)
            };
            match limp.iter().find(has_moved) {
                None => return Ok(()),
                Some(moved) if attempts == ATTEMPTS_MAX => {
                    return Err(DriverError::Turned {
                        servo: self.map.name(*moved),
                    });
                }
                Some(_) => {}
            }
        }
    }

    /// Returns by how many ticks each servo may sink under the arm's weight: a goal energises a servo that had no torque.
    fn sinks_ticks(&self, readings: &[ServoReading]) -> Vec<f64> {
        let (arm, at_rad) = (&self.arm, self.measure(readings).position_rad);
        let gain_p = arm.file.servo.as_ref().map(|servo| servo.gain_p / SOFTER);
        let yields = arm.servo_yield_rad_per_n_m(|_| gain_p, None);
        let loads_n_m = arm.load.torque_n_m(&arm.chain, &at_rad);
        let sinks = |entry: &ServoEntry| {
            let (joint, servo) = entry.joint?;
            let sinks_rad = loads_n_m.get(joint)? * yields.get(joint)?;
            Some(f64::from(servo.sign) * ticks_per_radian(servo) * sinks_rad)
        };
        let entries = self.map.entries.iter();
        entries.map(|entry| sinks(entry).unwrap_or(0.0)).collect()
    }

    fn present_goals(&self) -> Vec<ServoGoal> {
        let entries = self.map.entries.iter().zip(&self.found_ticks);
        entries
            .map(|(entry, ticks)| ServoGoal {
                ticks: *ticks,
                speed_ticks_s: entry.velocity_max_ticks_s,
            })
            .collect()
    }

    /// Writes the position of every servo as its goal, where it would go when energised, and reads it
    /// back.
    async fn write_present_goals(
        &mut self,
        link: &mut dyn ByteLink,
        readings: &[ServoReading],
    ) -> Result<(), DriverError> {
        let goals = self.present_goals();
        let frame = self.goals_frame(&goals, D::GOAL)?;
        self.bus.send_unanswered(link, &frame).await?;
        self.sent_caps = goals.iter().map(|goal| goal.speed_ticks_s).collect();
        self.caps_age = 0;
        for (index, reading) in readings.iter().enumerate() {
            let status = self.read(link, index, D::GOAL).await?;
            let found = D::goal_ticks(&status);
            self.check_written(index, D::GOAL, reading.ticks, found, GOAL_TOLERANCE_TICKS)?;
            self.check_caps_written(index, goals[index], &status)?;
        }
        Ok(())
    }

    /// Checks that the caps read back with a goal are those that were written.
    fn check_caps_written(
        &self,
        index: usize,
        goal: ServoGoal,
        status: &StatusReply,
    ) -> Result<(), DriverError> {
        let same_goal = ServoGoal {
            ticks: D::goal_ticks(status),
            ..goal
        };
        let written = Self::goal_block(&self.map.entries[index], same_goal)?;
        let differs = written.iter().zip(&status.data).find(|(a, b)| a != b);
        let (written, found) = differs.map_or((0, 0), |(a, b)| (i32::from(*a), i32::from(*b)));
        self.check_written(index, D::GOAL, written, found, 0)
    }

    /// Restarts one servo.
    pub(crate) async fn reboot(
        &mut self,
        link: &mut dyn ByteLink,
        id: u8,
    ) -> Result<(), DriverError> {
        let index = self.ids.iter().position(|other| *other == id);
        let mut request = Vec::new();
        let can_reboot = D::encode(&mut request, ServoRequest::Reboot(id));
        let Some(index) = index.filter(|_| can_reboot && self.goals.is_none()) else {
            return Err(BusError::NoReboot { id }.into());
        };
        self.bus.send_unanswered(link, &request).await?;
        self.slow_readings[index] = SlowReadings {
            voltage_limits_v: self.slow_readings[index].voltage_limits_v,
            ..SlowReadings::default()
        };
        let until = self.bus.clock.now().after(REBOOT_TIMEOUT);
        while self.bus.clock.now() < until {
            if self.ping(link, index).await?.is_some() {
                return Ok(());
            }
        }
        Err(DriverError::NoReply {
            servo: self.map.name(index),
            tries: RETRIES_MAX + 1,
        })
    }

    /// Sets the torque limit of every servo for the motion that follows, if it differs, and reads where
    /// the motion begins.
    pub(crate) async fn begin(
        &mut self,
        link: &mut dyn ByteLink,
        limit: TorqueLimit,
    ) -> Result<ArmMeasurement, DriverError> {
        self.begin_tries = BEGIN_TRIES;
        // A servo may have restarted since its last reading.
        self.doubt_torque();
        let measured = self.try_begin(link, limit).await;
        self.end_begin_tries();
        measured
    }

    fn end_begin_tries(&mut self) {
        self.begin_tries = 0;
        self.bus.extra_wait = Duration::ZERO;
    }

    async fn try_begin(
        &mut self,
        link: &mut dyn ByteLink,
        limit: TorqueLimit,
    ) -> Result<ArmMeasurement, DriverError> {
        if self.torque_limit != Some(limit) {
            self.write_torque_limit(link, limit).await?;
        }
        self.cycle(link, None, NO_DEADLINE).await
    }

    /// Writes each servo's torque limit, all in one frame, and reads it back.
    async fn write_torque_limit(
        &mut self,
        link: &mut dyn ByteLink,
        limit: TorqueLimit,
    ) -> Result<(), DriverError> {
        self.torque_limit = None;
        let select = |[work, touch]: &[i32; 2]| match limit {
            TorqueLimit::Work => *work,
            TorqueLimit::Touch => *touch,
        };
        let limits: Vec<i32> = self.torque_limits.iter().map(select).collect();
        if limits.len() != self.ids.len() {
            return Err(DriverError::Limp);
        }
        self.set_each(link, D::TORQUE_LIMIT, &limits).await?;
        self.torque_limit = Some(limit);
        Ok(())
    }

    /// Writes each setting to all servos in one frame, and reads it back.
    async fn set_all(
        &mut self,
        link: &mut dyn ByteLink,
        settings: &[RegisterSetting],
    ) -> Result<(), DriverError> {
        for (register, value) in settings {
            let values = vec![*value; self.ids.len()];
            self.set_each(link, *register, &values).await?;
        }
        Ok(())
    }

    /// Writes each servo's value, all in one frame, and reads it back.
    async fn set_each(
        &mut self,
        link: &mut dyn ByteLink,
        register: ServoRegister,
        values: &[i32],
    ) -> Result<(), DriverError> {
        let all = self.ids.iter().copied().zip(values.iter().copied());
        self.write(link, register, all.collect()).await?;
        for (index, written) in values.iter().enumerate() {
            let found = self.read(link, index, register).await?.number();
            self.check_written(index, register, *written, found, 0)?;
        }
        Ok(())
    }

    async fn write_all(
        &mut self,
        link: &mut dyn ByteLink,
        register: ServoRegister,
        value: i32,
        indices: &[usize],
    ) -> Result<(), DriverError> {
        let ids = indices.iter().map(|index| self.ids[*index]);
        self.write(link, register, ids.map(|id| (id, value)).collect())
            .await
    }

    /// Writes each servo's value, all in one frame that no servo replies to.
    async fn write(
        &mut self,
        link: &mut dyn ByteLink,
        register: ServoRegister,
        values: Vec<(u8, i32)>,
    ) -> Result<(), DriverError> {
        let blocks = values.into_iter();
        let blocks: Vec<_> = blocks
            .map(|(id, value)| (id, register.bytes_of(value)))
            .collect();
        let mut frame = Vec::new();
        let write = ServoRequest::MotionWrite(register, &blocks, &self.authority);
        D::encode(&mut frame, write);
        Ok(self.bus.send_unanswered(link, &frame).await?)
    }

    fn check_written(
        &self,
        index: usize,
        register: ServoRegister,
        written: i32,
        found: i32,
        tolerance: i32,
    ) -> Result<(), DriverError> {
        if written.saturating_sub(found).abs() <= tolerance {
            return Ok(());
        }
        Err(DriverError::NotTaken {
            servo: self.map.name(index),
            register: register.name,
            written,
            found,
        })
    }

    pub(crate) async fn release(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<TorqueOffReport, DriverError> {
        self.goals = None;
        let all = self.all_indices();
        let released = self.torque_off(link, &all).await?;
        for (register, value) in D::DISARM {
            self.write_all(link, *register, *value, &all).await?;
        }
        Ok(released)
    }

    /// Takes torque off the servos at `indices`, each attempted even if others fail.
    async fn torque_off(
        &mut self,
        link: &mut dyn ByteLink,
        indices: &[usize],
    ) -> Result<TorqueOffReport, DriverError> {
        let mut released = TorqueOffReport::default();
        if indices.is_empty() {
            return Ok(released);
        }
        for _ in 0..=RETRIES_MAX {
            self.write_all(link, D::TORQUE_ENABLE, 0, indices).await?;
        }
        for index in indices {
            let servo = self.map.name(*index);
            let result = match self.read(link, *index, D::TORQUE_ENABLE).await {
                Ok(status) => self.check_written(*index, D::TORQUE_ENABLE, 0, status.number(), 0),
                Err(error @ DriverError::Bus(_)) => return Err(error),
                Err(error) => Err(error),
            };
            self.slow_readings[*index].torque_on = result.is_ok().then_some(false);
            match result {
                Ok(()) => released.off.push(servo),
                Err(error) => released.failed.push((servo, error)),
            }
        }
        Ok(released)
    }

    pub(super) fn state_is_due(&self, deadline: ClockInstant) -> bool {
        let now = self.bus.clock.now();
        #[expect(clippy::cast_possible_truncation, reason = "a few registers")]
        let count = D::STATES.len() as u32;
        now.since(self.state_read_at) >= STATES_EVERY / count && now < deadline
    }

    /// Takes the next of the slow readings. A fault must be found twice: a damaged reply must not end a
    /// stroke. A servo that was not read is read next time.
    pub(super) async fn read_state(
        &mut self,
        link: &mut dyn ByteLink,
        deadline: ClockInstant,
    ) -> Result<(), DriverError> {
        let register = D::STATES[self.state_next];
        // In one packet where possible; one by one after that has failed.
        let (all, fast) = (self.all_indices(), self.has_fast_read && !self.state_missed);
        let replies = self
            .sync_read(link, Vec::new(), register, (&all, fast), deadline)
            .await?;
        self.state_missed = replies.iter().all(Option::is_none);
        let mut must_repeat = self.state_missed;
        for (index, reply) in replies.iter().enumerate() {
            if let Some(status) = reply {
                must_repeat |= self.update_slow_readings(index, status);
            }
        }
        if self.state_next == 0 && replies.iter().all(Option::is_some) {
            self.has_torque = self.doubted.iter().all(Option::is_none);
        }
        if !must_repeat {
            self.state_next = (self.state_next + 1) % D::STATES.len();
            self.state_read_at = self.bus.clock.now();
        }
        Ok(())
    }

    /// Takes a slow reading; returns whether a fault was found for the first time.
    fn update_slow_readings(&mut self, index: usize, status: &StatusReply) -> bool {
        let slow = &mut self.slow_readings[index];
        let mut updated = *slow;
        let fault = D::update_slow_readings(self.state_next, status, &mut updated);
        let previous = std::mem::replace(&mut self.doubted[index], fault);
        if fault.is_some() && previous != fault && self.goals.is_some() {
            // Naming an error ends nothing: the error itself has been reported twice by then.
            slow.hardware_error = updated.hardware_error;
            return true;
        }
        *slow = updated;
        // A limp arm has no torque to lose.
        if fault.is_some() && self.goals.is_some() {
            self.confirmed[index] = fault;
        }
        false
    }
}
