//! Requests of operators and their replies, as sent over the control socket, over HTTP and by the page.

use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::Semaphore;

use super::calibrate_verbs::CalibrateAction;
use super::jog;
use call::{Refusal, refusal};
use permit::ENABLED_S;
use tools::{DrawingAssent, DrawingOrder, Node, plain_fields};

/// Longest verb: it may carry a drawing of 8 MiB, as JSON.
pub(crate) const VERB_BYTES_MAX: usize = 18 * 1024 * 1024;

/// Request to align an arm.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AlignRequest {
    /// The scene.
    pub scene: String,
    /// Touch the sheet to measure where it is.
    pub touch: bool,
    /// Draw a pattern instead, and read its ink by camera.
    #[serde(default)]
    pub ink: bool,
    /// Move nothing, and use the offset of the cross that a person measured, along the sheet's x and y.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_mm: Option<[f64; 2]>,
    /// The arm, where several draw the scene.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
}

/// Request to raise or lower the pen of the drawing under way: exactly one of `by_mm` and `to_mm`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DepthTrimRequest {
    /// By so much deeper, or higher if below 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_mm: Option<f64>,
    /// To so much deeper than planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_mm: Option<f64>,
    /// The arm, where several move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
}

/// Request of an operator. If it is answered at the end of a motion, its client must stay connected until then, or the arm stops.
/// An unknown key is refused, because it may narrow what is asked for; what only stops, holds or disables is heard with any.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", tag = "verb", deny_unknown_fields)]
pub enum OperatorVerb {
    /// Allow motion in a scene as it is now.
    Enable {
        /// The scene.
        scene: String,
        /// The overlay on it.
        meta: Option<String>,
        /// Duration in seconds; absent: as long as the node runs.
        #[serde(default, deserialize_with = "enabled_s")]
        for_s: Option<u64>,
        /// The arm to enable, where several draw the scene.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Disable everything that was enabled.
    Disable,
    /// Stop, as an operator.
    Stop,
    /// Emergency stop.
    Estop,
    /// Stop the arms of this node and of every other.
    #[serde(deserialize_with = "is_emergency_key")]
    StopFleet {
        /// An emergency stop, which only the fleet's engine can deliver to other nodes.
        emergency: bool,
    },
    /// End an emergency stop.
    #[serde(deserialize_with = "without_keys")]
    Clear,
    /// Bring the arm to rest, as an operator.
    Reset {
        /// The scene that defines which way is up, where the node does not know.
        scene: Option<String>,
        /// The arm, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Hold with the pen up until `steadyhand continue`.
    #[serde(deserialize_with = "is_hold_now")]
    Hold {
        /// At once, instead of at the end of the stroke.
        now: bool,
    },
    /// Resume the held motion.
    #[serde(deserialize_with = "without_keys")]
    Resume,
    /// Raise or lower the pen of the drawing under way, within what its scene allows.
    Trim(DepthTrimRequest),
    /// Visit the sheet and draw a cross, or measure where the sheet is.
    Align(AlignRequest),
    /// Draw a scene for the first time, with less pen pressure.
    FirstInk {
        /// The scene.
        scene: String,
        /// The arm, where several draw the scene.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Lay a new sheet: what was drawn before is not on it.
    NewSheet {
        /// The arm, where there are several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// Switch torque off: the arm drops.
    #[serde(deserialize_with = "without_keys")]
    TorqueOff,
    /// Measure stops on the attached arm.
    Selftest {
        /// Scene to test in.
        scene: Option<String>,
        /// Number of stops.
        rounds: u32,
    },
    /// State of the node.
    #[serde(deserialize_with = "without_keys")]
    Status,
    /// Records of requested, planned and done jobs.
    Jobs {
        /// One job.
        id: Option<String>,
        /// As JSON.
        json: bool,
    },
    /// Describe the node: its name, arms and ports, the files that it was opened from, and where it keeps its state.
    #[serde(deserialize_with = "without_keys")]
    Describe,
    /// Positions of the arms' joints, and the place of calibrations.
    #[serde(deserialize_with = "without_keys")]
    Measured,
    /// Pose of a camera, from a picture taken now.
    Look {
        /// The scene whose sheet it sees.
        scene: String,
        /// The camera, where there are several.
        camera: Option<String>,
    },
    /// One small step.
    Jog {
        /// The scene.
        scene: String,
        /// Axis and distance.
        step: jog::JogRequest,
        /// The arm, where several draw the scene.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// State of a scene's arm, for a client that jogs it.
    Jogged {
        /// The scene.
        scene: String,
        /// The arm, where several draw the scene.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arm: Option<String>,
    },
    /// List the plans that wait for a person.
    Pending {
        /// One of them.
        job: Option<String>,
    },
    /// Show a drawing; with an assent, enable exactly that and begin it.
    Draw {
        /// The drawing, its place and its arm.
        order: Box<DrawingOrder>,
        /// A person's consent to what was shown.
        #[serde(default)]
        assent: Option<DrawingAssent>,
    },
    /// Progress of a job.
    Progress {
        /// The job; absent: the one under way, or the last.
        job: Option<String>,
    },
    /// List the pens that jobs wait for; with a number, confirm that this pen is in the holder.
    Pen {
        /// One of the jobs.
        job: Option<String>,
        /// The confirmed pen, counted from 1.
        #[serde(default)]
        confirmed: Option<usize>,
    },
    /// Carry out an earlier job's plan on a separate simulated arm, and compare.
    Replay {
        /// The job.
        job: String,
    },
    /// List the accepted calibrations, the newest first, as data.
    #[serde(deserialize_with = "without_keys")]
    Calibrations,
    /// Record touches by hand, and decide on the proposal.
    Calibrate(CalibrateAction),
    /// List causes that keep arms from being used, as far as the node sees them, each with a fix.
    #[serde(deserialize_with = "without_keys")]
    Doctor,
    /// Make a one-time code for the operator's page. Only over the control socket, where the kernel identifies the caller.
    #[serde(deserialize_with = "without_keys")]
    PageLogin,
    /// Refuse a plan that waits.
    Refuse {
        /// The job.
        job: String,
        /// The plan's hash.
        plan: String,
    },
    /// Allow a plan.
    Approve {
        /// The job.
        job: String,
        /// The plan's hash.
        plan: String,
    },
}

/// Reads for how many seconds motion is to be enabled.
fn enabled_s<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let for_s = Option::<u64>::deserialize(from)?;
    match for_s {
        Some(for_s) if !ENABLED_S.contains(&for_s) => Err(D::Error::custom(format!(
            "`for_s` is {for_s}; 1 to {} seconds (7 days) are possible",
            ENABLED_S.end()
        ))),
        _ => Ok(for_s),
    }
}

/// Reads a verb that knows no further key.
pub(super) fn without_keys<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoKeys {}
    NoKeys::deserialize(from).map(|NoKeys {}| ())
}

/// Reads which stop it is, whatever other keys there are.
fn is_emergency_key<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct EmergencyKey {
        emergency: bool,
    }
    EmergencyKey::deserialize(from).map(|key| key.emergency)
}

/// Reads whether to hold at once, whatever other keys there are.
fn is_hold_now<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct NowKey {
        now: bool,
    }
    NowKey::deserialize(from).map(|key| key.now)
}

impl OperatorVerb {
    /// Returns it in words, without the bytes of a design, for the log and the audit log.
    pub(super) fn words(&self) -> String {
        let mut fields = serde_json::to_value(self).unwrap_or_default();
        let name = fields.as_object_mut().and_then(|map| map.remove("verb"));
        let name = name.as_ref().and_then(|name| name.as_str());
        let name = name.unwrap_or_default().replace('_', " ");
        match plain_fields(&fields) {
            fields if fields.is_empty() => name,
            fields => format!("{name}: {fields}"),
        }
    }

    /// Returns whether it may cause motion.
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
                | Self::Trim(_)
                | Self::Jog { .. }
                | Self::Align(_)
                | Self::FirstInk { .. }
        )
    }

    /// Returns the tool that moves an arm for it, if it is answered at the end of that motion.
    pub(super) fn moves_until_answered(&self) -> Option<&'static str> {
        match self {
            Self::Jog { .. } => Some(jog::JOG),
            Self::Selftest { .. } => Some("selftest"),
            Self::Align(align) if align.measured_mm.is_none() => Some("align"),
            Self::FirstInk { .. } => Some("stroke"),
            Self::Reset { .. } => Some("reset"),
            _ => None,
        }
    }

    /// Returns whether it stops arms, which must not wait for anything.
    #[must_use]
    pub fn stops(&self) -> bool {
        matches!(self, Self::Stop | Self::Estop | Self::StopFleet { .. })
    }

    /// Returns whether it only tells what the node knows, which takes no time.
    #[must_use]
    pub fn only_reports(&self) -> bool {
        matches!(
            self,
            Self::Status
                | Self::Jobs { .. }
                | Self::Describe
                | Self::Progress { .. }
                | Self::Pending { .. }
                | Self::Pen {
                    confirmed: None,
                    ..
                }
                | Self::Calibrations
                | Self::Measured
        )
    }

    /// Returns whether it is an emergency stop.
    pub(super) const fn is_emergency(&self) -> bool {
        matches!(self, Self::Estop | Self::StopFleet { emergency: true })
    }

    /// Reads a verb. A long text is read on another thread, one at a time, so that no stop waits behind it.
    pub(super) async fn read_async(node: &Arc<Node>, text: Vec<u8>) -> Result<Self, Refusal> {
        static ONE_READER: Semaphore = Semaphore::const_new(1);
        if text.len() <= mcp::INLINE_BYTES_MAX {
            return Self::read(node, &text);
        }
        let permit = ONE_READER.acquire().await;
        let node = Arc::clone(node);
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            Self::read(&node, &text)
        });
        let reader_panicked = |_| {
            Err(refusal!(
                "the node failed while it read this; its log has the reason"
            ))
        };
        reading.await.unwrap_or_else(reader_panicked)
    }

    /// Reads a verb. An invalid text that names a stop becomes one: an emergency stop if it says so.
    pub(super) fn read(node: &Node, text: &[u8]) -> Result<Self, Refusal> {
        serde_json::from_slice(text).or_else(|error| {
            let is_emergency =
                |name: &String| ESTOP_NAMES.contains(&args::name::normalise(name).as_str());
            match mcp::named_tool(text, &|name| node.stops(name)) {
                Some(name) if is_emergency(&name) => Ok(Self::Estop),
                Some(_) => Ok(Self::Stop),
                None => Err(refusal!("not understood: {error}")),
            }
        })
    }
}

/// Normalised names of an emergency stop.
const ESTOP_NAMES: [&str; 2] = ["emergencystop", "estop"];

/// Reply to a verb.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct VerbReply {
    /// True if the verb succeeded.
    pub done: bool,
    /// Text for people.
    pub text: String,
    /// The hash of the plan that the reply describes.
    #[serde(default)]
    pub plan: Option<String>,
    /// The same as data, for verbs whose clients need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl VerbReply {
    pub(super) fn of(result: Result<String, Refusal>) -> Self {
        result.map_or_else(Self::failed, Self::done)
    }

    pub fn done(text: impl Into<String>) -> Self {
        Self {
            done: true,
            text: text.into(),
            plan: None,
            data: None,
        }
    }

    /// Returns a successful reply with the same content as data.
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::OperatorVerb;
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    /// Reads a verb, and returns why it is refused.
    fn refused(verb: &Value) -> String {
        let read = OperatorVerb::deserialize(verb.clone());
        read.map_or_else(
            |error| error.to_string(),
            |verb| format!("read as {verb:?}"),
        )
    }

    /// Returns verbs with keys that they know.
    fn verbs() -> Vec<Value> {
        let with_keys = json!([
            {"verb": "enable", "scene": "default", "meta": null, "for_s": 60, "arm": "left"},
            {"verb": "reset", "scene": null, "arm": "left"},
            {"verb": "align", "scene": "default", "touch": false, "ink": true, "measured_mm": [1.0, 2.0], "arm": "left"},
            {"verb": "first_ink", "scene": "default", "arm": "left"},
            {"verb": "new_sheet", "arm": "left"},
            {"verb": "selftest", "scene": null, "rounds": 3},
            {"verb": "trim", "by_mm": 0.1, "arm": "left"},
            {"verb": "jobs", "id": "job-1", "json": true},
            {"verb": "look", "scene": "default", "camera": "over"},
            {"verb": "jog", "scene": "default", "step": {"axis": "x", "by": 1.0}, "arm": "left"},
            {"verb": "jogged", "scene": "default", "arm": "left"},
            {"verb": "pending", "job": "job-1"},
            {"verb": "draw", "order": {"scene": "default", "arm": "left", "again": true}, "assent": {"revision": "a", "plan": "b", "duration_s": 1.0, "orders_seen": 0}},
            {"verb": "progress", "job": "job-1"},
            {"verb": "pen", "job": "job-1", "confirmed": 2},
            {"verb": "replay", "job": "job-1"},
            {"verb": "calibrate", "action": "show"},
            {"verb": "calibrate", "action": "touch", "scene": "default", "what": "tool", "of": null, "mm": null, "number": 1, "arm": "left"},
            {"verb": "calibrate", "action": "accept", "shown": "key", "overridden": true},
            {"verb": "refuse", "job": "job-1", "plan": "00"},
            {"verb": "approve", "job": "job-1", "plan": "00"},
        ]);
        let without = [
            "clear",
            "resume",
            "torque_off",
            "status",
            "describe",
            "measured",
            "calibrations",
            "doctor",
            "page_login",
        ];
        let without = without.into_iter().map(|verb| json!({"verb": verb}));
        with_keys
            .as_array()
            .unwrap()
            .iter()
            .cloned()
            .chain(without)
            .collect()
    }

    #[test]
    fn every_verb_refuses_an_unknown_key_and_names_it() {
        for verb in verbs() {
            let read: OperatorVerb = OperatorVerb::deserialize(verb.clone()).unwrap();
            // What a command sends is read again.
            let sent = serde_json::to_value(&read).unwrap();
            OperatorVerb::deserialize(sent).unwrap();
            for path in ["", "/step", "/order", "/assent"] {
                let mut with_more = verb.clone();
                let Some(keys) = with_more.pointer_mut(path).and_then(Value::as_object_mut) else {
                    continue;
                };
                keys.insert("fors".to_owned(), json!(30));
                let refused = refused(&with_more);
                assert!(
                    refused.contains("unknown field `fors`"),
                    "{verb}: {refused}"
                );
            }
        }
        let refused = refused(&json!({"verb": "enable", "scene": "default", "for": "30m"}));
        assert!(
            refused.contains("unknown field `for`") && refused.contains("`for_s`"),
            "{refused}"
        );
    }

    #[test]
    fn motion_is_enabled_for_no_longer_than_a_command_could() {
        let enabled =
            |for_s: u64| refused(&json!({"verb": "enable", "scene": "default", "for_s": for_s}));
        for for_s in [0, 604_801, u64::MAX] {
            let refused = enabled(for_s);
            assert!(
                refused.starts_with(&format!("`for_s` is {for_s};")),
                "{refused}"
            );
        }
        for for_s in [1, 604_800] {
            assert!(enabled(for_s).starts_with("read as"), "{}", enabled(for_s));
        }
        let unlimited = refused(&json!({"verb": "enable", "scene": "default"}));
        assert!(unlimited.contains("for_s: None"), "{unlimited}");
    }

    #[test]
    fn a_stop_is_heard_whatever_keys_it_has() {
        for verb in ["stop", "estop", "stop_fleet"] {
            let read: OperatorVerb =
                OperatorVerb::deserialize(json!({"verb": verb, "emergency": true, "arm": "left"}))
                    .unwrap();
            assert!(read.stops(), "{read:?}");
            assert_eq!(read.is_emergency(), verb != "stop", "{read:?}");
        }
    }

    #[test]
    fn what_holds_or_disables_is_heard_whatever_keys_it_has() {
        let read = |verb: Value| OperatorVerb::deserialize(verb).unwrap();
        let disable = read(json!({"verb": "disable", "arm": "left"}));
        assert!(matches!(disable, OperatorVerb::Disable), "{disable:?}");
        let hold = read(json!({"verb": "hold", "now": true, "arm": "left"}));
        assert!(matches!(hold, OperatorVerb::Hold { now: true }), "{hold:?}");
    }
}
