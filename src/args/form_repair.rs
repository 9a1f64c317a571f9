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
            Self::SingleQuotes => (1, "single_quotes", "read single quotes as double quotes"),
            Self::CurlyQuotes => (1, "curly_quotes", "read curly quotes as straight quotes"),
            Self::MixedQuotes => (3, "mixed_quotes", "accepted two different quotes as a pair"),
            Self::InnerQuotes => (4, "inner_quotes", "kept a quote inside a string"),
            Self::TrailingComma => (1, "trailing_comma", "dropped a comma before the end"),
            Self::ExtraComma => (2, "extra_comma", "dropped an extra comma"),
            Self::MissingComma => (3, "missing_comma", "added a missing comma"),
            Self::MissingColon => (4, "missing_colon", "added a missing colon"),
            Self::OtherPunctuation => (
                2,
                "other_punctuation",
                "read other punctuation as a comma or colon",
            ),
            Self::UnquotedKey => (1, "unquoted_key", "read an unquoted key"),
            Self::UnquotedText => (2, "unquoted_text", "read an unquoted string"),
            Self::PythonLiteral => (1, "python_literal", "a Python literal"),
            Self::Tuple => (1, "tuple", "read a tuple as a list"),
            Self::Comment => (1, "comment", "skipped a comment"),
            Self::Arrow => (2, "arrow", "read '=>' or '=' as a colon"),
            Self::RawControl => (
                1,
                "raw_control",
                "kept a raw line break or tab inside a string",
            ),
            Self::OddEscape => (3, "odd_escape", "read an escape that JSON does not have"),
            Self::ExtraCloser => (2, "extra_closer", "dropped an extra closing bracket"),
            Self::Fence => (1, "fence", "removed a code fence"),
            Self::Prose => (2, "prose", "skipped the text around the arguments"),
            Self::Tag => (2, "tag", "read tags"),
            Self::Keywords => (2, "keywords", "read keyword arguments"),
            Self::Call => (2, "call", "read call syntax"),
            Self::Lines => (3, "lines", "read lines of 'key: value'"),
            Self::Options => (3, "options", "read command-line options"),
            Self::UrlEncoded => (2, "url_encoded", "decoded URL-encoded text"),
            Self::TextInText => (1, "text_in_text", "read JSON inside a string"),
            Self::Backslashes => (3, "backslashes", "removed unneeded backslashes"),
            Self::Entities => (3, "entities", "decoded HTML entities"),
            Self::ListOfOne => (2, "list_of_one", "read a list of one item as that item"),
            Self::Repeated => (
                2,
                "repeated",
                "used one copy of an object that was sent several times",
            ),
            Self::Envelope => (2, "envelope", "removed an envelope around the arguments"),
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
