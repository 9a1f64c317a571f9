//! The classes that a run says least about: the next round asks more of those.

use crate::{CaseClass, ExamError, ExamRecord, HitRate};

/// Number of classes for which more cases are generated.
const CLASSES: usize = 5;

/// The classes whose rate of right answers is known least, by the width of its 95 % interval, the widest first.
///
/// # Errors
/// There is no such run, or it has no verdict.
pub(crate) fn weakest(record: &ExamRecord, run: Option<i64>) -> Result<Vec<CaseClass>, ExamError> {
    let row = record.run(run)?;
    let verdict = row.verdict();
    let verdict =
        verdict.ok_or_else(|| ExamError::Request(format!("run {} has no verdict", row.id)))?;
    Ok(widest(verdict.tally.class_rates()))
}

/// The classes whose rate has the widest interval of 95 %, the widest first.
pub(crate) fn widest(rates: impl Iterator<Item = (CaseClass, HitRate)>) -> Vec<CaseClass> {
    let width = |rate: HitRate| rate.interval().map_or(1.0, |(low, high)| high - low);
    let mut found: Vec<(CaseClass, f64)> =
        rates.map(|(class, rate)| (class, width(rate))).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    let classes = found.into_iter().map(|(class, _)| class);
    classes.take(CLASSES).collect()
}
