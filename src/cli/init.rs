//! `init`: writes a commented node file, from the options, or from what is plugged in and what a person chooses.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use base::file_access;
use base::plain_file;
use clap::Args;

use super::arm::{self, ArmCommand};
use super::files::folder_of;
use super::questions::{ask, pick, pick_or_path};
use super::{ExitStatus, NodeOptions, bus, doctor, terminal_output};
use config::{NodeFile, SIMULATOR_PORT};
use node::open;
use scene::SceneLibrary;
use servo::diagnose::ExpectedServos;
use servo::host::HostSystem;
use servo::scan::FoundServo;

/// The shipped node file, in which some values are replaced.
const TEMPLATE: &str = include_str!("../../systemd/node.toml");

/// File mode of a node file.
const MODE: u32 = 0o640;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct InitArgs {
    #[command(subcommand)]
    what: Option<ArmCommand>,
    /// The node's name [default: the machine's]; --port gives the arm's port
    #[arg(long)]
    name: Option<String>,
    /// Its arm, such as so101 [default: the one whose servos answer]
    #[arg(long)]
    arm: Option<String>,
    /// Path of the node file to write
    #[arg(long, value_name = "FILE", default_value = "node.toml")]
    out: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Do not scan the port for servos
    #[arg(long)]
    no_scan: bool,
}

/// Folder beside the node file in which scenes are kept.
const SCENES: &str = "scenes";

/// Choices made for the node file.
struct InitChoices {
    name: String,
    model: String,
    port: String,
    /// The folder of scenes: the one that was given, or one beside the file, where calibrations are written.
    scenes: PathBuf,
}

pub(super) async fn run(node: &NodeOptions, args: InitArgs) -> anyhow::Result<ExitStatus> {
    if let Some(what) = &args.what {
        return arm::run(what);
    }
    ensure!(
        args.force || !args.out.exists(),
        "{} already exists. Next: name another with --out, or add --force",
        args.out.display()
    );
    let library = open::library(node, &NodeFile::default())?;
    let port = match node.port.clone() {
        Some(port) => port,
        None => choose_port()?,
    };
    let found = if port == SIMULATOR_PORT || args.no_scan {
        Vec::new()
    } else {
        bus::find_servos(node, &port, true).await?.found
    };
    for servo in &found {
        terminal_output::note(&describe(servo));
    }
    let choice = InitChoices {
        model: choose_arm(&args, &library, &port, &found)?,
        name: match args.name {
            Some(name) => name,
            None => ask("what is this node's name?", &machine_name())?,
        },
        scenes: match &node.scenes {
            Some(given) => std::path::absolute(given)?,
            None => PathBuf::from(SCENES),
        },
        port,
    };
    let text = node_file(&choice, &second_arm(&library, &choice, &found))?;
    // Whatever the options, the written file must be readable.
    let file = NodeFile::read(&args.out.display().to_string(), &text)?;
    let arms = file.arms.iter().map(|arm| [&*arm.name, &*arm.model]);
    let arms: Vec<[&str; 2]> = arms.collect();
    for (scene, worst) in tools::scenes_with_refused_poses(&library, &arms) {
        terminal_output::note(&format!("scene {scene}: {}", worst.words()));
    }
    let scenes = folder_of(&args.out).join(&choice.scenes);
    std::fs::create_dir_all(&scenes)
        .with_context(|| format!("cannot make the folder {}", scenes.display()))?;
    save(&args.out, &text)?;
    terminal_output::done(&format!(
        "{} is written: node `{}` with a {} at {}. Next: `steadyhand --config {0} check`",
        args.out.display(),
        choice.name,
        choice.model,
        choice.port
    ))
}

/// Saves the file for its owner and its folder's group alone, because it may later hold tokens of other nodes.
fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let opened = file_access::with_mode(&mut options, MODE).open(path);
    let mut file = opened.with_context(cannot)?;
    file_access::set_mode(path, MODE).with_context(cannot)?;
    file_access::share_with_group_of(folder_of(path), &file);
    file.write_all(text.as_bytes()).with_context(cannot)?;
    Ok(())
}

fn describe(found: &FoundServo) -> String {
    let (servo, family) = (&found.servo, found.family.name());
    let (id, name, baud) = (servo.id, &servo.name, found.baud);
    format!("servo {id} is a {name} ({family} at {baud} baud)")
}

/// Returns one of this machine's ports, or the simulator without any port or without a terminal to ask at.
fn choose_port() -> anyhow::Result<String> {
    let mut ports = doctor::port_names(&HostSystem::default().ports());
    if !std::io::stdin().is_terminal() {
        if !ports.is_empty() {
            bail!(
                "--port is missing. Valid: {}, {SIMULATOR_PORT}",
                ports.join(", ")
            );
        }
        terminal_output::note("no serial port is plugged in: this node gets a simulated arm");
        return Ok(SIMULATOR_PORT.to_owned());
    }
    ports.push(SIMULATOR_PORT.to_owned());
    pick_or_path("where is the arm?", &ports)
}

/// The arm that most people have.
const USUAL_ARM: &str = "so101";

/// Returns the given arm, or the one that fits the servos that answer.
fn choose_arm(
    args: &InitArgs,
    library: &SceneLibrary,
    port: &str,
    found: &[FoundServo],
) -> anyhow::Result<String> {
    if let Some(model) = &args.arm {
        library.arm(model)?;
        check_named(library, model, port, found)?;
        return Ok(model.clone());
    }
    if port == SIMULATOR_PORT {
        return Ok(USUAL_ARM.to_owned());
    }
    let fits = fitting_arms(library, found);
    match fits.as_slice() {
        [one] => Ok(one.clone()),
        [] if std::io::stdin().is_terminal() => pick("which arm is it?", &library.arms()),
        [] if args.no_scan => bail!(
            "the servos on {port} were not asked (--no-scan). Next: name the arm with --arm. Valid: {}",
            library.arms().join(", ")
        ),
        [] => bail!(
            "no known arm has these servos. Next: name the arm with --arm, or run `steadyhand doctor {port}`. Valid: {}",
            library.arms().join(", ")
        ),
        several if std::io::stdin().is_terminal() => pick("which arm is it?", several),
        several => bail!(
            "these servos fit several arms. Next: name one with --arm. Valid: {}",
            several.join(", ")
        ),
    }
}

/// Refuses a named arm where the servos that answer are those of others.
fn check_named(
    library: &SceneLibrary,
    model: &str,
    port: &str,
    found: &[FoundServo],
) -> anyhow::Result<()> {
    let fits = fitting_arms(library, found);
    let is_other = count_strangers(library, model, found) != Some(0)
        && fits
            .iter()
            .any(|name| count_strangers(library, name, found) == Some(0));
    ensure!(
        !is_other,
        "the servos at {port} belong to {}, not to {model}. Next: add --arm {}, or connect the right arm (--no-scan writes the file anyway)",
        fits.join(" or "),
        fits.first().map_or(model, String::as_str)
    );
    Ok(())
}

/// Returns the arms all of whose servos answered and that leave the fewest other servos unexplained.
fn fitting_arms(library: &SceneLibrary, found: &[FoundServo]) -> Vec<String> {
    let names = library.arms().into_iter();
    let fits = names.filter_map(|name| Some((count_strangers(library, &name, found)?, name)));
    let fits: Vec<(usize, String)> = fits.collect();
    let fewest = fits.iter().map(|(strangers, _)| *strangers).min();
    let best = fits.into_iter().filter(|(count, _)| Some(*count) == fewest);
    let mut names: Vec<String> = best.map(|(_, name)| name).collect();
    keep_nearest_variants(library, &mut names, found);
    // Arms with the same servos are indistinguishable: the usual one is shown first.
    names.sort_by_key(|name| name != USUAL_ARM);
    names
}

/// Logarithm of the ratio of two supplies that what is read does not tell apart: a battery's cell gives 3.3 to 4.2 V.
const SAME_SUPPLY: f64 = 0.2;

/// Keeps, of variants with the same joints, those whose servos are made for the supply that is nearest to the one that was read, or
/// for nearly the same.
fn keep_nearest_variants(library: &SceneLibrary, names: &mut Vec<String>, found: &[FoundServo]) {
    let volts = found.iter().filter_map(|one| one.servo.voltage_v);
    let supply_v = volts.fold(0.0, f64::max);
    if supply_v <= 0.0 {
        return;
    }
    let variant = |name: &String| {
        let arm = library.arm(name).ok()?;
        let off = (supply_v / arm.file.servo.as_ref()?.stall_volts.get()).ln();
        let base = arm.file.like.clone().unwrap_or_else(|| name.clone());
        Some((base, off.abs()))
    };
    let variants: Vec<Option<(String, f64)>> = names.iter().map(variant).collect();
    let is_nearest = |variant: &Option<(String, f64)>| {
        let Some((base, off)) = variant else {
            return true;
        };
        let others = variants.iter().flatten();
        let mut own = others.filter(|(other, _)| other == base);
        own.all(|(_, other)| off - other < SAME_SUPPLY)
    };
    let mut kept = variants.iter().map(is_nearest);
    names.retain(|_| kept.next().unwrap_or(true));
}

/// Counts the answering servos that do not belong to an arm, or are of another model than its file says; `None` if one of its own did not answer, or if it exists only as
/// a simulation.
fn count_strangers(library: &SceneLibrary, name: &str, found: &[FoundServo]) -> Option<usize> {
    let arm = library.arm(name).ok()?;
    let ExpectedServos {
        protocol, ids: own, ..
    } = doctor::expected(&arm)?;
    let is_own = |one: &FoundServo| one.family == protocol && own.contains(&one.servo.id);
    let models = &arm.file.simulation.models;
    let is_stranger = |one: &&FoundServo| {
        let stated = models.get(&one.servo.id.to_string());
        !is_own(one) || stated.is_some_and(|model| *model != one.servo.model)
    };
    let has_answered = |id: &u8| found.iter().any(|one| is_own(one) && one.servo.id == *id);
    let is_real = arm.file.simulation.wear.is_none();
    (is_real && own.iter().all(has_answered)).then(|| found.iter().filter(is_stranger).count())
}

/// Returns this machine's name, reduced to the characters of a node's name.
fn machine_name() -> String {
    let hostname = plain_file::read_text("/proc/sys/kernel/hostname").unwrap_or_default();
    let first = hostname.split('.').next().unwrap_or_default();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name = first.replace(|c| !is_allowed(c), "");
    if name.is_empty() {
        "node".to_owned()
    } else {
        name
    }
}

/// Returns the entry of a second arm of the chosen model on the port, where its servos answer as well, with ids of their own.
fn second_arm(library: &SceneLibrary, choice: &InitChoices, found: &[FoundServo]) -> String {
    let first = || {
        let arm = library.arm(&choice.model).ok()?;
        let (own, protocol) = (arm.ids(), doctor::expected(&arm)?.protocol);
        let of_protocol = found.iter().filter(|one| one.family == protocol);
        let ids = of_protocol.map(|one| one.servo.id);
        let others: BTreeSet<u8> = ids.filter(|id| !own.contains(id)).collect();
        let first = *others.first()?;
        let second = arm.with_first_id(first).ok()?;
        (second.ids().into_iter().collect::<BTreeSet<u8>>() == others).then_some(first)
    };
    first().map_or_else(String::new, |first_id| {
        let port = serde_json::Value::from(choice.port.as_str());
        format!(
            "\n\n# The second arm on the port.\n[[arms]]\nname = \"arm-2\"\nmodel = {:?}\nport = {port}\nfirst_id = {first_id}",
            choice.model
        )
    })
}

/// Returns the shipped file with the choices filled in, and the entry of a second arm after that of the first.
fn node_file(choice: &InitChoices, second_arm: &str) -> anyhow::Result<String> {
    let mut text = TEMPLATE.to_owned();
    let lines = [
        (
            "# scenes = \"/etc/steadyhand/scenes\"",
            "scenes",
            choice.scenes.display().to_string(),
        ),
        ("name = \"bench\"", "name", choice.name.clone()),
        ("model = \"so101\"", "model", choice.model.clone()),
        ("port = \"simulator\"", "port", choice.port.clone()),
    ];
    for (shipped, key, value) in lines {
        let has_line = text.contains(shipped);
        ensure!(has_line, "the built-in file lacks the line {shipped}");
        let quoted = serde_json::Value::from(value.as_str());
        let after = if key == "port" { second_arm } else { "" };
        text = text.replacen(shipped, &format!("{key} = {quoted}{after}"), 1);
    }
    Ok(text)
}
