//! Reads lines of pairs with indented values: blocks (`scene: |`) and objects (`measured:`), as in YAML.

use super::{
    form_repair::FormRepair,
    limits::{DEPTH_MAX, PAIRS_MAX},
    parsed_value::{Pair, ParsedValue},
    unbracketed::{self, UnbracketedPairs},
};

/// A line without its indentation, and how far it is indented.
type IndentedLine<'a> = (usize, &'a str);

/// Reads pairs of which at least one has an indented value; `None` for any other text, and for one with comments.
pub(super) fn read(text: &str) -> Option<UnbracketedPairs> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines = lines.map(|line| (line.len() - line.trim_start().len(), line.trim()));
    let lines: Vec<IndentedLine<'_>> = lines.filter(|(_, line)| *line != "---").collect();
    let is_indented = lines.iter().any(|(indent, _)| *indent > 0);
    // What has braces or comments may be more than lines.
    let may_be_read = is_indented
        && !text.contains(['{', '}'])
        && lines.len() <= PAIRS_MAX
        && !lines.iter().any(|(_, line)| line.starts_with('#'));
    let mut loose = UnbracketedPairs::of(FormRepair::Lines);
    let read = may_be_read.then(|| pairs(&lines, 0)).flatten()?;
    loose.pairs = read;
    Some(loose)
}

/// Reads lines that are all indented as the first is, or belong to one that is.
fn pairs(lines: &[IndentedLine<'_>], depth: usize) -> Option<Vec<Pair>> {
    let (indent, _) = *lines.first()?;
    let mut rest = lines;
    let mut read = Vec::new();
    while let Some(((own, line), after)) = rest.split_first() {
        let (key, written) = line.split_once(':')?;
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        if *own != indent || depth > DEPTH_MAX || key.is_empty() || !key.chars().all(is_inside) {
            return None;
        }
        let inner = after.iter().take_while(|(own, _)| *own > indent).count();
        let (inner, after) = after.split_at_checked(inner)?;
        read.push((key.to_owned(), value(written, inner, depth)?));
        rest = after;
    }
    Some(read)
}

/// Reads the value of a pair: what is written behind the colon, or the indented lines under it.
fn value(written: &str, inner: &[IndentedLine<'_>], depth: usize) -> Option<ParsedValue> {
    let is_separate = written.is_empty() || written.starts_with(char::is_whitespace);
    match (written.trim(), inner) {
        (_, _) if !is_separate => None,
        ("", []) => None,
        ("", inner) => Some(ParsedValue::Map(pairs(inner, depth + 1)?)),
        // More lines have more than one meaning: whether they are joined, and whether the last ends with a line break.
        ("|" | "|-" | ">" | ">-", [(_, line)]) => plain(line),
        (written, []) => plain(written),
        _ => None,
    }
}

/// Reads a value that is whole: no piece of a bracket or a quote.
fn plain(written: &str) -> Option<ParsedValue> {
    let node = unbracketed::value(written);
    let is_piece = |c: char| matches!(c, '{' | '}' | '[' | ']' | '"' | '|' | '>' | '#');
    let is_whole = !matches!(&node, ParsedValue::Word(word) if word.contains(is_piece));
    is_whole.then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_objects_are_read() {
        for (text, want) in [
            ("scene: |\n  koi", Some(r#"{"scene":"koi"}"#)),
            (
                "scene: >-\n  koi\nfps: 5",
                Some(r#"{"scene":"koi","fps":5}"#),
            ),
            (
                "---\nmeasured:\n  dx: 0.8\n  dy: -0.3\n",
                Some(r#"{"measured":{"dx":0.8,"dy":-0.3}}"#),
            ),
            ("scene: koi", None),
            ("scene: |", None),
            ("measured:\n  dx:", None),
            ("note: |\n  a\n  b", None),
            ("measured:\n  dx: 0.8\n dy: -0.3", None),
            ("note: a\n  b: c", None),
            ("# a\nmeasured:\n  dx: 0.8", None),
        ] {
            let read = read(text).map(|read| ParsedValue::Map(read.pairs).to_value().to_string());
            assert_eq!(read.as_deref(), want, "{text}");
        }
    }
}
