//! Descriptions for models, in a fixed order: how a tool is called, then, for people as well, what it does and when to use it.

use super::{KnownNames, ToolDefinition, ToolParameter};

/// Longest description; some linters and providers cut longer ones.
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
pub fn description(tool: &ToolDefinition, known: &KnownNames) -> String {
    let mut lines = vec![
        format!("Call schema: {}", call_schema(tool, known)),
        format!("Minimal valid call: {}", tool.minimal(known)),
        format!("Examples: {}", examples(tool, known).join(" ")),
        NOTES.to_owned(),
        summary(tool),
    ];
    lines.extend(tool.when.iter().cloned());
    lines.join("\n")
}

/// Line in every description about the keys that frameworks add.
pub(super) const NOTES: &str = "Notes: do not send ctx; the server supplies it";

/// Returns the example calls, the minimal one first.
pub(super) fn examples(tool: &ToolDefinition, known: &KnownNames) -> Vec<String> {
    let more = tool.examples.iter();
    let more = more.map(|example| example.replace("$scene", known.example_scene()));
    std::iter::once(tool.minimal(known)).chain(more).collect()
}

/// Returns the arguments as a type: `{scene?: string = "default", debug?: boolean = false}`.
fn call_schema(tool: &ToolDefinition, known: &KnownNames) -> String {
    let field = |parameter: &ToolParameter| {
        let mark = if parameter.required { "" } else { "?" };
        let default = parameter.default.as_ref().filter(|_| !parameter.required);
        let default = default.map_or(String::new(), |value| format!(" = {value}"));
        let (name, kind) = (&parameter.name, parameter.kind.json_type());
        format!("{name}{mark}: {kind}{default}")
    };
    let all: Vec<String> = tool.shown_parameters(known).map(field).collect();
    format!("{{{}}}", all.join(", "))
}

/// Returns the workflow, for clients that pass it on to models.
#[must_use]
pub fn instructions(known: &KnownNames) -> String {
    let mut order = vec!["sense", "align", "stroke", "sense"];
    order.retain(|name| known.find(name).is_some());
    format!(
        "A robot arm draws a scene's design. {} Order: {}. \
         A long drawing answers with a job: look with sense until it is done. \
         Call stop whenever in doubt, then reset. \
         If a result says needs_enabling, ask the person. \
         If a result says success false, send the corrected call that it shows, if you mean it.{}",
        calling_advice(known),
        order.join(", "),
        declared_names(known)
    )
}

fn calling_advice(known: &KnownNames) -> &'static str {
    match known.tools().any(|tool| tool.required().next().is_some()) {
        false => "Every tool may be called with {}.",
        true => "A tool without required arguments may be called with {}.",
    }
}

/// Returns the names of the declared tools, as many as there is room for.
fn declared_names(known: &KnownNames) -> String {
    let mut names = String::new();
    for tool in known.declared.iter() {
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
    use super::super::{TOOLS, test_names};
    use super::{DESCRIPTION_CHARS_MAX, KnownNames, description, instructions};

    #[test]
    fn a_description_has_its_lines_in_a_fixed_order() {
        let with_canvas = KnownNames {
            canvases: vec!["canvas".to_owned()],
            ..test_names()
        };
        let all = [test_names(), with_canvas];
        let each = all
            .iter()
            .flat_map(|known| TOOLS.iter().map(move |tool| (known, tool)));
        for (known, tool) in each {
            let text = description(tool, known);
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
    fn a_call_schema_shows_optional_arguments_and_their_defaults() {
        let known = test_names();
        let schema = |name: &str| {
            let text = known.find(name).map(|tool| description(tool, &known));
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
        assert!(instructions(&test_names()).split_whitespace().count() < 90);
    }
}
