//! How often a second our driver writes and reads every servo of an arm on a port: for comparison
//! with other programs on the same port.
//!
//! `cargo run --release --example loop_rate -- scenes/arms/so101.toml /dev/pts/3 1000`
#![expect(clippy::print_stdout, reason = "the figure is what it is for")]

use std::time::Duration;

use anyhow::Context;
use steadyhand::arm::Arm;
use steadyhand::clock::Clock;
use steadyhand::driver::Driver;
use steadyhand::link::serial::SerialLink;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let file = args.next().context("say which arm file")?;
    let port = args.next().context("say which port")?;
    let cycles: u32 = args.next().context("say how many cycles")?.parse()?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {file}"))?;
    let arm = Arm::new(toml::from_str(&text)?)?;
    let clock = Clock::real();
    let mut link = SerialLink::open(&port, arm.file.baud, &clock)?;
    let mut driver = Driver::new(&arm, &clock);
    driver.attach(&mut link).await?;
    driver.energise(&mut link).await?;
    let began = clock.now();
    let mut good = 0;
    for _ in 0..cycles {
        let deadline = clock.now().after(Duration::from_millis(100));
        good += u32::from(driver.hold(&mut link, deadline).await.is_ok());
    }
    let took = clock.now().seconds_since(began);
    println!("{good} {:.1}", f64::from(cycles) / took);
    Ok(())
}
