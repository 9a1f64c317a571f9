//! Attaches to the servos on the bus, and checks that each is set up as the arm needs it.

use super::*;
use crate::identity;
use crate::servo_map::ServoEntry;
use servo::SetupFault;

/// Readings of a position that are compared before the first is believed.
const FIRST_READINGS: u32 = 4;

/// Largest difference of two first readings: a limp arm may be moving.
const FIRST_APART_TICKS: i32 = 40;

impl<D: Dialect> ServoDriver<D> {
    pub(crate) async fn attach(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<AttachReport, DriverError> {
        self.forget();
        let latency = self.ping_all(link).await?;
        let mut servos = Vec::with_capacity(self.ids.len());
        for place in 0..self.ids.len() {
            servos.push(self.identify(link, place).await?);
        }
        self.check_firmware(&servos)?;
        identity::check(&self.arm, &servos)?;
        self.bus.learn_latency(latency);
        let delays = servos.iter().map(|servo| servo.return_delay);
        self.bus.return_delay = delays.fold(Duration::ZERO, Duration::max);
        let readings = self.first_readings(link).await?;
        self.probe_fast_read(link).await?;
        // Supply and heat are known before anybody switches torque on.
        for _ in D::STATES {
            self.read_state(link, PATIENT).await?;
        }
        let mut warnings = self.range_warnings(&servos);
        warnings.extend(delay_warnings(&servos));
        for (place, (servo, reading)) in servos.iter_mut().zip(&readings).enumerate() {
            servo.error_bits = reading.error;
            if let Some(ailment) = self.reading_fault(place, reading) {
                warnings.push(format!("{}: {ailment}", servo.servo));
            }
        }
        Ok(AttachReport {
            measured: self.measure(&readings),
            servos,
            warnings,
            latency,
        })
    }

    /// Nothing that was known of another port or before a break is believed.
    fn forget(&mut self) {
        self.begin_tries = 0;
        self.bus.slack = SLACK_UNKNOWN;
        self.bus.longer = Duration::ZERO;
        self.bus.return_delay = Duration::from_micros(500);
        self.bus.echoes = false;
        self.fast = false;
        self.goals = None;
        self.torque_limits.clear();
        self.torque_limit = None;
        self.known.fill(SlowReadings::default());
        for ailments in [&mut self.suspected, &mut self.doubted, &mut self.ailing] {
            ailments.fill(None);
        }
    }

    /// Pings every servo; the slowest answer.
    async fn ping_all(&mut self, link: &mut dyn ByteLink) -> Result<Duration, DriverError> {
        let mut latency = Duration::ZERO;
        let mut missing = Vec::new();
        for place in 0..self.ids.len() {
            match self.ping(link, place).await? {
                Some(took) => latency = latency.max(took),
                None => missing.push(place),
            }
        }
        self.check_missing(&missing, RETRIES_MAX + 1)?;
        Ok(latency)
    }

    pub(super) async fn ping(
        &mut self,
        link: &mut dyn ByteLink,
        place: usize,
    ) -> Result<Option<Duration>, DriverError> {
        let id = self.map.name(place).id;
        for _ in 0..=RETRIES_MAX {
            let began = self.bus.clock.now();
            let ping = ServoRequest::Ping(id);
            let replies = self
                .bus
                .request::<D>(link, Vec::new(), ping, PATIENT)
                .await?;
            if matches!(replies.first(), Some(Some(_))) {
                return Ok(Some(self.bus.heard_at.since(began)));
            }
        }
        Ok(None)
    }

    /// Reads a register of one servo, asking again where no answer comes.
    pub(super) async fn read(
        &mut self,
        link: &mut dyn ByteLink,
        place: usize,
        register: ServoRegister,
    ) -> Result<StatusReply, DriverError> {
        let servo = self.map.name(place);
        let mut tries = 0;
        while self.asks_again(tries, PATIENT) {
            self.count_retries(&[place], tries);
            tries += 1;
            let read = ServoRequest::Read(servo.id, register);
            let mut replies = self
                .bus
                .request::<D>(link, Vec::new(), read, PATIENT)
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
        place: usize,
    ) -> Result<ServoIdentity, DriverError> {
        let settings = self.read(link, place, D::SETTINGS).await?;
        let servo = self.map.name(place);
        let identity = D::identify(&settings, servo.clone(), &self.ids);
        let fits = fits_turn::<D>(&self.map.entries[place]);
        let identity = identity.and_then(|identity| fits.map(|()| identity));
        let mut identity = identity.map_err(|fault| DriverError::Setup { servo, fault })?;
        let torque = self.read(link, place, D::TORQUE_ENABLE).await?;
        self.torque_limits.push(D::torque_limits(&settings));
        identity.torque_on = torque.byte(0) != 0;
        let known = &mut self.known[place];
        known.torque_on = Some(identity.torque_on);
        known.voltage_limits_v = D::voltage_limits_v(&settings);
        Ok(identity)
    }

    /// Positions have no history yet: each must come twice before it is believed.
    async fn first_readings(
        &mut self,
        link: &mut dyn ByteLink,
    ) -> Result<Vec<ServoReading>, DriverError> {
        let mut last: Option<Vec<ServoReading>> = None;
        for _ in 0..FIRST_READINGS {
            self.filters.iter_mut().for_each(PositionFilter::reset);
            let readings = self.read_present(link, Vec::new(), PATIENT).await?;
            if last.as_ref().is_some_and(|last| agree(last, &readings)) {
                self.found_ticks = readings.iter().map(|reading| reading.ticks).collect();
                return Ok(readings);
            }
            last = Some(readings);
        }
        Err(DriverError::UnsteadyReadings {
            servo: self.map.name(0),
            arm: self.arm.name.clone(),
        })
    }

    /// Checks whether all servos can answer in one packet.
    async fn probe_fast_read(&mut self, link: &mut dyn ByteLink) -> Result<(), DriverError> {
        if D::fast_length(D::PRESENT, self.ids.len()) == 0 {
            return Ok(());
        }
        let all = self.all_places();
        let replies = self
            .sync_read(link, Vec::new(), D::PRESENT, (&all, true), PATIENT)
            .await?;
        self.fast = replies.iter().all(Option::is_some);
        Ok(())
    }

    /// A servo with other firmware than the rest is the odd one out.
    fn check_firmware(&self, servos: &[ServoIdentity]) -> Result<(), DriverError> {
        let like = |servo: &ServoIdentity| {
            let same = servos
                .iter()
                .filter(|other| other.firmware == servo.firmware);
            same.count()
        };
        let usual = servos.iter().max_by_key(|servo| like(servo));
        let Some(usual) = usual.filter(|_| D::SAME_FIRMWARE) else {
            return Ok(());
        };
        match servos.iter().find(|servo| servo.firmware != usual.firmware) {
            None => Ok(()),
            Some(odd) => Err(DriverError::OtherFirmware {
                servo: odd.servo.clone(),
                found: odd.firmware,
                usual: usual.firmware,
            }),
        }
    }

    /// Joints that their servos would stop short of their limits.
    fn range_warnings(&self, servos: &[ServoIdentity]) -> Vec<String> {
        let entries = self.map.entries.iter().zip(servos);
        entries
            .filter_map(|(entry, servo)| {
                let (least, most) = entry.range_ticks()?;
                let unlimited = servo.position_min_ticks == 0 && servo.position_max_ticks == 0;
                let inside = servo.position_min_ticks <= least && most <= servo.position_max_ticks;
                (!unlimited && !inside).then(|| {
                    format!(
                        "{} stops at {} to {} ticks by its own settings; the arm's limits are {least} to {most}",
                        servo.servo, servo.position_min_ticks, servo.position_max_ticks
                    )
                })
            })
            .collect()
    }
}

/// Refuses a joint that would be sent to positions that its servo does not count within one turn:
/// it would fault there in the middle of a motion.
fn fits_turn<D: Dialect>(entry: &ServoEntry) -> Result<(), SetupFault> {
    let Some((least, most)) = entry.range_ticks() else {
        return Ok(());
    };
    if D::POSITIONS.contains(&least) && D::POSITIONS.contains(&most) {
        return Ok(());
    }
    Err(SetupFault::LeavesTurn {
        least,
        most,
        turn: D::POSITIONS,
    })
}

/// Waiting before each reply costs more than a tenth of a cycle.
const DELAY_SHARE: u32 = 10;

/// Servos that wait long before they answer.
fn delay_warnings(servos: &[ServoIdentity]) -> Option<String> {
    let all: Duration = servos.iter().map(|servo| servo.return_delay).sum();
    let slowest = servos.iter().max_by_key(|servo| servo.return_delay)?;
    (all > PERIOD_DEFAULT / DELAY_SHARE).then(|| {
        format!(
            "{}: return delay is {} µs; those of all servos cost {:.1} ms of every cycle: set it to 0 with `steadyhand bus configure`",
            slowest.servo,
            slowest.return_delay.as_micros(),
            all.as_secs_f64() * 1e3
        )
    })
}

fn agree(a: &[ServoReading], b: &[ServoReading]) -> bool {
    a.iter()
        .zip(b)
        .all(|(a, b)| a.ticks.saturating_sub(b.ticks).abs() <= FIRST_APART_TICKS)
}
