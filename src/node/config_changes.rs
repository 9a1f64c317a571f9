//! Records changes to a node's configuration in the audit log, including changes made while the node did not run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::NodeOptions;
use base::disk;
use base::file_access::FileStamp;
use caller::TokenStore;
use tools::Node;

/// Interval at which a running node checks its configuration.
const LOOK: Duration = Duration::from_secs(1);

/// Files of a scenes' folder that are looked at, and folders in folders.
const FILES_MAX: usize = 2_000;
const DEPTH_MAX: usize = 4;

/// File of the last seen configuration, in the node's state folder.
const SEEN: &str = "configuration.json";

/// The configuration at one moment: a hash a file, and what each token allows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
struct ConfigFingerprint {
    files: BTreeMap<PathBuf, String>,
    tokens: BTreeMap<String, String>,
}

/// Looks at the configuration of a node and notes in its audit log what was changed.
pub struct ConfigWatcher {
    node: Weak<Node>,
    state: PathBuf,
    file: Option<PathBuf>,
    scenes: Option<PathBuf>,
    seen: ConfigFingerprint,
    /// Lengths and times of the same files, compared before any file is read.
    stamps: BTreeMap<PathBuf, FileStamp>,
}

impl ConfigWatcher {
    /// Notes at once what was changed since the last process on this state folder.
    pub fn since_last(node: &Arc<Node>, args: &NodeOptions) -> Self {
        let kept = std::fs::read(node.state.join(SEEN)).ok();
        let known = kept.and_then(|bytes| serde_json::from_slice::<ConfigFingerprint>(&bytes).ok());
        let mut changes = Self {
            node: Arc::downgrade(node),
            state: node.state.clone(),
            file: args.config.clone(),
            scenes: args.scenes.clone().or_else(|| node.file.scenes.clone()),
            seen: known.clone().unwrap_or_default(),
            stamps: BTreeMap::new(),
        };
        // A first start changes nothing: its record says what it begins with.
        let is_first = known.is_none();
        changes.check(is_first);
        changes
    }

    /// Looks until the process ends.
    pub async fn watch(mut self) {
        let mut clock = tokio::time::interval(LOOK);
        loop {
            clock.tick().await;
            let looked = tokio::task::spawn_blocking(move || {
                self.check(false);
                self
            });
            match looked.await {
                Ok(changes) => self = changes,
                Err(_) => {
                    return tracing::error!("changes of the configuration are not noted any more");
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
        let now = ConfigFingerprint {
            files: files.collect(),
            tokens: tokens(&self.state),
        };
        if now == self.seen {
            return;
        }
        if let Some(node) = self.node.upgrade().filter(|_| !is_first) {
            for words in differences(&self.seen, &now) {
                node.audit.note("configuration", words);
            }
        }
        self.seen = now;
        let kept = serde_json::to_string(&self.seen).map_err(std::io::Error::from);
        let kept = kept.and_then(|text| disk::put(&self.state.join(SEEN), &text));
        if let Err(error) = kept {
            tracing::warn!("what the configuration is cannot be kept: {error}");
        }
    }

    fn stamps(&self) -> BTreeMap<PathBuf, FileStamp> {
        let mut files = vec![self.state.join("tokens.toml")];
        files.extend(self.file.clone());
        if let Some(folder) = &self.scenes {
            walk(folder, DEPTH_MAX, &mut files);
        }
        let stamped = |path: PathBuf| {
            let stamp = FileStamp::of(&std::fs::metadata(&path).ok()?);
            Some((path, stamp))
        };
        files.into_iter().filter_map(stamped).collect()
    }
}

fn hash(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(blake3::hash(&bytes).to_hex().to_string())
}

fn walk(folder: &Path, depth: usize, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => walk(&path, depth - 1, into),
            Ok(kind) if kind.is_file() && into.len() < FILES_MAX => into.push(path),
            _ => {}
        }
    }
}

/// Names and roles; the file's hashes of secrets stay where they are.
fn tokens(state: &Path) -> BTreeMap<String, String> {
    let cards = TokenStore::at(state).list().unwrap_or_default();
    let words = |card: &caller::TokenCard| {
        format!("{}, {} calls a minute", card.role, card.calls_per_minute)
    };
    let named = cards.iter().map(|card| (card.name.clone(), words(card)));
    named.collect()
}

/// One line a change.
fn differences(before: &ConfigFingerprint, now: &ConfigFingerprint) -> Vec<String> {
    let files = compared(&before.files, &now.files).map(|(path, was, is)| {
        let hash = |one: Option<&String>| one.map_or("none", String::as_str).to_owned();
        let (path, was, is) = (path.display(), hash(was), hash(is));
        format!("file {path}: was {was}, is {is}")
    });
    let tokens = compared(&before.tokens, &now.tokens).map(|(name, was, is)| match (was, is) {
        (None, Some(is)) => format!("token {name:?} was added: {is}"),
        (Some(was), None) => format!("token {name:?} was revoked: it was {was}"),
        (was, is) => format!("token {name:?} was changed: {was:?}, now {is:?}"),
    });
    files.chain(tokens).collect()
}

/// A name with what it was and is; none where it was not there.
type ConfigChange<'a, K> = (&'a K, Option<&'a String>, Option<&'a String>);

fn compared<'a, K: Ord>(
    before: &'a BTreeMap<K, String>,
    now: &'a BTreeMap<K, String>,
) -> impl Iterator<Item = ConfigChange<'a, K>> {
    let gone = before.keys().filter(|name| !now.contains_key(name));
    let names = now.keys().chain(gone);
    let both = names.map(|name| (name, before.get(name), now.get(name)));
    both.filter(|(_, was, is)| was != is)
}
