//! Finds and reads the design files that the command line names: opens folders and gathers sets.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::files::folder_of;
use base::plain_file;
use design::DesignCaps;

/// Most files of a folder that are considered.
const DESIGNS_MAX: usize = 100_000;

/// A named design: its file, or the files of its set in order.
pub(super) struct NamedDesign {
    pub(super) path: PathBuf,
    files: Vec<PathBuf>,
}

impl NamedDesign {
    /// Finds a design with all files of its set, whichever of them was named.
    pub(super) fn of(path: &Path) -> Self {
        let set = file_name(path);
        let set = design::set_of(&set);
        let entries = set.and_then(|_| std::fs::read_dir(folder_of(path)).ok());
        let names = entries.into_iter().flatten().take(DESIGNS_MAX).flatten();
        let mut files: Vec<PathBuf> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| design::set_of(name) == set)
            .take(SET_MAX)
            .map(|name| path.with_file_name(name))
            .collect();
        files.sort();
        let path = files.first().cloned().unwrap_or_else(|| path.to_owned());
        if files.is_empty() {
            files.push(path.clone());
        }
        Self { path, files }
    }

    /// Returns the name and the bytes of each of its files.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is too large.
    pub(super) fn read(&self) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let mut bytes_left = DesignCaps::default().bytes_max as u64;
        let files = self.files.iter().map(|path| read(path, &mut bytes_left));
        files.collect()
    }
}

/// Most files of a set.
const SET_MAX: usize = 100;

pub(super) fn file_name(path: &Path) -> String {
    lossy(path.file_name())
}

pub(super) fn stem(path: &Path) -> String {
    lossy(path.file_stem())
}

fn lossy(part: Option<&OsStr>) -> String {
    part.unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns every named design in order, with folders opened and each set once.
pub(super) fn designs(named: &[PathBuf]) -> anyhow::Result<Vec<NamedDesign>> {
    let mut seen_sets = HashSet::new();
    let files = files(named)?;
    let designs = files.iter().map(|path| NamedDesign::of(path));
    Ok(designs
        .filter(|design| design.files.len() == 1 || seen_sets.insert(design.path.clone()))
        .take(DESIGNS_MAX)
        .collect())
}

fn files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in named {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path)
            .with_context(|| format!("cannot read the folder {}", path.display()))?;
        let is_design = |path: &PathBuf| {
            let ending = lossy(path.extension()).to_lowercase();
            design::ENDINGS.contains(&ending.as_str())
        };
        let mut designs_inside: Vec<PathBuf> = entries
            .take(DESIGNS_MAX)
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(is_design)
            .collect();
        designs_inside.sort();
        if designs_inside.is_empty() {
            let (path, endings) = (path.display(), design::ENDINGS.join(", "));
            bail!("the folder {path} has no design. Valid: files that end in {endings}");
        }
        found.extend(designs_inside);
    }
    Ok(found)
}

/// Reads one file of a drawing, whose files together have no more bytes than are left.
fn read(path: &Path, bytes_left: &mut u64) -> anyhow::Result<(String, Vec<u8>)> {
    let failure = || format!("cannot read {}", path.display());
    let bytes = match plain_file::read_at_most(path, *bytes_left) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => bail!(
            "{} is too large (at most {} bytes for a drawing). Next: simplify it",
            path.display(),
            DesignCaps::default().bytes_max
        ),
        read => read.with_context(failure)?,
    };
    *bytes_left -= bytes.len() as u64;
    Ok((file_name(path), bytes))
}
