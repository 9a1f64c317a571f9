//! Nodes of the local network, by mDNS: `_steadyhand._tcp`. What is heard is a hint and proves nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

use mdns_sd::{IfKind, ResolvedService, ServiceDaemon, ServiceEvent, ServiceInfo};

const SERVICE: &str = "_steadyhand._tcp.local.";

/// Digits of the key in the name of the host, so that two machines do not take the same.
const HOST_DIGITS: usize = 12;

/// Longest text of another program that is believed to be a value.
const VALUE_CHARS_MAX: usize = 96;

/// Most nodes that are listed.
const NODES_MAX: usize = 1_000;

/// A node, as it describes itself to its network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalNode {
    /// Its name.
    pub name: String,
    /// Address at which it listens; of one that listens everywhere, an address of its machine.
    pub address: SocketAddr,
    /// True if it speaks TLS there.
    pub is_tls: bool,
    /// Its public key, by its own word.
    pub key: String,
    /// Its version.
    pub version: String,
}

/// Reason for hearing or saying nothing.
#[derive(Debug, thiserror::Error)]
#[error("mDNS cannot be used here: {0}")]
pub struct LocalDiscoveryError(#[from] mdns_sd::Error);

/// A node's word to its network; it ends when this is dropped.
pub struct LocalAdvertisement {
    daemon: ServiceDaemon,
    name: String,
}

impl Drop for LocalAdvertisement {
    fn drop(&mut self) {
        if let Ok(gone) = self.daemon.unregister(&self.name) {
            let _ = gone.recv_timeout(Duration::from_millis(200));
        }
        let _ = self.daemon.shutdown();
    }
}

/// Tells the local network of a node, until what comes back is dropped. A thread of its own answers.
///
/// # Errors
/// There is no way to send to a group of machines here, or the name is none for mDNS.
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
        // A node that listens at addresses of four bytes alone is not at the others of its machine.
        daemon.disable_interface(IfKind::IPv6)?;
    }
    daemon.register(info)?;
    Ok(LocalAdvertisement { daemon, name })
}

/// Listens for nodes, and waits for all of `within`. Returns them by name.
///
/// # Errors
/// There is no way to hear a group of machines here.
pub fn find(within: Duration) -> Result<Vec<LocalNode>, LocalDiscoveryError> {
    let daemon = ServiceDaemon::new()?;
    let heard = daemon.browse(SERVICE)?;
    let until = Instant::now() + within;
    let mut found = BTreeMap::new();
    while let Ok(event) = heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if let ServiceEvent::ServiceResolved(service) = event
            && let Some(node) = node_of(&service)
            && found.len() < NODES_MAX
        {
            // Each further event may know other addresses of the same node.
            let place = (node.name.clone(), service.fullname);
            let known: &mut LocalNode = found.entry(place).or_insert_with(|| node.clone());
            if ip_preference(&node.address.ip()) < ip_preference(&known.address.ip()) {
                *known = node;
            }
        }
    }
    let _ = daemon.shutdown();
    Ok(found.into_values().collect())
}

/// Orders the addresses of one node: the first is the easiest to reach, for it is not this machine's alone and needs no interface.
fn ip_preference(ip: &IpAddr) -> (bool, bool, IpAddr) {
    (ip.is_loopback(), ip.is_ipv6(), *ip)
}

/// Reads what was heard; `None` where it is no word of a node.
fn node_of(service: &ResolvedService) -> Option<LocalNode> {
    let value = |key: &str| {
        let text = service.get_property_val_str(key)?;
        let is_plain =
            text.chars().count() <= VALUE_CHARS_MAX && !text.chars().any(char::is_control);
        is_plain.then(|| text.to_owned())
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
