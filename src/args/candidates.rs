//! Every way in which a text can be read as arguments, each with the repairs it takes.

use super::{
    encoding,
    form_repair::{FormRepair, FormRepairs},
    heuristics,
    limits::{COMMENTS_MAX, TEXT_BYTES_MAX, UNWRAP_MAX},
    objects,
    parsed_value::{self, ParsedValue},
    quote::{self, QuoteMatching},
    skipped::SkippedPlace,
    strict, strip_wrappers, tagged_text, tolerant,
    unbracketed::{self, UnbracketedPairs},
};

/// Flaw of a text as a whole, beyond form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFlaw {
    /// The text ends before its value does.
    Cut,
    /// There are two objects and no saying which is meant.
    TwoObjects,
    /// There is an object in it, but it belongs to something larger that cannot be read, or has brackets that cannot be read.
    Garbled,
    /// A stand-in such as `<arguments>`, copied from a prompt.
    Template,
    /// A placeholder for an object that a client lost.
    PayloadLost,
    /// Longer than [`TEXT_BYTES_MAX`].
    TooLong,
    /// More comments than [`COMMENTS_MAX`].
    TooManyComments,
    /// Nothing in it can be read as arguments.
    NoArguments,
}

/// One reading of a text, before any parameter gave it meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CandidateReading {
    pub(super) node: ParsedValue,
    pub(super) forms: FormRepairs,
    pub(super) flaw: Option<TextFlaw>,
    /// The tool that a call syntax named.
    pub(super) tool: Option<String>,
    /// Read without brackets, so that only a known key tells arguments from prose.
    pub(super) is_loose: bool,
}

impl CandidateReading {
    pub(super) fn new(node: ParsedValue, forms: FormRepairs) -> Self {
        Self {
            node,
            forms,
            flaw: None,
            tool: None,
            is_loose: false,
        }
    }

    /// A text of which nothing could be read.
    pub(super) fn unread(flaw: TextFlaw) -> Self {
        Self::flawed(ParsedValue::Null, FormRepairs::default(), flaw)
    }

    fn flawed(node: ParsedValue, forms: FormRepairs, flaw: TextFlaw) -> Self {
        Self {
            flaw: Some(flaw),
            ..Self::new(node, forms)
        }
    }

    /// A value that arrived as JSON and needs no reading.
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
        }
    }
}

/// All readings of `text`; never none: the last resort is [`TextFlaw::NoArguments`].
pub(super) fn of_text(text: &str) -> Vec<CandidateReading> {
    if text.len() > TEXT_BYTES_MAX {
        return vec![CandidateReading::unread(TextFlaw::TooLong)];
    }
    let mut found = at_depth(text, 0);
    if found.is_empty() {
        found.push(CandidateReading::unread(TextFlaw::NoArguments));
    }
    found
}

fn at_depth(text: &str, depth: usize) -> Vec<CandidateReading> {
    let is_blank = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}' | '\0');
    let text = text.trim_matches(is_blank);
    if parsed_value::is_nothing(text) || text == "[object]" {
        return vec![CandidateReading::of_node(ParsedValue::Null)];
    }
    if parsed_value::is_lost_payload(text) {
        return vec![CandidateReading::unread(TextFlaw::PayloadLost)];
    }
    match strict::parse(text) {
        Some(ParsedValue::Text(inner)) => inside(&inner, depth, FormRepair::TextInText),
        Some(node) => vec![CandidateReading::of_node(node)],
        None => tolerantly(text, depth),
    }
}

/// A text inside a text, if it may be opened once more.
fn inside(inner: &str, depth: usize, form: FormRepair) -> Vec<CandidateReading> {
    if depth == UNWRAP_MAX {
        return Vec::new();
    }
    let found = at_depth(inner, depth + 1).into_iter();
    found.map(|candidate| candidate.with(form)).collect()
}

fn tolerantly(text: &str, depth: usize) -> Vec<CandidateReading> {
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
        Ok(Some(peeled)) => {
            let found = inside(&peeled.text, depth, peeled.form);
            named(beside(found, &peeled.skipped), peeled.tool.as_deref())
        }
        Ok(None) => layered(text, depth).unwrap_or_else(|| bare(text)),
    }
}

/// Returns whether a text has more marks of comments than comments are judged.
fn has_many_comments(text: &str) -> bool {
    let marks = ["#", "//", "/*"];
    let all = marks.iter().flat_map(|mark| text.matches(mark));
    all.take(COMMENTS_MAX + 1).count() > COMMENTS_MAX
}

/// The same with the text that was skipped around it.
fn beside(mut found: Vec<CandidateReading>, skipped: &FormRepairs) -> Vec<CandidateReading> {
    for candidate in &mut found {
        candidate.forms.extend(skipped);
    }
    found
}

/// The label's tool, where the call inside names none.
fn named(mut found: Vec<CandidateReading>, tool: Option<&str>) -> Vec<CandidateReading> {
    for candidate in &mut found {
        candidate.tool = candidate.tool.take().or_else(|| tool.map(str::to_owned));
    }
    found
}

/// A text that is wrapped or encoded as a whole, opened; `None` where it is not.
fn layered(text: &str, depth: usize) -> Option<Vec<CandidateReading>> {
    if let Some(inner) = quoted_whole(text) {
        return Some(inside(&inner, depth, FormRepair::TextInText));
    }
    if let Some((inner, around)) = fenced(text) {
        let found = inside(inner, depth, FormRepair::Fence);
        return Some(beside(found, &around));
    }
    if let Some((inner, tool)) = unwrapped(text) {
        let found = inside(inner, depth, FormRepair::Tag);
        if !found.is_empty() {
            return Some(named(found, tool));
        }
    }
    let (plain, form) = encoding::decoded(text)?;
    Some(plain.map_or_else(Vec::new, |plain| inside(&plain, depth, form)))
}

/// A text without anything around it: a call, tags, options, pairs, or an object among words.
fn bare(text: &str) -> Vec<CandidateReading> {
    let mut bracketless = without_brackets(text);
    if !bracketless.is_empty() {
        if bracketless.iter().any(is_announced) {
            bracketless.extend(objects::find(text));
        }
        return bracketless;
    }
    if text.starts_with(['[', '(']) {
        return whole_or(text);
    }
    objects::find(text)
}

/// `'{"scene": "koi"}'`: quotes around everything.
fn quoted_whole(text: &str) -> Option<String> {
    let unprefixed = text.strip_prefix(['u', 'b', 'r']);
    let unprefixed = unprefixed.filter(|rest| rest.starts_with(['"', '\'']));
    let text = unprefixed.unwrap_or(text);
    let is_quoted = text.starts_with(quote::is_quote);
    match is_quoted.then(|| unbracketed::bare(text))? {
        ParsedValue::Text(inner) => Some(inner),
        _ => None,
    }
}

/// The inside of the only code fence, and the words around it; its end may be missing.
fn fenced(text: &str) -> Option<(&str, FormRepairs)> {
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
    let (language, body) = if rest.starts_with(['\n', '\r']) {
        (language, rest)
    } else {
        ("", body)
    };
    let mut around = FormRepairs::default();
    if !before.trim().is_empty() || !after.trim().is_empty() {
        around.add(FormRepair::Prose);
    }
    around.skip(&format!("{before}\n```{language}"), SkippedPlace::Around);
    around.skip(&format!("{after}\n"), SkippedPlace::Around);
    Some((body, around))
}

/// `<tool_call>…</tool_call>` around everything, with the tool that `<function=stroke>` or `<function name="stroke">` names.
fn unwrapped(text: &str) -> Option<(&str, Option<&str>)> {
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

/// A list or tuple; or a call without a name, or lines under `[arguments]`.
fn whole_or(text: &str) -> Vec<CandidateReading> {
    let may_be_headed = text.starts_with('[') && text.contains('\n');
    let headed = may_be_headed.then(|| unbracketed::lines(text)).flatten();
    if let Some(read) = headed {
        return vec![read.into()];
    }
    let found = whole(text).or_else(|| call_pairs(text).map(CandidateReading::from));
    found.into_iter().collect()
}

/// A list or tuple that is the whole text.
fn whole(text: &str) -> Option<CandidateReading> {
    let Some((value, mut parser)) = tolerant::values(text, 0).next() else {
        let is_garbled = text.contains('{');
        return is_garbled.then(|| CandidateReading::unread(TextFlaw::Garbled));
    };
    let node = value.unwrap_or(ParsedValue::Null);
    Some(if parser.cut {
        CandidateReading::flawed(node, parser.forms, TextFlaw::Cut)
    } else if parser.filler().is_ok() && parser.position() == text.len() {
        CandidateReading::new(node, parser.forms)
    } else {
        CandidateReading::flawed(ParsedValue::Null, parser.forms, TextFlaw::Garbled)
    })
}

fn without_brackets(text: &str) -> Vec<CandidateReading> {
    if text.starts_with(['{', '[', '(']) {
        return Vec::new();
    }
    let ways = [tagged_text::read, options_or_url, call_pairs, named_options];
    let mut found: Vec<_> = ways.iter().filter_map(|way| way(text)).collect();
    if found.is_empty() {
        // Keywords, or else lines whose values are no words or quoted texts.
        let pairs = unbracketed::any_keywords(text).or_else(|| unbracketed::lines(text));
        found.extend(pairs);
    }
    found.into_iter().map(CandidateReading::from).collect()
}

/// `Result: {"scene": "koi"}`: the word before the colon may be a key or may announce the object.
fn is_announced(candidate: &CandidateReading) -> bool {
    matches!(candidate.node.as_pairs(), Some([(_, ParsedValue::Map(_))]))
}

fn options_or_url(text: &str) -> Option<UnbracketedPairs> {
    let url = || text.contains('&').then(|| unbracketed::url_pairs(text));
    unbracketed::options(text).or_else(|| url().flatten())
}

/// `stroke --scene koi`, `stroke scene=koi debug=true`.
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

/// The words of a text, as a parameter of type text would see them, read once more as a value.
pub(super) fn of_inner_text(text: &str) -> Option<CandidateReading> {
    of_inner_text_with_comments(text).filter(|candidate| candidate.forms.skipped().is_empty())
}

/// The same where comments may stand in it, which the caller has to judge.
pub(super) fn of_inner_text_with_comments(text: &str) -> Option<CandidateReading> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let trimmed = text.trim();
    let in_text = |candidate: CandidateReading| candidate.with(FormRepair::TextInText);
    if let Some(node) = strict::parse(trimmed) {
        Some(in_text(CandidateReading::of_node(node)))
    } else if trimmed.starts_with(['{', '[', '(']) {
        let found = whole(trimmed).filter(|candidate| candidate.flaw.is_none());
        found.map(in_text)
    } else {
        let (word, _) = tolerant::scalar(trimmed.to_owned());
        Some(CandidateReading::of_node(word))
    }
}
