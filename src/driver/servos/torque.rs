//! Switches torque on where the arm stands and off in any event, and checks that it is still on.

use super::*;
use servo::dialect::RegisterSetting;

/// Largest difference of a goal that was read back from the servo's position.
const GOAL_APART_TICKS: i32 = 2;

/// Number of attempts to find a limp arm at its place of a moment ago.
const AIMS_MAX: u32 = 3;

/// Longest time for a servo to start.
const REBOOT: Duration = Duration::from_secs(2);

impl<D: Dialect> ServoDriver<D> {
    pub(crate) async fn energise(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<ArmMeasurement, DriverError> {
        let was_on = |known: &SlowReadings| known.torque_on == Some(true);
        let limp = self.known.iter().enumerate();
        let limp: Vec<usize> = limp
            .filter(|(_, known)| !was_on(known))
            .map(|(place, _)| place)
            .collect();
        self.begin_tries = BEGIN_TRIES;
        let result = self.try_energise(link, &limp).await;
        // The tidying has the tries of a cycle: what is lost is told without another wait.
        self.end_beginning();
        if result.is_err() {
            self.goals = None;
            // The first error is the one to report; this is the tidying after it.
            let _ = self.torque_off(link, &limp).await;
        }
        result
    }

    async fn try_energise(
        &mut self,
        link: &mut dyn ByteLink,
        limp: &[usize],
    ) -> Result<ArmMeasurement, DriverError> {
        self.goals = None;
        self.ailing.fill(None);
        self.doubted.fill(None);
        let readings = self.read_present(link, Vec::new(), PATIENT).await?;
        self.find_ailment(&readings, &self.measure(&readings))?;
        self.set_all(link, D::PREPARE).await?;
        self.write_torque_limit(link, TorqueLimit::Work).await?;
        self.hold_present_positions(link, limp).await?;
        self.set_all(link, &[(D::TORQUE_ENABLE, 1)]).await?;
        self.set_all(link, D::ARM).await?;
        self.known
            .iter_mut()
            .for_each(|known| known.torque_on = Some(true));
        let readings = self.read_present(link, Vec::new(), PATIENT).await?;
        let measured = self.measure(&readings);
        self.find_ailment(&readings, &measured)?;
        self.goals = Some(self.goals_here());
        self.aimed_rad = None;
        self.travel = self.travel.map(|_, _| 0.0);
        self.leads.fill(DeadBandLead::default());
        Ok(measured)
    }

    /// Sets the goal of every servo to its position. A limp joint may be moved by hand after it was read:
    /// it is read again, or torque would pull it back.
    async fn hold_present_positions(
        &mut self,
        link: &mut dyn ByteLink,
        limp: &[usize],
    ) -> Result<(), DriverError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let readings = self.read_present(link, Vec::new(), PATIENT).await?;
            self.found_ticks = readings.iter().map(|reading| reading.ticks).collect();
            self.write_goals_here(link, &readings).await?;
            let after = self.read_present(link, Vec::new(), PATIENT).await?;
            let moved = |place: &&usize| {
                let (aim, is) = (readings[**place].ticks, after[**place].ticks);
                (is - aim).abs() > GOAL_APART_TICKS
            };
            match limp.iter().find(moved) {
                None => return Ok(()),
                Some(turned) if tries == AIMS_MAX => {
                    return Err(DriverError::Turned {
                        servo: self.map.name(*turned),
                    });
                }
                Some(_) => {}
            }
        }
    }

    fn goals_here(&self) -> Vec<ServoGoal> {
        let entries = self.map.entries.iter().zip(&self.found_ticks);
        entries
            .map(|(entry, ticks)| ServoGoal {
                ticks: *ticks,
                speed_ticks_s: entry.velocity_max_ticks_s,
            })
            .collect()
    }

    /// A servo that is energised goes to the goal it last had: that must be where it stands.
    async fn write_goals_here(
        &mut self,
        link: &mut dyn ByteLink,
        readings: &[ServoReading],
    ) -> Result<(), DriverError> {
        let goals = self.goals_here();
        let frame = self.goals_frame(&goals, D::GOAL)?;
        self.bus.send_unanswered(link, &frame).await?;
        self.capped = goals.iter().map(|goal| goal.speed_ticks_s).collect();
        self.capped_cycles = 0;
        for (place, reading) in readings.iter().enumerate() {
            let status = self.read(link, place, D::GOAL).await?;
            let found = D::goal_ticks(&status);
            self.expect(place, D::GOAL, reading.ticks, found, GOAL_APART_TICKS)?;
            self.expect_caps(place, goals[place], &status)?;
        }
        Ok(())
    }

    /// The caps beside a goal that was read back are the ones that were written.
    fn expect_caps(
        &self,
        place: usize,
        goal: ServoGoal,
        status: &StatusReply,
    ) -> Result<(), DriverError> {
        let same_goal = ServoGoal {
            ticks: D::goal_ticks(status),
            ..goal
        };
        let wanted = Self::goal_block(&self.map.entries[place], same_goal)?;
        let differs = wanted.iter().zip(&status.data).find(|(a, b)| a != b);
        let (wanted, found) = differs.map_or((0, 0), |(a, b)| (i32::from(*a), i32::from(*b)));
        self.expect(place, D::GOAL, wanted, found, 0)
    }

    /// Restarts one servo.
    pub(crate) async fn reboot(
        &mut self,
        link: &mut dyn ByteLink,
        id: u8,
    ) -> Result<(), DriverError> {
        let place = self.ids.iter().position(|known| *known == id);
        let mut request = Vec::new();
        let knows = D::encode(&mut request, ServoRequest::Reboot(id));
        let Some(place) = place.filter(|_| knows && self.goals.is_none()) else {
            return Err(BusError::NoReboot { id }.into());
        };
        self.bus.send_unanswered(link, &request).await?;
        self.known[place] = SlowReadings {
            voltage_limits_v: self.known[place].voltage_limits_v,
            ..SlowReadings::default()
        };
        let until = self.bus.clock.now().after(REBOOT);
        while self.bus.clock.now() < until {
            if self.ping(link, place).await?.is_some() {
                return Ok(());
            }
        }
        Err(DriverError::NoReply {
            servo: self.map.name(place),
            tries: RETRIES_MAX + 1,
        })
    }

    /// Limits the torque of every servo for the motion that follows, if that is not its limit
    /// already, and reads where it begins.
    pub(crate) async fn begin(
        &mut self,
        link: &mut dyn ByteLink,
        limit: TorqueLimit,
    ) -> Result<ArmMeasurement, DriverError> {
        self.begin_tries = BEGIN_TRIES;
        let measured = self.try_begin(link, limit).await;
        self.end_beginning();
        measured
    }

    fn end_beginning(&mut self) {
        self.begin_tries = 0;
        self.bus.longer = Duration::ZERO;
    }

    async fn try_begin(
        &mut self,
        link: &mut dyn ByteLink,
        limit: TorqueLimit,
    ) -> Result<ArmMeasurement, DriverError> {
        if self.torque_limit != Some(limit) {
            self.write_torque_limit(link, limit).await?;
        }
        self.cycle(link, None, PATIENT).await
    }

    /// Writes each servo's torque limit, all in one frame, and reads it back.
    async fn write_torque_limit(
        &mut self,
        link: &mut dyn ByteLink,
        limit: TorqueLimit,
    ) -> Result<(), DriverError> {
        self.torque_limit = None;
        let of = |[work, touch]: &[i32; 2]| match limit {
            TorqueLimit::Work => *work,
            TorqueLimit::Touch => *touch,
        };
        let limits: Vec<i32> = self.torque_limits.iter().map(of).collect();
        if limits.len() != self.ids.len() {
            return Err(DriverError::Limp);
        }
        self.set_each(link, D::TORQUE_LIMIT, &limits).await?;
        self.torque_limit = Some(limit);
        Ok(())
    }

    /// Writes the same to every servo, in one frame each, and reads it back.
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

    /// Writes its value to each servo, all in one frame, and reads it back.
    async fn set_each(
        &mut self,
        link: &mut dyn ByteLink,
        register: ServoRegister,
        values: &[i32],
    ) -> Result<(), DriverError> {
        let all = self.ids.iter().copied().zip(values.iter().copied());
        self.write(link, register, all.collect()).await?;
        for (place, wanted) in values.iter().enumerate() {
            let found = self.read(link, place, register).await?.number();
            self.expect(place, register, *wanted, found, 0)?;
        }
        Ok(())
    }

    async fn write_all(
        &mut self,
        link: &mut dyn ByteLink,
        register: ServoRegister,
        value: i32,
        places: &[usize],
    ) -> Result<(), DriverError> {
        let ids = places.iter().map(|place| self.ids[*place]);
        self.write(link, register, ids.map(|id| (id, value)).collect())
            .await
    }

    /// Writes each servo's value, all in one frame that no servo answers.
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

    fn expect(
        &self,
        place: usize,
        register: ServoRegister,
        wanted: i32,
        found: i32,
        apart: i32,
    ) -> Result<(), DriverError> {
        if wanted.saturating_sub(found).abs() <= apart {
            return Ok(());
        }
        Err(DriverError::NotTaken {
            servo: self.map.name(place),
            register: register.name,
            wanted,
            found,
        })
    }

    pub(crate) async fn release(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<TorqueOffReport, DriverError> {
        self.goals = None;
        let all = self.all_places();
        let released = self.torque_off(link, &all).await?;
        for (register, value) in D::DISARM {
            self.write_all(link, *register, *value, &all).await?;
        }
        Ok(released)
    }

    /// Takes torque off the servos at `places`, each attempted even if others fail.
    async fn torque_off(
        &mut self,
        link: &mut dyn ByteLink,
        places: &[usize],
    ) -> Result<TorqueOffReport, DriverError> {
        let mut released = TorqueOffReport::default();
        if places.is_empty() {
            return Ok(released);
        }
        for _ in 0..=RETRIES_MAX {
            self.write_all(link, D::TORQUE_ENABLE, 0, places).await?;
        }
        for place in places {
            let servo = self.map.name(*place);
            let result = match self.read(link, *place, D::TORQUE_ENABLE).await {
                Ok(status) => self.expect(*place, D::TORQUE_ENABLE, 0, status.number(), 0),
                Err(error @ DriverError::Bus(_)) => return Err(error),
                Err(error) => Err(error),
            };
            self.known[*place].torque_on = result.is_ok().then_some(false);
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
        now.since(self.state_read) >= STATES_EVERY / count && now < deadline
    }

    /// Takes the next of the slow readings. What it finds wrong must be found twice: a damaged
    /// reply must not end a stroke. One unread servo is asked next time.
    pub(super) async fn read_state(
        &mut self,
        link: &mut dyn ByteLink,
        deadline: ClockInstant,
    ) -> Result<(), DriverError> {
        let register = D::STATES[self.state_next];
        // In one packet where they can; one after another where that came to nothing.
        let (all, fast) = (self.all_places(), self.fast && !self.state_missed);
        let replies = self
            .sync_read(link, Vec::new(), register, (&all, fast), deadline)
            .await?;
        self.state_missed = replies.iter().all(Option::is_none);
        let mut doubt = self.state_missed;
        for (place, reply) in replies.iter().enumerate() {
            if let Some(status) = reply {
                doubt |= self.note_slow_readings(place, status);
            }
        }
        if !doubt {
            self.state_next = (self.state_next + 1) % D::STATES.len();
            self.state_read = self.bus.clock.now();
        }
        Ok(())
    }

    /// Takes a slow reading; returns whether a fault was found for the first time.
    fn note_slow_readings(&mut self, place: usize, status: &StatusReply) -> bool {
        let known = &mut self.known[place];
        let mut found = *known;
        let ailment = D::update_slow_readings(self.state_next, status, &mut found);
        let before = std::mem::replace(&mut self.doubted[place], ailment);
        if ailment.is_some() && before != ailment && self.goals.is_some() {
            // A name alone ends nothing: what it names has been reported twice by then.
            known.hardware_error = found.hardware_error;
            return true;
        }
        *known = found;
        // A limp arm has no torque to lose.
        if ailment.is_some() && self.goals.is_some() {
            self.ailing[place] = ailment;
        }
        false
    }
}
