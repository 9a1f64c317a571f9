//! Reads calls written as tags: `<scene>koi</scene>`, `<parameter=scene>koi</parameter>`, `<arg name="scene">koi</arg>`.

use super::{
    form_repair::FormRepair,
    limits::PAIRS_MAX,
    parsed_value::{Pair, ParsedValue},
    quote::QuoteMatching,
    unbracketed::{self, UnbracketedPairs},
};

/// Deepest nesting of tags that is followed.
const OPEN_MAX: usize = 16;
/// Tags that wrap a call or all of its arguments and name no parameter themselves.
const WRAPPERS: [&str; 20] = [
    "tool_code",
    "use_mcp_tool",
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
    "answer",
];

/// Attributes of a tag.
type TagAttributes = Vec<Pair>;

struct OpenTag<'a> {
    name: &'a str,
    parameter: Option<String>,
    /// Position where its contents begin.
    start: usize,
    /// True if a tag stands in it, or if its attributes are arguments.
    has_children: bool,
}

/// Reader of tags, with the open ones and the pairs read so far.
struct TagReader<'a> {
    open: Vec<OpenTag<'a>>,
    read: UnbracketedPairs,
}

/// Reads a text that consists of tags. Returns `None` if there are none, they cross, or words stand between them.
pub(super) fn read(text: &str) -> Option<UnbracketedPairs> {
    let mut reader = TagReader {
        open: Vec::new(),
        read: UnbracketedPairs::of(FormRepair::Tag),
    };
    let mut pos = 0;
    if text.starts_with("<?xml") {
        pos = text.find("?>")? + 2;
    }
    while let Some(found) = text.get(pos..)?.find('<') {
        let at = pos + found;
        let (between, tag) = (text.get(pos..at)?, text.get(at..)?);
        if tag.starts_with("<![CDATA[") {
            reader.skip_words(between)?;
            pos = at + tag.find("]]>")? + 3;
            continue;
        }
        let Some(length) = tag.find('>') else {
            reader.read.cut = true;
            break;
        };
        let inside = tag.get(1..length)?;
        pos = at + length + 1;
        if let Some(name) = inside.strip_prefix('/') {
            reader.close(local_name(name.trim()), text.get(..at)?)?;
        } else {
            reader.skip_words(between)?;
            reader.start(inside, pos)?;
        }
    }
    reader.finish(text, pos)
}

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS
        .iter()
        .any(|wrapper| name.eq_ignore_ascii_case(wrapper))
}

/// Returns the name of a call's tag without its namespace, as in `<minimax:tool_call>`.
fn local_name(name: &str) -> &str {
    let local = name.rsplit_once(':').map(|(_, local)| local);
    local.filter(|local| is_wrapper(local)).unwrap_or(name)
}

pub(super) fn is_carrier(name: &str) -> bool {
    const CARRIERS: [&str; 7] = [
        "parameter",
        "param",
        "arg",
        "argument",
        "property",
        "arg_key",
        "arg_value",
    ];
    CARRIERS
        .iter()
        .any(|carrier| name.eq_ignore_ascii_case(carrier))
}

/// Parses a tag's attributes, where `=stroke` counts as a name; `None` if they cannot be read.
fn attributes(rest: &str) -> Option<TagAttributes> {
    if rest.is_empty() {
        return Some(Vec::new());
    }
    if let Some(value) = rest.strip_prefix('=') {
        let value = value.trim().trim_matches(['"', '\'']);
        let is_name = !value.is_empty() && !value.contains(char::is_whitespace);
        return is_name.then(|| vec![("name".to_owned(), ParsedValue::Text(value.to_owned()))]);
    }
    let read = unbracketed::keywords(rest, QuoteMatching::Exact)?;
    (!read.cut).then_some(read.pairs)
}

impl<'a> TagReader<'a> {
    /// Skips words before a tag; `None` unless they stand inside a call's tag, because then the text is not a call.
    fn skip_words(&mut self, between: &str) -> Option<()> {
        let is_inside = self.open.last().is_some_and(|tag| is_wrapper(tag.name));
        (between.trim().is_empty() || is_inside).then_some(())
    }

    fn start(&mut self, inside: &'a str, pos: usize) -> Option<()> {
        let self_closing = inside.ends_with('/');
        let inside = inside.trim_end_matches('/').trim();
        let ends_name = |c: char| c.is_whitespace() || c == '=';
        let end = inside.find(ends_name).unwrap_or(inside.len());
        let (name, rest) = inside.split_at_checked(end)?;
        let name = local_name(name);
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(is_inside);
        if !is_name || self.open.len() == OPEN_MAX || self.read.pairs.len() == PAIRS_MAX {
            return None;
        }
        if let Some(parent) = self.open.last_mut() {
            if parent.parameter.is_some() {
                // The value is markup of its own, and its tags are not part of the call.
                return None;
            }
            parent.has_children = true;
            let name = parent.name;
            if !is_wrapper(name) {
                self.note_tool(name);
            }
        }
        let attributes = attributes(rest.trim())?;
        let mut tag = OpenTag {
            name,
            parameter: None,
            start: pos,
            has_children: false,
        };
        if is_carrier(name) && !attributes.is_empty() {
            let (parameter, value) = Self::carried_pair(attributes)?;
            match value {
                Some(value) if self_closing => return self.push(parameter, value),
                None if !self_closing => tag.parameter = Some(parameter),
                _ => return None,
            }
        } else {
            tag.has_children = self.take_attributes(name, attributes, self_closing);
        }
        if !self_closing {
            self.open.push(tag);
        }
        Some(())
    }

    /// Notes the tool that a tag names. Only the first can be the tool; later ones are ordinary tags.
    fn note_tool(&mut self, tool: &str) {
        self.read.tool.get_or_insert_with(|| tool.to_owned());
    }

    /// Returns the parameter that a carrier names, and the value if that is an attribute too. Its `type` means nothing.
    fn carried_pair(attributes: TagAttributes) -> Option<(String, Option<ParsedValue>)> {
        let (mut name, mut value) = (None, None);
        for (key, node) in attributes {
            let place = match key.as_str() {
                "name" | "key" => &mut name,
                "value" => &mut value,
                "type" | "string" | "required" => continue,
                _ => return None,
            };
            if place.replace(node).is_some() {
                return None;
            }
        }
        let name = name?.as_text()?.to_owned();
        Some((name, value.map(as_word)))
    }

    /// Takes arguments from attributes, as in `<stroke scene="koi"/>`, or the tool, as in `<invoke name="stroke">`; returns whether
    /// any were arguments.
    fn take_attributes(
        &mut self,
        name: &str,
        attributes: TagAttributes,
        self_closing: bool,
    ) -> bool {
        let wraps = is_wrapper(name);
        if !wraps && (self_closing || !attributes.is_empty()) {
            self.note_tool(name);
        }
        let before = self.read.pairs.len();
        for (key, node) in attributes {
            match (key.as_str(), node) {
                ("name", ParsedValue::Text(tool) | ParsedValue::Word(tool)) if wraps => {
                    self.note_tool(&tool);
                }
                ("id" | "type", _) if wraps => {}
                (_, node) => self.read.pairs.push((key, as_word(node))),
            }
        }
        self.read.pairs.len() > before
    }

    /// Closes a tag; `before` is the text up to here.
    fn close(&mut self, name: &str, before: &str) -> Option<()> {
        let tag = self.open.pop().filter(|tag| tag.name == name)?;
        let value = before.get(tag.start..)?;
        let is_wrapper = is_wrapper(tag.name);
        if is_wrapper && !tag.has_children && value.trim().starts_with(['{', '[']) {
            let object = ParsedValue::Text(value.trim().to_owned());
            return self.push("arguments".to_owned(), object);
        }
        if tag.has_children || (is_wrapper && tag.parameter.is_none()) {
            return (tag.has_children || value.trim().is_empty()).then_some(());
        }
        let node = if let Some(inner) = value.trim().strip_prefix("<![CDATA[") {
            ParsedValue::Text(inner.strip_suffix("]]>")?.to_owned())
        } else if value.trim() == value && value.contains('\n') && value.contains(':') {
            return None;
        } else {
            unbracketed::value(value)
        };
        let key = tag.parameter.unwrap_or_else(|| tag.name.to_owned());
        self.push(key, node)
    }

    /// Adds a pair; `<arg_key>scene</arg_key><arg_value>koi</arg_value>` is one pair in two tags.
    fn push(&mut self, mut key: String, value: ParsedValue) -> Option<()> {
        if key == "arg_value" {
            let (_, name) = self.read.pairs.pop().filter(|(key, _)| key == "arg_key")?;
            name.as_text()?.clone_into(&mut key);
        }
        self.read.pairs.push((key, value));
        Some(())
    }

    /// Returns the pairs, if no text follows the last tag, which ends at `pos`.
    fn finish(mut self, text: &str, pos: usize) -> Option<UnbracketedPairs> {
        self.read.cut |= !self.open.is_empty();
        let rest = text.get(pos..)?.trim();
        let is_value = self.open.last().is_some_and(|tag| !is_wrapper(tag.name));
        let is_open_value = is_value && !rest.contains('{') && text.starts_with('<');
        // `<stroke/>` is a call without arguments.
        let has_content = !self.read.pairs.is_empty() || self.read.tool.is_some();
        (is_open_value || (rest.is_empty() && has_content)).then_some(self.read)
    }
}

/// Reads a quoted attribute as a bare word: attributes are always quoted, so the quotes do not make it a text.
fn as_word(node: ParsedValue) -> ParsedValue {
    match node {
        ParsedValue::Text(text) => unbracketed::value(&text),
        other => other,
    }
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
            Some(tagged) => ParsedValue::Map(tagged.pairs).to_value().to_string(),
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
