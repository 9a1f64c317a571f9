//! The file with what usvg does not know said in words that it knows: lengths in quarters of a
//! millimetre, layers that have a name but no id or are not to be drawn, and elements that ask for features.

use std::ops::Range;

use usvg::roxmltree::{Document, Node};

use super::grammar;
use super::layers::{is_left_out, label_of};
use super::unsupported::{LENGTHS, is_svg};

/// A place in the file, and what stands there instead.
pub(super) type SvgEdit = (Range<usize>, String);

/// None where nothing has to be said otherwise. No line becomes another line.
pub(super) fn mended(text: &str, document: &Document<'_>) -> Option<String> {
    let of_svg = |node: &Node<'_, '_>| is_svg(*node);
    let mut edits: Vec<SvgEdit> = Vec::new();
    for (index, node) in document.descendants().filter(of_svg).enumerate() {
        edits.extend(quarters(node));
        edits.extend(layer_id(text, node, index));
        edits.extend(hidden(text, node));
        edits.extend(features(node));
    }
    edited(text, edits)
}

/// A text with some places changed, none where there are none.
pub(super) fn edited(text: &str, mut edits: Vec<SvgEdit>) -> Option<String> {
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    // An element of an entity that is used twice stands in the file once.
    edits.dedup();
    let mut mended = String::with_capacity(text.len());
    let mut done = 0;
    for (range, instead) in edits {
        // What an entity holds may stand there more than once.
        let Some(before) = text.get(done..range.start) else {
            continue;
        };
        mended.push_str(before);
        mended.push_str(&instead);
        done = range.end;
    }
    mended.push_str(text.get(done..)?);
    Some(mended)
}

fn quarters(node: Node<'_, '_>) -> impl Iterator<Item = SvgEdit> {
    node.attributes().filter_map(|attribute| {
        let (number, unit) = grammar::length(attribute.value())?;
        let name = attribute.name();
        let is_length = LENGTHS.contains(&name) || matches!(name, "dx" | "dy" | "font-size");
        (is_length && unit.eq_ignore_ascii_case("q"))
            .then(|| (attribute.range_value(), format!("{}mm", number / 4.0)))
    })
}

/// usvg keeps groups apart by their ids alone.
fn layer_id(text: &str, node: Node<'_, '_>, index: usize) -> Option<SvgEdit> {
    label_of(node)?;
    if node.has_attribute("id") || !matches!(node.tag_name().name(), "g" | "svg") {
        return None;
    }
    let behind = behind_name(text, node)?;
    Some((behind, format!(" id=\"layer-without-an-id-{index}\"")))
}

/// A layer whose name begins with `%` is switched off, whatever its style says.
fn hidden(text: &str, node: Node<'_, '_>) -> Option<SvgEdit> {
    if !is_left_out(node) {
        return None;
    }
    let hidden = "display:none";
    match node.attribute_node("style") {
        Some(style) => Some((style.range_value(), hidden.to_owned())),
        None => Some((behind_name(text, node)?, format!(" style=\"{hidden}\""))),
    }
}

/// Drops the condition under which any viewer of SVG 1.1 shows an element; `foreignObject`, which holds another language, keeps it,
/// and a `switch` goes on to the next.
fn features(node: Node<'_, '_>) -> Option<SvgEdit> {
    let features = node.attribute_node("requiredFeatures")?;
    let is_ours = node.tag_name().name() != "foreignObject";
    is_ours.then(|| (features.range(), String::new()))
}

/// The place behind an element's name, where another attribute fits.
pub(super) fn behind_name(text: &str, node: Node<'_, '_>) -> Option<Range<usize>> {
    let start = node.range().start;
    let name = text.get(start..)?.strip_prefix('<')?;
    let length = name.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'))?;
    let behind = start + 1 + length;
    Some(behind..behind)
}
