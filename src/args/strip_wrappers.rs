//! Strips what models, their templates and programs put around a call: special tokens, reasoning, labels,
//! assignments, a printing call, sentences. What of it counts as form is judged in `rest`.

use super::{
    candidates::TextFlaw,
    form_repair::FormRepair,
    form_token::{BOTH_ENDS, CLOSERS, OPENERS, SPECIAL_MARKS},
    thought,
};
use std::borrow::Cow;

/// Most layers that are taken off one text.
const LAYERS_MAX: usize = 8;
/// Longest special token, as in `<|tool_call_start|>`.
const TOKEN_BYTES_MAX: usize = 48;

/// Text without what surrounded it.
#[derive(Debug, PartialEq)]
pub(super) struct StrippedText<T> {
    pub(super) text: T,
    pub(super) form: FormRepair,
    /// Tool that a label named.
    pub(super) tool: Option<String>,
}

/// Returns the text inside, if anything was around it; a marker that announces a call with nothing after it is a cut.
pub(super) fn strip_wrapper(text: &str) -> Result<Option<StrippedText<Cow<'_, str>>>, TextFlaw> {
    let layers = [
        channels, numbered, addressed, reasoning, marker, react, assignment, printed, pythonic,
        sentences,
    ];
    let mut rest = WrapperLayer::new(text, FormRepair::Prose);
    for _ in 0..LAYERS_MAX {
        let Some(layer) = layers.iter().find_map(|layer| layer(rest.text)) else {
            break;
        };
        rest.text = layer.text.trim();
        rest.form = layer.form;
        rest.tool = rest.tool.or(layer.tool);
        if rest.text.is_empty() {
            return Err(TextFlaw::Cut);
        }
    }
    let requoted = with_plain_quotes(rest.text);
    if requoted.is_none() && rest.text.len() == text.len() {
        return Ok(None);
    }
    Ok(Some(StrippedText {
        text: requoted.map_or(Cow::Borrowed(rest.text), Cow::Owned),
        form: rest.form,
        tool: rest.tool,
    }))
}

/// Text without one of its wrappers.
pub(super) type WrapperLayer<'a> = StrippedText<&'a str>;

impl<'a> WrapperLayer<'a> {
    pub(super) fn new(text: &'a str, form: FormRepair) -> Self {
        Self {
            text,
            form,
            tool: None,
        }
    }
}

/// Strips `<think>…</think>` before the call: thoughts are not arguments, even if they hold braces.
fn reasoning(text: &str) -> Option<WrapperLayer<'_>> {
    let thought = thought::first_tagged(text)?;
    // If the chat template wrote the opening tag, only the closing one is in the text.
    let is_thought = thought.is_opened || !thought.inside.contains(['<', '{']);
    let rest = thought.after.filter(|rest| !rest.trim().is_empty())?;
    (thought.before.is_empty() && is_thought && !thought.recurs())
        .then(|| WrapperLayer::new(rest, FormRepair::Tag))
}

/// Strips `<|channel|>commentary to=functions.stroke <|constrain|>json<|message|>{…}<|call|>`, and a channel of thoughts before it.
fn channels(text: &str) -> Option<WrapperLayer<'_>> {
    let start = |text| -> Option<&str> {
        let role: &str = text;
        let role = role.strip_prefix("<|start|>").unwrap_or(role);
        let role = role.strip_prefix("assistant").unwrap_or(role);
        role.strip_prefix("<|channel|>")
    };
    let (header, rest) = start(text)?.split_once("<|message|>")?;
    if header.trim() == "analysis" {
        let (_, rest) = rest.split_once("<|end|>")?;
        return start(rest).map(|_| WrapperLayer::new(rest, FormRepair::Tag));
    }
    let header = header.trim_end_matches("json").trim_end();
    let header = header.trim_end_matches("<|constrain|>").trim_end();
    let (channel, tool) = header.split_once(" to=").unwrap_or((header, ""));
    let is_name = !tool.contains(char::is_whitespace) && matches!(channel, "commentary" | "final");
    is_name.then(|| WrapperLayer {
        tool: Some(tool.to_owned()).filter(|tool| !tool.is_empty()),
        ..WrapperLayer::new(rest, FormRepair::Tag)
    })
}

/// Strips `functions.stroke:0<|tool_call_argument_begin|>{…}`, which counts the calls of a message.
fn numbered(text: &str) -> Option<WrapperLayer<'_>> {
    let (header, rest) = text.split_once("<|tool_call_argument_begin|>")?;
    let (tool, count) = header.trim().rsplit_once(':')?;
    let is_count = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    (is_count && is_identifier(tool)).then(|| WrapperLayer {
        tool: Some(tool.to_owned()),
        ..WrapperLayer::new(rest, FormRepair::Tag)
    })
}

/// Strips `<|recipient|>stroke⏎<|content|>{…}` and `>>>stroke⏎{…}`, which name whom the message is for.
fn addressed(text: &str) -> Option<WrapperLayer<'_>> {
    let text = text.strip_prefix("<|from|>assistant").unwrap_or(text);
    let text = text.trim_start();
    let (tool, rest) = match text.strip_prefix("<|recipient|>") {
        Some(message) => message.split_once("<|content|>")?,
        None => text.strip_prefix(">>>")?.split_once('\n')?,
    };
    let tool = tool.trim();
    is_identifier(tool).then(|| WrapperLayer {
        tool: Some(tool.to_owned()),
        ..WrapperLayer::new(rest, FormRepair::Tag)
    })
}

/// Strips `<|python_tag|>`, `[TOOL_CALLS]`, `</s>` and similar markers at either end.
fn marker(text: &str) -> Option<WrapperLayer<'_>> {
    let mut before = OPENERS.iter().chain(&BOTH_ENDS);
    let mut after = CLOSERS.iter().chain(&BOTH_ENDS);
    let functools = text.strip_prefix("functools");
    let known = before
        .find_map(|mark| text.strip_prefix(mark))
        .or_else(|| after.find_map(|mark| text.strip_suffix(mark)))
        .or_else(|| functools.filter(|rest| rest.starts_with('[')));
    if let Some(rest) = known {
        return Some(WrapperLayer::new(rest, FormRepair::Tag));
    }
    let before = |(open, close)| text.strip_prefix(open)?.split_once(close);
    let after = |(open, close)| {
        let (rest, token) = text.strip_suffix(close)?.rsplit_once(open)?;
        Some((token, rest))
    };
    // A token alone is a stand-in, and nothing left after stripping is a cut.
    let is_token = |(token, rest): &(&str, &str)| is_token(token) && !rest.trim().is_empty();
    let mut all = SPECIAL_MARKS
        .map(before)
        .into_iter()
        .chain(SPECIAL_MARKS.map(after));
    let (_, rest) = all.find_map(|found| found.filter(is_token))?;
    Some(WrapperLayer::new(rest, FormRepair::Tag))
}

/// Returns whether the text inside `<|…|>` or `<｜…｜>` looks like a token and not like a value.
fn is_token(inner: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '▁' | '-' | '/');
    !inner.is_empty() && inner.len() <= TOKEN_BYTES_MAX && inner.chars().all(allowed)
}

/// Strips `Action: stroke`, `Action Input: {…}`, `Observation:`. The text before the input is thought; the text after it is not the caller's.
fn react(text: &str) -> Option<WrapperLayer<'_>> {
    const LABEL: &str = "Action Input:";
    let (before, rest) = text.split_once(LABEL)?;
    let starts_line = before.is_empty() || before.trim_end_matches([' ', '*']).ends_with('\n');
    let thought = before
        .rsplit_once("\nAction:")
        .map_or("", |(thought, _)| thought);
    let words = match thought.trim_start().starts_with("Thought:") {
        true => before.strip_prefix(thought).unwrap_or(before),
        false => before,
    };
    if !starts_line || rest.contains(LABEL) || before.contains("```") || words.contains('{') {
        return None;
    }
    let (rest, _) = rest.split_once("\nObservation:").unwrap_or((rest, ""));
    let names = before.lines().rev();
    let names = names.filter_map(|line| Some(line.trim().strip_prefix("Action:")?.trim()));
    let mut names = names.filter(|name| !name.is_empty());
    Some(WrapperLayer {
        tool: names.next().map(str::to_owned),
        ..WrapperLayer::new(rest.trim_start_matches('*'), FormRepair::Prose)
    })
}

/// Strips lines that are sentences before and after lines of pairs: `Here is the call:`, `Let me know if this works.`
fn sentences(text: &str) -> Option<WrapperLayer<'_>> {
    let is_sentence = |line: &str, ends: &[char]| {
        let words = line.trim().trim_end_matches(['*', '`']);
        let inside = words.trim_end_matches(ends);
        let is_plain = |c: char| !"{}[]()<>=\":".contains(c);
        inside.len() < words.len() && inside.contains(' ') && inside.chars().all(is_plain)
    };
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n')
        && (line.trim().is_empty() || is_sentence(line, &[':', '.', '!', '…']))
    {
        rest = after;
    }
    while let Some((before, line)) = rest.rsplit_once('\n')
        && (line.trim().is_empty() || (!line.starts_with(' ') && is_sentence(line, &['.', '!'])))
    {
        rest = before;
    }
    let is_found = rest.trim().len() < text.len();
    is_found.then(|| WrapperLayer::new(rest, FormRepair::Prose))
}

/// Strips the target of an assignment or a keyword: `const args = {…};`, `result = stroke(…)`, `await stroke(…)`, `return {…};`
fn assignment(text: &str) -> Option<WrapperLayer<'_>> {
    const WORDS: [&str; 8] = [
        "const ", "let ", "var ", "final ", "local ", "await ", "return ", "auto ",
    ];
    if let Some(rest) = WORDS.iter().find_map(|word| text.strip_prefix(word)) {
        let open = rest.find(['{', '[', '('])?;
        let head = rest.get(..open)?;
        let is_name =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ' ' | ':' | '<' | '>');
        let value = match head.trim_end().strip_suffix('=') {
            Some(target) if target.chars().all(is_name) => rest.get(open..)?,
            None if head.chars().all(is_name) && !head.contains(':') => rest,
            _ => head
                .split_once('=')
                .filter(|(target, _)| target.chars().all(is_name))
                .and_then(|(target, _)| rest.get(target.len() + 1..))?,
        };
        return Some(WrapperLayer::new(value, FormRepair::Prose));
    }
    let (target, rest) = text.split_once('=')?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("await ").unwrap_or(rest);
    let is_call = is_identifier(target.trim()) && begins_call(rest) && rest.ends_with([')', ';']);
    is_call.then(|| WrapperLayer::new(rest, FormRepair::Prose))
}

fn is_identifier(text: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    !text.is_empty() && text.chars().all(is_inside)
}

/// Returns whether a text begins as a call.
fn begins_call(text: &str) -> bool {
    let called = text.split_once('(');
    called.is_some_and(|(name, _)| is_identifier(name))
}

/// Strips a printing call: `print(stroke(…))`.
fn printed(text: &str) -> Option<WrapperLayer<'_>> {
    let mut printers = ["print(", "console.log("].iter();
    let inner = printers.find_map(|printer| text.strip_prefix(printer))?;
    let inner = inner.trim_end_matches(';').trim_end().strip_suffix(')')?;
    begins_call(inner).then(|| WrapperLayer::new(inner, FormRepair::Call))
}

/// Strips a list around a single call: `[stroke(scene="koi")]`.
fn pythonic(text: &str) -> Option<WrapperLayer<'_>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    (begins_call(inner) && inner.ends_with(')')).then(|| WrapperLayer::new(inner, FormRepair::Call))
}

/// Replaces tokens that some models write for a quote; `call:stroke{…}` is then a call. If the value does not begin with such a
/// token, the token is part of the value.
fn with_plain_quotes(text: &str) -> Option<String> {
    const QUOTES: [&str; 2] = ["<escape>", "<|\"|>"];
    let mut quotes = QUOTES.iter();
    let (before, token) = quotes.find_map(|token| Some((text.split_once(token)?.0, token)))?;
    let begins_value = before.trim_end().ends_with([':', '=', '{', '[', '(', ',']);
    if !begins_value || before.contains(super::quote::is_quote) {
        return None;
    }
    let requoted = text.replace(token, "\"");
    let called = requoted.strip_prefix("call:");
    let called = called.filter(|call| call.ends_with('}'));
    match called.and_then(|call| call.split_once('{')) {
        Some((tool, rest)) => Some(format!("{tool}({{{rest})")),
        None => Some(requoted),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn stripped(text: &str) -> String {
        match strip_wrapper(text) {
            Ok(Some(StrippedText { text, tool, .. })) => {
                tool.map_or(text.to_string(), |tool| format!("{tool}: {text}"))
            }
            Ok(None) => "as it was".into(),
            Err(flaw) => format!("{flaw:?}"),
        }
    }

    #[test]
    fn strips_wrappers_around_a_call() {
        for (text, want) in [
            ("<think>{a}</think>\n{\"b\":1}", "{\"b\":1}"),
            ("<|python_tag|>{}<|eom_id|>", "{}"),
            ("<|tool_call_start|>[f(a=1)]<|tool_call_end|>", "f(a=1)"),
            ("[TOOL_REQUEST]{}[END_TOOL_REQUEST]", "{}"),
            (
                "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
                "functions.f: {}",
            ),
            ("functools[{}]", "[{}]"),
            (
                "Thought: {x}\nAction: f\nAction Input: {}\nObservation: y",
                "f: {}",
            ),
            ("const a: Args = {b: 1};", "{b: 1};"),
            ("r = await f(a=1)", "f(a=1)"),
            ("print(api.f(a=1))", "api.f(a=1)"),
            ("call:f{a:<escape>b<escape>}", "f({a:\"b\"})"),
        ] {
            assert_eq!(stripped(text), want, "{text}");
        }
    }

    #[test]
    fn leaves_everything_else() {
        for text in [
            "{\"a\":1}",
            "<think>hm</think>",
            "<|scene|>",
            "a = b",
            "scene = {\"a\": 1}",
            "{'a' 'b<escape>c'}",
            "{a: b<escape>c<escape>}",
            "[1, 2]",
            "Action Input: 1\nAction Input: 2",
        ] {
            assert_eq!(stripped(text), "as it was", "{text}");
        }
        for text in [
            "[TOOL_CALLS]",
            "Action: f\nAction Input:",
            "<start_function_call>",
        ] {
            assert_eq!(stripped(text), "Cut", "{text}");
        }
    }
}
