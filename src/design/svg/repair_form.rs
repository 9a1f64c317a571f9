//! Repairs the form of SVG that programs, browsers and language models write although it is not well-formed XML:
//! prefixes that nothing binds, HTML's named characters, an `&` that begins none, values without quotes, shapes without
//! an end, and elements without an `<svg>` around them.

use super::bare_elements;
use super::html_entities;
use super::normalize_units::{SvgEdit, apply_edits};
use super::unquoted_values;

/// Namespaces of prefixes that have a meaning here; any other is bound to one of its own.
const NAMESPACES: [(&str, &str); 4] = [
    ("xlink", "http://www.w3.org/1999/xlink"),
    ("svg", "http://www.w3.org/2000/svg"),
    ("inkscape", "http://www.inkscape.org/namespaces/inkscape"),
    (
        "sodipodi",
        "http://sodipodi.sourceforge.net/DTD/sodipodi-0.dtd",
    ),
];

/// Characters that XML names.
const XML_ENTITIES: [&str; 5] = ["amp", "lt", "gt", "quot", "apos"];

/// Returns the file in well-formed XML, or `None` if nothing is repaired, and notes for people on what a program would not write.
/// Line numbers stay the same.
pub(super) fn repaired(text: &str) -> (Option<String>, Vec<String>) {
    let mut edits = Vec::new();
    let mut notes = Vec::new();
    let mut prefixes = PrefixCensus::default();
    let endless = bare_elements::endless_shapes(text);
    let mut first = None;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let (piece, is_content) = next_piece(rest);
        if is_content {
            entity_edits(text, piece, at, &mut edits);
            prefixes.add(piece, at);
            if piece.starts_with('<') {
                first.get_or_insert((at, piece));
                edits.extend(unquoted_values::quoting(piece, at));
                edits.extend(bare_elements::ending(&endless, piece, at));
            }
        }
        at += piece.len();
    }
    if edits.iter().any(|(_, added)| added == "\"") {
        notes.push(unquoted_values::QUOTED.to_owned());
    }
    if edits.iter().any(|(_, added)| added == "/") {
        notes.push(bare_elements::ENDED.to_owned());
    }
    edits.extend(prefixes.edit());
    if let Some(wrapping) = bare_elements::wrapping(text, first) {
        edits.extend(wrapping);
        notes.push(bare_elements::WRAPPED.to_owned());
    }
    (apply_edits(text, edits), notes)
}

/// Returns the next tag, text, comment or the like, and whether prefixes and entities count there.
pub(super) fn next_piece(rest: &str) -> (&str, bool) {
    for (open, close) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
        if rest.starts_with(open) {
            return (up_to(rest, close), false);
        }
    }
    if rest.starts_with("<!") {
        // A document type may hold declarations in brackets.
        let tag = up_to(rest, ">");
        let is_whole = !tag.contains('[') || tag.contains(']');
        return (if is_whole { tag } else { up_to(rest, "]>") }, false);
    }
    if rest.starts_with('<') {
        return (tag_of(rest), true);
    }
    let end = rest.find('<').unwrap_or(rest.len());
    (rest.get(..end).unwrap_or(rest), true)
}

fn up_to<'t>(rest: &'t str, close: &str) -> &'t str {
    let end = rest.find(close).map(|at| at + close.len());
    end.and_then(|end| rest.get(..end)).unwrap_or(rest)
}

/// Returns a tag up to its `>` outside quotes.
fn tag_of(rest: &str) -> &str {
    let mut quote = None;
    for (at, character) in rest.char_indices() {
        match (quote, character) {
            (None, '>') => return rest.get(..=at).unwrap_or(rest),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    rest
}

/// Adds an edit for each `&` that XML does not know.
fn entity_edits(text: &str, piece: &str, at: usize, edits: &mut Vec<SvgEdit>) {
    for (start, _) in piece.match_indices('&') {
        let after = piece.get(start + 1..).unwrap_or_default();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '#' | '_' | '-' | '.');
        let length = after.find(|c: char| !is_name(c)).unwrap_or(after.len());
        let (name, behind) = after.split_at(length);
        let from = at + start;
        if !behind.starts_with(';') || name.is_empty() {
            edits.push((from..from + 1, "&amp;".to_owned()));
            continue;
        }
        let is_known = name.starts_with('#') || XML_ENTITIES.contains(&name);
        let is_declared = || text.contains(&format!("<!ENTITY {name} "));
        if is_known || is_declared() {
            continue;
        }
        if let Some(character) = html_entities::character(name) {
            edits.push((from..from + name.len() + 2, character.to_string()));
        }
    }
}

/// Prefixes of elements and attributes, and those that the first element binds.
#[derive(Default)]
struct PrefixCensus<'t> {
    used: Vec<&'t str>,
    bound: Vec<&'t str>,
    /// Position behind the first element's name.
    root: Option<usize>,
}

impl<'t> PrefixCensus<'t> {
    fn add(&mut self, tag: &'t str, at: usize) {
        let Some(inside) = tag.strip_prefix('<').filter(|name| !name.starts_with('/')) else {
            return;
        };
        let name_end = inside.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'));
        let name_end = name_end.unwrap_or(inside.len());
        let is_root = self.root.is_none();
        self.root.get_or_insert(at + 1 + name_end);
        for name in names(inside) {
            match name.split_once(':') {
                Some(("xmlns", prefix)) if is_root => self.bound.push(prefix),
                Some(("xmlns" | "xml" | "", _)) | None => {}
                Some((prefix, _)) if self.used.contains(&prefix) => {}
                Some((prefix, _)) => self.used.push(prefix),
            }
        }
    }

    /// Returns the edit that binds the prefixes at the first element.
    fn edit(self) -> Option<SvgEdit> {
        let unbound = self
            .used
            .iter()
            .filter(|prefix| !self.bound.contains(prefix));
        let bindings = unbound.map(|prefix| {
            let known = NAMESPACES.iter().find(|(name, _)| name == prefix);
            let namespace =
                known.map_or_else(|| format!("unbound:{prefix}"), |(_, uri)| (*uri).to_owned());
            format!(" xmlns:{prefix}=\"{namespace}\"")
        });
        let bindings: String = bindings.collect();
        let root = self.root.filter(|_| !bindings.is_empty())?;
        Some((root..root, bindings))
    }
}

/// Returns the names of a tag and of its attributes.
fn names(tag: &str) -> impl Iterator<Item = &str> {
    // What is in quotes are values.
    let mut quote = None;
    let outside = tag.split(move |c: char| match (quote, c) {
        (None, '"' | '\'') => {
            quote = Some(c);
            true
        }
        (Some(open), _) if open == c => {
            quote = None;
            true
        }
        _ => false,
    });
    let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/' | '>');
    let names = outside.step_by(2).flat_map(move |part| part.split(is_end));
    names.filter(|name| !name.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn prefixes_that_nothing_binds_are_bound_at_the_first_element() {
        let text = "<?xml version=\"1.0\"?><!-- a:b --><svg\nx=\"q:r\"><g bx:grid='1' xlink:href=\"#a\"/><sketch:type/></svg>";
        let repaired = repaired(text).0.unwrap();
        assert!(repaired.contains(
            "<svg xmlns:bx=\"unbound:bx\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" xmlns:sketch=\"unbound:sketch\"\nx="
        ), "{repaired}");
    }

    #[test]
    fn entities_of_html_and_lone_ampersands_are_characters() {
        for (text, expected) in [
            ("<t>A&nbsp;&copy;&#65;</t>", Some("<t>A\u{a0}©&#65;</t>")),
            ("<t a='x & y'>R&D</t>", Some("<t a='x &amp; y'>R&amp;D</t>")),
            ("<t>&lt;&#x41;&amp;</t>", None),
            ("<!DOCTYPE t [<!ENTITY copy \"c\">]><t>&copy;</t>", None),
            ("<t><![CDATA[a & b]]><!-- & --></t>", None),
            ("<svg:svg xmlns:svg='u' xml:space='preserve'/>", None),
        ] {
            assert_eq!(repaired(text).0.as_deref(), expected, "{text}");
        }
    }
}
