//! `calibrate import` and `export`: zeros and ranges from and for LeRobot.

use std::path::Path;

use anyhow::{Context, anyhow};

use super::place::CalibrationFolders;
use super::write::of_arm;
use crate::{ExitStatus, terminal_output};
use calib::{self, CalibrationRecord, lerobot, report};

impl CalibrationFolders {
    pub(super) fn import(
        &self,
        file: &Path,
        arm: &str,
        accept: bool,
        overridden: bool,
    ) -> anyhow::Result<ExitStatus> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let read: lerobot::LeRobotFile = serde_json::from_str(&text).map_err(|error| {
            let at = if error.is_data() {
                String::new()
            } else {
                format!(" (line {}, column {}: no JSON)", error.line(), error.column())
            };
            anyhow!(
                "{} is not a LeRobot calibration{at}: one names each joint with whole counts, such as {{\"shoulder_pan\": {{\"id\": 1, \"drive_mode\": 0, \"homing_offset\": -12, \"range_min\": 800, \"range_max\": 3200}}}}",
                file.display()
            )
        })?;
        let arm = self.library.arm(arm)?;
        let taken = lerobot::import(&read, &arm)?;
        terminal_output::line(report::compared(&taken.old, &taken.new).trim_end());
        for left in &taken.left {
            terminal_output::line(&format!("not taken over: {left}"));
        }
        let change = calib::CalibrationChange {
            mm: 0.0,
            deg: taken.turn_deg(&arm),
        };
        if let Some(why) = change.override_reason().filter(|_| !overridden) {
            terminal_output::line(&format!("not accepted: {why}"));
            return Ok(ExitStatus::Refused);
        }
        if !self.keeps_signs(&arm.file.name, &taken.new, overridden)? {
            return Ok(ExitStatus::Refused);
        }
        if !accept {
            terminal_output::line("nothing was written; say --accept to write it");
            return Ok(ExitStatus::Done);
        }
        let lock = self.store.lock()?;
        let record = CalibrationRecord {
            reasons: taken.left,
            old: taken.old,
            new: taken.new,
            ..of_arm(self, &arm, "LeRobot's file")
        };
        self.write(&record, &lock)?;
        Ok(ExitStatus::Done)
    }

    pub(super) fn export(&self, arm: &str) -> anyhow::Result<ExitStatus> {
        let arm = self.library.arm(arm)?;
        let seen = self.arms.iter().find(|seen| seen.model == arm.file.name);
        let homing = seen.map(|seen| seen.homing.iter().copied().collect());
        if homing.is_none() {
            terminal_output::note(
                "the servos' homing offsets are not known without a node on the arm: they are written as 0",
            );
        }
        let motors = lerobot::export(&arm, &homing.unwrap_or_default());
        terminal_output::line(&serde_json::to_string_pretty(&motors)?);
        Ok(ExitStatus::Done)
    }
}
