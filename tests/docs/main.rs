//! Pages, schemas and the tree itself say what is true.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failing test may panic"
)]

mod arguments;
mod commands;
mod mcp_catalogue;
mod messages;
mod reference;
mod rust_text;
mod schema;
mod tidy;

#[path = "../snapshots/mod.rs"]
mod snapshots;
