//! Finds the thoughts that a model writes before or between its words: they are neither calls nor arguments.

use std::borrow::Cow;

/// Tags around thoughts.
const TAGS: [(&str, &str); 7] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("[THINK]", "[/THINK]"),
];

/// Marks around thoughts on a channel of their own.
const CHANNEL: (&str, &str) = ("<|channel|>analysis<|message|>", "<|end|>");

/// Most thoughts of one text.
const THOUGHTS_MAX: usize = 64;

/// A thought in a text.
pub(super) struct ThoughtSpan<'a> {
    /// The text before it; empty if the chat template wrote the opening tag.
    pub(super) before: &'a str,
    /// The thought itself, without its tags.
    pub(super) inside: &'a str,
    /// The text after it; `None` if the thought breaks off.
    pub(super) after: Option<&'a str>,
    /// True if the thought has an opening tag.
    pub(super) is_opened: bool,
    tags: (&'static str, &'static str),
}

impl ThoughtSpan<'_> {
    /// Returns whether the same tags occur again after it.
    pub(super) fn recurs(&self) -> bool {
        let (open, close) = self.tags;
        self.after
            .is_some_and(|rest| rest.contains(open) || rest.contains(close))
    }
}

/// Returns the first thought between tags.
pub(super) fn first_tagged(text: &str) -> Option<ThoughtSpan<'_>> {
    first(text, &TAGS)
}

fn first<'a>(text: &'a str, all: &[(&'static str, &'static str)]) -> Option<ThoughtSpan<'a>> {
    let position = |(open, close): &(&str, &str)| match (text.find(open), text.find(close)) {
        (Some(open), Some(close)) => Some(open.min(close)),
        (open, close) => open.or(close),
    };
    let found = all
        .iter()
        .filter_map(|tags| Some((position(tags)?, *tags)))
        .min_by_key(|(at, _)| *at);
    let (at, tags) = found?;
    let (open, close) = tags;
    let is_opened = text.get(at..)?.starts_with(open);
    let (before, rest) = if is_opened {
        (text.get(..at)?, text.get(at + open.len()..)?)
    } else {
        ("", text)
    };
    let (inside, after) = match rest.split_once(close) {
        Some((inside, after)) => (inside, Some(after)),
        None => (rest, None),
    };
    Some(ThoughtSpan {
        before,
        inside,
        after,
        is_opened,
        tags,
    })
}

/// Returns the bytes of the closed thought that a text begins with: `<think>…</think>`, or `Thought: …` up to its action.
pub(super) fn closed_length(text: &str) -> Option<usize> {
    if text.starts_with("Thought:") {
        return text.find("\nAction:");
    }
    let all = TAGS.into_iter().chain([CHANNEL]);
    let mut lengths = all.filter_map(|(open, close)| {
        let inside = text.strip_prefix(open)?;
        Some(open.len() + inside.find(close)? + close.len())
    });
    lengths.next()
}

/// Returns the text without thoughts, including those that break off.
#[must_use]
pub fn without_thoughts(text: &str) -> Cow<'_, str> {
    let all: Vec<_> = TAGS.into_iter().chain([CHANNEL]).collect();
    let Some(mut thought) = first(text, &all) else {
        return Cow::Borrowed(text);
    };
    let mut kept = String::new();
    for _ in 0..THOUGHTS_MAX {
        kept.push_str(thought.before);
        let Some(rest) = thought.after else {
            return Cow::Owned(kept);
        };
        match first(rest, &all) {
            Some(next) => thought = next,
            None => return Cow::Owned(kept + rest),
        }
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_left_out_wherever_they_stand() {
        for (text, want) in [
            ("Hello", "Hello"),
            ("<think>{\"name\":\"stroke\"}</think>Hello", "Hello"),
            (
                "Well. <think>a</think>So. <thinking>b</thinking>{}",
                "Well. So. {}",
            ),
            ("{\"name\":\"stroke\"}</think>Hello", "Hello"),
            ("<think>{\"name\":\"stroke\"}", ""),
            ("Sure <reasoning>{", "Sure "),
            (
                "<|channel|>analysis<|message|>{\"name\":\"stroke\"}<|end|><|start|>assistant",
                "<|start|>assistant",
            ),
        ] {
            assert_eq!(without_thoughts(text), want, "{text}");
        }
    }
}
