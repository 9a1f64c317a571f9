//! Counts what an SVG would expand to with every reference followed, before anything follows them.
//!
//! A file of one kilobyte can say "ten of that, which is ten of that, …". The count takes time
//! proportional to the file's length.

use std::collections::HashMap;

use usvg::roxmltree::{Attribute, Document, Node, NodeId};

use super::super::design_error::quoted;
use super::super::{DesignCaps, DesignError};
use super::grammar;

/// Largest depth of nested elements with references followed; well within any thread's stack.
const DEPTH_MAX: usize = 100;

/// Most rules of style sheets times elements, which bounds the matching.
pub(super) const MATCHES_MAX: usize = 20_000_000;

/// Largest growth of attributes when references are followed, as a multiple of the file's cap.
pub(super) const GROWTH_MAX: usize = 4;

/// Cost of an element, including its children and references.
#[derive(Clone, Copy, Default)]
struct ElementCost {
    elements: usize,
    /// Bytes of attributes; a path never has more vertices.
    bytes: usize,
    depth: usize,
}

impl ElementCost {
    fn add(&mut self, other: Self) {
        self.elements = self.elements.saturating_add(other.elements);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.depth = self.depth.max(other.depth);
    }

    fn add_times(&mut self, other: Self, times: usize) {
        self.add(Self {
            elements: other.elements.saturating_mul(times),
            bytes: other.bytes.saturating_mul(times),
            depth: other.depth,
        });
    }
}

/// Refuses a document that is too deep, too large or that refers to itself.
pub(super) fn check(document: &Document<'_>, caps: &DesignCaps) -> Result<(), DesignError> {
    refuse_deep_nesting(document)?;
    refuse_huge_numbers(document)?;
    let mut expansion = ExpansionCensus::new(document);
    let total = expansion.cost_of(document.root_element(), 0)?;
    if total.elements > caps.elements_max {
        return Err(too_many("elements, references followed", caps.elements_max));
    }
    let bytes_max = caps.bytes_max.saturating_mul(GROWTH_MAX);
    if total.bytes > bytes_max {
        return Err(too_many("bytes, references followed", bytes_max));
    }
    refuse_long_matching(document, total.elements)
}

pub(super) fn too_many(what: &'static str, max: usize) -> DesignError {
    DesignError::TooMany {
        at: "the file".to_owned(),
        what,
        max,
    }
}

fn refuse_deep_nesting(document: &Document<'_>) -> Result<(), DesignError> {
    // Parents come first, so one pass finds all depths without recursion.
    let mut depths: HashMap<_, usize> = HashMap::new();
    for node in document.descendants() {
        let parent_depth = node.parent().and_then(|up| depths.get(&up.id()));
        let depth = parent_depth.map_or(0, |depth| depth + 1);
        if depth > DEPTH_MAX {
            return Err(too_deep(node));
        }
        depths.insert(node.id(), depth);
    }
    Ok(())
}

fn too_deep(node: Node<'_, '_>) -> DesignError {
    DesignError::TooMany {
        at: name_of(node),
        what: "levels of nesting",
        max: DEPTH_MAX,
    }
}

/// Largest number: beyond it usvg cuts an arc into segments forever.
const NUMBER_MAX: f64 = 1e9;

fn refuse_huge_numbers(document: &Document<'_>) -> Result<(), DesignError> {
    for node in document.descendants() {
        let values = node.attributes().filter(|a| has_numbers(a));
        let css = (node.tag_name().name() == "style").then(|| node.text().unwrap_or(""));
        let huge = values.map(|a| a.value()).chain(css).find_map(huge_number);
        if let Some(number) = huge {
            let found = format!("the number {}", quoted(number));
            return Err(invalid(node, found, format!("numbers up to ±{NUMBER_MAX}")));
        }
    }
    Ok(())
}

/// Returns whether an attribute's numbers are drawn: not a name's, nor those of a program's own attributes, such as its version.
fn has_numbers(attribute: &Attribute<'_, '_>) -> bool {
    let name = attribute.name();
    let is_text = matches!(name, "id" | "class" | "href" | "font-family" | "version");
    let is_own =
        attribute.namespace().is_some() || name.starts_with("data-") || name.starts_with("aria-");
    !is_text && !is_own
}

/// Returns the first number in `text` that is too large. Words and colours such as `#1e99` are not numbers.
fn huge_number(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric() || c == '#') {
        let token = rest.get(start..)?;
        let is_number = token.starts_with(|c: char| c.is_ascii_digit());
        let length = if is_number {
            grammar::number_length(token)
        } else {
            word_length(token)
        };
        let (number, next) = token.split_at_checked(length.max(1))?;
        let value = number.parse::<f64>().unwrap_or(0.0);
        if is_number && value > NUMBER_MAX {
            return Some(number);
        }
        rest = next;
    }
    None
}

/// Returns the length of a word. Path data may follow a command's letter directly, so only colours
/// are longer than one letter.
fn word_length(token: &str) -> usize {
    let is_colour = token.starts_with('#');
    let end = token.find(|c: char| !(c == '#' || is_colour && c.is_ascii_alphanumeric()));
    end.unwrap_or(token.len())
}

/// Returns the error for an element that is not valid SVG.
pub(super) fn invalid(
    node: Node<'_, '_>,
    found: impl Into<String>,
    accepted: impl Into<String>,
) -> DesignError {
    DesignError::syntax(name_of(node), found, accepted)
}

/// Returns the error for an element that cannot be drawn.
pub(super) fn undrawable(
    node: Node<'_, '_>,
    found: impl Into<String>,
    fix: impl Into<String>,
) -> DesignError {
    DesignError::unsupported(name_of(node), found, fix)
}

/// Returns the name of an element for messages.
pub(super) fn name_of(node: Node<'_, '_>) -> String {
    let tag = Some(node.tag_name().name()).filter(|tag| !tag.is_empty());
    let tag = tag.unwrap_or("text");
    let row = node.document().text_pos_at(node.range().start).row;
    match node.attribute("id") {
        Some(id) => format!("{tag} {} on line {row}", quoted(id)),
        None => format!("{tag} on line {row}"),
    }
}

fn refuse_long_matching(document: &Document<'_>, elements: usize) -> Result<(), DesignError> {
    let bytes = styles(document).flat_map(str::bytes);
    let rules = bytes.filter(|byte| matches!(byte, b'{' | b',')).count();
    if rules.saturating_mul(elements) > MATCHES_MAX {
        return Err(too_many("style rules times elements", MATCHES_MAX));
    }
    Ok(())
}

/// Returns the texts of all style sheets.
pub(super) fn styles<'a>(document: &'a Document<'_>) -> impl Iterator<Item = &'a str> {
    document
        .descendants()
        .filter(|node| node.tag_name().name() == "style")
        .flat_map(|node| node.children().filter_map(|child| child.text()))
}

struct ExpansionCensus<'d, 'i> {
    by_id: HashMap<&'d str, Node<'d, 'i>>,
    /// `None` while the cost is being computed.
    costs: HashMap<NodeId, Option<ElementCost>>,
    sheet_links: Vec<&'d str>,
}

impl<'d, 'i> ExpansionCensus<'d, 'i> {
    fn new(document: &'d Document<'i>) -> Self {
        let mut by_id = HashMap::new();
        for node in document.descendants() {
            if let Some(id) = node.attribute("id") {
                by_id.entry(id).or_insert(node);
            }
        }
        Self {
            by_id,
            costs: HashMap::new(),
            sheet_links: styles(document).flat_map(url_ids).collect(),
        }
    }

    fn cost_of(&mut self, node: Node<'d, 'i>, level: usize) -> Result<ElementCost, DesignError> {
        match self.costs.get(&node.id()) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err(refers_to_itself(node)),
            None => {}
        }
        if level > DEPTH_MAX {
            return Err(too_deep(node));
        }
        self.costs.insert(node.id(), None);
        let cost = self.new_cost(node, level)?;
        if level + cost.depth > DEPTH_MAX {
            return Err(too_deep(node));
        }
        self.costs.insert(node.id(), Some(cost));
        Ok(cost)
    }

    fn new_cost(&mut self, node: Node<'d, 'i>, level: usize) -> Result<ElementCost, DesignError> {
        let mut cost = ElementCost {
            elements: 1,
            bytes: node.attributes().map(|a| a.value().len()).sum(),
            depth: 0,
        };
        for child in node.children().filter(Node::is_element) {
            cost.add(self.cost_of(child, level + 1)?);
        }
        for href in node.attributes().filter(|a| a.name() == "href") {
            let id = href.value().trim().strip_prefix('#');
            if let Some(target) = id.and_then(|id| self.target(id)) {
                cost.add(self.cost_of(target, level + 1)?);
            }
        }
        let below = cost;
        for target in self.referenced_by(node, level) {
            let more = self.cost_of(target, level + 1)?;
            cost.add_times(more, times(target, below));
        }
        cost.depth += 1;
        Ok(cost)
    }

    fn target(&self, id: &str) -> Option<Node<'d, 'i>> {
        self.by_id.get(id).copied()
    }

    /// Returns the elements referenced by `url(#…)`; for the root also those referenced by style sheets.
    fn referenced_by(&self, node: Node<'d, 'i>, level: usize) -> Vec<Node<'d, 'i>> {
        let own = node.attributes().flat_map(|a| url_ids(a.value()));
        let sheet = self.sheet_links.iter().copied().filter(|_| level == 0);
        own.chain(sheet).filter_map(|id| self.target(id)).collect()
    }
}

/// Returns how often a referenced element may be drawn.
fn times(target: Node<'_, '_>, below: ElementCost) -> usize {
    match target.tag_name().name() {
        // Drawn at every vertex below. No vertex is shorter than "1 1 " or "h1".
        "marker" => below.elements + below.bytes / 2,
        // Drawn for every element below.
        "pattern" => below.elements,
        _ => 1,
    }
}

fn refers_to_itself(node: Node<'_, '_>) -> DesignError {
    undrawable(
        node,
        "an element that refers to itself",
        "remove the reference",
    )
}

/// Returns the ids in all `url(#id)` of an attribute or style sheet.
pub(super) fn url_ids(text: &str) -> impl Iterator<Item = &str> {
    text.split("url(").skip(1).filter_map(|rest| {
        let inside = rest.split(')').next()?;
        let id = inside.trim().trim_matches(['"', '\'']).trim();
        id.strip_prefix('#')
    })
}
