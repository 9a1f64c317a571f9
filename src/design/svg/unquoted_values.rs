//! Values of attributes without quotes, as HTML allows them: `<circle cx=5 cy=5 r=3/>`.

use std::ops::Range;

use super::normalize_units::SvgEdit;

/// Note on values that were put into quotes.
pub(super) const QUOTED: &str = "quotes were added to unquoted attributes";

/// Returns the edits that put quotes around the values of a tag, which begins at `at`.
pub(super) fn quoting(tag: &str, at: usize) -> impl Iterator<Item = SvgEdit> {
    let values = values(tag).into_iter();
    values.flat_map(move |value| {
        let [start, end] = [value.start, value.end].map(|byte| at + byte);
        [(start..start, "\"".to_owned()), (end..end, "\"".to_owned())]
    })
}

/// Returns where the values without quotes stand in a tag.
fn values(tag: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let name = tag.strip_prefix('<');
    let is_start = name.is_some_and(|name| name.starts_with(char::is_alphabetic));
    let mut rest = if is_start { tag } else { "" };
    while let Some(equals) = rest.find(['=', '"', '\'']) {
        let after = rest.get(equals + 1..).unwrap_or_default();
        let begins = after.trim_start();
        let quote = match rest.get(equals..=equals) {
            Some("=") => begins.chars().next().filter(|c| matches!(c, '"' | '\'')),
            _ => rest.get(equals..).and_then(|quoted| quoted.chars().next()),
        };
        rest = match quote {
            Some(quote) => {
                let value = after.get(after.find(quote).map_or(0, |at| at + 1)..);
                let value = match rest.get(equals..=equals) {
                    Some("=") => value.unwrap_or_default(),
                    _ => after,
                };
                let close = value.find(quote).map_or(value.len(), |at| at + 1);
                value.get(close..).unwrap_or_default()
            }
            None => {
                let is_end = |c: char| c.is_whitespace() || c == '>';
                let length = begins.find(is_end).unwrap_or(begins.len());
                let (value, behind) = begins.split_at(length);
                // The slash of an empty element is no part of its last value.
                let is_closed = behind.starts_with('>');
                let value = match value.strip_suffix('/') {
                    Some(value) if is_closed => value,
                    _ => value,
                };
                if !value.is_empty() {
                    let start = tag.len() - begins.len();
                    found.push(start..start + value.len());
                }
                behind
            }
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::values;

    #[test]
    fn values_without_quotes_are_found_and_no_others() {
        for (tag, expected) in [
            ("<circle cx=5 cy=5 r=3/>", vec!["5", "5", "3"]),
            ("<path d=\"M0 0 a=1\" stroke=red>", vec!["red"]),
            ("<a href='x=y' b = 2 >", vec!["2"]),
            ("<image href=a/b.png/>", vec!["a/b.png"]),
            ("<rect x=\"1\" y='2'/>", vec![]),
            ("</g>", vec![]),
            ("text = 5", vec![]),
        ] {
            let found: Vec<&str> = values(tag)
                .into_iter()
                .filter_map(|at| tag.get(at))
                .collect();
            assert_eq!(found, expected, "{tag}");
        }
    }
}
