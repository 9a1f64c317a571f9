//! Compares words in any spelling: width, accents, case, camel case, apostrophes and invisible characters do not matter.

use call::{is_invisible, plain_letter};
use std::collections::HashMap;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Longest text that is searched for words. A longer one counts as containing any of them.
pub(super) const SEARCHED_BYTES_MAX: usize = 16 * 1024;
/// Most letters by which a word may differ from a long one of a table.
const SLIPS_MAX: usize = 2;
/// Shortest table word that is matched with misspellings.
const NEAR_CHARS_MIN: usize = 6;

/// First bytes of a word by which patterns are looked up.
const BEGINNING_BYTES: usize = 3;

/// A text as words in lower case, without accents, in two spellings: with camel case split into words, and unsplit.
pub(super) struct FoldedText {
    /// With a blank before, between and after the words: ` dry run `.
    split: String,
    /// The same with camel case as one word: ` dryrun `.
    unsplit: String,
    /// Letters of both spellings.
    letters: LetterSet,
    is_too_long: bool,
}

impl FoldedText {
    /// Folds a text; keeps nothing of one that is too long to be searched.
    pub(super) fn new(text: &str) -> Self {
        let is_too_long = text.len() > SEARCHED_BYTES_MAX;
        let text = if is_too_long { "" } else { text };
        let (unsplit, has_camel_case) = folded(text, false);
        let split = match has_camel_case {
            true => folded(text, true).0,
            false => unsplit.clone(),
        };
        Self {
            letters: LetterSet::of(&unsplit),
            split,
            unsplit,
            is_too_long,
        }
    }

    /// Returns all letters, without the blanks between words.
    pub(super) fn letters(&self) -> String {
        self.unsplit.replace(' ', "")
    }

    /// Returns the words with a blank between them.
    pub(super) fn phrase(&self) -> String {
        self.words().collect::<Vec<_>>().join(" ")
    }

    /// Returns the words, with camel case split.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.split.split_whitespace()
    }
}

/// Returns a text folded, and whether it has camel case.
fn folded(text: &str, splits_camel_case: bool) -> (String, bool) {
    if text.is_ascii() {
        let letters = text.chars().filter(|c| !matches!(c, '\'' | '`'));
        return fold_letters(letters, text.len(), splits_camel_case);
    }
    let letters = text.nfkd().filter(|c| !is_ignored(*c)).map(plain_letter);
    fold_letters(letters, text.len(), splits_camel_case)
}

fn fold_letters(
    letters: impl Iterator<Item = char>,
    bytes: usize,
    splits_camel_case: bool,
) -> (String, bool) {
    let mut out = String::with_capacity(bytes + 2);
    out.push(' ');
    let (mut before_lower, mut has_camel_case) = (false, false);
    for c in letters {
        if before_lower && c.is_uppercase() {
            has_camel_case = true;
            if splits_camel_case {
                push_blank(&mut out);
            }
        }
        before_lower = c.is_lowercase();
        if c.is_ascii_alphabetic() {
            out.push(c.to_ascii_lowercase());
        } else if c.is_alphabetic() {
            out.extend(c.to_lowercase());
        } else {
            push_blank(&mut out);
        }
    }
    push_blank(&mut out);
    (out, has_camel_case)
}

fn push_blank(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Returns whether `c` is a mark on a letter, an apostrophe, or an invisible character.
fn is_ignored(c: char) -> bool {
    is_combining_mark(c) || matches!(c, '\'' | '’' | 'ʼ' | '`') || is_invisible(c)
}

/// Returns whether words in this script are written without spaces between them.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// The letters of a text as a bit set, in which some share a bit: a quick way to rule out that a word is in it, or near it.
#[derive(Clone, Copy)]
struct LetterSet(u64);

impl LetterSet {
    fn of(text: &str) -> Self {
        let letters = text.chars().filter(|c| *c != ' ');
        Self(letters.fold(0, |set, c| set | 1 << (u32::from(c) % 64)))
    }

    /// Returns whether the set may hold all letters of a word.
    fn may_hold(self, word: Self) -> bool {
        word.0 & !self.0 == 0
    }

    /// Returns whether at most `slips` changed letters may turn one text into the other.
    fn may_be_near(self, other: Self, slips: usize) -> bool {
        let missing = |one: u64, other: u64| (one & !other).count_ones() as usize;
        missing(self.0, other.0) <= slips && missing(other.0, self.0) <= slips
    }
}

/// A word of a table, with what rules out other words quickly.
struct KnownWord {
    text: String,
    letters: LetterSet,
    /// In characters.
    length: usize,
}

impl From<String> for KnownWord {
    fn from(text: String) -> Self {
        Self {
            letters: LetterSet::of(&text),
            length: text.chars().count(),
            text,
        }
    }
}

/// Words and phrases that texts and keys are searched for. `*` at either end of an entry stands for more letters.
pub(super) struct WordTable {
    /// Patterns for a folded text, with a blank where a word ends: those that begin a word, by their first letters.
    beginnings: HashMap<[u8; BEGINNING_BYTES], Vec<String>>,
    /// The other patterns.
    anywhere: Vec<KnownWord>,
    /// Words and phrases without blanks, for matching misspellings. The shortest first.
    joined: Vec<KnownWord>,
    /// Single words that are also found inside a key's longer words.
    parts: Vec<KnownWord>,
}

impl WordTable {
    pub(super) fn new<S: AsRef<str>>(entries: &[S]) -> Self {
        let entries = || entries.iter().map(AsRef::as_ref);
        let joined = entries().map(|entry| FoldedText::new(entry).letters());
        let mut joined: Vec<String> = joined.collect();
        joined.sort_unstable();
        joined.dedup();
        let joined = joined.into_iter().map(KnownWord::from);
        let mut joined: Vec<KnownWord> = joined
            .filter(|known| known.length >= NEAR_CHARS_MIN)
            .collect();
        joined.sort_by_key(|known| known.length);
        let is_part = |word: &&str| !word.contains(' ') && word.chars().count() >= NEAR_CHARS_MIN;
        let parts = entries()
            .filter(is_part)
            .map(|word| FoldedText::new(word).letters());
        let mut beginnings = HashMap::<_, Vec<String>>::new();
        let mut anywhere = Vec::new();
        for pattern in entries().flat_map(patterns) {
            match beginning(&pattern) {
                Some(letters) => beginnings.entry(letters).or_default().push(pattern),
                None => anywhere.push(KnownWord::from(pattern)),
            }
        }
        Self {
            parts: parts.map(KnownWord::from).collect(),
            beginnings,
            anywhere,
            joined,
        }
    }

    /// Returns whether the text contains one of the words. A text too long to search counts as containing one.
    pub(super) fn is_in(&self, text: &FoldedText) -> bool {
        let is_found = |pattern: &KnownWord| {
            text.letters.may_hold(pattern.letters)
                && (text.split.contains(&pattern.text) || text.unsplit.contains(&pattern.text))
        };
        text.is_too_long
            || [&text.split, &text.unsplit]
                .iter()
                .any(|words| self.begins_in(words))
            || self.anywhere.iter().any(is_found)
    }

    /// Returns whether the whole text is one of the longer words or phrases.
    pub(super) fn is_entry(&self, text: &FoldedText) -> bool {
        let letters = text.letters();
        self.joined.iter().any(|known| known.text == letters)
    }

    fn begins_in(&self, words: &str) -> bool {
        words.match_indices(' ').any(|(at, _)| {
            let rest = &words[at..];
            let known = beginning(rest).and_then(|letters| self.beginnings.get(&letters));
            known.is_some_and(|known| known.iter().any(|pattern| rest.starts_with(pattern)))
        })
    }

    /// As [`Self::is_in`], or whether a word, or two together, is a misspelling of one.
    pub(super) fn is_near(&self, text: &FoldedText) -> bool {
        self.is_in(text)
            || self.is_slip_in(&text.split)
            || (text.unsplit != text.split && self.is_slip_in(&text.unsplit))
    }

    /// Returns whether a word, or two together, is a misspelling.
    fn is_slip_in(&self, words: &str) -> bool {
        let (mut pair, mut previous) = (String::new(), "");
        words.split_whitespace().any(|word| {
            pair.clear();
            pair.push_str(previous);
            pair.push_str(word);
            let is_slip = self.is_slip(word) || (!previous.is_empty() && self.is_slip(&pair));
            previous = word;
            is_slip
        })
    }

    /// Returns whether a key contains one of the words, regardless of what separates its letters, or is near to one.
    pub(super) fn is_in_key(&self, key: &FoldedText) -> bool {
        let letters = key.letters();
        let is_part =
            |word: &KnownWord| key.letters.may_hold(word.letters) && letters.contains(&word.text);
        self.is_near(key) || self.parts.iter().any(is_part) || self.is_slip(&letters)
    }

    fn is_slip(&self, word: &str) -> bool {
        let (length, letters) = (word.chars().count(), LetterSet::of(word));
        let is_near = |known: &KnownWord| {
            let slips_max = if known.length < 9 { 1 } else { SLIPS_MAX };
            known.length.abs_diff(length) <= slips_max
                && known.letters.may_be_near(letters, slips_max)
                && (strsim::osa_distance(&known.text, word) <= slips_max
                    || is_scrambled(&known.text, word))
        };
        let start = self
            .joined
            .partition_point(|known| known.length + SLIPS_MAX < length);
        let long_enough = self.joined.get(start..).unwrap_or_default();
        long_enough
            .iter()
            .take_while(|known| known.length <= length + SLIPS_MAX)
            .any(is_near)
    }
}

/// Returns whether one letter of a word is out of place: `ydrrun` for `dryrun`.
fn is_scrambled(known: &str, word: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    known.len() == word.len()
        && sorted(known) == sorted(word)
        && strsim::osa_distance(known, word) <= 2
}

/// Returns the first bytes of a text that begins with a blank and is long enough.
fn beginning(text: &str) -> Option<[u8; BEGINNING_BYTES]> {
    text.strip_prefix(' ')?.as_bytes().first_chunk().copied()
}

/// Returns the patterns of an entry: unchanged, and with its words written as one.
fn patterns(entry: &str) -> Vec<String> {
    let is_unspaced = entry.chars().any(is_unspaced);
    let (is_suffix, is_prefix) = (entry.starts_with('*'), entry.ends_with('*'));
    let folded = FoldedText::new(entry).unsplit;
    let bounded = |words: &str| {
        let start = if is_suffix || is_unspaced { "" } else { " " };
        let end = if is_prefix || is_unspaced { "" } else { " " };
        format!("{start}{words}{end}")
    };
    let words = folded.trim();
    let mut forms = vec![bounded(words)];
    if words.contains(' ') {
        forms.push(bounded(&words.replace(' ', "")));
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> WordTable {
        WordTable::new(&[
            "dry run",
            "dryrun",
            "simula*",
            "no",
            "預覽",
            "*محاكاة",
            "прогон",
        ])
    }

    #[test]
    fn words_are_found_in_any_spelling() {
        for text in [
            "a dry run, please",
            "dry-run",
            "dryRun",
            "DRY_RUN",
            "ｄｒｙ　ｒｕｎ",
            "dry\u{200b}run",
            "Simulação",
            "simulating",
            "No!",
            "請預覽一下",
            "المحاكاة",
            "Прогон.",
        ] {
            assert!(table().is_in(&FoldedText::new(text)), "{text}");
        }
        for text in ["", "note", "laundry runner", "now", "dry", "run dry", "5"] {
            assert!(!table().is_in(&FoldedText::new(text)), "{text}");
        }
    }

    #[test]
    fn slips_are_found_where_they_are_asked_for() {
        for text in ["dri run", "dryrn", "drry_run"] {
            assert!(table().is_near(&FoldedText::new(text)), "{text}");
        }
        for key in ["isdryrunmode", "dri_run", "DRU_RUN", "dry1run"] {
            assert!(table().is_in_key(&FoldedText::new(key)), "{key}");
        }
        assert!(!table().is_near(&FoldedText::new("any run")));
        assert!(!table().is_in_key(&FoldedText::new("nonsense")));
    }

    /// Checks that the quick test for different words rules out no misspelling of a known word.
    #[test]
    fn every_letter_left_out_swapped_or_changed_is_a_slip() {
        let table = &crate::vocabulary::vocabulary().dry_run;
        assert!(table.joined.len() > 50);
        for known in &table.joined {
            let letters: Vec<char> = known.text.chars().collect();
            for at in 0..letters.len() {
                let mut shorter = letters.clone();
                shorter.remove(at);
                let mut swapped = letters.clone();
                swapped.swap(at, (at + 1).min(letters.len() - 1));
                let mut changed = letters.clone();
                changed.splice(at..=at, ['q']);
                for slip in [shorter, swapped, changed] {
                    let slip: String = slip.into_iter().collect();
                    assert!(table.is_slip(&slip), "{slip} of {}", known.text);
                }
            }
        }
    }

    #[test]
    fn a_text_too_long_to_be_searched_may_say_anything() {
        let long = "a ".repeat(SEARCHED_BYTES_MAX);
        assert!(table().is_in(&FoldedText::new(&long)));
    }
}
