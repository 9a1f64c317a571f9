//! Texts that went through an encoder once too often: backslashes, HTML entities, doubled quotes and braces, percent signs.

/// Longest entity looked for, `&quot;` and `&#x0022;` among them.
const ENTITY_BYTES_MAX: usize = 10;

/// Returns the text after the opening bracket, or the text itself if it begins with an encoded bracket.
fn after_bracket(text: &str) -> &str {
    text.strip_prefix(['{', '[']).unwrap_or(text).trim_start()
}

/// `{\"scene\": \"koi\"}`: the text was escaped once and its outer quotes are gone. One pass, so that `\\n` stays two characters.
pub(super) fn without_backslashes(text: &str) -> Option<String> {
    let inner = after_bracket(text);
    let is_bracketed = inner.len() < text.len();
    let starts = |marks: &[&str]| marks.iter().any(|mark| inner.starts_with(mark));
    let escaped = starts(&["\\\"", "\\u0022"])
        || (is_bracketed && starts(&["\\n", "\\r", "\\t", "\\'"]))
        || (!is_bracketed && starts(&["\\u007b", "\\u007B"]));
    escaped.then(|| unescaped(text))
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let (c, used) = escape(after);
        if used == 0 {
            out.push('\\');
        }
        out.extend(c);
        rest = after.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The character that an escape means and the bytes it takes; none where it is no escape.
fn escape(after: &str) -> (Option<char>, usize) {
    match after.bytes().next() {
        Some(b'n') => (Some('\n'), 1),
        Some(b't') => (Some('\t'), 1),
        Some(b'r') => (Some('\r'), 1),
        Some(b'"') => (Some('"'), 1),
        Some(b'\'') => (Some('\''), 1),
        Some(b'\\') => (Some('\\'), 1),
        Some(b'u') => {
            let code = after
                .get(1..5)
                .and_then(|digits| u32::from_str_radix(digits, 16).ok());
            // Only what JSON itself is written with: other characters are left to the text they stand in.
            let plain = code
                .and_then(char::from_u32)
                .filter(char::is_ascii_punctuation);
            (plain, if plain.is_some() { 5 } else { 0 })
        }
        _ => (None, 0),
    }
}

/// `{&quot;scene&quot;: &quot;koi&quot;}`: the text went through a web page. One pass, so that `&amp;quot;` stays text.
pub(super) fn without_entities(text: &str) -> Option<String> {
    let inner = after_bracket(text);
    let quotes = [
        "&quot;", "&#34;", "&#x22;", "&#39;", "&#x27;", "&apos;", "&#123;", "&#x7b;", "&#x7B;",
    ];
    if !quotes.iter().any(|entity| inner.starts_with(entity)) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (c, used) = entity(after).unwrap_or(('&', 0));
        out.push(c);
        rest = after.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    Some(out)
}

/// The character of an entity whose `&` is gone, and the bytes it takes.
fn entity(after: &str) -> Option<(char, usize)> {
    let end = after
        .bytes()
        .take(ENTITY_BYTES_MAX)
        .position(|b| b == b';')?;
    let name = after.get(..end)?;
    let number = |digits: &str, radix| {
        u32::from_str_radix(digits, radix)
            .ok()
            .and_then(char::from_u32)
    };
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

/// `{""scene"": ""koi""}`, quotes doubled as in a CSV cell, or `{{"scene": "koi"}}`, braces doubled as in a template.
pub(super) fn without_doubles(text: &str) -> Option<String> {
    let inner = after_bracket(text);
    let after_quotes = inner
        .strip_prefix("\"\"")
        .filter(|_| inner.len() < text.len());
    if after_quotes.is_some_and(|rest| rest.starts_with(char::is_alphabetic)) {
        return Some(text.replace("\"\"", "\""));
    }
    let single = text.strip_prefix('{')?.strip_suffix('}')?;
    let is_doubled = single.starts_with('{') && single.ends_with('}');
    is_doubled.then(|| single.to_owned())
}

/// `%7B%22scene%22…`, or the same between plain braces.
pub(super) fn is_url_encoded(text: &str) -> bool {
    let starts = |mark: &str| {
        text.get(..mark.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(mark))
    };
    starts("%7b") || starts("%5b%7b") || starts("{%22")
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
