//! Elements of SVG without the `<svg>` around them, as language models write them: `<circle cx="5" cy="5" r="3"/>`.

use super::normalize_units::SvgEdit;

/// Note on elements that were put into an `<svg>`.
pub(super) const WRAPPED: &str = "the elements stood alone and were read as if within <svg>…</svg>";

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

/// Opening of the element that is put around others.
const OPENING: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">"#;

/// Returns the edits that put the content of a file into an `<svg>`, if its first element is one that only stands within one.
/// `first` is the first tag with its place.
pub(super) fn wrapping(text: &str, first: Option<(usize, &str)>) -> Option<[SvgEdit; 2]> {
    let (start, tag) = first?;
    let name = tag.strip_prefix('<')?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric());
    let name = name.get(..end.unwrap_or(name.len()))?.to_ascii_lowercase();
    let length = text.len();
    ELEMENTS.contains(&name.as_str()).then(|| {
        [
            (start..start, OPENING.to_owned()),
            (length..length, "</svg>".to_owned()),
        ]
    })
}
