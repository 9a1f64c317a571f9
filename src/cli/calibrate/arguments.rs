//! The commands of `calibrate` with their options.

use anyhow::Context as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::joints::JointsArgs;
use crate::AtArgs;
use crate::choice::{Choice, choice};
use crate::placement_args::refuse_option;
use calib::{CalibrationKind, HandTouch, TouchRole};

#[derive(Debug, Subcommand)]
pub(crate) enum CalibrateCommand {
    /// Find zeros, limits and directions by moving each joint by hand
    Joints(JointsArgs),
    /// Add the arm's present joints as a touch, and show the result so far
    Touch(TouchArgs),
    /// Find where a camera stands, by the tags of a sheet that lies where it was taught
    Camera(CameraArgs),
    /// Find play, sag and the sheet's error by a drawn pattern; a camera reads it, or you measure its gaps
    Play(PlayArgs),
    /// Show the proposal: old, new, difference, verdict and next step
    Show {
        /// Write report.html, with a picture of the residuals, and report.json into this folder
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Take the last touch back, or every touch of one place
    Undo {
        /// A touch of that place, as `show` counts them
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
        touch: Option<u16>,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Discard the proposal
    Discard(AtArgs),
    /// Write the proposal into the scene's or the arm's file, if it is good enough
    Accept {
        #[command(flatten)]
        change: ChangeArgs,
        #[command(flatten)]
        at: AtArgs,
    },
    /// List what was accepted
    History(AtArgs),
    /// Show what a calibration changed, or what differs between two
    Diff {
        /// A number from `history`
        number: u64,
        /// A later one of the same thing
        other: Option<u64>,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Write a calibration's values again; with --before, undo it
    Restore {
        /// A number from `history`
        number: u64,
        /// Write what the file said before that calibration instead
        #[arg(long)]
        before: bool,
        /// The arm that it belongs to from now on, where an older file says none and the node has several of its model
        #[arg(long, value_name = "NAME")]
        arm: Option<String>,
        #[command(flatten)]
        change: ChangeArgs,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Import zeros and ranges from a LeRobot calibration
    Import {
        /// The JSON file
        file: PathBuf,
        /// The arm whose file is changed: its model, or its name on the node if the node has several of that model
        #[arg(long, default_value = "so101")]
        arm: String,
        /// Write it; without this it is shown
        #[arg(long)]
        accept: bool,
        #[command(flatten)]
        change: ChangeArgs,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Print an arm's zeros and limits for LeRobot
    Export {
        /// In LeRobot's form
        #[arg(long, required = true)]
        lerobot: bool,
        /// Which arm: its model, or its name on the node if the node has several of that model
        #[arg(long, default_value = "so101")]
        arm: String,
        #[command(flatten)]
        at: AtArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TouchArgs {
    /// Subject of the calibration
    #[arg(value_parser = choice(&TOUCHED))]
    pub(super) what: CalibrationKind,
    /// Place that the tip touches [default: the one fixed point of a tool, the sheet of a sheet]
    #[arg(long, value_parser = choice(&ROLES))]
    pub(super) of: Option<TouchRole>,
    /// Of x and y: how far from the origin, as a ruler says [default: the sheet's width and height]
    #[arg(long, value_name = "MM", value_parser = millimetres)]
    pub(super) mm: Option<f64>,
    /// Number of the point, if there are several
    #[arg(long, default_value_t = 0)]
    pub(super) number: usize,
    /// Place of a guided round, from 1.
    #[arg(skip)]
    pub(super) place: usize,
    #[command(flatten)]
    pub(super) here: HereArgs,
}

impl TouchArgs {
    pub(super) fn hand_touch(&self) -> HandTouch {
        HandTouch {
            of: self.of,
            mm: self.mm,
            number: self.number,
            place: self.place,
        }
    }
}

/// The scene, the pen and the joints.
#[derive(Debug, Clone, Args)]
pub(crate) struct HereArgs {
    /// In which scene
    #[arg(long)]
    pub(super) scene: String,
    /// The arm, if several arms of the node draw the scene
    #[arg(long, value_name = "NAME")]
    pub(super) arm: Option<String>,
    /// With which pen [default: the scene's first]
    #[arg(long)]
    pub(super) pen: Option<String>,
    /// The joints in rad, base first, instead of what the running node measures
    #[arg(
        long,
        value_name = "RAD,…",
        value_delimiter = ',',
        value_parser = radians,
        allow_hyphen_values = true
    )]
    pub(super) joints: Option<Vec<f64>>,
    #[command(flatten)]
    pub(super) at: AtArgs,
}

/// Consent to a large change.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ChangeArgs {
    /// Accept a change above 20 mm or 10 degrees, or of a joint's sign
    #[arg(long = "override")]
    pub(super) overridden: bool,
}

/// Consent that a person gives in advance.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct ConsentArgs {
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CameraArgs {
    /// Scene whose sheet it looks at
    #[arg(long)]
    pub(super) scene: String,
    /// Camera of the node [default: the only one]
    #[arg(long)]
    pub(super) camera: Option<String>,
    #[command(flatten)]
    pub(super) at: AtArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// Scene whose sheet is drawn on
    #[arg(long)]
    pub(super) scene: String,
    /// The arm, if several arms of the node draw the scene
    #[arg(long, value_name = "NAME")]
    pub(super) arm: Option<String>,
    #[command(flatten)]
    pub(super) at: AtArgs,
}

/// Calibrations that are made by touching.
const TOUCHED: [Choice<CalibrationKind>; 4] = [
    (
        "tool",
        "A pen's tip: touch one fixed point with the tool turned and tilted",
        CalibrationKind::Tool,
    ),
    (
        "sheet",
        "The sheet: touch origin, x, y and three more places",
        CalibrationKind::Sheet,
    ),
    (
        "zeros",
        "The joints' zeros: touch the sheet, points or the scene's calibrator in many poses",
        CalibrationKind::Zeros,
    ),
    (
        "bases",
        "Where arms stand relative to each other: touch the same four points with the tip of each arm, with the same numbers",
        CalibrationKind::Bases,
    ),
];

/// Places that the tip touches.
const ROLES: [Choice<TouchRole>; 7] = [
    ("point", "", TouchRole::Point),
    ("origin", "", TouchRole::Origin),
    ("x", "", TouchRole::X),
    ("y", "", TouchRole::Y),
    ("sheet", "", TouchRole::Sheet),
    ("calibrator", "", TouchRole::Calibrator),
    (
        "verify",
        "A check: touch an earlier target once more; the fit does not use it",
        TouchRole::Verify,
    ),
];

fn radians(text: &str) -> anyhow::Result<f64> {
    refuse_option(text)?;
    number(text).context("type each joint in rad, base first, such as 0.1,-0.3,0.4,1.2,0")
}

fn millimetres(text: &str) -> anyhow::Result<f64> {
    let mm = number(text).filter(|mm| *mm > 0.0);
    mm.context("type millimetres above 0, such as 100 or 62.5")
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    number.is_finite().then_some(number)
}
