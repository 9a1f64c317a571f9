//! Elements of SVG without the `<svg>` around them or without their end, as language models write them:
//! `<circle cx="5" cy="5" r="3">`.

use super::normalize_units::SvgEdit;

/// Note on elements that were put into an `<svg>`.
pub(super) const WRAPPED: &str = "the elements had no <svg>…</svg> around them; it was added";

/// Elements that a drawing may begin with.
const ELEMENTS: [&str; 16] = [
    "a",
    "circle",
    "clippath",
    "defs",
    "ellipse",
    "g",
    "line",
    "lineargradient",
    "path",
    "polygon",
    "polyline",
    "rect",
    "style",
    "symbol",
    "text",
    "use",
];

/// Note on shapes that were ended.
pub(super) const ENDED: &str = "missing end tags were added to shapes";

/// Shapes, which programs write without content.
const SHAPES: [&str; 7] = [
    "circle", "ellipse", "line", "path", "polygon", "polyline", "rect",
];

/// Returns the shapes that nothing in a file ends.
pub(super) fn endless_shapes(text: &str) -> Vec<&'static str> {
    let is_endless = |name: &&str| !text.contains(&format!("</{name}"));
    SHAPES.into_iter().filter(is_endless).collect()
}

/// Returns the edit that ends a shape in its own tag, as HTML does.
pub(super) fn ending(endless: &[&str], tag: &str, at: usize) -> Option<SvgEdit> {
    let inner = tag.strip_suffix('>')?;
    let name = inner.strip_prefix('<')?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric());
    let name = name.get(..end.unwrap_or(name.len()))?;
    let end = at + inner.len();
    (endless.contains(&name) && !inner.ends_with('/')).then(|| (end..end, "/".to_owned()))
}

/// Returns whether a tag is that of an element that only stands within an `<svg>`.
pub(super) fn is_drawn(tag: &str) -> bool {
    let name = tag.strip_prefix('<').unwrap_or_default();
    let end = name.find(|c: char| !c.is_ascii_alphanumeric());
    let name = name.get(..end.unwrap_or(name.len())).unwrap_or_default();
    ELEMENTS.contains(&name.to_ascii_lowercase().as_str())
}

/// Opening of the element that is put around others.
const OPENING: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">"#;

/// Returns the edits that put the content of a file into an `<svg>`, if its first element is one that only stands within one.
/// `first` is the first tag with its place.
pub(super) fn wrapping(text: &str, first: Option<(usize, &str)>) -> Option<[SvgEdit; 2]> {
    let (start, tag) = first?;
    let length = text.len();
    is_drawn(tag).then(|| {
        [
            (start..start, OPENING.to_owned()),
            (length..length, "</svg>".to_owned()),
        ]
    })
}
