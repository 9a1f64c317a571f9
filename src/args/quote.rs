//! Quoted text of every sort: which quote ends it, and what its escapes mean.

use super::{
    form::{Form, Forms},
    limits::LOOK_MAX,
};

/// Rule by which a closing quote is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// By being the partner of the opening one.
    Exact,
    /// By being of the same weight and standing before punctuation; any other quote is part of the text.
    Loose,
}

/// Position of the text, which decides what may follow its closing quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Key,
    Value,
}

/// Reason why a quoted text could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bad {
    /// The text ended first.
    Cut,
    /// Its end is not to be told.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    Single,
    Double,
}

fn weight(c: char) -> Option<Weight> {
    match c {
        '"' | '“' | '”' | '„' | '‟' | '«' | '»' | '\u{ff02}' | '「' | '」' => {
            Some(Weight::Double)
        }
        '\'' | '‘' | '’' | '‚' | '‛' | '`' | '´' => Some(Weight::Single),
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

/// Reads the quoted text whose opening quote `text` begins with; gives the text and the bytes used.
pub(super) fn read(
    text: &str,
    quotes: Quotes,
    place: Place,
    raw: bool,
    forms: &mut Forms,
) -> Result<(String, usize), Bad> {
    let open = text.chars().next().ok_or(Bad::Cut)?;
    let own = weight(open).ok_or(Bad::Broken)?;
    if let Some(fence) = ["\"\"\"", "'''"]
        .into_iter()
        .find(|fence| text.starts_with(fence))
    {
        return triple(text, fence, forms);
    }
    Scan {
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

fn triple(text: &str, fence: &str, forms: &mut Forms) -> Result<(String, usize), Bad> {
    let body = text.get(3..).ok_or(Bad::Cut)?;
    let end = body.find(fence).ok_or(Bad::Cut)?;
    let inner = body.get(..end).ok_or(Bad::Broken)?;
    forms.add(Form::PythonLiteral);
    if inner.contains('\\') {
        Err(Bad::Broken)
    } else {
        Ok((inner.to_owned(), end + 6))
    }
}

struct Scan<'a> {
    text: &'a str,
    open: char,
    own: Weight,
    quotes: Quotes,
    place: Place,
    raw: bool,
    /// A quote inside the text has been opened and not closed.
    inner_open: bool,
    out: String,
    at: usize,
}

impl Scan<'_> {
    fn run(mut self, forms: &mut Forms) -> Result<(String, usize), Bad> {
        loop {
            self.plain_run();
            let c = self.peek().ok_or(Bad::Cut)?;
            if c == '\\' && !self.raw {
                self.escape(forms)?;
                continue;
            }
            if weight(c) == Some(self.own) && self.closes(c, forms)? {
                self.note_quotes(c, forms);
                return Ok((self.out, self.at + c.len_utf8()));
            }
            if c.is_ascii_control() {
                forms.add(Form::RawControl);
            }
            self.push(c);
        }
    }

    /// Copies what can be neither quote, escape nor control character.
    fn plain_run(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let plain = |b: &u8| (0x20..0x80).contains(b) && !matches!(b, b'"' | b'\'' | b'\\' | b'`');
        let length = rest.iter().take_while(|b| plain(b)).count();
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

    fn closes(&mut self, c: char, forms: &mut Forms) -> Result<bool, Bad> {
        if self.quotes == Quotes::Exact {
            return Ok(is_partner(self.open, c));
        }
        let after = self.text.get(self.at + c.len_utf8()..).unwrap_or_default();
        match (self.place, follower(after)) {
            (_, None)
            | (Place::Value, Some(',' | '，' | '}' | '｝' | ']' | ')' | ';'))
            | (Place::Key, Some(':' | '：' | '=')) => Ok(true),
            (Place::Value, Some(':')) | (Place::Key, Some(',' | '}' | ']' | ')')) => {
                Err(Bad::Broken)
            }
            (_, Some(next)) if is_quote(next) => Err(Bad::Broken),
            _ => self.inner(after, forms),
        }
    }

    /// A quote inside the text: one that opens stands at a word's beginning, and only then may one at a word's end close it.
    /// In `"koi" or "star"` the first stands at an end, so these are two texts.
    fn inner(&mut self, after: &str, forms: &mut Forms) -> Result<bool, Bad> {
        let ends_word = self.out.ends_with(|c: char| c.is_alphanumeric());
        let before_blank = after.starts_with(char::is_whitespace);
        let in_word = ends_word && !before_blank;
        if ends_word && before_blank && !self.inner_open && self.own == Weight::Double {
            return Err(Bad::Broken);
        }
        if !in_word {
            self.inner_open = !self.inner_open;
        }
        forms.add(Form::InnerQuotes);
        Ok(false)
    }

    fn note_quotes(&self, close: char, forms: &mut Forms) {
        match (self.open, close) {
            ('"', '"') => {}
            ('\'', '\'') => forms.add(Form::SingleQuotes),
            (open, close) if is_partner(open, close) => forms.add(Form::CurlyQuotes),
            _ => forms.add(Form::MixedQuotes),
        }
    }

    fn escape(&mut self, forms: &mut Forms) -> Result<(), Bad> {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let c = rest.chars().next().ok_or(Bad::Cut)?;
        self.at += 1 + c.len_utf8();
        let meant = match c {
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode()?,
            _ => return self.odd_escape(c, forms),
        };
        self.out.push(meant);
        Ok(())
    }

    /// Reads Python's escapes. An unknown escape keeps its backslash, as in Python.
    fn odd_escape(&mut self, c: char, forms: &mut Forms) -> Result<(), Bad> {
        match c {
            '\'' | '`' => self.out.push(c),
            '\n' => {}
            'x' => {
                let code = self.hex(2)?;
                self.out.push(char::from_u32(code).ok_or(Bad::Broken)?);
            }
            '0'..='9' => return Err(Bad::Broken),
            _ if weight(c) == Some(Weight::Double) => self.out.push('"'),
            _ if weight(c) == Some(Weight::Single) => self.out.push('\''),
            _ => {
                self.out.push('\\');
                self.out.push(c);
            }
        }
        forms.add(Form::OddEscape);
        Ok(())
    }

    fn unicode(&mut self) -> Result<char, Bad> {
        let first = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or(Bad::Broken);
        }
        let paired = self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with("\\u"));
        if !paired {
            return Err(Bad::Broken);
        }
        self.at += 2;
        let second = self
            .hex(4)?
            .checked_sub(0xdc00)
            .filter(|low| *low < 0x400)
            .ok_or(Bad::Broken)?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second).ok_or(Bad::Broken)
    }

    fn hex(&mut self, digits: usize) -> Result<u32, Bad> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.len() < digits {
            return Err(Bad::Cut);
        }
        let code = rest
            .get(..digits)
            .filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()))
            .ok_or(Bad::Broken)?;
        self.at += digits;
        u32::from_str_radix(code, 16).map_err(|_| Bad::Broken)
    }
}

/// The first character that is not blank, looked for over a bounded distance.
fn follower(text: &str) -> Option<char> {
    text.chars().take(LOOK_MAX).find(|c| !c.is_whitespace())
}
