//! Journals of what was requested, planned and done, which outlive the process.
//!
//! Every motion is a job with a journal of its own, `jobs/ID/journal` in the node's state folder
//! (its format is in `journal_file.rs`, its records are in `journal_record.rs`). It is accepted,
//! planned and moved; while it draws, the intent to draw is on the disk before the pen gets there,
//! and the arm's thread sends no sample that was not released ([`JournalWriter`]). So after a crash
//! the journal says what is certainly drawn, what may be drawn, and that nothing beyond is:
//! [`PastJob::remaining_strokes`] is the rest.
//!
//! The room knows neither tools nor MCP: it does not interpret the texts in its records.

mod audit_log;
mod ink_table;
mod job_folder;
mod job_journal;
mod job_store;
mod journal_file;
mod journal_record;
mod journal_writer;
mod node_identity;
mod node_key;
mod old_tickets;
mod past_job;
mod state_check;
#[cfg(test)]
mod tests;

pub use audit_log::{
    AuditError, AuditLog, UnrecordedError, VerifiedAudit, has_jobs, unescaped as unescaped_record,
    verify, visit_audit, was_node_here,
};
pub use ink_table::{InkProgress, InkTable, remaining_strokes};
pub use job_journal::{
    AcceptedJob, DrawingOrigin, DrawingPart, JobJournal, JournalDrawing, TipPlace,
};
pub use job_store::{
    JobStore, JobStoreError, RetentionPolicy, folder, kept_design, number as job_number, past,
    past_jobs, pens_left_down,
};
pub use journal_file::JournalError;
pub use journal_writer::{JournalOutcome, JournalWriter, OnFailure};
pub use node_identity::{NodeIdentity, identity_challenge, is_proven};
pub use node_key::{has_signed, sign};
pub use old_tickets::OldTicket;
pub use past_job::{ArmKey, DEVIATED, PARK, PastJob, has_come_to_its_end};
pub use state_check::{check_audit, check_journals, check_key};

/// The folder of journals in a node's state folder.
const JOBS: &str = "jobs";

/// Name of the trace of bytes to and from the arm while a job moved, in its folder.
pub const BYTES: &str = "bytes.trace";

/// Name of a job's journal in its folder.
const JOURNAL: &str = "journal";

/// Name of the file in a job's folder that keeps the drawing which replaces its scene's own design.
const DESIGN: &str = "design.toml";

/// Name under which [`base::disk::put`] writes it first.
const DESIGN_DRAFT: &str = "design.toml.new";
