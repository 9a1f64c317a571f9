//! `bus`: scans, monitors and configures the servos on a port, without a node.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::signal::ctrl_c;

use super::questions;
use super::{ExitStatus, NodeOptions, doctor, terminal_output};
use base::clock::NodeClock;
use link::serial::SerialLink;
use link::{ByteLink, LinkError};
use node::open;
use servo::diagnose::{AskedIds, BusDiagnosis};
use servo::host::HostSystem;
use servo::reboot::reboot;
use servo::scan::{self, BusScan, FoundServo, ScanEffort};
use servo::servo_readout::{self, ServoReadout};
use servo::setup::{self, SetupChange, SetupStep};
use servo::supply::{SHARE_AT_REST, ServoSupply, odd_supplies};
use servo::{SLACK, ServiceError, ServoLine};

#[derive(Debug, Subcommand)]
pub(super) enum BusCommand {
    /// List every servo on a port, at all speeds; nothing is written
    Scan(ScanArgs),
    /// Show positions, loads, heat, supply and errors; nothing is written
    Monitor(MonitorArgs),
    /// Set a servo's id, delay, limits or gain P, which outlive its power; its torque goes off
    Configure(ConfigureArgs),
    /// Restart a Dynamixel servo, which clears a latched error; its torque goes off
    Reboot(RebootArgs),
    /// Record the bytes between another program and a port; that program opens the printed path
    ///
    /// A node records its own ports with --trace.
    Trace(super::trace::TraceArgs),
    /// Play a recorded trace to a simulated arm, never to a real one
    Replay(super::playback::ReplayArgs),
}

#[derive(Debug, Args)]
pub(super) struct ScanArgs {
    /// The serial port [default: the only one of this machine]
    #[arg(id = "serial", value_name = "PORT")]
    port: Option<String>,
    /// Stop at the first speed with servos
    #[arg(long)]
    first: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct MonitorArgs {
    /// The serial port
    #[arg(id = "serial", value_name = "PORT")]
    port: String,
    /// Print one reading and end
    #[arg(long)]
    once: bool,
    /// Print JSON, one line per reading
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ConfigureArgs {
    /// The serial port
    #[arg(id = "serial", value_name = "PORT")]
    port: String,
    /// Which servo
    #[arg(long)]
    id: u8,
    /// Its new id
    #[arg(long, value_name = "ID")]
    new_id: Option<u8>,
    /// Delay before a reply; 0 makes the arm's cycle shortest
    #[arg(long, value_name = "MICROSECONDS")]
    return_delay_us: Option<u64>,
    /// Least and greatest position, such as 500:3500
    #[arg(long, value_name = "MIN:MAX", value_parser = range)]
    limits_ticks: Option<(i32, i32)>,
    /// Gain P of its position loop, 8 to 100; 32 as delivered. The lower it is, the more a joint hangs under the arm's weight
    #[arg(long, value_name = "GAIN")]
    p: Option<u8>,
    /// Correct settings that keep a node from using it: operating mode, multi-turn counting, drive mode
    #[arg(long)]
    repair: bool,
    /// Make its present position read 2048, the middle of its turn: Feetech's homing offset. Earlier
    /// calibrated zeros become invalid
    #[arg(long)]
    home: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct RebootArgs {
    /// The serial port
    #[arg(id = "serial", value_name = "PORT")]
    port: String,
    /// Which servo
    #[arg(long)]
    id: u8,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

fn range(text: &str) -> anyhow::Result<(i32, i32)> {
    let limits = text.split_once(':').and_then(|(min, max)| {
        let min = min.trim().parse().ok()?;
        Some((min, max.trim().parse().ok()?))
    });
    limits.context("type two whole numbers, such as 500:3500")
}

pub(super) async fn run(node: &NodeOptions, what: BusCommand) -> anyhow::Result<ExitStatus> {
    match what {
        BusCommand::Scan(args) => scan_port(node, &args).await,
        BusCommand::Monitor(args) => monitor(node, &args).await,
        BusCommand::Configure(args) => configure(node, &args).await,
        BusCommand::Reboot(args) => reboot_servo(node, &args).await,
        BusCommand::Trace(args) => super::trace::run(node, &args).await,
        BusCommand::Replay(args) => super::playback::run(node, &args).await,
    }
}

/// Opens a port at any speed.
pub(super) fn opener(
    port: &str,
    clock: &NodeClock,
) -> impl FnMut(u32) -> Result<Box<dyn ByteLink>, LinkError> + Send + use<> {
    let (port, clock) = (port.to_owned(), clock.clone());
    move |baud| {
        SerialLink::open(&port, baud, &clock).map(|link| Box::new(link) as Box<dyn ByteLink>)
    }
}

/// Returns the longest time for which the port's adapter may delay a reply.
fn reply_slack(port: &str) -> Duration {
    let timer = HostSystem::default().latency_timer_ms(port.as_ref());
    timer.map_or(SLACK, |ms| SLACK + 2 * Duration::from_millis(ms))
}

pub(super) async fn find_servos(
    node: &NodeOptions,
    port: &str,
    stop_at_first: bool,
) -> Result<BusScan, anyhow::Error> {
    open::check_user(port, node.allow_root)?;
    let clock = NodeClock::real();
    let mut open = opener(port, &clock);
    let is_watched = std::io::stderr().is_terminal();
    let effort = ScanEffort {
        slack: reply_slack(port),
        first: stop_at_first,
    };
    terminal_output::note(&format!("trying every id on {port} at every speed …"));
    let scan = scan::scan(&mut open, &clock, effort, |speech, baud| {
        if is_watched {
            terminal_output::note(&format!("{} at {baud} baud …", speech.name()));
        }
    });
    let scan = scan.await?;
    note_damaged_id(port, &scan);
    Ok(scan)
}

fn note_damaged_id(port: &str, scan: &BusScan) {
    if let Some(id) = scan.noise.damaged_id {
        terminal_output::note(&format!(
            "replies from id {id} are damaged: two servos may have that id. Next: `steadyhand doctor {port}`"
        ));
    }
}

async fn scan_port(node: &NodeOptions, args: &ScanArgs) -> anyhow::Result<ExitStatus> {
    let port = doctor::named_or_only(args.port.as_deref())?;
    let BusScan { found, noise } = find_servos(node, &port, args.first).await?;
    if args.json {
        terminal_output::json(&found)?;
    } else {
        terminal_output::line(&format!(
            "{:>3}  {:<12} {:<12} {:>8}  {:>8}  {:>7}  {:>6}  {:>8}  {:>11}",
            "id", "model", "family", "baud", "firmware", "supply", "heat", "delay", "limits"
        ));
        terminal_output::lines(found.iter().map(found_line));
        found.iter().for_each(|one| print_complaints(&one.servo));
        let stated_v = doctor::stated_supply_v(node, &port);
        print_odd_supplies(found.iter().map(|one| &one.servo), stated_v);
    }
    if found.is_empty() {
        let mut diagnosis = BusDiagnosis::default();
        diagnosis.add_silence(&noise, AskedIds::All);
        for finding in &diagnosis.findings {
            terminal_output::note(&doctor::finding_text(finding));
        }
        return Ok(ExitStatus::Refused);
    }
    Ok(ExitStatus::Done)
}

fn found_line(found: &FoundServo) -> String {
    let servo = &found.servo;
    format!(
        "{:>3}  {:<12} {:<12} {:>8}  {:>8}  {:>7}  {:>6}  {:>5} µs  {:>11}",
        servo.id,
        servo.name,
        found.family.name(),
        found.baud,
        servo.firmware,
        with_unit(servo.voltage_v, " V"),
        with_unit(servo.temperature_c, " °C"),
        servo.return_delay_us,
        format!("{}..{}", servo.position_min_ticks, servo.position_max_ticks)
    )
}

fn with_unit(value: Option<f64>, with_unit: &str) -> String {
    value.map_or_else(|| "?".to_owned(), |value| format!("{value}{with_unit}"))
}

/// Opens the line to the servos of a port, and lists their ids: those at the first speed at which one with a usual id
/// answers, or the one with the given id.
async fn reach(
    node: &NodeOptions,
    port: &str,
    clock: &NodeClock,
    id: Option<u8>,
) -> anyhow::Result<(ServoLine, Vec<u8>)> {
    open::check_user(port, node.allow_root)?;
    terminal_output::note(&format!("searching for servos on {port} …"));
    let mut open = opener(port, clock);
    let slack = reply_slack(port);
    let search = scan::find_usual(&mut open, clock, slack, id, &mut |_, _| {}).await?;
    let Some(mode) = search.reached else {
        return Err(ServiceError::NobodyUsual.into());
    };
    terminal_output::note(&format!("{} at {} baud …", mode.protocol.name(), mode.baud));
    let mut scan = BusScan::default();
    scan::scan_speed(&mut open, clock, mode, &mut scan).await?;
    note_damaged_id(port, &scan);
    let line = ServoLine::open(&mut open, clock, mode)?;
    let ids = scan.found.iter().map(|found| found.servo.id).collect();
    Ok((line, ids))
}

/// Interval between readings.
const READING_INTERVAL: Duration = Duration::from_millis(200);

async fn monitor(node: &NodeOptions, args: &MonitorArgs) -> anyhow::Result<ExitStatus> {
    let clock = NodeClock::real();
    let (mut line, ids) = reach(node, &args.port, &clock, None).await?;
    let stated_v = doctor::stated_supply_v(node, &args.port);
    let mut alarm = clock.alarm()?;
    let is_live = !args.once && !args.json && std::io::stdout().is_terminal();
    loop {
        let began = clock.now();
        let mut readings = Vec::new();
        for id in &ids {
            readings.push((*id, servo_readout::read_servo(&mut line, *id).await?));
        }
        let elapsed = clock.now().since(began);
        if args.json {
            terminal_output::line(
                &readings_json(&readings, &line, (elapsed, stated_v))?.to_string(),
            );
        } else {
            print_table(&readings, &line, (elapsed, stated_v), is_live);
        }
        if args.once {
            let all_answered = readings.iter().all(|(_, reading)| reading.is_some());
            return Ok(ExitStatus::of(all_answered));
        }
        tokio::select! {
            _ = ctrl_c() => return Ok(ExitStatus::Done),
            waited = alarm.until(began.after(READING_INTERVAL)) => waited?,
        }
    }
}

/// Returns the readings as JSON: what the table shows, for every servo, whether it answered or not.
fn readings_json(
    readings: &[(u8, Option<ServoReadout>)],
    line: &ServoLine,
    (elapsed, stated_v): (Duration, Option<f64>),
) -> serde_json::Result<Value> {
    let mut servos = Vec::new();
    for (id, reading) in readings {
        let mut servo = json!({ "id": id, "answers": reading.is_some() });
        if let (Value::Object(servo), Value::Object(fields)) =
            (&mut servo, serde_json::to_value(reading)?)
        {
            servo.extend(fields);
        }
        servos.push(servo);
    }
    let counts = line.counts();
    let odd = odd_supplies(&answering_supplies(readings), stated_v, &SHARE_AT_REST);
    let odd: Vec<String> = odd.iter().map(ToString::to_string).collect();
    Ok(json!({
        "servos": servos,
        "supply": odd,
        "looks_per_second": looks_per_second(elapsed),
        "requests": counts.transactions,
        "damaged": counts.corrupt,
        "foreign": counts.foreign,
    }))
}

fn looks_per_second(elapsed: Duration) -> f64 {
    1.0 / elapsed.as_secs_f64().max(1e-6)
}

fn print_table(
    readings: &[(u8, Option<ServoReadout>)],
    line: &ServoLine,
    (elapsed, stated_v): (Duration, Option<f64>),
    is_live: bool,
) {
    if is_live {
        terminal_output::clear();
    }
    terminal_output::line(&format!(
        "{:>3}  {:>8}  {:>8}  {:>6}  {:>6}  {:>7}  {:>6}  {:>6}",
        "id", "position", "speed/s", "load", "heat", "supply", "torque", "errors"
    ));
    terminal_output::lines(readings.iter().map(|(id, reading)| match reading {
        Some(reading) => reading_line(reading),
        None => format!("{id:>3}  no answer"),
    }));
    let answering = readings.iter().filter_map(|(_, reading)| reading.as_ref());
    answering.clone().for_each(print_complaints);
    print_odd_supplies(answering, stated_v);
    let counts = line.counts();
    terminal_output::line(&format!(
        "{:.0} readings a second; {} requests, {} damaged and {} foreign replies",
        looks_per_second(elapsed),
        counts.transactions,
        counts.corrupt,
        counts.foreign
    ));
}

/// Returns the supplies of the servos that answer.
fn answering_supplies(readings: &[(u8, Option<ServoReadout>)]) -> Vec<ServoSupply> {
    ServoSupply::of_readouts(readings.iter().filter_map(|(_, reading)| reading.as_ref()))
}

/// Prints which servos have another supply than the others or than the arm's file states.
fn print_odd_supplies<'a>(readings: impl Iterator<Item = &'a ServoReadout>, stated_v: Option<f64>) {
    let supplies = ServoSupply::of_readouts(readings);
    let odd = odd_supplies(&supplies, stated_v, &SHARE_AT_REST);
    terminal_output::lines(
        odd.iter()
            .map(|odd| format!("{odd}. Next: {}", odd.remedy())),
    );
}

fn print_complaints(reading: &ServoReadout) {
    let complaints = reading.complaints.iter();
    terminal_output::lines(complaints.map(|text| format!("servo {}: {text}", reading.id)));
}

fn reading_line(reading: &ServoReadout) -> String {
    format!(
        "{:>3}  {:>8}  {:>8}  {:>4} %  {:>6}  {:>7}  {:>6}  {:>6}",
        reading.id,
        reading.position_ticks,
        reading.speed_ticks_s,
        reading.load_percent,
        with_unit(reading.temperature_c, " °C"),
        with_unit(reading.voltage_v, " V"),
        if reading.torque_on { "on" } else { "off" },
        match reading.error_bits {
            0 => "-".to_owned(),
            bits => format!("{bits:#04x}"),
        }
    )
}

async fn configure(node: &NodeOptions, args: &ConfigureArgs) -> anyhow::Result<ExitStatus> {
    let change = SetupChange {
        id: args.new_id,
        return_delay: args.return_delay_us.map(Duration::from_micros),
        limits_ticks: args.limits_ticks,
        gain_p: args.p,
        repair: args.repair,
        home: args.home,
    };
    if change == SetupChange::default() {
        bail!(
            "the command names nothing to change. Next: add --new-id, --return-delay-us, --limits-ticks, --p, --repair or --home"
        );
    }
    let clock = NodeClock::real();
    let (mut line, ids) = reach(node, &args.port, &clock, Some(args.id)).await?;
    if !ids.contains(&args.id) {
        return Err(line.no_servo(args.id).into());
    }
    let steps = setup::plan(&mut line, args.id, &change, &ids).await?;
    if steps.is_empty() {
        return terminal_output::done(&format!(
            "servo {} already has these settings. Nothing was written",
            args.id
        ));
    }
    let describe = |step: &SetupStep| format!("servo {}: {}", args.id, step.describe());
    terminal_output::lines(steps.iter().map(describe));
    if args.home {
        terminal_output::note(
            "earlier calibrations of this joint's zero are no longer valid. Next: calibrate the joint again",
        );
    }
    let warning = "This change survives a power-off. It also switches torque off";
    if !args.yes && !confirm_torque_off(warning, args.id)? {
        return terminal_output::refused("nothing was written");
    }
    setup::apply_steps(&mut line, args.id, &steps).await?;
    terminal_output::done(&written_text(&steps))
}

async fn reboot_servo(node: &NodeOptions, args: &RebootArgs) -> anyhow::Result<ExitStatus> {
    let clock = NodeClock::real();
    let (mut line, _) = reach(node, &args.port, &clock, Some(args.id)).await?;
    if !args.yes && !confirm_torque_off("This switches torque off", args.id)? {
        return terminal_output::refused("not confirmed; nothing was sent to the servo");
    }
    reboot(&mut line, args.id).await?;
    let reading = servo_readout::read_servo(&mut line, args.id).await?;
    let reading = reading.ok_or_else(|| line.no_servo(args.id))?;
    let torque = if reading.torque_on { "on" } else { "off" };
    terminal_output::done(&match reading.error_bits {
        0 => format!("servo {} has restarted: its torque is {torque}", args.id),
        bits => format!(
            "servo {} has restarted and still reports an error ({bits:#04x}): its torque is {torque}",
            args.id
        ),
    })
}

fn written_text(steps: &[SetupStep]) -> String {
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    format!(
        "written and read back: {}. The torque of the servo is off",
        names.join(", ")
    )
}

/// Asks for consent to take torque off a servo. Returns whether it was given.
fn confirm_torque_off(what: &str, id: u8) -> anyhow::Result<bool> {
    let question =
        format!("{what} servo {id}: the parts that it carries will drop. Type `yes` to continue:");
    questions::typed_in_full(&question)
}
