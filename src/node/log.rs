//! The log: text for a terminal, journal fields under systemd, JSON on request. Never on standard output, which belongs
//! to MCP and to results.
//!
//! A separate thread writes the lines, so a slow or stuck reader blocks no other thread. Lines beyond the queue are
//! dropped and counted. The libraries under MCP and HTTP log only warnings: details hold callers' tokens and pictures.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use tracing::{Level, Metadata};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use super::journal_socket::{JournalSocket, is_journal};
use super::log_record::{LogLineLayer, LogSink};

/// Environment variable with the filter of the log.
const FILTER: &str = "STEADYHAND_LOG";

/// Number of lines that wait to be written.
const LINES_MAX: usize = 1024;

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
    /// Fields in systemd's journal.
    Journal,
}

/// Sets up the log in the given format, or in the one that suits its destination.
///
/// # Errors
/// The process has a log already.
pub fn begin(format: Option<LogFormat>, quiet: bool) -> Result<(), TryInitError> {
    let level = if quiet { Level::ERROR } else { Level::INFO };
    let configured = std::env::var(FILTER).ok();
    let read = configured.as_ref().and_then(|filter| filter.parse().ok());
    let unread = configured.filter(|filter| read.is_none() && !filter.is_empty());
    let filter: Targets = read.unwrap_or_else(|| {
        let targets = Targets::new().with_default(level);
        // A command reports its failures itself.
        let library = if quiet {
            LevelFilter::OFF
        } else {
            LevelFilter::ERROR
        };
        targets.with_target("rmcp", library)
    });
    let format = format.unwrap_or_else(|| match is_journal() {
        true => LogFormat::Journal,
        false => LogFormat::Text,
    });
    let writer = || LogQueue::start(io::stderr());
    let layer = match (format, JournalSocket::open()) {
        (LogFormat::Journal, Some(socket)) => {
            LogLineLayer(LogSink::<LogQueue>::Journal(socket)).boxed()
        }
        (LogFormat::Json, _) => LogLineLayer(LogSink::Json(Mutex::new(writer()))).boxed(),
        _ => {
            let text_layer = tracing_subscriber::fmt::layer().with_writer(writer());
            text_layer.with_ansi(io::stderr().is_terminal()).boxed()
        }
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(filter_fn(may_be_logged)))
        .with(filter)
        .try_init()?;
    if let Some(filter) = unread {
        tracing::warn!(
            "{FILTER} is {filter:?}, which is not a filter, so it is ignored. Next: for more detail, set it to `debug`"
        );
    }
    Ok(())
}

/// Returns whether an event may be logged. Libraries that handle tokens and pictures may log only warnings.
fn may_be_logged(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("steadyhand") || *metadata.level() <= Level::WARN
}

/// Queue of lines to write. Adding a line never blocks.
#[derive(Clone)]
struct LogQueue {
    queue: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

impl LogQueue {
    fn start(out: impl Write + Send + 'static) -> Self {
        let (queue, lines) = sync_channel(LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        // Without the thread, the queue fills up and lines are dropped, with no other harm.
        let _ = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(out, &lines, &counted));
        Self { queue, dropped }
    }
}

fn write_lines(mut out: impl Write, lines: &Receiver<Vec<u8>>, dropped: &AtomicU64) {
    while let Ok(line) = lines.recv() {
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 && writeln!(out, "({lost} lines of the log were dropped)").is_err() {
            return;
        }
        if out.write_all(&line).is_err() {
            return;
        }
    }
}

impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.queue.try_send(line.to_vec()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogQueue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A stalled output: nothing is written while it is locked.
    struct StalledOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for StalledOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stalled_output_blocks_nobody_and_every_line_is_counted() {
        const LINES: u64 = 10 * LINES_MAX as u64;
        let read = Arc::new(Mutex::new(Vec::new()));
        let mut lines = LogQueue::start(StalledOutput(Arc::clone(&read)));
        let unreported = Arc::clone(&lines.dropped);
        {
            let _stalled = read.lock().unwrap();
            for _ in 0..LINES {
                lines.write_all(b"a line\n").unwrap();
            }
        }
        drop(lines);
        while Arc::strong_count(&read) > 1 {
            std::thread::yield_now();
        }
        let read = String::from_utf8(read.lock().unwrap().clone()).unwrap();
        let (kept, notices): (Vec<_>, Vec<_>) = read.lines().partition(|line| *line == "a line");
        let reported: u64 = notices
            .iter()
            .map(|line| line.split([' ', '(']).nth(1).unwrap())
            .map(|count| count.parse::<u64>().unwrap())
            .sum();
        let dropped = reported + unreported.load(Ordering::Relaxed);
        assert!(dropped > 0, "each of {} lines was kept", kept.len());
        assert_eq!(kept.len() as u64 + dropped, LINES);
    }
}
