//! Every way in which a text can be read as arguments, each with the repairs it takes.

use super::{
    encoding,
    form_repair::{FormRepair, FormRepairs},
    limits::{COMMENTS_MAX, TEXT_BYTES_MAX, UNWRAP_MAX},
    parsed_value::{self, ParsedValue},
    quote::QuoteMatching,
    skipped::SkippedPlace,
    strict, strip_wrappers, tagged_text,
    tolerant::{self, TolerantParser},
    unbracketed::{self, UnbracketedPairs},
};
use serde::Serialize;

/// Flaw of a text as a whole, beyond form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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
    fn new(node: ParsedValue, forms: FormRepairs) -> Self {
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

    pub(super) fn flawed(node: ParsedValue, forms: FormRepairs, flaw: TextFlaw) -> Self {
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

    /// Returns whether the parameters can judge this reading.
    pub(super) fn is_clean(&self) -> bool {
        self.flaw.is_none()
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
    let text = text
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}' | '\0'));
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
    at_depth(inner, depth + 1)
        .into_iter()
        .map(|candidate| candidate.with(form))
        .collect()
}

fn tolerantly(text: &str, depth: usize) -> Vec<CandidateReading> {
    if has_many_comments(text) {
        return vec![CandidateReading::unread(TextFlaw::TooManyComments)];
    }
    if super::heuristics::is_template(text) {
        return vec![CandidateReading::unread(TextFlaw::Template)];
    }
    if text.bytes().all(|b| b == b'`') {
        return vec![CandidateReading::unread(TextFlaw::Cut)];
    }
    match strip_wrappers::strip_wrapper(text) {
        Err(flaw) => {
            return vec![CandidateReading::unread(flaw)];
        }
        Ok(Some(peeled)) => {
            let mut found = inside(&peeled.text, depth, peeled.form);
            for candidate in &mut found {
                candidate.forms.extend(&peeled.skipped);
            }
            return named(found, peeled.tool.as_deref());
        }
        Ok(None) => {}
    }
    layered(text, depth).unwrap_or_else(|| bare(text))
}

/// Returns whether a text has more marks of comments than comments are judged.
fn has_many_comments(text: &str) -> bool {
    let marks = ["#", "//", "/*"];
    let all = marks.iter().flat_map(|mark| text.matches(mark));
    all.take(COMMENTS_MAX + 1).count() > COMMENTS_MAX
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
        let found = inside(inner, depth, FormRepair::Fence).into_iter();
        let with_around = |mut candidate: CandidateReading| {
            candidate.forms.extend(&around);
            candidate
        };
        return Some(found.map(with_around).collect());
    }
    if let Some((inner, tool)) = unwrapped(text) {
        let found = inside(inner, depth, FormRepair::Tag);
        if !found.is_empty() {
            return Some(named(found, tool));
        }
    }
    if let Some(plain) = encoding::without_backslashes(text) {
        return Some(inside(&plain, depth, FormRepair::Backslashes));
    }
    if let Some(plain) = encoding::without_entities(text) {
        return Some(inside(&plain, depth, FormRepair::Entities));
    }
    if let Some(plain) = encoding::without_doubles(text) {
        return Some(inside(&plain, depth, FormRepair::MixedQuotes));
    }
    if encoding::is_url_encoded(text) {
        let plain = unbracketed::percent_decoded(text);
        return Some(plain.map_or_else(Vec::new, |plain| {
            inside(&plain, depth, FormRepair::UrlEncoded)
        }));
    }
    None
}

/// A text without anything around it: a call, tags, options, pairs, or an object among words.
fn bare(text: &str) -> Vec<CandidateReading> {
    let mut bracketless = without_brackets(text);
    if !bracketless.is_empty() {
        if bracketless.iter().any(is_announced) {
            bracketless.extend(super::objects::find(text));
        }
        return bracketless;
    }
    if text.starts_with(['[', '(']) {
        return whole_or(text);
    }
    super::objects::find(text)
}

/// `'{"scene": "koi"}'`: quotes around everything.
fn quoted_whole(text: &str) -> Option<String> {
    let unprefixed = text
        .strip_prefix(['u', 'b', 'r'])
        .filter(|rest| rest.starts_with(['"', '\'']));
    let text = unprefixed.unwrap_or(text);
    if !text.starts_with(super::quote::is_quote) {
        return None;
    }
    match unbracketed::bare(text) {
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
    let language = body
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(body.len());
    let language_name = body.get(..language)?;
    let has_break = body
        .get(language..)
        .is_some_and(|rest| rest.starts_with(['\n', '\r']));
    let body = if has_break {
        body.get(language..)?
    } else {
        body
    };
    let mut around = FormRepairs::default();
    if !before.trim().is_empty() || !after.trim().is_empty() {
        around.add(FormRepair::Prose);
    }
    let name = if has_break { language_name } else { "" };
    around.skip(&format!("{before}\n```{name}"), SkippedPlace::Around);
    around.skip(&format!("{after}\n"), SkippedPlace::Around);
    Some((body, around))
}

/// `<tool_call>…</tool_call>` around everything, with the tool that `<function=stroke>` or `<function name="stroke">` names.
fn unwrapped(text: &str) -> Option<(&str, Option<&str>)> {
    let (head, rest) = text.strip_prefix('<')?.split_once('>')?;
    let end = head.find(['=', ' ']).unwrap_or(head.len());
    let (name, attribute) = head.split_at_checked(end)?;
    let inner = rest
        .strip_suffix('>')?
        .strip_suffix(name)?
        .strip_suffix("</")?;
    let tool = match attribute.trim() {
        "" => None,
        attribute => {
            let value = attribute
                .strip_prefix("name")
                .unwrap_or(attribute)
                .trim_start();
            let value = value.strip_prefix('=')?.trim().trim_matches(['"', '\'']);
            (!value.contains(['=', ' ', '"'])).then_some(Some(value))?
        }
    };
    (tagged_text::is_wrapper(name) && !inner.contains("</")).then_some((inner, tool))
}

/// A list or tuple; or a call without a name, or lines under `[arguments]`.
fn whole_or(text: &str) -> Vec<CandidateReading> {
    let headed = text
        .starts_with('[')
        .then(|| unbracketed::lines(text))
        .flatten();
    if let Some(read) = headed.filter(|_| text.contains('\n')) {
        return vec![of_loose(read)];
    }
    let found = whole(text);
    if found.is_empty() {
        call(text).into_iter().collect()
    } else {
        found
    }
}

/// A list or tuple that is the whole text.
fn whole(text: &str) -> Vec<CandidateReading> {
    for quotes in [QuoteMatching::Exact, QuoteMatching::Loose] {
        let mut parser = TolerantParser::new(text, 0, quotes);
        let Ok(value) = parser.value(0) else { continue };
        let node = value.unwrap_or(ParsedValue::Null);
        if parser.cut {
            return vec![CandidateReading::flawed(node, parser.forms, TextFlaw::Cut)];
        }
        if parser.filler().is_ok() && parser.position() == text.len() {
            return vec![CandidateReading::new(node, parser.forms)];
        }
        return vec![CandidateReading::flawed(
            ParsedValue::Null,
            parser.forms,
            TextFlaw::Garbled,
        )];
    }
    let garbled = text
        .contains('{')
        .then(|| CandidateReading::unread(TextFlaw::Garbled));
    garbled.into_iter().collect()
}

fn without_brackets(text: &str) -> Vec<CandidateReading> {
    if text.starts_with(['{', '[', '(']) {
        return Vec::new();
    }
    let tagged = tagged_text::read(text).map(|tagged| CandidateReading {
        node: ParsedValue::Map(tagged.pairs),
        forms: tagged.forms,
        flaw: tagged.cut.then_some(TextFlaw::Cut),
        tool: tagged.tool,
        is_loose: true,
    });
    let found: Vec<_> = tagged
        .into_iter()
        .chain(options_or_url(text))
        .chain(call(text))
        .chain(named_options(text))
        .collect();
    if !found.is_empty() {
        found
    } else {
        pairs(text)
    }
}

/// `Result: {"scene": "koi"}`: the word before the colon may be a key or may announce the object.
fn is_announced(candidate: &CandidateReading) -> bool {
    matches!(&candidate.node, ParsedValue::Map(pairs) if matches!(pairs.as_slice(), [(_, ParsedValue::Map(_))]))
}

fn of_loose(loose: UnbracketedPairs) -> CandidateReading {
    CandidateReading {
        node: ParsedValue::Map(loose.pairs),
        forms: loose.forms,
        flaw: loose.cut.then_some(TextFlaw::Cut),
        tool: None,
        is_loose: true,
    }
}

fn options_or_url(text: &str) -> Option<CandidateReading> {
    unbracketed::options(text)
        .or_else(|| {
            text.contains('&')
                .then(|| unbracketed::url_pairs(text))
                .flatten()
        })
        .map(of_loose)
}

/// `stroke --scene koi`, `stroke scene=koi debug=true`.
fn named_options(text: &str) -> Option<CandidateReading> {
    let (name, rest) = unbracketed::leading_name(text)?;
    let read =
        unbracketed::options(rest).or_else(|| unbracketed::keywords(rest, QuoteMatching::Exact))?;
    Some(CandidateReading {
        tool: Some(name.to_owned()),
        ..of_loose(read)
    })
}

fn call(text: &str) -> Option<CandidateReading> {
    let text = text.trim_matches('`');
    let (name, loose) = unbracketed::call(text, QuoteMatching::Exact)
        .or_else(|| unbracketed::call(text, QuoteMatching::Loose))?;
    Some(CandidateReading {
        tool: Some(name).filter(|name| !name.is_empty()),
        ..of_loose(loose)
    })
}

/// Keywords, or else lines whose values are no words or quoted texts.
fn pairs(text: &str) -> Vec<CandidateReading> {
    let keywords = unbracketed::keywords(text, QuoteMatching::Exact)
        .or_else(|| unbracketed::keywords(text, QuoteMatching::Loose));
    keywords
        .or_else(|| unbracketed::lines(text))
        .into_iter()
        .map(of_loose)
        .collect()
}

/// The words of a text, as a parameter of type text would see them, read once more as a value.
pub(super) fn of_inner_text(text: &str) -> Vec<CandidateReading> {
    let mut found = of_inner_text_with_comments(text);
    found.retain(|candidate| candidate.forms.skipped().is_empty());
    found
}

/// The same where comments may stand in it, which the caller has to judge.
pub(super) fn of_inner_text_with_comments(text: &str) -> Vec<CandidateReading> {
    if text.len() > TEXT_BYTES_MAX {
        return Vec::new();
    }
    let trimmed = text.trim();
    if let Some(node) = strict::parse(trimmed) {
        return vec![CandidateReading::of_node(node).with(FormRepair::TextInText)];
    }
    if trimmed.starts_with(['{', '[', '(']) {
        return whole(trimmed)
            .into_iter()
            .filter(CandidateReading::is_clean)
            .map(|c| c.with(FormRepair::TextInText))
            .collect();
    }
    vec![CandidateReading::of_node(
        tolerant::scalar(trimmed.to_owned()).0,
    )]
}
