//! Nodes of the local network, by mDNS: `_steadyhand._tcp`. What it finds is a hint and proves nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

use mdns_sd::{IfKind, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};

const SERVICE: &str = "_steadyhand._tcp.local.";

/// Number of digits of the key in the host name, so that no two machines have the same.
const HOST_DIGITS: usize = 12;

/// Longest value that is accepted from another program.
const VALUE_CHARS_MAX: usize = 96;

/// Most nodes that are listed.
const NODES_MAX: usize = 1_000;

/// A node, as it describes itself to its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalNode {
    /// Its name.
    pub name: String,
    /// Address at which it listens; for a node that listens on all addresses, one of its machine's.
    pub address: SocketAddr,
    /// True if it speaks TLS there.
    pub is_tls: bool,
    /// Its public key, as it claims.
    pub key: String,
    /// Its version.
    pub version: String,
}

/// Reason why mDNS cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("mDNS cannot be used here: {0}")]
pub struct LocalDiscoveryError(#[from] mdns_sd::Error);

/// Advertisement of a node on its network; it ends when this is dropped.
pub struct LocalAdvertisement {
    daemon: ServiceDaemon,
    name: String,
}

impl Drop for LocalAdvertisement {
    fn drop(&mut self) {
        if let Ok(unregistered) = self.daemon.unregister(&self.name) {
            let _ = unregistered.recv_timeout(Duration::from_millis(200));
        }
        let _ = self.daemon.shutdown();
    }
}

/// Advertises a node on the local network until the returned value is dropped. A separate thread answers queries.
///
/// # Errors
/// Multicast cannot be used here, or the name is not valid for mDNS.
pub fn advertise(node: &LocalNode) -> Result<LocalAdvertisement, LocalDiscoveryError> {
    let host: String = node.key.chars().take(HOST_DIGITS).collect();
    let host = format!("steadyhand-{host}.local.");
    let values = [
        ("name", node.name.as_str()),
        ("tls", if node.is_tls { "1" } else { "0" }),
        ("key", node.key.as_str()),
        ("version", node.version.as_str()),
    ];
    let (ip, port) = (node.address.ip(), node.address.port());
    let addresses: &[IpAddr] = if ip.is_unspecified() { &[] } else { &[ip] };
    let mut info = ServiceInfo::new(SERVICE, &node.name, &host, addresses, port, &values[..])?;
    if ip.is_unspecified() {
        info = info.enable_addr_auto();
    }
    let name = info.get_fullname().to_owned();
    let daemon = ServiceDaemon::new()?;
    if ip.is_ipv4() {
        // A node that listens on IPv4 only is not reachable at its machine's IPv6 addresses.
        daemon.disable_interface(IfKind::IPv6)?;
    }
    daemon.register(info)?;
    Ok(LocalAdvertisement { daemon, name })
}

/// Listens for nodes for the whole time `within`. Returns them by name.
///
/// # Errors
/// Multicast cannot be used here.
pub fn find(within: Duration) -> Result<Vec<LocalNode>, LocalDiscoveryError> {
    let daemon = ServiceDaemon::new()?;
    let events = daemon.browse(SERVICE)?;
    let deadline = Instant::now() + within;
    let mut found = BTreeMap::new();
    while let Ok(event) = events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if let ServiceEvent::ServiceResolved(service) = event
            && let Some(node) = node_of(&service)
            && found.len() < NODES_MAX
        {
            // Each further event may bring other addresses of the same node.
            let key = (node.name.clone(), service.fullname);
            let entry: &mut LocalNode = found.entry(key).or_insert_with(|| node.clone());
            if ip_preference(&node.address.ip()) < ip_preference(&entry.address.ip()) {
                *entry = node;
            }
        }
    }
    let _ = daemon.shutdown();
    Ok(found.into_values().collect())
}

/// Returns the sort key of an address of a node. The first one is the easiest to reach: not loopback, and without a scope.
fn ip_preference(ip: &IpAddr) -> (bool, bool, IpAddr) {
    (ip.is_loopback(), ip.is_ipv6(), *ip)
}

/// Reads an mDNS service; `None` if it does not describe a node.
fn node_of(service: &ResolvedService) -> Option<LocalNode> {
    let value = |key: &str| {
        let text = service.get_property_val_str(key)?;
        let is_valid =
            text.chars().count() <= VALUE_CHARS_MAX && !text.chars().any(char::is_control);
        is_valid.then(|| text.to_owned())
    };
    let addresses = service.get_addresses().iter();
    let ip = addresses.map(|address| address.to_ip_addr());
    let ip = ip.min_by_key(ip_preference)?;
    Some(LocalNode {
        name: value("name").filter(|name| !name.is_empty())?,
        address: SocketAddr::new(ip, service.get_port()),
        is_tls: value("tls")? == "1",
        key: value("key")?,
        version: value("version")?,
    })
}
