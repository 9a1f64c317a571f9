//! Replaces files as a whole and sets their owners: a file that root writes for a node belongs to the node's user.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::file_access::{self, is_of_another_user, is_root, mode};

/// Replaces a file's content, so that a reader, or a loss of power, finds either the old or the new content.
/// The file keeps its permissions.
///
/// # Errors
/// When it cannot be written; the old file is then unchanged.
pub fn put(path: &Path, text: &str) -> io::Result<()> {
    let old = std::fs::metadata(path).ok();
    replace(path, text, 0o666, |new| {
        give_if_root(new, path)?;
        old.map_or(Ok(()), |old| new.set_permissions(old.permissions()))
    })
}

/// Writes like [`put`], but readable only by its folder's owner. A caller that neither owns the folder nor is root gets an
/// error: otherwise it would store a secret that the folder's owner cannot read.
///
/// # Errors
/// If it cannot be written or given away; the old file is then unchanged.
pub fn put_secret(path: &Path, text: &str) -> io::Result<()> {
    replace(path, text, 0o600, |new| give_to_folder_owner(new, path))
}

/// Returns what a person does about a file or folder that could not be written.
#[must_use]
pub fn write_advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => "make room on its disk",
        ReadOnlyFilesystem => "name a folder on another disk (this one is read-only)",
        _ => "`chown` it to the node's user, or name another folder",
    }
}

/// Returns what a person does about a file or folder that could not be read.
#[must_use]
pub fn read_advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::{NotFound, PermissionDenied};
    match error.kind() {
        NotFound => "check the file's name and folder",
        PermissionDenied => "give this user the right to read it",
        _ => "save or copy the file again",
    }
}

/// Makes a folder that only this user may use (mode 0700) in one that others may write to, or takes an existing one.
///
/// # Errors
/// It cannot be made; or the path is a link, another user's, or others may write to it and could have put anything there.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    match file_access::make_folder(folder, 0o700) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => check_private(folder)?,
    }
    // Others could not write to it; now they cannot read it either.
    file_access::set_mode(folder, 0o700)
}

/// Refuses a folder in one that others may write to, unless it is this user's.
///
/// # Errors
/// It is a link, another user's, or others may write to it.
pub fn check_private(folder: &Path) -> io::Result<()> {
    // Metadata of the path itself: a link could lead to a good folder now and elsewhere a moment later.
    let metadata = std::fs::symlink_metadata(folder)?;
    let problem = if metadata.is_symlink() {
        "is a link"
    } else if !metadata.is_dir() {
        "is not a folder"
    } else if is_of_another_user(&metadata) {
        "belongs to another user"
    } else if mode(&metadata) & 0o022 != 0 {
        "may be written to by other users"
    } else {
        return Ok(());
    };
    let message = format!(
        "{} {problem}; it must be a folder that only this user can write to. Next: remove it, or name other folders with --state and --output and another socket with --socket",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

fn replace(
    path: &Path,
    text: &str,
    mode: u32,
    set_access: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let draft = path.with_file_name(name);
    let replaced =
        write_draft(&draft, text, mode, set_access).and_then(|()| std::fs::rename(&draft, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    replaced?;
    // The new name must be on the disk, too.
    file_access::sync_folder(&folder_of(path))
}

/// Writes a text to a draft file next to its final place, and waits until it is on the disk.
fn write_draft(
    draft: &Path,
    text: &str,
    mode: u32,
    set_access: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    // An existing file is removed rather than written to: it may be another user's link.
    match std::fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = file_access::with_mode(&mut options, mode).open(draft)?;
    set_access(&file)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Opens a file for writing, and creates it if it does not exist; its content stays.
///
/// # Errors
/// If it cannot be opened, created or given away.
pub fn touch(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false);
    let file = options.open(path)?;
    give_if_root(&file, path)?;
    Ok(file)
}

/// Makes a folder and its missing parents; each belongs to the owner of the folder above it.
///
/// # Errors
/// When one of them cannot be made or given away.
pub fn folder(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
    for folder in missing.into_iter().rev() {
        std::fs::create_dir_all(folder)?;
        if is_root() {
            give_to_folder_owner(&File::open(folder)?, folder)?;
        }
    }
    Ok(())
}

fn give_to_folder_owner(file: &File, path: &Path) -> io::Result<()> {
    file_access::give_to_owner_of(&folder_of(path), file)
}

/// Gives a file to the owner of its folder if root writes it. Other users keep their files, in shared folders too.
fn give_if_root(file: &File, path: &Path) -> io::Result<()> {
    match is_root() {
        true => give_to_folder_owner(file, path),
        false => Ok(()),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(all(test, unix))]
#[expect(clippy::unwrap_used, reason = "a failing test may panic")]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use rustix::process::geteuid;

    use super::*;

    /// Only root can give files away: for other users this test checks nothing.
    #[test]
    fn files_that_root_writes_belong_to_the_folders_owner() {
        let outer = tempfile::tempdir().unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let owner = if is_root {
            12_345
        } else {
            rustix::process::geteuid().as_raw()
        };
        if is_root {
            std::os::unix::fs::chown(outer.path(), Some(owner), Some(owner)).unwrap();
        }
        let inner = outer.path().join("calibration/deep");
        folder(&inner).unwrap();
        put(&inner.join("000001.toml"), "new").unwrap();
        touch(&inner.join("lock")).unwrap();
        for name in [
            "calibration",
            "calibration/deep",
            "calibration/deep/000001.toml",
            "calibration/deep/lock",
        ] {
            let metadata = std::fs::metadata(outer.path().join(name)).unwrap();
            assert_eq!(metadata.uid(), owner, "{name}");
        }
        assert_eq!(
            std::fs::read_to_string(inner.join("000001.toml")).unwrap(),
            "new"
        );
    }

    #[test]
    fn refuses_a_folder_that_is_a_link_or_that_others_made_or_may_write_to() {
        let outer = tempfile::tempdir().unwrap();
        let path = |name: &str| outer.path().join(name);
        let check_refused = |name: &str, problem: &str| {
            let error = private_folder(&path(name)).unwrap_err();
            assert!(error.to_string().contains(problem), "{name}: {error}");
            assert!(check_private(&path(name)).is_err(), "{name}");
        };
        private_folder(&path("new")).unwrap();
        private_folder(&path("new")).unwrap();
        assert_eq!(mode_of(&path("new")), 0o700);
        std::os::unix::fs::symlink(path("new"), path("link")).unwrap();
        check_refused("link", "is a link");
        std::os::unix::fs::symlink(path("nothing"), path("dangling")).unwrap();
        check_refused("dangling", "is a link");
        assert!(!path("nothing").exists());
        put(&path("file"), "").unwrap();
        check_refused("file", "is not a folder");
        for (name, mode) in [("open", 0o777), ("group", 0o770), ("readable", 0o755)] {
            std::fs::create_dir(path(name)).unwrap();
            std::fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        }
        check_refused("open", "may be written to by other users");
        check_refused("group", "may be written to by other users");
        private_folder(&path("readable")).unwrap();
        assert_eq!(mode_of(&path("readable")), 0o700);
        if geteuid().is_root() {
            std::fs::create_dir(path("theirs")).unwrap();
            std::os::unix::fs::chown(path("theirs"), Some(12_345), None).unwrap();
            check_refused("theirs", "belongs to another user");
        }
    }

    fn mode_of(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn only_its_owner_reads_a_secret_and_other_files_keep_their_mode() {
        let folder = tempfile::tempdir().unwrap();
        let [secret, plain] = ["secret", "plain"].map(|name| folder.path().join(name));
        put(&plain, "one").unwrap();
        for mode in [0o640, 0o600] {
            std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(mode)).unwrap();
            put(&plain, "two").unwrap();
            assert_eq!(mode_of(&plain), mode);
        }
        for text in ["a", "b"] {
            put_secret(&secret, text).unwrap();
            assert_eq!(mode_of(&secret), 0o600);
            assert_eq!(std::fs::read_to_string(&secret).unwrap(), text);
        }
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let (full, draft) = (folder.path().join("full"), folder.path().join("full.new"));
        std::fs::create_dir_all(full.join("inside")).unwrap();
        assert!(put(&full, "new").is_err() && put_secret(&full, "new").is_err());
        assert!(full.join("inside").is_dir() && !draft.exists());
    }

    #[test]
    fn does_not_write_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
        std::fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("file.new")).unwrap();
        put(&file, "mine").unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
}
