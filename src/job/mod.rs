//! Journals of what was asked, planned and done, which outlive the process.
//!
//! Every motion is a job with a journal of its own, `jobs/ID/journal` in the node's state folder
//! (its format is in `journal_file.rs`, its records are in `journal_record.rs`). It is accepted,
//! planned and moved; while it draws, the intent to draw is on the disk before the pen comes there,
//! and the arm's thread sends no sample that was not released ([`JournalWriter`]). So after a crash
//! the journal says what is drawn for certain, what may be, and that nothing beyond is:
//! [`PastJob::remaining_strokes`] is the rest.
//!
//! The room knows neither tools nor MCP: it does not interpret the texts in its records.

mod audit;
mod book;
mod entry;
mod ink;
mod keeper;
mod key;
mod log;
mod past;
mod record;
#[cfg(test)]
mod tests;

pub use audit::{Audit, AuditError, Verified, verify};
pub use book::{Book, BookError, Keep, folder, past, pasts};
pub use entry::{Accepted, Entry};
pub use ink::{Drawn, InkTable, left, length_mm};
pub use keeper::{Keeper, Kept, OnFailure};
pub use key::{has_signed, sign};
pub use log::LogError;
pub use past::Past;

/// The folder of journals in a node's state folder.
const JOBS: &str = "jobs";

/// The bytes to and from the arm while a job moved, in its folder.
pub const BYTES: &str = "bytes.trace";

/// A job's journal in its folder.
const JOURNAL: &str = "journal";
