//! The program without the features that are on as shipped: `cargo test --no-default-features --test without`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failing test may panic"
)]

#[cfg(not(feature = "exam"))]
mod exam;
#[cfg(not(feature = "recording"))]
mod recording;

#[path = "../support/mod.rs"]
mod support;
