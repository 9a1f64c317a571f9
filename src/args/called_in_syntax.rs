//! Finds the names that a text calls in the syntax of programs and of models' tokens, however many calls it holds:
//! `[sense(), stop()]`, `<|tool_call_begin|>functions.stop:0<|tool_call_argument_begin|>{}`.

use super::{
    form_repair::FormRepairs,
    quote::{self, QuoteMatching, QuotePosition},
};

/// Marks around the special tokens of models; a narrow and a wide bar occur, and other angle brackets.
const OPENING: [&str; 5] = ["<|", "<｜", "‹|", "‹｜", ">>>"];
const CLOSING: [&str; 4] = ["|>", "｜>", "|›", "｜›"];

/// Most special tokens of one text that are looked behind.
const TOKENS_MAX: usize = 64;

/// Words of a key whose value is drawn or kept, so that no name in it is called.
const DATA_WORDS: [&str; 5] = ["text", "note", "scene", "svg", "reason"];

/// Returns the names that a text calls. Quoted texts and drawn words are values and hold none.
pub(super) fn called_in_syntax(text: &str) -> Vec<String> {
    let bare = without_quoted(text);
    let before_brackets = StatementScan::called(&bare).into_iter();
    let announced = after_tokens(&bare).take(TOKENS_MAX);
    let announced = announced.flat_map(str::lines).filter_map(named);
    let names = before_brackets.chain(announced);
    names
        .filter(|name| !name.is_empty())
        .flat_map(|name| [name.to_owned(), last_part(name).to_owned()])
        .collect()
}

/// A walk over a text's words that finds the names before brackets where statements begin.
#[derive(Default)]
struct StatementScan<'t> {
    called: Vec<&'t str>,
    /// True where a statement begins.
    begins: bool,
    open_brackets: usize,
    /// Brackets that were open where data began: `text=`.
    data: Option<usize>,
}

impl<'t> StatementScan<'t> {
    fn called(text: &'t str) -> Vec<&'t str> {
        let mut scan = Self {
            begins: true,
            ..Self::default()
        };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let end = rest.find(|c| !is_in_name(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end.max(c.len_utf8()));
            if is_in_name(c) {
                scan.take_word(word, after);
            } else {
                scan.take_mark(c, after);
            }
            rest = after;
        }
        scan.called
    }

    fn take_word(&mut self, word: &'t str, after: &str) {
        let is_key = word.contains(':') || after.trim_start().starts_with(['=', ':']);
        if is_key && names_data(word) {
            self.data.get_or_insert(self.open_brackets);
        }
        if self.begins && self.data.is_none() && after.starts_with('(') {
            self.called.push(word);
        }
        // `1. stop()`, `await stop()`
        let goes_on = !word.contains(char::is_alphabetic) || matches!(word, "await" | "return");
        self.begins &= goes_on;
    }

    fn take_mark(&mut self, mark: char, after: &str) {
        let open = self.open_brackets;
        let ends_data = match mark {
            // An indented line belongs to a value.
            '\n' => !after.starts_with([' ', '\t']),
            ',' => self.data.is_some_and(|at| at > 0 && at == open),
            ')' | ']' | '}' => self.data.is_some_and(|at| at >= open.max(1)),
            _ => false,
        };
        self.data = self.data.filter(|_| !ends_data);
        self.open_brackets = match mark {
            '(' | '[' | '{' => open + 1,
            ')' | ']' | '}' => open.saturating_sub(1),
            _ => open,
        };
        self.begins = "\n;,([{=>›`".contains(mark) || (self.begins && mark.is_whitespace());
    }
}

/// Returns whether a key names data: `text`, `note:`, `svg_text`.
fn names_data(key: &str) -> bool {
    let key = key.split(':').next().unwrap_or(key);
    let mut words = key.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        DATA_WORDS
            .iter()
            .any(|data| word.eq_ignore_ascii_case(data))
    })
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/')
}

/// Returns the name that is all of a line, or follows `to=` at its end: `functions.stop:0`, `commentary to=functions.stop`.
/// An indented line belongs to a value.
fn named(line: &str) -> Option<&str> {
    let name = match line.rsplit_once("to=") {
        Some((_, name)) => name.trim(),
        None => line.trim_end(),
    };
    name.chars().all(is_in_name).then_some(name)
}

/// Returns a name without its namespace and the count of the call: `functions.stop:0` is `stop`.
fn last_part(name: &str) -> &str {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    name.rsplit(['.', ':', '/']).next().unwrap_or(name)
}

/// Returns the texts behind special tokens, each up to the next token.
fn after_tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (at, open) = first_of(rest, &OPENING)?;
        rest = rest.get(at + open.len()..)?;
        if open != ">>>" {
            let (at, close) = first_of(rest, &CLOSING)?;
            rest = rest.get(at + close.len()..)?;
        }
        let end = first_of(rest, &OPENING).map_or(rest.len(), |(at, _)| at);
        rest.get(..end)
    })
}

/// Returns the first of these marks in a text, and where it stands.
fn first_of(text: &str, marks: &[&'static str]) -> Option<(usize, &'static str)> {
    let found = marks
        .iter()
        .filter_map(|mark| Some((text.find(mark)?, *mark)));
    found.min_by_key(|(at, _)| *at)
}

/// Returns a text without what stands in quotes where a value or a word may begin. A quote that is never closed hides nothing.
fn without_quoted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let begins_value = kept
            .trim_end()
            .chars()
            .next_back()
            .is_none_or(|before| "=:([{,>".contains(before))
            || kept.ends_with(char::is_whitespace);
        let is_quoted = begins_value && quote::is_quote(c) && !rest.starts_with("```");
        let after = Some(rest).filter(|_| is_quoted);
        rest = match after.and_then(after_quoted) {
            Some(after) => {
                kept.push('"');
                after
            }
            None => {
                kept.push(c);
                rest.get(c.len_utf8()..).unwrap_or_default()
            }
        };
    }
    kept
}

/// Returns what follows the quoted text at the start.
fn after_quoted(text: &str) -> Option<&str> {
    const TRIPLES: [&str; 2] = ["\"\"\"", "'''"];
    let mut triples = TRIPLES.iter();
    if let Some((triple, rest)) = triples.find_map(|mark| Some((mark, text.strip_prefix(mark)?))) {
        return rest.split_once(triple).map(|(_, after)| after);
    }
    let (place, mut forms) = (QuotePosition::Value, FormRepairs::default());
    let read = quote::read(text, QuoteMatching::Exact, place, false, &mut forms);
    text.get(read.ok()?.1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_outside_quoted_texts() {
        for text in [
            "stop()",
            "stop(now=True)",
            "[sense(), stop()]",
            "sense(); stop()",
            "print(default_api.stop())",
            "```tool_code\nstop()\n```",
            "stroke(note='it\\'s (fine)'); stop()",
            "<|tool_call_begin|>functions.sense:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_begin|>functions.stop:1",
            "<|channel|>commentary to=functions.stop <|constrain|>json<|message|>{}<|call|>",
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>stop\n```json\n{}\n```<｜tool▁call▁end｜>",
            "‹｜tool▁call▁begin｜>stop‹｜tool▁sep｜>{}‹｜tool▁call▁end｜>",
            "<|recipient|>stop\n<|content|>{}<|stop|>",
            ">>>stop\n{}",
            "<|python_tag|>stop()",
            "r = await stop()",
            "1. stop()",
            "stroke(text=hi there); stop()",
            "[stroke(text=hi), stop()]",
            "note: don't\nstop()",
        ] {
            let names = called_in_syntax(text);
            assert!(names.iter().any(|name| name == "stop"), "{text}: {names:?}");
        }
        for text in [
            "stop",
            "stroke(scene=stop)",
            "stroke(text=\"stop()\")",
            "text = \"\"\"\nstop()\n\"\"\"",
            "{\"text\": \"<|python_tag|>stop\"}",
            "text: |\n  stop",
            "<|recipient|>stroke\n<|content|>{\"scene\":\"koi\"}<|stop|>",
            "<|python_tag|>scene: stop",
            "stop (please)",
            "note: don't stop(it)\ndry_run: true",
            "text = don't stop(it)",
            "text=the 'stop()' function",
            "dry_run=true, text=stop()",
            "stroke(text=stop(), scene=koi)",
            "text:stop()",
            "text: |\n  stop()\n  now",
            "say \"stop()\" in letters",
            "the text «stop()»",
        ] {
            let names = called_in_syntax(text);
            assert!(
                !names.iter().any(|name| name == "stop"),
                "{text}: {names:?}"
            );
        }
    }
}
