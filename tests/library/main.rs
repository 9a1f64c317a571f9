//! The rooms together, in this process: bytes, planning, the gate, protocol.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failing test may panic"
)]

mod bodies;
mod bus_pty;
mod cameras;
mod designs;
mod faults;
mod ink_reader;
mod invariants;
mod mcp_hang_ups;
mod mcp_long_messages;
mod mcp_wire;
mod parking;
mod power_loss;
mod refused_picture;
mod stop_bytes;
mod stop_invariants;
mod two_arms;
mod vision;

#[path = "../far_end/mod.rs"]
mod far_end;
#[path = "../mcp_desk/mod.rs"]
mod mcp_desk;
#[path = "../snapshots/mod.rs"]
mod snapshots;
#[path = "../support/mod.rs"]
mod support;
