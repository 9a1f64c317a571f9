//! A refusal as text, to which the errors of lower crates are converted.

use std::fmt;

use super::ToolAnswer;

/// The reason why a request is refused, as the text that its caller reads.
///
/// `?` converts any error to it. A function whose caller distinguishes errors returns an error type of its own instead.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    /// Creates a refusal with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Creates a [`Refusal`] from what `format!` takes.
#[macro_export]
macro_rules! refusal {
    ($($text:tt)*) => { $crate::Refusal::new(::std::format!($($text)*)) };
}

impl<E: std::error::Error> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        refusal.0
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<Box<ToolAnswer>> for Refusal {
    fn from(answer: Box<ToolAnswer>) -> Self {
        Self(answer.text)
    }
}
