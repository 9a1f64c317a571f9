//! A running node: its arms opened, served over MCP, HTTP and the control socket, stopped and parked.

mod app_view;
mod arm_verbs;
pub mod bus_places;
mod calibrate_verbs;
mod client_watch;
pub mod config_changes;
pub mod control_socket;
mod doctor;
mod exit;
#[cfg_attr(not(feature = "zenoh"), path = "no_fleet_engine.rs")]
mod fleet_engine;
mod http_auth;
pub mod job_list;
pub mod job_replay;
pub mod jog;
#[cfg_attr(not(target_os = "linux"), path = "no_journal_socket.rs")]
mod journal_socket;
pub mod left_practice;
mod list_changes;
mod local_network;
pub mod log;
mod log_record;
pub mod mcp_service;
pub mod measurements;
mod notices;
pub mod open;
pub mod operator_verb;
mod options;
mod page_services;
pub mod parking;
pub mod peers;
mod qualification;
pub mod remote_tools;
mod renamed_arms;
mod resources;
pub mod running_nodes;
mod selftest;
pub mod serve;
pub mod simulated_playback;
pub mod state_folder;
#[cfg_attr(not(target_os = "linux"), path = "no_systemd.rs")]
pub mod systemd;
pub mod tls_identity;
pub mod verb_dispatch;
mod worker_pool;

pub use exit::ExitStatus;
pub use http_auth::auth_queue;
pub use mcp_service::node_service;
pub use options::{ExamServices, NodeOptions, RecordingServices};
pub use page_services::pages;
pub use qualification::CertificateCheck;
