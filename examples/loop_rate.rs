//! Measures how often per second our driver writes and reads every servo of an arm on a port, for comparison
//! with other programs on the same port. With `--line`, it measures how often the same bytes go back and forth
//! without being encoded or decoded: the cost of the line itself.
//!
//! `cargo run --release --example loop_rate -- [--line] scenes/arms/so101.toml /dev/pts/3 1000`
#![expect(clippy::print_stdout, reason = "the figure is its output")]

use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

use anyhow::Context;
use steadyhand::arm::ArmModel;
use steadyhand::clock::NodeClock;
use steadyhand::driver::ArmDriver;
use steadyhand::link::serial::SerialLink;
use steadyhand::link::{ByteLink, LinkError, LinkFuture};
use steadyhand::units::ClockInstant;

/// Time limit for one cycle.
const CYCLE_MAX: Duration = Duration::from_millis(100);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let is_line = args.first().is_some_and(|first| first == "--line");
    args.drain(..usize::from(is_line));
    let [file, port, cycles] = args.as_slice() else {
        anyhow::bail!("name an arm file, a port and the number of cycles");
    };
    let cycles: u32 = cycles.parse()?;
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    let arm = ArmModel::new(toml::from_str(&text)?)?;
    let clock = NodeClock::real();
    let mut link = RecordingLink {
        inner: SerialLink::open(port, arm.file.baud, &clock)?,
        sent: Vec::new(),
        received: 0,
    };
    let mut driver = ArmDriver::new(&arm, &clock);
    driver.attach(&mut link).await?;
    driver.energise(&mut link).await?;
    let driver_cycles = if is_line { SAMPLE_CYCLES } else { cycles };
    let mut timing = drive(&mut link, &mut driver, driver_cycles, &clock).await?;
    if is_line {
        // The driver holds its port exclusively.
        drop(link);
        let mut raw_port = File::options().read(true).write(true).open(port)?;
        timing = timing.time_raw(&mut raw_port, cycles, &clock)?;
    }
    println!("{} {:.1}", timing.good, timing.rate_hz());
    Ok(())
}

/// Driver cycles that are run to find the plainest one.
const SAMPLE_CYCLES: u32 = 50;

/// Figures of a number of cycles. Ten times a second, ours also asks for temperatures and errors, which the others never do:
/// cycles that sent more than the plainest are not timed.
#[derive(Default)]
struct CycleTiming {
    good: u32,
    request: Vec<u8>,
    received: usize,
    timed: u32,
    took_s: f64,
}

impl CycleTiming {
    fn rate_hz(&self) -> f64 {
        f64::from(self.timed) / self.took_s
    }

    fn record(&mut self, sent: &[u8], received: usize, took_s: f64) {
        if self.timed == 0 || sent.len() < self.request.len() {
            *self = Self {
                good: self.good,
                request: sent.to_vec(),
                received,
                ..Self::default()
            };
        }
        if sent.len() == self.request.len() {
            self.timed += 1;
            self.took_s += took_s;
        }
    }

    /// Sends the plain cycle's bytes and reads the answers, without encoding or decoding them.
    fn time_raw(self, port: &mut File, cycles: u32, clock: &NodeClock) -> std::io::Result<Self> {
        let mut answer = vec![0; self.received];
        let began = clock.now();
        for _ in 0..cycles {
            port.write_all(&self.request)?;
            port.read_exact(&mut answer)?;
        }
        Ok(Self {
            good: cycles,
            timed: cycles,
            took_s: clock.now().seconds_since(began),
            ..self
        })
    }
}

async fn drive(
    link: &mut RecordingLink,
    driver: &mut ArmDriver,
    cycles: u32,
    clock: &NodeClock,
) -> anyhow::Result<CycleTiming> {
    let mut timing = CycleTiming::default();
    for _ in 0..cycles {
        link.sent.clear();
        link.received = 0;
        let began = clock.now();
        if driver.hold(link, began.after(CYCLE_MAX)).await.is_ok() {
            timing.good += 1;
            timing.record(&link.sent, link.received, clock.now().seconds_since(began));
        }
    }
    anyhow::ensure!(timing.timed > 0, "no cycle succeeded");
    Ok(timing)
}

/// A port that records what a cycle sends and how much it receives.
struct RecordingLink {
    inner: SerialLink,
    sent: Vec<u8>,
    received: usize,
}

impl ByteLink for RecordingLink {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        self.sent.extend_from_slice(bytes);
        self.inner.send(bytes)
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(async move {
            let count = self.inner.receive(into, until).await?;
            self.received += count;
            Ok(count)
        })
    }

    fn discard_input(&mut self) -> Result<(), LinkError> {
        self.inner.discard_input()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
