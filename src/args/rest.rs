//! Finds what of a text is accounted for by nothing: the source without the arguments that were read and the tokens of form.
//!
//! The parsers do not take part. Each key and value that they found may be found once in the source, in their order, and
//! what else stands there has to be a blank, a mark, or a token of a closed list. So a parser that skips words makes doubt,
//! and no motion.

use super::{
    candidates::CandidateReading,
    form_repair::{FormRepair, FormRepairs},
    form_token::{self, FormToken, MarkPlace, TokenSide, is_blank},
    name::{self, NameResolution},
    parsed_value::{self, ParsedValue},
    quote::{self, QuoteMatching, QuotePosition},
    thought,
    unbracketed::percent_decoded,
};
use std::{borrow::Cow, ops::Range};

/// Most pieces of one text that are told apart; the remainder is one more.
const PIECES_MAX: usize = 32;

/// Bytes of quoted texts that are decoded to compare them, for one text.
const DECODED_BYTES_MAX: usize = 4 << 20;

/// A text as it was at one level of decoding, and the part of it that was decoded to the level below.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TextLevel {
    pub(super) source: String,
    /// `None` where the arguments themselves were read.
    pub(super) decoded: Option<String>,
}

/// Returns the pieces of a reading's source, at every level, that nothing accounts for. `tools` are the tool's own names.
pub(super) fn rest(candidate: &CandidateReading, tools: &[String]) -> Vec<String> {
    let mut pieces = Vec::new();
    for level in &candidate.levels {
        let source = level.read_source(candidate);
        for scan in level.scans(&source, candidate, tools) {
            pieces.extend(scan.pieces());
        }
    }
    pieces
}

impl TextLevel {
    /// Returns the text in which the arguments were read.
    fn read_source(&self, candidate: &CandidateReading) -> Cow<'_, str> {
        let is_encoded = self.decoded.is_none() && candidate.forms.contains(FormRepair::UrlEncoded);
        let decoded = is_encoded.then(|| percent_decoded(&self.source.replace('+', " ")));
        match decoded.flatten() {
            Some(decoded) => decoded.into(),
            None => self.source.as_str().into(),
        }
    }

    /// Returns the walks that are due over the text of this level: over all of it, or around the part that was decoded.
    fn scans<'a>(
        &'a self,
        source: &'a str,
        candidate: &'a CandidateReading,
        tools: &'a [String],
    ) -> Vec<SourceScan<'a>> {
        let Some(decoded) = &self.decoded else {
            return vec![SourceScan::new(source, candidate, tools)];
        };
        let parts = source.split_once(decoded.as_str());
        let (before, after) = parts.unwrap_or((source, ""));
        let around = |part, place| SourceScan::around(part, place, candidate, tools);
        vec![
            around(before, MarkPlace::Before),
            around(after, MarkPlace::Behind),
        ]
    }
}

/// A key or a value that was read.
enum ReadAtom<'a> {
    Text(Cow<'a, str>),
    Bool(bool),
    Null,
    /// An empty list or object.
    Empty,
}

/// A walk over one text that consumes what is accounted for.
struct SourceScan<'a> {
    text: &'a str,
    at: usize,
    atoms: Vec<ReadAtom<'a>>,
    next: usize,
    /// Number of atoms up to the last one that has letters of its own.
    stated: usize,
    /// The place of the whole text beside arguments that stand in another.
    around: Option<MarkPlace>,
    /// True once the arguments have begun: a thought counts only before them.
    begun: bool,
    /// Number of the label that may come next.
    next_label: usize,
    /// True if the same arguments may stand several times.
    may_repeat: bool,
    tools: &'a [String],
    callee: Option<&'a str>,
    /// True within a call's tag, where attributes of its own may stand.
    in_tag: bool,
    /// True directly behind a special token, where a role may stand.
    after_token: bool,
    /// True behind the special token of a call.
    after_call_token: bool,
    decoded_bytes_left: usize,
    /// Closed thoughts before the arguments.
    thoughts: Vec<Range<usize>>,
    rest: Vec<Range<usize>>,
}

impl<'a> SourceScan<'a> {
    fn new(text: &'a str, candidate: &'a CandidateReading, tools: &'a [String]) -> Self {
        let mut atoms = Vec::new();
        gather(&candidate.node, &mut atoms);
        let is_stated = |atom: &ReadAtom<'_>| match atom {
            ReadAtom::Text(text) => !text.is_empty() && text != SUPPLIED_KEY,
            ReadAtom::Bool(_) => true,
            ReadAtom::Null | ReadAtom::Empty => false,
        };
        Self {
            stated: atoms.iter().rposition(is_stated).map_or(0, |last| last + 1),
            atoms,
            may_repeat: candidate.forms.contains(FormRepair::Repeated),
            ..Self::of(text, candidate, tools)
        }
    }

    /// Walks over a text before or behind the part in which the arguments stand.
    fn around(
        text: &'a str,
        place: MarkPlace,
        candidate: &'a CandidateReading,
        tools: &'a [String],
    ) -> Self {
        Self {
            around: Some(place),
            begun: place == MarkPlace::Behind,
            ..Self::of(text, candidate, tools)
        }
    }

    fn of(text: &'a str, candidate: &'a CandidateReading, tools: &'a [String]) -> Self {
        Self {
            text,
            at: 0,
            atoms: Vec::new(),
            next: 0,
            stated: 0,
            around: None,
            begun: false,
            next_label: 0,
            may_repeat: false,
            tools,
            callee: candidate.tool.as_deref(),
            in_tag: false,
            after_token: false,
            after_call_token: false,
            decoded_bytes_left: DECODED_BYTES_MAX,
            thoughts: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// Returns the pieces that nothing accounts for; pieces with only blanks and marks between them are one.
    fn pieces(mut self) -> Vec<String> {
        while self.at < self.text.len() {
            if self.rest.len() == PIECES_MAX {
                self.rest.push(self.at..self.text.len());
                break;
            }
            if !self.consume() {
                self.leave();
            }
        }
        // Arguments that stand nowhere else were read in a thought, which is no call.
        if self.next < self.stated {
            self.rest.append(&mut self.thoughts);
        }
        let pieces = self
            .rest
            .iter()
            .filter_map(|span| self.text.get(span.clone()));
        pieces.map(|piece| piece.trim().to_owned()).collect()
    }

    /// Consumes one blank, argument, token or mark; returns whether there is one.
    fn consume(&mut self) -> bool {
        let rest = self.rest_of_text();
        let blank = rest.len() - rest.trim_start_matches(is_blank).len();
        if blank > 0 {
            self.at += blank;
            return true;
        }
        if !self.begun
            && let Some(bytes) = thought::closed_length(rest)
        {
            self.thoughts.push(self.at..self.at + bytes);
            self.at += bytes;
            return true;
        }
        let is_after_token = std::mem::take(&mut self.after_token);
        let is_tag = self.before().ends_with('<');
        let place = self.place();
        if self.consume_atom() || (place != MarkPlace::Behind && self.consume_callee()) {
            self.begun = true;
            self.in_tag |= is_tag;
            return true;
        }
        let before = self.before().trim_end_matches([' ', '\t', '*', '|', '>']);
        let begins_line = before.is_empty() || before.ends_with('\n') || is_after_token;
        self.consume_token(place, begins_line, is_after_token)
            || self.consume_mark(place, begins_line)
    }

    /// Returns where the walk is beside the arguments.
    fn place(&self) -> MarkPlace {
        match self.around {
            Some(place) => place,
            None if self.may_repeat || self.stated == 0 => MarkPlace::Outside,
            None if self.next == 0 => MarkPlace::Before,
            None if self.next < self.stated => MarkPlace::Inside,
            None => MarkPlace::Behind,
        }
    }

    /// Consumes a token, unless it ends a call before the arguments or begins one behind them.
    fn consume_token(&mut self, place: MarkPlace, begins_line: bool, is_after_token: bool) -> bool {
        let rest = self.rest_of_text();
        let token = match form_token::at(rest, begins_line) {
            Some(token) => Some(token),
            None if is_after_token => form_token::role_at(rest, self.after_call_token),
            None if self.in_tag => form_token::attribute_at(rest),
            None => self.closing_tag(),
        };
        let Some(FormToken {
            bytes,
            begins_tag,
            is_special,
            is_call,
            side,
        }) = token
        else {
            return false;
        };
        let is_of_this_call = match side {
            TokenSide::Opens(Some(label)) if label < self.next_label => false,
            TokenSide::Opens(_) => place != MarkPlace::Behind,
            TokenSide::Closes => place != MarkPlace::Before,
            TokenSide::Either => true,
        };
        if !is_of_this_call || !(begins_tag || bytes == 0 || self.is_boundary(bytes)) {
            return false;
        }
        if let TokenSide::Opens(Some(label)) = side {
            self.next_label = label + 1;
        }
        self.in_tag |= begins_tag;
        self.after_token = is_special;
        self.after_call_token = is_special && is_call;
        self.at += bytes;
        true
    }

    fn consume_mark(&mut self, place: MarkPlace, begins_line: bool) -> bool {
        let rest = self.rest_of_text();
        // What closes before the arguments is a call without any: `<stroke/>`.
        let is_empty_tag = place == MarkPlace::Before && self.in_tag && rest.starts_with("/>");
        let is_bracket = rest.starts_with(form_token::is_bracket);
        let place = match self.in_tag && !is_bracket {
            true => MarkPlace::Inside,
            false => place,
        };
        let Some(bytes) = form_token::mark_at(rest, begins_line, place).filter(|_| !is_empty_tag)
        else {
            return false;
        };
        self.begun |= rest.starts_with(form_token::is_opening);
        self.in_tag &= !rest.starts_with('>');
        self.at += bytes;
        true
    }

    /// Leaves the word or sign that comes next.
    fn leave(&mut self) {
        let rest = self.rest_of_text();
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '’');
        let word = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = self.at + word.max(first);
        let between = |last: &Range<usize>| self.text.get(last.end..self.at);
        let is_joined = self.rest.last().and_then(between).is_some_and(|between| {
            between
                .chars()
                .all(|c| is_blank(c) || (form_token::is_mark(c) && !"{}[]".contains(c)))
        });
        match self.rest.last_mut().filter(|_| is_joined) {
            Some(last) => last.end = end,
            None => self.rest.push(self.at..end),
        }
        self.at = end;
    }

    fn before(&self) -> &'a str {
        self.text.get(..self.at).unwrap_or_default()
    }

    fn rest_of_text(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns whether no word goes on at the end of the next `bytes`, nor began before them.
    fn is_boundary(&self, bytes: usize) -> bool {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let rest = self.rest_of_text();
        let own = rest.get(..bytes).unwrap_or_default();
        let after = rest.get(bytes..).unwrap_or_default();
        let begins_inside = own.starts_with(is_word) && self.before().ends_with(is_word);
        let ends_inside = own.ends_with(is_word) && after.starts_with(is_word);
        !begins_inside && !ends_inside
    }

    /// Consumes the next key or value that was read, if it stands here.
    fn consume_atom(&mut self) -> bool {
        if self.next == self.atoms.len() && self.may_repeat {
            self.next = 0;
        }
        // What has no letters of its own stands nowhere, and so may the key that a syntax supplies.
        let mut next = self.next;
        while next < self.atoms.len() {
            if let Some(bytes) = self.atom_length(next) {
                self.at += bytes;
                self.next = next + 1;
                return true;
            }
            match self.atoms.get(next) {
                Some(ReadAtom::Text(text)) if text.is_empty() || text == SUPPLIED_KEY => next += 1,
                Some(ReadAtom::Null | ReadAtom::Empty) => next += 1,
                _ => break,
            }
        }
        false
    }

    /// Returns the bytes of the source that the atom of this index takes here.
    fn atom_length(&mut self, index: usize) -> Option<usize> {
        let rest = self.rest_of_text();
        let word = form_token::leading_word(rest);
        let text = match self.atoms.get(index)? {
            ReadAtom::Bool(value) => {
                let is_value = word.eq_ignore_ascii_case(if *value { "true" } else { "false" });
                return (is_value && self.is_boundary(word.len())).then_some(word.len());
            }
            ReadAtom::Null => {
                let is_null = !word.is_empty() && parsed_value::is_nothing(word);
                return (is_null && self.is_boundary(word.len())).then_some(word.len());
            }
            ReadAtom::Empty => {
                let inside = rest.strip_prefix(['{', '[', '('])?.trim_start();
                return inside
                    .starts_with(['}', ']', ')'])
                    .then(|| rest.len() - inside.len() + 1);
            }
            ReadAtom::Text(text) if text.is_empty() => return None,
            ReadAtom::Text(text) => text.as_ref(),
        };
        if rest.starts_with(text) && self.is_boundary(text.len()) {
            return Some(text.len());
        }
        quoted_length(rest, text, &mut self.decoded_bytes_left)
    }

    /// Consumes the tool's own name, or the name that was called, which is judged elsewhere; with the end of the heading that it
    /// may be: `[stroke]`.
    fn consume_callee(&mut self) -> bool {
        let Some(bytes) = self.callee_length() else {
            return false;
        };
        let behind = self.rest_of_text().get(bytes..).unwrap_or_default();
        let is_heading = self.before().ends_with('[') && behind.starts_with("]\n");
        self.at += bytes + usize::from(is_heading);
        true
    }

    fn callee_length(&self) -> Option<usize> {
        let rest = self.rest_of_text();
        if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            return None;
        }
        if let Some(callee) = self.callee
            && rest.starts_with(callee)
            && self.is_boundary(callee.len())
        {
            return Some(callee.len() + count_length(rest.get(callee.len()..)?));
        }
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
        let end = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
        let run = rest.get(..end).unwrap_or_default();
        let uncounted = run
            .rfind(':')
            .filter(|at| count_length(run.get(*at..).unwrap_or_default()) > 0);
        let uncounted = run.get(..uncounted.unwrap_or(end)).unwrap_or(run);
        let trimmed = uncounted.trim_end_matches(['.', ':', '-', '/']);
        let is_own = !trimmed.is_empty()
            && name::foreign_namespace(trimmed, self.tools).is_none()
            && matches!(
                name::resolve(trimmed, self.tools),
                NameResolution::Resolved { .. }
            );
        is_own.then(|| match trimmed == uncounted {
            true => run.len(),
            false => trimmed.len(),
        })
    }

    /// Returns the closing tag of a parameter that was read.
    fn closing_tag(&self) -> Option<FormToken> {
        let inside = self.rest_of_text().strip_prefix("</")?;
        let (name, _) = inside.split_once('>')?;
        let is_key = |atom: &ReadAtom<'_>| matches!(atom, ReadAtom::Text(text) if text == name);
        let is_own = || self.callee == Some(name) || self.tools.iter().any(|tool| tool == name);
        (self.atoms.iter().any(is_key) || is_own()).then(|| FormToken {
            begins_tag: true,
            side: TokenSide::Closes,
            ..FormToken::of(2 + name.len())
        })
    }
}

/// Returns the length of the count of a message's calls, as in `functions.stroke:0`, that a text begins with.
fn count_length(text: &str) -> usize {
    let digits = text.strip_prefix(':').unwrap_or_default();
    let behind = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    match behind.len() < digits.len() && !behind.starts_with(char::is_alphanumeric) {
        true => text.len() - behind.len(),
        false => 0,
    }
}

/// The key that syntaxes supply around arguments that are written without one.
const SUPPLIED_KEY: &str = "arguments";

/// Gathers the keys and values of a node in the order in which they were written.
fn gather<'a>(node: &'a ParsedValue, atoms: &mut Vec<ReadAtom<'a>>) {
    match node {
        ParsedValue::Null => atoms.push(ReadAtom::Null),
        ParsedValue::Bool(value) => atoms.push(ReadAtom::Bool(*value)),
        ParsedValue::Flag => {}
        ParsedValue::Number(number) => atoms.push(ReadAtom::Text(number.to_string().into())),
        ParsedValue::Text(text) | ParsedValue::Word(text) => {
            atoms.push(ReadAtom::Text(text.as_str().into()));
        }
        ParsedValue::List(items) if items.is_empty() => atoms.push(ReadAtom::Empty),
        ParsedValue::Map(pairs) if pairs.is_empty() => atoms.push(ReadAtom::Empty),
        ParsedValue::List(items) => items.iter().for_each(|item| gather(item, atoms)),
        ParsedValue::Map(pairs) => {
            for (key, value) in pairs {
                atoms.push(ReadAtom::Text(key.as_str().into()));
                gather(value, atoms);
            }
        }
    }
}

/// Returns the bytes of a quoted text here whose meaning is `text`, with its quotes and prefix.
fn quoted_length(rest: &str, text: &str, bytes_left: &mut usize) -> Option<usize> {
    let prefix = usize::from(rest.starts_with(['u', 'U', 'b', 'B', 'r', 'R']));
    let quoted = rest
        .get(prefix..)
        .filter(|rest| rest.starts_with(quote::is_quote))?;
    // An escape takes six bytes at most.
    let window = quoted.floor_char_boundary(6 * text.len() + 64);
    *bytes_left = bytes_left.checked_sub(window)?;
    let quoted = quoted.get(..window)?;
    let is_raw = rest.starts_with(['r', 'R']);
    [QuoteMatching::Exact, QuoteMatching::Loose]
        .into_iter()
        .find_map(|quotes| {
            let mut forms = FormRepairs::default();
            let read = quote::read(quoted, quotes, QuotePosition::Value, is_raw, &mut forms);
            let (decoded, used) = read.ok()?;
            (decoded == text).then_some(prefix + used)
        })
}

#[cfg(test)]
mod tests;
