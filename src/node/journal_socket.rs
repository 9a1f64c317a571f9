//! The socket of systemd's journal.

use std::io;
use std::os::linux::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;

const JOURNAL: &str = "/run/systemd/journal/socket";

/// A connection to the journal, with one datagram per line.
pub(crate) struct JournalSocket(UnixDatagram);

impl JournalSocket {
    /// Connects to the journal, if there is one.
    pub(super) fn open() -> Option<Self> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect(JOURNAL).ok()?;
        // No thread waits for the journal to read, least of all an arm's.
        socket.set_nonblocking(true).ok()?;
        Some(Self(socket))
    }

    #[cfg(test)]
    pub(super) const fn of(socket: UnixDatagram) -> Self {
        Self(socket)
    }

    pub(super) fn send(&self, line: &[u8]) -> io::Result<usize> {
        self.0.send(line)
    }
}

/// Returns whether standard error goes to the journal, as systemd declares for a service it starts.
pub(super) fn is_journal() -> bool {
    let Ok(journal_stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    let stderr = std::fs::metadata("/proc/self/fd/2");
    stderr.is_ok_and(|stderr| journal_stream == format!("{}:{}", stderr.st_dev(), stderr.st_ino()))
}
