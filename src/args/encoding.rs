//! Decodes texts that were encoded once too often: backslashes, HTML entities, doubled quotes and braces, percent signs.

use super::{
    form_repair::FormRepair, parsed_value::starts_with_word, quote, unbracketed::percent_decoded,
};

/// Longest entity looked for, `&quot;` and `&#x0022;` among them.
const ENTITY_BYTES_MAX: usize = 10;

/// Returns the text after the opening bracket, or the text itself if it begins with an encoded bracket.
fn after_bracket(text: &str) -> &str {
    text.strip_prefix(['{', '[']).unwrap_or(text).trim_start()
}

/// Decodes a text that is encoded in one way; `None` if it is not.
type Decoder = fn(&str) -> Option<String>;

/// Returns the text as it was before it was encoded, and the repair; `None` if it is not encoded. The text is `None` if it
/// cannot be decoded.
pub(super) fn decoded(text: &str) -> Option<(Option<String>, FormRepair)> {
    let decoders: [(Decoder, FormRepair); 3] = [
        (without_backslashes, FormRepair::Backslashes),
        (without_entities, FormRepair::Entities),
        (without_doubles, FormRepair::MixedQuotes),
    ];
    let mut decoders = decoders.into_iter();
    let found = decoders.find_map(|(decode, form)| Some((Some(decode(text)?), form)));
    let url = || (percent_decoded(text), FormRepair::UrlEncoded);
    found.or_else(|| is_url_encoded(text).then(url))
}

/// Removes escapes from `{\"scene\": \"koi\"}`, whose outer quotes are gone. One pass only, so that `\\n` stays two characters.
fn without_backslashes(text: &str) -> Option<String> {
    let inner = after_bracket(text);
    let is_bracketed = inner.len() < text.len();
    let starts = |marks: &[&str]| marks.iter().any(|mark| inner.starts_with(mark));
    let escaped = starts(&["\\\"", "\\u0022"])
        || (is_bracketed && starts(&["\\n", "\\r", "\\t", "\\'"]))
        || (!is_bracketed && starts(&["\\u007b", "\\u007B"]));
    escaped.then(|| replace_escapes(text, '\\', escape))
}

/// Replaces each mark, with the bytes that belong to it, by the character that they stand for.
fn replace_escapes(text: &str, mark: char, decode: fn(&str) -> Option<(char, usize)>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(mark) {
        out.push_str(before);
        let (c, used) = decode(after).unwrap_or((mark, 0));
        out.push(c);
        rest = after.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Returns the character that an escape stands for and the bytes it takes.
fn escape(after: &str) -> Option<(char, usize)> {
    // The prefix of a text, as in `\\nr"koi"`, would vanish together with the escape before it.
    let is_before_prefix = || {
        let after = after.get(1..).unwrap_or_default();
        let quoted = after.strip_prefix(['r', 'R', 'u', 'U', 'b', 'B']);
        quoted.is_some_and(|quoted| quoted.starts_with(quote::is_quote))
    };
    match after.bytes().next()? {
        b'n' | b't' | b'r' if is_before_prefix() => None,
        b'n' => Some(('\n', 1)),
        b't' => Some(('\t', 1)),
        b'r' => Some(('\r', 1)),
        c @ (b'"' | b'\'' | b'\\') => Some((char::from(c), 1)),
        b'u' => {
            let code = u32::from_str_radix(after.get(1..5)?, 16).ok()?;
            // Only JSON's own punctuation; other escapes belong to the text they are in.
            let mark = char::from_u32(code).filter(char::is_ascii_punctuation)?;
            Some((mark, 5))
        }
        _ => None,
    }
}

/// Decodes entities, as in `{&quot;scene&quot;: &quot;koi&quot;}` from a web page. One pass only, so that `&amp;quot;` stays text.
fn without_entities(text: &str) -> Option<String> {
    let inner = after_bracket(text);
    let quotes = [
        "&quot;", "&#34;", "&#x22;", "&#39;", "&#x27;", "&apos;", "&#123;", "&#x7b;", "&#x7B;",
    ];
    let is_encoded = quotes.iter().any(|entity| inner.starts_with(entity));
    is_encoded.then(|| replace_escapes(text, '&', entity))
}

/// Returns the character of an entity, given without its `&`, and the bytes it takes.
fn entity(after: &str) -> Option<(char, usize)> {
    let mut bytes = after.bytes().take(ENTITY_BYTES_MAX);
    let end = bytes.position(|b| b == b';')?;
    let name = after.get(..end)?;
    let number = |digits, radix| char::from_u32(u32::from_str_radix(digits, radix).ok()?);
    let c = match name {
        "quot" => '"',
        "apos" => '\'',
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "nbsp" => ' ',
        _ => {
            let code = name.strip_prefix('#')?;
            match code.strip_prefix(['x', 'X']) {
                Some(hex) => number(hex, 16)?,
                None => number(code, 10)?,
            }
        }
    };
    Some((c, end + 1))
}

/// Removes doubled quotes, as in a CSV cell, `{""scene"": ""koi""}`, or doubled braces, as in a template, `{{"scene": "koi"}}`.
fn without_doubles(text: &str) -> Option<String> {
    let inner = after_bracket(text);
    let after_quotes = inner.strip_prefix("\"\"").unwrap_or_default();
    if inner.len() < text.len() && after_quotes.starts_with(char::is_alphabetic) {
        return Some(text.replace("\"\"", "\""));
    }
    let single = text.strip_prefix('{')?.strip_suffix('}')?;
    let is_doubled = single.starts_with('{') && single.ends_with('}');
    is_doubled.then(|| single.to_owned())
}

/// Returns whether a text is `%7B%22scene%22…`, the same in unencoded braces, or anything else without a blank, a bracket or
/// another mark that encoding leaves nowhere: `stroke%28scene%3D%27koi%27%29`.
fn is_url_encoded(text: &str) -> bool {
    let marks = ["%7b", "%5b%7b", "{%22"];
    let is_left = |c: char| c.is_whitespace() || "{}[]()<>\"=&:`".contains(c);
    marks.iter().any(|mark| starts_with_word(text, mark))
        || (holds_code(text) && !text.contains(is_left))
}

/// Returns whether a text holds `%XX`.
pub(super) fn holds_code(text: &str) -> bool {
    text.match_indices('%').any(|(at, _)| {
        let digits = text.get(at + 1..at + 3);
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn decodes_once() {
        assert_eq!(
            without_backslashes(r#"{\"a\": \"C:\\\\new\"}"#).unwrap(),
            r#"{"a": "C:\\new"}"#
        );
        assert_eq!(
            without_backslashes(r#"\"{\\\"a\\\":1}\""#).unwrap(),
            r#""{\"a\":1}""#
        );
        assert_eq!(
            without_backslashes(r#"{\u0022a\u0022: \u0022\u00e9\u0022}"#).unwrap(),
            "{\"a\": \"\\u00e9\"}"
        );
        assert_eq!(
            without_entities("{&quot;a&quot;: &#x22;&amp;quot; &#233;&#x22;}").unwrap(),
            "{\"a\": \"&quot; é\"}"
        );
        assert_eq!(
            without_doubles("{\"\"a\"\": \"\"b\"\"}").unwrap(),
            "{\"a\": \"b\"}"
        );
        assert_eq!(without_doubles("{{\"a\": 1}}").unwrap(), "{\"a\": 1}");
    }

    #[test]
    fn leaves_everything_else() {
        for text in [
            r#"{"a": "\n"}"#,
            "{a: 1}",
            "\\n",
            "&amp;",
            "{\"\": 1}",
            "{}",
            "{{a: 1}",
        ] {
            assert_eq!(without_backslashes(text), None, "{text}");
            assert_eq!(without_entities(text), None, "{text}");
            assert_eq!(without_doubles(text), None, "{text}");
        }
    }
}
