//! `teach`: poses, sheet, ink caps and calibrator of a scene from where the arm is now.

use std::io::BufRead;

use clap::{Args, Subcommand};

use super::{Of, Place, Record, TouchArgs, Verdict, What, agreed, clock};
use crate::calib::{self, Contact, Kind, Role, Session, report};
use crate::cli::{AtArgs, Exit, NodeArgs, show};
use crate::scene::Scene;
use crate::units::Joints;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TeachCommand {
    /// A pose: `rest` or `ready`, from the joints as they are
    Pose {
        /// Which
        name: String,
        #[command(flatten)]
        here: HereArgs,
    },
    /// The sheet: touches of its origin, x, y and three more places, asked for one after the other
    Sheet {
        #[command(flatten)]
        here: HereArgs,
    },
    /// An ink cap: the middle of its rim, where the tip is
    Cap {
        /// Which
        name: String,
        #[command(flatten)]
        here: HereArgs,
    },
    /// The calibrator, where the tip is
    Calibrator {
        #[command(flatten)]
        here: HereArgs,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct HereArgs {
    /// Of which scene
    #[arg(long)]
    scene: String,
    /// With which pen [default: the scene's first]
    #[arg(long)]
    pen: Option<String>,
    /// The joints in rad, base first, instead of what the running node measures
    #[arg(
        long,
        value_name = "RAD,…",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    joints: Option<Vec<f64>>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Although it moves by more than 20 mm or 10 degrees
    #[arg(long = "override")]
    overridden: bool,
    #[command(flatten)]
    at: AtArgs,
}

pub(in crate::cli) async fn run(node: &NodeArgs, what: &TeachCommand) -> anyhow::Result<Exit> {
    let (kind, name, here) = match what {
        TeachCommand::Pose { name, here } => (Kind::Pose, name.as_str(), here),
        TeachCommand::Cap { name, here } => (Kind::Cap, name.as_str(), here),
        TeachCommand::Calibrator { here } => (Kind::Calibrator, "", here),
        TeachCommand::Sheet { here } => return sheet(node, here).await,
    };
    let place = Place::find(node, &here.at).await?;
    one(&place, kind, name, here)
}

fn one(place: &Place, kind: Kind, name: &str, here: &HereArgs) -> anyhow::Result<Exit> {
    let lock = place.store.lock()?;
    let scene = place.library.scene(&here.scene, None)?;
    let pen = pen_of(here, &scene);
    let joints_rad = place.joints(here.joints.as_ref(), &scene)?;
    let joints = Joints::from_slice(&joints_rad);
    let (new, change) = calib::taught(kind, &scene, &pen, name, &joints)?;
    let old = calib::taught_before(kind, &scene, name);
    show::line(report::compared(&old, &new).trim_end());
    if let Some(why) = change.complaint().filter(|_| !here.overridden) {
        show::line(&format!("not taught: {why}"));
        return Ok(Exit::Refused);
    }
    if !agreed("write this into the scene's file?", here.yes)? {
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
            touches: vec![touch],
        },
    };
    place.write(&record, &lock)?;
    Ok(Exit::Done)
}

fn pen_of(here: &HereArgs, scene: &Scene) -> String {
    let first = || scene.pen(0).map(|pen| pen.name.clone());
    here.pen.clone().or_else(first).unwrap_or_default()
}

/// What is touched, in which order, and how a person calls it.
const SHEET: [(Of, &str); 7] = [
    (Of::Origin, "the sheet's lower left corner"),
    (Of::X, "its lower right corner"),
    (Of::Y, "its upper left corner"),
    (Of::Sheet, "its upper right corner"),
    (Of::Sheet, "its middle"),
    (Of::Sheet, "another place, far from those"),
    (Of::Verify, "one more place, which the fit does not see"),
];

/// Touches asked for one after the other; then it is shown, asked for and accepted.
async fn sheet(node: &NodeArgs, here: &HereArgs) -> anyhow::Result<Exit> {
    let joints = here.joints.clone();
    for (of, what) in SHEET {
        if !entered(what)? {
            show::line(
                "the touches so far are kept: `steadyhand calibrate show`, `undo` or `discard`",
            );
            return Ok(Exit::Refused);
        }
        // Where the arm is now, read anew.
        let place = Place::find(node, &here.at).await?;
        place.touch(&TouchArgs {
            what: What::Sheet,
            scene: here.scene.clone(),
            pen: here.pen.clone(),
            of: Some(of),
            mm: None,
            number: 0,
            joints: joints.clone(),
            at: here.at.clone(),
        })?;
    }
    if !agreed("write this into the scene's file?", here.yes)? {
        show::line("nothing was written; the touches are kept");
        return Ok(Exit::Refused);
    }
    Place::find(node, &here.at).await?.accept(here.overridden)
}

/// Whether Enter was pressed, and not the input's end met.
fn entered(what: &str) -> anyhow::Result<bool> {
    show::note(&format!("bring the tip to {what}, and press Enter"));
    let mut line = String::new();
    Ok(std::io::stdin().lock().read_line(&mut line)? > 0)
}
