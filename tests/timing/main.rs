//! Bounds on the wall clock and long runs, for a quiet machine: `just slow`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failing test may panic"
)]

mod call_cost;
mod chaos;
mod hogs;
mod load;
mod recorded_run;
mod stop_bounds;

#[path = "../far_end/mod.rs"]
mod far_end;
#[path = "../support/mod.rs"]
mod support;
