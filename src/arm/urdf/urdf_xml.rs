//! Reads elements of an untrusted URDF: bounds them before they are parsed, and names those that are wrong.

use std::collections::HashMap;

use nalgebra::{Isometry3, Vector3};
use roxmltree::{Document, Node};

use super::UrdfError;
use crate::isometry;

/// Larger files are not read.
pub const BYTES_MAX: usize = 2 << 20;
/// Largest number of nodes in a document, without attributes.
pub(super) const NODES_MAX: u32 = 50_000;
/// Largest depth of nested elements; a URDF nests five deep.
const DEPTH_MAX: usize = 16;
/// Largest number of bytes from one tag to the next: the parser compares attributes with each other.
const TAG_BYTES_MAX: usize = 4_096;
/// Largest number of declared name spaces: the parser passes each on to every element within.
const NAME_SPACES_MAX: usize = 64;
/// No arm is longer, and no joint turns farther.
pub(super) const NUMBER_MAX: f64 = 1_000.0;
/// Longest name, for names appear in messages and files.
const NAME_BYTES_MAX: usize = 100;

pub(super) fn check_bounds(text: &str) -> Result<(), UrdfError> {
    let within = |what, have, most| {
        if have > most {
            Err(UrdfError::TooMuch { what, have, most })
        } else {
            Ok(())
        }
    };
    within("bytes", text.len(), BYTES_MAX)?;
    let name_spaces = text.matches("xmlns").count();
    within("declared namespaces", name_spaces, NAME_SPACES_MAX)?;
    // A `<` begins the next tag: no attribute may contain one.
    let tags = text.split('<').filter(|tag| !tag.starts_with("!--"));
    let longest = tags.map(str::len).max().unwrap_or(0);
    within("bytes in one tag", longest, TAG_BYTES_MAX)
}

pub(super) fn check_depth(document: &Document<'_>) -> Result<(), UrdfError> {
    // Parents come before their children, so one pass finds all depths without recursion.
    let mut depths: HashMap<_, usize> = HashMap::new();
    for node in document.descendants() {
        let parent_depth = node.parent().and_then(|parent| depths.get(&parent.id()));
        let depth = parent_depth.map_or(0, |depth| depth + 1);
        if depth > DEPTH_MAX {
            return Err(wrong(
                node,
                format!("is nested more than {DEPTH_MAX} levels deep"),
            ));
        }
        depths.insert(node.id(), depth);
    }
    Ok(())
}

pub(super) fn wrong(node: Node<'_, '_>, what: impl Into<String>) -> UrdfError {
    let tag = node.tag_name().name();
    UrdfError::Element {
        line: node.document().text_pos_at(node.range().start).row,
        element: match node.attribute("name") {
            Some(name) => format!("<{} name=\"{}\">", shorten(tag), shorten(name)),
            None => format!("<{}>", shorten(tag)),
        },
        what: what.into(),
    }
}

/// Shortens a foreign text for a message, on one line.
pub(super) fn shorten(text: &str) -> String {
    let printable = text.chars().filter(|c| !c.is_control());
    printable.take(NAME_BYTES_MAX / 2).collect()
}

pub(super) fn name_of<'a>(node: Node<'a, '_>) -> Result<&'a str, UrdfError> {
    let name = node.attribute("name");
    let name = name.ok_or_else(|| wrong(node, "has no name"))?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let reason = format!("its name must have 1 to {NAME_BYTES_MAX} plain characters");
        return Err(wrong(node, reason));
    }
    Ok(name)
}

pub(super) fn child<'a, 'i>(node: Node<'a, 'i>, tag: &str) -> Option<Node<'a, 'i>> {
    node.children().find(|node| node.has_tag_name(tag))
}

/// Returns an attribute of a child element.
pub(super) fn attribute_of<'a>(
    node: Node<'a, '_>,
    tag: &str,
    attribute: &str,
) -> Result<&'a str, UrdfError> {
    let text = child(node, tag).and_then(|node| node.attribute(attribute));
    text.ok_or_else(|| wrong(node, format!("needs <{tag} {attribute}=\"…\"/> within")))
}

pub(super) fn number(node: Node<'_, '_>, what: &str, text: &str) -> Result<f64, UrdfError> {
    let reason = match text.trim().parse::<f64>() {
        Ok(value) if value.abs() <= NUMBER_MAX => return Ok(value),
        Ok(value) => format!("{what} is {value}; -{NUMBER_MAX} to {NUMBER_MAX} are possible"),
        Err(_) => format!("{what} is `{}`; a number is needed", shorten(text)),
    };
    Err(wrong(node, reason))
}

/// Reads three numbers, or returns URDF's `fallback` if the attribute is absent.
pub(super) fn vector(
    node: Node<'_, '_>,
    attribute: &str,
    fallback: [f64; 3],
) -> Result<Vector3<f64>, UrdfError> {
    let Some(text) = node.attribute(attribute) else {
        return Ok(fallback.into());
    };
    let values = text
        .split_whitespace()
        .map(|word| number(node, attribute, word))
        .collect::<Result<Vec<f64>, _>>()?;
    <[f64; 3]>::try_from(values)
        .map(Vector3::from)
        .map_err(|values| {
            let count = values.len();
            wrong(
                node,
                format!("{attribute} has {count} numbers; 3 are needed"),
            )
        })
}

/// Reads the `<origin>` within; URDF's default is no displacement.
pub(super) fn origin(node: Node<'_, '_>) -> Result<Isometry3<f64>, UrdfError> {
    let Some(origin) = child(node, "origin") else {
        return Ok(Isometry3::identity());
    };
    let vector = |attribute| vector(origin, attribute, [0.0; 3]);
    Ok(isometry(vector("xyz")?, vector("rpy")?))
}
