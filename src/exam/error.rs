//! Errors of an exam itself. A failing planner is a verdict, not an error.

use std::path::PathBuf;

/// Reason why an exam, or a query of the record, did not complete.
#[derive(Debug, thiserror::Error)]
pub enum ExamError {
    /// A line of a file of cases, answers or questions.
    #[error("line {line}: {reason}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The mistake and how to correct it.
        reason: String,
    },
    /// The record of exams.
    #[error("the exam record {} cannot be used: {reason}", path.display())]
    Store {
        /// Its file.
        path: PathBuf,
        /// Error from the store.
        reason: String,
    },
    /// Another process is writing an exam into the same record.
    #[error("another exam is writing {}. Next: wait for it, or use a different file with --store FILE", .0.display())]
    Busy(PathBuf),
    /// The record was written by a newer program.
    #[error(
        "{} has version {found}; this program knows {known}. Next: use the newer program, or a different file with --store",
        path.display()
    )]
    Newer {
        /// Its file.
        path: PathBuf,
        /// The file's version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// The record has no such entry.
    #[error("there is no {what} {name:?}: {hint}")]
    Unknown {
        /// A run, a case, a server, a certificate.
        what: &'static str,
        /// The given name.
        name: String,
        /// Advice for the operator.
        hint: String,
    },
    /// A setting is out of its range.
    #[error("{name} is {value}. Valid: {range}")]
    Setting {
        /// Name of the value.
        name: &'static str,
        /// Value that was given.
        value: String,
        /// Possible values.
        range: String,
    },
    /// An address contains a key.
    #[error(
        "the address {address} contains {holds}; addresses are stored and shown. Next: remove that, and {instead}"
    )]
    Key {
        /// The address without the key.
        address: String,
        /// The secret part and its place.
        holds: &'static str,
        /// Place where a key belongs.
        instead: &'static str,
    },
    /// An address is malformed.
    #[error("{0:?} is not an address. Next: write http://HOST:PORT/PATH or https://HOST/PATH")]
    Address(String),
    /// A case names a tool that does not exist here.
    #[error("case {case} names the tool {tool:?}, but there is no such tool{}: {hint}", nearest.as_ref().map(|name| format!(" (nearest: {name:?})")).unwrap_or_default())]
    NoTool {
        /// The case's name.
        case: String,
        /// The tool as it is written.
        tool: String,
        /// The most similar tool, if any.
        nearest: Option<String>,
        /// Advice for the operator.
        hint: &'static str,
    },
    /// The planner could not be examined at all.
    #[error("{0}")]
    Planner(String),
    /// The parts of the request contradict each other.
    #[error("{0}")]
    Request(String),
}
