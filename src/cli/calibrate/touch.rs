//! `calibrate touch`: the arm's present joints become one more touch.

use anyhow::{Context, bail};

use super::arguments::{Of, TouchArgs, What};
use super::place::{Place, origin_words};
use crate::{Exit, show};
use base::clock;
use calib::{self, Contact, Kind, Role, Session, report};
use scene::Scene;

impl Place {
    pub(super) fn touch(&self, args: &TouchArgs) -> anyhow::Result<Exit> {
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
        session.touches.push(Contact {
            role: role(args, session.kind)?,
            joints_rad,
            asked_mm: args.mm,
            number: args.number,
            at_ms: clock::calendar_ms(),
            zeros: calib::zeros_of(&scene.arm.file),
        });
        let assessed = self.assess(&session)?;
        self.store.propose(&session, &lock)?;
        show::line(&report::words(&session, &assessed));
        Ok(Exit::Done)
    }

    pub(super) fn session(&self, args: &TouchArgs, scene: &Scene) -> anyhow::Result<Session> {
        let kind = match args.what {
            What::Tool => Kind::Tool,
            What::Sheet => Kind::Sheet,
            What::Zeros => Kind::Zeros,
        };
        let pen = args.here.pen_of(scene);
        Ok(Session {
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
            format!("no node that runs here measures an arm {model}: start it, or say --joints")
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

fn role(args: &TouchArgs, kind: Kind) -> anyhow::Result<Role> {
    let role = match (kind, args.of) {
        (_, Some(Of::Verify)) if kind != Kind::Zeros => Role::Verify,
        (Kind::Tool, None | Some(Of::Point)) | (Kind::Zeros, Some(Of::Point)) => Role::Point,
        (Kind::Sheet | Kind::Zeros, None | Some(Of::Sheet)) => Role::Sheet,
        (Kind::Sheet, Some(Of::Origin)) => Role::Origin,
        (Kind::Sheet, Some(Of::X)) => Role::X,
        (Kind::Sheet, Some(Of::Y)) => Role::Y,
        (Kind::Zeros, Some(Of::Calibrator)) => Role::Calibrator,
        _ => bail!(
            "a calibration of {} has no such touch: tool takes point and verify; sheet takes origin, x, y, sheet and verify; zeros takes sheet, point and calibrator",
            kind.word()
        ),
    };
    Ok(role)
}
