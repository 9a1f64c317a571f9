//! Every byte in and out with its moment, around any link; and the same bytes again.
//!
//! A trace is text, one line an event: nanoseconds, `>` for what was sent or `<` for what came, and
//! the bytes in hexadecimal. It can be replayed to a driver, which must then do exactly the same;
//! it is never replayed to an arm.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::memory::FarEnd;
use crate::tap::TapSwitch;
use crate::{ByteLink, LinkError, LinkFuture};
use base::clock::NodeClock;
use base::units::ClockInstant;

/// Lines that may wait for the disk; what does not fit is left out, and said so.
const WAITING_MAX: usize = 65_536;

/// Opens a file that a thread of its own writes, so that the caller never waits for the disk. Existing
/// contents stay.
///
/// # Errors
/// When the file cannot be opened.
pub fn open_in_background(path: &Path) -> Result<BackgroundWriter, LinkError> {
    let told = |source| LinkError::Open {
        path: path.display().to_string(),
        source,
    };
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(told)?;
    let (sender, lines) = sync_channel::<Vec<u8>>(WAITING_MAX);
    let write = move || {
        let mut file = BufWriter::new(file);
        while let Ok(bytes) = lines.recv() {
            let mut written = file.write_all(&bytes);
            // Whoever looks at the file while nothing happens sees all of it.
            while let Ok(bytes) = lines.try_recv() {
                written = written.and_then(|()| file.write_all(&bytes));
            }
            if let Err(error) = written.and_then(|()| file.flush()) {
                tracing::warn!("the bus trace cannot be written any more: {error}");
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("trace".to_owned())
        .spawn(write)
        .map_err(told)?;
    Ok(BackgroundWriter(sender))
}

/// The sender of lines to a file's own thread; clones write to the same file.
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

/// Takes note of what passes through a link.
pub(crate) trait ByteRecord: Send {
    /// Takes note of bytes; it never waits.
    fn note(&mut self, at: ClockInstant, direction: ByteDirection, bytes: &[u8]);
}

/// A trace that is written line by line, until that fails.
struct TraceWriter {
    trace: Box<dyn Write + Send>,
    broken: bool,
}

impl ByteRecord for TraceWriter {
    fn note(&mut self, at: ClockInstant, direction: ByteDirection, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        let event = TraceEvent {
            at,
            direction,
            bytes,
        };
        // One write a line.
        let line = format!("{event}\n");
        if !self.broken && self.trace.write_all(line.as_bytes()).is_err() {
            self.broken = true;
            tracing::warn!("the bus trace cannot be written any more");
        }
    }
}

/// A link that writes down what passes through it.
pub struct RecordLink<L> {
    inner: L,
    clock: NodeClock,
    record: Box<dyn ByteRecord>,
}

impl<L: ByteLink> RecordLink<L> {
    /// Writes what passes through `inner` to `trace`. A trace that cannot be written is given up;
    /// the link goes on.
    pub fn new(inner: L, clock: &NodeClock, trace: Box<dyn Write + Send>) -> Self {
        let record = TraceWriter {
            trace,
            broken: false,
        };
        Self::with(inner, clock, Box::new(record))
    }

    /// The same link; `tap` opens and shuts the record of what passes.
    pub fn tapped(inner: L, clock: &NodeClock, tap: TapSwitch) -> Self {
        Self::with(inner, clock, Box::new(tap))
    }

    fn with(inner: L, clock: &NodeClock, record: Box<dyn ByteRecord>) -> Self {
        Self {
            inner,
            clock: clock.clone(),
            record,
        }
    }
}

impl<L: ByteLink> ByteLink for RecordLink<L> {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        self.record
            .note(self.clock.now(), ByteDirection::Sent, bytes);
        self.inner.send(bytes)
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(async move {
            let count = self.inner.receive(into, until).await?;
            if count > 0 {
                let came = into.get(..count).unwrap_or_default();
                self.record
                    .note(self.clock.now(), ByteDirection::Came, came);
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

/// The direction in which bytes went.
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
    /// Their direction.
    pub direction: ByteDirection,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A line that is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no line of a bus trace: expected nanoseconds, `>` or `<`, and hexadecimal bytes")]
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
        let wrong = || TraceParseError(line.chars().take(60).collect());
        let mut words = line.split_whitespace();
        let nanos = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(wrong)?;
        let direction = match words.next() {
            Some(">") => ByteDirection::Sent,
            Some("<") => ByteDirection::Came,
            _ => return Err(wrong()),
        };
        let bytes = words.next().and_then(unhex).ok_or_else(wrong)?;
        Ok(Self {
            at: ClockInstant::from_nanos(nanos),
            direction,
            bytes,
        })
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
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

/// A recorded device: it says what it said, when it said it, to who asks the same again.
#[derive(Debug)]
pub struct ReplayDevice {
    asked: VecDeque<TraceEvent>,
    said: VecDeque<TraceEvent>,
    differs: Option<String>,
}

impl ReplayDevice {
    /// The device of a trace.
    #[must_use]
    pub fn new(trace: impl IntoIterator<Item = TraceEvent>) -> Self {
        let (asked, said) = trace
            .into_iter()
            .partition(|event| event.direction == ByteDirection::Sent);
        Self {
            asked,
            said,
            differs: None,
        }
    }

    /// The first request that differs from the recorded one, in words.
    #[must_use]
    pub fn differs(&self) -> Option<&str> {
        self.differs.as_deref()
    }
}

impl FarEnd for ReplayDevice {
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]) {
        let expected = self.asked.pop_front();
        let same = expected
            .as_ref()
            .is_some_and(|event| event.at == at && event.bytes == bytes);
        if !same && self.differs.is_none() {
            let found = TraceEvent {
                at,
                direction: ByteDirection::Sent,
                bytes: bytes.to_vec(),
            };
            let mut words = format!("`{found}` was sent where ");
            let _ = match expected {
                Some(event) => write!(words, "`{event}` was recorded"),
                None => write!(words, "the record had ended"),
            };
            self.differs = Some(words);
        }
    }

    fn next_due(&self) -> Option<ClockInstant> {
        // What was said after the next question is said only when that has come.
        let said = self.said.front()?.at;
        let asked = self.asked.front().map(|event| event.at);
        asked.is_none_or(|asked| said <= asked).then_some(said)
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        while self.said.front().is_some_and(|event| event.at <= now) {
            if let Some(event) = self.said.pop_front() {
                into.extend(event.bytes);
            }
        }
    }

    fn is_plugged(&self) -> bool {
        // Behind the record's end there is nobody.
        !(self.asked.is_empty() && self.said.is_empty())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_and_back() {
        let line = "1234567 > FFFF0102";
        let event: TraceEvent = line.parse().unwrap();
        assert_eq!(event.bytes, [0xFF, 0xFF, 1, 2]);
        assert_eq!(event.to_string(), line);
        for wrong in ["", "12", "x > FF", "1 ? FF", "1 > F", "1 < GG"] {
            assert!(wrong.parse::<TraceEvent>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn another_request_than_the_recorded_one_is_told() {
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
                .contains("`5 > 0109` was sent where `5 > 0102`")
        );
    }
}
