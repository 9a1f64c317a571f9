//! One family's words on a bus, to any id.

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
    /// Both.
    pub const ALL: [Self; 2] = [Self::FeetechSts, Self::Dynamixel2];

    /// As an arm's file calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FeetechSts => "feetech-sts",
            Self::Dynamixel2 => "dynamixel2",
        }
    }

    /// Every speed of the family, the usual one first.
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

/// The settings with which servos are spoken to.
#[derive(Clone, Copy, Debug)]
pub struct BusSettings {
    /// Their protocol.
    pub speech: ServoProtocol,
    /// At which speed.
    pub baud: u32,
    /// Waiting time for the adapter: how long it may hold a reply back.
    pub slack: Duration,
}

impl BusSettings {
    /// Returns the settings for these.
    #[must_use]
    pub const fn new(speech: ServoProtocol, baud: u32, slack: Duration) -> Self {
        Self {
            speech,
            baud,
            slack,
        }
    }
}

/// The near end of a bus on which one family is spoken to.
pub struct ServoLine {
    link: Box<dyn ByteLink>,
    speech: ServoProtocol,
    bus: ServoBus,
}

/// The longest that an adapter is waited for where nothing is known of it.
pub const SLACK: Duration = Duration::from_millis(6);

/// Waiting time for a servo that may be behind a slow adapter, or wake late.
pub const PATIENT: Duration = Duration::from_millis(40);

impl ServoLine {
    /// A line to the servos at the far end of a link that runs at the settings' speed.
    #[must_use]
    pub fn new(link: Box<dyn ByteLink>, clock: &NodeClock, settings: BusSettings) -> Self {
        let BusSettings {
            speech,
            baud,
            slack,
        } = settings;
        let framing: Box<dyn ReplyFraming> = match speech {
            ServoProtocol::FeetechSts => Box::new(feetech::codec::FeetechDecoder::default()),
            ServoProtocol::Dynamixel2 => Box::new(dynamixel::codec::DynamixelDecoder::default()),
        };
        let mut bus = ServoBus::new(framing, clock, baud, BusCounts::default());
        bus.slack = slack;
        Self { link, speech, bus }
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
    pub const fn speech(&self) -> ServoProtocol {
        self.speech
    }

    /// The speed that it expects of the wire.
    #[must_use]
    pub fn baud(&self) -> u32 {
        self.bus.baud
    }

    /// The clock that it keeps time with.
    pub(crate) fn clock(&self) -> &NodeClock {
        &self.bus.clock
    }

    /// The link beneath, to listen to it.
    pub(crate) fn link(&mut self) -> &mut dyn ByteLink {
        self.link.as_mut()
    }

    /// Returns the error that no servo with this id answers.
    #[must_use]
    pub fn no_servo(&self, id: u8) -> ServiceError {
        ServiceError::NoServo {
            id,
            baud: self.baud(),
        }
    }

    /// From now on the adapter may hold a reply back for so long.
    pub fn wait_longer(&mut self, slack: Duration) {
        self.bus.slack = slack;
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn counts(&self) -> &BusCounts {
        &self.bus.counts
    }

    /// Asks a servo once for its id; returns the time until the answer, or `None` without one.
    ///
    /// # Errors
    /// When the line itself fails.
    pub async fn ping(&mut self, id: u8) -> Result<Option<Duration>, BusError> {
        let began = self.bus.clock.now();
        let reply = self.ask(ServoRequest::Ping(id)).await?;
        Ok(reply.map(|_| self.bus.heard_at.since(began)))
    }

    /// A register of one servo, asked again where no answer comes; `None` where none came.
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
            let reply = self.ask(ServoRequest::Read(id, register)).await?;
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

    /// Drops what still arrives until nothing has for `late` and the adapter's time. A request that was repeated may be answered
    /// twice, and not every family says in a reply which register it is of: the second must not answer the next request.
    async fn await_silence(&mut self, late: Duration) -> Result<(), BusError> {
        let mut dropped = [0_u8; 256];
        for _ in 0..=RETRIES_MAX {
            let until = self.bus.clock.now().after(late + self.bus.slack);
            let count = self.link.receive(&mut dropped, until).await;
            if count.map_err(BusError::Read)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Writes to one servo, which does not answer: what came of it has to be read.
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
            .tell(ServoRequest::SyncWrite(register, &blocks))
            .await?;
        if is_sent {
            Ok(())
        } else {
            let register = register.name;
            Err(BusError::NoAuthority { register })
        }
    }

    /// Asks a servo to restart, without waiting for it; `false` if its family has no such request.
    ///
    /// # Errors
    /// When the line itself fails.
    pub(crate) async fn reboot(&mut self, id: u8) -> Result<bool, BusError> {
        self.tell(ServoRequest::Reboot(id)).await
    }

    /// Sends a request that no servo answers; `false` where the family has no such request or it may not be
    /// sent.
    async fn tell(&mut self, request: ServoRequest<'_>) -> Result<bool, BusError> {
        let mut bytes = Vec::new();
        let is_known = match self.speech {
            ServoProtocol::FeetechSts => FeetechDialect::encode(&mut bytes, request),
            ServoProtocol::Dynamixel2 => DynamixelDialect::encode(&mut bytes, request),
        };
        if is_known {
            self.bus.send_unanswered(self.link.as_mut(), &bytes).await?;
        }
        Ok(is_known)
    }

    async fn ask(&mut self, request: ServoRequest<'_>) -> Result<Option<StatusReply>, BusError> {
        let (bus, link, first) = (&mut self.bus, self.link.as_mut(), Vec::new());
        let mut replies = match self.speech {
            ServoProtocol::FeetechSts => {
                bus.request::<FeetechDialect>(link, first, request, PATIENTLY)
                    .await?
            }
            ServoProtocol::Dynamixel2 => {
                bus.request::<DynamixelDialect>(link, first, request, PATIENTLY)
                    .await?
            }
        };
        Ok(replies.pop().flatten())
    }
}

/// However long the replies take that were asked for.
const PATIENTLY: ClockInstant = ClockInstant::from_nanos(u64::MAX);
