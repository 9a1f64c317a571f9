//! `sim --pty`: runs simulated arms that any program can open as a serial port.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use base::signals::{SignalKind, SignalListener};
use clap::Args;
use serde_json::json;
use tokio::sync::oneshot;

use super::practice_input::PracticeInput;
use super::{ExitStatus, NodeOptions, files, terminal_output};
use arm::ArmModel;
use base::clock::NodeClock;
use base::units::ClockInstant;
use link::memory::FarEnd;
use link::pty;
use node::open;
use scene::{Scene, SceneError, SceneLibrary};
use sim::{ArmSimulator, HeldPens, SimulatedFault};

#[derive(Debug, Args)]
pub(super) struct SimArgs {
    /// On a pseudo-terminal, whose path is the first line of standard output
    #[arg(long, required = true)]
    pty: bool,
    /// The arm
    #[arg(long, default_value = "so101")]
    arm: String,
    /// Number of such arms on the port: each has the ids after those of the one before. Faults and standard input are for the
    /// first; the ink of the second goes to FILE-2
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=40))]
    arms: u8,
    /// The scene whose sheet lies before it and whose pens it holds; if a person changes pens, the
    /// first, until a line `pen N` on standard input changes it [default: the default scene if it is
    /// this arm's, otherwise the first that is]
    #[arg(long)]
    scene: Option<String>,
    /// File for the drawing, written every second while it changes: a picture, or points in
    /// sheet millimetres if the name ends in .json, with each line's pen if it ends in .pens.json
    #[arg(long, value_name = "FILE")]
    ink: Option<PathBuf>,
    /// File for every byte that the arm receives, in hexadecimal
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Answer at once, without the delays of a serial line
    #[arg(long)]
    unpaced: bool,
    /// Folder of the scenes and arms as they really are, for practice: the node believes its own
    #[arg(long, value_name = "DIR")]
    truth: Option<PathBuf>,
    /// A fault from the start, such as 'voltage 4 4.5', 'silent 3', 'two-on 2' or 'loss 0.2'; `fault …` on standard input
    /// brings one later. `hand X Y Z` there moves the limp arm's tip, `hand X Y Z LEAN TURN` leans its pen, 1 to 9 choose a joint
    /// and + and - turn it
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<SimulatedFault>,
}

/// Interval at which the picture is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A simulated arm, and what lies before it.
struct PracticeArm {
    simulator: ArmSimulator,
    scene: Arc<Scene>,
    ink: Option<PathBuf>,
}

pub(super) async fn run(node: &NodeOptions, args: SimArgs) -> anyhow::Result<ExitStatus> {
    let arms = practice_arms(node, &args)?;
    let Some(first) = arms.first() else {
        bail!("there is no arm to simulate");
    };
    let faults = args.faults.into_iter();
    faults.for_each(|fault| first.simulator.break_it(fault));
    let mut terminate = SignalListener::listen(SignalKind::Terminate)?;
    let traced = TracedSimulator {
        inner: arms.iter().map(|arm| arm.simulator.clone()).collect(),
        trace: args.trace.map(std::fs::File::create).transpose()?,
    };
    let (wire, opened) = spawn_wire(traced)?;
    // The path is the first line. Where there is none, the wire says why.
    let _ = opened.await;
    let _raw = PracticeInput::listen(&first.simulator, &first.scene)?;
    tokio::select! {
        served = wire => {
            served??;
            terminal_output::note("the arm was unplugged, and its port is gone. Next: start this command again");
        }
        () = keep_pictures(&arms) => {}
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    arms.iter().for_each(PracticeArm::save);
    Ok(ExitStatus::Done)
}

/// Returns the simulated arms, each before its scene as it really is.
fn practice_arms(node: &NodeOptions, args: &SimArgs) -> anyhow::Result<Vec<PracticeArm>> {
    let mut library = open::library(node, &open::file(node)?)?;
    let arm = library.arm(&args.arm)?;
    library.let_stand_in(&arm)?;
    let scenes = scenes_of(&library, &arm, args)?;
    let truth = args
        .truth
        .as_deref()
        .map(open::scenes_of_truth)
        .transpose()?;
    let (mut arms, mut first_id) = (Vec::new(), None);
    for (scene, number) in scenes.into_iter().zip(1_u8..) {
        if scene.arm.file.name != arm.file.name {
            let (name, arm) = (&scene.name, &scene.arm.file.name);
            bail!("scene `{name}` is for an arm of model {arm}. Next: choose another with --scene");
        }
        let scene = match &truth {
            Some(truth) => true_scene(truth.clone(), &args.arm, &scene.name)?,
            None => scene,
        };
        let on_bus = match first_id {
            Some(first_id) => scene.arm.with_first_id(first_id)?,
            None => ArmModel::clone(&scene.arm),
        };
        first_id = on_bus
            .ids()
            .into_iter()
            .max()
            .map(|id| id.saturating_add(1));
        let simulator = ArmSimulator::new(&on_bus, &scene.rest_rad);
        simulator.set_paced(!args.unpaced);
        open::lay(&simulator, &scene);
        if scene.holder.is_by_hand() {
            simulator.hold_pens(HeldPens::One(0));
        }
        let ink = args.ink.as_deref().map(|ink| numbered(ink, number));
        arms.push(PracticeArm {
            simulator,
            scene,
            ink,
        });
    }
    Ok(arms)
}

/// Returns the scene of each arm: the part of each where they share one, otherwise the same for all.
fn scenes_of(
    library: &SceneLibrary,
    arm: &ArmModel,
    args: &SimArgs,
) -> anyhow::Result<Vec<Arc<Scene>>> {
    let count = usize::from(args.arms);
    let Some(name) = &args.scene else {
        return Ok(vec![scene_of(library, arm)?; count]);
    };
    match library.scene(name, None) {
        Err(SceneError::SeveralArms { arms, .. }) if arms.len() == count => {
            let parts = library.shared(name, None)?.parts.into_iter();
            Ok(parts.map(|part| part.scene).collect())
        }
        scene => Ok(vec![scene?; count]),
    }
}

fn true_scene(mut truth: SceneLibrary, arm: &str, scene: &str) -> anyhow::Result<Arc<Scene>> {
    let true_arm = truth.arm(arm)?;
    truth.let_stand_in(&true_arm)?;
    Ok(truth.scene(scene, None)?)
}

/// Returns the file of an arm's ink: that of the second has `-2` after its name, before the first point.
fn numbered(ink: &Path, number: u8) -> PathBuf {
    let name = ink.file_name().unwrap_or_default().to_string_lossy();
    let (stem, end) = name.split_once('.').unwrap_or((&name, ""));
    let point = if end.is_empty() { "" } else { "." };
    match number {
        1 => ink.to_owned(),
        _ => ink.with_file_name(format!("{stem}-{number}{point}{end}")),
    }
}

/// Serves the pseudo-terminal on its own thread, because its precise waiting would delay other work. Returns its end, and the
/// moment at which its path is printed.
fn spawn_wire(
    device: TracedSimulator,
) -> std::io::Result<(
    oneshot::Receiver<std::io::Result<()>>,
    oneshot::Receiver<()>,
)> {
    let (done, served) = oneshot::channel();
    let (printed, opened) = oneshot::channel();
    let runtime = base::clock::alarm_runtime()?;
    std::thread::Builder::new()
        .name("wire".to_owned())
        .spawn(move || {
            let clock = NodeClock::real();
            let wire = pty::serve(device, &clock, |path| {
                terminal_output::line(&path.display().to_string());
                let _ = printed.send(());
            });
            // The receiver may have been stopped meanwhile.
            let _ = done.send(runtime.block_on(wire));
        })?;
    Ok((served, opened))
}

/// Returns the arm's default scene, otherwise the first that is for it.
fn scene_of(library: &SceneLibrary, arm: &ArmModel) -> anyhow::Result<Arc<Scene>> {
    let arms = [arm.file.name.as_str()];
    let default = library.default_scene(&arms);
    let Some(name) = default.or_else(|| library.scenes_for(&arms).into_iter().next()) else {
        bail!(
            "there is no scene for an arm of model {}. Next: write one and name it with --scene",
            arm.file.name
        );
    };
    Ok(library.scene(&name, None)?)
}

/// Simulated arms with a trace of the bytes that they receive.
struct TracedSimulator {
    inner: Vec<ArmSimulator>,
    trace: Option<std::fs::File>,
}

impl FarEnd for TracedSimulator {
    fn hear(&mut self, at: ClockInstant, bytes: &[u8]) {
        if let Some(trace) = &mut self.trace {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            if let Err(error) = writeln!(trace, "{hex}") {
                terminal_output::note(&format!("the trace can no longer be written: {error}"));
                self.trace = None;
            }
        }
        self.inner.hear(at, bytes);
    }

    fn next_due(&self) -> Option<ClockInstant> {
        self.inner.next_due()
    }

    fn speak(&mut self, now: ClockInstant, into: &mut Vec<u8>) {
        self.inner.speak(now, into);
    }

    fn tune(&mut self, baud: u32) {
        self.inner.tune(baud);
    }

    fn is_plugged(&self) -> bool {
        self.inner.is_plugged()
    }
}

/// Writes the picture of an arm whenever it has new ink. Never returns.
async fn keep_pictures(arms: &[PracticeArm]) {
    let mut drawn_points = vec![0_usize; arms.len()];
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    loop {
        interval.tick().await;
        for (arm, drawn_points) in arms.iter().zip(&mut drawn_points) {
            let ink = arm.simulator.ink();
            let points = ink.iter().map(|ink| ink.points_mm.len()).sum();
            if std::mem::replace(drawn_points, points) != points {
                arm.save();
            }
        }
    }
}

impl PracticeArm {
    fn save(&self) {
        let Some(path) = &self.ink else { return };
        let ink = self.simulator.ink().into_iter();
        let ink: Vec<_> = ink.map(|ink| (ink.pen, ink.points_mm)).collect();
        let picture = if path.to_string_lossy().ends_with(".pens.json") {
            let line = |(pen, line): &(usize, _)| json!({"pen": pen + 1, "points_mm": line});
            serde_json::to_vec(&ink.iter().map(line).collect::<Vec<_>>()).ok()
        } else if path.extension().is_some_and(|end| end == "json") {
            let lines: Vec<_> = ink.iter().map(|(_, line)| line).collect();
            serde_json::to_vec(&lines).ok()
        } else {
            tools::ink_picture(&self.scene, &ink)
        };
        if let Some(Err(error)) = picture.map(|picture| files::write(path, &picture)) {
            terminal_output::note(&format!("{error:#}"));
        }
    }
}
