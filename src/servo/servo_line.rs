//! One family's words on a bus, to any id.

use std::time::Duration;

use crate::bus::{ExpectedReplies, ServoBus, StatusReply};
use crate::dialect::{Dialect, ServoRequest};
use crate::dynamixel::DynamixelDialect;
use crate::feetech::FeetechDialect;
use crate::framing::ReplyFraming;
use crate::{BusCounts, BusError, RETRIES_MAX, ServoRegister, dynamixel, feetech};
use base::clock::NodeClock;
use base::units::ClockInstant;
use link::ByteLink;

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

/// The near end of a bus on which one family is spoken to.
pub struct ServoLine {
    speech: ServoProtocol,
    bus: ServoBus,
}

/// The longest that an adapter is waited for where nothing is known of it.
pub const SLACK: Duration = Duration::from_millis(6);

/// Waiting time for a servo that may be behind a slow adapter, or wake late.
pub const PATIENT: Duration = Duration::from_millis(40);

impl ServoLine {
    /// A line to servos of a family; `slack` is how long the adapter may hold a reply back.
    #[must_use]
    pub fn new(speech: ServoProtocol, clock: &NodeClock, baud: u32, slack: Duration) -> Self {
        let framing: Box<dyn ReplyFraming> = match speech {
            ServoProtocol::FeetechSts => Box::new(feetech::codec::FeetechDecoder::default()),
            ServoProtocol::Dynamixel2 => Box::new(dynamixel::codec::DynamixelDecoder::default()),
        };
        let mut bus = ServoBus::new(framing, clock, baud, BusCounts::default());
        bus.slack = slack;
        Self { speech, bus }
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
    pub async fn ping(
        &mut self,
        link: &mut dyn ByteLink,
        id: u8,
    ) -> Result<Option<Duration>, BusError> {
        let Some(request) = self.encoded(ServoRequest::Ping(id)) else {
            return Ok(None);
        };
        let length = match self.speech {
            ServoProtocol::FeetechSts => FeetechDialect::PING_LENGTH,
            ServoProtocol::Dynamixel2 => DynamixelDialect::PING_LENGTH,
        };
        let began = self.bus.clock.now();
        let reply = self.ask(link, &request, id, length).await?;
        Ok(reply.map(|_| self.bus.heard_at.since(began)))
    }

    /// A register of one servo, asked again where no answer comes; `None` where none came.
    ///
    /// # Errors
    /// When the line itself fails.
    pub(crate) async fn read(
        &mut self,
        link: &mut dyn ByteLink,
        id: u8,
        register: ServoRegister,
    ) -> Result<Option<StatusReply>, BusError> {
        let Some(request) = self.encoded(ServoRequest::Read(id, register)) else {
            return Ok(None);
        };
        for _ in 0..=RETRIES_MAX {
            let length = usize::from(register.length);
            let reply = self.ask(link, &request, id, length).await?;
            if reply.is_some() {
                return Ok(reply);
            }
        }
        Ok(None)
    }

    /// Writes to one servo, which does not answer: what came of it has to be read.
    ///
    /// # Errors
    /// When the line itself fails, or a register lets the servo move.
    pub(crate) async fn write(
        &mut self,
        link: &mut dyn ByteLink,
        id: u8,
        register: ServoRegister,
        value: i32,
    ) -> Result<(), BusError> {
        let bytes = value.to_le_bytes();
        let bytes = bytes.get(..usize::from(register.length)).unwrap_or(&bytes);
        let blocks = [(id, bytes.to_vec())];
        let request = self.encoded(ServoRequest::SyncWrite(register, &blocks));
        let register = register.name;
        let request = request.ok_or(BusError::NoAuthority { register })?;
        self.bus.send_unanswered(link, &request).await
    }

    /// Asks a servo to restart, without waiting for it; `false` if its family has no such request.
    ///
    /// # Errors
    /// When the line itself fails.
    pub(crate) async fn reboot(
        &mut self,
        link: &mut dyn ByteLink,
        id: u8,
    ) -> Result<bool, BusError> {
        let Some(request) = self.encoded(ServoRequest::Reboot(id)) else {
            return Ok(false);
        };
        self.bus.send_unanswered(link, &request).await?;
        Ok(true)
    }

    /// A request's bytes, where the family has such a request and it may be sent.
    fn encoded(&self, request: ServoRequest<'_>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let is_known = match self.speech {
            ServoProtocol::FeetechSts => FeetechDialect::encode(&mut bytes, request),
            ServoProtocol::Dynamixel2 => DynamixelDialect::encode(&mut bytes, request),
        };
        is_known.then_some(bytes)
    }

    async fn ask(
        &mut self,
        link: &mut dyn ByteLink,
        request: &[u8],
        id: u8,
        parameters: usize,
    ) -> Result<Option<StatusReply>, BusError> {
        let expect = ExpectedReplies {
            ids: &[id],
            parameters,
            until: ClockInstant::from_nanos(u64::MAX),
        };
        let mut replies = self.bus.ask(link, request, expect).await?;
        Ok(replies.pop().flatten())
    }
}
