//! `teach`: poses, sheet, ink caps and calibrator of a scene from where the arm is now.

use clap::{Args, Subcommand};

use super::arguments::{CalibrationTarget, ConsentArgs, HereArgs, TouchTargetArg};
use super::guided_touches::{self, AskedPlace, TouchRoundEnd};
use super::operator_input::OperatorInput;
use super::place::CalibrationFolders;
use crate::{ExitStatus, NodeOptions, terminal_output};
use base::clock;
use base::units::JointVector;
use calib::{
    self, CalibrationKind, CalibrationRecord, CalibrationSession, FitVerdict, TOUCHES_EACH,
    TouchContact, TouchRole, report,
};

#[derive(Debug, Subcommand)]
pub(crate) enum TeachCommand {
    /// A pose: `rest` or `ready`, from the joints as they are
    Pose {
        /// Which
        name: String,
        #[command(flatten)]
        args: TeachArgs,
    },
    /// The sheet: touches of its origin, x, y and three more places, asked for one after the other
    Sheet {
        #[command(flatten)]
        args: TeachArgs,
    },
    /// An ink cap: the middle of its rim, where the tip is
    Cap {
        /// Which
        name: String,
        #[command(flatten)]
        args: TeachArgs,
    },
    /// The calibrator, where the tip is
    Calibrator {
        #[command(flatten)]
        args: TeachArgs,
    },
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
        TeachCommand::Calibrator { args } => (CalibrationKind::Calibrator, "", args),
        TeachCommand::Sheet { args } => return sheet(node, args).await,
    };
    let place = CalibrationFolders::find(node, &args.here.at).await?;
    one(&place, kind, name, args).await
}

async fn one(
    place: &CalibrationFolders,
    kind: CalibrationKind,
    name: &str,
    args: &TeachArgs,
) -> anyhow::Result<ExitStatus> {
    let TeachArgs { here, consent } = args;
    let scene = place.library.scene(&here.scene, None)?;
    let origin = place.origin(&scene.arm.file);
    let session = calib::begin_session(kind, &scene, here.pen.as_deref(), origin)?;
    let joints_rad = place.joints(here.joints.as_ref(), &scene)?;
    let joints = JointVector::from_slice(&joints_rad);
    let (new, change) = calib::new_taught_values(kind, &scene, &session.pen, name, &joints)?;
    let old = calib::taught_values(kind, &scene, name);
    terminal_output::line(report::compared(&old, &new).trim_end());
    if let Some(why) = change
        .override_reason()
        .filter(|_| !consent.change.overridden)
    {
        terminal_output::line(&format!("not taught: {why}"));
        return Ok(ExitStatus::Refused);
    }
    let mut person = OperatorInput::listen()?;
    if !person.confirm(QUESTION, consent.yes).await? {
        terminal_output::line("nothing was written");
        return Ok(ExitStatus::Refused);
    }
    let lock = place.store.lock()?;
    // Others could write while the question was open.
    let now = place.library.scene(&here.scene, None)?;
    let taught_now = calib::new_taught_values(kind, &now, &session.pen, name, &joints)?.0;
    if calib::taught_values(kind, &now, name) != old || taught_now != new {
        terminal_output::line(
            "not taught: the files were changed while this was asked, so it would write other values than it showed; give the command again",
        );
        return Ok(ExitStatus::Refused);
    }
    let at_ms = clock::calendar_ms();
    let touch = TouchContact {
        role: TouchRole::Point,
        joints_rad,
        asked_mm: None,
        number: 0,
        place: 0,
        at_ms,
        zeros: calib::zeros_of(&scene.arm.file),
    };
    let record = CalibrationRecord {
        number: place.store.next_number(),
        at_ms,
        method: "taught".to_owned(),
        servos: calib::servos(&scene.arm.file),
        verdict: FitVerdict::Usable,
        reasons: Vec::new(),
        residuals_mm: Vec::new(),
        old,
        new,
        session: CalibrationSession {
            name: name.to_owned(),
            touches: vec![touch],
            ..session
        },
    };
    place.write(&record, &lock)?;
    Ok(ExitStatus::Done)
}

/// Points to touch, in order, with their names for people.
const SHEET: [(TouchTargetArg, &str); 5] = [
    (TouchTargetArg::Origin, "the sheet's lower left corner"),
    (TouchTargetArg::X, "its lower right corner"),
    (TouchTargetArg::Y, "its upper left corner"),
    (TouchTargetArg::Sheet, "its upper right corner"),
    (TouchTargetArg::Sheet, "its middle"),
];

/// Further points of a flat sheet, and of one on a cylinder, whose middle stands out over its sides.
const FLAT: [(TouchTargetArg, &str); 1] =
    [(TouchTargetArg::Sheet, "another place, far from those")];
const ROLLED: [(TouchTargetArg, &str); 2] = [
    (TouchTargetArg::Sheet, "the middle of its lower edge"),
    (TouchTargetArg::Sheet, "the middle of its upper edge"),
];
const VERIFY: (TouchTargetArg, &str) = (
    TouchTargetArg::Verify,
    "one more place, which the fit does not see",
);

/// Returns the touches of a sheet: each place so often that it is known how well they repeat.
pub(super) fn places(is_rolled: bool) -> Vec<AskedPlace> {
    let more: &[_] = if is_rolled { &ROLLED } else { &FLAT };
    let all = [&SHEET, more, &[VERIFY]].concat();
    let asked = all.into_iter().map(|(of, name)| AskedPlace {
        of,
        number: 0,
        name: name.to_owned(),
        again: guided_touches::LIFTED,
        times: TOUCHES_EACH,
    });
    asked.collect()
}

/// Asks for touches one after the other, then shows what they come to, asks, and accepts.
async fn sheet(node: &NodeOptions, args: &TeachArgs) -> anyhow::Result<ExitStatus> {
    let TeachArgs { here, consent } = args;
    let place = CalibrationFolders::find(node, &here.at).await?;
    // Every touch is of the node that was found.
    let here = &HereArgs {
        at: place.running.clone().unwrap_or_default(),
        ..here.clone()
    };
    let scene = place.library.scene(&here.scene, None)?;
    let mut person = OperatorInput::listen()?;
    let (what, places) = (
        CalibrationTarget::Sheet,
        places(scene.surface.radius_mm().is_some()),
    );
    let round = guided_touches::collect(node, here, what, &places, &mut person).await?;
    if round == TouchRoundEnd::Left {
        return kept(node, here, "").await;
    }
    if !person.confirm(QUESTION, consent.yes).await? {
        return kept(node, here, "nothing was written; ").await;
    }
    let place = CalibrationFolders::find(node, &here.at).await?;
    place.accept(consent.change.overridden)
}

/// Says what is left of it all: the touches, and an arm that holds or lies limp.
async fn kept(node: &NodeOptions, here: &HereArgs, before: &str) -> anyhow::Result<ExitStatus> {
    let place = CalibrationFolders::find(node, &here.at).await?;
    let scene = place.library.scene(&here.scene, None)?;
    let left = place.left(&scene.arm.file.name);
    terminal_output::line(&format!(
        "{before}the touches so far are kept: `steadyhand calibrate show`, `undo` or `discard`{left}"
    ));
    Ok(ExitStatus::Refused)
}

const QUESTION: &str = "write this into the scene's file?";
