//! A refusal in words, where errors of the rooms below end.

use std::fmt;

use super::ToolAnswer;

/// The reason that a request is refused, in the words that its caller reads.
///
/// `?` makes one of any error. A function whose caller tells errors apart returns an error of its own instead.
#[derive(Clone, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    /// Creates a refusal in these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

/// Creates a [`Refusal`] from what `format!` takes.
#[macro_export]
macro_rules! refusal {
    ($($words:tt)*) => { $crate::Refusal::new(::std::format!($($words)*)) };
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
