//! What must come before a drawing besides enabling: nothing, a preview or a person.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What must come before a drawing; each is stricter than the one before.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum BeforeDrawing {
    /// Nothing.
    #[default]
    Nothing,
    /// Only the plan of a preview is drawn.
    Preview,
    /// A person allows each plan: `steadyhand approve JOB`.
    Person,
}

impl BeforeDrawing {
    /// Returns whether nothing is needed.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

/// What must come before drawings of a node: for all of them, or by scene.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`before_drawing` must be \"nothing\", \"preview\" or \"person\", or a table with one of these for each scene"
)]
pub enum BeforeDrawingEntry {
    /// For every scene.
    All(BeforeDrawing),
    /// By scene, in place of what ships.
    Scenes(BTreeMap<String, BeforeDrawing>),
}

impl Default for BeforeDrawingEntry {
    fn default() -> Self {
        Self::All(BeforeDrawing::Nothing)
    }
}

impl BeforeDrawingEntry {
    /// Returns what must come before a drawing in a scene, for which `shipped` holds unless it is listed.
    #[must_use]
    pub fn of_scene(&self, scene: &str, shipped: BeforeDrawing) -> BeforeDrawing {
        match self {
            Self::All(all) => shipped.max(*all),
            Self::Scenes(scenes) => scenes.get(scene).copied().unwrap_or(shipped),
        }
    }
}

/// Keys of before, and the line that replaces each.
const REPLACED: [(&str, &str); 3] = [
    ("require_preview", "before_drawing = \"preview\""),
    ("require_approval", "before_drawing = \"person\""),
    (
        "canvas_approval",
        "before_drawing = { canvas = \"preview\" }",
    ),
];

/// Adds to the problem with a key of before the line that replaces it.
pub(super) fn with_replacement(problem: String) -> String {
    let found = REPLACED.iter().find(|(key, _)| problem.contains(key));
    match found {
        Some((_, line)) => format!("{problem}; `{line}` replaces it"),
        None => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::BeforeDrawing::{Nothing, Person, Preview};
    use super::*;

    #[test]
    fn the_stricter_holds_and_a_listed_scene_has_its_own() {
        let all = BeforeDrawingEntry::All(Preview);
        assert_eq!(all.of_scene("letters", Nothing), Preview);
        assert_eq!(all.of_scene("canvas", Person), Person);
        let listed = BeforeDrawingEntry::Scenes([("canvas".to_owned(), Preview)].into());
        assert_eq!(listed.of_scene("canvas", Person), Preview);
        assert_eq!(listed.of_scene("letters", Nothing), Nothing);
    }

    #[test]
    fn each_key_of_before_is_refused_with_the_line_that_replaces_it() {
        for (key, line) in REPLACED {
            let read = crate::NodeFile::read("node.toml", &format!("{key} = true\n"));
            let problems = read
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default();
            assert!(problems.contains(line), "{problems}");
        }
    }
}
