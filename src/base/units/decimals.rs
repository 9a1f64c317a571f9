//! Formats numbers for people: few digits, no noise of binary fractions, no negative zero.

/// Decimals of numbers of ordinary size.
const DECIMALS: usize = 3;

/// Maximum number of decimals tried to distinguish two numbers; after that all digits are written.
const DECIMALS_MAX: usize = 12;

/// Writes a number for people: at most three decimals, three significant digits if it is smaller, no trailing zeros,
/// never `-0`. Numbers of sixteen and more digits, or as small as a millionth, are written with an exponent.
#[must_use]
pub fn short(value: f64) -> String {
    to_decimals(value, DECIMALS)
}

/// Writes a value and the limit that it exceeds with enough digits to distinguish them.
#[must_use]
pub fn value_and_limit(value: f64, limit: f64) -> (String, String) {
    let texts = |decimals| (to_decimals(value, decimals), to_decimals(limit, decimals));
    let distinct = (DECIMALS..=DECIMALS_MAX)
        .map(texts)
        .find(|(value, limit)| value != limit);
    distinct.unwrap_or_else(|| (value.to_string(), limit.to_string()))
}

/// Writes a number with `decimals` decimals, or `decimals` digits where it is too small for them.
fn to_decimals(value: f64, decimals: usize) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return value.to_string();
    }
    if magnitude > 0.0 && !(1e-6..1e15).contains(&magnitude) {
        return format!("{value:.*e}", decimals.saturating_sub(1));
    }
    // A number below one gets one more decimal for each zero after its point.
    let zeros = (1..6).filter(|power| magnitude > 0.0 && magnitude < 0.1_f64.powi(*power));
    at_most(value, decimals + zeros.count())
}

/// Writes a number with at most `decimals` decimals, no trailing zeros and no negative zero.
pub(crate) fn at_most(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    match text {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{short, value_and_limit};

    #[test]
    fn writes_no_noise_and_no_negative_zero() {
        for (value, expected) in [
            (0.1 + 0.2, "0.3"),
            (0.0, "0"),
            (-0.0, "0"),
            (-0.000_000_000_1, "-1.00e-10"),
            (1.0, "1"),
            (100.0, "100"),
            (-2.5, "-2.5"),
            (12.345_678, "12.346"),
            (0.005, "0.005"),
            (0.012_345, "0.0123"),
            (0.000_123_456, "0.000123"),
            (1234.5, "1234.5"),
            (9e15, "9.00e15"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(short(value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_value_and_its_limit_are_distinguishable() {
        for (value, limit, expected) in [
            (31.0, 30.0, ("31", "30")),
            (30.000_04, 30.0, ("30.00004", "30")),
            (0.1 + 0.2, 0.3, ("0.30000000000000004", "0.3")),
            (2.0, 2.0, ("2", "2")),
        ] {
            let (a, b) = value_and_limit(value, limit);
            assert_eq!((a.as_str(), b.as_str()), expected);
        }
    }
}
