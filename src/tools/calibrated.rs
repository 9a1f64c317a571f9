//! A drawing rests on calibrations: one that went stale is refused, with the command that mends it.

use super::answer::Reply;
use super::{Node, Seat};
use crate::calib::{self, Store};
use crate::scene::Scene;

/// # Errors
/// What is stale, and what to do about it.
pub(super) fn check(node: &Node, seat: &Seat, scene: &Scene) -> Result<(), Box<Reply>> {
    let refused = |why: String| {
        Reply::failed(format!("{why}; nothing moved"))
            .with("code", "stale_calibration")
            .boxed()
    };
    if !is_attached(seat, scene) {
        return Err(refused(format!(
            "the file of arm {} has other zeros than the node attached it with: start the node again",
            scene.arm.file.name
        )));
    }
    let history = Store::of_state(&node.state).history();
    let history = history.map_err(|error| refused(error.to_string()))?;
    calib::stale(&history, scene).map_or(Ok(()), |why| Err(refused(why)))
}

/// Whether the arm counts as the scene's arm does.
fn is_attached(seat: &Seat, scene: &Scene) -> bool {
    let attached = seat.motion.arm();
    scene.arm.servos().eq(attached.servos())
}
