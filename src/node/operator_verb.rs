//! Requests of operators and their replies, as they are written on the control socket, over HTTP and by the page.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::calibrate_verbs::CalibrateAction;
use super::jog;
use call::{Refusal, refusal};
use tools::{DrawingAssent, DrawingOrder, Node};

/// Longest verb: it may carry a drawing of 8 MiB, as JSON.
pub(crate) const VERB_BYTES_MAX: usize = 18 * 1024 * 1024;

/// Request of an operator. The client of one that is answered at the end of a motion must stay connected: if it leaves before,
/// the arm stops.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", tag = "verb")]
pub enum OperatorVerb {
    /// Allow motion in a scene as it is now.
    Enable {
        /// The scene.
        scene: String,
        /// The overlay on it.
        meta: Option<String>,
        /// For how long.
        for_s: Option<u64>,
        /// The one arm that is meant, where several draw the scene.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Take back all that was enabled.
    Disable,
    /// Stop, as an operator.
    Stop,
    /// Emergency stop.
    Estop,
    /// Stop the arms of this node and of every other.
    StopFleet {
        /// An emergency stop, which only the engine of a fleet brings to other nodes.
        emergency: bool,
    },
    /// End an emergency stop.
    Clear,
    /// Bring the arm to rest, as an operator.
    Reset {
        /// The scene that says which way is up, where the node does not know.
        scene: Option<String>,
        /// The arm, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Stand with the pen up until `resume`.
    Hold {
        /// At once, and not at the end of the stroke.
        now: bool,
    },
    /// Go on with what is held.
    Resume,
    /// Visit the sheet and draw a cross, or measure where the sheet is.
    Align {
        /// In which scene.
        scene: String,
        /// Feel the sheet.
        touch: bool,
        /// Draw a pattern instead, and read its ink by camera.
        #[serde(default)]
        ink: bool,
        /// Move nothing, and take how far a person read the cross from its place, along the sheet's x and y.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        measured_mm: Option<[f64; 2]>,
    },
    /// Draw a scene for the first time: with its pens pressed less.
    FirstInk {
        /// The scene.
        scene: String,
    },
    /// Take torque off: the arm drops.
    TorqueOff,
    /// Measure stops on the arm that is attached.
    Selftest {
        /// Scene to test in.
        scene: Option<String>,
        /// Number of stops.
        rounds: u32,
    },
    /// State of the node.
    Status,
    /// Records of requested, planned and done jobs.
    Jobs {
        /// One job.
        id: Option<String>,
        /// As JSON.
        json: bool,
    },
    /// Describe the node: its name, arms and ports, the files that it was opened from, and where it keeps its state.
    Describe,
    /// Positions of the arms' joints, and the place of calibrations.
    Measured,
    /// Pose of a camera, from a picture taken now.
    Look {
        /// Of which scene's sheet.
        scene: String,
        /// The camera, where there are several.
        camera: Option<String>,
    },
    /// One small step.
    Jog {
        /// In which scene.
        scene: String,
        /// Axis and distance.
        step: jog::JogRequest,
    },
    /// State of a scene's arm, for a client that jogs it.
    Jogged {
        /// The scene.
        scene: String,
    },
    /// The plans that wait for a person.
    Pending {
        /// One of them.
        job: Option<String>,
    },
    /// Show a drawing; with an assent, enable exactly that and begin it.
    Draw {
        /// The drawing, its place and its arm.
        order: Box<DrawingOrder>,
        /// A person's yes to what was shown.
        #[serde(default)]
        assent: Option<DrawingAssent>,
    },
    /// Progress of a job.
    Progress {
        /// The job; without one, the one that is under way, or the last.
        job: Option<String>,
    },
    /// The pens that jobs wait for; with a number, confirm that this one is in the holder.
    Pen {
        /// One of the jobs.
        job: Option<String>,
        /// The confirmed pen, counted from 1.
        #[serde(default)]
        confirmed: Option<usize>,
    },
    /// Carry an earlier job's plan out on a simulated arm of its own, and compare.
    Replay {
        /// The job.
        job: String,
    },
    /// The calibrations that were accepted, the newest first, as data.
    Calibrations,
    /// Touch by hand, and decide on what is proposed.
    Calibrate(CalibrateAction),
    /// Causes that keep arms from being used, as far as the node sees them, with a fix each.
    Doctor,
    /// Make a code that opens the operator's page once. By the control socket alone, where the kernel says who asks.
    PageLogin,
    /// Refuse a plan that waits.
    Refuse {
        /// Of which job.
        job: String,
        /// Its hash.
        plan: String,
    },
    /// Allow a plan.
    Approve {
        /// Of which job.
        job: String,
        /// Its hash.
        plan: String,
    },
}

impl OperatorVerb {
    /// Returns whether something may move because of it.
    pub(super) fn moves(&self) -> bool {
        matches!(
            self,
            Self::Enable { .. }
                | Self::Draw {
                    assent: Some(_),
                    ..
                }
                | Self::Selftest { .. }
                | Self::Pen {
                    confirmed: Some(_),
                    ..
                }
                | Self::Resume
                | Self::Jog { .. }
                | Self::Align { .. }
                | Self::FirstInk { .. }
        )
    }

    /// Returns the tool under which an arm moves for it, if it is answered at the end of that motion.
    pub(super) fn moves_until_answered(&self) -> Option<&'static str> {
        match self {
            Self::Jog { .. } => Some(jog::JOG),
            Self::Selftest { .. } => Some("selftest"),
            Self::Align {
                measured_mm: None, ..
            } => Some("align"),
            Self::FirstInk { .. } => Some("stroke"),
            Self::Reset { .. } => Some("reset"),
            _ => None,
        }
    }

    /// Returns whether it stops arms, which waits for nothing.
    pub(super) fn stops(&self) -> bool {
        matches!(self, Self::Stop | Self::Estop | Self::StopFleet { .. })
    }

    /// Reads a verb; a long text on another thread, one such text at a time, so that no stop waits behind it.
    pub(super) async fn read_apart(node: &Arc<Node>, text: Vec<u8>) -> Result<Self, Refusal> {
        static TURN: Semaphore = Semaphore::const_new(1);
        if text.len() <= mcp::INLINE_BYTES_MAX {
            return Self::read(node, &text);
        }
        let turn = TURN.acquire().await;
        let node = Arc::clone(node);
        let reading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Self::read(&node, &text)
        });
        let broke = |_| {
            Err(refusal!(
                "the node broke while it read this; its log says why"
            ))
        };
        reading.await.unwrap_or_else(broke)
    }

    /// Reads a verb. An invalid text that names a stop becomes one: an emergency stop if it says so.
    fn read(node: &Node, text: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(text).or_else(|error| {
            let names = mcp::tool_names(text);
            let meant = names.iter().find(|name| node.stops(name));
            let is_emergency =
                |name: &String| EMERGENCY.contains(&args::name::normalise(name).as_str());
            match meant {
                Some(name) if is_emergency(name) => Ok(Self::Estop),
                Some(_) => Ok(Self::Stop),
                None => Err(refusal!("not understood: {error}")),
            }
        })
    }
}

/// Names of an emergency stop, form aside.
const EMERGENCY: [&str; 2] = ["emergencystop", "estop"];

/// Reply to a verb.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct VerbReply {
    /// True if the verb succeeded.
    pub done: bool,
    /// In words.
    pub text: String,
    /// The hash of the plan that it is about.
    #[serde(default)]
    pub plan: Option<String>,
    /// The same as data, for verbs whose clients need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl VerbReply {
    pub(super) fn of(told: Result<String, Refusal>) -> Self {
        told.map_or_else(Self::failed, Self::done)
    }

    pub fn done(text: impl Into<String>) -> Self {
        Self {
            done: true,
            text: text.into(),
            plan: None,
            data: None,
        }
    }

    /// Done, with the same as data.
    pub(super) fn with_data(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self {
            data: serde_json::to_value(data).ok(),
            ..Self::done(text)
        }
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            done: false,
            ..Self::done(text)
        }
    }
}
