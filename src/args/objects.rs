//! Finds objects inside other text, and judges whether only words surround them.

use super::{
    candidates::{CandidateReading, TextFlaw},
    form_repair::{FormRepair, FormRepairs},
    parsed_value::ParsedValue,
    tolerant::{self, TolerantParser},
};

/// Most surplus closing brackets that are dropped; more of them mean that the beginning is missing.
const CLOSERS_MAX: usize = 2;

/// Returns the object in `text`, or its flaw; nothing if there is no opening brace.
pub(super) fn find(text: &str) -> Vec<CandidateReading> {
    let Some(first) = text.find(['{', '｛']) else {
        return Vec::new();
    };
    let Some((node, parser)) = object_at(text, first) else {
        return vec![CandidateReading::unread(TextFlaw::Garbled)];
    };
    let before = text.get(..first).unwrap_or_default();
    let (object, after) = text
        .split_at_checked(parser.position())
        .unwrap_or((text, ""));
    let object = object.get(first..).unwrap_or_default();
    let mut forms = parser.forms;
    let flaw = if parser.cut {
        Some(TextFlaw::Cut)
    } else {
        let after = drop_repeats(object, after, &mut forms);
        let after = drop_closers(after, &mut forms);
        flaw_around(before, after, &mut forms)
    };
    vec![CandidateReading {
        flaw,
        ..CandidateReading::new(node, forms)
    }]
}

/// Parses the object at `at`: first with exact quotes, then with quotes judged by their surroundings.
fn object_at(text: &str, at: usize) -> Option<(ParsedValue, TolerantParser<'_>)> {
    let mut cut = None;
    for (node, parser) in tolerant::values(text, at) {
        let is_cut = parser.cut;
        let found = Some((node.unwrap_or(ParsedValue::Null), parser));
        if !is_cut {
            return found;
        }
        cut = cut.or(found);
    }
    cut
}

/// Drops the same object, letter by letter, behind itself: small models repeat what they have written.
fn drop_repeats<'a>(object: &str, after: &'a str, forms: &mut FormRepairs) -> &'a str {
    let mut rest = after;
    while let Some(shorter) = rest.trim_start().strip_prefix(object) {
        forms.add(FormRepair::Repeated);
        rest = shorter;
    }
    rest
}

fn drop_closers<'a>(after: &'a str, forms: &mut FormRepairs) -> &'a str {
    let mut rest = after.trim_start();
    for _ in 0..CLOSERS_MAX {
        let Some(shorter) = rest.strip_prefix(['}', ']', ')']) else {
            break;
        };
        forms.add(FormRepair::ExtraCloser);
        rest = shorter.trim_start();
    }
    rest
}

/// Returns the flaw of the text around an object, unless it is only words; notes its sort.
fn flaw_around(before: &str, after: &str, forms: &mut FormRepairs) -> Option<TextFlaw> {
    for part in [before, after] {
        if part.trim().is_empty() {
            continue;
        }
        forms.add(if part.contains("```") {
            FormRepair::Fence
        } else if part.contains('<') {
            FormRepair::Tag
        } else {
            FormRepair::Prose
        });
    }
    if after.contains('{') {
        return Some(if holds_object(after) {
            TextFlaw::TwoObjects
        } else {
            TextFlaw::Garbled
        });
    }
    // A comma after the object means that something should follow.
    let is_fragment = after.contains('}')
        || after.starts_with(',')
        || is_fragment(before)
        || is_fragment(after)
        || before.trim_end().ends_with(['=', '[', ',']);
    is_fragment.then_some(TextFlaw::Garbled)
}

/// Returns whether the next brace begins another object. Only the first is tried, so that any number of braces costs little.
fn holds_object(text: &str) -> bool {
    let found = text.find('{').and_then(|at| object_at(text, at));
    found.is_some_and(|(_, parser)| !parser.cut)
}

/// Returns whether a text is a piece of JSON, not prose: a quoted text next to a colon, a comma or an equals sign.
fn is_fragment(text: &str) -> bool {
    let mut before = ' ';
    let mut chars = text.chars().filter(|c| !c.is_whitespace()).peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or(' ');
        let is_adjacent = matches!(next, ':' | ',' | '}' | ']' | '=')
            || (matches!(before, ':' | ',' | '[' | '=') && next != ' ');
        if matches!(c, '"' | '“' | '”') && is_adjacent {
            return true;
        }
        before = c;
    }
    false
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match find(text).pop() {
            None => "none".into(),
            Some(CandidateReading {
                flaw: Some(flaw), ..
            }) => format!("{flaw:?}"),
            Some(candidate) => candidate.node.to_value().to_string(),
        }
    }

    #[test]
    fn finds_the_object_among_words() {
        for text in [
            "Sure! Here is the call: {\"scene\":\"koi\"} Let me know.",
            "```json\n{\"scene\":\"koi\"}\n```",
            "<tool_call>{\"scene\":\"koi\"}</tool_call>",
            "{\"scene\":\"koi\"}\n</tool_call>",
            "{\"scene\":\"koi\"}}",
            "{\"scene\":\"koi\"}{\"scene\":\"koi\"}\n{\"scene\":\"koi\"}\n",
            "It's easy, don't worry:\n{'scene': 'koi'}.",
            "Action: stroke\nAction Input: {\"scene\":\"koi\"}",
        ] {
            assert_eq!(read(text), r#"{"scene":"koi"}"#, "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, want) in [
            ("{\"scene\":\"koi\"} {\"scene\":\"star\"}", "TwoObjects"),
            ("{\"scene\":\"koi\"} or {scene:star}", "TwoObjects"),
            ("2, \"parameters\": {\"fps\": 6}}", "Garbled"),
            ("{\"scene\":\"koi\"} {\"scene\":\"koi\"", "Garbled"),
            ("{\"scene\": \"ko", "Cut"),
            ("{a b}", "Garbled"),
            ("{\"fps\": 1} \"b\": 2}", "Garbled"),
            ("{\"fps\": 1}}}}}", "Garbled"),
            ("{\"fps\": 1},", "Garbled"),
        ] {
            assert_eq!(read(text), want, "{text}");
        }
    }
}
