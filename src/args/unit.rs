//! Units of a parameter: which suffixes belong to its dimension, and exact conversion.

use super::numeral::{self, ParsedNumeral};
use serde_json::Number;

/// Dimension that a quantity measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitDimension {
    /// Metres and their kin.
    Length,
    /// Radians, degrees, turns.
    Angle,
    /// Seconds and their kin.
    Time,
    /// Metres per second and their kin.
    Speed,
    /// Hertz and their kin.
    Rate,
}

/// One row of the table: `num/den` of the base unit, times π where `is_circular`.
#[derive(Debug, PartialEq)]
struct UnitRow {
    dimension: UnitDimension,
    /// First the symbol, which is also how the unit is shown; then other spellings. Folded to lower case.
    names: &'static [&'static str],
    num: i128,
    den: i128,
    is_circular: bool,
}

const fn row(
    dimension: UnitDimension,
    names: &'static [&'static str],
    num: i128,
    den: i128,
) -> UnitRow {
    UnitRow {
        dimension,
        names,
        num,
        den,
        is_circular: false,
    }
}

const fn circular(names: &'static [&'static str], num: i128, den: i128) -> UnitRow {
    UnitRow {
        dimension: UnitDimension::Angle,
        names,
        num,
        den,
        is_circular: true,
    }
}

/// Base units: metre, radian, second, metre per second, hertz.
const TABLE: [UnitRow; 28] = [
    row(
        UnitDimension::Length,
        &[
            "um",
            "µm",
            "μm",
            "micron",
            "microns",
            "micrometer",
            "micrometers",
            "micrometre",
            "micrometres",
        ],
        1,
        1_000_000,
    ),
    row(
        UnitDimension::Length,
        &[
            "mm",
            "millimeter",
            "millimeters",
            "millimetre",
            "millimetres",
        ],
        1,
        1_000,
    ),
    row(
        UnitDimension::Length,
        &[
            "cm",
            "centimeter",
            "centimeters",
            "centimetre",
            "centimetres",
        ],
        1,
        100,
    ),
    row(
        UnitDimension::Length,
        &["dm", "decimeter", "decimeters", "decimetre", "decimetres"],
        1,
        10,
    ),
    row(
        UnitDimension::Length,
        &["m", "meter", "meters", "metre", "metres"],
        1,
        1,
    ),
    row(
        UnitDimension::Length,
        &["in", "inch", "inches", "\"", "″"],
        254,
        10_000,
    ),
    row(
        UnitDimension::Length,
        &["ft", "foot", "feet"],
        3_048,
        10_000,
    ),
    row(UnitDimension::Angle, &["rad", "radian", "radians"], 1, 1),
    row(
        UnitDimension::Angle,
        &["mrad", "milliradian", "milliradians"],
        1,
        1_000,
    ),
    circular(&["deg", "°", "degree", "degrees", "º"], 1, 180),
    circular(&["turn", "turns", "rev", "revolution", "revolutions"], 2, 1),
    row(
        UnitDimension::Time,
        &["us", "µs", "μs", "microsecond", "microseconds"],
        1,
        1_000_000,
    ),
    row(
        UnitDimension::Time,
        &["ms", "msec", "millisecond", "milliseconds"],
        1,
        1_000,
    ),
    row(
        UnitDimension::Time,
        &["s", "sec", "secs", "second", "seconds"],
        1,
        1,
    ),
    row(
        UnitDimension::Time,
        &["min", "mins", "minute", "minutes"],
        60,
        1,
    ),
    row(
        UnitDimension::Time,
        &["h", "hr", "hrs", "hour", "hours"],
        3_600,
        1,
    ),
    row(UnitDimension::Speed, &["m/s", "mps", "m_s"], 1, 1),
    row(UnitDimension::Speed, &["cm/s", "cm_s"], 1, 100),
    row(UnitDimension::Speed, &["mm/s", "mmps", "mm_s"], 1, 1_000),
    row(UnitDimension::Speed, &["m/min", "m_min"], 1, 60),
    row(UnitDimension::Speed, &["cm/min", "cm_min"], 1, 6_000),
    row(UnitDimension::Speed, &["mm/min", "mm_min"], 1, 60_000),
    row(UnitDimension::Speed, &["in/s", "ips", "in_s"], 254, 10_000),
    row(
        UnitDimension::Speed,
        &["in/min", "ipm", "in_min"],
        254,
        600_000,
    ),
    row(
        UnitDimension::Rate,
        &[
            "hz",
            "fps",
            "hertz",
            "/s",
            "1/s",
            "per second",
            "frames per second",
            "frames/s",
            "times per second",
        ],
        1,
        1,
    ),
    row(UnitDimension::Rate, &["khz", "kilohertz"], 1_000, 1),
    row(UnitDimension::Rate, &["millihertz"], 1, 1_000),
    row(UnitDimension::Rate, &["/min", "per minute", "bpm"], 1, 60),
];

/// A declared unit, such as the millimetre.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeclaredUnit(&'static UnitRow);

/// Longest number that a suffix is looked for behind.
const NUMERAL_CHARS_MAX: usize = 64;

/// A number with the suffix that followed it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenQuantity<'a> {
    pub(super) numeral: ParsedNumeral,
    pub(super) suffix: &'a str,
}

impl DeclaredUnit {
    /// The unit of this name or symbol in any dimension; `None` if the table has none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = fold(name);
        TABLE
            .iter()
            .find(|row| row.names.contains(&name.as_str()))
            .map(Self)
    }

    /// Returns its dimension.
    #[must_use]
    pub fn dimension(self) -> UnitDimension {
        self.0.dimension
    }

    /// Returns the unit's symbol, such as `mm`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        self.0.names.first().copied().unwrap_or_default()
    }

    /// The value of `numeral` in `from`, expressed in this unit: exact, or the nearest double. `None` across dimensions or overflow.
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
        let circle = if self.0.is_circular {
            std::f64::consts::PI
        } else {
            1.0
        };
        let ratio = self.0.num as f64 / self.0.den as f64;
        ratio * circle
    }

    /// Units of the same dimension, this one excepted.
    pub(super) fn units_of_same_dimension(self) -> impl Iterator<Item = Self> {
        TABLE
            .iter()
            .filter(move |row| row.dimension == self.0.dimension && !std::ptr::eq(*row, self.0))
            .map(Self)
    }
}

/// `num/den × 10^exponent` as whole number, exact decimal, or nearest double.
fn quotient(num: i128, den: i128, exponent: i32) -> Option<ParsedNumeral> {
    let divisor = gcd(num.unsigned_abs(), den.unsigned_abs()).max(1);
    let divisor = i128::try_from(divisor).ok()?;
    let (num, mut den) = (num / divisor, den / divisor);
    let (mut digits, mut power) = (num, exponent);
    // A denominator of twos and fives only is a decimal, and a decimal is rounded once, when it is parsed.
    while den % 2 == 0 || den % 5 == 0 {
        let factor = if den % 10 == 0 {
            10
        } else if den % 5 == 0 {
            5
        } else {
            2
        };
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
    let value = decimal.value() / den as f64;
    real(value)
}

/// A double as the decimal that it prints as; `None` where it is not finite.
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
    let plain = name.trim().trim_end_matches('.').to_lowercase();
    if !plain.contains('/') && !plain.contains(" per ") {
        return plain;
    }
    let plain = plain.replace(" per ", "/").replace(" / ", "/");
    let (what, time) = plain.split_once('/').unwrap_or((&plain, ""));
    let time = match time {
        "sec" | "second" | "seconds" => "s",
        "minute" | "minutes" => "min",
        other => other,
    };
    let what = match what {
        "meters" | "metres" | "meter" | "metre" => "m",
        "millimeters" | "millimetres" => "mm",
        "centimeters" | "centimetres" => "cm",
        "inches" | "inch" => "in",
        other => other,
    };
    format!("{what}/{time}")
}

/// Splits `"5 mm"` into its number, the longest that it begins with, and its suffix; `None` where it does not begin with one.
pub(super) fn quantity(text: &str) -> Option<WrittenQuantity<'_>> {
    let text = text.trim();
    let word = text.split_whitespace().next()?;
    let length = word
        .char_indices()
        .nth(NUMERAL_CHARS_MAX)
        .map_or(word.len(), |(at, _)| at);
    let ends = word
        .char_indices()
        .map(|(at, _)| at)
        .chain([word.len()])
        .rev();
    ends.skip_while(|end| *end > length).find_map(|end| {
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
        let mut all: Vec<_> = TABLE.iter().flat_map(|row| row.names).collect();
        all.sort();
        let before = all.len();
        all.dedup();
        assert_eq!(all.len(), before);
    }
}
