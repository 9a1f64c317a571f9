//! Finds the line of a value in a TOML file.

use toml_edit::{Document, Item};

/// Returns the line, from 1, of the value at `path`, such as `tools[1].arguments[0].type`, or of the nearest
/// enclosing value if it does not exist. Returns `None` if the text is not TOML.
#[must_use]
pub fn line(text: &str, path: &str) -> Option<usize> {
    let document = Document::parse(text).ok()?;
    let mut item = document.as_item();
    let mut span = None;
    for step in steps(path) {
        let Some(next) = child(item, &step) else {
            break;
        };
        span = next.span().or(span);
        item = next;
    }
    Some(line_of(text, span.map_or(0, |span| span.start)))
}

/// Returns the line, from 1, of a byte.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    let before = text.bytes().take(byte);
    before.filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the beginning of a message about the value at `path`: its line; empty if there is no text.
pub(super) fn prefix(text: &str, path: &str) -> String {
    match line(text, path) {
        Some(line) if !text.is_empty() => format!("line {line}: "),
        _ => String::new(),
    }
}

/// One step into a value.
enum TomlPathStep<'a> {
    Key(&'a str),
    Index(usize),
}

fn child<'a>(item: &'a Item, step: &TomlPathStep<'_>) -> Option<&'a Item> {
    match step {
        TomlPathStep::Key(key) => item.get(key),
        TomlPathStep::Index(index) => item.get(*index),
    }
}

fn steps(path: &str) -> impl Iterator<Item = TomlPathStep<'_>> {
    path.split(['.', '[', ']'])
        .filter(|part| !part.is_empty())
        .map(|part| {
            part.parse()
                .map_or(TomlPathStep::Key(part), TomlPathStep::Index)
        })
}

#[cfg(test)]
mod tests {
    use super::line;

    const TEXT: &str = "name = 'a'\n\n[[tools]]\nname = 'b'\n\n[[tools]]\nname = 'c'\narguments = [\n  { name = 'x' },\n  { name = 'y', type = 'z' },\n]\n[tools.fixed]\nscene = 'd'\n";

    #[test]
    fn a_value_is_found_by_its_path() {
        for (path, expected) in [
            ("name", 1),
            ("tools[0]", 3),
            ("tools[0].name", 4),
            ("tools[1].name", 7),
            ("tools[1].arguments[1].type", 10),
            ("tools[1].fixed.scene", 13),
        ] {
            assert_eq!(line(TEXT, path), Some(expected), "{path}");
        }
    }

    #[test]
    fn a_missing_value_has_the_line_of_its_parent() {
        assert_eq!(line(TEXT, "tools[1].description"), Some(6));
        assert_eq!(line(TEXT, "nothing"), Some(1));
        assert_eq!(line("not = = toml", "not"), None);
    }
}
