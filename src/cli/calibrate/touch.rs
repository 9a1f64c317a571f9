//! `calibrate touch`: the arm's present joints become one more touch.

use anyhow::{Context, bail};

use super::arguments::TouchArgs;
use super::place::CalibrationFolders;
use crate::{ExitStatus, terminal_output};
use calib::{self, CalibrationKind, report};
use scene::Scene;

impl CalibrationFolders {
    pub(super) fn touch(&self, args: &TouchArgs) -> anyhow::Result<ExitStatus> {
        let scene = self.library.scene(&args.here.scene, None)?;
        let kind = CalibrationKind::from(args.what);
        let joints_rad = self.joints(args.here.joints.as_ref(), &scene)?;
        let origin = self.origin(&scene.arm.file);
        let fresh = calib::begin_session(kind, &scene, args.here.pen.as_deref(), origin)?;
        let wanted = args.hand_touch();
        let (session, assessed) = self.desk(|desk| desk.add_touch(fresh, &wanted, joints_rad))?;
        terminal_output::line(&report::assessment_text(&session, &assessed));
        Ok(ExitStatus::Done)
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
