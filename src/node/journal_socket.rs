//! The socket of systemd's journal.

use std::io;
use std::os::linux::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;

const JOURNAL: &str = "/run/systemd/journal/socket";

/// A connection to the journal, a datagram for each line.
pub(crate) struct JournalSocket(UnixDatagram);

impl JournalSocket {
    /// Connects, where there is a journal.
    pub(super) fn open() -> Option<Self> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect(JOURNAL).ok()?;
        // Nobody waits for the journal to read, an arm's thread least of all.
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
    let Ok(said) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    let own = std::fs::metadata("/proc/self/fd/2");
    own.is_ok_and(|own| said == format!("{}:{}", own.st_dev(), own.st_ino()))
}
