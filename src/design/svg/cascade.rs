//! Writes what style sheets and `style` attributes say of an element into its own `style`, and CSS geometry into its
//! attributes. usvg knows less of CSS, and would judge the elements that stand for text by rules that are not for them.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::rc::Rc;

use usvg::roxmltree::{Document, Node, NodeId};

use super::super::{DesignCaps, DesignError};
use super::css::{self, CssDeclaration, CssRules};
use super::css_limits;
use super::expansion_limits::{GROWTH_MAX, MATCHES_MAX, too_many};
use super::grammar;
use super::normalize_units::{SvgEdit, behind_name, edited};
use super::unsupported::is_svg;

/// Properties that say what is drawn, or that a note or a refusal is about; the rest changes no line.
const KEPT: [&str; 43] = [
    "animation",
    "animation-name",
    "baseline-shift",
    "clip-path",
    "clip-rule",
    "color",
    "dominant-baseline",
    "display",
    "fill",
    "fill-opacity",
    "fill-rule",
    "filter",
    "font",
    "font-size",
    "letter-spacing",
    "marker",
    "marker-end",
    "marker-mid",
    "marker-start",
    "mask",
    "offset-path",
    "opacity",
    "overflow",
    "rotate",
    "scale",
    "stop-color",
    "stop-opacity",
    "stroke",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
    "text-decoration",
    "transform",
    "transform-box",
    "transform-origin",
    "translate",
    "vector-effect",
    "visibility",
    "word-spacing",
];

/// Values made of others, `var(--a)` of twice `var(--b)`, may not become longer than this,
const VALUE_MAX: usize = 1_000;

/// nor have more `var()` and `light-dark()` in them and their parts.
const CALLS_MAX: usize = 16;

/// Functions whose value is put in their place.
const CALLS: [&str; 2] = ["var(", "light-dark("];

/// Cost of a declaration that applies, in elements looked at; and of one with functions.
const DECLARATION_STEPS: usize = 4;
const CALLS_STEPS: usize = 64;

/// Returns whether a property may change a line.
pub(super) fn matters(name: &str) -> bool {
    KEPT.contains(&name) || GEOMETRY.iter().any(|(_, names)| names.contains(&name))
}

/// The elements' geometry that CSS may say.
const GEOMETRY: [(&str, &[&str]); 7] = [
    ("path", &["d"]),
    ("circle", &["cx", "cy", "r"]),
    ("ellipse", &["cx", "cy", "rx", "ry"]),
    ("rect", &["x", "y", "width", "height", "rx", "ry"]),
    ("image", &["x", "y", "width", "height"]),
    ("svg", &["x", "y", "width", "height"]),
    ("use", &["x", "y"]),
];

/// Returns whether an element has a property of CSS as its geometry.
pub(super) fn is_geometry(tag: &str, name: &str) -> bool {
    let mut rows = GEOMETRY.iter();
    rows.any(|(own, names)| *own == tag && names.contains(&name))
}

/// The file with all its styles in `style` attributes, none where it has no styles. No line becomes another line.
pub(super) fn inlined(
    text: &str,
    document: &Document<'_>,
    caps: &DesignCaps,
) -> Result<Option<String>, DesignError> {
    let sheets: Vec<_> = document.descendants().filter(is_sheet).collect();
    let mut cascade = StyleCascade::of(&sheets)?;
    let mut edits: Vec<SvgEdit> = Vec::new();
    let mut bytes = 0_usize;
    let bytes_max = caps.bytes_max.saturating_mul(GROWTH_MAX);
    for node in document.descendants().filter(|node| is_svg(*node)) {
        let own = cascade.edits(text, node)?;
        bytes += own.iter().map(|(_, instead)| instead.len()).sum::<usize>();
        if bytes > bytes_max {
            return Err(too_many("bytes of styles", bytes_max));
        }
        edits.extend(own);
    }
    for sheet in sheets {
        let range = sheet.range();
        if let Some(own) = text.get(range.clone()).filter(|own| own.starts_with('<')) {
            edits.push((range, line_ends(own)));
        }
    }
    Ok(edited(text, edits))
}

/// A sheet that usvg reads.
fn is_sheet(node: &Node<'_, '_>) -> bool {
    let kind = node.attribute("type").unwrap_or("");
    node.is_element() && node.tag_name().name() == "style" && matches!(kind, "" | "text/css")
}

fn line_ends(text: &str) -> String {
    text.chars().filter(|c| *c == '\n').collect()
}

/// An author's own properties, `--ink`, by their names.
type OwnProperties = Rc<HashMap<String, String>>;

struct StyleCascade {
    rules: CssRules,
    own: HashMap<NodeId, OwnProperties>,
    /// Elements, of selectors, and declarations that may still be looked at.
    work: usize,
}

impl StyleCascade {
    fn of(sheets: &[Node<'_, '_>]) -> Result<Self, DesignError> {
        let mut rules = CssRules::default();
        for sheet in sheets {
            let media = sheet.attribute("media").unwrap_or("").trim();
            if !matches!(media, "" | "all" | "screen") {
                let rule = format!("media={media}");
                return Err(css::unread(&rule, "a style sheet with a condition"));
            }
            let texts: String = sheet.children().filter_map(|child| child.text()).collect();
            rules.read(&texts)?;
        }
        rules.rules.sort_by_key(|rule| rule.selector.specificity);
        Ok(Self {
            rules,
            own: HashMap::new(),
            work: MATCHES_MAX,
        })
    }

    /// Returns the edits of the text by which an element gets its styles.
    fn edits(&mut self, text: &str, node: Node<'_, '_>) -> Result<Vec<SvgEdit>, DesignError> {
        let said = self.declarations(node)?;
        let own = self.own_properties(node, &said)?;
        let tag = node.tag_name().name();
        let mut style = String::new();
        let mut edits = Vec::new();
        for one in said {
            let is_geometry = is_geometry(tag, &one.name);
            if !is_geometry && !KEPT.contains(&one.name.as_str()) {
                continue;
            }
            if CALLS.iter().any(|call| one.value.contains(call)) {
                self.work = spent(self.work, CALLS_STEPS)?;
            }
            let value = plain(&one, &own);
            match attribute_value(node, &one.name, &value).filter(|_| is_geometry) {
                Some(value) => edits.extend(attribute(text, node, &one.name, &value)),
                None if is_geometry && says_nothing(node, &one.name, &value) => {}
                None if refers_to_own_marker(node, &value) => {}
                None => {
                    let _ = write!(style, "{}:{};", one.name, escaped(&value));
                }
            }
        }
        if let Some(old) = node.attribute_node("style") {
            let range = old.range_value();
            let lines = text.get(range.clone()).map(line_ends).unwrap_or_default();
            edits.push((range, style + &lines));
        } else if !style.is_empty() {
            edits.extend(new_attribute(text, node, "style", &style));
        }
        Ok(edits)
    }

    /// The last word on each property, in the order in which they were said.
    fn declarations(&mut self, node: Node<'_, '_>) -> Result<Vec<CssDeclaration>, DesignError> {
        let mut said: Vec<CssDeclaration> = odd_paints(node).collect();
        for rule in &self.rules.rules {
            let mut steps = 0;
            if rule.selector.matches(node, &mut steps) {
                let block = self.rules.blocks.get(rule.block);
                let block = block.map_or(&[][..], Vec::as_slice);
                steps += block.len() * DECLARATION_STEPS;
                said.extend_from_slice(block);
            }
            self.work = spent(self.work, steps)?;
        }
        said.extend(css::declarations(node.attribute("style").unwrap_or("")));
        // What is important comes last; fonts too, for usvg reads a style up to a font's name that it does not know.
        said.sort_by_key(|one| (one.name.starts_with("font"), one.is_important));
        let mut seen = HashSet::new();
        said.reverse();
        said.retain(|one| seen.insert(one.name.clone()));
        said.reverse();
        Ok(said)
    }

    /// The author's own properties at an element: those of its parent, and what it says itself.
    fn own_properties(
        &mut self,
        node: Node<'_, '_>,
        said: &[CssDeclaration],
    ) -> Result<OwnProperties, DesignError> {
        let above = node.parent().and_then(|above| self.own.get(&above.id()));
        let mut own = above.cloned().unwrap_or_default();
        let new = said.iter().filter(|one| one.name.starts_with("--"));
        let new: Vec<_> = new
            .map(|one| (one.name.clone(), one.value.clone()))
            .collect();
        if !new.is_empty() {
            self.work = spent(self.work, own.len())?;
            Rc::make_mut(&mut own).extend(new);
        }
        self.own.insert(node.id(), Rc::clone(&own));
        Ok(own)
    }
}

/// Paints of attributes in words that usvg does not know, as the least of what is said.
fn odd_paints(node: Node<'_, '_>) -> impl Iterator<Item = CssDeclaration> {
    ["fill", "stroke"].into_iter().filter_map(move |name| {
        let value = node.attribute(name)?;
        let is_odd = !css_limits::is_paint(value);
        is_odd.then(|| CssDeclaration {
            name: name.to_owned(),
            value: value.trim().to_owned(),
            is_important: false,
        })
    })
}

fn spent(work: usize, steps: usize) -> Result<usize, DesignError> {
    let left = work.checked_sub(steps);
    left.ok_or_else(|| too_many("steps to apply style rules", MATCHES_MAX))
}

/// A value with the author's own properties put in, in words that usvg knows; as it is where that cannot be done.
fn plain(one: &CssDeclaration, own: &OwnProperties) -> String {
    let value = substituted(&one.value, own, CALLS_MAX).unwrap_or_else(|| one.value.clone());
    let value = match value.split_once(" icc-color(") {
        Some((colour, _)) => colour.to_owned(),
        None => value,
    };
    match (one.name.as_str(), value.to_ascii_lowercase().as_str()) {
        ("transform", lower) => lower
            .replace("px", "")
            .replace("deg", "")
            .replace("skewx", "skewX")
            .replace("skewy", "skewY"),
        ("fill" | "stroke", "currentcolor") => "currentColor".to_owned(),
        ("fill", "initial") => "black".to_owned(),
        ("stroke", "initial") => "none".to_owned(),
        // As browsers read what editors write for no value.
        ("fill" | "stroke", "unset" | "revert" | "revert-layer" | "" | "null" | "undefined") => {
            "inherit".to_owned()
        }
        (_, "none") => "none".to_owned(),
        (_, "inherit") => "inherit".to_owned(),
        _ => value,
    }
}

/// Replaces `var()` by what it stands for, or its fallback, and `light-dark()` by the value for white paper.
fn substituted(value: &str, own: &OwnProperties, calls: usize) -> Option<String> {
    if value.len() > VALUE_MAX {
        return None;
    }
    let calls_in = CALLS.into_iter();
    let found = calls_in.filter_map(|call| Some((value.find(call)?, call)));
    let Some((at, call)) = found.min() else {
        return Some(value.to_owned());
    };
    let (before, rest) = (value.get(..at)?, value.get(at + call.len()..)?);
    let inside = css::split(rest, ')').next()?;
    let behind = rest.get(inside.len() + 1..)?;
    let mut arguments = css::split(inside, ',');
    let first = arguments.next()?.trim();
    let instead = match call {
        "var(" => match own.get(first) {
            Some(value) => value.as_str(),
            None => inside.split_once(',')?.1.trim(),
        },
        _ => first,
    };
    let value = format!("{before}{instead}{behind}");
    substituted(&value, own, calls.checked_sub(1)?)
}

/// A length or path data as an attribute has it; none for what is none.
fn attribute_value(node: Node<'_, '_>, name: &str, value: &str) -> Option<String> {
    if name == "d" {
        let inside = value.strip_prefix("path(")?.strip_suffix(')')?.trim();
        return (inside.len() > 1).then(|| inside.trim_matches(['"', '\'']).to_owned());
    }
    grammar::length(value)?;
    let is_page = node.parent_element().is_none();
    (!is_page || !node.has_attribute(name) && !value.ends_with('%')).then(|| value.to_owned())
}

/// Returns whether a value leaves the geometry as it is: for the page, also a share of a browser's window and a size
/// that is its attribute's.
fn says_nothing(node: Node<'_, '_>, name: &str, value: &str) -> bool {
    let px = |value| grammar::length(value).map(|(n, unit)| (n, unit.trim_start_matches("px")));
    let said = px(value).filter(|(_, unit)| *unit != "%");
    let own = node.attribute(name);
    let is_page = node.parent_element().is_none();
    value == "auto" && own.is_none() || is_page && (said.is_none() || said == own.and_then(px))
}

fn attribute(text: &str, node: Node<'_, '_>, name: &str, value: &str) -> Option<SvgEdit> {
    let value = escaped(value);
    match node.attribute_node(name) {
        Some(old) => Some((old.range_value(), value)),
        None => new_attribute(text, node, name, &value),
    }
}

/// A new attribute, in the quotes of the element's others: in an entity only these may stand.
fn new_attribute(text: &str, node: Node<'_, '_>, name: &str, value: &str) -> Option<SvgEdit> {
    let mut others = node.attributes().map(|other| other.range_value().start);
    let before = others.next().and_then(|start| text.get(..start));
    let is_single = before.is_some_and(|before| before.ends_with('\''));
    let quote = if is_single { '\'' } else { '"' };
    let attribute = format!(" {name}={quote}{value}{quote}");
    Some((behind_name(text, node)?, attribute))
}

/// A rule for all lines is for those of a marker too, on which it is not drawn again.
fn refers_to_own_marker(node: Node<'_, '_>, value: &str) -> bool {
    let is_inside = |id: &str| {
        let mut above = node.ancestors();
        above.any(|above| above.tag_name().name() == "marker" && above.attribute("id") == Some(id))
    };
    super::expansion_limits::links(value).any(is_inside)
}

fn escaped(value: &str) -> String {
    let value = value.replace('&', "&amp;").replace('<', "&lt;");
    let value = value.replace('"', "&quot;").replace('\'', "&apos;");
    value.replace('\n', " ")
}
