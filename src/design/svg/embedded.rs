//! Finds the one `<svg>` element of a text that holds other things around it: a page of HTML, a Markdown file, a language
//! model's answer.

use std::ops::Range;

use super::super::design_error::quoted;
use super::super::{ChoiceWords, DesignError};
use super::bare_elements;
use super::repair_form::next_piece;

/// Note on what stood around the drawing.
const TAKEN_OUT: &str = "only the file's svg element is read; the text around it is ignored";

/// Mark before and behind a piece of code in Markdown.
const FENCE: &str = "```";

/// Most elements that a refusal lists.
const LISTED_MAX: usize = 5;

/// Elements of HTML whose content is no markup.
const RAW_TEXT: [&str; 4] = ["script", "style", "textarea", "title"];

/// Returns the text with everything outside of its only `<svg>` element left out, and a note; `None` for a text that is that
/// element alone, or has none. Line numbers stay the same.
///
/// # Errors
/// Several elements: where each of them is. In a call, anything around it but a code fence.
pub(super) fn taken_out(
    text: &str,
    words: ChoiceWords,
) -> Result<Option<(String, String)>, DesignError> {
    let scan = MarkupScan::of(text);
    if scan.is_cut_off {
        return Ok(None);
    }
    let range = match scan.elements.as_slice() {
        [] => return Ok(None),
        [one] if scan.around(text, one).iter().all(|side| is_space(side)) => return Ok(None),
        _ if scan.first_tag.is_some_and(bare_elements::is_drawn) => return Ok(None),
        // Words around it may take the call back.
        [one] if words == ChoiceWords::Call && !is_fence(&scan.around(text, one)) => {
            let accepted = "the svg element alone, without words around it";
            return Err(DesignError::syntax(
                "the SVG",
                "other text beside the svg element",
                accepted,
            ));
        }
        [one] => one.clone(),
        all => return Err(several(text, all)),
    };
    let lines_before = text.get(..range.start).unwrap_or_default();
    let line_ends = "\n".repeat(lines_before.matches('\n').count());
    let element = text.get(range).unwrap_or_default();
    Ok(Some((line_ends + element, TAKEN_OUT.to_owned())))
}

fn several(text: &str, elements: &[Range<usize>]) -> DesignError {
    let place = |range: &Range<usize>| {
        let before = text.get(..range.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let tag = next_piece(text.get(range.start..).unwrap_or_default()).0;
        format!("line {line} {}", quoted(tag))
    };
    let places: Vec<String> = elements.iter().take(LISTED_MAX).map(place).collect();
    let more = elements.len() - places.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let found = format!(
        "{} svg elements: {}{more}",
        elements.len(),
        places.join(", ")
    );
    DesignError::syntax(
        "the file",
        found,
        "one drawing. Next: keep only the one that you mean",
    )
}

/// The `<svg>` elements of a text that lie in no other.
#[derive(Default)]
struct MarkupScan<'t> {
    elements: Vec<Range<usize>>,
    /// The first tag.
    first_tag: Option<&'t str>,
    /// Places of prologs and comments, which are no content.
    silent: Vec<Range<usize>>,
    /// True if an element has no end; one without attributes may be a word of a sentence.
    is_cut_off: bool,
    /// Names of elements of raw text that nothing further on ends.
    endless: Vec<&'static str>,
}

impl<'t> MarkupScan<'t> {
    fn of(text: &'t str) -> Self {
        let mut scan = Self::default();
        let mut open = Vec::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with('<') && !is_markup(rest) {
                at += 1;
                continue;
            }
            let (piece, is_content) = next_piece(rest);
            let range = at..at + piece.len();
            at = range.end;
            if !piece.starts_with('<') {
                continue;
            }
            if !is_content {
                scan.silent.push(range);
                continue;
            }
            scan.first_tag.get_or_insert(piece);
            scan.add_tag(piece, range, &mut open);
            // Markup in a script is no element of the page.
            if open.is_empty() {
                at += scan.raw_text_length(piece, text.get(at..).unwrap_or_default());
            }
        }
        let has_attributes = |start: &usize| {
            let tag = next_piece(text.get(*start..).unwrap_or_default()).0;
            tag.contains('=')
        };
        scan.is_cut_off = open.iter().any(has_attributes);
        scan
    }

    fn add_tag(&mut self, tag: &str, range: Range<usize>, open: &mut Vec<usize>) {
        let name = tag_name(tag);
        let local_name = name.rsplit(':').next().unwrap_or_default();
        if !local_name.eq_ignore_ascii_case("svg") {
            return;
        }
        let start = match tag.starts_with("</") {
            true => open.pop(),
            false if tag.ends_with("/>") => Some(range.start),
            false => {
                open.push(range.start);
                None
            }
        };
        let Some(start) = start else { return };
        // An element around others takes their place.
        self.elements.retain(|inner| inner.start < start);
        self.elements.push(start..range.end);
    }

    /// Returns the length of the raw text that follows a tag.
    fn raw_text_length(&mut self, tag: &str, after: &str) -> usize {
        let name = tag_name(tag);
        let raw = RAW_TEXT
            .into_iter()
            .find(|raw| name.eq_ignore_ascii_case(raw));
        let Some(raw) = raw.filter(|raw| !tag.starts_with("</") && !self.endless.contains(raw))
        else {
            return 0;
        };
        let is_end = |(at, _): &(usize, &str)| {
            let name = after.get(at + 2..at + 2 + raw.len());
            name.is_some_and(|name| name.eq_ignore_ascii_case(raw))
        };
        let end = after.match_indices("</").find(is_end);
        if end.is_none() {
            self.endless.push(raw);
        }
        end.map_or(0, |(at, _)| at)
    }

    /// Returns what stands before and behind an element, without prologs and comments.
    fn around(&self, text: &str, element: &Range<usize>) -> [String; 2] {
        let content = |range: Range<usize>| {
            let (mut content, mut from) = (String::new(), range.start);
            let is_inside = |one: &&Range<usize>| one.start >= range.start && one.end <= range.end;
            for one in self.silent.iter().filter(is_inside) {
                content += text.get(from..one.start).unwrap_or_default();
                from = one.end;
            }
            content + text.get(from..range.end).unwrap_or_default()
        };
        [content(0..element.start), content(element.end..text.len())]
    }
}

/// Returns whether a code fence of Markdown is all that stands around an element.
fn is_fence([before, after]: &[String; 2]) -> bool {
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}';
    let language = before.trim_matches(is_blank).strip_prefix(FENCE);
    let is_word = |language: &str| {
        language
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '+')
    };
    language.is_some_and(is_word) && after.trim_matches(is_blank) == FENCE
}

fn is_space(text: &str) -> bool {
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}';
    text.chars().all(is_blank)
}

/// Returns whether a `<` begins a tag, a comment or the like.
fn is_markup(rest: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?' | '_');
    rest.chars().nth(1).is_some_and(begins)
}

/// Returns the name of a tag's element.
fn tag_name(tag: &str) -> &str {
    let name = tag.trim_start_matches(['<', '/']);
    let end = name.find(|c: char| c.is_ascii_whitespace() || matches!(c, '>' | '/'));
    name.get(..end.unwrap_or(name.len())).unwrap_or_default()
}
