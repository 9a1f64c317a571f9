//! Facts attached to a recording at its end: how the job ended, and the files on which it depended.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::RecordingError;
use crate::mcap_file::McapFile;
use base::plain_file;

/// Name of the attachment.
pub(crate) const JOB_ATTACHMENT: &str = "job.json";

/// The end of a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct JobFacts {
    pub(crate) job: String,
    pub(crate) state: String,
    pub(crate) message: String,
    /// Number of ticks that are missing because the machine was too slow to record them.
    pub(crate) dropped_ticks: u64,
    /// Files to attach if they exist: the attachment's name and the path.
    #[serde(skip)]
    pub(crate) files: Vec<(String, PathBuf)>,
    /// Texts to attach: the attachment's name and the text.
    #[serde(skip)]
    pub(crate) texts: Vec<(String, String)>,
}

impl JobFacts {
    /// Attaches them.
    pub(crate) fn attach(&self, file: &mut McapFile, at_ns: u64) -> Result<(), RecordingError> {
        for (name, path) in &self.files {
            // A file that does not exist was not used.
            if let Ok(data) = plain_file::read(path) {
                file.attach(name, "text/plain", at_ns, &data)?;
            }
        }
        for (name, text) in &self.texts {
            file.attach(name, "text/plain", at_ns, text.as_bytes())?;
        }
        let json = serde_json::to_vec(self).unwrap_or_default();
        file.attach(JOB_ATTACHMENT, "application/json", at_ns, &json)
    }
}
