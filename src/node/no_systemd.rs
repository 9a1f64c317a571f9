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

/// Tells nobody.
pub const fn notify(_state: &str) {}

/// Tells nobody.
pub const fn status(_node: &Arc<Node>) {}

/// Nobody asks for it.
pub const fn status_text(_node: &Node) -> &'static str {
    ""
}

/// Nobody watches.
pub const fn watchdog(_node: &Node) {}
