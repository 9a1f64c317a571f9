//! Tags as some models write calls: `<scene>koi</scene>`, `<parameter=scene>koi</parameter>`, `<arg name="scene">koi</arg>`.

use super::{
    form_repair::{FormRepair, FormRepairs},
    limits::PAIRS_MAX,
    parsed_value::ParsedValue,
    skipped::SkippedPlace,
    unbracketed,
};

/// Deepest nesting of tags that is followed.
const OPEN_MAX: usize = 16;
/// Tags that wrap a call or all of its arguments and name no parameter themselves.
const WRAPPERS: [&str; 21] = [
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
    "output",
    "answer",
];

/// Contents of a text in tags.
pub(super) struct TaggedText {
    pub(super) pairs: Vec<(String, ParsedValue)>,
    /// The tool that the tags name, if they do.
    pub(super) tool: Option<String>,
    /// Text that was skipped.
    pub(super) forms: FormRepairs,
    /// Tags are left open.
    pub(super) cut: bool,
}

struct OpenTag<'a> {
    name: &'a str,
    parameter: Option<String>,
    /// Position where its contents begin.
    start: usize,
    has_children: bool,
}

/// Reads a text that consists of tags. Returns `None` if there are none, they cross, or words stand between them.
pub(super) fn read(text: &str) -> Option<TaggedText> {
    let mut tagged = TaggedText {
        pairs: Vec::new(),
        tool: None,
        forms: FormRepairs::default(),
        cut: false,
    };
    tagged.forms.add(FormRepair::Tag);
    let mut open: Vec<OpenTag<'_>> = Vec::new();
    let mut pos = 0;
    if text.starts_with("<?xml") {
        pos = text.find("?>")? + 2;
        let prolog = text.get(..pos)?;
        tagged.forms.skip(prolog, SkippedPlace::Remark);
    }
    while let Some(found) = text.get(pos..)?.find('<') {
        let at = pos + found;
        if text.get(at..)?.starts_with("<![CDATA[") {
            tagged.words(text.get(pos..at)?, &open)?;
            pos = at + text.get(at..)?.find("]]>")? + 3;
            continue;
        }
        let Some(length) = text.get(at..)?.find('>') else {
            tagged.cut = true;
            break;
        };
        let inside = text.get(at + 1..at + length)?;
        let between = text.get(pos..at)?;
        pos = at + length + 1;
        if let Some(name) = inside.strip_prefix('/') {
            let has_ended = open.last().is_some_and(|tag| tag.has_children);
            let after = if has_ended { between } else { "" };
            tagged.forms.skip(after, SkippedPlace::Around);
            close(&mut open, name.trim(), text, at, &mut tagged)?;
        } else {
            tagged.words(between, &open)?;
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

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS
        .iter()
        .any(|wrapper| name.eq_ignore_ascii_case(wrapper))
}

fn start<'a>(
    open: &mut Vec<OpenTag<'a>>,
    inside: &'a str,
    pos: usize,
    tagged: &mut TaggedText,
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
        if !is_wrapper(parent.name) && parent.parameter.is_none() {
            tagged.called(parent.name);
        }
    }
    let attributes = attributes(rest)?;
    let mut tag = OpenTag {
        name,
        parameter: None,
        start: pos,
        has_children: false,
    };
    if is_carrier(name) && !attributes.is_empty() {
        let (parameter, value) = tagged.carried(attributes)?;
        match value {
            Some(value) if self_closing => return push(tagged, parameter, value),
            None if !self_closing => tag.parameter = Some(parameter),
            _ => return None,
        }
    } else {
        tag.has_children = tagged.take_attributes(name, attributes, self_closing);
    }
    if !self_closing {
        open.push(tag);
    }
    Some(())
}

fn is_carrier(name: &str) -> bool {
    const CARRIERS: [&str; 5] = ["parameter", "param", "arg", "argument", "property"];
    CARRIERS
        .iter()
        .any(|carrier| name.eq_ignore_ascii_case(carrier))
}

type TagAttributes = Vec<(String, ParsedValue)>;

/// `=stroke` counts as a name; `None` if they cannot be read.
fn attributes(rest: &str) -> Option<TagAttributes> {
    if rest.is_empty() {
        return Some(Vec::new());
    }
    if let Some(value) = rest.strip_prefix('=') {
        let value = value.trim().trim_matches(['"', '\'']);
        let is_name = !value.is_empty() && !value.contains(char::is_whitespace);
        return is_name.then(|| vec![("name".to_owned(), ParsedValue::Text(value.to_owned()))]);
    }
    let read =
        unbracketed::keywords(rest, super::quote::QuoteMatching::Exact).filter(|read| !read.cut)?;
    Some(read.pairs)
}

impl TaggedText {
    /// Words before a tag: outside a value, but for those inside a call's tag, they are no call.
    fn words(&mut self, between: &str, open: &[OpenTag<'_>]) -> Option<()> {
        self.forms.skip(between, SkippedPlace::Around);
        let is_inside = open.last().is_some_and(|tag| is_wrapper(tag.name));
        (between.trim().is_empty() || is_inside).then_some(())
    }

    /// Notes the tool that a tag names. Of several only one can be the tool: the others are tags like any.
    fn called(&mut self, tool: &str) {
        match &self.tool {
            Some(known) if known != tool => {
                self.forms.skip(&format!("<{tool}>"), SkippedPlace::Around);
            }
            _ => self.tool = Some(tool.to_owned()),
        }
    }

    /// The parameter that a carrier names, and the value if that is an attribute too. Its `type` says nothing.
    fn carried(&mut self, attributes: TagAttributes) -> Option<(String, Option<ParsedValue>)> {
        let (mut name, mut value) = (None, None);
        for (key, node) in attributes {
            let place = match key.as_str() {
                "name" | "key" => &mut name,
                "value" => &mut value,
                "type" | "string" | "required" => {
                    self.remark(&node);
                    continue;
                }
                _ => return None,
            };
            if place.replace(node).is_some() {
                return None;
            }
        }
        let (ParsedValue::Text(name) | ParsedValue::Word(name)) = name? else {
            return None;
        };
        Some((name, value.map(as_word)))
    }

    fn remark(&mut self, node: &ParsedValue) {
        if let ParsedValue::Text(text) | ParsedValue::Word(text) = node {
            self.forms.skip(text, SkippedPlace::Remark);
        }
    }

    /// `<stroke scene="koi"/>` holds arguments in its attributes, `<invoke name="stroke">` its tool; says whether it held any.
    fn take_attributes(
        &mut self,
        name: &str,
        attributes: TagAttributes,
        self_closing: bool,
    ) -> bool {
        let wraps = is_wrapper(name);
        if !wraps && (self_closing || !attributes.is_empty()) {
            self.called(name);
        }
        let had_any = !attributes.is_empty();
        for (key, node) in attributes {
            match (key.as_str(), node) {
                ("name", ParsedValue::Text(tool) | ParsedValue::Word(tool)) if wraps => {
                    self.called(&tool);
                }
                ("id" | "type", node) if wraps => self.remark(&node),
                (_, node) => self.pairs.push((key, as_word(node))),
            }
        }
        had_any
    }
}

/// An attribute is always quoted, so its quotes say nothing about its type.
fn as_word(node: ParsedValue) -> ParsedValue {
    match node {
        ParsedValue::Text(text) => unbracketed::bare(&text),
        other => other,
    }
}

fn close(
    open: &mut Vec<OpenTag<'_>>,
    name: &str,
    text: &str,
    at: usize,
    tagged: &mut TaggedText,
) -> Option<()> {
    let tag = open.pop()?;
    if tag.name != name {
        return None;
    }
    let value = text.get(tag.start..at)?;
    if is_wrapper(tag.name) && !tag.has_children && value.trim().starts_with('{') {
        let object = ParsedValue::Text(value.trim().to_owned());
        return push(tagged, "arguments".to_owned(), object);
    }
    if tag.has_children || (is_wrapper(tag.name) && tag.parameter.is_none()) {
        let has_text = !tag.has_children && !value.trim().is_empty();
        return (!has_text).then_some(());
    }
    if let Some(inner) = value.trim().strip_prefix("<![CDATA[") {
        let inner = inner.strip_suffix("]]>")?;
        return push(
            tagged,
            tag.parameter.unwrap_or_else(|| tag.name.to_owned()),
            ParsedValue::Text(inner.to_owned()),
        );
    }
    if value.trim() == value && value.contains('\n') && value.contains(':') {
        return None;
    }
    push(
        tagged,
        tag.parameter.unwrap_or_else(|| tag.name.to_owned()),
        unbracketed::bare(value),
    )
}

/// `<arg_key>scene</arg_key><arg_value>koi</arg_value>` makes one pair of two tags.
fn push(tagged: &mut TaggedText, key: String, value: ParsedValue) -> Option<()> {
    if key == "arg_value" {
        let (_, name) = tagged.pairs.pop().filter(|(key, _)| key == "arg_key")?;
        let (ParsedValue::Text(name) | ParsedValue::Word(name)) = name else {
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
