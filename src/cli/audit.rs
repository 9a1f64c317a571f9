//! `audit verify`: whether an audit log is as its node wrote it. Needs no node.

use std::path::Path;

use anyhow::Context;

use super::{Exit, show};

pub(super) fn verify(file: &Path, key: Option<&str>) -> anyhow::Result<Exit> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = String::from_utf8_lossy(&text);
    match job::verify(&text, key) {
        Ok(verified) => {
            show::line(&format!(
                "{} records hold, signed by {}; the last one's hash is {}",
                verified.records, verified.key, verified.last
            ));
            Ok(Exit::Done)
        }
        Err(error) => {
            show::line(&format!("{}: {error}", file.display()));
            Ok(Exit::Refused)
        }
    }
}
