//! Drawings and pens that another arm of the same name left: the one on a port, where this one is simulated, or the reverse.

use super::resume::title;
use super::{AttachedArm, Node};
use job::PastJob;

/// Reason that no command goes on with a drawing whose journal is of a version that did not say whether its arm was on a port.
pub(super) const PAPER_UNKNOWN: &str = "its journal is from an older version and does not say whether the arm was real or simulated, so it cannot be resumed";

/// Describes the drawing that another arm of this name left half done, and what to do about it.
pub(super) fn drawing_text(node: &Node, arm: &AttachedArm) -> Option<String> {
    let past = node.job_store.unfinished_of_namesake(arm.key())?;
    let name = &arm.name;
    let pen = || pen_on_port(node, arm).map_or("", |_| ", whose pen may still be on the paper");
    let (by, next) = match past.is_on_port {
        None if arm.workcell.is_none() => (
            format!("by arm {name}"),
            format!("{PAPER_UNKNOWN}: start the drawing from its beginning"),
        ),
        None => (
            format!("by arm {name}{}", pen()),
            format!(
                "{PAPER_UNKNOWN}. It counts as the real arm's. Next: run `steadyhand --port PORT serve` with this node's --state or --config, and draw it there from its beginning"
            ),
        ),
        Some(true) => {
            let command = match past.is_drawing_of_caller {
                true => "serve",
                false => "draw --resume",
            };
            (
                format!("by the real arm {name}{}", pen()),
                format!(
                    "this node simulates that arm. `steadyhand --port PORT {command}` with this node's --state or --config resumes it"
                ),
            )
        }
        Some(false) => (
            format!("by the simulated arm {name}"),
            "this arm is real and its paper is empty: start the drawing from its beginning"
                .to_owned(),
        ),
    };
    Some(format!(
        "{} is an unfinished drawing of {} ({}) {by}; {next}",
        past.id,
        title(&past),
        past.summary()
    ))
}

/// Describes what the arm on a port left that is simulated here.
pub(super) fn left_on_port(node: &Node, arm: &AttachedArm) -> Option<String> {
    arm.workcell.as_ref()?;
    let pen_text = || {
        let (id, name) = (pen_on_port(node, arm)?.id, &arm.name);
        Some(format!(
            "{id} may have left the pen of the real arm {name} on the paper, but this node simulates that arm. Next: run `steadyhand --port PORT serve` with this node's --state or --config, then `steadyhand reset` lifts the pen"
        ))
    };
    drawing_text(node, arm).or_else(pen_text)
}

/// Returns the job after which the pen of the arm on a port may be on the paper, if this arm is simulated.
fn pen_on_port(node: &Node, arm: &AttachedArm) -> Option<PastJob> {
    arm.workcell.as_ref()?;
    node.job_store.pen_left_down(arm.key().namesake())
}
