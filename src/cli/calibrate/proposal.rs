//! `calibrate show`, `undo`, `discard` and `accept`: what is proposed and not yet believed.

use std::path::Path;

use super::place::{CalibrationFolders, origin_words};
use crate::{ExitStatus, terminal_output};
use base::clock;
use base::wording::count;
use calib::{self, CalibrationRecord, FitVerdict, report};

impl CalibrationFolders {
    pub(super) fn show(&self, out: Option<&Path>, json: bool) -> anyhow::Result<ExitStatus> {
        let session = self.proposal()?;
        let assessed = self.assess(&session)?;
        let text = serde_json::to_string_pretty(&assessed)?;
        if let Some(folder) = out {
            base::disk::folder(folder)?;
            calib::put(
                &folder.join("report.html"),
                &report::html(&session, &assessed),
            )?;
            calib::put(&folder.join("report.json"), &text)?;
        }
        terminal_output::line(&if json {
            text
        } else {
            report::assessment_text(&session, &assessed)
        });
        Ok(match assessed.finding.verdict {
            FitVerdict::Redo => ExitStatus::Refused,
            _ => ExitStatus::Done,
        })
    }

    /// A proposal that cannot be read is thrown away as well.
    pub(super) fn discard(&self) -> anyhow::Result<ExitStatus> {
        let lock = self.store.lock()?;
        if matches!(self.store.proposal(), Ok(None)) {
            terminal_output::line("nothing was proposed; nothing was done");
            return Ok(ExitStatus::Refused);
        }
        self.store.discard(&lock)?;
        terminal_output::line("the proposal is thrown away");
        Ok(ExitStatus::Done)
    }

    pub(super) fn undo(&self) -> anyhow::Result<ExitStatus> {
        let lock = self.store.lock()?;
        let mut session = self.proposal()?;
        session.touches.pop();
        self.store.propose(&session, &lock)?;
        terminal_output::line(&format!("{} left", count(session.touches.len(), "touch")));
        Ok(ExitStatus::Done)
    }

    pub(super) fn accept(&self, overridden: bool) -> anyhow::Result<ExitStatus> {
        let lock = self.store.lock()?;
        let session = self.proposal()?;
        let here = self.origin(&self.library.arm(&session.arm)?.file);
        if session.origin.simulated != here.simulated {
            terminal_output::line(&format!(
                "not accepted: it was found on {}, and this is {}; `steadyhand calibrate discard`, and touch again",
                origin_words(&session.origin),
                origin_words(&here)
            ));
            return Ok(ExitStatus::Refused);
        }
        let assessed = self.assess(&session)?;
        terminal_output::line(&report::assessment_text(&session, &assessed));
        if let Err(why) = calib::check(&assessed.finding, &assessed.change, overridden) {
            terminal_output::line(&format!("not accepted: {why}"));
            return Ok(ExitStatus::Refused);
        }
        let record = CalibrationRecord {
            number: self.store.next_number(),
            at_ms: clock::calendar_ms(),
            method: session.method().to_owned(),
            servos: calib::servos(&self.scene(&session)?.arm.file),
            verdict: assessed.finding.verdict,
            reasons: assessed.finding.reasons.clone(),
            residuals_mm: assessed
                .points
                .iter()
                .map(calib::TouchResidual::mm)
                .collect(),
            old: assessed.old,
            new: assessed.new,
            session,
        };
        self.write(&record, &lock)?;
        self.store.discard(&lock)?;
        Ok(ExitStatus::Done)
    }
}
