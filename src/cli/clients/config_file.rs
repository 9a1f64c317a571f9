//! Adds a server to a client's JSON file: everything else stays, and a backup of the file is kept.

use std::path::{Path, PathBuf};

use crate::files::{self, folder_of};
use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// Largest file that is read.
const BYTES_MAX: u64 = 1 << 20;

/// A client's file, if it is there.
pub(super) struct ConfigFile {
    path: PathBuf,
    /// Its text; `None` if there is no file yet.
    text: Option<String>,
}

/// The change of a file by adding a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigChange {
    /// None: the server is already there with the same entry.
    None,
    /// There was no server of that name.
    Added,
    /// A different server of that name was replaced.
    Replaced,
}

impl ConfigFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
            Ok(metadata) if metadata.len() > BYTES_MAX => bail!(
                "{} has {} bytes (at most {BYTES_MAX})",
                path.display(),
                metadata.len()
            ),
            Ok(_) => Some(files::read(path)?),
        };
        Ok(Self {
            path: path.to_path_buf(),
            text,
        })
    }

    /// Returns the file's text with `entry` as the server `name` under `key`, and what that changes.
    pub(super) fn with_server(
        &self,
        key: &str,
        name: &str,
        entry: Value,
    ) -> anyhow::Result<(String, ConfigChange)> {
        let mut root = self.parsed()?;
        let servers = root.entry(key).or_insert_with(|| json!({}));
        let Some(servers) = servers.as_object_mut() else {
            bail!(
                "`{key}` in {} is not an object. Next: correct it",
                self.path.display()
            );
        };
        let change = match servers.get(name) {
            Some(present) if *present == entry => ConfigChange::None,
            Some(_) => ConfigChange::Replaced,
            None => ConfigChange::Added,
        };
        servers.insert(name.to_owned(), entry);
        Ok((format!("{:#}\n", Value::Object(root)), change))
    }

    fn parsed(&self) -> anyhow::Result<Map<String, Value>> {
        let text = self.text.as_deref().unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(all)) => Ok(all),
            Ok(_) => bail!("{} is not a JSON object", self.path.display()),
            Err(error) => bail!(
                "{} is not plain JSON ({error}), and comments would be lost. Next: leave --write out and add the printed text by hand",
                self.path.display()
            ),
        }
    }

    /// Writes the file, and keeps the old one with `.bak` after its name.
    pub(super) fn write(&self, text: &str) -> anyhow::Result<()> {
        let error_text = |what: &Path| format!("cannot write {}", what.display());
        if let Some(old_text) = &self.text {
            let mut backup = self.path.clone().into_os_string();
            backup.push(".bak");
            let backup = PathBuf::from(backup);
            base::disk::put(&backup, old_text).with_context(|| error_text(&backup))?;
        }
        let folder = folder_of(&self.path);
        std::fs::create_dir_all(folder).with_context(|| error_text(folder))?;
        base::disk::put(&self.path, text).with_context(|| error_text(&self.path))
    }
}
