//! Messages of a recording. Lengths are in metres and angles in radians, as Foxglove's schemas require.

use nalgebra::{Isometry3, Point3};
use serde::{Deserialize, Serialize};

/// Nanoseconds in a second.
const SECOND_NS: u64 = 1_000_000_000;

/// A time since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageTime {
    pub(crate) sec: u64,
    pub(crate) nsec: u64,
}

impl MessageTime {
    pub(crate) const fn from_ns(ns: u64) -> Self {
        Self {
            sec: ns / SECOND_NS,
            nsec: ns % SECOND_NS,
        }
    }
}

/// `foxglove.JointStates`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JointStatesMessage {
    pub(crate) timestamp: MessageTime,
    pub(crate) joints: Vec<JointStateMessage>,
}

/// `foxglove.JointState`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JointStateMessage {
    pub(crate) name: String,
    pub(crate) position: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) velocity: Option<f64>,
}

/// A vector.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct MessageVector {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) z: f64,
}

/// A quaternion.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct MessageQuaternion {
    x: f64,
    y: f64,
    z: f64,
    w: f64,
}

/// A pose.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct MessagePose {
    pub(crate) position: MessageVector,
    pub(crate) orientation: MessageQuaternion,
}

/// `foxglove.FrameTransform`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FrameTransformMessage {
    pub(crate) timestamp: MessageTime,
    pub(crate) parent_frame_id: &'static str,
    pub(crate) child_frame_id: &'static str,
    pub(crate) translation: MessageVector,
    pub(crate) rotation: MessageQuaternion,
}

/// `foxglove.PoseInFrame`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PoseInFrameMessage {
    pub(crate) timestamp: MessageTime,
    pub(crate) frame_id: String,
    pub(crate) pose: MessagePose,
}

/// `foxglove.Log`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LogMessage {
    pub(crate) timestamp: MessageTime,
    pub(crate) level: u8,
    pub(crate) message: String,
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// Level of information.
pub(crate) const LOG_INFO: u8 = 2;

/// Level of a warning.
pub(crate) const LOG_WARNING: u8 = 3;

/// `foxglove.CompressedImage`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CompressedImageMessage {
    pub(crate) timestamp: MessageTime,
    pub(crate) frame_id: String,
    /// The file in base64.
    pub(crate) data: String,
    pub(crate) format: String,
}

/// `steadyhand.Servos`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServosMessage {
    pub(crate) timestamp: MessageTime,
    pub(crate) load_ratio: Vec<Option<f64>>,
    pub(crate) temperature_c: Vec<Option<f64>>,
    pub(crate) voltage_v: Vec<Option<f64>>,
}

/// `steadyhand.Bus`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BusMessage {
    pub(crate) timestamp: MessageTime,
    pub(crate) cycles: u64,
    pub(crate) transactions: u64,
    pub(crate) corrupt: u64,
    pub(crate) resent: u64,
    pub(crate) foreign: u64,
    pub(crate) retries: u64,
    pub(crate) blind: u64,
    pub(crate) jumps: u64,
}

/// `steadyhand.Job`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobMessage {
    pub(crate) timestamp: MessageTime,
    pub(crate) job: String,
    /// Number of the motion in the job, counted from 1.
    pub(crate) motion: u32,
    /// Index of the plan's sample that was sent last.
    pub(crate) sample: usize,
    /// Number of samples of the plan.
    pub(crate) samples: usize,
    pub(crate) doing: String,
    /// The stroke to which the tick belongs, including its approach and lift.
    pub(crate) stroke: Option<usize>,
    pub(crate) pen: usize,
    pub(crate) pen_down: bool,
    pub(crate) state: String,
    /// How much deeper than planned a person trimmed the pen; absent in older recordings.
    #[serde(default)]
    pub(crate) depth_trim_mm: f64,
}

impl From<Point3<f64>> for MessageVector {
    fn from(at: Point3<f64>) -> Self {
        Self {
            x: rounded(at.x),
            y: rounded(at.y),
            z: rounded(at.z),
        }
    }
}

/// Rounds a length or a component to seven decimals, a tenth of a micrometre, which halves the number of bytes.
fn rounded(value: f64) -> f64 {
    (value * 1e7).round() / 1e7
}

impl MessageQuaternion {
    /// No rotation.
    pub(crate) const IDENTITY: Self = Self {
        x: 0.0,
        y: 0.0,
        z: 0.0,
        w: 1.0,
    };

    pub(crate) fn from_pose(pose: &Isometry3<f64>) -> Self {
        let coords = pose.rotation.coords;
        Self {
            x: rounded(coords.x),
            y: rounded(coords.y),
            z: rounded(coords.z),
            w: rounded(coords.w),
        }
    }
}

/// Returns a scene update with one entity of these lines.
pub(crate) fn lines_update(
    timestamp: MessageTime,
    id: &str,
    lines: &[SpaceLine],
) -> serde_json::Value {
    let empty: [u8; 0] = [];
    let lines: Vec<serde_json::Value> = lines.iter().map(SpaceLine::message).collect();
    serde_json::json!({
        "deletions": empty,
        "entities": [{
            "timestamp": timestamp,
            "frame_id": "base",
            "id": id,
            "lifetime": { "sec": 0, "nsec": 0 },
            "frame_locked": false,
            "metadata": empty,
            "arrows": empty,
            "cubes": empty,
            "spheres": empty,
            "cylinders": empty,
            "lines": lines,
            "triangles": empty,
            "texts": empty,
            "models": empty,
        }],
    })
}

/// A line in the arm's base frame.
pub(crate) struct SpaceLine {
    pub(crate) points_m: Vec<Point3<f64>>,
    pub(crate) width_mm: f64,
    pub(crate) colour: [u8; 3],
}

impl SpaceLine {
    fn message(&self) -> serde_json::Value {
        let points: Vec<MessageVector> = self.points_m.iter().copied().map(Into::into).collect();
        let [r, g, b] = self.colour.map(|channel| f64::from(channel) / 255.0);
        let empty: [u8; 0] = [];
        serde_json::json!({
            "type": 0,
            "pose": { "position": { "x": 0.0, "y": 0.0, "z": 0.0 }, "orientation": MessageQuaternion::IDENTITY },
            "thickness": self.width_mm / 1e3,
            "scale_invariant": false,
            "points": points,
            "color": { "r": r, "g": g, "b": b, "a": 1.0 },
            "colors": empty,
            "indices": empty,
        })
    }
}
