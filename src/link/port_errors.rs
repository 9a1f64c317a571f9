//! The meaning of a system's errors of a serial port, on Unix.

use std::io;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::LinkError;
#[cfg(target_os = "linux")]
use crate::port_holder::describe_holder;

/// Returns [`LinkError::Unplugged`] for the system errors of a vanished adapter, and `otherwise` for others.
pub(super) fn unplugged_or(
    error: io::Error,
    otherwise: impl Fn(io::Error) -> LinkError,
) -> LinkError {
    let unplugged = [
        Errno::IO,
        Errno::NXIO,
        Errno::NODEV,
        Errno::BADF,
        Errno::PIPE,
    ];
    match Errno::from_io_error(&error) {
        Some(errno) if unplugged.contains(&errno) => LinkError::Unplugged,
        _ => otherwise(error),
    }
}

/// Describes a port that exists and may be opened, and could not be.
pub(super) fn open_error(path: &str, source: io::Error) -> LinkError {
    // The serial crate keeps no error number, only its text.
    let is_not_a_terminal = source.raw_os_error() == Some(Errno::NOTTY.raw_os_error())
        || source.to_string() == "Not a typewriter";
    LinkError::Open {
        path: path.to_owned(),
        source: match is_not_a_terminal {
            true => io::Error::other("it is not a serial port"),
            false => source,
        },
    }
}

/// Tells a missing, a forbidden and a busy port apart by the file system: to the serial crate all are "no device".
pub(super) fn classify_open_error(path: &str, error: tokio_serial::Error) -> LinkError {
    let busy = matches!(error.kind, tokio_serial::ErrorKind::NoDevice);
    let path_owned = path.to_owned();
    if !Path::new(path).exists() {
        LinkError::Missing { path: path_owned }
    } else if access(path, Access::READ_OK | Access::WRITE_OK).is_err() {
        LinkError::Permission { path: path_owned }
    } else if busy {
        LinkError::Busy {
            holder: describe_holder(path),
            path: path_owned,
        }
    } else {
        open_error(path, error.into())
    }
}

/// Names how to find the holder of a port, where the system does not list it.
#[cfg(not(target_os = "linux"))]
fn describe_holder(path: &str) -> String {
    format!("another program (`lsof {path}` names it)")
}
