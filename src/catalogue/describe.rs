//! What a model is told in words. The order is fixed: what it does with its minimal call, how it is called, then when.

use super::{Here, Tool};

/// Longest description; some linters and providers cut what is longer.
pub const DESCRIPTION_CHARS_MAX: usize = 500;

/// Most characters of declared tools' names in the workflow.
const NAMES_CHARS_MAX: usize = 80;

/// The first line: what the tool does, and its minimal call.
#[must_use]
pub fn summary(tool: &Tool, here: &Here) -> String {
    format!("{}. Minimal call: {}", tool.does, tool.minimal(here))
}

/// The whole description, in lines.
#[must_use]
pub fn description(tool: &Tool, here: &Here) -> String {
    let mut lines = vec![
        summary(tool, here),
        format!("Call schema: {}", call_schema(tool, here)),
        format!("Minimal valid call: {}", tool.minimal(here)),
        format!("Examples: {}", examples(tool, here).join(" ")),
        "Notes: do not send ctx; the server supplies it".to_owned(),
    ];
    lines.extend(tool.when.iter().cloned());
    lines.join("\n")
}

/// The calls that are shown, the minimal one first.
pub(super) fn examples(tool: &Tool, here: &Here) -> Vec<String> {
    let more = tool
        .examples
        .iter()
        .map(|example| example.replace("$scene", here.example_scene()));
    std::iter::once(tool.minimal(here)).chain(more).collect()
}

/// `{scene: string, debug: boolean}, all optional`.
fn call_schema(tool: &Tool, here: &Here) -> String {
    let each = |wanted: &str| -> Option<String> {
        let names: Vec<&str> = tool
            .shown(here)
            .filter(|parameter| parameter.kind.json_type() == wanted)
            .map(|parameter| parameter.name.as_str())
            .collect();
        (!names.is_empty()).then(|| format!("{}: {wanted}", names.join(", ")))
    };
    let types = ["string", "integer", "number", "array", "boolean"];
    let all: Vec<String> = types.into_iter().filter_map(each).collect();
    let required: Vec<&str> = tool.required().collect();
    let needed = match (all.is_empty(), required.is_empty()) {
        (true, _) => ", no arguments".to_owned(),
        (false, true) => ", all optional".to_owned(),
        (false, false) => format!(", required: {}", required.join(", ")),
    };
    format!("{{{}}}{needed}", all.join("; "))
}

/// The workflow, for clients that pass it on.
#[must_use]
pub fn instructions(here: &Here) -> String {
    let order: Vec<&str> = ["sense", "align", "stroke", "sense"]
        .into_iter()
        .filter(|name| here.find(name).is_some())
        .collect();
    format!(
        "A robot arm draws a scene's design. {} Order: {}. \
         A long drawing answers with a job: look with sense until it is done. \
         Call stop whenever in doubt, then reset. \
         If a result says needs_enabling, ask the person. \
         If a result says success false, send the corrected call that it shows, if you mean it.{}",
        callable(here),
        order.join(", "),
        more(here)
    )
}

fn callable(here: &Here) -> &'static str {
    let all_optional = here
        .tools()
        .flat_map(|tool| &tool.parameters)
        .all(|parameter| !parameter.required);
    if all_optional {
        "Every tool may be called with {}."
    } else {
        "A tool without required arguments may be called with {}."
    }
}

/// The declared tools, by name, as many as there is room for.
fn more(here: &Here) -> String {
    let mut names = String::new();
    for tool in here.declared.iter() {
        let comma = if names.is_empty() { " Also: " } else { ", " };
        if names.len() + comma.len() + tool.name.len() > NAMES_CHARS_MAX {
            return if names.is_empty() {
                " See tools/list for more.".to_owned()
            } else {
                names + ", …"
            };
        }
        names.push_str(comma);
        names.push_str(&tool.name);
    }
    if names.is_empty() { names } else { names + "." }
}

#[cfg(test)]
mod tests {
    use super::super::{TOOLS, tests_here};
    use super::{DESCRIPTION_CHARS_MAX, description, instructions};

    #[test]
    fn a_description_says_things_in_the_agreed_order() {
        for tool in TOOLS.iter() {
            let text = description(tool, &tests_here());
            let starts: Vec<&str> = text
                .lines()
                .map(|line| line.split(':').next().unwrap_or_default())
                .collect();
            assert!(
                text.lines()
                    .next()
                    .is_some_and(|line| line.ends_with("Minimal call: {}")),
                "{text}"
            );
            let order = ["Call schema", "Minimal valid call", "Examples", "Notes"];
            assert_eq!(starts.get(1..5), Some(order.as_slice()), "{text}");
            assert!(
                text.lines().any(|line| line.starts_with("Examples: {}")),
                "{text}"
            );
            assert!((1..=4).contains(&tool.when.len()), "{}", tool.name);
            assert!(
                (20..=DESCRIPTION_CHARS_MAX).contains(&text.chars().count()),
                "{text}"
            );
        }
    }

    #[test]
    fn the_workflow_is_short() {
        assert!(instructions(&tests_here()).split_whitespace().count() < 90);
    }
}
