//! The forgiving reader: whatever form arguments arrive in, their meaning is found or asked for, never guessed.
//!
//! It knows no tool and no scene: a [`Shape`] says what may be sent, a [`Policy`] what the tool does and how much is forgiven.
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
mod candidates;
mod correct;
mod definition;
mod encoding;
pub mod envelope;
mod explain;
mod form;
mod keys;
mod limits;
mod loose;
mod meaning;
mod memory;
pub mod name;
mod nearest;
mod nested;
mod node;
mod numbers;
mod numeral;
mod objects;
mod opening;
mod outcome;
mod params;
mod peel;
mod quote;
mod read;
mod rules;
mod schema;
mod settle;
mod shape;
mod skipped;
mod strays;
mod strict;
mod tags;
mod thought;
mod tolerant;
mod unit;
mod unread;
mod values;
mod vocabulary;
mod withheld;
mod words;

pub use definition::is_tool_definition;
pub use explain::{Alternative, Explanation, Line, Verdict, explain, explain_line};
pub use meaning::is_physical;
pub use memory::{Advice, Memory};
pub use nearest::nearest;
pub use outcome::{Complaint, Reading, Refusal, Repair};
pub use read::{Received, read};
pub use rules::{Class, Effect, Policy, Profile, Render, Rule, UnknownKeys};
pub use schema::SchemaError;
pub use shape::{Count, Kind, Param, Range, Shape};
pub use thought::without_thoughts;
pub use unit::{Dimension, Unit};
pub use unread::pass_on;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod request_properties;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod tests;
