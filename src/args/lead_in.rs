//! Strips the phrases that models write before and after a call: `Here is the call:`, `Let me know if this works.`

use super::{
    form_repair::FormRepair,
    heuristics,
    skipped::{self, SkippedPlace, is_in_word},
    strip_wrappers::WrapperLayer,
};

/// Most bytes at either end of a text that are searched for phrases.
const PHRASE_BYTES_MAX: usize = 512;

/// Strips known phrases from both ends. What stands between must look like a call: a phrase before a word for nothing, such
/// as `null`, is an answer and no lead-in.
pub(super) fn phrases(text: &str) -> Option<WrapperLayer<'_>> {
    let start = leading(text);
    let end = text.len() - trailing(text.get(start..)?);
    let (before, inner, after) = (text.get(..start)?, text.get(start..end)?, text.get(end..)?);
    let may_be_call = || {
        inner.trim_start().starts_with("--")
            || inner.contains(['{', '｛', '[', '(', '<', '=', ':', '%'])
    };
    let is_stripped = inner.len() < text.len() && may_be_call();
    is_stripped.then(|| {
        WrapperLayer::new(inner, FormRepair::Prose)
            .skipping(before, SkippedPlace::Around)
            .skipping(after, SkippedPlace::Around)
    })
}

/// Returns the bytes of the phrases that a text begins with, each up to its mark: `Sure! Here is the call:`.
fn leading(text: &str) -> usize {
    let (mut end, mut words) = (0, Vec::new());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        let length = rest.find(|c| !is_in_word(c)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(length.max(c.len_utf8()));
        rest = after;
        if at + piece.len() > PHRASE_BYTES_MAX {
            // So many phrases are none.
            return 0;
        } else if is_in_word(c) {
            words.push(piece);
        } else if is_mark(c) {
            // `arguments: koi` and `output: json` are pairs, and `JSON.parse` is a name.
            let is_colon = matches!(c, ':' | '：');
            let is_pair = is_colon && words.len() == 1 && !rest.starts_with('\n');
            let is_inside = !is_colon && c != '\n' && !rest.starts_with(char::is_whitespace);
            if is_pair || is_inside || !are_phrases(&words) {
                break;
            }
            words.clear();
            end = text.len() - rest.len();
        } else if !is_blank(c) || (c == '`' && after.starts_with('`')) {
            // A fence is no phrase.
            break;
        }
    }
    // Marks alone are no phrase.
    let is_phrase = text
        .get(..end)
        .is_some_and(|lead| lead.contains(is_in_word));
    if is_phrase { end } else { 0 }
}

/// Returns the bytes of the last line, if it is known phrases.
fn trailing(text: &str) -> usize {
    let line = text.rsplit('\n').next().unwrap_or_default();
    // An indented line belongs to what stands before it.
    let begins_line = line.len() < text.len() && line.starts_with(char::is_alphabetic);
    let is_plain = |c: char| is_in_word(c) || is_blank(c) || (is_mark(c) && c != ':');
    let is_searched = begins_line && line.len() <= PHRASE_BYTES_MAX && line.chars().all(is_plain);
    let is_phrase = |part: &str| are_phrases(&skipped::words_of(part));
    let are_known = is_searched && line.split(is_mark).all(is_phrase);
    if are_known { line.len() } else { 0 }
}

/// Returns whether words are known phrases and no key. A word in the place of a tool's name is judged with the words that
/// were skipped.
fn are_phrases(words: &[&str]) -> bool {
    let may_be_key = |word: &str| {
        heuristics::names_calls(word)
            || heuristics::is_tool_name(word)
            || heuristics::is_harmless(word)
    };
    !matches!(words, [word] if may_be_key(word))
        && !heuristics::is_wrapper(&words.concat())
        && skipped::are_phrases(words, skipped::is_part_of_phrase)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '*' | '`')
}

fn is_mark(c: char) -> bool {
    matches!(c, '\n' | '\r' | ':' | '：' | '.' | ',' | ';' | '!' | '…')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &str) -> &str {
        phrases(text).map_or("as it was", |layer| layer.text.trim())
    }

    #[test]
    fn known_phrases_are_stripped_at_both_ends() {
        for text in [
            "Here is the call:\nscene: koi",
            "Sure! Here's the call: scene: koi",
            "I will call the `stroke` tool.\n\nscene: koi",
            "**Here is the call:**\nscene: koi",
            "scene: koi\n\nLet me know if this works.",
            "Okay.\nscene: koi\nThank you!",
        ] {
            assert_eq!(stripped(text), "scene: koi", "{text}");
        }
        for text in [
            "scene: koi",
            "Tomorrow:\nscene: koi",
            "```json\nscene: koi\n```",
            "If the lamp is on: scene: koi",
            "arguments: koi=1",
            "output: json\nscene: koi",
            "action:\n  scene: koi",
            "note: |\n  thank you",
            "Sure!",
            "Done.\nnull",
            "yes, none",
            "{\"a\": \"b\"}\n",
            "scene: koi\nstroke",
            "JSON.parse('{}')",
        ] {
            assert_eq!(stripped(text), "as it was", "{text}");
        }
        let text = "Here is the call, tomorrow:\nscene: koi";
        assert_eq!(stripped(text), "tomorrow:\nscene: koi");
    }
}
