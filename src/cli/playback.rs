//! `bus replay`: plays a recorded trace to a simulated arm. A trace cannot be played to a port.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use super::{ExitStatus, NodeOptions, files, terminal_output};
use arm::ServoFamily;
use base::units::{ClockInstant, JointVector};
use base::wording::{count, seconds};
use link::byte_trace::{ByteDirection, TraceEvent};
use link::memory::FarEnd;
use node::open;
use sim::ArmSimulator;

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The trace
    file: PathBuf,
    /// Which arm to simulate
    #[arg(long, default_value = "so101")]
    arm: String,
}

/// Longest trace that is read.
const LINES_MAX: usize = 10_000_000;

pub(super) async fn run(node: &NodeOptions, args: &ReplayArgs) -> anyhow::Result<ExitStatus> {
    let library = open::library(node, &open::file(node)?)?;
    let arm = library.arm(&args.arm)?;
    let name = args.file.display();
    let text = files::read(&args.file)?;
    let events: Result<Vec<TraceEvent>, _> = text.lines().take(LINES_MAX).map(str::parse).collect();
    let events = events.with_context(|| name.to_string())?;
    if events.is_empty() {
        bail!("{name} holds no events");
    }
    let recorded_family = family_of(&events);
    if let Some(family) = recorded_family.filter(|family| *family != arm.file.family) {
        terminal_output::note(&format!(
            "{name} was recorded from {}; {} has {}. Next: name an arm of that kind with --arm",
            describe(family),
            args.arm,
            describe(arm.file.family)
        ));
        return Ok(ExitStatus::Refused);
    }
    let mut simulator = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
    let played = play(&mut simulator, ClockInstant::ZERO, &events);
    terminal_output::line(&format!(
        "{} in {} were played to a simulated {}. It answered with {} bytes; {} were recorded",
        count(played.frames, "request"),
        seconds(played.seconds),
        args.arm,
        played.answered,
        played.recorded
    ));
    for (index, angle) in simulator.true_joints().iter().enumerate() {
        let (joint, deg) = (arm.joint_name(index), angle.to_degrees());
        terminal_output::line(&format!("{joint:<16}{deg:>8.2}°"));
    }
    Ok(ExitStatus::Done)
}

/// Returns the servo family whose bytes were sent, judged by how the first frame begins; `None` if nothing was sent.
fn family_of(events: &[TraceEvent]) -> Option<ServoFamily> {
    let mut sent = events
        .iter()
        .filter(|event| event.direction == ByteDirection::Sent);
    Some(match sent.next()?.bytes.as_slice() {
        [0xFF, 0xFF, 0xFD, 0, ..] => ServoFamily::Dynamixel2,
        [0xFF, 0xFF, ..] => ServoFamily::FeetechSts,
        _ => ServoFamily::Firmware,
    })
}

const fn describe(family: ServoFamily) -> &'static str {
    match family {
        ServoFamily::FeetechSts => "feetech-sts servos",
        ServoFamily::Dynamixel2 => "dynamixel2 servos",
        ServoFamily::Firmware => "a controller with its own firmware",
    }
}

/// Behaviour of a simulated arm that played recorded bytes.
pub(super) struct PlaybackResult {
    pub(super) frames: usize,
    /// Number of bytes that it answered; `recorded` counts those of the real arm.
    pub(super) answered: usize,
    pub(super) recorded: usize,
    pub(super) seconds: f64,
}

/// Time for the arm to reach its last goal after the last byte.
const SETTLING_TIME: Duration = Duration::from_secs(1);

/// Plays recorded bytes to a device with their recorded timing, starting at `began`.
pub(super) fn play(
    device: &mut impl FarEnd,
    began: ClockInstant,
    events: &[TraceEvent],
) -> PlaybackResult {
    let first = events.first().map_or(ClockInstant::ZERO, |event| event.at);
    let (mut frames, mut recorded) = (0, 0);
    let (mut at, mut answer) = (began, Vec::new());
    for event in events {
        at = began.after(event.at.since(first));
        device.speak(at, &mut answer);
        match event.direction {
            ByteDirection::Sent => {
                frames += 1;
                device.hear(at, &event.bytes);
            }
            ByteDirection::Came => recorded += event.bytes.len(),
        }
    }
    device.speak(at.after(SETTLING_TIME), &mut answer);
    PlaybackResult {
        frames,
        answered: answer.len(),
        recorded,
        seconds: at.seconds_since(began),
    }
}
