//! Confusion matrix: one row for each right tool, one column for each called tool, each row with its n.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{ExamError, ExamRecord, ExamTally, RunRow};

/// One row of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ConfusionRow {
    /// The right tool.
    pub(crate) right: String,
    /// Number of calls of each column's tool.
    pub(crate) called: Vec<usize>,
    /// Number of answers.
    pub(crate) n: usize,
}

/// The matrix of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ConfusionMatrix {
    /// The run's number.
    pub(crate) run: i64,
    /// Number of all its answers.
    pub(crate) n: usize,
    /// Called tools.
    pub(crate) columns: Vec<String>,
    /// Rows, one for each right tool.
    pub(crate) rows: Vec<ConfusionRow>,
}

impl ConfusionMatrix {
    /// Builds the matrix of these counts, naming each tool by `label`.
    pub(super) fn of(run: i64, tally: &ExamTally, label: impl Fn(&str) -> String) -> Self {
        // Two names may have one label.
        let mut cells: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for (right, row) in &tally.confusion {
            let cell = cells.entry(label(right)).or_default();
            for (called, count) in row {
                *cell.entry(label(called)).or_default() += count;
            }
        }
        let columns: BTreeSet<&String> = cells.values().flat_map(BTreeMap::keys).collect();
        let row = |(right, cells): (&String, &BTreeMap<String, usize>)| ConfusionRow {
            right: right.clone(),
            called: columns
                .iter()
                .map(|name| cells.get(*name).copied().unwrap_or(0))
                .collect(),
            n: cells.values().sum(),
        };
        let rows: Vec<ConfusionRow> = cells.iter().map(row).collect();
        Self {
            run,
            n: rows.iter().map(|row| row.n).sum(),
            columns: columns.into_iter().cloned().collect(),
            rows,
        }
    }

    /// Returns the matrix of the newest run with a verdict in which two of these tools were shown.
    /// A server's tool is named `SERVER/TOOL`, regardless of the name it was shown under.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub(super) fn last(record: &ExamRecord, tools: &[String]) -> Result<Option<Self>, ExamError> {
        let runs: Vec<RunRow> = record.runs()?;
        for run in runs.iter().rev() {
            let Some(verdict) = run.verdict() else {
                continue;
            };
            let labels = record.labels(run.id)?;
            if labels.values().filter(|one| tools.contains(one)).count() < 2 {
                continue;
            }
            let label = |name: &str| labels.get(name).map_or(name, String::as_str).to_owned();
            return Ok(Some(Self::of(run.id, &verdict.tally, label)));
        }
        Ok(None)
    }

    /// Returns how often the two were confused, and the number of answers for which either was right.
    pub(super) fn between(&self, a: &str, b: &str) -> (usize, usize) {
        let row = |right: &str| self.rows.iter().find(|row| row.right == right);
        let cell = |right: &str, called: &str| {
            let column = self.columns.iter().position(|one| one == called);
            let cell = row(right).zip(column);
            cell.and_then(|(row, column)| row.called.get(column).copied())
                .unwrap_or(0)
        };
        let n = |right: &str| row(right).map_or(0, |row| row.n);
        (cell(a, b) + cell(b, a), n(a) + n(b))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_taken_for_what_is_counted_with_its_n() {
        let verdict = json!({"tally": {"confusion": {"a": {"a": 3, "b": 1}, "b": {"a": 2, "(none)": 4}, "(none)": {"b": 1}}}});
        let verdict = crate::ExamVerdict::read(&verdict.to_string()).unwrap_or_default();
        let found = ConfusionMatrix::of(7, &verdict.tally, |name| match name {
            "b" => "other/b".to_owned(),
            name => name.to_owned(),
        });
        assert_eq!(found.columns, ["(none)", "a", "other/b"]);
        assert_eq!(found.n, 11);
        let row = found.rows.iter().find(|row| row.right == "other/b");
        assert_eq!(
            row.map(|row| (row.called.clone(), row.n)),
            Some((vec![4, 2, 0], 6))
        );
        assert_eq!(found.between("a", "other/b"), (3, 10));
        assert_eq!(found.between("a", "nobody"), (0, 4));
        assert_eq!(
            ConfusionMatrix::of(1, &ExamTally::default(), str::to_owned).rows,
            Vec::new()
        );
    }
}
