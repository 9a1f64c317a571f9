//! Cases into the record; what cannot be saved waits on the disk.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{HelperToolResult, case_of, known, objects};
use crate::{ExamCase, ExamError, ExamRecord, ExamToolbox, generate};

/// Received cases: those worth saving, and the others with the reason.
struct SortedCases {
    good: Vec<ExamCase>,
    refused: Vec<Value>,
}

pub(super) fn save(
    store: &Path,
    given: &Map<String, Value>,
    tools: &ExamToolbox,
) -> Result<HelperToolResult, ExamError> {
    let mut sorted = sort(given, &known(store)?, tools)?;
    let mut record = ExamRecord::open(store)?;
    let refused = &mut sorted.refused;
    sorted.good.retain(|case| {
        let unknown = record.check_servers_known(std::slice::from_ref(case)).err();
        let why = |why: &ExamError| json!({"case": case.name, "why": [why.to_string()]});
        refused.extend(unknown.as_ref().map(why));
        unknown.is_none()
    });
    let late = generate::save_pending(&mut record, store)?;
    record.add_cases(&sorted.good)?;
    let (saved, refused) = (sorted.good.len(), sorted.refused.len());
    let mut message = format!("{saved} cases saved, {refused} refused");
    if late > 0 {
        message = format!("{message}; {late} that waited are saved as well");
    }
    Ok(HelperToolResult::done_if(saved > 0, message)
        .with("saved", names(&sorted.good))
        .with("refused", sorted.refused))
}

/// The cases wait on the disk because they could not be saved.
pub(super) fn queued(
    store: &Path,
    given: &Map<String, Value>,
    tools: &ExamToolbox,
    why: &str,
) -> HelperToolResult {
    let waiting = || -> Result<HelperToolResult, ExamError> {
        let sorted = sort(given, &ExamCase::shipped()?, tools)?;
        let said = generate::wait(store, &sorted.good, why)?;
        Ok(HelperToolResult::failed(format!("not saved: {said}"))
            .with("queued", names(&sorted.good))
            .with("refused", sorted.refused))
    };
    waiting().unwrap_or_else(|error| HelperToolResult::failed(format!("not saved: {error}")))
}

fn names(cases: &[ExamCase]) -> Vec<&str> {
    cases.iter().map(|case| case.name.as_str()).collect()
}

/// Sorts the received cases. A caller may claim that a case is good; it is checked all the same.
fn sort(
    given: &Map<String, Value>,
    known: &[ExamCase],
    tools: &ExamToolbox,
) -> Result<SortedCases, ExamError> {
    let (mut good, mut refused): (Vec<ExamCase>, Vec<Value>) = (Vec::new(), Vec::new());
    for value in objects(given, "cases")? {
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
            .filter(|one| one.name != case.name);
        let found = generate::check(&case, others, tools);
        if found.may_be_saved() {
            good.push(case);
        } else {
            refused.push(json!({"case": case.name, "score": found.score, "why": found.why}));
        }
    }
    Ok(SortedCases { good, refused })
}
