//! Attaches to the servos on the bus, and checks that each is set up as the arm needs it.

use super::*;
use crate::identity;

/// Most readings of the positions until two agree.
const FIRST_READINGS: u32 = 4;

/// Largest difference of two first readings that agree: a limp arm may be moving.
const FIRST_DIFFERENCE_TICKS: i32 = 40;

impl<D: Dialect> ServoDriver<D> {
    pub(crate) async fn attach(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<AttachReport, DriverError> {
        self.reset();
        let (latency, missing) = self.ping_all(link).await?;
        if missing.len() == self.ids.len() {
            self.check_strangers(link, &[]).await?;
        }
        self.check_missing(&missing, RETRIES_MAX + 1)?;
        let mut servos = Vec::with_capacity(self.ids.len());
        for index in 0..self.ids.len() {
            servos.push(self.identify(link, index).await?);
        }
        self.check_firmware(&servos)?;
        identity::check(&self.arm.file, &servos)?;
        self.bus.learn_latency(latency);
        let strangers = self.check_strangers(link, &self.ids.clone()).await?;
        let delays = servos.iter().map(|servo| servo.return_delay);
        self.bus.return_delay = delays.fold(Duration::ZERO, Duration::max);
        let readings = self.first_readings(link).await?;
        self.probe_fast_read(link).await?;
        // Supply and temperature must be known before torque is switched on.
        for _ in D::STATES {
            self.read_state(link, NO_DEADLINE).await?;
        }
        let mut warnings = self.range_warnings(&servos);
        warnings.extend(delay_warnings(&servos));
        warnings.extend(strangers);
        let odd = self.odd_supplies();
        for (index, (servo, reading)) in servos.iter_mut().zip(&readings).enumerate() {
            servo.error_bits = reading.error;
            if let Some(fault) = self.reading_fault(index, reading, &odd) {
                warnings.push(format!("{}: {fault}", servo.servo));
            }
        }
        Ok(AttachReport {
            measured: self.measure(&readings),
            servos,
            warnings,
            latency,
        })
    }

    /// Forgets everything known from another port or before a break.
    fn reset(&mut self) {
        self.begin_tries = 0;
        self.bus.slack = SLACK_UNKNOWN;
        self.bus.extra_wait = Duration::ZERO;
        self.bus.return_delay = Duration::from_micros(500);
        self.bus.echoes = false;
        self.has_fast_read = false;
        self.goals = None;
        self.has_torque = false;
        self.torque_limits.clear();
        self.torque_limit = None;
        self.slow_readings.fill(SlowReadings::default());
        for faults in [&mut self.suspected, &mut self.doubted, &mut self.confirmed] {
            faults.fill(None);
        }
    }

    /// Pings every servo and returns the slowest round trip, and the indices of those that did not reply.
    async fn ping_all(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<(Duration, Vec<usize>), DriverError> {
        let mut latency = Duration::ZERO;
        let mut missing = Vec::new();
        for index in 0..self.ids.len() {
            match self.ping(link, index).await? {
                Some(elapsed) => latency = latency.max(elapsed),
                None => missing.push(index),
            }
        }
        Ok((latency, missing))
    }

    /// Pings the ids of other arms of the family that are not known to share the bus, once each. Refuses the arm if those that
    /// answer and its `own` are all the servos of another one; otherwise returns a warning of the others.
    async fn check_strangers(
        &mut self,
        link: &mut dyn ByteLink,
        own: &[u8],
    ) -> Result<Option<String>, DriverError> {
        let mut strangers = Vec::new();
        for id in arm::ids_beside(self.arm.file.family, &self.known_ids()) {
            if self.ping_once(link, id).await? {
                strangers.push(id);
            }
        }
        if strangers.is_empty() {
            return Ok(None);
        }
        let name = &self.arm.file.name;
        let there = [own, &strangers].concat();
        if let Some(other) = arm::arm_of_ids(self.arm.file.family, &there).filter(|arm| arm != name)
        {
            return Err(DriverError::OtherArm {
                other,
                arm: name.clone(),
            });
        }
        let ids: Vec<String> = strangers.iter().map(u8::to_string).collect();
        Ok(Some(format!(
            "id {} answers, but arm `{name}` has no such servo. Check which arm is connected; then take the servo off the bus, add it to the arm's file, or add the arm that has this servo to the node file, with the same `port`",
            ids.join(", ")
        )))
    }

    /// Returns the ids of its servos, and those of other arms on the bus.
    fn known_ids(&self) -> Vec<u8> {
        [&self.ids, self.arm.bus.others.as_slice()].concat()
    }

    async fn ping_once(&mut self, link: &mut dyn ByteLink, id: u8) -> Result<bool, DriverError> {
        let ping = ServoRequest::Ping(id);
        let replies = self
            .bus
            .request::<D>(link, Vec::new(), ping, NO_DEADLINE)
            .await?;
        Ok(matches!(replies.first(), Some(Some(_))))
    }

    pub(super) async fn ping(
        &mut self,
        link: &mut dyn ByteLink,
        index: usize,
    ) -> Result<Option<Duration>, DriverError> {
        let id = self.map.name(index).id;
        for _ in 0..=RETRIES_MAX {
            if self.ping_once(link, id).await? {
                // Without the time in which another arm had the bus.
                return Ok(Some(self.bus.received_at.since(self.bus.sent_at)));
            }
        }
        Ok(None)
    }

    /// Reads a register of one servo, with retries.
    pub(super) async fn read(
        &mut self,
        link: &mut dyn ByteLink,
        index: usize,
        register: ServoRegister,
    ) -> Result<StatusReply, DriverError> {
        let servo = self.map.name(index);
        let mut tries = 0;
        while self.may_retry(tries, NO_DEADLINE) {
            self.count_retries(&[index], tries);
            tries += 1;
            let read = ServoRequest::Read(servo.id, register);
            let mut replies = self
                .bus
                .request::<D>(link, Vec::new(), read, NO_DEADLINE)
                .await?;
            if let Some(Some(status)) = replies.pop() {
                return Ok(status);
            }
        }
        Err(DriverError::NoReply { servo, tries })
    }

    async fn identify(
        &mut self,
        link: &mut dyn ByteLink,
        index: usize,
    ) -> Result<ServoIdentity, DriverError> {
        let settings = self.read(link, index, D::SETTINGS).await?;
        let servo = self.map.name(index);
        let identity = D::identify(&settings, servo.clone(), &self.known_ids());
        let fits = self.map.entries[index].check_turn(D::POSITIONS);
        let identity = identity.and_then(|identity| fits.map(|()| identity));
        let mut identity = identity.map_err(|fault| DriverError::Setup { servo, fault })?;
        let torque = self.read(link, index, D::TORQUE_ENABLE).await?;
        self.torque_limits.push(D::torque_limits(&settings));
        identity.torque_on = torque.byte(0) != 0;
        let slow = &mut self.slow_readings[index];
        slow.torque_on = Some(identity.torque_on);
        slow.voltage_limits_v = D::voltage_limits_v(&settings);
        Ok(identity)
    }

    /// Reads the positions until two readings agree, because they have no history yet.
    async fn first_readings(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<Vec<ServoReading>, DriverError> {
        let mut last: Option<Vec<ServoReading>> = None;
        for _ in 0..FIRST_READINGS {
            self.filters.iter_mut().for_each(PositionFilter::reset);
            let readings = self.read_present(link, Vec::new(), NO_DEADLINE).await?;
            if last.as_ref().is_some_and(|last| agree(last, &readings)) {
                self.found_ticks = readings.iter().map(|reading| reading.ticks).collect();
                return Ok(readings);
            }
            last = Some(readings);
        }
        Err(DriverError::UnsteadyReadings {
            servo: self.map.name(0),
            arm: self.arm.file.name.clone(),
        })
    }

    /// Checks whether all servos can reply in one packet.
    async fn probe_fast_read(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        if D::fast_length(D::PRESENT, self.ids.len()) == 0 {
            return Ok(());
        }
        let all = self.all_indices();
        let replies = self
            .sync_read(link, Vec::new(), D::PRESENT, (&all, true), NO_DEADLINE)
            .await?;
        self.has_fast_read = replies.iter().all(Option::is_some);
        Ok(())
    }

    /// Refuses a servo with other firmware than most.
    fn check_firmware(&self, servos: &[ServoIdentity]) -> Result<(), DriverError> {
        let same_count = |servo: &ServoIdentity| {
            let same = servos
                .iter()
                .filter(|other| other.firmware == servo.firmware);
            same.count()
        };
        let usual = servos.iter().max_by_key(|servo| same_count(servo));
        let Some(usual) = usual.filter(|_| D::SAME_FIRMWARE) else {
            return Ok(());
        };
        let is_odd = |servo: &&ServoIdentity| {
            servo.firmware != usual.firmware && !self.is_vouched_for(servo, usual)
        };
        match servos.iter().find(is_odd) {
            None => Ok(()),
            Some(odd) => Err(DriverError::OtherFirmware {
                servo: odd.servo.clone(),
                found: odd.firmware,
                usual: usual.firmware,
            }),
        }
    }

    /// Returns whether a person vouches for two versions of firmware, whose registers are the same.
    fn is_vouched_for(&self, odd: &ServoIdentity, usual: &ServoIdentity) -> bool {
        let is_named = |(major, minor): (u8, u8)| {
            let version = format!("{major}.{minor}");
            self.arm.file.firmware.contains(&version)
        };
        let is_alike = odd.model == usual.model && odd.firmware.0 == usual.firmware.0;
        is_alike && is_named(odd.firmware) && is_named(usual.firmware)
    }

    /// Warns of joints whose servos stop short of the joints' limits.
    fn range_warnings(&self, servos: &[ServoIdentity]) -> Vec<String> {
        let entries = self.map.entries.iter().zip(servos);
        entries
            .filter_map(|(entry, servo)| {
                let (min_ticks, max_ticks) = entry.range_ticks()?;
                let is_unlimited = servo.position_min_ticks == 0 && servo.position_max_ticks == 0;
                let is_inside = servo.position_min_ticks <= min_ticks && max_ticks <= servo.position_max_ticks;
                (!is_unlimited && !is_inside).then(|| {
                    format!(
                        "{} is set to stop at {} and {} counts; the arm's limits are {min_ticks} to {max_ticks}",
                        servo.servo, servo.position_min_ticks, servo.position_max_ticks
                    )
                })
            })
            .collect()
    }
}

/// Fraction of a cycle, as a divisor, that return delays may cost without a warning.
const DELAY_DIVISOR: u32 = 10;

/// Warns of servos that wait long before they reply.
fn delay_warnings(servos: &[ServoIdentity]) -> Option<String> {
    let total: Duration = servos.iter().map(|servo| servo.return_delay).sum();
    let slowest = servos.iter().max_by_key(|servo| servo.return_delay)?;
    (total > PERIOD_DEFAULT / DELAY_DIVISOR).then(|| {
        format!(
            "{}: its return delay is {} µs; all servos' delays take {:.1} ms of every cycle. Set it to 0 with `steadyhand bus configure`",
            slowest.servo,
            slowest.return_delay.as_micros(),
            total.as_secs_f64() * 1e3
        )
    })
}

fn agree(a: &[ServoReading], b: &[ServoReading]) -> bool {
    a.iter()
        .zip(b)
        .all(|(a, b)| a.ticks.saturating_sub(b.ticks).abs() <= FIRST_DIFFERENCE_TICKS)
}
