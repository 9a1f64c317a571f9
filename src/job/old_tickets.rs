//! Queues' drawings whose jobs are no longer kept: one line for each, so that none of them is drawn again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use base::file_access::{sync_folder, with_mode};
use base::plain_file;

/// Name of the file, beside the jobs.
pub(super) const FILE: &str = "old-tickets";

/// Stage in the line of a drawing that is on its sheet, and of one that may be there in part.
const DRAWN: &str = "drawn";
const LEFT: &str = "left";

/// A queue's drawing whose job is no longer kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldTicket {
    /// The batch and the drawing's number.
    pub ticket: String,
    /// The job that drew it.
    pub job: String,
    /// True if all of it is on the sheet.
    pub is_drawn: bool,
}

/// All drawings of which the jobs are no longer kept, and their file.
#[derive(Debug)]
pub(super) struct OldTickets {
    file: File,
    /// Number of bytes in complete lines.
    bytes: u64,
    by_ticket: BTreeMap<String, OldTicket>,
}

impl OldTickets {
    /// Opens the file in a folder, creating it if need be. A last line that was cut short belongs to a job that is still kept.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let mut file = with_mode(&mut options, 0o600).open(folder.join(FILE))?;
        sync_folder(folder)?;
        let read = plain_file::read_bounded(&mut file, plain_file::BYTES_MAX);
        let (bytes, by_ticket) = read
            .and_then(plain_file::into_text)
            .and_then(|text| parse(&text))
            .map_err(|error| damaged(&error))?;
        Ok(Self {
            file,
            bytes,
            by_ticket,
        })
    }

    /// Remembers a drawing; it is on the disk afterwards.
    pub(super) fn remember(&mut self, ticket: OldTicket) -> io::Result<()> {
        let line = ticket.line();
        // Cut what a failed write has left.
        self.file.set_len(self.bytes)?;
        self.file.seek(SeekFrom::Start(self.bytes))?;
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.bytes += line.len() as u64;
        self.by_ticket.insert(ticket.ticket.clone(), ticket);
        Ok(())
    }

    /// Returns the drawings of a batch.
    pub(super) fn of_batch(&self, batch: &str) -> Vec<OldTicket> {
        let prefix = format!("{batch}/");
        self.by_ticket
            .range(prefix.clone()..)
            .take_while(|(ticket, _)| ticket.starts_with(&prefix))
            .map(|(_, old)| old.clone())
            .collect()
    }

    /// Returns whether a drawing is among them.
    pub(super) fn has(&self, ticket: &str) -> bool {
        self.by_ticket.contains_key(ticket)
    }
}

/// Checks the file in a folder, if it is there, without changing anything.
pub(super) fn check(folder: &Path) -> io::Result<()> {
    match plain_file::read_text(folder.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        text => text
            .and_then(|text| parse(&text))
            .map(drop)
            .map_err(|error| damaged(&error)),
    }
}

/// Says of a file that cannot be read what it is for.
fn damaged(error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!(
            "{error}. This file stops queues from repeating a drawing whose job was removed. Next: restore a copy, or move this file away once those queues have ended"
        ),
    )
}

/// Returns the number of bytes in complete lines, and their drawings.
fn parse(text: &str) -> io::Result<(u64, BTreeMap<String, OldTicket>)> {
    let (mut bytes, mut by_ticket) = (0, BTreeMap::new());
    for line in text.split_inclusive('\n') {
        let Some(line) = line.strip_suffix('\n') else {
            break;
        };
        let ticket = OldTicket::read(line)
            .ok_or_else(|| io::Error::other(format!("{line:?} is not a drawing")))?;
        bytes += line.len() as u64 + 1;
        by_ticket.insert(ticket.ticket.clone(), ticket);
    }
    Ok((bytes, by_ticket))
}

impl OldTicket {
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let (ticket, job, stage) = (fields.next()?, fields.next()?, fields.next()?);
        let is_valid = [DRAWN, LEFT].contains(&stage) && fields.next().is_none();
        is_valid.then(|| Self {
            ticket: ticket.to_owned(),
            job: job.to_owned(),
            is_drawn: stage == DRAWN,
        })
    }

    fn line(&self) -> String {
        let stage = if self.is_drawn { DRAWN } else { LEFT };
        format!("{} {} {stage}\n", self.ticket, self.job)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn ticket(drawing: u32, is_drawn: bool) -> OldTicket {
        OldTicket {
            ticket: format!("5f2c/{drawing}"),
            job: format!("job-{drawing}"),
            is_drawn,
        }
    }

    #[test]
    fn remembered_drawings_survive_a_restart_and_a_line_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let mut old = OldTickets::open(folder.path()).unwrap();
        old.remember(ticket(1, true)).unwrap();
        old.remember(ticket(2, false)).unwrap();
        let path = folder.path().join(FILE);
        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(b"5f2c/3 job-").unwrap();
        let mut old = OldTickets::open(folder.path()).unwrap();
        assert_eq!(old.of_batch("5f2c"), [ticket(1, true), ticket(2, false)]);
        assert!(old.has("5f2c/2") && !old.has("5f2c/3") && old.of_batch("5f").is_empty());
        old.remember(ticket(3, true)).unwrap();
        assert_eq!(
            OldTickets::open(folder.path())
                .unwrap()
                .of_batch("5f2c")
                .len(),
            3
        );
        for text in [&b"5f2c/1 job-1 perhaps\n"[..], b"\xff\n"] {
            std::fs::write(&path, text).unwrap();
            let errors = [
                OldTickets::open(folder.path()).unwrap_err(),
                check(folder.path()).unwrap_err(),
            ];
            for error in errors.map(|error| error.to_string()) {
                assert!(error.contains("restore a copy"), "{error}");
            }
        }
    }
}
