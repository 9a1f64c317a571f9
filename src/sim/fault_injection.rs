//! Faults that can be injected into the simulated arm, and the random numbers that some of them need.

use std::time::Duration;

/// A fault that stays active until it is set to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulatedFault {
    /// Drops this fraction of replies.
    DropReplies(f64),
    /// Flips bits in a fraction of replies.
    CorruptReplies {
        /// Fraction of replies, 0 to 1.
        share: f64,
        /// Number of bits in a reply.
        bits: u32,
    },
    /// Delays a fraction of replies.
    LateReplies {
        /// Fraction of replies, 0 to 1.
        share: f64,
        /// Delay.
        by: Duration,
    },
    /// A servo no longer answers, but goes on holding.
    Silence(u8),
    /// A silent servo answers again.
    Speak(u8),
    /// A second servo with the same id answers over the first.
    Duplicate(u8),
    /// The adapter echoes what it is sent.
    Echo(bool),
    /// Puts bytes on the wire without a sender.
    Noise(Vec<u8>),
    /// The adapter is unplugged.
    Unplug,
    /// The adapter is plugged in again; the servos were powered all the time.
    Plug,
    /// Voltage of the supply without load.
    SupplyV(f64),
    /// Sets the supply that a servo reports.
    ServoSupplyV {
        /// Id of the servo.
        id: u8,
        /// Volts; `None` for the supply of all.
        volts: Option<f64>,
    },
    /// A servo loses power for a moment.
    PowerCycle(u8),
    /// A servo loses power: it is limp, hears nothing and says nothing. Does not affect a controller.
    PowerOff(u8),
    /// A servo without power has it again, with the registers of a restart.
    PowerOn(u8),
    /// A servo reports these error bits; with the overload bit it also goes limp.
    ErrorBits {
        /// Id of the servo.
        id: u8,
        /// Bits as numbered in the servo's manual.
        bits: u8,
    },
    /// A measured servo's motor gives no torque, while its registers say that it does: the joint falls.
    Limp {
        /// Id of the servo.
        id: u8,
        /// False gives it its torque back.
        is_limp: bool,
    },
    /// Somebody pushes the tool mount; only measured servos feel it.
    Push {
        /// Force in the base frame; zero lets go.
        force_n: [f64; 3],
    },
    /// Something stands in a joint's way.
    Block {
        /// Index of the joint, from 0.
        joint: usize,
        /// The angle that it cannot cross; `None` removes the obstacle.
        at_rad: Option<f64>,
    },
    /// Sets a servo's temperature.
    Heat {
        /// Id of the servo.
        id: u8,
        /// Degrees Celsius.
        temperature_c: f64,
    },
    /// Changes a byte of a servo's memory.
    Register {
        /// Id of the servo.
        id: u8,
        /// Address of the byte.
        address: u16,
        /// New value.
        value: u8,
    },
    /// Sets the position that a servo reports, as a raw word.
    Position {
        /// Id of the servo.
        id: u8,
        /// `None` for the true position.
        word: Option<u16>,
    },
    /// A controller runs firmware that was built from another version of the protocol. Does not
    /// affect servos.
    OtherProtocol {
        /// The major version that it announces.
        major: u8,
        /// The hash of the layouts that it announces.
        schema: u32,
    },
}

/// Active faults of replies.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveFaults {
    pub(crate) drop: f64,
    pub(crate) corrupt: f64,
    pub(crate) corrupt_bits: u32,
    pub(crate) late: f64,
    pub(crate) late_by: Duration,
    pub(crate) silent: Vec<u8>,
    pub(crate) duplicate: Vec<u8>,
    pub(crate) echo: bool,
    pub(crate) unplugged: bool,
    /// Number of replies that were damaged so far.
    pub(crate) damaged: u64,
}

/// Fate of a reply.
pub(crate) enum ReplyFate {
    Lost,
    Delivered,
    Late(Duration),
}

/// Seeded random numbers: the same faults at the same times in every run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultRng(u64);

impl FaultRng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns true with this probability.
    fn happens(&mut self, probability: f64) -> bool {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        uniform < probability
    }

    /// Returns a uniform number between -1 and 1.
    pub(crate) fn signed(&mut self) -> f64 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 52) as f64;
        uniform - 1.0
    }

    /// Returns an approximately normal number with a standard deviation of 1.
    pub(crate) fn normal(&mut self) -> f64 {
        let bits = self.next();
        let parts = [0, 16, 32, 48].map(|shift| bits >> shift & 0xffff);
        let sum: u64 = parts.iter().sum();
        let sum = sum as f64 / 65_535.0 - 2.0;
        // The sum of four uniform numbers has a variance of a third.
        sum * 3.0_f64.sqrt()
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }
}

impl ActiveFaults {
    /// Applies the active faults to a reply, and returns its fate.
    /// In a frame of several answers, a silent servo leaves a gap that makes the frame unusable.
    pub(crate) fn apply(&mut self, ids: &[u8], bytes: &mut [u8], rng: &mut FaultRng) -> ReplyFate {
        let is_any_in = |set: &[u8]| ids.iter().any(|id| set.contains(id));
        if is_any_in(&self.silent) || rng.happens(self.drop) {
            return ReplyFate::Lost;
        }
        if is_any_in(&self.duplicate) {
            collide(bytes);
        }
        if rng.happens(self.corrupt) {
            flip(bytes, self.corrupt_bits, rng);
            self.damaged += 1;
        }
        if rng.happens(self.late) {
            return ReplyFate::Late(self.late_by);
        }
        ReplyFate::Delivered
    }
}

/// Simulates two servos that answer at once: a zero of either wins, and the second reports another position.
fn collide(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().skip(4) {
        *byte &= byte.rotate_left(3) ^ 0x5A;
    }
}

fn flip(bytes: &mut [u8], bits: u32, rng: &mut FaultRng) {
    for _ in 0..bits {
        let bit = rng.below(bytes.len() * 8);
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}
