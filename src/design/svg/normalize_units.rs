//! Rewrites what usvg does not support in terms that it does: lengths in quarter millimetres, layers
//! with a name but no id, layers that are not drawn, elements that require features, and circles that
//! are dots.

use std::ops::Range;

use usvg::roxmltree::{Document, Node};

use super::grammar;
use super::layers::{is_omitted, label_of};
use super::unsupported::{LENGTHS, is_svg};

/// A range of the file, and its replacement.
pub(super) type SvgEdit = (Range<usize>, String);

/// Returns the rewritten file, or `None` if nothing changes. Line numbers stay the same.
pub(super) fn normalize(text: &str, document: &Document<'_>) -> Option<String> {
    let is_svg_node = |node: &Node<'_, '_>| is_svg(*node);
    let dot_radius = dot_radius(document.root_element());
    let mut edits: Vec<SvgEdit> = Vec::new();
    for (index, node) in document.descendants().filter(is_svg_node).enumerate() {
        edits.extend(quarter_mm_edits(node));
        edits.extend(layer_id_edit(text, node, index));
        edits.extend(hide_edit(text, node));
        edits.extend(features_edit(node));
        edits.extend(dot_edit(node, dot_radius));
    }
    apply_edits(text, edits)
}

/// Returns a text with edits applied, or `None` if there are none.
pub(super) fn apply_edits(text: &str, mut edits: Vec<SvgEdit>) -> Option<String> {
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    // An element of an entity that is used twice is in the file once.
    edits.dedup();
    let mut normalized = String::with_capacity(text.len());
    let mut position = 0;
    for (range, replacement) in edits {
        // The content of an entity may have several overlapping edits.
        let Some(before) = text.get(position..range.start) else {
            continue;
        };
        normalized.push_str(before);
        normalized.push_str(&replacement);
        position = range.end;
    }
    normalized.push_str(text.get(position..)?);
    Some(normalized)
}

fn quarter_mm_edits(node: Node<'_, '_>) -> impl Iterator<Item = SvgEdit> {
    node.attributes().filter_map(|attribute| {
        let (number, unit) = grammar::length(attribute.value())?;
        let name = attribute.name();
        let is_length = LENGTHS.contains(&name) || matches!(name, "dx" | "dy" | "font-size");
        (is_length && unit.eq_ignore_ascii_case("q"))
            .then(|| (attribute.range_value(), format!("{}mm", number / 4.0)))
    })
}

/// Radius of a circle that is a dot, as a share of the page.
const DOT_SHARE: f64 = 1e-6;

/// Returns the radius that makes a circle a dot, in the page's own units.
fn dot_radius(root: Node<'_, '_>) -> f64 {
    let view_box = root.attribute("viewBox").unwrap_or_default();
    let numbers = view_box.split(|c: char| c == ',' || c.is_ascii_whitespace());
    let numbers = numbers.filter_map(|number| number.parse::<f64>().ok());
    let sides = ["width", "height"]
        .into_iter()
        .filter_map(|name| root.attribute(name));
    let sides = sides.filter_map(|side| Some(grammar::length(side)?.0));
    let long = numbers.skip(2).chain(sides).find(|side| *side > 0.0);
    long.unwrap_or(100.0) * DOT_SHARE
}

/// Returns the edit of a circle without a radius, which laser programs write for a dot and usvg drops.
fn dot_edit(node: Node<'_, '_>, radius: f64) -> Option<SvgEdit> {
    let attribute = node.attribute_node("r")?;
    let (number, _) = grammar::length(attribute.value())?;
    let is_dot = node.tag_name().name() == "circle" && number == 0.0;
    is_dot.then(|| (attribute.range_value(), format!("{radius:e}")))
}

/// Returns the edit that gives a named group an id: usvg distinguishes groups only by id.
fn layer_id_edit(text: &str, node: Node<'_, '_>, index: usize) -> Option<SvgEdit> {
    label_of(node)?;
    if node.has_attribute("id") || !matches!(node.tag_name().name(), "g" | "svg") {
        return None;
    }
    let after = after_tag_name(text, node)?;
    Some((after, format!(" id=\"layer-without-an-id-{index}\"")))
}

/// Returns the edit that hides a layer whose name begins with `%`, whatever its style.
fn hide_edit(text: &str, node: Node<'_, '_>) -> Option<SvgEdit> {
    if !is_omitted(node) {
        return None;
    }
    let css = "display:none";
    match node.attribute_node("style") {
        Some(style) => Some((style.range_value(), css.to_owned())),
        None => Some((after_tag_name(text, node)?, format!(" style=\"{css}\""))),
    }
}

/// Returns the edit that drops a `requiredFeatures` condition, which any viewer of SVG 1.1 meets.
/// `foreignObject`, which holds another language, keeps it, so that a `switch` goes on to the next.
fn features_edit(node: Node<'_, '_>) -> Option<SvgEdit> {
    let features = node.attribute_node("requiredFeatures")?;
    let is_svg_content = node.tag_name().name() != "foreignObject";
    is_svg_content.then(|| (features.range(), String::new()))
}

/// Returns the position after an element's tag name, where another attribute fits.
pub(super) fn after_tag_name(text: &str, node: Node<'_, '_>) -> Option<Range<usize>> {
    let start = node.range().start;
    let name = text.get(start..)?.strip_prefix('<')?;
    let length = name.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'))?;
    let after = start + 1 + length;
    Some(after..after)
}
