//! Structured log lines: one JSON object a line, or a datagram for the journal.

use std::fmt::Debug;
use std::io::Write;
use std::sync::Mutex;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::journal_socket::JournalSocket;
use base::clock::calendar_ms;
use base::lock::MutexExt;
use base::wording::cut;

/// Longer values are truncated: people read the log, and it holds no pictures.
const VALUE_CHARS_MAX: usize = 2_000;

/// Destination of the lines.
pub(crate) enum LogSink<W> {
    /// One JSON object a line.
    Json(Mutex<W>),
    /// Fields for the journal.
    Journal(JournalSocket),
}

/// Turns events, with the fields of the calls in which they happen, into lines.
pub(crate) struct LogLineLayer<W>(pub(super) LogSink<W>);

/// The fields of one call, kept with its span.
struct SpanFields(LogFieldVisitor);

#[derive(Default)]
struct LogFieldVisitor(Map<String, Value>);

impl LogFieldVisitor {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }

    fn text(&mut self, field: &Field, text: &str) {
        self.put(field, cut(text, VALUE_CHARS_MAX).into());
    }
}

impl Visit for LogFieldVisitor {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
    }
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, &format!("{value:?}"));
    }
}

impl<S, W> Layer<S> for LogLineLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = LogFieldVisitor::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(SpanFields(fields));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(SpanFields(fields)) = span.extensions_mut().get_mut::<SpanFields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = LogFieldVisitor::default();
        let scope = context.event_scope(event);
        for span in scope.into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(SpanFields(span_fields)) = span.extensions().get::<SpanFields>() {
                fields.0.extend(span_fields.0.clone());
            }
        }
        event.record(&mut fields);
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        match &self.0 {
            LogSink::Json(out) => {
                let mut line = json_line(level, target, fields.0).into_bytes();
                line.push(b'\n');
                let mut out = out.locked();
                // A log that cannot be written does not stop the node.
                let _ = out.write_all(&line);
            }
            LogSink::Journal(socket) => {
                let _ = socket.send(&datagram(level, target, &fields.0));
            }
        }
    }
}

fn json_line(level: Level, target: &str, fields: Map<String, Value>) -> String {
    let head = [
        ("time_ms", Value::from(calendar_ms())),
        ("level", level.as_str().to_lowercase().into()),
        ("target", target.into()),
    ];
    let head = head.map(|(key, value)| (key.to_owned(), value));
    let line: Map<String, Value> = head.into_iter().chain(fields).collect();
    Value::Object(line).to_string()
}

/// Returns the fields in the journal's native format: the name, the length if the text has several lines, and the text.
fn datagram(level: Level, target: &str, fields: &Map<String, Value>) -> Vec<u8> {
    let priority = match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        _ => "7",
    };
    let mut out = Vec::new();
    put(&mut out, "PRIORITY", priority);
    put(&mut out, "SYSLOG_IDENTIFIER", "steadyhand");
    put(&mut out, "TARGET", target);
    for (name, value) in fields {
        let text = value.as_str();
        let text = text.map_or_else(|| value.to_string(), str::to_owned);
        match name.as_str() {
            "message" => put(&mut out, "MESSAGE", &text),
            name => put(&mut out, &journal_name(name), &text),
        }
    }
    out
}

/// Returns a field's name in the journal, which allows capital letters, digits and underscores.
fn journal_name(field: &str) -> String {
    let upper = field.to_ascii_uppercase();
    let name = upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("STEADYHAND_{name}")
}

fn put(out: &mut Vec<u8>, name: &str, text: &str) {
    out.extend(name.as_bytes());
    if text.contains('\n') {
        out.push(b'\n');
        out.extend((text.len() as u64).to_le_bytes());
    } else {
        out.push(b'=');
    }
    out.extend(text.as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn log_an_event() {
        let call = tracing::info_span!("call", client = "somebody", job = tracing::field::Empty);
        call.record("job", "job-7");
        let _entered = call.enter();
        tracing::warn!(arm = "left", "two\nlines");
    }

    #[test]
    fn a_line_has_the_fields_of_its_call() {
        let buffer = SharedBuffer::default();
        let lines = LogLineLayer(LogSink::Json(Mutex::new(buffer.clone())));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), log_an_event);
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        for (key, value) in [
            ("level", "warn"),
            ("message", "two\nlines"),
            ("client", "somebody"),
            ("job", "job-7"),
            ("arm", "left"),
        ] {
            assert_eq!(line.get(key).unwrap(), value, "{line}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_journal_gets_fields_and_lines_stay_in_their_text() {
        let (ours, theirs) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let lines = LogLineLayer(LogSink::<SharedBuffer>::Journal(JournalSocket::of(ours)));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), log_an_event);
        let mut bytes = [0_u8; 4096];
        let length = theirs.recv(&mut bytes).unwrap();
        let received = bytes.get(..length).unwrap();
        let has = |part: &[u8]| received.windows(part.len()).any(|window| window == part);
        assert!(has(b"PRIORITY=4\n"));
        assert!(has(b"STEADYHAND_JOB=job-7\n"));
        assert!(has(b"STEADYHAND_CLIENT=somebody\n"));
        assert!(has(b"MESSAGE\n\x09\0\0\0\0\0\0\0two\nlines\n"));
    }
}
