//! Powers to break the simulated arm, and the chance that some of them need.

use std::time::Duration;

/// Something that goes wrong from now on, until the same fault is set to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum SimulatedFault {
    /// This share of replies never leaves its servo.
    DropReplies(f64),
    /// Flips bits in this share of replies.
    CorruptReplies {
        /// 0 to 1.
        share: f64,
        /// Bits a reply.
        bits: u32,
    },
    /// This share of replies comes so much later.
    LateReplies {
        /// 0 to 1.
        share: f64,
        /// Delay.
        by: Duration,
    },
    /// A servo says nothing more; it goes on holding.
    Silence(u8),
    /// A silent servo speaks again.
    Speak(u8),
    /// A second servo with the same id answers over the first.
    Duplicate(u8),
    /// The adapter returns what it is sent.
    Echo(bool),
    /// Puts bytes on the wire without a sender.
    Noise(Vec<u8>),
    /// The adapter is gone.
    Unplug,
    /// The adapter is back; the servos were on all the time.
    Plug,
    /// Voltage of the supply without load.
    SupplyV(f64),
    /// A servo loses power for a moment.
    PowerCycle(u8),
    /// A servo reports these error bits; with the overload bit it also goes limp.
    ErrorBits {
        /// Id of the servo.
        id: u8,
        /// As the servo's manual numbers them.
        bits: u8,
    },
    /// Something stands in a joint's way.
    Block {
        /// Index of the joint, from 0.
        joint: usize,
        /// The angle that it cannot cross; `None` takes the obstacle away.
        at_rad: Option<f64>,
    },
    /// A servo is as hot as that.
    Heat {
        /// Id of the servo.
        id: u8,
        /// Degrees.
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
    /// A servo reports this as its position, as a raw word.
    Position {
        /// Id of the servo.
        id: u8,
        /// `None` for the truth.
        word: Option<u16>,
    },
    /// A controller runs firmware that was built from another version of the protocol. Servos
    /// know nothing of it.
    OtherProtocol {
        /// The major version that it says it speaks.
        major: u8,
        /// The hash of the layouts that it says it has.
        schema: u32,
    },
}

/// The faults of replies that are in force.
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
    /// Replies that were damaged, ever.
    pub(crate) damaged: u64,
}

/// Fate of a reply.
pub(crate) enum ReplyFate {
    Lost,
    Heard,
    Late(Duration),
}

/// Chance from a seed: the same faults at the same moments every time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultRng(u64);

impl FaultRng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// True in that share of calls; costs no chance where it is 0.
    fn happens(&mut self, share: f64) -> bool {
        let drawn = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < share
    }

    /// A share between -1 and 1, each as likely as any other.
    pub(crate) fn signed(&mut self) -> f64 {
        let drawn = (self.next() >> 11) as f64 / (1_u64 << 52) as f64;
        drawn - 1.0
    }

    /// About normally distributed, with a sigma of 1.
    pub(crate) fn normal(&mut self) -> f64 {
        let drawn = self.next();
        let parts = [0, 16, 32, 48].map(|shift| drawn >> shift & 0xffff);
        let sum: u64 = parts.iter().sum();
        let sum = sum as f64 / 65_535.0 - 2.0;
        // Four uniform ones have a variance of a third.
        sum * 3.0_f64.sqrt()
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }
}

impl ActiveFaults {
    /// Damages a reply by the active faults, and returns whether it is heard.
    /// In a frame of several answers, a silent servo leaves a gap that makes the frame unusable.
    pub(crate) fn apply(
        &mut self,
        ids: &[u8],
        bytes: &mut [u8],
        chance: &mut FaultRng,
    ) -> ReplyFate {
        let any = |of: &[u8]| ids.iter().any(|id| of.contains(id));
        if any(&self.silent) || chance.happens(self.drop) {
            return ReplyFate::Lost;
        }
        if any(&self.duplicate) {
            collide(bytes);
        }
        if chance.happens(self.corrupt) {
            flip(bytes, self.corrupt_bits, chance);
            self.damaged += 1;
        }
        if chance.happens(self.late) {
            return ReplyFate::Late(self.late_by);
        }
        ReplyFate::Heard
    }
}

/// Two speakers at once: a zero of either wins, and the second stands somewhere else.
fn collide(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().skip(4) {
        *byte &= byte.rotate_left(3) ^ 0x5A;
    }
}

fn flip(bytes: &mut [u8], bits: u32, chance: &mut FaultRng) {
    for _ in 0..bits {
        let bit = chance.below(bytes.len() * 8);
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}
