//! `init`: writes a commented node file, from what is plugged in and what a person chooses, or from what was said.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use base::file_access;
use clap::Args;

use super::files::folder_of;
use super::questions::{ask, pick};
use super::{ExitStatus, NodeOptions, bus, doctor, terminal_output};
use config::{NodeFile, SIMULATOR_PORT};
use node::open;
use scene::SceneLibrary;
use servo::diagnose::ExpectedServos;
use servo::host::HostSystem;
use servo::scan::FoundServo;

/// The file that ships, of which some values are replaced.
const TEMPLATE: &str = include_str!("../../systemd/node.toml");

/// File mode of a node file.
const MODE: u32 = 0o640;

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The node's name [default: the machine's]; where its arm is, is said with --port
    #[arg(long)]
    name: Option<String>,
    /// Which arm it has, such as so101 [default: the one whose servos answer]
    #[arg(long)]
    arm: Option<String>,
    /// Path of the node file to write
    #[arg(long, value_name = "FILE", default_value = "node.toml")]
    out: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
    /// Do not look who is on the port
    #[arg(long)]
    no_scan: bool,
}

/// Choices made for the node file.
struct InitChoices {
    name: String,
    model: String,
    port: String,
    /// The folder of scenes, whole, where one was said.
    scenes: Option<PathBuf>,
}

pub(super) async fn run(node: &NodeOptions, args: InitArgs) -> anyhow::Result<ExitStatus> {
    ensure!(
        args.force || !args.out.exists(),
        "{} is there already: name another with --out, or say --force",
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
        bus::look_for(node, &port, true).await?
    };
    for one in &found {
        terminal_output::note(&in_words(one));
    }
    let choice = InitChoices {
        model: choose_arm(&args, &library, &port, &found)?,
        name: match args.name {
            Some(name) => name,
            None => ask("what is this node called?", &machine()),
        },
        scenes: node.scenes.as_ref().map(std::path::absolute).transpose()?,
        port,
    };
    let text = write(&choice)?;
    // Whatever was said, what is written can be read.
    NodeFile::read(&args.out.display().to_string(), &text)?;
    save(&args.out, &text)?;
    terminal_output::done(&format!(
        "{} is written: node `{}` with a {} at {}; next: `steadyhand --config {0} check`",
        args.out.display(),
        choice.name,
        choice.model,
        choice.port
    ))
}

/// It may come to hold tokens of other nodes: its owner's and its folder's group's alone.
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

fn in_words(found: &FoundServo) -> String {
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
                "say --port PORT, one of {}, or --port {SIMULATOR_PORT}",
                ports.join(", ")
            );
        }
        terminal_output::note("no serial port is plugged in: this node gets a simulated arm");
        return Ok(SIMULATOR_PORT.to_owned());
    }
    ports.push(SIMULATOR_PORT.to_owned());
    pick("where is the arm?", &ports)
}

/// The arm that most people have.
const USUAL_ARM: &str = "so101";

/// The arm that was said, or the one that fits who answers.
fn choose_arm(
    args: &InitArgs,
    library: &SceneLibrary,
    port: &str,
    found: &[FoundServo],
) -> anyhow::Result<String> {
    if let Some(model) = &args.arm {
        library.arm(model)?;
        return Ok(model.clone());
    }
    if port == SIMULATOR_PORT {
        return Ok(USUAL_ARM.to_owned());
    }
    let fits = fitting(library, found);
    match fits.as_slice() {
        [one] => Ok(one.clone()),
        [] if std::io::stdin().is_terminal() => pick("which arm is it?", &library.arms()),
        [] if args.no_scan => bail!(
            "nothing was asked on {port}: say --arm, one of {}",
            library.arms().join(", ")
        ),
        [] => bail!(
            "no arm that is known has these servos: say --arm, one of {}, or look with `steadyhand doctor {port}`",
            library.arms().join(", ")
        ),
        several if std::io::stdin().is_terminal() => pick("which arm is it?", several),
        several => bail!(
            "these servos fit several arms: say --arm, one of {}",
            several.join(", ")
        ),
    }
}

/// The arms whose every servo answered, in their family: of those, the ones that leave the fewest servos unexplained.
fn fitting(library: &SceneLibrary, found: &[FoundServo]) -> Vec<String> {
    let names = library.arms().into_iter();
    let fits = names.filter_map(|name| Some((strangers(library, &name, found)?, name)));
    let fits: Vec<(usize, String)> = fits.collect();
    let fewest = fits.iter().map(|(strangers, _)| *strangers).min();
    let best = fits.into_iter().filter(|(count, _)| Some(*count) == fewest);
    let mut names: Vec<String> = best.map(|(_, name)| name).collect();
    // Arms with the same servos cannot be told apart: the first is what Enter takes.
    names.sort_by_key(|name| name != USUAL_ARM);
    names
}

/// Returns how many of the servos that answered are not an arm's; `None` where one of its own did not, or where it is only
/// simulated.
fn strangers(library: &SceneLibrary, name: &str, found: &[FoundServo]) -> Option<usize> {
    let arm = library.arm(name).ok()?;
    let ExpectedServos {
        speech, ids: own, ..
    } = doctor::expected(&arm)?;
    let is_own = |one: &FoundServo| one.family == speech && own.contains(&one.servo.id);
    let has = |id: &u8| found.iter().any(|one| is_own(one) && one.servo.id == *id);
    let is_metal = arm.file.simulation.wear.is_none();
    (is_metal && own.iter().all(has)).then(|| found.iter().filter(|one| !is_own(one)).count())
}

/// The name of this machine, as far as a node can be called so.
fn machine() -> String {
    let said = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let first = said.split('.').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let plain = first.replace(|c| !is_plain(c), "");
    if plain.is_empty() {
        "node".to_owned()
    } else {
        plain
    }
}

/// The file that ships, with what was chosen.
fn write(choice: &InitChoices) -> anyhow::Result<String> {
    let mut text = TEMPLATE.to_owned();
    let scenes = choice.scenes.as_ref().map(|folder| {
        let shipped = "# scenes = \"/etc/steadyhand/scenes\"";
        (shipped, "scenes", folder.display().to_string())
    });
    let always = [
        ("name = \"bench\"", "name", choice.name.clone()),
        ("model = \"so101\"", "model", choice.model.clone()),
        ("port = \"simulator\"", "port", choice.port.clone()),
    ];
    for (shipped, key, value) in always.into_iter().chain(scenes) {
        let has_line = text.contains(shipped);
        ensure!(has_line, "the file that ships has no line {shipped}");
        let quoted = serde_json::Value::from(value.as_str());
        text = text.replacen(shipped, &format!("{key} = {quoted}"), 1);
    }
    Ok(text)
}
