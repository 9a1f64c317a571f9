//! Layers of an SVG, by Inkscape's and AxiDraw's conventions: a number at the start of a layer's name is its pen and its
//! turn, `%` in front leaves the layer out, `!` in front asks for a pause before it.

use std::collections::HashMap;

use usvg::roxmltree::{Document, Node};

use super::super::{DesignError, PENS_FROM_1, pen_in};
use super::expansion_limits::wrong;

const INKSCAPE: &str = "http://www.inkscape.org/namespaces/inkscape";

/// Returns the author's name of an element.
pub(super) fn label_of<'n>(node: Node<'n, '_>) -> Option<&'n str> {
    node.attribute((INKSCAPE, "label"))
}

/// The name of a layer, which is a group that says so.
pub(super) fn layer_name<'n>(node: Node<'n, '_>) -> Option<&'n str> {
    let is_layer = node.attribute((INKSCAPE, "groupmode")) == Some("layer");
    label_of(node).filter(|_| is_layer)
}

/// A layer whose name begins with `%` is not drawn.
pub(super) fn is_left_out(node: Node<'_, '_>) -> bool {
    layer_name(node).is_some_and(|name| name.trim_start().starts_with('%'))
}

/// A layer's name, and what it says of pens and pauses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SvgLayer {
    pub(super) name: String,
    /// Counted from 1; the layer's turn among its neighbours as well.
    pub(super) pen: Option<u16>,
    pub(super) pauses: bool,
}

impl SvgLayer {
    /// Reads a name such as `2`, `2-red`, `pen2 red` or `! 3 gold`.
    fn named(name: &str) -> Self {
        let said = name.trim_start();
        let behind = said.strip_prefix('!');
        Self {
            name: name.to_owned(),
            pen: pen_in(behind.unwrap_or(said).trim_start()),
            pauses: behind.is_some(),
        }
    }

    /// The layer's place among its neighbours: those with numbers first, by them.
    pub(super) fn turn(&self) -> u32 {
        self.pen.map_or(u32::MAX, u32::from)
    }

    /// Returns whether the name asks for a speed, height or delay, as `+S25` does.
    fn asks_for_motion(&self) -> bool {
        let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let mut marks = self.name.split('+').skip(1);
        marks.any(|mark| mark.strip_prefix(['S', 'H', 'D']).is_some_and(number))
    }
}

/// The layers of a file by the ids of their groups.
pub(super) fn by_id(document: &Document<'_>) -> HashMap<String, SvgLayer> {
    let layers = document.descendants().filter_map(|node| {
        let name = layer_name(node)?;
        Some((node.attribute("id")?.to_owned(), SvgLayer::named(name)))
    });
    layers.collect()
}

/// Notes what a layer's name asks for and does not get.
///
/// # Errors
/// A layer for pen 0.
pub(super) fn judge(node: Node<'_, '_>) -> Result<Option<String>, DesignError> {
    let Some(name) = layer_name(node) else {
        return Ok(None);
    };
    let quoted = super::quoted(name);
    if is_left_out(node) {
        let parts = node.descendants().skip(1).filter(Node::is_element).count();
        let note =
            format!("layer {quoted} is not drawn, for its name begins with %: {parts} elements");
        return Ok(Some(note));
    }
    let layer = SvgLayer::named(name);
    if layer.pen == Some(0) {
        let found = format!("pen 0 in the layer's name {quoted}");
        return Err(wrong(node, found, PENS_FROM_1));
    }
    let note = format!("layer {quoted}: speed, height and delay in a layer's name are not used");
    Ok(layer.asks_for_motion().then_some(note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_pen_and_a_pause() {
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
            let layer = SvgLayer::named(name);
            assert_eq!((layer.pen, layer.pauses), (pen, pauses), "{name}");
        }
    }

    #[test]
    fn a_speed_in_a_name_is_seen() {
        for (name, asks) in [("2 +S25", true), ("2 +H30+D5", true), ("red+Sea", false)] {
            assert_eq!(SvgLayer::named(name).asks_for_motion(), asks, "{name}");
        }
    }
}
