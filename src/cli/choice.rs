//! Parsers of options that take one of several words, each with a value.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A word, its help text, and its value.
pub(super) type Choice<T> = (&'static str, &'static str, T);

/// Returns the parser of an option that takes one of these words.
pub(super) fn choice<T>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: Copy + Send + Sync + 'static,
{
    let words = choices.iter().map(|(word, help, _)| match *help {
        "" => PossibleValue::new(*word),
        help => PossibleValue::new(*word).help(help),
    });
    PossibleValuesParser::new(words).try_map(|given| {
        let chosen = choices.iter().find(|(word, ..)| *word == given);
        chosen
            .map(|(.., value)| *value)
            .ok_or("this word is not one of the choices")
    })
}
