//! Reasons why a recording cannot be written, read or exported.

use std::path::{Path, PathBuf};

/// The reason.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file system says no.
    #[error("{path}: {error}")]
    File {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file is no MCAP, or MCAP cannot be written.
    #[error("{path} is not a recording that can be used: {error}")]
    Mcap {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<mcap::McapError>,
    },
    /// A message or attachment is not what this program writes.
    #[error("{path}: {what} cannot be read: {error}")]
    Json {
        /// Which file.
        path: PathBuf,
        /// Which message.
        what: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// There is nothing in it that could be used.
    #[error("{path}: {why}")]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What is missing, and what to do.
        why: String,
    },
    /// A data set cannot be written.
    #[error("{path}: the data set cannot be written: {error}")]
    Parquet {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        error: Box<parquet::errors::ParquetError>,
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

    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Self + '_ {
        |error| Self::Parquet {
            path: path.to_owned(),
            error: Box::new(error),
        }
    }

    pub(crate) fn unusable(path: &Path, why: impl Into<String>) -> Self {
        Self::Unusable {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}
