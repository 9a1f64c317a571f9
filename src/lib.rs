//! Steadyhand: a robot-arm MCP server that forgives how a caller writes and never forgives physics.
//!
//! Each module is a room of `ARCHITECTURE.md`; `tests/tidy.rs` holds who may import whom.

pub mod args;
pub mod arm;
pub mod calib;
pub mod caller;
pub mod camera;
pub mod catalogue;
pub mod cli;
pub mod clock;
pub mod config;
pub mod design;
pub mod disk;
pub mod driver;
pub mod exam;
pub mod fleet;
pub mod gate;
pub mod job;
pub mod link;
pub mod mcp;
pub mod motion;
pub mod permit;
pub mod picture;
pub mod plan;
pub mod scene;
pub mod service;
pub mod sim;
pub mod tools;
pub mod vision;

/// Two rooms are a crate of their own, `src/kin`: it is fast where the rest is small.
pub use steadyhand_kin::{self as kin, units};
