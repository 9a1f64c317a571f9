//! Rewrites an SVG's `text` elements as paths of single-line letters.
//!
//! Each becomes a group with exactly its author's attributes, so that usvg still resolves transforms,
//! colours and inherited sizes; the letters are drawn in units of `1em`.

use std::collections::HashSet;
use std::fmt::Write as _;

use usvg::roxmltree::{Document, Node};

use super::super::DesignError;
use super::super::design_error::quoted;
use super::super::letters::{CAPITAL_EM, SPACE_AFTER, TextLine, lay_out_line};
use super::css_limits::referred;
use super::expansion_limits::{name_of, undrawable, wrong};
use super::grammar;

/// Marks the paths that are letters. Ids of an author may begin like this and do no harm: their
/// areas are then not closed.
const LETTERS_ID: &str = "single-line-letters-";

/// Largest number of letters in a file.
const LETTERS_MAX: usize = 20_000;

/// Returns whether a path with this id is letters.
pub(super) fn is_letters(id: &str) -> bool {
    id.starts_with(LETTERS_ID)
}

/// The file with its words drawn, none where it has no words.
pub(super) fn as_paths(
    source: &str,
    document: &Document<'_>,
) -> Result<Option<String>, DesignError> {
    refuse_other_words(document)?;
    let is_outermost = |node: &Node<'_, '_>| {
        is(*node, "text") && !node.ancestors().skip(1).any(|above| is(above, "text"))
    };
    let texts = document.descendants().filter(is_outermost);
    let texts: Vec<_> = texts.filter(|text| !is_hidden(*text)).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    refuse_clips_of_text(document, &texts)?;
    let mut redrawn = String::with_capacity(source.len());
    let mut writer = LetterWriter::default();
    let mut done = 0;
    for text in texts {
        let range = text.range();
        let before = source.get(done..range.start);
        let own = source.get(range.clone()).filter(|own| own.starts_with('<'));
        let (Some(before), Some(own)) = (before, own) else {
            return Err(from_an_entity(text));
        };
        redrawn.push_str(before);
        writer.text(text, own, &mut redrawn)?;
        done = range.end;
    }
    redrawn.push_str(source.get(done..).unwrap_or(""));
    Ok(Some(redrawn))
}

/// Refuses to clip by letters, which are lines here and have no inside.
fn refuse_clips_of_text(
    document: &Document<'_>,
    texts: &[Node<'_, '_>],
) -> Result<(), DesignError> {
    let ids = texts.iter().filter_map(|text| text.attribute("id"));
    let ids: HashSet<_> = ids.collect();
    let of_text = |node: &Node<'_, '_>| {
        let of_one = || referred(*node).is_some_and(|id| ids.contains(id));
        is(*node, "text") || is(*node, "use") && of_one()
    };
    let clips = document.descendants().filter(|node| is(*node, "clipPath"));
    let mut clipping = clips.flat_map(|clip| clip.descendants());
    match clipping.find(|node| of_text(node) && !is_hidden(*node)) {
        None => Ok(()),
        Some(node) => Err(undrawable(
            node,
            "a clip path of text",
            "turn the text into paths",
        )),
    }
}

/// Returns whether an element, or what it is in, is switched off.
fn is_hidden(node: Node<'_, '_>) -> bool {
    node.ancestors()
        .any(|above| property(above, "display").map(str::trim) == Some("none"))
}

fn is(node: Node<'_, '_>, name: &str) -> bool {
    node.is_element() && node.tag_name().name() == name
}

fn from_an_entity(node: Node<'_, '_>) -> DesignError {
    undrawable(
        node,
        "text from an entity",
        "write the text where it stands",
    )
}

/// Refuses visible text that usvg drops silently.
fn refuse_other_words(document: &Document<'_>) -> Result<(), DesignError> {
    let is_other = |node: &Node<'_, '_>| {
        let has_words = || {
            let mut texts = node.descendants().filter_map(|inner| inner.text());
            texts.any(|text| !text.trim().is_empty())
        };
        let is_foreign = is(*node, "foreignObject") && !has_alternative(*node);
        (is_foreign || is(*node, "flowRoot")) && !is_hidden(*node) && has_words()
    };
    match document.descendants().find(is_other) {
        None => Ok(()),
        Some(node) => Err(undrawable(
            node,
            "flowing text",
            "turn it into plain text or into paths",
        )),
    }
}

/// Returns whether an element is meant for one program only, or stands in a `switch` with something to draw behind it.
pub(super) fn has_alternative(node: Node<'_, '_>) -> bool {
    if node.has_attribute("requiredExtensions") {
        return true;
    }
    let is_in_switch = node.parent().is_some_and(|above| is(above, "switch"));
    is_in_switch && node.next_siblings().skip(1).any(|next| next.is_element())
}

/// A coordinate as its author wrote it, and what was added in pixels and in ems.
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
        let said = grammar::length(length).filter(|(value, _)| value.is_finite());
        match said {
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
                let accepted = "a number, perhaps with em, ex, px, mm, cm, in, pt or pc";
                return Err(wrong(node, found, accepted));
            }
        }
        Ok(())
    }
}

/// Letters that share what encloses them.
struct LetterRun {
    /// Attributes of the spans around it, outermost first.
    spans: Vec<String>,
    line: TextLine,
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
    letters: usize,
    paths: usize,
}

impl LetterWriter {
    fn text(&mut self, text: Node<'_, '_>, own: &str, to: &mut String) -> Result<(), DesignError> {
        let tag = start_tag(own).ok_or_else(|| from_an_entity(text))?;
        let mut layout = TextLayout {
            chunks: vec![TextChunk {
                x: TextCoordinate::at("0"),
                y: TextCoordinate::at("0"),
                ..TextChunk::default()
            }],
            spans: Vec::new(),
            keeps_space: keeps_space(text),
            ended_with_space: true,
            letters_left: LETTERS_MAX.saturating_sub(self.letters),
        };
        let before = layout.letters_left;
        layout.element(text)?;
        self.letters += before - layout.letters_left;
        let _ = write!(to, "<{}g {}>", tag.prefix, tag.attributes);
        let (share, rise_em) = (anchor_share(text), baseline_em(text));
        for chunk in &layout.chunks {
            self.chunk(chunk, share, rise_em, tag.prefix, to);
        }
        let _ = write!(to, "</{}g>", tag.prefix);
        Ok(())
    }

    fn chunk(
        &mut self,
        chunk: &TextChunk,
        anchor_share: f64,
        rise_em: f64,
        ns: &str,
        to: &mut String,
    ) {
        let width_em = (chunk.width_em - SPACE_AFTER * CAPITAL_EM).max(0.0);
        let start = chunk.x.em - anchor_share * width_em;
        let drop = chunk.y.em + rise_em;
        for run in &chunk.runs {
            for span in &run.spans {
                let _ = write!(to, "<{ns}g {span}>");
            }
            self.paths += 1;
            let _ = write!(
                to,
                "<{ns}svg x=\"{}\" y=\"{}\" overflow=\"visible\"><{ns}svg x=\"{}\" y=\"{}\" \
                 width=\"1em\" height=\"1em\" viewBox=\"0 0 1 1\" overflow=\"visible\">\
                 <{ns}path id=\"{LETTERS_ID}{}\" d=\"",
                chunk.x.written, chunk.y.written, chunk.x.px, chunk.y.px, self.paths,
            );
            outline(&run.line, start + run.start_em, drop, to);
            let _ = write!(to, "\"/></{ns}svg></{ns}svg>");
            for _ in &run.spans {
                let _ = write!(to, "</{ns}g>");
            }
        }
    }
}

/// Path data in ems, y down.
fn outline(line: &TextLine, x_em: f64, y_em: f64, to: &mut String) {
    for stroke in &line.strokes {
        for (index, [x, y]) in stroke.iter().enumerate() {
            let verb = if index == 0 { 'M' } else { 'L' };
            let (x, y) = (x_em + x * CAPITAL_EM, y_em - y * CAPITAL_EM);
            let _ = write!(to, "{verb}{x:.5} {y:.5}");
        }
    }
}

struct StartTag<'s> {
    /// With its colon, or empty.
    prefix: &'s str,
    attributes: &'s str,
}

/// An element's own source, from its `<`.
fn start_tag(own: &str) -> Option<StartTag<'_>> {
    let mut quote = None;
    let end = own.bytes().position(|byte| match (quote, byte) {
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
    let inside = own.get(1..end)?;
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
    keeps_space: bool,
    ended_with_space: bool,
    letters_left: usize,
}

impl TextLayout {
    fn element(&mut self, node: Node<'_, '_>) -> Result<(), DesignError> {
        refuse_odd_attributes(node)?;
        let mut positions = LetterPositions::of(node);
        self.place(&mut positions, node)?;
        for child in node.children() {
            if child.is_text() {
                self.words(child.text().unwrap_or(""), &mut positions, node)?;
            } else if child.is_element() {
                self.child(child)?;
            }
        }
        Ok(())
    }

    fn child(&mut self, child: Node<'_, '_>) -> Result<(), DesignError> {
        match child.tag_name().name() {
            "title" | "desc" | "metadata" => Ok(()),
            "tspan" | "a" => {
                let source = child.document().input_text().get(child.range());
                let tag = source.and_then(start_tag);
                let tag = tag.ok_or_else(|| from_an_entity(child))?;
                self.spans.push(tag.attributes.to_owned());
                self.element(child)?;
                self.spans.pop();
                Ok(())
            }
            other => Err(undrawable(
                child,
                format!("`{}` inside a text", other.escape_debug()),
                "use plain text and tspan, or turn the text into paths",
            )),
        }
    }

    fn words(
        &mut self,
        text: &str,
        positions: &mut LetterPositions<'_>,
        node: Node<'_, '_>,
    ) -> Result<(), DesignError> {
        let text = self.spaced(text);
        let mut run = String::new();
        for letter in text.chars() {
            let left = self.letters_left.checked_sub(1);
            self.letters_left = left.ok_or_else(|| DesignError::TooMany {
                at: name_of(node),
                what: "letters",
                max: LETTERS_MAX,
            })?;
            if positions.letter_has_its_own() {
                self.run(&std::mem::take(&mut run), node)?;
                self.place(positions, node)?;
            }
            positions.letter += 1;
            run.push(letter);
        }
        self.run(&run, node)
    }

    /// White space as XML's `xml:space` says.
    fn spaced(&mut self, text: &str) -> String {
        let mut spaced = String::with_capacity(text.len());
        for letter in text.chars() {
            let is_space = letter.is_ascii_whitespace();
            if !(is_space && self.ended_with_space && !self.keeps_space) {
                spaced.push(if is_space { ' ' } else { letter });
            }
            self.ended_with_space = is_space;
        }
        spaced
    }

    /// Starts a chunk where the present letter has a position of its own, and shifts it.
    fn place(
        &mut self,
        positions: &mut LetterPositions<'_>,
        node: Node<'_, '_>,
    ) -> Result<(), DesignError> {
        let [x, y, dx, dy] = positions.here();
        let Some(last) = self.chunks.last() else {
            return Ok(());
        };
        let is_placed = x.is_some() || y.is_some();
        let is_shifted = dx.is_some() || dy.is_some();
        if is_placed || is_shifted && !last.runs.is_empty() {
            // It goes on behind the letters before it, but for what is said.
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

    fn run(&mut self, text: &str, node: Node<'_, '_>) -> Result<(), DesignError> {
        let Some(chunk) = self.chunks.last_mut().filter(|_| !text.is_empty()) else {
            return Ok(());
        };
        let line = lay_out_line(text)
            .map_err(|error| undrawable(node, error.to_string(), "turn the text into paths"))?;
        let start_em = chunk.width_em;
        chunk.width_em += line.advance * CAPITAL_EM;
        chunk.runs.push(LetterRun {
            spans: self.spans.clone(),
            line,
            start_em,
        });
        Ok(())
    }
}

/// The coordinates that an element gives its letters one by one.
struct LetterPositions<'n> {
    /// Of x, y, dx and dy.
    lists: [Vec<&'n str>; 4],
    letter: usize,
}

impl<'n> LetterPositions<'n> {
    fn of(node: Node<'n, '_>) -> Self {
        let lists = ["x", "y", "dx", "dy"].map(|name| {
            let value = node.attribute(name).unwrap_or("");
            let words = value.split(|c: char| c == ',' || c.is_ascii_whitespace());
            words.filter(|word| !word.is_empty()).collect()
        });
        Self { lists, letter: 0 }
    }

    /// Returns the present letter's own x, y, dx and dy.
    fn here(&self) -> [Option<&'n str>; 4] {
        let lists = self.lists.each_ref();
        lists.map(|list| list.get(self.letter).copied())
    }

    fn letter_has_its_own(&self) -> bool {
        self.letter > 0 && self.here().iter().any(Option::is_some)
    }
}

fn refuse_odd_attributes(node: Node<'_, '_>) -> Result<(), DesignError> {
    let is_odd = |name: &str, plain: &[&str]| {
        let value = property(node, name).map(str::trim);
        value.is_some_and(|value| !plain.contains(&value))
    };
    let odd = [
        ("rotate", &["0", "auto"][..]),
        (
            "writing-mode",
            &["lr", "lr-tb", "horizontal-tb", "rl", "rl-tb"],
        ),
    ];
    match odd.iter().find(|(name, plain)| is_odd(name, plain)) {
        None => Ok(()),
        Some((name, _)) => Err(undrawable(
            node,
            format!("text with `{name}`"),
            "remove it, or turn the text into paths",
        )),
    }
}

/// A property from the element's `style` or else its attribute.
pub(super) fn property<'n>(node: Node<'n, '_>, name: &str) -> Option<&'n str> {
    styled(node, name).or_else(|| node.attribute(name))
}

/// A property from the element's `style`, into which all style rules are written before.
pub(super) fn styled<'n>(node: Node<'n, '_>, name: &str) -> Option<&'n str> {
    let mut rules = styles(node);
    rules.find_map(|(key, value)| (key == name).then_some(value))
}

/// The properties in an element's `style`, from the last to the first.
pub(super) fn styles<'n>(node: Node<'n, '_>) -> impl Iterator<Item = (&'n str, &'n str)> {
    let style = node.attribute("style").unwrap_or("");
    let rules = style.rsplit(';').filter_map(|rule| rule.split_once(':'));
    rules.map(|(key, value)| (key.trim(), value.trim()))
}

fn inherited<'n>(node: Node<'n, 'n>, name: &str) -> Option<&'n str> {
    node.ancestors().find_map(|above| property(above, name))
}

fn keeps_space(node: Node<'_, '_>) -> bool {
    let space = |above: Node<'_, '_>| {
        let value = above.attribute(("http://www.w3.org/XML/1998/namespace", "space"));
        value.map(|value| value == "preserve")
    };
    node.ancestors().find_map(space).unwrap_or(false)
}

/// Returns the share of its width that a text stands before its place.
fn anchor_share(text: Node<'_, '_>) -> f64 {
    // A span may have an anchor of its own; editors write it on the text.
    let spans = text.descendants().find_map(|n| property(n, "text-anchor"));
    match spans.or_else(|| inherited(text, "text-anchor")) {
        Some("middle") => 0.5,
        Some("end") => 1.0,
        _ => 0.0,
    }
}

/// Returns the distance of the baseline below the given y.
fn baseline_em(text: Node<'_, '_>) -> f64 {
    let named = inherited(text, "dominant-baseline");
    match named {
        Some("middle") => 0.24,
        Some("central") => CAPITAL_EM / 2.0,
        Some("hanging" | "text-before-edge" | "text-top") => CAPITAL_EM,
        _ => 0.0,
    }
}
