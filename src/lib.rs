//! Steadyhand: a robot-arm MCP server that forgives how a caller writes and never forgives physics.
//!
//! Each module is a room of `ARCHITECTURE.md`; `tests/tidy.rs` holds who may import whom.

pub mod args;
pub mod arm;
pub mod catalogue;
pub mod clock;
pub mod config;
pub mod design;
pub mod gate;
pub mod kin;
pub mod link;
pub mod mcp;
pub mod permit;
pub mod plan;
pub mod scene;
pub mod units;
