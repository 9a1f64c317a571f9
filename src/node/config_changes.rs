//! Records changes to a node's configuration in the audit log, including changes made while the node did not run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::NodeOptions;
use base::disk;
use base::file_access::FileStamp;
use base::plain_file;
use caller::TokenStore;
use tools::Node;

/// Interval at which a running node checks its configuration.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of files of the scenes' folder that are watched, and depth of nested folders.
const FILES_MAX: usize = 2_000;
const DEPTH_MAX: usize = 4;

/// File with the last configuration's fingerprint, in the node's state folder.
const FINGERPRINT_FILE: &str = "configuration.json";

/// The configuration at one moment: a hash of each file, and the permissions of each token.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
struct ConfigFingerprint {
    files: BTreeMap<PathBuf, String>,
    tokens: BTreeMap<String, String>,
}

/// Watches the configuration of a node and records changes in its audit log.
pub struct ConfigWatcher {
    node: Weak<Node>,
    state: PathBuf,
    file: Option<PathBuf>,
    scenes: Option<PathBuf>,
    last: ConfigFingerprint,
    /// Sizes and times of the same files, compared before any file is read.
    stamps: BTreeMap<PathBuf, FileStamp>,
}

impl ConfigWatcher {
    /// Creates a watcher, and records what has changed since the last process with this state folder.
    pub fn since_last(node: &Arc<Node>, args: &NodeOptions) -> Self {
        let stored = plain_file::read(node.state.join(FINGERPRINT_FILE)).ok();
        let previous =
            stored.and_then(|bytes| serde_json::from_slice::<ConfigFingerprint>(&bytes).ok());
        let mut watcher = Self {
            node: Arc::downgrade(node),
            state: node.state.clone(),
            file: args.config.clone(),
            scenes: args.scenes.clone().or_else(|| node.file.scenes.clone()),
            last: previous.clone().unwrap_or_default(),
            stamps: BTreeMap::new(),
        };
        // A first start is not a change: it only stores the fingerprint.
        let is_first = previous.is_none();
        watcher.check(is_first);
        watcher
    }

    /// Checks the configuration until the process ends.
    pub async fn watch(mut self) {
        let mut interval = tokio::time::interval(CHECK_INTERVAL);
        loop {
            interval.tick().await;
            let checking = tokio::task::spawn_blocking(move || {
                self.check(false);
                self
            });
            match checking.await {
                Ok(watcher) => self = watcher,
                Err(_) => {
                    return tracing::error!("changes to the configuration are no longer recorded");
                }
            }
        }
    }

    fn check(&mut self, is_first: bool) {
        let stamps = self.stamps();
        if stamps == self.stamps {
            return;
        }
        self.stamps = stamps;
        let files = self.stamps.keys();
        let files = files.filter_map(|path| Some((path.clone(), hash(path)?)));
        let current = ConfigFingerprint {
            files: files.collect(),
            tokens: tokens(&self.state),
        };
        if current == self.last {
            return;
        }
        if let Some(node) = self.node.upgrade().filter(|_| !is_first) {
            for line in differences(&self.last, &current) {
                node.audit.note("configuration", line);
            }
        }
        self.last = current;
        let stored = serde_json::to_string(&self.last).map_err(std::io::Error::from);
        let stored = stored.and_then(|text| disk::put(&self.state.join(FINGERPRINT_FILE), &text));
        if let Err(error) = stored {
            tracing::warn!("the fingerprint of the configuration cannot be stored: {error}");
        }
    }

    fn stamps(&self) -> BTreeMap<PathBuf, FileStamp> {
        let mut files = vec![self.state.join("tokens.toml")];
        files.extend(self.file.clone());
        if let Some(folder) = &self.scenes {
            collect_files(folder, DEPTH_MAX, &mut files);
        }
        let stamped = |path: PathBuf| {
            let stamp = FileStamp::of(&std::fs::metadata(&path).ok()?);
            Some((path, stamp))
        };
        files.into_iter().filter_map(stamped).collect()
    }
}

fn hash(path: &Path) -> Option<String> {
    let bytes = plain_file::read(path).ok()?;
    Some(blake3::hash(&bytes).to_hex().to_string())
}

/// Collects the files of a folder and its subfolders.
fn collect_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect_files(&path, depth - 1, files),
            Ok(kind) if kind.is_file() && files.len() < FILES_MAX => files.push(path),
            _ => {}
        }
    }
}

/// Returns the permissions of each token by its name, without the hashes of secrets.
fn tokens(state: &Path) -> BTreeMap<String, String> {
    let cards = TokenStore::at(state).list().unwrap_or_default();
    let permissions = |card: &caller::TokenCard| {
        format!("{}, {} calls a minute", card.role, card.calls_per_minute)
    };
    let tokens = cards
        .iter()
        .map(|card| (card.name.clone(), permissions(card)));
    tokens.collect()
}

/// Describes each change in one line.
fn differences(before: &ConfigFingerprint, current: &ConfigFingerprint) -> Vec<String> {
    let files = changed(&before.files, &current.files).map(|(path, was, is)| {
        let hash = |one: Option<&String>| one.map_or("none", String::as_str).to_owned();
        let (path, was, is) = (path.display(), hash(was), hash(is));
        format!("file {path}: was {was}, is {is}")
    });
    let tokens = changed(&before.tokens, &current.tokens).map(|(name, was, is)| match (was, is) {
        (None, Some(is)) => format!("token {name:?} was added: {is}"),
        (Some(was), None) => format!("token {name:?} was revoked: it was {was}"),
        (was, is) => format!("token {name:?} was changed from {was:?} to {is:?}"),
    });
    files.chain(tokens).collect()
}

/// A name with its values before and after; `None` if it was absent.
type ConfigChange<'a, K> = (&'a K, Option<&'a String>, Option<&'a String>);

/// Returns the entries that differ.
fn changed<'a, K: Ord>(
    before: &'a BTreeMap<K, String>,
    current: &'a BTreeMap<K, String>,
) -> impl Iterator<Item = ConfigChange<'a, K>> {
    let removed = before.keys().filter(|name| !current.contains_key(name));
    let names = current.keys().chain(removed);
    let entries = names.map(|name| (name, before.get(name), current.get(name)));
    entries.filter(|(_, was, is)| was != is)
}
