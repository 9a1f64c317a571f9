//! The operator's page: its files, its door, and what it shows of a node.
//!
//! It decides nothing about motion. What a person asks for here is an operator's verb like one from the command line, and is
//! done by [`PageServices`].
//!
//! * `assets`: the files that a browser loads, compiled in
//! * `same_origin`: which requests the page itself can have made
//! * `sessions`: who has logged in
//! * [`routes`]: the addresses
//! * `live_state`, `live_sheet`, `live_feed`: what the page follows while it is open
//! * `job_history`, `job_audit`: what was asked, planned and done, and what the audit log says of it

mod assets;
mod job_audit;
mod job_history;
mod live_feed;
mod live_sheet;
mod live_state;
mod page_refusal;
mod routes;
mod same_origin;
mod services;
mod sessions;

pub use axum::Router;
pub use routes::{PageDoor, routes};
pub use services::{PageServices, StopAnswer};
