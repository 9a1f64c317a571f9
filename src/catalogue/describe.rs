//! Descriptions for models, in a fixed order: what a tool does with its minimal call, how it is called, and when to use it.

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

/// Returns the whole description: a line on what the tool does, four on how it is called, then when.
#[must_use]
pub fn description(tool: &ToolDefinition, known: &KnownNames) -> String {
    let mut lines = vec![
        opening(tool),
        format!("Call schema: {}", call_schema(tool, known)),
        format!("Minimal valid call: {}", tool.minimal(known)),
        format!("Examples: {}", examples(tool, known).join(" ")),
        NOTES.to_owned(),
    ];
    lines.extend(tool.when.iter().cloned());
    let text = lines.join("\n");
    // It yields to the words of a node file, which have no other place.
    let with_canvas = canvas_line(tool, known).map(|line| format!("{text}\n{line}"));
    let with_canvas = with_canvas.filter(|all| all.chars().count() <= DESCRIPTION_CHARS_MAX);
    with_canvas.unwrap_or(text)
}

/// End of the first line of a tool whose minimal call is empty.
const DEFAULT_CALL: &str = "; default {}";

/// Returns the first line: the tool's name, what it does, and its minimal call where that is empty.
fn opening(tool: &ToolDefinition) -> String {
    let needs_none = tool.required().next().is_none();
    let call = if needs_none { DEFAULT_CALL } else { "." };
    format!("{}: {}{call}", tool.name, tool.does)
}

/// Returns what a tool does out of the first line of its description; the whole line, if a catalogue did not write it.
#[must_use]
pub fn purpose_in<'d>(line: &'d str, name: &str) -> &'d str {
    let does = line
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix(": "));
    let does = does.unwrap_or(line);
    let does = does.strip_suffix(DEFAULT_CALL).unwrap_or(does);
    does.trim_end_matches('.')
}

/// Beginning of the line on designs of a caller's own.
pub const CANVAS_LINE: &str = "text or svg draws your design";

/// Returns how a caller draws something of its own, for a tool that does so on this node.
fn canvas_line(tool: &ToolDefinition, known: &KnownNames) -> Option<String> {
    let takes_designs = !tool.canvas_parameters.is_empty() && !known.canvases.is_empty();
    let sheet = known
        .canvas_mm
        .map(|[width, height]| format!(" on {width}x{height} mm"));
    let sheet = sheet.unwrap_or_default();
    takes_designs.then(|| format!("{CANVAS_LINE}{sheet}, y down."))
}

/// Line in every description about the keys that frameworks add.
pub(super) const NOTES: &str = "Notes: do not send ctx; the server supplies it";

/// Returns the example calls, the minimal one first.
pub(super) fn examples(tool: &ToolDefinition, known: &KnownNames) -> Vec<String> {
    // One of a caller's own design is worth more than one of a scene; both are too long.
    let draws_own = !known.canvases.is_empty() && !tool.canvas_examples.is_empty();
    let more = if draws_own {
        tool.canvas_examples.iter()
    } else {
        tool.examples.iter()
    };
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
    let mut order = vec!["sense", "stroke with dry_run", "stroke"];
    order.retain(|step| {
        step.split(' ')
            .next()
            .is_some_and(|name| known.find(name).is_some())
    });
    let align = match known.find("align") {
        Some(_) => " After a pen change or a knock, use align (draws a cross).",
        None => "",
    };
    format!(
        "A robot arm draws a scene's design. {} Order: {}.{align} A long drawing becomes a job: call sense until done. If in doubt, call stop, then reset. On needs_enabling ask the person. If success is false and the answer's corrected call is right, send it.{}",
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
    use super::{DESCRIPTION_CHARS_MAX, KnownNames, description, instructions, purpose_in};

    #[test]
    fn a_description_has_its_lines_in_a_fixed_order() {
        let with_canvas = KnownNames {
            canvases: vec!["canvas".to_owned()],
            canvas_mm: Some([100.0, 150.0]),
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
            let order = [
                &tool.name,
                "Call schema",
                "Minimal valid call",
                "Examples",
                "Notes",
            ];
            assert_eq!(starts.get(..5), Some(order.as_slice()), "{text}");
            let first = text.lines().next().unwrap_or_default();
            assert!(first.ends_with("; default {}"), "{text}");
            assert_eq!(purpose_in(first, &tool.name), tool.does, "{text}");
            let draws_own = tool.name == "stroke" && !known.canvases.is_empty();
            let own = "text or svg draws your design on 100x150 mm, y down.";
            assert_eq!(text.contains(own), draws_own, "{text}");
            assert_eq!(text.contains(r#"{"text":"Hi"}"#), draws_own, "{text}");
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
            text.lines().nth(1).unwrap_or_default().to_owned()
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
