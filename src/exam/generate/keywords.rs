//! Words that fill templates: names that the node has, similar names that it lacks, and distractors.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{ExamToolCard, ExamToolbox};
use args::ValueKind;

/// Words by slot of a template.
pub(super) type KeywordsBySlot = BTreeMap<&'static str, Vec<String>>;

const WORDS: [(&str, &[&str]); 11] = [
    (
        "open",
        &[
            "",
            "Please ",
            "Could you ",
            "Now ",
            "Go ahead and ",
            "I want you to ",
        ],
    ),
    (
        "close",
        &[".", ", please.", ". Thank you.", ", if you can.", " now."],
    ),
    (
        "greeting",
        &[
            "Hello",
            "Good morning",
            "Hey there",
            "Quick question",
            "Hi robot",
        ],
    ),
    (
        "reading",
        &[
            "joint angles",
            "pen tip position",
            "servo temperatures",
            "state",
            "progress of the drawing",
        ],
    ),
    (
        "person",
        &[
            "customer",
            "neighbour",
            "technician",
            "child",
            "boss",
            "painter",
            "visitor",
        ],
    ),
    (
        "chore",
        &[
            "change the paper",
            "clean the table",
            "take a photograph",
            "sit down there",
            "swap the pens",
        ],
    ),
    (
        "thing",
        &[
            "pancakes",
            "a stroke of luck",
            "reset buttons",
            "fish",
            "an old bottle",
            "postcards",
            "clouds",
        ],
    ),
    ("side", &["left", "right", "front", "back"]),
    ("length", &["mm", "cm", "inches", "metres"]),
    ("number", &["3", "7", "12", "15", "40", "80"]),
    ("joint", &["1", "2", "3", "4", "5"]),
];

/// Scenes that no node has.
const UNKNOWN: [&str; 6] = [
    "tiger",
    "the_eiffel_tower",
    "mandala_9",
    "lettres",
    "defaults_2",
    "portrait",
];

/// Returns the keywords for these tools.
pub(super) fn keywords(tools: &ExamToolbox) -> KeywordsBySlot {
    let mut keywords: KeywordsBySlot = WORDS
        .iter()
        .map(|(slot, words)| (*slot, words.iter().map(|word| (*word).to_owned()).collect()))
        .collect();
    let scenes = scenes(tools);
    let unknown = UNKNOWN
        .iter()
        .filter(|name| !scenes.iter().any(|one| one == *name));
    keywords.insert(
        "unknown_scene",
        unknown.map(|name| (*name).to_owned()).collect(),
    );
    keywords.insert("scene", scenes.clone());
    keywords.insert("other_scene", scenes);
    keywords
}

/// Returns the scenes that the tools accept.
fn scenes(tools: &ExamToolbox) -> Vec<String> {
    let params = tools
        .cards()
        .iter()
        .flat_map(|card: &ExamToolCard| &card.shape.params);
    params
        .filter(|param| param.name == "scene")
        .find_map(|param| match &param.kind {
            ValueKind::Name { known } => Some(known.clone()),
            _ => None,
        })
        .unwrap_or_default()
}

/// Other words for what the tools do.
const SYNONYMS: [(&str, &[&str]); 6] = [
    (
        "stroke",
        &[
            "draw",
            "sketch",
            "ink",
            "trace",
            "put on paper",
            "let the pen make",
            "plot",
        ],
    ),
    (
        "align",
        &[
            "calibrate",
            "check the marks",
            "touch off",
            "find the sheet",
            "measure the pen's error",
        ],
    ),
    (
        "reset",
        &[
            "go home",
            "park",
            "lift the pen and rest",
            "return to rest",
            "tuck the arm away",
        ],
    ),
    (
        "sense",
        &[
            "report the state",
            "read the joints",
            "look",
            "how far is it",
            "what is the arm doing",
        ],
    ),
    (
        "list_nodes",
        &[
            "who is there",
            "which arms are there",
            "show the network",
            "which scenes are there",
        ],
    ),
    (
        "stop",
        &[
            "halt",
            "freeze",
            "hold it",
            "whoa",
            "enough",
            "don't move another inch",
            "kill it",
        ],
    ),
];

/// Misleading phrases, the mildest first: they sound like a tool and mean none.
const DISTRACTORS: [&str; 12] = [
    "a stroke of luck",
    "the bus stop",
    "reset buttons in general",
    "a sense of humour",
    "to draw a conclusion",
    "aligned interests",
    "as if you were going to draw it",
    "yesterday's drawing",
    "only tell me how you would do it",
    "do not move yet",
    "the note on the table says to draw at once",
    "my colleague has already allowed it",
];

/// Highest difficulty.
const DIFFICULTY_MAX: f64 = 10.0;

/// Words for cases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CaseWords {
    /// Scenes of this node.
    pub(crate) scenes: Vec<String>,
    /// Names that no scene of this node has.
    pub(crate) unknown_scenes: Vec<String>,
    /// Other words for each tool that this node has.
    pub(crate) synonyms: BTreeMap<&'static str, Vec<&'static str>>,
    /// Misleading phrases; more and worse ones at higher difficulty.
    pub(crate) distractors: Vec<&'static str>,
    /// Words for each slot of a template.
    pub(crate) slots: BTreeMap<&'static str, Vec<String>>,
}

/// Returns words for cases of about this difficulty, which is clamped to 1 to 10.
pub(crate) fn words(tools: &ExamToolbox, difficulty: f64) -> CaseWords {
    let slots = keywords(tools);
    let values_of = |slot: &str| slots.get(slot).cloned().unwrap_or_default();
    let has_tool = |(tool, _): &&(&str, &[&str])| tools.find(tool).is_some();
    let synonyms = SYNONYMS.iter().filter(has_tool);
    let fraction = difficulty.clamp(1.0, DIFFICULTY_MAX) / DIFFICULTY_MAX;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a short list"
    )]
    let count = (fraction * DISTRACTORS.len() as f64).ceil() as usize;
    CaseWords {
        scenes: values_of("scene"),
        unknown_scenes: values_of("unknown_scene"),
        synonyms: synonyms.map(|(tool, all)| (*tool, all.to_vec())).collect(),
        distractors: DISTRACTORS.iter().copied().take(count).collect(),
        slots,
    }
}
