//! `calibrate touch`: records the arm's present joints as a touch.

use anyhow::{Context, bail};

use super::arguments::TouchArgs;
use super::place::CalibrationFolders;
use crate::{ExitStatus, terminal_output};
use arm::ArmModel;
use base::wording::with_statement;
use calib::{self, CalibrationSession, TouchAssessment, report};
use node::measurements::{self, MeasuredArm};
use scene::Scene;

impl CalibrationFolders {
    pub(super) fn touch(&self, args: &TouchArgs) -> anyhow::Result<ExitStatus> {
        let scene = self.library.scene(&args.here.scene, None)?;
        let (session, assessed) = self.record_touch(args)?;
        let arm = self.arm(&scene.arm.file.name);
        if let Some(arm) = arm.filter(|_| self.has_several_arms() && args.here.joints.is_none()) {
            terminal_output::line(&format!("arm {}:", arm.name));
        }
        terminal_output::done(&report::assessment_text(&session, &assessed))
    }

    /// Records a touch, and assesses all that were made.
    pub(super) fn record_touch(
        &self,
        args: &TouchArgs,
    ) -> anyhow::Result<(CalibrationSession, TouchAssessment)> {
        let scene = self.library.scene(&args.here.scene, None)?;
        let joints_rad = self.joints(args.here.joints.as_ref(), &scene)?;
        let origin = self.origin(&scene.arm.file);
        let session = calib::begin_session(args.what, &scene, args.here.pen.as_deref(), origin)?;
        let touch = args.hand_touch();
        Ok(self.desk(|desk| desk.add_touch(session, &touch, joints_rad))?)
    }

    /// Returns why the place of an arm cannot be recorded now: it moves, is not read, or its fault waits for a reset.
    pub(super) fn hindrance(&self, model: &str) -> Option<String> {
        let arm = self.arm(model)?;
        if arm.is_moving {
            return Some(format!(
                "the arm of model {model} is moving; a touch needs the arm to stand still. Next: wait or `steadyhand stop`, then touch again"
            ));
        }
        unread_reason(arm)
    }

    pub(super) fn joints(
        &self,
        given: Option<&Vec<f64>>,
        scene: &Scene,
    ) -> anyhow::Result<Vec<f64>> {
        self.check_zeros(&scene.arm.file)?;
        let model = &scene.arm.file.name;
        let arm = self.arm(model);
        if given.is_none()
            && let Some(reason) = self.hindrance(model)
        {
            bail!(reason);
        }
        let measured = || arm.map(|arm| arm.joints_rad.clone());
        let joints = given.cloned().or_else(measured).with_context(|| {
            format!(
                "no running node reads an arm of model {model}, and --joints is missing: {}",
                self.absent
            )
        })?;
        if joints.len() != scene.arm.dof() || joints.iter().any(|q| !q.is_finite()) {
            let (count, expected) = (joints.len(), scene.arm.dof());
            bail!("--joints has {count} values, but an arm of model {model} has {expected} joints");
        }
        if let Some(typed) = given {
            check_limits(typed, &scene.arm)?;
        }
        Ok(joints)
    }
}

/// Returns why an arm that is not read now, or whose fault waits for a reset, is not recorded.
fn unread_reason(arm: &MeasuredArm) -> Option<String> {
    let fault = || {
        let fault = arm.fault.as_ref();
        fault.map(|fault| measurements::unmended_fault(&arm.name, fault))
    };
    let reason = arm.unread.clone().or_else(fault)?;
    Some(with_statement(reason, "nothing was recorded"))
}

/// Angle by which a typed joint may exceed its limits: uncalibrated zeros are off by some degrees.
const LIMIT_TOLERANCE_RAD: f64 = 0.1;

/// Refuses typed joints that the arm cannot have.
fn check_limits(joints_rad: &[f64], arm: &ArmModel) -> anyhow::Result<()> {
    for (joint, typed) in arm.file.joints.iter().zip(joints_rad) {
        let (min, max) = (joint.lower_rad.get(), joint.upper_rad.get());
        let possible = min - LIMIT_TOLERANCE_RAD..=max + LIMIT_TOLERANCE_RAD;
        if possible.contains(typed) {
            continue;
        }
        let in_rad = typed.to_radians();
        let hint = match possible.contains(&in_rad) {
            true => format!("type {in_rad:.4} for {typed} degrees"),
            false => "`steadyhand call sense` shows the measured joints".to_owned(),
        };
        bail!(
            "--joints puts joint {} of arm {} at {typed} rad; its limits are {min} to {max} rad (values are in radians, base first). Nothing was recorded. Next: {hint}",
            joint.name,
            arm.file.name
        );
    }
    Ok(())
}
