//! The six tools, as data.

use std::sync::LazyLock;

use serde_json::Value;

use super::{
    NameSource, ParameterKind, ResultField, ResultFieldKind, ToolDefinition, ToolEffect,
    ToolParameter,
};

fn scene() -> ToolParameter {
    ToolParameter {
        name: "scene".to_owned(),
        aliases: texts(&["scene_name"]),
        kind: ParameterKind::Name(NameSource::Scenes),
        required: false,
        default: Some(Value::from("default")),
        words: "scene name".to_owned(),
    }
}

fn last_scene() -> ToolParameter {
    ToolParameter {
        default: None,
        words: "default: the last one moved in".to_owned(),
        ..scene()
    }
}

fn meta() -> ToolParameter {
    ToolParameter {
        name: "meta".to_owned(),
        aliases: Vec::new(),
        kind: ParameterKind::Name(NameSource::Overlays),
        required: false,
        default: None,
        words: "overlay".to_owned(),
    }
}

fn arm() -> ToolParameter {
    ToolParameter {
        name: "arm".to_owned(),
        aliases: texts(&["arm_name"]),
        kind: ParameterKind::Name(NameSource::Arms),
        required: false,
        default: None,
        words: "default: the first".to_owned(),
    }
}

fn node() -> ToolParameter {
    ToolParameter {
        name: "node".to_owned(),
        aliases: texts(&["node_name"]),
        kind: ParameterKind::Name(NameSource::Nodes),
        required: false,
        default: None,
        words: "default: this one".to_owned(),
    }
}

fn nodes() -> ToolParameter {
    ToolParameter {
        kind: ParameterKind::Name(NameSource::Everywhere),
        words: "node to stop, or all; default: this one".to_owned(),
        ..node()
    }
}

fn debug() -> ToolParameter {
    ToolParameter {
        name: "debug".to_owned(),
        aliases: Vec::new(),
        kind: ParameterKind::Bool,
        required: false,
        default: Some(Value::from(false)),
        words: "details".to_owned(),
    }
}

/// The parameter with which nothing moves.
pub const PREVIEW: &str = "dry_run";

/// Every name that it answers to.
pub const PREVIEW_NAMES: [&str; 2] = [PREVIEW, "preview"];

fn touch() -> ToolParameter {
    ToolParameter {
        name: "touch".to_owned(),
        aliases: texts(&["probe"]),
        kind: ParameterKind::Bool,
        required: false,
        default: Some(Value::from(false)),
        words: "feel the sheet".to_owned(),
    }
}

fn ink() -> ToolParameter {
    ToolParameter {
        name: "ink".to_owned(),
        aliases: texts(&["pattern"]),
        kind: ParameterKind::Bool,
        required: false,
        default: Some(Value::from(false)),
        words: "read ink".to_owned(),
    }
}

/// Returns the parameter for a person's reading of the drawn cross.
fn measured() -> ToolParameter {
    ToolParameter {
        name: "measured".to_owned(),
        aliases: Vec::new(),
        kind: ParameterKind::Numbers {
            names: texts(&["dx", "dy"]),
            unit: "mm".to_owned(),
        },
        required: false,
        default: None,
        words: "{\"dx\": 0.8, \"dy\": -0.3} of the cross".to_owned(),
    }
}

fn dry_run() -> ToolParameter {
    ToolParameter {
        name: PREVIEW.to_owned(),
        aliases: texts(&["preview"]),
        kind: ParameterKind::Bool,
        required: false,
        default: Some(Value::from(false)),
        words: "plan and picture, no motion".to_owned(),
    }
}

fn again() -> ToolParameter {
    ToolParameter {
        name: "again".to_owned(),
        aliases: Vec::new(),
        kind: ParameterKind::Bool,
        required: false,
        default: Some(Value::from(false)),
        words: "repeat a call".to_owned(),
    }
}

fn plan() -> ToolParameter {
    ToolParameter {
        name: "plan".to_owned(),
        aliases: texts(&["plan_hash"]),
        kind: ParameterKind::Text,
        required: false,
        default: None,
        words: "plan_hash of a dry run: draw that or nothing".to_owned(),
    }
}

fn resume() -> ToolParameter {
    ToolParameter {
        name: "resume".to_owned(),
        aliases: Vec::new(),
        kind: ParameterKind::Bool,
        required: false,
        default: Some(Value::from(false)),
        words: "finish a drawing".to_owned(),
    }
}

/// Most bytes of words to write, and of an SVG.
const TEXT_BYTES_MAX: usize = 4 << 10;
const SVG_BYTES_MAX: usize = 64 << 10;

fn text() -> ToolParameter {
    ToolParameter {
        name: "text".to_owned(),
        aliases: Vec::new(),
        kind: ParameterKind::Verbatim {
            bytes_max: TEXT_BYTES_MAX,
        },
        required: false,
        default: None,
        words: "words for a canvas".to_owned(),
    }
}

fn svg() -> ToolParameter {
    ToolParameter {
        name: "svg".to_owned(),
        kind: ParameterKind::Verbatim {
            bytes_max: SVG_BYTES_MAX,
        },
        words: "SVG for a canvas".to_owned(),
        ..text()
    }
}

fn size_mm() -> ToolParameter {
    ToolParameter {
        name: "size_mm".to_owned(),
        kind: ParameterKind::Number {
            unit: Some("mm".to_owned()),
        },
        words: "its longer side".to_owned(),
        ..text()
    }
}

fn at_mm() -> ToolParameter {
    ToolParameter {
        name: "at_mm".to_owned(),
        kind: ParameterKind::Point {
            unit: "mm".to_owned(),
        },
        words: "[x, y] of its lower left corner".to_owned(),
        ..text()
    }
}

const ARM_STATE: ResultField = ResultField {
    name: "arm",
    kind: ResultFieldKind::Text,
    words: "which arm, and whether it is simulated",
};

const STATE: ResultField = ResultField {
    name: "state",
    kind: ResultFieldKind::Text,
    words: "what the arm is doing",
};

const STROKE_COUNT: ResultField = ResultField {
    name: "stroke_count",
    kind: ResultFieldKind::Whole,
    words: "strokes carried out, or planned in a dry run",
};

const FILES: ResultField = ResultField {
    name: "files",
    kind: ResultFieldKind::Texts,
    words: "files written on the node",
};

/// The tools, in the order in which they are listed.
pub static TOOLS: LazyLock<Vec<ToolDefinition>> =
    LazyLock::new(|| vec![align(), reset(), sense(), stroke(), list_nodes(), stop()]);

fn align() -> ToolDefinition {
    ToolDefinition {
        name: "align".to_owned(),
        title: "Align the pen".to_owned(),
        aliases: texts(&["robot_align"]),
        also: Vec::new(),
        effect: ToolEffect::Moves,
        writes: false,
        does: "Run the calibration strokes and measure the pen's tracking error".to_owned(),
        default_action: "visits points of the default scene and draws its cross".to_owned(),
        parameters: vec![
            scene(),
            meta(),
            arm(),
            node(),
            touch(),
            ink(),
            measured(),
            debug(),
        ],
        unlisted: Vec::new(),
        canvas_parameters: Vec::new(),
        examples: texts(&[r#"{"scene":"$scene"}"#]),
        when: texts(&[
            "Use first, or after a pen change. Before: a person enables motion. After: stroke.",
        ]),
        fields: &[
            ARM_STATE,
            STROKE_COUNT,
            ResultField {
                name: "points",
                kind: ResultFieldKind::Objects,
                words: "per point the target, the measured tip, tracking_error_mm, contact and residual",
            },
            ResultField {
                name: "verdict",
                kind: ResultFieldKind::Text,
                words: "good, usable or redo",
            },
            ResultField {
                name: "reasons",
                kind: ResultFieldKind::Texts,
                words: "why it is not better",
            },
            ResultField {
                name: "next",
                kind: ResultFieldKind::Text,
                words: "what to do next",
            },
            ResultField {
                name: "tracking_error_mm_max",
                kind: ResultFieldKind::Number,
                words: "largest distance between target and measured tip",
            },
            FILES,
        ],
        destructive: true,
        idempotent: false,
        open_world: false,
    }
}

fn reset() -> ToolDefinition {
    ToolDefinition {
        name: "reset".to_owned(),
        title: "Go to rest".to_owned(),
        aliases: texts(&["robot_reset"]),
        also: Vec::new(),
        effect: ToolEffect::Moves,
        writes: false,
        does: "Lift the pen and go to rest; ends an ordinary stop".to_owned(),
        default_action: "lifts the pen and goes to rest".to_owned(),
        parameters: vec![last_scene(), arm(), node(), debug()],
        unlisted: Vec::new(),
        canvas_parameters: Vec::new(),
        examples: Vec::new(),
        when: texts(&[
            "Use after a stop, refusal or fault, and at the end. A person clears an emergency stop.",
        ]),
        fields: &[ARM_STATE, STATE],
        destructive: false,
        idempotent: true,
        open_world: false,
    }
}

fn sense() -> ToolDefinition {
    ToolDefinition {
        name: "sense".to_owned(),
        title: "Look at the arm".to_owned(),
        aliases: texts(&["robot_sense"]),
        also: Vec::new(),
        effect: ToolEffect::Reads,
        writes: false,
        does: "Report joints, pen tip, servos, running job and a picture; nothing moves".to_owned(),
        default_action: String::new(),
        parameters: vec![scene(), meta(), arm(), node(), debug()],
        unlisted: Vec::new(),
        canvas_parameters: Vec::new(),
        examples: texts(&[r#"{"debug":true}"#]),
        when: texts(&["Use at any time."]),
        fields: &[
            ARM_STATE,
            STATE,
            ResultField {
                name: "captured_files",
                kind: ResultFieldKind::Texts,
                words: "pictures written on the node",
            },
            ResultField {
                name: "joints",
                kind: ResultFieldKind::Objects,
                words: "per joint the measured angle",
            },
            ResultField {
                name: "tip",
                kind: ResultFieldKind::Object,
                words: "measured place of the pen's tip",
            },
            ResultField {
                name: "servos",
                kind: ResultFieldKind::Objects,
                words: "per servo temperature, voltage, load and error bits",
            },
        ],
        destructive: false,
        idempotent: true,
        open_world: false,
    }
}

fn stroke() -> ToolDefinition {
    ToolDefinition {
        name: "stroke".to_owned(),
        title: "Draw".to_owned(),
        aliases: texts(&["robot_stroke"]),
        also: Vec::new(),
        effect: ToolEffect::Moves,
        writes: false,
        does: "Draw the scene's design with the pen".to_owned(),
        default_action: "draws the default scene".to_owned(),
        parameters: vec![
            scene(),
            meta(),
            arm(),
            node(),
            dry_run(),
            plan(),
            resume(),
            again(),
            debug(),
        ],
        unlisted: Vec::new(),
        canvas_parameters: vec![text(), svg(), size_mm(), at_mm()],
        examples: texts(&[r#"{"scene":"$scene"}"#, r#"{"dry_run":true}"#]),
        when: texts(&[
            "Before: align; a person enables motion. Long drawings become jobs: see sense.",
        ]),
        fields: &[
            ARM_STATE,
            STROKE_COUNT,
            ResultField {
                name: "pen_down_mm",
                kind: ResultFieldKind::Number,
                words: "length drawn",
            },
            ResultField {
                name: "arm_time_s",
                kind: ResultFieldKind::Number,
                words: "time the arm took, or will take",
            },
            ResultField {
                name: "deviation_mm_max",
                kind: ResultFieldKind::Number,
                words: "largest distance of the drawn line from the design",
            },
            FILES,
        ],
        destructive: true,
        idempotent: false,
        open_world: false,
    }
}

fn list_nodes() -> ToolDefinition {
    ToolDefinition {
        name: "list_nodes".to_owned(),
        title: "List nodes".to_owned(),
        aliases: texts(&["system_list_nodes"]),
        also: texts(&["robot_list_nodes", "list_scenes", "ping_nodes"]),
        effect: ToolEffect::Reads,
        writes: false,
        does: "List nodes with arm, state, scenes and what is enabled".to_owned(),
        default_action: String::new(),
        parameters: vec![node(), debug()],
        unlisted: Vec::new(),
        canvas_parameters: Vec::new(),
        examples: Vec::new(),
        when: texts(&["Use to find valid names."]),
        fields: &[ResultField {
            name: "nodes",
            kind: ResultFieldKind::Objects,
            words: "per node its name, arm, state, enabled, scenes and version",
        }],
        destructive: false,
        idempotent: true,
        open_world: false,
    }
}

fn stop() -> ToolDefinition {
    ToolDefinition {
        name: "stop".to_owned(),
        title: "Stop the arm".to_owned(),
        aliases: texts(&["robot_stop"]),
        also: texts(&[
            "emergency_stop",
            "estop",
            "e_stop",
            "halt",
            "abort",
            "freeze",
        ]),
        effect: ToolEffect::Stops,
        writes: false,
        does: "Stop the arm now: slow down, lift the pen, hold".to_owned(),
        default_action: String::new(),
        parameters: vec![nodes(), debug()],
        unlisted: Vec::new(),
        canvas_parameters: Vec::new(),
        examples: Vec::new(),
        when: texts(&["Always allowed; use whenever in doubt. After: reset."]),
        fields: &[
            ARM_STATE,
            STATE,
            ResultField {
                name: "stopped_after_ms",
                kind: ResultFieldKind::Number,
                words: "from the call to measured standstill",
            },
        ],
        destructive: false,
        idempotent: true,
        open_world: false,
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
