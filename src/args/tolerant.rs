//! Parser for text that is nearly JSON. It repairs form only: a missing end is reported, never supplied.

use super::{
    form_repair::{FormRepair, FormRepairs},
    limits::{COMMENTS_MAX, DEPTH_MAX, LOOK_MAX, NODES_MAX, PAIRS_MAX},
    numeral,
    parsed_value::{self, Pair, ParsedValue},
    quote::{self, QuoteError, QuoteMatching, QuotePosition},
};

/// End of a run of `key: value` pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairsEnd {
    Brace,
    Paren,
    /// The end of the text: pairs without brackets.
    Text,
}

/// The text cannot be read in this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TolerantParseError;

/// A parser over one text; `pos` is always on a character boundary.
pub(super) struct TolerantParser<'a> {
    text: &'a str,
    quotes: QuoteMatching,
    pos: usize,
    nodes_left: usize,
    comments_left: usize,
    /// Number of open brackets; if there are any, the end of the text is a cut.
    brackets: usize,
    /// Range of the value of `params.arguments`, for an envelope to forward it as written.
    pub(super) arguments: Option<std::ops::Range<usize>>,
    /// Ranges of comments, for an envelope to forward those around its arguments.
    pub(super) comments: Vec<std::ops::Range<usize>>,
    pub(super) forms: FormRepairs,
    /// True if the text ended inside a value: complete parts are kept, incomplete ones dropped.
    pub(super) cut: bool,
}

type TolerantResult<T> = Result<T, TolerantParseError>;

impl<'a> TolerantParser<'a> {
    pub(super) fn new(text: &'a str, pos: usize, quotes: QuoteMatching) -> Self {
        Self {
            text,
            quotes,
            pos,
            nodes_left: NODES_MAX,
            comments_left: COMMENTS_MAX,
            brackets: 0,
            arguments: None,
            comments: Vec::new(),
            forms: FormRepairs::default(),
            cut: false,
        }
    }

    /// Bytes read so far, counted from the start of the text.
    pub(super) fn position(&self) -> usize {
        self.pos
    }

    /// Reads one value; `None` if the text was cut before it was complete.
    pub(super) fn value(&mut self, depth: usize) -> TolerantResult<Option<ParsedValue>> {
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or(TolerantParseError)?;
        if depth > DEPTH_MAX {
            return Err(TolerantParseError);
        }
        let Some(c) = self.peek() else {
            self.cut = true;
            return Ok(None);
        };
        match c {
            '{' | '[' | '(' | '｛' => self.bracketed(c, depth).map(Some),
            ',' | '}' | ']' | ')' | ';' | '｝' => {
                self.cut = true;
                Ok(None)
            }
            _ if self.skip_prefix(&['u', 'U', 'b', 'B', 'r', 'R']) || quote::is_quote(c) => {
                let text = self.quoted(QuotePosition::Value, matches!(c, 'r' | 'R'))?;
                Ok(text.map(ParsedValue::Text))
            }
            '<' => self.angled(),
            _ => self.word(),
        }
    }

    fn bracketed(&mut self, open: char, depth: usize) -> TolerantResult<ParsedValue> {
        self.pos += open.len_utf8();
        self.brackets += 1;
        let node = match open {
            '{' | '｛' => self.pairs(PairsEnd::Brace, depth).map(ParsedValue::Map),
            '[' => self.list(']', depth).map(ParsedValue::List),
            _ => self.list(')', depth).map(ParsedValue::List),
        }?;
        self.brackets -= 1;
        Ok(node)
    }

    /// Reads pairs up to `end`, which is consumed.
    pub(super) fn pairs(&mut self, end: PairsEnd, depth: usize) -> TolerantResult<Vec<Pair>> {
        let mut pairs = Vec::new();
        loop {
            let commas = self.skip_separators()?;
            let Some(c) = self.peek() else {
                self.cut |= end != PairsEnd::Text || commas > 0;
                return Ok(pairs);
            };
            if self.consume_end(c, end) {
                self.note_commas(commas, pairs.is_empty(), true);
                return Ok(pairs);
            }
            self.note_commas(commas, pairs.is_empty(), false);
            if depth == 0 && pairs.len() == PAIRS_MAX {
                return Err(TolerantParseError);
            }
            match self.pair(depth)? {
                Some(pair) => pairs.push(pair),
                None => return Ok(pairs),
            }
            if self.cut {
                return Ok(pairs);
            }
        }
    }

    fn consume_end(&mut self, c: char, end: PairsEnd) -> bool {
        let closes = matches!(
            (c, end),
            ('}' | '｝', PairsEnd::Brace) | (')', PairsEnd::Paren)
        );
        self.pos += if closes { c.len_utf8() } else { 0 };
        closes
    }

    fn note_commas(&mut self, commas: usize, first: bool, last: bool) {
        match (commas, first, last) {
            (1, false, true) => self.forms.add(FormRepair::TrailingComma),
            (0, false, false) => self.forms.add(FormRepair::MissingComma),
            (1, false, false) | (0, _, _) => {}
            _ => self.forms.add(FormRepair::ExtraComma),
        }
    }

    fn pair(&mut self, depth: usize) -> TolerantResult<Option<Pair>> {
        let Some((key, is_quoted)) = self.key()? else {
            return Ok(None);
        };
        self.skip_filler()?;
        if self.peek().is_none() {
            self.cut = true;
            return Ok(None);
        }
        self.colon(is_quoted)?;
        self.skip_filler()?;
        let start = self.pos;
        let value = self.value(depth + 1)?;
        if depth == 1 && key == "arguments" {
            self.arguments = Some(start..self.pos);
        }
        Ok(value.map(|value| (key, value)))
    }

    fn key(&mut self) -> TolerantResult<Option<(String, bool)>> {
        let c = self.peek().ok_or(TolerantParseError)?;
        if self.skip_prefix(&['u', 'U']) || quote::is_quote(c) {
            let key = self.quoted(QuotePosition::Key, false)?;
            return Ok(key.map(|key| (key, true)));
        }
        // A Ruby symbol: `:scene => "koi"`.
        let symbol = self.rest().strip_prefix(':');
        if symbol.is_some_and(|rest| rest.starts_with(char::is_alphabetic)) {
            self.pos += 1;
        }
        let rest = self.rest();
        let length = rest.find(|c| !is_key_char(c)).unwrap_or(rest.len());
        let key = rest.get(..length).filter(|key| !key.is_empty());
        let key = key.ok_or(TolerantParseError)?.to_owned();
        self.pos += length;
        self.forms.add(FormRepair::UnquotedKey);
        Ok(Some((key, false)))
    }

    fn colon(&mut self, is_quoted: bool) -> TolerantResult<()> {
        const COLONS: [(&str, Option<FormRepair>); 6] = [
            ("=>", Some(FormRepair::Arrow)),
            (":=", Some(FormRepair::Arrow)),
            ("->", Some(FormRepair::Arrow)),
            (":", None),
            ("：", Some(FormRepair::OtherPunctuation)),
            ("=", Some(FormRepair::Arrow)),
        ];
        let rest = self.rest();
        let mut colons = COLONS.into_iter();
        let (colon, form) = match colons.find(|(colon, _)| rest.starts_with(colon)) {
            Some(found) if !rest.starts_with("==") => found,
            None if is_quoted && starts_value(rest) => ("", Some(FormRepair::MissingColon)),
            _ => return Err(TolerantParseError),
        };
        self.pos += colon.len();
        if let Some(form) = form {
            self.forms.add(form);
        }
        Ok(())
    }

    fn list(&mut self, close: char, depth: usize) -> TolerantResult<Vec<ParsedValue>> {
        if close == ')' {
            self.forms.add(FormRepair::Tuple);
        }
        let mut items = Vec::new();
        loop {
            let commas = self.skip_separators()?;
            let Some(c) = self.peek() else {
                self.cut = true;
                return Ok(items);
            };
            if c == close {
                self.pos += 1;
                self.note_commas(commas, items.is_empty(), true);
                return Ok(items);
            }
            if matches!(c, '}' | ']' | ')') {
                return Err(TolerantParseError);
            }
            self.note_commas(commas, items.is_empty(), false);
            match self.value(depth + 1)? {
                Some(item) => items.push(item),
                None => return Ok(items),
            }
            if self.cut {
                return Ok(items);
            }
        }
    }

    fn quoted(&mut self, place: QuotePosition, raw: bool) -> TolerantResult<Option<String>> {
        match quote::read(self.rest(), self.quotes, place, raw, &mut self.forms) {
            Ok((text, used)) => {
                self.pos += used;
                Ok(Some(text))
            }
            Err(QuoteError::Cut) => {
                self.cut = true;
                self.pos = self.text.len();
                Ok(None)
            }
            Err(QuoteError::Broken) => Err(TolerantParseError),
        }
    }

    /// Steps over a Python string prefix, if one of these letters and a quote come next.
    fn skip_prefix(&mut self, letters: &[char]) -> bool {
        let quoted = self.rest().strip_prefix(letters);
        let has_prefix = quoted.is_some_and(|quoted| quoted.starts_with(['"', '\'']));
        if has_prefix {
            self.pos += 1;
            self.forms.add(FormRepair::PythonLiteral);
        }
        has_prefix
    }

    /// Reads `<scene-name>`, keeping its brackets, so that coercion can recognise it.
    fn angled(&mut self) -> TolerantResult<Option<ParsedValue>> {
        let rest = self.rest();
        let Some(length) = rest.find('>') else {
            self.cut = true;
            return Ok(None);
        };
        let word = rest.get(..=length).unwrap_or_default().to_owned();
        self.pos += length + 1;
        Ok(Some(ParsedValue::Word(word)))
    }

    /// Reads text without quotes: up to punctuation, a line's end, or the key of the next pair.
    fn word(&mut self) -> TolerantResult<Option<ParsedValue>> {
        let length = self.word_length()?;
        let word = self.rest().get(..length).unwrap_or_default().trim_end();
        self.pos += length;
        if word.is_empty() {
            return Err(TolerantParseError);
        }
        self.cut |= self.brackets > 0 && self.pos == self.text.len();
        if self.cut {
            return Ok(None);
        }
        let (node, form) = scalar(word.to_owned());
        if let Some(form) = form {
            self.forms.add(form);
        }
        Ok(Some(node))
    }

    fn word_length(&self) -> TolerantResult<usize> {
        let rest = self.rest();
        let (mut gap, mut token, mut before) = (None, 0, ' ');
        for (at, c) in rest.char_indices() {
            let tail = rest.get(at..).unwrap_or_default();
            match c {
                ',' | '}' | ']' | ')' | ';' | '，' | '、' | '｝' | '\n' | '\r' => return Ok(at),
                '{' | '[' | '(' => return Err(TolerantParseError),
                '#' | '/' if before == ' ' && starts_comment(tail) => return Ok(at),
                ' ' | '\t' if before != ' ' && !blank_then_separator(tail) => {
                    (gap, token) = (Some(at), at + 1);
                }
                ':' | '=' => {
                    let token = rest.get(token..at).unwrap_or_default();
                    if !is_inside_word(token, tail, gap.is_some()) {
                        return gap.ok_or(TolerantParseError);
                    }
                }
                _ if quote::is_quote(c) && !is_apostrophe(before, tail) => {
                    let gap = gap.filter(|_| before == ' ');
                    return gap.ok_or(TolerantParseError);
                }
                _ => {}
            }
            before = if c == '\t' { ' ' } else { c };
        }
        Ok(rest.len())
    }

    /// Returns whether `c` comes next.
    pub(super) fn is_at(&self, c: char) -> bool {
        self.peek() == Some(c)
    }

    /// Steps over `c` if it comes next.
    pub(super) fn skip(&mut self, c: char) -> bool {
        let found = self.is_at(c);
        self.pos += if found { c.len_utf8() } else { 0 };
        found
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips blanks and comments.
    pub(super) fn skip_filler(&mut self) -> TolerantResult<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(|c: char| {
                c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}')
            });
            self.pos += rest.len() - trimmed.len();
            match comment_length(trimmed) {
                Some(Some(length)) => {
                    self.comments.push(self.pos..self.pos + length);
                    self.pos += length;
                }
                Some(None) => {
                    self.cut = true;
                    self.pos = self.text.len();
                }
                None => return Ok(()),
            }
            let left = self.comments_left.checked_sub(1);
            self.comments_left = left.ok_or(TolerantParseError)?;
            self.forms.add(FormRepair::Comment);
        }
    }

    /// Skips blanks, comments and commas; returns the number of commas.
    fn skip_separators(&mut self) -> TolerantResult<usize> {
        let mut commas = 0;
        loop {
            self.skip_filler()?;
            match self.peek() {
                Some(',') => self.pos += 1,
                Some(c @ (';' | '，' | '、')) => {
                    self.pos += c.len_utf8();
                    self.forms.add(FormRepair::OtherPunctuation);
                }
                _ => return Ok(commas),
            }
            commas += 1;
        }
    }
}

/// Parses the value that begins at `at`, once per matching of quotes that succeeds; returns it with the parser after it. The
/// value is `None` if the text was cut before it was complete.
pub(super) fn values(
    text: &str,
    at: usize,
) -> impl Iterator<Item = (Option<ParsedValue>, TolerantParser<'_>)> {
    let all = [QuoteMatching::Exact, QuoteMatching::Loose].into_iter();
    all.filter_map(move |quotes| {
        let mut parser = TolerantParser::new(text, at, quotes);
        let value = parser.value(0).ok()?;
        Some((value, parser))
    })
}

/// Interprets a word: as a literal, a plain number, or still a word.
pub(super) fn scalar(word: String) -> (ParsedValue, Option<FormRepair>) {
    let python = |is_json: bool| (!is_json).then_some(FormRepair::PythonLiteral);
    for (literal, value) in [("true", true), ("false", false)] {
        if word.eq_ignore_ascii_case(literal) {
            return (ParsedValue::Bool(value), python(word == literal));
        }
    }
    if parsed_value::is_nothing(&word) {
        return (ParsedValue::Null, python(word == "null"));
    }
    let numeral = numeral::parse(&word);
    match numeral.as_ref().and_then(numeral::number) {
        // `1.10` may be a version and `05` a code: only a word that prints the same as a number is surely one.
        Some(number) if number.to_string() == word => (ParsedValue::Number(number), None),
        Some(_) => (ParsedValue::Word(word), None),
        None => (ParsedValue::Word(word), Some(FormRepair::UnquotedText)),
    }
}

/// Returns whether a value certainly begins here, so that only a colon can be missing before it.
fn starts_value(text: &str) -> bool {
    let is_literal = |word: &&str| {
        let rest = text.strip_prefix(*word);
        rest.is_some_and(|rest| !rest.starts_with(is_key_char))
    };
    let literals = ["true", "false", "null", "True", "False", "None"];
    text.starts_with(|c: char| {
        quote::is_quote(c) || c.is_ascii_digit() || matches!(c, '-' | '{' | '[')
    }) || literals.iter().any(is_literal)
}

fn is_key_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '?' | '@' | '/')
}

fn starts_comment(text: &str) -> bool {
    text.starts_with('#') || text.starts_with("//") || text.starts_with("/*")
}

/// Returns the length of the comment that `text` begins with; `Some(None)` if it does not end.
fn comment_length(text: &str) -> Option<Option<usize>> {
    let end_after = |mark: &str| text.find(mark).map(|at| at + mark.len());
    if text.starts_with("/*") {
        Some(end_after("*/"))
    } else if text.starts_with("<!--") {
        Some(end_after("-->"))
    } else if text.starts_with("//") || text.starts_with('#') {
        Some(Some(text.find('\n').unwrap_or(text.len())))
    } else {
        None
    }
}

/// Returns whether a blank belongs to a separator and does not end a word, as in `debug : true`.
fn blank_then_separator(text: &str) -> bool {
    let mut chars = text.chars().take(LOOK_MAX);
    let next = chars.find(|c| !matches!(c, ' ' | '\t'));
    matches!(next, Some(':' | '='))
}

/// Returns whether the colon or equals sign that `tail` begins with is part of the word, as in `14:00` or a URL.
fn is_inside_word(token: &str, tail: &str, has_gap: bool) -> bool {
    let next = tail.chars().nth(1).unwrap_or(' ');
    if tail.starts_with(':') {
        let is_time = token.ends_with(|c: char| c.is_ascii_digit()) && next.is_ascii_digit();
        return is_time
            || tail.starts_with("://")
            || (!has_gap && !token.is_empty() && next.is_alphanumeric());
    }
    token.contains("://")
}

fn is_apostrophe(before: char, tail: &str) -> bool {
    let mut chars = tail.chars();
    let is_single_quote = chars.next().is_some_and(|c| matches!(c, '\'' | '’'));
    is_single_quote && before.is_alphanumeric() && chars.next().is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    /// Returns the value as JSON, or the reason for having none.
    fn read(text: &str, quotes: QuoteMatching) -> String {
        let mut parser = TolerantParser::new(text, 0, quotes);
        match parser.value(0) {
            _ if parser.cut => "cut".into(),
            Ok(Some(node)) if parser.position() == text.len() => node.to_value().to_string(),
            Ok(_) => format!("stopped at {}", parser.position()),
            Err(TolerantParseError) => "broken".into(),
        }
    }

    #[test]
    fn reads_what_is_nearly_json() {
        let want = r#"{"scene":"koi","debug":true,"fps":5}"#;
        for text in [
            "{'scene':'koi','debug':true,'fps':5}",
            "{u'scene': u'koi', 'debug': True, 'fps': 5,}",
            "{scene: \"koi\", debug: true, fps: 5}",
            "{scene: koi, debug: true, fps: 5}",
            "{scene: koi debug: true fps: 5}",
            "{\"scene\":\"koi\" \"debug\":true \"fps\":5}",
            "{scene=koi, debug=True, fps=5}",
            "{\"scene\"=>\"koi\",\"debug\"=>true,\"fps\"=>5}",
            "{\"scene\" \"koi\", debug: TRUE; fps:5}",
            "{// fish\n\"scene\":\"koi\",/* x */\"debug\":true,# y\n\"fps\":5}",
            "{“scene”: “koi”, ‘debug’: true, `fps`: 5}",
            "{scene: koi,, debug : true,\n fps\n:\n5\n}",
            "{,scene: koi, debug: true, fps: +5}",
            "{scene: koi \"debug\": true, fps: 05}",
        ] {
            assert_eq!(read(text, QuoteMatching::Exact), want, "{text}");
        }
    }

    #[test]
    fn keeps_quotes_inside_text_when_asked() {
        for (text, want) in [
            (
                r#"{"a": "say "hi" now", "b": 1}"#,
                r#"{"a":"say \"hi\" now","b":1}"#,
            ),
            (
                "{'a': 'it's', 'b': 'that's'}",
                r#"{"a":"it's","b":"that's"}"#,
            ),
            ("{“a”: \"x\", “b\": “y\"}", r#"{"a":"x","b":"y"}"#),
        ] {
            assert_eq!(read(text, QuoteMatching::Exact), "broken", "{text}");
            assert_eq!(read(text, QuoteMatching::Loose), want, "{text}");
        }
    }

    #[test]
    fn never_supplies_a_missing_end() {
        for text in [
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":\"x",
            "{\"a\":\"x\"",
            "[1,2",
            "{\"a\":[1",
            "{\"a\":tr",
            "{\"a\":,\"b\":1}",
            "{\"a\":}",
            "{\"a\":\"\\u00",
            "{/* ",
        ] {
            for quotes in [QuoteMatching::Exact, QuoteMatching::Loose] {
                assert_eq!(read(text, quotes), "cut", "{text}");
            }
        }
    }

    #[test]
    fn refuses_what_has_two_readings() {
        for text in [
            "{\"a\":[1,2}",
            "{\"a\": \"x\" b\": 1}",
            "{\"a\", \"b\"}",
            "{'a': 'x' 'y'}",
            "{a b}",
            "{a: f(1)}",
            "{\"a\": \"x\": 1}",
            "{a: 1)",
            "{\"a\": \"koi, \"b\": true}",
        ] {
            for quotes in [QuoteMatching::Exact, QuoteMatching::Loose] {
                assert_eq!(read(text, quotes), "broken", "{text} {quotes:?}");
            }
        }
    }

    #[test]
    fn keeps_times_and_addresses_whole() {
        assert_eq!(
            read(
                "{at: 14:00, url: https://a.b/c?d=1 e: 2}",
                QuoteMatching::Exact
            ),
            r#"{"at":"14:00","url":"https://a.b/c?d=1","e":2}"#
        );
    }
}
