//! Requests of one family on a bus, to any id.

use std::time::Duration;

use crate::bus::{ServoBus, StatusReply};
use crate::dialect::{Dialect, ServoRequest};
use crate::dynamixel::DynamixelDialect;
use crate::feetech::FeetechDialect;
use crate::framing::ReplyFraming;
use crate::{
    BusCounts, BusError, OpenPort, RETRIES_MAX, ServiceError, ServoRegister, dynamixel, feetech,
};
use base::clock::NodeClock;
use base::units::ClockInstant;
use link::{ByteLink, LinkError};

/// The protocol of a servo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServoProtocol {
    /// Feetech's STS and SMS series.
    FeetechSts,
    /// Dynamixel protocol 2.0.
    Dynamixel2,
}

/// Ids that a servo may have.
pub const IDS: std::ops::RangeInclusive<u8> = 0..=252;

impl ServoProtocol {
    /// Both protocols.
    pub const ALL: [Self; 2] = [Self::FeetechSts, Self::Dynamixel2];

    /// Returns its name in an arm's file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FeetechSts => "feetech-sts",
            Self::Dynamixel2 => "dynamixel2",
        }
    }

    /// Returns every speed of the family, the usual one first.
    #[must_use]
    pub const fn bauds(self) -> &'static [u32] {
        match self {
            Self::FeetechSts => &[
                1_000_000, 500_000, 250_000, 128_000, 115_200, 76_800, 57_600, 38_400,
            ],
            Self::Dynamixel2 => &[
                1_000_000, 57_600, 115_200, 2_000_000, 3_000_000, 4_000_000, 9_600,
            ],
        }
    }
}

/// The settings for communication with servos.
#[derive(Clone, Copy, Debug)]
pub struct BusSettings {
    /// Their protocol.
    pub protocol: ServoProtocol,
    /// Their baud rate.
    pub baud: u32,
    /// Longest time for which the adapter may hold a reply back.
    pub slack: Duration,
}

impl BusSettings {
    /// Returns the settings for these.
    #[must_use]
    pub const fn new(protocol: ServoProtocol, baud: u32, slack: Duration) -> Self {
        Self {
            protocol,
            baud,
            slack,
        }
    }
}

/// The near end of a bus with servos of one family.
pub struct ServoLine {
    link: Box<dyn ByteLink>,
    protocol: ServoProtocol,
    bus: ServoBus,
}

/// Longest wait for an adapter of which nothing is known.
pub const SLACK: Duration = Duration::from_millis(6);

/// Waiting time for a servo that may be behind a slow adapter, or wake late.
pub const PATIENT: Duration = Duration::from_millis(40);

impl ServoLine {
    /// Creates a line to the servos at the far end of a link that runs at the settings' speed.
    #[must_use]
    pub fn new(link: Box<dyn ByteLink>, clock: &NodeClock, settings: BusSettings) -> Self {
        let BusSettings {
            protocol,
            baud,
            slack,
        } = settings;
        let framing: Box<dyn ReplyFraming> = match protocol {
            ServoProtocol::FeetechSts => Box::new(feetech::codec::FeetechDecoder::default()),
            ServoProtocol::Dynamixel2 => Box::new(dynamixel::codec::DynamixelDecoder::default()),
        };
        let mut bus = ServoBus::new(framing, clock, baud, BusCounts::default());
        bus.slack = slack;
        Self {
            link,
            protocol,
            bus,
        }
    }

    /// Opens a port and returns a line to the servos on it.
    ///
    /// # Errors
    /// When the port cannot be opened.
    pub fn open(
        open: &mut OpenPort<'_>,
        clock: &NodeClock,
        settings: BusSettings,
    ) -> Result<Self, LinkError> {
        Ok(Self::new(open(settings.baud)?, clock, settings))
    }

    /// Returns its protocol.
    #[must_use]
    pub const fn protocol(&self) -> ServoProtocol {
        self.protocol
    }

    /// Returns its baud rate.
    #[must_use]
    pub fn baud(&self) -> u32 {
        self.bus.baud
    }

    /// Returns its clock.
    pub(crate) fn clock(&self) -> &NodeClock {
        &self.bus.clock
    }

    /// Returns the underlying link, to listen to it.
    pub(crate) fn link(&mut self) -> &mut dyn ByteLink {
        self.link.as_mut()
    }

    /// Returns the error that no servo with this id replies.
    #[must_use]
    pub fn no_servo(&self, id: u8) -> ServiceError {
        ServiceError::NoServo {
            id,
            baud: self.baud(),
        }
    }

    /// Sets the longest time for which the adapter may hold a reply back; returns what it was.
    pub fn set_slack(&mut self, slack: Duration) -> Duration {
        std::mem::replace(&mut self.bus.slack, slack)
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counts(&self) -> &BusCounts {
        &self.bus.counts
    }

    /// Returns the number of requests after which only bytes came that are no frame and no echo.
    pub(crate) fn unreadable(&self) -> u64 {
        self.bus.unreadable
    }

    /// Pings a servo once; returns the time until the reply, or `None` without one.
    ///
    /// # Errors
    /// When the line itself fails.
    pub async fn ping(&mut self, id: u8) -> Result<Option<Duration>, BusError> {
        let began = self.bus.clock.now();
        let reply = self.query(ServoRequest::Ping(id)).await?;
        Ok(reply.map(|_| self.bus.received_at.since(began)))
    }

    /// Reads a register of one servo, with retries; `None` if no reply came.
    ///
    /// # Errors
    /// When the line itself fails.
    pub(crate) async fn read(
        &mut self,
        id: u8,
        register: ServoRegister,
    ) -> Result<Option<StatusReply>, BusError> {
        let began = self.bus.clock.now();
        for retries in 0..=RETRIES_MAX {
            let reply = self.query(ServoRequest::Read(id, register)).await?;
            if reply.is_some() {
                if retries > 0 {
                    self.await_silence(self.bus.clock.now().since(began))
                        .await?;
                }
                return Ok(reply);
            }
        }
        Ok(None)
    }

    /// Drops received bytes until none have come for `delay` and the adapter's slack. A repeated request
    /// may have two replies, and not every family names the register in a reply: the second one must not
    /// pass for the reply to the next request.
    pub(crate) async fn await_silence(&mut self, delay: Duration) -> Result<(), BusError> {
        let mut dropped = [0_u8; 256];
        for _ in 0..=RETRIES_MAX {
            let until = self.bus.clock.now().after(delay + self.bus.slack);
            let count = self.link.receive(&mut dropped, until).await;
            if count.map_err(BusError::Read)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Writes to one servo, which does not reply: the result has to be read back.
    ///
    /// # Errors
    /// When the line itself fails, or a register lets the servo move.
    pub(crate) async fn write(
        &mut self,
        id: u8,
        register: ServoRegister,
        value: i32,
    ) -> Result<(), BusError> {
        let blocks = [(id, register.bytes_of(value))];
        let is_sent = self
            .send_request(ServoRequest::SyncWrite(register, &blocks))
            .await?;
        if is_sent {
            Ok(())
        } else {
            let register = register.name;
            Err(BusError::NoAuthority { register })
        }
    }

    /// Restarts a servo, without waiting for it; `false` if its family has no such request.
    ///
    /// # Errors
    /// When the line itself fails.
    pub(crate) async fn reboot(&mut self, id: u8) -> Result<bool, BusError> {
        self.send_request(ServoRequest::Reboot(id)).await
    }

    /// Sends a request without a reply; `false` where the family has no such request or it may not be
    /// sent.
    async fn send_request(&mut self, request: ServoRequest<'_>) -> Result<bool, BusError> {
        let mut bytes = Vec::new();
        let is_known = match self.protocol {
            ServoProtocol::FeetechSts => FeetechDialect::encode(&mut bytes, request),
            ServoProtocol::Dynamixel2 => DynamixelDialect::encode(&mut bytes, request),
        };
        if is_known {
            self.bus.send_unanswered(self.link.as_mut(), &bytes).await?;
        }
        Ok(is_known)
    }

    async fn query(&mut self, request: ServoRequest<'_>) -> Result<Option<StatusReply>, BusError> {
        let (bus, link, first) = (&mut self.bus, self.link.as_mut(), Vec::new());
        let mut replies = match self.protocol {
            ServoProtocol::FeetechSts => {
                bus.request::<FeetechDialect>(link, first, request, NO_DEADLINE)
                    .await?
            }
            ServoProtocol::Dynamixel2 => {
                bus.request::<DynamixelDialect>(link, first, request, NO_DEADLINE)
                    .await?
            }
        };
        Ok(replies.pop().flatten())
    }
}

/// Deadline of a request that ends only by the time of its replies.
const NO_DEADLINE: ClockInstant = ClockInstant::from_nanos(u64::MAX);
