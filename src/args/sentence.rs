//! Reads a text without brackets as a sentence: does it give a parameter a value, or ask for something else than the defaults?

use super::{
    arguments::CallReader,
    heuristics,
    parsed_value::ParsedValue,
    quote,
    shape::{ParameterShape, ValueKind},
    unknown_keys::NAME_PARTS_MAX,
    value_coercion::{ValueCoercer, ValueSite},
    vocabulary::{CLAUSE_ENDS, vocabulary},
    word_table::FoldedText,
};
use std::ops::Range;

/// Longest text that is read as a sentence; a longer one may ask for anything.
const SENTENCE_BYTES_MAX: usize = 16 << 10;

/// Words between a parameter's name and its value.
const LINKS: [&str; 5] = ["is", "as", "to", "named", "called"];

/// Words before a name before a parameter's name: `the sunset scene`.
const ARTICLES: [&str; 6] = ["the", "a", "an", "this", "that", "my"];

/// Most words of a sentence that may be one name.
const JOINED_WORDS_MAX: usize = 3;

/// A text as words, as parameters are written with `_` and `-`, and their places in it.
pub(super) struct Sentence<'t> {
    text: &'t str,
    words: Vec<(Range<usize>, &'t str)>,
}

impl<'t> Sentence<'t> {
    /// Returns the words of a text; `None` if it is too long for a sentence.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        if text.len() > SENTENCE_BYTES_MAX {
            return None;
        }
        let is_outside = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-');
        let words = text
            .split_inclusive(is_outside)
            .scan(0, |end, piece: &str| {
                let start = *end + piece.len() - piece.trim_start_matches('-').len();
                *end += piece.len();
                let word = piece.trim_end_matches(is_outside).trim_matches('-');
                Some((start..start + word.len(), word))
            });
        let words = words.filter(|(_, word)| word.contains(char::is_alphanumeric));
        Some(Self {
            text,
            words: words.collect(),
        })
    }

    /// Returns whether a word, or a few of them, is a name: `two pens` may be the scene `two_pens`.
    pub(super) fn holds_name(&self, is_name: impl Fn(&str) -> bool) -> bool {
        let Self { text, words } = self;
        let begins_name = |(at, (first, _)): (usize, &(Range<usize>, &str))| {
            let mut joined = words.iter().skip(at).take(JOINED_WORDS_MAX);
            joined.any(|(last, _)| text.get(first.start..last.end).is_some_and(&is_name))
        };
        let mut beginnings = words.iter().enumerate().take(NAME_PARTS_MAX);
        beginnings.any(begins_name)
    }

    /// Returns the word behind the one at `at`, or behind a link, and the text between the two words.
    fn value_behind(&self, at: usize) -> Option<(&'t str, &'t str)> {
        let [(range, _), (next, word), later @ ..] = self.words.get(at..)? else {
            return None;
        };
        let value = later.first().filter(|_| LINKS.contains(word));
        let value = value.map_or(*word, |(_, value)| *value);
        let between = self.text.get(range.end..next.start).unwrap_or_default();
        Some((between, value))
    }

    /// Returns whether the word behind the one at `at` is a name, or stands in quotes: `scene is sunset`.
    fn names_behind(&self, at: usize, is_name: impl Fn(&str) -> bool) -> bool {
        let Some((between, value)) = self.value_behind(at) else {
            return false;
        };
        // The quote of `the scene's lines` opens nothing.
        let is_quoted =
            between.starts_with(char::is_whitespace) && between.contains(quote::is_quote);
        !between.contains(CLAUSE_ENDS) && (is_quoted || is_name(value))
    }

    /// Returns whether the word before the one at `at` is a name behind an article: `the sunset scene`.
    fn names_before(&self, at: usize, is_name: impl Fn(&str) -> bool) -> bool {
        match self.words.get(..at) {
            Some([.., (_, article), (_, value)]) => {
                ARTICLES.contains(&article.to_lowercase().as_str()) && is_name(value)
            }
            _ => false,
        }
    }
}

impl CallReader<'_> {
    /// Returns whether a text gives a parameter a value without brackets: `scene is letters`, `| scene | letters |`. In a
    /// sentence, a parameter's name may be an ordinary word: `draw the scene now`.
    pub(super) fn gives_argument(&self, sentence: &Sentence<'_>) -> bool {
        let Sentence { text, words } = sentence;
        let gives = |(at, (range, name)): (usize, &(Range<usize>, &str))| {
            let Some(param) = self.param_named(name) else {
                return false;
            };
            let Some((between, value)) = sentence.value_behind(at) else {
                return false;
            };
            let before = text.get(..range.start).unwrap_or_default().trim_end();
            before.ends_with(['|', '('])
                || before.ends_with("--")
                || between.contains(['|', '<', '>', '='])
                || self.may_hold(param, value)
        };
        self.policy.guards_motion() && words.iter().enumerate().any(gives)
    }

    /// Returns whether a word of a sentence may be a parameter's value. Any word is a text: only one with a digit counts.
    fn may_hold(&self, param: &ParameterShape, word: &str) -> bool {
        let node = ParsedValue::Word(word.to_owned());
        match param.kind {
            ValueKind::Text => word.contains(|c: char| c.is_ascii_digit()),
            ValueKind::Verbatim { .. } => false,
            _ => ValueCoercer::new(self.policy)
                .value(ValueSite::of_parameter(param, &node))
                .is_ok(),
        }
    }

    /// Returns whether a sentence asks for something other than the defaults: `resume it please`, `draw the text "Hi"`,
    /// `draw the koi`, `draw the scene slowly`, `scene named sunset`.
    pub(super) fn asks_in_words(&self, sentence: &Sentence<'_>) -> bool {
        let Sentence { text, words } = sentence;
        let is_name =
            |name: &str| !name.eq_ignore_ascii_case("default") && self.is_other_name(name);
        let named = words.iter().map(|(_, word)| self.param_named(word));
        let named: Vec<&ParameterShape> = named.flatten().collect();
        let asks = |param: &&ParameterShape| {
            !matches!(param.kind, ValueKind::Name { .. } | ValueKind::Text)
                && !heuristics::is_harmless(&param.name)
        };
        // `lift the pen` is what `reset` does.
        let action = FoldedText::new(&self.shape.default_action);
        let is_done = |word: &str| action.words().any(|done| done.starts_with(word));
        let instructs = || {
            let node = ParsedValue::Text((*text).to_owned());
            vocabulary().instructs(text, is_done) || heuristics::holds_size("", &node)
        };
        self.policy.guards_motion()
            && (sentence.holds_name(is_name)
                || named.iter().any(asks)
                || self.names_value(sentence, is_done)
                || (!named.is_empty() && instructs()))
    }

    /// Returns whether a sentence gives a name or a text to a parameter, known or not: `the scene called sunset`, `arm 1`,
    /// `the sunset scene`. Words that name nothing, such as `now`, give nothing; `is_done` tells those of the default action.
    fn names_value(&self, sentence: &Sentence<'_>, is_done: impl Fn(&str) -> bool) -> bool {
        let is_name = |word: &str| {
            let word = word.to_lowercase();
            !vocabulary().names_nothing(&word) && !is_done(&word)
        };
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '_');
        sentence.words.iter().enumerate().any(|(at, (_, word))| {
            let stem = word.trim_end_matches(is_number);
            let is_given = || stem.len() < word.len() || sentence.names_behind(at, is_name);
            match self.param_named(stem).map(|param| &param.kind) {
                Some(ValueKind::Name { .. }) => is_given() || sentence.names_before(at, is_name),
                Some(ValueKind::Text) => is_given(),
                _ => false,
            }
        })
    }
}
