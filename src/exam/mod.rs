//! Qualifies a planner, which is a language model, before it may move anything: cases, answers, scores, a verdict, a record.
//!
//! ```text
//! cases ─▶ an endpoint or recorded answers ─▶ calls ─▶ the real reader ─▶ judged ─▶ tally ─▶ verdict
//! case       planner, replay                   answer    toolbox           judge     tally     verdict
//! ```
//!
//! It knows no link, no driver and no motion: what a planner asks for is read as the node would read it, and noted down.
//! Its commands are in `commands`; `NodeExams` is its part of a running node. It is the only crate that holds SQLite.
//! Nothing is made up: an answer that did not come counts for nothing, is named with the endpoint's own error, and bars every level.

mod acceptable;
mod address;
mod advice;
mod answer;
mod bfcl;
mod case;
mod certificate;
mod commands;
mod compare;
mod confidence;
mod confusion;
mod error;
mod explain;
pub mod generate;
mod helper;
mod judge;
mod planner;
mod record;
mod replay;
mod report;
mod rounds;
mod router;
mod run;
mod settings;
mod shipped;
mod similar;
mod summary;
mod tally;
mod toolbox;
mod trouble;
mod verdict;
mod written;

pub use address::{AddressOf, is_local};
pub use answer::{Answer, Call};
pub use case::{Case, Class, Hazard, Turn};
pub use certificate::{Certificate, Shown};
pub use commands::{ExamArgs, NodeExams, run as run_command};
pub use compare::Comparison;
pub use confusion::{Confusion, Mistakes};
pub use error::ExamError;
pub use explain::{Explanation, Reference, explain, score};
pub use helper::{Asker, Bench, Helped, Helper, Limits};
pub use judge::{Classification, Judged, judge};
pub use planner::{Endpoint, Progress, Response};
pub use record::{Held, OwnCase, Record, RunRow, Server, ServerChange, Status, Transport};
pub use replay::Replay;
pub use report::{Report, html, markdown};
pub use run::{Exam, cases_hash, prompt_hash, tools_hash};
pub use settings::Settings;
pub use shipped::fitting;
pub use similar::{How, Pair, Recommendation, Similar, THRESHOLD};
pub use summary::{By, Row};
pub use tally::{Figure, Rate, Tally};
pub use toolbox::{Card, Does, Listing, Toolbox};
pub use trouble::EndpointFailure;
pub use verdict::{Bound, Level, Verdict};

/// Milliseconds since 1970 as `2026-11-21 14:05`, in UTC, for lists that people read.
#[must_use]
pub fn calendar(ms: i64) -> String {
    // Days to a date as Howard Hinnant shows it: years begin in March.
    let (days, minutes) = (
        ms.div_euclid(86_400_000),
        ms.rem_euclid(86_400_000) / 60_000,
    );
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * day_of_year + 2) / 153;
    let (day, month) = (
        day_of_year - (153 * march + 2) / 5 + 1,
        (march + 2) % 12 + 1,
    );
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}",
        minutes / 60,
        minutes % 60
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_are_read_by_people() {
        assert_eq!(super::calendar(0), "1970-01-01 00:00");
        assert_eq!(super::calendar(951_782_400_000), "2000-02-29 00:00");
        assert_eq!(super::calendar(1_795_269_900_000), "2026-11-21 14:05");
    }
}
