//! `doctor`: finds out why an arm does not answer, and what to do about it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use clap::Args;
use serde_json::{Value, json};

use super::bus::opener;
use super::{ExitStatus, NodeOptions, check, terminal_output};
use arm::{ArmModel, SHIPPED_ARMS, ServoFamily};
use base::clock::NodeClock;
use base::units::Finite;
use config::{ArmEntry, NodeFile, SIMULATOR_PORT};
use node::bus_places::arm_on_its_bus;
use node::open;
use servo::ServoProtocol;
use servo::diagnose::{BusDiagnosis, DiagnosisCause, DiagnosisFinding, ExpectedServos, diagnose};
use servo::host::HostSystem;
use servo::scan::FoundServo;

/// A machine without ports, and what to do about it.
const NO_PORT: &str = "this machine has no serial port";
const NO_PORT_FIX: &str = "plug the adapter in. `dmesg` shows whether the kernel sees it. A container or virtual machine needs the device passed through";

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// The serial port [default: each of the node file's; without one, the ports of this machine are listed]
    #[arg(id = "serial", value_name = "PORT")]
    port: Option<String>,
    /// The arm that should be there: its name in the node file, or its model [default: the node file's]
    #[arg(long)]
    arm: Option<String>,
    /// Folder of this machine's dev, proc, run and sys, as seen from a container
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// True to look at the bus alone.
    #[arg(skip)]
    no_files: bool,
}

impl DoctorArgs {
    /// Returns the arguments that examine the port of an arm of the node file, with output for a person.
    pub(super) fn of_arm(arm: Option<String>) -> Self {
        Self {
            port: None,
            arm,
            root: PathBuf::from("/"),
            json: false,
            no_files: true,
        }
    }
}

pub(super) async fn run(node: &NodeOptions, args: &DoctorArgs) -> anyhow::Result<ExitStatus> {
    let host = HostSystem {
        root: args.root.clone(),
    };
    let file = open::file(node)?;
    let targets = targets(args, &file, node.config.is_some())?;
    let wrong = wrong_files(node, args, &file);
    if targets.is_empty() {
        return without_port(&host, node.config.as_deref(), &file, &wrong, args.json);
    }
    if !args.json {
        print_findings(&wrong);
    }
    let models = models(node, &file, &targets)?;
    let has_several = targets.len() > 1;
    let (mut cards, mut is_good) = (Vec::new(), wrong.is_empty());
    for (target, model) in targets.iter().zip(&models) {
        let diagnosis = examine(&host, &target.port, model.as_ref()).await?;
        is_good &= diagnosis.findings.is_empty();
        if args.json {
            cards.push(target.card(&diagnosis));
            continue;
        }
        if has_several {
            terminal_output::line(&target.heading());
        }
        target.print(&diagnosis);
    }
    match cards.as_slice() {
        [] => {}
        [one] => terminal_output::json(&with_files(one.clone(), &wrong))?,
        all => terminal_output::json(&with_files(json!({ "arms": all }), &wrong))?,
    }
    Ok(ExitStatus::of(is_good))
}

/// Returns what `check` finds wrong with the files of a node, where no single port was asked for.
fn wrong_files(node: &NodeOptions, args: &DoctorArgs, file: &NodeFile) -> Vec<DiagnosisFinding> {
    match node.config.is_some() && args.port.is_none() && !args.no_files {
        true => check::wrong_files(node, file),
        false => Vec::new(),
    }
}

/// Adds what is wrong with the files of the node, if anything is.
fn with_files(mut card: Value, wrong: &[DiagnosisFinding]) -> Value {
    if let (Value::Object(fields), false) = (&mut card, wrong.is_empty()) {
        fields.insert("files".to_owned(), json!(wrong));
    }
    card
}

/// Returns the model of the arm at each port, of those whose model is known. Where none is, no folder of scenes is needed.
fn models(
    node: &NodeOptions,
    file: &NodeFile,
    targets: &[DoctorTarget],
) -> anyhow::Result<Vec<Option<Arc<ArmModel>>>> {
    if targets.iter().all(|target| target.model.is_none()) {
        return Ok(vec![None; targets.len()]);
    }
    let library = open::library(node, file)?;
    let model = |target: &DoctorTarget, name: &String| {
        let is_named = |entry: &&ArmEntry| target.name.as_ref() == Some(&entry.name);
        let entry = file.arms.iter().find(is_named);
        if let Some(entry) = entry.filter(|entry| entry.model == *name) {
            return arm_on_its_bus(file, entry, &library);
        }
        let is_of_file = file.arms.iter().any(|entry| entry.model == *name);
        library.arm(name).map_err(|error| match node.config {
            Some(_) if !is_of_file => {
                anyhow!("{error}; the node file's arms: {}", names(file.arms.iter()))
            }
            _ => anyhow!(error),
        })
    };
    let models = targets
        .iter()
        .map(|target| Some(model(target, target.model.as_ref()?)));
    models.map(Option::transpose).collect()
}

fn names<'a>(entries: impl Iterator<Item = &'a ArmEntry>) -> String {
    let names: Vec<&str> = entries.map(|entry| entry.name.as_str()).collect();
    names.join(", ")
}

/// A port to examine, and what should be there.
struct DoctorTarget {
    port: String,
    /// Name of the arm in the node file.
    name: Option<String>,
    model: Option<String>,
}

impl DoctorTarget {
    fn of(entry: &ArmEntry) -> Self {
        Self {
            port: entry.port.clone(),
            name: Some(entry.name.clone()),
            model: Some(entry.model.clone()),
        }
    }

    fn heading(&self) -> String {
        let text = |word: &Option<String>| word.clone().unwrap_or_default();
        let (name, model) = (text(&self.name), text(&self.model));
        format!("arm {name} ({model}) at {}:", self.port)
    }

    fn print(&self, diagnosis: &BusDiagnosis) {
        print_diagnosis(&self.port, self.model.is_some(), diagnosis);
    }

    fn card(&self, diagnosis: &BusDiagnosis) -> Value {
        let card = json!({
            "arm": self.name,
            "port": self.port,
            "findings": diagnosis.findings,
            "servos": diagnosis.servos,
            "known_arms": Some(&diagnosis.known_arms).filter(|_| self.model.is_none()),
            "identity": diagnosis.identity,
        });
        without_null(card)
    }
}

/// Leaves out the fields that are not known.
fn without_null(mut card: Value) -> Value {
    if let Value::Object(fields) = &mut card {
        fields.retain(|_, value| !value.is_null());
    }
    card
}

/// Returns the ports to examine: the given one, or those of the named arm or of all arms of the node file that have one.
fn targets(
    args: &DoctorArgs,
    file: &NodeFile,
    has_file: bool,
) -> anyhow::Result<Vec<DoctorTarget>> {
    let on_ports = file.arms.iter().filter(|entry| !entry.is_simulated());
    let on_ports: Vec<&ArmEntry> = on_ports.collect();
    if let Some(port) = &args.port {
        let there = on_ports.iter().filter(|entry| entry.port == *port);
        let is_asked = |entry: &&&ArmEntry| args.arm.as_ref().is_none_or(|arm| *arm == entry.name);
        let there = there.filter(is_asked);
        let there: Vec<DoctorTarget> = there.map(|entry| DoctorTarget::of(entry)).collect();
        let is_shared = file.arms.iter().filter(|entry| entry.port == *port).count() > 1;
        if is_shared && !there.is_empty() {
            return Ok(there);
        }
        let all: Vec<&ArmEntry> = file.arms.iter().filter(|_| has_file).collect();
        let candidates = if on_ports.is_empty() { all } else { on_ports };
        return Ok(vec![target_at(
            port,
            args.arm.as_deref(),
            file,
            &candidates,
        )]);
    }
    let Some(arm) = &args.arm else {
        return Ok(on_ports.into_iter().map(DoctorTarget::of).collect());
    };
    let named = file.arms.iter().find(|entry| entry.name == *arm);
    let of_model = || on_ports.iter().filter(|entry| entry.model == *arm);
    let is_model_of_file = file.arms.iter().any(|entry| entry.model == *arm);
    match (named, on_ports.as_slice()) {
        (Some(entry), _) if entry.is_simulated() => Ok(Vec::new()),
        (Some(entry), _) => Ok(vec![DoctorTarget::of(entry)]),
        (None, _) if of_model().next().is_some() => {
            Ok(of_model().map(|entry| DoctorTarget::of(entry)).collect())
        }
        (None, []) if is_model_of_file || !has_file => Ok(Vec::new()),
        // The only arm on a port, which is taken for another model than the file says.
        (None, [one]) => Ok(vec![DoctorTarget {
            model: Some(arm.clone()),
            ..DoctorTarget::of(one)
        }]),
        (None, _) => bail!(
            "`{arm}` is neither an arm of the node file nor a model. Valid: {}",
            names(file.arms.iter())
        ),
    }
}

/// Returns what to look for at a given port: the named arm, or the one that the node file has there, or its only one: of those on
/// ports, or else of all.
fn target_at(
    port: &str,
    arm: Option<&str>,
    file: &NodeFile,
    candidates: &[&ArmEntry],
) -> DoctorTarget {
    let there = candidates.iter().find(|entry| entry.port == port);
    let model = match (arm, there, candidates) {
        (Some(arm), ..) => {
            let named = file.arms.iter().find(|entry| entry.name == arm);
            Some(named.map_or_else(|| arm.to_owned(), |entry| entry.model.clone()))
        }
        (None, Some(entry), _) | (None, None, [entry]) => Some(entry.model.clone()),
        (None, None, _) => None,
    };
    DoctorTarget {
        port: port.to_owned(),
        name: None,
        model,
    }
}

/// Lists the ports of this machine; for a node file without a port, says that its arms are simulated.
fn without_port(
    host: &HostSystem,
    config: Option<&Path>,
    file: &NodeFile,
    wrong: &[DiagnosisFinding],
    is_json: bool,
) -> anyhow::Result<ExitStatus> {
    let ports = host.ports();
    let mut diagnosis = BusDiagnosis::default();
    if ports.is_empty() && config.is_none() {
        diagnosis.add(DiagnosisCause::NoPort, NO_PORT, NO_PORT_FIX);
    }
    let status = ExitStatus::of(diagnosis.findings.is_empty() && wrong.is_empty());
    if is_json {
        let card =
            json!({"port": null, "ports": port_names(&ports), "findings": diagnosis.findings});
        terminal_output::json(&with_files(card, wrong))?;
        return Ok(status);
    }
    print_findings(wrong);
    match config {
        Some(path) => print_simulated(path, file),
        None if ports.is_empty() => print_findings(&diagnosis.findings),
        None => print_ports(&ports),
    }
    Ok(status)
}

async fn examine(
    host: &HostSystem,
    port: &str,
    arm: Option<&Arc<ArmModel>>,
) -> anyhow::Result<BusDiagnosis> {
    let clock = NodeClock::real();
    let expected = arm.and_then(expected);
    let mut open = opener(port, &clock);
    let is_watched = std::io::stderr().is_terminal();
    terminal_output::note(&format!(
        "listening on {port}: this takes a few seconds, or ten if no servo answers …"
    ));
    let progress = |speech: ServoProtocol, baud| {
        if is_watched {
            terminal_output::note(&format!("{} at {baud} baud …", speech.name()));
        }
    };
    if let Some(arm) = arm.filter(|arm| arm.file.family == ServoFamily::Firmware) {
        return Ok(driver::diagnose::controller(&mut open, &clock, host, port, arm).await?);
    }
    let diagnosing = diagnose(&mut open, &clock, host, port, expected.as_ref(), progress);
    let mut diagnosis = diagnosing.await?;
    if arm.is_none() {
        diagnosis.compare_with_known(&known_arms());
    }
    if let Some(arm) = arm {
        // What answers is shown with the arm that has it.
        let is_others = |found: &FoundServo| arm.bus.others.contains(&found.servo.id);
        diagnosis.servos.retain(|found| !is_others(found));
    }
    if let Some(arm) = arm.filter(|_| diagnosis.findings.is_empty()) {
        let mut link = open(arm.file.baud)?;
        // Its findings are in the diagnosis.
        let _ = driver::diagnose::setup(link.as_mut(), arm, &clock, &mut diagnosis).await;
    }
    Ok(diagnosis)
}

/// Returns the shipped arms with a servo bus, each with its protocol and ids.
fn known_arms() -> Vec<(&'static str, ServoProtocol, Vec<u8>)> {
    let known = SHIPPED_ARMS.into_iter().filter_map(|(name, family, ids)| {
        let protocol = driver::diagnose::servo_protocol(family)?;
        Some((name, protocol, ids.collect()))
    });
    known.collect()
}

/// Returns the bus settings that an arm's file states; `None` for a family without a servo bus.
pub(super) fn expected(arm: &Arc<ArmModel>) -> Option<ExpectedServos> {
    let (name, family) = (arm.file.name.as_str(), arm.file.family);
    let others = SHIPPED_ARMS.into_iter();
    let others = others.filter(|(other, of, _)| *of == family && *other != name);
    Some(ExpectedServos {
        others: others
            .map(|(other, _, ids)| (other.to_owned(), ids.collect()))
            .collect(),
        arm: name.to_owned(),
        protocol: driver::diagnose::servo_protocol(arm.file.family)?,
        baud: arm.file.baud,
        ids: arm.ids(),
        beside: arm.bus.others.clone(),
        supply_v: arm.file.supply_v.map(Finite::get),
    })
}

/// Returns the supply that the file of the arm at a port states, where the node file says which arm that is.
pub(super) fn stated_supply_v(node: &NodeOptions, port: &str) -> Option<f64> {
    let file = open::file(node).ok()?;
    let entry = file.arms.iter().find(|entry| entry.port == port)?;
    let arm = open::library(node, &file).ok()?.arm(&entry.model).ok()?;
    arm.file.supply_v.map(Finite::get)
}

fn print_findings(findings: &[DiagnosisFinding]) {
    terminal_output::lines(findings.iter().map(finding_text));
}

/// Describes a finding in two lines: the observation, and the fix.
pub(super) fn finding_text(finding: &DiagnosisFinding) -> String {
    format!("✗ {}\n  → {}", finding.what, finding.fix)
}

/// Returns the named port, or the only one of this machine.
pub(super) fn named_or_only(named: Option<&str>) -> anyhow::Result<String> {
    let ports = port_names(&HostSystem::default().ports());
    match (named, ports.as_slice()) {
        (Some(named), _) => Ok(named.to_owned()),
        (None, [one]) => Ok(one.clone()),
        (None, []) => bail!("{NO_PORT}. Next: {NO_PORT_FIX}"),
        (None, [first, ..]) => bail!(
            "this machine has several serial ports: {}. Next: name the arm's port, such as {first}",
            ports.join(", ")
        ),
    }
}

/// Prints the servos that replied: how they were reached, and each with its model and supply.
fn print_servos(diagnosis: &BusDiagnosis) {
    let Some(first) = diagnosis.servos.first() else {
        return;
    };
    let servos = diagnosis.servos.iter().map(|found| {
        let supply = found.servo.voltage_v;
        let supply = supply.map_or(String::new(), |volts| format!(", {volts:.1} V"));
        format!("{} ({}{supply})", found.servo.id, found.servo.name)
    });
    let servos: Vec<String> = servos.collect();
    terminal_output::line(&format!(
        "servos that answer ({} at {} baud): {}",
        first.family.name(),
        first.baud,
        servos.join(", ")
    ));
}

fn print_diagnosis(port: &str, is_named: bool, diagnosis: &BusDiagnosis) {
    print_findings(&diagnosis.findings);
    print_servos(diagnosis);
    if !diagnosis.identity.is_empty() {
        terminal_output::lines(["the servos' identities, for the arm's file:", "[identity]"]);
    }
    let identity = diagnosis.identity.iter();
    terminal_output::lines(identity.map(|(id, identity)| format!("{id} = \"{identity}\"")));
    if !diagnosis.findings.is_empty() {
        return;
    }
    terminal_output::line(&format!("✓ no problem on {port}"));
    if let Some(first) = diagnosis.known_arms.first().filter(|_| !is_named) {
        let arms = diagnosis.known_arms.join(" or ");
        terminal_output::line(&format!(
            "  the ids fit {arms}. Next: `steadyhand doctor {port} --arm {first}` also checks the settings"
        ));
    }
}

/// Prints that a node file names no port that could be examined.
fn print_simulated(path: &Path, file: &NodeFile) {
    let path = path.display();
    let simulated = file.arms.iter().filter(|entry| entry.is_simulated());
    terminal_output::lines(simulated.map(|entry| {
        format!(
            "✓ arm {} of {path} is simulated (`port = \"{SIMULATOR_PORT}\"`): there is no port to check",
            entry.name
        )
    }));
    terminal_output::line(
        "  → for a real arm, write its port into the node file, or run `steadyhand doctor PORT`. Without a node file, `steadyhand doctor` lists the ports",
    );
}

fn print_ports(ports: &[PathBuf]) {
    terminal_output::line("serial ports of this machine (`steadyhand doctor PORT` checks one):");
    let names = port_names(ports).into_iter();
    terminal_output::lines(names.map(|port| format!("  {port}")));
}

/// Returns the paths of ports as text.
pub(super) fn port_names(ports: &[PathBuf]) -> Vec<String> {
    ports
        .iter()
        .map(|port| port.display().to_string())
        .collect()
}
