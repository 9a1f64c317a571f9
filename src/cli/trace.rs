//! `bus trace`: stands between a program and a port and writes down every byte.

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
const LOOK: Duration = Duration::from_secs(1);

/// The speed until a program sets one.
const BAUD: u32 = 1_000_000;

pub(super) async fn run(node: &NodeOptions, args: &TraceArgs) -> anyhow::Result<ExitStatus> {
    open::check_user(&args.port, node.allow_root)?;
    let clock = NodeClock::real();
    let pty = PseudoTerminal::open()?;
    terminal_output::line(&pty.path().display().to_string());
    let mut terminate = SignalListener::listen(SignalKind::Terminate)?;
    let mut baud = BAUD;
    let mut link = tapped(args, baud, &clock)?;
    let (mut asked, mut said) = ([0_u8; 1024], [0_u8; 1024]);
    loop {
        tokio::select! {
            count = pty.read(&mut asked) => {
                let count = count?;
                let set = pty.baud()?;
                if set != baud && set != 0 {
                    baud = set;
                    drop(link);
                    link = tapped(args, baud, &clock)?;
                }
                link.send(asked.get(..count).unwrap_or_default()).await?;
            }
            count = link.receive(&mut said, clock.now().after(LOOK)) => {
                pty.write(said.get(..count?).unwrap_or_default())?;
            }
            _ = tokio::signal::ctrl_c() => return Ok(ExitStatus::Done),
            _ = terminate.recv() => return Ok(ExitStatus::Done),
        }
    }
}

fn tapped(
    args: &TraceArgs,
    baud: u32,
    clock: &NodeClock,
) -> anyhow::Result<RecordLink<SerialLink>> {
    let link = SerialLink::open(&args.port, baud, clock)?;
    let trace = byte_trace::open_in_background(&args.file)?;
    Ok(RecordLink::new(link, clock, Box::new(trace)))
}
