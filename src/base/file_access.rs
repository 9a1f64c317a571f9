//! Access to files, by modes and owners on Unix. Elsewhere a user's folders are private to that user, and
//! files in them inherit that.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::plain_file;

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};

/// Sets the mode with which these options create a file.
pub fn with_mode(options: &mut OpenOptions, mode: u32) -> &mut OpenOptions {
    #[cfg(unix)]
    options.mode(mode);
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// The variable that names a user's home.
pub const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// Returns the folder that a variable of the XDG base directories names; the specification has a relative path ignored.
#[must_use]
pub fn xdg_folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    folder.filter(|folder| folder.is_absolute())
}

/// Returns the folder in a variable of systemd's; it separates several by colons, and the first is the unit's main one.
#[must_use]
pub fn unit_folder(variable: &str) -> Option<PathBuf> {
    let folders = std::env::var_os(variable)?;
    let first = std::env::split_paths(&folders).next()?;
    (!first.as_os_str().is_empty()).then_some(first)
}

/// Returns `HOME` where it is not the home of this user in the system's list of users: a person gives a program a home of its
/// own to keep it apart. A user who is not in that list has any home.
#[must_use]
pub fn redirected_home() -> Option<PathBuf> {
    let home = xdg_folder("HOME")?;
    let users = plain_file::read_text("/etc/passwd").ok()?;
    let listed = home_in(&users, &user())?;
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    (resolved(&home) != resolved(&listed)).then_some(home)
}

/// Returns the home of a user id in a list of users such as `/etc/passwd`.
fn home_in(users: &str, user: &str) -> Option<PathBuf> {
    let homes = users.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, id, _, _, home, ..] = fields.as_slice() else {
            return None;
        };
        (*id == user).then(|| PathBuf::from(home))
    });
    let mut absolute = homes.filter(|home| home.is_absolute());
    absolute.next()
}

/// Makes a folder with this mode; its parents must exist.
///
/// # Errors
/// When it cannot be made.
pub fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    folder_builder(mode).create(folder)
}

/// Makes a folder and its missing parents, each with this mode; existing ones stay as they are.
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

/// Returns the mode of a file; 0600 on systems without modes.
#[must_use]
pub fn mode(metadata: &Metadata) -> u32 {
    #[cfg(unix)]
    return metadata.mode() & 0o777;
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0o600
    }
}

/// Length and times of a file: a changed file, or another one in its place, has a different stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Inode number and change time; the creation time on systems without them.
    #[cfg(unix)]
    inode: (u64, i64, i64),
    #[cfg(not(unix))]
    created: Option<SystemTime>,
}

impl FileStamp {
    /// Returns the stamp of a file.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: (metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
            #[cfg(not(unix))]
            created: metadata.created().ok(),
        }
    }
}

/// Returns whether a folder belongs to another user, as far as the system tells its owner.
#[must_use]
pub fn is_of_another_user(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    return metadata.uid() != rustix::process::geteuid().as_raw();
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Returns whether a file belongs to root or to the owner of a folder, as far as the system tells owners.
#[must_use]
pub fn has_owner_of(file: &Metadata, folder: &Metadata) -> bool {
    #[cfg(unix)]
    return [0, folder.uid()].contains(&file.uid());
    #[cfg(not(unix))]
    {
        let _ = (file, folder);
        true
    }
}

/// Returns whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    #[cfg(unix)]
    return rustix::process::geteuid().is_root();
    #[cfg(not(unix))]
    false
}

/// Returns the user of this process: its id on Unix, its name elsewhere.
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
/// When the system refuses.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return Ok(rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)?);
    #[cfg(not(unix))]
    match std::fs::metadata(folder)?.permissions().readonly() {
        true => Err(io::ErrorKind::PermissionDenied.into()),
        false => Ok(()),
    }
}

/// Reads bytes at an offset of a file. Its cursor may move.
///
/// # Errors
/// When not all of them can be read.
pub fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return file.read_exact_at(bytes, offset);
    #[cfg(not(unix))]
    {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)
    }
}

/// Gives a file to the owner of its folder: a node that runs as that user could not read it otherwise. Only root may.
///
/// # Errors
/// When it cannot be given away.
pub fn give_to_owner_of(folder: &Path, file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::fs::{Gid, Uid, fchown};
        let (folder, file_metadata) = (std::fs::metadata(folder)?, file.metadata()?);
        if folder.uid() != file_metadata.uid() {
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
    if let Ok(metadata) = std::fs::metadata(folder) {
        // A user who may not change the group leaves it.
        let _ = rustix::fs::fchown(file, None, Some(rustix::fs::Gid::from_raw(metadata.gid())));
    }
    #[cfg(not(unix))]
    let _ = (folder, file);
}

/// Writes the names in a folder to the disk; other systems than Unix do so by themselves.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_home_is_found_by_the_users_id() {
        let users = "root:x:0:0:root:/root:/bin/bash\n# x\nann:x:1000:1000:,,,:/srv/ann:/bin/sh\nbin:x:2:2\n";
        assert_eq!(home_in(users, "1000"), Some(PathBuf::from("/srv/ann")));
        assert_eq!(home_in(users, "0"), Some(PathBuf::from("/root")));
        for unknown in ["100", "2", ""] {
            assert_eq!(home_in(users, unknown), None);
        }
    }
}
