//! Measures how often a second our driver writes and reads every servo of an arm on a port: for comparison
//! with other programs on the same port. With `--line`, how often the same bytes go to and fro when
//! nobody makes or reads them: what the line itself takes.
//!
//! `cargo run --release --example loop_rate -- [--line] scenes/arms/so101.toml /dev/pts/3 1000`
#![expect(clippy::print_stdout, reason = "the figure is what it is for")]

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

/// For one cycle.
const PATIENCE: Duration = Duration::from_millis(100);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let is_line = args.first().is_some_and(|first| first == "--line");
    args.drain(..usize::from(is_line));
    let [file, port, cycles] = args.as_slice() else {
        anyhow::bail!("say which arm file, which port and how many cycles");
    };
    let cycles: u32 = cycles.parse()?;
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
    let arm = ArmModel::new(toml::from_str(&text)?)?;
    let clock = NodeClock::real();
    let mut link = Noting {
        inner: SerialLink::open(port, arm.file.baud, &clock)?,
        sent: Vec::new(),
        heard: 0,
    };
    let mut driver = ArmDriver::new(&arm, &clock);
    driver.attach(&mut link).await?;
    driver.energise(&mut link).await?;
    let drives = if is_line { NOTED } else { cycles };
    let mut driven = drive(&mut link, &mut driver, drives, &clock).await?;
    if is_line {
        // The driver's port is its own alone.
        drop(link);
        let mut plain = File::options().read(true).write(true).open(port)?;
        driven = driven.pass(&mut plain, cycles, &clock)?;
    }
    println!("{} {:.1}", driven.good, driven.rate_hz());
    Ok(())
}

/// Cycles of which the plain one is known.
const NOTED: u32 = 50;

/// Figures of a number of cycles. Ours asks for temperatures and complaints too, ten times a second, which the others never
/// do: cycles that sent more than the plainest are not timed.
#[derive(Default)]
struct Driven {
    good: u32,
    request: Vec<u8>,
    heard: usize,
    timed: u32,
    took_s: f64,
}

impl Driven {
    fn rate_hz(&self) -> f64 {
        f64::from(self.timed) / self.took_s
    }

    fn note(&mut self, sent: &[u8], heard: usize, took_s: f64) {
        if self.timed == 0 || sent.len() < self.request.len() {
            *self = Self {
                good: self.good,
                request: sent.to_vec(),
                heard,
                ..Self::default()
            };
        }
        if sent.len() == self.request.len() {
            self.timed += 1;
            self.took_s += took_s;
        }
    }

    /// The plain cycle's bytes to and fro, without anybody who makes or reads them.
    fn pass(self, port: &mut File, cycles: u32, clock: &NodeClock) -> std::io::Result<Self> {
        let mut answer = vec![0; self.heard];
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
    link: &mut Noting,
    driver: &mut ArmDriver,
    cycles: u32,
    clock: &NodeClock,
) -> anyhow::Result<Driven> {
    let mut driven = Driven::default();
    for _ in 0..cycles {
        link.sent.clear();
        link.heard = 0;
        let began = clock.now();
        if driver.hold(link, began.after(PATIENCE)).await.is_ok() {
            driven.good += 1;
            driven.note(&link.sent, link.heard, clock.now().seconds_since(began));
        }
    }
    anyhow::ensure!(driven.timed > 0, "no cycle succeeded");
    Ok(driven)
}

/// A port that notes what a cycle says and how much it hears.
struct Noting {
    inner: SerialLink,
    sent: Vec<u8>,
    heard: usize,
}

impl ByteLink for Noting {
    fn send<'a>(&'a mut self, bytes: &'a [u8]) -> LinkFuture<'a, ()> {
        self.sent.extend_from_slice(bytes);
        self.inner.send(bytes)
    }

    fn receive<'a>(&'a mut self, into: &'a mut [u8], until: ClockInstant) -> LinkFuture<'a, usize> {
        Box::pin(async move {
            let count = self.inner.receive(into, until).await?;
            self.heard += count;
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
