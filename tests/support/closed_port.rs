//! An address of this machine where nothing listens.

use std::net::SocketAddr;

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// A port that is taken and refuses connections, so that no server of another test gets it meanwhile.
pub(crate) struct ClosedPort(OwnedFd);

impl ClosedPort {
    pub(crate) fn new() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        getsockname(&self.0).unwrap().try_into().unwrap()
    }
}
