//! The file of one arm's standing orders. It has two records of a fixed length, which are written in turn: a record that a loss of
//! power tears leaves the one before it, and a disk that fills up later has their room already.

use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::standing_orders::StandingOrders;
use base::{disk, plain_file};

/// First line of a record; the digit is the version.
const MAGIC: &str = "steadyhand standing orders 1";

/// Length of a record, padded with spaces.
const RECORD_BYTES: usize = 1024;

/// Orders with the number of their change: a later change has a greater one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberedOrders {
    /// The number.
    pub number: u64,
    /// The orders after that change.
    pub orders: StandingOrders,
}

/// The content of the file.
#[derive(Debug)]
pub(super) enum KeptOrders {
    /// There is no file.
    Missing,
    /// Its newest record, and why it may not be the last one that was written.
    Read(NumberedOrders, Option<String>),
    /// There is something, and no record in it.
    Unreadable(String),
}

impl KeptOrders {
    /// Returns the newest record, if any, and what is wrong with the file.
    pub(super) fn into_parts(self) -> (Option<NumberedOrders>, Option<String>) {
        match self {
            Self::Missing => (None, None),
            Self::Read(change, damage) => (Some(change), damage),
            Self::Unreadable(reason) => (None, Some(reason)),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct OrderFile(PathBuf);

impl OrderFile {
    pub(super) const fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the file's name, for people.
    pub(super) fn name(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns whether the file is there, as a plain file.
    pub(super) fn is_there(&self) -> bool {
        std::fs::symlink_metadata(&self.0).is_ok_and(|metadata| metadata.is_file())
    }

    /// Reads the file.
    pub(super) fn read(&self) -> KeptOrders {
        match self.records() {
            Ok(records) => newest(&records),
            Err(error) if error.kind() == io::ErrorKind::NotFound => KeptOrders::Missing,
            Err(error) => KeptOrders::Unreadable(error.to_string()),
        }
    }

    /// Reads both records as they are.
    fn records(&self) -> io::Result<Vec<u8>> {
        let metadata = std::fs::symlink_metadata(&self.0)?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a plain file"));
        }
        plain_file::read_start(&self.0, 2 * RECORD_BYTES as u64 + 1)
    }

    /// Writes a change over the record before the last one; it is on the disk when this returns. A damaged file is replaced.
    ///
    /// # Errors
    /// The file system's error; the last record is then unchanged.
    pub(super) fn write(&self, change: &NumberedOrders) -> io::Result<()> {
        let text = record(change);
        let is_whole = matches!(self.read(), KeptOrders::Read(_, None));
        if !is_whole {
            let replaced = disk::put_secret(&self.0, &text.repeat(2));
            if replaced.is_ok() || !matches!(self.read(), KeptOrders::Read(..)) {
                return replaced;
            }
        }
        let mut file = OpenOptions::new().write(true).open(&self.0)?;
        file.seek(SeekFrom::Start(change.number % 2 * RECORD_BYTES as u64))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

/// Returns the record of a change.
fn record(change: &NumberedOrders) -> String {
    let body = format!(
        "{MAGIC}\nnumber {}\n{}",
        change.number,
        change.orders.to_lines()
    );
    let text = format!("{body}check {:016x}\n", checksum(&body));
    format!("{text:<RECORD_BYTES$}")
}

fn read_record(bytes: &[u8]) -> Option<NumberedOrders> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (body, check) = text.trim_end().rsplit_once("check ")?;
    if u64::from_str_radix(check, 16).ok()? != checksum(body) {
        return None;
    }
    let mut lines = body.lines();
    let number = lines
        .next()
        .filter(|line| *line == MAGIC)
        .and(lines.next())?;
    Some(NumberedOrders {
        number: number.strip_prefix("number ")?.parse().ok()?,
        orders: StandingOrders::read(lines)?,
    })
}

fn newest(bytes: &[u8]) -> KeptOrders {
    if bytes.len() != 2 * RECORD_BYTES {
        let length = bytes.len();
        return KeptOrders::Unreadable(format!("its length of {length} bytes is wrong"));
    }
    let mut records: Vec<NumberedOrders> =
        bytes.chunks(RECORD_BYTES).filter_map(read_record).collect();
    records.sort_by_key(|record| record.number);
    let is_torn = records.len() < 2;
    match records.pop() {
        Some(newest) => KeptOrders::Read(newest, is_torn.then(|| "a record is damaged".to_owned())),
        None => KeptOrders::Unreadable("its records are damaged".to_owned()),
    }
}

/// Returns the FNV-1a hash of a text: it tells a torn record from a whole one.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
