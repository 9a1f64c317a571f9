//! Steadyhand: a robot-arm MCP server that forgives how a caller writes and never forgives physics.
//!
//! Each module is a crate of `src/`, described in `ARCHITECTURE.md`; their manifests state which depends on which.

pub use args;
pub use arm;
pub use base::{clock, disk, units, wording};
pub use calib;
pub use call;
pub use caller;
pub use camera;
pub use catalogue;
pub use cli;
pub use config;
pub use design;
pub use driver;
#[cfg(feature = "exam")]
pub use exam;
pub use fleet;
pub use gate;
pub use job;
pub use kin;
pub use link;
pub use mcp;
pub use mesh;
pub use motion;
pub use node;
pub use page;
pub use permit;
pub use picture;
pub use plan;
#[cfg(feature = "recording")]
pub use recording;
pub use scene;
pub use servo;
pub use sim;
pub use tools;
pub use vision;
