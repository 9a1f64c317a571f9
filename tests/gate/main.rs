//! The gate from outside: how a checked trajectory behaves, and each rule judged a second time by slow arithmetic of its own.

extern crate steadyhand_gate as gate;

mod behaviour;
mod rules;
mod together;
