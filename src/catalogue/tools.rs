//! The six tools.

use super::{Effect, Field, FieldKind, Given, Kind, Parameter, Tool, Vocabulary};

const SCENE: Parameter = Parameter {
    name: "scene",
    aliases: &["scene_name"],
    kind: Kind::Name(Vocabulary::Scenes),
    default: Given::Name("default"),
    words: "scene name, default \"default\"",
};

const LAST_SCENE: Parameter = Parameter {
    default: Given::Nothing,
    words: "the scene last moved in, which is the default",
    ..SCENE
};

const META: Parameter = Parameter {
    name: "meta",
    aliases: &[],
    kind: Kind::Name(Vocabulary::Overlays),
    default: Given::Nothing,
    words: "overlay on the scene, default none",
};

const ARM: Parameter = Parameter {
    name: "arm",
    aliases: &["arm_name"],
    kind: Kind::Name(Vocabulary::Arms),
    default: Given::Nothing,
    words: "arm name, default the first",
};

const NODE: Parameter = Parameter {
    name: "node",
    aliases: &["node_name"],
    kind: Kind::Name(Vocabulary::Nodes),
    default: Given::Nothing,
    words: "node that does it, default this one",
};

const DEBUG: Parameter = Parameter {
    name: "debug",
    aliases: &[],
    kind: Kind::Bool,
    default: Given::Bool(false),
    words: "true adds details, default false",
};

const DRY_RUN: Parameter = Parameter {
    name: "dry_run",
    aliases: &["preview"],
    kind: Kind::Bool,
    default: Given::Bool(false),
    words: "true returns the plan and its picture without motion, default false",
};

const AGAIN: Parameter = Parameter {
    name: "again",
    aliases: &[],
    kind: Kind::Bool,
    default: Given::Bool(false),
    words: "true repeats a call that was just done, default false",
};

const PLAN: Parameter = Parameter {
    name: "plan",
    aliases: &["plan_hash"],
    kind: Kind::Text,
    default: Given::Nothing,
    words: "plan_hash of a dry run: draws that or nothing",
};

const RESUME: Parameter = Parameter {
    name: "resume",
    aliases: &[],
    kind: Kind::Bool,
    default: Given::Bool(false),
    words: "true goes on with an unfinished drawing, default false",
};

const ARM_STATE: Field = Field {
    name: "arm",
    kind: FieldKind::Text,
    words: "which arm, and whether it is simulated",
};

const STATE: Field = Field {
    name: "state",
    kind: FieldKind::Text,
    words: "what the arm is doing",
};

const STROKE_COUNT: Field = Field {
    name: "stroke_count",
    kind: FieldKind::Whole,
    words: "strokes carried out, or planned in a dry run",
};

const FILES: Field = Field {
    name: "files",
    kind: FieldKind::Texts,
    words: "files written on the node",
};

/// The tools, in the order in which they are listed.
pub static TOOLS: [Tool; 6] = [ALIGN, RESET, SENSE, STROKE, LIST_NODES, STOP];

const ALIGN: Tool = Tool {
    name: "align",
    title: "Align",
    aliases: &["robot_align"],
    also: &[],
    effect: Effect::Moves,
    does: "Run the calibration strokes and measure the pen's tracking error",
    parameters: &[SCENE, META, ARM, NODE, DEBUG],
    examples: &[r#"{"scene":"$scene"}"#],
    when: &[
        "Use first in a session or after a pen change.",
        "Before: a person enables motion. After: stroke.",
    ],
    fields: &[
        ARM_STATE,
        STROKE_COUNT,
        Field {
            name: "points",
            kind: FieldKind::Objects,
            words: "per point the target, the measured tip and tracking_error_mm",
        },
        Field {
            name: "tracking_error_mm_max",
            kind: FieldKind::Number,
            words: "largest distance between target and measured tip",
        },
        FILES,
    ],
    destructive: true,
    idempotent: false,
};

const RESET: Tool = Tool {
    name: "reset",
    title: "Reset",
    aliases: &["robot_reset"],
    also: &[],
    effect: Effect::Moves,
    does: "Lift the pen and go to rest; clears an ordinary stop",
    parameters: &[LAST_SCENE, ARM, NODE, DEBUG],
    examples: &[],
    when: &[
        "Use after stop, a refusal or a fault, and at the end.",
        "An emergency stop is cleared by a person only.",
    ],
    fields: &[ARM_STATE, STATE],
    destructive: false,
    idempotent: true,
};

const SENSE: Tool = Tool {
    name: "sense",
    title: "Sense",
    aliases: &["robot_sense"],
    also: &[],
    effect: Effect::Reads,
    does: "Report joints, pen tip, servos, the running job and a picture; no motion",
    parameters: &[SCENE, META, ARM, NODE, DEBUG],
    examples: &[r#"{"debug":true}"#],
    when: &["Use at any time: before motion, while a job runs, and to see the drawing."],
    fields: &[
        ARM_STATE,
        STATE,
        Field {
            name: "captured_files",
            kind: FieldKind::Texts,
            words: "pictures written on the node",
        },
        Field {
            name: "joints",
            kind: FieldKind::Objects,
            words: "per joint the measured angle",
        },
        Field {
            name: "tip",
            kind: FieldKind::Object,
            words: "measured place of the pen's tip",
        },
        Field {
            name: "servos",
            kind: FieldKind::Objects,
            words: "per servo temperature, voltage, load and error bits",
        },
    ],
    destructive: false,
    idempotent: true,
};

const STROKE: Tool = Tool {
    name: "stroke",
    title: "Stroke",
    aliases: &["robot_stroke"],
    also: &[],
    effect: Effect::Moves,
    does: "Draw the scene's design with the pen",
    parameters: &[SCENE, META, ARM, NODE, DRY_RUN, PLAN, RESUME, AGAIN, DEBUG],
    examples: &[r#"{"scene":"$scene"}"#, r#"{"dry_run":true}"#],
    when: &[
        "Use to draw. Before: align; a person enables motion.",
        "A long drawing answers with its job: sense reports it, stop ends it.",
    ],
    fields: &[
        ARM_STATE,
        STROKE_COUNT,
        Field {
            name: "pen_down_mm",
            kind: FieldKind::Number,
            words: "length drawn",
        },
        Field {
            name: "arm_time_s",
            kind: FieldKind::Number,
            words: "time the arm took, or will take",
        },
        Field {
            name: "deviation_mm_max",
            kind: FieldKind::Number,
            words: "largest distance of the drawn line from the design",
        },
        FILES,
    ],
    destructive: true,
    idempotent: false,
};

const LIST_NODES: Tool = Tool {
    name: "list_nodes",
    title: "List nodes",
    aliases: &["robot_list_nodes", "system_list_nodes"],
    also: &[],
    effect: Effect::Reads,
    does: "List the nodes with arm, state, scenes and whether motion is enabled",
    parameters: &[DEBUG],
    examples: &[],
    when: &["Use to find valid node, arm and scene names."],
    fields: &[Field {
        name: "nodes",
        kind: FieldKind::Objects,
        words: "per node its name, arm, state, enabled, scenes and version",
    }],
    destructive: false,
    idempotent: true,
};

const STOP: Tool = Tool {
    name: "stop",
    title: "Stop",
    aliases: &["robot_stop"],
    also: &[
        "emergency_stop",
        "estop",
        "e_stop",
        "halt",
        "abort",
        "freeze",
    ],
    effect: Effect::Stops,
    does: "Stop the arm now: slow down, lift the pen, hold",
    parameters: &[NODE, DEBUG],
    examples: &[],
    when: &["Use whenever anything looks wrong; always allowed. After: reset."],
    fields: &[
        ARM_STATE,
        STATE,
        Field {
            name: "stopped_after_ms",
            kind: FieldKind::Number,
            words: "from the call to measured standstill",
        },
    ],
    destructive: false,
    idempotent: true,
};
