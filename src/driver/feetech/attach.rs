//! Who is on the bus, and whether each servo is set up as an arm needs it.

use super::registers::{EEPROM_END, MODEL_STS3215, PHASE_MULTI_TURN, settings};
use super::*;

/// Readings of a position that are compared before the first is believed.
const FIRST_READINGS: u32 = 4;

/// How far two first readings may be apart: a limp arm may be moving.
const FIRST_APART_TICKS: i32 = 40;

impl Feetech {
    pub(crate) async fn attach(&mut self, link: &mut dyn Link) -> Result<Attached, DriverError> {
        self.bus.slack = SLACK_UNKNOWN;
        self.bus.echoes = false;
        self.bus.return_delay = Duration::from_micros(500);
        let latency = self.ping_all(link).await?;
        let mut servos = Vec::with_capacity(self.ids.len());
        for place in 0..self.ids.len() {
            servos.push(self.identify(link, place).await?);
        }
        self.bus.learn_latency(latency);
        self.bus.return_delay = servos
            .iter()
            .map(|s| s.return_delay)
            .max()
            .unwrap_or_default();
        // Goals from before are nobody's wish now: another program may have moved the arm.
        self.goals = None;
        let readings = self.first_readings(link).await?;
        let mut warnings = self.range_warnings(&servos);
        for (servo, reading) in servos.iter_mut().zip(&readings) {
            servo.error_bits = reading.error;
            if let Some(ailment) = by_bits(reading.error) {
                warnings.push(format!("{}: {ailment}", servo.servo));
            }
        }
        Ok(Attached {
            measured: self.measure(&readings),
            servos,
            warnings,
            latency,
        })
    }

    /// Pings every servo; the slowest answer.
    async fn ping_all(&mut self, link: &mut dyn Link) -> Result<Duration, DriverError> {
        let mut latency = Duration::ZERO;
        let mut missing = Vec::new();
        for place in 0..self.ids.len() {
            match self.ping(link, place).await? {
                Some(took) => latency = latency.max(took),
                None => missing.push(place),
            }
        }
        match missing.first() {
            None => Ok(latency),
            Some(_) if missing.len() == self.ids.len() => Err(DriverError::SilentBus {
                servos: missing.len(),
                baud: self.bus.baud,
            }),
            Some(first) => Err(DriverError::NoReply {
                servo: self.map.name(*first),
                tries: RETRIES_MAX + 1,
            }),
        }
    }

    async fn ping(
        &mut self,
        link: &mut dyn Link,
        place: usize,
    ) -> Result<Option<Duration>, DriverError> {
        let Some(id) = self.ids.get(place).copied() else {
            return Ok(None);
        };
        let mut request = Vec::new();
        encode(&mut request, id, Instruction::Ping, &[]);
        for _ in 0..=RETRIES_MAX {
            let began = self.bus.clock.now();
            let expect = Expect {
                ids: &[id],
                parameters: 0,
                until: Instant::from_nanos(u64::MAX),
            };
            let replies = self.bus.ask(link, &request, expect).await?;
            if matches!(replies.first(), Some(Some(_))) {
                return Ok(Some(self.bus.clock.now().since(began)));
            }
        }
        Ok(None)
    }

    /// Reads a register of one servo, asking again where no answer comes.
    pub(super) async fn read(
        &mut self,
        link: &mut dyn Link,
        place: usize,
        register: Register,
    ) -> Result<Status, DriverError> {
        let servo = self.map.name(place);
        let mut request = Vec::new();
        let parameters = [register.address, register.length];
        encode(&mut request, servo.id, Instruction::Read, &parameters);
        for tries in 0..=RETRIES_MAX {
            self.count_retries(&[place], tries);
            let expect = Expect {
                ids: &[servo.id],
                parameters: usize::from(register.length),
                until: Instant::from_nanos(u64::MAX),
            };
            let mut replies = self.bus.ask(link, &request, expect).await?;
            if let Some(Some(status)) = replies.pop() {
                return Ok(status);
            }
        }
        Err(DriverError::NoReply {
            servo,
            tries: RETRIES_MAX + 1,
        })
    }

    async fn identify(
        &mut self,
        link: &mut dyn Link,
        place: usize,
    ) -> Result<Identity, DriverError> {
        let status = self.read(link, place, registers::SETTINGS).await?;
        debug_assert_eq!(status.data.len(), usize::from(EEPROM_END));
        let servo = self.map.name(place);
        check_settings(&status).map_err(|what| DriverError::Setup {
            servo: servo.clone(),
            what,
        })?;
        let torque = self.read(link, place, registers::TORQUE_ENABLE).await?;
        let torque_on = torque.byte(0) != 0;
        if let Some(known) = self.torque.get_mut(place) {
            *known = Some(torque_on);
        }
        if let Some(limits) = self.voltage_limits_v.get_mut(place) {
            let volts = |at| f64::from(status.byte(at)) / 10.0;
            *limits = (volts(settings::VOLTAGE_MIN), volts(settings::VOLTAGE_MAX));
        }
        Ok(Identity {
            servo,
            model: status.word(settings::MODEL),
            firmware: (
                status.byte(settings::FIRMWARE),
                status.byte(settings::FIRMWARE + 1),
            ),
            return_delay: Duration::from_micros(2 * u64::from(status.byte(settings::RETURN_DELAY))),
            position_min_ticks: i32::from(status.word(settings::POSITION_MIN)),
            position_max_ticks: i32::from(status.word(settings::POSITION_MAX)),
            homing_offset_ticks: from_sign_magnitude(status.word(settings::HOMING_OFFSET), 11),
            torque_on,
            error_bits: status.error,
        })
    }

    /// Positions have no history yet: each must come twice before it is believed.
    async fn first_readings(&mut self, link: &mut dyn Link) -> Result<Vec<Reading>, DriverError> {
        let mut last: Option<Vec<Reading>> = None;
        for _ in 0..FIRST_READINGS {
            self.filters.iter_mut().for_each(Filter::reset);
            let patient = Instant::from_nanos(u64::MAX);
            let readings = self.read_present(link, Vec::new(), patient).await?;
            if last.as_ref().is_some_and(|last| agree(last, &readings)) {
                self.found_ticks = readings.iter().map(|reading| reading.ticks).collect();
                return Ok(readings);
            }
            last = Some(readings);
        }
        Err(DriverError::Setup {
            servo: self.map.name(0),
            what: format!(
                "the positions on this bus differ from one reading to the next: hold arm `{}` still and check its cables",
                self.arm
            ),
        })
    }

    /// Joints that their servos would stop short of their limits.
    fn range_warnings(&self, servos: &[Identity]) -> Vec<String> {
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

fn agree(a: &[Reading], b: &[Reading]) -> bool {
    a.iter()
        .zip(b)
        .all(|(a, b)| (a.ticks - b.ticks).abs() <= FIRST_APART_TICKS)
}

fn check_settings(status: &Status) -> Result<(), String> {
    let model = status.word(settings::MODEL);
    let level = status.byte(settings::RESPONSE_LEVEL);
    let phase = status.byte(settings::PHASE);
    let mode = status.byte(settings::MODE);
    if model != MODEL_STS3215 {
        return Err(format!(
            "model is {model}, this arm needs {MODEL_STS3215} (STS3215): another servo family counts otherwise; replace the servo or name the right family in the arm file"
        ));
    }
    if level > 1 {
        return Err(format!(
            "response level (register 8) is {level}, it must be 0 or 1; set it to 1"
        ));
    }
    if phase & PHASE_MULTI_TURN != 0 {
        return Err(format!(
            "phase (register 18) is {phase}: bit 0x10 makes positions count beyond one turn; set it to {}",
            phase & !PHASE_MULTI_TURN
        ));
    }
    if mode != 0 {
        return Err(format!(
            "operating mode (register 33) is {mode}, it must be 0 (position)"
        ));
    }
    Ok(())
}
