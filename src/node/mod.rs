//! A running node: its arms opened, served over MCP, HTTP and the control socket, stopped and parked.

mod app_view;
pub mod config_changes;
pub mod control_socket;
mod exit;
mod http_auth;
pub mod job_list;
pub mod jog;
mod list_changes;
pub mod log;
mod log_record;
pub mod mcp_service;
pub mod measurements;
pub mod open;
mod operator_verbs;
mod options;
mod page_services;
pub mod parking;
pub mod peers;
mod qualification;
pub mod remote_tools;
mod resources;
pub mod running_nodes;
mod selftest;
pub mod serve;
pub mod simulated_playback;
pub mod state_folder;
pub mod systemd;
pub mod tls_identity;
mod worker_pool;

pub use exit::ExitStatus;
pub use http_auth::auth_queue;
pub use mcp_service::node_service;
pub use options::{ExamServices, NodeOptions, RecordingServices};
pub use page_services::pages;
pub use qualification::CertificateCheck;
