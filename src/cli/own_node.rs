//! Interrupts and ends a node that lives as long as one command.

use std::sync::Arc;

use base::signals::{SignalKind, SignalListener};

use super::{ExitStatus, terminal_output};
use node::parking;
use node::serve::{self, ShutdownRequests};
use permit::ActorRank;
use tools::{Node, StopCause};

/// Makes a second interrupt an emergency stop, as in a serving node.
pub(super) fn escalate_second_interrupt(node: &Arc<Node>) -> anyhow::Result<()> {
    let mut interrupt = SignalListener::listen(SignalKind::Interrupt)?;
    let node = Arc::clone(node);
    base::task::spawn(async move {
        interrupt.recv().await;
        interrupt.recv().await;
        node.stop_all(ActorRank::Operator, true, &StopCause::new("SIGINT"));
    });
    Ok(())
}

/// Ends a node of one call: its arm is parked if the process was told to end, and everything that was under way is in its
/// journal.
pub(super) async fn end(node: &Arc<Node>, shutdown: Option<&ShutdownRequests>) -> ExitStatus {
    let ended = match shutdown {
        Some(shutdown) => serve::end(node, Some(shutdown)).await,
        None => ExitStatus::Done,
    };
    serve::close(node).await;
    node.note_end(format!("{ended:?}"));
    for seat in node.arms.iter().filter(|seat| parking::stays_up(seat)) {
        let torque = parking::torque_text(seat);
        terminal_output::note(&format!("{}: {torque}", seat.name));
    }
    ended
}
