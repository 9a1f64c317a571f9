//! Stands in for a fleet's engine in a program that was built without it.

use std::convert::Infallible;
use std::sync::Arc;

use tools::Node;

/// Refuses a node file that names a router, which this program cannot speak to.
///
/// # Errors
/// The file names a router.
pub(super) fn join(node: &Arc<Node>) -> anyhow::Result<Option<Infallible>> {
    if node.file.fleet.zenoh.is_some() {
        anyhow::bail!(
            "the node file has `[fleet.zenoh]`, but this program was built without Zenoh. Next: remove that, or build with the cargo feature `zenoh`"
        );
    }
    Ok(None)
}
