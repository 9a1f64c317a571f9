//! The six tools, as data.

use std::sync::LazyLock;

use serde_json::Value;

use super::ResultFieldKind::{Number, Object, Objects, Text, Texts, Whole};
use super::tool_definition::{flag, optional, texts};
use super::{
    NameSource, ParameterKind, ResultField, ToolDefinition, ToolEffect, ToolParameter, field,
};

fn scene() -> ToolParameter {
    let kind = ParameterKind::Name(NameSource::Scenes);
    ToolParameter {
        default: Some(Value::from("default")),
        ..optional("scene", kind, "scene name").or_named("scene_name")
    }
}

fn last_scene() -> ToolParameter {
    ToolParameter {
        default: None,
        words: "default: the last motion's".to_owned(),
        ..scene()
    }
}

fn meta() -> ToolParameter {
    optional("meta", ParameterKind::Name(NameSource::Overlays), "overlay")
}

fn arm() -> ToolParameter {
    let kind = ParameterKind::Name(NameSource::Arms);
    optional("arm", kind, "default: the first").or_named("arm_name")
}

fn node() -> ToolParameter {
    let kind = ParameterKind::Name(NameSource::Nodes);
    optional("node", kind, "default: this one").or_named("node_name")
}

fn nodes() -> ToolParameter {
    ToolParameter {
        kind: ParameterKind::Name(NameSource::Everywhere),
        words: "node to stop, or all; default: this one".to_owned(),
        ..node()
    }
}

fn debug() -> ToolParameter {
    flag("debug", "details")
}

/// The parameter with which nothing moves.
pub const PREVIEW: &str = "dry_run";

/// Every name of that parameter.
pub const PREVIEW_NAMES: [&str; 2] = [PREVIEW, "preview"];

/// Returns that parameter for a tool that does not list it.
fn unlisted_preview() -> ToolParameter {
    optional(PREVIEW, ParameterKind::Bool, "lengths and times, no motion")
}

/// Returns the parameter for the columns and rows of places at which a sheet is felt.
fn grid() -> ToolParameter {
    let kind = ParameterKind::Point {
        unit: String::new(),
    };
    optional("grid", kind, "columns and rows to touch")
}

/// Returns the parameter with which arms that share a scene find where their bases stand.
fn bases() -> ToolParameter {
    let words = "touch places of a sheet that several arms share, to find where their bases stand";
    optional("bases", ParameterKind::Bool, words)
}

/// Returns the parameter for a person's reading of the drawn cross.
fn measured() -> ToolParameter {
    let kind = ParameterKind::Numbers {
        names: texts(&["dx", "dy"]),
        unit: "mm".to_owned(),
    };
    let words = "cross error: {\"dx\": 0.8, \"dy\": -0.3}";
    optional("measured", kind, words)
}

fn plan() -> ToolParameter {
    let words = "plan_hash of a dry run: only that plan is drawn";
    optional("plan", ParameterKind::Plan, words).or_named("plan_hash")
}

/// Most bytes of a text to write, and of an SVG.
const TEXT_BYTES_MAX: usize = 4 << 10;
const SVG_BYTES_MAX: usize = 64 << 10;

/// Most bytes of a picture in base64, before it is decoded.
const IMAGE_BYTES_MAX: usize = 2 << 20;

/// Lines that a picture can be drawn with.
const IMAGE_STYLES: [&str; 6] = [
    "hatch",
    "squiggle",
    "stipple",
    "spiral",
    "outline",
    "centreline",
];

/// Single-line fonts of a text.
const FONTS: [&str; 12] = [
    "plain",
    "sans",
    "serif",
    "italic",
    "script",
    "gothic",
    "allure",
    "felix",
    "tech",
    "osmotron",
    "nixish",
    "readability",
];

/// Returns the parameters for a caller's own design on a canvas, and its place.
fn design() -> Vec<ToolParameter> {
    let verbatim = |bytes_max| ParameterKind::Verbatim { bytes_max };
    let unit = "mm".to_owned();
    let length = ParameterKind::Number {
        unit: Some(unit.clone()),
    };
    let point = ParameterKind::Point { unit };
    let style = ParameterKind::Choice(texts(&IMAGE_STYLES));
    let font = ParameterKind::Choice(texts(&FONTS));
    vec![
        optional("text", verbatim(TEXT_BYTES_MAX), "words"),
        optional("svg", verbatim(SVG_BYTES_MAX), r#"<path d="M0 0L9 9"/>"#),
        optional("image", verbatim(IMAGE_BYTES_MAX), "PNG or JPEG in base64").unlisted(),
        optional("image_style", style, "how lines show the image").unlisted(),
        optional("font", font, "font of the text, or of texts in the SVG").unlisted(),
        optional("size_mm", length, "longer side"),
        optional("at_mm", point, "lower left"),
    ]
}

const ARM_STATE: ResultField = field("arm", Text, "which arm, and whether it is simulated");

const STATE: ResultField = field("state", Text, "what the arm is doing");

const STROKE_COUNT: ResultField = field(
    "stroke_count",
    Whole,
    "strokes carried out, or planned in a dry run",
);

const FILES: ResultField = field("files", Texts, "files written on the node");

/// The tools, in the order in which they are listed.
pub static TOOLS: LazyLock<Vec<ToolDefinition>> =
    LazyLock::new(|| vec![align(), reset(), sense(), stroke(), list_nodes(), stop()]);

fn align() -> ToolDefinition {
    let parameters = vec![
        scene(),
        meta(),
        arm(),
        node(),
        flag("touch", "feel the sheet").or_named("probe"),
        flag("ink", "read ink").or_named("pattern"),
        measured(),
        debug(),
    ];
    ToolDefinition {
        aliases: texts(&["robot_align"]),
        default_action: "visits points of the default scene and draws a cross beside its design"
            .to_owned(),
        unlisted: vec![unlisted_preview(), grid(), bases()],
        examples: texts(&[r#"{"scene":"$scene"}"#]),
        when: texts(&["Use after a pen change or a knock."]),
        fields: vec![
            ARM_STATE,
            STROKE_COUNT,
            field(
                "points",
                Objects,
                "for each point: target, measured tip, tracking_error_mm, contact and residual",
            ),
            field("verdict", Text, "good, usable or redo"),
            field("reasons", Texts, "reasons why the verdict is not good"),
            field("next", Text, "what to do next"),
            field(
                "tracking_error_mm_max",
                Number,
                "largest distance from target to measured tip",
            ),
            FILES,
        ],
        destructive: true,
        idempotent: false,
        ..ToolDefinition::new(
            ToolEffect::Moves,
            "align",
            "Align the pen",
            "Draw a cross (the calibration strokes) and measure the pen's tracking error",
            parameters,
        )
    }
}

fn reset() -> ToolDefinition {
    let parameters = vec![last_scene(), arm(), node(), debug()];
    ToolDefinition {
        aliases: texts(&["robot_reset"]),
        default_action: "lifts the pen and goes to rest".to_owned(),
        unlisted: vec![unlisted_preview()],
        when: texts(&[
            "Use after a stop, refusal or fault, and at the end. A person clears an emergency stop.",
        ]),
        fields: vec![ARM_STATE, STATE],
        ..ToolDefinition::new(
            ToolEffect::Moves,
            "reset",
            "Go to rest",
            "Lift the pen and go to rest; ends an ordinary stop",
            parameters,
        )
    }
}

fn sense() -> ToolDefinition {
    ToolDefinition {
        aliases: texts(&["robot_sense"]),
        unlisted: vec![
            optional(
                "grid",
                ParameterKind::Bool,
                "the sheet with a grid in mm; use at_mm to place additions",
            ),
            optional(
                "sheet_key",
                ParameterKind::Text,
                "for a client's view: the key of the sheet that the view shows. Lines are sent only if the present sheet has a different key",
            ),
        ],
        examples: texts(&[r#"{"debug":true}"#]),
        when: texts(&["Use at any time."]),
        fields: vec![
            ARM_STATE,
            STATE,
            field("captured_files", Texts, "pictures written on the node"),
            field("joints", Objects, "measured angle of each joint"),
            field("tip", Object, "measured place of the pen's tip"),
            field(
                "servos",
                Objects,
                "for each servo: temperature, voltage, load and error bits",
            ),
        ],
        ..ToolDefinition::reading(
            "sense",
            "Look at the arm",
            "Report joints, pen tip, servos, running job and a picture; nothing moves",
            vec![scene(), meta(), arm(), node(), debug()],
        )
    }
}

fn stroke() -> ToolDefinition {
    let parameters = vec![
        scene(),
        meta(),
        arm(),
        node(),
        flag(PREVIEW, "plan and picture, no motion").or_named("preview"),
        plan(),
        flag("resume", "finish a drawing"),
        flag("again", "repeat a call"),
        debug(),
    ];
    ToolDefinition {
        aliases: texts(&["robot_stroke"]),
        default_action: "draws the default scene".to_owned(),
        unlisted: vec![
            optional(
                "frame",
                ParameterKind::Bool,
                "moves the raised pen around the drawing's box",
            ),
            optional(
                "hull",
                ParameterKind::Bool,
                "with frame: around its convex hull",
            ),
        ],
        canvas_parameters: design(),
        canvas_examples: texts(&[r#"{"text":"Hi"}"#]),
        examples: texts(&[r#"{"scene":"$scene"}"#]),
        when: texts(&["After sense and dry_run; `frame` shows the place."]),
        fields: vec![
            ARM_STATE,
            STROKE_COUNT,
            field("pen_down_mm", Number, "length drawn"),
            field("arm_time_s", Number, "time that the arm took, or will take"),
            field(
                "deviation_mm_max",
                Number,
                "largest distance of the drawn line from the design",
            ),
            field(
                "missing_mm",
                Number,
                "length of the part of the design that has no ink",
            ),
            FILES,
        ],
        destructive: true,
        idempotent: false,
        ..ToolDefinition::new(
            ToolEffect::Moves,
            "stroke",
            "Draw",
            "Draw the scene's design with the pen",
            parameters,
        )
    }
}

fn list_nodes() -> ToolDefinition {
    ToolDefinition {
        aliases: texts(&["system_list_nodes"]),
        also: texts(&["robot_list_nodes", "list_scenes", "ping_nodes"]),
        when: texts(&["Use to find valid names."]),
        fields: vec![field(
            "nodes",
            Objects,
            "for each node: name, arm, state, enabled, scenes and version",
        )],
        ..ToolDefinition::reading(
            "list_nodes",
            "List nodes",
            "List nodes with arm, state, scenes and what is enabled",
            vec![node(), debug()],
        )
    }
}

fn stop() -> ToolDefinition {
    let parameters = vec![nodes(), debug()];
    ToolDefinition {
        aliases: texts(&["robot_stop"]),
        also: texts(&[
            "emergency_stop",
            "estop",
            "e_stop",
            "halt",
            "abort",
            "freeze",
        ]),
        when: texts(&["Always allowed; use whenever in doubt. Then: reset."]),
        fields: vec![
            ARM_STATE,
            STATE,
            field(
                "stopped_after_ms",
                Number,
                "time from the call to measured standstill",
            ),
        ],
        ..ToolDefinition::new(
            ToolEffect::Stops,
            "stop",
            "Stop the arm",
            "Stop the arm now: slow down, lift the pen, hold",
            parameters,
        )
    }
}
