//! `doctor`: why an arm does not answer, and what to do about it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::bus::opener;
use super::{Exit, Options, show};
use arm::{Arm, Family};
use base::clock::Clock;
use node::open;
use servo::Speech;
use servo::diagnose::{Diagnosis, Expected, diagnose};
use servo::host::Host;

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// The serial port [default: the node file's; without one, the ports of this machine are listed]
    #[arg(id = "serial", value_name = "PORT")]
    port: Option<String>,
    /// The arm that should be there [default: the node file's]
    #[arg(long)]
    arm: Option<String>,
    /// Folder of this machine's dev, proc, run and sys, as seen from a container
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(node: &Options, args: &DoctorArgs) -> anyhow::Result<Exit> {
    let host = Host {
        root: args.root.clone(),
    };
    let file = open::file(node)?;
    let entry = file.arms.iter().find(|entry| !entry.is_simulated());
    let port = args
        .port
        .clone()
        .or_else(|| entry.map(|entry| entry.port.clone()));
    let Some(port) = port else {
        return Ok(list_ports(&host));
    };
    let model = args
        .arm
        .clone()
        .or_else(|| entry.map(|entry| entry.model.clone()));
    let arm = match model {
        Some(model) => Some(open::library(node, &file)?.arm(&model)?),
        None => None,
    };
    let diagnosis = examine(&host, &port, arm.as_ref()).await?;
    if args.json {
        let text = json!({
            "port": port,
            "findings": diagnosis.findings,
            "servos": diagnosis.servos,
            "identity": diagnosis.identity,
        });
        show::line(&serde_json::to_string_pretty(&text)?);
    } else {
        tell(&port, &diagnosis);
    }
    Ok(if diagnosis.findings.is_empty() {
        Exit::Done
    } else {
        Exit::Refused
    })
}

async fn examine(host: &Host, port: &str, arm: Option<&Arc<Arm>>) -> anyhow::Result<Diagnosis> {
    let clock = Clock::real();
    let expected = arm.and_then(expected);
    let mut open = opener(port, &clock);
    let watched = std::io::stderr().is_terminal();
    show::note(&format!("listening on {port} …"));
    let progress = |speech: Speech, baud| {
        if watched {
            show::note(&format!("{} at {baud} baud …", speech.name()));
        }
    };
    if let Some(arm) = arm.filter(|arm| arm.file.family == Family::Firmware) {
        return Ok(driver::diagnose::controller(&mut open, &clock, host, port, arm).await?);
    }
    let looked = diagnose(&mut open, &clock, host, port, expected.as_ref(), progress);
    let mut diagnosis = looked.await?;
    if let Some(arm) = arm.filter(|_| diagnosis.findings.is_empty()) {
        let mut link = open(arm.file.baud)?;
        // What it found is among the findings.
        let _ = driver::diagnose::setup(link.as_mut(), arm, &clock, &mut diagnosis).await;
    }
    Ok(diagnosis)
}

/// Returns the bus settings that an arm's file states; `None` for a family without a servo bus.
fn expected(arm: &Arc<Arm>) -> Option<Expected> {
    let families = [
        (Family::FeetechSts, Speech::FeetechSts),
        (Family::Dynamixel2, Speech::Dynamixel2),
    ];
    let known = families
        .into_iter()
        .find(|(family, _)| *family == arm.file.family);
    let (_, speech) = known?;
    let turning = arm.servos().map(|(_, servo)| servo.id);
    let held = arm.file.held.iter().map(|held| held.id);
    Some(Expected {
        arm: arm.file.name.clone(),
        speech,
        baud: arm.file.baud,
        ids: turning.chain(held).collect(),
    })
}

fn tell(port: &str, diagnosis: &Diagnosis) {
    for finding in &diagnosis.findings {
        show::line(&format!("✗ {}", finding.what));
        show::line(&format!("  → {}", finding.fix));
    }
    let servos: Vec<String> = diagnosis
        .servos
        .iter()
        .map(|found| format!("{} ({})", found.servo.id, found.servo.name))
        .collect();
    if !servos.is_empty() {
        show::line(&format!("servos that answer: {}", servos.join(", ")));
    }
    if !diagnosis.identity.is_empty() {
        show::line("who they are now, for the arm's file:");
        show::line("[identity]");
    }
    for (id, identity) in &diagnosis.identity {
        show::line(&format!("{id} = \"{identity}\""));
    }
    if diagnosis.findings.is_empty() {
        show::line(&format!("✓ nothing is wrong on {port}"));
    }
}

fn list_ports(host: &Host) -> Exit {
    let ports = host.ports();
    if ports.is_empty() {
        show::line("✗ this machine has no serial port");
        show::line(
            "  → plug the adapter in; `dmesg` shows whether the kernel sees it; in a container or virtual machine, pass the device on",
        );
        return Exit::Refused;
    }
    show::line("serial ports of this machine; `steadyhand doctor PORT` looks into one:");
    ports
        .iter()
        .for_each(|port| show::line(&format!("  {}", port.display())));
    Exit::Done
}
