//! A real serial port, by tokio-serial.
//!
//! The port is opened for one process alone: exclusive, and with an advisory lock that also keeps
//! a second node out where the first runs as root. Nothing here ever waits for the wire to be
//! empty: on some adapters that blocks for ever.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Access, access};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_serial::{ClearBuffer, SerialPort, SerialStream};

use crate::{ByteLink, LinkError, LinkFuture, port_holder};
use base::clock::{ClockAlarm, NodeClock};
use base::units::ClockInstant;

/// A port that takes no bytes for so long is broken: on it a stop would wait for ever.
const SEND: Duration = Duration::from_millis(100);

/// An open serial port. Must be made and used within one runtime.
#[derive(Debug)]
pub struct SerialLink {
    stream: SerialStream,
    alarm: ClockAlarm,
    clock: NodeClock,
    path: String,
}

impl SerialLink {
    /// Opens `path` at `baud`, eight bits, no parity, one stop bit, and forgets what another
    /// program left in its buffers.
    ///
    /// # Errors
    /// Tells a port that is missing from one that is busy and from one that may not be opened.
    pub fn open(path: &str, baud: u32, clock: &NodeClock) -> Result<Self, LinkError> {
        let builder = tokio_serial::new(path, baud);
        #[expect(clippy::disallowed_methods, reason = "the one home of serial ports")]
        let stream = SerialStream::open(&builder).map_err(|error| why(path, error))?;
        let mut link = Self {
            stream,
            alarm: clock.alarm().map_err(|source| open_error(path, source))?,
            clock: clock.clone(),
            path: path.to_owned(),
        };
        link.discard_input()?;
        Ok(link)
    }

    /// Returns the time by which bytes that are sent now must have been taken.
    fn send_deadline(&self) -> ClockInstant {
        self.clock.now().after(SEND)
    }

    async fn receive_some(
        &mut self,
        into: &mut [u8],
        until: ClockInstant,
    ) -> Result<usize, LinkError> {
        tokio::select! {
            biased;
            read = self.stream.read(into) => match read {
                // A port has no end: nothing read means that nothing is there to read from.
                Ok(0) => Err(LinkError::Unplugged),
                Ok(count) => Ok(count),
                Err(error) => Err(lost_or(error, LinkError::Read)),
            },
            waited = self.alarm.until(until) => waited.map(|()| 0).map_err(LinkError::Read),
        }
    }
}

impl ByteLink for SerialLink {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(async move {
            let until = self.send_deadline();
            tokio::select! {
                biased;
                written = self.stream.write_all(bytes) => {
                    written.map_err(|error| lost_or(error, LinkError::Write))
                }
                waited = self.alarm.until(until) => Err(LinkError::Write(
                    waited.err().unwrap_or_else(send_timeout),
                )),
            }
        })
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(self.receive_some(into, until))
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        let cleared = self.stream.clear(ClearBuffer::Input);
        // The serial crate keeps no error number here; a port that is there can always be cleared.
        cleared.map_err(|_| LinkError::Unplugged)
    }

    fn name(&self) -> &str {
        &self.path
    }
}

fn send_timeout() -> io::Error {
    let words = format!("the port took no bytes for {} ms", SEND.as_millis());
    io::Error::new(io::ErrorKind::TimedOut, words)
}

/// System errors that a vanished adapter gives, and everything else.
fn lost_or(error: io::Error, otherwise: impl Fn(io::Error) -> LinkError) -> LinkError {
    use rustix::io::Errno;
    let gone = [
        Errno::IO,
        Errno::NXIO,
        Errno::NODEV,
        Errno::BADF,
        Errno::PIPE,
    ];
    match rustix::io::Errno::from_io_error(&error) {
        Some(errno) if gone.contains(&errno) => LinkError::Unplugged,
        _ => otherwise(error),
    }
}

fn open_error(path: &str, source: io::Error) -> LinkError {
    // The serial crate keeps no error number, only its words.
    let is_no_terminal = source.raw_os_error() == Some(rustix::io::Errno::NOTTY.raw_os_error())
        || source.to_string() == "Not a typewriter";
    LinkError::Open {
        path: path.to_owned(),
        source: match is_no_terminal {
            true => io::Error::other("it is no serial port"),
            false => source,
        },
    }
}

/// The serial crate calls both a missing and a busy port "no device": the file system knows better.
fn why(path: &str, error: tokio_serial::Error) -> LinkError {
    let busy = matches!(error.kind, tokio_serial::ErrorKind::NoDevice);
    let path_owned = path.to_owned();
    if !Path::new(path).exists() {
        LinkError::Missing { path: path_owned }
    } else if access(path, Access::READ_OK | Access::WRITE_OK).is_err() {
        LinkError::Permission { path: path_owned }
    } else if busy {
        LinkError::Busy {
            holder: port_holder::holder_of(path),
            path: path_owned,
        }
    } else {
        open_error(path, error.into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use crate::pty::PseudoTerminal;

    #[tokio::test]
    async fn missing_busy_and_not_a_port_are_told_apart() {
        let clock = NodeClock::real();
        let missing = SerialLink::open("/dev/no-such-port", 1_000_000, &clock);
        assert!(matches!(missing, Err(LinkError::Missing { .. })));
        let pty = PseudoTerminal::open().unwrap();
        let path = pty.path().to_str().unwrap().to_owned();
        let first = SerialLink::open(&path, 1_000_000, &clock).unwrap();
        let second = SerialLink::open(&path, 1_000_000, &clock);
        assert!(matches!(second, Err(LinkError::Busy { .. })), "{second:?}");
        drop(first);
        assert!(SerialLink::open(&path, 1_000_000, &clock).is_ok());
        let file = tempfile::NamedTempFile::new().unwrap();
        let none = SerialLink::open(file.path().to_str().unwrap(), 1_000_000, &clock);
        assert!(matches!(none, Err(LinkError::Open { .. })), "{none:?}");
        let none = SerialLink::open("/dev/null", 1_000_000, &clock).unwrap_err();
        assert!(none.to_string().contains("no serial port"), "{none}");
    }

    #[tokio::test]
    async fn silence_ends_at_its_moment_and_an_unplug_at_once() {
        let clock = NodeClock::real();
        let pty = PseudoTerminal::open().unwrap();
        let mut link = SerialLink::open(pty.path().to_str().unwrap(), 1_000_000, &clock).unwrap();
        let mut buffer = [0; 8];
        let until = clock.now().after(Duration::from_millis(3));
        assert_eq!(link.receive(&mut buffer, until).await.unwrap(), 0);
        assert!(clock.now() >= until);
        drop(pty);
        let far = clock.now().after(Duration::from_secs(60));
        for _ in 0..3 {
            let lost = link.receive(&mut buffer, far).await;
            assert!(matches!(lost, Err(LinkError::Unplugged)), "{lost:?}");
        }
        let lost = link.send(&[1]).await;
        assert!(matches!(lost, Err(LinkError::Unplugged)), "{lost:?}");
    }
}
