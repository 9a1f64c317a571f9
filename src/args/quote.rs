//! Reads quoted text of every sort: finds the closing quote and decodes escapes.

use super::{
    form_repair::{FormRepair, FormRepairs},
    limits::LOOK_MAX,
};

/// Rule by which a closing quote is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteMatching {
    /// It is the partner of the opening one.
    Exact,
    /// It has the same weight and stands before punctuation; any other quote is part of the text.
    Loose,
}

/// Position of the text, which decides what may follow its closing quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuotePosition {
    Key,
    Value,
}

/// Reason why a quoted text could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteError {
    /// The text ended first.
    Cut,
    /// Its end cannot be determined.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteWeight {
    Single,
    Double,
}

fn weight(c: char) -> Option<QuoteWeight> {
    match c {
        '"' | '“' | '”' | '„' | '‟' | '«' | '»' | '\u{ff02}' | '「' | '」' => {
            Some(QuoteWeight::Double)
        }
        '\'' | '‘' | '’' | '‚' | '‛' | '`' | '´' => Some(QuoteWeight::Single),
        _ => None,
    }
}

/// Returns whether `c` can open a quoted text.
pub(super) fn is_quote(c: char) -> bool {
    weight(c).is_some()
}

fn is_partner(open: char, close: char) -> bool {
    match open {
        '“' | '”' | '„' | '‟' => matches!(close, '“' | '”' | '‟'),
        '‘' | '’' | '‚' | '‛' => matches!(close, '‘' | '’' | '‛'),
        '«' | '»' => matches!(close, '«' | '»'),
        '「' | '」' => close == '」',
        '`' | '´' => matches!(close, '`' | '´' | '\''),
        _ => open == close,
    }
}

/// Reads the quoted text whose opening quote `text` begins with; returns it and the bytes used.
pub(super) fn read(
    text: &str,
    quotes: QuoteMatching,
    place: QuotePosition,
    raw: bool,
    forms: &mut FormRepairs,
) -> Result<(String, usize), QuoteError> {
    let open = text.chars().next().ok_or(QuoteError::Cut)?;
    let own = weight(open).ok_or(QuoteError::Broken)?;
    if let Some(fence) = ["\"\"\"", "'''"]
        .into_iter()
        .find(|fence| text.starts_with(fence))
    {
        return triple(text, fence, forms);
    }
    QuoteScanner {
        text,
        open,
        own,
        quotes,
        place,
        raw,
        inner_open: false,
        out: String::new(),
        at: open.len_utf8(),
    }
    .run(forms)
}

fn triple(text: &str, fence: &str, forms: &mut FormRepairs) -> Result<(String, usize), QuoteError> {
    let body = text.get(3..).ok_or(QuoteError::Cut)?;
    let end = body.find(fence).ok_or(QuoteError::Cut)?;
    let inner = body.get(..end).ok_or(QuoteError::Broken)?;
    forms.add(FormRepair::PythonLiteral);
    if inner.contains('\\') {
        Err(QuoteError::Broken)
    } else {
        Ok((inner.to_owned(), end + 6))
    }
}

struct QuoteScanner<'a> {
    text: &'a str,
    open: char,
    own: QuoteWeight,
    quotes: QuoteMatching,
    place: QuotePosition,
    raw: bool,
    /// A quote inside the text has been opened and not closed.
    inner_open: bool,
    out: String,
    at: usize,
}

impl QuoteScanner<'_> {
    fn run(mut self, forms: &mut FormRepairs) -> Result<(String, usize), QuoteError> {
        loop {
            self.copy_plain_run();
            let c = self.peek().ok_or(QuoteError::Cut)?;
            if c == '\\' && !self.raw {
                self.escape(forms)?;
                continue;
            }
            if weight(c) == Some(self.own) && self.closes(c, forms)? {
                self.note_quotes(c, forms);
                return Ok((self.out, self.at + c.len_utf8()));
            }
            if c.is_ascii_control() {
                forms.add(FormRepair::RawControl);
            }
            self.push(c);
        }
    }

    /// Copies characters that can be neither quote, escape nor control character.
    fn copy_plain_run(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let is_raw = |b: &u8| (0x20..0x80).contains(b) && !matches!(b, b'"' | b'\'' | b'\\' | b'`');
        let length = rest.iter().take_while(|b| is_raw(b)).count();
        self.out
            .push_str(self.text.get(self.at..self.at + length).unwrap_or_default());
        self.at += length;
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn push(&mut self, c: char) {
        self.out.push(c);
        self.at += c.len_utf8();
    }

    fn closes(&mut self, c: char, forms: &mut FormRepairs) -> Result<bool, QuoteError> {
        if self.quotes == QuoteMatching::Exact {
            return Ok(is_partner(self.open, c));
        }
        let after = self.text.get(self.at + c.len_utf8()..).unwrap_or_default();
        match (self.place, follower(after)) {
            (_, None)
            | (QuotePosition::Value, Some(',' | '，' | '}' | '｝' | ']' | ')' | ';'))
            | (QuotePosition::Key, Some(':' | '：' | '=')) => Ok(true),
            (QuotePosition::Value, Some(':'))
            | (QuotePosition::Key, Some(',' | '}' | ']' | ')')) => Err(QuoteError::Broken),
            (_, Some(next)) if is_quote(next) => Err(QuoteError::Broken),
            _ => self.inner_quote(after, forms),
        }
    }

    /// Handles a quote inside the text: it opens at the beginning of a word, and then another may close it at the end of one.
    /// In `"koi" or "star"` the first stands at an end, so these are two texts.
    fn inner_quote(&mut self, after: &str, forms: &mut FormRepairs) -> Result<bool, QuoteError> {
        let ends_word = self.out.ends_with(|c: char| c.is_alphanumeric());
        let before_blank = after.starts_with(char::is_whitespace);
        let in_word = ends_word && !before_blank;
        if ends_word && before_blank && !self.inner_open && self.own == QuoteWeight::Double {
            return Err(QuoteError::Broken);
        }
        if !in_word {
            self.inner_open = !self.inner_open;
        }
        forms.add(FormRepair::InnerQuotes);
        Ok(false)
    }

    fn note_quotes(&self, close: char, forms: &mut FormRepairs) {
        match (self.open, close) {
            ('"', '"') => {}
            ('\'', '\'') => forms.add(FormRepair::SingleQuotes),
            (open, close) if is_partner(open, close) => forms.add(FormRepair::CurlyQuotes),
            _ => forms.add(FormRepair::MixedQuotes),
        }
    }

    fn escape(&mut self, forms: &mut FormRepairs) -> Result<(), QuoteError> {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let c = rest.chars().next().ok_or(QuoteError::Cut)?;
        self.at += 1 + c.len_utf8();
        let decoded = match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode()?,
            _ => return self.python_escape(c, forms),
        };
        self.out.push(decoded);
        Ok(())
    }

    /// Reads Python's escapes. An unknown escape keeps its backslash, as in Python.
    fn python_escape(&mut self, c: char, forms: &mut FormRepairs) -> Result<(), QuoteError> {
        match c {
            '\'' | '`' => self.out.push(c),
            '\n' => {}
            'x' => {
                let code = self.hex(2)?;
                self.out
                    .push(char::from_u32(code).ok_or(QuoteError::Broken)?);
            }
            '0'..='9' => return Err(QuoteError::Broken),
            _ if weight(c) == Some(QuoteWeight::Double) => self.out.push('"'),
            _ if weight(c) == Some(QuoteWeight::Single) => self.out.push('\''),
            _ => {
                self.out.push('\\');
                self.out.push(c);
            }
        }
        forms.add(FormRepair::OddEscape);
        Ok(())
    }

    fn unicode(&mut self) -> Result<char, QuoteError> {
        let first = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or(QuoteError::Broken);
        }
        let paired = self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with("\\u"));
        if !paired {
            return Err(QuoteError::Broken);
        }
        self.at += 2;
        let second = self
            .hex(4)?
            .checked_sub(0xdc00)
            .filter(|low| *low < 0x400)
            .ok_or(QuoteError::Broken)?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second).ok_or(QuoteError::Broken)
    }

    fn hex(&mut self, digits: usize) -> Result<u32, QuoteError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.len() < digits {
            return Err(QuoteError::Cut);
        }
        let code = rest
            .get(..digits)
            .filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()))
            .ok_or(QuoteError::Broken)?;
        self.at += digits;
        u32::from_str_radix(code, 16).map_err(|_| QuoteError::Broken)
    }
}

/// Returns the first character that is not blank, within a bounded distance.
fn follower(text: &str) -> Option<char> {
    text.chars().take(LOOK_MAX).find(|c| !c.is_whitespace())
}
