//! The catalogue for people: one tool's page, the page of all tools, a table, and the end of `--help`.

use std::fmt::Write as _;

use super::describe::{examples, summary};
use super::schema;
use super::{KnownNames, ToolDefinition, ToolEffect, ToolParameter};

/// Width of the column of names.
const HELP_NAME_WIDTH: usize = 12;

/// Returns the page of one tool: everything in the catalogue about it.
#[must_use]
pub fn usage(tool: &ToolDefinition, known: &KnownNames) -> String {
    let mut out = format!(
        "# {}\n\n{}\n\n{}\n",
        tool.name,
        first_lines(tool, known),
        summary(tool)
    );
    for line in &tool.when {
        let _ = writeln!(out, "{line}");
    }
    out.push_str(&arguments(tool, known));
    out.push_str("\n## Examples\n\n");
    for example in examples(tool, known) {
        let _ = writeln!(out, "- `{example}`");
    }
    out.push_str(&result(tool));
    let others: Vec<&str> = tool.names().skip(1).collect();
    if !others.is_empty() {
        let _ = writeln!(out, "\nOther names: `{}`", others.join("`, `"));
    }
    out
}

/// Returns the two lines that a model needs: the minimal call, and what not to send.
fn first_lines(tool: &ToolDefinition, known: &KnownNames) -> String {
    let minimal = tool.minimal(known);
    let does = match tool.default_action.as_str() {
        "" => String::new(),
        action => format!(", which {action}"),
    };
    format!("Minimal valid call: `{minimal}`{does}.\nDo not send `ctx`; the server supplies it.")
}

fn arguments(tool: &ToolDefinition, known: &KnownNames) -> String {
    let mut out = String::from("\n## Arguments\n\n");
    let all_optional = tool.parameters.iter().all(|one| !one.required);
    out.push_str(match (tool.parameters.is_empty(), all_optional) {
        (true, _) => "None.",
        (false, true) => "All parameters are optional.",
        (false, false) => "Parameters that are not marked as required are optional.",
    });
    out + "\n\n" + &parameter_lines(tool, known)
}

fn parameter_lines(tool: &ToolDefinition, known: &KnownNames) -> String {
    let mut out = String::new();
    for parameter in tool.parameters.iter().chain(&tool.canvas_parameters) {
        let mut names = vec![parameter.name.as_str()];
        names.extend(parameter.aliases.iter().map(String::as_str));
        let _ = writeln!(
            out,
            "- `{}` ({}{}): {}{}",
            names.join("`, `"),
            parameter.kind.json_type(),
            requirement(parameter, known),
            schema::text(parameter, known),
            match tool.canvas_parameters.contains(parameter) {
                true => "; needs a canvas",
                false => "",
            }
        );
    }
    out
}

/// Returns whether a parameter is required, or its default, in words.
fn requirement(parameter: &ToolParameter, known: &KnownNames) -> String {
    match (parameter.required, known.default_of(parameter)) {
        (true, _) => ", required".to_owned(),
        (false, Some(default)) => format!(", default {default}"),
        (false, None) => String::new(),
    }
}

fn result(tool: &ToolDefinition) -> String {
    let mut out = String::from(
        "\n## Result\n\n`success`, `message`, `understood`, `repairs`, `usage_hints`, `job`",
    );
    if tool.fields.is_empty() {
        return out + "\n";
    }
    out.push_str(", and:\n\n");
    out + &field_lines(tool)
}

fn field_lines(tool: &ToolDefinition) -> String {
    let mut out = String::new();
    for field in &tool.fields {
        let _ = writeln!(out, "- `{}`: {}", field.name, field.words);
    }
    out
}

/// Returns the page of all tools of a node. What holds for each of them is said once.
#[must_use]
pub fn page(known: &KnownNames) -> String {
    let mut out = String::from(
        "# The tools\n\n`{}` is a complete call of each tool that requires no argument. Do not send `ctx`; the server \
         supplies it. Every result has `success`, `message`, `understood`, `repairs`, `usage_hints` and `job`. \
         It ends with `now`, the state of the arm in a line: `arm at rest, pen up; sheet canvas 105 x 148 mm, \
         2 drawings on it; enabled: canvas, 22 min left`. \
         On a node that runs, the page of a tool is the resource `usage://NAME`.\n",
    );
    let arguments: Vec<String> = known
        .tools()
        .map(|tool| parameter_lines(tool, known))
        .collect();
    let fields: Vec<String> = known.tools().map(field_lines).collect();
    let (arguments_of_several, fields_of_several) = (of_several(&arguments), of_several(&fields));
    for (heading, lines) in [
        ("Arguments", &arguments_of_several),
        ("Result", &fields_of_several),
    ] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{heading} of several tools:\n\n{}", lines.join("\n"));
        }
    }
    for tool in known.tools() {
        let moves = if tool.effect == ToolEffect::Moves {
            " It moves the arm."
        } else {
            ""
        };
        let _ = writeln!(out, "\n## {}\n\n{}{moves}", tool.name, summary(tool));
        for line in &tool.when {
            let _ = writeln!(out, "{line}");
        }
        let others: Vec<&str> = tool.names().skip(1).collect();
        if !others.is_empty() {
            let _ = writeln!(out, "Other names: `{}`.", others.join("`, `"));
        }
        let (arguments, fields) = (parameter_lines(tool, known), field_lines(tool));
        for (heading, lines, shared) in [
            ("Arguments", arguments, &arguments_of_several),
            ("Result", fields, &fields_of_several),
        ] {
            out.push_str(&part(heading, &lines, shared));
        }
    }
    out
}

/// Least number of tools for which a line of the page is said once.
const SEVERAL: usize = 3;

/// Returns the lines that several tools have, each once.
fn of_several<'a>(pages: &'a [String]) -> Vec<&'a str> {
    let has = |page: &String, line: &str| page.lines().any(|of| of == line);
    let mut shared: Vec<&'a str> = Vec::new();
    for line in pages.iter().flat_map(|page| page.lines()) {
        let count = pages.iter().filter(|page| has(page, line)).count();
        if count >= SEVERAL && !shared.contains(&line) {
            shared.push(line);
        }
    }
    shared
}

/// Returns one part of a tool's page: the names of what several tools have, and the lines of its own.
fn part(heading: &str, lines: &str, shared: &[&str]) -> String {
    let (shared, own): (Vec<&str>, Vec<&str>) =
        lines.lines().partition(|line| shared.contains(line));
    let name = |line: &&str| line.split('`').nth(1).map(|name| format!("`{name}`"));
    let names: Vec<String> = shared.iter().filter_map(name).collect();
    match (names.is_empty(), own.is_empty()) {
        (true, true) => String::new(),
        (true, false) => format!("\n{heading}:\n\n{}\n", own.join("\n")),
        (false, true) => format!("\n{heading}: {}.\n", names.join(" ")),
        (false, false) => format!(
            "\n{heading}: {}, and\n\n{}\n",
            names.join(" "),
            own.join("\n")
        ),
    }
}

/// Returns a table of the tools.
#[must_use]
pub fn table(known: &KnownNames) -> String {
    let mut out = String::from("| tool | what it does | moves | parameters |\n|---|---|---|---|\n");
    for tool in known.tools() {
        let parameters: Vec<String> = tool
            .shown_parameters(known)
            .chain(
                tool.canvas_parameters
                    .iter()
                    .filter(|_| known.canvases.is_empty()),
            )
            .map(|one| {
                let mark = if one.required { " (required)" } else { "" };
                format!("`{}`{mark}", one.name)
            })
            .collect();
        let moves = match tool.effect {
            ToolEffect::Moves => "yes",
            ToolEffect::Reads => "no",
            ToolEffect::Stops => "stops",
        };
        let _ = writeln!(
            out,
            "| `{}` | {} | {moves} | {} |",
            tool.name,
            tool.does,
            parameters.join(" ")
        );
    }
    out
}

/// Returns the tools for the end of a command's help, one per line.
#[must_use]
pub fn help(known: &KnownNames) -> String {
    let mut out = String::from("Tools:\n");
    for tool in known.tools() {
        let _ = writeln!(out, "  {:<HELP_NAME_WIDTH$}{}", tool.name, tool.does);
    }
    out
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a failing test may panic")]
mod tests {
    use super::super::{TOOLS, test_names};
    use super::{page, usage};

    #[test]
    fn a_usage_page_shows_every_name_of_a_parameter() {
        let page = usage(&TOOLS[3], &test_names());
        assert!(
            page.contains("`scene`, `scene_name`") && page.contains("robot_stroke"),
            "{page}"
        );
    }

    #[test]
    fn a_usage_page_begins_with_what_a_model_needs() {
        let page = usage(&TOOLS[3], &test_names());
        assert!(
            page.starts_with(
                "# stroke\n\nMinimal valid call: `{}`, which draws the default scene.\nDo not send `ctx`;"
            ),
            "{page}"
        );
    }

    #[test]
    fn the_page_of_all_has_a_part_for_each() {
        let page = page(&test_names());
        for tool in TOOLS.iter() {
            assert!(page.contains(&format!("\n## {}\n", tool.name)), "{page}");
        }
    }
}
