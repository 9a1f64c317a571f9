//! Files that are read, whoever named them: plain files only, and a bounded number of bytes.
//!
//! A device has no end, a pipe makes its reader wait, and opening a port can move what is behind it, so none of them is opened.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a file that are read where its reader names no bound of its own.
pub const BYTES_MAX: u64 = 256 << 20;

/// Opens a plain file for reading; never waits for another program.
///
/// # Errors
/// When it is no plain file, or cannot be opened.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    // Asked first, because opening a device can already do something.
    check_plain(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // Another file may have come into its place.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NO_WAIT);
    let file = options.open(path)?;
    check_plain(&file.metadata()?)?;
    Ok(file)
}

/// Flags with which opening a pipe does not wait for its other end.
#[cfg(unix)]
const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

fn check_plain(metadata: &std::fs::Metadata) -> io::Result<()> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a plain file, but a folder, device, pipe or socket",
        )),
    }
}

/// Reads a plain file of at most [`BYTES_MAX`].
///
/// # Errors
/// When it is no plain file, is longer, or cannot be read.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_at_most(path, BYTES_MAX)
}

/// Reads a plain file of at most `bytes_max`.
///
/// # Errors
/// As [`read`].
pub fn read_at_most(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_bounded(open(path)?, bytes_max)
}

/// Reads the first `bytes_max` bytes of a plain file, or all of a shorter one.
///
/// # Errors
/// When it is no plain file, or cannot be read.
pub fn read_start(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads what is left of an open file, a pipe or the standard input, if that is at most `bytes_max`.
///
/// # Errors
/// When it is longer, or cannot be read.
pub fn read_bounded(from: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= bytes_max => Ok(bytes),
        _ => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is too long (at most {bytes_max} bytes)"),
        )),
    }
}

/// Reads a plain file of UTF-8 text of at most [`BYTES_MAX`].
///
/// # Errors
/// As [`read`], and when it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    into_text(read(path)?)
}

/// Returns bytes that were read as text.
///
/// # Errors
/// When they are not UTF-8.
pub fn into_text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| {
        let reason = "it is not UTF-8 text";
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn reads_a_plain_file_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("five");
        std::fs::write(&path, "five\n").unwrap();
        assert_eq!(read_text(&path).unwrap(), "five\n");
        assert_eq!(read_at_most(&path, 5).unwrap().len(), 5);
        let long = read_at_most(&path, 4).unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::FileTooLarge);
        let missing = read(folder.path().join("six")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(
            read_text(&path).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn reads_no_device_pipe_or_folder() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [Path::new("/dev/zero"), &pipe, &link, folder.path()] {
            let refused = read(path).unwrap_err();
            assert_eq!(
                refused.kind(),
                io::ErrorKind::InvalidInput,
                "{}",
                path.display()
            );
        }
        // Files of the kernel have no length before they are read.
        assert!(!read("/proc/self/status").unwrap().is_empty());
    }
}
