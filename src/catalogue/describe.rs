//! What a model is told in words. The order is fixed: what it does with its minimal call, how it is called, then when.

use super::{Here, Kind, TOOLS, Tool};

/// Longest description; some linters and providers cut what is longer.
#[cfg(test)]
const DESCRIPTION_CHARS_MAX: usize = 500;

/// The first line: what the tool does, and its minimal call.
#[must_use]
pub fn summary(tool: &Tool) -> String {
    format!("{}. Minimal call: {{}}", tool.does)
}

/// The whole description, in lines.
#[must_use]
pub fn description(tool: &Tool, here: &Here) -> String {
    let mut lines = vec![
        summary(tool),
        format!("Call schema: {}", call_schema(tool, here)),
        "Minimal valid call: {}".to_owned(),
        format!("Examples: {}", examples(tool, here).join(" ")),
        "Notes: do not send ctx; the server supplies it".to_owned(),
    ];
    lines.extend(tool.when.iter().map(|line| (*line).to_owned()));
    lines.join("\n")
}

/// The calls that are shown, `{}` first.
pub(super) fn examples(tool: &Tool, here: &Here) -> Vec<String> {
    let more = tool
        .examples
        .iter()
        .map(|example| example.replace("$scene", here.example_scene()));
    std::iter::once("{}".to_owned()).chain(more).collect()
}

/// `{scene: string, debug: boolean}`, all optional.
fn call_schema(tool: &Tool, here: &Here) -> String {
    let kind = |kind| match kind {
        Kind::Name(_) => "string",
        Kind::Bool => "boolean",
        Kind::Text => "string",
    };
    let each = |wanted: &str| -> Option<String> {
        let names: Vec<&str> = tool
            .shown(here)
            .filter(|parameter| kind(parameter.kind) == wanted)
            .map(|parameter| parameter.name)
            .collect();
        (!names.is_empty()).then(|| format!("{}: {wanted}", names.join(", ")))
    };
    let all: Vec<String> = ["string", "boolean"].into_iter().filter_map(each).collect();
    format!("{{{}}}, all optional", all.join("; "))
}

/// The workflow, for clients that pass it on.
#[must_use]
pub fn instructions() -> String {
    let order: Vec<&str> = ["sense", "align", "stroke", "sense"]
        .into_iter()
        .filter(|name| TOOLS.iter().any(|tool| tool.name == *name))
        .collect();
    format!(
        "A robot arm draws a scene's design. Every tool may be called with {{}}. Order: {}. \
         A long drawing answers with a job: look with sense until it is done. \
         Call stop whenever in doubt, then reset. \
         If a result says needs_enabling, ask the person. \
         If a result says success false, send the corrected call that it shows.",
        order.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::{TOOLS, tests_here};
    use super::{DESCRIPTION_CHARS_MAX, description, instructions};

    #[test]
    fn a_description_says_things_in_the_agreed_order() {
        for tool in &TOOLS {
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
        assert!(instructions().split_whitespace().count() < 90);
    }
}
