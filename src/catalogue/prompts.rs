//! Requests that a person may choose in clients that show prompts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::KnownNames;

/// One prompt.
#[derive(Debug, PartialEq, Eq)]
pub struct CataloguePrompt {
    /// Its name.
    pub name: &'static str,
    /// For people who choose from a list.
    pub title: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// Parameters, all optional: a name and its meaning.
    pub takes: &'static [(&'static str, &'static str)],
    /// The request: `{call}` stands for the chosen arguments, `{plan}` for the same with `dry_run`, `{grid}` with `grid`.
    text: &'static str,
}

const SCENE: (&str, &str) = (
    "scene",
    "The scene; if you leave it out, the default scene.",
);
const META: (&str, &str) = (
    "meta",
    "An overlay on the scene; if you leave it out, none.",
);
const WHAT: (&str, &str) = (
    "what",
    "What to draw, in your words; if you leave it out, the scene's own design.",
);
const NODE: (&str, &str) = (
    "node",
    "The node to use; if you leave this out, this node does it.",
);

/// The prompts.
pub static PROMPTS: [CataloguePrompt; 4] = [
    CataloguePrompt {
        name: "calibrate",
        title: "Check the arm",
        description: "Check the arm and measure how well it tracks in a scene. It draws a cross.",
        takes: &[SCENE, META, NODE],
        text: "Call sense. If nothing is wrong, tell me that align draws a cross beside the drawing. When I agree, call align with {call}. Tell me the largest tracking error and every point above 1 mm.",
    },
    CataloguePrompt {
        name: "draw",
        title: "Draw something",
        description: "Draw something of your own or a scene's design, and show the result.",
        takes: &[WHAT, SCENE, META, NODE],
        text: "{what}Call stroke with {plan} and describe the plan. \
               When I agree, call stroke with {call}. While its job runs, watch it with sense. \
               At the end show me the picture and the largest deviation.",
    },
    CataloguePrompt {
        name: "look_and_go_on",
        title: "Look and draw more",
        description: "Look at what is drawn on the sheet, and add to it.",
        takes: &[WHAT, NODE],
        text: "{what}Call sense with {grid}: it shows the sheet and a grid in mm. Tell me what is there. Call stroke with {plan} and only your new part, with `size_mm` and `at_mm` (lower left). If the place is right, do the same with {call}. Look again; repeat until the picture is done.",
    },
    CataloguePrompt {
        name: "recover",
        title: "Get the arm going again",
        description: "Find out why the arm does not move, and bring it back to rest.",
        takes: &[NODE],
        text: "Call sense and tell me in plain words what state the arm is in and why. \
               If an emergency stop is latched, ask me to clear it. Otherwise call reset with {call}, then call sense again.",
    },
];

impl CataloguePrompt {
    /// Returns the prompt of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PROMPTS.iter().find(|prompt| prompt.name == name)
    }

    /// Returns the request for the chosen arguments. A drawing names its scene, so that the person sees which.
    #[must_use]
    pub fn fill(&self, chosen: &BTreeMap<String, String>, known: &KnownNames) -> String {
        let mut call = Map::new();
        let given = |name: &str| chosen.get(name).filter(|value| !value.trim().is_empty());
        let what = given("what").filter(|_| self.takes.contains(&WHAT));
        for (name, _) in self.takes.iter().filter(|one| **one != WHAT) {
            let value = given(name);
            // What a person words comes with the call; a scene has a design of its own.
            let default = known
                .default_scene()
                .filter(|_| *name == "scene" && what.is_none());
            let value = value.map(String::as_str).or(default);
            call.extend(value.map(|value| ((*name).to_owned(), value.into())));
        }
        let mut grid = call.clone();
        grid.insert("grid".to_owned(), Value::from(true));
        let mut plan = call.clone();
        plan.insert("dry_run".to_owned(), Value::from(true));
        let what = what.map(|what| own_design(what, known)).unwrap_or_default();
        self.text
            .replace("{what}", &what)
            .replace("{grid}", &Value::Object(grid).to_string())
            .replace("{plan}", &Value::Object(plan).to_string())
            .replace("{call}", &Value::Object(call).to_string())
    }
}

/// Asks a model for a design of a person's wording, as far as this node draws any.
fn own_design(what: &str, known: &KnownNames) -> String {
    match known.canvases.is_empty() {
        true => format!(
            "I want: {what}. This node draws only its own scenes: choose the nearest one and tell me. "
        ),
        false => format!(
            "I want: {what}. Write it as `text` or draw it as `svg` (y down), and add that to each call. "
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::test_names;
    use super::{CataloguePrompt, PROMPTS};

    fn chosen(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn prompts_name_tools_that_exist() {
        for prompt in &PROMPTS {
            let text = prompt.fill(&chosen(&[("scene", "letters")]), &test_names());
            assert!(
                !text.contains("{call}") && !text.contains("{plan}"),
                "{text}"
            );
            let called = text
                .split("all ")
                .skip(1)
                .filter_map(|rest| rest.split([' ', '.']).next());
            for tool in called {
                assert!(test_names().find(tool).is_some(), "{tool} in {text}");
            }
        }
    }

    #[test]
    fn chosen_arguments_appear_in_the_calls() {
        let fill = |name, pairs: &[(&str, &str)]| {
            CataloguePrompt::find(name).map(|one| one.fill(&chosen(pairs), &test_names()))
        };
        let text =
            fill("draw", &[("scene", "a"), ("meta", "b\""), ("other", "c")]).unwrap_or_default();
        assert!(
            text.contains(r#"{"scene":"a","meta":"b\"","dry_run":true}"#),
            "{text}"
        );
        let text = fill("draw", &[]).unwrap_or_default();
        assert!(
            text.contains(r#"call stroke with {"scene":"default"}."#),
            "{text}"
        );
        let text = fill("draw", &[("what", "a cat")]).unwrap_or_default();
        assert!(text.starts_with("I want: a cat. "), "{text}");
        assert!(text.contains(r#"stroke with {"dry_run":true}"#), "{text}");
        let text = fill("recover", &[]).unwrap_or_default();
        assert!(text.contains("call reset with {}, then"), "{text}");
    }
}
