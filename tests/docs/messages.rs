//! Collects what people and models read: every message of the source, with its file, for a review that sees how a wording changes.
//!
//! A message says what failed, the value and the limit, then `Next:` and one command or call.

use std::fmt::Write as _;

use crate::rust_text::{is_test_file, read, rust_files, shown, strings};
use crate::snapshots;

/// Longest sentence, and longest message. Values that are put in, and calls and names in backticks, do not count.
const SENTENCE_CHARS_MAX: usize = 160;
const MESSAGE_CHARS_MAX: usize = 240;
const SEMICOLONS_MAX: usize = 1;

/// Returns the messages of a file in their order.
fn messages(text: &str) -> Vec<String> {
    let is_attribute = |before: &str| before.contains("reason =") || before.contains("doc =");
    strings(text)
        .into_iter()
        .filter(|(before, _)| !is_attribute(before))
        .map(|(_, string)| on_one_line(&string))
        .filter(|message| is_prose(message))
        .collect()
}

/// Returns a string of the source without its quotes, the lines that a backslash joins as one.
fn on_one_line(string: &str) -> String {
    let open = string.find('"').map_or(0, |quote| quote + 1);
    let body = string[open..].trim_end_matches('#');
    let body = body.strip_suffix('"').unwrap_or(body);
    let mut lines = body.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |joined, line| joined + line.trim_start())
}

/// Tells sentences from names, markup, queries and pages of several lines.
fn is_prose(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase());
    let is_query = words
        .first()
        .is_some_and(|word| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase()));
    let has_two_words = words.windows(2).any(|pair| {
        pair.iter()
            .all(|word| is_word(&word.trim_end_matches([',', ';', ':', '.'])))
    });
    words.len() > 2
        && has_two_words
        && !is_query
        && !text.starts_with('<')
        && !["\n", "\\n\\n"].iter().any(|page| text.contains(page))
}

/// Returns a message without the values that are put in, and without what stands in backticks.
fn own_words(message: &str) -> String {
    let mut own = String::new();
    for (index, part) in message.split('`').enumerate() {
        if index % 2 == 0 {
            own.push_str(part);
        }
    }
    let mut depth = 0_usize;
    own.retain(|c| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    });
    own
}

/// Returns the bound that a message is beyond.
fn beyond(message: &str) -> Option<&'static str> {
    let own = own_words(message);
    let sentences = own.split(". ").flat_map(|part| part.split("\\n"));
    let longest = sentences.map(|sentence| sentence.chars().count()).max();
    match () {
        () if own.chars().count() > MESSAGE_CHARS_MAX => Some("a message of more than 240 letters"),
        () if longest > Some(SENTENCE_CHARS_MAX) => Some("a sentence of more than 160 letters"),
        () if own.matches(';').count() > SEMICOLONS_MAX => Some("a message of three clauses"),
        () => None,
    }
}

#[test]
fn every_message_is_short_and_as_it_was_read() {
    let mut page = String::new();
    let mut long = Vec::new();
    for path in rust_files(&["src"])
        .into_iter()
        .filter(|path| !is_test_file(path))
    {
        let messages = messages(&read(&path));
        if !messages.is_empty() {
            let _ = writeln!(page, "\n{}", shown(&path));
        }
        for message in messages {
            long.extend(beyond(&message).map(|why| format!("{}: {why}: {message}", shown(&path))));
            let _ = writeln!(page, "  {message}");
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    snapshots::check("messages.txt", page.trim_start());
}
