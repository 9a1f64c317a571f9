//! Finds parts of a drawing that usvg would drop silently. Refuses missing parts with their place,
//! and notes differences in appearance.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::str::FromStr;

use svgtypes::ViewBox;
use usvg::roxmltree::{Document, Node, NodeId};

use super::super::design_error::quoted;
use super::super::{ChoiceWords, DesignChoice, DesignError};
use super::expansion_limits::{invalid, name_of, styles, undrawable, url_ids};
use super::text_to_paths::{has_alternative, property};
use super::{css_limits, grammar, layers};

const SVG: &str = "http://www.w3.org/2000/svg";

/// Returns whether usvg treats an element as SVG.
pub(super) fn is_svg(node: Node<'_, '_>) -> bool {
    node.is_element() && matches!(node.tag_name().namespace(), None | Some(SVG))
}

/// Most notes in full; more are counted.
const NOTES_MAX: usize = 20;

/// Numbers of shapes that usvg reads as 0 if it cannot parse them.
pub(super) const LENGTHS: [&str; 13] = [
    "x", "y", "width", "height", "r", "rx", "ry", "cx", "cy", "x1", "y1", "x2", "y2",
];

/// SVG elements that are drawn, that affect drawing, or that are never visible.
const KNOWN: &[&str] = &[
    "svg",
    "g",
    "a",
    "switch",
    "use",
    "symbol",
    "defs",
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "text",
    "tspan",
    "textPath",
    "tref",
    "image",
    "clipPath",
    "mask",
    "marker",
    "pattern",
    "linearGradient",
    "radialGradient",
    "stop",
    "filter",
    "title",
    "desc",
    "metadata",
    "style",
    "script",
    "view",
    "cursor",
    "font",
    "font-face",
    "glyph",
    "missing-glyph",
    "hkern",
    "vkern",
    "color-profile",
    "foreignObject",
    "flowRoot",
    "flowRegion",
    "flowPara",
    "flowSpan",
];

/// Notes for the user, in file order.
#[derive(Default)]
pub(super) struct UnsupportedNotes {
    /// True if texts are laid out in their fonts.
    has_fonts: bool,
    notes: Vec<String>,
    more: usize,
    /// Kinds of loss, how often each occurs, and the element that is the first.
    counts: BTreeMap<&'static str, (usize, String)>,
}

impl UnsupportedNotes {
    /// Counts an element for one note on all of its kind.
    fn count(&mut self, node: Node<'_, '_>, kind: &'static str) {
        let (count, _) = (self.counts.entry(kind)).or_insert_with(|| (0, name_of(node)));
        *count += 1;
    }

    /// Adds a note that begins with an element's name.
    pub(super) fn add(&mut self, node: Node<'_, '_>, text: impl FnOnce() -> String) {
        self.add_text(|| name_of(node) + &text());
    }

    fn add_text(&mut self, note: impl FnOnce() -> String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note());
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_texts(self) -> Vec<String> {
        let mut all = self.notes;
        if self.more > 0 {
            all.push(format!("and {} more notes", self.more));
        }
        all.extend(
            self.counts
                .into_iter()
                .map(|(kind, (count, first))| match count {
                    1 => format!("{kind}: {first}"),
                    _ => format!("{kind}: {first} and {} more", count - 1),
                }),
        );
        all
    }
}

/// Inspects every visible element, with its styles in its own `style`; `original` is the file as
/// given.
pub(super) fn inspect(
    document: &Document<'_>,
    original: &Document<'_>,
    has_fonts: bool,
) -> Result<(UnsupportedNotes, FlaggedElements), DesignError> {
    let mut places = FlaggedElements::default();
    let mut notes = UnsupportedNotes {
        has_fonts,
        ..UnsupportedNotes::default()
    };
    let ids: HashSet<&str> = document
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    let patterns = css_limits::patterns_with_lines(document);
    let symbols = css_limits::symbols_without_clip(document);
    note_linked_sheets(original, &mut notes);
    // Parents come first, so one pass finds what each node inherits.
    let mut inherited_by_id: HashMap<NodeId, InheritedProperties> = HashMap::new();
    for node in document.descendants().filter(Node::is_element) {
        let inherited = node.parent().and_then(|up| inherited_by_id.get(&up.id()));
        let inherited = inherited.copied().unwrap_or_default().with(node);
        inherited_by_id.insert(node.id(), inherited);
        let was_hidden = node.parent().and_then(|up| inherited_by_id.get(&up.id()));
        if !was_hidden.is_some_and(|parent| parent.is_hidden)
            && let Some(note) = layers::layer_note(node)?
        {
            notes.add_text(|| note);
        }
        if !is_svg(node) {
            continue;
        }
        if inherited.is_hidden {
            if is_drawn_kind(node) && !inherited.is_omitted {
                notes.count(node, "hidden and left out");
            }
            continue;
        }
        refuse_broken(node)?;
        css_limits::check(node, &patterns)?;
        css_limits::refuse_moved_clip(node, &symbols)?;
        refuse_missing(node, &ids)?;
        refuse_scaled_dashes(node, inherited)?;
        note_appearance(node, &ids, &mut notes);
        places.add(node);
    }
    Ok((notes, places))
}

/// Properties that an element inherits from its ancestors.
#[derive(Clone, Copy, Default)]
struct InheritedProperties {
    /// True if it or one of its ancestors is hidden.
    is_hidden: bool,
    /// True if that is because of a layer's name, or of a definition's place, and has no note of its own.
    is_omitted: bool,
    is_dashed: bool,
}

impl InheritedProperties {
    fn with(self, node: Node<'_, '_>) -> Self {
        let css = |name: &str| property(node, name).map(str::trim);
        let is_definition = matches!(
            node.tag_name().name(),
            "defs" | "symbol" | "clipPath" | "mask" | "marker" | "pattern"
        );
        Self {
            is_omitted: self.is_omitted || is_definition || layers::is_omitted(node),
            is_hidden: self.is_hidden || css("display") == Some("none") || layers::is_omitted(node),
            is_dashed: css("stroke-dasharray").map_or(self.is_dashed, |dashes| dashes != "none"),
        }
    }
}

/// Notes style sheets in other files, which are not read.
fn note_linked_sheets(document: &Document<'_>, notes: &mut UnsupportedNotes) {
    let is_linked = |node: Node<'_, '_>| node.pi().is_some_and(|pi| pi.target == "xml-stylesheet");
    if document.root().children().any(is_linked)
        || styles(document).any(|css| css.contains("@import"))
    {
        notes.add_text(|| {
            "style sheets in other files are not read: put their rules into the drawing".to_owned()
        });
    }
}

fn refuse_broken(node: Node<'_, '_>) -> Result<(), DesignError> {
    let attribute = |name: &str| node.attribute(name).unwrap_or("");
    match node.tag_name().name() {
        "path" => {
            let data = attribute("d");
            let accepted = "M first, then commands, each with its numbers";
            refuse_error_at(
                node,
                "its path data",
                data,
                grammar::path_error(data),
                accepted,
            )?;
        }
        "polyline" | "polygon" => {
            let points = attribute("points");
            let error = grammar::points_error(points);
            refuse_error_at(node, "its points", points, error, "numbers in pairs")?;
        }
        _ => {}
    }
    let transform = property(node, "transform").unwrap_or("");
    let error = grammar::transform_error(transform);
    let accepted = "matrix, translate, scale, rotate, skewX and skewY with numbers in brackets";
    refuse_error_at(node, "its transform", transform, error, accepted)?;
    refuse_broken_lists(node)?;
    refuse_broken_lengths(node)
}

/// Refuses broken view boxes, which usvg ignores, and broken dashes, which it reads up to the
/// mistake.
fn refuse_broken_lists(node: Node<'_, '_>) -> Result<(), DesignError> {
    let view_box = node.attribute("viewBox");
    if let Some(value) = view_box.filter(|value| ViewBox::from_str(value).is_err()) {
        let found = format!("viewBox = {}", quoted(value));
        let accepted = "four numbers; the last two (width and height) above 0";
        return Err(invalid(node, found, accepted));
    }
    let dashes = property(node, "stroke-dasharray").unwrap_or("none");
    let lengths = dashes.split(|c: char| c == ',' || c.is_ascii_whitespace());
    let mut lengths = lengths.filter(|text| !text.is_empty());
    let is_length = |text: &str| grammar::length(text).is_some();
    // As in browsers, the line is solid if the value does not begin like dashes.
    if !lengths.next().is_some_and(is_length) || lengths.all(is_length) {
        return Ok(());
    }
    let found = format!("stroke-dasharray = {}", quoted(dashes));
    Err(invalid(node, found, "lengths, or none"))
}

fn refuse_error_at(
    node: Node<'_, '_>,
    what: &str,
    text: &str,
    error: Option<usize>,
    accepted: &str,
) -> Result<(), DesignError> {
    let Some(at) = error else {
        return Ok(());
    };
    let found = match text.get(at..).unwrap_or("") {
        "" => format!("an early end of {what}, after {}", quoted(tail(text))),
        rest => format!("{} in {what} at character {}", quoted(rest), at + 1),
    };
    Err(invalid(node, found, accepted))
}

/// Returns the end of a text, short enough to quote.
fn tail(text: &str) -> &str {
    let start = text.char_indices().rev().nth(20).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or(text)
}

/// Returns whether an element draws something by itself.
fn is_drawn_kind(node: Node<'_, '_>) -> bool {
    let tag = node.tag_name().name();
    is_shape(tag)
        || matches!(
            tag,
            "path" | "polyline" | "polygon" | "text" | "image" | "use"
        )
}

fn is_shape(tag: &str) -> bool {
    matches!(tag, "rect" | "circle" | "ellipse" | "line")
}

fn refuse_broken_lengths(node: Node<'_, '_>) -> Result<(), DesignError> {
    if !is_shape(node.tag_name().name()) {
        return Ok(());
    }
    let is_broken = |value: &str| grammar::length(value).is_none() && value.trim() != "auto";
    let mut values = LENGTHS
        .iter()
        .filter_map(|name| Some((name, node.attribute(*name)?)));
    match values.find(|(_, value)| is_broken(value)) {
        None => Ok(()),
        Some((name, value)) => Err(invalid(
            node,
            format!("{name} = {}", quoted(value)),
            "a number, with or without px, mm, cm, in, pt, pc, Q, em, ex or %",
        )),
    }
}

fn refuse_missing(node: Node<'_, '_>, ids: &HashSet<&str>) -> Result<(), DesignError> {
    if node.tag_name().name() == "use" {
        refuse_dangling_use(node, ids)?;
    }
    for name in ["clip-path", "mask", "filter"] {
        let value = property(node, name).unwrap_or("");
        if let Some(id) = url_ids(value).find(|id| !ids.contains(id)) {
            return Err(undrawable(
                node,
                format!("a {name} {} (not in the file)", quoted(id)),
                format!("remove its {name}, or add that element"),
            ));
        }
    }
    Ok(())
}

/// Refuses dashes in units of `pathLength`, which usvg does not support.
fn refuse_scaled_dashes(node: Node<'_, '_>, props: InheritedProperties) -> Result<(), DesignError> {
    if !props.is_dashed || !node.has_attribute("pathLength") {
        return Ok(());
    }
    Err(undrawable(
        node,
        "a dashed line with a `pathLength`",
        "remove pathLength and write the dashes in the drawing's own units",
    ))
}

fn refuse_dangling_use(node: Node<'_, '_>, ids: &HashSet<&str>) -> Result<(), DesignError> {
    let href = node.attributes().find(|a| a.name() == "href");
    let href = href.map_or("", |href| href.value().trim());
    let found = match href.strip_prefix('#') {
        Some(id) if ids.contains(id) => return Ok(()),
        Some(id) => format!("a `use` of {} (not in the file)", quoted(id)),
        None if href.is_empty() => "a `use` without a target".to_owned(),
        None => format!("a `use` of another file ({})", quoted(href)),
    };
    Err(undrawable(
        node,
        found,
        "put the element that it uses into the drawing, or remove it",
    ))
}

/// Notes how a text is not laid out as its author says.
fn note_text(node: Node<'_, '_>, notes: &mut UnsupportedNotes) {
    let white_space = property(node, "white-space").map_or("normal", str::trim);
    if !notes.has_fonts && node.has_attribute("textLength") {
        notes.add(node, || {
            ": its `textLength` is ignored: the letters keep their own widths".to_owned()
        });
    }
    if notes.has_fonts && !matches!(white_space, "normal" | "nowrap" | "inherit" | "initial") {
        notes.add(node, || {
            ": its `white-space` is ignored: several spaces count as one".to_owned()
        });
    }
}

fn note_appearance(node: Node<'_, '_>, ids: &HashSet<&str>, notes: &mut UnsupportedNotes) {
    let tag = node.tag_name().name();
    let reason = if tag.starts_with("animate") || matches!(tag, "set" | "discard") {
        Some("the drawing shows the state without animation")
    } else if tag == "foreignObject" && !has_alternative(node) {
        Some("its content is not SVG")
    } else if !KNOWN.contains(&tag) && !tag.starts_with("fe") {
        Some("the element is unknown")
    } else {
        None
    };
    if let Some(reason) = reason {
        notes.add(node, || format!(" is not drawn: {reason}"));
    }
    if is_shape(tag) {
        note_negative(node, notes);
    }
    if has_no_size(node) {
        notes.count(node, "not drawn because it has no size");
    }
    if matches!(tag, "text" | "tspan") {
        note_text(node, notes);
    }
    css_limits::add_notes(node, notes);
    let filter = property(node, "filter").map_or("none", str::trim);
    if tag != "filter" && !matches!(filter, "none" | "" | "inherit" | "initial") {
        notes.add(node, || {
            ": its filter is not drawn: a pen draws only lines".to_owned()
        });
    }
    for name in PAINTS {
        let value = property(node, name).unwrap_or("");
        if let Some(id) = url_ids(value).find(|id| !ids.contains(id)) {
            notes.add(node, || {
                let id = quoted(id);
                format!(": its {name} {id} is not in the file and is not drawn")
            });
        }
    }
}

/// Properties that may refer to a paint or a marker.
const PAINTS: [&str; 6] = [
    "fill",
    "stroke",
    "marker",
    "marker-start",
    "marker-mid",
    "marker-end",
];

/// Returns whether a shape has a side or a radius of 0; a circle without a radius is a dot.
fn has_no_size(node: Node<'_, '_>) -> bool {
    let is_zero = |name: &str| {
        let length = node.attribute(name).and_then(grammar::length);
        length.is_some_and(|(number, _)| number == 0.0)
    };
    let is_missing = |name: &str| !node.has_attribute(name);
    match node.tag_name().name() {
        "rect" => ["width", "height"]
            .iter()
            .any(|side| is_zero(side) || is_missing(side)),
        "ellipse" => is_zero("rx") || is_zero("ry"),
        "circle" => is_missing("r"),
        _ => false,
    }
}

fn note_negative(node: Node<'_, '_>, notes: &mut UnsupportedNotes) {
    let mut sizes = ["width", "height", "r", "rx", "ry"]
        .into_iter()
        .filter_map(|name| Some((name, node.attribute(name)?)));
    let is_negative = |value: &str| grammar::length(value).is_some_and(|(n, _)| n < 0.0);
    if let Some((name, value)) = sizes.find(|(_, value)| is_negative(value)) {
        notes.add(node, || {
            let value = quoted(value);
            format!(" is not drawn as written: its {name} is {value} and must not be below 0")
        });
    }
}

/// Most pictures named in a note; more are counted.
const IMAGES_NAMED_MAX: usize = 3;

/// Names, for messages, of elements whose problems appear only while drawing.
#[derive(Default)]
pub(super) struct FlaggedElements {
    images: usize,
    /// Names of the first images.
    named_images: Vec<String>,
    /// Ids and names of elements with a mask.
    masked: Vec<(String, String)>,
}

impl FlaggedElements {
    fn add(&mut self, node: Node<'_, '_>) {
        let tag = node.tag_name().name();
        if matches!(tag, "image" | "feImage") {
            self.images += 1;
            if self.images <= IMAGES_NAMED_MAX {
                self.named_images.push(name_of(node));
            }
        }
        let mask = property(node, "mask").map_or("none", str::trim);
        if mask != "none" && self.masked.len() < NOTES_MAX {
            let id = node.attribute("id").unwrap_or("");
            self.masked.push((id.to_owned(), name_of(node)));
        }
    }

    /// Returns the error for pictures, with their number and the place of the first.
    pub(super) fn refuse_images(&self, words: ChoiceWords) -> DesignError {
        let found = match self.images {
            0 | 1 => "a picture made of pixels".to_owned(),
            count => format!("a picture made of pixels (one of {count})"),
        };
        let first = self.named_images.first();
        let at = first.map_or("an `image` element", String::as_str);
        let offer = words.offer(DesignChoice::SkipImages);
        let offer = offer.map_or(String::new(), |offer| format!("; {offer}"));
        let fix = format!("trace it into paths first, or remove it{offer}");
        DesignError::unsupported(at, found, fix)
    }

    /// Returns a note on the pictures that are left out.
    pub(super) fn images_note(&self) -> String {
        let more = match self.images - self.named_images.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let pictures = match self.images {
            1 => "1 picture made of pixels is".to_owned(),
            count => format!("{count} pictures made of pixels are"),
        };
        format!(
            "{pictures} left out: {}{more}",
            self.named_images.join(", ")
        )
    }

    /// Returns the name of the masked element with this id, or of the first one.
    pub(super) fn masked(&self, id: &str) -> String {
        let mut all = self.masked.iter();
        let found = all.find(|(other, _)| other == id).or(self.masked.first());
        found.map_or_else(|| format!("group {}", quoted(id)), |(_, name)| name.clone())
    }
}
