//! Reasons why a recording cannot be written, read or exported.

use std::path::{Path, PathBuf};

/// What to do where a file is no recording that can be shown.
const LIST_JOBS: &str = "Next: `steadyhand jobs` lists the jobs of a node";

/// Reason why a recording cannot be written, read or exported.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// A file operation failed.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file is not an MCAP, or an MCAP cannot be written.
    #[error("{path} is not a usable recording: {error}")]
    Mcap {
        /// The file.
        path: PathBuf,
        /// The library's error.
        error: Box<mcap::McapError>,
    },
    /// The file is of another format.
    #[error("{path} is not a recording: it is not an MCAP file. {LIST_JOBS}")]
    NotMcap {
        /// The file.
        path: PathBuf,
    },
    /// The file has no bytes.
    #[error("{path} is empty: it has 0 bytes. {LIST_JOBS}")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Another program wrote the file.
    #[error(
        "{path} is not a recording of Steadyhand: {library} wrote it, with {topics}. {LIST_JOBS}"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The program, as the file names it.
        library: String,
        /// Its topics, for people.
        topics: String,
    },
    /// The file ends before its first tick.
    #[error(
        "{path} ends after {bytes} bytes, before its first tick, so there is nothing to show. {LIST_JOBS}"
    )]
    Cut {
        /// The file.
        path: PathBuf,
        /// Size of the file.
        bytes: u64,
    },
    /// A whole recording in which nothing moved.
    #[error("{path} holds no ticks: nothing moved while it was recorded. {LIST_JOBS}")]
    NoTicks {
        /// The file.
        path: PathBuf,
    },
    /// Frames are asked for more often than ticks were recorded.
    #[error(
        "--fps is {fps}, but {path} has only {ticks_hz:.0} ticks a second, so frames would repeat. Next: `--fps {ticks_hz:.0}` or less"
    )]
    Rate {
        /// The recording.
        path: PathBuf,
        /// Ticks a second.
        ticks_hz: f64,
        /// Frames a second.
        fps: u32,
    },
    /// A message or attachment is not what this program writes.
    #[error("{path}: {what} cannot be read: {error}")]
    Json {
        /// The file.
        path: PathBuf,
        /// The message or attachment.
        what: String,
        /// The library's error.
        error: serde_json::Error,
    },
    /// It cannot be used.
    #[error("{path}: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason, and what to do.
        reason: String,
    },
    /// The live view's port cannot be opened.
    #[cfg(feature = "live")]
    #[error(
        "there is no live view at 127.0.0.1:{port}: {error}. Next: choose another port for `record.live_port`, or remove the key"
    )]
    Live {
        /// The port.
        port: u16,
        /// The system's error.
        error: std::io::Error,
    },
    /// The program has no live view.
    #[cfg(not(feature = "live"))]
    #[error(
        "`record.live_port = {port}` needs the live view, but this program was built without it. Next: remove the key, or build with the cargo feature `live`"
    )]
    NotLive {
        /// The port.
        port: u16,
    },
}

impl RecordingError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        |error| Self::File {
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn mcap(path: &Path) -> impl FnOnce(mcap::McapError) -> Self + '_ {
        |error| Self::Mcap {
            path: path.to_owned(),
            error: Box::new(error),
        }
    }

    pub(crate) fn json<'a>(
        path: &'a Path,
        what: &'a str,
    ) -> impl FnOnce(serde_json::Error) -> Self + 'a {
        move |error| Self::Json {
            path: path.to_owned(),
            what: what.to_owned(),
            error,
        }
    }

    #[cfg(feature = "live")]
    pub(crate) fn live(port: u16) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::Live { port, error }
    }

    pub(crate) fn unusable(path: &Path, reason: impl Into<String>) -> Self {
        Self::Unusable {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}
