//! Reads layers of an SVG by Inkscape's and AxiDraw's conventions: a number at the start of a
//! layer's name is its pen and its place in the order, a leading `%` omits the layer, and a leading
//! `!` requests a pause before it.

use std::collections::HashMap;

use usvg::roxmltree::{Document, Node};

use super::super::{DesignError, PENS_FROM_1, pen_number_in};
use super::expansion_limits::invalid;

const INKSCAPE: &str = "http://www.inkscape.org/namespaces/inkscape";

/// Returns the author's name for an element.
pub(super) fn label_of<'n>(node: Node<'n, '_>) -> Option<&'n str> {
    node.attribute((INKSCAPE, "label"))
}

/// Returns the name of a layer, which is a group marked as one.
pub(super) fn layer_name<'n>(node: Node<'n, '_>) -> Option<&'n str> {
    let is_layer = node.attribute((INKSCAPE, "groupmode")) == Some("layer");
    label_of(node).filter(|_| is_layer)
}

/// Returns whether a layer is not drawn, because its name begins with `%`.
pub(super) fn is_omitted(node: Node<'_, '_>) -> bool {
    layer_name(node).is_some_and(|name| name.trim_start().starts_with('%'))
}

/// A layer's name, and its pen and pause.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SvgLayer {
    pub(super) name: String,
    /// Counted from 1; also the layer's place among its neighbours.
    pub(super) pen: Option<u16>,
    pub(super) pauses: bool,
}

impl SvgLayer {
    /// Reads a name such as `2`, `2-red`, `pen2 red` or `! 3 gold`.
    fn parse(name: &str) -> Self {
        let trimmed = name.trim_start();
        let without_mark = trimmed.strip_prefix('!');
        Self {
            name: name.to_owned(),
            pen: pen_number_in(without_mark.unwrap_or(trimmed).trim_start()),
            pauses: without_mark.is_some(),
        }
    }

    /// Returns the layer's place among its neighbours: numbered ones first, by number.
    pub(super) fn rank(&self) -> u32 {
        self.pen.map_or(u32::MAX, u32::from)
    }

    /// Returns whether the name requests a speed, height or delay, such as `+S25`.
    fn requests_motion(&self) -> bool {
        let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let mut modifiers = self.name.split('+').skip(1);
        modifiers.any(|modifier| modifier.strip_prefix(['S', 'H', 'D']).is_some_and(number))
    }
}

/// Returns the layers of a file by the ids of their groups.
pub(super) fn by_id(document: &Document<'_>) -> HashMap<String, SvgLayer> {
    let layers = document.descendants().filter_map(|node| {
        let name = layer_name(node)?;
        Some((node.attribute("id")?.to_owned(), SvgLayer::parse(name)))
    });
    layers.collect()
}

/// Returns a note about what a layer's name requests but does not get.
///
/// # Errors
/// A layer for pen 0.
pub(super) fn layer_note(node: Node<'_, '_>) -> Result<Option<String>, DesignError> {
    let Some(name) = layer_name(node) else {
        return Ok(None);
    };
    let quoted = super::quoted(name);
    if is_omitted(node) {
        let parts = node.descendants().skip(1).filter(Node::is_element).count();
        let note =
            format!("layer {quoted} is not drawn because its name begins with %: {parts} elements");
        return Ok(Some(note));
    }
    let layer = SvgLayer::parse(name);
    if layer.pen == Some(0) {
        let found = format!("pen 0 in the layer's name {quoted}");
        return Err(invalid(node, found, PENS_FROM_1));
    }
    let note = format!("layer {quoted}: speed, height and delay in a layer's name are ignored");
    Ok(layer.requests_motion().then_some(note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_the_pen_and_a_pause() {
        for (name, pen, pauses) in [
            ("2", Some(2), false),
            (" 3-red", Some(3), false),
            ("pen 4", Some(4), false),
            ("!5 gold", Some(5), true),
            ("! pen6", Some(6), true),
            ("!outline", None, true),
            ("outline 7", None, false),
            ("99999", None, false),
        ] {
            let layer = SvgLayer::parse(name);
            assert_eq!((layer.pen, layer.pauses), (pen, pauses), "{name}");
        }
    }

    #[test]
    fn a_speed_in_a_name_is_found() {
        for (name, expected) in [("2 +S25", true), ("2 +H30+D5", true), ("red+Sea", false)] {
            assert_eq!(SvgLayer::parse(name).requests_motion(), expected, "{name}");
        }
    }
}
