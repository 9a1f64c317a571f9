//! The meaning of a system's errors of a serial port, on Windows.

use std::io;

use crate::LinkError;

/// System errors of a vanished adapter: its handle is invalid, it does not know the command, it fails, its operations were
/// aborted, or it is not connected.
const UNPLUGGED: [i32; 6] = [5, 6, 22, 31, 995, 1167];

/// Returns [`LinkError::Unplugged`] for the system errors of a vanished adapter, and `otherwise` for others.
pub(super) fn unplugged_or(
    error: io::Error,
    otherwise: impl Fn(io::Error) -> LinkError,
) -> LinkError {
    match error.raw_os_error() {
        Some(code) if UNPLUGGED.contains(&code) => LinkError::Unplugged,
        _ => otherwise(error),
    }
}

/// Describes a port that exists and may be opened, and could not be.
pub(super) fn open_error(path: &str, source: io::Error) -> LinkError {
    LinkError::Open {
        path: path.to_owned(),
        source,
    }
}

/// Tells a missing port from a busy one. Any user may open a serial port here, so one that is denied is in use.
pub(super) fn classify_open_error(path: &str, error: tokio_serial::Error) -> LinkError {
    let path_owned = path.to_owned();
    match error.kind {
        tokio_serial::ErrorKind::NoDevice
        | tokio_serial::ErrorKind::Io(io::ErrorKind::NotFound) => {
            LinkError::Missing { path: path_owned }
        }
        tokio_serial::ErrorKind::Io(io::ErrorKind::PermissionDenied) => LinkError::Busy {
            holder: "another program".to_owned(),
            path: path_owned,
        },
        _ => open_error(path, error.into()),
    }
}
