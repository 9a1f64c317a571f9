//! Descriptions for models. The order is fixed: how a tool is called, then, for people as well, what it does and when.

use super::{KnownNames, ToolDefinition, ToolParameter};

/// Longest description; some linters and providers cut what is longer.
pub const DESCRIPTION_CHARS_MAX: usize = 500;

/// Most characters of declared tools' names in the workflow.
const NAMES_CHARS_MAX: usize = 80;

/// Returns the sentence for people: what the tool does.
#[must_use]
pub fn summary(tool: &ToolDefinition) -> String {
    format!("{}.", tool.does)
}

/// Returns the whole description: four lines on how the tool is called, then what it does and when.
#[must_use]
pub fn description(tool: &ToolDefinition, here: &KnownNames) -> String {
    let mut lines = vec![
        format!("Call schema: {}", call_schema(tool, here)),
        format!("Minimal valid call: {}", tool.minimal(here)),
        format!("Examples: {}", examples(tool, here).join(" ")),
        NOTES.to_owned(),
        summary(tool),
    ];
    lines.extend(tool.when.iter().cloned());
    lines.join("\n")
}

/// Line that every model is told of the keys that frameworks add.
pub(super) const NOTES: &str = "Notes: do not send ctx; the server supplies it";

/// The calls that are shown, the minimal one first.
pub(super) fn examples(tool: &ToolDefinition, here: &KnownNames) -> Vec<String> {
    let more = tool.examples.iter();
    let more = more.map(|example| example.replace("$scene", here.example_scene()));
    std::iter::once(tool.minimal(here)).chain(more).collect()
}

/// Returns the arguments as a type: `{scene?: string = "default", debug?: boolean = false}`.
fn call_schema(tool: &ToolDefinition, here: &KnownNames) -> String {
    let one = |parameter: &ToolParameter| {
        let mark = if parameter.required { "" } else { "?" };
        let default = parameter.default.as_ref().filter(|_| !parameter.required);
        let default = default.map_or(String::new(), |value| format!(" = {value}"));
        let (name, kind) = (&parameter.name, parameter.kind.json_type());
        format!("{name}{mark}: {kind}{default}")
    };
    let all: Vec<String> = tool.shown_parameters(here).map(one).collect();
    format!("{{{}}}", all.join(", "))
}

/// The workflow, for clients that pass it on.
#[must_use]
pub fn instructions(here: &KnownNames) -> String {
    let mut order = vec!["sense", "align", "stroke", "sense"];
    order.retain(|name| here.find(name).is_some());
    format!(
        "A robot arm draws a scene's design. {} Order: {}. \
         A long drawing answers with a job: look with sense until it is done. \
         Call stop whenever in doubt, then reset. \
         If a result says needs_enabling, ask the person. \
         If a result says success false, send the corrected call that it shows, if you mean it.{}",
        calling_advice(here),
        order.join(", "),
        declared_names(here)
    )
}

fn calling_advice(here: &KnownNames) -> &'static str {
    match here.tools().any(|tool| tool.required().next().is_some()) {
        false => "Every tool may be called with {}.",
        true => "A tool without required arguments may be called with {}.",
    }
}

/// The declared tools, by name, as many as there is room for.
fn declared_names(here: &KnownNames) -> String {
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
    use super::{DESCRIPTION_CHARS_MAX, KnownNames, description, instructions};

    #[test]
    fn a_description_says_things_in_the_agreed_order() {
        let with_canvas = KnownNames {
            canvases: vec!["canvas".to_owned()],
            ..tests_here()
        };
        let all = [tests_here(), with_canvas];
        let each = all
            .iter()
            .flat_map(|here| TOOLS.iter().map(move |tool| (here, tool)));
        for (here, tool) in each {
            let text = description(tool, here);
            let starts: Vec<&str> = text
                .lines()
                .map(|line| line.split(':').next().unwrap_or_default())
                .collect();
            let order = ["Call schema", "Minimal valid call", "Examples", "Notes"];
            assert_eq!(starts.get(..4), Some(order.as_slice()), "{text}");
            let sentence = format!("{}.", tool.does);
            assert_eq!(text.lines().nth(4), Some(sentence.as_str()), "{text}");
            assert!(
                text.lines().any(|line| line.starts_with("Examples: {}")),
                "{text}"
            );
            assert!(tool.when.len() <= 4, "{}", tool.name);
            assert!(
                (20..=DESCRIPTION_CHARS_MAX).contains(&text.chars().count()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_call_schema_shows_what_may_be_left_out_and_what_it_is_then() {
        let here = tests_here();
        let schema = |name: &str| {
            let text = here.find(name).map(|tool| description(tool, &here));
            let text = text.unwrap_or_default();
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            schema("sense"),
            r#"Call schema: {scene?: string = "default", meta?: string, debug?: boolean = false}"#
        );
        assert_eq!(schema("stop"), "Call schema: {debug?: boolean = false}");
    }

    #[test]
    fn the_workflow_is_short() {
        assert!(instructions(&tests_here()).split_whitespace().count() < 90);
    }
}
