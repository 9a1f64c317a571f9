//! Built-in tools with the node file's descriptions. The file changes only the texts, not what a tool does and takes.

use catalogue::{DESCRIPTION_CHARS_MAX, KnownNames, TOOLS, ToolDefinition, description};
use config::{ConfigProblem, DescriptionEntry, NodeFile};

/// Returns the built-in tools with the node file's descriptions, and every problem in these; no tools if it has none.
pub(super) fn reworded(
    file: &NodeFile,
    names: &KnownNames,
) -> (Vec<ToolDefinition>, Vec<ConfigProblem>) {
    if file.descriptions.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut tools = TOOLS.clone();
    let mut problems = Vec::new();
    for (name, entry) in &file.descriptions {
        let path = format!("descriptions.{name}");
        match tools.iter_mut().find(|tool| tool.name == *name) {
            Some(tool) => problems.extend(reword(tool, entry, names, &path)),
            None => {
                let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name.as_str()).collect();
                let problem = format!(
                    "there is no built-in tool `{name}`. Valid: {}",
                    names.join(", ")
                );
                problems.push(ConfigProblem::at(path, problem));
            }
        }
    }
    (tools, problems)
}

fn reword(
    tool: &mut ToolDefinition,
    entry: &DescriptionEntry,
    names: &KnownNames,
    path: &str,
) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    if let Some(text) = &entry.text {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        match lines.next() {
            Some(first) => {
                first.trim_end_matches('.').clone_into(&mut tool.does);
                tool.when = lines.map(str::to_owned).collect();
            }
            None => problems.push(ConfigProblem::at(
                format!("{path}.text"),
                format!("`{path}.text` is empty: describe the tool there, or leave the key out"),
            )),
        }
    }
    for (name, words) in &entry.arguments {
        let of_canvas = tool.canvas_parameters.iter_mut();
        let mut parameters = tool.parameters.iter_mut().chain(of_canvas);
        match parameters.find(|parameter| parameter.name == *name) {
            Some(parameter) => words.trim().clone_into(&mut parameter.words),
            None => {
                let names: Vec<&str> = tool
                    .parameters
                    .iter()
                    .map(|parameter| parameter.name.as_str())
                    .collect();
                let names = names.join(", ");
                let problem = format!("`{}` has no argument `{name}`. Valid: {names}", tool.name);
                let path = format!("{path}.arguments.{name}");
                problems.push(ConfigProblem::at(path, problem));
            }
        }
    }
    let length = description(tool, names).chars().count();
    if length > DESCRIPTION_CHARS_MAX {
        let problem = format!(
            "the description of `{}`, with its lines on how it is called, has {length} characters (at most {DESCRIPTION_CHARS_MAX}): shorten the text",
            tool.name
        );
        problems.push(ConfigProblem::at(format!("{path}.text"), problem));
    }
    problems
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::super::{DeclaredTools, known_names};
    use catalogue::{ListedTool, list};
    use config::NodeFile;
    use scene::SceneLibrary;

    fn listed(file: &str) -> Result<Vec<ListedTool>, String> {
        let file = NodeFile::read("node.toml", file).map_err(|error| error.to_string())?;
        let library = SceneLibrary::new(None);
        let shipped = known_names(&file, &library, &DeclaredTools::default());
        let declared =
            DeclaredTools::from_file(&file, &shipped).map_err(|error| error.to_string())?;
        Ok(list(&known_names(&file, &library, &declared)))
    }

    #[test]
    fn a_node_file_changes_words_and_nothing_else() {
        let file = "[descriptions.stroke]\ntext = \"Draw what the scene says.\\nCall it once.\"\narguments = { scene = \"the drawing\" }\n";
        let (shipped, worded) = (listed("").unwrap(), listed(file).unwrap());
        assert_eq!(shipped.len(), worded.len());
        for (old, new) in shipped.iter().zip(&worded) {
            let is_stroke = new.name.ends_with("stroke");
            assert_eq!(old != new, is_stroke, "{}", new.name);
            assert_eq!((&old.name, old.hints), (&new.name, new.hints));
            assert_eq!(old.output_schema, new.output_schema);
            let keys = |tool: &ListedTool| {
                let properties = tool.input_schema.get("properties").cloned();
                let properties = properties.unwrap().as_object().cloned().unwrap();
                properties.keys().cloned().collect::<Vec<_>>()
            };
            assert_eq!(keys(old), keys(new));
            // The lines on how to call it follow the first, whatever the file's text.
            let called = |tool: &ListedTool| {
                let lines = tool.description.lines();
                lines.skip(1).take(4).collect::<String>()
            };
            assert_eq!(called(old), called(new));
        }
        let stroke = worded.iter().find(|tool| tool.name == "stroke").unwrap();
        let text = &stroke.description;
        assert!(
            text.starts_with("stroke: Draw what the scene says; default {}\n"),
            "{text}"
        );
        assert!(text.contains("\nCall it once.\n"), "{text}");
        let scene = serde_json::Value::Object(stroke.input_schema.clone());
        let scene = scene.pointer("/properties/scene/description").cloned();
        assert_eq!(scene, Some("the drawing".into()));
    }

    #[test]
    fn words_for_what_does_not_exist_are_refused_with_their_line() {
        let long = "x".repeat(600);
        for (file, message) in [
            (
                "[descriptions.draw]\ntext = \"a\"\n",
                "line 1: there is no built-in tool `draw`. Valid: align, reset",
            ),
            (
                "[descriptions.stop.arguments]\nscene = \"a\"\n",
                "`stop` has no argument `scene`. Valid: node, debug",
            ),
            (
                "[descriptions.stop]\ntext = \" \"\n",
                "is empty: describe the tool there",
            ),
            (
                &format!("[descriptions.stop]\ntext = \"{long}\"\n"),
                "): shorten the text",
            ),
            (
                "[descriptions.stop]\neffect = \"reads\"\n",
                "unknown field `effect`, expected `text` or `arguments`",
            ),
        ] {
            let refused = listed(file).unwrap_err();
            assert!(refused.contains(message), "{message}: {refused}");
        }
    }
}
