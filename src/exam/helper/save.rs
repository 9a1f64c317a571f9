//! Saves cases in the record; those that cannot be saved are queued on the disk.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{HelperToolResult, case_of, known_cases, objects};
use crate::{ExamCase, ExamError, ExamRecord, ExamToolbox, generate};

/// Received cases: those worth saving, and the others with the reason.
struct SortedCases {
    good: Vec<ExamCase>,
    refused: Vec<Value>,
}

pub(super) fn save(
    store: &Path,
    arguments: &Map<String, Value>,
    tools: &ExamToolbox,
) -> Result<HelperToolResult, ExamError> {
    let mut sorted = sort(arguments, &known_cases(store)?, tools)?;
    let mut record = ExamRecord::open(store)?;
    let refused = &mut sorted.refused;
    sorted.good.retain(|case| {
        let unknown = record.check_servers_known(std::slice::from_ref(case)).err();
        let refusal =
            |refusal: &ExamError| json!({"case": case.name, "why": [refusal.to_string()]});
        refused.extend(unknown.as_ref().map(refusal));
        unknown.is_none()
    });
    let from_queue = generate::save_pending(&mut record, store)?;
    record.add_cases(&sorted.good)?;
    let (saved, refused) = (sorted.good.len(), sorted.refused.len());
    let mut message = format!("{saved} cases saved, {refused} refused");
    if from_queue > 0 {
        message = format!("{message}; {from_queue} waiting cases were saved too");
    }
    Ok(HelperToolResult::done_if(saved > 0, message)
        .with("saved", names(&sorted.good))
        .with("refused", sorted.refused))
}

/// Queues cases on the disk because they could not be saved.
pub(super) fn queue_cases(
    store: &Path,
    arguments: &Map<String, Value>,
    tools: &ExamToolbox,
    reason: &str,
) -> HelperToolResult {
    let queue = || -> Result<HelperToolResult, ExamError> {
        let sorted = sort(arguments, &ExamCase::shipped()?, tools)?;
        let message = generate::wait(store, &sorted.good, reason)?;
        Ok(HelperToolResult::failed(format!("not saved: {message}"))
            .with("queued", names(&sorted.good))
            .with("refused", sorted.refused))
    };
    queue().unwrap_or_else(|error| HelperToolResult::failed(format!("not saved: {error}")))
}

fn names(cases: &[ExamCase]) -> Vec<&str> {
    cases.iter().map(|case| case.name.as_str()).collect()
}

/// Sorts the received cases. A caller may claim that a case is good; it is checked all the same.
fn sort(
    arguments: &Map<String, Value>,
    known: &[ExamCase],
    tools: &ExamToolbox,
) -> Result<SortedCases, ExamError> {
    let (mut good, mut refused): (Vec<ExamCase>, Vec<Value>) = (Vec::new(), Vec::new());
    for value in objects(arguments, "cases")? {
        let case = match case_of(value) {
            Ok(case) => case,
            Err(error) => {
                refused.push(json!({"query": value.get("query"), "why": [error.to_string()]}));
                continue;
            }
        };
        let others = known
            .iter()
            .chain(&good)
            .filter(|other| other.name != case.name);
        let found = generate::check(&case, others, tools);
        if found.may_be_saved() {
            good.push(case);
        } else {
            refused.push(json!({"case": case.name, "score": found.score, "why": found.why}));
        }
    }
    Ok(SortedCases { good, refused })
}
