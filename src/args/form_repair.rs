//! The ways in which a text can differ from JSON and still mean one thing, each with its price.

use super::skipped::{SkippedPlace, SkippedText};

/// One repair of form. Counted once per text, however often it occurs: the oddity is the dialect, not its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormRepair {
    SingleQuotes,
    CurlyQuotes,
    MixedQuotes,
    InnerQuotes,
    TrailingComma,
    ExtraComma,
    MissingComma,
    MissingColon,
    OtherPunctuation,
    UnquotedKey,
    UnquotedText,
    PythonLiteral,
    Tuple,
    Comment,
    Arrow,
    RawControl,
    OddEscape,
    ExtraCloser,
    Fence,
    Prose,
    Tag,
    Keywords,
    Call,
    Lines,
    Options,
    UrlEncoded,
    TextInText,
    Backslashes,
    Entities,
    ListOfOne,
    Envelope,
}

impl FormRepair {
    /// Returns the cost of the repair; the cheapest reading wins.
    pub(super) const fn cost(self) -> u32 {
        match self {
            Self::SingleQuotes
            | Self::TrailingComma
            | Self::Comment
            | Self::PythonLiteral
            | Self::Fence
            | Self::UnquotedKey
            | Self::RawControl
            | Self::Tuple
            | Self::TextInText
            | Self::CurlyQuotes => 1,
            Self::ExtraComma
            | Self::OtherPunctuation
            | Self::UnquotedText
            | Self::Arrow
            | Self::ExtraCloser
            | Self::Tag
            | Self::Prose
            | Self::ListOfOne
            | Self::Envelope
            | Self::Keywords
            | Self::Call
            | Self::UrlEncoded => 2,
            Self::MissingComma
            | Self::OddEscape
            | Self::Backslashes
            | Self::Entities
            | Self::Lines
            | Self::Options
            | Self::MixedQuotes => 3,
            Self::MissingColon | Self::InnerQuotes => 4,
        }
    }

    /// A stable word for programs.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::SingleQuotes => "single_quotes",
            Self::CurlyQuotes => "curly_quotes",
            Self::MixedQuotes => "mixed_quotes",
            Self::InnerQuotes => "inner_quotes",
            Self::TrailingComma => "trailing_comma",
            Self::ExtraComma => "extra_comma",
            Self::MissingComma => "missing_comma",
            Self::MissingColon => "missing_colon",
            Self::OtherPunctuation => "other_punctuation",
            Self::UnquotedKey => "unquoted_key",
            Self::UnquotedText => "unquoted_text",
            Self::PythonLiteral => "python_literal",
            Self::Tuple => "tuple",
            Self::Comment => "comment",
            Self::Arrow => "arrow",
            Self::RawControl => "raw_control",
            Self::OddEscape => "odd_escape",
            Self::ExtraCloser => "extra_closer",
            Self::Fence => "fence",
            Self::Prose => "prose",
            Self::Tag => "tag",
            Self::Keywords => "keywords",
            Self::Call => "call",
            Self::Lines => "lines",
            Self::Options => "options",
            Self::UrlEncoded => "url_encoded",
            Self::TextInText => "text_in_text",
            Self::Backslashes => "backslashes",
            Self::Entities => "entities",
            Self::ListOfOne => "list_of_one",
            Self::Envelope => "envelope",
        }
    }

    /// The repair in words.
    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::SingleQuotes => "single quotes read as double quotes",
            Self::CurlyQuotes => "curly quotes read as straight quotes",
            Self::MixedQuotes => "quotes of different sorts paired",
            Self::InnerQuotes => "a quote inside a text kept as text",
            Self::TrailingComma => "a comma before the end dropped",
            Self::ExtraComma => "a comma too many dropped",
            Self::MissingComma => "a missing comma supplied",
            Self::OtherPunctuation => "punctuation of another kind read as comma or colon",
            Self::MissingColon => "a missing colon supplied",
            Self::UnquotedKey => "a key without quotes",
            Self::UnquotedText => "a text without quotes",
            Self::PythonLiteral => "a Python literal",
            Self::Tuple => "a tuple read as a list",
            Self::Comment => "a comment skipped",
            Self::Arrow => "'=>' or '=' read as a colon",
            Self::RawControl => "a raw line break or tab inside a text kept",
            Self::OddEscape => "an escape that is not JSON's",
            Self::ExtraCloser => "a closing bracket too many dropped",
            Self::Fence => "a code fence removed",
            Self::Prose => "words around the arguments skipped",
            Self::Tag => "tags read",
            Self::Keywords => "keyword arguments read",
            Self::Call => "call syntax read",
            Self::Lines => "lines of 'key: value' read",
            Self::Options => "command-line options read",
            Self::UrlEncoded => "url-encoded text decoded",
            Self::TextInText => "JSON inside a text read",
            Self::Entities => "HTML entities decoded",
            Self::Backslashes => "needless backslashes removed",
            Self::ListOfOne => "a list of one read as its element",
            Self::Envelope => "an envelope around the arguments opened",
        }
    }
}

/// The repairs of one text, each at most once, in order of appearance, and the text that they skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FormRepairs {
    list: Vec<FormRepair>,
    skipped: Vec<SkippedText>,
}

impl FormRepairs {
    pub(super) fn add(&mut self, form: FormRepair) {
        if !self.list.contains(&form) {
            self.list.push(form);
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        for form in &other.list {
            self.add(*form);
        }
        for skipped in &other.skipped {
            self.skip(&skipped.text, skipped.place);
        }
    }

    /// Keeps text that is skipped, for its words to be judged.
    pub(super) fn skip(&mut self, text: &str, place: SkippedPlace) {
        if !text.trim().is_empty() {
            self.skipped.push(SkippedText {
                text: text.to_owned(),
                place,
            });
        }
    }

    /// Returns what was skipped.
    pub(super) fn skipped(&self) -> &[SkippedText] {
        &self.skipped
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = FormRepair> {
        self.list.iter().copied()
    }

    pub(super) fn cost(&self) -> u32 {
        self.iter().map(FormRepair::cost).sum()
    }
}
