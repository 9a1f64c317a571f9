//! Whole files put into their place, and whose they are: what root writes for a node is its node's.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::file_access::{self, is_of_another_user, is_root, mode};

/// Puts a text into a file's place, so that a reader, or the loss of power, finds the old or the new.
/// Who may read the old one may read the new.
///
/// # Errors
/// When it cannot be written; the old one is as it was.
pub fn put(path: &Path, text: &str) -> io::Result<()> {
    let old = std::fs::metadata(path).ok();
    put_as(path, text, 0o666, |new| {
        given_by_root(new, path)?;
        old.map_or(Ok(()), |old| new.set_permissions(old.permissions()))
    })
}

/// Writes like [`put`], but readable only by its folder's owner. Without root, a caller that does not own the folder
/// gets an error: otherwise it would store a secret that the folder's owner cannot read.
///
/// # Errors
/// If it cannot be written or given away; the old one is as it was.
pub fn put_secret(path: &Path, text: &str) -> io::Result<()> {
    put_as(path, text, 0o600, |new| belongs_to_folder(new, path))
}

/// Makes a folder of this user's alone (mode 0700) in one that others may write to, or takes the one that is there.
///
/// # Errors
/// It cannot be made; or what is there is a link, another user's, or others may write to it and could have put anything there.
pub fn private_folder(folder: &Path) -> io::Result<()> {
    match file_access::make_folder(folder, 0o700) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => check_private(folder)?,
    }
    // Others could not write to it, and from now on they cannot read it either.
    file_access::set_mode(folder, 0o700)
}

/// Refuses a folder in one that others may write to, unless it is this user's.
///
/// # Errors
/// It is a link, another user's, or others may write to it.
pub fn check_private(folder: &Path) -> io::Result<()> {
    // Of the name itself: a link may lead to what looks right and be led elsewhere in the next moment.
    let found = std::fs::symlink_metadata(folder)?;
    let why = if found.is_symlink() {
        "is a link"
    } else if !found.is_dir() {
        "is no folder"
    } else if is_of_another_user(&found) {
        "belongs to another user"
    } else if mode(&found) & 0o022 != 0 {
        "may be written to by other users"
    } else {
        return Ok(());
    };
    let why = format!(
        "{} {why}, where it must be this user's alone: remove it, or name folders with --state and --output and the socket with --socket",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

fn put_as(
    path: &Path,
    text: &str,
    mode: u32,
    made: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let put = draft(&new, text, mode, made).and_then(|()| std::fs::rename(&new, path));
    if put.is_err() {
        // Half of a text is of no use to anybody.
        let _ = std::fs::remove_file(&new);
    }
    put?;
    // The folder has the new name on the disk, too.
    file_access::sync_folder(&folder_of(path))
}

/// A whole text in a file beside its place, on the disk.
fn draft(
    new: &Path,
    text: &str,
    mode: u32,
    made: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    // Whatever lies there, a link of somebody else's too, is not written through.
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut out = file_access::with_mode(&mut options, mode).open(new)?;
    made(&out)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()
}

/// Opens a file for writing, and creates it if it does not exist; its content stays.
///
/// # Errors
/// If it cannot be opened, created or given away.
pub fn touch(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false);
    let file = options.open(path)?;
    given_by_root(&file, path)?;
    Ok(file)
}

/// Makes a folder and those above it; each belongs to whom the one above belongs to.
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
            belongs_to_folder(&File::open(folder)?, folder)?;
        }
    }
    Ok(())
}

fn belongs_to_folder(file: &File, path: &Path) -> io::Result<()> {
    file_access::give_to_owner_of(&folder_of(path), file)
}

/// The same where root writes; anybody else writes what is their own, into folders that they share too.
fn given_by_root(file: &File, path: &Path) -> io::Result<()> {
    match is_root() {
        true => belongs_to_folder(file, path),
        false => Ok(()),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent();
    let named = folder.filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new(".")).to_owned()
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
    fn what_root_writes_belongs_to_whom_the_folder_belongs() {
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
            let about = std::fs::metadata(outer.path().join(name)).unwrap();
            assert_eq!(about.uid(), owner, "{name}");
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
        let refused = |name: &str, why: &str| {
            let error = private_folder(&path(name)).unwrap_err();
            assert!(error.to_string().contains(why), "{name}: {error}");
            assert!(check_private(&path(name)).is_err(), "{name}");
        };
        private_folder(&path("new")).unwrap();
        private_folder(&path("new")).unwrap();
        assert_eq!(mode_of(&path("new")), 0o700);
        std::os::unix::fs::symlink(path("new"), path("link")).unwrap();
        refused("link", "is a link");
        std::os::unix::fs::symlink(path("nothing"), path("dangling")).unwrap();
        refused("dangling", "is a link");
        assert!(!path("nothing").exists());
        put(&path("file"), "").unwrap();
        refused("file", "is no folder");
        for (name, mode) in [("open", 0o777), ("group", 0o770), ("readable", 0o755)] {
            std::fs::create_dir(path(name)).unwrap();
            std::fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
        }
        refused("open", "may be written to by other users");
        refused("group", "may be written to by other users");
        private_folder(&path("readable")).unwrap();
        assert_eq!(mode_of(&path("readable")), 0o700);
        if geteuid().is_root() {
            std::fs::create_dir(path("theirs")).unwrap();
            std::os::unix::fs::chown(path("theirs"), Some(12_345), None).unwrap();
            refused("theirs", "belongs to another user");
        }
    }

    fn mode_of(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_secret_is_its_owners_alone_and_another_file_stays_as_open_as_it_was() {
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
    fn what_cannot_be_put_leaves_the_old_one_and_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let (full, draft) = (folder.path().join("full"), folder.path().join("full.new"));
        std::fs::create_dir_all(full.join("inside")).unwrap();
        assert!(put(&full, "new").is_err() && put_secret(&full, "new").is_err());
        assert!(full.join("inside").is_dir() && !draft.exists());
    }

    #[test]
    fn nobody_is_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let [file, other] = ["file", "other"].map(|name| folder.path().join(name));
        std::fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("file.new")).unwrap();
        put(&file, "mine").unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    }
}
