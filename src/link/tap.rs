//! Records the bytes of one job, from its first frame to its last, next to its journal.
//!
//! A tap is always on the link and mostly shut. While it is open, passing bytes go to a thread that
//! writes them in the form of [`byte_trace`](super::byte_trace), so the owner of the link never waits for
//! the disk. If a piece finds no room, it and everything after it are left out, with a line that says so.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::byte_trace::{ByteDirection, ByteRecord, TraceEvent};
use base::file_access::with_mode;
use base::lock::MutexExt;
use base::units::ClockInstant;

/// Last line of a record that does not hold all bytes.
pub const CUT: &str = "cut";

/// Length at which a job's record is cut: some minutes of a bus of six servos.
const FILE_BYTES_MAX: usize = 16 << 20;

/// Size of the pieces in which text is handed to the writer.
const PIECE_BYTES: usize = 32 << 10;

/// Number of pieces that may wait for the disk.
const WAITING_MAX: usize = 256;

/// Opens and shuts the record of one link; clones are the same tap.
#[derive(Clone, Default)]
pub struct TapSwitch(Arc<Mutex<Option<TapStream>>>);

struct TapStream {
    piece: String,
    written: usize,
    is_cut: bool,
    pieces: SyncSender<String>,
    writer: JoinHandle<()>,
}

impl TapSwitch {
    /// Starts appending passing bytes to a file, which only this user may read.
    ///
    /// # Errors
    /// When the file or its thread cannot be opened.
    pub fn open(&self, path: &Path) -> io::Result<()> {
        self.shut();
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        let file = with_mode(&mut options, 0o600).open(path)?;
        let written = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let (pieces, waiting) = sync_channel(WAITING_MAX);
        let writer = std::thread::Builder::new()
            .name("tap".to_owned())
            .spawn(move || write_pieces(file, &waiting))?;
        *self.0.locked() = Some(TapStream {
            piece: String::new(),
            written,
            is_cut: false,
            pieces,
            writer,
        });
        Ok(())
    }

    /// Stops recording. Waits for the disk, so it is not for a thread that others wait for.
    pub fn shut(&self) {
        let stream = self.0.locked().take();
        if let Some(mut stream) = stream {
            stream.hand_over();
            drop(stream.pieces);
            // A writer that failed has logged it.
            let _ = stream.writer.join();
        }
    }
}

impl ByteRecord for TapSwitch {
    fn note(&mut self, at: ClockInstant, direction: ByteDirection, bytes: &[u8]) {
        // Locked only while the tap is opened or shut: no frame waits for that.
        if let Ok(mut stream) = self.0.try_lock()
            && let Some(stream) = stream.as_mut()
        {
            let bytes = bytes.to_vec();
            stream.write_event(&TraceEvent {
                at,
                direction,
                bytes,
            });
        }
    }
}

impl TapStream {
    fn write_event(&mut self, event: &TraceEvent) {
        if self.is_cut {
            return;
        }
        let length_before = self.piece.len();
        // Writing to a string cannot fail.
        let _ = writeln!(self.piece, "{event}");
        self.written = self
            .written
            .saturating_add(self.piece.len() - length_before);
        self.is_cut = self.written > FILE_BYTES_MAX;
        if self.is_cut {
            self.piece.push_str(CUT);
            self.piece.push('\n');
        }
        if self.is_cut || self.piece.len() >= PIECE_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let piece = std::mem::take(&mut self.piece);
        if self.pieces.try_send(piece).is_err() {
            self.is_cut = true;
            // Sent with the last piece, when there is room.
            self.piece = format!("{CUT}\n");
        }
    }
}

fn write_pieces(mut file: File, pieces: &Receiver<String>) {
    while let Ok(piece) = pieces.recv() {
        if let Err(error) = file.write_all(piece.as_bytes()) {
            tracing::warn!("a job's bytes can no longer be written: {error}");
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    fn record(events: usize, bytes: usize) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bytes.trace");
        let mut tap = TapSwitch::default();
        tap.note(ClockInstant::ZERO, ByteDirection::Sent, &[1]);
        tap.open(&path).unwrap();
        for at in 0..events {
            let at = ClockInstant::from_nanos(u64::try_from(at).unwrap());
            tap.note(at, ByteDirection::Came, &vec![0xA5; bytes]);
        }
        tap.shut();
        tap.note(ClockInstant::ZERO, ByteDirection::Sent, &[2]);
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn an_open_tap_records_bytes_and_a_shut_one_none() {
        let text = record(2, 2);
        assert_eq!(text, "0 < A5A5\n1 < A5A5\n");
    }

    #[test]
    fn a_record_that_grows_too_long_is_marked_as_cut_after_a_complete_line() {
        let text = record(40, 1 << 18);
        assert!(text.len() < FILE_BYTES_MAX + (2 << 18) + 100);
        let mut lines = text.lines().rev();
        assert_eq!(lines.next(), Some(CUT));
        assert!(lines.all(|line| line.parse::<TraceEvent>().is_ok()));
    }
}
