//! The node file's settings for recordings of jobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CameraEntry;
use super::config_problem::ProblemList;

/// The most pictures a second that a recording takes of a camera.
const FPS_MAX: f64 = 30.0;

/// Recording of jobs: `true`, `false`, or `true` with more in a table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`record` must be true, false or a table, such as `record = { cameras = [\"top\"], fps = 1.0 }`"
)]
pub enum RecordEntry {
    /// The motion, or nothing.
    Motion(bool),
    /// The motion and more.
    Detailed(RecordDetailsEntry),
}

/// The recordings beside the motion's, and who sees them meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordDetailsEntry {
    /// Names of cameras of this node; absent: none is recorded.
    pub cameras: Vec<String>,
    /// Pictures a second of each, up to 30; absent: 1.
    pub fps: Option<f64>,
    /// Port at which Foxglove sees a job as it happens; absent: none, 0: any. Needs the cargo feature `live`.
    pub live_port: Option<u16>,
}

impl Default for RecordEntry {
    fn default() -> Self {
        Self::Motion(false)
    }
}

impl RecordEntry {
    /// Returns whether jobs are recorded.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        !matches!(self, Self::Motion(false))
    }

    /// Returns the names of the recorded cameras.
    #[must_use]
    pub fn cameras(&self) -> &[String] {
        match self {
            Self::Motion(_) => &[],
            Self::Detailed(entry) => &entry.cameras,
        }
    }

    /// Returns the time from one picture of a camera to the next, in seconds.
    #[must_use]
    pub fn picture_period_s(&self) -> f64 {
        match self {
            Self::Detailed(RecordDetailsEntry { fps: Some(fps), .. }) => 1.0 / fps,
            _ => 1.0,
        }
    }

    /// Returns the port of the live view, if one is set.
    #[must_use]
    pub const fn live_port(&self) -> Option<u16> {
        match self {
            Self::Motion(_) => None,
            Self::Detailed(entry) => entry.live_port,
        }
    }

    pub(super) fn check(&self, cameras: &[CameraEntry], problems: &mut ProblemList) {
        for name in self.cameras() {
            let is_known = cameras.iter().any(|camera| camera.name == *name);
            problems.check(is_known, "record", || {
                format!("`record.cameras` names {name}, but `[[cameras]]` has no such camera")
            });
        }
        if let Self::Detailed(RecordDetailsEntry { fps: Some(fps), .. }) = self {
            problems.check(*fps > 0.0 && *fps <= FPS_MAX, "record", || {
                format!("`record.fps` is {fps}; it must be above 0 and at most {FPS_MAX}")
            });
        }
    }
}
