//! Numbers for a parameter: exact, finite, in its unit and within its range, or refused with a helpful suggestion.

use super::{
    numeral::{self, ParsedNumeral},
    outcome::{ArgumentIssue, ArgumentRepair},
    parsed_value::{self, ParsedValue},
    shape::{self, NumberRange, ValueKind},
    unit::{self, DeclaredUnit},
    value_coercion::{CoercionResult, ValueCoercer, ValueSite},
};
use base::units;
use serde_json::{Number, Value};

/// Largest double up to which every whole number is exact.
pub(super) const WHOLE_DOUBLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Most units that are suggested for a number without one.
const OTHER_UNITS_MAX: usize = 3;

/// A place for a number.
struct NumberSite<'a> {
    site: ValueSite<'a>,
    range: &'a NumberRange,
    unit: Option<DeclaredUnit>,
}

/// A parsed number, and whether it came with a unit.
struct ParsedNumber {
    number: Number,
    /// Its value, if it was written without a fraction.
    whole: Option<i128>,
    has_unit: bool,
}

impl ValueCoercer<'_> {
    pub(super) fn number(
        &mut self,
        range: &NumberRange,
        unit: Option<DeclaredUnit>,
        site: ValueSite<'_>,
    ) -> CoercionResult {
        let place = NumberSite { site, range, unit };
        let parsed = place.parse()?;
        let has_unit = parsed.has_unit;
        let number = match site.kind {
            ValueKind::Integer { .. } => place.whole(&parsed)?,
            _ => parsed.number,
        };
        if !range.contains(&number) {
            return Err(place.out_of_range(&number, has_unit));
        }
        let value = Value::Number(number);
        if has_unit {
            let reason = "converted to the parameter's unit";
            self.repairs.push(ArgumentRepair {
                got: parsed_value::shown_node(site.node),
                used: format!("{value} {}", unit.map_or("", DeclaredUnit::symbol)),
                ..ArgumentRepair::new(site.path, "unit", 1, reason)
            });
        } else if site.node.as_text().is_some() || site.node.to_value() != value {
            let reason = "a number in another spelling";
            self.note(site, &value, "number_form", 1, reason);
        }
        Ok(value)
    }
}

impl NumberSite<'_> {
    fn refuse(&self, code: &'static str, reason: &str) -> ArgumentIssue {
        self.site.refuse(code, reason)
    }

    fn parse(&self) -> Result<ParsedNumber, ArgumentIssue> {
        if let ParsedValue::Number(number) = self.site.node {
            return Ok(ParsedNumber::of_json(number));
        }
        let text = self.site.node.as_text();
        let text = text.map(|text| numeral::narrow(unquoted(text.trim())));
        let text = text.as_deref();
        let quantity = text.and_then(|text| Some((text, unit::quantity(text)?)));
        let (text, quantity) = quantity.ok_or_else(|| {
            let is_foreign = |c: char| !c.is_ascii() && c.is_numeric();
            let reason = match text.is_some_and(|text| text.contains(is_foreign)) {
                true => "this number is not written in the digits 0 to 9",
                false => "this is not a number",
            };
            self.refuse("not_a_number", reason)
        })?;
        if self.has_two_readings(text, quantity.suffix) {
            let reason = "the point may group thousands or begin a fraction";
            return Err(self.refuse("ambiguous_number", reason));
        }
        match quantity.numeral {
            ParsedNumeral::NotFinite => {
                Err(self.refuse("not_finite", "this is not a finite number"))
            }
            ParsedNumeral::Ambiguous => {
                let reason = "a leading zero may make this octal or decimal";
                Err(self.refuse("ambiguous_number", reason))
            }
            numeral if quantity.suffix.is_empty() => self.number(&numeral, false),
            _ => self.convert(&quantity),
        }
    }

    fn number(
        &self,
        numeral: &ParsedNumeral,
        has_unit: bool,
    ) -> Result<ParsedNumber, ArgumentIssue> {
        let number = numeral::number(numeral);
        let number = number
            .ok_or_else(|| self.refuse("too_large", "this number does not fit into 64 bits"))?;
        let whole = match numeral {
            ParsedNumeral::Whole(whole) => Some(*whole),
            ParsedNumeral::Decimal(decimal) => decimal.whole(),
            ParsedNumeral::NotFinite | ParsedNumeral::Ambiguous => None,
        };
        Ok(ParsedNumber {
            number,
            whole,
            has_unit,
        })
    }

    /// Returns whether `"1.000"` or `"1.000 mm"` may be a thousand or one. So it is for a whole number, and for a quantity, where
    /// three zeros after the point add nothing unless they are thousands. JSON's own numbers have one reading.
    fn has_two_readings(&self, text: &str, suffix: &str) -> bool {
        let number = text.strip_suffix(suffix).unwrap_or(text).trim_end();
        let Some((whole, "000")) = number.rsplit_once('.') else {
            return false;
        };
        let is_text = matches!(self.site.node, ParsedValue::Text(_)) || !suffix.is_empty();
        let digits = whole.trim_start_matches(['+', '-', '−']);
        let is_group = (1..=3).contains(&digits.len()) && !digits.starts_with('0');
        let is_whole = matches!(self.site.kind, ValueKind::Integer { .. });
        is_text && (is_whole || (is_group && self.unit.is_some()))
    }

    fn convert(&self, quantity: &unit::WrittenQuantity<'_>) -> Result<ParsedNumber, ArgumentIssue> {
        let Some(unit) = self.unit else {
            let reason = "a bare number is expected, without unit or other words";
            return Err(self.refuse("unexpected_unit", reason));
        };
        let suffix = quantity.suffix;
        let from = DeclaredUnit::named(suffix);
        let numeral = from.and_then(|from| unit.convert(&quantity.numeral, from));
        let numeral = numeral.ok_or_else(|| {
            let (suffix, symbol) = (parsed_value::shown(suffix), unit.symbol());
            let is_comma = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
            let reason = match quantity.suffix.strip_prefix(',') {
                Some(rest) if is_comma(rest) => {
                    "this has a decimal comma. Write a point, as in 0.5".to_owned()
                }
                _ => format!("'{suffix}' is not a unit that converts to {symbol}"),
            };
            self.refuse("wrong_unit", &reason)
        })?;
        self.number(&numeral, true)
    }

    /// Returns the exact whole number: its digits decide, not the nearest double.
    fn whole(&self, parsed: &ParsedNumber) -> Result<Number, ArgumentIssue> {
        let value = parsed.number.as_f64().unwrap_or(f64::NAN);
        if parsed.number.is_f64() && value.abs() >= WHOLE_DOUBLE_MAX {
            return Err(self.refuse("too_large", "too large to be exact"));
        }
        parsed.whole.and_then(numeral::whole).ok_or_else(|| {
            self.refuse("fraction", "a whole number is needed")
                .valid(neighbours(self.range, value))
        })
    }

    /// Returns the issue with a number out of range. It is never clamped; a unit in which it would fit is suggested.
    fn out_of_range(&self, sent: &Number, has_unit: bool) -> ArgumentIssue {
        let symbol = self.unit.map(|unit| format!(" {}", unit.symbol()));
        let symbol = symbol.unwrap_or_default();
        let (number, bounds) = distinct_texts(sent, &nearest_bounds(self.range, sent));
        let reason = format!("{number}{symbol} is out of range");
        let units = match self.unit {
            Some(unit) if !has_unit => other_units(self.range, unit, sent),
            _ => Vec::new(),
        };
        let Some((other, converted)) = units.first() else {
            let bounds = bounds.iter().map(|bound| format!("{bound}{symbol}"));
            return self.refuse("out_of_range", &reason).valid(bounds.collect());
        };
        let converted = shape::short(converted);
        let reason = format!(
            "{reason}; if you mean {number} {other} ({converted}{symbol}), write \"{number}{other}\""
        );
        let others = units.iter().map(|(other, _)| format!("{number}{other}"));
        self.refuse("other_unit", &reason).valid(others.collect())
    }
}

impl ParsedNumber {
    /// Returns a JSON number, which has only the digits that a double keeps.
    fn of_json(number: &Number) -> Self {
        let double = || number.as_f64().filter(|value| value.fract() == 0.0);
        Self {
            whole: number
                .as_i128()
                .or_else(|| format!("{:.0}", double()?).parse().ok()),
            number: number.clone(),
            has_unit: false,
        }
    }
}

/// Returns the text without quotes of its own; a quote at one end only may be the sign for inches.
fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// Formats a number and the bounds it violates, with enough digits to tell the number from the nearest bound.
fn distinct_texts(number: &Number, bounds: &[Number]) -> (String, Vec<String>) {
    let exact = number.as_f64().filter(|_| number.is_f64());
    let nearest = bounds.first().and_then(Number::as_f64);
    let text = match exact.zip(nearest) {
        Some((value, bound)) => units::value_and_limit(value, bound).0,
        None => shape::short(number),
    };
    (text, bounds.iter().map(shape::short).collect())
}

/// Returns the whole numbers next to a value that are within the range, the nearer first.
fn neighbours(range: &NumberRange, value: f64) -> Vec<String> {
    let mut both = vec![value.floor(), value.ceil()];
    let distance = |whole: &f64| (whole - value).abs();
    both.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    both.dedup();
    both.retain(|whole| Number::from_f64(*whole).is_some_and(|whole| range.contains(&whole)));
    both.iter().map(|whole| format!("{whole:.0}")).collect()
}

fn nearest_bounds(range: &NumberRange, number: &Number) -> Vec<Number> {
    let value = |number: &Number| number.as_f64().unwrap_or(0.0);
    let distance = |bound: &Number| (value(bound) - value(number)).abs();
    let bounds = [&range.min, &range.max].into_iter().flatten();
    let mut bounds: Vec<Number> = bounds.filter(|one| range.contains(one)).cloned().collect();
    bounds.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    bounds
}

/// Returns units in which the number would be in range, the commonest first, with its value in the parameter's unit.
fn other_units(
    range: &NumberRange,
    unit: DeclaredUnit,
    number: &Number,
) -> Vec<(&'static str, Number)> {
    const COMMON: [&str; 8] = ["mm", "cm", "deg", "ms", "mm/s", "mm/min", "m", "rad"];
    let Some(numeral) = numeral::parse(&number.to_string()) else {
        return Vec::new();
    };
    let in_range = |other: DeclaredUnit| {
        let converted = numeral::number(&unit.convert(&numeral, other)?)?;
        range
            .contains(&converted)
            .then(|| (other.symbol(), converted))
    };
    let mut found: Vec<_> = unit
        .units_of_same_dimension()
        .filter_map(in_range)
        .collect();
    let rank = |symbol: &str| COMMON.iter().position(|common| *common == symbol);
    found.sort_by_key(|(symbol, _)| rank(symbol).unwrap_or(COMMON.len()));
    found.truncate(OTHER_UNITS_MAX);
    found
}
