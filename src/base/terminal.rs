//! Lines for people on standard output and standard error.

#![expect(
    clippy::print_stderr,
    reason = "the one home of standard error, beside the last word of a command that failed"
)]

use std::borrow::Cow;
use std::io::Write;

/// Writes a line to standard output. A reader that has closed it is no error.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", harmless(text));
}

/// Writes a line to standard error.
pub fn note(text: &str) {
    eprintln!("{}", harmless(text));
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
