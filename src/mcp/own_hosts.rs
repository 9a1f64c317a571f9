//! The host names and addresses by which a server on this machine may be called.

use std::net::{IpAddr, SocketAddr};

/// Returns the names of a server that listens at `address`: those of this machine, and its addresses.
pub(super) fn own_hosts(address: SocketAddr) -> Vec<String> {
    let mut hosts = vec![
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    let addresses = match address.ip() {
        ip if ip.is_unspecified() => machine_addresses(),
        ip => vec![ip],
    };
    let names = addresses.into_iter().map(|ip| ip.to_string());
    let others: Vec<String> = names.filter(|ip| !hosts.contains(ip)).collect();
    hosts.extend(others);
    hosts
}

/// Returns every address of this machine, for a server that listens at all of them; none if the system does not list them.
fn machine_addresses() -> Vec<IpAddr> {
    match if_addrs::get_if_addrs() {
        Ok(interfaces) => interfaces.iter().map(if_addrs::Interface::ip).collect(),
        Err(error) => {
            tracing::warn!(
                "cannot read this machine's addresses, so callers must use a name from --host: {error}"
            );
            Vec::new()
        }
    }
}
