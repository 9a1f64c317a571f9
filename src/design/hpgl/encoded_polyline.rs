//! Decodes polylines of HP-GL/2 in their short form, PE: flags, and numbers in base 64 or 32.

use base::plane::Point;

use super::super::DesignError;
use super::byte_name;
use super::commands::HpglCommand;

/// Lowest byte of a number; lower ones are flags and blanks.
const DIGIT_MIN: u8 = 63;
/// Most digits of a number: 2^53 in base 32.
const DIGITS_MAX: u32 = 11;

/// A step of an encoded polyline, in user units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EncodedStep {
    /// Selects a pen, counted as in SP.
    Pen(f64),
    Move {
        to: Point,
        is_absolute: bool,
        is_down: bool,
    },
}

/// Digits of a number: 64 in bytes of eight bits, 32 in those of seven.
#[derive(Clone, Copy)]
struct DigitBase {
    base: f64,
    /// Bytes from this one up end a number.
    last_min: u8,
}

const EIGHT_BITS: DigitBase = DigitBase {
    base: 64.0,
    last_min: 191,
};
const SEVEN_BITS: DigitBase = DigitBase {
    base: 32.0,
    last_min: 95,
};

/// Reads the steps of PE.
///
/// # Errors
/// Unknown flags, and numbers that do not end.
pub(super) fn decode_steps(command: &HpglCommand) -> Result<Vec<EncodedStep>, DesignError> {
    let mut reader = EncodedReader {
        command,
        index: 0,
        digits: EIGHT_BITS,
        fraction: 1.0,
    };
    let mut steps = Vec::new();
    let (mut is_absolute, mut is_down) = (false, true);
    while let Some(byte) = reader.peek() {
        if byte >= DIGIT_MIN {
            let to = [reader.coordinate()?, reader.coordinate()?];
            steps.push(EncodedStep::Move {
                to,
                is_absolute,
                is_down,
            });
            (is_absolute, is_down) = (false, true);
            continue;
        }
        reader.index += 1;
        match byte {
            b':' => steps.push(EncodedStep::Pen(reader.number()?)),
            b'<' => is_down = false,
            b'=' => is_absolute = true,
            b'>' => reader.fraction = reader.number()?.clamp(-26.0, 26.0).exp2(),
            b'7' => reader.digits = SEVEN_BITS,
            byte if byte.is_ascii_whitespace() => {}
            _ => {
                reader.index -= 1;
                return Err(reader.unexpected_byte());
            }
        }
    }
    Ok(steps)
}

struct EncodedReader<'c> {
    command: &'c HpglCommand,
    index: usize,
    digits: DigitBase,
    /// The number that stands for a coordinate of 1.
    fraction: f64,
}

impl EncodedReader<'_> {
    fn peek(&self) -> Option<u8> {
        self.command.raw.get(self.index).copied()
    }

    fn coordinate(&mut self) -> Result<f64, DesignError> {
        Ok(self.number()? / self.fraction)
    }

    /// Reads a number, lowest digit first; an odd number is negative.
    fn number(&mut self) -> Result<f64, DesignError> {
        let DigitBase { base, last_min } = self.digits;
        let (mut value, mut place_value) = (0.0, 1.0);
        for _ in 0..DIGITS_MAX {
            let Some(byte) = self.peek().filter(|byte| *byte >= DIGIT_MIN) else {
                return Err(self.unexpected_byte());
            };
            self.index += 1;
            let is_last = byte >= last_min;
            let digit = f64::from(byte - if is_last { last_min } else { DIGIT_MIN });
            if digit >= base {
                return Err(self.unexpected_byte());
            }
            value += digit * place_value;
            place_value *= base;
            if is_last {
                let half = (value / 2.0).floor();
                let is_negative = half * 2.0 < value;
                return Ok(if is_negative { -half } else { half });
            }
        }
        Err(self.unexpected_byte())
    }

    fn unexpected_byte(&self) -> DesignError {
        let found = match self.peek() {
            Some(byte) => format!("the byte {byte} in PE"),
            None => "the end of PE inside a number".to_owned(),
        };
        DesignError::syntax(
            byte_name(self.command.at + 2 + self.index),
            found,
            "flags and coordinates of an encoded polyline",
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Encodes a number as in PE.
    pub(in super::super) fn encode(value: i32, is_seven: bool) -> Vec<u8> {
        let (base, last_min) = if is_seven { (32, 95) } else { (64, 191) };
        let mut rest = value.unsigned_abs() * 2 + u32::from(value < 0);
        let mut bytes = Vec::new();
        loop {
            let digit = u8::try_from(rest % base).unwrap();
            rest /= base;
            bytes.push(digit + if rest == 0 { last_min } else { 63 });
            if rest == 0 {
                return bytes;
            }
        }
    }

    fn command(raw: Vec<u8>) -> HpglCommand {
        HpglCommand {
            name: *b"PE",
            at: 0,
            numbers: Vec::new(),
            raw,
        }
    }

    proptest! {
        #[test]
        fn coordinates_are_what_was_encoded(
            points in prop::collection::vec((-99_999..99_999_i32, -99_999..99_999_i32), 1..20),
            is_seven in any::<bool>(),
        ) {
            let mut raw = if is_seven { b"7".to_vec() } else { Vec::new() };
            for (x, y) in &points {
                raw.extend(encode(*x, is_seven));
                raw.extend(encode(*y, is_seven));
            }
            let found = decode_steps(&command(raw)).unwrap();
            let expected = points.iter().map(|(x, y)| EncodedStep::Move {
                to: [f64::from(*x), f64::from(*y)],
                is_absolute: false,
                is_down: true,
            });
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_refused_or_read(raw in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode_steps(&command(raw));
        }
    }
}
