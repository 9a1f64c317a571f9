//! Properties that must hold of everything that is fuzzed, beside what a target says itself.

mod arguments;
mod drawings;

pub use arguments::{calls, judge, shape};
pub use drawings::draw;
