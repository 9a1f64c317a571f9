//! Drawings and pens that another arm of the same name left: the one on a port, where this one is simulated, or the reverse.

use super::resume::title;
use super::{AttachedArm, Node};
use job::PastJob;

/// Reason that no command goes on with a drawing whose journal is of a version that did not say whether its arm was on a port.
pub(super) const PAPER_UNKNOWN: &str = "its journal, of an older version, does not say whether it was drawn on paper or in practice, so nothing resumes it";

/// Describes the drawing that another arm of this name left half done, and what to do about it.
pub(super) fn drawing_text(node: &Node, arm: &AttachedArm) -> Option<String> {
    let past = node.job_store.unfinished_of_namesake(arm.key())?;
    let name = &arm.name;
    let pen = || pen_on_port(node, arm).map_or("", |_| ", with its pen perhaps still on the paper");
    let (by, next) = match past.is_on_port {
        None if arm.workcell.is_none() => (
            format!("by arm {name}"),
            format!("{PAPER_UNKNOWN}: draw it from its beginning"),
        ),
        None => (
            format!("by arm {name}{}", pen()),
            format!(
                "{PAPER_UNKNOWN}; it counts as the arm's on its port, and practice does not settle it: `steadyhand --port PORT serve` with this node's --state or --config beside it, then draw it from its beginning there"
            ),
        ),
        Some(true) => {
            let command = match past.is_drawing_of_caller {
                true => "serve",
                false => "draw --resume",
            };
            (
                format!("by arm {name} on its port{}", pen()),
                format!(
                    "that arm is simulated here, which neither goes on with it nor settles it: `steadyhand --port PORT {command}` does, with this node's --state or --config beside it"
                ),
            )
        }
        Some(false) => (
            format!("by arm {name} while it was simulated"),
            "that arm is on a port here, and its paper has nothing of it: draw it from its beginning"
                .to_owned(),
        ),
    };
    Some(format!(
        "{}, which draws {}, was left half done ({}) {by}; {next}",
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
            "{id} may have left the pen of arm {name} on the paper; that arm is simulated here, which lifts nothing: at a node with its port, `steadyhand --port PORT serve` with this one's --state or --config beside it, `steadyhand reset` lifts it"
        ))
    };
    drawing_text(node, arm).or_else(pen_text)
}

/// Returns the job after which the pen of the arm on a port may be on the paper, if this arm is simulated.
fn pen_on_port(node: &Node, arm: &AttachedArm) -> Option<PastJob> {
    arm.workcell.as_ref()?;
    node.job_store.pen_left_down(arm.key().namesake())
}
