//! What is put into templates: names that the node has, their neighbours that it has not, and words that distract.

use std::collections::BTreeMap;

use crate::args::Kind;
use crate::exam::{Card, Toolbox};

/// Words by slot.
pub(super) type Keywords = BTreeMap<&'static str, Vec<String>>;

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

/// The keywords of these tools.
pub(super) fn keywords(tools: &Toolbox) -> Keywords {
    let mut keywords: Keywords = WORDS
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

/// The scenes that the tools take.
fn scenes(tools: &Toolbox) -> Vec<String> {
    let params = tools
        .cards()
        .iter()
        .flat_map(|card: &Card| &card.shape.params);
    let mut known = params
        .filter(|param| param.name == "scene")
        .filter_map(|param| match &param.kind {
            Kind::Name { known } => Some(known.clone()),
            _ => None,
        });
    known.next().unwrap_or_default()
}
