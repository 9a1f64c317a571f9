//! Units of parameters: the suffixes of each dimension, and exact conversion.

use super::numeral::{self, ParsedNumeral};
use UnitDimension::{Angle, Length, Rate, Speed, Time};
use serde_json::Number;

/// Dimension that a quantity measures, with its base unit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum UnitDimension {
    /// Metres.
    Length,
    /// Radians.
    Angle,
    /// Seconds.
    Time,
    /// Metres per second.
    Speed,
    /// Hertz.
    Rate,
}

/// One row of the table: `num/den` of the base unit, times π where `is_circular`.
#[derive(Debug, PartialEq)]
struct UnitRow {
    dimension: UnitDimension,
    /// The symbol, by which the unit is shown, then other spellings, in lower case, separated by `|`.
    names: &'static str,
    num: i128,
    den: i128,
    is_circular: bool,
}

const fn row(dimension: UnitDimension, names: &'static str, num: i128, den: i128) -> UnitRow {
    UnitRow {
        dimension,
        names,
        num,
        den,
        is_circular: false,
    }
}

const fn circular(names: &'static str, num: i128, den: i128) -> UnitRow {
    UnitRow {
        is_circular: true,
        ..row(Angle, names, num, den)
    }
}

impl UnitRow {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split('|')
    }
}

const TABLE: [UnitRow; 28] = [
    row(
        Length,
        "um|µm|μm|micron|microns|micrometer|micrometers|micrometre|micrometres",
        1,
        1_000_000,
    ),
    row(
        Length,
        "mm|millimeter|millimeters|millimetre|millimetres",
        1,
        1_000,
    ),
    row(
        Length,
        "cm|centimeter|centimeters|centimetre|centimetres",
        1,
        100,
    ),
    row(
        Length,
        "dm|decimeter|decimeters|decimetre|decimetres",
        1,
        10,
    ),
    row(Length, "m|meter|meters|metre|metres", 1, 1),
    row(Length, "in|inch|inches|\"|″", 254, 10_000),
    row(Length, "ft|foot|feet", 3_048, 10_000),
    row(Angle, "rad|radian|radians", 1, 1),
    row(Angle, "mrad|milliradian|milliradians", 1, 1_000),
    circular("deg|°|degree|degrees|º", 1, 180),
    circular("turn|turns|rev|revolution|revolutions", 2, 1),
    row(Time, "us|µs|μs|microsecond|microseconds", 1, 1_000_000),
    row(Time, "ms|msec|millisecond|milliseconds", 1, 1_000),
    row(Time, "s|sec|secs|second|seconds", 1, 1),
    row(Time, "min|mins|minute|minutes", 60, 1),
    row(Time, "h|hr|hrs|hour|hours", 3_600, 1),
    row(Speed, "m/s|mps|m_s", 1, 1),
    row(Speed, "cm/s|cm_s", 1, 100),
    row(Speed, "mm/s|mmps|mm_s", 1, 1_000),
    row(Speed, "m/min|m_min", 1, 60),
    row(Speed, "cm/min|cm_min", 1, 6_000),
    row(Speed, "mm/min|mm_min", 1, 60_000),
    row(Speed, "in/s|ips|in_s", 254, 10_000),
    row(Speed, "in/min|ipm|in_min", 254, 600_000),
    row(
        Rate,
        "hz|fps|hertz|/s|1/s|per second|frames per second|frames/s|times per second",
        1,
        1,
    ),
    row(Rate, "khz|kilohertz", 1_000, 1),
    row(Rate, "millihertz", 1, 1_000),
    row(Rate, "/min|per minute|bpm", 1, 60),
];

/// A declared unit, such as the millimetre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeclaredUnit(&'static UnitRow);

/// Longest number before a suffix.
const NUMERAL_CHARS_MAX: usize = 64;

/// A number with the suffix that followed it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenQuantity<'a> {
    pub(super) numeral: ParsedNumeral,
    pub(super) suffix: &'a str,
}

impl DeclaredUnit {
    /// Returns the unit with this name or symbol in any dimension; `None` if the table has none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = fold(name);
        let mut rows = TABLE.iter();
        let found = rows.find(|row| row.names().any(|known| known == name));
        found.map(Self)
    }

    /// Returns the unit's symbol, such as `mm`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        self.0.names().next().unwrap_or_default()
    }

    /// Converts `numeral` from another unit to this one, exactly or to the nearest double; `None` across dimensions or on overflow.
    pub(super) fn convert(self, numeral: &ParsedNumeral, from: Self) -> Option<ParsedNumeral> {
        if from.0.dimension != self.0.dimension {
            return None;
        }
        if from.0.is_circular == self.0.is_circular {
            return self.convert_exactly(numeral, from);
        }
        let value = numeral::number(numeral)?.as_f64()?;
        real(value * from.base_ratio() / self.base_ratio())
    }

    fn convert_exactly(self, numeral: &ParsedNumeral, from: Self) -> Option<ParsedNumeral> {
        let (digits, exponent) = match numeral {
            ParsedNumeral::Whole(value) => (*value, 0),
            ParsedNumeral::Decimal(decimal) => (decimal.digits, decimal.exponent),
            ParsedNumeral::NotFinite | ParsedNumeral::Ambiguous => return None,
        };
        let num = digits.checked_mul(from.0.num.checked_mul(self.0.den)?)?;
        quotient(num, from.0.den.checked_mul(self.0.num)?, exponent)
    }

    fn base_ratio(self) -> f64 {
        let ratio = self.0.num as f64 / self.0.den as f64;
        if self.0.is_circular {
            ratio * std::f64::consts::PI
        } else {
            ratio
        }
    }

    /// Units of the same dimension, this one excepted.
    pub(super) fn units_of_same_dimension(self) -> impl Iterator<Item = Self> {
        TABLE
            .iter()
            .filter(move |row| row.dimension == self.0.dimension && !std::ptr::eq(*row, self.0))
            .map(Self)
    }
}

/// Returns `num/den × 10^exponent` as a whole number, an exact decimal, or the nearest double.
fn quotient(num: i128, den: i128, exponent: i32) -> Option<ParsedNumeral> {
    let divisor = gcd(num.unsigned_abs(), den.unsigned_abs()).max(1);
    let divisor = i128::try_from(divisor).ok()?;
    let (num, mut den) = (num / divisor, den / divisor);
    let (mut digits, mut power) = (num, exponent);
    // A denominator of only twos and fives gives a decimal, which is rounded once, when it is parsed.
    while let Some(factor) = [10, 5, 2].into_iter().find(|factor| den % factor == 0) {
        den /= factor;
        digits = digits.checked_mul(10 / factor)?;
        power -= 1;
    }
    let decimal = numeral::ExactDecimal {
        digits,
        exponent: power,
    };
    if den == 1 {
        let whole = decimal
            .whole()
            .filter(|whole| numeral::whole(*whole).is_some());
        return Some(whole.map_or(ParsedNumeral::Decimal(decimal), ParsedNumeral::Whole));
    }
    real(decimal.value() / den as f64)
}

/// Returns a double as the decimal that it prints as; `None` if it is not finite.
fn real(value: f64) -> Option<ParsedNumeral> {
    numeral::parse(&Number::from_f64(value)?.to_string())
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn fold(name: &str) -> String {
    let name = numeral::narrow(name.trim().trim_end_matches('.')).to_lowercase();
    if !name.contains('/') && !name.contains(" per ") {
        return name;
    }
    let name = name.replace(" per ", "/").replace(" / ", "/");
    let (distance, time) = name.split_once('/').unwrap_or((&name, ""));
    let time = match time {
        "sec" | "second" | "seconds" => "s",
        "minute" | "minutes" => "min",
        other => other,
    };
    let distance = match distance {
        "meters" | "metres" | "meter" | "metre" => "m",
        "millimeters" | "millimetres" => "mm",
        "centimeters" | "centimetres" => "cm",
        "inches" | "inch" => "in",
        other => other,
    };
    format!("{distance}/{time}")
}

/// Splits `"5 mm"` into its number and its suffix; the number is the longest that it begins with. `None` if there is none.
pub(super) fn quantity(text: &str) -> Option<WrittenQuantity<'_>> {
    let text = text.trim();
    let word = text.split_whitespace().next()?;
    let ends = word.char_indices().map(|(at, _)| at).chain([word.len()]);
    let ends: Vec<usize> = ends.take(NUMERAL_CHARS_MAX + 1).collect();
    ends.into_iter().rev().find_map(|end| {
        let (head, suffix) = (text.get(..end)?, text.get(end..)?.trim());
        let numeral = numeral::parse(head)?;
        Some(WrittenQuantity { numeral, suffix })
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    fn convert(text: &str, to: &str) -> Option<String> {
        let quantity = quantity(text)?;
        DeclaredUnit::named(to)?
            .convert(&quantity.numeral, DeclaredUnit::named(quantity.suffix)?)
            .and_then(|numeral| numeral::number(&numeral))
            .map(|number| number.to_string())
    }

    #[test]
    fn converts_exactly() {
        for (text, to, want) in [
            ("5mm", "m", "0.005"),
            ("3 cm", "mm", "30"),
            ("0.1 mm", "m", "0.0001"),
            ("1 in", "mm", "25.4"),
            ("2.5cm", "m", "0.025"),
            ("90deg", "deg", "90"),
            ("180°", "rad", "3.141592653589793"),
            ("1 turn", "deg", "360"),
            ("500ms", "s", "0.5"),
            ("2 min", "s", "120"),
            ("60 mm/min", "mm/s", "1"),
            ("25 mm/s", "m/s", "0.025"),
            ("5 fps", "hz", "5"),
            ("0.5 kHz", "hz", "500"),
            ("7m", "mm", "7000"),
            ("1e-3 m", "mm", "1"),
            ("-3 mm", "m", "-0.003"),
            ("100 mm/min", "mm/s", "1.6666666666666667"),
            ("0 mm", "m", "0"),
        ] {
            assert_eq!(convert(text, to).as_deref(), Some(want), "{text} in {to}");
        }
    }

    #[test]
    fn never_crosses_dimensions() {
        for (text, to) in [
            ("5 mm", "s"),
            ("5 kg", "m"),
            ("5", "m"),
            ("mm", "m"),
            ("5 mm mm", "m"),
        ] {
            assert_eq!(convert(text, to), None, "{text} in {to}");
        }
    }

    #[test]
    fn names_are_unique() {
        let mut all: Vec<_> = TABLE.iter().flat_map(UnitRow::names).collect();
        all.sort();
        let before = all.len();
        all.dedup();
        assert_eq!(all.len(), before);
    }
}
