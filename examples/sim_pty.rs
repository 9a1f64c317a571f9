//! Puts a simulated arm on a pseudo-terminal and prints its path, for programs that test it.
//!
//! `cargo run --example sim_pty -- scenes/arms/so101.toml`
#![expect(clippy::print_stdout, reason = "the path is its output")]

use std::io::Write;

use anyhow::Context;
use steadyhand::arm::ArmModel;
use steadyhand::clock::NodeClock;
use steadyhand::link::pty;
use steadyhand::sim::ArmSimulator;
use steadyhand::units::JointVector;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let file = std::env::args().nth(1).context("name an arm file")?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let arm = ArmModel::new(toml::from_str(&text)?)?;
    let sim = ArmSimulator::new(&arm, &JointVector::zeros(arm.dof()));
    pty::serve(sim, &NodeClock::real(), |path| {
        println!("{}", path.display());
        // The process that started this waits for the line; without a reader nothing is lost.
        let _ = std::io::stdout().flush();
    })
    .await?;
    Ok(())
}
