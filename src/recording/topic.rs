//! Topics of a recording with the schemas of their messages.

/// A topic with a fixed name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// Joints as they were read.
    JointStates,
    /// Joints as they were sent.
    JointSetpoints,
    /// By how much the joints were sent beyond where they are expected; only where goals lead.
    JointLeads,
    /// Poses of the tip and the sheet in the arm's base frame.
    Transforms,
    /// The tip as it was read, on the sheet: less by what goals lead.
    Pen,
    /// The tip where it is to be, on the sheet.
    Target,
    /// Lines that are planned.
    Plan,
    /// Lines that the tip was read to draw.
    Ink,
    /// Readings that servos take of themselves.
    Servos,
    /// Counters of the bus.
    Bus,
    /// Messages for a person.
    Log,
    /// Progress of the job; the last message of each tick.
    Job,
}

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

/// The schema of a camera's topic.
pub(crate) const COMPRESSED_IMAGE: MessageSchema = schema!("foxglove.CompressedImage");

/// The beginning of a camera's topic; its name follows.
pub(crate) const CAMERA_TOPIC: &str = "/camera/";

impl Topic {
    /// All of them.
    #[cfg(feature = "live")]
    pub(crate) const ALL: [Self; 12] = [
        Self::JointStates,
        Self::JointSetpoints,
        Self::JointLeads,
        Self::Transforms,
        Self::Pen,
        Self::Target,
        Self::Plan,
        Self::Ink,
        Self::Servos,
        Self::Bus,
        Self::Log,
        Self::Job,
    ];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::JointStates => "/joint_states",
            Self::JointSetpoints => "/joint_setpoints",
            Self::JointLeads => "/joint_leads",
            Self::Transforms => "/tf",
            Self::Pen => "/pen",
            Self::Target => "/target",
            Self::Plan => "/plan",
            Self::Ink => "/ink",
            Self::Servos => "/servos",
            Self::Bus => "/bus",
            Self::Log => "/log",
            Self::Job => "/job",
        }
    }

    /// The schema of its messages.
    pub(crate) const fn schema(self) -> MessageSchema {
        match self {
            Self::JointStates | Self::JointSetpoints | Self::JointLeads => {
                schema!("foxglove.JointStates")
            }
            Self::Transforms => schema!("foxglove.FrameTransform"),
            Self::Pen | Self::Target => schema!("foxglove.PoseInFrame"),
            Self::Plan | Self::Ink => schema!("foxglove.SceneUpdate"),
            Self::Servos => schema!("steadyhand.Servos"),
            Self::Bus => schema!("steadyhand.Bus"),
            Self::Log => schema!("foxglove.Log"),
            Self::Job => schema!("steadyhand.Job"),
        }
    }
}
