//! Says to systemd, where it asked, that the node is ready, and that it is stopping.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends a state such as `READY=1`. Without a notify socket there is nobody to tell.
pub(super) fn notify(state: &str) {
    let Ok(socket) = std::env::var("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!("systemd could not be told {state:?}: {error}");
    }
}

fn send(socket: &str, state: &str) -> std::io::Result<()> {
    let address = match socket.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}
