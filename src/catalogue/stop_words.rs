//! Words for stopping, in the languages that callers use: a table kept as data, and the words of a tool's name.

use std::collections::HashSet;
use std::sync::LazyLock;

use call::{is_invisible, plain_letter};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The table; its first lines describe its contents and sources.
const TABLE: &str = include_str!("stop_words.txt");

/// Most characters of a name that are examined. A longer one is a text, not a name.
const NAME_CHARS_MAX: usize = 200;

/// Fewest letters of a word in which one edit counts as a misspelling.
const SLIP_CHARS_MIN: usize = 5;

static WORDS: LazyLock<StopWords> = LazyLock::new(|| StopWords::read(TABLE));

/// Longest word that is examined as several written as one.
const JOINED_CHARS_MAX: usize = 40;

/// Most words of a text that asks to stop.
const ASKING_WORDS_MAX: usize = 8;

/// Signs for stopping.
const SIGNS: [char; 6] = ['🛑', '⏹', '⛔', '✋', '🚫', '⏸'];

/// Returns whether a tool's name contains a word for stopping, in any of the table's languages, or a sign for it.
#[must_use]
pub fn says_stop(name: &str) -> bool {
    let is_sign = |c: char| SIGNS.contains(&c);
    let words = words_of(name);
    let joined = words.concat();
    name.chars().take(NAME_CHARS_MAX).any(is_sign)
        || WORDS.is_stop_word(&joined)
        || WORDS.is_stop_word(&with_letters_for_digits(name))
        || words.iter().any(|word| WORDS.has(word))
        || WORDS.begins_alone(&words)
}

/// Returns whether a text asks to stop, in any of the table's languages: `STOP!`, `please stop the arm now`, `no no stop it hurts`.
/// A text that says more before it, denies it, or is not a request does not: `bus stop`, `do not stop`, `stop sign`.
#[must_use]
pub fn asks_to_stop(text: &str) -> bool {
    if !text.is_empty() && text.chars().all(|c| SIGNS.contains(&c)) {
        return true;
    }
    let words = words_of(text);
    if words.len() > ASKING_WORDS_MAX {
        return false;
    }
    let before = words.iter().position(|word| WORDS.has(word));
    let Some((before, rest)) = before.and_then(|at| words.split_at_checked(at)) else {
        return false;
    };
    let is_filler = |word: &String| WORDS.fillers.contains(word.as_str());
    let next = rest.get(1);
    let is_noun = next.is_some_and(|next| WORDS.nouns.contains(next.as_str()));
    // `stop_on_error` is a name, not a sentence.
    let is_name = !text.trim().contains(char::is_whitespace);
    let says_more = rest.iter().any(|word| !WORDS.has(word) && !is_filler(word));
    before.iter().all(is_filler) && !is_noun && !(is_name && says_more)
}

/// The parsed table.
#[derive(Debug, Default)]
struct StopWords {
    /// Words that count anywhere in a name.
    anywhere: HashSet<&'static str>,
    /// Words that count only as the whole name.
    alone: HashSet<&'static str>,
    /// Ordinary words that are one edit away from a word for stopping.
    ordinary: HashSet<&'static str>,
    /// Words that may stand beside a word for stopping, or be written as one with it: `stopnow`.
    fillers: HashSet<&'static str>,
    /// Words that make `stop` before them a noun: `stop sign`.
    nouns: HashSet<&'static str>,
}

impl StopWords {
    fn read(table: &'static str) -> Self {
        let mut read = Self::default();
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let (set, words) = match line.split_once(' ') {
                Some(("-", ordinary)) => (&mut read.ordinary, ordinary),
                Some(("+", fillers)) => (&mut read.fillers, fillers),
                Some(("=", nouns)) => (&mut read.nouns, nouns),
                _ => {
                    let (_, words) = line.split_once(':').unwrap_or_default();
                    let (anywhere, alone) = words.split_once('|').unwrap_or((words, ""));
                    read.alone.extend(alone.split_whitespace());
                    (&mut read.anywhere, anywhere)
                }
            };
            set.extend(words.split_whitespace());
        }
        read
    }

    fn is_stop_word(&self, name: &str) -> bool {
        self.alone.contains(name) || self.anywhere.contains(name)
    }

    /// Returns whether a word is a word for stopping followed by more of them, or by fillers: `stopstop`, `haltnow`.
    fn is_joined(&self, word: &str) -> bool {
        if word.chars().count() >= JOINED_CHARS_MAX {
            return false;
        }
        // Positions up to which the word consists of such parts.
        let mut reached = vec![0];
        for end in word.char_indices().map(|(at, c)| at + c.len_utf8()) {
            let is_reached = |from: &usize| {
                let part = word.get(*from..end).unwrap_or_default();
                self.anywhere.contains(part) || (*from > 0 && self.fillers.contains(part))
            };
            if reached.iter().any(is_reached) {
                reached.push(end);
            }
        }
        reached.last() == Some(&word.len()) && reached.len() > 1
    }

    /// Returns whether an ordinary word for stopping is followed by fillers only: `kill_robot`, `end_job`.
    fn begins_alone(&self, words: &[String]) -> bool {
        let is_filler = |word: &String| self.fillers.contains(word.as_str());
        words.split_first().is_some_and(|(first, rest)| {
            // `still_moving` is a question.
            self.alone.contains(first.as_str())
                && first != "still"
                && !rest.is_empty()
                && rest.iter().all(is_filler)
        })
    }

    fn has(&self, word: &str) -> bool {
        if self.is_joined(word) || self.is_joined(&without_runs(word)) || is_transposed(word) {
            return true;
        }
        if word.chars().any(is_written_without_blanks) {
            return self.anywhere.iter().any(|stop| is_part(stop, word));
        }
        is_long(word)
            && !self.ordinary.contains(word)
            && self.anywhere.iter().any(|stop| is_slip_of(word, stop))
    }
}

/// Returns a word with each letter that is repeated three times or more reduced to one: `stoooppp`.
fn without_runs(word: &str) -> String {
    let letters: Vec<char> = word.chars().collect();
    let runs = letters.chunk_by(|a, b| a == b);
    let kept = runs.flat_map(|run| match run {
        [first, _, _, ..] => std::slice::from_ref(first),
        short => short,
    });
    kept.collect()
}

/// Returns a name in lower case in which `0` and `5` stand for the letters that they look like: `st0p`.
fn with_letters_for_digits(name: &str) -> String {
    let letter = |c: char| match c {
        '0' => 'o',
        '5' => 's',
        c => c.to_ascii_lowercase(),
    };
    name.chars().take(NAME_CHARS_MAX).map(letter).collect()
}

/// Words that are recognised with two adjacent letters swapped: `stpo`.
const TRANSPOSABLE: [&str; 2] = ["stop", "halt"];

fn is_transposed(word: &str) -> bool {
    let has_letters_of = |stop: &str| stop.chars().all(|c| word.contains(c));
    let mut stops = TRANSPOSABLE.iter();
    stops.any(|stop| {
        word.len() == stop.len() && has_letters_of(stop) && strsim::osa_distance(word, stop) == 1
    })
}

fn is_long(word: &str) -> bool {
    word.chars().count() >= SLIP_CHARS_MIN
}

fn is_slip_of(word: &str, stop: &str) -> bool {
    // Compare lengths first: words that differ by more are not compared by letter.
    word.len().abs_diff(stop.len()) <= char::MAX.len_utf8()
        && is_long(stop)
        && strsim::osa_distance(word, stop) <= 1
}

/// Returns whether a word in a script without blanks occurs inside a longer text; it must have at least two letters.
fn is_part(stop: &str, word: &str) -> bool {
    let has_two = stop.chars().nth(1).is_some();
    has_two && stop.chars().all(is_written_without_blanks) && word.contains(stop)
}

/// Returns whether a character is Thai, Hangul, kana or Han.
fn is_written_without_blanks(c: char) -> bool {
    matches!(c, '\u{0e00}'..='\u{0e7f}' | '\u{1100}'..='\u{11ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// Returns the words of a name in lower case: split at blanks, digits, signs and changes of case.
#[must_use]
pub fn words_of(name: &str) -> Vec<String> {
    let visible = name.chars().take(NAME_CHARS_MAX);
    let visible = visible.filter(|c| !is_invisible(*c));
    // A character may become several.
    let letters = visible.nfkc().take(NAME_CHARS_MAX);
    let letters: Vec<char> = letters.map(plain_letter).collect();
    let mut words = vec![String::new()];
    for (at, c) in letters.iter().copied().enumerate() {
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let begins = begins_word(before.copied(), c, letters.get(at + 1).copied());
        let is_letter = c.is_alphabetic() || is_combining_mark(c);
        if begins || !is_letter {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| is_letter) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words.into_iter().map(without_lookalikes).collect()
}

/// Replaces letters of other scripts among Latin ones by the Latin letters that they look like, as in `stоp` with a Cyrillic `о`.
fn without_lookalikes(word: String) -> String {
    const LOOKALIKES: &str = "асеһіјӏорԛѕтυνхуοαιρτ";
    const LATIN: &str = "acehijlopqstuvxyoaipt";
    if word.is_ascii() || !word.contains(|c: char| c.is_ascii_alphabetic()) {
        return word;
    }
    let latin = |letter: char| {
        let at = LOOKALIKES.chars().position(|like| like == letter);
        at.and_then(|at| LATIN.chars().nth(at)).unwrap_or(letter)
    };
    word.chars().map(latin).collect()
}

/// Returns whether a word begins at `c`, as at `N` in `stopNow` and `STOPNow`.
fn begins_word(before: Option<char>, c: char, after: Option<char>) -> bool {
    let ends_capitals = after.is_some_and(char::is_lowercase);
    c.is_uppercase()
        && before
            .is_some_and(|before| before.is_lowercase() || (before.is_uppercase() && ends_capitals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EXAM_TOOLS, RECORDING_TOOLS, TOOLS, ToolEffect};

    #[test]
    fn recognises_stop_in_any_language_case_and_width() {
        for name in [
            "stop_now",
            "cancel",
            "стоп",
            "ＳＴＯＰ",
            "stop_robot",
            "pause",
            "停止",
            "Anhalten",
            "robot_estop",
            "STOPNow",
            "stopRobot",
            "eStop2",
            "EMERGENCY-STOP",
            "robot.stop!",
            "Arrêter",
            "arreter",
            "ARRÊTEZ LE BRAS",
            "detener_brazo",
            "¡Pare!",
            "para",
            "Alto",
            "fermati",
            "立即停止",
            "ロボットを止めて",
            "로봇정지",
            "멈춰줘",
            "หยุด",
            "หยุดเดี๋ยวนี้",
            "रुको",
            "रद्द",
            "توقف",
            "עצור",
            "ایست",
            "dừng_lại",
            "berhenti",
            "DUR",
            "İptal",
            "STÓJ",
            "zastav",
            "állj",
            "остановить_робота",
            "Зупинись",
            "ΣΤΑΜΑΤΑ",
            "cancle",
            "abbort",
            "freezee",
            "nödstopp",
            "pysäytä",
            "s\u{200b}top",
            "ꜱᴛᴏᴘ",
            "🆂🆃🅾🅿 now",
            "hold",
            "notaus",
            "停",
            "Not-Aus",
            "ｓｔｏｐ＿ｒｏｂｏｔ",
            "sto\u{70}\u{301} stop",
            "stopnow",
            "stopit",
            "STOPSTOPSTOP",
            "halt_halt",
            "stopTheRobot",
            "stopall",
            "stpo",
            "sotp",
            "hatl",
            "kill_switch",
            "STOPPPPP",
            "stoooop",
            "st0p",
            "5top",
            "stp",
            "stopmoving",
            "stoptherobotnow",
            "kill_robot",
            "end_drawing",
            "hold_it",
            "shutdown",
            "torque_off",
            "快停",
            "그만해",
            "hör_auf",
            "🛑",
            "end_motion",
            "do_not_move",
            "stоp",
            "ЅТOP",
        ] {
            assert!(says_stop(name), "{name}");
        }
    }

    #[test]
    fn a_request_to_stop_is_distinguished_from_other_texts() {
        for text in [
            "STOP!",
            "stop()",
            "please stop the arm now",
            "['stop']",
            "стоп",
            "emergency stop",
            "stop moving",
            "STOP!!! it hits my hand",
            "no no stop",
            "make it stop",
            "stop the pen",
            "call stop()",
            "await client.stop()",
            "steadyhand stop",
            "pare o braço",
            "Arrêtez le bras",
            "sofort anhalten",
            "остановите руку",
            "🛑",
        ] {
            assert!(asks_to_stop(text), "{text}");
        }
        for text in [
            "",
            "now",
            "do not stop",
            "don't stop",
            "never stop",
            "stop sign",
            "stop words",
            "koi",
            "bus stop",
            "why did it stop",
            "stop_on_error",
            "pause_between_strokes",
            "cancelOnDisconnect",
            "still",
            "off",
            "end",
            "the drawing of a lighthouse must not stop before it is done",
        ] {
            assert!(!asks_to_stop(text), "{text}");
        }
    }

    /// A backtracking search would try each of these in 2^n ways.
    #[test]
    fn a_word_that_can_be_split_in_many_ways_costs_no_more_than_another() {
        for words in [["haltestop", "x"], ["stopstop", "y"], ["\u{fb06}op", "z"]] {
            let [part, end] = words;
            for times in [4, 22, 100] {
                let name = format!("{}{end}", part.repeat(times));
                assert!(!says_stop(&name), "{name}");
                assert!(!asks_to_stop(&name), "{name}");
            }
        }
    }

    #[test]
    fn does_not_recognise_it_in_ordinary_words() {
        for name in [
            "",
            "_",
            "draw",
            "unstoppable",
            "nonstop",
            "stopwatch",
            "backstop",
            "threshold",
            "hold_pen",
            "still_moving",
            "step",
            "top",
            "shop",
            "para_todos",
            "set_dur",
            "alt_text",
            "altitude",
            "about",
            "parse_svg",
            "setup",
            "stats",
            "stepper_position",
            "post",
            "spot",
            "tops",
            "stopband",
            "cause",
            "is_stopped",
            "is_paused",
            "params",
            "form",
            "forma",
            "start",
            "resume",
            "park",
            "wait",
            "list_scenes",
            "calibrate",
            "kill_count",
            "end_effector",
            "line_break",
            "off_axis",
            "export",
            "report",
            "continue",
            "weiter",
            "dessiner",
            "рисовать",
            "画",
            "描く",
            "그리기",
            "วาด",
        ] {
            assert!(!says_stop(name), "{name}");
        }
    }

    #[test]
    fn no_tool_that_does_not_stop_is_taken_for_a_stop() {
        let sets = EXAM_TOOLS.iter().chain(RECORDING_TOOLS.iter());
        for tool in TOOLS.iter().chain(sets) {
            for name in tool
                .names()
                .chain(tool.parameters.iter().map(|one| one.name.as_str()))
            {
                assert!(
                    tool.effect == ToolEffect::Stops || !says_stop(name),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn the_table_is_in_normal_form_and_in_twenty_languages_or_more() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let languages = lines
            .clone()
            .filter(|line| line.as_bytes().get(2) == Some(&b':'));
        assert!(languages.count() >= 20);
        let all = || {
            WORDS
                .anywhere
                .iter()
                .chain(&WORDS.alone)
                .chain(&WORDS.ordinary)
        };
        for word in all() {
            assert_eq!(words_of(word), [*word], "one word, in NFKC and lower case");
        }
        assert!(WORDS.anywhere.is_disjoint(&WORDS.alone));
        for word in &WORDS.ordinary {
            let is_needed = WORDS.anywhere.iter().any(|stop| is_slip_of(word, stop));
            assert!(is_needed, "{word} is one edit from no word for stopping");
        }
    }

    #[test]
    fn only_the_beginning_of_a_long_name_is_examined() {
        assert!(!says_stop(&format!("{} stop", "x".repeat(NAME_CHARS_MAX))));
        assert!(says_stop(&format!("stop {}", "x ".repeat(1 << 20))));
    }
}
