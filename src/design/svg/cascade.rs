//! Resolves style sheets and `style` attributes into each element's own `style`, and CSS geometry
//! into its attributes. usvg supports less of CSS, and would apply rules to the elements that
//! replace text, which they are not meant for.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::rc::Rc;

use usvg::roxmltree::{Document, Node, NodeId};

use super::super::{DesignCaps, DesignError};
use super::css::{self, CssDeclaration, CssRules};
use super::css_limits;
use super::expansion_limits::{GROWTH_MAX, MATCHES_MAX, too_many};
use super::grammar;
use super::normalize_units::{SvgEdit, after_tag_name, apply_edits};
use super::unsupported::is_svg;

/// Properties that affect what is drawn, or that a note or a refusal is about; the rest changes no
/// line.
const KEPT: [&str; 49] = [
    "animation",
    "animation-name",
    "baseline-shift",
    "clip-path",
    "clip-rule",
    "color",
    "direction",
    "dominant-baseline",
    "display",
    "fill",
    "fill-opacity",
    "fill-rule",
    "filter",
    "font",
    "font-family",
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
    "text-transform",
    "transform",
    "transform-box",
    "transform-origin",
    "translate",
    "unicode-bidi",
    "vector-effect",
    "visibility",
    "white-space",
    "word-spacing",
    "writing-mode",
];

/// Longest value after substitution: `var(--a)` may hold `var(--b)` twice, and so on.
const VALUE_MAX: usize = 1_000;

/// Most calls of `var()` and `light-dark()` substituted in one value.
const CALLS_MAX: usize = 16;

/// Functions that are replaced by their value.
const CALLS: [&str; 2] = ["var(", "light-dark("];

/// Cost of a declaration that applies, in elements examined, and of one with functions.
const DECLARATION_STEPS: usize = 4;
const CALLS_STEPS: usize = 64;

/// Returns whether a property may change a line.
pub(super) fn matters(name: &str) -> bool {
    KEPT.contains(&name) || GEOMETRY.iter().any(|(_, names)| names.contains(&name))
}

/// Geometry of elements that CSS may set.
const GEOMETRY: [(&str, &[&str]); 7] = [
    ("path", &["d"]),
    ("circle", &["cx", "cy", "r"]),
    ("ellipse", &["cx", "cy", "rx", "ry"]),
    ("rect", &["x", "y", "width", "height", "rx", "ry"]),
    ("image", &["x", "y", "width", "height"]),
    ("svg", &["x", "y", "width", "height"]),
    ("use", &["x", "y"]),
];

/// Returns whether a CSS property is geometry of an element.
pub(super) fn is_geometry(tag: &str, name: &str) -> bool {
    let mut rows = GEOMETRY.iter();
    rows.any(|(element, names)| *element == tag && names.contains(&name))
}

/// Returns the file with all its styles in `style` attributes, or `None` if it has no styles. Line
/// numbers stay the same.
pub(super) fn inline_styles(
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
        let added = cascade.edits(text, node)?;
        bytes += added.iter().map(|(_, new)| new.len()).sum::<usize>();
        if bytes > bytes_max {
            return Err(too_many("bytes of styles", bytes_max));
        }
        edits.extend(added);
    }
    for sheet in sheets {
        let range = sheet.range();
        if let Some(source) = text.get(range.clone()).filter(|s| s.starts_with('<')) {
            edits.push((range, line_ends(source)));
        }
    }
    Ok(apply_edits(text, edits))
}

/// Returns whether a node is a style sheet that usvg reads.
fn is_sheet(node: &Node<'_, '_>) -> bool {
    let kind = node.attribute("type").unwrap_or("");
    node.is_element() && node.tag_name().name() == "style" && matches!(kind, "" | "text/css")
}

fn line_ends(text: &str) -> String {
    text.chars().filter(|c| *c == '\n').collect()
}

/// Custom properties, such as `--ink`, by name.
type CustomProperties = Rc<HashMap<String, String>>;

struct StyleCascade {
    rules: CssRules,
    custom: HashMap<NodeId, CustomProperties>,
    /// Remaining elements and declarations that may be examined.
    work: usize,
}

impl StyleCascade {
    fn of(sheets: &[Node<'_, '_>]) -> Result<Self, DesignError> {
        let mut rules = CssRules::default();
        for sheet in sheets {
            let media = sheet.attribute("media").unwrap_or("").trim();
            if !matches!(media, "" | "all" | "screen") {
                let rule = format!("media={media}");
                return Err(css::rule_error(&rule, "a style sheet with a condition"));
            }
            let css: String = sheet.children().filter_map(|child| child.text()).collect();
            rules.read(&css)?;
        }
        rules.rules.sort_by_key(|rule| rule.selector.specificity);
        Ok(Self {
            rules,
            custom: HashMap::new(),
            work: MATCHES_MAX,
        })
    }

    /// Returns the edits of the text that give an element its styles.
    fn edits(&mut self, text: &str, node: Node<'_, '_>) -> Result<Vec<SvgEdit>, DesignError> {
        let declarations = self.declarations(node)?;
        let custom = self.custom_properties(node, &declarations)?;
        let tag = node.tag_name().name();
        let mut style = String::new();
        let mut edits = Vec::new();
        for declaration in declarations {
            let is_geometry = is_geometry(tag, &declaration.name);
            if !is_geometry && !KEPT.contains(&declaration.name.as_str()) {
                continue;
            }
            if CALLS.iter().any(|call| declaration.value.contains(call)) {
                self.work = spend(self.work, CALLS_STEPS)?;
            }
            let value = resolved_value(&declaration, &custom);
            match attribute_value(node, &declaration.name, &value).filter(|_| is_geometry) {
                Some(value) => edits.extend(set_attribute(text, node, &declaration.name, &value)),
                None if is_geometry && changes_nothing(node, &declaration.name, &value) => {}
                None if refers_to_own_marker(node, &value) => {}
                None => {
                    let _ = write!(style, "{}:{};", declaration.name, escape_attribute(&value));
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

    /// Returns the winning declaration of each property, in source order.
    fn declarations(&mut self, node: Node<'_, '_>) -> Result<Vec<CssDeclaration>, DesignError> {
        let mut declarations: Vec<CssDeclaration> = unsupported_paints(node).collect();
        for rule in &self.rules.rules {
            let mut steps = 0;
            if rule.selector.matches(node, &mut steps) {
                let block = self.rules.blocks.get(rule.block);
                let block = block.map_or(&[][..], Vec::as_slice);
                steps += block.len() * DECLARATION_STEPS;
                declarations.extend_from_slice(block);
            }
            self.work = spend(self.work, steps)?;
        }
        declarations.extend(css::declarations(node.attribute("style").unwrap_or("")));
        // Important declarations come last; fonts too, because usvg stops reading a style at a font
        // name that it does not know.
        let rank = |name: &str| (name.starts_with("font"), name == "font-family");
        declarations.sort_by_key(|d| (rank(&d.name), d.is_important));
        let mut seen = HashSet::new();
        declarations.reverse();
        declarations.retain(|declaration| seen.insert(declaration.name.clone()));
        declarations.reverse();
        Ok(declarations)
    }

    /// Returns the custom properties at an element: those of its parent, and its own.
    fn custom_properties(
        &mut self,
        node: Node<'_, '_>,
        declarations: &[CssDeclaration],
    ) -> Result<CustomProperties, DesignError> {
        let parent = node.parent().and_then(|up| self.custom.get(&up.id()));
        let mut custom = parent.cloned().unwrap_or_default();
        let new: Vec<_> = (declarations.iter())
            .filter(|declaration| declaration.name.starts_with("--"))
            .map(|declaration| (declaration.name.clone(), declaration.value.clone()))
            .collect();
        if !new.is_empty() {
            self.work = spend(self.work, custom.len())?;
            Rc::make_mut(&mut custom).extend(new);
        }
        self.custom.insert(node.id(), Rc::clone(&custom));
        Ok(custom)
    }
}

/// Returns paint attributes that usvg does not support, as declarations of the lowest priority.
fn unsupported_paints(node: Node<'_, '_>) -> impl Iterator<Item = CssDeclaration> {
    ["fill", "stroke"].into_iter().filter_map(move |name| {
        let value = node.attribute(name)?;
        let is_unsupported = !css_limits::is_paint(value);
        is_unsupported.then(|| CssDeclaration {
            name: name.to_owned(),
            value: value.trim().to_owned(),
            is_important: false,
        })
    })
}

fn spend(work: usize, steps: usize) -> Result<usize, DesignError> {
    let remaining = work.checked_sub(steps);
    remaining.ok_or_else(|| too_many("steps to apply style rules", MATCHES_MAX))
}

/// Returns a value with custom properties substituted and in terms that usvg supports; unchanged
/// where that is not possible.
fn resolved_value(declaration: &CssDeclaration, custom: &CustomProperties) -> String {
    let value = substitute(&declaration.value, custom, CALLS_MAX)
        .unwrap_or_else(|| declaration.value.clone());
    let value = match value.split_once(" icc-color(") {
        Some((colour, _)) => colour.to_owned(),
        None => value,
    };
    let lower = value.to_ascii_lowercase();
    match (declaration.name.as_str(), lower.as_str()) {
        ("transform", lower) => lower
            .replace("px", "")
            .replace("deg", "")
            .replace("skewx", "skewX")
            .replace("skewy", "skewY"),
        ("fill" | "stroke", "currentcolor") => "currentColor".to_owned(),
        ("fill", "initial") => "black".to_owned(),
        ("stroke", "initial") => "none".to_owned(),
        // Browsers read what editors write for no value as `inherit`.
        ("fill" | "stroke", "unset" | "revert" | "revert-layer" | "" | "null" | "undefined") => {
            "inherit".to_owned()
        }
        (_, "none") => "none".to_owned(),
        (_, "inherit") => "inherit".to_owned(),
        _ => value,
    }
}

/// Replaces `var()` by its value or fallback, and `light-dark()` by the value for white paper.
fn substitute(value: &str, custom: &CustomProperties, calls_left: usize) -> Option<String> {
    if value.len() > VALUE_MAX {
        return None;
    }
    let found = (CALLS.into_iter()).filter_map(|call| Some((value.find(call)?, call)));
    let Some((at, call)) = found.min() else {
        return Some(value.to_owned());
    };
    let (before, rest) = (value.get(..at)?, value.get(at + call.len()..)?);
    let inside = css::split(rest, ')').next()?;
    let after = rest.get(inside.len() + 1..)?;
    let mut arguments = css::split(inside, ',');
    let first = arguments.next()?.trim();
    let replacement = match call {
        "var(" => match custom.get(first) {
            Some(value) => value.as_str(),
            None => inside.split_once(',')?.1.trim(),
        },
        _ => first,
    };
    let value = format!("{before}{replacement}{after}");
    substitute(&value, custom, calls_left.checked_sub(1)?)
}

/// Returns a length or path data as an attribute has it; `None` for anything else.
fn attribute_value(node: Node<'_, '_>, name: &str, value: &str) -> Option<String> {
    if name == "d" {
        let inside = value.strip_prefix("path(")?.strip_suffix(')')?.trim();
        return (inside.len() > 1).then(|| inside.trim_matches(['"', '\'']).to_owned());
    }
    grammar::length(value)?;
    let is_page = node.parent_element().is_none();
    (!is_page || !node.has_attribute(name) && !value.ends_with('%')).then(|| value.to_owned())
}

/// Returns whether a value leaves the geometry unchanged: for the page, also a percentage of the
/// browser window and a size equal to its attribute's.
fn changes_nothing(node: Node<'_, '_>, name: &str, value: &str) -> bool {
    let px = |value| grammar::length(value).map(|(n, unit)| (n, unit.trim_start_matches("px")));
    let px_value = px(value).filter(|(_, unit)| *unit != "%");
    let attribute = node.attribute(name);
    let is_page = node.parent_element().is_none();
    value == "auto" && attribute.is_none()
        || is_page && (px_value.is_none() || px_value == attribute.and_then(px))
}

fn set_attribute(text: &str, node: Node<'_, '_>, name: &str, value: &str) -> Option<SvgEdit> {
    let value = escape_attribute(value);
    match node.attribute_node(name) {
        Some(old) => Some((old.range_value(), value)),
        None => new_attribute(text, node, name, &value),
    }
}

/// Returns a new attribute, in the quotes of the element's others: an entity allows no other
/// quotes.
fn new_attribute(text: &str, node: Node<'_, '_>, name: &str, value: &str) -> Option<SvgEdit> {
    let mut others = node.attributes().map(|other| other.range_value().start);
    let before = others.next().and_then(|start| text.get(..start));
    let is_single = before.is_some_and(|before| before.ends_with('\''));
    let quote = if is_single { '\'' } else { '"' };
    let attribute = format!(" {name}={quote}{value}{quote}");
    Some((after_tag_name(text, node)?, attribute))
}

/// Returns whether a value refers to a marker around the element: a rule for all lines also applies
/// to those of a marker, on which the marker is not drawn again.
fn refers_to_own_marker(node: Node<'_, '_>, value: &str) -> bool {
    let is_inside = |id: &str| {
        let mut ancestors = node.ancestors();
        ancestors.any(|node| node.tag_name().name() == "marker" && node.attribute("id") == Some(id))
    };
    super::expansion_limits::url_ids(value).any(is_inside)
}

fn escape_attribute(value: &str) -> String {
    let value = value.replace('&', "&amp;").replace('<', "&lt;");
    let value = value.replace('"', "&quot;").replace('\'', "&apos;");
    value.replace('\n', " ")
}
