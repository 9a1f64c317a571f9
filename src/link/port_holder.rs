//! Finds the program that has a port open, for the message to a program that cannot open it.

use base::plain_file;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of programs, and of open files of each, that are examined.
const PROGRAMS_MAX: usize = 20_000;
const FILES_MAX: usize = 4_096;

/// Maximum number of characters shown of a command line.
const COMMAND_CHARS_MAX: usize = 120;

/// Describes the holder of a port by process id and command, as far as this user may see it.
pub(super) fn describe_holder(path: &str) -> String {
    let Some(pid) = lock_owner(path).or_else(|| find_with_open_file(path)) else {
        return "another program (`sudo fuser` names it)".to_owned();
    };
    match command_line(pid) {
        Some(command) => format!("process {pid} (`{command}`)"),
        None => format!("process {pid}"),
    }
}

/// Finds the process that holds a lock on the port, as nodes do, in the kernel's list of locks.
fn lock_owner(path: &str) -> Option<u32> {
    let inode = fs::metadata(path).ok()?.ino();
    let device = fs::metadata(path).ok()?.dev();
    let file_id = format!(
        "{:02x}:{:02x}:{inode}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let locks = plain_file::read_text("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        words.clone().any(|word| word == file_id).then_some(())?;
        let pid = words.nth(4)?.parse().ok()?;
        (pid > 0 && pid != std::process::id()).then_some(pid)
    })
}

/// Finds a process of this user that has the port open, with or without a lock.
fn find_with_open_file(path: &str) -> Option<u32> {
    let port = fs::canonicalize(path).ok()?;
    let programs = fs::read_dir("/proc").ok()?.flatten().take(PROGRAMS_MAX);
    programs
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id())
        .find(|pid| has_open(*pid, &port))
}

fn has_open(pid: u32, port: &Path) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}/fd"));
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .take(FILES_MAX)
        .any(|file| fs::read_link(file.path()).is_ok_and(|target| target == port))
}

fn command_line(pid: u32) -> Option<String> {
    let bytes = plain_file::read(format!("/proc/{pid}/cmdline")).ok()?;
    let line = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let shown: String = line
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(COMMAND_CHARS_MAX)
        .collect();
    (!shown.is_empty()).then_some(shown)
}
