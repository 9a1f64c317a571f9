//! The forgiving reader: whatever form arguments arrive in, their meaning is found or asked for, never guessed.
//!
//! It knows no tool and no scene: a [`Shape`] says what may be sent, a [`Policy`] what the tool does and how much is forgiven.

mod arguments;
mod candidates;
pub mod envelope;
mod explain;
mod form;
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
mod outcome;
mod quote;
mod read;
mod rules;
mod schema;
mod shape;
mod strict;
mod tags;
mod tolerant;
mod unit;
mod values;

pub use explain::{Alternative, Explanation, Line, Verdict, explain, explain_line};
pub use memory::{Advice, Memory};
pub use nearest::nearest;
pub use outcome::{Complaint, Reading, Refusal, Repair};
pub use read::{Received, read};
pub use rules::{Class, Effect, Policy, Profile, Render, Rule, UnknownKeys};
pub use schema::SchemaError;
pub use shape::{Kind, Param, Range, Shape};
pub use unit::{Dimension, Unit};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
