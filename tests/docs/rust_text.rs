//! Reads Rust files as text: their code without strings and tests, and their strings without code.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below `folder` that has this ending, in order.
pub(crate) fn files(folder: &Path, ending: &str, into: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && name != ".git" {
            files(&path, ending, into);
        } else if path.is_file() && name.ends_with(ending) {
            into.push(path);
        }
    }
}

pub(crate) fn rust_files(folders: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in folders.iter().map(|folder| root().join(folder)) {
        if folder.is_dir() {
            files(&folder, ".rs", &mut found);
        }
    }
    assert!(!found.is_empty(), "no Rust file in {folders:?}");
    found
}

pub(crate) fn shown(path: &Path) -> String {
    let short = path.strip_prefix(root()).unwrap_or(path);
    short.display().to_string()
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text with comments, strings and characters blanked out, so that what is left is code; lines
/// stay where they are.
pub(crate) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = blank_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        out.extend(
            chars[at..end]
                .iter()
                .map(|&c| if c == '\n' { '\n' } else { ' ' }),
        );
        at = end;
    }
    out
}

/// Returns where a comment, string or character that begins at `at` ends; `at` itself if none does.
fn blank_end(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    let after_word = at > 0 && is_word(chars[at - 1]);
    let length = match rest {
        ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => string(rest),
        ['r', '"' | '#', ..] if !after_word => raw_string(rest),
        ['b', 'r', '"' | '#', ..] if !after_word => 1 + raw_string(&rest[1..]),
        ['\'', '\\', _, tail @ ..] => 3 + tail.iter().position(|&c| c == '\'').map_or(0, |i| i + 1),
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    };
    at + length
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < rest.len() {
        match (rest[at], rest[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `rest` begins with `r`; a raw identifier such as `r#type` has no end of its own.
fn raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let close: Vec<char> = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let body = 2 + hashes;
    let found = rest[body..]
        .windows(close.len())
        .position(|window| window == close);
    found.map_or(rest.len(), |i| body + i + close.len())
}

/// The end of the item that begins at `at`: its `;`, or the brace that closes its first one.
pub(crate) fn item_end(code: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, c) in code[at..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + offset + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + offset + 1,
            _ => {}
        }
    }
    code.len()
}

/// Code without its tests: they may stand on any room.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (begin, end) in test_items(code) {
        out.push_str(&code[at..begin]);
        at = end;
    }
    out.push_str(&code[at..]);
    out
}

/// Returns where each item that only tests have begins and ends.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    const MARK: &str = "#[cfg(test)]";
    let mut items = Vec::new();
    let mut at = 0;
    while let Some(found) = code[at..].find(MARK) {
        let begin = at + found;
        let mut item = begin + MARK.len();
        // Further attributes belong to the same item.
        while code[item..].trim_start().starts_with("#[") {
            item += code[item..].find(']').expect("an attribute ends") + 1;
        }
        at = item_end(code, item);
        items.push((begin, at));
    }
    items
}

/// Returns the strings of a file as they are written, tests aside, each with the code before it on its line.
pub(crate) fn strings(text: &str) -> Vec<(String, String)> {
    let chars: Vec<char> = text.chars().collect();
    // A character of code is a byte, and what is no code is blanked: places are the same in both.
    let code = code(text);
    let tests = test_items(&code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let end = blank_end(&chars, at);
        let is_string =
            chars[at..end].last() == Some(&'"') || chars[at..end].ends_with(&['"', '#']);
        if is_string && !tests.iter().any(|&(begin, end)| (begin..end).contains(&at)) {
            let before = chars[..at]
                .iter()
                .rposition(|&c| c == '\n')
                .map_or(0, |i| i + 1);
            found.push((
                chars[before..at].iter().collect(),
                chars[at..end].iter().collect(),
            ));
        }
        at = end.max(at + 1);
    }
    found
}

pub(crate) fn is_test_file(path: &Path) -> bool {
    let is_folder = path.components().any(|part| part.as_os_str() == "tests");
    is_folder || path.to_string_lossy().ends_with("tests.rs")
}
