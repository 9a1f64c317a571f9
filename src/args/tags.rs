//! Tags as some models write calls: `<scene>koi</scene>`, `<parameter=scene>koi</parameter>`, `<arg name="scene">koi</arg>`.

use super::{limits::PAIRS_MAX, loose, node::Node};

/// Deepest nesting of tags that is followed.
const OPEN_MAX: usize = 16;
/// Tags that wrap a call or all of its arguments and name no parameter themselves.
const WRAPPERS: [&str; 19] = [
    "tool_call",
    "toolcall",
    "function",
    "function_call",
    "function_calls",
    "invoke",
    "call",
    "tool",
    "tool_use",
    "tool_calls",
    "arguments",
    "args",
    "params",
    "parameters",
    "input",
    "action_input",
    "kwargs",
    "output",
    "answer",
];

/// What a text in tags holds.
pub(super) struct Tagged {
    pub(super) pairs: Vec<(String, Node)>,
    /// The tool that the tags name, if they do.
    pub(super) tool: Option<String>,
    /// Tags are left open.
    pub(super) cut: bool,
}

struct Open<'a> {
    name: &'a str,
    parameter: Option<String>,
    /// Where its contents begin.
    start: usize,
    has_children: bool,
}

/// Reads a text that consists of tags; `None` where there are none, they cross, or words stand between them.
pub(super) fn read(text: &str) -> Option<Tagged> {
    let mut tagged = Tagged {
        pairs: Vec::new(),
        tool: None,
        cut: false,
    };
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut pos = 0;
    while let Some(found) = text.get(pos..)?.find('<') {
        let at = pos + found;
        let Some(length) = text.get(at..)?.find('>') else {
            tagged.cut = true;
            break;
        };
        let inside = text.get(at + 1..at + length)?;
        let between = text.get(pos..at)?;
        pos = at + length + 1;
        if let Some(name) = inside.strip_prefix('/') {
            close(&mut open, name.trim(), text, at, &mut tagged)?;
        } else {
            has_no_words(between, &open)?;
            start(&mut open, inside, pos, &mut tagged)?;
        }
    }
    tagged.cut |= !open.is_empty();
    let rest = text.get(pos..)?.trim();
    let is_open_value = open.last().is_some_and(|tag| !is_wrapper(tag.name)) && !rest.contains('{');
    if is_open_value && text.starts_with('<') {
        return Some(tagged);
    }
    rest.is_empty().then_some(())?;
    (!tagged.pairs.is_empty() || (tagged.cut && tagged.tool.is_some())).then_some(tagged)
}

/// Words before a tag, outside a value, are not a call.
fn has_no_words(between: &str, open: &[Open<'_>]) -> Option<()> {
    (between.trim().is_empty() || open.last().is_some_and(|tag| is_wrapper(tag.name))).then_some(())
}

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS
        .iter()
        .any(|wrapper| name.eq_ignore_ascii_case(wrapper))
}

fn start<'a>(
    open: &mut Vec<Open<'a>>,
    inside: &'a str,
    pos: usize,
    tagged: &mut Tagged,
) -> Option<()> {
    let self_closing = inside.ends_with('/');
    let inside = inside.trim_end_matches('/').trim();
    let end = inside
        .find(|c: char| c.is_whitespace() || c == '=')
        .unwrap_or(inside.len());
    let (name, rest) = (inside.get(..end)?, inside.get(end..)?.trim());
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !is_name || open.len() == OPEN_MAX || tagged.pairs.len() == PAIRS_MAX {
        return None;
    }
    if let Some(parent) = open.last_mut() {
        parent.has_children = true;
    }
    let parameter = named(name, rest)?;
    if is_wrapper(name) && parameter.is_some() {
        tagged.tool = parameter;
        return (!self_closing).then(|| {
            open.push(Open {
                name,
                parameter: None,
                start: pos,
                has_children: true,
            });
        });
    }
    if self_closing {
        return attributes(name, rest, tagged);
    }
    if !rest.is_empty() && parameter.is_none() {
        return None;
    }
    open.push(Open {
        name,
        parameter,
        start: pos,
        has_children: false,
    });
    Some(())
}

/// The parameter or tool that a tag such as `parameter=scene` or `arg name="scene"` names; `None` if its attributes cannot be read.
#[expect(
    clippy::option_option,
    reason = "no name and unreadable attributes are different things"
)]
fn named(name: &str, rest: &str) -> Option<Option<String>> {
    const CARRIERS: [&str; 5] = ["parameter", "param", "arg", "argument", "property"];
    let carries = CARRIERS
        .iter()
        .any(|carrier| name.eq_ignore_ascii_case(carrier))
        || is_wrapper(name);
    if !carries || rest.is_empty() {
        return Some(None);
    }
    let value = match rest.strip_prefix('=') {
        Some(value) => value,
        None => rest.strip_prefix("name")?.trim_start().strip_prefix('=')?,
    };
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty() && !value.contains(char::is_whitespace)).then(|| Some(value.to_owned()))
}

/// `<stroke scene="koi" fps="5"/>`: the attributes are the arguments.
fn attributes(name: &str, rest: &str, tagged: &mut Tagged) -> Option<()> {
    if rest.is_empty() {
        tagged.tool = Some(name.to_owned());
        return Some(());
    }
    let read = loose::keywords(rest, super::quote::Quotes::Exact).filter(|read| !read.cut)?;
    tagged.tool = Some(name.to_owned());
    tagged.pairs.extend(
        read.pairs
            .into_iter()
            .map(|(key, node)| (key, as_word(node))),
    );
    Some(())
}

/// An attribute is always quoted, so its quotes say nothing about its type.
fn as_word(node: Node) -> Node {
    match node {
        Node::Text(text) => loose::bare(&text),
        other => other,
    }
}

fn close(
    open: &mut Vec<Open<'_>>,
    name: &str,
    text: &str,
    at: usize,
    tagged: &mut Tagged,
) -> Option<()> {
    let tag = open.pop()?;
    if tag.name != name {
        return None;
    }
    if tag.has_children || (is_wrapper(tag.name) && tag.parameter.is_none()) {
        let has_text = !tag.has_children && !text.get(tag.start..at)?.trim().is_empty();
        return (!has_text).then_some(());
    }
    let value = text.get(tag.start..at)?;
    if value.trim() == value && value.contains('\n') && value.contains(':') {
        return None;
    }
    push(
        tagged,
        tag.parameter.unwrap_or_else(|| tag.name.to_owned()),
        loose::bare(value),
    )
}

/// `<arg_key>scene</arg_key><arg_value>koi</arg_value>` makes one pair of two tags.
fn push(tagged: &mut Tagged, key: String, value: Node) -> Option<()> {
    if key == "arg_value" {
        let (_, name) = tagged.pairs.pop().filter(|(key, _)| key == "arg_key")?;
        let (Node::Text(name) | Node::Word(name)) = name else {
            return None;
        };
        tagged.pairs.push((name, value));
        return Some(());
    }
    tagged.pairs.push((key, value));
    Some(())
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        match read(text) {
            Some(tagged) if tagged.cut => "cut".into(),
            Some(tagged) => Node::Map(tagged.pairs).to_value().to_string(),
            None => "none".into(),
        }
    }

    #[test]
    fn reads_tags() {
        for text in [
            "<scene>koi</scene><fps>5</fps>",
            "<tool_call>\n<scene>koi</scene>\n<fps>5</fps>\n</tool_call>",
            "<function=stroke><parameter=scene>koi</parameter><parameter=fps>5</parameter></function>",
            "<tool_call><function=stroke>\n<parameter=scene>\nkoi\n</parameter>\n<parameter=fps>\n5\n</parameter>\n</function></tool_call>",
            "<invoke name=\"stroke\"><parameter name=\"scene\">koi</parameter><parameter name=\"fps\">5</parameter></invoke>",
            "<tool_call>stroke<arg_key>scene</arg_key><arg_value>koi</arg_value><arg_key>fps</arg_key><arg_value>5</arg_value></tool_call>",
            "<stroke scene=\"koi\" fps=\"5\"/>",
            "<stroke><scene>koi</scene><fps>5</fps></stroke>",
        ] {
            assert_eq!(json(text), r#"{"scene":"koi","fps":5}"#, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_open_or_crossed() {
        for text in [
            "<scene>koi",
            "<scene>koi</scene><fps",
            "<a><scene>koi</scene>",
        ] {
            assert!(["cut", "none"].contains(&json(text).as_str()), "{text}");
        }
        for text in [
            "<a><b>1</a></b>",
            "<function-name>",
            "draw <scene>koi</scene>",
            "",
            "a < b > c",
        ] {
            assert!(["cut", "none"].contains(&json(text).as_str()), "{text}");
        }
    }
}
