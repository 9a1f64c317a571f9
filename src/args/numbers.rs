//! Numbers for a parameter: exact, finite, in its unit and within its range, or refused with the thought that helps.

use super::{
    numeral::{self, ParsedNumeral},
    outcome::ArgumentIssue,
    parsed_value::{self, ParsedValue},
    shape::{self, NumberRange, ValueKind},
    unit::{self, DeclaredUnit},
    value_coercion::{CoercionResult, ValueCoercer, ValuePosition, repair, unplaceable},
};
use base::units;
use serde_json::{Number, Value};

/// Largest double that counts whole numbers one by one.
pub(super) const WHOLE_DOUBLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Other units that are offered for a bare number.
const OTHER_UNITS_MAX: usize = 3;

/// A number where it stands, and what may stand there.
struct NumberContext<'a> {
    kind: &'a ValueKind,
    range: &'a NumberRange,
    unit: Option<DeclaredUnit>,
    node: &'a ParsedValue,
    at: ValuePosition<'a>,
}

/// A number that was read, and whether it came with a unit.
struct ParsedNumber {
    numeral: ParsedNumeral,
    number: Number,
    has_unit: bool,
}

impl ValueCoercer<'_> {
    pub(super) fn number(
        &mut self,
        kind: &ValueKind,
        node: &ParsedValue,
        at: ValuePosition<'_>,
    ) -> CoercionResult {
        let (ValueKind::Integer { range, unit } | ValueKind::Number { range, unit }) = kind else {
            return Err(unplaceable(
                "not_a_number",
                kind,
                node,
                at,
                "no number belongs here",
            ));
        };
        let site = NumberContext {
            kind,
            range,
            unit: *unit,
            node,
            at,
        };
        let found = site.found()?;
        let has_unit = found.has_unit;
        let number = if matches!(kind, ValueKind::Integer { .. }) {
            site.whole(&found)?
        } else {
            found.number
        };
        if !range.contains(&number) {
            return Err(site.out_of_range(&number, has_unit));
        }
        let value = Value::Number(number);
        if has_unit {
            let used = format!("{value} {}", unit.map_or("", DeclaredUnit::symbol));
            let why = "converted to the parameter's unit";
            self.repairs.push(repair(
                at.path,
                parsed_value::shown_node(node),
                used,
                "unit",
                1,
                why,
            ));
        } else if node.to_value() != value
            || matches!(node, ParsedValue::Text(_) | ParsedValue::Word(_))
        {
            self.note(
                at,
                node,
                &value,
                "number_form",
                1,
                "a number in another spelling",
            );
        }
        Ok(value)
    }
}

impl NumberContext<'_> {
    fn refuse(&self, code: &'static str, why: &str) -> ArgumentIssue {
        unplaceable(code, self.kind, self.node, self.at, why)
    }

    fn found(&self) -> Result<ParsedNumber, ArgumentIssue> {
        let text = match self.node {
            ParsedValue::Number(number) => return Ok(ParsedNumber::of_json(number)),
            ParsedValue::Text(text) | ParsedValue::Word(text) => unquoted(text.trim()),
            _ => return Err(self.refuse("not_a_number", "this is not a number")),
        };
        let quantity = unit::quantity(text)
            .ok_or_else(|| self.refuse("not_a_number", "this is not a number"))?;
        if self.has_two_readings(text, quantity.suffix) {
            let why = "the point groups thousands to some and begins a fraction to others";
            return Err(self.refuse("ambiguous_number", why));
        }
        match quantity.numeral {
            ParsedNumeral::NotFinite => {
                Err(self.refuse("not_finite", "this is not a finite number"))
            }
            ParsedNumeral::Ambiguous => Err(self.refuse(
                "ambiguous_number",
                "a leading zero makes this octal to some and decimal to others",
            )),
            numeral if quantity.suffix.is_empty() => self.plain(numeral, false),
            _ => self.converted(&quantity),
        }
    }

    fn plain(&self, numeral: ParsedNumeral, has_unit: bool) -> Result<ParsedNumber, ArgumentIssue> {
        let number = numeral::number(&numeral);
        let number =
            number.ok_or_else(|| self.refuse("too_large", "this number does not fit 64 bits"))?;
        Ok(ParsedNumber {
            numeral,
            number,
            has_unit,
        })
    }

    /// `"1.000"` and `"1.000 mm"`, a thousand or one: to a whole number, and to a quantity, whose three zeros behind the
    /// point say nothing unless they are thousands. JSON's own numbers have one reading.
    fn has_two_readings(&self, text: &str, suffix: &str) -> bool {
        let number = text.strip_suffix(suffix).unwrap_or(text).trim_end();
        let number = numeral::narrow(number);
        let Some((whole, "000")) = number.rsplit_once('.') else {
            return false;
        };
        let is_text = matches!(self.node, ParsedValue::Text(_)) || !suffix.is_empty();
        let digits = whole.trim_start_matches(['+', '-', '−']);
        let is_group = (1..=3).contains(&digits.len()) && !digits.starts_with('0');
        let is_whole = matches!(self.kind, ValueKind::Integer { .. });
        is_text && (is_whole || (is_group && self.unit.is_some()))
    }

    fn converted(
        &self,
        quantity: &unit::WrittenQuantity<'_>,
    ) -> Result<ParsedNumber, ArgumentIssue> {
        let Some(unit) = self.unit else {
            return Err(self.refuse(
                "unexpected_unit",
                "a bare number is expected, without unit or other words",
            ));
        };
        let converted = DeclaredUnit::named(quantity.suffix)
            .and_then(|from| unit.convert(&quantity.numeral, from));
        let numeral = converted.ok_or_else(|| {
            let why = format!(
                "'{}' is no unit that converts to {}",
                parsed_value::shown(quantity.suffix),
                unit.symbol()
            );
            self.refuse("wrong_unit", &why)
        })?;
        self.plain(numeral, true)
    }

    /// A whole number, exactly: its digits decide, not the nearest double.
    fn whole(&self, found: &ParsedNumber) -> Result<Number, ArgumentIssue> {
        let value = found.number.as_f64().unwrap_or(f64::NAN);
        let whole = match &found.numeral {
            ParsedNumeral::Whole(whole) => Some(*whole),
            _ if value.abs() >= WHOLE_DOUBLE_MAX => {
                return Err(self.refuse("too_large", "too large to be exact"));
            }
            ParsedNumeral::Decimal(decimal) => decimal.whole(),
            _ => None,
        };
        whole.and_then(numeral::whole).ok_or_else(|| {
            self.refuse("fraction", "a whole number is needed")
                .valid(neighbours(self.range, value))
        })
    }

    /// Nothing is clamped; where another unit would make sense of the number, that thought is offered.
    fn out_of_range(&self, sent: &Number, has_unit: bool) -> ArgumentIssue {
        let bounds = nearest_bounds(self.range, sent);
        let symbol = self
            .unit
            .map_or_else(String::new, |unit| format!(" {}", unit.symbol()));
        let (number, bounds) = distinct_texts(sent, &bounds);
        let trouble = self.refuse("out_of_range", &format!("{number}{symbol} is out of range"));
        let thoughts = match self.unit {
            Some(unit) if !has_unit => other_units(self.range, unit, sent),
            _ => Vec::new(),
        };
        let Some((other, converted)) = thoughts.first() else {
            return trouble.valid(
                bounds
                    .iter()
                    .map(|bound| format!("{bound}{symbol}"))
                    .collect(),
            );
        };
        let why = format!(
            "{number}{symbol} is out of range; if {number} {other} is meant, which is {}{symbol}, write \"{number}{other}\"",
            shape::short(converted)
        );
        let mut trouble = trouble.valid(
            thoughts
                .iter()
                .map(|(symbol, _)| format!("{number}{symbol}"))
                .collect(),
        );
        trouble.complaint.code = "other_unit";
        trouble.complaint.why = why;
        trouble
    }
}

impl ParsedNumber {
    /// A number of JSON, whose digits are as many as a double keeps.
    fn of_json(number: &Number) -> Self {
        let whole = number.as_i128().map(ParsedNumeral::Whole);
        let read = || numeral::parse(&number.to_string());
        Self {
            numeral: whole.or_else(read).unwrap_or(ParsedNumeral::NotFinite),
            number: number.clone(),
            has_unit: false,
        }
    }
}

/// The text in quotes of its own; a quote at one end only may be the sign for inches.
fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

/// A number and the bounds that it does not keep, with as many digits as tell it from the nearest.
fn distinct_texts(number: &Number, bounds: &[Number]) -> (String, Vec<String>) {
    let exact = |number: &Number| number.as_f64().filter(|_| number.is_f64());
    let written: Vec<String> = bounds.iter().map(shape::short).collect();
    let nearest = bounds.first().and_then(Number::as_f64);
    match (exact(number), nearest) {
        (Some(value), Some(bound)) => (units::apart(value, bound).0, written),
        _ => (shape::short(number), written),
    }
}

fn neighbours(range: &NumberRange, value: f64) -> Vec<String> {
    let mut both = [value.floor(), value.ceil()];
    both.sort_by(|a, b| (a - value).abs().total_cmp(&(b - value).abs()));
    let within =
        |number: &f64| Number::from_f64(*number).is_some_and(|number| range.contains(&number));
    let mut both = Vec::from(both);
    both.dedup();
    both.into_iter()
        .filter(within)
        .map(|number| format!("{number:.0}"))
        .collect()
}

fn nearest_bounds(range: &NumberRange, number: &Number) -> Vec<Number> {
    let distance =
        |bound: &Number| (bound.as_f64().unwrap_or(0.0) - number.as_f64().unwrap_or(0.0)).abs();
    let mut bounds: Vec<_> = [&range.min, &range.max]
        .into_iter()
        .flatten()
        .filter(|bound| range.contains(bound))
        .cloned()
        .collect();
    bounds.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    bounds
}

/// Units in which the bare number would be in range, the commonest first.
fn other_units(
    range: &NumberRange,
    unit: DeclaredUnit,
    number: &Number,
) -> Vec<(&'static str, Number)> {
    const COMMON: [&str; 8] = ["mm", "cm", "deg", "ms", "mm/s", "mm/min", "m", "rad"];
    let Some(numeral) = numeral::parse(&number.to_string()) else {
        return Vec::new();
    };
    let in_range = |kin: DeclaredUnit| {
        let converted = numeral::number(&unit.convert(&numeral, kin)?)?;
        Some((
            kin.symbol(),
            Some(converted).filter(|one| range.contains(one))?,
        ))
    };
    let mut found: Vec<_> = unit
        .units_of_same_dimension()
        .filter_map(in_range)
        .collect();
    found.sort_by_key(|(symbol, _)| {
        COMMON
            .iter()
            .position(|common| common == symbol)
            .unwrap_or(COMMON.len())
    });
    found.truncate(OTHER_UNITS_MAX);
    found
}
