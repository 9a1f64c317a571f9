//! Puts a simulated arm on a pseudo-terminal and prints its path, for programs that judge it.
//!
//! `cargo run --example sim_pty -- scenes/arms/so101.toml`
#![expect(clippy::print_stdout, reason = "the path is what it is for")]

use std::io::Write;

use anyhow::Context;
use steadyhand::arm::Arm;
use steadyhand::clock::Clock;
use steadyhand::link::pty;
use steadyhand::sim::Simulator;
use steadyhand::units::Joints;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).context("say which arm file")?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let arm = Arm::new(toml::from_str(&text)?)?;
    let sim = Simulator::new(&arm, &Joints::zeros(arm.dof()));
    pty::serve(sim, &Clock::real(), |path| {
        println!("{}", path.display());
        // Whoever started this waits for the line; when nobody does, nothing is lost.
        let _ = std::io::stdout().flush();
    })
    .await?;
    Ok(())
}
