//! The messages that each frame type carries, byte by byte.
//!
//! Every layout is fixed and little endian, so that the length of a frame, and with it its time on
//! the wire, depends on nothing but its type and the number of joints. A payload of another length,
//! or with a value outside its list, is refused as a whole.

use crate::Joints;
use crate::frame::{Frame, FrameBytes, encode};
use crate::wire::{Field, Reader, Writer};

/// Longest text of a log message, in bytes.
pub const LOG_TEXT_MAX: usize = 120;

/// Value of [`SegmentAck::joint`] if the acknowledgement concerns no joint.
pub const NO_JOINT: u8 = 0xFF;

/// Message types, as numbers in the low six bits of a frame's first byte.
pub mod kind {
    /// Host: open a session.
    pub const HELLO: u8 = 0x00;
    /// Both: sign of life.
    pub const BEAT: u8 = 0x01;
    /// Host: request for the device's clock.
    pub const TIME_REQ: u8 = 0x02;
    /// Host: one piece of motion.
    pub const SEGMENT: u8 = 0x03;
    /// Host: decelerate along the path to rest, keep the queue.
    pub const HOLD: u8 = 0x04;
    /// Host: continue after a hold.
    pub const RESUME: u8 = 0x05;
    /// Host: decelerate along the path and drop the queue.
    pub const FLUSH: u8 = 0x06;
    /// Host: clear a latched emergency stop or fault.
    pub const CLEAR_FAULT: u8 = 0x07;
    /// Host: torque on or off.
    pub const TORQUE: u8 = 0x08;
    /// Host: go to the device's park pose.
    pub const PARK: u8 = 0x09;
    /// Device: answer to HELLO.
    pub const HELLO_ACK: u8 = 0x20;
    /// Device: answer to TIME_REQ.
    pub const TIME_RESP: u8 = 0x21;
    /// Device: answer to every SEGMENT.
    pub const SEGMENT_ACK: u8 = 0x22;
    /// Device: its full state, many times a second.
    pub const STATE: u8 = 0x23;
    /// Device: a line for people.
    pub const LOG: u8 = 0x24;
    /// Host: emergency stop, without payload.
    pub const ESTOP: u8 = 0x3F;
}

/// Declares an enumeration that is one byte on the wire.
macro_rules! byte_enum {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $value:literal,)+ }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name { $($(#[$inner])* $variant = $value,)+ }

        impl $name {
            /// Returns the value that `byte` encodes; `None` if this version defines none.
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte { $($value => Some(Self::$variant),)+ _ => None }
            }

            /// Returns the byte on the wire.
            pub const fn byte(self) -> u8 {
                self as u8
            }
        }

        impl Field for $name {
            fn read(from: &mut Reader<'_>) -> Option<Self> {
                Self::from_byte(u8::read(from)?)
            }

            fn write(&self, out: &mut Writer) {
                self.byte().write(out);
            }
        }
    };
}

/// Declares the layout of a structure: its fields in their order on the wire, then, after a semicolon, a
/// reserved number, which is zero, and the fields after it.
macro_rules! layout {
    ($name:ident { $($field:ident),+ $(; $reserved:ty $(, $last:ident)*)? }) => {
        impl Field for $name {
            fn read(from: &mut Reader<'_>) -> Option<Self> {
                $(let $field = Field::read(from)?;)+
                $(
                    <$reserved>::read(from).filter(|&reserved| reserved == 0)?;
                    $(let $last = Field::read(from)?;)*
                )?
                Some(Self { $($field,)+ $($($last,)*)? })
            }

            fn write(&self, out: &mut Writer) {
                $(self.$field.write(out);)+
                $(
                    <$reserved>::default().write(out);
                    $(self.$last.write(out);)*
                )?
            }
        }
    };
}

byte_enum! {
    /// Action of a device once its host has been silent for a second.
    LostHost {
        /// Stay at rest with torque on.
        Hold = 0,
        /// Go to the park pose and stay there with torque on.
        Park = 1,
        /// Switch torque off; only for arms that do not fall.
        TorqueOff = 2,
    }
}

byte_enum! {
    /// Mode of a device.
    Mode {
        /// No session: torque is off and only HELLO, BEAT, TIME_REQ and ESTOP are accepted.
        Unpaired = 0,
        /// A session, torque off.
        Disarmed = 1,
        /// Torque on, at rest, ready for a motion.
        Idle = 2,
        /// A motion is queued or in progress.
        Running = 3,
        /// Decelerating along the path.
        Stopping = 4,
        /// At rest in the middle of a motion, the queue kept; waits for RESUME or FLUSH.
        Held = 5,
        /// At rest after a stop that dropped its queue; waits for RESUME or FLUSH.
        Stopped = 6,
        /// On the way to the park pose.
        Parking = 7,
        /// Emergency stop, decelerating or at rest; latched until CLEAR_FAULT.
        Estop = 8,
        /// A drive failed; torque off, latched until CLEAR_FAULT.
        Fault = 9,
    }
}

byte_enum! {
    /// The reason why a device last left normal running.
    Cause {
        /// It has not left it.
        None = 0,
        /// HOLD was received.
        Hold = 1,
        /// FLUSH was received.
        Flush = 2,
        /// A new HELLO was received during motion.
        Hello = 3,
        /// No BEAT for 150 ms.
        Deadman = 4,
        /// The queue ran dry while moving.
        Underrun = 5,
        /// A segment arrived too late.
        Late = 6,
        /// A segment does not begin where the previous one ends.
        Discontinuous = 7,
        /// A segment exceeds a limit, or the arm could not stop after it.
        Limit = 8,
        /// ESTOP was received.
        Estop = 9,
        /// A drive reported a fault.
        Drive = 10,
        /// The pause between two ticks was too long for the device to know its place on the path.
        Stalled = 11,
    }
}

byte_enum! {
    /// Result of a segment.
    SegmentStatus {
        /// Queued.
        Accepted = 0,
        /// It was received before; nothing changed.
        Duplicate = 1,
        /// An earlier segment is missing: send again from `next_index`.
        Gap = 2,
        /// It belongs to another epoch; nothing changed.
        Stale = 3,
        /// There is no free slot: send it again later.
        Full = 4,
        /// The device's mode does not accept segments.
        NotReady = 5,
        /// Its payload is not a segment for this arm.
        Shape = 6,
        /// It begins too soon or should already have begun. The motion is being stopped.
        Late = 7,
        /// It does not begin where or when the previous one ends. The motion is being stopped.
        Discontinuous = 8,
        /// It leaves a joint's range. The motion is being stopped.
        Position = 9,
        /// It exceeds a joint's speed limit. The motion is being stopped.
        Velocity = 10,
        /// It exceeds a joint's acceleration limit. The motion is being stopped.
        Acceleration = 11,
        /// The arm could not stop within its range after it. The motion is being stopped.
        NoStop = 12,
    }
}

byte_enum! {
    /// Result of the last command.
    CommandResult {
        /// The command is done or begun.
        Done = 0,
        /// The command is not allowed in this mode.
        WrongMode = 1,
        /// The nonce differs from the one in STATE.
        WrongNonce = 2,
        /// A latched stop or fault forbids it; CLEAR_FAULT first.
        Latched = 3,
        /// The arm is moving; HOLD or FLUSH first.
        Moving = 4,
        /// The drives' positions are not known yet, or lie outside the range.
        NoPosition = 5,
        /// The host speaks another major version; the device does not arm for it.
        WrongVersion = 6,
    }
}

byte_enum! {
    /// The reason why the controller last started.
    ResetCause {
        /// The cause is unknown.
        Unknown = 0,
        /// Power was switched on.
        PowerOn = 1,
        /// The supply voltage dipped.
        BrownOut = 2,
        /// Its watchdog fired.
        Watchdog = 3,
        /// Its reset pin was pulled.
        Pin = 4,
        /// Its own software reset it.
        Software = 5,
    }
}

/// Opens a session. Payload 4 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Major version that the host speaks.
    pub major: u8,
    /// Minor version that the host speaks.
    pub minor: u8,
    /// The device's action once the host has been silent for a second.
    pub lost_host: LostHost,
}

/// One joint's limits, as the device enforces them. 20 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JointLimits {
    /// Lower end of the range in microradians.
    pub position_min_urad: i32,
    /// Upper end of the range in microradians.
    pub position_max_urad: i32,
    /// Highest speed in microradians per second.
    pub velocity_max_urad_s: u32,
    /// Highest acceleration along a path in microradians a second squared.
    pub acceleration_max_urad_s2: u32,
    /// Deceleration of an emergency stop in microradians a second squared.
    pub stop_urad_s2: u32,
}

/// Answers HELLO. Payload 28 + 20 × joints bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelloAck {
    /// Major version that the device speaks.
    pub major: u8,
    /// Minor version that the device speaks.
    pub minor: u8,
    /// Segments that fit its queue.
    pub queue_depth: u8,
    /// [`crate::schema::SCHEMA_HASH`] of the device.
    pub schema: u32,
    /// A different number after every boot.
    pub boot_id: u32,
    /// Epoch of the next motion.
    pub epoch: u16,
    /// The reason why the controller last started.
    pub reset_cause: ResetCause,
    /// Interval between set-points, in microseconds.
    pub tick_us: u16,
    /// Name and version of the firmware: ASCII, padded with zeros.
    pub firmware: [u8; 12],
    /// Limits of each joint, base first.
    pub limits: Joints<JointLimits>,
}

/// Answers TIME_REQ. Payload 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeResp {
    /// The token of the request.
    pub token: u32,
    /// Device clock when the request arrived, in microseconds.
    pub received_us: u32,
    /// Device clock when this answer was written, in microseconds.
    pub sent_us: u32,
}

/// One piece of motion: position and speed of every joint at its end. Payload 10 + 8 × joints bytes.
///
/// A segment with a duration of zero is an *anchor*: it opens a motion and states its start time and the arm's
/// position as the host knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Epoch that the device last announced.
    pub epoch: u16,
    /// Index of the segment, from 0 in each epoch; wraps.
    pub index: u16,
    /// Beginning, in microseconds of path time.
    pub start_us: u32,
    /// Duration in microseconds; 0 for an anchor.
    pub duration_us: u16,
    /// Position and speed of each joint at the end, base first.
    pub end: Joints<Knot>,
}

/// One joint at one instant. 8 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Knot {
    /// Position in microradians.
    pub position_urad: i32,
    /// Speed in microradians a second.
    pub velocity_urad_s: i32,
}

/// Answers every SEGMENT. Payload 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentAck {
    /// The device's epoch.
    pub epoch: u16,
    /// Every segment of that epoch before this index is queued or done.
    pub next_index: u16,
    /// Free slots of the queue.
    pub free: u8,
    /// Result of the segment.
    pub status: SegmentStatus,
    /// The joint that exceeds a limit, or [`NO_JOINT`].
    pub joint: u8,
    /// Low byte of the index of the acknowledged segment.
    pub answers: u8,
    /// End of the last queued segment, in microseconds of path time.
    pub tail_us: u32,
}

/// One joint in STATE. 12 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JointState {
    /// The drive's last goal, in microradians.
    pub commanded_urad: i32,
    /// The drive's last measurement, in microradians.
    pub measured_urad: i32,
    /// Measured speed in microradians a second.
    pub velocity_urad_s: i32,
}

/// Report of a device's state. Payload 32 + 12 × joints bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Device clock in microseconds.
    pub clock_us: u32,
    /// Boot id, which reveals a reboot even without a HELLO.
    pub boot_id: u32,
    /// Device clock minus path time in microseconds: the delay of the path by holds.
    pub shift_us: u32,
    /// The number that CLEAR_FAULT must carry; 0 while nothing is latched.
    pub nonce: u32,
    /// The epoch that segments must carry.
    pub epoch: u16,
    /// Drive faults, one bit for each joint.
    pub drive_faults: u16,
    /// Number of corrupt frames; wraps.
    pub corrupt: u16,
    /// Number of intact frames that were unknown, of another version or malformed; wraps.
    pub ignored: u16,
    /// Mode of the device.
    pub mode: Mode,
    /// The reason why it last left normal running.
    pub cause: Cause,
    /// Bit 0 torque on, bit 1 moving, bit 2 measured positions are valid.
    pub flags: u8,
    /// Free slots of the queue.
    pub free: u8,
    /// Sequence number of the last accepted command.
    pub command: u8,
    /// Its result.
    pub result: CommandResult,
    /// The joints, base first.
    pub joints: Joints<JointState>,
}

impl State {
    /// Bit of [`State::flags`]: torque is on.
    pub const TORQUE: u8 = 1;
    /// Bit of [`State::flags`]: set-points are changing.
    pub const MOVING: u8 = 2;
    /// Bit of [`State::flags`]: measured positions are valid.
    pub const MEASURED: u8 = 4;
}

byte_enum! {
    /// Severity of a log line.
    LogLevel {
        /// For information.
        Info = 0,
        /// Something is unusual.
        Warning = 1,
        /// Something is broken.
        Error = 2,
    }
}

/// A line for people. Payload 1 to 121 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    /// Its severity.
    pub level: LogLevel,
    text: [u8; LOG_TEXT_MAX],
    len: usize,
}

impl Log {
    /// Creates a log line; text beyond [`LOG_TEXT_MAX`] bytes is cut.
    pub fn new(level: LogLevel, text: &[u8]) -> Self {
        let mut log = Self {
            level,
            text: [0; LOG_TEXT_MAX],
            len: text.len().min(LOG_TEXT_MAX),
        };
        for (to, from) in log.text.iter_mut().zip(text) {
            *to = *from;
        }
        log
    }

    /// Returns the text as bytes, which should be UTF-8 but are not checked.
    pub fn text(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

/// Any message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each variant is the type or the number that it carries"
)]
pub enum Message {
    Hello(Hello),
    /// The sender's clock in microseconds; to the receiver only a sign of life.
    Beat(u32),
    /// A token that the answer repeats.
    TimeReq(u32),
    Segment(Segment),
    Hold,
    Resume,
    Flush,
    /// The nonce from STATE.
    ClearFault(u32),
    /// True for torque on.
    Torque(bool),
    Park,
    Estop,
    HelloAck(HelloAck),
    TimeResp(TimeResp),
    SegmentAck(SegmentAck),
    State(State),
    Log(Log),
}

/// The reason why an intact frame is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageError {
    /// The frame has this other major version.
    Version(u8),
    /// This version does not have the type; a newer minor version may.
    UnknownKind(u8),
    /// The payload is invalid for this type.
    Malformed(u8),
}

impl core::fmt::Display for MessageError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "frame of protocol version {version}, not {}",
                crate::PROTOCOL_MAJOR
            ),
            Self::UnknownKind(kind) => write!(f, "unknown message type {kind:#04x}"),
            Self::Malformed(kind) => write!(f, "malformed payload of message type {kind:#04x}"),
        }
    }
}

impl core::error::Error for MessageError {}

impl Message {
    /// Decodes a frame.
    pub fn decode(frame: &Frame<'_>) -> Result<Self, MessageError> {
        if frame.version != crate::PROTOCOL_MAJOR {
            return Err(MessageError::Version(frame.version));
        }
        let mut reader = Reader::new(frame.payload);
        let message = read(frame.kind, &mut reader)?;
        message
            .filter(|_| reader.rest().is_empty())
            .ok_or(MessageError::Malformed(frame.kind))
    }

    /// Encodes the message as a frame.
    pub fn encode(&self, sequence: u8) -> FrameBytes {
        let mut writer = Writer::new();
        self.write(&mut writer);
        match encode(self.kind(), sequence, writer.written()) {
            Some(frame) => frame,
            // A type is a constant below 64 and the writer holds no more than a frame can.
            None => unreachable!("every message fits a frame"),
        }
    }

    /// Returns the number of the message type.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => kind::HELLO,
            Self::Beat(_) => kind::BEAT,
            Self::TimeReq(_) => kind::TIME_REQ,
            Self::Segment(_) => kind::SEGMENT,
            Self::Hold => kind::HOLD,
            Self::Resume => kind::RESUME,
            Self::Flush => kind::FLUSH,
            Self::ClearFault(_) => kind::CLEAR_FAULT,
            Self::Torque(_) => kind::TORQUE,
            Self::Park => kind::PARK,
            Self::Estop => kind::ESTOP,
            Self::HelloAck(_) => kind::HELLO_ACK,
            Self::TimeResp(_) => kind::TIME_RESP,
            Self::SegmentAck(_) => kind::SEGMENT_ACK,
            Self::State(_) => kind::STATE,
            Self::Log(_) => kind::LOG,
        }
    }

    fn write(&self, out: &mut Writer) {
        match self {
            Self::Hold | Self::Resume | Self::Flush | Self::Park | Self::Estop => {}
            Self::Hello(hello) => hello.write(out),
            Self::Beat(value) | Self::TimeReq(value) | Self::ClearFault(value) => value.write(out),
            Self::Torque(on) => on.write(out),
            Self::Segment(segment) => segment.write(out),
            Self::HelloAck(ack) => ack.write(out),
            Self::TimeResp(time) => time.write(out),
            Self::SegmentAck(ack) => ack.write(out),
            Self::State(state) => state.write(out),
            Self::Log(log) => log.write(out),
        }
    }
}

/// Reads a message; `Ok(None)` if the payload is too short or holds a value outside its list.
fn read(kind: u8, from: &mut Reader<'_>) -> Result<Option<Message>, MessageError> {
    Ok(match kind {
        kind::HELLO => Field::read(from).map(Message::Hello),
        kind::BEAT => Field::read(from).map(Message::Beat),
        kind::TIME_REQ => Field::read(from).map(Message::TimeReq),
        kind::SEGMENT => Field::read(from).map(Message::Segment),
        kind::HOLD => Some(Message::Hold),
        kind::RESUME => Some(Message::Resume),
        kind::FLUSH => Some(Message::Flush),
        kind::CLEAR_FAULT => Field::read(from).map(Message::ClearFault),
        kind::TORQUE => Field::read(from).map(Message::Torque),
        kind::PARK => Some(Message::Park),
        kind::ESTOP => Some(Message::Estop),
        kind::HELLO_ACK => Field::read(from).map(Message::HelloAck),
        kind::TIME_RESP => Field::read(from).map(Message::TimeResp),
        kind::SEGMENT_ACK => Field::read(from).map(Message::SegmentAck),
        kind::STATE => Field::read(from).map(Message::State),
        kind::LOG => Field::read(from).map(Message::Log),
        unknown => return Err(MessageError::UnknownKind(unknown)),
    })
}

layout!(Hello { major, minor, lost_host; u8 });
layout!(JointLimits {
    position_min_urad,
    position_max_urad,
    velocity_max_urad_s,
    acceleration_max_urad_s2,
    stop_urad_s2
});
layout!(HelloAck {
    major,
    minor,
    queue_depth,
    reset_cause,
    schema,
    boot_id,
    epoch,
    tick_us,
    firmware,
    limits
});
layout!(TimeResp {
    token,
    received_us,
    sent_us
});
layout!(Knot {
    position_urad,
    velocity_urad_s
});
layout!(Segment {
    epoch,
    index,
    start_us,
    duration_us,
    end
});
layout!(SegmentAck {
    epoch,
    next_index,
    free,
    status,
    joint,
    answers,
    tail_us
});
layout!(JointState {
    commanded_urad,
    measured_urad,
    velocity_urad_s
});
layout!(State {
    clock_us, boot_id, shift_us, nonce, epoch, drive_faults, corrupt, ignored, mode, cause, flags, free,
    command, result; u16, joints
});

/// One to [`crate::MAX_JOINTS`] joints, at the end of their message.
impl<T: Field + Copy + Default> Field for Joints<T> {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let mut joints = Self::empty();
        while !from.rest().is_empty() {
            joints.push(T::read(from)?).then_some(())?;
        }
        (!joints.is_empty()).then_some(joints)
    }

    fn write(&self, out: &mut Writer) {
        self.iter().for_each(|joint| joint.write(out));
    }
}

impl Field for Log {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let level = LogLevel::read(from)?;
        let text = from.take_rest();
        (text.len() <= LOG_TEXT_MAX).then(|| Self::new(level, text))
    }

    fn write(&self, out: &mut Writer) {
        self.level.write(out);
        out.bytes(self.text());
    }
}
