//! The file with what usvg does not know said in words that it knows: lengths in quarters of a
//! millimetre, and layers that have a name but no id.

use std::ops::Range;

use usvg::roxmltree::{Document, Node};

use super::grammar;
use super::paint::label_of;
use super::unsupported::SVG;

/// Attributes that are lengths.
const LENGTHS: [&str; 16] = [
    "x",
    "y",
    "width",
    "height",
    "r",
    "rx",
    "ry",
    "cx",
    "cy",
    "x1",
    "y1",
    "x2",
    "y2",
    "dx",
    "dy",
    "font-size",
];

/// A place in the file, and what stands there instead.
type SvgEdit = (Range<usize>, String);

/// None where nothing has to be said otherwise. No line becomes another line.
pub(super) fn mended(text: &str, document: &Document<'_>) -> Option<String> {
    let of_svg = |node: &Node<'_, '_>| node.tag_name().namespace() == Some(SVG);
    let mut edits: Vec<SvgEdit> = Vec::new();
    for (index, node) in document.descendants().filter(of_svg).enumerate() {
        edits.extend(quarters(node));
        edits.extend(layer_id(text, node, index));
    }
    if edits.is_empty() {
        return None;
    }
    edits.sort_by_key(|(range, _)| (range.start, range.end));
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
        let is_quarters = LENGTHS.contains(&attribute.name()) && unit.eq_ignore_ascii_case("q");
        is_quarters.then(|| (attribute.range_value(), format!("{}mm", number / 4.0)))
    })
}

/// usvg keeps groups apart by their ids alone.
fn layer_id(text: &str, node: Node<'_, '_>, index: usize) -> Option<SvgEdit> {
    label_of(node)?;
    if node.has_attribute("id") || !matches!(node.tag_name().name(), "g" | "svg") {
        return None;
    }
    let start = node.range().start;
    let name = text.get(start..)?.strip_prefix('<')?;
    let length = name.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'))?;
    let behind = start + 1 + length;
    Some((
        behind..behind,
        format!(" id=\"layer-without-an-id-{index}\""),
    ))
}
