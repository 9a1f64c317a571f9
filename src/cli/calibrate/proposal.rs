//! `calibrate show`, `undo`, `discard` and `accept`: work with the current proposal.

use std::path::Path;

use super::place::CalibrationFolders;
use crate::{ExitStatus, given_options, terminal_output};
use base::wording::count;
use calib::{
    self, AcceptConsent, CalibrationDeskError, CalibrationSession, FitVerdict, TouchAssessment,
    report,
};

/// Returns the exit status for a proposal: refused if it must be redone.
fn exit_of(assessed: &TouchAssessment) -> ExitStatus {
    ExitStatus::of(assessed.finding.verdict != FitVerdict::Redo)
}

impl CalibrationFolders {
    /// Prints the assessment of a proposal; one that must be redone refuses the command.
    pub(super) fn print_result(
        &self,
        session: &CalibrationSession,
        assessed: &TouchAssessment,
    ) -> ExitStatus {
        let text = report::assessment_text(session, assessed);
        terminal_output::line(&given_options::with_given(&text, &self.options));
        exit_of(assessed)
    }

    pub(super) fn show(&self, out: Option<&Path>, json: bool) -> anyhow::Result<ExitStatus> {
        let session = self.proposal()?;
        let assessed = self.assess(&session)?;
        let text = serde_json::to_string_pretty(&assessed)?;
        if let Some(folder) = out {
            base::disk::folder(folder)?;
            let page = report::html(&session, &assessed);
            for (name, text) in [("report.html", &page), ("report.json", &text)] {
                let file = folder.join(name);
                calib::put(&file, text)?;
                terminal_output::note(&file.display().to_string());
            }
        }
        if !json {
            return Ok(self.print_result(&session, &assessed));
        }
        terminal_output::line(&text);
        Ok(exit_of(&assessed))
    }

    /// Discards the proposal, even one that cannot be read.
    pub(super) fn discard(&self) -> anyhow::Result<ExitStatus> {
        let lock = self.store.lock()?;
        if matches!(self.store.proposal(), Ok(None)) {
            return terminal_output::refused("there is no proposal. Nothing was done");
        }
        self.store.discard(&lock)?;
        terminal_output::done("the proposal is discarded")
    }

    pub(super) fn undo(&self) -> anyhow::Result<ExitStatus> {
        let touches = self.proposal()?.touches.len();
        let last = touches.saturating_sub(1);
        self.desk(|desk| desk.drop_touches(&[last]))?;
        terminal_output::done(&format!("{} left", count(last, "touch")))
    }

    pub(super) fn accept(&self, overridden: bool) -> anyhow::Result<ExitStatus> {
        let session = self.proposal()?;
        let assessed = self.assess(&session)?;
        // The next step is taken here, so it is not printed.
        terminal_output::line(&report::findings_text(&session, &assessed));
        let consent = AcceptConsent {
            shown: &calib::proposal_key(&session, &assessed),
            overridden,
        };
        match self.desk(|desk| desk.accept(consent)) {
            Ok(accepted) => {
                self.print_accepted(session.kind, &accepted);
                Ok(ExitStatus::Done)
            }
            Err(refused @ CalibrationDeskError::Refused(_)) => {
                terminal_output::refused(&refused.to_string())
            }
            Err(error) => Err(error.into()),
        }
    }
}
