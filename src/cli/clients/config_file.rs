//! A client's JSON file with one server more: all else in it stays, and the file as it was is kept beside it.

use std::path::{Path, PathBuf};

use crate::files::{self, folder_of};
use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

/// A larger file is no client's list of servers.
const BYTES_MAX: u64 = 1 << 20;

/// A client's file, if it is there.
pub(super) struct ConfigFile {
    path: PathBuf,
    /// Its text; none where there is no file yet.
    text: Option<String>,
}

/// The change that one more server makes to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigChange {
    /// Nothing: it is there as it should be.
    None,
    /// There was none of that name.
    Added,
    /// There was another of that name.
    Replaced,
}

impl ConfigFile {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
            Ok(found) if found.len() > BYTES_MAX => bail!(
                "{} has {} bytes; at most {BYTES_MAX} are read",
                path.display(),
                found.len()
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
        let mut all = self.parsed()?;
        let servers = all.entry(key).or_insert_with(|| json!({}));
        let Some(servers) = servers.as_object_mut() else {
            bail!(
                "`{key}` in {} is no object; mend it first",
                self.path.display()
            );
        };
        let change = match servers.get(name) {
            Some(there) if *there == entry => ConfigChange::None,
            Some(_) => ConfigChange::Replaced,
            None => ConfigChange::Added,
        };
        servers.insert(name.to_owned(), entry);
        Ok((format!("{:#}\n", Value::Object(all)), change))
    }

    fn parsed(&self) -> anyhow::Result<Map<String, Value>> {
        let text = self.text.as_deref().unwrap_or_default();
        if text.trim().is_empty() {
            return Ok(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(all)) => Ok(all),
            Ok(_) => bail!("{} is no JSON object", self.path.display()),
            Err(error) => bail!(
                "{} is not plain JSON ({error}); comments would be lost, so leave --write out and add what is printed by hand",
                self.path.display()
            ),
        }
    }

    /// Writes the file; what was there is kept with `.bak` after its name.
    pub(super) fn write(&self, text: &str) -> anyhow::Result<()> {
        let cannot = |what: &Path| format!("cannot write {}", what.display());
        if let Some(before) = &self.text {
            let mut kept = self.path.clone().into_os_string();
            kept.push(".bak");
            let kept = PathBuf::from(kept);
            base::disk::put(&kept, before).with_context(|| cannot(&kept))?;
        }
        let folder = folder_of(&self.path);
        std::fs::create_dir_all(folder).with_context(|| cannot(folder))?;
        base::disk::put(&self.path, text).with_context(|| cannot(&self.path))
    }
}
