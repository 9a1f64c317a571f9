//! Changes of files by several processes: one reads, changes and writes after the other.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::clock::NodeClock;

/// Longest wait for another process, which changes one file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The file by which a folder is known as a node's state folder. A node that runs locks the folder itself.
pub const NODE_LOCK: &str = "lock";

/// Interval between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// A lock on the files of a folder against other processes that take it before they change one. It ends when it is dropped, or
/// with the process.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Waits a few seconds until no other process holds the lock of the folder that a file is in.
    ///
    /// # Errors
    /// The folder cannot be opened or locked, or another process keeps the lock.
    pub fn for_change_of(file: &Path) -> io::Result<Self> {
        let folder = file.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let file = lock_file(folder)?;
        match lock_within(&file, LOCK_TIMEOUT) {
            Ok(false) => return Err(busy(folder)),
            // A file system without locks, as of some shares.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            locked => _ = locked?,
        }
        Ok(Self { _file: file })
    }
}

/// Locks a folder itself against other processes that do, waiting while one holds it. `None` where the system cannot.
///
/// # Errors
/// Another process holds the lock until the timeout.
pub fn lock_folder(folder: &Path, timeout: Duration) -> io::Result<Option<File>> {
    let Some(opened) = cfg!(unix).then(|| File::open(folder)).transpose()? else {
        return Ok(None);
    };
    match lock_within(&opened, timeout) {
        Ok(true) => Ok(Some(opened)),
        Ok(false) => Err(busy(folder)),
        // A file system without locks of folders, as of some shares.
        Err(_) => Ok(None),
    }
}

/// Returns whether another process, or another part of this one, has locked a folder itself; the file in it where folders are not
/// opened as files.
#[must_use]
pub fn is_folder_locked(folder: &Path) -> bool {
    let opened = match cfg!(unix) {
        true => File::open(folder),
        false => File::open(folder.join(NODE_LOCK)),
    };
    opened.is_ok_and(|opened| matches!(opened.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Locks a file against other processes, waiting while one holds it; `false` if it is held until the timeout.
///
/// # Errors
/// The file cannot be locked.
pub fn lock_within(file: &File, timeout: Duration) -> io::Result<bool> {
    let clock = NodeClock::real();
    let deadline = clock.now().after(timeout);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if clock.now() < deadline => {
                std::thread::park_timeout(RETRY_INTERVAL);
            }
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn busy(folder: &Path) -> io::Error {
    let text = format!(
        "another process has held the lock on {} for {} s. Next: wait until that process ends, then try again",
        folder.display(),
        LOCK_TIMEOUT.as_secs()
    );
    io::Error::new(io::ErrorKind::WouldBlock, text)
}

/// Opens the folder itself, so that no file is left behind; a file in a node's state folder, and where folders are not opened as
/// files.
fn lock_file(folder: &Path) -> io::Result<File> {
    if cfg!(unix) && !folder.join(NODE_LOCK).exists() {
        return File::open(folder);
    }
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    options.open(folder.join(".steadyhand-lock"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_file_come_one_after_the_other() {
        const THREADS: usize = 8;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("count");
        std::fs::write(&file, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let _lock = FolderLock::for_change_of(&file).unwrap();
                    let count = std::fs::read_to_string(&file).unwrap();
                    let count = count.parse::<usize>().unwrap();
                    std::thread::yield_now();
                    std::fs::write(&file, (count + 1).to_string()).unwrap();
                });
            }
        });
        assert_eq!(std::fs::read_to_string(&file).unwrap(), THREADS.to_string());
        assert!(FolderLock::for_change_of(&folder.path().join("none/file")).is_err());
    }
}
