//! Lines for people on standard output and standard error.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

static LOST_OUTPUT: OnceLock<io::Error> = OnceLock::new();

/// Writes a line to standard output. A reader that has closed it is no error; of any other, [`lost_output`] tells.
pub fn line(text: &str) {
    let written = writeln!(io::stdout().lock(), "{}", harmless(text));
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        let _ = LOST_OUTPUT.set(error);
    }
}

/// Returns why the first line that standard output did not take was lost; `None` where it has taken all.
pub fn lost_output() -> Option<&'static io::Error> {
    LOST_OUTPUT.get()
}

/// Writes a line to standard error. Where that takes none, as with a terminal that hung up, the command goes on without it.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(text));
}

/// Returns the text with what a terminal would obey written out as in JSON, `\u001b`: names and messages come from callers,
/// scenes and other nodes.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len());
    for c in text.chars() {
        if obeyed(c) {
            harmless += &format!("\\u{:04x}", u32::from(c));
        } else {
            harmless.push(c);
        }
    }
    Cow::Owned(harmless)
}
