//! Access to files: by modes and owners on Unix. Elsewhere a user's folders are that user's alone already, and
//! what is made in them inherits that.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::time::SystemTime;

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};

/// Sets the mode of a file that these options may make.
pub fn with_mode(options: &mut OpenOptions, mode: u32) -> &mut OpenOptions {
    #[cfg(unix)]
    options.mode(mode);
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// Makes a folder with this mode; those above it exist.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    folder_builder(mode).create(folder)
}

/// Makes a folder and those above it, each with this mode; those that are there stay as they are.
///
/// # Errors
/// When one of them cannot be made.
pub fn make_folders(folder: &Path, mode: u32) -> io::Result<()> {
    folder_builder(mode).recursive(true).create(folder)
}

#[cfg(unix)]
fn folder_builder(mode: u32) -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(mode);
    builder
}

#[cfg(not(unix))]
fn folder_builder(_mode: u32) -> DirBuilder {
    DirBuilder::new()
}

/// Changes the mode of a file or a folder.
///
/// # Errors
/// When it cannot be changed.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    return std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    #[cfg(not(unix))]
    {
        let _ = (path, mode);
        Ok(())
    }
}

/// Returns who may read and write a file; its owner alone where files have no modes.
#[must_use]
pub fn mode(about: &Metadata) -> u32 {
    #[cfg(unix)]
    return about.mode() & 0o777;
    #[cfg(not(unix))]
    {
        let _ = about;
        0o600
    }
}

/// Length and times of a file: another file in its place, or a changed one, has another stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Its number and the time at which anything of it changed; its time of making where files have neither.
    #[cfg(unix)]
    inode: (u64, i64, i64),
    #[cfg(not(unix))]
    made: Option<SystemTime>,
}

impl FileStamp {
    /// Returns the stamp of a file.
    #[must_use]
    pub fn of(about: &Metadata) -> Self {
        Self {
            length: about.len(),
            modified: about.modified().ok(),
            #[cfg(unix)]
            inode: (about.ino(), about.ctime(), about.ctime_nsec()),
            #[cfg(not(unix))]
            made: about.created().ok(),
        }
    }
}

/// Returns whether a folder is another user's, as far as the system says whose it is.
#[must_use]
pub fn is_of_another_user(about: &Metadata) -> bool {
    #[cfg(unix)]
    return about.uid() != rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    {
        let _ = about;
        false
    }
}

/// Returns whether this process may do everything.
#[must_use]
pub fn is_root() -> bool {
    #[cfg(unix)]
    return rustix::process::geteuid().is_root();
    #[cfg(not(unix))]
    false
}

/// Returns the user of this process: its number, or its name where users have none.
#[must_use]
pub fn user() -> String {
    #[cfg(unix)]
    return rustix::process::geteuid().as_raw().to_string();
    #[cfg(not(unix))]
    std::env::var("USERNAME").unwrap_or_default()
}

/// Checks that this user may make files in a folder.
///
/// # Errors
/// When the system says no.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return Ok(rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)?);
    #[cfg(not(unix))]
    match std::fs::metadata(folder)?.permissions().readonly() {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}

/// Reads bytes from a place of a file, and leaves its own place as it was, or moves it.
///
/// # Errors
/// When they cannot all be read.
pub fn read_exact_at(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    #[cfg(unix)]
    return file.read_exact_at(bytes, from);
    #[cfg(not(unix))]
    {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = file;
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(bytes)
    }
}

/// Gives a file to whom its folder belongs to: a node that runs as that user could not read it otherwise. Only root may.
///
/// # Errors
/// When it cannot be given away.
pub fn give_to_owner_of(folder: &Path, file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::fs::{Gid, Uid, fchown};
        let (folder, own) = (std::fs::metadata(folder)?, file.metadata()?);
        if folder.uid() != own.uid() {
            let (user, group) = (Uid::from_raw(folder.uid()), Gid::from_raw(folder.gid()));
            fchown(file, Some(user), Some(group))?;
        }
    }
    #[cfg(not(unix))]
    let _ = (folder, file);
    Ok(())
}

/// Gives a file to its folder's group, as far as this user may.
pub fn share_with_group_of(folder: &Path, file: &File) {
    #[cfg(unix)]
    if let Ok(about) = std::fs::metadata(folder) {
        // Who may not give it away keeps it.
        let _ = rustix::fs::fchown(file, None, Some(rustix::fs::Gid::from_raw(about.gid())));
    }
    #[cfg(not(unix))]
    let _ = (folder, file);
}

/// Has the disk keep the names in a folder; systems without such a call keep them by themselves.
///
/// # Errors
/// When the folder cannot be written.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return File::open(folder)?.sync_all();
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}
