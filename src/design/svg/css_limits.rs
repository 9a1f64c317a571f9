//! Refuses styles that usvg ignores, and notes what changes no line. By now all styles of an
//! element are in its own `style` attribute.

use std::collections::HashSet;
use std::str::FromStr;

use svgtypes::{Color, Paint, TransformOrigin};
use usvg::roxmltree::{Document, Node};

use super::super::DesignError;
use super::super::design_error::quoted;
use super::cascade::is_geometry;
use super::expansion_limits::{invalid, undrawable, url_ids};
use super::text_to_paths::{css_value, property, style_properties};
use super::unsupported::UnsupportedNotes;

/// Longest chain of references between patterns.
const REFERENCES_MAX: usize = 10;

/// Returns whether usvg supports a colour, gradient or pattern.
pub(super) fn is_paint(value: &str) -> bool {
    Paint::from_str(value).is_ok()
}

/// Returns the ids of patterns that hold lines, of their own or through a pattern that they refer
/// to.
pub(super) fn patterns_with_lines<'d>(document: &'d Document<'_>) -> HashSet<&'d str> {
    let is_image = |node: &Node<'_, '_>| node.tag_name().name() == "image";
    let images = document.descendants().filter(is_image);
    let images: HashSet<_> = images.filter_map(|image| image.attribute("id")).collect();
    let is_drawn = |node: Node<'_, '_>| {
        let is_of_image = href_id(node).is_some_and(|id| images.contains(id));
        !is_of_image
            && matches!(
                node.tag_name().name(),
                "path"
                    | "rect"
                    | "circle"
                    | "ellipse"
                    | "line"
                    | "polyline"
                    | "polygon"
                    | "text"
                    | "use"
            )
    };
    let is_pattern = |node: &Node<'_, '_>| node.tag_name().name() == "pattern";
    let mut with_lines = HashSet::new();
    let mut referring = Vec::new();
    for pattern in document.descendants().filter(is_pattern) {
        let Some(id) = pattern.attribute("id") else {
            continue;
        };
        if pattern.descendants().any(is_drawn) {
            with_lines.insert(id);
        } else if let Some(to) = href_id(pattern) {
            referring.push((id, to));
        }
    }
    for _ in 0..REFERENCES_MAX {
        let newly_found = referring.iter().filter(|(_, to)| with_lines.contains(to));
        let newly_found: Vec<_> = newly_found.map(|(id, _)| *id).collect();
        with_lines.extend(newly_found);
    }
    with_lines
}

/// Returns the id that an element's `href` refers to.
pub(super) fn href_id<'n>(node: Node<'n, '_>) -> Option<&'n str> {
    let href = node.attributes().find(|a| a.name() == "href");
    href?.value().trim().strip_prefix('#')
}

fn refuse_patterns(node: Node<'_, '_>, patterns: &HashSet<&str>) -> Result<(), DesignError> {
    for name in ["fill", "stroke"] {
        let value = property(node, name).unwrap_or("");
        if let Some(id) = url_ids(value).find(|id| patterns.contains(id)) {
            let found = format!("a {name} with pattern {}", quoted(id));
            let fix = "turn the pattern into paths, or give the element a plain colour";
            return Err(undrawable(node, found, fix));
        }
    }
    Ok(())
}

/// Returns the ids of symbols that are not cut to their viewport.
pub(super) fn symbols_without_clip<'d>(document: &'d Document<'_>) -> HashSet<&'d str> {
    let is_visible =
        |node: &Node<'_, '_>| matches!(property(*node, "overflow"), Some("visible" | "auto"));
    let symbols = document
        .descendants()
        .filter(|node| node.tag_name().name() == "symbol");
    let visible = symbols.filter(is_visible);
    visible.filter_map(|node| node.attribute("id")).collect()
}

/// Refuses a clip path that usvg does not move with its `use`.
pub(super) fn refuse_moved_clip(
    node: Node<'_, '_>,
    symbols_without_clip: &HashSet<&str>,
) -> Result<(), DesignError> {
    let is_set =
        |name: &str| property(node, name).is_some_and(|value| !matches!(value, "" | "none"));
    let is_of_symbol = || href_id(node).is_some_and(|id| symbols_without_clip.contains(id));
    let is_use = node.tag_name().name() == "use";
    match is_use && is_set("clip-path") && is_set("transform") && is_of_symbol() {
        true => Err(undrawable(
            node,
            "a `use` of a symbol with both a transform and a clip-path",
            "write the transform and the clip-path on a group around it",
        )),
        false => Ok(()),
    }
}

/// Refuses what would be drawn differently from what the file shows.
pub(super) fn check(node: Node<'_, '_>, patterns: &HashSet<&str>) -> Result<(), DesignError> {
    refuse_unknown_colours(node)?;
    refuse_patterns(node, patterns)?;
    refuse_css_only(node)?;
    refuse_shapes_of_css(node)?;
    let is_moved = property(node, "transform").is_some_and(|value| !matches!(value, "" | "none"));
    let origin = property(node, "transform-origin");
    let has_bad_origin = origin.is_some_and(|origin| TransformOrigin::from_str(origin).is_err());
    let has_bad_box = property(node, "transform-box").is_some_and(|value| value != "view-box");
    match is_moved && (has_bad_origin || has_bad_box) {
        true if has_bad_box => Err(unsupported(node, "a transform with a `transform-box`")),
        true => Err(unsupported(node, "this `transform-origin`")),
        false => Ok(()),
    }
}

fn unsupported(node: Node<'_, '_>, found: impl Into<String>) -> DesignError {
    undrawable(
        node,
        found,
        "write it as attributes of SVG (cx, r, transform …), or save the drawing as plain SVG",
    )
}

fn refuse_unknown_colours(node: Node<'_, '_>) -> Result<(), DesignError> {
    let is_unknown = |name: &&str| property(node, name).is_some_and(|value| !is_paint(value));
    let unknown = ["fill", "stroke"].into_iter().find(is_unknown).or_else(|| {
        let own = property(node, "color")?;
        let is_known = Color::from_str(own).is_ok() || matches!(own, "inherit" | "currentColor");
        (!is_known).then_some("color")
    });
    let Some(name) = unknown else {
        return Ok(());
    };
    let value = property(node, name).unwrap_or("");
    let found = format!("{name} = {}", quoted(value));
    let accepted = "a colour as #c0392b, rgb(192, 57, 43), hsl(6, 63%, 46%) or red, or none";
    Err(invalid(node, found, accepted))
}

/// Refuses properties that move or shape an element only in CSS.
fn refuse_css_only(node: Node<'_, '_>) -> Result<(), DesignError> {
    let tag = node.tag_name().name();
    for (name, value) in style_properties(node) {
        let is_motion = matches!(name, "rotate" | "scale" | "translate" | "offset-path");
        let is_computed = ["var(", "calc(", "env("]
            .into_iter()
            .any(|call| value.contains(call));
        if (is_motion && value != "none")
            || is_geometry(tag, name) && node.parent_element().is_some()
            || is_computed && !name.starts_with("animation")
        {
            let found = format!("{} in its style", quoted(&format!("{name}:{value}")));
            return Err(unsupported(node, found));
        }
    }
    Ok(())
}

/// Refuses clips and masks that are not elements of the file.
fn refuse_shapes_of_css(node: Node<'_, '_>) -> Result<(), DesignError> {
    for name in ["clip-path", "mask"] {
        let value = property(node, name).unwrap_or("none").trim();
        let is_known = matches!(value, "" | "none" | "inherit" | "initial" | "unset");
        if !is_known && !value.starts_with("url(") {
            let found = format!("the {name} {}", quoted(value));
            let fix = "clip with a `clipPath` element, or cut the paths themselves";
            return Err(undrawable(node, found, fix));
        }
    }
    Ok(())
}

/// Properties that shift letters, with the values that leave them in place.
const LETTER_PROPERTIES: [(&str, &[&str]); 4] = [
    ("letter-spacing", &["normal", "0", "0px", "0em"]),
    ("word-spacing", &["normal", "0", "0px", "0em"]),
    ("text-decoration", &["none"]),
    ("baseline-shift", &["baseline", "0", "0px", "0%"]),
];

/// Adds notes for what is not drawn but changes no line.
pub(super) fn add_notes(node: Node<'_, '_>, notes: &mut UnsupportedNotes) {
    let is_set = |name: &str, neutral: &[&str]| {
        let value = property(node, name).map(str::trim);
        value.is_some_and(|value| !neutral.contains(&value) && !matches!(value, "inherit" | ""))
    };
    let holds_text = || {
        let mut descendants = node.descendants();
        descendants.any(|node| matches!(node.tag_name().name(), "text" | "tspan"))
    };
    for (name, value) in style_properties(node) {
        if node.parent_element().is_none() && is_geometry("svg", name) {
            notes.add(node, || {
                let value = quoted(value);
                format!(": the {name} {value} in its style is ignored: only the attributes of the `svg` element set the page's size")
            });
        }
    }
    for (name, neutral) in LETTER_PROPERTIES {
        if is_set(name, neutral) && holds_text() {
            notes.add(node, || {
                format!(": its {name} is ignored: the letters are placed without it")
            });
        }
    }
    let animation = css_value(node, "animation").or_else(|| css_value(node, "animation-name"));
    if animation.is_some_and(|value| value != "none") {
        notes.add(node, || {
            ": its animation is not drawn: the drawing shows the state without animation".to_owned()
        });
    }
}
