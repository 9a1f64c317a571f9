//! Steadyhand: a robot-arm MCP server that forgives how a caller writes and never forgives physics.

pub mod args;
