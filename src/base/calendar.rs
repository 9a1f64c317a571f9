//! Formats dates and times for people, in UTC.

use chrono::DateTime;

/// Formats milliseconds since 1970 as `2026-11-21 14:05`.
#[must_use]
pub fn minute(ms: impl TryInto<i64>) -> String {
    format_utc(ms, "%Y-%m-%d %H:%M")
}

/// Formats milliseconds since 1970 as `2026-11-21 14:05:59`.
#[must_use]
pub fn second(ms: impl TryInto<i64>) -> String {
    format_utc(ms, "%Y-%m-%d %H:%M:%S")
}

fn format_utc(ms: impl TryInto<i64>, format: &str) -> String {
    let moment = ms.try_into().ok().and_then(DateTime::from_timestamp_millis);
    moment.map_or_else(
        || "the date is out of range".to_owned(),
        |moment| moment.format(format).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_known_moments() {
        for (ms, expected) in [
            (0_i64, "1970-01-01 00:00:00"),
            (951_782_400_000, "2000-02-29 00:00:00"),
            (1_759_999_999_000, "2025-10-09 08:53:19"),
            (4_107_542_399_000, "2100-02-28 23:59:59"),
            (1_795_269_900_000, "2026-11-21 14:05:00"),
            (1_798_761_599_999, "2026-12-31 23:59:59"),
        ] {
            assert_eq!(second(ms), expected);
            assert_eq!(minute(ms), expected[..16]);
        }
        assert_eq!(minute(u64::MAX), "the date is out of range");
    }
}
