//! Qualifies a planner, which is a language model, before it may move anything: cases, answers, scores, a verdict, a record.
//!
//! ```text
//! cases ─▶ an endpoint or recorded answers ─▶ calls ─▶ the real reader ─▶ judged ─▶ tally ─▶ verdict
//! case       planner, replay                   answer    toolbox           judge     tally     verdict
//! ```
//!
//! It uses no link, driver or motion: calls are read as the node would read them, and recorded.
//! Its commands are in `commands`; `NodeExams` is its part of a running node. It is the only crate that holds SQLite.
//! A missing answer is never replaced by a guess: it is reported with the endpoint's own error, and rules out every level.

mod accepted_values;
mod address;
mod answer;
mod answer_advice;
mod answer_error;
mod bfcl;
mod case;
mod certificate;
mod commands;
mod compare;
mod confidence;
mod confusion;
mod error;
mod extract_calls;
mod generate;
mod helper;
mod judge;
mod planner;
mod record;
mod replay;
mod report;
mod reworded_descriptions;
mod rounds;
mod router;
mod run;
mod score_explanation;
mod settings;
mod shipped;
mod summary;
mod tally;
mod tool_similarity;
mod toolbox;
mod trouble;
mod verdict;
mod word;

use address::{AddressKind, is_local};
pub use answer::{PlannerAnswer, PlannerCall};
use answer_error::{AnswerError, UnusableReply};
pub use case::{CaseClass, CaseHazard, CaseTurn, ExamCase};
use certificate::{ExamConditions, PlannerCertificate};
pub use commands::{ExamArgs, NodeExams, run as run_command};
use compare::RunComparison;
use confusion::ConfusionMatrix;
pub use error::ExamError;
pub use helper::ExamHelper;
use helper::{HelperLimits, HelperService, ModelClient};
pub use judge::{AnswerClassification, JudgedAnswer, judge};
use planner::{EndpointResponse, ExamProgress, ModelEndpoint};
use record::{
    ExamRecord, RecordedServer, RunRow, ServerChange, ServerStatus, ServerTransport,
    StoredCertificate,
};
use replay::AnswerReplay;
use report::{ExamReport, html, markdown};
use run::{PlannerExam, prompt_hash, tools_hash};
use score_explanation::{explain, score};
use settings::PlannerSettings;
use shipped::fitting;
use summary::{SummaryKey, SummaryRow};
use tally::{ExamTally, HitRate};
use tool_similarity::{SimilarityOptions, SimilarityReport, THRESHOLD, ToolPair};
pub use toolbox::ExamToolbox;
use toolbox::{ExamToolCard, ToolListing};
use verdict::{ExamVerdict, Level};
