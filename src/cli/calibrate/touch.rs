//! `calibrate touch`: the arm's present joints become one more touch.

use anyhow::{Context, bail};

use super::arguments::{TouchArgs, TouchTargetArg};
use super::place::{CalibrationFolders, origin_words};
use crate::{ExitStatus, terminal_output};
use base::clock;
use calib::{self, CalibrationKind, CalibrationSession, TouchContact, TouchRole, report};
use scene::Scene;

impl CalibrationFolders {
    pub(super) fn touch(&self, args: &TouchArgs) -> anyhow::Result<ExitStatus> {
        let lock = self.store.lock()?;
        let scene = self.library.scene(&args.here.scene, None)?;
        let fresh = self.session(args, &scene)?;
        let mut session = self.store.proposal()?.unwrap_or_else(|| fresh.clone());
        if !session.is_of_same(&fresh) {
            bail!(
                "touches of another thing are being collected ({} of scene {}): `steadyhand calibrate accept` or `discard` first",
                session.kind.word(),
                session.scene
            );
        }
        if session.origin != fresh.origin {
            bail!(
                "touches of another arm are being collected ({}), and this is {}: `steadyhand calibrate accept` or `discard` first",
                origin_words(&session.origin),
                origin_words(&fresh.origin)
            );
        }
        let joints_rad = self.joints(args.here.joints.as_ref(), &scene)?;
        session.touches.push(TouchContact {
            role: role(args, session.kind)?,
            joints_rad,
            asked_mm: args.mm,
            number: args.number,
            place: args.place,
            at_ms: clock::calendar_ms(),
            zeros: calib::zeros_of(&scene.arm.file),
        });
        let assessed = self.assess(&session)?;
        self.store.propose(&session, &lock)?;
        terminal_output::line(&report::assessment_text(&session, &assessed));
        Ok(ExitStatus::Done)
    }

    pub(super) fn session(
        &self,
        args: &TouchArgs,
        scene: &Scene,
    ) -> anyhow::Result<CalibrationSession> {
        let kind = CalibrationKind::from(args.what);
        let pen = args.here.pen_of(scene);
        Ok(CalibrationSession {
            basis: calib::basis_of(kind, scene, &pen)?,
            kind,
            scene: scene.name.clone(),
            pen,
            arm: scene.arm.file.name.clone(),
            name: String::new(),
            probed: false,
            read_mm: None,
            seen: None,
            origin: self.origin(&scene.arm.file),
            touches: Vec::new(),
        })
    }

    pub(super) fn joints(
        &self,
        said: Option<&Vec<f64>>,
        scene: &Scene,
    ) -> anyhow::Result<Vec<f64>> {
        self.same_zeros(&scene.arm.file)?;
        let model = &scene.arm.file.name;
        let arm = self.arms.iter().find(|arm| arm.model == *model);
        if said.is_none() && arm.is_some_and(|arm| arm.is_moving) {
            bail!(
                "arm {model} is at work: a touch is taken where it stands; `steadyhand stop` or wait, then touch"
            );
        }
        let measured = || arm.map(|arm| arm.joints_rad.clone());
        let joints = said.cloned().or_else(measured).with_context(|| {
            format!(
                "no running node measures an arm {model}, and --joints says none: {}",
                self.absent
            )
        })?;
        if joints.len() != scene.arm.dof() || joints.iter().any(|q| !q.is_finite()) {
            bail!(
                "{} joints were given; arm {model} has {}",
                joints.len(),
                scene.arm.dof()
            );
        }
        Ok(joints)
    }
}

fn role(args: &TouchArgs, kind: CalibrationKind) -> anyhow::Result<TouchRole> {
    let role = match (kind, args.of) {
        (_, Some(TouchTargetArg::Verify)) if kind != CalibrationKind::Zeros => TouchRole::Verify,
        (CalibrationKind::Tool, None | Some(TouchTargetArg::Point))
        | (CalibrationKind::Zeros, Some(TouchTargetArg::Point)) => TouchRole::Point,
        (CalibrationKind::Sheet | CalibrationKind::Zeros, None | Some(TouchTargetArg::Sheet)) => {
            TouchRole::Sheet
        }
        (CalibrationKind::Sheet, Some(TouchTargetArg::Origin)) => TouchRole::Origin,
        (CalibrationKind::Sheet, Some(TouchTargetArg::X)) => TouchRole::X,
        (CalibrationKind::Sheet, Some(TouchTargetArg::Y)) => TouchRole::Y,
        (CalibrationKind::Zeros, Some(TouchTargetArg::Calibrator)) => TouchRole::Calibrator,
        _ => bail!(
            "a calibration of {} has no such touch: tool takes point and verify; sheet takes origin, x, y, sheet and verify; zeros takes sheet, point and calibrator",
            kind.word()
        ),
    };
    Ok(role)
}
