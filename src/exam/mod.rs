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
