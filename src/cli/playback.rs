//! `bus replay`: a recorded trace, played to a simulated arm. There is no way to play one to a port.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use super::{ExitStatus, NodeOptions, terminal_output};
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

/// Longer traces are cut off there.
const LINES_MAX: usize = 10_000_000;

pub(super) async fn run(node: &NodeOptions, args: &ReplayArgs) -> anyhow::Result<ExitStatus> {
    let library = open::library(node, &open::file(node)?)?;
    let arm = library.arm(&args.arm)?;
    let name = args.file.display();
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {name}"))?;
    let events: Result<Vec<TraceEvent>, _> = text.lines().take(LINES_MAX).map(str::parse).collect();
    let events = events.with_context(|| name.to_string())?;
    if events.is_empty() {
        bail!("{name} holds no events");
    }
    let spoken = family_of(&events);
    if let Some(family) = spoken.filter(|family| *family != arm.file.family) {
        terminal_output::note(&format!(
            "{name} was recorded of {}, and {} has {}: name an arm of that kind with --arm",
            words(family),
            args.arm,
            words(arm.file.family)
        ));
        return Ok(ExitStatus::Refused);
    }
    let mut arm_at_end = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
    let played = play(&mut arm_at_end, &events);
    terminal_output::line(&format!(
        "{} in {} played to a simulated {}: it answered {} bytes where {} were recorded",
        count(played.requests, "request"),
        seconds(played.seconds),
        args.arm,
        played.said,
        played.recorded
    ));
    for (index, angle) in arm_at_end.true_joints().iter().enumerate() {
        terminal_output::line(&format!(
            "{:<16}{:>8.2}°",
            arm.joint_name(index),
            angle.to_degrees()
        ));
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

const fn words(family: ServoFamily) -> &'static str {
    match family {
        ServoFamily::FeetechSts => "servos of the family feetech-sts",
        ServoFamily::Dynamixel2 => "servos of the family dynamixel2",
        ServoFamily::Firmware => "a controller with firmware of its own",
    }
}

struct PlaybackResult {
    requests: usize,
    said: usize,
    recorded: usize,
    seconds: f64,
}

fn play(device: &mut impl FarEnd, events: &[TraceEvent]) -> PlaybackResult {
    let begin = events.first().map_or(ClockInstant::ZERO, |event| event.at);
    let mut played = PlaybackResult {
        requests: 0,
        said: 0,
        recorded: 0,
        seconds: 0.0,
    };
    let mut said = Vec::new();
    for event in events {
        let at = ClockInstant::ZERO.after(event.at.since(begin));
        played.seconds = at.seconds_since(ClockInstant::ZERO);
        device.speak(at, &mut said);
        match event.direction {
            ByteDirection::Sent => {
                played.requests += 1;
                device.hear(at, &event.bytes);
            }
            ByteDirection::Came => played.recorded += event.bytes.len(),
        }
    }
    let end = ClockInstant::ZERO.after(std::time::Duration::from_secs_f64(played.seconds + 1.0));
    device.speak(end, &mut said);
    played.said = said.len();
    played
}
