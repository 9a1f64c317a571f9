//! The identity of a servo, from its registers when it is first read.

use std::time::Duration;

use crate::error::ServoName;

/// Number of hexadecimal digits of [`ServoIdentity::fingerprint`].
pub const IDENTITY_DIGITS: usize = 8;

/// Identity of a servo, read when the driver attaches. It does not change while it is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServoIdentity {
    /// Id and joint.
    pub servo: ServoName,
    /// Model number.
    pub model: u16,
    /// Firmware, major and minor.
    pub firmware: (u8, u8),
    /// Delay before a reply.
    pub return_delay: Duration,
    /// Least position that it goes to.
    pub position_min_ticks: i32,
    /// Greatest position that it goes to.
    pub position_max_ticks: i32,
    /// Offset that it adds to its own count.
    pub homing_offset_ticks: i32,
    /// Direction and mode of its count: STS phase, Dynamixel drive mode.
    pub phase: u8,
    /// Gain P of its position loop; `None` where it is not known.
    pub gain_p: Option<u8>,
    /// `true` if its torque was on.
    pub torque_on: bool,
    /// Its error bits as its manual numbers them.
    pub error_bits: u8,
}

impl ServoIdentity {
    /// Returns whether it is the same servo as another; gain, torque and error bits are ignored.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let stable = |identity: &Self| Self {
            gain_p: None,
            torque_on: false,
            error_bits: 0,
            ..identity.clone()
        };
        stable(self) == stable(other)
    }

    /// Returns eight hexadecimal digits for who it is and how it counts: id, model, firmware, limits,
    /// homing offset and phase. Settings that may change at any time, such as its return delay, are
    /// left out.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let (major, minor) = self.firmware;
        let text = format!(
            "1 id {} model {} firmware {major}.{minor} limits {} {} offset {} phase {}",
            self.servo.id,
            self.model,
            self.position_min_ticks,
            self.position_max_ticks,
            self.homing_offset_ticks,
            self.phase
        );
        let hash = blake3::hash(text.as_bytes()).to_hex();
        hash.chars().take(IDENTITY_DIGITS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servo() -> ServoIdentity {
        ServoIdentity {
            servo: ServoName {
                id: 3,
                name: "elbow".to_owned(),
            },
            model: 777,
            firmware: (3, 10),
            return_delay: Duration::ZERO,
            position_min_ticks: 0,
            position_max_ticks: 4095,
            homing_offset_ticks: -12,
            phase: 0,
            gain_p: None,
            torque_on: false,
            error_bits: 0,
        }
    }

    #[test]
    fn an_identity_changes_with_what_it_covers_and_with_nothing_else() {
        let fingerprint = servo().fingerprint();
        // Frozen: arm files contain such digits.
        assert_eq!(fingerprint, "166ec3d9");
        let mut others: [ServoIdentity; 8] = std::array::from_fn(|_| servo());
        let [id, model, major, minor, least, most, offset, phase] = &mut others;
        id.servo.id = 4;
        model.model = 778;
        major.firmware.0 = 4;
        minor.firmware.1 = 9;
        least.position_min_ticks = 1;
        most.position_max_ticks = 4094;
        offset.homing_offset_ticks = 12;
        phase.phase = 1;
        for other in &others {
            assert_ne!(other.fingerprint(), fingerprint, "{other:?}");
        }
        let same = ServoIdentity {
            return_delay: Duration::from_micros(500),
            torque_on: true,
            error_bits: 32,
            ..servo()
        };
        assert_eq!(same.fingerprint(), fingerprint);
    }
}
