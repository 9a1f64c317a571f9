//! The forgiving reader: whatever form arguments arrive in, their meaning is found or asked for, never guessed.
//!
//! It knows no tool and no scene: an [`ArgumentShape`] says what may be sent, a [`ReaderPolicy`] what the tool does and how much is forgiven.
//!
//! ```text
//! text ─▶ strict JSON, else: quotes, fences, tags, objects in prose, calls, keywords, lines, options   (candidates)
//!      ─▶ envelopes opened, keys matched, values coerced by kind, each oddity under a rule of the table (opening, keys, values, rules)
//!      ─▶ the cheapest unique reading with its repairs, or a refusal with every complaint               (read)
//! ```
//!
//! What never happens here: an end that is missing is supplied, a near name is chosen, a number is clamped, a boolean is
//! taken from a substring, a text parameter is looked into.
#![doc = include_str!("README.md")]

mod arguments;
mod called_names;
mod candidates;
mod corrected_call;
mod definition;
mod encoding;
pub mod envelope;
mod explain;
mod finalize;
mod form_repair;
mod heuristics;
mod limits;
pub mod name;
mod nearest;
mod nested;
mod numbers;
mod numeral;
mod objects;
mod outcome;
mod parameter_keys;
mod params;
mod parsed_value;
mod pass_through;
mod quote;
mod read;
mod refusal_memory;
mod rules;
mod schema;
mod shape;
mod skipped;
mod strict;
mod strip_wrappers;
mod tagged_text;
mod thought;
mod tolerant;
mod unbracketed;
mod unit;
mod unknown_keys;
mod unwrap_envelopes;
mod value_coercion;
mod verbatim;
mod vocabulary;
mod withheld;
mod word_table;

pub use called_names::called_names;
pub use definition::is_tool_definition;
pub use explain::{
    LineReading, ProfileVerdict, ReadingAlternative, ReadingExplanation, explain, explain_line,
};
pub use heuristics::is_physical;
pub use nearest::nearest;
pub use outcome::{ArgumentComplaint, ArgumentReading, ArgumentRefusal, ArgumentRepair};
pub use pass_through::pass_on;
pub use read::{ReceivedArguments, read};
pub use refusal_memory::{RefusalAdvice, RefusalMemory};
pub use rules::{
    ForgivenessProfile, ReaderPolicy, ReaderRule, RepairClass, ToolEffect, UnknownKeyPolicy,
    ValueRendering,
};
pub use schema::SchemaError;
pub use shape::{ArgumentShape, ItemCount, NumberRange, ParameterShape, ValueKind};
pub use thought::without_thoughts;
pub use unit::DeclaredUnit;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod request_property_tests;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod tests;
