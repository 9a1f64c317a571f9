//! A node on systems without systemd.

use std::net::TcpListener;
use std::sync::Arc;

use tools::Node;

use super::control_socket::AdoptedSocket;

/// Sockets that systemd opened for this process: none.
#[derive(Debug, Default)]
pub struct ActivatedSockets {
    /// Socket for callers.
    pub http: Option<TcpListener>,
    /// Socket for operators of this machine.
    pub control: Option<AdoptedSocket>,
}

/// Returns no sockets.
///
/// # Errors
/// None.
pub fn sockets() -> anyhow::Result<ActivatedSockets> {
    Ok(ActivatedSockets::default())
}

/// Does nothing: there is no systemd to tell.
pub const fn notify(_state: &str) {}

/// Does nothing: there is no systemd to tell.
pub const fn status(_node: &Arc<Node>) {}

/// Returns no text: there is no systemd that shows it.
pub const fn status_text(_node: &Node) -> &'static str {
    ""
}

/// Does nothing: there is no systemd that watches.
pub const fn watchdog(_node: &Node) {}
