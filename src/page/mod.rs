//! The operator's page: its files, its routes and sessions, and what it shows of a node.
//!
//! It decides nothing about motion. A request here is an operator's verb like one from the command line, and [`PageServices`]
//! carries it out.
//!
//! * `assets`: the files that a browser loads, compiled in
//! * `same_origin`: recognises requests that the page itself can have made
//! * `sessions`: persons who have logged in
//! * [`routes`]: the addresses
//! * `live_state`, `live_feed`: what the page follows while it is open
//! * `servo_history`: temperatures, voltages and loads of the last ten minutes
//! * `job_history`, `job_audit`: earlier jobs, and their records in the audit log

mod assets;
mod job_audit;
mod job_history;
mod job_thumbnail;
mod live_feed;
mod live_state;
mod page_refusal;
mod routes;
mod same_origin;
mod services;
mod servo_history;
mod sessions;

pub use assets::{view_script, view_style};
pub use axum::Router;
pub use routes::{PageDoor, routes};
pub use services::{PageServices, StopAnswer};
