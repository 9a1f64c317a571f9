//! The program that has a port open, for the one that may not have it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Programs and open files that are looked at.
const PROGRAMS_MAX: usize = 20_000;
const FILES_MAX: usize = 4_096;

/// Number of characters of a command line that are shown.
const COMMAND_CHARS_MAX: usize = 120;

/// In words: who holds it, by process id and command, as far as the system lets this user see.
pub(super) fn holder_of(path: &str) -> String {
    let Some(pid) = by_lock(path).or_else(|| by_open_file(path)) else {
        return "another program, which this user may not see; `sudo fuser` names it".to_owned();
    };
    match command(pid) {
        Some(command) => format!("process {pid} (`{command}`)"),
        None => format!("process {pid}"),
    }
}

/// A node locks its port, and the kernel lists locks with their owners.
fn by_lock(path: &str) -> Option<u32> {
    let inode = fs::metadata(path).ok()?.ino();
    let device = fs::metadata(path).ok()?.dev();
    let place = format!(
        "{:02x}:{:02x}:{inode}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        words.clone().any(|word| word == place).then_some(())?;
        let pid = words.nth(4)?.parse().ok()?;
        (pid > 0 && pid != std::process::id()).then_some(pid)
    })
}

/// Another program may lock nothing; this user's own are seen by what they have open.
fn by_open_file(path: &str) -> Option<u32> {
    let wanted = fs::canonicalize(path).ok()?;
    let programs = fs::read_dir("/proc").ok()?.flatten().take(PROGRAMS_MAX);
    programs
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id())
        .find(|pid| has_open(*pid, &wanted))
}

fn has_open(pid: u32, wanted: &Path) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}/fd"));
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .take(FILES_MAX)
        .any(|file| fs::read_link(file.path()).is_ok_and(|target| target == wanted))
}

fn command(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = bytes.split(|byte| *byte == 0);
    let words: Vec<String> = words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let line: String = words.join(" ").trim().to_owned();
    let shown: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(COMMAND_CHARS_MAX)
        .collect();
    (!shown.is_empty()).then_some(shown)
}
