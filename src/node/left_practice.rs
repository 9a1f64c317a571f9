//! The drawing that a simulated arm for practice left half done: its state stays in the temporary folder of its process until
//! another process resumes it, draws something else, or a day has passed.

use std::path::{Path, PathBuf};

use super::open::{own_temporary, users_temporary};
use super::state_folder::holds_emergency_stop;
use base::disk;
use base::file_lock::is_folder_locked;
use job::PastJob;

/// Returns the folder of state in a process's temporary folder.
pub(crate) fn state_in(temporary: &Path) -> PathBuf {
    temporary.join("state")
}

/// Returns the state of the newest simulated arm for practice whose process has ended, if it left a drawing half done.
#[must_use]
pub fn state() -> Option<PathBuf> {
    let (_, newest) = ended_states().into_iter().max()?;
    is_unfinished(&newest).then_some(newest)
}

/// Moves that state to where this process's own is expected. Returns whether there was one.
///
/// # Errors
/// It cannot be moved.
pub fn take_over() -> anyhow::Result<bool> {
    let Some(left) = state() else {
        return Ok(false);
    };
    let own = own_temporary()?;
    disk::private_folder(&own)?;
    std::fs::rename(left, state_in(&own))?;
    Ok(true)
}

/// Removes a process's own state unless it leaves a drawing half done. What others left before is given up for what this one drew.
pub(crate) fn end(temporary: &Path) {
    let state = state_in(temporary);
    if drawings(&state).iter().any(PastJob::has_inked) {
        let left = ended_states().into_iter().map(|(_, left)| left);
        for left in left.filter(|left| *left != state) {
            let _ = std::fs::remove_dir_all(left);
        }
    }
    if !is_unfinished(&state) {
        // It does not have to exist.
        let _ = std::fs::remove_dir_all(state);
    }
}

fn drawings(state: &Path) -> Vec<PastJob> {
    let pasts = job::past_jobs(state).unwrap_or_default().into_iter();
    let pasts = pasts.flatten().filter(|past| past.tool == "stroke");
    pasts.collect()
}

/// Returns whether the last drawing can be resumed. An emergency stop ends a simulated arm for good.
fn is_unfinished(state: &Path) -> bool {
    let drawings = drawings(state);
    drawings.last().is_some_and(PastJob::is_unfinished) && !holds_emergency_stop(state)
}

/// Returns the states of processes that have ended, each with the time of their start in ms.
fn ended_states() -> Vec<(u64, PathBuf)> {
    let users = users_temporary();
    if disk::check_private(&users).is_err() {
        return Vec::new();
    }
    let folders = std::fs::read_dir(&users).into_iter().flatten().flatten();
    let states = folders.filter_map(|folder| {
        let name = folder.file_name().to_string_lossy().into_owned();
        let (_, started_ms) = name.split_once('-')?;
        Some((started_ms.parse().ok()?, state_in(&folder.path())))
    });
    let ended = states.filter(|(_, state)| state.is_dir() && !is_folder_locked(state));
    ended.collect()
}
