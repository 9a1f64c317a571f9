//! A node that lives as long as one command: how it is interrupted and brought to its end.

use std::sync::Arc;

use base::signals::{SignalKind, SignalListener};

use super::{ExitStatus, terminal_output};
use node::parking;
use node::serve::{self, ShutdownRequests};
use permit::ActorRank;
use tools::Node;

/// A second interrupt is an emergency stop, here as in a node that serves.
pub(super) fn escalate_second_interrupt(node: &Arc<Node>) -> anyhow::Result<()> {
    let mut interrupt = SignalListener::listen(SignalKind::Interrupt)?;
    let node = Arc::clone(node);
    base::task::spawn(async move {
        interrupt.recv().await;
        interrupt.recv().await;
        node.stop_all(ActorRank::Operator, true);
    });
    Ok(())
}

/// Brings a node of one call to its end: its arm is parked where the process was told to end, and
/// all that was under way is in its journal.
pub(super) async fn end(node: &Arc<Node>, leaves: Option<&ShutdownRequests>) -> ExitStatus {
    let ended = match leaves {
        Some(leaves) => serve::end(node, Some(leaves)).await,
        None => ExitStatus::Done,
    };
    serve::close(node).await;
    node.note_end(format!("{ended:?}"));
    for seat in node.arms.iter().filter(|seat| parking::stays_up(seat)) {
        let name = &seat.name;
        terminal_output::note(&format!(
            "{name}: the arm is still energised where it stands"
        ));
    }
    ended
}
