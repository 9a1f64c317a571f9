//! The log, on standard error, from a thread of its own: whoever reads it slowly, or not at all,
//! keeps no other thread waiting. What does not fit is dropped and counted.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that wait to be read.
const LINES_MAX: usize = 1024;

/// Logs go to standard error: standard output belongs to MCP and to results.
pub(super) fn to_stderr(quiet: bool) {
    let level = if quiet { "error" } else { "info" };
    let filter = EnvFilter::try_from_env("STEADYHAND_LOG")
        .unwrap_or_else(|_| EnvFilter::new(format!("{level},rmcp=error")));
    let set = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(Lines::start(io::stderr()))
        .with_ansi(io::stderr().is_terminal())
        .try_init();
    if let Err(error) = set {
        super::show::note(&format!("the log cannot be set up: {error}"));
    }
}

/// Where lines are put; never waits.
#[derive(Clone)]
struct Lines {
    queue: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

impl Lines {
    fn start(out: impl Write + Send + 'static) -> Self {
        let (queue, lines) = sync_channel(LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        // Without the thread the queue fills and lines are dropped: nothing else is lost.
        let _ = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(out, &lines, &counted));
        Self { queue, dropped }
    }
}

fn write(mut out: impl Write, lines: &Receiver<Vec<u8>>, dropped: &AtomicU64) {
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

impl Write for Lines {
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

impl<'a> MakeWriter<'a> for Lines {
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

    /// A reader that has gone to sleep: nothing is written while it is locked.
    struct Asleep(Arc<Mutex<Vec<u8>>>);

    impl Write for Asleep {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_sleeps_keeps_nobody_waiting() {
        let read = Arc::new(Mutex::new(Vec::new()));
        let mut lines = Lines::start(Asleep(Arc::clone(&read)));
        {
            let _asleep = read.lock().unwrap();
            for _ in 0..10 * LINES_MAX {
                lines.write_all(b"a line\n").unwrap();
            }
        }
        let dropped = lines.dropped.load(Ordering::Relaxed);
        assert!(dropped > 0, "{dropped} were dropped");
    }
}
