//! Parses numbers as people and programs write them: `1_000`, `0x10`, `+5`, `5.`, `.5`. Ambiguous ones are refused.

use serde_json::{Number, Value};
use std::borrow::Cow;

/// Value of a written number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParsedNumeral {
    /// Exact.
    Whole(i128),
    /// With its decimal digits kept, so that a change of unit can be exact.
    Decimal(ExactDecimal),
    /// NaN or an infinity, written out or by overflow.
    NotFinite,
    /// Two readings, such as `010`.
    Ambiguous,
}

/// `digits × 10^exponent`, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExactDecimal {
    pub(super) digits: i128,
    pub(super) exponent: i32,
}

impl ExactDecimal {
    /// Returns the nearest double, correctly rounded because the decimal text is parsed once.
    pub(super) fn value(self) -> f64 {
        format!("{}e{}", self.digits, self.exponent)
            .parse()
            .unwrap_or(f64::NAN)
    }

    /// Returns the whole number, if it is one.
    pub(super) fn whole(self) -> Option<i128> {
        let Self {
            mut digits,
            mut exponent,
        } = self;
        while exponent < 0 && digits % 10 == 0 && digits != 0 {
            digits /= 10;
            exponent += 1;
        }
        match (digits, u32::try_from(exponent)) {
            (0, _) => Some(0),
            (_, Ok(power)) => 10_i128.checked_pow(power)?.checked_mul(digits),
            (_, Err(_)) => None,
        }
    }
}

/// Longest numeral that is parsed: more digits than any quantity has.
const NUMERAL_BYTES_MAX: usize = 60;

/// Reads all of `text` as a number; `None` if it is anything else.
pub(super) fn parse(text: &str) -> Option<ParsedNumeral> {
    let text = text.trim();
    if text.starts_with(|c: char| ('０'..='９').contains(&c)) && text.len() <= 3 * NUMERAL_BYTES_MAX
    {
        return parse(&narrow(text));
    }
    let (negative, body) = sign(text);
    if is_not_finite(body) {
        return Some(ParsedNumeral::NotFinite);
    }
    if body.len() > NUMERAL_BYTES_MAX || !body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return None;
    }
    radix(body, negative).or_else(|| decimal(&without_separators(body)?, negative))
}

/// Converts full-width characters, as East Asian keyboards write them, and fractions that are one character to ASCII.
pub(super) fn narrow(text: &str) -> String {
    const FRACTIONS: [(char, &str); 7] = [
        ('½', ".5"),
        ('¼', ".25"),
        ('¾', ".75"),
        ('⅛', ".125"),
        ('⅜', ".375"),
        ('⅝', ".625"),
        ('⅞', ".875"),
    ];
    let mut narrowed = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // `2½5` is no number.
        let is_last = !chars.peek().is_some_and(|next| next.is_numeric());
        match (c, FRACTIONS.iter().find(|(fraction, _)| *fraction == c)) {
            (_, Some((_, decimal))) if is_last => narrowed.push_str(decimal),
            ('！'..='～', _) => narrowed.extend(char::from_u32(u32::from(c) - 0xfee0)),
            _ => narrowed.push(c),
        }
    }
    narrowed
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn is_not_finite(body: &str) -> bool {
    let mut words = ["nan", "inf", "infinity", "∞"].iter();
    words.any(|word| body.eq_ignore_ascii_case(word))
}

fn radix(body: &str, negative: bool) -> Option<ParsedNumeral> {
    let (mark, digits) = body.split_at_checked(2)?;
    let base = match mark {
        "0x" | "0X" => 16,
        "0b" | "0B" => 2,
        "0o" | "0O" => 8,
        _ => return None,
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(digits, base).ok()?;
    Some(ParsedNumeral::Whole(if negative { -value } else { value }))
}

/// Removes the underscores that group digits in threes, as in `1_000`. Commas stay: one may be a decimal point.
fn without_separators(body: &str) -> Option<Cow<'_, str>> {
    if !body.contains('_') {
        return Some(Cow::Borrowed(body));
    }
    let (whole, rest) = body.split_at(body.find(['.', 'e', 'E']).unwrap_or(body.len()));
    let mut groups = whole.split('_');
    let first = groups.next()?;
    let grouped = (1..=3).contains(&first.len()) && groups.all(|group| group.len() == 3);
    (grouped && !rest.contains('_')).then(|| Cow::Owned(body.replace('_', "")))
}

fn decimal(body: &str, negative: bool) -> Option<ParsedNumeral> {
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    if has_octal_reading(whole) && !mantissa.contains('.') {
        return Some(ParsedNumeral::Ambiguous);
    }
    let is_decimal = body.contains(['.', 'e', 'E']);
    Some(exact(whole, fraction, exponent, negative, is_decimal))
}

/// Returns whether digits may be octal: `05` is five either way, `010` is eight to some readers and ten to others.
fn has_octal_reading(whole: &str) -> bool {
    let significant = whole.trim_start_matches('0');
    whole.starts_with('0') && significant.len() > 1 && significant.bytes().all(|b| b < b'8')
}

fn exact(
    whole: &str,
    fraction: &str,
    exponent: i32,
    negative: bool,
    is_decimal: bool,
) -> ParsedNumeral {
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let shift = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let (digits, dropped) = first_digits(digits);
    let Ok(digits) = digits.parse::<i128>() else {
        return ParsedNumeral::NotFinite;
    };
    let digits = if negative { -digits } else { digits };
    let exponent = exponent.saturating_sub(shift).saturating_add(dropped);
    let decimal = ExactDecimal { digits, exponent };
    match is_decimal {
        false => ParsedNumeral::Whole(digits),
        true if decimal.value().is_finite() => ParsedNumeral::Decimal(decimal),
        true => ParsedNumeral::NotFinite,
    }
}

/// Returns the kept digits and the number of dropped ones. If 128 bits cannot hold them all, the last kept digit is a one,
/// which marks that more followed. A double has less than half of them.
fn first_digits(digits: &str) -> (Cow<'_, str>, i32) {
    const KEPT: usize = 37;
    match digits.get(..KEPT) {
        _ if digits.is_empty() => (Cow::Borrowed("0"), 0),
        Some(kept) if digits.len() > KEPT + 1 => {
            let dropped = i32::try_from(digits.len() - KEPT - 1).unwrap_or(i32::MAX);
            (Cow::Owned(format!("{kept}1")), dropped)
        }
        _ => (Cow::Borrowed(digits), 0),
    }
}

/// Returns the JSON number that a word outside any parameter is; `None` if it is not exactly one.
pub(super) fn json_number(word: &str) -> Option<Value> {
    number(&parse(word)?).map(Value::Number)
}

/// Returns the JSON number: whole if it fits 64 bits, otherwise the nearest double.
pub(super) fn number(numeral: &ParsedNumeral) -> Option<Number> {
    match numeral {
        ParsedNumeral::Whole(value) => whole(*value),
        ParsedNumeral::Decimal(decimal) => Number::from_f64(decimal.value()),
        ParsedNumeral::NotFinite | ParsedNumeral::Ambiguous => None,
    }
}

/// Returns a whole JSON number; `None` beyond 64 bits.
pub(super) fn whole(value: i128) -> Option<Number> {
    Number::from_i128(value)
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
    fn reads_the_usual_spellings() {
        for (text, want) in [
            ("5", "5"),
            ("+5", "5"),
            ("-5", "-5"),
            ("05", "5"),
            ("0x10", "16"),
            ("1_000", "1000"),
            ("5.", "5.0"),
            (".5", "0.5"),
            ("1e3", "1000.0"),
            ("1_000.5", "1000.5"),
            ("089", "89"),
            ("0b11", "3"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            assert_eq!(
                number(&parse(text).unwrap()).unwrap().to_string(),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn a_fraction_sign_ends_a_number() {
        assert_eq!(narrow("2½ inch"), "2.5 inch");
        assert_eq!(narrow("½"), ".5");
        for text in ["2½5", "２½５", "½¼"] {
            assert_eq!(parse(&narrow(text)), None, "{text}");
        }
    }

    #[test]
    fn refuses_two_readings_and_no_number() {
        assert_eq!(parse("010"), Some(ParsedNumeral::Ambiguous));
        for text in ["NaN", "inf", "-Infinity", "1e999"] {
            assert_eq!(parse(text), Some(ParsedNumeral::NotFinite), "{text}");
        }
        for text in [
            "", "-", ".", "e5", "1_0", "5f", "1,5", "1/5", "0x", "0x-5", "five", "5 5", "1e", "_1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(number(&parse("18446744073709551616").unwrap()), None);
    }
}
