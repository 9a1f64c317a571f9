//! Pages, schemas and the tree itself say what is true.

mod arguments;
mod mcp_catalogue;
mod schema;
mod tidy;

#[path = "../snapshots/mod.rs"]
mod snapshots;
