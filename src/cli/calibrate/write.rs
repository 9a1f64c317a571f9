//! Writes what was accepted into the scene's or the arm's file, and into the history.

use std::collections::BTreeMap;

use anyhow::Context;

use super::place::CalibrationFolders;
use crate::terminal_output;
use base::clock;
use calib::{self, CalibrationKind, CalibrationRecord, CalibrationSession, FileValues, FitVerdict};

impl CalibrationFolders {
    /// Returns whether an arm's joints keep their signs, or a person said that they shall not. A sign that flips is told in a line
    /// of its own either way.
    pub(super) fn keeps_signs(
        &self,
        arm: &str,
        new: &FileValues,
        overridden: bool,
    ) -> anyhow::Result<bool> {
        let arm = self.library.arm(arm)?;
        let flipped = calib::flipped_joints(&arm, new);
        if flipped.is_empty() {
            return Ok(true);
        }
        let what = if overridden {
            "written, for --override was said"
        } else {
            "not accepted: say --override once you have seen that joint turn the other way than the file says"
        };
        terminal_output::line(&format!(
            "!!! SIGN FLIP: {} would turn the other way round than the arm's file says; every motion of it would go the other way; {what}",
            flipped.join(", ")
        ));
        Ok(overridden)
    }

    pub(super) fn write(
        &self,
        record: &CalibrationRecord,
        lock: &calib::CalibrationLock,
    ) -> anyhow::Result<()> {
        self.write_with(record, None, lock)
    }

    /// Into the file, then into the history; a file that does not load is put back.
    pub(super) fn write_with(
        &self,
        record: &CalibrationRecord,
        servos: Option<&BTreeMap<u8, String>>,
        lock: &calib::CalibrationLock,
    ) -> anyhow::Result<()> {
        let session = &record.session;
        if session.kind == CalibrationKind::Camera {
            let path = self.store.keep_camera(record, lock)?;
            self.store.keep(record, lock)?;
            let number = record.number;
            terminal_output::line(&format!(
                "accepted as calibration {number}: {}",
                path.display()
            ));
            return Ok(());
        }
        let name = match session.kind {
            CalibrationKind::Zeros => format!("arms/{}.toml", session.arm),
            _ => format!("{}.toml", session.scene),
        };
        let folder = self.library.folder().context(
            "the shipped scenes are in the binary: say --scenes DIR, where a copy of the file is written",
        )?;
        let old = self
            .library
            .source(&name)?
            .with_context(|| format!("there is no {name}"))?;
        let path = folder.join(&name);
        let was_there = path.exists();
        if let Some(folder) = path.parent() {
            base::disk::folder(folder)?;
        }
        let mut text = calib::write(&old, session, &record.new)?;
        if let Some(servos) = servos {
            text = calib::identify(&text, servos)?;
        }
        calib::put(&path, &text)?;
        if let Err(error) = self.loads(session) {
            if was_there {
                calib::put(&path, &old)?;
            } else {
                std::fs::remove_file(&path)?;
            }
            return Err(error.context("with these values the file cannot be used; it is as it was"));
        }
        self.store.keep(record, lock)?;
        terminal_output::line(&format!(
            "accepted as calibration {}: {}",
            record.number,
            path.display()
        ));
        self.tell_dependants(session)
    }

    fn loads(&self, session: &CalibrationSession) -> anyhow::Result<()> {
        self.library.arm(&session.arm)?;
        if session.kind != CalibrationKind::Zeros {
            self.library.scene(&session.scene, None)?;
        }
        Ok(())
    }

    fn tell_dependants(&self, session: &CalibrationSession) -> anyhow::Result<()> {
        if session.kind == CalibrationKind::Zeros && self.running.is_some() {
            terminal_output::line(
                "a node reads an arm's file when it starts: restart it; until then it enables, moves and touches nothing by the new file, and a stop works as before",
            );
        }
        let history = self.store.history()?;
        let mut scenes: Vec<&str> = history.iter().map(|r| r.session.scene.as_str()).collect();
        scenes.sort_unstable();
        scenes.dedup();
        for scene in scenes.into_iter().filter(|scene| !scene.is_empty()) {
            let Ok(scene) = self.library.scene(scene, None) else {
                continue;
            };
            if let Some(stale) = calib::stale(&history, &scene, &self.origin(&scene.arm.file)) {
                terminal_output::line(&stale);
            }
        }
        Ok(())
    }
}

/// A record of an arm's zeros that no touch was made for.
pub(super) fn of_arm(
    place: &CalibrationFolders,
    arm: &arm::ArmModel,
    method: &str,
) -> CalibrationRecord {
    CalibrationRecord {
        number: place.store.next_number(),
        at_ms: clock::calendar_ms(),
        method: method.to_owned(),
        servos: calib::servos(&arm.file),
        verdict: FitVerdict::Usable,
        reasons: Vec::new(),
        residuals_mm: Vec::new(),
        old: FileValues::new(),
        new: FileValues::new(),
        session: CalibrationSession {
            kind: CalibrationKind::Zeros,
            scene: String::new(),
            pen: String::new(),
            arm: arm.file.name.clone(),
            name: String::new(),
            basis: String::new(),
            probed: false,
            read_mm: None,
            seen: None,
            origin: place.origin(&arm.file),
            touches: Vec::new(),
        },
    }
}
