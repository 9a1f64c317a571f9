//! Formats durations, counts and lengths for people: `43 min 8 s`, `1 touch`, `12.5 mm`.

use std::fmt::Display;
use std::time::Duration;

use crate::units::{at_most, short};

/// Seconds in a minute, an hour and a day.
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// Number of days from which hours are left out.
const DAYS_WITHOUT_HOURS: u64 = 7;

/// Writes a number of things: `1 stroke`, `2 strokes`, `0 strokes`.
#[must_use]
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {}", plural(noun)),
    }
}

/// Returns the first `chars_max` characters of a text.
#[must_use]
pub fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

/// Begins the one command or call that helps after a message: what failed, the value and the limit, then this.
pub const NEXT: &str = "Next: ";

/// Returns whether a message names a next step: a command or call, or the values that are possible.
#[must_use]
pub fn names_step(message: &str) -> bool {
    [NEXT, "next: ", "valid: ", "Valid: "]
        .iter()
        .any(|step| message.contains(step))
}

/// Splits a message into what it states, without its last full stop, and its next step.
#[must_use]
pub fn next_apart(message: &str) -> (&str, Option<&str>) {
    let (stated, next) = match message.split_once(NEXT) {
        Some((stated, next)) => (stated, Some(next)),
        None => (message, None),
    };
    (stated.trim_end().trim_end_matches('.'), next)
}

/// Adds a statement to a message, before the values that are possible and its next step:
/// `x is lost; nothing moved. Next: reset`.
///
/// A message may be an error of a lower room with a next step of its own, which stays last; the statement may bring one for a
/// message without.
#[must_use]
pub fn with_statement(message: impl Display, statement: &str) -> String {
    let message = message.to_string();
    let (stated, next) = next_apart(&message);
    let (stated, values) = match stated.split_once(VALUES) {
        Some((stated, values)) => (stated, format!("{VALUES}{values}")),
        None => (stated, String::new()),
    };
    let (statement, next_of_statement) = next_apart(statement);
    match next.or(next_of_statement) {
        Some(next) => format!("{stated}; {statement}{values}. {NEXT}{next}"),
        None => format!("{stated}; {statement}{values}"),
    }
}

/// Begins the values that are possible, after a message.
const VALUES: &str = ". Valid: ";

/// Joins several messages in one, with the first next step that is among them at the end.
#[must_use]
pub fn joined(messages: &[String]) -> String {
    let apart = || messages.iter().map(|message| next_apart(message));
    let stated = apart().map(|(stated, _)| stated);
    let stated = stated.collect::<Vec<_>>().join("; ");
    match apart().find_map(|(_, next)| next) {
        Some(next) => with_next(stated, next),
        None => stated,
    }
}

/// Adds the next step to a message, unless it has one of its own.
#[must_use]
pub fn with_next(message: impl Display, next: &str) -> String {
    let message = message.to_string();
    match message.contains(NEXT) {
        true => message,
        false => format!("{message}. {NEXT}{next}"),
    }
}

/// Escapes a text for HTML.
#[must_use]
pub fn html_escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Returns the plural of a regular English noun.
#[must_use]
pub fn plural(noun: &str) -> String {
    let ends_with = |endings: &[&str]| endings.iter().any(|ending| noun.ends_with(ending));
    match noun.strip_suffix('y') {
        Some(stem) if !ends_with(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
        _ if ends_with(&["ch", "sh", "s", "x", "z"]) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Writes a length of time with one or two units: `250 ms`, `3.2 s`, `43 min 8 s`, `2 h 5 min`, `3 days`.
#[must_use]
pub fn duration(time: Duration) -> String {
    seconds(time.as_secs_f64())
}

/// Writes seconds as [`duration`] does; negative times count as zero.
#[must_use]
pub fn seconds(time_s: f64) -> String {
    if !time_s.is_finite() {
        return format!("{time_s} s");
    }
    let time_s = time_s.max(0.0);
    if time_s == 0.0 {
        return "0 s".to_owned();
    }
    if time_s < 0.01 {
        return format!("{} ms", short((time_s * 1e4).round() / 10.0));
    }
    if time_s < 0.9995 {
        return format!("{:.0} ms", time_s * 1e3);
    }
    // 59.95 s and more round to a minute.
    if time_s < 59.95 {
        return format!("{} s", short((time_s * 10.0).round() / 10.0));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and saturates"
    )]
    let whole_s = time_s.round() as u64;
    let two_units = |large: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {small_unit}"),
    };
    if whole_s < HOUR_S {
        return two_units(whole_s / MINUTE_S, "min", whole_s % MINUTE_S, "s");
    }
    let minutes = whole_s.saturating_add(MINUTE_S / 2) / MINUTE_S;
    if minutes < 24 * 60 {
        return two_units(minutes / 60, "h", minutes % 60, "min");
    }
    let hours = whole_s.saturating_add(HOUR_S / 2) / HOUR_S;
    let (days, hours) = (hours / 24, hours % 24);
    let unit = if days == 1 { "day" } else { "days" };
    match days >= DAYS_WITHOUT_HOURS {
        true => format!("{} days", whole_s.saturating_add(DAY_S / 2) / DAY_S),
        false => two_units(days, unit, hours, "h"),
    }
}

/// Writes a length with at most `decimals` decimals, no trailing zeros and no negative zero.
#[must_use]
pub fn millimetres(length_mm: f64, decimals: usize) -> String {
    format!("{} mm", at_most(length_mm, decimals))
}

/// Writes the length of a line in a unit that suits it: `4 mm`, `540 mm`, `1.25 m`.
#[must_use]
pub fn line_length(length_mm: f64) -> String {
    match length_mm {
        mm if mm < 9.95 => millimetres(mm, 1),
        mm if mm < 999.5 => millimetres(mm, 0),
        mm => format!("{:.2} m", mm / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        count, duration, joined, line_length, millimetres, seconds, with_next, with_statement,
    };

    use std::time::Duration;

    #[test]
    fn the_next_step_stays_last() {
        let with = |message: &str| with_statement(message, "nothing moved");
        assert_eq!(with("no port"), "no port; nothing moved");
        let values = with("no scene x. Valid: a, b. Next: wait");
        assert_eq!(values, "no scene x; nothing moved. Valid: a, b. Next: wait");
        assert_eq!(
            with("no port. Next: `reset`"),
            "no port; nothing moved. Next: `reset`"
        );
        let both = ["no port. Next: `init`", "no pen"].map(str::to_owned);
        assert_eq!(joined(&both), "no port; no pen. Next: `init`");
        let own = with_statement("no port", "nothing moved. Next: wait");
        assert_eq!(own, "no port; nothing moved. Next: wait");
        assert_eq!(with_next(&own, "`reset`"), own);
    }

    #[test]
    fn times_have_units_that_suit_them() {
        for (time_s, expected) in [
            (0.0, "0 s"),
            (-1.0, "0 s"),
            (0.000_4, "0.4 ms"),
            (0.25, "250 ms"),
            (0.999_9, "1 s"),
            (3.24, "3.2 s"),
            (34.0, "34 s"),
            (59.96, "1 min"),
            (64.4, "1 min 4 s"),
            (2588.5, "43 min 9 s"),
            (3599.6, "1 h"),
            (7500.0, "2 h 5 min"),
            (86_399.0, "1 day"),
            (90_000.0, "1 day 1 h"),
            (259_200.0, "3 days"),
            (2_592_000.0, "30 days"),
            (f64::MAX, "213503982334601 days"),
        ] {
            assert_eq!(seconds(time_s), expected, "{time_s}");
        }
        assert_eq!(duration(Duration::from_millis(2996)), "3 s");
        assert_eq!(duration(Duration::MAX), "213503982334601 days");
    }

    #[test]
    fn nouns_have_a_plural_unless_there_is_one() {
        for (number, noun, expected) in [
            (1, "touch", "1 touch"),
            (3, "touch", "3 touches"),
            (0, "stroke", "0 strokes"),
            (2, "node", "2 nodes"),
            (2, "reply", "2 replies"),
            (2, "relay", "2 relays"),
        ] {
            assert_eq!(count(number, noun), expected);
        }
    }

    #[test]
    fn line_lengths_have_units_that_suit_them() {
        for (length_mm, expected) in [
            (0.0, "0 mm"),
            (4.0, "4 mm"),
            (4.26, "4.3 mm"),
            (80.4, "80 mm"),
            (999.4, "999 mm"),
            (999.6, "1.00 m"),
            (12_346.0, "12.35 m"),
        ] {
            assert_eq!(line_length(length_mm), expected);
        }
    }

    #[test]
    fn lengths_have_no_noise_and_no_negative_zero() {
        for (length_mm, decimals, expected) in [
            (-0.0, 1, "0 mm"),
            (-0.04, 1, "0 mm"),
            (12.5, 1, "12.5 mm"),
            (540.0, 0, "540 mm"),
            (100.0, 1, "100 mm"),
            (0.126, 2, "0.13 mm"),
        ] {
            assert_eq!(millimetres(length_mm, decimals), expected);
        }
    }
}
