//! Advertises a node on its local network, and proves the identity of the node at its address.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;

use config::NodeFile;
use job::NodeIdentity;
use mcp::http::IdentityProof;

/// Returns the handler that signs challenges with the node's key.
pub(super) fn identity_proof(identity: NodeIdentity) -> IdentityProof {
    Arc::new(move |challenge| {
        let signature = identity.prove(challenge)?;
        Some(json!({
            "name": identity.name(),
            "key": identity.public_key(),
            "signature": signature,
        }))
    })
}

/// Advertises a node that listens beyond this machine on the local network, unless its file says otherwise, until the returned
/// value is dropped. A node that cannot be advertised is served all the same.
#[cfg(feature = "mdns")]
pub(super) fn advertise(
    file: &NodeFile,
    address: SocketAddr,
    identity: &NodeIdentity,
) -> Option<fleet::local_discovery::LocalAdvertisement> {
    use fleet::local_discovery::{LocalNode, advertise};
    if !file.fleet.announce || address.ip().is_loopback() {
        return None;
    }
    let advertised = advertise(&LocalNode {
        name: file.name.clone(),
        address,
        is_tls: file.tls_cert.is_some(),
        key: identity.public_key(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    });
    match advertised {
        Ok(advertised) => {
            tracing::info!("`steadyhand fleet nodes` can find this node on its network");
            Some(advertised)
        }
        Err(error) => {
            tracing::warn!("`steadyhand fleet nodes` cannot find this node: {error}");
            None
        }
    }
}

/// Does nothing: the program was built without mDNS.
#[cfg(not(feature = "mdns"))]
pub(super) fn advertise(
    _: &NodeFile,
    _: SocketAddr,
    _: &NodeIdentity,
) -> Option<std::convert::Infallible> {
    None
}
