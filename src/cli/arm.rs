//! `init import`: makes an arm's file from a URDF, and lists what a person must complete.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};

use super::{ExitStatus, terminal_output};
use arm::urdf::{self, UrdfOptions};
use arm::{ArmFile, ArmModel, ServoFamily};
use base::plain_file;
use config::toml as strict;

#[derive(Debug, Subcommand)]
pub(super) enum ArmCommand {
    /// Make an arm's file from a URDF, and list what it lacks
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The URDF; expand xacro first
    urdf: PathBuf,
    /// The fixed link, such as `base_link`
    #[arg(long, value_name = "LINK")]
    base: String,
    /// The link that the pen is mounted to
    #[arg(long, value_name = "LINK")]
    tip: String,
    /// Name of the arm [default: the robot's name in the URDF]
    #[arg(long)]
    name: Option<String>,
    /// Which servos turn the joints: feetech-sts or dynamixel2
    #[arg(long, value_parser = family, default_value = "dynamixel2")]
    family: ServoFamily,
    /// A joint that is held still at this position, in rad or m; may be repeated
    #[arg(long, value_name = "JOINT=PLACE", value_parser = held_joint)]
    hold: Vec<(String, f64)>,
    /// The file to write; without it the text is printed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(what: &ArmCommand) -> anyhow::Result<ExitStatus> {
    let ArmCommand::Import(args) = what;
    let text = read_urdf(&args.urdf)?;
    let import_options = UrdfOptions {
        family: args.family,
        held: &args.hold,
        ..UrdfOptions::new(&args.base, &args.tip)
    };
    let mut imported = urdf::import(&text, &import_options).map_err(|error| {
        let error = error.to_string();
        let hint = if error.contains("hold it") {
            " (--hold JOINT=PLACE)"
        } else {
            ""
        };
        anyhow!("{}: {error}{hint}", args.urdf.display())
    })?;
    if let Some(name) = &args.name {
        imported.file.name.clone_from(name);
    }
    let name = &imported.file.name;
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
        bail!(
            "an arm cannot be called `{name}`: no file can have that name. Next: choose another --name"
        );
    }
    let text = imported.toml()?;
    let arm = load(&text)?;
    let Some(out) = &args.out else {
        terminal_output::lines(text.lines());
        return Ok(ExitStatus::Done);
    };
    save(out, &text)?;
    let (file, joints, capsules) = (out.display(), arm.dof(), arm.capsules.len());
    terminal_output::line(&format!("{file}: {joints} joints, {capsules} capsules"));
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    if stem != arm.file.name.as_str() {
        terminal_output::note(&format!(
            "a scene looks for the arm `{}` in `arms/{}.toml` beside it. Next: give the file that name",
            arm.file.name, arm.file.name
        ));
    }
    terminal_output::note("complete these yourself (the top of the file lists them too):");
    for line in &imported.assumed {
        terminal_output::note(&format!("- {line}"));
    }
    Ok(ExitStatus::Done)
}

/// Reads a bounded amount of UTF-8 text.
fn read_urdf(path: &Path) -> anyhow::Result<String> {
    let error_text = || format!("cannot read {}", path.display());
    let bytes_max = u64::try_from(urdf::BYTES_MAX).unwrap_or(u64::MAX);
    let bytes = plain_file::read_at_most(path, bytes_max).with_context(error_text)?;
    String::from_utf8(bytes).map_err(|_| anyhow!("{} is not UTF-8 text", path.display()))
}

/// Loads the result as an arm's file: a file that cannot be loaded is not written.
fn load(text: &str) -> anyhow::Result<ArmModel> {
    let file: ArmFile = strict::read("the imported arm", text)?;
    Ok(ArmModel::new(file)?)
}

/// Saves the file, but never over an existing one, whose servo map may have been completed.
fn save(out: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    if let Some(folder) = out.parent() {
        base::disk::folder(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let error_text = || format!("cannot write {}", out.display());
    let created = std::fs::File::create_new(out);
    let mut file = created.with_context(|| format!("{} (name a new file)", error_text()))?;
    file.write_all(text.as_bytes()).with_context(error_text)
}

fn family(text: &str) -> anyhow::Result<ServoFamily> {
    let normalised = text
        .to_lowercase()
        .replace(|c: char| !c.is_alphanumeric(), "");
    match normalised.as_str() {
        "feetechsts" | "feetech" | "sts" => Ok(ServoFamily::FeetechSts),
        "dynamixel2" | "dynamixel" | "dxl" => Ok(ServoFamily::Dynamixel2),
        _ => Err(anyhow!("type feetech-sts or dynamixel2")),
    }
}

fn held_joint(text: &str) -> anyhow::Result<(String, f64)> {
    let hint = || anyhow!("type a joint and its position, such as `left_carriage_joint=0.04`");
    let (joint, position) = text.split_once('=').ok_or_else(hint)?;
    let position: f64 = position.trim().parse().map_err(|_| hint())?;
    if joint.trim().is_empty() || !position.is_finite() {
        return Err(hint());
    }
    Ok((joint.trim().to_owned(), position))
}
