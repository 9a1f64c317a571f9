//! Options of a node that the command line or an embedding program sets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::NodeFile;
use tools::{ExamHelperService, JobRecorder, RecordingLibrary};

use crate::CertificateCheck;
use crate::log::LogFormat;

/// Options that select a node, its folders and its ports. An absent value leaves the choice to the node file.
#[derive(Clone, Default)]
pub struct NodeOptions {
    /// The node file; without one, a node with an embedded simulated SO-101.
    pub config: Option<PathBuf>,
    /// A folder of scenes that take precedence over the embedded ones.
    pub scenes: Option<PathBuf>,
    /// The folder for pictures and reports.
    pub output: Option<PathBuf>,
    /// The folder for stops, jobs and keys.
    pub state: Option<PathBuf>,
    /// The serial port of the node's first arm.
    pub port: Option<String>,
    /// A person's word that the first arm was calibrated by other means.
    pub calibrated_elsewhere: bool,
    /// The file that receives every byte to and from the ports.
    pub trace: Option<PathBuf>,
    /// Permission to drive a real serial port as root.
    pub allow_root: bool,
    /// Exams and certificates, where they are part of the program.
    pub exams: Option<&'static dyn ExamServices>,
    /// True if jobs are recorded whatever the node file says.
    pub record: bool,
    /// The form of the log.
    pub log: Option<LogFormat>,
    /// Recordings, where they are part of the program.
    pub recordings: Option<&'static dyn RecordingServices>,
}

/// Services that recordings offer to a running node.
pub trait RecordingServices: Sync {
    /// Returns the recorder of a node's jobs.
    ///
    /// # Errors
    /// The live view that the node file asks for cannot be started.
    fn recorder(&self, state: &Path, file: &NodeFile) -> anyhow::Result<Arc<dyn JobRecorder>>;

    /// Returns the library behind the toolset `recording`.
    fn library(&self, state: &Path) -> Arc<dyn RecordingLibrary>;
}

/// Services that the exam of planners offers to a running node.
pub trait ExamServices: Sync {
    /// Returns the check of callers' certificates.
    fn certificates(&self, state: &Path) -> Arc<dyn CertificateCheck>;

    /// Returns the helpers of the toolset `exam`.
    ///
    /// # Errors
    /// The node file's exam settings cannot be used.
    fn helpers(&self, state: &Path, file: &NodeFile) -> anyhow::Result<Arc<dyn ExamHelperService>>;
}
