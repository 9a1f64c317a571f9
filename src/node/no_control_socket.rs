//! The control socket on systems where operators have none.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;

use super::open::users_temporary;
use super::operator_verb::{OperatorVerb, VerbReply};
use base::disk;
use tools::Node;

const REFUSAL: &str = "this system has no control socket (only Linux and macOS have one). Next: draw, plan or practise in a single command, or serve a planner on standard input and output";

/// An open control socket: there is none on this system.
pub enum ControlListener {}

/// A socket that systemd opened: there is none on this system.
pub type AdoptedSocket = Infallible;

/// Folder for the control sockets of services; always empty on this system.
pub(super) const SERVICE_FOLDER: &str = "steadyhand";

/// Never called.
pub fn adopt(listener: AdoptedSocket) -> anyhow::Result<ControlListener> {
    match listener {}
}

/// Returns the folder in which sockets would be.
pub fn folder() -> PathBuf {
    users_temporary()
}

/// Returns the folders in which sockets would be.
pub(super) fn folders() -> Vec<PathBuf> {
    vec![folder()]
}

/// Returns whether the environment names a folder for sockets.
pub(super) const fn has_own_folder() -> bool {
    false
}

/// Refuses.
pub fn open(_path: Option<&Path>, _node: &str) -> anyhow::Result<ControlListener> {
    bail!(REFUSAL)
}

pub(super) fn check_owner(folder: &Path) -> anyhow::Result<()> {
    Ok(disk::check_private(folder)?)
}

pub(super) const fn is_answered(_path: &Path) -> bool {
    false
}

/// Never called.
pub async fn serve(control: &ControlListener, _node: &Arc<Node>) -> ! {
    match *control {}
}

/// Refuses.
pub async fn ask(_path: &Path, _verb: &OperatorVerb) -> anyhow::Result<VerbReply> {
    bail!(REFUSAL)
}
