//! The tokens of form: what models, their templates and programs write around arguments and what has no meaning of its own.

use super::{quote, tagged_text};

/// A token at the beginning of a text.
pub(super) struct FormToken {
    pub(super) bytes: usize,
    /// True if it begins a call's tag, in which attributes may stand.
    pub(super) begins_tag: bool,
    /// True if it is a special token, behind which a role may stand.
    pub(super) is_special: bool,
    /// True if it is the special token of a call.
    pub(super) is_call: bool,
    /// The side of a call on which it stands.
    pub(super) side: TokenSide,
}

/// The side of a call on which a token stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenSide {
    /// It begins a call; the number is its place among the labels of one call, if it is a label.
    Opens(Option<usize>),
    /// It ends a call.
    Closes,
    /// It stands on either side, or inside.
    Either,
}

impl FormToken {
    pub(super) const fn of(bytes: usize) -> Self {
        Self {
            bytes,
            begins_tag: false,
            is_special: false,
            is_call: false,
            side: TokenSide::Either,
        }
    }
}

/// Marks around special tokens.
pub(super) const SPECIAL_MARKS: [(&str, &str); 2] = [("<|", "|>"), ("<｜", "｜>")];

/// Markers that begin a call or a turn.
pub(super) const OPENERS: [&str; 7] = [
    "[TOOL_CALLS]",
    "[TOOL_CALL]",
    "[TOOL_REQUEST]",
    "<start_function_call>",
    "<start_of_turn>model",
    "<functioncall>",
    "<s>",
];

/// Markers that end a call or a turn.
pub(super) const CLOSERS: [&str; 9] = [
    "[/TOOL_CALLS]",
    "[/TOOL_CALL]",
    "[/TOOL_REQUEST]",
    "[END_TOOL_REQUEST]",
    "<end_function_call>",
    "</functioncall>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
];

/// Markers that stand at either end of a call.
pub(super) const BOTH_ENDS: [&str; 2] = ["<tool_call|>", "<|tool_call>"];

/// Markers that stand inside a call.
const INSIDE: [&str; 5] = ["[ARGS]", "functools[", "<escape>", "<![CDATA[", "]]>"];

/// Labels that begin a line, in the order in which one call has them.
const LABELS: [&str; 3] = ["Action:", "Action Input:", "call:"];

/// Brackets that open, and those that close.
const OPENING: &str = "{[(｛";
const CLOSING: &str = "}])｝";
/// Marks that stand around and between keys and values.
const BETWEEN: &str = ",，、:：;=\"'`´“”‘’„‟‚‛«»「」＂";
/// Marks that mean nothing only inside the arguments: a smiley, a quotation's `>` or a box to tick is more than form.
const LOOSE: &str = "*-|&?.<>/\\+$@_";
/// Those of them that also mean nothing before a word: emphasis, tables and tags.
const BEFORE_WORD: &str = "*-|</_";

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
    // No token begins with another sign, and most marks are none of these.
    let first = text.chars().next()?;
    if !first.is_alphanumeric() && !"<[]`~".contains(first) {
        return None;
    }
    let mut labels = LABELS.iter().enumerate().filter(|_| begins_line);
    if let Some((place, label)) = labels.find(|(_, label)| text.starts_with(**label)) {
        return Some(FormToken {
            side: TokenSide::Opens(Some(place)),
            ..FormToken::of(label.len())
        });
    }
    let sides: [(TokenSide, &[&str]); 4] = [
        (TokenSide::Opens(None), &OPENERS),
        (TokenSide::Closes, &CLOSERS),
        (TokenSide::Either, &BOTH_ENDS),
        (TokenSide::Either, &INSIDE),
    ];
    for (side, markers) in sides {
        if let Some(marker) = markers.iter().find(|marker| text.starts_with(**marker)) {
            return Some(FormToken {
                is_special: marker.starts_with('<'),
                side,
                ..FormToken::of(marker.len())
            });
        }
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

/// The place of a mark beside the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkPlace {
    Before,
    Inside,
    Behind,
    /// Outside of arguments that have no letters, or that stand there several times.
    Outside,
}

/// Returns the bytes of the mark of form that a text begins with. Signs that deny or ask, such as `!`, `#`, `~` and a last `?`, are
/// none, and neither are those that comment out or strike out what follows. Nothing ends before the arguments, and nothing
/// begins behind them: that would be another call.
pub(super) fn mark_at(text: &str, begins_line: bool, place: MarkPlace) -> Option<usize> {
    let mark = text.chars().next().filter(|c| is_mark(*c))?;
    let after = text.get(mark.len_utf8()..).unwrap_or_default();
    let is_inside = place == MarkPlace::Inside;
    let is_form = match mark {
        '-' => return dashes(text, begins_line, is_inside),
        '/' if after.starts_with(['/', '*']) => false,
        ';' => !begins_line && place != MarkPlace::Before,
        '?' if !after.starts_with(char::is_alphanumeric) => false,
        '.' if !after.starts_with(|c| LOOSE.contains(c)) => true,
        _ if OPENING.contains(mark) => place != MarkPlace::Behind,
        _ if CLOSING.contains(mark) => place != MarkPlace::Before,
        _ if LOOSE.contains(mark) => {
            is_inside || (BEFORE_WORD.contains(mark) && stands_before_word(text))
        }
        _ => true,
    };
    is_form.then(|| mark.len_utf8())
}

/// Returns the length of the dashes that a text begins with if they are form: a rule that is a line, a bullet, those of an
/// option, or a dash between words.
fn dashes(text: &str, begins_line: bool, is_inside: bool) -> Option<usize> {
    let behind = text.trim_start_matches('-');
    let run = text.len() - behind.len();
    let letters = leading_word(behind).chars().count();
    let is_joined = is_inside || stands_before_word(behind);
    let is_form = match begins_line {
        true if behind.is_empty() || behind.starts_with('\n') => run > 2,
        true if behind.starts_with(char::is_whitespace) => run == 1 && is_joined,
        true => letters == 1 || (letters > 1 && run > 1),
        false => is_joined,
    };
    is_form.then_some(run)
}

/// Returns whether a word or a quoted text stands next, behind loose marks and blanks.
fn stands_before_word(text: &str) -> bool {
    let next = text.trim_start_matches(|c| LOOSE.contains(c));
    let next = next.trim_start_matches(is_blank).chars().next();
    next.is_some_and(|c| c.is_alphanumeric() || quote::is_quote(c))
}

/// Returns whether a character can be punctuation of form.
pub(super) fn is_mark(c: char) -> bool {
    [OPENING, CLOSING, BETWEEN, LOOSE]
        .iter()
        .any(|marks| marks.contains(c))
}

/// Returns whether a character is a bracket.
pub(super) fn is_bracket(c: char) -> bool {
    OPENING.contains(c) || CLOSING.contains(c)
}

/// Returns whether a bracket opens.
pub(super) fn is_opening(c: char) -> bool {
    OPENING.contains(c)
}

/// Returns whether a character is blank or invisible.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}' | '\0')
}

/// Returns the word that a text begins with; empty if it begins with a sign.
pub(super) fn leading_word(text: &str) -> &str {
    let is_inside = |c: char| c.is_alphanumeric() || c == '_';
    text.get(..text.find(|c| !is_inside(c)).unwrap_or(text.len()))
        .unwrap_or_default()
}

/// Returns a special token: `<|im_end|>`, `<｜tool▁calls▁begin｜>`.
fn special(text: &str) -> Option<FormToken> {
    let mut marks = SPECIAL_MARKS.into_iter();
    let (open, close) = marks.find(|(open, _)| text.starts_with(open))?;
    let (inside, _) = text.get(open.len()..)?.split_once(close)?;
    let mut words = inside
        .split(['_', '▁', '-', '/'])
        .filter(|word| !word.is_empty());
    let is_form = words.all(|word| TOKEN_WORDS.contains(&word)) && !TOOL_TURNS.contains(&inside);
    let is_call = inside.contains("call");
    is_form.then(|| FormToken {
        is_special: true,
        is_call,
        side: match is_call {
            true if inside.contains("end") => TokenSide::Closes,
            true if inside.contains("begin") || inside.contains("start") => TokenSide::Opens(None),
            _ => TokenSide::Either,
        },
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
        side: match text.starts_with("</") {
            true => TokenSide::Closes,
            false => TokenSide::Opens(None),
        },
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

/// Returns a heading over arguments, `arguments:`, or a constructor before its bracket.
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
    // The bracket of `[arguments]` ends the heading and no call.
    let is_heading = after.starts_with([':', ']']) && super::heuristics::is_wrapper(word);
    is_heading.then(|| FormToken::of(word.len() + 1))
}
