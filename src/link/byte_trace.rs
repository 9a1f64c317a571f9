//! Records every byte in and out of a link with its time, and replays a record.
//!
//! A trace is text, one line per event: nanoseconds, `>` for sent or `<` for received, and the bytes
//! in hexadecimal. It can be replayed to a driver, which must then do exactly the same; it is never
//! replayed to an arm.

use std::collections::VecDeque;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::memory::FarEnd;
use crate::tap::TapSwitch;
use crate::{ByteLink, LinkError, LinkFuture};
use base::clock::NodeClock;
use base::units::ClockInstant;

/// Number of lines that may wait for the disk; a line that does not fit is left out, with a warning.
const WAITING_MAX: usize = 65_536;

/// Opens a file for appending by a separate thread, so that the caller never waits for the disk.
///
/// # Errors
/// When the file cannot be opened.
pub fn open_in_background(path: &Path) -> Result<BackgroundWriter, LinkError> {
    let open_error = |source| LinkError::Open {
        path: path.display().to_string(),
        source,
    };
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(open_error)?;
    let (sender, lines) = sync_channel::<Vec<u8>>(WAITING_MAX);
    let write = move || {
        let mut file = BufWriter::new(file);
        while let Ok(bytes) = lines.recv() {
            let mut written = file.write_all(&bytes);
            // Flushed whenever no line waits, so that a reader of an idle trace sees all of it.
            while let Ok(bytes) = lines.try_recv() {
                written = written.and_then(|()| file.write_all(&bytes));
            }
            if let Err(error) = written.and_then(|()| file.flush()) {
                tracing::warn!("the bus trace can no longer be written: {error}");
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("trace".to_owned())
        .spawn(write)
        .map_err(open_error)?;
    Ok(BackgroundWriter(sender))
}

/// Sends lines to the thread that writes a file; clones write to the same file.
#[derive(Clone)]
pub struct BackgroundWriter(SyncSender<Vec<u8>>);

impl Write for BackgroundWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let sent = self.0.try_send(bytes.to_vec());
        sent.map(|()| bytes.len())
            .map_err(|_| std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Records the bytes that pass through a link.
pub(crate) trait ByteRecord: Send {
    /// Records bytes; never waits.
    fn note(&mut self, at: ClockInstant, direction: ByteDirection, bytes: &[u8]);
}

/// Writes a trace line by line, until that fails.
struct TraceWriter {
    trace: Box<dyn Write + Send>,
    has_failed: bool,
}

impl ByteRecord for TraceWriter {
    fn note(&mut self, at: ClockInstant, direction: ByteDirection, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        let event = TraceEvent {
            at,
            direction,
            bytes,
        };
        // One write per line.
        let line = format!("{event}\n");
        if !self.has_failed && self.trace.write_all(line.as_bytes()).is_err() {
            self.has_failed = true;
            tracing::warn!("the bus trace can no longer be written");
        }
    }
}

/// A link that records the bytes that pass through it.
pub struct RecordLink<L> {
    inner: L,
    clock: NodeClock,
    record: Box<dyn ByteRecord>,
}

impl<L: ByteLink> RecordLink<L> {
    /// Records the bytes of `inner` in `trace`. If the trace cannot be written, the link goes on without it.
    pub fn new(inner: L, clock: &NodeClock, trace: Box<dyn Write + Send>) -> Self {
        let record = TraceWriter {
            trace,
            has_failed: false,
        };
        Self::with_record(inner, clock, Box::new(record))
    }

    /// Records the bytes of `inner` while `tap` is open.
    pub fn tapped(inner: L, clock: &NodeClock, tap: TapSwitch) -> Self {
        Self::with_record(inner, clock, Box::new(tap))
    }

    fn with_record(inner: L, clock: &NodeClock, record: Box<dyn ByteRecord>) -> Self {
        Self {
            inner,
            clock: clock.clone(),
            record,
        }
    }
}

impl<L: ByteLink> ByteLink for RecordLink<L> {
    fn claim(&mut self) -> LinkFuture<'_, ()> {
        self.inner.claim()
    }

    fn release(&mut self) {
        self.inner.release();
    }

    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        self.record
            .note(self.clock.now(), ByteDirection::Sent, bytes);
        self.inner.send(bytes)
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(async move {
            let count = self.inner.receive(into, until).await?;
            if count > 0 {
                let received = into.get(..count).unwrap_or_default();
                self.record
                    .note(self.clock.now(), ByteDirection::Came, received);
            }
            Ok(count)
        })
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.inner.discard_input()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

/// Direction of bytes on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteDirection {
    /// To the device.
    Sent,
    /// From the device.
    Came,
}

/// Bytes that passed at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time on the recording clock.
    pub at: ClockInstant,
    /// Direction of the bytes.
    pub direction: ByteDirection,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A line that is not an event of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a line of a bus trace (nanoseconds, `>` or `<`, hexadecimal bytes)")]
pub struct TraceParseError(String);

impl std::fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let arrow = match self.direction {
            ByteDirection::Sent => '>',
            ByteDirection::Came => '<',
        };
        write!(f, "{} {arrow} ", self.at.as_nanos())?;
        self.bytes
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl FromStr for TraceEvent {
    type Err = TraceParseError;

    fn from_str(line: &str) -> Result<Self, TraceParseError> {
        let invalid = || TraceParseError(line.chars().take(60).collect());
        let mut fields = line.split_whitespace();
        let nanos = fields
            .next()
            .and_then(|field| field.parse().ok())
            .ok_or_else(invalid)?;
        let direction = match fields.next() {
            Some(">") => ByteDirection::Sent,
            Some("<") => ByteDirection::Came,
            _ => return Err(invalid()),
        };
        let bytes = fields.next().and_then(parse_hex).ok_or_else(invalid)?;
        Ok(Self {
            at: ClockInstant::from_nanos(nanos),
            direction,
            bytes,
        })
    }
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => {
                let digit = |c: u8| char::from(c).to_digit(16);
                u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
            }
            _ => None,
        })
        .collect()
}

/// A recorded device: it replies as recorded, at the recorded times, as long as it receives the recorded requests.
#[derive(Debug)]
pub struct ReplayDevice {
    requests: VecDeque<TraceEvent>,
    replies: VecDeque<TraceEvent>,
    difference: Option<String>,
}

impl ReplayDevice {
    /// Creates the device of a trace.
    #[must_use]
    pub fn new(trace: impl IntoIterator<Item = TraceEvent>) -> Self {
        let (requests, replies) = trace
            .into_iter()
            .partition(|event| event.direction == ByteDirection::Sent);
        Self {
            requests,
            replies,
            difference: None,
        }
    }

    /// Describes the first request that differs from the recorded one.
    #[must_use]
    pub fn differs(&self) -> Option<&str> {
        self.difference.as_deref()
    }
}

impl FarEnd for ReplayDevice {
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]) {
        let expected = self.requests.pop_front();
        let is_same = expected
            .as_ref()
            .is_some_and(|event| event.at == at && event.bytes == bytes);
        if !is_same && self.difference.is_none() {
            let received = TraceEvent {
                at,
                direction: ByteDirection::Sent,
                bytes: bytes.to_vec(),
            };
            let recorded = match expected {
                Some(event) => format!("`{event}` was recorded"),
                None => "the record had ended".to_owned(),
            };
            self.difference = Some(format!("`{received}` was sent, but {recorded}"));
        }
    }

    fn next_due(&self) -> Option<ClockInstant> {
        // A reply that was recorded after the next request waits for that request.
        let reply = self.replies.front()?.at;
        let request = self.requests.front().map(|event| event.at);
        request
            .is_none_or(|request| reply <= request)
            .then_some(reply)
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        while self.replies.front().is_some_and(|event| event.at <= now) {
            if let Some(event) = self.replies.pop_front() {
                into.extend(event.bytes);
            }
        }
    }

    fn is_plugged(&self) -> bool {
        // After the end of the record there is no device.
        !(self.requests.is_empty() && self.replies.is_empty())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn an_event_parses_from_a_line_and_prints_the_same() {
        let line = "1234567 > FFFF0102";
        let event: TraceEvent = line.parse().unwrap();
        assert_eq!(event.bytes, [0xFF, 0xFF, 1, 2]);
        assert_eq!(event.to_string(), line);
        for wrong in ["", "12", "x > FF", "1 ? FF", "1 > F", "1 < GG"] {
            assert!(wrong.parse::<TraceEvent>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn reports_a_request_that_differs_from_the_recorded_one() {
        let trace: Vec<TraceEvent> = ["5 > 0102", "9 < 03"].map(|l| l.parse().unwrap()).into();
        let mut replay = ReplayDevice::new(trace.clone());
        replay.hear(ClockInstant::from_nanos(5), &[1, 2]);
        assert_eq!(replay.differs(), None);
        let mut replay = ReplayDevice::new(trace);
        replay.hear(ClockInstant::from_nanos(5), &[1, 9]);
        assert!(
            replay
                .differs()
                .unwrap()
                .contains("`5 > 0109` was sent, but `5 > 0102`")
        );
    }
}
