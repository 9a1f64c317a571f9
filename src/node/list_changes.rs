//! Tells clients that lists have changed: scenes come and go on disk, jobs begin.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::broadcast;

use catalogue::KnownNames;
use mcp::ListChange;
use tools::Node;

/// Interval between checks of the scenes' folder.
const LOOK: Duration = Duration::from_secs(1);

/// Notices that a slow client may be behind; what it missed, it learns with the next.
const BEHIND_MAX: usize = 16;

/// Files of a folder that are looked at.
const FILES_MAX: usize = 4096;

/// Size and time of change of every file, by path.
type FileStamps = BTreeMap<String, (u64, Option<SystemTime>)>;

/// State of the lists at the last check.
struct WatchedLists {
    files: FileStamps,
    here: KnownNames,
    jobs: Vec<String>,
}

/// Watches a node for as long as it lives, and returns the sender of its changes.
pub(crate) fn watch(node: &Arc<Node>) -> broadcast::Sender<ListChange> {
    let changes = broadcast::Sender::new(BEHIND_MAX);
    let watched = WatchedLists {
        files: seen(node),
        here: node.all_names(),
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
        // As long as a timer's time; nothing hangs on its grain.
        base::task::pause(LOOK).await;
        let Some(node) = node.upgrade() else {
            return;
        };
        for change in watched.check(&node) {
            // Nobody listens, or somebody does: both are well.
            let _ = changes.send(change);
        }
    }
}

impl WatchedLists {
    /// Returns the changes since the last check. Reads scenes again only if a file has changed.
    fn check(&mut self, node: &Node) -> Vec<ListChange> {
        let mut changes = Vec::new();
        let files = seen(node);
        if files != self.files {
            self.files = files;
            let here = node.all_names();
            if here != self.here {
                self.here = here;
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

/// Every file that says which names there are.
fn seen(node: &Node) -> FileStamps {
    let Some(folder) = node.scenes.folder() else {
        return FileStamps::new();
    };
    let files = ["", "overlays"].map(|inner| files(&folder.join(inner)));
    files.into_iter().flatten().take(FILES_MAX).collect()
}

fn files(folder: &Path) -> Vec<(String, (u64, Option<SystemTime>))> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let stamped = entries.take(FILES_MAX).filter_map(|entry| {
        let about = entry.metadata().ok()?;
        let path = entry.path().display().to_string();
        Some((path, (about.len(), about.modified().ok())))
    });
    stamped.collect()
}
