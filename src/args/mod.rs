//! The forgiving reader: in whatever form arguments arrive, it finds their meaning or asks for it, and never guesses.
//!
//! It knows no tool and no scene: an [`ArgumentShape`] tells what may be sent, and a [`ReaderPolicy`] what the tool does and how
//! much is forgiven.
//!
//! ```text
//! text ─▶ strict JSON, else: quotes, fences, tags, objects in prose, calls, keywords, lines, options   (candidates)
//!      ─▶ envelopes opened, keys matched, values coerced by kind      (unwrap_envelopes, parameter_keys, value_coercion)
//!      ─▶ what nothing accounts for: the source without all that     (rest, leftover)
//!      ─▶ the cheapest unique reading                                  (read)
//!      ─▶ understood, a preview without the rest, or a refusal        (judge)
//! ```
//!
//! The reader never supplies a missing end, chooses a similar name, clamps a number, takes a boolean from a substring, or looks
//! into a text parameter. Nothing moves without an [`Understood`], which [`judge`] alone makes.
#![doc = include_str!("README.md")]

mod arguments;
mod call_header;
mod called_names;
mod candidates;
mod definition;
mod encoding;
pub mod envelope;
mod explain;
mod finalize;
mod form_repair;
mod form_token;
mod heuristics;
mod indented;
mod judge;
mod leftover;
mod limits;
pub mod name;
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
mod rest;
mod schema;
mod shape;
mod strict;
mod strip_wrappers;
mod tagged_text;
mod thought;
mod tolerant;
mod unbracketed;
mod unit;
mod unwrap_envelopes;
mod value_coercion;
mod verbatim;

pub use base::nearest::nearest;
pub use called_names::called_name;
pub use definition::is_tool_definition;
pub use explain::{
    CallOutcome, LineReading, ProfileVerdict, ReadingAlternative, ReadingExplanation, explain,
    explain_line,
};
pub use judge::{
    ForgivenessProfile, ReaderPolicy, ReaderRule, RepairClass, ToolEffect, Understood,
    UnknownKeyPolicy, ValueRendering, Verdict, judge,
};
pub use leftover::Leftover;
pub use outcome::{ArgumentComplaint, ArgumentReading, ArgumentRefusal, ArgumentRepair};
pub use pass_through::pass_on;
pub use read::{ReceivedArguments, judged, read};
pub use schema::SchemaError;
pub use shape::{ArgumentShape, ItemCount, NumberRange, ParameterShape, ValueKind};
pub use thought::without_thoughts;
pub use unit::DeclaredUnit;

#[cfg(test)]
mod call_form_tests;
#[cfg(test)]
mod doubt_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;
