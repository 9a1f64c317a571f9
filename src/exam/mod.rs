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
pub mod generate;
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

pub use address::{AddressKind, is_local};
pub use answer::{PlannerAnswer, PlannerCall};
pub use answer_error::{AnswerError, UnusableReply};
pub use case::{CaseClass, CaseHazard, CaseTurn, ExamCase};
pub use certificate::{ExamConditions, PlannerCertificate};
pub use commands::{ExamArgs, NodeExams, run as run_command};
pub use compare::RunComparison;
pub use confusion::{ConfusionMatrix, ConfusionRow};
pub use error::ExamError;
pub use helper::{ExamHelper, HelperLimits, HelperReply, HelperService, ModelClient};
pub use judge::{AnswerClassification, JudgedAnswer, judge};
pub use planner::{EndpointResponse, ExamProgress, ModelEndpoint};
pub use record::{
    ExamRecord, OwnCase, RecordedServer, RunRow, ServerChange, ServerStatus, ServerTransport,
    StoredCertificate,
};
pub use replay::AnswerReplay;
pub use report::{ExamReport, html, markdown};
pub use run::{PlannerExam, cases_hash, prompt_hash, tools_hash};
pub use score_explanation::{ScoreExplanation, ScoreReference, explain, score};
pub use settings::PlannerSettings;
pub use shipped::fitting;
pub use summary::{SummaryKey, SummaryRow};
pub use tally::{ExamTally, HitRate, SampledFigure};
pub use tool_similarity::{
    SimilarityOptions, SimilarityReport, THRESHOLD, ToolPair, ToolRecommendation,
};
pub use toolbox::{ExamToolCard, ExamToolEffect, ExamToolbox, ToolListing};
pub use trouble::EndpointFailure;
pub use verdict::{ExamVerdict, HazardBound, Level};
