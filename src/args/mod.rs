//! The forgiving reader: in whatever form arguments arrive, it finds their meaning or asks for it, and never guesses.
//!
//! It knows no tool and no scene: an [`ArgumentShape`] tells what may be sent, and a [`ReaderPolicy`] what the tool does and how
//! much is forgiven.
//!
//! ```text
//! text ─▶ strict JSON, else: quotes, fences, tags, objects in prose, calls, keywords, lines, options   (candidates)
//!      ─▶ envelopes opened, keys matched, values coerced by kind, each oddity under a rule of the table
//!         (unwrap_envelopes, parameter_keys, value_coercion, rules)
//!      ─▶ the cheapest unique reading with its repairs, or a refusal with every complaint               (read)
//! ```
//!
//! The reader never supplies a missing end, chooses a similar name, clamps a number, takes a boolean from a substring, or looks
//! into a text parameter.
#![doc = include_str!("README.md")]

mod arguments;
mod call_header;
mod called_in_syntax;
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
mod indented;
mod lead_in;
mod limits;
pub mod name;
mod nearest;
mod nested;
mod numbers;
mod numeral;
mod objects;
mod other_requests;
mod outcome;
mod parameter_keys;
mod params;
mod parsed_value;
mod pass_through;
mod quote;
mod read;
mod refusal_memory;
mod replaced;
mod rules;
mod schema;
mod sentence;
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
pub use refusal_memory::{LeftOutArgument, RefusalAdvice, RefusalMemory};
pub use rules::{
    ForgivenessProfile, ReaderPolicy, ReaderRule, RepairClass, ToolEffect, UnknownKeyPolicy,
    ValueRendering,
};
pub use schema::SchemaError;
pub use shape::{ArgumentShape, ItemCount, NumberRange, ParameterShape, ValueKind};
pub use thought::without_thoughts;
pub use unit::DeclaredUnit;

#[cfg(test)]
mod call_form_tests;
#[cfg(test)]
mod guard_tests;
#[cfg(test)]
mod misread_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod request_property_tests;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod tests;
