//! Codes of answers that refuse or fail: what happened, and the next step of an answer that names none itself.

use serde_json::Value;

use super::reply::Reply;
use base::wording::names_step;

/// A code, or several with one meaning.
pub struct RefusalCode {
    /// The codes.
    pub codes: &'static [&'static str],
    /// What happened.
    pub happened: &'static str,
    /// What its caller, or the operator, does next.
    pub next: &'static str,
}

/// Codes of one subject.
pub struct RefusalSubject {
    /// The subject.
    pub title: &'static str,
    /// Its codes.
    pub codes: &'static [RefusalCode],
}

const fn code(
    codes: &'static [&'static str],
    happened: &'static str,
    next: &'static str,
) -> RefusalCode {
    RefusalCode {
        codes,
        happened,
        next,
    }
}

/// Every code, by subject.
#[rustfmt::skip]
pub const REFUSAL_SUBJECTS: [RefusalSubject; 6] = [
    RefusalSubject {
        title: "The call",
        codes: &[
            code(&["arguments_refused"], "a value is not valid; `complaints` lists each one", "send valid values"),
            code(&["preview_only"], "part of the call was not understood; the answer is a preview", "draw its `plan`, or change the call"),
            code(&["not_understood"], "in a complaint: this key or word was not understood", "leave it out"),
            code(&["unknown_tool"], "no tool has this name", "use a name from the answer"),
            code(&["not_offered"], "the node file does not offer this tool", "ask the operator"),
            code(&["role"], "the token's role may not do this", "ask the operator for a different token"),
            code(&["rate"], "too many calls a minute for this token", "wait, as the answer says"),
            code(&["needs_qualification"], "this planner needs a certificate", "ask the operator for an exam"),
            code(&["one_hop"], "a call that was passed on names a third node", "call that node directly"),
            code(&["no_dry_run"], "this tool, or one of its steps, has no dry run", "leave `dry_run` out"),
            code(&["needs_preview"], "this node draws only plans that it has previewed", "`dry_run`, then its `plan`"),
            code(&["unknown_plan"], "no preview in the last hour had this plan", "`dry_run` again"),
            code(&["plan_changed"], "the scene or the design has changed since the preview", "`dry_run` again"),
        ],
    },
    RefusalSubject {
        title: "The design and the plan",
        codes: &[
            code(&["no_design"], "the call has no complete design", "send `text`, `svg` or `image`"),
            code(&["no_canvas"], "this scene does not accept a design from a call", "name a canvas as `scene`"),
            code(&["design_refused"], "the design cannot be read or placed", "correct the line or element that the answer names"),
            code(&["plan_refused"], "no motion of this arm can draw this", "make the design smaller, or move it"),
            code(&["gate_refused"], "the plan breaks a limit", "make the design smaller, or move it"),
        ],
    },
    RefusalSubject {
        title: "The arm",
        codes: &[
            code(&["needs_enabling"], "no person has enabled the present version of this scene", "an operator runs `steadyhand enable --scene NAME`"),
            code(&["needs_reset"], "a stop or fault is latched", "`reset`"),
            code(&["operator_must_reset"], "an operator stopped the arm, or the node does not know which way is up", "an operator runs `steadyhand reset`"),
            code(&["emergency_stop"], "an emergency stop is latched", "an operator runs `steadyhand clear`, then `steadyhand reset`"),
            code(&["fault"], "something broke; the message says what", "remove the cause, then `reset`"),
            code(&["stopped"], "a stop ended this motion, or came before it", "`reset`, then call again, or `stroke` with `resume`"),
            code(&["given_up"], "the client disconnected before the motion began", "call again"),
            code(&["busy"], "another motion has the arm", "wait for its end, or `stop`"),
            code(&["leased"], "another planner has the arm", "wait until it is idle"),
            code(&["other_arm"], "another arm within reach is enabled", "an operator resets and disables that arm"),
            code(&["which_arm"], "several arms wait for a reset", "name one as `arm`"),
            code(&["other_scene"], "the arm last moved in a different scene", "`reset` without `scene`"),
            code(&["scene"], "the scene cannot be read, or is for another arm", "`list_nodes` names the scenes; `steadyhand scene check NAME` finds what is wrong with one"),
            code(&["ending"], "the node is shutting down", "an operator starts it again"),
            code(&["internal_error"], "the program failed; nothing moves", "report the message and the node's log"),
            code(&["refused"], "the arm cannot begin from its present position", "`sense` shows why"),
        ],
    },
    RefusalSubject {
        title: "Drawings",
        codes: &[
            code(&["interrupted"], "a drawing was interrupted", "`stroke` with `resume` or `again`"),
            code(&["resume_or_again"], "the call has both `resume` and `again`", "send only one of them"),
            code(&["resume_differs"], "the unfinished drawing is not the newest one, or its scene, overlay or arm differs", "name its scene"),
            code(&["nothing_to_resume"], "there is no unfinished drawing with ink", "draw it again, without `resume`"),
            code(&["drawing_complete"], "the whole drawing is already on the sheet", "`reset`"),
            code(&["scene_changed"], "the scene or its calibration has changed", "`stroke` with `again`"),
            code(&["operators_drawing"], "an operator began this drawing", "an operator runs `steadyhand draw --resume`"),
            code(&["pen_change"], "a person is changing the pen", "an operator runs `steadyhand pen`"),
            code(&["pen_not_confirmed"], "no person confirmed the pen in time", "`reset`, then `stroke` with `resume`"),
            code(&["pen_not_measured"], "the touch of the new pen failed", "check the pen, then `reset` and `resume`"),
            code(&["did_not_follow"], "a joint was off by more than its tolerance", "an operator runs `steadyhand doctor`"),
            code(&["ink_missing"], "more than 1 % of the design has no ink (simulator)", "an operator calibrates the arm"),
            code(&["journal"], "the journal cannot be written to the disk", "make room on its disk, then `reset`"),
            code(&["end_not_journalled"], "the motion ended, but its last record could not be written", "make room on its disk, then look at the sheet"),
            code(&["files_not_written"], "the drawing is done, but its pictures were not written", "make room on its disk"),
        ],
    },
    RefusalSubject {
        title: "Calibration and cameras",
        codes: &[
            code(&["not_calibrated"], "the zeros, the pen or the sheet were not measured on this arm", "an operator runs the commands in the answer, in order"),
            code(&["stale_calibration"], "something has changed since the measurement", "an operator runs the command in the answer"),
            code(&["bases_differ"], "an arm's base was measured too far from its place in the scene", "an operator runs `steadyhand calibrate accept`, or `discard` and measures again"),
            code(&["calibration"], "the values cannot be right, or cannot be saved", "measure again"),
            code(&["no_contact", "early_contact", "not_confirmed"], "the sheet was not felt, or felt too early or at two heights", "an operator touches the sheet by hand"),
            code(&["no_cross"], "there is no cross to read", "`align` draws one"),
            code(&["ink_unread"], "the pattern cannot be read", "use even light, or measure with a ruler"),
            code(&["sheet_moved"], "a camera sees the sheet in a different place", "`align`, then an operator runs `steadyhand calibrate accept`"),
            code(&["sheet_unseen"], "the scene needs a camera that sees the sheet, and none does", "`sense` shows the pictures"),
        ],
    },
    RefusalSubject {
        title: "Other nodes and servers",
        codes: &[
            code(&["unreachable"], "that node could not be reached; nothing was sent", "an operator starts it"),
            code(&["lost"], "that node's answer was lost; its arm may have moved", "look at that arm"),
            code(&["silent"], "that node was silent for `quiet_s`", "look at that arm"),
            code(&["refused_there"], "that node refused the call", "do what that node's answer says"),
            code(&["cancelled"], "the caller cancelled", "call again"),
            code(&["ambiguous_node"], "several nodes have this name", "an operator renames one"),
            code(&["queue_elsewhere", "queue_not_held", "queue_begun_before", "queues_too_many"], "another `fleet draw` has this batch, or this queue waited too long and lost it", "wait for that queue, or end it"),
            code(&["server"], "another MCP server failed", "look at that server's log"),
            code(&["step_failed"], "a step of a sequence failed", "correct the step that failed"),
            code(&["recording"], "a recording failed", "`list_recordings` names the recordings"),
            code(&["helper"], "a helper of the exam failed", "send corrected values"),
        ],
    },
];

/// Adds the step that an answer's code stands for, to one that fails without a step of its own.
pub(super) fn with_step(reply: Reply) -> Reply {
    let has_hint = reply.structured.contains_key("usage_hints");
    if !reply.is_error || has_hint || names_step(&reply.text) {
        return reply;
    }
    // The code of a complaint about one argument says more than that of the whole call.
    let complaint = reply
        .structured
        .get("complaints")
        .and_then(|all| all.get(0));
    let complaint = complaint
        .and_then(|one| one.get("code"))
        .and_then(Value::as_str);
    let next = [complaint, reply.code()]
        .into_iter()
        .flatten()
        .find_map(step);
    match next {
        Some(next) => reply.hint(next),
        None => reply,
    }
}

/// Returns the next step that a code stands for.
fn step(code: &str) -> Option<&'static str> {
    let mut codes = REFUSAL_SUBJECTS.iter().flat_map(|subject| subject.codes);
    codes.find(|of| of.codes.contains(&code)).map(|of| of.next)
}

#[cfg(test)]
mod tests {
    use super::{REFUSAL_SUBJECTS, Reply, with_step};
    use serde_json::json;

    fn refused(code: &str) -> Reply {
        Reply::failed("no").with("code", code)
    }

    fn steps(reply: &Reply) -> serde_json::Value {
        reply
            .structured
            .get("usage_hints")
            .cloned()
            .unwrap_or_default()
    }

    #[test]
    fn a_refusal_has_the_step_of_its_code_unless_it_names_one() {
        for code in REFUSAL_SUBJECTS.iter().flat_map(|subject| subject.codes) {
            for name in code.codes {
                assert_eq!(
                    steps(&with_step(refused(name))),
                    json!([code.next]),
                    "{name}"
                );
                let own = refused(name).reworded("no. Next: wait".to_owned());
                assert_eq!(with_step(own.clone()), own, "{name}");
            }
        }
        let complaints = json!([{ "code": "unknown_plan" }]);
        let refused = refused("arguments_refused").with("complaints", complaints);
        assert_eq!(steps(&with_step(refused)), json!(["`dry_run` again"]));
    }
}
