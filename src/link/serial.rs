//! A real serial port, by tokio-serial.
//!
//! The port is opened for this process alone: in exclusive mode, and with an advisory lock that also keeps
//! a second node out where the first runs as root. Nothing here ever waits until the wire is empty: on
//! some adapters that blocks forever.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_serial::{ClearBuffer, SerialPort, SerialStream};

use crate::port_errors::{classify_open_error, open_error, unplugged_or};
use crate::{ByteLink, LinkError, LinkFuture};
use base::clock::{ClockAlarm, NodeClock};
use base::units::ClockInstant;

/// Time within which a port must take bytes; otherwise it counts as broken, because a stop would wait forever.
const SEND_TIMEOUT: Duration = Duration::from_millis(100);

/// Returns the serial ports that the system lists, as people there name them; none where it cannot list them.
#[must_use]
pub fn ports() -> Vec<PathBuf> {
    let ports = tokio_serial::available_ports().unwrap_or_default();
    let mut names: Vec<PathBuf> = ports
        .into_iter()
        .map(|port| port.port_name.into())
        .collect();
    names.sort();
    names
}

/// An open serial port. Must be made and used within one runtime.
#[derive(Debug)]
pub struct SerialLink {
    stream: SerialStream,
    alarm: ClockAlarm,
    clock: NodeClock,
    path: String,
    /// The end of what was cut when the port took no more bytes.
    unsent: Vec<u8>,
}

impl SerialLink {
    /// Opens `path` at `baud`, eight bits, no parity, one stop bit, and discards what another
    /// program left in its buffers.
    ///
    /// # Errors
    /// The port is missing, busy, or may not be opened.
    pub fn open(path: &str, baud: u32, clock: &NodeClock) -> Result<Self, LinkError> {
        let builder = tokio_serial::new(path, baud);
        #[expect(
            clippy::disallowed_methods,
            reason = "the only place that opens serial ports"
        )]
        let stream =
            SerialStream::open(&builder).map_err(|error| classify_open_error(path, error))?;
        let mut link = Self {
            stream,
            alarm: clock.alarm().map_err(|source| open_error(path, source))?,
            clock: clock.clone(),
            path: path.to_owned(),
            unsent: Vec::new(),
        };
        link.discard_input()?;
        Ok(link)
    }

    /// Returns the time by which the port must have taken bytes that are sent now.
    fn send_deadline(&self) -> ClockInstant {
        self.clock.now().after(SEND_TIMEOUT)
    }

    /// Sends bytes whole or, where the port takes none of them, not at all. Where it takes a part, the rest goes
    /// before anything else: a receiver that has begun a frame would take the next one for its end.
    async fn send_whole(&mut self, bytes: &[u8]) -> Result<(), LinkError> {
        let until = self.send_deadline();
        self.finish_sending(until).await?;
        let count = send_some(&mut self.stream, &mut self.alarm, bytes, until).await?;
        self.unsent = bytes.get(count..).unwrap_or_default().to_vec();
        self.finish_sending(until).await
    }

    async fn finish_sending(&mut self, until: ClockInstant) -> Result<(), LinkError> {
        while !self.unsent.is_empty() {
            let sent = send_some(&mut self.stream, &mut self.alarm, &self.unsent, until);
            let count = sent.await?;
            self.unsent.drain(..count);
        }
        Ok(())
    }

    async fn receive_some(
        &mut self,
        into: &mut [u8],
        until: ClockInstant,
    ) -> Result<usize, LinkError> {
        tokio::select! {
            biased;
            read = self.stream.read(into) => match read {
                // A port has no end of file: reading nothing means that the port is gone.
                Ok(0) => Err(LinkError::Unplugged),
                Ok(count) => Ok(count),
                Err(error) => Err(unplugged_or(error, LinkError::Read)),
            },
            waited = self.alarm.until(until) => waited.map(|()| 0).map_err(LinkError::Read),
        }
    }
}

impl ByteLink for SerialLink {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        Box::pin(self.send_whole(bytes))
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(self.receive_some(into, until))
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        let cleared = self.stream.clear(ClearBuffer::Input);
        // The serial crate keeps no error number here; an existing port can always be cleared.
        cleared.map_err(|_| LinkError::Unplugged)
    }

    fn name(&self) -> &str {
        &self.path
    }
}

/// Sends as many of these bytes as the port takes at once, and returns how many.
async fn send_some(
    stream: &mut SerialStream,
    alarm: &mut ClockAlarm,
    bytes: &[u8],
    until: ClockInstant,
) -> Result<usize, LinkError> {
    tokio::select! {
        biased;
        written = stream.write(bytes) => match written {
            Ok(0) if !bytes.is_empty() => Err(LinkError::Unplugged),
            Ok(count) => Ok(count),
            Err(error) => Err(unplugged_or(error, LinkError::Write)),
        },
        waited = alarm.until(until) => Err(LinkError::Write(
            waited.err().unwrap_or_else(send_timeout),
        )),
    }
}

fn send_timeout() -> io::Error {
    let message = format!(
        "the port accepted no bytes for {} ms",
        SEND_TIMEOUT.as_millis()
    );
    io::Error::new(io::ErrorKind::TimedOut, message)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failing test may panic"
)]
mod tests {
    use super::*;
    use crate::pty::PseudoTerminal;

    #[tokio::test]
    async fn distinguishes_missing_busy_and_invalid_ports() {
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
        let not_a_port = SerialLink::open(file.path().to_str().unwrap(), 1_000_000, &clock);
        assert!(
            matches!(not_a_port, Err(LinkError::Open { .. })),
            "{not_a_port:?}"
        );
        let error = SerialLink::open("/dev/null", 1_000_000, &clock).unwrap_err();
        assert!(error.to_string().contains("not a serial port"), "{error}");
    }

    #[tokio::test]
    async fn what_a_full_port_cut_off_is_finished_before_anything_else() {
        const FRAME: [u8; 59] = {
            let mut frame = [7; 59];
            frame[0] = 0xFF;
            frame[58] = 1;
            frame
        };
        let clock = NodeClock::real();
        let pty = PseudoTerminal::open().unwrap();
        let mut link = SerialLink::open(pty.path().to_str().unwrap(), 1_000_000, &clock).unwrap();
        let mut whole = 0;
        while link.send(&FRAME).await.is_ok() {
            whole += 1;
        }
        assert!(!link.unsent.is_empty(), "no frame was cut");
        // The cut one is finished, and one that is not begun is not sent at all.
        assert!(link.send(&FRAME).await.is_err());
        let (mut received, mut buffer) = (Vec::<u8>::new(), [0_u8; 4096]);
        while received.len() < (whole + 2) * FRAME.len() {
            let read = pty.read(&mut buffer);
            match tokio::time::timeout(Duration::from_millis(100), read).await {
                Ok(count) => received.extend(&buffer[..count.unwrap()]),
                Err(_) => link.send(&FRAME).await.unwrap(),
            }
        }
        assert_eq!(received, FRAME.repeat(whole + 2));
    }

    #[tokio::test]
    async fn a_receive_ends_at_its_deadline_or_when_unplugged() {
        let clock = NodeClock::real();
        let pty = PseudoTerminal::open().unwrap();
        let mut link = SerialLink::open(pty.path().to_str().unwrap(), 1_000_000, &clock).unwrap();
        let mut buffer = [0; 8];
        let until = clock.now().after(Duration::from_millis(3));
        assert_eq!(link.receive(&mut buffer, until).await.unwrap(), 0);
        assert!(clock.now() >= until);
        drop(pty);
        let distant = clock.now().after(Duration::from_secs(60));
        for _ in 0..3 {
            let lost = link.receive(&mut buffer, distant).await;
            assert!(matches!(lost, Err(LinkError::Unplugged)), "{lost:?}");
        }
        let lost = link.send(&[1]).await;
        assert!(matches!(lost, Err(LinkError::Unplugged)), "{lost:?}");
    }
}
