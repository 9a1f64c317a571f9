//! `calibrate`: touches collected, judged, accepted, taken back; calibrations of others read and written.

mod joints;
mod person;
pub(super) mod teach;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};

use super::{AtArgs, Exit, Options, operate, show};
use arm::ArmFile;
use base::clock;
use calib::{
    self, Assessed, CalibrationOrigin, Contact, Glimpse, Kind, Record, Role, Session, Store,
    Values, Verdict, lerobot, report,
};
use config::ArmEntry;
use node::control_socket::Verb;
use node::measurements::{Measured, MeasuredArm};
use node::{open, state_folder};
use scene::{Library, Scene};

#[derive(Debug, Subcommand)]
pub(super) enum CalibrateCommand {
    /// Move each joint through its range by hand: zeros, limits and directions, checked and saved with
    /// who the servos are
    Joints(joints::JointsArgs),
    /// Add the arm's present joints as a touch, and say what all touches so far come to
    Touch(TouchArgs),
    /// Take where a camera stands from a picture of a sheet's tags, the sheet lying where it was taught
    Camera(CameraArgs),
    /// Show the proposal: old, new, difference, residuals, verdict and next step
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
    /// Take the last touch back
    Undo(AtArgs),
    /// Throw the proposal away
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
    /// Show what one calibration changed, or what differs between two
    Diff {
        /// A number from `history`
        number: u64,
        /// A later one of the same thing
        other: Option<u64>,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Write again what a calibration said
    Restore {
        /// A number from `history`
        number: u64,
        #[command(flatten)]
        change: ChangeArgs,
        #[command(flatten)]
        at: AtArgs,
    },
    /// Take zeros and ranges over from a calibration of LeRobot, of either form
    Import {
        /// The JSON file
        file: PathBuf,
        /// Into the file of this arm
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
    /// Print an arm's zeros and limits as a calibration for LeRobot
    Export {
        /// In LeRobot's form
        #[arg(long, required = true)]
        lerobot: bool,
        /// Which arm
        #[arg(long, default_value = "so101")]
        arm: String,
        #[command(flatten)]
        at: AtArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct TouchArgs {
    /// What is calibrated
    what: What,
    /// What the tip touches [default: the one fixed point of a tool, the sheet of a sheet]
    #[arg(long)]
    of: Option<Of>,
    /// Of x and y: how far from the origin, as a ruler says [default: the sheet's width and height]
    #[arg(long, value_name = "MM", value_parser = millimetres)]
    mm: Option<f64>,
    /// Which point, where zeros are found from several that are not known
    #[arg(long, default_value_t = 0)]
    number: usize,
    #[command(flatten)]
    here: HereArgs,
}

/// Where the tip is, and in which scene.
#[derive(Debug, Clone, Args)]
struct HereArgs {
    /// In which scene
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
        value_parser = radians,
        allow_hyphen_values = true
    )]
    joints: Option<Vec<f64>>,
    #[command(flatten)]
    at: AtArgs,
}

impl HereArgs {
    fn pen_of(&self, scene: &Scene) -> String {
        let first = || scene.pen(0).map(|pen| pen.name.clone());
        self.pen.clone().or_else(first).unwrap_or_default()
    }
}

/// How large a change may be.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ChangeArgs {
    /// Although it changes more than 20 mm or 10 degrees, or turns a joint's sign round
    #[arg(long = "override")]
    overridden: bool,
}

/// What a person says beforehand.
#[derive(Debug, Clone, Copy, Args)]
struct ConsentArgs {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(super) struct CameraArgs {
    /// Whose sheet it looks at
    #[arg(long)]
    scene: String,
    /// Which camera of the node [default: the only one]
    #[arg(long)]
    camera: Option<String>,
    #[command(flatten)]
    at: AtArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// A pen's tip: one fixed point, touched with the tool turned and tilted
    Tool,
    /// The sheet: origin, x, y and three more places
    Sheet,
    /// The joints' zeros: the sheet, points, or the scene's calibrator, in many poses
    Zeros,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    Point,
    Origin,
    X,
    Y,
    Sheet,
    Calibrator,
    /// Whatever was touched before, once more, not to be fitted but to be predicted
    Verify,
}

fn radians(said: &str) -> Result<f64, String> {
    number(said)
        .ok_or_else(|| "write each joint in rad, base first, such as 0.1,-0.3,0.4,1.2,0".to_owned())
}

fn millimetres(said: &str) -> Result<f64, String> {
    let mm = number(said).filter(|mm| *mm > 0.0);
    mm.ok_or_else(|| "write millimetres above 0, such as 100 or 62.5".to_owned())
}

fn number(said: &str) -> Option<f64> {
    said.trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

pub(super) async fn run(node: &Options, what: CalibrateCommand) -> anyhow::Result<Exit> {
    match what {
        CalibrateCommand::Joints(args) => joints::run(node, &args).await,
        CalibrateCommand::Touch(args) => Place::find(node, &args.here.at).await?.touch(&args),
        CalibrateCommand::Camera(args) => {
            let place = Place::find(node, &args.at).await?;
            place.camera(&args).await
        }
        CalibrateCommand::Show { out, json, at } => {
            Place::find(node, &at).await?.show(out.as_deref(), json)
        }
        CalibrateCommand::Undo(at) => Place::find(node, &at).await?.undo(),
        CalibrateCommand::Discard(at) => {
            let place = Place::find(node, &at).await?;
            place.discard()
        }
        CalibrateCommand::Accept { change, at } => {
            Place::find(node, &at).await?.accept(change.overridden)
        }
        CalibrateCommand::History(at) => Place::find(node, &at).await?.history(),
        CalibrateCommand::Diff { number, other, at } => {
            Place::find(node, &at).await?.diff(number, other)
        }
        CalibrateCommand::Restore { number, change, at } => {
            let place = Place::find(node, &at).await?;
            place.restore(number, change.overridden)
        }
        CalibrateCommand::Import {
            file,
            arm,
            accept,
            change,
            at,
        } => {
            let place = Place::find(node, &at).await?;
            place.import(&file, &arm, accept, change.overridden)
        }
        CalibrateCommand::Export { arm, at, .. } => Place::find(node, &at).await?.export(&arm),
    }
}

/// The folders that a calibration reads and writes: the running node's, otherwise those named.
struct Place {
    store: Store,
    library: Library,
    arms: Vec<MeasuredArm>,
    /// The arms of a node file without a running node.
    entries: Vec<ArmEntry>,
    runs: bool,
}

impl Place {
    async fn find(node: &Options, at: &AtArgs) -> anyhow::Result<Self> {
        if let Some(url) = &at.node {
            bail!(
                "a calibration is kept in the folders of the node's own machine: run this there, not for {url}"
            );
        }
        if operate::is_meant(node, at) {
            let told = operate::ask(at, &Verb::Measured).await?;
            let seen: Measured = serde_json::from_str(&told.text)
                .with_context(|| format!("the node says: {}", told.text))?;
            let mut library = Library::new(seen.scenes);
            for arm in &seen.arms {
                library.let_stand_in(&*library.arm(&arm.model)?)?;
            }
            return Ok(Self {
                store: Store::of_state(&seen.state),
                library,
                arms: seen.arms,
                entries: Vec::new(),
                runs: true,
            });
        }
        let file = open::file(node)?;
        if state_folder::is_practice(node, &file) {
            bail!(
                "there is nowhere to keep a calibration: start the node, or say --state DIR or --config FILE"
            );
        }
        Ok(Self {
            store: Store::of_state(&state_folder::folder(node, &file)?),
            library: open::library(node, &file)?,
            arms: Vec::new(),
            entries: file.arms,
            runs: false,
        })
    }

    /// How an arm of this model is left; nothing of one that no running node has.
    fn left(&self, model: &str) -> String {
        let arm = self.arms.iter().find(|arm| arm.model == model);
        arm.map_or_else(String::new, |arm| format!("; {}", torque(arm.energised)))
    }

    /// Returns the arm that a calibration is made on: the running node's, or as far as the files know it.
    fn origin(&self, arm: &ArmFile) -> CalibrationOrigin {
        if let Some(seen) = self.arms.iter().find(|seen| seen.model == arm.name) {
            return seen.origin.clone();
        }
        let entry = self.entries.iter().find(|entry| entry.model == arm.name);
        CalibrationOrigin {
            simulated: entry.map(ArmEntry::is_simulated),
            servos: calib::servos(arm),
        }
    }

    /// Refuses joints that a running node measures with other zeros than the arm's file has.
    fn same_zeros(&self, arm: &ArmFile) -> anyhow::Result<()> {
        let seen = self.arms.iter().find(|seen| seen.model == arm.name);
        if seen.is_some_and(|seen| seen.zeros != calib::zeros_of(arm)) {
            bail!(
                "the node measures arm {0} with other zeros than its file has; start the node again, then touch: nothing was recorded",
                arm.name
            );
        }
        Ok(())
    }

    fn scene(&self, session: &Session) -> anyhow::Result<Arc<Scene>> {
        Ok(self.library.scene(&session.scene, None)?)
    }

    fn proposal(&self) -> anyhow::Result<Session> {
        let session = self.store.proposal()?;
        session.context("nothing was touched: `steadyhand calibrate touch tool|sheet|zeros --scene NAME` begins")
    }

    fn assess(&self, session: &Session) -> anyhow::Result<Assessed> {
        let history = self.store.history()?;
        let last = history
            .iter()
            .rev()
            .find(|record| record.session.is_of_same(session));
        Ok(calib::assess(session, &*self.scene(session)?, last)?)
    }

    fn touch(&self, args: &TouchArgs) -> anyhow::Result<Exit> {
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

    async fn camera(&self, args: &CameraArgs) -> anyhow::Result<Exit> {
        if !self.runs {
            bail!(
                "the picture is a running node's: start it, and say this without --state and --config"
            );
        }
        let ask = Verb::Look {
            scene: args.scene.clone(),
            camera: args.camera.clone(),
        };
        let told = operate::ask(&args.at, &ask).await?;
        if !told.done {
            bail!("{}", told.text);
        }
        let glimpse: Glimpse = serde_json::from_str(&told.text)
            .with_context(|| format!("the node says: {}", told.text))?;
        let scene = self.library.scene(&args.scene, None)?;
        let session = self.seen(&scene, glimpse)?;
        let lock = self.store.lock()?;
        if let Some(there) = self
            .store
            .proposal()?
            .filter(|there| !there.is_of_same(&session))
        {
            bail!(
                "a calibration of the {} of scene {} is being made: `steadyhand calibrate accept` or `discard` first",
                there.kind.word(),
                there.scene
            );
        }
        let assessed = self.assess(&session)?;
        self.store.propose(&session, &lock)?;
        show::line(&report::words(&session, &assessed));
        Ok(match assessed.finding.verdict {
            Verdict::Redo => Exit::Refused,
            _ => Exit::Done,
        })
    }

    fn seen(&self, scene: &Scene, glimpse: Glimpse) -> anyhow::Result<Session> {
        let pen = scene.pen(0).map(|pen| pen.name.clone()).unwrap_or_default();
        Ok(Session {
            basis: calib::basis_of(Kind::Camera, scene, &pen)?,
            kind: Kind::Camera,
            scene: scene.name.clone(),
            pen,
            arm: scene.arm.file.name.clone(),
            name: glimpse.camera.clone(),
            probed: false,
            read_mm: None,
            seen: Some(glimpse),
            origin: self.origin(&scene.arm.file),
            touches: Vec::new(),
        })
    }

    fn session(&self, args: &TouchArgs, scene: &Scene) -> anyhow::Result<Session> {
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

    fn joints(&self, said: Option<&Vec<f64>>, scene: &Scene) -> anyhow::Result<Vec<f64>> {
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

    fn show(&self, out: Option<&Path>, json: bool) -> anyhow::Result<Exit> {
        let session = self.proposal()?;
        let assessed = self.assess(&session)?;
        let text = serde_json::to_string_pretty(&assessed)?;
        if let Some(folder) = out {
            base::disk::folder(folder)?;
            calib::put(
                &folder.join("report.html"),
                &report::html(&session, &assessed),
            )?;
            calib::put(&folder.join("report.json"), &text)?;
        }
        show::line(&if json {
            text
        } else {
            report::words(&session, &assessed)
        });
        Ok(match assessed.finding.verdict {
            Verdict::Redo => Exit::Refused,
            _ => Exit::Done,
        })
    }

    /// A proposal that cannot be read is thrown away as well.
    fn discard(&self) -> anyhow::Result<Exit> {
        let lock = self.store.lock()?;
        if matches!(self.store.proposal(), Ok(None)) {
            show::line("nothing was proposed; nothing was done");
            return Ok(Exit::Refused);
        }
        self.store.discard(&lock)?;
        show::line("the proposal is thrown away");
        Ok(Exit::Done)
    }

    fn undo(&self) -> anyhow::Result<Exit> {
        let lock = self.store.lock()?;
        let mut session = self.proposal()?;
        session.touches.pop();
        self.store.propose(&session, &lock)?;
        show::line(&format!("{} touches are left", session.touches.len()));
        Ok(Exit::Done)
    }

    fn accept(&self, overridden: bool) -> anyhow::Result<Exit> {
        let lock = self.store.lock()?;
        let session = self.proposal()?;
        let here = self.origin(&self.library.arm(&session.arm)?.file);
        if session.origin.simulated != here.simulated {
            show::line(&format!(
                "not accepted: it was found on {}, and this is {}; `steadyhand calibrate discard`, and touch again",
                origin_words(&session.origin),
                origin_words(&here)
            ));
            return Ok(Exit::Refused);
        }
        let assessed = self.assess(&session)?;
        show::line(&report::words(&session, &assessed));
        if let Err(why) = calib::check(&assessed.finding, &assessed.change, overridden) {
            show::line(&format!("not accepted: {why}"));
            return Ok(Exit::Refused);
        }
        let record = Record {
            number: self.store.next_number(),
            at_ms: clock::calendar_ms(),
            method: session.method().to_owned(),
            servos: calib::servos(&self.scene(&session)?.arm.file),
            verdict: assessed.finding.verdict,
            reasons: assessed.finding.reasons.clone(),
            residuals_mm: assessed.points.iter().map(calib::Residual::mm).collect(),
            old: assessed.old,
            new: assessed.new,
            session,
        };
        self.write(&record, &lock)?;
        self.store.discard(&lock)?;
        Ok(Exit::Done)
    }

    /// Returns whether an arm's joints keep their signs, or a person said that they shall not. A sign that flips is told in a line
    /// of its own either way.
    fn keeps_signs(&self, arm: &str, new: &Values, overridden: bool) -> anyhow::Result<bool> {
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
        show::line(&format!(
            "!!! SIGN FLIP: {} would turn the other way round than the arm's file says; every motion of it would go the other way; {what}",
            flipped.join(", ")
        ));
        Ok(overridden)
    }

    fn write(&self, record: &Record, lock: &calib::Lock) -> anyhow::Result<()> {
        self.write_with(record, None, lock)
    }

    /// Into the file, then into the history; a file that does not load is put back.
    fn write_with(
        &self,
        record: &Record,
        servos: Option<&BTreeMap<u8, String>>,
        lock: &calib::Lock,
    ) -> anyhow::Result<()> {
        let session = &record.session;
        if session.kind == Kind::Camera {
            let path = self.store.keep_camera(record, lock)?;
            self.store.keep(record, lock)?;
            let number = record.number;
            show::line(&format!(
                "accepted as calibration {number}: {}",
                path.display()
            ));
            return Ok(());
        }
        let name = match session.kind {
            Kind::Zeros => format!("arms/{}.toml", session.arm),
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
        show::line(&format!(
            "accepted as calibration {}: {}",
            record.number,
            path.display()
        ));
        self.tell_dependants(session)
    }

    fn loads(&self, session: &Session) -> anyhow::Result<()> {
        self.library.arm(&session.arm)?;
        if session.kind != Kind::Zeros {
            self.library.scene(&session.scene, None)?;
        }
        Ok(())
    }

    fn tell_dependants(&self, session: &Session) -> anyhow::Result<()> {
        if session.kind == Kind::Zeros && self.runs {
            show::line(
                "a node reads an arm's file when it starts: start it again; until then it enables, moves and touches nothing by the new file, and a stop stops it as ever",
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
                show::line(&stale);
            }
        }
        Ok(())
    }

    fn history(&self) -> anyhow::Result<Exit> {
        let history = self.store.history()?;
        if history.is_empty() {
            show::line("nothing was calibrated yet");
        }
        history.iter().for_each(|record| show::line(&record.line()));
        Ok(Exit::Done)
    }

    fn diff(&self, number: u64, other: Option<u64>) -> anyhow::Result<Exit> {
        let one = self.store.record(number)?;
        let Some(other) = other else {
            show::line(&report::record(&one));
            return Ok(Exit::Done);
        };
        let other = self.store.record(other)?;
        if !one.session.is_of_same(&other.session) {
            bail!(
                "calibration {number} is of {} and {} is of {}",
                one.session.kind.word(),
                other.number,
                other.session.kind.word()
            );
        }
        show::line(report::compared(&one.new, &other.new).trim_end());
        Ok(Exit::Done)
    }

    fn restore(&self, number: u64, overridden: bool) -> anyhow::Result<Exit> {
        let lock = self.store.lock()?;
        let mut before = self.store.record(number)?;
        if before.session.origin.simulated.is_none() {
            // Who restores it beside an arm says that it is this one's.
            let arm = self.library.arm(&before.session.arm)?;
            before.session.origin = self.origin(&arm.file);
        }
        if !self.keeps_signs(&before.session.arm, &before.new, overridden)? {
            return Ok(Exit::Refused);
        }
        let history = self.store.history()?;
        let newest = history
            .iter()
            .rev()
            .find(|r| r.session.is_of_same(&before.session));
        let old = newest.map_or_else(Values::new, |record| record.new.clone());
        show::line(report::compared(&old, &before.new).trim_end());
        let record = Record {
            number: self.store.next_number(),
            at_ms: clock::calendar_ms(),
            method: format!("restored from {number}"),
            old,
            ..before
        };
        self.write(&record, &lock)?;
        Ok(Exit::Done)
    }

    fn import(
        &self,
        file: &Path,
        arm: &str,
        accept: bool,
        overridden: bool,
    ) -> anyhow::Result<Exit> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let read: lerobot::File = serde_json::from_str(&text).map_err(|error| {
            let at = if error.is_data() {
                String::new()
            } else {
                format!(" (line {}, column {}: no JSON)", error.line(), error.column())
            };
            anyhow!(
                "{} is no calibration of LeRobot{at}: it names each joint with whole counts, such as {{\"shoulder_pan\": {{\"id\": 1, \"drive_mode\": 0, \"homing_offset\": -12, \"range_min\": 800, \"range_max\": 3200}}}}",
                file.display()
            )
        })?;
        let arm = self.library.arm(arm)?;
        let taken = lerobot::import(&read, &arm)?;
        show::line(report::compared(&taken.old, &taken.new).trim_end());
        for left in &taken.left {
            show::line(&format!("not taken over: {left}"));
        }
        let change = calib::Change {
            mm: 0.0,
            deg: taken.turn_deg(&arm),
        };
        if let Some(why) = change.complaint().filter(|_| !overridden) {
            show::line(&format!("not accepted: {why}"));
            return Ok(Exit::Refused);
        }
        if !self.keeps_signs(&arm.file.name, &taken.new, overridden)? {
            return Ok(Exit::Refused);
        }
        if !accept {
            show::line("nothing was written; say --accept to write it");
            return Ok(Exit::Done);
        }
        let lock = self.store.lock()?;
        let record = Record {
            reasons: taken.left,
            old: taken.old,
            new: taken.new,
            ..of_arm(self, &arm, "LeRobot's file")
        };
        self.write(&record, &lock)?;
        Ok(Exit::Done)
    }

    fn export(&self, arm: &str) -> anyhow::Result<Exit> {
        let arm = self.library.arm(arm)?;
        let seen = self.arms.iter().find(|seen| seen.model == arm.file.name);
        let homing = seen.map(|seen| seen.homing.iter().copied().collect());
        if homing.is_none() {
            show::note(
                "the servos' homing offsets are not known without a node on the arm: they are written as 0",
            );
        }
        let motors = lerobot::export(&arm, &homing.unwrap_or_default());
        show::line(&serde_json::to_string_pretty(&motors)?);
        Ok(Exit::Done)
    }
}

/// What a person at the arm must know of it before leaving.
const fn torque(energised: bool) -> &'static str {
    if energised {
        "the arm holds with its torque on"
    } else {
        "the arm's torque is off: it lies where your hands leave it, and `steadyhand status` says so"
    }
}

/// A record of an arm's zeros that no touch was made for.
fn of_arm(place: &Place, arm: &arm::Arm, method: &str) -> Record {
    Record {
        number: place.store.next_number(),
        at_ms: clock::calendar_ms(),
        method: method.to_owned(),
        servos: calib::servos(&arm.file),
        verdict: Verdict::Usable,
        reasons: Vec::new(),
        residuals_mm: Vec::new(),
        old: Values::new(),
        new: Values::new(),
        session: Session {
            kind: Kind::Zeros,
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

fn origin_words(origin: &CalibrationOrigin) -> &'static str {
    match origin.simulated {
        Some(true) => "a simulated arm",
        Some(false) => "an arm at a port, with servos of its own",
        None => "an arm that no node file names",
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
