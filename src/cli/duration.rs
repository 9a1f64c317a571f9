//! Parses durations as people type them.

use anyhow::{Context as _, bail};
use std::time::Duration;

/// Parses a duration such as `90s`, `30m`, `2h`; a bare number is seconds.
pub(super) fn duration(text: &str) -> anyhow::Result<Duration> {
    let text = text.trim();
    if text.starts_with('-') {
        bail!("{text} is below 0; 1 second to 7 days are possible, such as 90s, 30m or 2h");
    }
    let split = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        _ => bail!("{unit:?} is not a unit of time. Next: type 90s, 30m or 2h"),
    };
    let number: Option<u64> = number.parse().ok();
    let number = number.context("type a whole number, such as 90s, 30m or 2h")?;
    number
        .checked_mul(seconds)
        .filter(|total_s| permit::ENABLED_S.contains(total_s))
        .map(Duration::from_secs)
        .context("1 second to 7 days are possible")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_bounds() {
        assert_eq!(duration("30m").unwrap(), Duration::from_secs(1800));
        assert!(duration("0").is_err());
        assert!(duration("-5m").is_err());
        assert!(duration("8d").is_err());
        assert!(duration("9999999999h").is_err());
    }
}
