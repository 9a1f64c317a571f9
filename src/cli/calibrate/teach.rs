//! `teach`: poses, sheet, ink caps and calibrator of a scene from where the arm is now.

use clap::{Args, Subcommand};

use super::arguments::{ConsentArgs, HereArgs, Of, TouchArgs, What};
use super::person::{Person, Said};
use super::place::Place;
use crate::{Exit, Options, show};
use base::clock;
use base::units::Joints;
use calib::{self, Contact, Kind, Record, Role, Session, TOUCHES_EACH, Verdict, report};

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

pub(crate) async fn run(node: &Options, what: &TeachCommand) -> anyhow::Result<Exit> {
    let (kind, name, args) = match what {
        TeachCommand::Pose { name, args } => (Kind::Pose, name.as_str(), args),
        TeachCommand::Cap { name, args } => (Kind::Cap, name.as_str(), args),
        TeachCommand::Calibrator { args } => (Kind::Calibrator, "", args),
        TeachCommand::Sheet { args } => return sheet(node, args).await,
    };
    let place = Place::find(node, &args.here.at).await?;
    one(&place, kind, name, args).await
}

async fn one(place: &Place, kind: Kind, name: &str, args: &TeachArgs) -> anyhow::Result<Exit> {
    let TeachArgs { here, consent } = args;
    let lock = place.store.lock()?;
    let scene = place.library.scene(&here.scene, None)?;
    let pen = here.pen_of(&scene);
    let joints_rad = place.joints(here.joints.as_ref(), &scene)?;
    let joints = Joints::from_slice(&joints_rad);
    let (new, change) = calib::taught(kind, &scene, &pen, name, &joints)?;
    let old = calib::taught_before(kind, &scene, name);
    show::line(report::compared(&old, &new).trim_end());
    if let Some(why) = change.complaint().filter(|_| !consent.change.overridden) {
        show::line(&format!("not taught: {why}"));
        return Ok(Exit::Refused);
    }
    let mut person = Person::here()?;
    if !person.agrees(QUESTION, consent.yes).await? {
        show::line("nothing was written");
        return Ok(Exit::Refused);
    }
    let at_ms = clock::calendar_ms();
    let touch = Contact {
        role: Role::Point,
        joints_rad,
        asked_mm: None,
        number: 0,
        at_ms,
        zeros: calib::zeros_of(&scene.arm.file),
    };
    let record = Record {
        number: place.store.next_number(),
        at_ms,
        method: "taught".to_owned(),
        servos: calib::servos(&scene.arm.file),
        verdict: Verdict::Usable,
        reasons: Vec::new(),
        residuals_mm: Vec::new(),
        old,
        new,
        session: Session {
            basis: calib::basis_of(kind, &scene, &pen)?,
            kind,
            scene: scene.name.clone(),
            pen,
            arm: scene.arm.file.name.clone(),
            name: name.to_owned(),
            probed: false,
            read_mm: None,
            seen: None,
            origin: place.origin(&scene.arm.file),
            touches: vec![touch],
        },
    };
    place.write(&record, &lock)?;
    Ok(Exit::Done)
}

/// Points to touch, in order, with their names for people.
const SHEET: [(Of, &str); 5] = [
    (Of::Origin, "the sheet's lower left corner"),
    (Of::X, "its lower right corner"),
    (Of::Y, "its upper left corner"),
    (Of::Sheet, "its upper right corner"),
    (Of::Sheet, "its middle"),
];

/// Further points of a flat sheet, and of one on a cylinder, whose middle stands out over its sides.
const FLAT: [(Of, &str); 1] = [(Of::Sheet, "another place, far from those")];
const ROLLED: [(Of, &str); 2] = [
    (Of::Sheet, "the middle of its lower edge"),
    (Of::Sheet, "the middle of its upper edge"),
];
const VERIFY: (Of, &str) = (Of::Verify, "one more place, which the fit does not see");

fn places(is_rolled: bool) -> Vec<(Of, &'static str)> {
    let more: &[_] = if is_rolled { &ROLLED } else { &FLAT };
    [&SHEET, more, &[VERIFY]].concat()
}

/// Touches asked for one after the other, each place so often that it is known how well they repeat; then it is shown, asked
/// for and accepted.
async fn sheet(node: &Options, args: &TeachArgs) -> anyhow::Result<Exit> {
    let TeachArgs { here, consent } = args;
    let place = Place::find(node, &here.at).await?;
    let scene = place.library.scene(&here.scene, None)?;
    let mut person = Person::here()?;
    for (of, what) in places(scene.surface.radius_mm().is_some()) {
        for time in 1..=TOUCHES_EACH {
            if !entered(&mut person, what, time).await {
                return kept(node, here, "").await;
            }
            // Where the arm is now, read anew.
            let place = Place::find(node, &here.at).await?;
            place.touch(&TouchArgs {
                what: What::Sheet,
                of: Some(of),
                mm: None,
                number: 0,
                here: here.clone(),
            })?;
        }
    }
    if !person.agrees(QUESTION, consent.yes).await? {
        return kept(node, here, "nothing was written; ").await;
    }
    let place = Place::find(node, &here.at).await?;
    place.accept(consent.change.overridden)
}

/// Says what is left of it all: the touches, and an arm that holds or lies limp.
async fn kept(node: &Options, here: &HereArgs, before: &str) -> anyhow::Result<Exit> {
    let place = Place::find(node, &here.at).await?;
    let scene = place.library.scene(&here.scene, None)?;
    let left = place.left(&scene.arm.file.name);
    show::line(&format!(
        "{before}the touches so far are kept: `steadyhand calibrate show`, `undo` or `discard`{left}"
    ));
    Ok(Exit::Refused)
}

const QUESTION: &str = "write this into the scene's file?";

/// Waits for Enter. Returns `false` at the end of input or on Ctrl-C.
async fn entered(person: &mut Person, what: &str, time: usize) -> bool {
    let how = match time {
        1 => format!("bring the tip to {what}"),
        _ => "lift the tip, let it down on the same place".to_owned(),
    };
    show::note(&format!(
        "{how}, and press Enter (touch {time} of {TOUCHES_EACH})"
    ));
    matches!(person.says().await, Said::Line(_))
}
