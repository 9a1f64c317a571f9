//! Judges the text of a call that is not an argument: known packaging is skipped, other words count.

use super::{
    heuristics, name, tagged_text,
    vocabulary::{ReaderVocabulary, vocabulary},
    word_table::FoldedText,
};

/// A piece of text that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SkippedText {
    pub(super) text: String,
    pub(super) place: SkippedPlace,
}

/// The place of skipped text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkippedPlace {
    /// Before, between or after the arguments, where only packaging may stand.
    Around,
    /// A comment, or a name that the form requires, such as a variable's: any words that make no request.
    Remark,
}

/// Meaning of skipped text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkippedMeaning {
    /// Nothing.
    Packaging,
    /// Something.
    Words,
    /// An object, such as a call that was commented out.
    Arguments,
    /// A request not to move or not to do anything.
    Refusal,
}

impl SkippedText {
    /// Judges the text; `tools` are the names of the tool that is called.
    pub(super) fn meaning(&self, tools: &[String]) -> SkippedMeaning {
        let vocab = vocabulary();
        let folded = FoldedText::new(&self.text);
        if is_tool(&self.text, tools) {
            SkippedMeaning::Packaging
        } else if vocab.says_no(&folded) || self.is_negation_sign() {
            SkippedMeaning::Refusal
        } else if self.place == SkippedPlace::Remark && self.text.contains('{') {
            SkippedMeaning::Arguments
        } else if match self.place {
            SkippedPlace::Around => PackagingScanner::new(&self.text, tools).scan(),
            SkippedPlace::Remark => !vocab.conditions.is_in(&folded),
        } {
            SkippedMeaning::Packaging
        } else {
            SkippedMeaning::Words
        }
    }

    /// Returns the name of a stop or another tool if the text is a call of it without arguments: `<reset/>`, `call:align`.
    pub(super) fn called_name(&self) -> Option<&str> {
        let text = self.text.trim().trim_end_matches(':');
        let inside = text
            .strip_prefix('<')
            .and_then(|text| text.strip_suffix('>'));
        let name = inside.map_or(text, |inside| inside.trim_matches('/').trim());
        let name = ["call:", "function="]
            .iter()
            .find_map(|mark| name.strip_prefix(mark))
            .unwrap_or(name);
        (name.len() < text.len() && heuristics::names_other_call(name))
            .then_some(name)
            .or_else(|| self.name_in_phrase())
    }

    /// Returns the name of a stop or another tool in a known phrase: `I will call align with`.
    fn name_in_phrase(&self) -> Option<&str> {
        let words = words_of(&self.text);
        let other = words.iter().find(|word| heuristics::names_other_call(word));
        let name = other.copied()?;
        are_phrases(&words, is_part_of_phrase).then_some(name)
    }

    /// Returns whether this is a lone exclamation mark, which programs read as "not".
    fn is_negation_sign(&self) -> bool {
        let text = self.text.trim();
        self.place == SkippedPlace::Around
            && !text.is_empty()
            && text.chars().all(|c| matches!(c, '!' | '¬'))
    }
}

/// Returns the words of phrases.
pub(super) fn words_of(text: &str) -> Vec<&str> {
    let words = text.split(|c| !is_in_word(c));
    words.filter(|word| !word.is_empty()).collect()
}

pub(super) fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '\'' | '’')
}

/// Takes any word in the place of a tool's name, for [`are_phrases`], where the phrase has others.
pub(super) const fn is_part_of_phrase(_: &str, is_alone: bool) -> bool {
    !is_alone
}

/// Returns whether words are a sequence of known phrases. `may_be_tool` judges a word in the place of a tool's name; its second
/// argument is true where the name is all of the phrase.
pub(super) fn are_phrases(
    words: &[impl AsRef<str>],
    may_be_tool: impl Fn(&str, bool) -> bool,
) -> bool {
    let words = words.iter().map(AsRef::as_ref);
    let words = words.map(|word| (word, FoldedText::new(word).letters()));
    let words: Vec<(&str, String)> = words.collect();
    let begins = |rest: &[(&str, String)], phrase: &[String]| {
        let is_same = |((word, letters), known): (&(&str, String), &String)| match known.as_str() {
            "{}" => may_be_tool(word, phrase.len() == 1),
            known => letters == known,
        };
        rest.len() >= phrase.len() && rest.iter().zip(phrase).all(is_same)
    };
    let mut rest = words.as_slice();
    while !rest.is_empty() {
        let phrases = vocabulary().lead_ins.iter();
        let matching = phrases.filter(|phrase| begins(rest, phrase));
        let longest = matching.map(Vec::len).max();
        let Some(after) = longest.and_then(|length| rest.get(length..)) else {
            return false;
        };
        rest = after;
    }
    true
}

/// Returns whether a word may name the tool: any word does if the tool's names are not known.
fn may_be_tool(word: &str, tools: &[String]) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    is_tool(word, tools) || (tools.is_empty() && word.chars().all(is_name))
}

/// Returns whether a name is one of the tool's.
fn is_tool(received: &str, tools: &[String]) -> bool {
    // In a longer text, the part before the last mark would be taken for a namespace.
    let is_inside = |c: char| c.is_alphanumeric() || "_.-/:".contains(c);
    received.trim().chars().all(is_inside)
        && matches!(
            name::resolve(received, tools),
            name::NameResolution::Resolved { .. } | name::NameResolution::Ambiguous { .. }
        )
}

/// Scans the text around a call.
struct PackagingScanner<'a> {
    rest: &'a str,
    tools: &'a [String],
    vocab: &'static ReaderVocabulary,
    /// Words since the last mark that separates phrases.
    words: Vec<String>,
}

impl<'a> PackagingScanner<'a> {
    fn new(text: &'a str, tools: &'a [String]) -> Self {
        Self {
            rest: text,
            tools,
            vocab: vocabulary(),
            words: Vec::new(),
        }
    }

    /// Scans the text; returns whether all of it is packaging.
    fn scan(mut self) -> bool {
        while let Some(c) = self.rest.chars().next() {
            if !self.step(c) {
                return false;
            }
        }
        self.is_phrase()
    }

    /// Consumes the next piece; returns `false` if it is not packaging.
    fn step(&mut self, c: char) -> bool {
        match c {
            '<' => self.is_phrase() && self.tag(),
            '[' => self.is_phrase() && self.bracketed("[", "]"),
            '/' | '#' => self.is_phrase() && self.comment(),
            '~' | '`' if self.fence() => true,
            _ if c.is_alphanumeric() => self.word(),
            ' ' | '\t' | '*' | '"' | '\'' | '`' | '“' | '”' | '’' | '\u{feff}' => {
                self.skip(c)
            }
            '\n' | '\r' | ':' | '：' | '.' | ',' | ';' | '!' | '…' => {
                self.is_phrase() && self.skip(c)
            }
            '-' | '•' | '$' => self.is_bullet() && self.skip(c),
            '%' => self.rest == "%" && self.skip(c),
            '\u{1b}' => self.colour_code(),
            _ => c.is_whitespace() && self.skip(c),
        }
    }

    fn skip(&mut self, c: char) -> bool {
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        true
    }

    /// Consumes a terminal's colour code.
    fn colour_code(&mut self) -> bool {
        let is_code = |c: char| c.is_ascii_digit() || c == ';';
        let code = self.rest.strip_prefix("\u{1b}[");
        self.advance(code.and_then(|code| code.trim_start_matches(is_code).strip_prefix('m')))
    }

    /// Moves on to `rest`, the text after a piece of packaging, if there is one.
    fn advance(&mut self, rest: Option<&'a str>) -> bool {
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Returns whether a bullet or a prompt begins a phrase here.
    fn is_bullet(&self) -> bool {
        self.words.is_empty() && self.rest.chars().nth(1).is_none_or(char::is_whitespace)
    }

    /// Consumes a word, joined as names of tools are: `robot_stroke`, `functions.stroke`.
    fn word(&mut self) -> bool {
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '\'' | '’' | '▁');
        let end = self.rest.find(|c| !is_inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let word = word.trim_end_matches(['.', '\'', '’']);
        self.rest = self.rest.get(word.len()..).unwrap_or(rest);
        let is_number = word.chars().all(|c| c.is_ascii_digit());
        if is_number && self.rest.starts_with(['.', ')']) && self.words.is_empty() {
            return self.skip('.');
        }
        self.words.push(word.to_owned());
        true
    }

    /// Returns whether the words since the last mark are a sequence of known phrases. Takes the words.
    fn is_phrase(&mut self) -> bool {
        let words = std::mem::take(&mut self.words);
        are_phrases(&words, |word, _| may_be_tool(word, self.tools))
    }

    /// Consumes a code fence with its language name.
    fn fence(&mut self) -> bool {
        let marks =
            ['`', '~'].map(|mark| self.rest.len() - self.rest.trim_start_matches(mark).len());
        let Some(length) = marks.into_iter().max().filter(|length| *length >= 3) else {
            return false;
        };
        let rest = self.rest.get(length..).unwrap_or_default();
        let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let name = rest.strip_suffix(after).unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let is_known = name.is_empty() || self.vocab.fence_names.contains(&name);
        if is_known && self.is_phrase() {
            self.rest = after;
        }
        is_known
    }

    /// Consumes a call's tag or a chat template's token; its only attribute may be the tool's name.
    fn tag(&mut self) -> bool {
        if self.rest.starts_with("<|") || self.rest.starts_with("<｜") {
            return self.bracketed("<|", "|>") || self.bracketed("<｜", "｜>");
        }
        let Some((inside, rest)) = self.rest.get(1..).and_then(|rest| rest.split_once('>')) else {
            return false;
        };
        let inside = inside.trim_start_matches('/').trim_end_matches('/').trim();
        let (name, attribute) = inside.split_once(['=', ' ']).unwrap_or((inside, ""));
        let (namespace, name) = name.rsplit_once(':').unwrap_or(("", name));
        let called = attribute.trim().trim_start_matches("name=");
        let called = called.trim_matches(['"', '\'']);
        self.rest = rest;
        let is_named = tagged_text::is_wrapper(name) || may_be_tool(name, self.tools);
        let is_placed = namespace.is_empty() || name::says_where(namespace);
        is_named && is_placed && (called.is_empty() || may_be_tool(called, self.tools))
    }

    /// Consumes a token between marks: `<|im_end|>`, `[ARGS]`.
    fn bracketed(&mut self, open: &str, close: &str) -> bool {
        let inside = self.rest.strip_prefix(open);
        let Some((token, rest)) = inside.and_then(|inside| inside.split_once(close)) else {
            return false;
        };
        let token = FoldedText::new(&token.replace('▁', " "));
        let is_known = |word: &str| self.vocab.token_words.iter().any(|known| known == word);
        let is_part = |word: &str| is_known(word) || may_be_tool(word, self.tools);
        let is_token = token.words().all(is_part);
        self.advance(is_token.then_some(rest))
    }

    /// Consumes a comment that ends before the arguments begin; otherwise the arguments are inside it.
    fn comment(&mut self) -> bool {
        let is_line = self.rest.starts_with("//") || self.rest.starts_with('#');
        let end = match self.rest.strip_prefix("/*") {
            Some(_) => self.rest.find("*/").map(|at| at + 2),
            None => self.rest.find('\n').filter(|_| is_line),
        };
        let Some((comment, rest)) = end.and_then(|end| self.rest.split_at_checked(end)) else {
            return false;
        };
        self.rest = rest;
        !self.vocab.conditions.is_in(&FoldedText::new(comment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(text: &str) -> SkippedMeaning {
        let skipped = SkippedText {
            text: text.to_owned(),
            place: SkippedPlace::Around,
        };
        skipped.meaning(&["stroke".to_owned()])
    }

    #[test]
    fn packaging_says_nothing() {
        for text in [
            "",
            " \n",
            "Sure! Here is the call: ",
            "I'll call `stroke` with ",
            "functions.stroke: ",
            "1. ",
            "- ",
            "```json\n",
            "\n```",
            "~~~\n",
            "</tool_call>",
            "<seed:tool_call>",
            "<stroke>",
            "<function=stroke>",
            "<function name=\"stroke\">",
            "<|im_start|>assistant\n",
            "stroke[ARGS]",
            "# the fish\n",
            "/* fish */ ",
        ] {
            assert_eq!(meaning(text), SkippedMeaning::Packaging, "{text}");
        }
    }

    #[test]
    fn other_words_and_marks_say_something() {
        for text in [
            "Hello ",
            "Sure, I draw: ",
            "align: ",
            "<!-- ",
            "-->",
            "// ",
            "/* ",
            "# ",
            "~~",
            "> ",
            "-- ",
            "$x ",
            "<foo>",
            "<function=align>",
            "```diff\n",
            "<|later|>",
            "[draft]",
            "(",
            "❌",
            "# tomorrow\n",
        ] {
            assert_eq!(meaning(text), SkippedMeaning::Words, "{text}");
        }
        for text in [
            "don't: ",
            "as a dry run",
            "<dry_run>",
            "!",
            "¬ ",
            "# dry run\n",
            "不要",
        ] {
            assert_eq!(meaning(text), SkippedMeaning::Refusal, "{text}");
        }
    }
}
