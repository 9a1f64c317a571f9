//! Records of the audit log that name a job.

use std::io::{self, Read as _, Seek as _, SeekFrom};

use serde::Serialize;
use tools::Node;

use super::job_history::in_words;
use super::page_refusal::PageRefusal;
use base::plain_file;

/// Number of bytes at the end of the log that are searched.
const BYTES_MAX: u64 = 8 << 20;

/// Number of a job's records that are shown; the newest are.
const RECORDS_MAX: usize = 40;

/// A record of the audit log.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct JobAuditRecord {
    number: u64,
    time_ms: u64,
    kind: String,
    text: String,
}

/// Returns the newest records that name a job, the oldest first. Reads a file, so call it on a blocking thread.
pub(super) fn records(node: &Node, id: &str) -> Result<Vec<JobAuditRecord>, PageRefusal> {
    if node.job_record(id).is_none() {
        return Err(PageRefusal::Missing(format!("job {id:?}")));
    }
    node.audit.flush();
    let text = newest_text(node).map_err(|error| PageRefusal::Broken(error.to_string()))?;
    let records = text.lines().filter_map(parse_record);
    let named = records.filter(|record| names_job(&record.text, id));
    let mut records: Vec<JobAuditRecord> = named.collect();
    let first = records.len().saturating_sub(RECORDS_MAX);
    let in_plain_words = |record: JobAuditRecord| JobAuditRecord {
        text: in_words(&record.text),
        ..record
    };
    let newest = records.split_off(first).into_iter();
    Ok(newest.map(in_plain_words).collect())
}

fn newest_text(node: &Node) -> io::Result<String> {
    let mut log = plain_file::open(node.state.join("audit.log"))?;
    let length = log.metadata()?.len();
    log.seek(SeekFrom::Start(length.saturating_sub(BYTES_MAX)))?;
    let bytes = plain_file::read_bounded(log.take(BYTES_MAX), BYTES_MAX)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses a line; `None` for the header, and for a truncated line.
fn parse_record(line: &str) -> Option<JobAuditRecord> {
    let mut fields = line.split('\t');
    Some(JobAuditRecord {
        number: fields.next()?.parse().ok()?,
        time_ms: fields.next()?.parse().ok()?,
        kind: fields.next()?.to_owned(),
        text: fields.next()?.to_owned(),
    })
}

/// Returns whether a text names a job, and not only one whose longer name begins the same.
fn names_job(text: &str, id: &str) -> bool {
    let mut after = text.split(id).skip(1);
    !id.is_empty()
        && after.any(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_a_job_by_its_whole_name() {
        for (text, is_named) in [
            ("{\"job\":\"job-1\",\"tool\":\"stroke\"}", true),
            ("operator: Approve { job: job-1 }", true),
            ("job-12 and job-1x", false),
            ("job-12, then job-1.", true),
            ("nothing", false),
        ] {
            assert_eq!(names_job(text, "job-1"), is_named, "{text}");
        }
        assert!(!names_job("anything", ""));
    }

    #[test]
    fn a_line_is_a_record_and_the_header_is_not() {
        let fields = parse_record("7\t1700000000000\tcall\t{\"job\":\"job-1\"}\tab\tcd");
        let fields = fields.map(|record| (record.number, record.kind, record.text));
        assert_eq!(
            fields,
            Some((7, "call".to_owned(), "{\"job\":\"job-1\"}".to_owned()))
        );
        assert_eq!(parse_record("steadyhand audit 1\tkey\thash"), None);
    }
}
