//! Reads arguments without brackets of their own: keywords, calls, lines, command-line options and URL encoding.

use super::{
    form_repair::{FormRepair, FormRepairs},
    limits::PAIRS_MAX,
    parsed_value::{Pair, ParsedValue},
    quote::{self, QuoteMatching},
    tolerant::{self, PairsEnd, TolerantParser},
};

/// Pairs read from a text, with the repairs, the tool that is named, and whether the text was cut off.
#[derive(Default)]
pub(super) struct UnbracketedPairs {
    pub(super) pairs: Vec<Pair>,
    pub(super) forms: FormRepairs,
    pub(super) tool: Option<String>,
    pub(super) cut: bool,
}

impl UnbracketedPairs {
    pub(super) fn of(form: FormRepair) -> Self {
        let mut loose = Self::default();
        loose.forms.add(form);
        loose
    }

    /// Adds a pair; `None` if the value has unmatched brackets or quotes, so that a piece of JSON does not become a value.
    fn push(&mut self, key: &str, value: &str) -> Option<()> {
        let node = self::value(value);
        if matches!(&node, ParsedValue::Word(word) if word.contains(['{', '}', '[', ']', '"'])) {
            return None;
        }
        self.pairs.push((key.to_owned(), node));
        Some(())
    }
}

/// Reads `scene="koi", debug=True` and `scene: koi, debug: true`.
pub(super) fn keywords(text: &str, quotes: QuoteMatching) -> Option<UnbracketedPairs> {
    if !text.contains([':', '=']) {
        return None;
    }
    // A semicolon that separates nothing ends the statement.
    let statement = text.trim_end().strip_suffix(';');
    let statement = statement.filter(|statement| !statement.contains(';'));
    let mut parser = TolerantParser::new(statement.unwrap_or(text), 0, quotes);
    let pairs = parser.pairs(PairsEnd::Text, 0).ok()?;
    let mut loose = UnbracketedPairs::of(FormRepair::Keywords);
    loose.forms.extend(&parser.forms);
    (loose.pairs, loose.cut) = (pairs, parser.cut);
    (loose.cut || !loose.pairs.is_empty()).then_some(loose)
}

/// Reads keywords whose quotes match exactly, or else loosely.
pub(super) fn any_keywords(text: &str) -> Option<UnbracketedPairs> {
    keywords(text, QuoteMatching::Exact).or_else(|| keywords(text, QuoteMatching::Loose))
}

/// Reads `stroke(scene="koi")` and the name of the tool; `Calling:` may stand before it.
pub(super) fn call(text: &str) -> Option<UnbracketedPairs> {
    call_in(text, QuoteMatching::Exact).or_else(|| call_in(text, QuoteMatching::Loose))
}

fn call_in(text: &str, quotes: QuoteMatching) -> Option<UnbracketedPairs> {
    let open = text.find('(')?;
    let head = text.get(..open)?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name = head.trim_end_matches(is_name).len();
    let (before, name) = head.split_at_checked(name)?;
    let is_prose = |part: &str| !part.contains(['{', '}', '[', ']', '(', ')', '=', '"']);
    // Only an announcement, a whole sentence or marks may stand before a call: inside a sentence, a call is mentioned and not made.
    let ends_before = |c: char| matches!(c, ':' | '!' | '.' | '\n');
    let is_announced = !before.contains(char::is_alphanumeric)
        || before.trim_end_matches(' ').ends_with(ends_before);
    if !is_prose(before) || !is_announced || (name.is_empty() && !before.is_empty()) {
        return None;
    }
    let mut parser = TolerantParser::new(text, open + 1, quotes);
    let mut loose = UnbracketedPairs::of(FormRepair::Call);
    loose.pairs = call_pairs(&mut parser, name)?;
    loose.cut = parser.cut;
    // `stroke.call(…)` is a call of `stroke`.
    let name = name.strip_suffix(".call").unwrap_or(name);
    loose.tool = Some(name.to_owned()).filter(|name| !name.is_empty());
    if loose.cut {
        loose.forms.extend(&parser.forms);
        return Some(loose);
    }
    parser.skip_filler().ok()?;
    loose.forms.extend(&parser.forms);
    let after = text.get(parser.position()..)?;
    if after.contains(char::is_alphanumeric) || !is_prose(after) {
        return None;
    }
    if !before.trim().is_empty() || !after.trim_matches([';', '.', ' ', '\n']).is_empty() {
        loose.forms.add(FormRepair::Prose);
    }
    Some(loose)
}

/// Reads the pairs between the brackets of a call: keywords, one object with or without `**`, or the arguments of a
/// constructor that makes an object.
fn call_pairs(parser: &mut TolerantParser<'_>, name: &str) -> Option<Vec<Pair>> {
    parser.skip_filler().ok()?;
    while parser.skip('*') {}
    let constructs = parser.is_at('[') || CONSTRUCTORS.contains(&name);
    if !parser.is_at('{') && !constructs
        || matches!(name, "dict" | "Namespace" | "namespace") && !parser.is_at('[')
    {
        return parser.pairs(PairsEnd::Paren, 0).ok();
    }
    let Some(node) = parser.value(0).ok()? else {
        return parser.cut.then(Vec::new);
    };
    parser.skip_filler().ok()?;
    parser.skip(',');
    parser.skip_filler().ok()?;
    if !parser.skip(')') {
        return None;
    }
    match node {
        ParsedValue::Map(pairs) => Some(pairs),
        ParsedValue::List(_) | ParsedValue::Text(_) => Some(vec![("arguments".to_owned(), node)]),
        _ => None,
    }
}

/// Functions that make an object from text, pairs or keywords, and are not tools.
pub(super) const CONSTRUCTORS: [&str; 9] = [
    "dict",
    "OrderedDict",
    "collections.OrderedDict",
    "Namespace",
    "namespace",
    "json.loads",
    "json.dumps",
    "JSON.parse",
    "JSON.stringify",
];

/// Reads `key: value` or `key = value`, one per line; the value is the rest of the line. `arguments:` alone, or `[arguments]`, is a
/// heading.
pub(super) fn lines(text: &str) -> Option<UnbracketedPairs> {
    let mut loose = UnbracketedPairs::of(FormRepair::Lines);
    let is_empty = |line: &str| {
        let line = line.trim();
        matches!(line, "" | "---" | "...") || line.starts_with('#')
    };
    let mut lines = text.lines().filter(|line| !is_empty(line)).peekable();
    if let Some(tool) = lines.peek().and_then(|line| tool_heading(line)) {
        loose.tool = Some(tool.to_owned());
        lines.next();
    }
    while let Some(line) = lines.next() {
        if loose.pairs.len() == PAIRS_MAX {
            return None;
        }
        let is_last = lines.peek().is_none();
        if is_heading(line, lines.peek().copied()) && !is_last {
            continue;
        }
        let (key, value) = line_pair(line)?;
        loose.cut |= value.is_empty();
        loose.push(key, value)?;
    }
    (!loose.pairs.is_empty()).then_some(loose)
}

fn line_pair(line: &str) -> Option<(&str, &str)> {
    let line = without_bullet(line.trim());
    let at = line.find([':', '='])?;
    let marks = ['"', '\'', '*', '`'];
    let key = line.get(..at)?.trim().trim_matches(marks);
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '?');
    let is_key = !key.is_empty() && key.chars().all(is_inside);
    // `**scene:** koi` closes its emphasis after the colon.
    let value = line.get(at + 1..)?.trim_start_matches("**").trim();
    is_key.then(|| (key, value.trim_end_matches(',').trim()))
}

/// Returns the line without a leading `-`, `*`, `•`, `1.` or `1)`.
fn without_bullet(line: &str) -> &str {
    if line.starts_with("**") {
        return line;
    }
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let mut marks = [". ", ") "].iter().filter(|_| digits.len() < line.len());
    marks
        .find_map(|mark| digits.strip_prefix(mark))
        .or_else(|| line.strip_prefix(['-', '*', '•']))
        .map_or(line, str::trim_start)
}

/// Returns whether a line is `arguments:` over lines that are indented more, or `[arguments]`.
fn is_heading(line: &str, next: Option<&str>) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let name = line.trim();
    let table = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let headed = name
        .strip_suffix(':')
        .filter(|_| next.is_some_and(|next| indent(next) > indent(line)));
    table.or(headed).is_some_and(super::heuristics::is_wrapper)
}

/// Returns the tool that a table's heading names: `[stroke]`.
fn tool_heading(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('[')?.strip_suffix(']')?;
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = name.starts_with(char::is_alphabetic) && name.chars().all(is_inside);
    (is_name && !super::heuristics::is_wrapper(name)).then_some(name)
}

/// Splits `stroke --scene koi` and `stroke scene=koi` into the tool's name and its options or keywords.
pub(super) fn leading_name(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("$ ").unwrap_or(text);
    let (name, rest) = text.split_once([' ', '\n'])?;
    let rest = rest.trim_start();
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let is_name = |part: &str| part.starts_with(char::is_alphabetic) && part.chars().all(is_inside);
    let first = rest.split(char::is_whitespace).next()?;
    let pair = first.split_once('=');
    let is_pair = pair.is_some_and(|(key, value)| is_name(key) && !value.is_empty());
    let is_option = rest.starts_with("--") || is_short_option(first);
    (is_name(name) && (is_option || is_pair)).then_some((name, rest))
}

/// Returns whether a word is an option of one letter, which no parameter has.
fn is_short_option(word: &str) -> bool {
    let letter = word.strip_prefix('-').map(str::chars);
    letter.is_some_and(|mut letters| {
        letters.next().is_some_and(char::is_alphabetic) && letters.next().is_none()
    })
}

/// Reads `--scene koi --debug --fps=5`. An option of one letter is left over.
pub(super) fn options(text: &str) -> Option<UnbracketedPairs> {
    let mut loose = UnbracketedPairs::of(FormRepair::Options);
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if is_short_option(word) {
            continue;
        }
        let option = word
            .strip_prefix("--")
            .filter(|name| !name.is_empty() && loose.pairs.len() < PAIRS_MAX)?;
        if let Some((key, value)) = option.split_once('=') {
            loose.cut |= value.is_empty() && words.peek().is_none();
            loose.push(key, value)?;
        } else if let Some(value) =
            words.next_if(|next| !next.starts_with("--") && !is_short_option(next))
        {
            loose.push(option, value)?;
        } else {
            loose.pairs.push((option.to_owned(), ParsedValue::Flag));
        }
    }
    (!loose.pairs.is_empty()).then_some(loose)
}

/// Reads `scene=koi&debug=true`.
pub(super) fn url_pairs(text: &str) -> Option<UnbracketedPairs> {
    if !text.contains('=') || text.contains(char::is_whitespace) {
        return None;
    }
    let mut loose = UnbracketedPairs::of(FormRepair::UrlEncoded);
    // Only the query of an address holds arguments.
    let is_address = text.contains("://") || text.starts_with('/');
    let query = match text.split_once('?') {
        Some((address, query)) if is_address || address.is_empty() => query,
        _ => text,
    };
    for part in query.split('&') {
        let (key, value) = part.split_once('=')?;
        if !is_plain_key(key) || loose.pairs.len() == PAIRS_MAX {
            return None;
        }
        let key = percent_decoded(&key.replace('+', " "))?;
        loose.push(&key, &percent_decoded(&value.replace('+', " "))?)?;
    }
    Some(loose)
}

/// Returns whether a key may stand without quotes, URL-encoded or not.
fn is_plain_key(key: &str) -> bool {
    let allowed =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '?' | '+' | '%' | '.' | '[' | ']');
    !key.is_empty() && key.chars().all(allowed)
}

/// Decodes `%XX`; `None` if the result is not UTF-8 or a percent sign stands alone.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = tail.get(2..)?;
    }
    String::from_utf8(out).ok()
}

/// Parses a value that stands alone: unquoted if all of it is quoted, otherwise a word.
pub(super) fn value(text: &str) -> ParsedValue {
    let value = text.trim();
    let mut parser = TolerantParser::new(value, 0, QuoteMatching::Exact);
    if value.starts_with(quote::is_quote) || value.starts_with(['{', '[']) {
        let read = parser.value(0).ok().flatten();
        let is_whole = !parser.cut && parser.position() == value.len();
        if let Some(node) = read.filter(|_| is_whole) {
            return node;
        }
    }
    if value.is_empty() {
        // `dry_run=` and `<dry_run></dry_run>` are an empty text, as `"dry_run": ""` is: it was sent.
        return ParsedValue::Text(String::new());
    }
    tolerant::scalar(value.to_owned()).0
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    const KOI: &str = r#"{"scene":"koi","debug":true,"fps":5}"#;

    fn json(loose: Option<UnbracketedPairs>) -> String {
        loose.map_or("none".into(), |loose| {
            if loose.cut {
                "cut".into()
            } else {
                ParsedValue::Map(loose.pairs).to_value().to_string()
            }
        })
    }

    #[test]
    fn reads_keywords() {
        for text in [
            "scene=\"koi\", debug=True, fps=5",
            "scene: koi, debug: true, fps: 5",
            "scene=koi debug=true fps=5",
            "scene='koi'; debug=True; fps=5",
        ] {
            assert_eq!(json(keywords(text, QuoteMatching::Exact)), KOI, "{text}");
        }
        for text in ["scene=\"koi\",", "scene=", "scene=\"ko"] {
            assert_eq!(json(keywords(text, QuoteMatching::Exact)), "cut", "{text}");
        }
        assert!(keywords("draw the koi: now please", QuoteMatching::Exact).is_none());
    }

    #[test]
    fn reads_calls() {
        for text in [
            "stroke(scene=\"koi\", debug=True, fps=5)",
            "tatbot.stroke({scene: 'koi', debug: true, fps: 5});",
        ] {
            let loose = call_in(text, QuoteMatching::Exact).unwrap();
            assert!(loose.tool.as_ref().unwrap().ends_with("stroke"));
            assert_eq!(json(Some(loose)), KOI, "{text}");
        }
        assert_eq!(
            json(call_in("stroke(scene=\"koi\",", QuoteMatching::Exact)),
            "cut"
        );
        assert!(call_in("stroke(\"koi\")", QuoteMatching::Exact).is_none());
    }

    #[test]
    fn reads_lines_options_and_urls() {
        assert_eq!(json(lines("scene: koi\ndebug: true\nfps: 5")), KOI);
        assert_eq!(
            json(lines("- scene: \"koi\"\n- debug: True\n- fps = 5")),
            KOI
        );
        assert_eq!(json(lines("scene: koi\ndebug:")), "cut");
        assert_eq!(
            json(lines("note: salt, and pepper")),
            r#"{"note":"salt, and pepper"}"#
        );
        assert!(lines("I will draw: the koi").is_none());
        assert_eq!(json(options("--scene koi --debug --fps=5")), KOI);
        assert_eq!(json(url_pairs("scene=koi&debug=true&fps=5")), KOI);
        assert_eq!(json(url_pairs("scene=k%6Fi&debug=true&fps=5")), KOI);
    }
}
