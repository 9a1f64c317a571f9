//! Notifies clients of changed lists: scenes appear and disappear on disk, jobs begin.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast;

use catalogue::KnownNames;
use mcp::ListChange;
use tools::Node;

/// Interval between checks of the scenes' folder.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of notices that a slow client may lag behind; the next notice covers those that it missed.
const BEHIND_MAX: usize = 16;

/// Number of files of a folder that are watched.
const FILES_MAX: usize = 4096;

/// Size and modification time of every file, by path.
type FileStamps = BTreeMap<String, (u64, Option<SystemTime>)>;

/// State of the lists at the last check.
struct WatchedLists {
    files: FileStamps,
    names: KnownNames,
    jobs: Vec<String>,
}

/// Watches a node for as long as it lives, and returns the sender of its changes.
pub(crate) fn watch(node: &Arc<Node>) -> broadcast::Sender<ListChange> {
    let changes = broadcast::Sender::new(BEHIND_MAX);
    let watched = WatchedLists {
        files: stamps(node),
        names: node.all_names(),
        jobs: node.jobs(),
    };
    base::task::spawn(watch_loop(Arc::downgrade(node), changes.clone(), watched));
    changes
}

async fn watch_loop(
    node: Weak<Node>,
    changes: broadcast::Sender<ListChange>,
    mut watched: WatchedLists,
) {
    loop {
        // The timer's coarse resolution does not matter here.
        base::task::pause(CHECK_INTERVAL).await;
        let Some(node) = node.upgrade() else {
            return;
        };
        // The folder may be on a disk that does not answer, and this thread hears stops.
        let checking = tokio::task::spawn_blocking(move || {
            let found = watched.check(&node);
            (watched, found)
        });
        let Ok((checked, found)) = checking.await else {
            return tracing::error!("clients are no longer told when lists change");
        };
        watched = checked;
        for change in found {
            // Fails if no client listens, which is fine.
            let _ = changes.send(change);
        }
    }
}

impl WatchedLists {
    /// Returns the changes since the last check. Reads scenes again only if a file has changed.
    fn check(&mut self, node: &Node) -> Vec<ListChange> {
        let mut changes = Vec::new();
        let files = stamps(node);
        if files != self.files {
            self.files = files;
            let names = node.all_names();
            if names != self.names {
                self.names = names;
                changes.extend([ListChange::Tools, ListChange::Resources]);
            }
        }
        let jobs = node.jobs();
        if jobs != self.jobs {
            self.jobs = jobs;
            if !changes.contains(&ListChange::Resources) {
                changes.push(ListChange::Resources);
            }
        }
        changes
    }
}

/// Returns the stamps of every file that defines names.
fn stamps(node: &Node) -> FileStamps {
    let Some(folder) = node.scenes.folder() else {
        return FileStamps::new();
    };
    let files = ["", "overlays"].map(|inner| files(&folder.join(inner)));
    files.into_iter().flatten().take(FILES_MAX).collect()
}

fn files(folder: &Path) -> Vec<(String, (u64, Option<SystemTime>))> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let stamped = entries.take(FILES_MAX).filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        let path = entry.path().display().to_string();
        Some((path, (metadata.len(), metadata.modified().ok())))
    });
    stamped.collect()
}
