//! Recordings of what an arm did while a job moved it, in formats that other programs open.
//!
//! ```text
//! the arm's thread ─▶ copies of its ticks ─▶ job.mcap, appended ─▶ indexed and compressed ─▶ show, report, replay, exports
//!   motion             motion::TickQueue      tick_writer            finish                   recorded_job, commands
//! ```
//!
//! With the feature `live` the same messages go to Foxglove as they are written: `live`.
//!
//! Nothing here blocks an arm: ticks for which the recorder's thread is too slow are dropped, counted and reported. A file
//! that ends anywhere, because its process was killed, is read up to its last complete tick. This is the only crate that knows
//! MCAP and parquet.

mod claimed_lengths;
mod commands;
mod error;
mod figures;
mod finish;
mod job_facts;
mod job_recorder;
mod lerobot;
#[cfg(feature = "live")]
mod live;
mod mcap_file;
mod message;
mod node_recorder;
mod plan_record;
mod recorded_job;
mod recording_library;
mod records;
mod tick_writer;
mod topic;

pub use commands::{RecordingArgs, run as run_command};
pub use error::RecordingError;
pub use mcap_file::RECORDING;
pub use node_recorder::NodeRecordings;
