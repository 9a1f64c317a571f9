//! Torque on where the arm stands, torque off whatever happens, and whether it is still on.

use super::registers::{GOAL, TORQUE_ENABLE, TORQUE_LIMIT, TORQUE_STATE};
use super::*;

/// How far a goal that was read back may be from where the servo stands.
const GOAL_APART_TICKS: i32 = 2;

/// Share of stall torque that the servos may use, in thousandths. Other than what a servo wakes up
/// with, so that it also tells one that restarted: a goal makes such a servo stiff again, and its
/// torque enable alone would then read as if nothing had happened.
const TORQUE_LIMIT_PERMILLE: u16 = 950;

impl Feetech {
    pub(crate) async fn energise(&mut self, link: &mut dyn Link) -> Result<Measured, DriverError> {
        let limp: Vec<usize> = (0..self.ids.len())
            .filter(|place| self.torque.get(*place) != Some(&Some(true)))
            .collect();
        let result = self.try_energise(link).await;
        if result.is_err() {
            self.goals = None;
            // The first error is the one to report; this is the tidying after it.
            let _ = self.torque_off(link, &limp).await;
        }
        result
    }

    async fn try_energise(&mut self, link: &mut dyn Link) -> Result<Measured, DriverError> {
        let readings = self.read_settled(link).await?;
        self.find_ailment(&readings, &self.measure(&readings))?;
        self.found_ticks = readings.iter().map(|reading| reading.ticks).collect();
        self.write_goals_here(link, &readings).await?;
        self.write_word(link, TORQUE_LIMIT, TORQUE_LIMIT_PERMILLE)
            .await?;
        let on = self.ids.iter().map(|id| (*id, [1]));
        let frame = sync_write(TORQUE_ENABLE, on);
        self.bus.tell(link, &frame).await?;
        for place in 0..self.ids.len() {
            let found = self.read(link, place, TORQUE_ENABLE).await?.byte(0);
            self.expect(place, TORQUE_ENABLE, 1, i32::from(found), 0)?;
            self.know_torque(place, Some(true));
        }
        self.torque_read = self.bus.clock.now();
        let readings = self.read_settled(link).await?;
        let measured = self.measure(&readings);
        self.find_ailment(&readings, &measured)?;
        self.goals = Some(self.goals_here());
        Ok(measured)
    }

    async fn read_settled(&mut self, link: &mut dyn Link) -> Result<Vec<Reading>, DriverError> {
        let patient = Instant::from_nanos(u64::MAX);
        self.read_present(link, Vec::new(), patient).await
    }

    fn goals_here(&self) -> Vec<Goal> {
        let entries = self.map.entries.iter().zip(&self.found_ticks);
        entries
            .map(|(entry, ticks)| Goal {
                ticks: *ticks,
                speed_ticks_s: entry.velocity_max_ticks_s,
            })
            .collect()
    }

    /// A servo that is energised goes to the goal it last had: that must be where it stands.
    async fn write_goals_here(
        &mut self,
        link: &mut dyn Link,
        readings: &[Reading],
    ) -> Result<(), DriverError> {
        let goals = self.goals_here();
        let blocks = self.map.entries.iter().zip(&goals);
        let blocks = blocks.map(|(entry, goal)| (entry.name.id, goal_block(entry, *goal)));
        let frame = sync_write(GOAL, blocks);
        self.bus.tell(link, &frame).await?;
        for (place, reading) in readings.iter().enumerate() {
            let status = self.read(link, place, GOAL).await?;
            let found = from_sign_magnitude(status.word(1), 15);
            self.expect(place, GOAL, reading.ticks, found, GOAL_APART_TICKS)?;
        }
        Ok(())
    }

    async fn write_word(
        &mut self,
        link: &mut dyn Link,
        register: Register,
        value: u16,
    ) -> Result<(), DriverError> {
        let blocks = self.ids.iter().map(|id| (*id, value.to_le_bytes()));
        let frame = sync_write(register, blocks);
        self.bus.tell(link, &frame).await?;
        for place in 0..self.ids.len() {
            let found = self.read(link, place, register).await?.word(0);
            self.expect(place, register, i32::from(value), i32::from(found), 0)?;
        }
        Ok(())
    }

    fn expect(
        &self,
        place: usize,
        register: Register,
        wanted: i32,
        found: i32,
        apart: i32,
    ) -> Result<(), DriverError> {
        if (wanted - found).abs() <= apart {
            return Ok(());
        }
        Err(DriverError::NotTaken {
            servo: self.map.name(place),
            register: register.name,
            wanted,
            found,
        })
    }

    fn know_torque(&mut self, place: usize, on: Option<bool>) {
        if let Some(known) = self.torque.get_mut(place) {
            *known = on;
        }
    }

    pub(crate) async fn release(&mut self, link: &mut dyn Link) -> Result<Released, DriverError> {
        self.goals = None;
        let all: Vec<usize> = (0..self.ids.len()).collect();
        self.torque_off(link, &all).await
    }

    /// Takes torque off the servos at `places`, each attempted whatever the others do.
    async fn torque_off(
        &mut self,
        link: &mut dyn Link,
        places: &[usize],
    ) -> Result<Released, DriverError> {
        let mut released = Released::default();
        for _ in 0..=RETRIES_MAX {
            let ids = places.iter().filter_map(|place| self.ids.get(*place));
            let frame = sync_write(TORQUE_ENABLE, ids.map(|id| (*id, [0])));
            self.bus.tell(link, &frame).await?;
        }
        for place in places {
            let servo = self.map.name(*place);
            match self.read(link, *place, TORQUE_ENABLE).await {
                Ok(status) if status.byte(0) == 0 => {
                    self.know_torque(*place, Some(false));
                    released.off.push(servo);
                }
                Ok(status) => {
                    let found = i32::from(status.byte(0));
                    if let Err(error) = self.expect(*place, TORQUE_ENABLE, 0, found, 0) {
                        released.failed.push((servo, error));
                    }
                }
                Err(error @ (DriverError::Read(_) | DriverError::Write(_))) => return Err(error),
                Err(error) => {
                    self.know_torque(*place, None);
                    released.failed.push((servo, error));
                }
            }
        }
        Ok(released)
    }

    pub(super) fn torque_is_due(&self, deadline: Instant) -> bool {
        let now = self.bus.clock.now();
        self.goals.is_some() && now.since(self.torque_read) >= TORQUE_POLL && now < deadline
    }

    /// Torque reads back as off, or without our limit, after a servo lost power. It must do so
    /// twice: eight bits of checksum are too few to drop an arm's stroke for. One unread servo is
    /// asked next time.
    pub(super) async fn read_torque(
        &mut self,
        link: &mut dyn Link,
        deadline: Instant,
    ) -> Result<(), DriverError> {
        let places: Vec<usize> = (0..self.ids.len()).collect();
        let replies = self
            .sync_read(link, Vec::new(), TORQUE_STATE, &places, deadline)
            .await?;
        let mut doubted = false;
        for (place, reply) in replies.iter().enumerate() {
            let Some(status) = reply else { continue };
            let on = status.byte(0) == 1 && status.word(8) == TORQUE_LIMIT_PERMILLE;
            let was_doubted = self.torque_doubted.get(place) == Some(&true);
            if on || was_doubted {
                self.know_torque(place, Some(on));
            }
            if let Some(doubt) = self.torque_doubted.get_mut(place) {
                *doubt = !on;
            }
            doubted |= !on && !was_doubted;
        }
        if !doubted {
            self.torque_read = self.bus.clock.now();
        }
        Ok(())
    }
}
