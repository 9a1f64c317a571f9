//! `sim --pty`: runs a simulated arm that any program can open as a serial port.

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
use scene::{Scene, SceneLibrary};
use sim::{ArmSimulator, HeldPens, SimulatedFault};

#[derive(Debug, Args)]
pub(super) struct SimArgs {
    /// On a pseudo-terminal, whose path is the first line of standard output
    #[arg(long, required = true)]
    pty: bool,
    /// The arm
    #[arg(long, default_value = "so101")]
    arm: String,
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

pub(super) async fn run(node: &NodeOptions, args: SimArgs) -> anyhow::Result<ExitStatus> {
    let mut library = open::library(node, &open::file(node)?)?;
    let arm = library.arm(&args.arm)?;
    library.let_stand_in(&arm)?;
    let scene = match &args.scene {
        Some(name) => library.scene(name, None)?,
        None => scene_of(&library, &arm)?,
    };
    if scene.arm.file.name != arm.file.name {
        let (name, arm) = (&scene.name, &scene.arm.file.name);
        bail!("scene `{name}` is for the arm {arm}. Next: choose another with --scene");
    }
    let scene = match &args.truth {
        Some(folder) => {
            let mut truth = open::scenes_of_truth(folder)?;
            let true_arm = truth.arm(&args.arm)?;
            truth.let_stand_in(&true_arm)?;
            truth.scene(&scene.name, None)?
        }
        None => scene,
    };
    let simulator = ArmSimulator::new(&scene.arm, &scene.rest_rad);
    simulator.set_paced(!args.unpaced);
    open::lay(&simulator, &scene);
    if scene.holder.is_by_hand() {
        simulator.hold_pens(HeldPens::One(0));
    }
    args.faults
        .into_iter()
        .for_each(|fault| simulator.break_it(fault));
    let mut terminate = SignalListener::listen(SignalKind::Terminate)?;
    let traced = TracedSimulator {
        inner: simulator.clone(),
        trace: args.trace.map(std::fs::File::create).transpose()?,
    };
    let (wire, opened) = spawn_wire(traced)?;
    // The path is the first line. Where there is none, the wire says why.
    let _ = opened.await;
    let _raw = PracticeInput::listen(&simulator, &scene)?;
    tokio::select! {
        served = wire => served??,
        () = keep_picture(&simulator, &scene, args.ink.as_deref()) => {}
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    save(&simulator, &scene, args.ink.as_deref());
    Ok(ExitStatus::Done)
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
            "there is no scene for the arm {}. Next: write one and name it with --scene",
            arm.file.name
        );
    };
    Ok(library.scene(&name, None)?)
}

/// A simulated arm with a trace of the bytes that it receives.
struct TracedSimulator {
    inner: ArmSimulator,
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

/// Writes the picture whenever there is new ink. Never returns.
async fn keep_picture(simulator: &ArmSimulator, scene: &Arc<Scene>, path: Option<&Path>) {
    let mut drawn_points = 0;
    let mut interval = tokio::time::interval(CHECK_INTERVAL);
    loop {
        interval.tick().await;
        let points = simulator.ink().iter().map(|ink| ink.points_mm.len()).sum();
        if points != drawn_points {
            drawn_points = points;
            save(simulator, scene, path);
        }
    }
}

fn save(simulator: &ArmSimulator, scene: &Scene, path: Option<&Path>) {
    let Some(path) = path else { return };
    let ink = simulator.ink().into_iter();
    let ink: Vec<_> = ink.map(|ink| (ink.pen, ink.points_mm)).collect();
    let picture = if path.to_string_lossy().ends_with(".pens.json") {
        let line = |(pen, line): &(usize, _)| json!({"pen": pen + 1, "points_mm": line});
        serde_json::to_vec(&ink.iter().map(line).collect::<Vec<_>>()).ok()
    } else if path.extension().is_some_and(|end| end == "json") {
        let lines: Vec<_> = ink.iter().map(|(_, line)| line).collect();
        serde_json::to_vec(&lines).ok()
    } else {
        tools::ink_picture(scene, &ink)
    };
    if let Some(Err(error)) = picture.map(|picture| files::write(path, &picture)) {
        terminal_output::note(&format!("{error:#}"));
    }
}
