//! The program as its users meet it: child processes, terminals, HTTP. Signals, pseudo-terminals and the sockets of Unix are in
//! nearly all of it.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failing test may panic"
)]

mod align;
mod audit_log;
mod bases;
mod book;
mod calibrate;
mod canvas;
mod chat;
mod clients;
mod compensated;
mod curved;
mod declared;
mod default_scene;
mod doctor;
mod doubt;
mod draw;
#[cfg(target_os = "linux")]
mod emulated;
mod ending;
mod errors;
#[cfg(feature = "exam")]
mod exam;
mod explain;
mod families;
mod first_light;
mod fleet;
mod fonts;
mod frame;
mod guided;
mod guided_line;
mod health;
mod init;
mod inked;
mod interrupted;
mod jobs;
mod leave;
mod left_drawings;
mod look_and_go_on;
mod mcp_conformance;
mod messages;
mod newcomer_files;
mod notices;
mod own_sheet;
mod page;
mod paper;
mod pen_change;
mod pictures;
mod plan;
mod plan_designs;
mod previewed;
mod pty;
mod raised_sheet;
#[cfg(feature = "recording")]
mod recordings;

mod repeated;
mod resources;
mod security;
mod several_arms;
mod several_nodes;
mod shared_bus;
mod shared_scene;
mod sighted;
#[cfg(target_os = "linux")]
mod slow_disk;
#[cfg(target_os = "linux")]
mod standing_orders;
mod state_folder;
mod state_line;
mod stop;
mod stray_stops;
mod suspended;
mod systemd;
mod tls;
mod torture;
mod transcript;
mod trimmed;
mod two_arms;
mod waiting;
mod which_node;
mod whose_stop;

#[path = "../snapshots/mod.rs"]
mod snapshots;
#[path = "../support/mod.rs"]
mod support;
