//! Rewrites an SVG's `text` elements as paths of single-line letters.
//!
//! Each becomes a group with its author's exact attributes, so that usvg still resolves transforms,
//! colours and inherited sizes; the letters are drawn in units of `1em`.

use std::collections::HashSet;
use std::fmt::Write as _;

use usvg::roxmltree::{Document, Node};

use super::super::DesignError;
use super::super::design_error::quoted;
use super::super::letters::{CAPITAL_EM, StrokeFont, TextLine, borrowed_notes, lay_out_in};
use super::css_limits::href_id;
use super::expansion_limits::{invalid, name_of, undrawable};
use super::grammar;

/// Id prefix of paths that are letters. An author's id may begin like this without harm: such areas
/// are just not closed.
const LETTERS_ID: &str = "single-line-letters-";

/// The same of letters in the very font that the file names.
const OWN_FONT_ID: &str = "single-line-letters-own-font-";

/// Most letters in a file.
const LETTERS_MAX: usize = 20_000;

/// Returns whether a path with this id is letters.
pub(super) fn is_letters(id: &str) -> bool {
    id.starts_with(LETTERS_ID)
}

/// Returns whether a path with this id is letters in another font than the file names.
pub(super) fn is_in_another_font(id: &str) -> bool {
    is_letters(id) && !id.starts_with(OWN_FONT_ID)
}

/// A file with its text as paths.
pub(super) struct TextAsPaths {
    pub(super) source: String,
    /// Notes on letters that come from another font.
    pub(super) notes: Vec<String>,
}

/// Returns the file with its text as paths, or `None` if it has no text. Without `font` each text has its own, if that is one
/// of the single-line fonts, or the default.
pub(super) fn as_paths(
    source: &str,
    document: &Document<'_>,
    font: Option<StrokeFont>,
) -> Result<Option<TextAsPaths>, DesignError> {
    let texts = visible_texts(document)?;
    if texts.is_empty() {
        return Ok(None);
    }
    let mut rewritten = String::with_capacity(source.len());
    let mut writer = LetterWriter {
        font,
        ..LetterWriter::default()
    };
    let mut position = 0;
    for text in texts {
        let range = text.range();
        let before = source.get(position..range.start);
        let element_source = source.get(range.clone()).filter(|s| s.starts_with('<'));
        let (Some(before), Some(element_source)) = (before, element_source) else {
            return Err(entity_text_error(text));
        };
        rewritten.push_str(before);
        writer.write_text(text, element_source, &mut rewritten)?;
        position = range.end;
    }
    rewritten.push_str(source.get(position..).unwrap_or(""));
    Ok(Some(TextAsPaths {
        source: rewritten,
        notes: writer.notes(),
    }))
}

/// Returns the visible texts; refuses those that cannot be drawn at all.
fn visible_texts<'d, 'i>(document: &'d Document<'i>) -> Result<Vec<Node<'d, 'i>>, DesignError> {
    refuse_dropped_text(document)?;
    let is_outermost = |node: &Node<'_, '_>| {
        is_tag(*node, "text") && !node.ancestors().skip(1).any(|above| is_tag(above, "text"))
    };
    let texts = document.descendants().filter(is_outermost);
    let texts: Vec<_> = texts.filter(|text| !is_hidden(*text)).collect();
    refuse_clips_of_text(document, &texts)?;
    Ok(texts)
}

/// Returns whether a file has text for usvg to lay out; refuses what it would leave out silently.
pub(super) fn is_for_fonts(document: &Document<'_>) -> Result<bool, DesignError> {
    let texts = visible_texts(document)?;
    let mut letters = 0;
    for node in texts.iter().flat_map(Node::descendants) {
        if node.is_element() {
            refuse_properties(node, &NOT_LAID_OUT)?;
        }
        letters += node.text().map_or(0, |text| text.chars().count());
        if node.is_text() && letters > LETTERS_MAX {
            return Err(DesignError::TooMany {
                at: node.parent_element().map_or_else(String::new, name_of),
                what: "letters",
                max: LETTERS_MAX,
            });
        }
    }
    Ok(!texts.is_empty())
}

/// Properties that usvg does not know, with the values that change nothing.
const NOT_LAID_OUT: [(&str, &[&str]); 1] = [("text-transform", &["none", "initial"])];

/// Refuses text as a clip path: its letters are lines here and have no inside.
fn refuse_clips_of_text(
    document: &Document<'_>,
    texts: &[Node<'_, '_>],
) -> Result<(), DesignError> {
    let ids: HashSet<_> = texts.iter().filter_map(|t| t.attribute("id")).collect();
    let is_text = |node: &Node<'_, '_>| {
        let refers_to_text = || href_id(*node).is_some_and(|id| ids.contains(id));
        is_tag(*node, "text") || is_tag(*node, "use") && refers_to_text()
    };
    let clips = document.descendants().filter(|n| is_tag(*n, "clipPath"));
    let mut clip_content = clips.flat_map(|clip| clip.descendants());
    match clip_content.find(|node| is_text(node) && !is_hidden(*node)) {
        None => Ok(()),
        Some(node) => Err(undrawable(
            node,
            "a clip path of text",
            "turn the text into paths",
        )),
    }
}

/// Returns whether an element or one of its ancestors is hidden.
fn is_hidden(node: Node<'_, '_>) -> bool {
    node.ancestors()
        .any(|above| property(above, "display").map(str::trim) == Some("none"))
}

fn is_tag(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

fn entity_text_error(node: Node<'_, '_>) -> DesignError {
    undrawable(
        node,
        "text from an entity",
        "write the text directly in the element",
    )
}

/// Refuses visible text that usvg drops silently.
fn refuse_dropped_text(document: &Document<'_>) -> Result<(), DesignError> {
    let is_dropped = |node: &Node<'_, '_>| {
        let has_text = || {
            let mut texts = node.descendants().filter_map(|inner| inner.text());
            texts.any(|text| !text.trim().is_empty())
        };
        let is_foreign = is_tag(*node, "foreignObject") && !has_alternative(*node);
        (is_foreign || is_tag(*node, "flowRoot")) && !is_hidden(*node) && has_text()
    };
    match document.descendants().find(is_dropped) {
        None => Ok(()),
        Some(node) => Err(undrawable(
            node,
            "flowing text",
            "turn it into plain text or into paths",
        )),
    }
}

/// Returns whether an element is meant for one program only, or is in a `switch` with an
/// alternative after it.
pub(super) fn has_alternative(node: Node<'_, '_>) -> bool {
    if node.has_attribute("requiredExtensions") {
        return true;
    }
    let is_in_switch = node.parent().is_some_and(|above| is_tag(above, "switch"));
    is_in_switch && node.next_siblings().skip(1).any(|next| next.is_element())
}

/// A coordinate as its author wrote it, and shifts in pixels and in ems.
#[derive(Clone, Debug, Default, PartialEq)]
struct TextCoordinate {
    written: String,
    px: f64,
    em: f64,
}

impl TextCoordinate {
    fn at(written: &str) -> Self {
        Self {
            written: written.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a `dx` or a `dy`.
    fn shift(&mut self, length: &str, node: Node<'_, '_>) -> Result<(), DesignError> {
        let parsed = grammar::length(length).filter(|(value, _)| value.is_finite());
        match parsed {
            Some((value, "" | "px")) => self.px += value,
            Some((value, "em")) => self.em += value,
            Some((value, "ex")) => self.em += value / 2.0,
            Some((value, "mm")) => self.px += value * 96.0 / 25.4,
            Some((value, "cm")) => self.px += value * 960.0 / 25.4,
            Some((value, "in")) => self.px += value * 96.0,
            Some((value, "pt")) => self.px += value * 96.0 / 72.0,
            Some((value, "pc")) => self.px += value * 16.0,
            _ => {
                let found = format!("the shift {}", quoted(length));
                let accepted = "a number, with or without em, ex, px, mm, cm, in, pt or pc";
                return Err(invalid(node, found, accepted));
            }
        }
        Ok(())
    }
}

/// Letters within the same spans.
struct LetterRun {
    /// Attributes of the enclosing spans, outermost first.
    spans: Vec<String>,
    line: TextLine,
    font: StrokeFont,
    /// True if the file names that font.
    is_own_font: bool,
    /// Start of the run in its chunk, in ems.
    start_em: f64,
}

/// Letters that are placed together.
#[derive(Default)]
struct TextChunk {
    x: TextCoordinate,
    y: TextCoordinate,
    runs: Vec<LetterRun>,
    width_em: f64,
}

#[derive(Default)]
struct LetterWriter {
    /// Font of all texts, whatever they name.
    font: Option<StrokeFont>,
    letters: usize,
    paths: usize,
    /// Letters from other fonts, with the font that lacks them.
    borrowed: Vec<(StrokeFont, Vec<(char, StrokeFont)>)>,
}

impl LetterWriter {
    fn notes(&self) -> Vec<String> {
        let of_font = |font: StrokeFont| {
            let borrowed = self.borrowed.iter().filter(|(by, _)| *by == font);
            let borrowed: Vec<_> = borrowed.flat_map(|(_, letters)| letters.clone()).collect();
            borrowed_notes(font, &borrowed).collect::<Vec<_>>()
        };
        StrokeFont::all().flat_map(of_font).collect()
    }

    fn write_text(
        &mut self,
        text: Node<'_, '_>,
        source: &str,
        out: &mut String,
    ) -> Result<(), DesignError> {
        let tag = parse_start_tag(source).ok_or_else(|| entity_text_error(text))?;
        let mut layout = TextLayout {
            chunks: vec![TextChunk {
                x: TextCoordinate::at("0"),
                y: TextCoordinate::at("0"),
                ..TextChunk::default()
            }],
            spans: Vec::new(),
            preserves_space: false,
            ended_with_space: true,
            is_in_word: false,
            remaining_letters: LETTERS_MAX.saturating_sub(self.letters),
            font: self.font,
        };
        let remaining_before = layout.remaining_letters;
        layout.add_element(text)?;
        self.letters += remaining_before - layout.remaining_letters;
        let _ = write!(out, "<{}g {}>", tag.prefix, tag.attributes);
        let (anchor, rise_em) = (anchor_fraction(text), baseline_em(text));
        let runs = layout.chunks.iter().flat_map(|chunk| &chunk.runs);
        let borrowed = runs.filter(|run| !run.line.borrowed.is_empty());
        self.borrowed
            .extend(borrowed.map(|run| (run.font, run.line.borrowed.clone())));
        for chunk in &layout.chunks {
            self.write_chunk(chunk, anchor, rise_em, tag.prefix, out);
        }
        let _ = write!(out, "</{}g>", tag.prefix);
        Ok(())
    }

    fn write_chunk(
        &mut self,
        chunk: &TextChunk,
        anchor: f64,
        rise_em: f64,
        prefix: &str,
        out: &mut String,
    ) {
        let space_after = chunk.runs.last().map_or(0.0, |run| run.line.space_after);
        let width_em = (chunk.width_em - space_after * CAPITAL_EM).max(0.0);
        let start_em = chunk.x.em - anchor * width_em;
        let baseline_em = chunk.y.em + rise_em;
        for run in &chunk.runs {
            for span in &run.spans {
                let _ = write!(out, "<{prefix}g {span}>");
            }
            self.paths += 1;
            let id = match run.is_own_font {
                true => OWN_FONT_ID,
                false => LETTERS_ID,
            };
            let _ = write!(
                out,
                "<{prefix}svg x=\"{}\" y=\"{}\" overflow=\"visible\"><{prefix}svg x=\"{}\" y=\"{}\" \
                 width=\"1em\" height=\"1em\" viewBox=\"0 0 1 1\" overflow=\"visible\">\
                 <{prefix}path id=\"{id}{}\" d=\"",
                chunk.x.written, chunk.y.written, chunk.x.px, chunk.y.px, self.paths,
            );
            write_path_data(&run.line, start_em + run.start_em, baseline_em, out);
            let _ = write!(out, "\"/></{prefix}svg></{prefix}svg>");
            for _ in &run.spans {
                let _ = write!(out, "</{prefix}g>");
            }
        }
    }
}

/// Writes path data in ems, y down.
fn write_path_data(line: &TextLine, x_em: f64, y_em: f64, out: &mut String) {
    for stroke in &line.strokes {
        for (index, [x, y]) in stroke.iter().enumerate() {
            let verb = if index == 0 { 'M' } else { 'L' };
            let (x, y) = (x_em + x * CAPITAL_EM, y_em - y * CAPITAL_EM);
            let _ = write!(out, "{verb}{x:.5} {y:.5}");
        }
    }
}

struct StartTag<'s> {
    /// The namespace prefix with its colon, or empty.
    prefix: &'s str,
    attributes: &'s str,
}

/// Parses the start tag from an element's source.
fn parse_start_tag(source: &str) -> Option<StartTag<'_>> {
    let mut quote = None;
    let end = source.bytes().position(|byte| match (quote, byte) {
        (None, b'>') => true,
        (None, b'"' | b'\'') => {
            quote = Some(byte);
            false
        }
        (Some(open), _) if open == byte => {
            quote = None;
            false
        }
        _ => false,
    })?;
    let inside = source.get(1..end)?;
    let inside = inside.strip_suffix('/').unwrap_or(inside);
    let name_end = inside.find(|c: char| c.is_ascii_whitespace());
    let (name, attributes) = inside.split_at(name_end.unwrap_or(inside.len()));
    let colon = name.find(':').map_or(0, |at| at + 1);
    Some(StartTag {
        prefix: name.get(..colon)?,
        attributes,
    })
}

struct TextLayout {
    chunks: Vec<TextChunk>,
    spans: Vec<String>,
    /// Of the element that is being laid out.
    preserves_space: bool,
    ended_with_space: bool,
    is_in_word: bool,
    remaining_letters: usize,
    font: Option<StrokeFont>,
}

impl TextLayout {
    fn add_element(&mut self, node: Node<'_, '_>) -> Result<(), DesignError> {
        refuse_unsupported_attributes(node)?;
        let preserved_around = std::mem::replace(&mut self.preserves_space, preserves_space(node));
        let mut positions = LetterPositions::of(node);
        self.start_chunk(&mut positions, node)?;
        for child in node.children() {
            if child.is_text() {
                self.add_text(child.text().unwrap_or(""), &mut positions, node)?;
            } else if child.is_element() {
                self.add_child(child)?;
            }
        }
        self.preserves_space = preserved_around;
        Ok(())
    }

    fn add_child(&mut self, child: Node<'_, '_>) -> Result<(), DesignError> {
        match child.tag_name().name() {
            "title" | "desc" | "metadata" => Ok(()),
            "tspan" | "a" => {
                let source = child.document().input_text().get(child.range());
                let tag = source.and_then(parse_start_tag);
                let tag = tag.ok_or_else(|| entity_text_error(child))?;
                self.spans.push(tag.attributes.to_owned());
                self.add_element(child)?;
                self.spans.pop();
                Ok(())
            }
            other => Err(undrawable(
                child,
                format!("`{}` inside a text element", other.escape_debug()),
                "use plain text and tspan, or turn the text into paths",
            )),
        }
    }

    fn add_text(
        &mut self,
        text: &str,
        positions: &mut LetterPositions<'_>,
        node: Node<'_, '_>,
    ) -> Result<(), DesignError> {
        if has_no_size(node) {
            return Ok(());
        }
        let text = self.collapse_space(text);
        let case = inherited_property(node, "text-transform").unwrap_or("none");
        let mut run = String::new();
        for c in text.chars() {
            let remaining = self.remaining_letters.checked_sub(1);
            self.remaining_letters = remaining.ok_or_else(|| DesignError::TooMany {
                at: name_of(node),
                what: "letters",
                max: LETTERS_MAX,
            })?;
            if positions.has_own_position() {
                self.push_run(&std::mem::take(&mut run), node)?;
                self.start_chunk(positions, node)?;
            }
            positions.letter += 1;
            self.push_cased(c, case, &mut run);
        }
        self.push_run(&run, node)
    }

    /// Adds a letter as CSS's `text-transform` says.
    fn push_cased(&mut self, letter: char, case: &str, run: &mut String) {
        let begins_word = letter.is_alphanumeric() && !self.is_in_word;
        self.is_in_word =
            letter.is_alphanumeric() || self.is_in_word && matches!(letter, '\'' | '’');
        match case.trim().to_ascii_lowercase().as_str() {
            "uppercase" => run.extend(letter.to_uppercase()),
            "lowercase" => run.extend(letter.to_lowercase()),
            "capitalize" if begins_word => run.extend(letter.to_uppercase()),
            _ => run.push(letter),
        }
    }

    /// Collapses white space as XML's `xml:space` and CSS's `white-space` say.
    fn collapse_space(&mut self, text: &str) -> String {
        let mut spaced = String::with_capacity(text.len());
        for c in text.chars() {
            let is_space = c.is_ascii_whitespace();
            if !(is_space && self.ended_with_space && !self.preserves_space) {
                spaced.push(if is_space { ' ' } else { c });
            }
            self.ended_with_space = is_space;
        }
        spaced
    }

    /// Starts a chunk if the current letter has its own position, and shifts it.
    fn start_chunk(
        &mut self,
        positions: &mut LetterPositions<'_>,
        node: Node<'_, '_>,
    ) -> Result<(), DesignError> {
        let [x, y, dx, dy] = positions.current();
        let Some(last) = self.chunks.last() else {
            return Ok(());
        };
        let is_placed = x.is_some() || y.is_some();
        let is_shifted = dx.is_some() || dy.is_some();
        if is_placed || is_shifted && !last.runs.is_empty() {
            // It continues after the previous letters, except for the given coordinates.
            let mut next = TextChunk {
                x: x.map_or_else(|| last.x.clone(), TextCoordinate::at),
                y: y.map_or_else(|| last.y.clone(), TextCoordinate::at),
                ..TextChunk::default()
            };
            if x.is_none() {
                next.x.em += last.width_em;
            }
            self.chunks.push(next);
        }
        let Some(chunk) = self.chunks.last_mut() else {
            return Ok(());
        };
        dx.map_or(Ok(()), |dx| chunk.x.shift(dx, node))?;
        dy.map_or(Ok(()), |dy| chunk.y.shift(dy, node))
    }

    fn push_run(&mut self, text: &str, node: Node<'_, '_>) -> Result<(), DesignError> {
        let Some(chunk) = self.chunks.last_mut().filter(|_| !text.is_empty()) else {
            return Ok(());
        };
        let own_font = inherited_property(node, "font-family").and_then(single_line_font);
        let font = self.font.or(own_font).unwrap_or_default();
        let line = lay_out_in(font, text)
            .map_err(|error| undrawable(node, error.to_string(), "turn the text into paths"))?;
        let start_em = chunk.width_em;
        chunk.width_em += line.advance * CAPITAL_EM;
        chunk.runs.push(LetterRun {
            spans: self.spans.clone(),
            line,
            font,
            is_own_font: own_font == Some(font),
            start_em,
        });
        Ok(())
    }
}

/// Returns the first single-line font of a list of families.
fn single_line_font(families: &str) -> Option<StrokeFont> {
    families.split(',').find_map(StrokeFont::of_family)
}

/// The coordinates that an element gives to single letters.
struct LetterPositions<'n> {
    /// Lists of x, y, dx and dy.
    lists: [Vec<&'n str>; 4],
    letter: usize,
}

impl<'n> LetterPositions<'n> {
    fn of(node: Node<'n, '_>) -> Self {
        let lists = ["x", "y", "dx", "dy"].map(|name| {
            let value = node.attribute(name).unwrap_or("");
            let numbers = value.split(|c: char| c == ',' || c.is_ascii_whitespace());
            numbers.filter(|number| !number.is_empty()).collect()
        });
        Self { lists, letter: 0 }
    }

    /// Returns the current letter's own x, y, dx and dy.
    fn current(&self) -> [Option<&'n str>; 4] {
        let lists = self.lists.each_ref();
        lists.map(|list| list.get(self.letter).copied())
    }

    fn has_own_position(&self) -> bool {
        self.letter > 0 && self.current().iter().any(Option::is_some)
    }
}

/// Properties that text has from what is around it too, with the values that its letters can follow.
const INHERITED_OF_TEXT: [(&str, &[&str]); 4] = [
    (
        "writing-mode",
        &["lr", "lr-tb", "horizontal-tb", "rl", "rl-tb", "initial"],
    ),
    ("direction", &["ltr", "initial"]),
    (
        "unicode-bidi",
        &["normal", "embed", "isolate", "plaintext", "initial"],
    ),
    (
        "text-transform",
        &["none", "uppercase", "lowercase", "capitalize", "initial"],
    ),
];

fn refuse_unsupported_attributes(node: Node<'_, '_>) -> Result<(), DesignError> {
    match is_odd(property(node, "rotate"), &["0", "auto"]) {
        true => Err(odd_text(node, "rotate")),
        false => refuse_properties(node, &INHERITED_OF_TEXT),
    }
}

/// Refuses properties, own or from around, with other values than those.
fn refuse_properties(
    node: Node<'_, '_>,
    properties: &[(&str, &[&str])],
) -> Result<(), DesignError> {
    let mut odd = properties.iter();
    match odd.find(|(name, plain)| is_odd(inherited_property(node, name), plain)) {
        None => Ok(()),
        Some((name, _)) => Err(odd_text(node, name)),
    }
}

fn is_odd(value: Option<&str>, plain: &[&str]) -> bool {
    let value = value.map(|value| value.trim().to_ascii_lowercase());
    value.is_some_and(|value| !plain.contains(&value.as_str()))
}

fn odd_text(node: Node<'_, '_>, name: &str) -> DesignError {
    undrawable(
        node,
        format!("text with `{name}`"),
        "remove it, or turn the text into paths",
    )
}

/// Returns a property from the element's `style`, or else its attribute.
pub(super) fn property<'n>(node: Node<'n, '_>, name: &str) -> Option<&'n str> {
    css_value(node, name).or_else(|| node.attribute(name))
}

/// Returns a property from the element's `style`, which already contains all style rules.
pub(super) fn css_value<'n>(node: Node<'n, '_>, name: &str) -> Option<&'n str> {
    let mut rules = style_properties(node);
    rules.find_map(|(key, value)| (key == name).then_some(value))
}

/// Returns the properties in an element's `style`, from the last to the first.
pub(super) fn style_properties<'n>(node: Node<'n, '_>) -> impl Iterator<Item = (&'n str, &'n str)> {
    let style = node.attribute("style").unwrap_or("");
    let rules = style.rsplit(';').filter_map(|rule| rule.split_once(':'));
    rules.map(|(key, value)| (key.trim(), value.trim()))
}

fn inherited_property<'n>(node: Node<'n, 'n>, name: &str) -> Option<&'n str> {
    let own = |above| property(above, name).filter(|value| !is_as_around(value));
    node.ancestors().find_map(own)
}

fn is_as_around(value: &str) -> bool {
    matches!(value.trim(), "" | "inherit" | "unset")
}

/// Returns whether letters have a size of 0 there, in which nothing of them is seen.
fn has_no_size(node: Node<'_, '_>) -> bool {
    let sizes = node
        .ancestors()
        .filter_map(|above| property(above, "font-size"));
    for size in sizes.filter(|size| !is_as_around(size)) {
        // A word such as `medium` is a size of its own.
        let Some((size, unit)) = grammar::length(size) else {
            return false;
        };
        let is_relative = matches!(unit, "em" | "ex" | "%");
        if size <= 0.0 || !is_relative {
            return size == 0.0;
        }
    }
    false
}

fn preserves_space(node: Node<'_, '_>) -> bool {
    let space = |above: Node<'_, '_>| {
        let of_css = property(above, "white-space").and_then(|value| {
            match &*value.trim().to_ascii_lowercase() {
                "pre" | "pre-wrap" | "break-spaces" => Some(true),
                "normal" | "nowrap" | "pre-line" | "initial" => Some(false),
                _ => None,
            }
        });
        if of_css.is_some() {
            return of_css;
        }
        let value = above.attribute(("http://www.w3.org/XML/1998/namespace", "space"));
        value.map(|value| value == "preserve")
    };
    node.ancestors().find_map(space).unwrap_or(false)
}

/// Returns the fraction of its width that a text extends before its position.
fn anchor_fraction(text: Node<'_, '_>) -> f64 {
    // A span may have its own anchor; editors write it on the text.
    let own_anchor = text.descendants().find_map(|n| property(n, "text-anchor"));
    match own_anchor.or_else(|| inherited_property(text, "text-anchor")) {
        Some("middle") => 0.5,
        Some("end") => 1.0,
        _ => 0.0,
    }
}

/// Returns the distance of the baseline below the given y.
fn baseline_em(text: Node<'_, '_>) -> f64 {
    let alignment = inherited_property(text, "dominant-baseline");
    match alignment {
        Some("middle") => 0.24,
        Some("central") => CAPITAL_EM / 2.0,
        Some("hanging" | "text-before-edge" | "text-top") => CAPITAL_EM,
        _ => 0.0,
    }
}
