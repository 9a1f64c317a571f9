//! `bus trace`: sits between a program and a port and records every byte.

use std::path::PathBuf;
use std::time::Duration;

use base::signals::{SignalKind, SignalListener};
use clap::Args;

use super::{ExitStatus, NodeOptions, terminal_output};
use base::clock::NodeClock;
use link::ByteLink;
use link::byte_trace::{self, RecordLink};
use link::pty::PseudoTerminal;
use link::serial::SerialLink;
use node::open;

#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    /// The serial port
    #[arg(id = "serial", value_name = "PORT")]
    port: String,
    /// File to append the trace to
    file: PathBuf,
}

/// Duration of one read from a silent port.
const READ_TIME: Duration = Duration::from_secs(1);

/// Speed until the program sets one.
const BAUD: u32 = 1_000_000;

pub(super) async fn run(node: &NodeOptions, args: &TraceArgs) -> anyhow::Result<ExitStatus> {
    open::check_user(&args.port, node.allow_root)?;
    let clock = NodeClock::real();
    let pty = PseudoTerminal::open()?;
    terminal_output::line(&pty.path().display().to_string());
    let mut terminate = SignalListener::listen(SignalKind::Terminate)?;
    let mut baud = BAUD;
    let mut link = open_recorded(args, baud, &clock)?;
    let (mut from_program, mut from_port) = ([0_u8; 1024], [0_u8; 1024]);
    loop {
        tokio::select! {
            count = pty.read(&mut from_program) => {
                let count = count?;
                let requested_baud = pty.baud()?;
                if requested_baud != baud && requested_baud != 0 {
                    baud = requested_baud;
                    drop(link);
                    link = open_recorded(args, baud, &clock)?;
                }
                link.send(from_program.get(..count).unwrap_or_default()).await?;
            }
            count = link.receive(&mut from_port, clock.now().after(READ_TIME)) => {
                pty.write(from_port.get(..count?).unwrap_or_default())?;
            }
            _ = tokio::signal::ctrl_c() => return Ok(ExitStatus::Done),
            _ = terminate.recv() => return Ok(ExitStatus::Done),
        }
    }
}

fn open_recorded(
    args: &TraceArgs,
    baud: u32,
    clock: &NodeClock,
) -> anyhow::Result<RecordLink<SerialLink>> {
    let link = SerialLink::open(&args.port, baud, clock)?;
    let trace = byte_trace::open_in_background(&args.file)?;
    Ok(RecordLink::new(link, clock, Box::new(trace)))
}
