//! Selects the cases of an exam: those of a file, or those that ship and the operator's own.

use std::path::Path;

use anyhow::{Context, bail};

use super::read;
use crate::{ExamCase, ExamRecord, ExamToolbox};

/// Selected cases, with notes about them.
#[derive(Debug, Default)]
pub(super) struct CaseSelection {
    pub(super) cases: Vec<ExamCase>,
    pub(super) notes: Vec<String>,
}

impl CaseSelection {
    /// Selects the cases of a file. A case for a server that is not examined is refused, because failing it would not be the planner's mistake.
    pub(super) fn of_file(
        file: &Path,
        answers: Option<&Path>,
        tools: &ExamToolbox,
        servers: &[String],
    ) -> anyhow::Result<Self> {
        let cases = cases_of(file, answers)?;
        if let Some(case) = cases.iter().find(|case| !case.is_for(servers)) {
            let named: Vec<&str> = case.named_servers().collect();
            bail!(
                "{}: case {} is for the server {}, which is not examined. Next: name it in --servers",
                file.display(),
                case.name,
                named.join(" or ")
            );
        }
        Ok(Self {
            cases: resolve_all(cases, tools),
            notes: Vec::new(),
        })
    }

    /// Selects the shipped cases that fit, and the operator's own for these servers whose tools exist.
    pub(super) fn shipped_and_own(
        tools: &ExamToolbox,
        servers: &[String],
        record: &ExamRecord,
    ) -> anyhow::Result<Self> {
        let mut notes = Vec::new();
        let (cases, left_out) = crate::fitting(ExamCase::shipped()?, tools);
        if left_out > 0 {
            notes.push(format!(
                "{left_out} of {} shipped cases were left out: this node lacks what they need",
                cases.len() + left_out
            ));
        }
        let mut own = record.cases()?;
        let own_count = own.len();
        own.retain(|case| case.is_for(servers));
        let for_servers = own.len();
        if for_servers < own_count {
            notes.push(format!(
                "{} of {own_count} of your own cases were left out: their servers are not examined (--servers)",
                own_count - for_servers
            ));
        }
        let mut own = resolve_all(own, tools);
        own.retain(|case| tools.knows(case).is_ok());
        if own.len() < for_servers {
            notes.push(format!(
                "{} of {own_count} of your own cases were left out: they name tools that are not shown",
                for_servers - own.len()
            ));
        }
        own.retain(|case| !cases.iter().any(|other| other.name == case.name));
        Ok(Self {
            cases: resolve_all(cases, tools).into_iter().chain(own).collect(),
            notes,
        })
    }
}

fn resolve_all(cases: Vec<ExamCase>, tools: &ExamToolbox) -> Vec<ExamCase> {
    cases
        .into_iter()
        .map(|case| case.resolved_for(tools))
        .collect()
}

/// Reads the cases of a file.
pub(super) fn cases_of(file: &Path, answers: Option<&Path>) -> anyhow::Result<Vec<ExamCase>> {
    let text = read(file)?;
    let answers = answers.map(read).transpose()?;
    let cases = if ExamCase::is_bfcl(&text) {
        ExamCase::read_bfcl(&text, answers.as_deref())
    } else {
        ExamCase::read_lines(&text)
    };
    cases.with_context(|| file.display().to_string())
}
