//! The view of a drawing for hosts of MCP Apps: plan, progress and stop, in one document that loads nothing else.
//!
//! It calls the node's tools through its host, on behalf of the session's planner, and can do nothing else.

use std::collections::BTreeMap;

use catalogue::{self, KnownNames, ListedTool};
use mcp::AppView;

/// Tools whose results the view shows.
const SHOWN: [&str; 3] = ["stroke", "sense", "align"];

/// Tools that the view calls.
const CALLED: [&str; 3] = ["stroke", "sense", "stop"];

/// Placeholder in the document for the listed names of [`CALLED`].
const NAMES_SLOT: &str = "TOOL_NAMES";

/// Placeholders in the document for the page's own style and modules, which the view shows its head and paper with.
const STYLE_SLOT: &str = "PAGE_STYLE_SLOT";
const SCRIPT_SLOT: &str = "PAGE_SCRIPT_SLOT";

const DOCUMENT: &str = concat!(
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Steadyhand</title>\n<style>\n",
    "PAGE_STYLE_SLOT",
    include_str!("app_view/view.css"),
    "</style>\n</head>\n",
    include_str!("app_view/body.html"),
    "<script>\n\"use strict\";\n(() => {\n",
    "PAGE_SCRIPT_SLOT",
    include_str!("app_view/host.js"),
    include_str!("app_view/view.js"),
    "})();\n</script>\n</body>\n</html>\n",
);

/// Returns the view, which calls tools by the names that this node lists.
pub(crate) fn drawing_view(names: &KnownNames) -> AppView {
    let listed = catalogue::list(names);
    let shown = listed.iter().filter(|tool| SHOWN.contains(&own_name(tool)));
    AppView {
        uri: "ui://steadyhand/drawing".to_owned(),
        name: "drawing".to_owned(),
        title: "Drawing".to_owned(),
        description: "The plan, the drawing's progress and a button that stops the arm.".to_owned(),
        tools: shown.map(|tool| tool.name.clone()).collect(),
        html: DOCUMENT
            .replace(NAMES_SLOT, &called_names(&listed))
            .replace(STYLE_SLOT, page::view_style())
            .replace(SCRIPT_SLOT, &page::view_script()),
    }
}

/// Returns the names of [`CALLED`] as a host's list has them, as JSON. A host refuses names that are not in its list.
fn called_names(listed: &[ListedTool]) -> String {
    let listed_name = |own: &'static str| {
        let listed = listed.iter().find(|tool| own_name(tool) == own)?;
        Some((own, listed.name.as_str()))
    };
    let names: BTreeMap<&str, &str> = CALLED.into_iter().filter_map(listed_name).collect();
    let names = serde_json::to_string(&names).unwrap_or_default();
    names.replace('<', "\\u003c")
}

fn own_name(tool: &ListedTool) -> &str {
    tool.alias_of.as_deref().unwrap_or(&tool.name)
}

#[cfg(test)]
mod tests {
    use catalogue::ListedNames;

    use super::*;

    /// Longest document.
    const BYTES_MAX: usize = 60_000;

    fn view(listed_names: ListedNames) -> AppView {
        drawing_view(&KnownNames {
            listed_names,
            ..KnownNames::default()
        })
    }

    #[test]
    fn the_document_is_small_and_loads_nothing_else() {
        let html = view(ListedNames::Both).html;
        assert!(html.len() <= BYTES_MAX, "{} bytes", html.len());
        let is_foreign = |rest: &&str| !rest.starts_with("www.w3.org/2000/svg");
        assert_eq!(html.split("://").skip(1).filter(is_foreign).count(), 0);
        for foreign in [
            "fetch(",
            "import ",
            "innerHTML",
            "eval(",
            "localStorage",
            NAMES_SLOT,
            STYLE_SLOT,
            SCRIPT_SLOT,
        ] {
            assert!(!html.contains(foreign), "{foreign}");
        }
    }

    #[test]
    fn tools_are_called_and_marked_by_names_that_are_listed() {
        let plain = view(ListedNames::Plain);
        assert_eq!(plain.tools, ["align", "sense", "stroke"]);
        assert!(
            plain
                .html
                .contains(r#"{"sense":"sense","stop":"stop","stroke":"stroke"}"#)
        );
        let robot = view(ListedNames::Robot);
        assert_eq!(robot.tools, ["robot_align", "robot_sense", "robot_stroke"]);
        assert!(robot.html.contains(r#""stop":"robot_stop""#));
        assert_eq!(view(ListedNames::Both).tools.len(), 6);
    }
}
