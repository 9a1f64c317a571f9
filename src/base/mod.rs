//! Vocabulary and services that every other crate may use: quantities with units, the clock, files on disk, lines for people.

pub mod calendar;
pub mod clock;
pub mod disk;
pub mod terminal;
pub mod units;
pub mod wording;
