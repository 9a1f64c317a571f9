//! The ways in which a text can differ from JSON and still mean one thing, each with its price.

/// One repair of form. Counts once per text, however often it occurs.
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
    Repeated,
    Envelope,
}

impl FormRepair {
    /// Returns the cost of the repair, a stable word for programs, and a description.
    const fn row(self) -> (u32, &'static str, &'static str) {
        match self {
            Self::SingleQuotes => (1, "single_quotes", "single quotes read as double quotes"),
            Self::CurlyQuotes => (1, "curly_quotes", "curly quotes read as straight quotes"),
            Self::MixedQuotes => (3, "mixed_quotes", "quotes of different sorts paired"),
            Self::InnerQuotes => (4, "inner_quotes", "a quote inside a text kept as text"),
            Self::TrailingComma => (1, "trailing_comma", "a comma before the end dropped"),
            Self::ExtraComma => (2, "extra_comma", "a comma too many dropped"),
            Self::MissingComma => (3, "missing_comma", "a missing comma supplied"),
            Self::MissingColon => (4, "missing_colon", "a missing colon supplied"),
            Self::OtherPunctuation => (
                2,
                "other_punctuation",
                "punctuation of another kind read as comma or colon",
            ),
            Self::UnquotedKey => (1, "unquoted_key", "a key without quotes"),
            Self::UnquotedText => (2, "unquoted_text", "a text without quotes"),
            Self::PythonLiteral => (1, "python_literal", "a Python literal"),
            Self::Tuple => (1, "tuple", "a tuple read as a list"),
            Self::Comment => (1, "comment", "a comment skipped"),
            Self::Arrow => (2, "arrow", "'=>' or '=' read as a colon"),
            Self::RawControl => (
                1,
                "raw_control",
                "a raw line break or tab inside a text kept",
            ),
            Self::OddEscape => (3, "odd_escape", "an escape that is not JSON's"),
            Self::ExtraCloser => (2, "extra_closer", "a closing bracket too many dropped"),
            Self::Fence => (1, "fence", "a code fence removed"),
            Self::Prose => (2, "prose", "what stands around the arguments is skipped"),
            Self::Tag => (2, "tag", "tags read"),
            Self::Keywords => (2, "keywords", "keyword arguments read"),
            Self::Call => (2, "call", "call syntax read"),
            Self::Lines => (3, "lines", "lines of 'key: value' read"),
            Self::Options => (3, "options", "command-line options read"),
            Self::UrlEncoded => (2, "url_encoded", "url-encoded text decoded"),
            Self::TextInText => (1, "text_in_text", "JSON inside a text read"),
            Self::Backslashes => (3, "backslashes", "needless backslashes removed"),
            Self::Entities => (3, "entities", "HTML entities decoded"),
            Self::ListOfOne => (2, "list_of_one", "a list of one read as its element"),
            Self::Repeated => (2, "repeated", "the same object several times read once"),
            Self::Envelope => (2, "envelope", "an envelope around the arguments opened"),
        }
    }

    /// Returns the cost of the repair; the cheapest reading wins.
    pub(super) const fn cost(self) -> u32 {
        self.row().0
    }

    /// Returns a stable word for programs.
    pub(super) const fn code(self) -> &'static str {
        self.row().1
    }

    /// Returns the repair in words.
    pub(super) const fn label(self) -> &'static str {
        self.row().2
    }
}

/// The repairs of one text, each at most once, in order of appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FormRepairs(Vec<FormRepair>);

impl FormRepairs {
    pub(super) fn add(&mut self, form: FormRepair) {
        if !self.0.contains(&form) {
            self.0.push(form);
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        other.iter().for_each(|form| self.add(form));
    }

    pub(super) fn contains(&self, form: FormRepair) -> bool {
        self.0.contains(&form)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = FormRepair> {
        self.0.iter().copied()
    }

    pub(super) fn cost(&self) -> u32 {
        self.iter().map(FormRepair::cost).sum()
    }
}
