//! `teach`: records poses, sheet, ink caps and calibrator of a scene from the arm's present position.

use clap::{Args, Subcommand};

use super::arguments::{ConsentArgs, HereArgs};
use super::guided_touches::{self, TouchPlace, TouchRoundEnd};
use super::operator_input::OperatorInput;
use super::place::CalibrationFolders;
use crate::{ExitStatus, NodeOptions, terminal_output};
use base::units::JointVector;
use calib::{
    self, CalibrationKind, CalibrationRecord, TOUCHES_EACH, TouchContact, TouchRole, report,
};

#[derive(Debug, Subcommand)]
pub(crate) enum TeachCommand {
    /// Save the present joints as a pose: `rest` or `ready`
    Pose {
        /// Which
        name: String,
        #[command(flatten)]
        args: TeachArgs,
    },
    /// Find the sheet by touches of its origin, x, y and three more places
    Sheet(TeachArgs),
    /// Save the tip's place as the middle of an ink cap's rim
    Cap {
        /// Which
        name: String,
        #[command(flatten)]
        args: TeachArgs,
    },
    /// Save the tip's place as the calibrator
    Calibrator(TeachArgs),
}

/// Place of the sheet, and the consent that a person gives in advance.
#[derive(Debug, Args)]
pub(crate) struct TeachArgs {
    #[command(flatten)]
    here: HereArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

pub(crate) async fn run(node: &NodeOptions, what: &TeachCommand) -> anyhow::Result<ExitStatus> {
    let (kind, name, args) = match what {
        TeachCommand::Pose { name, args } => (CalibrationKind::Pose, name.as_str(), args),
        TeachCommand::Cap { name, args } => (CalibrationKind::Cap, name.as_str(), args),
        TeachCommand::Calibrator(args) => (CalibrationKind::Calibrator, "", args),
        TeachCommand::Sheet(args) => return teach_sheet(node, args).await,
    };
    let folders = CalibrationFolders::find_here(node, &args.here).await?;
    teach_one(&folders, kind, name, args).await
}

async fn teach_one(
    folders: &CalibrationFolders,
    kind: CalibrationKind,
    name: &str,
    args: &TeachArgs,
) -> anyhow::Result<ExitStatus> {
    let TeachArgs { here, consent } = args;
    let scene = folders.library.scene(&here.scene, None)?;
    let origin = folders.origin(&scene.arm.file);
    let session = calib::begin_session(kind, &scene, here.pen.as_deref(), origin)?;
    let joints_rad = folders.joints(here.joints.as_ref(), &scene)?;
    let joints = JointVector::from_slice(&joints_rad);
    let (new, change) = calib::new_taught_values(kind, &scene, &session.pen, name, &joints)?;
    let old = calib::taught_values(kind, &scene, name);
    terminal_output::line(report::comparison(&old, &new).trim_end());
    let objection = change.override_reason();
    if let Some(reason) = objection.filter(|_| !consent.change.overridden) {
        return terminal_output::refused(&format!("not taught: {reason}"));
    }
    let mut person = OperatorInput::listen()?;
    if !person.confirm(QUESTION, consent.yes).await? {
        return terminal_output::refused("nothing was written");
    }
    let lock = folders.store.lock()?;
    // The files may have changed while the question was open.
    let current_scene = folders.library.scene(&here.scene, None)?;
    let current_values =
        calib::new_taught_values(kind, &current_scene, &session.pen, name, &joints)?.0;
    if calib::taught_values(kind, &current_scene, name) != old || current_values != new {
        return terminal_output::refused(
            "not taught: the files changed before you answered, so the values shown are out of date. Next: run the command again",
        );
    }
    let mut record = CalibrationRecord {
        old,
        new,
        ..folders.record(&scene.arm.file, "taught", session)
    };
    name.clone_into(&mut record.session.name);
    record.session.touches.push(TouchContact {
        role: TouchRole::Point,
        arm: String::new(),
        joints_rad,
        asked_mm: None,
        number: 0,
        place: 0,
        at_ms: record.at_ms,
        zeros: calib::zeros_of(&scene.arm.file),
    });
    folders.write(&record, &lock)?;
    Ok(ExitStatus::Done)
}

/// Points to touch, in order, with their names for people.
const SHEET: [(TouchRole, &str); 5] = [
    (TouchRole::Origin, "the sheet's lower left corner"),
    (TouchRole::X, "its lower right corner"),
    (TouchRole::Y, "its upper left corner"),
    (TouchRole::Sheet, "its upper right corner"),
    (TouchRole::Sheet, "its middle"),
];

/// Further points of a flat sheet, and of one on a cylinder, whose middle stands out over its sides.
const FLAT: [(TouchRole, &str); 1] = [(TouchRole::Sheet, "another place, far from those")];
const ROLLED: [(TouchRole, &str); 2] = [
    (TouchRole::Sheet, "the middle of its lower edge"),
    (TouchRole::Sheet, "the middle of its upper edge"),
];
const VERIFY: (TouchRole, &str) = (TouchRole::Verify, "one more place, to check the result");

/// Returns the touches of a sheet: each place often enough to know how well touches repeat.
pub(super) fn places(is_rolled: bool) -> Vec<TouchPlace> {
    let extra: &[_] = if is_rolled { &ROLLED } else { &FLAT };
    let all = [&SHEET, extra, &[VERIFY]].concat();
    let places = all.into_iter().map(|(of, name)| TouchPlace {
        of,
        number: 0,
        name: name.to_owned(),
        again: guided_touches::LIFTED,
        times: TOUCHES_EACH,
    });
    places.collect()
}

/// Asks for the touches of a sheet one after the other, asks for consent, and accepts the result.
async fn teach_sheet(node: &NodeOptions, args: &TeachArgs) -> anyhow::Result<ExitStatus> {
    let TeachArgs { here, consent } = args;
    let folders = CalibrationFolders::find_here(node, here).await?;
    // Every touch comes from the node that was found.
    let here = &HereArgs {
        at: folders.running.clone().unwrap_or_default(),
        ..here.clone()
    };
    let scene = folders.library.scene(&here.scene, None)?;
    let mut person = OperatorInput::listen()?;
    let places = places(scene.surface.radius_mm().is_some());
    let what = CalibrationKind::Sheet;
    let end = guided_touches::collect(node, here, what, &places, &mut person).await?;
    if end == TouchRoundEnd::Left {
        return report(node, here, "").await;
    }
    if !person.confirm(QUESTION, consent.yes).await? {
        return report(node, here, "nothing was written; ").await;
    }
    let folders = CalibrationFolders::find_here(node, here).await?;
    folders.accept(consent.change.overridden)
}

/// Reports what is kept: the touches, and an arm that holds or is limp.
async fn report(node: &NodeOptions, here: &HereArgs, prefix: &str) -> anyhow::Result<ExitStatus> {
    let folders = CalibrationFolders::find_here(node, here).await?;
    let scene = folders.library.scene(&here.scene, None)?;
    let torque = folders.torque_note(&scene.arm.file.name);
    terminal_output::refused(&format!(
        "{prefix}the touches are kept. Next: `steadyhand calibrate show`, `steadyhand calibrate undo` or `steadyhand calibrate discard`{torque}"
    ))
}

const QUESTION: &str = "write this into the scene's file?";
