//! Numbers as people read them: few digits, no noise of binary fractions, no negative zero.

/// Decimals of a number of ordinary size.
const DECIMALS: usize = 3;

/// Most decimals that are tried to tell two numbers apart; then each is written with all that it has.
const DECIMALS_MAX: usize = 12;

/// Writes a number for people: three decimals at most, three digits where it is smaller than that, no trailing zeros,
/// never `-0`. Numbers of sixteen digits and more, or as small as a millionth, are written with an exponent.
#[must_use]
pub fn short(value: f64) -> String {
    written(value, DECIMALS)
}

/// Writes a value and the limit that it exceeds with as many digits as tell them apart.
#[must_use]
pub fn apart(value: f64, limit: f64) -> (String, String) {
    let written = |decimals| (written(value, decimals), written(limit, decimals));
    let mut tried = (DECIMALS..=DECIMALS_MAX).map(written);
    let told_apart = tried.find(|(value, limit)| value != limit);
    told_apart.unwrap_or_else(|| (value.to_string(), limit.to_string()))
}

/// Writes a number with `decimals` decimals, or `decimals` digits where it is too small for them.
fn written(value: f64, decimals: usize) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return value.to_string();
    }
    if size > 0.0 && !(1e-6..1e15).contains(&size) {
        return format!("{value:.*e}", decimals.saturating_sub(1));
    }
    // A number below one has as many more decimals as zeros stand behind its point.
    let zeros = (1..6).filter(|power| size > 0.0 && size < 0.1_f64.powi(*power));
    at_most(value, decimals + zeros.count())
}

/// Writes a number with at most so many decimals, no trailing zeros and no negative zero.
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
    use super::{apart, short};

    #[test]
    fn writes_no_noise_and_no_negative_zero() {
        for (value, want) in [
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
            assert_eq!(short(value), want, "{value:?}");
        }
    }

    #[test]
    fn tells_a_value_from_its_limit() {
        for (value, limit, want) in [
            (31.0, 30.0, ("31", "30")),
            (30.000_04, 30.0, ("30.00004", "30")),
            (0.1 + 0.2, 0.3, ("0.30000000000000004", "0.3")),
            (2.0, 2.0, ("2", "2")),
        ] {
            let (a, b) = apart(value, limit);
            assert_eq!((a.as_str(), b.as_str()), want);
        }
    }
}
