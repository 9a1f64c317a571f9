//! The meaning of a system's errors of a serial port, on Windows.

use std::io;

use crate::LinkError;

/// System errors of a vanished adapter: its handle is invalid, it is not ready, it does not know the command, it fails, it does not
/// exist, its operations were aborted, it is not connected, or it was removed.
const UNPLUGGED: [i32; 9] = [5, 6, 21, 22, 31, 433, 995, 1167, 1617];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_a_vanished_port_is_known_as_such() {
        // Wine's error for a pseudo-terminal whose other end is gone.
        let error = unplugged_or(io::Error::from_raw_os_error(21), LinkError::Write);
        assert!(matches!(error, LinkError::Unplugged), "{error:?}");
        let full = unplugged_or(io::Error::from_raw_os_error(112), LinkError::Write);
        assert!(matches!(full, LinkError::Write(_)), "{full:?}");
    }
}
