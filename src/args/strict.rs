//! Strict JSON by `serde_json`, with a visitor that keeps both of two equal keys.

use super::{
    limits::NODES_MAX,
    numeral::{self, ParsedNumeral},
    parsed_value::ParsedValue,
};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::{cell::Cell, fmt};

/// Reads `text` if it is strict JSON; `None` if it is not, holds too many values, or has a decimal that becomes whole as a
/// double and must be judged by its digits.
pub(super) fn parse(text: &str) -> Option<ParsedValue> {
    if holds_lost_fraction(text) {
        return None;
    }
    let left = Cell::new(NODES_MAX);
    let mut reader = serde_json::Deserializer::from_str(text);
    let node = StrictValueSeed(&left).deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(node)
}

/// Fewest digits of a decimal whose fraction a double may lose.
const LONG_DIGITS: usize = 16;

/// Returns whether JSON holds, outside its texts, a decimal such as `4.9999999999999999999`, which becomes whole as a
/// double.
fn holds_lost_fraction(text: &str) -> bool {
    // Most texts have too few digits for one.
    if text.bytes().filter(u8::is_ascii_digit).count() < LONG_DIGITS {
        return false;
    }
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c.is_ascii_digit()) {
        let (_, found) = rest.split_at(at);
        if let Some(quoted) = found.strip_prefix('"') {
            rest = after_text(quoted);
            continue;
        }
        let end = found.find(|c| !is_of_number(c)).unwrap_or(found.len());
        let (run, after) = found.split_at(end);
        if loses_fraction(run) {
            return true;
        }
        rest = after;
    }
    false
}

/// Returns whether a number is whole as a double but not as written.
fn loses_fraction(number: &str) -> bool {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    if digits < LONG_DIGITS || !number.contains(['.', 'e', 'E']) {
        return false;
    }
    let is_whole = number.parse().is_ok_and(|value: f64| value.fract() == 0.0);
    let is_written_whole = match numeral::parse(number) {
        Some(ParsedNumeral::Decimal(decimal)) => decimal.whole().is_some(),
        _ => false,
    };
    is_whole && !is_written_whole
}

/// Returns the text after the closing quote of the text that `quoted` begins in.
fn after_text(quoted: &str) -> &str {
    let mut escaped = false;
    let end = quoted.find(|c: char| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    end.and_then(|at| quoted.get(at + 1..)).unwrap_or_default()
}

/// Counts values down so that a long list cannot outgrow its text.
#[derive(Clone, Copy)]
struct StrictValueSeed<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for StrictValueSeed<'_> {
    type Value = ParsedValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ParsedValue, D::Error> {
        let left = self
            .0
            .get()
            .checked_sub(1)
            .ok_or_else(|| D::Error::custom("too many values"))?;
        self.0.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValueSeed<'_> {
    type Value = ParsedValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<ParsedValue, E> {
        serde_json::Number::from_f64(value)
            .map(ParsedValue::Number)
            .ok_or_else(|| E::custom("not finite"))
    }

    fn visit_str<E>(self, text: &str) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<ParsedValue, E> {
        Ok(ParsedValue::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ParsedValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(ParsedValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ParsedValue, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key()? {
            pairs.push((key, map.next_value_seed(self)?));
        }
        Ok(ParsedValue::Map(pairs))
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    #[test]
    fn keeps_both_of_two_equal_keys() {
        let node = parse(r#"{"a":1,"a":2}"#).unwrap();
        assert!(node.contradicts_itself());
        assert!(!parse(r#"{"a":1,"a":1}"#).unwrap().contradicts_itself());
    }

    #[test]
    fn is_strict() {
        for text in ["{'a':1}", "{\"a\":1,}", "{} {}", "NaN", "", "{\"a\":1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn sees_a_fraction_that_a_double_loses() {
        for text in [
            "4.9999999999999999999",
            "{\"a\": [-4.9999999999999999999e0]}",
            "[1, 120.00000000000000000001]",
            "0.10000000000000000000001e1",
        ] {
            assert!(holds_lost_fraction(text), "{text}");
        }
        for text in [
            "0.30000000000000004",
            "5.00000000000000000000",
            "{\"4.9999999999999999999\": \"\\\"4.9999999999999999999\"}",
            "12345678901234567890",
            "1.5",
            "1e3",
        ] {
            assert!(!holds_lost_fraction(text), "{text}");
        }
    }

    #[test]
    fn stops_at_too_many_values() {
        assert_eq!(parse(&format!("[{}1]", "1,".repeat(NODES_MAX))), None);
    }
}
