//! The tokens of form: what models, their templates and programs write around arguments and what has no meaning of its own.

use super::tagged_text;

/// A token at the beginning of a text.
pub(super) struct FormToken {
    pub(super) bytes: usize,
    /// True if it begins a call's tag, in which attributes may stand.
    pub(super) begins_tag: bool,
    /// True if it is a special token, behind which a role may stand.
    pub(super) is_special: bool,
    /// True if it is the special token of a call.
    pub(super) is_call: bool,
}

impl FormToken {
    pub(super) const fn of(bytes: usize) -> Self {
        Self {
            bytes,
            begins_tag: false,
            is_special: false,
            is_call: false,
        }
    }
}

/// Markers that stand as they are.
const MARKERS: [&str; 23] = [
    "[TOOL_CALLS]",
    "[/TOOL_CALLS]",
    "[TOOL_CALL]",
    "[/TOOL_CALL]",
    "[TOOL_REQUEST]",
    "[/TOOL_REQUEST]",
    "[END_TOOL_REQUEST]",
    "[ARGS]",
    "<start_function_call>",
    "<end_function_call>",
    "<end_of_turn>",
    "<functioncall>",
    "</functioncall>",
    "<tool_call|>",
    "<|tool_call>",
    "<eos>",
    "</s>",
    "<s>",
    "<escape>",
    "<![CDATA[",
    "]]>",
    "functools[",
    "<start_of_turn>model",
];

/// Labels that begin a line.
const LABELS: [&str; 3] = ["call:", "Action Input:", "Action:"];

/// Words of special tokens, between `<|` and `|>`.
const TOKEN_WORDS: [&str; 34] = [
    "tool",
    "tools",
    "call",
    "calls",
    "function",
    "functions",
    "argument",
    "arguments",
    "args",
    "begin",
    "end",
    "start",
    "section",
    "sep",
    "im",
    "python",
    "tag",
    "channel",
    "message",
    "constrain",
    "eom",
    "eot",
    "eos",
    "id",
    "header",
    "assistant",
    "recipient",
    "content",
    "from",
    "action",
    "plugin",
    "turn",
    "stop",
    "return",
];

/// Roles and formats that stand behind a special token: those of who calls.
const ROLES: [&str; 5] = ["assistant", "model", "commentary", "json", "to="];

/// Kinds of calls that stand behind a special token of a call. Behind that of a turn they name whose answer follows.
const CALL_KINDS: [&str; 3] = ["function", "tool", "python"];

/// Words that alone in a special token begin the turn of a tool, which is an answer and no call.
const TOOL_TURNS: [&str; 5] = ["tool", "tools", "function", "functions", "return"];

/// Names that code fences carry.
const FENCE_NAMES: [&str; 20] = [
    "json",
    "json5",
    "jsonc",
    "javascript",
    "js",
    "typescript",
    "ts",
    "python",
    "py",
    "yaml",
    "yml",
    "xml",
    "toml",
    "text",
    "txt",
    "bash",
    "sh",
    "shell",
    "tool_call",
    "tool_code",
];

/// Attributes of a call's tags, and the types that one of them names.
const ATTRIBUTES: [&str; 14] = [
    "name", "key", "value", "type", "id", "string", "required", "integer", "number", "boolean",
    "array", "object", "int", "bool",
];

/// Functions that make an object, and are no tools.
const CONSTRUCTORS: [&str; 9] = super::unbracketed::CONSTRUCTORS;

/// Returns the token that a text begins with. Labels count only where a line begins.
pub(super) fn at(text: &str, begins_line: bool) -> Option<FormToken> {
    let mut labels = LABELS.iter().filter(|_| begins_line);
    if let Some(label) = labels.find(|label| text.starts_with(**label)) {
        return Some(FormToken::of(label.len()));
    }
    let marker = MARKERS.iter().find(|marker| text.starts_with(**marker));
    if let Some(marker) = marker {
        return Some(FormToken {
            is_special: marker.starts_with('<'),
            ..FormToken::of(marker.len())
        });
    }
    special(text)
        .or_else(|| tag(text))
        .or_else(|| fence(text))
        .or_else(|| word(text))
}

/// Returns the role that a text begins with, behind a special token.
pub(super) fn role_at(text: &str, behind_call: bool) -> Option<FormToken> {
    let kinds = CALL_KINDS.iter().filter(|_| behind_call);
    let role = ROLES
        .iter()
        .chain(kinds)
        .find(|role| text.starts_with(**role))?;
    Some(FormToken {
        is_special: true,
        ..FormToken::of(role.len())
    })
}

/// Returns the attribute that a text begins with, inside a call's tag.
pub(super) fn attribute_at(text: &str) -> Option<FormToken> {
    let word = leading_word(text);
    ATTRIBUTES
        .contains(&word)
        .then(|| FormToken::of(word.len()))
}

/// Returns the mark of form that a text begins with. Signs that deny or ask, such as `!`, `#`, `~` and a last `?`, are none, and
/// neither are those that comment out or strike out what follows.
pub(super) fn mark_at(text: &str, begins_line: bool) -> Option<char> {
    let mark = text.chars().next().filter(|c| is_mark(*c))?;
    let after = text.get(mark.len_utf8()..).unwrap_or_default();
    let goes_on = after.starts_with(char::is_alphanumeric);
    let comments = match mark {
        '/' => after.starts_with(['/', '*']),
        ';' => begins_line,
        '-' => begins_line && !is_dash_of_form(after),
        '?' => !goes_on,
        _ => false,
    };
    (!comments).then_some(mark)
}

/// Returns the length of the run of signs that a text begins with which mean nothing only between or before words: a smiley, a
/// quotation's `>` or a box to tick is more than form.
pub(super) fn loose_length(text: &str) -> usize {
    text.len()
        - text
            .trim_start_matches(|c: char| "*-|&?.<>/\\+$@_".contains(c))
            .len()
}

/// Returns whether a dash before this text, at the beginning of a line, is a bullet, a rule, or that of an option.
fn is_dash_of_form(after: &str) -> bool {
    let behind = after.trim_start_matches('-');
    let is_bullet = after.starts_with(char::is_whitespace);
    let is_rule = behind.is_empty() || behind.starts_with('\n');
    let letters = leading_word(behind).chars().count();
    is_bullet || is_rule || letters == 1 || (letters > 1 && after.starts_with('-'))
}

/// Returns whether a character can be punctuation of form.
pub(super) fn is_mark(c: char) -> bool {
    "{}[]()｛｝,，、:：;=\"'`´“”‘’„‟‚‛«»「」＂*-|&?.<>/\\+$@_".contains(c)
}

/// Returns the word that a text begins with; empty if it begins with a sign.
pub(super) fn leading_word(text: &str) -> &str {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    text.get(..text.find(|c| !is_inside(c)).unwrap_or(text.len()))
        .unwrap_or_default()
}

/// Returns a special token: `<|im_end|>`, `<｜tool▁calls▁begin｜>`.
fn special(text: &str) -> Option<FormToken> {
    let marks = [("<|", "|>"), ("<｜", "｜>")];
    let (open, close) = marks.into_iter().find(|(open, _)| text.starts_with(open))?;
    let (inside, _) = text.get(open.len()..)?.split_once(close)?;
    let mut words = inside
        .split(['_', '▁', '-', '/'])
        .filter(|word| !word.is_empty());
    let is_form = words.all(|word| TOKEN_WORDS.contains(&word)) && !TOOL_TURNS.contains(&inside);
    is_form.then(|| FormToken {
        is_special: true,
        is_call: inside.contains("call"),
        ..FormToken::of(open.len() + inside.len() + close.len())
    })
}

/// Returns the beginning of a call's tag: `<tool_call`, `</invoke`, `<parameter`, also with the namespace of a model.
fn tag(text: &str) -> Option<FormToken> {
    const NAMESPACES: [&str; 4] = ["antml:", "minimax:", "seed:", "qwen:"];
    if let Some(prolog) = text.strip_prefix("<?xml ") {
        let (inside, _) = prolog.split_once("?>")?;
        let is_own = |word: &str| {
            let mut own = ["version=", "encoding=", "standalone="].iter();
            own.any(|own| word.starts_with(own))
        };
        let is_plain = inside.split_whitespace().all(is_own);
        return is_plain.then(|| FormToken::of(inside.len() + 8));
    }
    let inside = text.strip_prefix("</").or_else(|| text.strip_prefix('<'))?;
    let space = NAMESPACES.iter().find(|space| inside.starts_with(**space));
    let local = inside.get(space.map_or(0, |space| space.len())..)?;
    let name = leading_word(local);
    (tagged_text::is_wrapper(name) || tagged_text::is_carrier(name)).then(|| FormToken {
        begins_tag: true,
        ..FormToken::of(text.len() - local.len() + name.len())
    })
}

/// Returns a code fence with its language.
fn fence(text: &str) -> Option<FormToken> {
    let inside = text
        .strip_prefix("```")
        .or_else(|| text.strip_prefix("~~~"))?;
    let name = leading_word(inside);
    let is_known = FENCE_NAMES
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known));
    Some(FormToken::of(3 + if is_known { name.len() } else { 0 }))
}

/// Returns a heading over arguments, `arguments:`, `arg_key`, or a constructor before its bracket.
fn word(text: &str) -> Option<FormToken> {
    let is_call = |name: &&&str| {
        text.strip_prefix(**name)
            .is_some_and(|rest| rest.starts_with('('))
    };
    if let Some(name) = CONSTRUCTORS.iter().find(is_call) {
        return Some(FormToken::of(name.len()));
    }
    let word = leading_word(text);
    let after = text.get(word.len()..).unwrap_or_default();
    let is_heading = after.starts_with([':', ']']) && super::heuristics::is_wrapper(word);
    let is_pair_tag = matches!(word, "arg_key" | "arg_value");
    (is_heading || is_pair_tag).then(|| FormToken::of(word.len()))
}
