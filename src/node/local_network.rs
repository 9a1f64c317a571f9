//! A node's word to its local network, and the proof of who answers at its address.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;

use config::NodeFile;
use job::NodeIdentity;
use mcp::http::IdentityProof;

/// Answers challenges by the node's key.
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

/// Tells the local network of a node that listens beyond this machine, unless its file says otherwise, for as long as what comes
/// back is kept. A network that takes no word is no reason not to serve.
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
            tracing::info!("`steadyhand nodes` finds this node on its network");
            Some(advertised)
        }
        Err(error) => {
            tracing::warn!("this node is not found by `steadyhand nodes`: {error}");
            None
        }
    }
}

/// Tells the network nothing: the program was built without mDNS.
#[cfg(not(feature = "mdns"))]
pub(super) fn advertise(
    _: &NodeFile,
    _: SocketAddr,
    _: &NodeIdentity,
) -> Option<std::convert::Infallible> {
    None
}
