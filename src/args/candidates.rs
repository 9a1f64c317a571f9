//! Every reading of a text as arguments, each with the repairs it takes.

use super::{
    call_header, encoding,
    form_repair::{FormRepair, FormRepairs},
    form_token, heuristics, indented,
    limits::{COMMENTS_MAX, TEXT_BYTES_MAX, UNWRAP_MAX},
    objects,
    parsed_value::{self, ParsedValue},
    quote::{self, QuoteMatching},
    rest::TextLevel,
    strict, strip_wrappers, tagged_text, tolerant,
    unbracketed::{self, UnbracketedPairs},
};
use std::borrow::Cow;

/// Flaw of a text as a whole, beyond form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFlaw {
    /// The text ends before its value does.
    Cut,
    /// There are two objects, and nothing says which is meant.
    TwoObjects,
    /// It holds an object that is part of something larger and unreadable, or has unreadable brackets.
    Garbled,
    /// A stand-in such as `<arguments>`, copied from a prompt.
    Template,
    /// A placeholder for an object that a client lost.
    PayloadLost,
    /// Longer than [`TEXT_BYTES_MAX`].
    TooLong,
    /// More comments than [`COMMENTS_MAX`].
    TooManyComments,
    /// It holds nothing that can be read as arguments.
    NoArguments,
}

/// One reading of a text, not matched to parameters yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CandidateReading {
    pub(super) node: ParsedValue,
    pub(super) forms: FormRepairs,
    pub(super) flaw: Option<TextFlaw>,
    /// The tool that a call syntax named.
    pub(super) tool: Option<String>,
    /// Read without brackets, so only a known key tells arguments from prose.
    pub(super) is_loose: bool,
    /// The texts that it was read from, the innermost first; none for a value that arrived as JSON.
    pub(super) levels: Vec<TextLevel>,
    /// The part of the next text that was decoded to the last one.
    pub(super) decoded: Option<String>,
    /// Bytes of the text that it is as strict JSON.
    pub(super) exact_bytes: Option<usize>,
}

impl CandidateReading {
    pub(super) fn new(node: ParsedValue, forms: FormRepairs) -> Self {
        Self {
            node,
            forms,
            flaw: None,
            tool: None,
            is_loose: false,
            levels: Vec::new(),
            decoded: None,
            exact_bytes: None,
        }
    }

    /// Keeps the text that it was read from. Nothing is left over of one that is strict JSON as a whole.
    fn read_from(mut self, source: &str) -> Self {
        let is_exact = self.levels.is_empty() && self.exact_bytes == Some(trimmed(source).len());
        if !is_exact {
            self.levels.push(TextLevel {
                source: source.to_owned(),
                decoded: self.decoded.take(),
            });
        }
        self
    }

    /// Marks a part of the text around the last one as its encoded form.
    fn decoded_from(mut self, encoded: &str, decoded: &str) -> Self {
        self = self.read_from(decoded);
        self.decoded = Some(encoded.to_owned());
        self
    }

    /// Returns the reading of a text in which nothing could be read.
    pub(super) fn unread(flaw: TextFlaw) -> Self {
        Self::flawed(ParsedValue::Null, FormRepairs::default(), flaw)
    }

    fn flawed(node: ParsedValue, forms: FormRepairs, flaw: TextFlaw) -> Self {
        Self {
            flaw: Some(flaw),
            ..Self::new(node, forms)
        }
    }

    /// Returns the reading of a value that arrived as JSON.
    pub(super) fn of_node(node: ParsedValue) -> Self {
        Self::new(node, FormRepairs::default())
    }

    fn with(mut self, form: FormRepair) -> Self {
        self.forms.add(form);
        self
    }
}

impl From<UnbracketedPairs> for CandidateReading {
    fn from(loose: UnbracketedPairs) -> Self {
        Self {
            node: ParsedValue::Map(loose.pairs),
            forms: loose.forms,
            flaw: loose.cut.then_some(TextFlaw::Cut),
            tool: loose.tool,
            is_loose: true,
            ..Self::new(ParsedValue::Null, FormRepairs::default())
        }
    }
}

/// Returns all readings of `text`, at least one: the last resort is [`TextFlaw::NoArguments`].
pub(super) fn of_text(text: &str) -> Vec<CandidateReading> {
    if text.len() > TEXT_BYTES_MAX {
        return vec![CandidateReading::unread(TextFlaw::TooLong)];
    }
    let found = read_at_depth(text, 0).into_iter();
    let mut found: Vec<_> = found.map(|candidate| candidate.read_from(text)).collect();
    if found.is_empty() {
        let flaw = match call_header::announces_arguments(text) {
            true => TextFlaw::Cut,
            false => TextFlaw::NoArguments,
        };
        found.push(CandidateReading::unread(flaw));
    }
    found
}

/// Returns a text without blanks and invisible characters around it.
fn trimmed(text: &str) -> &str {
    text.trim_matches(form_token::is_blank)
}

fn read_at_depth(text: &str, depth: usize) -> Vec<CandidateReading> {
    let text = trimmed(text);
    let exactly = |node| CandidateReading {
        exact_bytes: Some(text.len()),
        ..CandidateReading::of_node(node)
    };
    if parsed_value::is_nothing(text) || text == "[object]" {
        return vec![exactly(ParsedValue::Null)];
    }
    if parsed_value::is_lost_payload(text) {
        return vec![CandidateReading::unread(TextFlaw::PayloadLost)];
    }
    match strict::parse(text) {
        Some(ParsedValue::Text(inner)) => read_decoded(text, &inner, depth, FormRepair::TextInText),
        Some(node) => vec![exactly(node)],
        None => read_tolerantly(text, depth),
    }
}

/// Reads a text inside a text, if the limit on nesting allows.
fn read_inner(inner: &str, depth: usize, form: FormRepair) -> Vec<CandidateReading> {
    if depth == UNWRAP_MAX {
        return Vec::new();
    }
    let found = read_at_depth(inner, depth + 1).into_iter();
    found.map(|candidate| candidate.with(form)).collect()
}

/// Reads what a part of a text is decoded to.
fn read_decoded(
    encoded: &str,
    decoded: &str,
    depth: usize,
    form: FormRepair,
) -> Vec<CandidateReading> {
    let found = read_inner(decoded, depth, form).into_iter();
    found
        .map(|candidate| candidate.decoded_from(encoded, decoded))
        .collect()
}

fn read_tolerantly(text: &str, depth: usize) -> Vec<CandidateReading> {
    let stripped = if has_many_comments(text) {
        Err(TextFlaw::TooManyComments)
    } else if heuristics::is_template(text) {
        Err(TextFlaw::Template)
    } else if text.bytes().all(|b| b == b'`') {
        Err(TextFlaw::Cut)
    } else {
        strip_wrappers::strip_wrapper(text)
    };
    match stripped {
        Err(flaw) => vec![CandidateReading::unread(flaw)],
        Ok(Some(inner)) => {
            let found = match &inner.text {
                Cow::Borrowed(part) => read_inner(part, depth, inner.form),
                Cow::Owned(requoted) => read_decoded(text, requoted, depth, inner.form),
            };
            with_tool(found, inner.tool.as_deref())
        }
        Ok(None) => read_inside_wrapper(text, depth).unwrap_or_else(|| read_unwrapped(text)),
    }
}

/// Returns whether a text has more comment marks than the number of comments that are judged.
fn has_many_comments(text: &str) -> bool {
    let marks = ["#", "//", "/*"];
    let all = marks.iter().flat_map(|mark| text.matches(mark));
    all.take(COMMENTS_MAX + 1).count() > COMMENTS_MAX
}

/// Sets the tool that a label named, where the call inside names none.
fn with_tool(mut found: Vec<CandidateReading>, tool: Option<&str>) -> Vec<CandidateReading> {
    for candidate in &mut found {
        candidate.tool = candidate.tool.take().or_else(|| tool.map(str::to_owned));
    }
    found
}

/// Reads a text that is wrapped or encoded as a whole; `None` if it is neither.
fn read_inside_wrapper(text: &str, depth: usize) -> Option<Vec<CandidateReading>> {
    if let Some(inner) = unquoted(text) {
        return Some(read_decoded(text, &inner, depth, FormRepair::TextInText));
    }
    if let Some((inner, has_words)) = inside_fence(text) {
        let mut found = read_inner(inner, depth, FormRepair::Fence);
        let worded = found.iter_mut().filter(|_| has_words);
        worded.for_each(|candidate| candidate.forms.add(FormRepair::Prose));
        return Some(found);
    }
    if let Some((inner, tool)) = inside_tag(text) {
        let found = read_inner(inner, depth, FormRepair::Tag);
        if !found.is_empty() {
            return Some(with_tool(found, tool));
        }
    }
    let (decoded, form) = encoding::decoded(text)?;
    Some(decoded.map_or_else(Vec::new, |decoded| {
        read_decoded(text, &decoded, depth, form)
    }))
}

/// Reads a text with nothing around it: a call, tags, options, pairs, or an object in prose.
fn read_unwrapped(text: &str) -> Vec<CandidateReading> {
    let loose = without_brackets(text);
    if !loose.is_empty() {
        let mut loose = loose;
        if loose.iter().any(is_announced) {
            loose.extend(objects::find(text));
        }
        return loose;
    }
    if text.starts_with(['[', '(']) {
        return list_or_call(text);
    }
    objects::find(text)
}

/// Removes quotes around everything: `'{"scene": "koi"}'`.
fn unquoted(text: &str) -> Option<String> {
    let unprefixed = text.strip_prefix(['u', 'b', 'r']);
    let unprefixed = unprefixed.filter(|rest| rest.starts_with(['"', '\'']));
    let text = unprefixed.unwrap_or(text);
    let is_quoted = text.starts_with(quote::is_quote);
    match is_quoted.then(|| unbracketed::value(text))? {
        ParsedValue::Text(inner) => Some(inner),
        _ => None,
    }
}

/// Returns the inside of the only code fence, and whether words stand around it; the closing fence may be missing.
fn inside_fence(text: &str) -> Option<(&str, bool)> {
    let (before, body) = text.split_once("```")?;
    let closed = body.split_once("```");
    let (body, after) = closed.unwrap_or((body, ""));
    if closed.is_none() && !body.contains(['{', '[', '(', '=', ':', '<']) {
        return None;
    }
    let is_prose = |part: &str| !part.contains(['{', '}', '[', ']', '(', '=', '"', '\'', '`']);
    if !is_prose(before) || !is_prose(after) {
        return None;
    }
    let language = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let (language, rest) = body.split_at_checked(language.unwrap_or(body.len()))?;
    let is_language = !language.is_empty() && rest.starts_with(['\n', '\r']);
    let has_words = !before.trim().is_empty() || !after.trim().is_empty();
    Some((if is_language { rest } else { body }, has_words))
}

/// Removes `<tool_call>…</tool_call>` around everything; returns the tool that `<function=stroke>` or `<function name="stroke">` names.
fn inside_tag(text: &str) -> Option<(&str, Option<&str>)> {
    let (head, rest) = text.strip_prefix('<')?.split_once('>')?;
    let end = head.find(['=', ' ']).unwrap_or(head.len());
    let (name, attribute) = head.split_at_checked(end)?;
    let inner = rest.strip_suffix('>')?.strip_suffix(name)?;
    let inner = inner.strip_suffix("</")?;
    let tool = match attribute.trim() {
        "" => None,
        attribute => {
            let value = attribute.strip_prefix("name").unwrap_or(attribute);
            let value = value.trim_start().strip_prefix('=')?.trim();
            Some(value.trim_matches(['"', '\'']))
        }
    };
    let is_name = tool.is_none_or(|tool| !tool.contains(['=', ' ', '"']));
    (is_name && tagged_text::is_wrapper(name) && !inner.contains("</")).then_some((inner, tool))
}

/// Reads a list or tuple, a call without a name, or lines under `[arguments]`.
fn list_or_call(text: &str) -> Vec<CandidateReading> {
    let may_have_heading = text.starts_with('[') && text.contains('\n');
    let lines_under_heading = may_have_heading.then(|| unbracketed::lines(text)).flatten();
    if let Some(read) = lines_under_heading {
        return vec![read.into()];
    }
    let found = whole_list(text).or_else(|| call_pairs(text).map(CandidateReading::from));
    found.into_iter().collect()
}

/// Reads a list or tuple that is the whole text.
fn whole_list(text: &str) -> Option<CandidateReading> {
    let Some((value, mut parser)) = tolerant::values(text, 0).next() else {
        let is_garbled = text.contains('{');
        return is_garbled.then(|| CandidateReading::unread(TextFlaw::Garbled));
    };
    let node = value.unwrap_or(ParsedValue::Null);
    Some(if parser.cut {
        CandidateReading::flawed(node, parser.forms, TextFlaw::Cut)
    } else if parser.skip_filler().is_ok() && parser.position() == text.len() {
        CandidateReading::new(node, parser.forms)
    } else {
        CandidateReading::flawed(ParsedValue::Null, parser.forms, TextFlaw::Garbled)
    })
}

fn without_brackets(text: &str) -> Vec<CandidateReading> {
    if text.starts_with(['{', '[', '(']) {
        return Vec::new();
    }
    let readers = [tagged_text::read, options_or_url, call_pairs, named_options];
    let mut found: Vec<_> = readers.iter().filter_map(|read| read(text)).collect();
    if found.is_empty() {
        // Indented values first, then keywords, then lines of pairs.
        let pairs = indented::read(text)
            .or_else(|| unbracketed::any_keywords(text))
            .or_else(|| unbracketed::lines(text));
        found.extend(pairs);
    }
    found.into_iter().map(CandidateReading::from).collect()
}

/// Returns whether the word before the colon may be a key or an announcement, as in `Result: {"scene": "koi"}`.
fn is_announced(candidate: &CandidateReading) -> bool {
    matches!(candidate.node.as_pairs(), Some([(_, ParsedValue::Map(_))]))
}

fn options_or_url(text: &str) -> Option<UnbracketedPairs> {
    let url = || text.contains('&').then(|| unbracketed::url_pairs(text));
    unbracketed::options(text).or_else(|| url().flatten())
}

/// Reads `stroke --scene koi` and `stroke scene=koi debug=true`.
fn named_options(text: &str) -> Option<UnbracketedPairs> {
    let (name, rest) = unbracketed::leading_name(text)?;
    let keywords = || unbracketed::keywords(rest, QuoteMatching::Exact);
    let tool = Some(name.to_owned());
    let read = unbracketed::options(rest).or_else(keywords)?;
    Some(UnbracketedPairs { tool, ..read })
}

fn call_pairs(text: &str) -> Option<UnbracketedPairs> {
    unbracketed::call(text.trim_matches('`'))
}

/// Reads the text of a string value as a value of its own.
pub(super) fn of_inner_text(text: &str) -> Option<CandidateReading> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let trimmed = text.trim();
    let with_text_form = |candidate: CandidateReading| candidate.with(FormRepair::TextInText);
    if let Some(node) = strict::parse(trimmed) {
        Some(with_text_form(CandidateReading::of_node(node)))
    } else if trimmed.starts_with(['{', '[', '(']) {
        let found = whole_list(trimmed).filter(|candidate| candidate.flaw.is_none());
        found.map(|found| with_text_form(found).read_from(trimmed))
    } else {
        let (word, _) = tolerant::scalar(trimmed.to_owned());
        Some(CandidateReading::of_node(word))
    }
}
