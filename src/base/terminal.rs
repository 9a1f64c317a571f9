//! Output for people, on standard output and standard error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

static LOST_OUTPUT: OnceLock<io::Error> = OnceLock::new();

/// Writes a line to standard output. A closed pipe is not an error; [`lost_output`] returns any other.
pub fn line(text: &str) {
    let written = writeln!(io::stdout().lock(), "{}", harmless(text));
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = LOST_OUTPUT.set(error);
    }
}

/// Returns the error by which the first line was lost; `None` if standard output has taken every line.
pub fn lost_output() -> Option<&'static io::Error> {
    LOST_OUTPUT.get()
}

/// Writes a line to standard error. A line that cannot be written, as after a terminal hung up, is dropped.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(text));
}

/// Escapes the control characters that a terminal would obey, as JSON does (`\u001b`): names and messages come from callers,
/// scenes and other nodes.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) {
            escaped += &format!("\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}
