//! Finds the least known classes of a run: the next round asks more of those.

use crate::{CaseClass, ExamError, ExamRecord, HitRate};

/// Number of classes for which more cases are generated.
const CLASSES: usize = 5;

/// Returns the classes whose rate of right answers has the widest 95 % interval, the widest first.
///
/// # Errors
/// Fails if there is no such run or it has no verdict.
pub(crate) fn weakest(record: &ExamRecord, run: Option<i64>) -> Result<Vec<CaseClass>, ExamError> {
    let row = record.run(run)?;
    let verdict = row.verdict().ok_or_else(|| {
        ExamError::Request(format!(
            "run {} has not finished, so it has no verdict",
            row.id
        ))
    })?;
    let rates = verdict.tally.class_rates();
    Ok(widest(rates.filter(|(class, _)| class.is_made())))
}

/// Returns the classes whose rate has the widest 95 % interval, the widest first.
pub(crate) fn widest(rates: impl Iterator<Item = (CaseClass, HitRate)>) -> Vec<CaseClass> {
    let width = |rate: HitRate| rate.interval().map_or(1.0, |(low, high)| high - low);
    let mut widths: Vec<(CaseClass, f64)> =
        rates.map(|(class, rate)| (class, width(rate))).collect();
    widths.sort_by(|a, b| b.1.total_cmp(&a.1));
    let classes = widths.into_iter().map(|(class, _)| class);
    classes.take(CLASSES).collect()
}
