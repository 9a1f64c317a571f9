//! Topics of a recording with the schemas of their messages.

/// A schema: its name and its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageSchema {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! schema {
    ($name:literal) => {
        MessageSchema {
            name: $name,
            text: include_str!(concat!("schemas/", $name, ".json")),
        }
    };
}

/// Schema of a camera's topic.
pub(crate) const COMPRESSED_IMAGE: MessageSchema = schema!("foxglove.CompressedImage");

/// Prefix of a camera's topic; its name follows.
pub(crate) const CAMERA_TOPIC: &str = "/camera/";

/// Schemas of more than one topic.
const JOINTS: MessageSchema = schema!("foxglove.JointStates");
const POSE: MessageSchema = schema!("foxglove.PoseInFrame");
const LINES: MessageSchema = schema!("foxglove.SceneUpdate");

/// A topic with a fixed name, and the schema of its messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Topic {
    pub(crate) name: &'static str,
    pub(crate) schema: MessageSchema,
}

impl Topic {
    const fn new(name: &'static str, schema: MessageSchema) -> Self {
        Self { name, schema }
    }

    /// Measured joints.
    pub(crate) const JOINT_STATES: Self = Self::new("/joint_states", JOINTS);
    /// Commanded joints.
    pub(crate) const JOINT_SETPOINTS: Self = Self::new("/joint_setpoints", JOINTS);
    /// Difference between commanded and expected joints; only if goals lead.
    pub(crate) const JOINT_LEADS: Self = Self::new("/joint_leads", JOINTS);
    /// Poses of the tip and the sheet in the arm's base frame.
    pub(crate) const TRANSFORMS: Self = Self::new("/tf", schema!("foxglove.FrameTransform"));
    /// Measured place of the tip on the sheet, corrected for the lead of goals.
    pub(crate) const PEN: Self = Self::new("/pen", POSE);
    /// Target of the tip on the sheet.
    pub(crate) const TARGET: Self = Self::new("/target", POSE);
    /// Planned lines.
    pub(crate) const PLAN: Self = Self::new("/plan", LINES);
    /// Lines that the tip drew, as measured.
    pub(crate) const INK: Self = Self::new("/ink", LINES);
    /// Load, temperature and voltage of the servos.
    pub(crate) const SERVOS: Self = Self::new("/servos", schema!("steadyhand.Servos"));
    /// Counters of the bus.
    pub(crate) const BUS: Self = Self::new("/bus", schema!("steadyhand.Bus"));
    /// Messages for a person.
    pub(crate) const LOG: Self = Self::new("/log", schema!("foxglove.Log"));
    /// Progress of the job; the last message of each tick.
    pub(crate) const JOB: Self = Self::new("/job", schema!("steadyhand.Job"));

    /// All of them.
    #[cfg(feature = "live")]
    pub(crate) const ALL: [Self; 12] = [
        Self::JOINT_STATES,
        Self::JOINT_SETPOINTS,
        Self::JOINT_LEADS,
        Self::TRANSFORMS,
        Self::PEN,
        Self::TARGET,
        Self::PLAN,
        Self::INK,
        Self::SERVOS,
        Self::BUS,
        Self::LOG,
        Self::JOB,
    ];
}
