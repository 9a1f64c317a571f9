//! `bus replay`: a recorded trace, played to a simulated arm. There is no way to play one to a port.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use super::{Exit, Options, show};
use arm::Family;
use base::units::{Instant, Joints};
use base::wording::{count, seconds};
use link::memory::FarEnd;
use link::record::{Direction, Event};
use node::open;
use sim::Simulator;

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

pub(super) async fn run(node: &Options, args: &ReplayArgs) -> anyhow::Result<Exit> {
    let library = open::library(node, &open::file(node)?)?;
    let arm = library.arm(&args.arm)?;
    let name = args.file.display();
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {name}"))?;
    let events: Result<Vec<Event>, _> = text.lines().take(LINES_MAX).map(str::parse).collect();
    let events = events.with_context(|| name.to_string())?;
    if events.is_empty() {
        bail!("{name} holds no events");
    }
    let spoken = spoken(&events);
    if let Some(family) = spoken.filter(|family| *family != arm.file.family) {
        show::note(&format!(
            "{name} was recorded of {}, and {} has {}: name an arm of that kind with --arm",
            words(family),
            args.arm,
            words(arm.file.family)
        ));
        return Ok(Exit::Refused);
    }
    let mut arm_at_end = Simulator::new(&arm, &Joints::zeros(arm.dof()));
    let played = play(&mut arm_at_end, &events);
    show::line(&format!(
        "{} in {} played to a simulated {}: it answered {} bytes where {} were recorded",
        count(played.requests, "request"),
        seconds(played.seconds),
        args.arm,
        played.said,
        played.recorded
    ));
    for (index, angle) in arm_at_end.truth().iter().enumerate() {
        show::line(&format!(
            "{:<16}{:>8.2}°",
            arm.joint_name(index),
            angle.to_degrees()
        ));
    }
    Ok(Exit::Done)
}

/// Returns the servo family whose bytes were sent, judged by how the first frame begins; `None` if nothing was sent.
fn spoken(events: &[Event]) -> Option<Family> {
    let mut sent = events
        .iter()
        .filter(|event| event.direction == Direction::Sent);
    Some(match sent.next()?.bytes.as_slice() {
        [0xFF, 0xFF, 0xFD, 0, ..] => Family::Dynamixel2,
        [0xFF, 0xFF, ..] => Family::FeetechSts,
        _ => Family::Firmware,
    })
}

const fn words(family: Family) -> &'static str {
    match family {
        Family::FeetechSts => "servos of the family feetech-sts",
        Family::Dynamixel2 => "servos of the family dynamixel2",
        Family::Firmware => "a controller with firmware of its own",
    }
}

struct Played {
    requests: usize,
    said: usize,
    recorded: usize,
    seconds: f64,
}

fn play(device: &mut impl FarEnd, events: &[Event]) -> Played {
    let begin = events.first().map_or(Instant::ZERO, |event| event.at);
    let mut played = Played {
        requests: 0,
        said: 0,
        recorded: 0,
        seconds: 0.0,
    };
    let mut said = Vec::new();
    for event in events {
        let at = Instant::ZERO.after(event.at.since(begin));
        played.seconds = at.seconds_since(Instant::ZERO);
        device.speak(at, &mut said);
        match event.direction {
            Direction::Sent => {
                played.requests += 1;
                device.hear(at, &event.bytes);
            }
            Direction::Came => played.recorded += event.bytes.len(),
        }
    }
    let end = Instant::ZERO.after(std::time::Duration::from_secs_f64(played.seconds + 1.0));
    device.speak(end, &mut said);
    played.said = said.len();
    played
}
